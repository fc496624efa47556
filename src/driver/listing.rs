//! What a new list of the servers' tools changes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mission_contract::digest::definition_digest;
use mission_contract::log::{Catalogue, Entry, ServerCondition, ServerState, ToolDefinition};

use super::Driver;
use crate::engine::run::FoldError;
use crate::limits::LISTING_SECONDS;
use crate::tools::Discovery;

/// The tools that the journal knows: full name → its definition's digest.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<String, (String, String)>);

impl Known {
    /// Those of the first list.
    pub fn of(tools: &[ToolDefinition]) -> Self {
        Self(tools.iter().map(|tool| (tool.full_name(), (tool.server.clone(), definition_digest(tool)))).collect())
    }

    /// Takes up what the log says of them.
    pub fn note(&mut self, catalogue: &Catalogue) {
        self.0.extend(Self::of(&catalogue.tools).0);
        self.0.extend(Self::of(&catalogue.changed).0);
        for name in &catalogue.removed {
            self.0.remove(name);
        }
    }

    /// The catalogue's change, and whether there is one. The tools of a server that cannot be reached now stay.
    pub fn compare(&mut self, servers: Vec<ServerState>, tools: Vec<ToolDefinition>) -> (Catalogue, bool) {
        let mut catalogue = Catalogue { servers, ..Catalogue::default() };
        let failed: Vec<&str> = catalogue
            .servers
            .iter()
            .filter(|server| server.state == ServerCondition::Failed)
            .map(|server| server.name.as_str())
            .collect();
        let mut now = Self::of(&tools).0;
        for (name, (server, digest)) in &self.0 {
            if !now.contains_key(name) {
                if failed.contains(&server.as_str()) {
                    now.insert(name.clone(), (server.clone(), digest.clone()));
                } else {
                    catalogue.removed.push(name.clone());
                }
            }
        }
        for tool in tools {
            let name = tool.full_name();
            match (self.0.get(&name), now.get(&name)) {
                (None, _) => catalogue.tools.push(tool),
                (Some(old), Some(new)) if old.1 != new.1 => catalogue.changed.push(tool),
                _ => {}
            }
        }
        let differs = !(catalogue.tools.is_empty() && catalogue.changed.is_empty() && catalogue.removed.is_empty());
        self.0 = now;
        (catalogue, differs)
    }
}

impl Driver {
    pub(super) fn list(&mut self) {
        self.list_stale = self.listing.is_some();
        let list = self.tools.list().map(Some).boxed();
        self.begin_listing(list);
    }

    pub(super) fn begin_listing(&mut self, list: BoxFuture<'static, Option<Discovery>>) {
        if self.listing.is_none() {
            let list = tokio::time::timeout(Duration::from_secs(LISTING_SECONDS), list);
            self.listing = Some(async move { list.await.ok().flatten() }.boxed());
        }
    }

    pub(super) fn listed(&mut self, discovery: Option<Discovery>) -> Result<(), FoldError> {
        self.listing = None;
        if self.list_stale {
            self.list();
            if discovery.is_none() {
                // What the engine may wait for is what is listed now.
                return Ok(());
            }
        }
        let wanted = std::mem::take(&mut self.list_wanted);
        let Some(discovery) = discovery else {
            if wanted {
                return self.input(Entry::Catalogue(Catalogue::default()));
            }
            return Ok(());
        };
        for observed in discovery.observed {
            self.input(Entry::Observed(observed))?;
        }
        let known = self.known.get_or_insert_with(|| match self.first.take().as_deref() {
            Some(Entry::Catalogue(first)) => Known::of(&first.tools),
            _ => Known::default(),
        });
        let (catalogue, differs) = known.compare(discovery.servers, discovery.tools);
        if differs || wanted { self.input(Entry::Catalogue(catalogue)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        let (server, name, description) = ("mcp".to_owned(), name.to_owned(), description.to_owned());
        ToolDefinition { server, name, description, input_schema: json!({"type": "object"}), ..ToolDefinition::default() }
    }

    #[test]
    fn what_joined_changed_and_left_is_told_once() {
        let mut known = Known::of(&[tool("a", ""), tool("b", ""), tool("c", "")]);
        let (catalogue, differs) = known.compare(Vec::new(), vec![tool("a", ""), tool("b", "new"), tool("d", "")]);
        assert!(differs);
        let names = |tools: &[ToolDefinition]| tools.iter().map(ToolDefinition::full_name).collect::<Vec<_>>();
        assert_eq!(names(&catalogue.tools), ["mcp.d"]);
        assert_eq!(names(&catalogue.changed), ["mcp.b"]);
        assert_eq!(catalogue.removed, ["mcp.c"]);
        assert!(!known.compare(Vec::new(), vec![tool("a", ""), tool("b", "new"), tool("d", "")]).1);
    }

    #[test]
    fn a_server_that_is_away_keeps_its_tools() {
        let mut known = Known::of(&[tool("a", "")]);
        let away = ServerState { name: "mcp".to_owned(), state: ServerCondition::Failed, ..ServerState::default() };
        assert!(!known.compare(vec![away], Vec::new()).1);
    }
}
