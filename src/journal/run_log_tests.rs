#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::io::Write;
use std::sync::mpsc;

use mission_contract::event::{AnswerDelta, MissionFinished, Notice, Outcome, StepStarted, ToolResult};
use mission_contract::line::Line;
use mission_contract::log::{CallResult, Open, Timer, Writer as WriterLine};
use mission_contract::text::Text;

use super::*;
use crate::engine::delivery::Delivery;
use crate::journal::{LogReader, ReadError, Witness};
use crate::stream::sink::LineSink;
use crate::sys::clock::ManualClock;
use crate::sys::descriptors::Output;

const GRACE: Duration = Duration::from_secs(60);

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::at("2026-12-01T02:03:04Z".parse().unwrap()))
}

/// A sink whose deliveries come out of a channel, as lines.
fn collector() -> (Box<dyn EventSink>, mpsc::Receiver<String>) {
    let (sender, lines) = mpsc::channel();
    let sink = move |delivery: &Delivery| {
        let _ = sender.send(delivery.line().to_string());
    };
    (Box::new(sink), lines)
}

fn timer(name: &str) -> Entry {
    Entry::Timer(Timer { name: name.into() })
}

fn notice(detail: &str) -> Event {
    Event::Notice(Notice { code: "test".into(), detail: detail.into(), ..Default::default() })
}

fn fragment(text: &str) -> Event {
    Event::AnswerDelta(AnswerDelta { text: text.into(), ..Default::default() })
}

fn finished() -> Event {
    Event::MissionFinished(MissionFinished { outcome: Outcome::Answered, steps: 2, ..Default::default() })
}

fn open() -> Entry {
    let mut open = Open { run_id: "run_1-1".into(), ..Default::default() };
    open.spec.objective = "long ".repeat(100);
    open.spec.provider = "local".into();
    Entry::Open(Box::new(open))
}

fn lines(path: &Path) -> Vec<Line> {
    LogReader::open(path).unwrap().map(Result::unwrap).collect()
}

/// A log that is written to some file, with nothing around it.
fn over(log: File, sinks: Vec<Box<dyn EventSink>>) -> RunLog {
    let held = HeldRun { run_id: "run_1-1".into(), log, place: None, unsynced: Vec::new() };
    RunLog::start(held, (0, digest::ZERO.to_owned()), 1, RunMeta::default(), clock(), sinks).unwrap()
}

#[tokio::test]
async fn a_run_from_its_first_line_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let (sink, delivered) = collector();
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![sink]).unwrap();
    let run_folder = log.folder().unwrap().to_path_buf();
    let marker = folder.path().join(".mission/runs/open/run_1-1");

    assert_eq!(log.append(0, open()), 1);
    assert_eq!(log.record(5, Event::StepStarted(StepStarted { index: 1, ..Default::default() }), None), 2);
    log.synced().await.unwrap();
    assert_eq!(lines(&run_folder.join("log.ndjson")).len(), 2);
    assert!(marker.exists());
    log.record(7, finished(), None);
    log.room().await;
    assert_eq!(log.close(Patience::AtMost(GRACE)).await, Closing::default());

    assert!(!marker.exists());
    let lines = lines(&run_folder.join("log.ndjson"));
    assert_eq!(lines.iter().map(|line| (line.seq, line.ms)).collect::<Vec<_>>(), [(1, 0), (2, 5), (3, 7)]);
    assert_eq!(lines[0].at, "2026-12-01T02:03:04.000Z");
    let delivered: Vec<String> = delivered.iter().collect();
    let journaled: Vec<&str> = lines
        .iter()
        .filter_map(|line| match &line.entry {
            Entry::Record(record) => Some(record.get()),
            _ => None,
        })
        .collect();
    assert_eq!(delivered, journaled);
    let ending: Event = serde_json::from_str(&delivered[1]).unwrap();
    assert!(matches!(ending, Event::MissionFinished(finished) if finished.log_head.as_ref() == Some(&lines[1].sum)));

    let meta = store.meta("run_1-1").unwrap();
    assert_eq!((meta.outcome, meta.steps, meta.provider.as_str()), (Some(Outcome::Answered), 2, "local"));
    assert_eq!(meta.objective.len(), 200);
    assert_eq!(meta.created_at, "2026-12-01T02:03:04.000Z");
    assert_eq!(meta.head, Some(Witness { seq: 3, sum: lines[2].sum.clone() }));
    store.hold("run_1-1").unwrap();
}

