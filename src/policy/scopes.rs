//! Scopes: what a call needs, and what the profile and the grants give.

use std::collections::BTreeSet;

use mission_contract::vocabulary::{PROFILES, Profile, TOOL_SCOPES};
use serde_json::{Map, Value};

use super::error::PolicyError;

/// Stands for every scope.
const EVERY: &str = "*";
/// What every tool of a server needs.
const SERVER_SCOPE: &str = "mcp.call";

/// What a call needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// What the tool is to do, where its scopes depend on that.
    pub action: Option<String>,
    /// The scopes, sorted.
    pub scopes: Vec<String>,
}

/// What a call of a tool needs. `server` is empty for a tool of ours; one that is not known needs every scope.
pub fn needs(server: &str, name: &str, arguments: &Map<String, Value>) -> Needs {
    let of = |scopes: &[&str], action: Option<&str>| {
        let scopes: BTreeSet<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Needs { action: action.map(str::to_owned), scopes: scopes.into_iter().collect() }
    };
    if !server.is_empty() {
        return of(&[SERVER_SCOPE], None);
    }
    let Some(tool) = TOOL_SCOPES.iter().find(|tool| tool.tool == name) else { return of(&[EVERY], None) };
    let asked = arguments.get("action").and_then(Value::as_str);
    match tool.actions.iter().find(|(action, _)| Some(*action) == asked) {
        Some((action, scope)) => of(&[scope], Some(action)),
        None => of(tool.scopes, None),
    }
}

/// Every scope that there is, sorted.
pub fn known_scopes() -> Vec<String> {
    let all = PROFILES.iter().flat_map(|profile| profile.adds).filter(|scope| **scope != EVERY);
    let all: BTreeSet<String> = all.map(|scope| (*scope).to_owned()).collect();
    all.into_iter().collect()
}

/// The profile of a name, however its letters are written.
///
/// # Errors
/// There is none of that name.
pub fn profile_named(name: &str) -> Result<&'static str, PolicyError> {
    let found = PROFILES.iter().find(|profile| profile.name.eq_ignore_ascii_case(name.trim()));
    let known = || PROFILES.iter().map(|profile| profile.name.to_owned()).collect();
    found.map(|profile| profile.name).ok_or_else(|| PolicyError::Profile { known: known() })
}

/// What a deployment grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    profile: String,
    scopes: BTreeSet<String>,
    besides: BTreeSet<String>,
}

impl Grants {
    /// What a profile grants, and scopes besides it. A profile that is not known grants nothing.
    pub fn new(profile: &str, besides: &[String]) -> Self {
        let known = PROFILES.iter().position(|known| known.name == profile);
        let granting = known.map_or(&[][..], |at| PROFILES.get(..=at).unwrap_or_default());
        let scopes = granting.iter().flat_map(|profile: &Profile| profile.adds).map(|scope| (*scope).to_owned()).collect();
        Self { profile: profile.to_owned(), scopes, besides: besides.iter().cloned().collect() }
    }

    /// Reads scopes as they are granted: several of them by commas. The result is sorted, each stands in it once.
    ///
    /// # Errors
    /// A word that is no scope, and `*`.
    pub fn read(values: &[String]) -> Result<Vec<String>, PolicyError> {
        let known = known_scopes();
        let words = values.iter().flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let mut scopes = BTreeSet::new();
        for word in words {
            if word == EVERY {
                return Err(PolicyError::EveryScope);
            }
            if !known.iter().any(|scope| scope == word) {
                let scope = super::tree::shown(word);
                return Err(PolicyError::Scope { scope, known });
            }
            scopes.insert(word.to_owned());
        }
        Ok(scopes.into_iter().collect())
    }

    /// The profile.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The scopes that a call needs and is not granted.
    pub fn missing(&self, needs: &Needs) -> Vec<String> {
        needs.scopes.iter().filter(|scope| !self.by_profile(scope) && !self.besides.contains(*scope)).cloned().collect()
    }

    /// Whether the profile alone grants all that a call needs.
    pub fn suffices(&self, needs: &Needs) -> bool {
        needs.scopes.iter().all(|scope| self.by_profile(scope))
    }

    fn by_profile(&self, scope: &str) -> bool {
        self.scopes.contains(EVERY) || self.scopes.contains(scope)
    }

