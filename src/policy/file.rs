//! The policy file: rules over tools and arguments. It narrows, and nothing in it widens.

use mission_contract::canonical;
use mission_contract::spec::PolicyText;
use mission_contract::vocabulary::POLICY_RULES;
use serde_json::{Map, Number, Value};
use serde_yaml::Spanned;

use super::condition::{self, Condition, Holds, Test};
use super::error::{PolicyError, Problem};
use super::globs::{self, Globs};
use super::tree::{self, Node, Tree, at, shown};
use super::{BY_DEFAULT, BY_POLICY};
use crate::limits;

/// What a rule does with a call, mildest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It may be made, as far as the profile and the gates go.
    #[default]
    Allow,
    /// A person has to allow it.
    Gate,
    /// It is not made.
    Deny,
}

impl Effect {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Gate => "gate",
            Effect::Deny => "deny",
        }
    }

    fn named(word: &str) -> Option<Self> {
        [Effect::Allow, Effect::Gate, Effect::Deny].into_iter().find(|effect| effect.word() == word)
    }
}

/// A policy, compiled.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    default: Effect,
    /// It could not be read.
    is_closed: bool,
    rules: Vec<Rule>,
    globs: Globs,
}

#[derive(Clone, Debug)]
struct Rule {
    id: String,
    effect: Effect,
    when: Vec<Condition>,
    reason: Option<String>,
    line: u64,
}

/// A rule that holds for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched<'p> {
    /// What it does.
    pub effect: Effect,
    /// Its name.
    pub rule: &'p str,
    /// What it says of itself.
    pub reason: Option<&'p str>,
    /// Where it stands in the file; none for what stands in no line.
    pub line: Option<u64>,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// Everything that is not understood, with its place and its field.
    pub fn parse(text: &PolicyText) -> Result<Self, PolicyError> {
        let refused = |problems| PolicyError::File { file: text.file.clone(), problems };
        let plain = text.text.strip_prefix('\u{feff}').unwrap_or(&text.text);
        let tree = tree::read(plain).map_err(|problem| refused(vec![problem]))?;
        let mut reader = Reader::default();
        let (default, written) = reader.file(&tree);
        if reader.problems.is_empty() {
            let globs =
                (0..).zip(&written).flat_map(|(rule, written)| written.globs.iter().map(move |glob| (rule, glob.as_str())));
            match Globs::new(globs) {
                Ok(globs) => {
                    let rules = written.into_iter().map(|written| written.rule).collect();
                    return Ok(Self { default, is_closed: false, rules, globs });
                }
                Err(what) => reader.problems.push(at(&tree, "rules", format!("the globs cannot be compiled together: {what}"))),
            }
        }
        reader.problems.sort_by_key(|problem| (problem.line, problem.column));
        reader.problems.truncate(limits::size(limits::POLICY_PROBLEMS));
        Err(refused(reader.problems))
    }

    /// A policy that denies everything: what is left of one that cannot be read.
    pub fn closed() -> Self {
        Self { default: Effect::Deny, is_closed: true, ..Self::default() }
    }

    /// The rules that hold for a call, the one that decides first.
    pub fn matching(&self, tool: &str, arguments: &Map<String, Value>) -> Vec<Matched<'_>> {
        let meant = self.globs.rules_for(tool);
        let holding = meant.iter().filter_map(|rule| self.rules.get(*rule)).filter(|rule| rule.holds(arguments));
        let mut holding: Vec<Matched<'_>> = holding.map(Rule::matched).collect();
        // The strictest; of several of them the first by name, wherever they stand.
        holding.sort_by_key(|matched| (std::cmp::Reverse(matched.effect), matched.rule));
        holding
    }

    /// What decides about a call.
    pub fn ruling(&self, tool: &str, arguments: &Map<String, Value>) -> Matched<'_> {
        self.matching(tool, arguments).first().copied().unwrap_or_else(|| self.fallback())
    }

    /// What decides where no rule holds.
    fn fallback(&self) -> Matched<'_> {
        let rule = if self.is_closed { BY_POLICY } else { BY_DEFAULT };
        Matched { effect: self.default, rule, reason: None, line: None }
    }

    /// What every call of a tool comes to at least, whatever its arguments are.
    pub fn at_least(&self, tool: &str) -> Effect {
        let meant = self.globs.rules_for(tool);
        let rules = || meant.iter().filter_map(|rule| self.rules.get(*rule));
        let certain = rules().filter(|rule| rule.when.is_empty()).map(|rule| rule.effect).max();
        // A rule with conditions may or may not hold; where none does, the default.
        let mildest = rules().map(|rule| rule.effect).chain([self.default]).min();
        certain.or(mildest).unwrap_or_default()
    }
}

