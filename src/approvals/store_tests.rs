#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use mission_contract::digest::{approval_id, call_digest};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::sys::clock::SystemClock;

struct Place {
    _root: tempfile::TempDir,
    approvals: Approvals,
    key: PathBuf,
}

fn place() -> Place {
    let root = tempfile::tempdir().unwrap();
    let workspace = root.path().join("here");
    std::fs::create_dir(&workspace).unwrap();
    let key = root.path().join("state/mission/key");
    Place { approvals: Approvals::of(None, &workspace, Some(key.clone())), key, _root: root }
}

fn clock() -> SystemClock {
    SystemClock::start()
}

fn asked(ordinal: u64) -> Record {
    Record {
        approval_id: approval_id("run_1", ordinal),
        tool: "mcp.pay".to_owned(),
        arguments: serde_json::from_value(json!({"amount": 5})).unwrap(),
        run_id: "run_1".to_owned(),
        kind: Kind::Reconcile,
        definition: "d".repeat(64),
        digest: digest(),
        key: "k".repeat(64),
        ..Record::default()
    }
}

/// Of the call that is asked about.
fn digest() -> String {
    call_digest("mcp.pay", &"d".repeat(64), "{\"amount\":5}")
}

fn spent(run: &str) -> Spent {
    Spent { run: run.to_owned(), key: "k".repeat(64) }
}

#[test]
fn an_answer_is_given_once_and_acted_upon_once() {
    let Place { approvals, key, _root } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Pending);
    assert!(matches!(approvals.spend(&id, &spent("run_1"), &digest(), &clock()), Err(ApprovalError::Pending { .. })));
    assert!(matches!(approvals.decide(&id, Answer::Done, "  ", "", &clock()), Err(ApprovalError::Nobody)));
    let decided = approvals.decide(&id, Answer::Retry, "ana", " I looked. ", &clock()).unwrap();
    assert_eq!((decided.state, decided.answer, decided.note.as_str()), (State::Approved, Some(Answer::Retry), "I looked."));
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let again = approvals.decide(&id, Answer::Done, "bob", "", &clock()).unwrap_err().to_string();
    assert!(again.contains("ana said retry"), "{again}");
    // The run asks again for what it has asked for: nothing changes.
    approvals.propose(asked(1), &clock()).unwrap();
    assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Decided(Answer::Retry));
    approvals.spend(&id, &spent("run_1"), &digest(), &clock()).unwrap();
    approvals.spend(&id, &spent("run_1"), &digest(), &clock()).unwrap();
    assert!(matches!(approvals.spend(&id, &spent("run_2"), &digest(), &clock()), Err(ApprovalError::Spent { .. })));
    assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Spent(Answer::Retry, spent("run_1")));
}

#[test]
fn an_answer_fits_the_question() {
    let Place { approvals, _root, .. } = place();
    approvals.propose(asked(1), &clock()).unwrap();
    approvals.propose(Record { kind: Kind::Gate, ..asked(2) }, &clock()).unwrap();
    let no = |ordinal, answer| {
        let id = asked(ordinal).approval_id;
        approvals.decide(&id, answer, "ana", "", &clock()).unwrap_err().to_string().replace(&id, "ID")
    };
    insta::assert_snapshot!(no(1, Answer::Approve), @"ID asks what became of a call: say done (it took effect), retry (it did not; make it again) or abandon; approve is none of them");
    insta::assert_snapshot!(no(2, Answer::Done), @"ID asks whether a call may be made: approve or refuse it; done is neither");
    assert_eq!(
        approvals.decide(&asked(1).approval_id, Answer::Refuse, "ana", "", &clock()).unwrap().answer,
        Some(Answer::Abandon)
    );
    assert_eq!(
        approvals.decide(&asked(2).approval_id, Answer::Refuse, "ana", "", &clock()).unwrap().answer,
        Some(Answer::Refuse)
    );
}

