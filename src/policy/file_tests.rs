#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use mission_contract::schema;
use mission_contract::spec::Spec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::policy::{Authority, Grants};

fn text(text: &str) -> PolicyText {
    PolicyText { file: "policy.yaml".to_owned(), text: text.to_owned(), digest: String::new() }
}

fn policy(yaml: &str) -> Policy {
    Policy::parse(&text(yaml)).unwrap()
}

fn refused(yaml: &str) -> String {
    Policy::parse(&text(yaml)).unwrap_err().to_string()
}

fn arguments(value: Value) -> Map<String, Value> {
    let Value::Object(arguments) = value else { unreachable!() };
    arguments
}

fn said(policy: &Policy, tool: &str, value: Value) -> String {
    let decided = policy.ruling(tool, &arguments(value));
    format!("{} by {}", decided.effect.word(), decided.rule)
}

const WHOLE: &str = "\
# what this deployment does not want
version: 1
default: allow
rules:
  - id: writes-need-a-person
    tools: ['*.write_*', 'mcp.{add,remove}']
    effect: gate
  - id: no-system-files
    tools: '*'
    effect: deny
    reason: System files are not to be touched.
    when:
      - pointer: /path
        matches: '^/(etc|usr)(/|$)'
  - id: small-only
    tools: mcp.add
    effect: deny
    when:
      - {pointer: /a, at_least: 1000}
  - id: known-regions
    tools: cloud.*
    effect: deny
    when:
      - {pointer: /region, one_of: [eu, us], not: true}
  - id: notes
    tools: 'mcp.note'
    effect: allow
    when:
      - {pointer: /draft, equals: true}
      - {pointer: /to/0, exists: false}
";

#[test]
fn the_strictest_rule_that_holds_decides() {
    let policy = policy(WHOLE);
    for (tool, arguments, decided) in [
        ("mcp.echo", json!({}), "allow by default"),
        ("mcp.add", json!({"a": 1}), "gate by writes-need-a-person"),
        ("mcp.add", json!({"a": 1000}), "deny by small-only"),
        ("mcp.add", json!({"a": "many"}), "deny by small-only"),
        ("files.write_file", json!({"path": "/srv/x"}), "gate by writes-need-a-person"),
        ("files.write_file", json!({"path": "/etc"}), "deny by no-system-files"),
        ("files.write_file", json!({"path": "/etcetera"}), "gate by writes-need-a-person"),
        ("files.read", json!({"path": ["/etc/passwd"]}), "deny by no-system-files"),
        ("cloud.make", json!({}), "deny by known-regions"),
        ("cloud.make", json!({"region": "eu"}), "allow by default"),
        ("cloud.make", json!({"region": "cn"}), "deny by known-regions"),
        ("mcp.note", json!({"draft": true}), "allow by notes"),
        ("mcp.note", json!({"draft": true, "to": ["x"]}), "allow by default"),
    ] {
        assert_eq!(said(&policy, tool, arguments.clone()), decided, "{tool} {arguments}");
    }
    let holding = policy.matching("mcp.add", &arguments(json!({"a": 2000, "path": "/usr/bin"}))).into_iter();
    let holding: Vec<String> = holding.map(|matched| format!("{} {:?}", matched.rule, matched.line)).collect();
    assert_eq!(holding, ["no-system-files Some(8)", "small-only Some(15)", "writes-need-a-person Some(5)"]);
    let gated = ["mcp.add", "files.write_x", "mcp.echo", "cloud.make"].map(|tool| policy.at_least(tool));
    assert_eq!(gated, [Effect::Gate, Effect::Gate, Effect::Allow, Effect::Allow]);
}

