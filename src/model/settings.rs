//! Which model a run asks: from the command line, the personality and the environment to a backend.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ModelBackend;
use super::endpoint::Endpoint;
use super::failure::FailureKind;
use super::openai::{OpenAiBackend, OpenAiKind, OpenAiSettings};
use super::scripted::ScriptedBackend;
use super::secret::Secret;

/// Where a local server is, unless something else is said.
pub const LOCAL_BASE: &str = "http://127.0.0.1:8000/v1";
/// Where the hosted service is.
pub const OPENAI_BASE: &str = "https://api.openai.com/v1";
/// The model that the hosted service is asked for, unless another is named.
pub const OPENAI_MODEL: &str = "gpt-4o-mini";

/// The providers that this build knows how to ask.
const LANDED: &str = "`openai`, `local` or `scripted`";

/// Why no model can be asked. Every sentence says what, where and the fix; none holds a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No such provider.
    #[error("provider `{word}` (from {place}) is not known: name {LANDED}")]
    UnknownProvider {
        /// The word.
        word: String,
        /// Where it stood.
        place: &'static str,
    },
    /// A provider whose work has not landed.
    #[error("provider `{word}` (from {place}) has not landed in this build: name {LANDED}")]
    NotLanded {
        /// The word.
        word: String,
        /// Where it stood.
        place: &'static str,
    },
    /// The hosted service, without a key.
    #[error(
        "no model can be asked: OPENAI_API_KEY is not set. Set it, or ask a server of your own with --provider local (LOCAL_API_BASE)"
    )]
    NoKey,
    /// The hosted service without a key, where seed 2 would hop to mistral.
    #[error(
        "no model can be asked: OPENAI_API_KEY is not set, and mistral, for which MISTRAL_API_KEY is set, has not landed in this build. \
         Set OPENAI_API_KEY, or ask a server of your own with --provider local (LOCAL_API_BASE)"
    )]
    NoKeyButMistral,
    /// A key that cannot stand in a header.
    #[error("{variable} holds a character that no HTTP header can hold: set it again, without line breaks or control characters")]
    BadKey {
        /// The variable.
        variable: &'static str,
    },
    /// A base URL that is none.
    #[error("{variable} is no base URL: {problem}")]
    BadBase {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP client cannot be made.
    #[error(
        "no connection to {server} can be set up ({problem}): for https this machine needs its package of root certificates (ca-certificates), or SSL_CERT_FILE"
    )]
    Client {
        /// The server.
        server: String,
        /// What is wrong.
        problem: String,
    },
    /// No model was named, and the server did not say which it has.
    #[error("no model is named (--model, LOCAL_MODEL), and the server did not list its own. {problem}")]
    NoModel {
        /// What went wrong, a sentence.
        problem: String,
        /// What kind of failure it was.
        kind: FailureKind,
    },
    /// The scripted model, without a script.
    #[error("--provider scripted plays a file: name it with --script FILE")]
    NoScript,
    /// A script for a model that plays none.
    #[error("--script is only for --provider scripted, and the provider is `{provider}`")]
    ScriptWithout {
        /// The provider.
        provider: &'static str,
    },
    /// A script that cannot be played.
    #[error("the script {file}{place}: {problem}")]
    Script {
        /// The file.
        file: String,
        /// Where in it: `, line 3, column 8` or `, step 2`, perhaps empty.
        place: String,
        /// What is wrong there, and the fix.
        problem: String,
    },
}

impl ModelError {
    /// True when it is about a server that did not answer as it should, and not about what was typed.
    pub fn is_servers(&self) -> bool {
        matches!(self, ModelError::NoModel { .. })
    }
}

/// What was said about the model. Blank texts count as unset.
#[derive(Clone, Default)]
pub struct ModelChoice {
    /// `--provider`.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--script`.
    pub script: Option<PathBuf>,
    /// The personality's provider.
    pub personality_provider: Option<String>,
    /// The personality's model: counts where its provider is the one that is asked, or it names none.
    pub personality_model: Option<String>,
    /// The environment, or as much of it as concerns models. It holds keys.
    pub environment: BTreeMap<String, String>,
}

impl std::fmt::Debug for ModelChoice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ModelChoice")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("script", &self.script)
            .field("personality_provider", &self.personality_provider)
            .field("personality_model", &self.personality_model)
            .finish_non_exhaustive()
    }
}

/// A choice that holds: what a run's spec says about its model, and what a backend is made from.
#[derive(Clone, Debug)]
pub struct ModelPlan {
    /// The provider's word.
    pub provider: &'static str,
    /// The model; absent where the server's first one, or the name in the script, is to be taken.
    pub model: Option<String>,
    /// The base URL as it may be shown: without credentials and without a query.
    pub base_url: Option<String>,
    source: Source,
    /// Replies that an earlier stretch of the run got, and whether by function calls: a script goes on behind them.
    behind: (u64, bool),
}

#[derive(Clone, Debug)]
enum Source {
    OpenAi(OpenAiSettings),
    Script(PathBuf),
}

