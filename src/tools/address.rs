//! Where a tool server is on the network: what a person types, what may be shown of it, and its credential. Pure.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use reqwest::Url;

use crate::limits;
use crate::sys::http::Route;

/// What stands in the place of a credential.
const MASK: &str = "***";

/// Last words of a query parameter's name behind which a credential stands.
const CREDENTIAL_WORDS: &[&str] = &[
    "accesstoken",
    "apikey",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "jwt",
    "key",
    "password",
    "passwd",
    "pwd",
    "secret",
    "session",
    "sessionid",
    "sig",
    "signature",
    "token",
];

/// A bearer token. It is never printed: not by `Debug`, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes a token as it was given. Blanks and line ends around it go, as does a leading `Bearer`: they come from files, shells and
    /// copied headers.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence's end that does not repeat it.
    pub fn parse(given: &str) -> Result<Self, String> {
        let token = given.trim();
        let token = match token.split_once(char::is_whitespace) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("bearer") => rest.trim_start(),
            _ => token,
        };
        if token.is_empty() {
            return Err("it is empty".to_owned());
        }
        if u64::try_from(token.len()).unwrap_or(u64::MAX) > limits::MCP_TOKEN_BYTES {
            return Err(format!("it has more than {} bytes", limits::MCP_TOKEN_BYTES));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it holds a sign that no header may hold; give the token alone".to_owned());
        }
        Ok(Self(token.to_owned()))
    }

    /// The token itself, to be sent and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(***)")
    }
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Without user and password.
    url: Url,
    /// User and password, when the URL held them.
    basic: Option<Basic>,
}

/// User and password as they stood in a URL.
#[derive(Clone, PartialEq, Eq)]
struct Basic {
    /// The password, word for word.
    password: String,
    /// The same as it was typed, where signs of it were written by their numbers.
    typed: String,
    /// Both, as a header has them.
    credential: Token,
}

impl Basic {
    fn of(url: &Url) -> Option<Self> {
        let typed = url.password().unwrap_or_default().to_owned();
        if url.username().is_empty() && typed.is_empty() {
            return None;
        }
        let word = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let password = word(&typed);
        let credential = Token(STANDARD.encode(format!("{}:{password}", word(url.username()))));
        Some(Self { password, typed, credential })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({})", self.shown())
    }
}

impl Address {
    /// Reads a URL. It is taken as it is: no path is added, a query is kept and sent.
    ///
    /// # Errors
    /// A sentence's end that says what is wrong with it; it repeats nothing of it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the URL is empty; give one like https://host/mcp".to_owned());
        }
        match text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase()).as_deref() {
            Some("http" | "https") => {}
            _ => return Err("a URL begins with http:// or https://".to_owned()),
        }
        let mut url = Url::parse(text).map_err(|error| format!("the URL cannot be read ({error})"))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err("the URL names no host".to_owned());
        }
        url.set_fragment(None);
        let basic = Basic::of(&url);
        // Neither fails for a URL that has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self { url, basic })
    }

    /// Where requests go.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// User and password that stood in it, as a header of the scheme `Basic` has them.
    pub fn basic(&self) -> Option<&Token> {
        self.basic.as_ref().map(|basic| &basic.credential)
    }

    /// How sentences name it: without user, password and query.
    pub fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }

    /// The whole of it with its credentials masked, as a log may keep it.
    pub fn masked(&self) -> String {
        let mut url = self.url.clone();
        if self.basic.is_some() {
            let _ = url.set_username(MASK);
        }
        if self.url.query().is_some() {
            let pairs: Vec<(String, String)> = self
                .url
                .query_pairs()
                .map(|(name, value)| {
                    let value = if names_a_credential(&name) { MASK.into() } else { value };
                    (name.into_owned(), value.into_owned())
                })
                .collect();
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
        url.to_string()
    }

    /// True when something in it must not be shown.
    pub fn is_masked(&self) -> bool {
        self.basic.is_some() || self.url.query_pairs().any(|(name, _)| names_a_credential(&name))
    }

    /// What of it is a credential, each with the name of where it stood: in every form in which somebody may repeat it.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let mut values: Vec<String> = Vec::new();
        if let Some(Basic { password, typed, credential }) = &self.basic {
            values.extend([password.clone(), typed.clone(), credential.reveal().to_owned()]);
        }
        let raw = self.url.query().unwrap_or_default().split('&');
        for ((name, value), raw) in self.url.query_pairs().zip(raw.filter(|pair| !pair.is_empty())) {
            if names_a_credential(&name) {
                values.push(value.into_owned());
                values.extend(raw.split_once('=').map(|(_, raw)| raw.to_owned()));
            }
        }
        values.retain(|value| !value.is_empty());
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(|value| ("MCP_URL".to_owned(), value)).collect()
    }

    /// What its client has to know of it.
    pub fn route(&self) -> Route {
        Route::of(&self.url)
    }
}

