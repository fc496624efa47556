//! The servers of the command line: names given out, commands split into words, URLs read. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ToolsError;
use super::address::{Address, Token, shown_of};
use super::mcp::{Reach, ServerRequest};
use crate::limits;

/// The namespace of the first server that has no name; the next are `mcp2`, `mcp3`, …
const UNNAMED: &str = "mcp";

/// A server as it stands on the command line or in a variable.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// The flag or the variable.
    pub place: &'static str,
    /// `[NAME=]COMMAND` or `[NAME=]URL`.
    pub value: &'a str,
    /// What it is.
    pub kind: Kind,
}

/// What is given.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A command to start.
    Command,
    /// A URL to reach, and its token.
    Url(Option<Token>),
}

/// Reads the servers of a command line, in their order.
///
/// A name is `[A-Za-z_][A-Za-z0-9_-]*` before the first `=`; anything else there belongs to the command or the URL. Servers without
/// a name get `mcp`, `mcp2`, … , whatever is claimed by name being skipped. Commands are split as a shell would, and no shell
/// is run. The requests have the default timeout, pass no variables and are not optional.
///
/// # Errors
/// A name given twice, an empty command, an open quote, what is no URL, more than [`limits::MCP_SERVERS`].
pub fn assign(given: Vec<Given<'_>>) -> Result<Vec<ServerRequest>, ToolsError> {
    if u64::try_from(given.len()).unwrap_or(u64::MAX) > limits::MCP_SERVERS {
        return Err(ToolsError::TooMany { given: given.len(), cap: limits::MCP_SERVERS });
    }
    let mut parts = Vec::new();
    let mut claimed = BTreeSet::new();
    for Given { place, value, kind } in given {
        let (name, rest) = split_name(value);
        if let Some(name) = name
            && !claimed.insert(name)
        {
            let given = match kind {
                Kind::Command => value.to_owned(),
                Kind::Url(_) => format!("{name}={}", shown_of(rest)),
            };
            return Err(ToolsError::DuplicateName { place, name: name.to_owned(), given });
        }
        let reach = match kind {
            Kind::Command => Reach::Stdio { argv: words(place, value, rest)?, passes: BTreeMap::new() },
            Kind::Url(token) => reach(place, name, rest, token)?,
        };
        parts.push((name, reach));
    }
    let mut free = (1u64..)
        .map(|number| if number == 1 { UNNAMED.to_owned() } else { format!("{UNNAMED}{number}") })
        .filter(|name| !claimed.contains(name.as_str()));
    Ok(parts
        .into_iter()
        .map(|(name, reach)| ServerRequest {
            name: name.map(str::to_owned).or_else(|| free.next()).unwrap_or_default(),
            reach,
            optional: false,
            timeout: Duration::from_secs(limits::MCP_CONNECT_SECONDS),
            call_limit: Duration::from_secs(limits::MCP_CALL_SECONDS),
        })
        .collect())
}

fn reach(place: &'static str, name: Option<&str>, url: &str, token: Option<Token>) -> Result<Reach, ToolsError> {
    let wrong = |why| ToolsError::Url {
        place,
        given: name.map_or_else(|| shown_of(url), |name| format!("{name}={}", shown_of(url))),
        why,
    };
    let address = Address::parse(url).map_err(wrong)?;
    if token.is_some() && address.basic().is_some() {
        return Err(wrong("the URL holds a user, and a token is given for it too; give one of them".to_owned()));
    }
    Ok(Reach::Http { address, token })
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

fn words(place: &'static str, given: &str, command: &str) -> Result<Vec<String>, ToolsError> {
    let wrong = |why| ToolsError::Command { place, given: given.to_owned(), why };
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
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn commands(given: &[&str]) -> Result<Vec<ServerRequest>, ToolsError> {
        assign(given.iter().map(|value| Given { place: "--mcp-stdio", value, kind: Kind::Command }).collect())
    }

    fn url(value: &str, token: Option<&str>) -> Result<Vec<ServerRequest>, ToolsError> {
        let token = token.map(|token| Token::parse(token).unwrap());
        assign(vec![Given { place: "--mcp-url", value, kind: Kind::Url(token) }])
    }

    fn argv(request: &ServerRequest) -> Vec<String> {
        match &request.reach {
            Reach::Stdio { argv, .. } => argv.clone(),
            Reach::Http { .. } => Vec::new(),
        }
    }

    fn names(given: &[&str]) -> Vec<String> {
        commands(given).unwrap().into_iter().map(|request| request.name).collect()
    }

    #[test]
    fn unnamed_servers_skip_what_is_claimed() {
        assert_eq!(names(&["a", "b", "c"]), ["mcp", "mcp2", "mcp3"]);
        assert_eq!(names(&["a", "mcp2=b", "c", "time=d", "e"]), ["mcp", "mcp2", "mcp3", "time", "mcp4"]);
        assert_eq!(names(&["a", "mcp=b"]), ["mcp2", "mcp"]);
    }

    #[test]
    fn only_a_name_before_the_first_equals_sign_is_one() {
        let requests = commands(&["npx -y --registry=local srv", "a-b_1=run --x=1", "9a=run", "/usr/bin/a=b"]).unwrap();
        let seen: Vec<(&str, String)> = requests.iter().map(|request| (request.name.as_str(), argv(request).join("|"))).collect();
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
        let requests = commands(&[r#"x='my server' "a b" c\ d '' $HOME | tee; #no"#]).unwrap();
        let argv: Vec<String> = requests.iter().flat_map(argv).collect();
        assert_eq!(argv, ["my server", "a b", "c d", "", "$HOME", "|", "tee;"]);
    }

    #[test]
    fn a_url_may_have_a_name_and_an_equals_sign_of_its_own() {
        let reached = |value: &str| {
            let request = url(value, None).unwrap().remove(0);
            match request.reach {
                Reach::Http { address, token: None } => (request.name, address.url().to_string()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reached("docs=https://h/mcp?a=b"), ("docs".to_owned(), "https://h/mcp?a=b".to_owned()));
        assert_eq!(reached("http://h/mcp?a=b"), ("mcp".to_owned(), "http://h/mcp?a=b".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        insta::assert_snapshot!(commands(&["a=b", "a=c"]).unwrap_err(), @"--mcp-stdio `a=c`: the name `a` is given to two servers; give each its own");
        insta::assert_snapshot!(commands(&["a="]).unwrap_err(), @"--mcp-stdio `a=`: the command is empty; give the server's program and its arguments");
        insta::assert_snapshot!(commands(&["  "]).unwrap_err(), @"--mcp-stdio `  `: the command is empty; give the server's program and its arguments");
        insta::assert_snapshot!(commands(&["run 'it"]).unwrap_err(), @"--mcp-stdio `run 'it`: the command ends inside a quote or after a backslash; close it, or put a backslash before it");
        insta::assert_snapshot!(url("a=ftp://me:pa55@h/p?key=1", None).unwrap_err(), @"--mcp-url `a=ftp://h/p`: a URL begins with http:// or https://");
        insta::assert_snapshot!(url("http://me:pa55@h/p", Some("t")).unwrap_err(), @"--mcp-url `http://h/p`: the URL holds a user, and a token is given for it too; give one of them");
        assert!(matches!(commands(&vec!["x"; 65]), Err(ToolsError::TooMany { given: 65, cap: 64 })));
    }
}