impl ModelPlan {
    /// The same for a run that is taken up behind so many replies.
    #[must_use]
    pub fn behind(self, replies: u64, is_native: bool) -> Self {
        Self { behind: (replies, is_native), ..self }
    }

    /// The backend. Reads the script, or asks the server for its list when no model is named; otherwise nothing is read or connected.
    ///
    /// # Errors
    /// When a script cannot be played, a client cannot be made, or a server that must be asked does not answer.
    pub async fn open(self) -> Result<Box<dyn ModelBackend>, ModelError> {
        match self.source {
            Source::OpenAi(settings) => Ok(Box::new(OpenAiBackend::connect(settings).await?)),
            Source::Script(file) => {
                let backend = ScriptedBackend::open(&file, self.model)?;
                let (replies, is_native) = self.behind;
                backend.skip(replies, is_native);
                Ok(Box::new(backend))
            }
        }
    }
}

/// Decides which model is asked; looks at nothing but what it is given.
///
/// # Errors
/// When what was typed or set cannot work: everything that is a refusal at the door.
pub fn plan(choice: &ModelChoice) -> Result<ModelPlan, ModelError> {
    let provider = provider(choice)?;
    if provider != Provider::Scripted && choice.script.is_some() {
        return Err(ModelError::ScriptWithout { provider: provider.word() });
    }
    let typed = stated(choice.model.as_deref());
    let personality_matches = match stated(choice.personality_provider.as_deref()) {
        None => true,
        Some(word) => Provider::read(word, "the personality").is_ok_and(|its| its == provider),
    };
    let model = typed.or_else(|| stated(choice.personality_model.as_deref()).filter(|_| personality_matches)).map(str::to_owned);
    let variable = |name: &str| stated(choice.environment.get(name).map(String::as_str));
    match provider {
        Provider::Local => {
            let base = variable("LOCAL_API_BASE").unwrap_or(LOCAL_BASE);
            let base = Endpoint::parse(base).map_err(|problem| ModelError::BadBase { variable: "LOCAL_API_BASE", problem })?;
            let model = model.or_else(|| variable("LOCAL_MODEL").map(str::to_owned));
            openai(OpenAiKind::Local, base, variable("LOCAL_API_KEY"), model)
        }
        Provider::OpenAi => {
            let Some(key) = variable("OPENAI_API_KEY") else {
                return Err(if variable("MISTRAL_API_KEY").is_some() { ModelError::NoKeyButMistral } else { ModelError::NoKey });
            };
            let base = Endpoint::parse(OPENAI_BASE)
                .map_err(|problem| ModelError::BadBase { variable: "the built-in base URL", problem })?;
            openai(OpenAiKind::Hosted, base, Some(key), Some(model.unwrap_or_else(|| OPENAI_MODEL.to_owned())))
        }
        Provider::Scripted => {
            let file = choice.script.clone().filter(|file| !file.as_os_str().is_empty()).ok_or(ModelError::NoScript)?;
            Ok(ModelPlan { provider: "scripted", model, base_url: None, source: Source::Script(file), behind: (0, false) })
        }
    }
}

/// Chooses and opens in one go.
///
/// # Errors
/// Those of [`plan`] and of [`ModelPlan::open`].
pub async fn open(choice: ModelChoice) -> Result<Box<dyn ModelBackend>, ModelError> {
    plan(&choice)?.open().await
}

