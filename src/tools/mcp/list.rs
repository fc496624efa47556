//! A server's tools: page by page to the last, with bounds, one definition at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mission_contract::log::ToolDefinition;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exchange::Message;
use super::mirror;
use super::result::{error_in_words, quoted, result_type};
use super::session::Session;
use super::text::decoded;
use crate::limits;
use crate::tools::definition::{self, Accepted};

/// A server's list.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// What can be used, by name.
    pub(crate) tools: Arc<Vec<ToolDefinition>>,
    /// Its definitions as the server sent them.
    pub(crate) raw: Vec<String>,
    /// What is to be told: code and words.
    pub(crate) notices: Vec<(&'static str, String)>,
}

/// JSON-RPC: the method is not there.
const METHOD_NOT_FOUND: &str = "-32601";
/// JSON-RPC: the parameters are wrong; for a list, the cursor.
const INVALID_PARAMS: &str = "-32602";

/// Lists a server's tools, all pages within this time. Nothing when the list is, byte for byte, the `known` one.
///
/// # Errors
/// Why there is no list: the second half of a sentence about the server.
pub(crate) async fn list(
    server: &str,
    session: &Session,
    within: Duration,
    known: Option<&[String]>,
) -> Result<Option<Listing>, String> {
    let listed = tokio::time::timeout(within, async {
        let mut restarted = false;
        let mut pages = Pages::default();
        loop {
            let message = session.list_page(pages.cursor.clone(), within).await?;
            match pages.take(&message) {
                Ok(true) => return Ok(pages.raw),
                Ok(false) => {}
                Err(Trouble::NoTools) if !session.agreement.declares_tools => return Ok(Vec::new()),
                Err(Trouble::NoTools) => return Err("says that it has tools, and does not list them".to_owned()),
                // The list changed between two pages: it is begun again, once.
                Err(Trouble::StaleCursor(_)) if !restarted => {
                    restarted = true;
                    pages = Pages::default();
                }
                Err(Trouble::StaleCursor(why) | Trouble::Because(why)) => return Err(why),
            }
        }
    });
    let raw = listed.await.unwrap_or_else(|_| Err(format!("did not list its tools within {:.1} s", within.as_secs_f64())))?;
    if known.is_some_and(|known| known == raw) {
        return Ok(None);
    }
    Ok(Some(definitions(server, raw, session.has_headers())))
}

#[derive(Debug, PartialEq)]
enum Trouble {
    NoTools,
    StaleCursor(String),
    Because(String),
}

/// The pages read so far.
#[derive(Debug, Default)]
struct Pages {
    read: u64,
    cursor: Option<String>,
    cursors: BTreeSet<String>,
    bytes: u64,
    raw: Vec<String>,
}

