//! The tools on offer: their order, their names as functions, their checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use mission_contract::digest::definition_digest;
use mission_contract::log::{Catalogue, ToolDefinition};
use serde_json::{Value, json};

use super::arguments::{Compiled, compile};
use super::names::FunctionNames;
use super::request::FunctionDeclaration;
use super::words::{ANSWER_FUNCTION, NO_TOOLS, RESULT_TOOL};
use super::{mission_result, summary};

/// One tool on offer.
#[derive(Debug)]
pub struct Offered {
    /// Its definition.
    pub definition: Arc<ToolDefinition>,
    /// The definition's digest.
    pub digest: String,
    check: Option<Result<Compiled, String>>,
}

/// A tool whose schema cannot be compiled.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Why, as a sentence's end.
    pub problem: String,
    /// Its server.
    pub server: String,
    /// True the first time.
    pub is_news: bool,
}

/// All tools on offer.
#[derive(Debug, Default)]
pub struct Offer {
    tools: BTreeMap<String, Offered>,
    /// Those that left: one that comes back does so with the definition it had, or not at all.
    gone: BTreeMap<String, Offered>,
    /// The manifest's order; without a manifest the order is the names'.
    closed: Option<Vec<String>>,
    /// Most tools on offer.
    limit: Option<u64>,
    /// Tools that would have joined past it and were not told yet, each with its server.
    kept_out: BTreeMap<String, String>,
    names: FunctionNames,
}

impl Offer {
    /// The first offer: all tools, or those that a manifest allows, in its order.
    pub fn new(tools: &[ToolDefinition], closed: Option<Vec<String>>) -> Self {
        let mut offer = Self { closed, ..Self::default() };
        offer.names.assign(RESULT_TOOL);
        for definition in tools {
            offer.join(definition);
        }
        for name in offer.order() {
            offer.names.assign(&name);
        }
        offer
    }

    /// The same, and no tool joins past so many.
    #[must_use]
    pub fn limited(self, limit: Option<u64>) -> Self {
        Self { limit, ..self }
    }