#[tokio::test]
async fn a_clock_that_goes_back_only_informs() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let clock = Arc::new(ManualClock::at("2026-12-01T02:03:04Z".parse().unwrap()));
    let (sink, delivered) = collector();
    let mut log = RunLog::create(&store, "run_1-1", Arc::clone(&clock) as Arc<dyn Clock>, vec![sink]).unwrap();
    let path = log.folder().unwrap().join("log.ndjson");
    let mut open = Open { run_id: "run_1-1".into(), format: mission_contract::LOG_FORMAT, ..Open::default() };
    open.spec.objective = "wait".into();
    log.append(0, Entry::Open(Box::new(open)));
    for (ms, at) in [(1, "2026-12-02T02:03:04Z"), (2, "2026-12-02T01:03:04Z"), (3, "1970-01-01T00:00:00Z")] {
        clock.set_utc(at.parse().unwrap());
        log.record(ms, notice(at), None);
        log.synced().await.unwrap();
    }
    log.record(4, finished(), None);
    assert_eq!(log.close(Patience::AtMost(GRACE)).await, Closing::default());
    assert_eq!(delivered.iter().count(), 4);
    let at: Vec<String> = lines(&path).into_iter().map(|line| line.at).collect();
    assert!(!at.is_sorted(), "{at:?}");
    let place = store.find("run_1-1", folder.path()).unwrap();
    let verdict = crate::journal::verify(&place, None).unwrap();
    assert_eq!((verdict.fault, verdict.notes, verdict.ended), (None, Vec::new(), true));
    assert_eq!(store.names().unwrap(), ["run_1-1"]);
}

#[tokio::test]
async fn a_log_that_was_removed_is_a_failed_journal() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let (sink, delivered) = collector();
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![sink]).unwrap();
    log.append(0, open());
    log.synced().await.unwrap();
    // The writer may be about to write its facts beside the log.
    while std::fs::remove_dir_all(log.folder().unwrap()).is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound) {}
    log.record(1, notice("lost"), None);
    let error = log.synced().await.unwrap_err();
    assert!(error.detail.contains("its file was removed"), "{error}");
    assert_eq!(log.close(Patience::AtMost(GRACE)).await.failed, Some(error));
    assert_eq!(delivered.iter().count(), 0);
}

#[tokio::test]
async fn a_run_without_an_end_stays_marked_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let mut log = RunLog::create(&store, "run_1-1", clock(), Vec::new()).unwrap();
    log.append(0, open());
    log.close(Patience::AtMost(GRACE)).await;
    assert!(folder.path().join(".mission/runs/open/run_1-1").exists());
    assert_eq!(store.meta("run_1-1").unwrap().outcome, None);
}

#[tokio::test]
async fn what_comes_while_a_group_is_busy_is_one_group_and_order_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    // The sink lets the writer go on only when told: as a slow sync would.
    let (entered, busy) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let mut first = true;
    let sink = move |delivery: &Delivery| {
        entered.send(delivery.line().to_string()).unwrap();
        if std::mem::take(&mut first) {
            gate.recv().unwrap();
        }
    };
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![Box::new(sink)]).unwrap();
    let path = log.folder().unwrap().join("log.ndjson");
    log.record(0, notice("first"), None);
    assert!(busy.recv().unwrap().contains("first"));
    log.append(0, timer("a"));
    log.pass(fragment("fragment 1"));
    log.record(0, notice("second"), None);
    log.pass(fragment("fragment 2"));
    log.record(0, notice("third"), None);
    go_on.send(()).unwrap();
    log.close(Patience::AtMost(GRACE)).await;
    let seen: Vec<String> = busy.iter().collect();
    let order = ["fragment 1", "second", "fragment 2", "third"];
    assert!(seen.len() == 4 && seen.iter().zip(order).all(|(line, text)| line.contains(text)), "{seen:?}");
    let groups: Vec<u64> = lines(&path).iter().map(|line| line.group).collect();
    assert_eq!(groups, [1, 2, 2, 2], "a group is numbered by its first line");
}

#[tokio::test]
async fn a_large_text_is_stored_once_and_goes_out_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let (sink, delivered) = collector();
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![sink]).unwrap();
    let path = log.folder().unwrap().join("log.ndjson");
    let text: Text = "grün\n".repeat(1_000_000).into();
    let result = log.append(0, Entry::Result(CallResult { text: text.clone(), ..Default::default() }));
    let event = Event::ToolResult(ToolResult { tool: "mcp.big".into(), output: text, handle: "r1".into(), ..Default::default() });
    log.record(0, event.clone(), Some(result));
    log.close(Patience::AtMost(GRACE)).await;
    assert_eq!(delivered.iter().collect::<Vec<_>>(), [event.to_line()]);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size > 6_000_000 && size < 8_000_000, "{size}");
    match &lines(&path)[1].entry {
        Entry::Record(record) => assert_eq!(record.get(), event.to_line()),
        other => assert!(matches!(other, Entry::Record(_))),
    }
}

