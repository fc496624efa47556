//! The `grounding` block of a manifest: how an answer has to be held against what the tools returned. It is read and checked here.

use std::collections::BTreeSet;

use fancy_regex::RegexBuilder;

use super::error::Problem;
use super::yaml::{Node, Placed, Value, shown};
use crate::limits;

/// How an answer has to be held against the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grounding {
    /// What an identifier looks like: group 1 where there is one, else the whole match.
    pub identifier_pattern: Option<String>,
    /// What a figure looks like, likewise.
    pub number_pattern: Option<String>,
    /// Tokens that no check considers.
    pub ignore: Vec<String>,
    /// How often the model may mend an answer.
    pub max_repairs: u64,
    /// What an answer has to hold.
    pub must_cite: Option<MustCite>,
    /// The answer has a table of claims with their places in the results.
    pub claim_table: bool,
    /// Claims are read against the prose.
    pub reading: bool,
    /// A second opinion is asked for.
    pub critic: bool,
    /// Phrases that need one of certain tools to have been called.
    pub planes: Vec<Plane>,
    /// The tools whose results ground a figure; all where none is named.
    pub figures_from: Vec<String>,
}

/// How much of what an answer has to cite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MustCite {
    /// At least one token of every check.
    Every,
    /// So many tokens of each of these checks.
    Checks(Vec<(String, u64)>),
}

/// Phrases that are only true when a tool was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Its name.
    pub name: String,
    /// One of them has to have been called.
    pub tools: Vec<String>,
    /// The phrases.
    pub claims: Vec<String>,
}

impl Grounding {
    /// True when it asks for at least one check.
    pub fn checks(&self) -> bool {
        self.identifier_pattern.is_some()
            || self.number_pattern.is_some()
            || self.claim_table
            || self.critic
            || !self.planes.is_empty()
            || self.must_cite.is_some()
    }

    /// The checks that its keys configure, by the names that `must_cite` may hold.
    fn runnable(&self) -> Vec<&'static str> {
        [
            ("identifiers", self.identifier_pattern.is_some()),
            ("figures", self.number_pattern.is_some()),
            ("attribution", self.number_pattern.is_some()),
            ("claims", self.claim_table),
            ("planes", !self.planes.is_empty()),
            ("reading", self.reading),
        ]
        .into_iter()
        .filter_map(|(name, runs)| runs.then_some(name))
        .collect()
    }
}

/// The keys of the block.
const KEYS: &[&str] = &[
    "identifier_pattern",
    "number_pattern",
    "ignore",
    "max_repairs",
    "must_cite",
    "claim_table",
    "reading",
    "critic",
    "planes",
    "figures_from",
];

/// Reads the block; what is wrong with it goes to `problems`.
pub(super) fn read(block: &Node, problems: &mut Vec<Problem>) -> Grounding {
    let mut grounding = Grounding { max_repairs: 1, ..Grounding::default() };
    let pairs = match block.map("the value of `grounding`") {
        Ok(pairs) => pairs,
        Err(problem) => {
            problems.push(problem);
            return grounding;
        }
    };
    let mut must_cite = None;
    let (mut reading_at, mut figures_at) = (None, None);
    for (key, node) in pairs {
        let what = format!("`grounding.{}`", shown(&key.text));
        let read = match key.text.as_str() {
            "identifier_pattern" => pattern(node, &what).map(|pattern| grounding.identifier_pattern = Some(pattern)),
            "number_pattern" => pattern(node, &what).map(|pattern| grounding.number_pattern = Some(pattern)),
            "ignore" => texts(node, &what).map(|ignored| grounding.ignore.extend(ignored)),
            "max_repairs" => node.count(&what, limits::GROUNDING_REPAIRS_MOST).map(|repairs| grounding.max_repairs = repairs),
            "must_cite" => {
                must_cite = Some(node);
                Ok(())
            }
            "claim_table" => node.switch(&what).map(|on| grounding.claim_table = on),
            "reading" => {
                reading_at = Some(key);
                node.switch(&what).map(|on| grounding.reading = on)
            }
            "critic" => node.switch(&what).map(|on| grounding.critic = on),
            "planes" => planes(node, &what).map(|planes| grounding.planes = planes),
            "figures_from" => {
                figures_at = Some(key);
                texts(node, &what).map(|texts| grounding.figures_from = texts)
            }
            _ => Err(unknown(key, "grounding", KEYS)),
        };
        problems.extend(read.err());
    }
    if let Some(key) = reading_at.filter(|_| grounding.reading && !grounding.claim_table) {
        problems.push(key.problem("`grounding.reading` needs `claim_table: true` beside it"));
    }
    if let Some(key) = figures_at.filter(|_| !grounding.figures_from.is_empty() && grounding.number_pattern.is_none()) {
        problems.push(key.problem("`grounding.figures_from` needs a `number_pattern` beside it"));
    }
    if let Some(node) = must_cite {
        match cited(node, &grounding) {
            Ok(cited) => grounding.must_cite = Some(cited),
            Err(problem) => problems.push(problem),
        }
    }
    grounding
}

