//! The conversation as the model was shown it, put together again from what each ask added. It lies in an unlinked temporary file,
//! so that memory grows with the number of messages and not with what they say.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use mission_contract::log::{Ask, Message};

/// The messages of the last ask, in the form that they are wanted in.
#[derive(Debug)]
pub struct Conversation {
    file: File,
    /// Bytes in the file.
    end: u64,
    /// Where each message stands.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    length: u64,
}

impl Conversation {
    /// A conversation without messages.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, end: 0, places: Vec::new() })
    }

    /// Takes up what an ask adds; `form` says how a message is kept.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub fn take(&mut self, ask: &Ask, form: impl Fn(&Message) -> Vec<u8>) -> io::Result<()> {
        if let Some(keeps) = ask.keeps {
            self.places.truncate(usize::try_from(keeps).unwrap_or(usize::MAX));
        }
        for message in &ask.adds {
            let bytes = form(message);
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.file.write_all(&bytes)?;
            self.places.push(Place { start: self.end, length });
            self.end = self.end.saturating_add(length);
        }
        Ok(())
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// One message.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn message(&self, number: usize) -> io::Result<Vec<u8>> {
        let place = self.places.get(number).copied().unwrap_or(Place { start: 0, length: 0 });
        let mut bytes = Vec::new();
        FromPlace { file: &self.file, at: place.start }.take(place.length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes all messages, `between` standing between each two of them.
    ///
    /// # Errors
    /// When the temporary file cannot be read, or `out` not written.
    pub fn write(&self, out: &mut dyn Write, between: &[u8]) -> io::Result<()> {
        for (number, place) in self.places.iter().enumerate() {
            if number > 0 {
                out.write_all(between)?;
            }
            io::copy(&mut FromPlace { file: &self.file, at: place.start }.take(place.length), out)?;
        }
        Ok(())
    }
}

struct FromPlace<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FromPlace<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(buffer, self.at)?;
        self.at = self.at.saturating_add(u64::try_from(got).unwrap_or(u64::MAX));
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_ask_keeps_the_front_and_adds_to_it() {
        let form = |message: &Message| message.content.as_str().as_bytes().to_vec();
        let ask = |keeps, adds: &[&str]| Ask {
            keeps,
            adds: adds.iter().map(|text| Message { content: (*text).into(), ..Message::default() }).collect(),
            ..Ask::default()
        };
        let mut conversation = Conversation::new().unwrap();
        let mut asked = |next: Ask| {
            conversation.take(&next, form).unwrap();
            let mut text = Vec::new();
            conversation.write(&mut text, b"|").unwrap();
            assert_eq!(conversation.len(), text.split(|byte| *byte == b'|').count());
            String::from_utf8(text).unwrap()
        };
        assert_eq!(asked(ask(None, &["system", "user"])), "system|user");
        assert_eq!(asked(ask(None, &["reply", "ä"])), "system|user|reply|ä");
        assert_eq!(asked(ask(Some(1), &["shorter"])), "system|shorter");
        assert_eq!(conversation.message(1).unwrap(), b"shorter");
    }
}
