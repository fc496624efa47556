//! A server's tools: page by page to the last, with bounds, one definition at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mission_contract::log::ToolDefinition;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exchange::Message;
use super::result::{error_in_words, quoted};
use super::session::Session;
use super::text::decoded;
use crate::limits;
use crate::tools::definition::{self, Accepted};

/// A server's list.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// What can be used, by name.
    pub(crate) tools: Vec<ToolDefinition>,
    /// What is to be told: code and words.
    pub(crate) notices: Vec<(&'static str, String)>,
}

/// JSON-RPC: the method is not there.
const METHOD_NOT_FOUND: &str = "-32601";
/// JSON-RPC: the parameters are wrong; for a list, the cursor.
const INVALID_PARAMS: &str = "-32602";

/// Lists a server's tools, all pages within this time.
///
/// # Errors
/// Why there is no list: the second half of a sentence about the server.
pub(crate) async fn list(server: &str, session: &Session, within: Duration) -> Result<Listing, String> {
    let listed = tokio::time::timeout(within, async {
        let mut restarted = false;
        let mut pages = Pages::default();
        loop {
            let message = session.list_page(pages.cursor(), within).await?;
            match pages.take(server, &message) {
                Ok(true) => return Ok(pages.listing()),
                Ok(false) => {}
                Err(Trouble::NoTools) if !session.handshake.declares_tools => return Ok(Listing::default()),
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
    listed.await.unwrap_or_else(|_| Err(format!("did not list its tools within {:.1} s", within.as_secs_f64())))
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
    entries: u64,
    /// By name: the definition, and its bytes.
    tools: BTreeMap<String, (ToolDefinition, String)>,
    notices: Vec<(&'static str, String)>,
}

impl Pages {
    /// The cursor of the next page.
    fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    /// Takes one page. True when it was the last.
    fn take(&mut self, server: &str, message: &Message) -> Result<bool, Trouble> {
        #[derive(Deserialize)]
        struct Page<'a> {
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
        let Some(tools) = page.tools else { return because("answers tools/list with something that has no tools") };
        self.read = self.read.saturating_add(1);
        self.entries = self.entries.saturating_add(u64::try_from(tools.len()).unwrap_or(u64::MAX));
        if self.entries > limits::MCP_TOOLS {
            return Err(Trouble::Because(format!("lists more than {} tools, which are allowed", limits::MCP_TOOLS)));
        }
        for raw in tools {
            self.definition(server, raw.get());
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

    fn definition(&mut self, server: &str, raw: &str) {
        let Accepted { definition, repaired } = match definition::read(server, raw) {
            Ok(accepted) => accepted,
            Err(reason) => return self.notices.push(("tool_refused", reason)),
        };
        if let Some((_, first)) = self.tools.get(&definition.name) {
            // Pages are no snapshot: the same definition may stand on two of them.
            if first != raw {
                self.notices.push((
                    "tool_refused",
                    format!("The tool `{}` is defined twice; the second definition is refused.", definition.name),
                ));
            }
            return;
        }
        self.notices.extend(repaired.map(|words| ("tool_repaired", words)));
        self.tools.insert(definition.name.clone(), (definition, raw.to_owned()));
    }

    fn listing(self) -> Listing {
        Listing { tools: self.tools.into_values().map(|(definition, _)| definition).collect(), notices: self.notices }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
