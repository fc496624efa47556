//! The script of a scripted model: a JSON file that says what the model does, reply by reply.
//!
//! ```json
//! {
//!   "model": "demo",
//!   "steps": [
//!     {"text": "Let me look.", "calls": [{"name": "search", "arguments": {"query": "pump"}}]},
//!     {"calls": [{"name": "read", "arguments": {"id": "{{result.1#/hits/0/id}}"}}], "delay_ms": 200},
//!     {"answer": "There are {{result.1#/hits|length}} hits. The first one says: {{result.2}}"}
//!   ]
//! }
//! ```
//!
//! A **step** is one reply (in the `json` protocol, where a reply holds one call, a step with several calls is as many replies). It holds one of
//!
//! * `answer`: a text that finishes the run;
//! * `calls`: a list of `{name, arguments}`. The name is the tool's own or its full one; it is sent as the run offers it, or as it stands when
//!   the run offers none such. `text` may stand beside it: what the model says with the calls (`native` only);
//! * `text`: prose without a call, as a model that does not keep to its protocol;
//! * `raw`: the same, to the letter: no placeholder is looked for;
//! * `fail`: `{status, message}`: the server answers with that HTTP status.
//!
//! and besides `delay_ms` (before the first word), `fragment_bytes` and `fragment_ms` (size of the pieces of a streamed reply, and the pause between
//! them), `usage` (as a server reports it), `finish` (the reason given for stopping), `cut: true` (the connection breaks after what is said),
//! `stall: true` (nothing more comes after what is said, until the run gives up).
//!
//! **Placeholders** stand in `answer`, in `text` and in any string of `arguments`: `{{result}}` is the text of the last result that came back in this
//! run, `{{result.N}}` of the N-th, `{{result.N#/a/0}}` the value at a JSON Pointer in it, and with `|length` behind it the number of its
//! elements, members or characters. A string of `arguments` that is nothing but one placeholder becomes the value itself; elsewhere a value that is no
//! string is written as JSON.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::settings::ModelError;
use super::template;
use crate::limits::{SCRIPT_BYTES, SCRIPT_DELAY_MS};
use crate::sys::files::open_regular;

/// A script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The name the model goes by; the file's without its ending, unless stated.
    pub model: Option<String>,
    /// Its replies, in order.
    pub steps: Vec<Step>,
}

/// One reply.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Finishes the run.
    pub answer: Option<String>,
    /// Calls tools.
    pub calls: Option<Vec<ScriptedCall>>,
    /// Says this, alone or beside calls.
    pub text: Option<String>,
    /// Says this to the letter.
    pub raw: Option<String>,
    /// Fails.
    pub fail: Option<ScriptedFailure>,
    /// Milliseconds before the first word.
    pub delay_ms: u64,
    /// Bytes in a piece of a streamed reply; 16 unless stated.
    pub fragment_bytes: Option<usize>,
    /// Milliseconds between the pieces of a streamed reply.
    pub fragment_ms: u64,
    /// What it costs.
    pub usage: Option<Map<String, Value>>,
    /// The reason given for stopping.
    pub finish: Option<String>,
    /// The connection breaks after what is said.
    pub cut: bool,
    /// Nothing more comes after what is said.
    pub stall: bool,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's own name, or its full one.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// An answer with a status that says no.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// The HTTP status.
    pub status: u16,
    /// The server's words.
    #[serde(default)]
    pub message: String,
}

impl Script {
    /// Reads and checks a script.
    ///
    /// # Errors
    /// A sentence with the file, the place in it, what is wrong there and the fix.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let name = file.display().to_string();
        let at = |place: String, problem: String| ModelError::Script { file: name.clone(), place, problem };
        let mut text = String::new();
        open_regular(file)
            .and_then(|open| open.take(SCRIPT_BYTES.saturating_add(1)).read_to_string(&mut text))
            .map_err(|error| at(String::new(), format!("cannot be read ({error}): name a JSON file with --script")))?;
        if text.len() as u64 > SCRIPT_BYTES {
            return Err(at(String::new(), format!("is larger than {SCRIPT_BYTES} bytes: a script is written by hand")));
        }
        Self::parse(&text).map_err(|(place, problem)| at(place, problem))
    }

    /// Checks a script's text. An error is a place and what is wrong there.
    ///
    /// # Errors
    /// See [`Script::read`].
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        if !text.trim_start().starts_with('{') {
            let problem = "has to be a JSON object: {\"steps\": [...]}";
            return Err((", line 1, column 1".to_owned(), problem.to_owned()));
        }
        let script: Script = serde_json::from_str(text).map_err(|error| {
            let place = format!(", line {}, column {}", error.line(), error.column());
            let words = error.to_string();
            (place, words.split(" at line ").next().unwrap_or_default().to_owned())
        })?;
        if script.steps.is_empty() {
            return Err((String::new(), "has no `steps`: list at least one reply".to_owned()));
        }
        for (index, step) in script.steps.iter().enumerate() {
            step.check().map_err(|problem| (format!(", step {}", index.saturating_add(1)), problem))?;
        }
        Ok(script)
    }
}

