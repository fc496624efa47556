//! The tools of a skill as they were when somebody looked at them, and what differs now.

use std::collections::BTreeMap;

use mission_contract::event::SkillRef;
use mission_contract::lock::{LOCK_FORMAT, Lock, PinnedServer, PinnedTool, set_digest};
use mission_contract::log::{ServerState, ToolDefinition};

use super::error::SkillError;

/// The file's name, beside the manifest.
pub const LOCK_FILE: &str = "mission.lock";

/// Writes down the tools that a skill allows, as they are defined.
pub fn pin(skill: SkillRef, allowed: &[String], tools: &[ToolDefinition], servers: &[ServerState]) -> Lock {
    let defined = |name: &String| tools.iter().find(|tool| tool.full_name() == *name);
    let pinned: Vec<&ToolDefinition> = allowed.iter().filter_map(defined).collect();
    let mut used: Vec<PinnedServer> = servers
        .iter()
        .filter(|server| pinned.iter().any(|tool| tool.server == server.name))
        .map(|server| PinnedServer { name: server.name.clone(), implementation: server.implementation.clone() })
        .collect();
    used.sort_by(|left, right| left.name.cmp(&right.name));
    let tools: Vec<PinnedTool> = pinned.into_iter().map(PinnedTool::of).collect();
    let set = set_digest(&tools);
    Lock { format: LOCK_FORMAT, skill, servers: used, tools, set }
}

