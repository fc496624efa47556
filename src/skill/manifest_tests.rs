#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

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
    insta::assert_snapshot!(refused(front("name: [lamps\nallowed_tools: [mcp.add]\n")), @"the skill pack/SKILL.md, line 3, column 14: this cannot be read: illegal placement of ':' indicator");
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
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b, [c]]\n")), @"the skill pack/SKILL.md, line 3, column 20: each entry of `allowed_tools` has to be a text, and is none");
    insta::assert_snapshot!(refused(front("name: ~\nallowed_tools: [b]\n")), @"the skill pack/SKILL.md, line 2, column 7: the value of `name` has to be a text, and there is none; write one, in quotes if need be");
    insta::assert_snapshot!(refused(front("name: a\ndescription: [d, e]\nallowed_tools: [b]\n")), @"the skill pack/SKILL.md, line 3, column 14: the value of `description` has to be a text, and is none");
    insta::assert_snapshot!(refused(front("name: a\nskill: b\n")), @"the skill pack/SKILL.md, line 3, column 8: the value of `skill` has to be a mapping of keys to values");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b, ' ', '?', b?, \"c d\"]\n")), @"the skill pack/SKILL.md, line 3, column 20: `allowed_tools` has the entry ` `, which is no tool's name; line 3, column 25: `allowed_tools` has the entry `?`, which is no tool's name; line 3, column 30: `allowed_tools` has `b` twice; keep one of them; line 3, column 34: `allowed_tools` has the entry `c d`, which is no tool's name");
    insta::assert_snapshot!(refused(front("name: ../a\nalowed-tools: b\nskill:\n  grounding: {x: 1}\n  sandbox: docker\n")), @"the skill pack/SKILL.md, line 1, column 1: the key `allowed_tools` is missing; list the tools that the skill may use; line 2, column 7: `name` looks like a path; a name is no path; line 3, column 1: the key `alowed-tools` is none, and looks like `allowed_tools`, without which the skill would not be governed as it seems; write `allowed_tools`, or name the key otherwise; line 5, column 15: the key `x` of `grounding` is unknown; the keys are identifier_pattern, number_pattern, ignore, max_repairs, must_cite, claim_table, reading, critic, planes, figures_from; line 6, column 12: the value of `sandbox` is `docker`; it is bwrap or none");
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

/// A manifest in full.
const FULL: &str = "---
name: outer
skill_id: lamps
version: 1.10
description: >
  Counts
  lamps.
allowed_tools: [mcp.look, fs?]
tone: dry  and
  short
sandbox: NONE
ranking:
  - newest first
  - by: [room, shelf]
    then: name
output_format:
  first: the number
  then: where
inputs: {rooms: all}
when_to_use: A question about lamps.
sdk_import: lamps.tools
grounding:
  identifier_pattern: '(?<![\\w.])L-\\d+'
  number_pattern: '\\d+'
  must_cite: {figures: 1, planes: 2}
  planes: {store: {tools: [mcp.look], claims: [in the store]}}
  figures_from: [mcp.look]
  claim_table: true
  reading: true
audience: 007
---
Count.
";

