//! A credential that cannot be printed by accident.

use std::fmt;

/// A credential. `Debug` does not show it, it has no `Display`, and it is never serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a credential as it was given. Blanks and line ends around it are dropped: they come from files and shells.
    pub fn new(value: &str) -> Self {
        Self(value.trim().to_owned())
    }

    /// The credential itself, to be sent and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// True when there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `text` without the credential, for words that came from a server.
    pub fn scrub(&self, text: &str) -> String {
        // A very short value is no credential anybody could keep apart from plain words.
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&self.0, "[redacted]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_itself_nowhere() {
        let secret = Secret::new(" sk-dummy-key\n");
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
        assert_eq!(secret.reveal(), "sk-dummy-key");
        assert_eq!(secret.scrub("wrong key sk-dummy-key given"), "wrong key [redacted] given");
    }
}
