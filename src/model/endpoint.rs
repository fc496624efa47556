//! Base URLs of model servers: what a person types, and where a request goes.

use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::secret::Secret;
use crate::sys::http::Route;

/// Where a model server is.
#[derive(Clone)]
pub struct Endpoint {
    /// Without credentials; its path has no slash at the end.
    url: Url,
    /// User and password, when the URL held them.
    credentials: Option<(String, Secret)>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Endpoint({})", self.shown())
    }
}

impl Endpoint {
    /// Reads a base URL: slashes at the end go, a bare host gets `/v1`, other paths stay as they are; a query is kept and sent.
    ///
    /// # Errors
    /// A sentence's end that says what is wrong with it and how to write it; it never repeats a credential.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => {}
            Some(_) => return Err("only http:// and https:// are spoken".to_owned()),
            None => return Err("it has no scheme: begin it with http:// or https://".to_owned()),
        }
        let mut url = Url::parse(text).map_err(|error| format!("it cannot be read ({error})"))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err("it names no host".to_owned());
        }
        if url.fragment().is_some() {
            return Err("it has a fragment (`#…`): leave that out".to_owned());
        }
        // Signs may stand there by their numbers; the word itself is sent.
        let word = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let credentials = (!url.username().is_empty() || url.password().is_some())
            .then(|| (word(url.username()), Secret::new(&word(url.password().unwrap_or_default()))));
        // Neither fails for a URL that has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(if path.is_empty() { "/v1" } else { &path });
        Ok(Self { url, credentials })
    }

    /// The address of one of its resources, such as `chat/completions`.
    pub fn resource(&self, name: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{name}", self.url.path()));
        url
    }

    /// How it is named in sentences and records: without credentials and without a query.
    pub fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }

    /// User and password that stood in the URL.
    pub fn credentials(&self) -> Option<(&str, &Secret)> {
        self.credentials.as_ref().map(|(user, password)| (user.as_str(), password))
    }

    /// True when something in it must not be shown.
    pub fn has_hidden_parts(&self) -> bool {
        self.credentials.is_some() || self.url.query().is_some()
    }

    /// True for https.
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// What its client has to know of it.
    pub fn route(&self) -> Route {
        Route::of(&self.url)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn chat(base: &str) -> String {
        Endpoint::parse(base).unwrap().resource("chat/completions").to_string()
    }

    #[test]
    fn a_bare_host_gets_its_version_and_other_paths_stay() {
        assert_eq!(chat("http://127.0.0.1:8000"), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!(chat(" http://127.0.0.1:8000/ "), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!(chat("http://[::1]:8000"), "http://[::1]:8000/v1/chat/completions");
        assert_eq!(chat("https://models.example/v1///"), "https://models.example/v1/chat/completions");
        assert_eq!(chat("https://models.example/openai/v2"), "https://models.example/openai/v2/chat/completions");
        assert_eq!(chat("http://h/gen,n=50,mode=json/run1/v1"), "http://h/gen,n=50,mode=json/run1/v1/chat/completions");
        assert_eq!(chat("https://h/x?version=3"), "https://h/x/chat/completions?version=3");
    }

    #[test]
    fn credentials_are_kept_apart_and_never_shown() {
        let endpoint = Endpoint::parse("https://me:pa55word@models.example/v1?key=abc").unwrap();
        assert_eq!(endpoint.shown(), "https://models.example/v1");
        assert!(endpoint.has_hidden_parts());
        let (user, password) = endpoint.credentials().unwrap();
        assert_eq!((user, password.reveal()), ("me", "pa55word"));
        assert!(!format!("{endpoint:?}").contains("pa55word"));
        let endpoint = Endpoint::parse("https://m%65:p%40ss@models.example").unwrap();
        assert_eq!(endpoint.credentials().unwrap().1.reveal(), "p@ss");
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for (text, says) in [
            ("127.0.0.1:8000", "scheme"),
            ("localhost", "scheme"),
            ("ftp://host", "http://"),
            ("http://", "read"),
            ("http://h/v1#x", "fragment"),
            ("http://h:99999/", "read"),
        ] {
            assert!(Endpoint::parse(text).unwrap_err().contains(says), "{text}");
        }
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for base in [
            "http://127.0.0.1",
            "http://127.9.9.9:1/v1",
            "http://[::1]:80",
            "http://localhost:8000",
            "http://api.localhost",
            "http://0.0.0.0:1",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(Endpoint::parse(base).unwrap().route().is_loopback, "{base}");
        }
        for base in ["http://10.0.0.1", "https://localhost.example", "http://[2001:db8::1]"] {
            assert!(!Endpoint::parse(base).unwrap().route().is_loopback, "{base}");
        }
    }
}
