//! The digests of the log and the wire: SHA-256, as 64 lowercase hex digits.

use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::log::ToolDefinition;

/// A SHA-256 as 64 lowercase hex digits.
pub type Digest = String;

/// What stands before the first line of a log: 64 zeros.
pub const ZERO: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// SHA-256 of some bytes.
pub fn sha256_hex(bytes: &[u8]) -> Digest {
    hex(&Sha256::digest(bytes))
}

/// What an approval binds to and an intent carries: SHA-256 over the tool's full name, its definition's digest and the
/// canonical arguments, a newline between.
pub fn call_digest(tool: &str, definition_digest: &str, canonical_arguments: &str) -> Digest {
    joined(&[tool, definition_digest, canonical_arguments])
}

/// The idempotency key of a call: SHA-256 over run id, epoch and ordinal, a newline between.
pub fn key(run_id: &str, epoch: u64, ordinal: u64) -> Digest {
    joined(&[run_id, &epoch.to_string(), &ordinal.to_string()])
}

/// The approval that decides about an intent: `ap_` and the first 16 digits of the SHA-256 over run id, ordinal and the word
/// `approval`, a newline between. It is the same however often the run is taken up.
pub fn approval_id(run_id: &str, ordinal: u64) -> String {
    let digest = joined(&[run_id, &ordinal.to_string(), "approval"]);
    format!("ap_{}", digest.get(..16).unwrap_or_default())
}

/// The approval of a call that is proposed to a person: `ap_` and the first 16 digits of the SHA-256 over run id, how many were proposed
/// with it, and the word `gate`, a newline between.
pub fn gate_id(run_id: &str, ordinal: u64) -> String {
    let digest = joined(&[run_id, &ordinal.to_string(), "gate"]);
    format!("ap_{}", digest.get(..16).unwrap_or_default())
}

/// Digest of a tool's definition: SHA-256 over its canonical JSON (server, name, description, schemas, annotations).
pub fn definition_digest(definition: &ToolDefinition) -> Digest {
    let value = serde_json::to_value(definition).unwrap_or_default();
    sha256_hex(canonical::of_value(&value).as_bytes())
}

/// SHA-256 of a value's canonical JSON; of `null` where there is none.
pub fn value_digest(value: Option<&serde_json::Value>) -> Digest {
    sha256_hex(value.map_or_else(|| "null".to_owned(), canonical::of_value).as_bytes())
}

fn joined(parts: &[&str]) -> Digest {
    let mut hasher = Sha256::new();
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            hasher.update(b"\n");
        }
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(if half < 10 { b'0' | half } else { b'W'.saturating_add(half) });
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0x0f));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_published_one() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(ZERO.len(), sha256_hex(b"").len());
    }

    #[test]
    fn parts_are_joined_by_newlines() {
        assert_eq!(call_digest("mcp.stock", "d", "{}"), sha256_hex(b"mcp.stock\nd\n{}"));
        assert_eq!(key("run_1", 1, 2), sha256_hex(b"run_1\n1\n2"));
    }

    #[test]
    fn every_part_of_a_definition_counts() {
        let plain = ToolDefinition { server: "mcp".into(), name: "stock".into(), ..Default::default() };
        let described = ToolDefinition { description: "counts".into(), ..plain.clone() };
        let hinted = ToolDefinition { annotations: Some(serde_json::json!({"readOnlyHint": true})), ..plain.clone() };
        assert_ne!(definition_digest(&plain), definition_digest(&described));
        assert_ne!(definition_digest(&plain), definition_digest(&hinted));
    }
}
