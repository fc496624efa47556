#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

const GOOD: &str = "---\nname: lamps\ndescription: Counts\n  lamps.\nallowed_tools: [mcp.look, add, absent?]\n---\n\nCount lamps, never chairs.\n";

fn parsed(text: &str) -> Manifest {
    Manifest::parse("pack/SKILL.md", text.as_bytes()).unwrap()
}

fn refused(text: impl AsRef<[u8]>) -> String {
    Manifest::parse("pack/SKILL.md", text.as_ref()).unwrap_err().to_string()
}

/// A manifest with this front matter and a body.
fn front(yaml: &str) -> String {
    format!("---\n{yaml}---\nbody\n")
}

#[test]
fn a_manifest_is_read() {
    let manifest = parsed(GOOD);
    assert_eq!((manifest.name.as_str(), manifest.description.as_deref()), ("lamps", Some("Counts lamps.")));
    let tools: Vec<(&str, bool)> = manifest.allowed_tools.iter().map(|tool| (tool.name.as_str(), tool.optional)).collect();
    assert_eq!(tools, [("mcp.look", false), ("add", false), ("absent", true)]);
    assert_eq!(manifest.prompt(), "Skill: lamps\n\nCounts lamps.\n\nCount lamps, never chairs.");
    assert_eq!(manifest.digest, sha256_hex(GOOD.as_bytes()));
}

#[test]
fn the_nested_mapping_wins_key_by_key() {
    let manifest = parsed(&front("name: outer\nallowed_tools: [a]\nskill:\n  name: inner\n  description: d\n"));
    assert_eq!((manifest.name.as_str(), manifest.description.as_deref()), ("inner", Some("d")));
    assert_eq!(manifest.allowed_tools[0].name, "a");
}

#[test]
fn marks_line_ends_and_blanks_behind_a_fence_do_not_matter() {
    for text in [format!("\u{feff}{GOOD}"), GOOD.replace('\n', "\r\n"), GOOD.replace("---\n", "---  \n")] {
        let manifest = parsed(&text);
        assert_eq!((manifest.name.as_str(), manifest.allowed_tools.len()), ("lamps", 3), "{text:?}");
    }
}

#[test]
fn later_fences_belong_to_the_body_and_indented_ones_end_nothing() {
    let manifest = parsed(
        "---\nname: a\ndescription: |\n  first\n  ---\n  second\nallowed_tools: [echo]\n---\nA\n\n---\nallowed_tools: [rm]\n---\nB\n",
    );
    assert_eq!(manifest.description.as_deref(), Some("first --- second"));
    assert_eq!(manifest.allowed_tools.len(), 1);
    assert_eq!(manifest.body, "A\n\n---\nallowed_tools: [rm]\n---\nB");
}

#[test]
fn words_stay_as_they_are_written() {
    for word in ["on", "no", "007", "1.10", "0x10", "2026-01-01", "12:30:45", ".inf", "1e3", "\"null\""] {
        let manifest = parsed(&front(&format!("name: {word}\nallowed_tools: [{word}, b]\n")));
        let written = word.trim_matches(['\'', '"']);
        assert_eq!(manifest.name, written, "{word}");
        assert_eq!(manifest.allowed_tools[0].name, written, "{word}");
    }
}

#[test]
fn what_is_no_manifest_says_where_it_goes_wrong() {
    insta::assert_snapshot!(refused(""), @"the skill pack/SKILL.md, line 1, column 1: a manifest begins with a line `---`, and nothing stands before it");
    insta::assert_snapshot!(refused("# Demo\njust text\n"), @"the skill pack/SKILL.md, line 1, column 1: a manifest begins with a line `---`, and nothing stands before it");
    insta::assert_snapshot!(refused("<!-- a -->\n---\nname: a\n---\nb"), @"the skill pack/SKILL.md, line 1, column 1: a manifest begins with a line `---`, and nothing stands before it");
    insta::assert_snapshot!(refused("----\nname: a\n----\nb"), @"the skill pack/SKILL.md, line 1, column 1: a manifest begins with a line `---`, and nothing stands before it");
    insta::assert_snapshot!(refused("---\nname: a\n\n# body\n"), @"the skill pack/SKILL.md, line 4, column 1: the front matter has no end: close it with a line `---`");
    insta::assert_snapshot!(refused(GOOD.replace('\n', "\r")), @"the skill pack/SKILL.md, line 1, column 1: a manifest begins with a line `---`, and nothing stands before it");
    insta::assert_snapshot!(refused(b"---\nname: caf\xe9\n---\nb"), @"the skill pack/SKILL.md, line 2, column 10: this is not UTF-8 (byte 14 of the file); save it as UTF-8");
    insta::assert_snapshot!(refused("---\nname: a\nallowed_tools: [b]\n---\n \n"), @"the skill pack/SKILL.md, line 1, column 1: nothing stands behind the front matter; tell the model there how to work");
    insta::assert_snapshot!(refused("x".repeat(70_000)), @"the skill pack/SKILL.md: it is larger than 65536 bytes; what the model need not read belongs into a tool");
}

