//! The tool servers of a command line: named, split into words, with their time, their variables and whether a run needs them.

use std::time::Duration;

use super::arguments::ServerFlags;
use super::environment::{Environment, Stated};
use super::error::CliError;
use crate::limits;
use crate::sys::environment::parse_passes;
use crate::tools::address::Token;
use crate::tools::mcp::{Reach, ServerRequest};
use crate::tools::namespaces::{self, Given, Kind};

/// The tool servers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// Them, in the order of the command line.
    pub requests: Vec<ServerRequest>,
    /// The name that they are told is ours.
    pub client_name: String,
    /// How long each of them may take.
    pub timeout: Duration,
}

impl Servers {
    /// The credentials that the servers are given, each with the name that stands in its place.
    pub fn secrets(&self) -> Vec<(String, String)> {
        self.requests.iter().flat_map(|request| request.reach.secrets()).collect()
    }
}

/// Reads the flags about tool servers and their variables.
///
/// # Errors
/// A command that is none, a name given twice or to nobody, a time that is none, a variable that is not set.
pub fn resolve(flags: &ServerFlags, environment: &Environment) -> Result<Servers, CliError> {
    let mut requests = namespaces::assign(given(flags, environment)?)?;
    let timeout = timeout(flags, environment)?;
    let passes = parse_passes(flags.mcp_env.iter().filter(|given| !given.trim().is_empty()).collect::<Vec<_>>().as_slice())?;
    if let Some(unset) = passes.values().find(|name| !environment.contains_key(*name)) {
        return Err(CliError::value("--mcp-env", unset, "this variable is not set; set it, or leave the flag out"));
    }
    for request in &mut requests {
        request.timeout = timeout;
        if let Reach::Stdio { passes: passed, .. } = &mut request.reach {
            passed.clone_from(&passes);
        }
    }
    for name in flags.mcp_optional.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        let known: Vec<String> = requests.iter().map(|request| request.name.clone()).collect();
        match requests.iter_mut().find(|request| request.name == name) {
            Some(request) => request.optional = true,
            None => {
                let there = if known.is_empty() { "none is given".to_owned() } else { format!("there are {}", known.join(", ")) };
                return Err(CliError::value("--mcp-optional", name, format!("no server has that name; {there}")));
            }
        }
    }
    let client_name = Stated::variable(environment, "MCP_CLIENT_NAME")
        .map_or_else(|| "mission".to_owned(), |stated| stated.value.trim().to_owned());
    Ok(Servers { requests, client_name, timeout })
}

