//! When two spellings of a tool's name mean the same tool.

/// The parts of a name that count: lower case, split at everything that is no letter or digit of ASCII, joined by dots.
pub fn tool_key(name: &str) -> String {
    name.to_lowercase()
        .split(|character: char| !(character.is_ascii_lowercase() || character.is_ascii_digit()))
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(".")
}

/// True when both names mean the same tool: their keys are equal, or one is the end of the other, from a part's beginning on.
///
/// An underscore separates parts too, so `search` also means `mcp.catalog_search`.
pub fn same_tool(left: &str, right: &str) -> bool {
    let (left, right) = (tool_key(left), tool_key(right));
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|front| front.is_empty() || front.ends_with('.'));
    !left.is_empty() && !right.is_empty() && (ends(&left, &right) || ends(&right, &left))
}

/// The one offered tool that `name` can only mean, when there is exactly one.
pub fn near_match<'o, S: AsRef<str>>(name: &str, offered: &'o [S]) -> Option<&'o str> {
    let mut matches = offered.iter().map(AsRef::as_ref).filter(|tool| same_tool(name, tool));
    let found = matches.next()?;
    matches.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_made_of_letters_and_digits_alone() {
        assert_eq!(tool_key("MCP.Catalog_search--v2"), "mcp.catalog.search.v2");
        assert_eq!(tool_key("._-"), "");
        assert_eq!(tool_key("zähl"), "z.hl");
    }

    #[test]
    fn an_end_from_a_part_on_is_the_same_tool() {
        for (left, right) in
            [("search", "mcp.catalog_search"), ("mcp.add", "add"), ("Add", "add"), ("a-b", "a.b"), ("b.c", "a_b_c")]
        {
            assert!(same_tool(left, right) && same_tool(right, left), "{left} {right}");
        }
        for (left, right) in [("arch", "mcp.search"), ("mcp", "mcp.add"), ("", ""), ("", "add"), ("-", "add"), ("add", "adds")] {
            assert!(!same_tool(left, right) && !same_tool(right, left), "{left} {right}");
        }
    }

    #[test]
    fn a_near_match_is_the_only_one() {
        let offered = ["mcp.add", "mcp.look", "more.look"];
        assert_eq!(near_match("add", &offered), Some("mcp.add"));
        assert_eq!(near_match("look", &offered), None);
        assert_eq!(near_match("weigh", &offered), None);
    }

    proptest! {
        #[test]
        fn it_is_symmetric_and_a_namespace_changes_nothing(left in ".{0,12}", right in "[a-c._]{0,6}", namespace in "[a-z]{1,4}") {
            prop_assert_eq!(same_tool(&left, &right), same_tool(&right, &left));
            prop_assert_eq!(same_tool(&right, &format!("{namespace}.{right}")), !tool_key(&right).is_empty());
        }
    }
}