fn openai(kind: OpenAiKind, base: Endpoint, key: Option<&str>, model: Option<String>) -> Result<ModelPlan, ModelError> {
    let key = key.map(Secret::new);
    if key.as_ref().is_some_and(|key| !key.reveal().bytes().all(|byte| matches!(byte, 0x20..=0x7E))) {
        return Err(ModelError::BadKey { variable: kind.key_variable() });
    }
    let base_url = Some(base.shown());
    Ok(ModelPlan {
        provider: kind.provider(),
        model: model.clone(),
        base_url,
        source: Source::OpenAi(OpenAiSettings { kind, base, key, model }),
        behind: (0, false),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    OpenAi,
    Local,
    Scripted,
}

impl Provider {
    fn word(self) -> &'static str {
        match self {
            Provider::OpenAi => "openai",
            Provider::Local => "local",
            Provider::Scripted => "scripted",
        }
    }

    fn read(word: &str, place: &'static str) -> Result<Self, ModelError> {
        match word.to_lowercase().as_str() {
            "openai" => Ok(Provider::OpenAi),
            "local" => Ok(Provider::Local),
            "scripted" => Ok(Provider::Scripted),
            word @ ("anthropic" | "mistral" | "ollama" | "auto") => Err(ModelError::NotLanded { word: word.to_owned(), place }),
            _ => Err(ModelError::UnknownProvider { word: super::failure::one_line(word), place }),
        }
    }
}

/// The provider: as typed, else the personality's, else `ELF_PROVIDER`, else openai.
fn provider(choice: &ModelChoice) -> Result<Provider, ModelError> {
    let from_environment = choice.environment.get("ELF_PROVIDER").map(String::as_str);
    for (word, place) in [
        (choice.provider.as_deref(), "--provider"),
        (choice.personality_provider.as_deref(), "the personality"),
        (from_environment, "ELF_PROVIDER"),
    ] {
        if let Some(word) = stated(word) {
            return Provider::read(word, place);
        }
    }
    Ok(Provider::OpenAi)
}

fn stated(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn choice(provider: Option<&str>, environment: &[(&str, &str)]) -> ModelChoice {
        ModelChoice {
            provider: provider.map(str::to_owned),
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..ModelChoice::default()
        }
    }

    #[test]
    fn the_order_is_typed_personality_variable_openai() {
        let mut all = choice(Some("local"), &[("ELF_PROVIDER", "openai"), ("OPENAI_API_KEY", "k")]);
        all.personality_provider = Some("anthropic".to_owned());
        assert_eq!(plan(&all).unwrap().provider, "local");
        all.provider = None;
        assert_eq!(plan(&all).unwrap_err(), ModelError::NotLanded { word: "anthropic".to_owned(), place: "the personality" });
        all.personality_provider = Some(" ".to_owned());
        assert_eq!(plan(&all).unwrap().provider, "openai");
        assert_eq!(plan(&choice(None, &[("ELF_PROVIDER", " LOCAL ")])).unwrap().provider, "local");
        assert_eq!(plan(&choice(None, &[("OPENAI_API_KEY", "k")])).unwrap().provider, "openai");
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_fix() {
        let refused =
            |provider: Option<&str>, environment: &[(&str, &str)]| plan(&choice(provider, environment)).unwrap_err().to_string();
        insta::assert_snapshot!(refused(None, &[]), @"no model can be asked: OPENAI_API_KEY is not set. Set it, or ask a server of your own with --provider local (LOCAL_API_BASE)");
        insta::assert_snapshot!(refused(Some("openai"), &[("OPENAI_API_KEY", " ")]), @"no model can be asked: OPENAI_API_KEY is not set. Set it, or ask a server of your own with --provider local (LOCAL_API_BASE)");
        insta::assert_snapshot!(refused(None, &[("MISTRAL_API_KEY", "k")]), @"no model can be asked: OPENAI_API_KEY is not set, and mistral, for which MISTRAL_API_KEY is set, has not landed in this build. Set OPENAI_API_KEY, or ask a server of your own with --provider local (LOCAL_API_BASE)");
        insta::assert_snapshot!(refused(Some("mistral"), &[]), @"provider `mistral` (from --provider) has not landed in this build: name `openai`, `local` or `scripted`");
        insta::assert_snapshot!(refused(None, &[("ELF_PROVIDER", "grok")]), @"provider `grok` (from ELF_PROVIDER) is not known: name `openai`, `local` or `scripted`");
        insta::assert_snapshot!(refused(Some("local"), &[("LOCAL_API_BASE", "localhost:8000")]), @"LOCAL_API_BASE is no base URL: it has no scheme: begin it with http:// or https://");
        insta::assert_snapshot!(refused(Some("local"), &[("LOCAL_API_KEY", "se\ncret")]), @"LOCAL_API_KEY holds a character that no HTTP header can hold: set it again, without line breaks or control characters");
        insta::assert_snapshot!(refused(Some("scripted"), &[]), @"--provider scripted plays a file: name it with --script FILE");
        let mut with_script = choice(Some("local"), &[]);
        with_script.script = Some(PathBuf::from("s.json"));
        insta::assert_snapshot!(plan(&with_script).unwrap_err().to_string(), @"--script is only for --provider scripted, and the provider is `local`");
    }

    #[test]
    fn the_model_is_typed_or_the_personalitys_or_the_variables() {
        let mut local = choice(Some("local"), &[("LOCAL_MODEL", "from-variable"), ("OPENAI_API_KEY", "k")]);
        assert_eq!(plan(&local).unwrap().model.as_deref(), Some("from-variable"));
        local.personality_model = Some("from-personality".to_owned());
        assert_eq!(plan(&local).unwrap().model.as_deref(), Some("from-personality"));
        local.personality_provider = Some("anthropic".to_owned());
        assert_eq!(plan(&local).unwrap().model.as_deref(), Some("from-variable"));
        local.model = Some("typed".to_owned());
        assert_eq!(plan(&local).unwrap().model.as_deref(), Some("typed"));
        assert_eq!(plan(&choice(Some("local"), &[])).unwrap().model, None);
        assert_eq!(plan(&choice(None, &[("OPENAI_API_KEY", "k")])).unwrap().model.as_deref(), Some(OPENAI_MODEL));
    }

    #[test]
    fn nothing_that_is_shown_holds_a_credential() {
        let choice =
            choice(Some("local"), &[("LOCAL_API_BASE", "http://me:pa55word@h/v1?key=abc"), ("LOCAL_API_KEY", "sk-dummy-key\n")]);
        let plan = plan(&choice).unwrap();
        assert_eq!(plan.base_url.as_deref(), Some("http://h/v1"));
        let shown = format!("{choice:?} {plan:?}");
        for hidden in ["pa55word", "abc", "sk-dummy-key"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