impl Pages {
    /// Takes one page. True when it was the last.
    fn take(&mut self, message: &Message) -> Result<bool, Trouble> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow, rename = "resultType")]
            kind: Option<&'a RawValue>,
            #[serde(borrow)]
            tools: Option<Vec<&'a RawValue>>,
            #[serde(borrow, rename = "nextCursor")]
            next: Option<&'a RawValue>,
        }
        if let Some(error) = message.error() {
            return Err(self.refused(&String::from_utf8_lossy(error)));
        }
        let because = |why: &str| Err(Trouble::Because(why.to_owned()));
        let result = String::from_utf8_lossy(message.result().unwrap_or_default());
        // A list would be taken for the members in their order.
        if !result.starts_with('{') {
            return because("answers tools/list with something that is no object");
        }
        let page: Page<'_> = serde_json::from_str(&result)
            .map_err(|error| Trouble::Because(format!("answers tools/list with something that is no list of tools: {error}")))?;
        let kind = page.kind.and_then(|kind| serde_json::from_str(kind.get()).ok());
        if let Err(kind) = result_type(kind.as_ref()) {
            return Err(Trouble::Because(format!("answers tools/list with a result of the type {kind}, which is not known")));
        }
        let Some(tools) = page.tools else { return because("answers tools/list with something that has no tools") };
        self.read = self.read.saturating_add(1);
        for raw in tools {
            self.bytes = self.bytes.saturating_add(u64::try_from(raw.get().len()).unwrap_or(u64::MAX));
            self.raw.push(raw.get().to_owned());
        }
        if u64::try_from(self.raw.len()).unwrap_or(u64::MAX) > limits::MCP_TOOLS {
            return Err(Trouble::Because(format!("lists more than {} tools, which are allowed", limits::MCP_TOOLS)));
        }
        if self.bytes > limits::MCP_LIST_BYTES {
            return Err(Trouble::Because(format!(
                "lists more than {} bytes of tools, which are allowed",
                limits::MCP_LIST_BYTES
            )));
        }
        let Some(next) = page.next else { return Ok(true) };
        let Some(next) = decoded(next.get()) else {
            return because("names a next page in its list by something that is no text");
        };
        if !self.cursors.insert(next.clone()) {
            return Err(Trouble::Because(format!(
                "names the page {:?} of its list twice: the list would have no end",
                quoted(&next)
            )));
        }
        if self.read >= limits::MCP_LIST_PAGES {
            return Err(Trouble::Because(format!(
                "has more than {} pages in its list of tools, which are allowed",
                limits::MCP_LIST_PAGES
            )));
        }
        self.cursor = Some(next);
        Ok(false)
    }

    fn refused(&self, error: &str) -> Trouble {
        #[derive(Deserialize)]
        struct Code<'a> {
            #[serde(borrow)]
            code: Option<&'a RawValue>,
        }
        let code = serde_json::from_str::<Code<'_>>(error).ok().and_then(|error| Some(error.code?.get()));
        let words = format!("answers tools/list with {}", error_in_words(error));
        match code {
            Some(METHOD_NOT_FOUND) => Trouble::NoTools,
            Some(INVALID_PARAMS) if self.cursor.is_some() => Trouble::StaleCursor(words),
            _ => Trouble::Because(words),
        }
    }
}

/// The definitions among these bytes, each checked alone. `has_headers` when arguments may travel as headers of HTTP.
fn definitions(server: &str, raw: Vec<String>, has_headers: bool) -> Listing {
    let mut notices = Vec::new();
    let mut tools: BTreeMap<String, (ToolDefinition, &str)> = BTreeMap::new();
    let mut ambiguous: BTreeSet<String> = BTreeSet::new();
    for raw in &raw {
        let accepted = definition::read(server, raw).and_then(|accepted| {
            if has_headers && let Err(reason) = mirror::read(&accepted.definition.input_schema) {
                return Err(format!("The tool `{}` is refused: its inputSchema {reason}.", accepted.definition.name));
            }
            Ok(accepted)
        });
        let Accepted { definition, repaired } = match accepted {
            Ok(accepted) => accepted,
            Err(reason) => {
                notices.push(("tool_refused", reason));
                continue;
            }
        };
        if ambiguous.contains(&definition.name) {
            continue;
        }
        if let Some((_, first)) = tools.get(&definition.name) {
            // Pages are no snapshot: the same definition may stand on two of them. Which of two others is meant is not for us to say.
            if first != raw {
                notices.push((
                    "tool_refused",
                    format!("The tool `{}` is refused: it is defined twice, and not in the same way.", definition.name),
                ));
                tools.remove(&definition.name);
                ambiguous.insert(definition.name);
            }
            continue;
        }
        notices.extend(repaired.into_iter().map(|words| ("tool_repaired", words)));
        if definition.description.is_empty() {
            let words =
                format!("The tool `{}` has no description; the model is told its name and its arguments alone.", definition.name);
            notices.push(("tool_undescribed", words));
        }
        tools.insert(definition.name.clone(), (definition, raw));
    }
    let tools = Arc::new(tools.into_values().map(|(definition, _)| definition).collect());
    Listing { tools, raw, notices }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
