//! Server-sent events from bytes that arrive in any pieces: bounded, and the same events however the bytes are cut.
//!
//! The rules are those of the HTML standard (lines end in LF, CRLF or CR; one leading byte order mark is dropped; a line
//! that begins with a colon is a comment), with two more for real servers: an event whose closing blank line is missing at the end of
//! the stream is delivered, and a line with an unknown field is handed out as it stands, because some servers report failures so.
//!
//! Who reconnects uses [`SseSplitter::push_whole`], which hands out each event with its id and the data as memory of its own: a large
//! one is copied once.

use std::time::Duration;

use memchr::memchr2;

/// What a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// An event that carries data, perhaps empty.
    Event {
        /// Its `event` field; empty when it has none.
        name: &'a str,
        /// Its `data` fields, joined by newlines.
        data: &'a str,
    },
    /// A line whose field the standard does not know, whole. It belongs to no event.
    Stray(&'a str),
}

/// One event, whole, and what a reconnection would need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its `event` field; empty when it has none.
    pub name: String,
    /// Its `data` fields, joined by newlines; nothing when it has none, which is an event for nobody.
    pub data: Option<String>,
    /// Its `id` field, perhaps empty. One that holds a NUL does not count.
    pub id: Option<String>,
    /// Its `retry` field.
    pub retry: Option<Duration>,
}