#[test]
fn a_manifest_in_full_is_read_and_rendered_in_its_order() {
    let manifest = parsed(FULL);
    insta::assert_snapshot!(manifest.prompt(), @"
    Skill: lamps

    Counts lamps.

    When to use: A question about lamps.

    Inputs:
    - rooms: all

    Ranking:
    - newest first
    - - by:
        - room
        - shelf
      - then: name

    Tone: dry and short

    Sandbox: NONE

    Audience: 007

    Count.

    Output format:
    - first: the number
    - then: where
    ");
    assert_eq!((manifest.version.as_deref(), manifest.sdk_import.as_deref()), (Some("1.10"), Some("lamps.tools")));
    assert_eq!(manifest.sandbox, Some(SandboxWish::None));
    let grounding = manifest.grounding.as_ref().unwrap();
    assert_eq!((grounding.max_repairs, grounding.claim_table, grounding.critic), (1, true, false));
    assert_eq!(manifest.warnings, []);
    insta::assert_snapshot!(manifest.not_yet(false).join("; "), @"asks for its answers to be held against the results (`grounding`), and this build does not do that yet; --no-grounding does without");
    assert!(manifest.not_yet(true).is_empty());
}

#[test]
fn the_public_form_is_read() {
    let text = "---\nname: pdf-forms\ndescription: Fills forms.\nlicense: Apache-2.0\ncompatibility: needs qpdf\nmetadata: {author: someone, version: '1.0'}\nallowed-tools: Read, mcp.fill  look?\n---\nFill it.\n";
    let manifest = parsed(text);
    let tools: Vec<(&str, bool)> = manifest.allowed_tools.iter().map(|tool| (tool.name.as_str(), tool.optional)).collect();
    assert_eq!(tools, [("Read", false), ("mcp.fill", false), ("look", true)]);
    assert_eq!(manifest.prompt(), "Skill: pdf-forms\n\nFills forms.\n\nFill it.");
    assert_eq!(
        (manifest.license.as_deref(), manifest.compatibility.as_deref(), manifest.metadata.len()),
        (Some("Apache-2.0"), Some("needs qpdf"), 2)
    );
    assert_eq!(parsed(&front("name: a\nallowed-tools:\n- b\n- c?\n")).allowed_tools.len(), 2);
    insta::assert_snapshot!(refused(front("name: a\nallowed-tools: Bash(git:*) Read\n")), @"the skill pack/SKILL.md, line 3, column 16: `allowed-tools` has the entry `Bash(git:*)`, which allows only some arguments; such an entry is not understood, and a name alone allows them all");
    insta::assert_snapshot!(refused(front("name: a\nallowed-tools: ''\n")), @"the skill pack/SKILL.md, line 3, column 1: `allowed-tools` is empty; list at least one tool");
    insta::assert_snapshot!(refused(front("name: a\nallowed-tools: b\nallowed_tools: [c]\n")), @"the skill pack/SKILL.md, line 4, column 1: the tools are listed twice, under `allowed_tools` and `allowed-tools`; keep one of them");
    insta::assert_snapshot!(refused(front("name: a\nallowed-tools: {b: c}\nmetadata: [a]\nlicense: [b]\n")), @"the skill pack/SKILL.md, line 3, column 16: the value of `allowed-tools` has to be a list, or a text with blanks between the names; line 4, column 11: the value of `metadata` has to be a mapping of keys to values; line 5, column 10: the value of `license` has to be a text, and is none");
}

#[test]
fn a_key_that_looks_like_a_structural_one_is_refused() {
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b]\ngroundng: {critic: true}\nTools: [c]\ndisallowed-tools: d\n")), @"the skill pack/SKILL.md, line 4, column 1: the key `groundng` is none, and looks like `grounding`, without which the skill would not be governed as it seems; write `grounding`, or name the key otherwise; line 5, column 1: the key `Tools` is none, and looks like `allowed_tools`, without which the skill would not be governed as it seems; write `allowed_tools`, or name the key otherwise; line 6, column 1: the key `disallowed-tools` is none, and looks like `allowed_tools`, without which the skill would not be governed as it seems; write `allowed_tools`, or name the key otherwise");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b]\nskill: {skill: {name: c}}\n")), @"the skill pack/SKILL.md, line 4, column 9: `skill` stands inside `skill`; write its keys one level higher");
}

#[test]
fn fields_say_how_to_work_where_there_is_no_text() {
    assert_eq!(
        parsed("---\nname: a\nallowed_tools: [b]\npolicy: Look first.\n---\n").prompt(),
        "Skill: a\n\nPolicy: Look first."
    );
    insta::assert_snapshot!(refused("---\nname: a\nallowed_tools: [b]\noutput_format: One line.\npolicy:\n---\n"), @"the skill pack/SKILL.md, line 1, column 1: nothing stands behind the front matter; tell the model there how to work");
}

#[test]
fn tools_that_run_code_need_the_sandbox() {
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [b, Run-Python_Code?, install_project]\n")), @"the skill pack/SKILL.md, line 3, column 1: Run-Python_Code, install_project would run code, which needs `sandbox: bwrap`; a server's tool of that name is written with the server's name before it");
    insta::assert_snapshot!(refused(front("name: a\nallowed_tools: [run_shell_command]\nsandbox: none\n")), @"the skill pack/SKILL.md, line 3, column 1: run_shell_command would run code, which needs `sandbox: bwrap`; a server's tool of that name is written with the server's name before it");
    let manifest = parsed(&front("name: a\nallowed_tools: [run_shell_command]\nsandbox: BWRAP\n"));
    insta::assert_snapshot!(manifest.not_yet(true).join("; "), @"asks for code tools in a sandbox (`sandbox: bwrap`), and this build confines no code tools yet: none is run unconfined");
    assert!(
        parsed(&front("name: a\nallowed_tools: [mcp.run_python_code]\n")).not_yet(false).is_empty(),
        "a server's tool is the server's"
    );
}