#[tokio::test]
async fn a_failed_journal_says_so_at_once_and_delivers_nothing_but_the_emergency() {
    let full = File::options().read(true).append(true).open("/dev/full").unwrap();
    let (sink, delivered) = collector();
    let mut log = over(full, vec![sink]);
    let failure = log.failed();
    assert_eq!(log.failure(), None);
    log.append(0, open());
    log.record(0, notice("lost"), None);
    let error = log.synced().await.unwrap_err();
    assert!(error.detail.starts_with("it could not be written (") && error.detail.contains("space"), "{error}");
    assert_eq!(failure.await, error);
    assert_eq!(log.failure(), Some(error.clone()));
    // Nothing is tried again, and nothing that came later is shown.
    log.record(0, notice("late"), None);
    log.pass(fragment("late"));
    log.emergency(vec![notice("journal_failed"), finished()]);
    assert_eq!(log.synced().await, Err(error.clone()));
    log.room().await;
    let closing = log.close(Patience::AtMost(GRACE)).await;
    assert_eq!(closing.failed, Some(error));
    assert_eq!(delivered.iter().collect::<Vec<_>>(), [notice("journal_failed").to_line(), finished().to_line()]);
}

#[tokio::test]
async fn an_ending_that_was_lost_with_the_journal_is_told_all_the_same() {
    let full = || File::options().read(true).append(true).open("/dev/full").unwrap();
    // The run had ended by the time its journal failed: nobody but the writer knows that nothing of it went out.
    let (sink, delivered) = collector();
    let mut log = over(full(), vec![sink]);
    log.append(0, open());
    log.record(0, finished(), None);
    assert!(log.close(Patience::AtMost(GRACE)).await.failed.is_some());
    let told: Vec<String> = delivered.iter().collect();
    let incomplete = Event::MissionFinished(MissionFinished { outcome: Outcome::Incomplete, steps: 2, ..Default::default() });
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("\"code\":\"journal_failed\"") && told[0].contains("No space left"), "{told:?}");
    assert_eq!(told[1], incomplete.to_line());
    // Whoever noticed in time has said so already, or has said all of it.
    for (emergency, whole) in [
        (vec![notice("failed")], [notice("failed"), incomplete]),
        (vec![notice("failed"), finished()], [notice("failed"), finished()]),
    ] {
        let (sink, delivered) = collector();
        let mut log = over(full(), vec![sink]);
        log.record(0, finished(), None);
        log.emergency(emergency);
        log.close(Patience::AtMost(GRACE)).await;
        assert_eq!(delivered.iter().collect::<Vec<_>>(), whole.map(|event| event.to_line()));
    }
}

#[tokio::test]
async fn a_sync_that_fails_loses_what_was_written() {
    // A pipe takes the bytes and cannot be synced.
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let (sink, delivered) = collector();
    let mut log = over(File::from(writer), vec![sink]);
    log.record(0, notice("lost"), None);
    let error = log.synced().await.unwrap_err();
    assert!(error.detail.starts_with("it could not be synced ("), "{error}");
    log.close(Patience::AtMost(GRACE)).await;
    assert_eq!(delivered.iter().count(), 0);
    drop(reader);
}

#[tokio::test]
async fn a_slow_sink_makes_the_run_wait_for_room() {
    let (go_on, gate) = mpsc::channel::<()>();
    let sink = move |_: &Delivery| gate.recv().unwrap();
    let mut log = over(tempfile::tempfile().unwrap(), vec![Box::new(sink)]);
    log.room().await;
    for _ in 0..limits::JOURNAL_QUEUE_ENTRIES {
        log.pass(fragment("x"));
    }
    let room = tokio::spawn(log.room());
    tokio::task::yield_now().await;
    assert!(!room.is_finished());
    for _ in 0..limits::JOURNAL_QUEUE_ENTRIES {
        go_on.send(()).unwrap();
    }
    room.await.unwrap();
    log.close(Patience::AtMost(GRACE)).await;
}

#[tokio::test]
async fn the_end_of_a_run_gives_up_a_reader_that_takes_nothing_and_the_log_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let output = Output { name: "fd:3".into(), descriptor: writer, standard: false };
    let sink = LineSink::start(output, |_| ()).unwrap();
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![Box::new(sink)]).unwrap();
    let path = log.folder().unwrap().join("log.ndjson");
    for _ in 0..4000 {
        log.record(0, notice(&"x".repeat(100)), None);
    }
    log.record(0, finished(), None);
    let closing = log.close(Patience::AtMost(Duration::from_millis(100))).await;
    assert_eq!(closing.failed, None);
    assert!(matches!(&closing.given_up[..], [(name, left)] if name == "fd:3" && *left > 100), "{closing:?}");
    assert_eq!(lines(&path).len(), 4001);
    drop(reader);
}

