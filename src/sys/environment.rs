//! What a child sees of our environment: an allow-list, and what was passed by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables that every child gets when we have them: what the default reduced environments of the MCP SDKs pass, the
/// locale, the time zone and the place for temporary files. Nothing in them is a credential.
const ALLOWED: &[&str] = &["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// So do those that begin with this.
const ALLOWED_PREFIX: &str = "LC_";

/// Given to a child that would have no locale at all: text on its pipes is UTF-8.
const DEFAULT_LOCALE: (&str, &str) = ("LANG", "C.UTF-8");

/// What is wrong with a variable that is to be passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// It has not the form.
    #[error(
        "`{given}` is not of the form [NAME=]VAR: {why}; give the name of a variable, optionally with another name for it inside the server"
    )]
    Malformed {
        /// As it was given.
        given: String,
        /// What is wrong.
        why: &'static str,
    },
    /// One name was given twice.
    #[error("`{name}` is passed to the servers twice; give it once")]
    Twice {
        /// Its name inside the server.
        name: String,
    },
    /// We do not have it.
    #[error("the variable `{name}` is to be passed to a server but is not set; set it, or leave it out")]
    Unset {
        /// Its name in our environment.
        name: String,
    },
}

/// Reads the values of `--mcp-env [NAME=]VAR`: name inside the server → name in our environment.
///
/// # Errors
/// One that has not the form, and a name that is given twice.
pub fn parse_passes<S: AsRef<str>>(given: &[S]) -> Result<BTreeMap<String, String>, EnvironmentError> {
    let mut passes = BTreeMap::new();
    for value in given {
        let value = value.as_ref();
        let (inside, ours) = value.split_once('=').unwrap_or((value, value));
        for name in [inside, ours] {
            let why = if name.is_empty() {
                "a name is empty"
            } else if name.contains(['=', '\0']) || name.contains(char::is_whitespace) {
                "a name holds a sign that no variable's name holds"
            } else {
                continue;
            };
            return Err(EnvironmentError::Malformed { given: value.to_owned(), why });
        }
        if passes.insert(inside.to_owned(), ours.to_owned()).is_some() {
            return Err(EnvironmentError::Twice { name: inside.to_owned() });
        }
    }
    Ok(passes)
}

/// The environment of a child, from ours.
///
/// # Errors
/// A variable that is to be passed on and is not set: a server that misses its key fails later and less clearly.
pub fn child_environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    passes: &BTreeMap<String, String>,
) -> Result<BTreeMap<OsString, OsString>, EnvironmentError> {
    let ours: BTreeMap<OsString, OsString> = ours.into_iter().collect();
    let mut environment: BTreeMap<OsString, OsString> = ours
        .iter()
        .filter(|(name, value)| is_allowed(name) && !is_function(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let has_locale = ["LANG", "LC_ALL", "LC_CTYPE"].iter().any(|name| environment.contains_key(OsStr::new(name)));
    if !has_locale {
        environment.insert(DEFAULT_LOCALE.0.into(), DEFAULT_LOCALE.1.into());
    }
    for (inside, name) in passes {
        let value = ours.get(OsStr::new(name)).ok_or_else(|| EnvironmentError::Unset { name: name.clone() })?;
        environment.insert(inside.into(), value.clone());
    }
    Ok(environment)
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX))
}

/// A shell function that some shells export as a variable: code, not a value.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ours(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn names(environment: &BTreeMap<OsString, OsString>) -> Vec<&str> {
        environment.keys().map(|name| name.to_str().unwrap()).collect()
    }

    #[test]
    fn only_what_is_allowed_or_passed_reaches_a_child() {
        let ours = ours(&[
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("LC_TIME", "C"),
            ("LANG", "en_GB.UTF-8"),
            ("OPENAI_API_KEY", "secret"),
            ("GITHUB_TOKEN", "t"),
            ("SHELL", "() { :; }"),
            ("LD_PRELOAD", "x.so"),
        ]);
        let passes = parse_passes(&["TOKEN=GITHUB_TOKEN"]).unwrap();
        let environment = child_environment(ours, &passes).unwrap();
        assert_eq!(names(&environment), ["HOME", "LANG", "LC_TIME", "PATH", "TOKEN"]);
        assert_eq!(environment.get(OsStr::new("TOKEN")), Some(&OsString::from("t")));
    }

    #[test]
    fn a_child_without_a_locale_gets_one() {
        let environment = child_environment(ours(&[("LC_TIME", "C")]), &BTreeMap::new()).unwrap();
        assert_eq!(environment.get(OsStr::new("LANG")), Some(&OsString::from("C.UTF-8")));
        let environment = child_environment(ours(&[("LC_ALL", "C")]), &BTreeMap::new()).unwrap();
        assert_eq!(names(&environment), ["LC_ALL"]);
    }

    #[test]
    fn what_cannot_be_passed_is_refused() {
        let unset = child_environment(ours(&[]), &parse_passes(&["KEY"]).unwrap()).unwrap_err();
        assert_eq!(unset, EnvironmentError::Unset { name: "KEY".to_owned() });
        assert!(matches!(parse_passes(&["=VAR"]), Err(EnvironmentError::Malformed { .. })));
        assert!(matches!(parse_passes(&["A=B=C"]), Err(EnvironmentError::Malformed { .. })));
        assert!(matches!(parse_passes(&["A B"]), Err(EnvironmentError::Malformed { .. })));
        assert!(matches!(parse_passes(&["A=B", "A=C"]), Err(EnvironmentError::Twice { .. })));
    }
}
