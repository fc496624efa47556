//! The three files, line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::recording::RecordingError;
use super::EVENTS_FILE;
use crate::limits::{RECORDING_BYTES, RECORDING_LINE_BYTES};
use crate::sys::files::open_regular;

const MODEL_FILE: &str = "model.jsonl";
const TOOLS_FILE: &str = "tools.jsonl";

/// What the files hold.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) events: Vec<EventLine>,
    pub(super) model: Vec<ModelLine>,
    /// Every tool that was ever described; the last description of one is the last of its name.
    pub(super) catalogue: Vec<Described>,
    pub(super) calls: Vec<CallLine>,
}

/// A record, and where it stands.
#[derive(Debug)]
pub(super) struct EventLine {
    /// The line, from 1.
    pub(super) line: u64,
    pub(super) seq: u64,
    pub(super) raw: Box<RawValue>,
    pub(super) record: Map<String, Value>,
}

impl EventLine {
    pub(super) fn is(&self, event: &str) -> bool {
        self.record.get("event").is_some_and(|name| name == event)
    }
}

/// A question to the model, and its reply.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a question to the model and its reply")]
pub(super) struct ModelLine {
    pub(super) kind: String,
    #[serde(default)]
    pub(super) request: ModelRequest,
    pub(super) reply: ModelReply,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "a request")]
pub(super) struct ModelRequest {
    #[serde(default)]
    pub(super) messages: Vec<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a reply")]
pub(super) struct ModelReply {
    #[serde(default)]
    pub(super) content: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Vec<ModelCall>,
    #[serde(default)]
    pub(super) usage: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a call in a reply")]
pub(super) struct ModelCall {
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Option<Value>,
    /// The provider's own text, where that was no object.
    #[serde(default)]
    pub(super) arguments_raw: Option<String>,
    #[serde(default)]
    pub(super) extra: Option<Value>,
}

/// A tool as the harness described it.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a tool's description")]
pub(super) struct Described {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) input_schema: Value,
}

/// A call.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a call")]
pub(super) struct CallLine {
    pub(super) tool: String,
    #[serde(default)]
    arguments: CallArguments,
    #[serde(default)]
    pub(super) result: Option<ToolResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "a call's arguments")]
struct CallArguments {
    #[serde(default)]
    args: Vec<Value>,
    #[serde(default)]
    kwargs: Map<String, Value>,
    #[serde(default)]
    action: Option<Value>,
}

impl CallLine {
    /// The arguments as the model gave them.
    pub(super) fn arguments(&self) -> Map<String, Value> {
        let mut arguments = self.arguments.kwargs.clone();
        if let Some(action) = self.arguments.action.clone().filter(|action| !action.is_null()) {
            arguments.insert("action".to_owned(), action);
        }
        if !self.arguments.args.is_empty() {
            arguments.insert("args".to_owned(), Value::Array(self.arguments.args.clone()));
        }
        arguments
    }
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a call's result")]
pub(super) struct ToolResult {
    pub(super) exit_code: i64,
    #[serde(default)]
    pub(super) stdout: String,
    #[serde(default)]
    pub(super) stderr: String,
    #[serde(default)]
    pub(super) structured: Option<Value>,
}

impl Files {
    /// Reads them.
    ///
    /// # Errors
    /// A file that is missing, too large, or has something wrong in a line.
    pub(super) fn read(folder: &Path) -> Result<Self, RecordingError> {
        let mut files = Self::default();
        each_line(folder, EVENTS_FILE, |line, bytes| files.event(line, bytes))?;
        each_line(folder, MODEL_FILE, |_, bytes| files.said(bytes))?;
        each_line(folder, TOOLS_FILE, |_, bytes| files.tool(bytes))?;
        Ok(files)
    }

    pub(super) fn event(&mut self, line: u64, bytes: &[u8]) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Envelope {
            seq: u64,
            record: Box<RawValue>,
        }
        let Envelope { seq, record: raw } = parsed(bytes)?;
        let record: Map<String, Value> =
            parsed(raw.get().as_bytes()).map_err(|problem| format!("its record is no object: {problem}"))?;
        if !record.get("event").is_some_and(Value::is_string) {
            return Err("its record does not say which `event` it is".to_owned());
        }
        self.events.push(EventLine { line, seq, raw, record });
        Ok(())
    }

    pub(super) fn said(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.model.push(parsed(bytes)?);
        Ok(())
    }

    pub(super) fn tool(&mut self, bytes: &[u8]) -> Result<(), String> {
        #[derive(Deserialize)]
        struct List {
            catalogue: Vec<Described>,
        }
        let line: Map<String, Value> = parsed(bytes)?;
        if line.contains_key("catalogue") {
            let List { catalogue } = parsed(bytes)?;
            self.catalogue.extend(catalogue);
        } else {
            self.calls.push(parsed(bytes)?);
        }
        Ok(())
    }
}

fn parsed<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| {
        // The reader's own words name a place in a line that is a file's to it.
        let words = error.to_string();
        let (words, _) = words.rsplit_once(" at line ").unwrap_or((&words, ""));
        format!("{words} (at byte {})", error.column())
    })
}

/// Hands over every line of a file. What stands behind the last line end, and is no line, was being written when the power went.
fn each_line(folder: &Path, name: &str, mut take: impl FnMut(u64, &[u8]) -> Result<(), String>) -> Result<(), RecordingError> {
    let path = folder.join(name);
    let shown = path.display().to_string();
    let unreadable = |error: &io::Error| {
        let fix = match error.kind() {
            io::ErrorKind::NotFound => "it is no whole recording of the harness before without that file",
            _ => "make it readable",
        };
        RecordingError::Unreadable(format!("{shown} cannot be read ({error}); {fix}"))
    };
    let file: File = open_regular(&path).map_err(|error| unreadable(&error))?;
    if file.metadata().map_err(|error| unreadable(&error))?.len() > RECORDING_BYTES {
        return Err(RecordingError::Unreadable(format!("{shown} is larger than {RECORDING_BYTES} bytes; no recording is")));
    }
    let mut reader = BufReader::new(file);
    let mut bytes = Vec::new();
    for line in 1_u64.. {
        bytes.clear();
        let bound = RECORDING_LINE_BYTES.saturating_add(1);
        reader.by_ref().take(bound).read_until(b'\n', &mut bytes).map_err(|error| unreadable(&error))?;
        let at = |problem: String| RecordingError::Line { file: shown.clone(), line, problem };
        let Some(whole) = bytes.strip_suffix(b"\n") else {
            if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > RECORDING_LINE_BYTES {
                return Err(at(format!("it is longer than {RECORDING_LINE_BYTES} bytes")));
            }
            if !bytes.is_empty() {
                drop(take(line, &bytes));
            }
            break;
        };
        if !whole.iter().all(u8::is_ascii_whitespace) {
            take(line, whole).map_err(at)?;
        }
    }
    Ok(())
}
