//! Where a secret ends whose beginning is known. Nothing of it is kept, so it may be of any length.

use super::class::Class;
use super::private_key::PrivateKey;

/// What goes on being hidden.
#[derive(Clone, Debug)]
pub(super) enum Swallow {
    /// Nothing more.
    Nothing,
    /// As long as characters are of a class.
    Class(Class),
    /// To a quote that closes, or the end of the line.
    Quoted {
        /// The quote.
        quote: u8,
        /// How many backslashes stand before it where it opens: a text inside a string.
        escapes: usize,
    },
    /// To the end of the line, or what closes a string around it.
    Line,
    /// The lines of a private key.
    PrivateKey(PrivateKey),
}

/// How far a piece of text was swallowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swallowed {
    /// The secret ends before this byte.
    Ended(usize),
    /// It goes on; so much is certain.
    Open(usize),
}

/// Most backslashes in a row that wait for what follows them.
const BACKSLASHES: usize = 16;

impl Swallow {
    /// Goes on through `text`, which nothing follows when it is `over`.
    pub fn feed(&mut self, text: &[u8], over: bool) -> Swallowed {
        let until = |ends: fn(u8) -> bool| match text.iter().position(|byte| ends(*byte)) {
            Some(end) => Swallowed::Ended(end),
            None => Swallowed::Open(text.len()),
        };
        match self {
            Swallow::Nothing => Swallowed::Ended(0),
            Swallow::Class(class) => match text.iter().position(|byte| !class.holds(*byte)) {
                Some(end) => Swallowed::Ended(end),
                None => Swallowed::Open(text.len()),
            },
            Swallow::Line => until(|byte| matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\')),
            Swallow::Quoted { quote, escapes } => quoted(text, *quote, *escapes, over),
            Swallow::PrivateKey(key) => key.feed(text),
        }
    }
}

fn quoted(text: &[u8], quote: u8, escapes: usize, over: bool) -> Swallowed {
    let mut at = 0usize;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(distance) = rest.iter().position(|byte| *byte == quote || matches!(byte, b'\\' | b'\n' | b'\r')) else {
            return Swallowed::Open(text.len());
        };
        at = at.saturating_add(distance);
        if text.get(at) != Some(&b'\\') {
            return Swallowed::Ended(at);
        }
        let behind = text.get(at..).unwrap_or_default();
        let run = behind.iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count();
        let after = at.saturating_add(run);
        match text.get(after) {
            None if over => return Swallowed::Open(text.len()),
            None => return Swallowed::Open(at),
            Some(byte) if *byte == quote => {
                if escapes > 0 && run <= escapes {
                    return Swallowed::Ended(at);
                }
                if escapes == 0 && run % 2 == 0 {
                    return Swallowed::Ended(after);
                }
                at = after.saturating_add(1);
            }
            Some(_) => at = after,
        }
    }
}
