//! A run that is killed at any write and at any sync comes to its end: every effect that was planned happened exactly once, a person is
//! asked about no more than the call that was under way, and the log says what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mission_contract::conforms::conforms;
use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};

use crate::support::each::each;
use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{BINARY, Finished, Mission, records};
use crate::support::servers;
use crate::support::tracer::{Call, Traced, trace, traceable};

pub(crate) const RUN: &str = "run_survivor";

/// What is to stand in the ledger at the end, each once, in this order.
const ITEMS: [&str; 2] = ["lamp", "chair"];

/// How often a run may have to be taken up before it ends: once for each kill and each question, and some more.
const STRETCHES: usize = 8;

/// A turn of two calls with an effect; a reply that is rejected; a call that only reads; an answer.
pub(crate) fn model() -> Model {
    Model::follows([
        Turn::Call(ITEMS.map(|item| ("store.add".to_owned(), json!({"item": item}))).to_vec()),
        call("store.add", json!({"item": 7})),
        call("store.count", json!({})),
        answer("Both are there."),
    ])
}

/// A folder with all that belongs to a run and its world. Nothing in it names it, so that it can be copied.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    server: String,
}

impl Place {
    pub(crate) fn new(server: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), server: server.to_owned() };
        std::fs::create_dir_all(place.work()).unwrap();
        place
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The folder that the run works in; what belongs to its user lies beside it.
    pub(crate) fn work(&self) -> PathBuf {
        self.home().join("work")
    }

    pub(crate) fn copy(&self) -> Self {
        let place = Self::new(&self.server);
        copy(&self.home(), &place.home());
        place
    }

    fn at(&self, mission: Mission) -> Mission {
        mission.directory(&self.work()).env("XDG_STATE_HOME", self.home().join("state"))
    }

    pub(crate) fn begin(&self, model: &Model) -> Mission {
        let mission = Mission::objective("add a lamp and a chair").args(["--start-or-resume", "--run-id", RUN]).model(model);
        self.at(mission.protocol("native").mcp_stdio("store", &self.server).args(["--trust-annotations", "store"]))
    }

    fn resume(&self, model: &Model) -> Mission {
        self.at(Mission::resume(RUN)).env("LOCAL_API_BASE", model.base_url())
    }

    fn answers(&self, id: &str, word: &str) -> Mission {
        self.at(Mission::verb(["approvals", "answer", id, word, "--by", "ana"]))
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.work().join(".mission/runs").join(RUN)
    }

    /// The lines of its log, as far as they are whole; none where there is none.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let bytes = std::fs::read(self.run_dir().join("log.ndjson")).unwrap_or_default();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        lines.map_while(|line| serde_json::from_slice(line).ok()).collect()
    }

    fn is_over(&self) -> bool {
        self.lines().iter().any(|line| line["record"]["event"] == "mission_finished" && line["record"]["outcome"] == "answered")
    }

    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.work().join("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Effects whose call was begun and of which no outcome is known, by the log.
    pub(crate) fn in_doubt(&self) -> Vec<String> {
        let (mut intents, mut open) = (0, BTreeMap::new());
        for line in self.lines() {
            if line.get("intent").is_some() {
                intents += 1;
                if line["intent"]["tool"] == "store.add" {
                    open.insert(intents, line["intent"]["arguments"]["item"].as_str().unwrap().to_owned());
                }
            }
            if let Some(of) = line["result"]["of"].as_u64() {
                open.remove(&of);
            }
            // A person has said what became of it.
            if line.get("decision").is_some() {
                open.clear();
            }
        }
        open.into_values().collect()
    }

    /// What waits for a person, by its record: the approval, and the effect.
    fn waiting(&self) -> Vec<(String, String)> {
        let listed = self.at(Mission::verb(["approvals", "list", "--json"])).run();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        records(&listed.stdout).iter().map(|record| (word(&record["approval_id"]), word(&record["arguments"]["item"]))).collect()
    }

    /// Waits until no server lives any more: what it was told, it has done by then, or never will.
    fn wait_for_servers(&self) {
        if let Ok(file) = std::fs::File::open(self.work().join("alive")) {
            Flock::lock(file, FlockArg::LockExclusive).unwrap();
        }
    }

    /// Runs a process under the tracer. What it streams goes to a file, as it would to a pipe.
    fn traced(&self, mission: Mission, kills: impl FnMut(&Call) -> bool + Send) -> (Traced, String) {
        let events = self.work().join("events");
        let words = mission.command_line();
        let mut command = mission.command(&self.work(), BINARY.as_ref(), &words[1..]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let traced = trace(command, kills).unwrap();
        let stream = std::fs::read_to_string(&events).unwrap_or_default();
        let _ = std::fs::remove_file(&events); // there is none where it was killed early
        (traced, stream)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// What happened to a run over all of its processes.
#[derive(Clone, Default)]
pub(crate) struct Course {
    streams: Vec<String>,
    kills: usize,
    /// Effects that were in doubt after a kill.
    doubted: Vec<String>,
    /// Approval → effect that it asks about.
    gates: BTreeMap<String, String>,
    /// The person looks at what waits before the run is taken up, and not only when it asks.
    is_hasty: bool,
    /// What a person said.
    pub(crate) answers: Vec<&'static str>,
}

impl Course {
    pub(crate) fn killed(&mut self, place: &Place, stream: String) {
        self.kills += 1;
        self.streams.push(stream);
        place.wait_for_servers();
        let doubted = place.in_doubt();
        assert!(doubted.len() <= 1, "{doubted:?} were under way at once");
        self.doubted.extend(doubted);
    }

    /// Takes the run up until it ends; a person answers by what the ledger says.
    pub(crate) fn carry_on(&mut self, place: &Place, model: &Model) {
        for _ in 0..STRETCHES {
            if place.is_over() {
                return;
            }
            place.wait_for_servers();
            let waiting = if self.is_hasty { place.waiting() } else { Vec::new() };
            for (id, item) in waiting {
                self.person(place, id, item);
            }
            // Where nothing of it was durable, it is begun.
            let mission = if place.lines().is_empty() { place.begin(model) } else { place.resume(model) };
            let finished = mission.run();
            finished.exits(0);
            self.streams.push(finished.stream.clone());
            if finished.events().last().unwrap()["outcome"] == "awaiting_approval" {
                let (id, item) = gate(&finished);
                self.person(place, id, item);
            }
        }
        panic!("it does not end: {}", self.streams.concat());
    }

    fn person(&mut self, place: &Place, id: String, item: String) {
        place.wait_for_servers();
        let word = if place.ledger().contains(&item) { "done" } else { "retry" };
        place.answers(&id, word).run().exits(0);
        self.gates.insert(id, item);
        self.answers.push(word);
    }

    /// What has to hold at the end, whatever happened.
    pub(crate) fn holds(&self, place: &Place) {
        let log = Log::read(&place.run_dir());
        let story = || format!("{}\n{}", String::from_utf8_lossy(&log.bytes), self.streams.concat());
        assert_eq!(place.ledger(), ITEMS, "each effect happened once\n{}", story());
        assert_eq!(log.problems(), Vec::<String>::new(), "{}", story());
        let asked: Vec<&String> = self.gates.values().collect();
        let doubted: BTreeSet<&String> = self.doubted.iter().collect();
        assert!(self.gates.len() <= self.kills, "{asked:?} were asked about after {} kills\n{}", self.kills, story());
        assert!(asked.iter().all(|item| doubted.contains(item)), "asked about {asked:?}, in doubt {doubted:?}\n{}", story());
        let told = log.of_kind("record");
        assert_eq!((&told[0]["event"], &told.last().unwrap()["outcome"]), (&json!("mission_started"), &json!("answered")));
        for (name, times) in [("mission_started", 1), ("tool_call", 3), ("tool_result", 3), ("reply_rejected", 1), ("answer", 1)]
        {
            assert_eq!(told.iter().filter(|record| record["event"] == name).count(), times, "{name}\n{}", story());
        }
        for record in &told {
            assert_eq!(conforms(record), [], "{record}");
        }
        // Whatever somebody was shown is in the log, in its order, and was shown once.
        let mut durable = told.into_iter();
        for record in self.streams.iter().flat_map(|stream| whole_records(stream)) {
            assert!(
                record["event"] == "answer_delta" || durable.any(|told| told == record),
                "shown twice, or lost: {record}\n{}",
                story()
            );
        }
    }
}

/// The records of a stream that may have been cut.
fn whole_records(stream: &str) -> Vec<Value> {
    records(&stream[..stream.rfind('\n').map_or(0, |at| at + 1)])
}

/// What a parked run asks about: the approval's id, and the effect.
fn gate(parked: &Finished) -> (String, String) {
    let gate = parked.only("gate_requested");
    assert_eq!((&gate["kind"], &gate["tool"]), (&json!("reconcile"), &json!("store.add")), "{gate}");
    (gate["approval_id"].as_str().unwrap().to_owned(), gate["arguments"]["item"].as_str().unwrap().to_owned())
}

/// What is said of many runs at once, by the program itself: their logs verify, and replay to what they are.
pub(crate) fn verify_and_replay(places: &[(Place, Course)]) {
    let folders = || places.iter().map(|(place, _)| place.run_dir());
    let verified = Mission::verb(["verify"]).args(folders()).run();
    verified.exits(0);
    assert_eq!(verified.stdout.lines().filter(|line| line.contains(": fine, ")).count(), places.len(), "{verified}");
    let replayed = Mission::verb(["replay", "--strict", "--json"]).args(folders()).run();
    let report: Value = serde_json::from_str(&replayed.stdout).unwrap();
    for recording in report["recordings"].as_array().unwrap() {
        assert_eq!((&recording["verdict"], &recording["finished"]), (&json!("same"), &json!(true)), "{recording:#}");
    }
    replayed.exits(0);
}

/// Kills a process at each of its calls, every time in a fresh copy of the same place, and takes the run up until it ends.
fn kill_everywhere(
    from: &Place,
    before: &Course,
    model: &Model,
    mission: impl Fn(&Place) -> Mission + Sync,
) -> (Vec<Call>, Vec<(Place, Course)>) {
    let dry = from.copy();
    let (unhurt, _) = dry.traced(mission(&dry), |_| false);
    assert_eq!(unhurt.code, Some(0), "{unhurt:?}");
    let named: Vec<(String, Call)> =
        unhurt.calls.iter().map(|at| (format!("{} of {}, the {}.", at.name, at.target, at.count), at.clone())).collect();
    let table: Vec<(&str, Call)> = named.iter().map(|(name, at)| (name.as_str(), at.clone())).collect();
    let survived = Mutex::new(Vec::new());
    let missed = Mutex::new(Vec::new());
    each(&table, |at| {
        let place = from.copy();
        let mut course = before.clone();
        let (traced, stream) = place.traced(mission(&place), |call| call == at);
        if traced.killed {
            course.killed(&place, stream);
        } else {
            // It wrote in other portions this time.
            missed.lock().unwrap().push(at.clone());
            course.streams.push(stream);
        }
        course.carry_on(&place, model);
        course.holds(&place);
        // Whoever asks for it once more gets what it came to, and by then nothing says that it goes on.
        let told = place.begin(model).run();
        told.exits(0).ends("answered");
        assert!(!place.run_dir().parent().unwrap().join("open").join(RUN).exists(), "it is over");
        survived.lock().unwrap().push((place, course));
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.len() * 5 <= table.len(), "{missed:?} of {:?} were not made again", unhurt.calls);
    let survived = survived.into_inner().unwrap();
    verify_and_replay(&survived);
    (unhurt.calls, survived)
}

fn count(calls: &[Call], name: &str, target: &str) -> usize {
    calls.iter().filter(|call| call.name == name && call.target == target).count()
}

#[test]
fn a_run_that_is_killed_at_any_write_or_sync_does_everything_once() {
    let server = needs!(servers::counting());
    needs!(traceable());
    let model = model();
    let (calls, survived) =
        kill_everywhere(&Place::new(&server), &Course::default(), &model, |place| place.begin(&model).events("events"));
    // Writes and syncs of the log, calls at the server, requests to the model, the stream, what a list shows.
    for (name, target, least) in [
        ("write", "log.ndjson", 4),
        ("fdatasync", "log.ndjson", 4),
        ("write", "pipe", 7),
        ("writev", "socket", 4),
        ("write", "events", 4),
        ("fsync", "runs", 1),
    ] {
        assert!(count(&calls, name, target) >= least, "{name} of {target}: {calls:?}");
    }
    let said: Vec<&str> = survived.iter().flat_map(|(_, course)| course.answers.iter().copied()).collect();
    for word in ["done", "retry"] {
        assert!(said.contains(&word), "nobody said {word}: {said:?}");
    }
}

/// A run that was killed when a call was about to be made, or when its result was about to be written.
fn doubtful(server: &str, model: &Model, is_done: bool) -> (Place, Course) {
    let place = Place::new(server);
    let (ledger, log) = (place.work().join("ledger"), place.run_dir().join("log.ndjson"));
    let (traced, stream) = place.traced(place.begin(model).events("events"), |call| match is_done {
        true => call.target == "log.ndjson" && ledger.exists(),
        false => call.target == "pipe" && std::fs::read_to_string(&log).is_ok_and(|log| log.contains("\"intent\":{")),
    });
    assert!(traced.killed, "{traced:?}");
    let mut course = Course::default();
    course.killed(&place, stream);
    assert_eq!((place.in_doubt(), place.ledger().len()), (vec!["lamp".to_owned()], usize::from(is_done)));
    (place, course)
}

/// Whoever asks the person, whoever takes the answer, and whoever goes on with it can be killed at any moment as well.
#[test]
fn asking_a_person_answering_and_going_on_survive_as_well() {
    let server = needs!(servers::counting());
    needs!(traceable());
    let model = model();
    for word in ["done", "retry"] {
        let (place, mut course) = doubtful(&server, &model, word == "done");
        for is_hasty in [false, true] {
            let course = Course { is_hasty, ..course.clone() };
            kill_everywhere(&place, &course, &model, |place| place.resume(&model).events("events"));
        }
        let parked = place.resume(&model).run();
        parked.exits(0).ends("awaiting_approval");
        let (id, item) = gate(&parked);
        course.streams.push(parked.stream.clone());
        course.gates.insert(id.clone(), item);
        kill_everywhere(&place, &course, &model, |place| place.answers(&id, word));
        place.answers(&id, word).run().exits(0);
        course.answers.push(word);
        kill_everywhere(&place, &course, &model, |place| place.resume(&model).events("events"));
    }
}