impl Step {
    fn check(&self) -> Result<(), String> {
        let kinds: Vec<&str> = [
            ("answer", self.answer.is_some()),
            ("calls", self.calls.is_some()),
            ("raw", self.raw.is_some()),
            ("fail", self.fail.is_some()),
            ("text", self.text.is_some() && self.calls.is_none()),
        ]
        .into_iter()
        .filter_map(|(kind, is_there)| is_there.then_some(kind))
        .collect();
        match kinds.as_slice() {
            [] if self.stall => {}
            [] => return Err("says nothing: give it one of `answer`, `calls`, `text`, `raw`, `fail` or `stall`".to_owned()),
            [_] => {}
            several => {
                return Err(format!(
                    "has `{}`: keep one of them, and make a step of its own of each other",
                    several.join("` and `")
                ));
            }
        }
        if self.calls.as_ref().is_some_and(Vec::is_empty) {
            return Err("has an empty list of `calls`: name a call, or use `text`".to_owned());
        }
        if self.cut && self.stall {
            return Err("has `cut` and `stall`: keep one of them".to_owned());
        }
        if self.fragment_bytes == Some(0) {
            return Err("has `fragment_bytes` of 0: the least is 1".to_owned());
        }
        if self.delay_ms > SCRIPT_DELAY_MS || self.fragment_ms > SCRIPT_DELAY_MS {
            return Err(format!("waits longer than {SCRIPT_DELAY_MS} ms: shorten its `delay_ms` or `fragment_ms`"));
        }
        if let Some(fail) = &self.fail
            && !(300..600).contains(&fail.status)
        {
            return Err(format!("fails with status {}: a status that says no lies between 300 and 599", fail.status));
        }
        for text in self.answer.iter().chain(&self.text) {
            template::check(text)?;
        }
        for call in self.calls.iter().flatten() {
            if call.name.trim().is_empty() {
                return Err("has a call without a `name`: name a tool".to_owned());
            }
            call.arguments.values().try_for_each(template::check_value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(text: &str) -> String {
        let (place, problem) = Script::parse(text).unwrap_err();
        format!("demo.json{place}: {problem}")
    }

    #[test]
    fn a_script_that_cannot_be_played_says_where_and_why() {
        insta::assert_snapshot!(refused("{\"steps\": [\n  {\"anwser\": \"x\"}]}"), @"demo.json, line 2, column 11: unknown field `anwser`, expected one of `answer`, `calls`, `text`, `raw`, `fail`, `delay_ms`, `fragment_bytes`, `fragment_ms`, `usage`, `finish`, `cut`, `stall`");
        insta::assert_snapshot!(refused("[]"), @"demo.json, line 1, column 1: has to be a JSON object: {\"steps\": [...]}");
        insta::assert_snapshot!(refused("{\"steps\": [}"), @"demo.json, line 1, column 12: expected value");
        insta::assert_snapshot!(refused(r#"{"steps": []}"#), @"demo.json: has no `steps`: list at least one reply");
        insta::assert_snapshot!(refused(r#"{"steps": [{"answer": "a"}, {"delay_ms": 3}]}"#), @"demo.json, step 2: says nothing: give it one of `answer`, `calls`, `text`, `raw`, `fail` or `stall`");
        insta::assert_snapshot!(refused(r#"{"steps": [{"answer": "a", "raw": "b"}]}"#), @"demo.json, step 1: has `answer` and `raw`: keep one of them, and make a step of its own of each other");
        insta::assert_snapshot!(refused(r#"{"steps": [{"answer": "{{result.x}}"}]}"#), @"demo.json, step 1: has the placeholder `{{result.x}}`: `x` is no number of a result; they are counted from 1");
        insta::assert_snapshot!(refused(r#"{"steps": [{"fail": {"status": 200}}]}"#), @"demo.json, step 1: fails with status 200: a status that says no lies between 300 and 599");
        insta::assert_snapshot!(refused(r#"{"steps": [{"calls": [{"name": "a", "arguments": {"x": ["{{result#a}}"]}}]}]}"#), @"demo.json, step 1: has the placeholder `{{result#a}}`: `a` is no JSON Pointer; it begins with /");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Script::read(Path::new("no-such-script.json")).unwrap_err().to_string();
        assert!(error.starts_with("the script no-such-script.json: cannot be read ("), "{error}");
    }

    #[test]
    fn a_file_that_would_be_waited_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for file in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
            let error = Script::read(file).unwrap_err().to_string();
            assert!(error.contains("cannot be read (it is no regular file)"), "{error}");
        }
    }
}