impl Rule {
    fn holds(&self, arguments: &Map<String, Value>) -> bool {
        // An argument that a condition says nothing about does not loosen anything: a rule that lets calls through does not hold for it, one
        // that holds them up does.
        let fits = |holds| holds == Holds::Yes || (holds == Holds::Unknown && self.effect > Effect::Allow);
        self.when.iter().all(|condition| fits(condition.holds(arguments)))
    }

    fn matched(&self) -> Matched<'_> {
        Matched { effect: self.effect, rule: &self.id, reason: self.reason.as_deref(), line: Some(self.line) }
    }
}

/// A rule as it is written.
struct Written {
    rule: Rule,
    globs: Vec<String>,
}

/// Reads the tree of a file and notes what is wrong with it.
#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
}

const EFFECTS: &str = "say allow, gate or deny";

impl Reader {
    fn problem<T>(&mut self, place: &Spanned<T>, field: &str, what: impl Into<String>) {
        self.problems.push(at(place, field, what));
    }

    /// The values of a mapping by their keys, in the order of `keys`; a key that is not among them is a problem.
    fn keys<'t, const N: usize>(&mut self, node: &'t Node, field: &str, keys: [&str; N]) -> Option<[Option<&'t Node>; N]> {
        let Tree::Map(pairs) = &node.value else {
            self.problem(
                node,
                field,
                format!("this has to be a mapping with the keys {}, and is {}", keys.join(", "), node.value.kind()),
            );
            return None;
        };
        let inside = |key: &str| if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") };
        let mut found = [None; N];
        for (key, value) in pairs {
            match keys.iter().position(|known| *known == key.value).and_then(|at| found.get_mut(at)) {
                Some(slot) => *slot = Some(value),
                None => {
                    let name = inside(&shown(&key.value));
                    self.problem(key, &name, format!("there is no such key here; there are {}", keys.join(", ")));
                }
            }
        }
        Some(found)
    }

    fn text<'t>(&mut self, node: &'t Node, field: &str) -> Option<&'t str> {
        match &node.value {
            Tree::Scalar(Value::String(text)) if !text.trim().is_empty() => Some(text),
            Tree::Scalar(Value::String(_)) => {
                self.problem(node, field, "it is empty; write something, or leave the key out");
                None
            }
            other => {
                self.problem(node, field, format!("it has to be a text and is {}; put it in quotes", other.kind()));
                None
            }
        }
    }

    fn list<'t>(&mut self, node: &'t Node, field: &str) -> &'t [Node] {
        match &node.value {
            Tree::List(items) => items,
            other => {
                self.problem(node, field, format!("it has to be a list and is {}", other.kind()));
                &[]
            }
        }
    }

    fn missing<T>(&mut self, place: &Node, field: &str, key: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && matches!(place.value, Tree::Map(_)) {
            self.problem(place, field, format!("the key `{key}` is missing; write it"));
        }
        value
    }

    fn effect(&mut self, node: &Node, field: &str) -> Effect {
        let Some(word) = self.text(node, field) else { return Effect::Deny };
        let effect = Effect::named(word);
        if effect.is_none() {
            self.problem(node, field, format!("`{}` is no effect; {EFFECTS}", shown(word)));
        }
        effect.unwrap_or(Effect::Deny)
    }

    fn file(&mut self, tree: &Node) -> (Effect, Vec<Written>) {
        let Some([version, default, rules]) = self.keys(tree, "", ["version", "default", "rules"]) else {
            return (Effect::Deny, Vec::new());
        };
        match self.missing(tree, "", "version", version) {
            Some(node) if node.value.value() != 1 => {
                self.problem(node, "version", "this build reads version 1; write `version: 1`");
            }
            _ => {}
        }
        let default = default.map_or(Effect::Allow, |node| self.effect(node, "default"));
        let rules = self.missing(tree, "", "rules", rules).map_or(&[][..], |node| self.list(node, "rules"));
        if rules.len() > limits::size(limits::POLICY_RULES) {
            self.problem(tree, "rules", format!("there are {} rules; at most {} are read", rules.len(), limits::POLICY_RULES));
            return (default, Vec::new());
        }
        let mut written: Vec<Written> = Vec::new();
        for (number, node) in rules.iter().enumerate() {
            let field = format!("rules[{number}]");
            let Some(rule) = self.rule(node, &field) else { continue };
            if written.iter().any(|other| other.rule.id == rule.rule.id) {
                self.problem(
                    node,
                    &format!("{field}.id"),
                    format!("another rule is called `{}`; give each its own name", rule.rule.id),
                );
            }
            written.push(rule);
        }
        (default, written)
    }

    fn rule(&mut self, node: &Node, field: &str) -> Option<Written> {
        let [id, tools, effect, when, reason] = self.keys(node, field, ["id", "tools", "effect", "when", "reason"])?;
        let inside = |key: &str| format!("{field}.{key}");
        let id = self.missing(node, field, "id", id).and_then(|id| self.id(id, &inside("id")));
        let globs = self.missing(node, field, "tools", tools).map_or_else(Vec::new, |tools| self.globs(tools, &inside("tools")));
        let effect =
            self.missing(node, field, "effect", effect).map_or(Effect::Deny, |effect| self.effect(effect, &inside("effect")));
        let field = inside("when");
        let conditions = when.map_or(&[][..], |when| self.list(when, &field));
        let when = conditions.iter().enumerate().filter_map(|(number, node)| self.condition(node, &format!("{field}[{number}]")));
        let when = when.collect();
        let reason = reason.and_then(|reason| self.text(reason, &inside("reason")));
        let longest = limits::size(limits::POLICY_REASON_CHARACTERS);
        let reason = reason.map(|reason| reason.trim().chars().take(longest).collect());
        Some(Written { rule: Rule { id: id?, effect, when, reason, line: node.referenced.line() }, globs })
    }

    fn id(&mut self, node: &Node, field: &str) -> Option<String> {
        let id = self.text(node, field)?;
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-');
        let begins = id.starts_with(|sign: char| sign.is_ascii_alphanumeric());
        if !begins || !id.chars().all(is_sign) || id.len() > limits::size(limits::POLICY_ID_CHARACTERS) {
            let longest = limits::POLICY_ID_CHARACTERS;
            self.problem(
                node,
                field,
                format!("`{}` is no name of a rule: up to {longest} letters, digits, dots, hyphens and underscores, a letter or digit first", shown(id)),
            );
            return None;
        }
        if POLICY_RULES.iter().any(|rule| rule.name == id) {
            self.problem(node, field, format!("`{id}` is what decisions that no rule makes are called; take another name"));
            return None;
        }
        Some(id.to_owned())
    }

    fn globs(&mut self, node: &Node, field: &str) -> Vec<String> {
        let items = match &node.value {
            Tree::List(items) if items.is_empty() => {
                self.problem(node, field, "it names no tool; write a glob, or `*` for every tool");
                return Vec::new();
            }
            Tree::List(items) => items.iter().collect::<Vec<_>>(),
            _ => vec![node],
        };
        let mut globs = Vec::new();
        for item in items {
            let Some(glob) = self.text(item, field) else { continue };
            match globs::check(glob) {
                Ok(()) => globs.push(glob.to_owned()),
                Err(what) => self.problem(item, field, format!("`{}` is no glob: {what}", shown(glob))),
            }
        }
        globs
    }

    fn condition(&mut self, node: &Node, field: &str) -> Option<Condition> {
        const KEYS: [&str; 8] = ["pointer", "not", "exists", "equals", "one_of", "matches", "at_least", "at_most"];
        let [pointer, not, exists, equals, one_of, matches, least, most] = self.keys(node, field, KEYS)?;
        let inside = |key: &str| format!("{field}.{key}");
        let tests = [exists, equals, one_of, matches, least, most].into_iter().flatten().count();
        if tests != 1 {
            let [_, _, tests @ ..] = KEYS;
            let what = format!("a condition asks one thing: exactly one of {}", tests.join(", "));
            self.problem(node, field, what);
        }
        let is_turned = not.is_some_and(|not| self.switch(not, &inside("not")).unwrap_or_default());
        let pointer = self.missing(node, field, "pointer", pointer).and_then(|node| self.pointer(node, &inside("pointer")));
        let number = |reader: &mut Self, node: &Node, key: &str| reader.number(node, &inside(key));
        let test = match (exists, equals, one_of, matches, least, most) {
            (Some(node), ..) => self.switch(node, &inside("exists")).map(Test::Exists),
            (_, Some(node), ..) => Some(Test::OneOf(vec![canonical::of_value(&node.value.value())])),
            (_, _, Some(node), ..) => {
                let values = self.list(node, &inside("one_of"));
                if values.is_empty() && matches!(node.value, Tree::List(_)) {
                    self.problem(node, &inside("one_of"), "it holds no value; write those that are meant");
                }
                Some(Test::OneOf(values.iter().map(|item| canonical::of_value(&item.value.value())).collect()))
            }
            (_, _, _, Some(node), ..) => self.regex(node, &inside("matches")).map(Test::Matches),
            (_, _, _, _, Some(node), _) => number(self, node, "at_least").map(Test::AtLeast),
            (.., Some(node)) => number(self, node, "at_most").map(Test::AtMost),
            (None, None, None, None, None, None) => None,
        };
        Some(Condition { pointer: pointer?, test: test?, is_turned })
    }

    fn pointer(&mut self, node: &Node, field: &str) -> Option<Vec<String>> {
        let text = self.text(node, field)?;
        let tokens = condition::tokens(text);
        if tokens.is_none() {
            self.problem(
                node,
                field,
                format!("`{}` is no JSON Pointer to an argument; write one like /path or /items/0/name", shown(text)),
            );
        }
        tokens
    }

    fn switch(&mut self, node: &Node, field: &str) -> Option<bool> {
        match &node.value {
            Tree::Scalar(Value::Bool(switch)) => Some(*switch),
            other => {
                self.problem(node, field, format!("it has to be true or false and is {}", other.kind()));
                None
            }
        }
    }

    fn number(&mut self, node: &Node, field: &str) -> Option<Number> {
        match &node.value {
            Tree::Scalar(Value::Number(number)) => Some(number.clone()),
            other => {
                self.problem(node, field, format!("it has to be a number and is {}", other.kind()));
                None
            }
        }
    }

    fn regex(&mut self, node: &Node, field: &str) -> Option<regex::Regex> {
        let text = self.text(node, field)?;
        match condition::regex(text) {
            Ok(regex) => Some(regex),
            Err(what) => {
                self.problem(node, field, format!("`{}` is no regular expression: {what}", shown(text)));
                None
            }
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
