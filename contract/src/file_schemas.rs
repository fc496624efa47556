//! JSON Schemas of the files that people write: the front matter of a skill, a personality, earlier turns.
//!
//! The program reads these files by hand, to say line and column. What one of these schemas refuses the program refuses as well.

use serde_json::{Value, json};

/// The dialect that every schema names.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The front matter of a `SKILL.md`, as JSON. Each key may stand below `skill` as well, where it comes before one outside.
pub(crate) fn skill() -> Value {
    let words = json!({ "type": "string", "pattern": "\\S" });
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    let texts = json!({ "type": "array", "items": words });
    let count = json!({ "type": "integer", "minimum": 0 });
    let grounding = json!({
        "type": "object",
        "description": "How an answer has to be held against what the tools returned.",
        "properties": {
            "identifier_pattern": { "type": "string", "format": "regex", "description": "What an identifier looks like: group 1, else the whole match." },
            "number_pattern": { "type": "string", "format": "regex", "description": "What a figure looks like." },
            "ignore": texts,
            "max_repairs": count,
            "must_cite": {
                "description": "What an answer has to hold: something of every check, of these, or so much of these.",
                "oneOf": [{ "const": true }, { "type": "array", "items": words, "minItems": 1 }, { "type": "object", "additionalProperties": count, "minProperties": 1 }],
            },
            "claim_table": { "type": "boolean" },
            "reading": { "type": "boolean", "description": "Needs `claim_table: true`." },
            "critic": { "type": "boolean" },
            "planes": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": { "tools": { "type": "array", "items": words, "minItems": 1 }, "claims": { "type": "array", "items": words, "minItems": 1 } },
                    "required": ["tools", "claims"],
                    "additionalProperties": false,
                },
            },
            "figures_from": { "type": "array", "items": words, "description": "Tools whose results ground a figure. Needs `number_pattern`." },
        },
        "additionalProperties": false,
    });
    let fields = json!({
        "name": { "type": ["string", "number", "boolean"], "description": "The skill's name, unless `skill_id` gives one." },
        "skill_id": { "type": ["string", "number", "boolean"], "description": "The skill's name." },
        "version": scalar,
        "description": { "type": ["string", "number", "boolean"], "description": "What it is for; the model reads it." },
        "allowed_tools": { "type": "array", "items": scalar, "minItems": 1, "description": "The tools, in the order in which they are offered; `?` behind one that the skill does without." },
        "allowed-tools": { "type": ["string", "array"], "description": "The same in the public form: a list, or a text with blanks between the names." },
        "grounding": grounding,
        "sdk_import": { "type": "string", "description": "The module by which code reaches the tools in a staged run." },
        "sandbox": { "type": "string", "pattern": "^\\s*(?:[Bb][Ww][Rr][Aa][Pp]|[Nn][Oo][Nn][Ee])\\s*$", "description": "`bwrap` where code tools are allowed, or `none`." },
        "license": scalar,
        "compatibility": scalar,
        "metadata": { "type": "object", "additionalProperties": scalar },
        "when_to_use": true,
        "inputs": true,
        "retrieval_strategy": true,
        "ranking": true,
        "policy": true,
        "evidence_requirements": true,
        "output_format": { "description": "What an answer looks like; the last part of the prompt." },
    });
    let mut properties = fields.clone();
    if let Value::Object(properties) = &mut properties {
        properties.insert("skill".into(), json!({ "type": "object", "properties": fields, "not": { "required": ["skill"] } }));
    }
    json!({
        "$schema": DIALECT,
        "title": "skill",
        "description": "The front matter of a skill's manifest. A key that is not listed is shown to the model as it is.",
        "type": "object",
        "properties": properties,
        "not": { "required": ["allowed_tools", "allowed-tools"] },
    })
}

/// A personality file, as JSON.
pub(crate) fn personality() -> Value {
    json!({
        "$schema": DIALECT,
        "title": "personality",
        "description": "Who the model is: a file of TOML, JSON or YAML.",
        "type": "object",
        "properties": {
            "name": { "type": "string", "pattern": "\\S" },
            "system_message": { "type": "string", "pattern": "\\S", "description": "Stands at the beginning of the prompt." },
            "examples": { "type": "array", "items": { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }, "description": "Read and not used by a mission." },
            "text_color": { "type": "string", "description": "Read and not used." },
            "env_path": { "type": "string", "description": "A file of variables, or a folder that holds `.elf_env`; they come before those of the environment." },
            "rag_enhancement_style": { "type": "string", "description": "Read and not used." },
            "default_provider": { "type": "string", "description": "Who answers, unless `--provider` says so." },
            "default_model": { "type": "string", "description": "The model of that provider, unless `--model` names one." },
        },
        "required": ["name", "system_message"],
        "additionalProperties": false,
    })
}

/// Earlier turns of a conversation.
pub(crate) fn history() -> Value {
    json!({
        "$schema": DIALECT,
        "title": "history",
        "description": "Earlier turns that a conversation is seeded with, oldest first.",
        "type": "array",
        "maxItems": 100,
        "items": {
            "type": "object",
            "properties": { "role": { "type": "string", "enum": ["user", "assistant"] }, "content": { "type": "string" } },
            "required": ["role", "content"],
        },
    })
}