#[test]
fn grounding_is_checked_key_by_key() {
    let grounding = |yaml: &str| refused(front(&format!("name: a\nallowed_tools: [b]\ngrounding: {yaml}\n")));
    insta::assert_snapshot!(grounding("{pattern: x, planes: {p: {tools: [a], claim: [b]}}}"), @"the skill pack/SKILL.md, line 4, column 13: the key `pattern` of `grounding` is unknown; the keys are identifier_pattern, number_pattern, ignore, max_repairs, must_cite, claim_table, reading, critic, planes, figures_from; line 4, column 50: the key `claim` of `grounding.planes.p` is unknown; the keys are tools, claims");
    insta::assert_snapshot!(grounding("{number_pattern: '(', ignore: word, max_repairs: -1, critic: 'yes'}"), @"the skill pack/SKILL.md, line 4, column 29: `grounding.number_pattern` is no regular expression: Parsing error at position 1: Opening parenthesis without closing parenthesis; line 4, column 42: `grounding.ignore` has to be a list, `[one, another]`; line 4, column 61: `grounding.max_repairs` has to be a whole number from 0 to 100, and is `-1`; line 4, column 73: `grounding.critic` has to be true or false, and is `yes`");
    insta::assert_snapshot!(grounding("{reading: true, figures_from: [b], must_cite: true}"), @"the skill pack/SKILL.md, line 4, column 13: `grounding.reading` needs `claim_table: true` beside it; line 4, column 28: `grounding.figures_from` needs a `number_pattern` beside it");
    insta::assert_snapshot!(grounding("{number_pattern: x, must_cite: [figures, claims]}"), @"the skill pack/SKILL.md, line 4, column 53: `grounding.must_cite` names `claims`, which is no check that this block configures; it configures figures, attribution");
    insta::assert_snapshot!(grounding("{number_pattern: x, must_cite: {figures: true}}"), @"the skill pack/SKILL.md, line 4, column 53: `grounding.must_cite.figures` has to be a whole number from 0 to 1000000, and is `true`");
    insta::assert_snapshot!(grounding("{number_pattern: x, must_cite: figures}"), @"the skill pack/SKILL.md, line 4, column 43: `grounding.must_cite` has to be true, a list of checks, or a mapping of checks to how many");
    insta::assert_snapshot!(grounding("{max_repairs: true, planes: {p: {tools: [a]}}}"), @"the skill pack/SKILL.md, line 4, column 26: `grounding.max_repairs` has to be a whole number from 0 to 100, and is `true`; line 4, column 41: `grounding.planes.p` needs `tools` and `claims`, at least one of each");
    insta::assert_snapshot!(grounding("true"), @"the skill pack/SKILL.md, line 4, column 12: the value of `grounding` has to be a mapping of keys to values");
    let none = parsed(&front("name: a\nallowed_tools: [b]\ngrounding: {max_repairs: 2, ignore: [c]}\n"));
    assert!(none.not_yet(false).is_empty(), "it configures no check");
}

#[test]
fn what_other_programs_would_not_take_or_nobody_sees_is_a_warning() {
    let manifest = parsed(&front(&format!(
        "name: Lamp counter\nallowed_tools: [b]\ndescription: \"{}\u{200b} only\u{202e}\"\n",
        "w ".repeat(600)
    )));
    let warnings: Vec<String> = manifest.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @"
    line 2, column 7: the name is not portable: other programs take lower-case letters, digits and hyphens alone
    line 1, column 1: `description` has 1207 characters; other programs take 1024 at most
    line 4, column 1215: a mark that nobody sees (U+200B) and 1 more; see that the text says what it seems to
    ");
}

proptest! {
    /// Whatever is changed in a manifest that closes the set to one tool: it still closes it to that one, or is refused.
    #[test]
    fn a_byte_more_or_less_never_opens_the_set(at in 0usize..200, byte in any::<u8>(), replace in any::<bool>()) {
        let good = front("name: lamps\nallowed_tools: [mcp.look]\npolicy: none\n");
        let mut bytes = good.into_bytes();
        let at = at % bytes.len();
        if replace { bytes[at] = byte } else { bytes.remove(at); }
        if let Ok(manifest) = Manifest::parse("x", &bytes) {
            prop_assert_eq!(manifest.allowed_tools.len(), 1);
            if let Ok(closed) = manifest.close(&["mcp.look", "mcp.erase", "mcp.add"]) {
                prop_assert_eq!(closed, ["mcp.look"]);
            }
        }
    }

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
                Just("grounding: "), Just("number_pattern: x"), Just("sandbox: "), Just("bwrap\n"), Just("policy: "), Just("allowed-tools: b c\n"), Just("1.5"), Just("~"),
                Just("<<: "), Just("!!str "), Just("'"), Just("\""), Just("\\x"), Just("\u{feff}"), Just("é\n"), Just("#"), Just("\r\n"), Just("%YAML 1.1\n"),
            ],
            0..40,
        )
    ) {
        let text = pieces.concat();
        for text in [text.clone(), format!("---\n{text}\n---\nbody")] {
            if let Ok(manifest) = Manifest::parse("x", text.as_bytes()) {
                prop_assert!(!manifest.allowed_tools.is_empty() && !manifest.name.trim().is_empty());
                prop_assert!(manifest.body.len() + manifest.fields.len() > 0);
                prop_assert!(manifest.prompt().starts_with("Skill: "));
                prop_assert!(manifest.close(&["b", "c"]).is_ok() || manifest.close(&["b", "c"]).is_err());
            }
        }
    }
}
