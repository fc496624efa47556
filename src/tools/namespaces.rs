//! The servers of the command line: names given out, commands split into words. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ToolsError;
use super::mcp::ServerRequest;
use crate::limits;

/// The namespace of the first server that has no name; the next are `mcp2`, `mcp3`, …
const UNNAMED: &str = "mcp";

/// Reads the values of `--mcp-stdio [NAME=]COMMAND`, in their order.
///
/// A name is `[A-Za-z_][A-Za-z0-9_-]*` before the first `=`; anything else there belongs to the command. Servers without a
/// name get `mcp`, `mcp2`, … , whatever is claimed by name being skipped. Commands are split as a shell would, and no shell
/// is run. The requests have the default timeout, pass no variables and are not optional.
///
/// # Errors
/// A name given twice, an empty command, an open quote, more than [`limits::MCP_SERVERS`].
pub fn assign<S: AsRef<str>>(given: &[S]) -> Result<Vec<ServerRequest>, ToolsError> {
    if u64::try_from(given.len()).unwrap_or(u64::MAX) > limits::MCP_SERVERS {
        return Err(ToolsError::TooMany { given: given.len(), cap: limits::MCP_SERVERS });
    }
    let mut parts = Vec::new();
    let mut claimed = BTreeSet::new();
    for value in given {
        let value = value.as_ref();
        let (name, command) = split_name(value);
        if let Some(name) = name
            && !claimed.insert(name)
        {
            return Err(ToolsError::DuplicateName { name: name.to_owned(), given: value.to_owned() });
        }
        parts.push((name, words(value, command)?));
    }
    let mut free = (1u64..)
        .map(|number| if number == 1 { UNNAMED.to_owned() } else { format!("{UNNAMED}{number}") })
        .filter(|name| !claimed.contains(name.as_str()));
    Ok(parts
        .into_iter()
        .map(|(name, argv)| ServerRequest {
            name: name.map(str::to_owned).or_else(|| free.next()).unwrap_or_default(),
            argv,
            passes: BTreeMap::new(),
            optional: false,
            timeout: Duration::from_secs(limits::MCP_CONNECT_SECONDS),
        })
        .collect())
}

fn split_name(value: &str) -> (Option<&str>, &str) {
    match value.split_once('=') {
        Some((name, command)) if is_name(name) => (Some(name), command),
        _ => (None, value),
    }
}

fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-')
}

fn words(given: &str, command: &str) -> Result<Vec<String>, ToolsError> {
    let wrong = |why| ToolsError::Command { given: given.to_owned(), why };
    if command.contains('\0') {
        return Err(wrong("the command holds a NUL byte, which no command can hold; remove it"));
    }
    let words = shlex::split(command)
        .ok_or_else(|| wrong("the command ends inside a quote or after a backslash; close it, or put a backslash before it"))?;
    if words.first().is_none_or(String::is_empty) {
        return Err(wrong("the command is empty; give the server's program and its arguments"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(given: &[&str]) -> Vec<String> {
        assign(given).unwrap().into_iter().map(|request| request.name).collect()
    }

    #[test]
    fn unnamed_servers_skip_what_is_claimed() {
        assert_eq!(names(&["a", "b", "c"]), ["mcp", "mcp2", "mcp3"]);
        assert_eq!(names(&["a", "mcp2=b", "c", "time=d", "e"]), ["mcp", "mcp2", "mcp3", "time", "mcp4"]);
        assert_eq!(names(&["a", "mcp=b"]), ["mcp2", "mcp"]);
    }

    #[test]
    fn only_a_name_before_the_first_equals_sign_is_one() {
        let requests = assign(&["npx -y --registry=local srv", "a-b_1=run --x=1", "9a=run", "/usr/bin/a=b"]).unwrap();
        let seen: Vec<(&str, String)> = requests.iter().map(|request| (request.name.as_str(), request.argv.join("|"))).collect();
        assert_eq!(
            seen,
            [
                ("mcp", "npx|-y|--registry=local|srv".to_owned()),
                ("a-b_1", "run|--x=1".to_owned()),
                ("mcp2", "9a=run".to_owned()),
                ("mcp3", "/usr/bin/a=b".to_owned()),
            ]
        );
    }

    #[test]
    fn commands_are_split_and_never_run_by_a_shell() {
        let requests = assign(&[r#"x='my server' "a b" c\ d '' $HOME | tee; #no"#]).unwrap();
        let argv: Vec<&str> = requests.iter().flat_map(|request| &request.argv).map(String::as_str).collect();
        assert_eq!(argv, ["my server", "a b", "c d", "", "$HOME", "|", "tee;"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        insta::assert_snapshot!(assign(&["a=b", "a=c"]).unwrap_err(), @"--mcp-stdio `a=c`: the name `a` is given to two servers; give each its own");
        insta::assert_snapshot!(assign(&["a="]).unwrap_err(), @"--mcp-stdio `a=`: the command is empty; give the server's program and its arguments");
        insta::assert_snapshot!(assign(&["  "]).unwrap_err(), @"--mcp-stdio `  `: the command is empty; give the server's program and its arguments");
        insta::assert_snapshot!(assign(&["run 'it"]).unwrap_err(), @"--mcp-stdio `run 'it`: the command ends inside a quote or after a backslash; close it, or put a backslash before it");
        assert!(matches!(assign(&vec!["x"; 65]), Err(ToolsError::TooMany { given: 65, cap: 64 })));
    }
}