/// A lock as its file holds it.
pub fn write(lock: &Lock) -> String {
    let mut text = serde_json::to_string_pretty(lock).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads a lock.
///
/// # Errors
/// Why it is none, as the second half of a sentence about the file.
pub fn read(bytes: &[u8]) -> Result<Lock, String> {
    const AGAIN: &str = "write it again with mission lock";
    let lock: Lock = serde_json::from_slice(bytes).map_err(|error| format!("it is no lock ({error}); {AGAIN}"))?;
    if lock.format != LOCK_FORMAT {
        return Err(format!("its form has the number {}, and this build knows {LOCK_FORMAT}; {AGAIN}", lock.format));
    }
    if set_digest(&lock.tools) != lock.set {
        return Err(format!("its set has another digest than its tools: it was changed by hand; {AGAIN}"));
    }
    Ok(lock)
}

/// Holds the tools to a lock. `allowed` are those that the skill allows now, where that is known.
///
/// # Errors
/// Every tool that changed, was renamed, joined or is gone, and every server that is another one.
pub fn hold(
    lock: &Lock,
    skill: &SkillRef,
    allowed: Option<&[String]>,
    tools: &[ToolDefinition],
    servers: &[ServerState],
) -> Result<(), SkillError> {
    let mut drift = Vec::new();
    if lock.skill.digest != skill.digest {
        let (pinned, now) = (&lock.skill.digest, &skill.digest);
        drift.push(format!("its manifest has the digest {now}, and the lock is for {pinned}"));
    }
    let now: BTreeMap<String, PinnedTool> = tools.iter().map(|tool| (tool.full_name(), PinnedTool::of(tool))).collect();
    let is_pinned = |name: &str| lock.tools.iter().any(|tool| tool.name == name);
    for pinned in &lock.tools {
        match now.get(&pinned.name) {
            Some(tool) if tool.digest == pinned.digest => {}
            Some(tool) => drift.push(format!("{} changed: {}", pinned.name, parts(pinned, tool))),
            None => match now.values().find(|tool| !is_pinned(&tool.name) && is_same_but_for_its_name(pinned, tool)) {
                Some(tool) => drift.push(format!("{} was renamed to {}", pinned.name, tool.name)),
                None => drift.push(format!("{} is gone", pinned.name)),
            },
        }
    }
    let added = allowed.into_iter().flatten().filter(|name| !is_pinned(name) && now.contains_key(*name));
    drift.extend(added.map(|name| format!("{name} was added")));
    for pinned in &lock.servers {
        let Some(server) = servers.iter().find(|server| server.name == pinned.name) else { continue };
        if server.implementation != pinned.implementation {
            let said = |words: &Option<String>| words.clone().unwrap_or_else(|| "nothing".to_owned());
            let (before, after) = (said(&pinned.implementation), said(&server.implementation));
            drift.push(format!("the server {} says that it is {after}, and said {before}", pinned.name));
        }
    }
    if drift.is_empty() { Ok(()) } else { Err(SkillError::Drift { skill: skill.name.clone(), drift }) }
}

/// What of a definition is another.
fn parts(before: &PinnedTool, after: &PinnedTool) -> String {
    let parts = [
        ("its description", before.description != after.description),
        ("the schema of its arguments", before.input_schema != after.input_schema),
        ("the schema of its result", before.output_schema != after.output_schema),
        ("its annotations", before.annotations != after.annotations),
    ];
    parts.into_iter().filter_map(|(part, changed)| changed.then_some(part)).collect::<Vec<_>>().join(", ")
}

fn is_same_but_for_its_name(before: &PinnedTool, after: &PinnedTool) -> bool {
    let server = |tool: &PinnedTool| tool.name.split_once('.').map(|(server, _)| server.to_owned());
    server(before) == server(after) && parts(before, after).is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        let input_schema = json!({"type": "object", "properties": {name: {}}});
        ToolDefinition {
            server: "mcp".into(),
            name: name.into(),
            description: description.into(),
            input_schema,
            ..ToolDefinition::default()
        }
    }

    fn skill() -> SkillRef {
        SkillRef { name: "lamps".into(), digest: "d1".into() }
    }

    fn server(implementation: &str) -> Vec<ServerState> {
        vec![ServerState { name: "mcp".into(), implementation: Some(implementation.into()), ..ServerState::default() }]
    }

    fn pinned() -> Lock {
        let tools = [tool("add", "Adds."), tool("look", "Looks."), tool("weigh", "Weighs."), tool("other", "")];
        pin(skill(), &["mcp.look".into(), "mcp.add".into(), "mcp.weigh".into()], &tools, &server("lamps 1.0"))
    }

    #[test]
    fn a_lock_that_is_written_is_read_and_one_that_was_changed_is_not() {
        let lock = pinned();
        let text = write(&lock);
        assert_eq!(read(text.as_bytes()).unwrap(), lock);
        let names: Vec<&str> = lock.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names, lock.servers.len()), (vec!["mcp.look", "mcp.add", "mcp.weigh"], 1));
        let changed = text.replace(&lock.tools[0].digest, &lock.tools[1].digest);
        insta::assert_snapshot!(read(changed.as_bytes()).unwrap_err(), @"its set has another digest than its tools: it was changed by hand; write it again with mission lock");
        insta::assert_snapshot!(read(text.replace("\"format\": 1", "\"format\": 2").as_bytes()).unwrap_err(), @"its form has the number 2, and this build knows 1; write it again with mission lock");
        insta::assert_snapshot!(read(text.replace("\"set\"", "\"sets\"").as_bytes()).unwrap_err(), @"it is no lock (unknown field `sets`, expected one of `format`, `skill`, `servers`, `tools`, `set` at line 39 column 8); write it again with mission lock");
    }

    #[test]
    fn every_tool_that_drifted_is_named() {
        let lock = pinned();
        let same = [tool("add", "Adds."), tool("look", "Looks."), tool("weigh", "Weighs.")];
        hold(&lock, &skill(), Some(&["mcp.add".into()]), &same, &server("lamps 1.0")).unwrap();
        let renamed = ToolDefinition { name: "peek".into(), ..tool("look", "Looks.") };
        let changed = ToolDefinition { annotations: Some(json!({"readOnlyHint": true})), ..tool("add", "Adds two.") };
        let now = [changed, renamed, tool("new", "")];
        let allowed = ["mcp.add".to_owned(), "mcp.new".to_owned()];
        let another = SkillRef { digest: "d2".into(), ..skill() };
        let refusal = hold(&lock, &another, Some(&allowed), &now, &server("lamps 2.0")).unwrap_err();
        insta::assert_snapshot!(refusal, @"the skill lamps is locked, and its manifest has the digest d2, and the lock is for d1; mcp.look was renamed to mcp.peek; mcp.add changed: its description, its annotations; mcp.weigh is gone; mcp.new was added; the server mcp says that it is lamps 2.0, and said lamps 1.0; look at what differs, then write the lock again with mission lock");
    }
}