#[test]
fn whoever_changes_a_decision_decides_nothing() {
    let Place { approvals, key, _root } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    approvals.decide(&id, Answer::Abandon, "ana", "n", &clock()).unwrap();
    let path = approvals.path(&id).unwrap();
    let whole: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // A call that is not the one that was asked about is nothing to decide about at all.
    for (field, value) in [
        ("tool", json!("mcp.other")),
        ("digest", json!("e".repeat(64))),
        ("definition", json!("e".repeat(64))),
        ("arguments", json!({"amount": 5000})),
        ("arguments", json!({})),
    ] {
        let mut changed = whole.clone();
        changed[field] = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        assert!(matches!(approvals.look(&id, &clock()), Err(ApprovalError::Unreadable { .. })), "{field}");
        assert!(approvals.spend(&id, &spent("run_1"), &digest(), &clock()).is_err(), "{field}");
        assert!(approvals.decide(&id, Answer::Retry, "ana", "", &clock()).is_err(), "{field}");
    }
    for (field, value) in [
        ("kind", json!("gate")),
        ("run_id", json!("run_2")),
        ("expires_at", json!("2999-01-01T00:00:00.000Z")),
        ("answer", json!("retry")),
        ("state", json!("approved")),
        ("decided_by", json!("eve")),
        ("decided_at", json!("2020-01-01T00:00:00.000Z")),
        ("note", json!("go on")),
        ("signature", json!("00".repeat(32))),
        ("signature", json!("ü")),
        ("signature", json!(null)),
    ] {
        let mut changed = whole.clone();
        changed[field] = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        let standing = approvals.look(&id, &clock()).unwrap().1;
        assert!(matches!(standing, Standing::Unsigned(_)), "{field}: {standing:?}");
        let refused = approvals.spend(&id, &spent("run_1"), &digest(), &clock()).unwrap_err();
        assert!(matches!(refused, ApprovalError::Pending { .. }), "{field}: {refused}");
    }
    std::fs::write(&path, whole.to_string()).unwrap();
    assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Decided(Answer::Abandon));
    // Another key did not sign it.
    std::fs::remove_file(&key).unwrap();
    assert!(matches!(approvals.look(&id, &clock()).unwrap().1, Standing::Unsigned(_)));
    // What somebody wrote there does not keep a person from deciding.
    approvals.decide(&id, Answer::Done, "ana", "", &clock()).unwrap();
    assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Decided(Answer::Done));
}

#[test]
fn an_approval_has_its_time() {
    let Place { approvals, _root, .. } = place();
    let until = |ordinal: u64, end: &str| Record { expires_at: Some(end.to_owned()), ..asked(ordinal) };
    approvals.propose(until(1, "2020-01-01T00:00:00.000Z"), &clock()).unwrap();
    approvals.propose(until(2, "2999-01-01T00:00:00.000Z"), &clock()).unwrap();
    assert_eq!(approvals.look(&asked(1).approval_id, &clock()).unwrap().1, Standing::Expired);
    assert!(matches!(
        approvals.decide(&asked(1).approval_id, Answer::Done, "ana", "", &clock()),
        Err(ApprovalError::Over { .. })
    ));
    approvals.decide(&asked(2).approval_id, Answer::Done, "ana", "", &clock()).unwrap();
}

#[test]
fn of_many_at_once_one_decides_and_one_spends() {
    let Place { approvals, _root, .. } = place();
    let approvals = Arc::new(approvals);
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    let race = |each: fn(&Approvals, &str, usize) -> bool| {
        let (approvals, id) = (&approvals, &id);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|who| scope.spawn(move || each(approvals, id, who))).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|won| *won).count()
        })
    };
    let decides = |approvals: &Approvals, id: &str, who: usize| {
        let answer = if who.is_multiple_of(2) { Answer::Done } else { Answer::Retry };
        approvals.decide(id, answer, &format!("person {who}"), "", &clock()).is_ok()
    };
    assert_eq!(race(decides), 1);
    let spends = |approvals: &Approvals, id: &str, who: usize| {
        approvals.spend(id, &spent(&format!("run_{who}")), &digest(), &clock()).is_ok()
    };
    assert_eq!(race(spends), 1);
}

#[test]
fn a_key_that_others_could_know_is_no_key() {
    let Place { approvals, key, _root } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    let made = || {
        std::fs::create_dir_all(key.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&key);
    };
    let refused = || approvals.decide(&id, Answer::Done, "ana", "", &clock()).unwrap_err().to_string();
    made();
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refused().contains("others may read it"));
    made();
    std::fs::write(&key, [7; 31]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(refused().contains("32 bytes"));
    made();
    std::os::unix::fs::symlink("/dev/zero", &key).unwrap();
    assert!(refused().contains("cannot be read"));
    let workspace = approvals.workspace.clone();
    let below = Approvals::of(None, &workspace, Some(workspace.join("state/mission/key")));
    assert!(below.decide(&id, Answer::Done, "ana", "", &clock()).unwrap_err().to_string().contains("below the workspace"));
    let nowhere = Approvals::of(None, &workspace, None);
    assert!(matches!(nowhere.decide(&id, Answer::Done, "ana", "", &clock()), Err(ApprovalError::NoPlaceForKey)));
    assert_eq!(Key::place(|_| Some("relative".to_owned())).unwrap_err().to_string(), ApprovalError::NoPlaceForKey.to_string());
}

