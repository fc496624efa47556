//! The machine loses its power at any moment of a run. What was synced is there; of the group that was being written there is a part, or
//! what the disk held before, or nothing: the run comes to its end all the same, as one does that was killed.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mission::journal::LogReader;
use serde_json::Value;

use crate::support::each::each;
use crate::support::log::Log;
use crate::support::needs;
use crate::support::servers;
use crate::survive::{Course, Place, RUN, model, verify_and_replay};

/// A run's log, cut into lines.
struct Whole {
    lines: Vec<Vec<u8>>,
    read: Vec<Value>,
}

/// The power goes while a group is written.
#[derive(Clone)]
struct Loss {
    /// The first line of that group, from 0.
    group: usize,
    /// So many lines are whole.
    whole: usize,
    /// What stands behind them.
    rest: Vec<u8>,
    /// What had taken effect by then.
    ledger: Vec<String>,
}

impl Whole {
    fn of(log: &Log) -> Self {
        Self { lines: log.bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect(), read: log.lines() }
    }

    /// The first lines of the groups.
    fn groups(&self) -> Vec<usize> {
        (0..self.read.len()).filter(|at| *at == 0 || self.read[*at]["group"] != self.read[at - 1]["group"]).collect()
    }

    /// What may have taken effect while the group that ends before line `end` is written, and nothing behind `synced` is durable: everything
    /// whose result is there, and perhaps the call that is under way.
    fn ledgers(&self, synced: usize, end: usize) -> Vec<Vec<String>> {
        let (mut intents, mut begun) = (0, BTreeMap::new());
        for line in &self.read[..synced] {
            if line.get("intent").is_some() {
                intents += 1;
                begun.insert(intents, line["intent"]["arguments"]["item"].as_str().map(str::to_owned));
            }
        }
        let came_back = |number: &u64| self.read[..end].iter().any(|line| line["result"]["of"].as_u64() == Some(*number));
        let sure: Vec<String> =
            begun.iter().filter(|(number, _)| came_back(number)).filter_map(|(_, item)| item.clone()).collect();
        let perhaps: Vec<String> =
            begun.iter().filter(|(number, _)| !came_back(number)).filter_map(|(_, item)| item.clone()).collect();
        assert!(perhaps.len() <= 1, "{perhaps:?}");
        if perhaps.is_empty() { vec![sure] } else { vec![sure.clone(), [sure, perhaps].concat()] }
    }

    /// Every loss: in each group behind each of its lines, with different things behind it.
    fn losses(&self) -> Vec<(String, Loss)> {
        let groups = self.groups();
        let ends = groups.iter().skip(1).copied().chain([self.lines.len()]);
        let mut losses = Vec::new();
        for (group, end) in groups.iter().copied().zip(ends) {
            for whole in group..end {
                let next = &self.lines[whole];
                let half = &next[..next.len() / 2];
                let rests: [(&str, Vec<u8>); 8] = [
                    ("nothing", Vec::new()),
                    ("half a line", half.to_vec()),
                    ("half a line with its end", [half, b"\n"].concat()),
                    ("half a line and a blank one", [half, b"\n\n"].concat()),
                    ("half a character", [half, &"\u{e9}".as_bytes()[..1]].concat()),
                    ("zeros", vec![0; 4096]),
                    ("old bytes", [half, &[0; 700], b"\xff\xfe old\n{\"seq\":1,\"group\":1,"].concat()),
                    ("a hole before the rest of the group", [vec![0; next.len()], self.lines[whole + 1..end].concat()].concat()),
                ];
                // Nothing behind it, and in turn each of the others.
                for (words, rest) in [&rests[0], &rests[1 + whole % 7]] {
                    // Before a byte of the group is there, what it says may not have happened yet.
                    let is_begun = whole > group || !rest.is_empty();
                    for ledger in self.ledgers(group, if is_begun { end } else { group }) {
                        let name = format!("{whole} lines, then {words}, with {ledger:?}");
                        losses.push((name, Loss { group, whole, rest: rest.clone(), ledger }));
                    }
                }
            }
        }
        losses
    }
}

/// A run that came to its end unhurt.
fn unhurt() -> Result<(Place, Log), String> {
    let place = Place::new(&servers::counting()?);
    let model = model();
    place.begin(&model).run().exits(0).ends("answered");
    let log = Log::read(&place.run_dir());
    Ok((place, log))
}

#[test]
fn a_run_whose_machine_lost_its_power_at_any_moment_does_everything_once() {
    let (place, log) = needs!(unhurt());
    let model = model();
    let whole = Whole::of(&log);
    let losses = whole.losses();
    assert!(losses.len() >= 2 * whole.lines.len() && whole.groups().len() >= 4, "{} losses", losses.len());
    let table: Vec<(&str, Loss)> = losses.iter().map(|(name, loss)| (name.as_str(), loss.clone())).collect();
    let survived = Mutex::new(Vec::new());
    each(&table, |loss| {
        let place = place.copy();
        let run_dir = place.run_dir();
        let left = whole.lines[..loss.whole].concat();
        std::fs::write(run_dir.join("log.ndjson"), [left.clone(), loss.rest.clone()].concat()).unwrap();
        std::fs::remove_file(run_dir.join("meta.json")).unwrap();
        std::fs::write(run_dir.parent().unwrap().join("open").join(RUN), "").unwrap();
        std::fs::write(place.work().join("ledger"), loss.ledger.iter().map(|item| format!("{item}\n")).collect::<String>())
            .unwrap();
        assert_eq!(place.lines().len(), loss.whole);
        // What had been shown by then was durable.
        let shown = whole.read[..loss.group].iter().filter(|line| line.get("record").is_some());
        let mut course = Course::default();
        course.killed(&place, shown.map(|line| format!("{}\n", line["record"])).collect());
        course.carry_on(&place, &model);
        course.holds(&place);
        // What was torn is kept, byte for byte.
        if !loss.rest.is_empty() && loss.whole > 0 {
            assert_eq!(std::fs::read(run_dir.join(format!("log.torn-{}", loss.whole + 1))).unwrap(), loss.rest);
        }
        assert!(Log::read(&run_dir).bytes.starts_with(&left));
        survived.lock().unwrap().push((place, course));
    });
    let survived = survived.into_inner().unwrap();
    verify_and_replay(&survived);
    for word in ["done", "retry"] {
        assert!(survived.iter().any(|(_, course)| course.answers.contains(&word)), "nobody said {word}");
    }
}

/// Wherever its last groups are cut, a log ends behind the last whole line.
#[test]
fn a_log_that_is_cut_at_any_byte_ends_behind_its_last_whole_line() {
    let (place, log) = needs!(unhurt());
    let whole = Whole::of(&log);
    let groups = whole.groups();
    let from: usize = whole.lines[..groups[groups.len() - 3]].iter().map(Vec::len).sum();
    let path = place.run_dir().join("log.ndjson");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for end in (from..=log.bytes.len()).rev() {
        file.set_len(end as u64).unwrap();
        let lines = log.bytes[..end].iter().filter(|byte| **byte == b'\n').count() as u64;
        let tail = LogReader::open(&path).unwrap().into_tail().unwrap_or_else(|error| panic!("{end} bytes: {error}"));
        let rest = end - log.bytes[..end].iter().rposition(|byte| *byte == b'\n').unwrap() - 1;
        let torn = tail.torn.as_ref().map_or(0, |torn| torn.bytes);
        assert_eq!((tail.seq, torn), (lines, rest as u64), "{end} bytes");
    }
}