#[test]
fn what_is_no_yaml_or_too_much_of_it_is_refused_with_its_place() {
    insta::assert_snapshot!(refused(front("name: [lamps\nallowed_tools: [mcp.add]\n")), @"the skill pack/SKILL.md, line 2, column 7: the value of `name` has to be a text, and is none");
    insta::assert_snapshot!(refused(front("name: a\nname: b\nallowed_tools: [c]\n")), @"the skill pack/SKILL.md, line 3, column 1: the key `name` stands there twice; keep one of them");
    insta::assert_snapshot!(refused(front("name: a\nskill:\n  description: d\n  description: e\n")), @"the skill pack/SKILL.md, line 5, column 3: the key `description` stands there twice; keep one of them");
    insta::assert_snapshot!(refused(front("name: a\nother: {x: 1, x: 2}\n")), @"the skill pack/SKILL.md, line 3, column 15: the key `x` stands there twice; keep one of them");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools:\n\t- b\n")), @"the skill pack/SKILL.md, line 4, column 1: a tab; indent and separate with spaces");
    insta::assert_snapshot!(refused(front("name: &x a\nallowed_tools: [*x]\n")), @"the skill pack/SKILL.md, line 2, column 10: this is more than a file of settings may hold: no anchors or aliases, at most 5000 nodes, at most 16 levels");
    insta::assert_snapshot!(refused(front("base: {name: a}\n<<: {name: b}\n")), @"the skill pack/SKILL.md, line 3, column 1: merge keys (`<<`) are not allowed; write the keys out");
    insta::assert_snapshot!(refused(front(&format!("a: {}{}\n", "[".repeat(40), "]".repeat(40)))), @"the skill pack/SKILL.md, line 2, column 20: this is more than a file of settings may hold: no anchors or aliases, at most 5000 nodes, at most 16 levels");
    insta::assert_snapshot!(refused(front(&format!("a: [{}]\n", "1,".repeat(6_000)))), @"the skill pack/SKILL.md, line 2, column 9999: this is more than a file of settings may hold: no anchors or aliases, at most 5000 nodes, at most 16 levels");
    insta::assert_snapshot!(refused(front("name: !python/object a\n")), @"the skill pack/SKILL.md, line 2, column 22: this cannot be read: unsupported tag `!python/object`");
    insta::assert_snapshot!(refused(front("- a\n")), @"the skill pack/SKILL.md, line 2, column 1: the front matter has to be a mapping of keys to values");
    insta::assert_snapshot!(refused(front("")), @"the skill pack/SKILL.md, line 1, column 1: the key `name` is missing; give the skill a name; line 1, column 1: the key `allowed_tools` is missing; list the tools that the skill may use");
    insta::assert_snapshot!(refused(front("name: a\u{7}\n")), @"the skill pack/SKILL.md, line 2, column 8: a control character (U+0007); remove it");
}

