//! What tokens cost: the `pricing` of the configuration, of the working directory, else of the user, else of the harness before.

use std::collections::BTreeMap;
use std::path::Path;

use mission_contract::spec::Pricing;

use super::environment::Environment;
use super::error::{CliError, quoted};
use super::files;
use crate::limits;
use crate::skill::{Node, Placed, Problem, read_yaml};

/// Prices by provider and model; `*` is any other model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(BTreeMap<String, BTreeMap<String, Pricing>>);

impl Prices {
    /// What a model costs, where that is known.
    pub fn of(&self, provider: &str, model: Option<&str>) -> Option<Pricing> {
        let models = self.0.get(provider)?;
        model.and_then(|model| models.get(model)).or_else(|| models.get("*")).cloned()
    }
}

/// The file of the harness before, whose other keys are none of ours.
const SEED2_FILE: &str = ".judais-lobi.yml";

/// Reads them.
///
/// # Errors
/// A key that is unknown, in a file of ours; a price that is none; a file that cannot be read.
pub fn read(directory: &Path, environment: &Environment) -> Result<Prices, CliError> {
    let own = directory.join(".mission").join("config.yaml");
    let of_user = || files::of_user(environment).filter(|file| file.exists());
    let (file, is_ours) = match Some(own).filter(|file| file.exists()).or_else(of_user) {
        Some(file) => (file, true),
        None => match Some(directory.join(SEED2_FILE)).filter(|file| file.exists()) {
            Some(file) => (file, false),
            None => return Ok(Prices::default()),
        },
    };
    let text = files::settings(&file)?;
    let problem = |problem: String| refused(&file, problem);
    let whole = read_yaml(&text, 0).map_err(|place| problem(place.to_string()))?;
    let keys = whole.map("the configuration").map_err(|place| problem(place.to_string()))?;
    if is_ours && let Some((key, _)) = keys.iter().find(|(key, _)| key.text != "pricing") {
        let what = match key.text.as_str() {
            "context" => "the key `context` is not supported by this build yet; remove it".to_owned(),
            other => format!("the key {} is unknown to this build; remove it", quoted(other)),
        };
        return Err(problem(key.problem(what).to_string()));
    }
    match keys.iter().find(|(key, _)| key.text == "pricing") {
        Some((_, pricing)) => prices(pricing).map_err(|place| problem(place.to_string())),
        None => Ok(Prices::default()),
    }
}

fn prices(pricing: &Node) -> Result<Prices, Problem> {
    let mut prices = BTreeMap::new();
    for (provider, models) in pricing.map("`pricing`")? {
        let mut priced = BTreeMap::new();
        for (model, rate) in models.map("the prices of a provider")? {
            priced.insert(model.text.clone(), price(model, rate)?);
        }
        prices.insert(provider.text.clone(), priced);
    }
    Ok(Prices(prices))
}

fn price(model: &Placed, rate: &Node) -> Result<Pricing, Problem> {
    let (mut prompt, mut completion, mut currency) = (None, None, "USD".to_owned());
    for (key, value) in rate.map("the price of a model")? {
        match key.text.as_str() {
            "prompt_per_1k" => prompt = Some(a_million(key, value)?),
            "completion_per_1k" => completion = Some(a_million(key, value)?),
            "currency" => {
                currency = value.words("`currency`")?.trim().to_owned();
                if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
                    let what = format!("{} is no currency; write its code of three capital letters", quoted(&currency));
                    return Err(value.problem(what));
                }
            }
            other => {
                let what =
                    format!("the key {} is unknown; a price has prompt_per_1k, completion_per_1k and currency", quoted(other));
                return Err(key.problem(what));
            }
        }
    }
    match (prompt, completion) {
        (Some(prompt_micros), Some(completion_micros)) => Ok(Pricing { prompt_micros, completion_micros, currency }),
        _ => Err(model.problem(format!("the price of {} has to have prompt_per_1k and completion_per_1k", quoted(&model.text)))),
    }
}

/// The price of a thousand tokens as that of a million, in millionths.
fn a_million(key: &Placed, value: &Node) -> Result<u64, Problem> {
    let price = value.words("a price")?.trim().parse::<f64>().ok();
    let what = || format!("`{}` is no price; give a number like 0.0025, not below 0", key.text);
    price.and_then(|price| micros(price * 1000.0)).ok_or_else(|| value.problem(what()))
}

fn refused(file: &Path, problem: String) -> CliError {
    CliError::File { place: "the configuration".to_owned(), file: quoted(&file.to_string_lossy()), problem }
}