#[tokio::test]
async fn a_reader_that_is_slower_than_patience_and_still_reads_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let output = Output { name: "fd:3".into(), descriptor: writer, standard: false };
    let sink = LineSink::start(output, |_| ()).unwrap();
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![Box::new(sink)]).unwrap();
    log.record(0, notice(&"x".repeat(400 * 1024)), None);
    log.record(0, finished(), None);
    // All of it takes longer than the patience below; no pause of it does.
    let pace = Duration::from_millis(50);
    let reading = std::thread::spawn(move || {
        let (mut reader, mut bite, mut read) = (File::from(reader), vec![0; 4096], 0);
        let (_held, never) = mpsc::channel::<()>();
        loop {
            match std::io::Read::read(&mut reader, &mut bite).unwrap() {
                0 => return read,
                size => read += size,
            }
            let _ = never.recv_timeout(pace);
        }
    });
    let closing = log.close(Patience::WhileTaken(Duration::from_secs(2))).await;
    assert_eq!(closing, Closing::default());
    assert!(reading.join().unwrap() > 400 * 1024);
}

#[tokio::test]
async fn a_run_that_is_not_kept_is_journaled_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(Some("none"), folder.path());
    let (sink, delivered) = collector();
    let mut log = RunLog::create(&store, "run_1-1", clock(), vec![sink]).unwrap();
    assert_eq!((log.run_id(), log.folder()), ("run_1-1", None));
    log.append(0, open());
    log.record(0, finished(), None);
    log.synced().await.unwrap();
    log.close(Patience::AtMost(GRACE)).await;
    // A head of a log that nobody can see would say nothing.
    assert_eq!(delivered.iter().collect::<Vec<_>>(), [finished().to_line()]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_later_stretch_moves_the_torn_tail_away_and_carries_the_chain_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let mut log = RunLog::create(&store, "run_1-1", clock(), Vec::new()).unwrap();
    let run_folder = log.folder().unwrap().to_path_buf();
    let path = run_folder.join("log.ndjson");
    log.append(1, open());
    log.append(2, timer("a"));
    log.close(Patience::AtMost(GRACE)).await;

    for (epoch, torn) in [(2, "log.torn-3"), (3, "log.torn-4")] {
        File::options().append(true).open(&path).unwrap().write_all(b"{\"seq\":3,\"gro").unwrap();
        let held = store.hold("run_1-1").unwrap();
        let tail = held.reader().unwrap().into_tail().unwrap();
        assert_eq!(tail.torn.as_ref().map(|torn| torn.bytes), Some(13));
        let mut log = RunLog::reopen(held, &tail, clock(), Vec::new()).unwrap();
        assert_eq!((log.epoch(), log.last_seq()), (epoch, tail.seq));
        assert!(matches!(store.hold("run_1-1"), Err(JournalError::Held { holder: Some(holder), .. }) if holder.epoch == epoch));
        log.append(tail.ms, Entry::Writer(WriterLine { epoch, ..Default::default() }));
        assert_eq!(log.close(Patience::AtMost(GRACE)).await, Closing::default());
        assert_eq!(std::fs::read_to_string(run_folder.join(torn)).unwrap(), "{\"seq\":3,\"gro");
    }
    let lines = lines(&path);
    assert_eq!(lines.iter().map(|line| line.ms).collect::<Vec<_>>(), [1, 2, 2, 2]);
    assert_eq!(store.meta("run_1-1").unwrap().provider, "local");
}

#[tokio::test]
async fn a_tail_torn_twice_at_one_line_keeps_both() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let mut log = RunLog::create(&store, "run_1-1", clock(), Vec::new()).unwrap();
    let run_folder = log.folder().unwrap().to_path_buf();
    log.append(1, open());
    log.close(Patience::AtMost(GRACE)).await;
    for rest in ["one", "two"] {
        File::options().append(true).open(run_folder.join("log.ndjson")).unwrap().write_all(rest.as_bytes()).unwrap();
        let held = store.hold("run_1-1").unwrap();
        let tail = held.reader().unwrap().into_tail().unwrap();
        RunLog::reopen(held, &tail, clock(), Vec::new()).unwrap().close(Patience::AtMost(GRACE)).await;
    }
    assert_eq!(std::fs::read_to_string(run_folder.join("log.torn-2")).unwrap(), "one");
    assert_eq!(std::fs::read_to_string(run_folder.join("log.torn-2.2")).unwrap(), "two");
}

#[tokio::test]
async fn a_run_of_which_nothing_became_durable_cannot_be_carried_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    RunLog::create(&store, "run_1-1", clock(), Vec::new()).unwrap().close(Patience::AtMost(GRACE)).await;
    let held = store.hold("run_1-1").unwrap();
    assert!(matches!(held.reader().unwrap().into_tail(), Err(ReadError::Empty { .. })));
}
