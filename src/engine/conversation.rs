//! The conversation of one purpose: append-only but for its first message, with a digest that costs only what was added.

use std::sync::Arc;

use mission_contract::log::{Ask, Message};
use sha2::{Digest, Sha256};

/// The messages so far, and what an ask adds to the one before.
#[derive(Debug, Default)]
pub struct Conversation {
    messages: Vec<Arc<Message>>,
    /// How many of them the last ask already held; `None` before the first.
    asked: Option<usize>,
    /// How many the ask before the last one held, and how many of those the last one kept.
    before: usize,
    kept: usize,
    /// True when a message that the last ask held was replaced.
    rewritten: bool,
    /// Has absorbed `header` and the first `absorbed` messages.
    hasher: Sha256,
    absorbed: usize,
    /// The same without what the last ask added.
    earlier: (Sha256, usize),
    header: Arc<str>,
}

/// What an ask adds.
#[derive(Debug, PartialEq)]
pub struct Added {
    /// Number of messages kept from the ask before; absent when all of them are.
    pub keeps: Option<u64>,
    /// Those that follow.
    pub adds: Vec<Message>,
    /// SHA-256 over the header and all messages.
    pub digest: String,
}

impl Conversation {
    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        self.messages.push(Arc::new(message));
    }

    /// Sets the first message: the only one that ever changes.
    pub fn set_first(&mut self, message: Message) {
        if self.messages.first().is_some_and(|first| **first == message) {
            return;
        }
        match self.messages.first_mut() {
            Some(first) => *first = Arc::new(message),
            None => self.messages.push(Arc::new(message)),
        }
        self.rewritten = true;
        self.restart();
    }

    /// All messages.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.messages.clone()
    }

    /// Notes that the model is asked now. `header` stands for all of the request that is not a message.
    pub fn ask(&mut self, header: &Arc<str>) -> Added {
        // The same one again is the usual case, and it may be large.
        if !Arc::ptr_eq(&self.header, header) && self.header != *header {
            self.header = Arc::clone(header);
            self.restart();
        }
        self.absorb(self.asked.unwrap_or(0));
        self.earlier = (self.hasher.clone(), self.absorbed);
        self.absorb(self.messages.len());
        let kept = if self.rewritten { 0 } else { self.asked.unwrap_or(0) };
        let keeps = self.asked.filter(|asked| *asked != kept).map(|_| kept as u64);
        let adds = self.messages.iter().skip(kept).map(|message| message.as_ref().clone()).collect();
        self.before = self.asked.unwrap_or(0);
        self.kept = kept;
        self.asked = Some(self.messages.len());
        self.rewritten = false;
        Added { keeps, adds, digest: mission_contract::digest::hex(&self.hasher.clone().finalize()) }
    }

    /// Notes what an ask of the log added: its words count, whatever this build would have said. It stands for the last
    /// [`Conversation::ask`], which was made on the way.
    pub fn asked_so(&mut self, ask: &Ask) {
        let kept = ask.keeps.map_or(self.before, |keeps| usize::try_from(keeps).unwrap_or(usize::MAX));
        let same = kept == self.kept
            && self.messages.len() == kept.saturating_add(ask.adds.len())
            && self.messages.iter().skip(kept).zip(&ask.adds).all(|(ours, theirs)| **ours == *theirs);
        if same {
            return;
        }
        self.messages.truncate(kept);
        self.messages.extend(ask.adds.iter().cloned().map(Arc::new));
        self.asked = Some(self.messages.len());
        // A log whose every ask is worded differently is long as well: only what differs is absorbed again.
        match std::mem::take(&mut self.earlier) {
            (hasher, absorbed) if absorbed <= kept => (self.hasher, self.absorbed) = (hasher, absorbed),
            _ => self.restart(),
        }
    }

    /// Absorbs the header and the messages up to this one.
    fn absorb(&mut self, end: usize) {
        if self.absorbed == 0 && end > 0 {
            self.hasher.update(self.header.as_bytes());
        }
        for message in self.messages.iter().take(end).skip(self.absorbed) {
            self.hasher.update(b"\n");
            // A message is plain data: writing it as JSON cannot fail.
            let line = serde_json::to_vec(message.as_ref()).unwrap_or_default();
            self.hasher.update(&line);
        }
        self.absorbed = self.absorbed.max(end);
    }

    fn restart(&mut self) {
        self.hasher = Sha256::new();
        self.absorbed = 0;
    }
}

#[cfg(test)]
mod tests {
    use mission_contract::log::Role;
    use proptest::prelude::*;

    use super::*;

    fn message(role: Role, text: &str) -> Message {
        Message { role, content: text.into(), ..Message::default() }
    }

    fn header() -> Arc<str> {
        Arc::from("h")
    }

    #[test]
    fn an_ask_journals_only_what_is_new() {
        let mut conversation = Conversation::default();
        conversation.set_first(message(Role::System, "s"));
        conversation.push(message(Role::User, "u"));
        let first = conversation.ask(&header());
        assert_eq!((first.keeps, first.adds.len()), (None, 2));
        conversation.push(message(Role::Assistant, "a"));
        let second = conversation.ask(&header());
        assert_eq!((second.keeps, second.adds.len()), (None, 1));
        conversation.set_first(message(Role::System, "s2"));
        let third = conversation.ask(&header());
        assert_eq!((third.keeps, third.adds.len()), (Some(0), 3));
    }

    #[test]
    fn what_the_log_says_was_asked_costs_what_it_adds() {
        let mut ours = Conversation::default();
        let mut theirs = Conversation::default();
        for number in 0..5 {
            ours.push(message(Role::User, &format!("worded now {number}")));
            theirs.push(message(Role::User, &format!("worded then {number}")));
            ours.ask(&header());
            let asked = theirs.ask(&header());
            ours.asked_so(&Ask { adds: asked.adds, keeps: asked.keeps, ..Ask::default() });
            assert_eq!((ours.absorbed, ours.messages.len()), (number, number + 1), "those before stay absorbed");
        }
        ours.push(message(Role::User, "the same"));
        theirs.push(message(Role::User, "the same"));
        assert_eq!(ours.ask(&header()).digest, theirs.ask(&header()).digest);
        // Another beginning: nothing of what was absorbed holds any more.
        ours.set_first(message(Role::System, "now"));
        theirs.set_first(message(Role::System, "then"));
        ours.ask(&header());
        let asked = theirs.ask(&header());
        ours.asked_so(&Ask { adds: asked.adds, keeps: asked.keeps, ..Ask::default() });
        ours.push(message(Role::User, "more"));
        theirs.push(message(Role::User, "more"));
        assert_eq!(ours.ask(&header()).digest, theirs.ask(&header()).digest);
    }

    proptest! {
        #[test]
        fn the_digest_depends_on_the_messages_and_not_on_how_they_came(texts in proptest::collection::vec(".{0,20}", 1..12), cuts in proptest::collection::vec(any::<bool>(), 12)) {
            let mut at_once = Conversation::default();
            let mut stepwise = Conversation::default();
            at_once.set_first(message(Role::System, "s"));
            stepwise.set_first(message(Role::System, "s"));
            for (text, ask) in texts.iter().zip(cuts) {
                at_once.push(message(Role::User, text));
                stepwise.push(message(Role::User, text));
                if ask {
                    stepwise.ask(&header());
                }
            }
            prop_assert_eq!(at_once.ask(&header()).digest, stepwise.ask(&header()).digest);
            stepwise.push(message(Role::User, "one more"));
            prop_assert_ne!(at_once.ask(&header()).digest, stepwise.ask(&header()).digest);
        }
    }
}