#[test]
fn a_default_holds_where_no_rule_does_and_a_rule_that_allows_is_not_taken_on_a_doubt() {
    let closed = policy(
        "version: 1\ndefault: deny\nrules:\n- {id: small, tools: mcp.add, effect: allow, when: [{pointer: /a, at_most: 9}]}\n",
    );
    assert_eq!(said(&closed, "mcp.add", json!({"a": 9})), "allow by small");
    for other in [json!({"a": 10}), json!({"a": "9"}), json!({})] {
        assert_eq!(said(&closed, "mcp.add", other), "deny by default");
    }
    assert_eq!(said(&closed, "mcp.echo", json!({})), "deny by default");
    assert_eq!(closed.at_least("mcp.add"), Effect::Allow);
    assert_eq!(closed.at_least("mcp.echo"), Effect::Deny);
    assert_eq!(said(&Policy::closed(), "mcp.echo", json!({})), "deny by policy");
    assert_eq!(said(&policy("version: 1\nrules: []\n"), "mcp.echo", json!({})), "allow by default");
}

#[test]
fn what_is_not_understood_is_refused_with_its_place_and_its_field() {
    insta::assert_snapshot!(refused(""), @"the policy policy.yaml, line 1, column 1: this has to be a mapping with the keys version, default, rules, and is nothing");
    insta::assert_snapshot!(refused("version: 2\nrules: []\nrule: []\n"), @"the policy policy.yaml, line 1, column 10: `version`: this build reads version 1; write `version: 1`; line 3, column 1: `rule`: there is no such key here; there are version, default, rules");
    insta::assert_snapshot!(refused("version: 1\nrules:\n- id: a\n  tools: []\n  effect: forbid\n  wen: []\n"), @"the policy policy.yaml, line 4, column 10: `rules[0].tools`: it names no tool; write a glob, or `*` for every tool; line 5, column 11: `rules[0].effect`: `forbid` is no effect; say allow, gate or deny; line 6, column 3: `rules[0].wen`: there is no such key here; there are id, tools, effect, when, reason");
    insta::assert_snapshot!(refused("version: 1\nrules:\n- {tools: x, effect: deny}\n- {id: default, tools: '[', effect: deny}\n- {id: 7, tools: x, effect: deny}\n- {id: 'a b', tools: x, effect: deny}\n"), @"the policy policy.yaml, line 3, column 3: `rules[0]`: the key `id` is missing; write it; line 4, column 8: `rules[1].id`: `default` is what decisions that no rule makes are called; take another name; line 4, column 24: `rules[1].tools`: `[` is no glob: unclosed character class; missing ']'; line 5, column 8: `rules[2].id`: it has to be a text and is a number; put it in quotes; line 6, column 8: `rules[3].id`: `a b` is no name of a rule: up to 64 letters, digits, dots, hyphens and underscores, a letter or digit first");
    insta::assert_snapshot!(refused("version: 1\nrules:\n- id: a\n  tools: x\n  effect: deny\n  when:\n  - {pointer: path, matches: '('}\n  - {pointer: /a}\n  - {pointer: /a, exists: yes, equals: 1}\n  - {pointer: /a, at_least: '3'}\n  - {pointer: /a, one_of: []}\n"), @"the policy policy.yaml, line 7, column 15: `rules[0].when[0].pointer`: `path` is no JSON Pointer to an argument; write one like /path or /items/0/name; line 7, column 30: `rules[0].when[0].matches`: `(` is no regular expression: unclosed group; line 8, column 5: `rules[0].when[1]`: a condition asks one thing: exactly one of exists, equals, one_of, matches, at_least, at_most; line 9, column 5: `rules[0].when[2]`: a condition asks one thing: exactly one of exists, equals, one_of, matches, at_least, at_most; line 10, column 29: `rules[0].when[3].at_least`: it has to be a number and is a text; line 11, column 27: `rules[0].when[4].one_of`: it holds no value; write those that are meant");
    insta::assert_snapshot!(refused("version: 1\nrules:\n- {id: a, tools: x, effect: deny}\n- {id: a, tools: x, effect: deny}\n"), @"the policy policy.yaml, line 4, column 3: `rules[1].id`: another rule is called `a`; give each its own name");
    insta::assert_snapshot!(refused("version: 1\nversion: 1\nrules: []\n"), @"the policy policy.yaml, line 2, column 1: the key `version` stands there twice; keep one of them");
    insta::assert_snapshot!(refused("version: 1\nrules: [&a {id: a, tools: x, effect: deny}, *a]\n"), @"the policy policy.yaml, line 2, column 12: this is more than a policy may hold: no anchors or aliases, at most 50000 nodes, at most 16 levels");
    insta::assert_snapshot!(refused("version: 1\nrules:\n\t- x\n"), @"the policy policy.yaml, line 3, column 1: a tab; indent and separate with spaces");
    insta::assert_snapshot!(refused("version: 1\nrules: [\n"), @"the policy policy.yaml, line 2, column 8: this cannot be read: unclosed bracket '['");
    insta::assert_snapshot!(refused("version: 1\nrules: []\n---\nversion: 1\nrules: []\n"), @"the policy policy.yaml, line 3, column 1: this is more than a policy may hold: no anchors or aliases, at most 50000 nodes, at most 16 levels");
    let many: String = (0..2001).map(|number| format!("- {{id: r{number}, tools: x, effect: deny}}\n")).collect();
    insta::assert_snapshot!(refused(&format!("version: 1\nrules:\n{many}")), @"the policy policy.yaml, line 1, column 1: `rules`: there are 2001 rules; at most 2000 are read");
}