#[test]
fn what_has_another_type_or_is_not_supported_is_refused_by_name() {
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: b\n")), @"the skill pack/SKILL.md, line 3, column 16: the value of `allowed_tools` has to be a list, `[one, another]`");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: []\n")), @"the skill pack/SKILL.md, line 3, column 1: `allowed_tools` is empty; list at least one tool");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b, [c]]\n")), @"the skill pack/SKILL.md, line 3, column 20: the value of `allowed_tools` has to be a text, and is none");
    insta::assert_snapshot!(refused(front("name: ~\nallowed_tools: [b]\n")), @"the skill pack/SKILL.md, line 2, column 7: the value of `name` has to be a text, and there is none; write one, in quotes if need be");
    insta::assert_snapshot!(refused(front("name: a\ndescription: [d, e]\nallowed_tools: [b]\n")), @"the skill pack/SKILL.md, line 3, column 14: the value of `description` has to be a text, and is none");
    insta::assert_snapshot!(refused(front("name: a\nskill: b\n")), @"the skill pack/SKILL.md, line 3, column 8: the value of `skill` has to be a mapping of keys to values");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b, ' ', '?', b?, \"c d\"]\n")), @"the skill pack/SKILL.md, line 3, column 20: `allowed_tools` has the entry ` `, which is no tool's name; line 3, column 25: `allowed_tools` has the entry `?`, which is no tool's name; line 3, column 30: `allowed_tools` has `b` twice; keep one of them; line 3, column 34: `allowed_tools` has the entry `c d`, which is no tool's name");
    insta::assert_snapshot!(refused(front("name: ../a\nallowed-tools: b\nskill:\n  grounding: {x: 1}\n  sandbox: none\n")), @"the skill pack/SKILL.md, line 1, column 1: the key `allowed_tools` is missing; list the tools that the skill may use; line 2, column 7: `name` looks like a path; a name is no path; line 3, column 1: the key `allowed-tools` is not supported by this build yet; the tools are listed under `allowed_tools`; line 5, column 3: the key `grounding` is not supported by this build yet; remove it; line 6, column 3: the key `sandbox` is not supported by this build yet; remove it");
    insta::assert_snapshot!(refused(front(&format!("name: {}\n", "a".repeat(65)))), @"the skill pack/SKILL.md, line 1, column 1: the key `allowed_tools` is missing; list the tools that the skill may use; line 2, column 7: `name` is too long; at most 64 characters");
}

#[test]
fn a_skill_closes_the_set_in_its_own_order() {
    let offered = ["mcp.add", "mcp.big", "mcp.look"];
    assert_eq!(parsed(GOOD).close(&offered).unwrap(), ["mcp.look", "mcp.add"]);
    // spelt as one of several that would do, it means that one; named twice, it is there once
    let manifest = parsed(&front("name: a\nallowed_tools: [b.c, c?, a.b.c]\n"));
    assert!(manifest.close(&["b.c", "a.b.c"]).unwrap_err().to_string().contains("names `c`, which could be any of a.b.c, b.c"));
    assert_eq!(parsed(&front("name: a\nallowed_tools: [b.c, a.b.c]\n")).close(&["b.c", "a.b.c"]).unwrap(), ["b.c", "a.b.c"]);
    assert_eq!(parsed(&front("name: a\nallowed_tools: [add, mcp.add]\n")).close(&offered).unwrap(), ["mcp.add"]);
}

#[test]
fn every_name_that_does_not_resolve_is_told_with_what_is_offered() {
    let manifest = parsed(&front("name: lamps\nallowed_tools: [weigh, add, mcp.look, scales.read, gone?]\n"));
    let offered = ["mcp.add", "mcp.look", "more.add", "more.look"];
    insta::assert_snapshot!(manifest.close(&offered).unwrap_err(), @"the skill lamps needs tools that nobody offers: weigh, scales.read (start their server, or mark a name optional with `?`); it names `add`, which could be any of mcp.add, more.add (write it with its server's name); offered: mcp.add, mcp.look, more.add, more.look");
    insta::assert_snapshot!(manifest.close::<&str>(&[]).unwrap_err(), @"the skill lamps needs tools that nobody offers: weigh, add, mcp.look, scales.read (start their server, or mark a name optional with `?`); offered: nothing");
    insta::assert_snapshot!(parsed(&front("name: a\nallowed_tools: [gone?]\n")).close(&offered).unwrap_err(), @"the skill a has only optional tools, and none of them is there; start the server that has one of them; offered: mcp.add, mcp.look, more.add, more.look");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::parse("x", &bytes);
    }

    #[test]
    fn no_text_that_looks_like_a_manifest_makes_it_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("---\n"), Just("name: "), Just("a\n"), Just("allowed_tools:"), Just(" [b, c?]\n"), Just("\n  - d\n"), Just("skill:\n  "),
                Just("description: |\n  x\n"), Just("{"), Just("}"), Just("["), Just("]"), Just(": "), Just("? "), Just("- "), Just("&a "), Just("*a "),
                Just("<<: "), Just("!!str "), Just("'"), Just("\""), Just("\\x"), Just("\u{feff}"), Just("é\n"), Just("#"), Just("\r\n"), Just("%YAML 1.1\n"),
            ],
            0..40,
        )
    ) {
        let text = pieces.concat();
        for text in [text.clone(), format!("---\n{text}\n---\nbody")] {
            if let Ok(manifest) = Manifest::parse("x", text.as_bytes()) {
                prop_assert!(!manifest.allowed_tools.is_empty() && !manifest.name.is_empty() && !manifest.body.is_empty());
                prop_assert!(manifest.close(&["b", "c"]).is_ok() || manifest.close(&["b", "c"]).is_err());
            }
        }
    }
}
