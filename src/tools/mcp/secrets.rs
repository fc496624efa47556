//! What a server may repeat in its own words and nobody is to read there: our credentials, and the sessions that it gave.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits;

/// What stands in the place of one.
const MASK: &str = "***";

/// The secrets between us and one server, over all its lives.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    credentials: Arc<[String]>,
    sessions: Arc<Mutex<VecDeque<String>>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secrets(***)")
    }
}

impl Secrets {
    /// These credentials, and no session yet.
    pub(crate) fn new(credentials: Vec<String>) -> Self {
        Self { credentials: credentials.into(), sessions: Arc::default() }
    }

    /// The server has given this session.
    pub(crate) fn session(&self, session: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.push_back(session.to_owned());
        if u64::try_from(sessions.len()).unwrap_or(u64::MAX) > limits::MCP_SESSIONS_REMEMBERED {
            sessions.pop_front();
        }
    }

    /// A text without any of them.
    pub(crate) fn scrub(&self, text: String) -> String {
        /// A shorter value cannot be kept apart from plain words.
        const SECRET_BYTES: usize = 4;
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = self.credentials.iter().chain(sessions.iter()).filter(|secret| secret.len() >= SECRET_BYTES);
        secrets.fold(text, |text, secret| if text.contains(secret.as_str()) { text.replace(secret, MASK) } else { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_left_in_a_text_and_old_sessions_are_forgotten() {
        let secrets = Secrets::new(vec!["tok-1".to_owned(), "abc".to_owned()]);
        for number in 10..30 {
            secrets.session(&format!("session-{number}"));
        }
        let text = "tok-1 abc session-29 session-10".to_owned();
        assert_eq!(secrets.scrub(text), "*** abc *** session-10");
        assert_eq!(format!("{secrets:?}"), "Secrets(***)");
    }
}