    /// The tools that were kept out since this was last asked, each with its server.
    pub fn kept_out(&mut self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.kept_out)
    }

    /// The digest of a tool's definition, on offer or gone.
    pub fn digest(&self, name: &str) -> Option<&str> {
        self.tools.get(name).or_else(|| self.gone.get(name)).map(|tool| tool.digest.as_str())
    }

    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| u64::try_from(self.tools.len()).unwrap_or(u64::MAX) >= limit)
    }

    fn join(&mut self, definition: &ToolDefinition) {
        let name = definition.full_name();
        if self.closed.as_ref().is_none_or(|closed| closed.contains(&name)) {
            self.tools.entry(name).or_insert_with(|| Offered {
                definition: Arc::new(definition.clone()),
                digest: definition_digest(definition),
                check: None,
            });
        }
    }

    /// Applies a change: new tools join only where no manifest closes the set, vanished ones leave, and a changed definition is not taken
    /// up. Returns the full names of tools whose definition is another one now, each with its server's.
    pub fn apply(&mut self, change: &Catalogue) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        for name in &change.removed {
            if let Some(tool) = self.tools.remove(name) {
                self.gone.insert(name.clone(), tool);
            }
        }
        for definition in change.tools.iter().chain(&change.changed) {
            let name = definition.full_name();
            let known = self.tools.get(&name).or_else(|| self.gone.get(&name));
            match known.map(|tool| tool.digest == definition_digest(definition)) {
                Some(true) => self.tools.extend(self.gone.remove_entry(&name)),
                Some(false) => changed.push((name, definition.server.clone())),
                None if self.closed.is_none() && self.is_full() => {
                    self.kept_out.insert(name, definition.server.clone());
                }
                None if self.closed.is_none() => {
                    self.join(definition);
                    self.names.assign(&name);
                }
                None => {}
            }
        }
        changed
    }

    fn order(&self) -> Vec<String> {
        match &self.closed {
            Some(closed) => closed.iter().filter(|name| self.tools.contains_key(*name)).cloned().collect(),
            None => self.tools.keys().cloned().collect(),
        }
    }

    /// The names on offer in their order, `mission_result` last.
    pub fn catalogue(&self) -> Vec<String> {
        let mut names = self.order();
        names.push(RESULT_TOOL.to_owned());
        names
    }

    /// The tool's full name for a name as a model spelt it: the full name, or the function's.
    pub fn resolve(&self, name: &str) -> Option<String> {
        let known = |name: &str| name == RESULT_TOOL || self.tools.contains_key(name);
        if known(name) {
            return Some(name.to_owned());
        }
        self.names.tool(name).filter(|tool| known(tool)).map(str::to_owned)
    }

    /// The tool of a full name.
    pub fn tool(&self, name: &str) -> Option<&Offered> {
        self.tools.get(name)
    }

    /// The function's name of a tool.
    pub fn function<'a>(&'a self, tool: &'a str) -> &'a str {
        self.names.function(tool).unwrap_or(tool)
    }

    /// What is wrong with arguments: `Err` when the tool's schema cannot be used at all.
    ///
    /// # Errors
    /// Why the tool cannot be used, and whether that was not known before.
    pub fn fault(&mut self, name: &str, arguments: &Value) -> Result<Option<String>, Unusable> {
        let Some(tool) = self.tools.get_mut(name) else { return Ok(None) };
        let is_news = tool.check.is_none();
        let schema = &tool.definition.input_schema;
        match tool.check.get_or_insert_with(|| compile(schema)) {
            Ok(compiled) => Ok(compiled.fault(arguments)),
            Err(problem) => Err(Unusable { problem: problem.clone(), server: tool.definition.server.clone(), is_news }),
        }
    }

    /// The arguments of a tool in one line.
    pub fn summary(&self, name: &str) -> String {
        self.tools.get(name).map_or_else(String::new, |tool| summary::arguments(&tool.definition.input_schema))
    }

    /// The tools on offer that need a person, in the catalogue's order.
    pub fn gated(&self, is_gated: impl Fn(&ToolDefinition) -> bool) -> Vec<String> {
        self.order().into_iter().filter(|name| self.tools.get(name).is_some_and(|tool| is_gated(&tool.definition))).collect()
    }

    /// The catalogue as the prompt shows it; `function_names` where the model calls functions.
    pub fn text(&self, function_names: bool, is_gated: impl Fn(&ToolDefinition) -> bool) -> String {
        let result_schema = mission_result::schema();
        let mut lines = Vec::new();
        for name in self.catalogue() {
            let (description, schema) = match self.tools.get(&name) {
                Some(tool) => (tool.definition.description.as_str(), &tool.definition.input_schema),
                None => (mission_result::DESCRIPTION, &result_schema),
            };
            let shown = if function_names { self.function(&name) } else { &name };
            let gated = self.tools.get(&name).is_some_and(|tool| is_gated(&tool.definition));
            let marker = if gated { NEEDS_APPROVAL } else { "" };
            lines.push(format!("- {shown}{marker}: {description}"));
            let summary = summary::arguments(schema);
            if !summary.is_empty() {
                lines.push(format!("    arguments: {summary}"));
            }
        }
        if lines.is_empty() { NO_TOOLS.to_owned() } else { lines.join("\n") }
    }

    /// The functions of the `native` protocol, in the catalogue's order, the answer last.
    pub fn functions(&self) -> Vec<FunctionDeclaration> {
        let mut functions: Vec<FunctionDeclaration> = self
            .catalogue()
            .into_iter()
            .map(|name| match self.tools.get(&name) {
                Some(tool) => FunctionDeclaration {
                    name: self.function(&name).to_owned(),
                    description: tool.definition.description.clone(),
                    parameters: parameters(&tool.definition.input_schema),
                },
                None => FunctionDeclaration {
                    name: RESULT_TOOL.to_owned(),
                    description: mission_result::DESCRIPTION.to_owned(),
                    parameters: mission_result::schema(),
                },
            })
            .collect();
        functions.push(answer_function());
        functions
    }
}

/// Behind the name of a tool that needs a person.
const NEEDS_APPROVAL: &str = " (needs a person's approval)";

/// The function with which a native run is finished.
pub fn answer_function() -> FunctionDeclaration {
    FunctionDeclaration {
        name: ANSWER_FUNCTION.to_owned(),
        description: "Finish: give your whole answer. Call it alone.".to_owned(),
        parameters: answer_schema(),
    }
}

/// The schema of the answer function's arguments.
pub fn answer_schema() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
}

fn parameters(schema: &Value) -> Value {
    if schema.is_object() { schema.clone() } else { json!({"type": "object", "properties": {}}) }
}
