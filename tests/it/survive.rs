//! A run that is killed where it is about to make any one of its writes and syncs, and is begun again until it ends: every effect that
//! it planned happened once, and a person was asked at most about the one call that was in flight.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::each::each;
use crate::support::faults::traceable;
use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission};
use crate::support::servers;

const RUN: &str = "run_survivor";
/// More than this many times it was begun again: it does not come to its end.
const BEGINNINGS: usize = 8;

/// A folder to run in, the user's own, and what the server has done.
struct Place {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
    server: String,
}

/// What the tracer saw.
struct Traced {
    finished: Finished,
    made: usize,
    at: Option<String>,
}

impl Place {
    fn new() -> Result<Self, String> {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server =
            servers::line([servers::python()?.as_path(), &support("counting.py"), state.path().join("ledger").as_path()]);
        Ok(Self { folder, state, server })
    }

    fn at(&self, mission: Mission) -> Mission {
        mission.directory(self.folder.path()).env("XDG_STATE_HOME", self.state.path())
    }

    /// The line that a platform spawns, and spawns again whatever happened.
    fn mission(&self, model: &Model) -> Mission {
        let mission = Mission::objective("write three lines").model(model).mcp_stdio("mcp", &self.server).protocol("native");
        self.at(mission).args(["--start-or-resume", "--run-id", RUN, "--trust-annotations", "mcp"])
    }

    /// Kills it at its N-th write; 0 only counts.
    fn traced(&self, model: &Model, number: usize) -> Traced {
        let (tracer, report) = (support("kill_at.py"), self.state.path().join(format!("report-{number}")));
        let script = format!("exec python3 {} {number} {} \"$0\" \"$@\"", tracer.display(), report.display());
        let finished = self.mission(model).by_shell(&script).run();
        let said: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
        let made = usize::try_from(said["made"].as_u64().unwrap()).unwrap();
        Traced { finished, made, at: said["at"].as_str().map(str::to_owned) }
    }

    fn ledger(&self) -> Vec<String> {
        let ledger = std::fs::read_to_string(self.state.path().join("ledger")).unwrap_or_default();
        ledger.lines().map(str::to_owned).collect()
    }

    fn run_dir(&self) -> PathBuf {
        self.folder.path().join(".mission/runs").join(RUN)
    }

    /// Begins it again until it has ended, answering from the ledger. Gives the calls that were asked about.
    fn carried_on(&self, model: &Model) -> Vec<String> {
        let mut asked = Vec::new();
        for _ in 0..BEGINNINGS {
            let finished = self.mission(model).run();
            finished.exits(0);
            match self.answered(&finished) {
                Some(answer) => asked.push(answer),
                None => {
                    finished.ends("answered");
                    return asked;
                }
            }
        }
        panic!("it does not end: {asked:?}");
    }

    /// A person answers what is asked, if something is.
    fn answered(&self, finished: &Finished) -> Option<String> {
        let gate = finished.named("gate_requested").pop()?;
        finished.ends("awaiting_approval");
        let what = self.in_flight();
        assert_eq!((&gate["kind"], &gate["tool"], &gate["arguments"]["what"]), (&json!("reconcile"), &json!("mcp.bump"), &what));
        let what = what.as_str().unwrap().to_owned();
        let word = if self.ledger().contains(&what) { "done" } else { "retry" };
        let id = gate["approval_id"].as_str().unwrap();
        self.at(Mission::verb(["approvals", "answer", id, word, "--by", "ana"])).run().exits(0);
        Some(format!("{what} {word}"))
    }

    /// What the call writes that the log holds last, and no result of.
    fn in_flight(&self) -> Value {
        let lines = Log::read(&self.run_dir()).lines();
        let last = |kind: &str| lines.iter().rfind(|line| line.get(kind).is_some());
        let intent = last("intent").unwrap();
        assert!(last("result").is_none_or(|result| result["seq"].as_u64() < intent["seq"].as_u64()), "no call is in flight");
        intent["intent"]["arguments"]["what"].clone()
    }

    /// What holds of a run that was killed so often, however it came to its end.
    fn holds(&self, kills: usize, asked: &[String]) {
        assert_eq!(self.ledger(), ["first", "second", "third"], "each effect once, in order; asked: {asked:?}");
        assert!(asked.len() <= kills, "a kill opens at most one gate: {asked:?}");
        let log = Log::read(&self.run_dir());
        assert_eq!(log.problems(), Vec::<String>::new());
        let records = log.of_kind("record");
        let count = |name: &str| records.iter().filter(|record| record["event"] == name).count();
        assert_eq!(count("mission_started"), 1);
        assert_eq!((count("tool_call"), count("tool_result")), (4, 4), "each call is told once");
        assert_eq!(records.last().unwrap()["outcome"], "answered");
        self.at(Mission::verb(["verify", RUN])).run().exits(0);
        let replayed = self.at(Mission::verb(["replay", "--strict", RUN])).run();
        assert!(replayed.stdout.contains("1 same"), "{replayed}");
        assert!(!self.folder.path().join(".mission/runs/open").join(RUN).exists(), "it is over");
    }
}

