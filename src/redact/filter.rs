//! Where nothing can begin: a set of beginnings, four bytes each, that now and then says yes too often and never no.
//!
//! Nearly every place of a text is passed over with it, without a step of a search.

use super::forms::is_special;

/// A set of the first bytes of what is looked for.
pub(super) struct Filter {
    bits: Vec<u64>,
    /// Which bits of a beginning count.
    mask: u32,
    /// Which bits of it are set whatever the text has: makes letters small.
    fold: u32,
    shift: u32,
}

/// Bytes of a beginning.
pub(super) const BEGINNING: usize = 4;

/// Letters become small, and some signs others: a filter may take one for the other.
const SMALL: u32 = 0x2020_2020;
/// The first three bytes.
const THREE: u32 = 0x00ff_ffff;

impl Filter {
    /// For texts of at least four bytes, in this very case of letters.
    pub fn exact<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        Self::new(texts, u32::MAX, 0, 16)
    }

    /// For texts of at least three bytes, in any case of letters.
    pub fn any_case<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        Self::new(texts, THREE, SMALL & THREE, 14)
    }

    fn new<'t>(texts: impl Iterator<Item = &'t [u8]>, mask: u32, fold: u32, width: u32) -> Self {
        let words = 1usize << width.saturating_sub(6);
        let mut filter = Self { bits: vec![0; words], mask, fold, shift: 32u32.saturating_sub(width) };
        for text in texts {
            let mut first = [0; BEGINNING];
            for (place, byte) in first.iter_mut().zip(text) {
                *place = *byte;
            }
            let (word, bit) = filter.place(u32::from_le_bytes(first));
            if let Some(word) = filter.bits.get_mut(word) {
                *word |= bit;
            }
        }
        filter
    }

    fn place(&self, beginning: u32) -> (usize, u64) {
        // Multiplication by a large odd number spreads; its upper bits are the best.
        let spread = ((beginning & self.mask) | self.fold).wrapping_mul(0x9e37_79b1) >> self.shift;
        (usize::try_from(spread >> 6).unwrap_or_default(), 1u64 << (spread & 63))
    }

    fn holds(&self, beginning: u32) -> bool {
        let (word, bit) = self.place(beginning);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    /// How many places are passed over: up to the first where something may begin, or the first of the last three.
    pub fn passes(&self, text: &[u8]) -> usize {
        let mut windows = text.windows(BEGINNING);
        let found = windows.position(|window| match window {
            [a, b, c, d] => self.holds(u32::from_le_bytes([*a, *b, *c, *d])),
            _ => true,
        });
        found.unwrap_or_else(|| text.len().saturating_sub(BEGINNING.saturating_sub(1)))
    }

    /// The same, and no farther than to where one of the four bytes may read differently.
    pub fn passes_alike(&self, text: &[u8]) -> usize {
        if text.iter().take(BEGINNING.saturating_sub(1)).any(|byte| is_special(*byte)) {
            return 0;
        }
        let mut windows = text.windows(BEGINNING);
        let found = windows.position(|window| match window {
            [a, b, c, d] => is_special(*d) || self.holds(u32::from_le_bytes([*a, *b, *c, *d])),
            _ => true,
        });
        found.unwrap_or_else(|| text.len().saturating_sub(BEGINNING.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_may_begin_is_passed_over() {
        let exact = Filter::exact([b"abcdef".as_slice(), b"0123"].into_iter());
        assert_eq!(exact.passes(b"......abcd"), 6);
        assert_eq!(exact.passes(b"......ABCD"), 7, "the last three places are left");
        assert_eq!(exact.passes_alike(b"......abcd"), 6);
        assert_eq!(exact.passes_alike(b".....%abcd"), 2, "four bytes with an escape among them are not told");
        assert_eq!(exact.passes_alike(b"\n..0123"), 0);
        assert_eq!(exact.passes(b"abc"), 0);
        let any_case = Filter::any_case([b"key".as_slice(), b"eyJ"].into_iter());
        for text in ["....key.", "....KEY.", "....eyj.", "....Key!"] {
            assert_eq!(any_case.passes(text.as_bytes()), 4, "{text}");
        }
    }
}
