//! What the process hides, seen from outside: on the stream, on stdout, on stderr and in the records of the log; and what it keeps
//! as it is, in the inputs of the log and for the tools.

use serde_json::{Value, json};

use crate::support::model::{Model, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission, run_dirs, write};
use crate::support::servers;

/// In a variable that is named like a credential.
const OF_VARIABLE: &str = "v4riable-0f-the-h0use";
/// The token of a server.
const TOKEN: &str = "t0ken-0f-a-server";
/// In a file of values.
const OF_FILE: &str = "a value, with \"quotes\" & blanks";
/// Nobody named it, and it looks like a key: put together so that nothing takes it for a real one.
const LOOKS: &str = concat!("s", "k-", "4f9aB7cD1eF2gH3iJ4kL5mN6oP7qR8sT");

const SECRETS: [&str; 5] = [OF_VARIABLE, TOKEN, OF_FILE, LOOKS, "hunter2x"];

fn mission(model: &Model, server: &str) -> (Mission, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let values = write(folder.path(), "values.txt", &format!("another-value\n\n  {OF_FILE}\r\n"));
    let mission = Mission::objective("say what you know")
        .model(model)
        .mcp_stdio("mcp", server)
        .env("SERVICE_TOKEN", OF_VARIABLE)
        .env("MCP_TOKEN", TOKEN)
        .arg("--redact-file")
        .arg(values);
    (mission, folder)
}

fn all() -> String {
    format!("{OF_VARIABLE}, {TOKEN}, {OF_FILE}, {LOOKS}; password: hunter2x, it says.")
}

const ALL_SHOWN: &str = "<redacted:SERVICE_TOKEN>, <redacted:MCP_TOKEN>, <redacted:redact-file>, <redacted:api-key>; password: <redacted:password>, it says.";

/// The stream, stdout and stderr, without the fields that are verbatim.
fn seen(finished: &Finished) -> String {
    let mut seen = format!("{}{}", finished.stdout, finished.stderr);
    for mut record in finished.events() {
        let fields = record.as_object_mut().unwrap();
        for verbatim in ["output", "arguments", "objective"] {
            fields.remove(verbatim);
        }
        seen.push_str(&record.to_string());
    }
    seen
}

fn holds_none(text: &str) {
    for secret in SECRETS {
        let escaped = Value::from(secret).to_string();
        assert!(!text.contains(secret) && !text.contains(escaped.trim_matches('"')), "{secret} is in {text}");
    }
}

#[test]
fn no_secret_leaves_in_a_free_text_and_the_evidence_is_verbatim() {
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let model = Model::says([call("mcp.fail", json!({"why": all()})), answer(&all())]);
        let (mission, _folder) = mission(&model, &server);
        let finished = mission.protocol(protocol).run();
        finished.exits(0).ends("answered");
        assert_eq!(finished.only("answer")["text"], ALL_SHOWN, "{finished}");
        let fragments: Vec<String> =
            finished.named("answer_delta").iter().map(|delta| delta["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(fragments.concat(), ALL_SHOWN, "in pieces of a few characters too");
        holds_none(&seen(&finished));

        // What the contract passes verbatim, and what the tool and the model were given.
        let result = finished.only("tool_result");
        assert_eq!(result["error"], ALL_SHOWN);
        assert_eq!(result["arguments"]["why"], json!(all()));
        assert_eq!(finished.only("tool_call")["arguments"]["why"], json!(all()));
        assert!(model.requests().last().unwrap().to_string().contains(OF_VARIABLE), "the model reads what the tool said");

        // The log keeps what came in as it came, and what went out as it went.
        let log = finished.log();
        assert_eq!(log.of_kind("intent")[0]["arguments"]["why"], json!(all()));
        assert!(log.of_kind("reply").iter().any(|reply| reply.to_string().contains(LOOKS)));
        let answered = log.of_kind("record").into_iter().find(|record| record["event"] == "answer").unwrap();
        assert_eq!(answered["text"], ALL_SHOWN);
    }
}

#[test]
fn with_redact_evidence_nothing_on_the_stream_is_verbatim() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.look", json!({})), call("mcp.fail", json!({"why": all()})), answer("It knows.")]);
    let (mission, _folder) = mission(&model, &server);
    let finished = mission.args(["--redact-evidence", "--mcp-env", "SERVICE_TOKEN"]).run();
    finished.exits(0).ends("answered");
    holds_none(&format!("{}{}{}", finished.stream, finished.stdout, finished.stderr));
    let results = finished.named("tool_result");
    let output = results[0]["output"].as_str().unwrap();
    let environment: Value = serde_json::from_str(output).unwrap();
    assert_eq!(environment["environment"]["SERVICE_TOKEN"], "<redacted:SERVICE_TOKEN>", "the server had it, nobody else sees it");
    assert_eq!(results[1]["arguments"]["why"], ALL_SHOWN);

    let log = finished.log();
    assert_eq!(log.of_kind("open")[0]["spec"]["redact_evidence"], true);
    assert_eq!(log.of_kind("intent")[1]["arguments"]["why"], json!(all()), "the tool was given what the model said");
    assert!(log.of_kind("result")[0].to_string().contains(OF_VARIABLE), "and the log has what the tool said");
    let records: String = log.of_kind("record").iter().map(Value::to_string).collect();
    holds_none(&records);
}

