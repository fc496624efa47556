//! What is shown of an answer while it streams: decoded by the engine, redacted here, never journaled.

use mission_contract::event::{AnswerDelta, Event};
use mission_contract::spec::Protocol;

use crate::engine::fragments::AnswerDecoder;
use crate::limits::FRAGMENT_CHARACTERS;
use crate::model::Delta;
use crate::redact::StreamRedactor;

/// The fragments of one reply.
pub struct Fragments {
    decoder: AnswerDecoder,
    redactor: StreamRedactor,
    index: u64,
    part: u64,
    is_shown: bool,
}

impl Fragments {
    /// For the reply to the ask of step `index`.
    pub fn new(native: bool, index: u64, redactor: StreamRedactor) -> Self {
        let protocol = if native { Protocol::Native } else { Protocol::Json };
        Self { decoder: AnswerDecoder::new(protocol), redactor, index, part: 0, is_shown: true }
    }

    /// The same, and nothing of it where the reply is not for the stream.
    pub fn shown_if(self, is_shown: bool) -> Self {
        Self { is_shown, ..self }
    }

    /// What the next piece of the reply lets out.
    pub fn read(&mut self, delta: Delta) -> Vec<Event> {
        if !self.is_shown {
            return Vec::new();
        }
        let pieces = match delta {
            Delta::Text(text) => self.decoder.text(&text),
            Delta::CallName { position, name } => self.decoder.call_name(position, &name),
            Delta::CallArguments { position, fragment } => self.decoder.call_arguments(position, &fragment),
        };
        pieces.into_iter().flat_map(|piece| self.safe(&piece)).collect()
    }

    /// The reply is over: what was held back.
    pub fn finish(&mut self) -> Vec<Event> {
        let mut events: Vec<Event> = self.decoder.finish().into_iter().flat_map(|piece| self.safe(&piece)).collect();
        let rest = self.redactor.finish();
        events.extend(self.events(&rest));
        events
    }

    /// Characters of the answer given out so far.
    pub fn shown(&self) -> u64 {
        self.decoder.shown()
    }

    fn safe(&mut self, piece: &str) -> Vec<Event> {
        let safe = self.redactor.push(piece);
        self.events(&safe)
    }

    /// Holding text back makes it come in longer pieces: they are cut again to the published bound.
    fn events(&mut self, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let mut piece = String::new();
        let mut characters: u64 = 0;
        for character in text.chars() {
            piece.push(character);
            characters = characters.saturating_add(1);
            if character == '\n' || characters >= FRAGMENT_CHARACTERS {
                characters = 0;
                events.push(self.event(std::mem::take(&mut piece)));
            }
        }
        if !piece.is_empty() {
            events.push(self.event(piece));
        }
        events
    }

    fn event(&mut self, text: String) -> Event {
        let part = self.part;
        self.part = part.saturating_add(1);
        Event::AnswerDelta(AnswerDelta { index: self.index, part, text, branch: None })
    }
}