fn unknown(key: &Placed, block: &str, known: &[&str]) -> Problem {
    key.problem(format!("the key `{}` of `{block}` is unknown; the keys are {}", shown(&key.text), known.join(", ")))
}

fn pattern(node: &Node, what: &str) -> Result<String, Problem> {
    let pattern = node.words(what)?;
    let compiled = RegexBuilder::new(pattern)
        .delegate_size_limit(limits::size(limits::PATTERN_BYTES))
        .backtrack_limit(limits::size(limits::PATTERN_BACKTRACKS))
        .build();
    match compiled {
        Ok(_) => Ok(pattern.to_owned()),
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default();
            Err(node.problem(format!("{what} is no regular expression: {}", shown(why))))
        }
    }
}

fn texts(node: &Node, what: &str) -> Result<Vec<String>, Problem> {
    node.list(what)?.iter().map(|item| item.words(&format!("each entry of {what}")).map(str::to_owned)).collect()
}

fn planes(node: &Node, what: &str) -> Result<Vec<Plane>, Problem> {
    let mut planes = Vec::new();
    for (name, plane) in node.map(what)? {
        let what = format!("`grounding.planes.{}`", shown(&name.text));
        let (mut tools, mut claims) = (Vec::new(), Vec::new());
        for (key, list) in plane.map(&what)? {
            match key.text.as_str() {
                "tools" => tools = texts(list, &format!("`tools` of {what}"))?,
                "claims" => claims = texts(list, &format!("`claims` of {what}"))?,
                _ => return Err(unknown(key, &format!("grounding.planes.{}", shown(&name.text)), &["tools", "claims"])),
            }
        }
        if tools.is_empty() || claims.is_empty() {
            return Err(name.problem(format!("{what} needs `tools` and `claims`, at least one of each")));
        }
        planes.push(Plane { name: name.text.clone(), tools, claims });
    }
    Ok(planes)
}

/// Reads `must_cite`, once it is known which checks there are.
fn cited(node: &Node, grounding: &Grounding) -> Result<MustCite, Problem> {
    const WHAT: &str = "`grounding.must_cite`";
    let runnable = grounding.runnable();
    let known = |place: &dyn Fn(String) -> Problem, name: &str| match runnable.contains(&name) {
        true => Ok(name.to_owned()),
        false if runnable.is_empty() => Err(place(format!("{WHAT} names `{}`, and the block configures no check", shown(name)))),
        false => Err(place(format!(
            "{WHAT} names `{}`, which is no check that this block configures; it configures {}",
            shown(name),
            runnable.join(", ")
        ))),
    };
    match &node.value {
        Value::Text(text) if text == "true" && runnable.is_empty() => {
            Err(node.problem(format!("{WHAT} is true, and the block configures no check")))
        }
        Value::Text(text) if text == "true" => Ok(MustCite::Every),
        Value::List(items) if !items.is_empty() => {
            let mut checks = Vec::new();
            let mut names = BTreeSet::new();
            for item in items {
                let name = known(&|what| item.problem(what), item.text("each entry of `grounding.must_cite`")?)?;
                if !names.insert(name.clone()) {
                    return Err(item.problem(format!("{WHAT} names `{name}` twice; keep one of them")));
                }
                checks.push((name, 1));
            }
            Ok(MustCite::Checks(checks))
        }
        Value::Map(pairs) if !pairs.is_empty() => {
            let mut checks = Vec::new();
            for (key, node) in pairs {
                let name = known(&|what| key.problem(what), &key.text)?;
                let least = node.count(&format!("`grounding.must_cite.{name}`"), limits::GROUNDING_CITED_MOST)?;
                checks.push((name, least));
            }
            Ok(MustCite::Checks(checks))
        }
        _ => Err(node.problem(format!("{WHAT} has to be true, a list of checks, or a mapping of checks to how many"))),
    }
}