#[test]
fn what_is_no_approval_is_named() {
    let Place { approvals, _root, .. } = place();
    assert_eq!(approvals.list().unwrap(), Listing::default());
    approvals.propose(asked(1), &clock()).unwrap();
    let folder = approvals.folder().unwrap().to_path_buf();
    for (id, content) in [
        ("ap_1", "{"),
        ("ap_2", "{\"approval_id\":\"ap_3\",\"tool\":\"t\",\"arguments\":{},\"state\":\"pending\"}"),
        ("ap_4", "[]"),
    ] {
        std::fs::write(folder.join(format!("{id}.json")), content).unwrap();
        assert!(matches!(approvals.read(id), Err(ApprovalError::Unreadable { .. })), "{id}");
    }
    std::os::unix::fs::symlink(folder.join("ap_1.json"), folder.join("ap_5.json")).unwrap();
    assert!(matches!(approvals.read("ap_5"), Err(ApprovalError::Unreadable { .. })));
    for id in ["../key", "ap_", "ap_a/b", "ap_é", "", "lock"] {
        assert!(matches!(approvals.read(id), Err(ApprovalError::NoId { .. })), "{id}");
    }
    assert!(matches!(approvals.read("ap_9"), Err(ApprovalError::Missing { .. })));
    let listed = approvals.list().unwrap();
    let readable = listed.ids.iter().filter(|id| approvals.look(id, &clock()).is_ok()).count();
    assert_eq!((listed.ids.len(), readable, listed.more), (5, 1, false));
    let off = Approvals::of(Some(" None "), Path::new("."), None);
    assert!(!off.is_kept() && matches!(off.read("ap_1"), Err(ApprovalError::NotKept)));
}

/// Whoever asks knows what it asks: what was changed or damaged since is asked anew, unless another call has spent it.
#[test]
fn what_was_changed_is_asked_anew() {
    let Place { approvals, _root, .. } = place();
    let id = asked(1).approval_id;
    let path = approvals.path(&id).unwrap();
    let other = || Record { arguments: serde_json::from_value(json!({"amount": 6})).unwrap(), ..asked(1) };
    let shown = || approvals.read(&id).unwrap().arguments.get("amount").cloned();
    approvals.propose(asked(1), &clock()).unwrap();
    for damage in ["", "{}", "null"] {
        std::fs::write(&path, damage).unwrap();
        approvals.propose(asked(1), &clock()).unwrap();
        assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Pending);
    }
    // A decision about another call under this id is none about this one.
    approvals.propose(other(), &clock()).unwrap();
    approvals.decide(&id, Answer::Retry, "ana", "", &clock()).unwrap();
    assert!(matches!(approvals.spend(&id, &spent("run_1"), &digest(), &clock()), Err(ApprovalError::OtherCall { .. })));
    approvals.propose(asked(1), &clock()).unwrap();
    assert_eq!((approvals.look(&id, &clock()).unwrap().1, shown()), (Standing::Pending, Some(json!(5))));
    approvals.decide(&id, Answer::Retry, "ana", "", &clock()).unwrap();
    approvals.spend(&id, &spent("run_1"), &digest(), &clock()).unwrap();
    assert!(matches!(approvals.propose(other(), &clock()), Err(ApprovalError::Unreadable { .. })));
}

#[test]
fn what_was_acted_upon_stays_so_without_its_key() {
    let Place { approvals, key, _root } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    approvals.decide(&id, Answer::Retry, "ana", "", &clock()).unwrap();
    approvals.spend(&id, &spent("run_1"), &digest(), &clock()).unwrap();
    std::fs::remove_file(&key).unwrap();
    assert_eq!(approvals.look(&id, &clock()).unwrap().1, Standing::Spent(Answer::Retry, spent("run_1")));
    assert!(matches!(approvals.decide(&id, Answer::Retry, "eve", "", &clock()), Err(ApprovalError::Decided { .. })));
}

