//! Patterns that show no progress, by their names.

/// A pattern that shows no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// The same call came back with the same result.
    RepeatedCall,
    /// No reply of several steps could be used.
    RejectedReplies,
    /// Two calls take turns.
    Oscillation,
    /// No step of several brought anything new.
    NoNewEvidence,
}

impl Signal {
    /// Its word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Signal::RepeatedCall => "repeated_call",
            Signal::RejectedReplies => "rejected_replies",
            Signal::Oscillation => "oscillation",
            Signal::NoNewEvidence => "no_new_evidence",
        }
    }
}