/// An event, or a line of one, is larger than allowed. Nothing more is read from the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// Splits a stream into its events.
#[derive(Debug)]
pub struct SseSplitter {
    limit: usize,
    /// The line so far, when its end has not come yet.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    id: Option<String>,
    retry: Option<Duration>,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_carriage_return: bool,
    /// No line is complete yet: the first may begin with a byte order mark.
    first_line: bool,
    /// The limit was passed.
    broken: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl SseSplitter {
    /// A splitter for one stream, whose events hold at most `limit` bytes each.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
            retry: None,
            after_carriage_return: false,
            first_line: true,
            broken: false,
        }
    }

    /// More bytes. What they complete goes to `take`, in order.
    ///
    /// # Errors
    /// When an event passes the limit, and at every call after that.
    pub fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(SseItem<'_>)) -> Result<(), EventTooLarge> {
        self.split(bytes, &mut Borrowing(take))
    }

    /// More bytes. The events that they complete go to `take`, in order: those without data too, when they say something about a
    /// reconnection. Lines with unknown fields are dropped.
    ///
    /// # Errors
    /// When an event passes the limit, and at every call after that.
    pub fn push_whole(&mut self, bytes: &[u8], take: &mut dyn FnMut(SseEvent)) -> Result<(), EventTooLarge> {
        self.split(bytes, &mut Taking(take))
    }

    /// As [`SseSplitter::finish`], for whoever uses [`SseSplitter::push_whole`].
    pub fn finish_whole(&mut self, take: &mut dyn FnMut(SseEvent)) {
        self.end(&mut Taking(take));
    }

    /// True while part of an event's data has come and its end has not: a stream that is only kept alive by comments is not.
    pub fn is_within_data(&self) -> bool {
        self.has_data || self.line.starts_with(b"data")
    }

    fn split(&mut self, bytes: &[u8], take: &mut dyn Take) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.after_carriage_return
            && let Some((first, behind)) = rest.split_first()
        {
            self.after_carriage_return = false;
            if *first == b'\n' {
                rest = behind;
            }
        }
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            let (head, end) = rest.split_at(at);
            let mut behind = end.get(1..).unwrap_or_default();
            if end.first() == Some(&b'\r') {
                match behind.first() {
                    Some(b'\n') => behind = behind.get(1..).unwrap_or_default(),
                    Some(_) => {}
                    None => self.after_carriage_return = true,
                }
            }
            self.check(head.len())?;
            if self.line.is_empty() {
                self.complete(head, take);
            } else {
                self.line.extend_from_slice(head);
                let line = std::mem::take(&mut self.line);
                self.complete_owned(line, take);
            }
            rest = behind;
        }
        self.check(rest.len())?;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// The stream is over: what was not closed by a blank line is delivered.
    pub fn finish(&mut self, take: &mut dyn FnMut(SseItem<'_>)) {
        self.end(&mut Borrowing(take));
    }

    fn end(&mut self, take: &mut dyn Take) {
        if self.broken {
            return;
        }
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.complete(&line, take);
        }
        self.dispatch(take);
    }

    fn check(&mut self, more: usize) -> Result<(), EventTooLarge> {
        let id = self.id.as_ref().map_or(0, String::len);
        let held = self.line.len().saturating_add(self.data.len()).saturating_add(self.name.len()).saturating_add(id);
        self.broken = self.broken || held.saturating_add(more) > self.limit;
        if self.broken { Err(EventTooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// A line that came in pieces. A large one is most of an event: its memory becomes the event's.
    fn complete_owned(&mut self, mut line: Vec<u8>, take: &mut dyn Take) {
        const LARGE: usize = 64 * 1024;
        if line.len() >= LARGE && !self.has_data && line.starts_with(b"data:") {
            self.first_line = false;
            let value = if line.get(5) == Some(&b' ') { 6 } else { 5 };
            line.drain(..value);
            self.data = String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            self.has_data = true;
            return;
        }
        self.complete(&line, take);
        // The buffer's room is kept for the next line that comes in pieces, unless it is that of a large one.
        if line.capacity() <= LARGE {
            line.clear();
            self.line = line;
        }
    }

    fn complete(&mut self, line: &[u8], take: &mut dyn Take) {
        let line = if self.first_line { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        self.first_line = false;
        if line.is_empty() {
            self.dispatch(take);
            return;
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => {}
            "id" => {
                if !value.contains('\0') {
                    self.id = Some(value.to_owned());
                }
            }
            "retry" => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                self.retry = digits.then(|| Duration::from_millis(value.parse().unwrap_or(u64::MAX))).or(self.retry);
            }
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => {
                self.name.clear();
                self.name.push_str(value);
            }
            _ => take.stray(&line),
        }
    }

    fn dispatch(&mut self, take: &mut dyn Take) {
        take.event(self);
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        self.id = None;
        self.retry = None;
    }
}

/// Who gets the events.
trait Take {
    fn event(&mut self, splitter: &mut SseSplitter);
    fn stray(&mut self, line: &str);
}

struct Borrowing<'a>(&'a mut dyn FnMut(SseItem<'_>));

impl Take for Borrowing<'_> {
    fn event(&mut self, splitter: &mut SseSplitter) {
        if splitter.has_data {
            (self.0)(SseItem::Event { name: &splitter.name, data: &splitter.data });
        }
    }

    fn stray(&mut self, line: &str) {
        (self.0)(SseItem::Stray(line));
    }
}

struct Taking<'a>(&'a mut dyn FnMut(SseEvent));

impl Take for Taking<'_> {
    fn event(&mut self, splitter: &mut SseSplitter) {
        if splitter.has_data || splitter.id.is_some() || splitter.retry.is_some() {
            (self.0)(SseEvent {
                name: splitter.name.clone(),
                data: splitter.has_data.then(|| std::mem::take(&mut splitter.data)),
                id: splitter.id.take(),
                retry: splitter.retry.take(),
            });
        }
    }

    fn stray(&mut self, _: &str) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
    use proptest::prelude::*;

    use super::*;

    fn collect(items: &mut Vec<String>) -> impl FnMut(SseItem<'_>) {
        |item| {
            items.push(match item {
                SseItem::Event { name, data } => format!("{name}|{data}"),
                SseItem::Stray(line) => format!("stray {line}"),
            });
        }
    }

    fn split(pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = SseSplitter::new(1024);
        let mut items = Vec::new();
        for piece in pieces {
            splitter.push(piece, &mut collect(&mut items)).unwrap();
        }
        splitter.finish(&mut collect(&mut items));
        items
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        assert_eq!(split(&[b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\r\n"]), ["|a", "|b", "|c", "|d"]);
    }

    #[test]
    fn comments_marks_and_other_fields_say_nothing() {
        assert_eq!(split(&[b"\xEF\xBB\xBF: hello\nid: 4\nretry: 9\nevent: e\ndata: a\n\n\n\n:\n"]), ["e|a"]);
        assert_eq!(split(&[b"\xEF\xBB", b"\xBFdata: a\n\n"]), ["|a"]);
    }

    #[test]
    fn data_may_be_empty_have_many_lines_and_lack_a_space() {
        assert_eq!(split(&[b"data\n\ndata:\ndata:a\ndata:  b\n\n"]), ["|", "|\na\n b"]);
    }

    #[test]
    fn an_event_without_data_is_none_and_its_name_does_not_leak() {
        assert_eq!(split(&[b"event: lost\n\ndata: a\n\n"]), ["|a"]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(split(&[b"data: a\n\nevent: e\ndata: b"]), ["|a", "e|b"]);
    }

    #[test]
    fn unknown_fields_are_handed_out_whole() {
        assert_eq!(
            split(&[b"error: {\"message\":\"no\"}\n\n{\"error\":1}\ndata: a\n\n"]),
            ["stray error: {\"message\":\"no\"}", "stray {\"error\":1}", "|a"]
        );
    }

    #[test]
    fn a_character_in_two_pieces_is_one() {
        let text = "data: é😀\n\n".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(split(&[&text[..cut], &text[cut..]]), ["|é😀"]);
        }
        assert_eq!(split(&[b"data: \xC3\n\n"]), ["|\u{FFFD}"]);
    }

    #[test]
    fn an_event_past_the_limit_ends_the_stream() {
        let mut splitter = SseSplitter::new(16);
        let mut items = Vec::new();
        assert!(splitter.push(b"data: fine\n\n", &mut collect(&mut items)).is_ok());
        assert!(splitter.push(b"data: 0123", &mut collect(&mut items)).is_ok());
        assert_eq!(splitter.push(b"4567890", &mut collect(&mut items)), Err(EventTooLarge { limit: 16 }));
        assert!(splitter.push(b"\n\n", &mut collect(&mut items)).is_err());
        splitter.finish(&mut collect(&mut items));
        assert_eq!(items, ["|fine"]);
        let mut many_lines = SseSplitter::new(16);
        assert!(many_lines.push(b"data: 1234567\ndata: 12345678\ndata: 1\n", &mut collect(&mut items)).is_err());
    }

    fn whole(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut splitter = SseSplitter::new(1 << 20);
        let mut events = Vec::new();
        for piece in pieces {
            splitter.push_whole(piece, &mut |event| events.push(event)).unwrap();
        }
        splitter.finish_whole(&mut |event| events.push(event));
        events
    }

    #[test]
    fn whole_events_say_what_a_reconnection_needs() {
        let events = whole(&[b": hi\nid: 7\nretry: 1500\ndata: \n\nid\n\nretry: soon\nid: a\0b\nevent: e\ndata: x\n\nretry: 99999999999999999999999\n\n"]);
        let event = |data: Option<&str>, id: Option<&str>| SseEvent {
            data: data.map(str::to_owned),
            id: id.map(str::to_owned),
            ..SseEvent::default()
        };
        assert_eq!(
            events,
            [
                SseEvent { retry: Some(Duration::from_millis(1500)), ..event(Some(""), Some("7")) },
                event(None, Some("")),
                SseEvent { name: "e".to_owned(), ..event(Some("x"), None) },
                SseEvent { retry: Some(Duration::from_millis(u64::MAX)), ..event(None, None) },
            ]
        );
    }

    #[test]
    fn a_large_event_in_pieces_is_the_same_as_in_one() {
        let text = format!("id: 1\ndata: {}\ndata:é\n\ndata:{}\n\n", "é".repeat(50_000), "y".repeat(70_000));
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(1000).collect();
        assert_eq!(whole(&pieces), whole(&[text.as_bytes()]));
        // The same as the first line of all, with a mark and without.
        for text in [format!("data: {}\n\ndata:z\n\n", "é".repeat(50_000)), format!("\u{feff}data: {}\n\n", "x".repeat(70_000))]
        {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(1000).collect();
            assert_eq!(whole(&pieces), whole(&[text.as_bytes()]));
        }
        let mut splitter = SseSplitter::new(1 << 20);
        assert!(!splitter.is_within_data());
        splitter.push_whole(b": keep-alive", &mut |_| {}).unwrap();
        assert!(!splitter.is_within_data());
        splitter.push_whole(b"\ndata: {", &mut |_| {}).unwrap();
        assert!(splitter.is_within_data());
        splitter.push_whole(b"}\n\n", &mut |_| {}).unwrap();
        assert!(!splitter.is_within_data());
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(
            lines in proptest::collection::vec("(data: ?|event: |id: |:|error: |)[a-zé😀: {}]{0,8}(\n|\r|\r\n)(\n|\r|\r\n|)", 0..12),
            mark in any::<bool>(),
            cuts in proptest::collection::vec(0usize..200, 0..30),
        ) {
            let text = format!("{}{}", if mark { "\u{FEFF}" } else { "" }, lines.concat());
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let whole = split(&[bytes]);
            prop_assert_eq!(split(&pieces), whole.clone());
            prop_assert_eq!(split(&single), whole);
        }
    }
}
