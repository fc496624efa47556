//! Which rules a tool's name brings up: all globs are looked at at once.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The globs of all rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Globs {
    set: GlobSet,
    /// By glob, the rule that it belongs to.
    rules: Vec<usize>,
}

/// What is wrong with a glob, in its own words.
///
/// # Errors
/// That.
pub(super) fn check(glob: &str) -> Result<(), String> {
    builder(glob).build().map(drop).map_err(|error| error.kind().to_string())
}

fn builder(glob: &str) -> GlobBuilder<'_> {
    let mut builder = GlobBuilder::new(glob);
    // A name is no path: `*` is any signs whatever.
    builder.literal_separator(false).backslash_escape(true).empty_alternates(true);
    builder
}

impl Globs {
    /// The set of all globs, each with the number of its rule.
    ///
    /// # Errors
    /// When they cannot be compiled together.
    pub(super) fn new<'g>(globs: impl IntoIterator<Item = (usize, &'g str)>) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        let mut rules = Vec::new();
        for (rule, glob) in globs {
            set.add(builder(glob).build().map_err(|error| error.kind().to_string())?);
            rules.push(rule);
        }
        Ok(Self { set: set.build().map_err(|error| error.to_string())?, rules })
    }

    /// The rules of which a glob means this tool, each once.
    pub(super) fn rules_for(&self, tool: &str) -> Vec<usize> {
        let mut rules: Vec<usize> = self.set.matches(tool).into_iter().filter_map(|glob| self.rules.get(glob).copied()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}