/// The schema takes what is read, and refuses what is not.
#[test]
fn the_schema_says_the_same() {
    let schema = jsonschema::validator_for(&schema::one("policy").unwrap()).unwrap();
    let json = |yaml: &str| tree::read(yaml).unwrap().value.value();
    assert!(schema.is_valid(&json(WHOLE)));
    for yaml in [
        "version: 2\nrules: []",
        "version: 1",
        "version: 1\nrules: []\nrule: 1",
        "version: 1\nrules: [{id: a, effect: deny}]",
        "version: 1\nrules: [{id: default, tools: x, effect: deny}]",
        "version: 1\nrules: [{id: 'a b', tools: x, effect: deny}]",
        "version: 1\nrules: [{id: a, tools: [], effect: deny}]",
        "version: 1\nrules: [{id: a, tools: x, effect: forbid}]",
        "version: 1\nrules: [{id: a, tools: x, effect: deny, when: [{pointer: a, exists: true}]}]",
        "version: 1\nrules: [{id: a, tools: x, effect: deny, when: [{pointer: /a}]}]",
        "version: 1\nrules: [{id: a, tools: x, effect: deny, when: [{pointer: /a, exists: true, at_most: 1}]}]",
        "version: 1\nrules: [{id: a, tools: x, effect: deny, when: [{pointer: /a, at_most: '1'}]}]",
    ] {
        assert!(!schema.is_valid(&json(yaml)) && !refused(yaml).is_empty(), "{yaml}");
    }
}

#[test]
fn a_policy_that_cannot_be_read_any_more_denies_everything() {
    let spec = Spec { policy: Some(text("version: 9\nrules: []")), profile: Some("god".to_owned()), ..Spec::default() };
    let judged = Authority::of(&spec, true).judge("mcp", "add", &Map::new(), false);
    assert_eq!((judged.effect, judged.rule.as_str()), (Effect::Deny, "policy"));
}