fn support(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(name)
}

/// A turn with two calls, a reply that is rejected, a call that only reads, a third effect, and an answer.
fn model() -> Model {
    let bump = |what: &str| ("mcp.bump".to_owned(), json!({"what": what}));
    Model::follows([
        Turn::Call(vec![bump("first"), bump("second")]),
        call("mcp.bump", json!({"what": 7})),
        call("mcp.look", json!({})),
        Turn::Call(vec![bump("third")]),
        answer("There are three."),
    ])
}

#[test]
fn killed_at_any_write_or_sync_each_effect_happens_once() {
    let place = needs!(Place::new());
    needs!(traceable());
    let unhurt = place.traced(&model(), 0);
    unhurt.finished.exits(0).ends("answered");
    place.holds(0, &[]);
    assert!(unhurt.made >= 60, "it writes more often than {} times", unhurt.made);
    // A few more: the order of the threads is another every time. What is not killed any more was over.
    let table: Vec<(String, usize)> = (1..=unhurt.made + 2).map(|number| (format!("write {number}"), number)).collect();
    let table: Vec<(&str, usize)> = table.iter().map(|(name, number)| (name.as_str(), *number)).collect();
    let seen = Mutex::new(Vec::new());
    each(&table, |number| {
        let (place, model) = (Place::new().unwrap(), model());
        let traced = place.traced(&model, *number);
        let asked = place.carried_on(&model);
        eprintln!("write {number}: {:?}, asked {asked:?}", traced.at);
        place.holds(1, &asked);
        seen.lock().unwrap().push((traced.at, asked));
    });
    let seen = seen.into_inner().unwrap();
    let killed = |what: &str| seen.iter().filter(|(at, _)| at.as_ref().is_some_and(|at| at.contains(what))).count();
    // How often the audit file is synced depends on how long a run takes.
    assert!(killed("") >= unhurt.made - 12, "{} of {}", killed(""), unhurt.made);
    for what in ["log.ndjson", "fdatasync", "fsync", "mkdir", "create", "rename", "pipe:", "socket:"] {
        assert!(killed(what) > 0, "never killed at {what}: {seen:?}");
    }
    for word in ["done", "retry"] {
        assert!(seen.iter().any(|(_, asked)| asked.iter().any(|asked| asked.ends_with(word))), "nobody said {word}: {seen:?}");
    }
}

/// The same of a process that carries a run on whose call in doubt was answered: it spends the answer, makes the call again, goes on.
#[test]
fn killed_again_while_it_is_carried_on_each_effect_still_happens_once() {
    needs!(traceable());
    // A place where a call is in doubt and answered. The order of the threads is not always the same.
    let in_doubt = |from: usize| {
        (from..60).find_map(|number| {
            let (place, model) = (Place::new().unwrap(), model());
            place.traced(&model, number);
            let answer = place.answered(&place.mission(&model).run())?;
            answer.ends_with("retry").then_some((number, place, model, answer))
        })
    };
    needs!(Place::new());
    let (from, place, model, first) = in_doubt(25).expect("a kill leaves a call in doubt");
    let unhurt = place.traced(&model, 0);
    unhurt.finished.exits(0).ends("answered");
    place.holds(1, &[first]);
    let table: Vec<(String, usize)> = (1..=unhurt.made).map(|number| (format!("write {number}"), number)).collect();
    let table: Vec<(&str, usize)> = table.iter().map(|(name, number)| (name.as_str(), *number)).collect();
    let seen = Mutex::new(Vec::new());
    each(&table, |number| {
        let (_, place, model, first) = in_doubt(from).expect("a kill leaves a call in doubt");
        let traced = place.traced(&model, *number);
        let mut asked = vec![first];
        asked.extend(place.carried_on(&model));
        eprintln!("write {number}: {:?}, asked {asked:?}", traced.at);
        place.holds(2, &asked);
        seen.lock().unwrap().push((traced.at, asked));
    });
    let seen = seen.into_inner().unwrap();
    assert!(seen.iter().filter(|(at, _)| at.is_some()).count() >= unhurt.made / 2, "{seen:?}");
    assert!(seen.iter().any(|(_, asked)| asked.len() == 2 && asked[0] == asked[1]), "nobody was asked again: {seen:?}");
}