/// What may be shown of a text that was given as a URL and may be none: nothing before an `@` or behind a `?`.
pub fn shown_of(given: &str) -> String {
    let (scheme, rest) = given.split_once("://").map_or(("", given), |(scheme, rest)| (scheme, rest));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

fn names_a_credential(parameter: &str) -> bool {
    let name = parameter.to_ascii_lowercase();
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    CREDENTIAL_WORDS.contains(&last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_what_is_around_it_and_shown_nowhere() {
        for given in ["tok-1", " tok-1\n", "Bearer tok-1", "bearer\ttok-1 "] {
            assert_eq!(Token::parse(given).unwrap().reveal(), "tok-1", "{given:?}");
        }
        assert_eq!(format!("{:?}", Token::parse("tok-1").unwrap()), "Token(***)");
        for wrong in ["", " ", "a b", "a\u{7}b", "clé"] {
            let why = Token::parse(wrong).unwrap_err();
            assert!(wrong.trim().is_empty() || !why.contains(wrong), "{why}");
        }
    }

    #[test]
    fn credentials_in_a_url_are_kept_and_never_shown() {
        let address = Address::parse(" https://me:pa55word@h.example:8443/mcp?api_key=abcdefgh&author=shakespeare#x ").unwrap();
        assert_eq!(address.url().as_str(), "https://h.example:8443/mcp?api_key=abcdefgh&author=shakespeare");
        assert_eq!(address.shown(), "https://h.example:8443/mcp");
        assert_eq!(address.masked(), "https://***@h.example:8443/mcp?api_key=***&author=shakespeare");
        assert!(address.is_masked() && !format!("{address:?}").contains("pa55word"));
        assert_eq!(address.basic().unwrap().reveal(), "bWU6cGE1NXdvcmQ=");
        let secrets = |address: &Address| -> Vec<String> { address.secrets().into_iter().map(|(_, value)| value).collect() };
        assert_eq!(secrets(&address), ["abcdefgh", "bWU6cGE1NXdvcmQ=", "pa55word"]);
        // Signs that stand there by their numbers: the word itself is sent, and none of its forms is shown.
        let address = Address::parse("http://m%65:p%40ss%20word@h.example/?a=1&&key=x%2By&token").unwrap();
        assert_eq!(address.basic().unwrap().reveal(), STANDARD.encode("me:p@ss word"));
        assert_eq!(secrets(&address), [&STANDARD.encode("me:p@ss word"), "p%40ss%20word", "p@ss word", "x%2By", "x+y"]);
        let plain = Address::parse("http://127.0.0.1:8000/mcp?page=2").unwrap();
        assert_eq!((plain.masked(), plain.is_masked()), ("http://127.0.0.1:8000/mcp?page=2".to_owned(), false));
    }

    #[test]
    fn what_is_no_url_is_refused_without_being_repeated() {
        for (text, says) in [
            ("", "empty"),
            ("h/mcp", "begins with"),
            ("ftp://u:pw@h", "begins with"),
            ("http://", "read"),
            ("http://h:99999", "read"),
        ] {
            let why = Address::parse(text).unwrap_err();
            assert!(why.contains(says) && !why.contains("pw"), "{text}: {why}");
        }
        assert_eq!(shown_of("ftp://u:pw@h/p?key=1"), "ftp://h/p");
        assert_eq!(shown_of("u:pw@h/p#x"), "h/p");
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        let loopback = |text: &str| Address::parse(text).unwrap().route().is_loopback;
        for here in [
            "http://127.0.0.1:1",
            "http://127.9.9.9",
            "http://[::1]:2/x",
            "http://localhost",
            "http://a.localhost.",
            "http://0.0.0.0",
        ] {
            assert!(loopback(here), "{here}");
        }
        for there in ["http://10.0.0.1", "http://localhost.example", "https://h.example"] {
            assert!(!loopback(there), "{there}");
        }
    }
}