/// A rule for the tests below, as YAML: over few tools and few arguments, so that many hold.
fn rule() -> impl Strategy<Value = String> {
    let tools = prop_oneof![Just("'*'"), Just("mcp.*"), Just("mcp.add"), Just("'{mcp.echo,mcp.add}'"), Just("other")];
    let effect = prop_oneof![Just("allow"), Just("gate"), Just("deny")];
    let test = prop_oneof![
        Just("exists: true"),
        Just("equals: 1"),
        Just("one_of: [1, two]"),
        Just("matches: ^t"),
        Just("at_least: 1"),
        Just("at_most: 0.5"),
    ];
    let condition = (prop_oneof![Just("/a"), Just("/b/0")], test, any::<bool>())
        .prop_map(|(pointer, test, not)| format!("{{pointer: {pointer}, {test}, not: {not}}}"));
    (tools, effect, proptest::collection::vec(condition, 0..3))
        .prop_map(|(tools, effect, when)| format!("tools: {tools}, effect: {effect}, when: [{}]", when.join(", ")))
}

fn file(default: &str, rules: &[(usize, String)]) -> Policy {
    let rules: String = rules.iter().map(|(number, rule)| format!("- {{id: r{number}, {rule}}}\n")).collect();
    policy(&format!("version: 1\ndefault: {default}\nrules:\n{rules}{}", if rules.is_empty() { "  []\n" } else { "" }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn deny_wins_the_order_says_nothing_and_a_policy_only_narrows(
        rules in proptest::collection::vec(rule(), 0..6),
        shuffle in any::<u64>(),
        default in prop_oneof![Just("allow"), Just("gate"), Just("deny")],
        a in prop_oneof![Just(json!(1)), Just(json!(0)), Just(json!("two")), Just(json!([1]))],
        is_gated in any::<bool>(),
        tool in prop_oneof![Just("add"), Just("echo")],
    ) {
        let called = arguments(json!({"a": a}));
        let full = format!("mcp.{tool}");
        let numbered: Vec<(usize, String)> = rules.into_iter().enumerate().collect();
        let policy = file(default, &numbered);
        let decided = policy.ruling(&full, &called);
        // Each rule by itself says whether it holds; the strictest of them decides, and without any the default does.
        let alone: Vec<Effect> = numbered.iter().flat_map(|each| file("allow", std::slice::from_ref(each)).matching(&full, &called).iter().map(|matched| matched.effect).collect::<Vec<_>>()).collect();
        prop_assert_eq!(decided.effect, alone.iter().copied().max().unwrap_or(Effect::named(default).unwrap()));
        prop_assert!(!alone.contains(&Effect::Deny) || decided.effect == Effect::Deny);
        // Whatever the order is.
        let mut shuffled = numbered.clone();
        shuffled.sort_by_key(|(number, _)| (*number as u64).wrapping_add(1).wrapping_mul(shuffle | 1).rotate_left(17));
        let other = file(default, &shuffled);
        let other = other.ruling(&full, &called);
        prop_assert_eq!((decided.effect, decided.rule), (other.effect, other.rule));
        prop_assert!(policy.at_least(&full) <= decided.effect);
        // Nothing gets milder than it is without a policy.
        for profile in ["safe", "none at all"] {
            let grants = || Grants::new(profile, &[]);
            let without = Authority::new(grants(), None).judge("mcp", tool, &called, is_gated);
            let with = Authority::new(grants(), Some(policy.clone())).judge("mcp", tool, &called, is_gated);
            prop_assert!(with.effect >= without.effect && with.effect >= decided.effect.min(with.effect));
            prop_assert!(profile == "safe" || with.effect == Effect::Deny);
            prop_assert!(!with.rule.is_empty());
        }
        // One rule more that does not allow, or one condition less of it, makes nothing milder.
        let more = [numbered.clone(), vec![(99, "tools: '*', effect: gate, when: []".to_owned())]].concat();
        prop_assert!(file(default, &more).ruling(&full, &called).effect >= decided.effect.min(Effect::Gate));
    }

    #[test]
    fn nothing_that_is_no_policy_is_taken_for_one(yaml in "[a-z{}\\[\\]:, \\-\n'*&0-9]{0,80}") {
        if let Err(error) = Policy::parse(&text(&yaml)) {
            prop_assert!(error.to_string().starts_with("the policy policy.yaml, line "), "{}", error);
        }
    }
}
