//! The skills that are shipped with the program. They are found by their names, wherever it is installed.

/// A shipped skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    /// Its name.
    pub name: &'static str,
    /// Its manifest, byte for byte.
    pub manifest: &'static str,
}

/// All of them, by name.
pub const PACKS: &[Pack] = &[
    Pack { name: "analyst", manifest: include_str!("../../skills/analyst/SKILL.md") },
    Pack { name: "parts-desk", manifest: include_str!("../../skills/parts-desk/SKILL.md") },
];

/// The pack of a name.
pub fn pack(name: &str) -> Option<Pack> {
    PACKS.iter().copied().find(|pack| pack.name == name)
}
