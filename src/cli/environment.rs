//! The variables that are read, by the contract's names and their aliases. A blank value is none.

use std::collections::BTreeMap;
use std::ffi::OsString;

use mission_contract::vocabulary::{self, Status, VARIABLES, Variable};

use super::error::CliError;

/// The variables of this process, as texts.
pub type Environment = BTreeMap<String, String>;

/// Takes the variables of this process. What is not UTF-8 and is not read here is kept as far as it can be shown: it is
/// looked at by name alone.
///
/// # Errors
/// A variable that is read here and is not UTF-8.
pub fn take(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Environment, CliError> {
    let mut environment = Environment::new();
    for (name, value) in variables {
        let Ok(name) = name.into_string() else { continue };
        let value = match value.into_string() {
            Ok(value) => value,
            Err(_) if vocabulary::variable(&name).is_some() => return Err(CliError::VariableNotUtf8 { name }),
            Err(value) => value.to_string_lossy().into_owned(),
        };
        environment.insert(name, value);
    }
    Ok(environment)
}

/// What was said, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// What was said, as it was said.
    pub value: String,
    /// The flag or the variable.
    pub place: &'static str,
}

impl Stated {
    /// A flag's value; nothing when it is blank.
    pub fn flag(place: &'static str, value: Option<&str>) -> Option<Stated> {
        value.filter(|value| !value.trim().is_empty()).map(|value| Stated { value: value.to_owned(), place })
    }

    /// A variable's value, or that of the first of its aliases that has one.
    pub fn variable(environment: &Environment, name: &str) -> Option<Stated> {
        let variable = vocabulary::variable(name)?;
        std::iter::once(variable.name).chain(variable.aliases.iter().copied()).find_map(|place| {
            let value = environment.get(place).filter(|value| !value.trim().is_empty())?;
            Some(Stated { value: value.clone(), place })
        })
    }

    /// The flag's value, else the variable's.
    pub fn either(flag: &'static str, typed: Option<&str>, environment: &Environment, variable: &str) -> Option<Stated> {
        Stated::flag(flag, typed).or_else(|| Stated::variable(environment, variable))
    }

    /// A refusal of it.
    pub fn refuse(&self, problem: impl Into<String>) -> CliError {
        CliError::value(self.place, &self.value, problem)
    }
}

/// True for the words that switch something off.
pub fn is_off(value: &str) -> bool {
    ["off", "0", "false", "no", "none"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

/// Looks for variables that ask for what has not landed. `beaten` names those whose flag was given.
///
/// # Errors
/// The first of them.
pub fn refuse_later(environment: &Environment, beaten: &[&str]) -> Result<(), CliError> {
    for variable in VARIABLES.iter().filter(|variable| variable.status == Status::Later && !beaten.contains(&variable.name)) {
        let Some(stated) = Stated::variable(environment, variable.name) else { continue };
        if !says_what_holds(variable, &stated.value) {
            let fix = format!("unset it{}", default_of(variable));
            return Err(CliError::NotLanded { what: stated.place.to_owned(), fix });
        }
    }
    Ok(())
}

/// True for a value that asks for nothing: the default, and what the published rules take for it.
fn says_what_holds(variable: &Variable, value: &str) -> bool {
    let number = value.trim().parse::<f64>();
    variable.is_default(value)
        || match variable.name {
            // Less than zero, and what is no number mean the default.
            "MISSION_GATE_WAIT" => !number.is_ok_and(|seconds| seconds >= 0.0),
            "MISSION_SWARM" => is_off(value),
            _ => false,
        }
}

fn default_of(variable: &Variable) -> String {
    if variable.default.starts_with('(') { String::new() } else { format!(", or set it to {}", variable.default) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_variable_beats_its_aliases_and_a_blank_one_is_none() {
        let read = |pairs: &[(&str, &str)]| {
            Stated::variable(&environment(pairs), "MISSION_RUNS").map(|stated| (stated.place, stated.value))
        };
        assert_eq!(read(&[("MISSION_RUNS", "a"), ("JUDAIS_LOBI_RUNS", "b")]), Some(("MISSION_RUNS", "a".to_owned())));
        assert_eq!(read(&[("MISSION_RUNS", " "), ("JUDAIS_LOBI_RUNS", "b")]), Some(("JUDAIS_LOBI_RUNS", "b".to_owned())));
        assert_eq!(read(&[("JUDAIS_LOBI_RUNS", "")]), None);
    }

    #[test]
    fn what_is_not_utf8_is_refused_only_where_it_is_read() {
        let bad = || OsString::from_vec(vec![b'a', 0xff]);
        let taken = take([("OTHER".into(), bad()), (bad(), "x".into())]).unwrap();
        assert_eq!(taken.keys().collect::<Vec<_>>(), ["OTHER"]);
        insta::assert_snapshot!(take([("MISSION_SKILL".into(), bad())]).unwrap_err(), @"the variable MISSION_SKILL is not UTF-8; set it to UTF-8 text, or unset it");
        insta::assert_snapshot!(take([("JUDAIS_LOBI_RUNS".into(), bad())]).unwrap_err(), @"the variable JUDAIS_LOBI_RUNS is not UTF-8; set it to UTF-8 text, or unset it");
    }

    #[test]
    fn every_variable_that_has_not_landed_is_refused_by_the_name_that_was_set() {
        for variable in VARIABLES.iter().filter(|variable| variable.status == Status::Later) {
            for name in std::iter::once(&variable.name).chain(variable.aliases) {
                let refused = refuse_later(&environment(&[(name, "7")]), &[]).unwrap_err().to_string();
                assert!(refused.starts_with(&format!("{name} is not supported by this build yet")), "{refused}");
                assert!(refuse_later(&environment(&[(name, "7")]), &[variable.name]).is_ok());
                assert!(refuse_later(&environment(&[(name, " ")]), &[]).is_ok());
            }
        }
    }

    #[test]
    fn what_holds_anyway_is_no_wish() {
        let fine = [
            ("MISSION_SWARM", "0"),
            ("MISSION_SWARM", "false"),
            ("JUDAIS_LOBI_PROFILE", "safe"),
            ("JUDAIS_LOBI_AUDIT", "OFF"),
            ("JUDAIS_LOBI_SANDBOX", "none"),
            ("MISSION_MEMORY", "none"),
            ("MISSION_MEMORY_PRINCIPAL", "default"),
        ];
        for (name, value) in fine {
            assert!(refuse_later(&environment(&[(name, value)]), &[]).is_ok(), "{name}={value}");
        }
        for (name, value) in [("MISSION_SWARM", "yes"), ("JUDAIS_LOBI_SANDBOX", "bwrap")] {
            assert!(refuse_later(&environment(&[(name, value)]), &[]).is_err(), "{name}={value}");
        }
    }
}
