//! Which characters belong together, and which look drawn at random.

/// A class of characters. All of them are ASCII, except where a class is said by what it leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters and digits.
    Alphanumeric,
    /// Those, `_` and `-`.
    Word,
    /// Those and `.`.
    Dotted,
    /// Those of a path: words and `/`.
    Path,
    /// Those of base64, in both of its alphabets.
    Base64,
    /// Those of a credential in a header: RFC 9110's `token68`.
    Credential,
    /// What a shell or a query takes for one value: no white space, quote, bracket or separator.
    Value,
    /// What one word holds: no white space, quote or backslash.
    Line,
}

impl Class {
    /// Whether a byte is one of it.
    pub fn holds(self, byte: u8) -> bool {
        let letter = byte.is_ascii_alphanumeric();
        match self {
            Class::Alphanumeric => letter,
            Class::Word => letter || matches!(byte, b'_' | b'-'),
            Class::Dotted => letter || matches!(byte, b'_' | b'-' | b'.'),
            Class::Path => letter || matches!(byte, b'_' | b'-' | b'/'),
            Class::Base64 => letter || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'='),
            Class::Credential => letter || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~'),
            Class::Value => {
                Class::Line.holds(byte) && !matches!(byte, b'&' | b';' | b',' | b')' | b']' | b'}' | b'|' | b'<' | b'>')
            }
            Class::Line => !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`' | b'\\'),
        }
    }
}

/// What a text is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Makeup {
    /// Bytes.
    pub length: usize,
    /// Digits.
    pub digits: usize,
    /// Capitals.
    pub capitals: usize,
    /// Small letters.
    pub small: usize,
    /// Places where a letter or digit follows one of another kind.
    pub turns: usize,
    last: Option<u8>,
}

impl Makeup {
    /// Of a whole text.
    pub fn of(text: &[u8]) -> Self {
        let mut makeup = Self::default();
        for byte in text {
            makeup.add(*byte);
        }
        makeup
    }

    /// One more byte.
    pub fn add(&mut self, byte: u8) {
        self.length = self.length.saturating_add(1);
        let (kind, count) = match byte {
            b'0'..=b'9' => (0, &mut self.digits),
            b'A'..=b'Z' => (1, &mut self.capitals),
            b'a'..=b'z' => (2, &mut self.small),
            _ => {
                self.last = None;
                return;
            }
        };
        *count = count.saturating_add(1);
        if self.last.is_some_and(|last| last != kind) {
            self.turns = self.turns.saturating_add(1);
        }
        self.last = Some(kind);
    }

    /// Letters.
    pub fn letters(&self) -> usize {
        self.capitals.saturating_add(self.small)
    }

    /// Letters and digits.
    pub fn is_mixed(&self) -> bool {
        self.digits > 0 && self.letters() > 0
    }

    /// Whether a long run behind a prefix looks drawn at random rather than worded.
    pub fn is_drawn(&self) -> bool {
        (self.digits > 0 && self.capitals > 0) || self.digits >= 4 || (self.capitals >= 3 && self.small >= 3)
    }

    /// Whether a value without a prefix looks drawn at random: digits among letters in more than one place.
    pub fn is_random(&self, least: usize) -> bool {
        self.length >= least && self.digits >= 2 && self.letters() >= 2 && self.turns >= 4
    }
}
