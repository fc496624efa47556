//! Function names as models take them: `^[A-Za-z0-9_-]{1,64}$`, one for each tool, no two alike.

use std::collections::BTreeMap;

use mission_contract::digest::sha256_hex;

use super::words::ANSWER_FUNCTION;

/// Most characters of a function's name: the rule of the large providers.
const LONGEST: usize = 64;

/// The names of the offered tools on a provider's wire, in both directions.
#[derive(Clone, Debug, Default)]
pub struct FunctionNames {
    to_function: BTreeMap<String, String>,
    to_tool: BTreeMap<String, String>,
}

impl FunctionNames {
    /// The function's name for `tool`, which it keeps for the whole run.
    ///
    /// A character that a provider refuses becomes `_`; where that is too long or taken, a digest of the tool's full name is appended.
    pub fn assign(&mut self, tool: &str) -> String {
        if let Some(name) = self.to_function.get(tool) {
            return name.clone();
        }
        let plain: String =
            tool.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
        let taken = |name: &str| name == ANSWER_FUNCTION || self.to_tool.contains_key(name);
        let name = if plain.len() <= LONGEST && !plain.is_empty() && !taken(&plain) { plain } else { digested(tool, &plain, taken) };
        self.to_function.insert(tool.to_owned(), name.clone());
        self.to_tool.insert(name.clone(), tool.to_owned());
        name
    }

    /// The tool behind a function's name.
    pub fn tool(&self, function: &str) -> Option<&str> {
        self.to_tool.get(function).map(String::as_str)
    }

    /// The function's name of a tool, when it has one.
    pub fn function(&self, tool: &str) -> Option<&str> {
        self.to_function.get(tool).map(String::as_str)
    }
}

/// `plain`, shortened, and as much of the digest as makes it unique.
fn digested(tool: &str, plain: &str, taken: impl Fn(&str) -> bool) -> String {
    let digest = sha256_hex(tool.as_bytes());
    for length in [8, 16, 32, 62] {
        let suffix: String = digest.chars().take(length).collect();
        let room = LONGEST.saturating_sub(length).saturating_sub(1);
        let front: String = plain.chars().take(room).collect();
        let name = format!("{front}_{suffix}");
        if !taken(&name) {
            return name;
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dot_becomes_an_underscore_and_comes_back() {
        let mut names = FunctionNames::default();
        assert_eq!(names.assign("mcp.add"), "mcp_add");
        assert_eq!(names.tool("mcp_add"), Some("mcp.add"));
        assert_eq!(names.assign("mcp_add").len(), "mcp_add_".len() + 8);
        assert_eq!(names.tool("mcp_add"), Some("mcp.add"));
    }

    #[test]
    fn the_answer_function_is_never_shadowed() {
        let mut names = FunctionNames::default();
        assert_ne!(names.assign("mission_answer"), "mission_answer");
    }

    proptest! {
        #[test]
        fn every_name_fits_and_is_reversible(tools in proptest::collection::btree_set(".{0,90}|[a-c._]{1,3}", 1..40)) {
            let mut names = FunctionNames::default();
            let functions: Vec<String> = tools.iter().map(|tool| names.assign(tool)).collect();
            for (tool, function) in tools.iter().zip(&functions) {
                prop_assert!((1..=64).contains(&function.len()));
                prop_assert!(function.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
                prop_assert_eq!(names.tool(function), Some(tool.as_str()));
                prop_assert_eq!(names.function(tool), Some(function.as_str()));
            }
        }
    }
}
