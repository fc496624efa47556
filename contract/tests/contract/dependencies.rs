//! The crate stands alone: it builds without the rest, and brings in next to nothing.

use std::collections::BTreeSet;
use std::process::Command;

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(crate::workspace()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn tree(features: &[&str], depth: &str) -> BTreeSet<String> {
    let mut arguments = vec![
        "tree", "--offline", "-p", "mission-contract", "-e", "normal", "--prefix", "none", "--depth", depth, "--format", "{lib}",
    ];
    arguments.extend(features);
    cargo(&arguments).lines().map(str::trim).filter(|name| !name.is_empty()).map(ToString::to_string).collect()
}

fn names(list: &[&str]) -> BTreeSet<String> {
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn it_depends_on_serde_and_a_digest_and_nothing_else() {
    let direct = names(&["mission_contract", "serde", "serde_json", "sha2"]);
    assert_eq!(tree(&["--no-default-features"], "1"), direct);
    let with_schemas: BTreeSet<String> = direct.into_iter().chain(["schemars".to_string()]).collect();
    assert_eq!(tree(&["--features", "schema"], "1"), with_schemas);
    let whole = tree(&["--no-default-features"], "99");
    for forbidden in ["tokio", "rmcp", "reqwest", "rustls", "clap", "jsonschema", "regex", "nix", "thiserror"] {
        assert!(!whole.contains(forbidden), "{forbidden} came in: {whole:?}");
    }
    assert!(whole.len() < 30, "it was to stay small: {whole:?}");
}

#[test]
fn it_builds_alone() {
    cargo(&["check", "--offline", "--quiet", "-p", "mission-contract", "--no-default-features"]);
}
