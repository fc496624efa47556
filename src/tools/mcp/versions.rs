//! The revisions of the protocol that are spoken, in both eras. A server that names any other is let go. Pure.

/// The revisions with a handshake, oldest first.
pub(crate) const HANDSHAKE: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The revisions without one, oldest first: metadata on every request.
pub(crate) const STATELESS: &[&str] = &["2026-07-28"];

/// The first revision with a handshake whose requests repeat the version in a header.
const FIRST_WITH_HEADER: &str = "2025-06-18";

/// The newest revision without a handshake: the one that is asked for first.
pub(crate) fn newest_stateless() -> &'static str {
    STATELESS.last().copied().unwrap_or_default()
}

/// The newest revision with a handshake.
pub(crate) fn newest_handshake() -> &'static str {
    HANDSHAKE.last().copied().unwrap_or_default()
}

/// The newest of the known revisions that a server names.
pub(crate) fn newest_common(known: &[&'static str], named: &[String]) -> Option<&'static str> {
    known.iter().rev().find(|known| named.iter().any(|named| named == *known)).copied()
}

/// All that are known, in words.
pub(crate) fn known() -> String {
    [HANDSHAKE, STATELESS].concat().join(", ")
}

/// Whether requests of this revision repeat it in a header. Revisions are dates, and stand in their order.
pub(crate) fn has_header(version: &str) -> bool {
    version >= FIRST_WITH_HEADER
}