/// The servers as they are given: those to start, then those to reach. Those of the environment count when no flag names one.
fn given<'a>(flags: &'a ServerFlags, environment: &'a Environment) -> Result<Vec<Given<'a>>, CliError> {
    let mut commands: Vec<(&'static str, &str)> = flags.mcp_stdio.iter().map(|value| ("--mcp-stdio", value.as_str())).collect();
    let mut urls: Vec<(&'static str, &str)> = flags.mcp_url.iter().map(|value| ("--mcp-url", value.as_str())).collect();
    if commands.is_empty() && urls.is_empty() {
        let of = |name: &'static str| {
            environment.get(name).filter(|value| !value.trim().is_empty()).map(|value| (name, value.as_str()))
        };
        commands.extend(of("MCP_STDIO"));
        urls.extend(of("MCP_URL"));
    }
    let tokens = tokens(&flags.mcp_token, urls.len(), environment)?;
    let commands = commands.into_iter().map(|(place, value)| Given { place, value, kind: Kind::Command });
    let urls = urls.into_iter().zip(tokens).map(|((place, value), token)| Given { place, value, kind: Kind::Url(token) });
    Ok(commands.chain(urls).collect())
}

/// A token for each of so many URLs, or none. Typed ones are paired by their place, where an empty one says that none is needed; that
/// of the environment is for one URL. None of them is ever repeated in a refusal.
fn tokens(typed: &[String], urls: usize, environment: &Environment) -> Result<Vec<Option<Token>>, CliError> {
    let parsed = |place: &str, value: &str| match value.trim().is_empty() {
        true => Ok(None),
        false => {
            Token::parse(value).map(Some).map_err(|why| CliError::Refused(format!("{place}: the token cannot be used: {why}")))
        }
    };
    if urls == 0 {
        return Ok(Vec::new());
    }
    if typed.is_empty() {
        let token = environment.get("MCP_TOKEN").filter(|value| !value.trim().is_empty());
        return match (token, urls) {
            (None, _) => Ok(vec![None; urls]),
            (Some(token), 1) => Ok(vec![parsed("MCP_TOKEN", token)?]),
            (Some(_), _) => Err(CliError::Refused(format!(
                "MCP_TOKEN is for one URL, and {urls} are given; unset it, and give each its own with --mcp-token, in the order of the URLs ('' where none is needed)"
            ))),
        };
    }
    if typed.len() != urls {
        return Err(CliError::Refused(format!(
            "--mcp-token: {} given for {urls} URLs; give one for each, in their order, and '' where none is needed",
            typed.len()
        )));
    }
    typed.iter().map(|value| parsed("--mcp-token", value)).collect()
}

/// What is not above zero is the default; in the variable, what is no number too.
fn timeout(flags: &ServerFlags, environment: &Environment) -> Result<Duration, CliError> {
    let default = Duration::from_secs(limits::MCP_CONNECT_SECONDS);
    let Some(stated) = Stated::either("--mcp-timeout", flags.mcp_timeout.as_deref(), environment, "MCP_TIMEOUT_S") else {
        return Ok(default);
    };
    let seconds = match stated.value.trim().parse::<f64>() {
        Ok(seconds) if !seconds.is_nan() => seconds,
        _ if stated.place != "--mcp-timeout" => return Ok(default),
        _ => return Err(stated.refuse("that is no number of seconds; give one like 30")),
    };
    if seconds <= 0.0 {
        return Ok(default);
    }
    let most = Duration::from_secs(limits::MCP_TIMEOUT_SECONDS_MOST);
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|timeout| *timeout <= most)
        .ok_or_else(|| stated.refuse(format!("that is more than {} seconds; give less", limits::MCP_TIMEOUT_SECONDS_MOST)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn flags(stdio: &[&str]) -> ServerFlags {
        ServerFlags { mcp_stdio: stdio.iter().map(|value| (*value).to_owned()).collect(), ..ServerFlags::default() }
    }

    #[test]
    fn a_typed_server_replaces_that_of_the_environment() {
        let variables = environment(&[("MCP_STDIO", "old=a b"), ("MCP_CLIENT_NAME", " platform ")]);
        let names = |stdio: &[&str]| {
            resolve(&flags(stdio), &variables).unwrap().requests.into_iter().map(|request| request.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["old"]);
        assert_eq!(names(&["x", "y=z"]), ["mcp", "y"]);
        assert_eq!(resolve(&flags(&[]), &variables).unwrap().client_name, "platform");
        assert_eq!(
            resolve(&flags(&[]), &environment(&[("MCP_STDIO", " ")])).unwrap(),
            Servers { client_name: "mission".to_owned(), timeout: Duration::from_secs(30), ..Servers::default() }
        );
    }

    #[test]
    fn time_variables_and_need_go_to_every_server() {
        let flags = ServerFlags {
            mcp_stdio: vec!["a=x".to_owned(), "b=y".to_owned()],
            mcp_timeout: Some("2.5".to_owned()),
            mcp_optional: vec!["b".to_owned()],
            mcp_env: vec!["TOKEN=MY_TOKEN".to_owned(), "PLAIN".to_owned()],
            ..ServerFlags::default()
        };
        let requests = resolve(&flags, &environment(&[("MY_TOKEN", "x"), ("PLAIN", "")])).unwrap().requests;
        assert_eq!(requests.iter().map(|request| request.optional).collect::<Vec<_>>(), [false, true]);
        assert!(requests.iter().all(|request| request.timeout == Duration::from_millis(2500)));
        assert!(
            requests.iter().all(|request| matches!(&request.reach, Reach::Stdio { passes, .. } if passes["TOKEN"] == "MY_TOKEN"))
        );
        insta::assert_snapshot!(resolve(&flags, &environment(&[("PLAIN", "")])).unwrap_err(), @"--mcp-env `MY_TOKEN`: this variable is not set; set it, or leave the flag out");
    }

    /// Name, URL and token of each server that is reached.
    fn reached(
        urls: &[&str],
        tokens: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Vec<(String, String, Option<String>)>, CliError> {
        let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let flags = ServerFlags { mcp_url: texts(urls), mcp_token: texts(tokens), ..ServerFlags::default() };
        let requests = resolve(&flags, &environment(variables))?.requests;
        Ok(requests
            .into_iter()
            .filter_map(|request| match request.reach {
                Reach::Http { address, token } => {
                    Some((request.name, address.url().to_string(), token.map(|token| token.reveal().to_owned())))
                }
                Reach::Stdio { .. } => None,
            })
            .collect())
    }

    #[test]
    fn tokens_are_paired_with_urls_by_place() {
        let of = |name: &str, url: &str, token: Option<&str>| (name.to_owned(), url.to_owned(), token.map(str::to_owned));
        assert_eq!(
            reached(&["http://a/mcp", "x=http://b/mcp"], &["one\n", ""], &[("MCP_TOKEN", "other")]).unwrap(),
            [of("mcp", "http://a/mcp", Some("one")), of("x", "http://b/mcp", None)]
        );
        assert_eq!(reached(&["http://a/mcp"], &[], &[("MCP_TOKEN", "t")]).unwrap(), [of("mcp", "http://a/mcp", Some("t"))]);
        assert_eq!(reached(&["http://a/mcp"], &[""], &[("MCP_TOKEN", "t")]).unwrap(), [of("mcp", "http://a/mcp", None)]);
        assert_eq!(
            reached(&[], &[], &[("MCP_URL", "z=http://a/mcp"), ("MCP_TOKEN", "t")]).unwrap(),
            [of("z", "http://a/mcp", Some("t"))]
        );
        assert_eq!(reached(&[], &["t"], &[("MCP_URL", "http://a/mcp")]).unwrap(), [of("mcp", "http://a/mcp", Some("t"))]);
        assert_eq!(reached(&[], &["t", "u"], &[("MCP_TOKEN", "t")]).unwrap(), [], "ignored without a URL");
        let both = ServerFlags { mcp_url: vec!["http://a/".to_owned()], ..flags(&["b", "c=d"]) };
        let names: Vec<String> =
            resolve(&both, &environment(&[])).unwrap().requests.into_iter().map(|request| request.name).collect();
        assert_eq!(names, ["mcp", "c", "mcp2"], "those to start stand first");
        assert_eq!(reached(&[], &[], &[("MCP_URL", "http://a/"), ("MCP_STDIO", "b")]).unwrap(), [of("mcp2", "http://a/", None)]);
    }

    #[test]
    fn a_wrong_token_is_refused_and_not_repeated() {
        let refused = |urls: &[&str], tokens: &[&str], variables: &[(&str, &str)]| {
            reached(urls, tokens, variables).unwrap_err().to_string()
        };
        insta::assert_snapshot!(refused(&["http://a", "http://b"], &["only-one"], &[]), @"--mcp-token: 1 given for 2 URLs; give one for each, in their order, and '' where none is needed");
        insta::assert_snapshot!(refused(&["http://a", "http://b"], &[], &[("MCP_TOKEN", "hunter22")]), @"MCP_TOKEN is for one URL, and 2 are given; unset it, and give each its own with --mcp-token, in the order of the URLs ('' where none is needed)");
        insta::assert_snapshot!(refused(&["http://a"], &["hun ter22"], &[]), @"--mcp-token: the token cannot be used: it holds a sign that no header may hold; give the token alone");
        insta::assert_snapshot!(refused(&["host/mcp"], &[], &[]), @"--mcp-url `host/mcp`: a URL begins with http:// or https://");
    }

    #[test]
    fn a_time_that_is_none_is_the_default_where_the_published_rules_say_so() {
        let time = |flag: Option<&str>, variable: &str| {
            let flags = ServerFlags { mcp_timeout: flag.map(str::to_owned), ..flags(&["a"]) };
            resolve(&flags, &environment(&[("MCP_TIMEOUT_S", variable)])).map(|servers| servers.requests[0].timeout.as_secs_f64())
        };
        for (flag, variable, seconds) in [
            (None, "", 30.0),
            (None, "7", 7.0),
            (None, "soon", 30.0),
            (None, "-1", 30.0),
            (None, "nan", 30.0),
            (Some("3"), "7", 3.0),
            (Some("0"), "7", 30.0),
            (Some("-5"), "7", 30.0),
            (Some(" "), "7", 7.0),
        ] {
            assert_eq!(time(flag, variable).unwrap(), seconds, "{flag:?} {variable}");
        }
        insta::assert_snapshot!(time(Some("soon"), "").unwrap_err(), @"--mcp-timeout `soon`: that is no number of seconds; give one like 30");
        insta::assert_snapshot!(time(Some("inf"), "").unwrap_err(), @"--mcp-timeout `inf`: that is more than 86400 seconds; give less");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused =
            |flags: &ServerFlags, variables: &[(&str, &str)]| resolve(flags, &environment(variables)).unwrap_err().to_string();
        insta::assert_snapshot!(refused(&flags(&[""]), &[]), @"--mcp-stdio ``: the command is empty; give the server's program and its arguments");
        insta::assert_snapshot!(refused(&flags(&[]), &[("MCP_STDIO", "a 'b")]), @"MCP_STDIO `a 'b`: the command ends inside a quote or after a backslash; close it, or put a backslash before it");
        insta::assert_snapshot!(refused(&ServerFlags { mcp_optional: vec!["nobody".to_owned()], ..flags(&["a", "b=c"]) }, &[]), @"--mcp-optional `nobody`: no server has that name; there are mcp, b");
        insta::assert_snapshot!(refused(&ServerFlags { mcp_optional: vec!["nobody".to_owned()], ..flags(&[]) }, &[]), @"--mcp-optional `nobody`: no server has that name; none is given");
        insta::assert_snapshot!(refused(&ServerFlags { mcp_env: vec!["A=".to_owned()], ..flags(&[]) }, &[]), @"--mcp-env: `A=` is not of the form [NAME=]VAR: a name is empty; give the name of a variable, optionally with another name for it inside the server");
    }
}