/// A large result is stored once in a log, unless the record says something else.
#[test]
fn a_large_output_is_pointed_at_unless_it_was_redacted() {
    let server = needs!(servers::misbehaving(&[]));
    let big = || Model::says([call("mcp.big", json!({"kib": 100})), answer("Large.")]);
    let pointed = |line: &str| {
        let model = big();
        let folder = tempfile::tempdir().unwrap();
        let values = write(folder.path(), "values.txt", line);
        let finished = Mission::objective("fetch")
            .model(&model)
            .mcp_stdio("mcp", &server)
            .arg("--redact-evidence")
            .arg("--redact-file")
            .arg(values)
            .run();
        finished.exits(0).ends("answered");
        let output = finished.only("tool_result")["output"].as_str().unwrap().to_owned();
        let bytes = String::from_utf8(finished.log().bytes).unwrap();
        (bytes.contains("{\"$of\":"), output)
    };
    let (points, output) = pointed("nowhere-to-be-found\n");
    assert!(points && output.contains("line 000000700"));
    let (points, output) = pointed("line 000000700\n");
    assert!(!points && !output.contains("line 000000700") && output.contains("<redacted:redact-file>"));
}

#[test]
fn a_command_line_leaves_no_credential_in_the_log() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([answer("Fine.")]);
    let finished = Mission::objective("look")
        .model(&model)
        .mcp_stdio("mcp", &format!("{server} --api-key hunter2x --url https://reader:pa55w0rd@host.invalid/"))
        .run();
    finished.exits(0).ends("answered");
    let open = finished.log().of_kind("open").remove(0);
    assert!(!open.to_string().contains("hunter2x") && !open.to_string().contains("pa55w0rd"), "{open}");
    let spec = &open["spec"]["servers"][0];
    let argv = spec["argv"].as_array().unwrap();
    assert!(argv.contains(&json!("<redacted:api-key>")), "{spec}");
    assert!(argv.contains(&json!("https://reader:<redacted:url-password>@host.invalid/")), "{spec}");
    assert_eq!(spec["masked"], true, "it must be given again on resume");
}

#[test]
fn a_sentence_on_stderr_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let values = write(folder.path(), "values.txt", &format!("{OF_FILE}\n"));
    let finished = Mission::objective("look")
        .arg("--redact-file")
        .arg(values)
        .env("SERVICE_TOKEN", OF_VARIABLE)
        .args(["--provider", &format!("{OF_VARIABLE} {OF_FILE} {LOOKS}")])
        .run();
    finished.refused(&["<redacted:SERVICE_TOKEN>", "<redacted:redact-file>", "<redacted:api-key>"]);
    holds_none(&finished.stderr);

    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([answer("Fine.")]);
    let finished = Mission::objective("look")
        .model(&model)
        .env("SERVICE_TOKEN", OF_VARIABLE)
        .mcp_stdio("mcp", &format!("{server} --refuse-to-start --password {OF_VARIABLE}"))
        .run();
    finished.exits(1).ends("incomplete");
    holds_none(&format!("{}{}{}", finished.stream, finished.stdout, finished.stderr));
}

#[test]
fn a_file_of_values_that_cannot_be_taken_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, naming: &[&str]| {
        let path = folder.path().join(name);
        let finished = Mission::objective("look").arg("--redact-file").arg(&path).run();
        finished.refused(&[&["--redact-file", name], naming].concat());
        finished.stderr
    };
    refused("absent", &["cannot be read"]);
    refused("", &["no regular file"]);
    write(folder.path(), "large", &"0123456789\n".repeat(6000));
    refused("large", &["larger than 65536 bytes"]);
    write(folder.path(), "short", "long-enough\nhunter2\n");
    assert!(!refused("short", &["line 2", "7 characters"]).contains("hunter2"));
    std::fs::write(folder.path().join("bytes"), b"long-enough\n\xff").unwrap();
    refused("bytes", &["not UTF-8"]);
    assert!(run_dirs(folder.path()).is_empty());
}

#[test]
fn a_variable_too_short_to_be_hidden_is_named() {
    let model = Model::says([answer("Fine.")]);
    let finished = Mission::objective("look").model(&model).env("SHORT_TOKEN", "word").env("EMPTY_TOKEN", " ").run();
    finished.exits(0);
    assert!(finished.stderr.contains("The value of SHORT_TOKEN is not hidden: it has fewer than 8 characters."), "{finished}");
    assert!(!finished.stderr.contains("EMPTY_TOKEN"), "{finished}");
}

#[test]
fn a_gated_call_with_a_secret_is_made_with_the_secret_and_shown_without() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = needs!(servers::misbehaving(&[]));
    let at =
        |mission: Mission| mission.directory(folder.path()).env("XDG_STATE_HOME", state.path()).env("SERVICE_TOKEN", OF_VARIABLE);
    let model = Model::says([call("mcp.fail", json!({"why": OF_VARIABLE}))]);
    let gated = Mission::objective("say it").model(&model).mcp_stdio("mcp", &server).args(["--gate-tool", "fail"]);
    let parked = at(gated).arg("--redact-evidence").run();
    parked.exits(0).ends("awaiting_approval");
    holds_none(&format!("{}{}{}", parked.stream, parked.stdout, parked.stderr));
    let id = parked.only("gate_requested")["approval_id"].as_str().unwrap().to_owned();
    let shown = at(Mission::verb(["approvals", "show", &id])).run();
    holds_none(&shown.stdout);
    at(Mission::verb(["approvals", "approve", &id, "--by", "ana"])).run().exits(0);
    let model = Model::says([answer("Said.")]);
    let run = run_dirs(folder.path()).pop().unwrap();
    let resumed = at(Mission::resume(run.file_name().unwrap().to_str().unwrap())).model(&model).run();
    resumed.exits(0).ends("answered");
    holds_none(&format!("{}{}{}", resumed.stream, resumed.stdout, resumed.stderr));
    assert_eq!(resumed.log().of_kind("result")[0]["error"], OF_VARIABLE, "the tool got the real bytes, and said them");
}
