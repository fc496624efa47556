//! Keys that look like one that closes or governs a skill and are none: passed over, the skill would be open where its author thinks it is
//! closed.

/// Keys that decide something.
const STRUCTURAL: &[&str] =
    &["name", "skill_id", "skill", "description", "allowed_tools", "grounding", "sdk_import", "sandbox", "output_format"];

/// Keys of other tools, or of nobody, that say what may be used; none of them is read.
const TAKEN_FOR_TOOLS: &[&str] = &[
    "tool",
    "tools",
    "allow",
    "allowed",
    "allowlist",
    "permittedtools",
    "deny",
    "denied",
    "deniedtools",
    "denytools",
    "disallowedtools",
    "forbiddentools",
    "excludedtools",
    "blockedtools",
];

/// The key that a key is taken for; nothing for one that is fine.
pub fn meant(key: &str) -> Option<&'static str> {
    let bare = bare(key);
    if TAKEN_FOR_TOOLS.contains(&bare.as_str()) {
        return Some("allowed_tools");
    }
    let near = |known: &'static str| {
        let letters = self::bare(known);
        let away = distance(&bare, &letters);
        (away <= if letters.chars().count() > 5 { 2 } else { 1 }).then_some((away, known))
    };
    STRUCTURAL
        .iter()
        .copied()
        .filter(|known| *known != key)
        .filter_map(near)
        .min_by_key(|(away, _)| *away)
        .map(|(_, known)| known)
}

/// Letters and digits in lower case: what is left when hyphens, blanks and capitals are taken away.
fn bare(key: &str) -> String {
    key.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect()
}

/// How many letters are to be added, dropped, replaced or swapped with their neighbour to get from one word to the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    let mut last = None;
    for (index, mine) in left.chars().enumerate() {
        let mut next = vec![index.saturating_add(1)];
        for (at, theirs) in right.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX);
            let mut cheapest = cell(&row, at)
                .saturating_add(usize::from(mine != *theirs))
                .min(cell(&row, at.saturating_add(1)).saturating_add(1))
                .min(cell(&next, at).saturating_add(1));
            let neighbour = at.checked_sub(1).and_then(|at| right.get(at)).copied();
            if last == Some(*theirs) && neighbour == Some(mine) {
                cheapest = cheapest.min(cell(&before, at.saturating_sub(1)).saturating_add(1));
            }
            next.push(cheapest);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(mine);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_looks_like_one_that_governs_is_known() {
        for (key, known) in [
            ("allowedTools", "allowed_tools"),
            ("alowed_tools", "allowed_tools"),
            ("Allowed-Tools", "allowed_tools"),
            ("disallowed-tools", "allowed_tools"),
            ("tools", "allowed_tools"),
            ("grounidng", "grounding"),
            ("sand_box", "sandbox"),
            ("nmae", "name"),
            ("Name", "name"),
            ("skills", "skill"),
            ("skill-id", "skill_id"),
            ("outputFormat", "output_format"),
        ] {
            assert_eq!(meant(key), Some(known), "{key}");
        }
        for key in
            ["name", "allowed_tools", "audience", "ranking", "policy", "model", "tone", "user-invocable", "language", "date", "ü"]
        {
            assert_eq!(meant(key), None, "{key}");
        }
    }
}