    /// Why a call is refused for want of scopes: which, and what gives each.
    pub fn refusal(&self, tool: &str, missing: &[String]) -> String {
        let named = |scope: &str| if scope == EVERY { "every scope".to_owned() } else { format!("the scope {scope}") };
        let wanted = missing.iter().map(|scope| named(scope)).collect::<Vec<_>>().join(" and ");
        let given = missing.iter().map(|scope| {
            let lowest = PROFILES.iter().find(|profile| profile.adds.contains(&scope.as_str()) || profile.adds.contains(&EVERY));
            let profile = lowest.map_or("god", |profile| profile.name);
            let (what, by_grant) = match scope.as_str() {
                EVERY => ("Every scope".to_owned(), String::new()),
                scope => (format!("The scope {scope}"), format!(", or --grant {scope}")),
            };
            format!(
                " {what} is granted by the profile {profile} and those above it (--profile {profile}, MISSION_PROFILE={profile}){by_grant}."
            )
        });
        let given: String = given.collect();
        format!("`{tool}` was not called: it needs {wanted}, which the profile {} does not grant.{given}", self.profile)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(tool: &str, arguments: Value) -> Needs {
        let Value::Object(arguments) = arguments else { unreachable!() };
        needs("", tool, &arguments)
    }

    #[test]
    fn a_server_s_tool_needs_one_scope_that_every_profile_grants() {
        let needs = needs("mcp", "run_shell_command", &Map::new());
        assert_eq!(needs.scopes, ["mcp.call"]);
        for profile in PROFILES {
            assert!(Grants::new(profile.name, &[]).suffices(&needs), "{}", profile.name);
        }
        assert_eq!(Grants::new("unheard of", &[]).missing(&needs), ["mcp.call"], "deny by default");
    }

    #[test]
    fn a_tool_of_ours_needs_what_it_is_to_do() {
        assert_eq!(of("run_python_code", json!({})).scopes, ["python.exec"]);
        let delete = of("fs", json!({"action": "delete"}));
        assert_eq!((delete.action.as_deref(), delete.scopes), (Some("delete"), vec!["fs.delete".to_owned()]));
        for unknown in [json!({}), json!({"action": "chmod"}), json!({"action": ["read"]})] {
            assert_eq!(of("fs", unknown).scopes, ["fs.delete", "fs.read", "fs.write"], "all of them");
        }
        assert_eq!(of("something_new", json!({})).scopes, ["*"]);
        assert!(Grants::new("ops", &known_scopes()).missing(&of("something_new", json!({}))) == ["*"]);
        assert!(Grants::new("god", &[]).suffices(&of("something_new", json!({}))));
    }

    #[test]
    fn a_refusal_names_the_scope_and_what_gives_it() {
        let refusal = |profile: &str, tool: &str, arguments: Value| {
            let grants = Grants::new(profile, &[]);
            grants.refusal(tool, &grants.missing(&of(tool, arguments)))
        };
        insta::assert_snapshot!(refusal("safe", "run_shell_command", json!({})), @"`run_shell_command` was not called: it needs the scope shell.exec, which the profile safe does not grant. The scope shell.exec is granted by the profile dev and those above it (--profile dev, MISSION_PROFILE=dev), or --grant shell.exec.");
        insta::assert_snapshot!(refusal("safe", "fs", json!({})), @"`fs` was not called: it needs the scope fs.delete and the scope fs.write, which the profile safe does not grant. The scope fs.delete is granted by the profile ops and those above it (--profile ops, MISSION_PROFILE=ops), or --grant fs.delete. The scope fs.write is granted by the profile dev and those above it (--profile dev, MISSION_PROFILE=dev), or --grant fs.write.");
        insta::assert_snapshot!(refusal("dev", "new", json!({})), @"`new` was not called: it needs every scope, which the profile dev does not grant. Every scope is granted by the profile god and those above it (--profile god, MISSION_PROFILE=god).");
    }

    #[test]
    fn grants_are_scopes_by_commas_and_the_rest_is_refused() {
        let read = |values: &[&str]| Grants::read(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["shell.exec, fs.write,", " fs.write"]).unwrap(), ["fs.write", "shell.exec"]);
        insta::assert_snapshot!(read(&["fs.writ"]).unwrap_err(), @"`fs.writ` is no scope; there are audio.output, fs.delete, fs.read, fs.write, git.fetch, git.push, git.read, git.write, http.read, mcp.call, memory.read, memory.write, pip.install, python.exec, shell.exec, verify.run");
        insta::assert_snapshot!(read(&["fs.read,*"]).unwrap_err(), @"`*` is no scope that can be granted; the profile god has every scope (--profile god)");
        assert_eq!(profile_named(" DEV ").unwrap(), "dev");
        insta::assert_snapshot!(profile_named("root").unwrap_err(), @"that is no profile; there are safe, dev, research, ops, god");
    }

    proptest! {
        /// A higher profile, or one grant more, takes nothing away.
        #[test]
        fn profiles_are_cumulative(low in 0usize..5, high in 0usize..5, granted in proptest::sample::subsequence(known_scopes(), 0..16), tool in 0usize..4) {
            let name = ["run_shell_command", "run_python_code", "fs", "new"][tool];
            let needs = of(name, json!({"action": "write"}));
            let missing = |at: usize, granted: &[String]| Grants::new(PROFILES[at].name, granted).missing(&needs).len();
            let (low, high) = (low.min(high), low.max(high));
            prop_assert!(missing(high, &[]) <= missing(low, &[]));
            prop_assert!(missing(low, &granted) <= missing(low, &[]));
        }
    }
}