#[test]
fn a_key_that_cannot_be_used_keeps_nobody_from_looking() {
    let Place { approvals, key, _root } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    let workspace = approvals.workspace.clone();
    let below = Approvals::of(None, &workspace, Some(workspace.join("state/mission/key")));
    assert_eq!(below.look(&id, &clock()).unwrap().1, Standing::Pending);
    approvals.decide(&id, Answer::Retry, "ana", "", &clock()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    for approvals in [below, approvals] {
        assert!(matches!(approvals.look(&id, &clock()).unwrap().1, Standing::Unsigned(_)));
        assert!(approvals.spend(&id, &spent("run_1"), &digest(), &clock()).is_err());
    }
}

#[test]
fn a_way_up_through_what_is_not_there_leads_into_no_workspace() {
    let Place { approvals, _root, .. } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    let winding = _root.path().join("none/../here/state/mission/key");
    let refused = Approvals::of(None, &approvals.workspace, Some(winding)).decide(&id, Answer::Done, "ana", "", &clock());
    assert!(refused.unwrap_err().to_string().contains("below the workspace"));
    assert!(!approvals.workspace.join("state").exists());
}

#[test]
fn a_run_that_ended_for_good_takes_its_approvals_with_it() {
    let Place { approvals, _root, .. } = place();
    for (ordinal, answer) in [(1, None), (2, Some(Answer::Retry)), (3, Some(Answer::Done))] {
        let id = asked(ordinal).approval_id;
        approvals.propose(asked(ordinal), &clock()).unwrap();
        if let Some(answer) = answer {
            approvals.decide(&id, answer, "ana", "", &clock()).unwrap();
        }
        approvals.void(&id, &clock()).unwrap();
        let stays = answer.filter(|answer| !answer.permits()).map_or(Standing::Abandoned, Standing::Decided);
        assert_eq!(approvals.look(&id, &clock()).unwrap().1, stays);
    }
    assert!(matches!(approvals.void("ap_9", &clock()), Err(ApprovalError::Missing { .. })));
}

#[test]
fn a_yes_lapses_and_a_no_does_not() {
    let Place { approvals, key, _root } = place();
    let signed = |answer| {
        let id = asked(1).approval_id;
        let _ = std::fs::remove_file(approvals.path(&id).unwrap());
        approvals.propose(Record { expires_at: Some("2999-01-01T00:00:00.000Z".to_owned()), ..asked(1) }, &clock()).unwrap();
        approvals.decide(&id, answer, "ana", "", &clock()).unwrap()
    };
    let key = || Key::read(&key, &approvals.workspace);
    assert_eq!(signed(Answer::Retry).standing(key, "2999-01-01T00:00:00.000Z"), Standing::Expired);
    assert_eq!(signed(Answer::Done).standing(key, "2999-01-01T00:00:00.000Z"), Standing::Decided(Answer::Done));
    let half = Record { state: State::Pending, ..signed(Answer::Retry) };
    assert_eq!(half.standing(key, "2999-01-01T00:00:00.000Z"), Standing::Expired);
}

#[test]
fn files_are_private_and_what_a_killed_writer_left_is_removed() {
    let Place { approvals, _root, .. } = place();
    approvals.propose(asked(1), &clock()).unwrap();
    let folder = approvals.folder().unwrap().to_path_buf();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&approvals.path(&asked(1).approval_id).unwrap())), (0o700, 0o600));
    assert_eq!(std::fs::read_to_string(folder.join("../.gitignore")).unwrap(), "*\n");
    std::fs::write(folder.join(".new-Ab12Cd"), "{\"state\":\"appro").unwrap();
    assert_eq!(approvals.list().unwrap().ids.len(), 1);
    approvals.propose(asked(2), &clock()).unwrap();
    assert!(!folder.join(".new-Ab12Cd").exists());
}

#[test]
fn texts_and_files_have_bounds() {
    let Place { approvals, _root, .. } = place();
    let id = asked(1).approval_id;
    approvals.propose(asked(1), &clock()).unwrap();
    let said = |by: &str, note: &str| approvals.decide(&id, Answer::Done, by, note, &clock()).unwrap_err().to_string();
    insta::assert_snapshot!(said(&"x".repeat(201), ""), @"the name of whoever decides is longer than 200 characters; say it shorter");
    insta::assert_snapshot!(said("ana", &"x".repeat(4001)), @"the note is longer than 4000 characters; say it shorter");
    let huge = Record { reason: "x".repeat(limits::size(limits::APPROVAL_BYTES)), ..asked(2) };
    assert!(matches!(approvals.propose(huge, &clock()), Err(ApprovalError::TooLarge { .. })));
    let path = approvals.path(&id).unwrap();
    std::fs::File::create(&path).unwrap().set_len(limits::APPROVAL_BYTES + 1).unwrap();
    assert!(matches!(approvals.look(&id, &clock()), Err(ApprovalError::Unreadable { .. })));
}

proptest! {
    /// Whatever is done to the bytes of a signed yes: it is refused, or it is still a yes for that very call by that very person.
    #[test]
    fn no_change_of_a_byte_makes_another_decision(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let Place { approvals, _root, .. } = place();
        let id = asked(1).approval_id;
        approvals.propose(asked(1), &clock()).unwrap();
        let yes = approvals.decide(&id, Answer::Retry, "ana", "n", &clock()).unwrap();
        let path = approvals.path(&id).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        std::fs::write(&path, bytes).unwrap();
        if let Ok((record, Standing::Decided(answer))) = approvals.look(&id, &clock()) {
            let what = |record: &Record| (record.tool.clone(), record.arguments.clone(), record.digest.clone(), record.decided_by.clone(), record.note.clone());
            prop_assert_eq!((answer, what(&record)), (Answer::Retry, what(&yes)));
        }
    }

    #[test]
    fn no_file_brings_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(record) = serde_json::from_slice::<Record>(&bytes) {
            record.standing(|| Ok(None), "2026-12-01T00:00:00.000Z");
        }
    }
}
