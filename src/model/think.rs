//! Keeps what a model thinks aloud out of what it says: `<think>…</think>` at the front of a text, in any pieces.
//!
//! Servers that know a model's template send its reasoning in a field of its own; others leave the tags in the text, where they would
//! end up in an answer. Only the front of a text is looked at: tags that a text merely mentions stay.

const NAMES: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// What to do with the text that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing but blanks or the beginning of a tag has come.
    Front,
    /// Inside the reasoning that the tag with this name opened.
    Inside(&'static str),
    /// The text itself.
    Text,
}

/// Reads a text that arrives in pieces.
#[derive(Debug)]
pub struct ThinkFilter {
    state: State,
    /// What was not given out: the front, or the reasoning with its opening tag.
    held: String,
    /// From here on the closing tag may stand in `held`.
    searched: usize,
    /// Some reasoning was left out: blanks behind it go too.
    left_out: bool,
}

/// What is left when a text is over.
#[derive(Debug, PartialEq, Eq)]
pub enum Rest {
    /// More of the text, perhaps none.
    Text(String),
    /// The reasoning was never closed. All of it, since the answer may be in it.
    Unclosed(String),
}

impl Default for ThinkFilter {
    fn default() -> Self {
        Self { state: State::Front, held: String::new(), searched: 0, left_out: false }
    }
}

impl ThinkFilter {
    /// Takes the next piece and appends to `text` what belongs to it.
    pub fn push(&mut self, piece: &str, text: &mut String) {
        if self.state == State::Text {
            text.push_str(piece);
            return;
        }
        self.held.push_str(piece);
        loop {
            match self.state {
                State::Text => {
                    text.push_str(&std::mem::take(&mut self.held));
                    return;
                }
                State::Front => {
                    let front = self.held.trim_start();
                    if let Some(name) = opened(front) {
                        self.state = State::Inside(name);
                        self.searched = 0;
                    } else if may_open(front) {
                        return;
                    } else {
                        if self.left_out {
                            self.held = front.to_owned();
                        }
                        self.state = State::Text;
                    }
                }
                State::Inside(name) => {
                    let closing = format!("</{name}>");
                    let unread = self.held.get(self.searched..).unwrap_or(&self.held);
                    let Some((_, behind)) = unread.split_once(&closing) else {
                        let mut from = self.held.len().saturating_sub(closing.len());
                        while !self.held.is_char_boundary(from) {
                            from = from.saturating_sub(1);
                        }
                        self.searched = from;
                        return;
                    };
                    self.held = behind.to_owned();
                    self.left_out = true;
                    self.state = State::Front;
                }
            }
        }
    }

    /// The text is over.
    pub fn finish(&mut self) -> Rest {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Inside(_) => Rest::Unclosed(held),
            State::Front if self.left_out => Rest::Text(held.trim_start().to_owned()),
            State::Front | State::Text => Rest::Text(held),
        }
    }
}

/// Some templates open the tag in the prompt, so that a text only closes it: what stands behind it, when this is such a text.
///
/// A text that begins as JSON, a list or code is none, nor is one where the tag is quoted or was opened before.
pub fn behind_lone_closing(text: &str) -> Option<&str> {
    if text.trim_start().starts_with(['{', '[', '`', '"']) {
        return None;
    }
    NAMES.iter().find_map(|name| {
        let (before, behind) = text.split_once(&format!("</{name}>"))?;
        let is_quoted = before.ends_with(['`', '\'', '"']);
        let is_opened = before.contains(&format!("<{name}>"));
        let answer = behind.trim_start();
        (!is_quoted && !is_opened && !answer.is_empty()).then_some(answer)
    })
}

fn opened(front: &str) -> Option<&'static str> {
    let inner = front.strip_prefix('<')?;
    NAMES.iter().copied().find(|name| inner.strip_prefix(name).is_some_and(|rest| rest.starts_with('>')))
}

fn may_open(front: &str) -> bool {
    front.is_empty() || NAMES.iter().any(|name| format!("<{name}>").starts_with(front))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&str]) -> (String, Rest) {
        let mut filter = ThinkFilter::default();
        let mut text = String::new();
        for piece in pieces {
            filter.push(piece, &mut text);
        }
        let rest = filter.finish();
        (text, rest)
    }

    fn said(pieces: &[&str]) -> String {
        match read(pieces) {
            (text, Rest::Text(rest)) => text + &rest,
            (text, Rest::Unclosed(rest)) => format!("{text}!{rest}"),
        }
    }

    #[test]
    fn reasoning_at_the_front_is_left_out() {
        assert_eq!(said(&["<th", "ink>plan", "</thi", "nk>\n\nAnswer 4"]), "Answer 4");
        assert_eq!(said(&["<", "thought", ">plan</thought>", "Answer 4"]), "Answer 4");
        assert_eq!(said(&["\n<think></think><thinking>b</thinking> {}"]), "{}");
    }

    #[test]
    fn what_only_mentions_a_tag_stays() {
        let text = "Wrap it in `<think>` and `</think>` yourself.";
        assert_eq!(said(&[text]), text);
        assert_eq!(behind_lone_closing(text), None);
        assert_eq!(said(&["<thinker> is a word"]), "<thinker> is a word");
        assert_eq!(said(&["  <th"]), "  <th");
    }

    #[test]
    fn reasoning_that_never_ends_is_kept_and_told() {
        assert_eq!(read(&["<think>plan and ", "Answer 4"]), (String::new(), Rest::Unclosed("<think>plan and Answer 4".to_owned())));
    }

    #[test]
    fn a_lone_closing_tag_ends_the_reasoning_before_it() {
        assert_eq!(behind_lone_closing("internal plan\n</think>Answer 4"), Some("Answer 4"));
        assert_eq!(behind_lone_closing("{\"answer\": \"a </think> b\"}"), None);
        assert_eq!(behind_lone_closing("Close it with </think>"), None);
    }

    proptest! {
        #[test]
        fn any_cut_says_the_same(parts in proptest::collection::vec("<think>|</think>|<thought>|</thought>|[a-é< >/]{0,5}", 0..8)) {
            let text = parts.concat();
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            let pieces: Vec<&str> = parts.iter().map(String::as_str).collect();
            prop_assert_eq!(said(&letters), said(&[&text]));
            prop_assert_eq!(said(&pieces), said(&[&text]));
        }
    }
}
