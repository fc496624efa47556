//! What a status of a server means: whether it is passing, and in words, with the fix. Pure.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};

use crate::limits;
use crate::sys::http::{header, status_text};
use crate::tools::address::Address;
use crate::tools::mcp::exchange::Refused;
use crate::tools::mcp::result::quoted;

/// What is known when a server says no.
pub(super) struct No<'a> {
    pub(super) address: &'a Address,
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    /// Whether a credential was sent.
    pub(super) has_credential: bool,
    /// The beginning of what it said, harmless and without our credentials; perhaps empty.
    pub(super) said: &'a str,
}

/// A no in words.
pub(super) fn refused(no: &No<'_>) -> Refused {
    let retry_after = header(no.headers, &RETRY_AFTER).and_then(|value| wait(&value, Utc::now()));
    Refused { status: no.status.as_u16(), why: words(no, retry_after), retry_after }
}

fn words(no: &No<'_>, retry_after: Option<Duration>) -> String {
    let (at, status) = (no.address.shown(), status_text(no.status));
    let said = if no.said.is_empty() { String::new() } else { format!("; it says: {}", no.said) };
    match no.status {
        StatusCode::UNAUTHORIZED if no.has_credential => {
            format!(
                "at {at} does not accept the credential that it is given ({status}): give a valid token with --mcp-token or MCP_TOKEN{}",
                scope(no.headers)
            )
        }
        StatusCode::UNAUTHORIZED => {
            let login = header(no.headers, &WWW_AUTHENTICATE).is_some_and(|value| value.contains("resource_metadata"));
            let login = if login { "; a login over OAuth is not made" } else { "" };
            format!(
                "at {at} wants a credential ({status}): give its token with --mcp-token, in the place of its URL, or MCP_TOKEN{login}"
            )
        }
        StatusCode::FORBIDDEN if no.has_credential => {
            format!(
                "at {at} forbids the request to the credential that it is given ({status}): give a token with more rights{}{said}",
                scope(no.headers)
            )
        }
        StatusCode::FORBIDDEN => {
            format!("at {at} forbids the request ({status}): it may want a token (--mcp-token, MCP_TOKEN){said}")
        }
        StatusCode::NOT_FOUND => format!("has nothing at {at} ({status}): check the path of its URL{said}"),
        StatusCode::METHOD_NOT_ALLOWED => format!("takes no messages at {at} ({status}): check the path of its URL{said}"),
        StatusCode::TOO_MANY_REQUESTS => {
            let again = retry_after.map_or_else(String::new, |wait| format!(", and asks to wait for {} s", wait.as_secs()));
            format!("at {at} takes no more requests now ({status}){again}{said}")
        }
        redirect if redirect.is_redirection() => {
            let target = header(no.headers, &LOCATION).and_then(|location| no.address.url().join(&location).ok());
            match target.and_then(|target| Address::parse(target.as_str()).ok()) {
                Some(target) if target.url().origin() == no.address.url().origin() => {
                    format!(
                        "at {at} redirects to {} ({status}), as a login does, and that is not followed: check its URL, and whether it wants a token (--mcp-token)",
                        target.shown()
                    )
                }
                Some(target) => {
                    format!(
                        "at {at} redirects to another origin, {} ({status}), and that is not followed: give the URL where it really is",
                        target.shown()
                    )
                }
                None => format!("at {at} redirects to nowhere ({status}): check its URL"),
            }
        }
        _ => format!("at {at} answered {status}{said}"),
    }
}

/// The rights that the server asks for.
fn scope(headers: &HeaderMap) -> String {
    let challenge = header(headers, &WWW_AUTHENTICATE).unwrap_or_default();
    let scope = challenge.split_once("scope=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(scope, _)| quoted(scope));
    scope.map_or_else(String::new, |scope| format!("; it asks for the scope {scope:?}"))
}

/// How long a `Retry-After` asks to wait, clamped.
fn wait(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A date in the past asks for no wait.
        Err(_) => {
            DateTime::parse_from_rfc2822(value).ok()?.with_timezone(&Utc).signed_duration_since(now).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(Duration::from_secs(limits::MCP_RETRY_AFTER_SECONDS)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn said(status: u16, headers: &[(&'static str, &str)], has_credential: bool) -> String {
        let address = Address::parse("https://me:pw@h.example/mcp?key=1").unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        refused(&No { address: &address, status, headers: &map, has_credential, said: "oh no" }).why
    }

    #[test]
    fn each_no_has_its_words_and_its_fix() {
        insta::assert_snapshot!(said(401, &[], false), @"at https://h.example/mcp wants a credential (401 Unauthorized): give its token with --mcp-token, in the place of its URL, or MCP_TOKEN");
        insta::assert_snapshot!(said(401, &[("www-authenticate", "Bearer resource_metadata=\"https://x\"")], false), @"at https://h.example/mcp wants a credential (401 Unauthorized): give its token with --mcp-token, in the place of its URL, or MCP_TOKEN; a login over OAuth is not made");
        insta::assert_snapshot!(said(401, &[], true), @"at https://h.example/mcp does not accept the credential that it is given (401 Unauthorized): give a valid token with --mcp-token or MCP_TOKEN");
        insta::assert_snapshot!(said(403, &[("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"mcp:write\"")], true), @r#"at https://h.example/mcp forbids the request to the credential that it is given (403 Forbidden): give a token with more rights; it asks for the scope "mcp:write"; it says: oh no"#);
        insta::assert_snapshot!(said(403, &[], false), @"at https://h.example/mcp forbids the request (403 Forbidden): it may want a token (--mcp-token, MCP_TOKEN); it says: oh no");
        insta::assert_snapshot!(said(404, &[], false), @"has nothing at https://h.example/mcp (404 Not Found): check the path of its URL; it says: oh no");
        insta::assert_snapshot!(said(429, &[("retry-after", "7")], false), @"at https://h.example/mcp takes no more requests now (429 Too Many Requests), and asks to wait for 7 s; it says: oh no");
        insta::assert_snapshot!(said(302, &[("location", "/login?next=1")], false), @"at https://h.example/mcp redirects to https://h.example/login (302 Found), as a login does, and that is not followed: check its URL, and whether it wants a token (--mcp-token)");
        insta::assert_snapshot!(said(307, &[("location", "http://h.example/mcp")], true), @"at https://h.example/mcp redirects to another origin, http://h.example/mcp (307 Temporary Redirect), and that is not followed: give the URL where it really is");
        insta::assert_snapshot!(said(308, &[], true), @"at https://h.example/mcp redirects to nowhere (308 Permanent Redirect): check its URL");
        insta::assert_snapshot!(said(503, &[], true), @"at https://h.example/mcp answered 503 Service Unavailable; it says: oh no");
    }

    #[test]
    fn a_wait_is_read_in_both_forms_and_clamped() {
        let now = DateTime::parse_from_rfc3339("2026-12-01T00:00:00Z").unwrap().with_timezone(&Utc);
        for (value, seconds) in [
            ("0", Some(0)),
            (" 3 ", Some(3)),
            ("99999999999", Some(limits::MCP_RETRY_AFTER_SECONDS)),
            ("Tue, 01 Dec 2026 00:00:05 GMT", Some(5)),
            ("Tue, 01 Dec 2020 00:00:05 GMT", Some(0)),
            ("soon", None),
            ("-3", None),
        ] {
            assert_eq!(wait(value, now), seconds.map(Duration::from_secs), "{value}");
        }
    }
}