/// An amount in whole millionths; nothing where it is none.
pub fn micros(amount: f64) -> Option<u64> {
    let most = limits::MONEY_MOST as f64;
    // What is below that fits, and only whole numbers are left.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (amount.is_finite() && (0.0..=most).contains(&amount)).then(|| (amount * 1_000_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

    use super::*;

    fn of(name: &str, text: &str) -> Result<Prices, String> {
        let folder = tempfile::tempdir().unwrap();
        let file: PathBuf = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        let shown = folder.path().to_str().unwrap().to_owned();
        read(folder.path(), &Environment::new()).map_err(|error| error.to_string().replace(&shown, "…"))
    }

    const TEXT: &str = "pricing:\n  openai:\n    gpt-x: {prompt_per_1k: 0.0025, completion_per_1k: 0.01}\n    \"*\": {prompt_per_1k: 1, completion_per_1k: 0, currency: EUR}\n";

    #[test]
    fn the_price_of_a_model_goes_before_that_of_any() {
        for (name, text) in [
            (".mission/config.yaml", TEXT.to_owned()),
            (".judais-lobi.yml", format!("context:\n  max_context_tokens: 5\n{TEXT}")),
        ] {
            let prices = of(name, &text).unwrap();
            let price = prices.of("openai", Some("gpt-x")).unwrap();
            assert_eq!((price.prompt_micros, price.completion_micros, price.currency.as_str()), (2_500_000, 10_000_000, "USD"));
            assert_eq!(prices.of("openai", None).unwrap().currency, "EUR");
            assert_eq!(prices.of("local", Some("gpt-x")), None);
        }
        assert_eq!(of(".mission/config.yaml", "# nothing\n").unwrap(), Prices::default());
    }

    #[test]
    fn one_configuration_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::from([("HOME".to_owned(), folder.path().join("home").to_str().unwrap().to_owned())]);
        let mut check = |directory: &str, xdg: &str| {
            environment.insert("XDG_CONFIG_HOME".to_owned(), xdg.to_owned());
            read(&folder.path().join(directory), &environment)
                .map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "…"))
        };
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        check("none", "").unwrap();
        write("plain/.mission/config.yaml", "# nothing yet\n");
        check("plain", "").unwrap();
        write("home/.config/mission/config.yaml", "pricey: {}\n");
        insta::assert_snapshot!(check("none", "").unwrap_err(), @"the configuration `…/home/.config/mission/config.yaml`: line 1, column 1: the key `pricey` is unknown to this build; remove it");
        // ours alone is looked at when both are there
        check("plain", "").unwrap();
        check("none", folder.path().join("elsewhere").to_str().unwrap()).unwrap();
        write("keys/.mission/config.yaml", "# prices\n\nprizing: {}\nother: 1\n");
        insta::assert_snapshot!(check("keys", "").unwrap_err(), @"the configuration `…/keys/.mission/config.yaml`: line 3, column 1: the key `prizing` is unknown to this build; remove it");
        write("broken/.mission/config.yaml", "a: [\n");
        insta::assert_snapshot!(check("broken", "").unwrap_err(), @"the configuration `…/broken/.mission/config.yaml`: line 1, column 4: this cannot be read: unclosed bracket '['");
        write("list/.mission/config.yaml", "- a\n");
        insta::assert_snapshot!(check("list", "").unwrap_err(), @"the configuration `…/list/.mission/config.yaml`: line 1, column 1: the configuration has to be a mapping of keys to values");
        write("seed/.judais-lobi.yml", "anything: [goes]\n");
        check("seed", folder.path().join("elsewhere").to_str().unwrap()).unwrap();
    }

    #[test]
    fn what_is_no_price_is_refused() {
        let own = |text: &str| of(".mission/config.yaml", text).unwrap_err();
        insta::assert_snapshot!(own("context: {}\n"), @"the configuration `…/.mission/config.yaml`: line 1, column 1: the key `context` is not supported by this build yet; remove it");
        insta::assert_snapshot!(own("prizing: {}\n"), @"the configuration `…/.mission/config.yaml`: line 1, column 1: the key `prizing` is unknown to this build; remove it");
        insta::assert_snapshot!(own("pricing:\n  openai:\n    a: {prompt_per_1k: -1, completion_per_1k: 0}\n"), @"the configuration `…/.mission/config.yaml`: line 3, column 24: `prompt_per_1k` is no price; give a number like 0.0025, not below 0");
        insta::assert_snapshot!(own("pricing:\n  openai:\n    a: {prompt_per_1k: 1}\n"), @"the configuration `…/.mission/config.yaml`: line 3, column 5: the price of `a` has to have prompt_per_1k and completion_per_1k");
        insta::assert_snapshot!(own("pricing:\n  openai:\n    a: {prompt_per_1k: 1, completion_per_1k: .inf}\n"), @"the configuration `…/.mission/config.yaml`: line 3, column 46: `completion_per_1k` is no price; give a number like 0.0025, not below 0");
        insta::assert_snapshot!(own("pricing:\n  openai:\n    a: {prompt_per_1k: 1, completion_per_1k: 1, currency: euro}\n"), @"the configuration `…/.mission/config.yaml`: line 3, column 59: `euro` is no currency; write its code of three capital letters");
        insta::assert_snapshot!(own("pricing:\n  openai:\n    a: {prompt_per_1k: 1, completion_per_1k: 1, per_minute: 2}\n"), @"the configuration `…/.mission/config.yaml`: line 3, column 49: the key `per_minute` is unknown; a price has prompt_per_1k, completion_per_1k and currency");
    }
}
