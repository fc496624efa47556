//! The end of a line that says what its bytes were: `,"sum":"<SHA-256>"}`. Lines of a log and of an audit file have the same.

use crate::digest::{self, Digest, sha256_hex};

/// What stands between a line and its sum.
pub(crate) const BEFORE_SUM: &[u8] = b",\"sum\":\"";
/// What stands behind the sum.
pub(crate) const AFTER_SUM: &[u8] = b"\"}";
/// Hex digits of a sum.
pub(crate) const SUM_DIGITS: usize = digest::ZERO.len();

/// Sums the bytes from `start` on where they stand, writes the sum and a newline behind them, and returns it.
pub(crate) fn seal(start: usize, out: &mut Vec<u8>) -> Digest {
    let sum = sha256_hex(out.get(start..).unwrap_or_default());
    out.extend_from_slice(BEFORE_SUM);
    out.extend_from_slice(sum.as_bytes());
    out.extend_from_slice(AFTER_SUM);
    out.push(b'\n');
    sum
}

/// The bytes that a line's sum is taken over, and the sum as it stands there. The line has no newline.
pub(crate) fn split_sum(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_suffix(AFTER_SUM)?;
    let (rest, sum) = rest.split_at_checked(rest.len().checked_sub(SUM_DIGITS)?)?;
    let summed = rest.strip_suffix(BEFORE_SUM)?;
    Some((summed, sum))
}
