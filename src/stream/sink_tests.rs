#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc;

use mission_contract::event::{AnswerDelta, Event, Notice};

use super::*;

fn output(descriptor: OwnedFd) -> Output {
    Output { name: "fd:3".to_owned(), descriptor, standard: false }
}

fn fragment(part: u64) -> Delivery {
    Delivery::new(Arc::new(Event::AnswerDelta(AnswerDelta { part, text: "x".repeat(60), ..Default::default() })))
}

fn notice(bytes: usize) -> Delivery {
    Delivery::new(Arc::new(Event::Notice(Notice { detail: "n".repeat(bytes), ..Default::default() })))
}

#[test]
fn a_slow_reader_makes_the_run_wait_and_loses_nothing() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let (delivered, progress) = mpsc::channel();
    let count = 20_000;
    let run = std::thread::spawn(move || {
        let mut sink = LineSink::start(output(writer), |gone| assert_eq!(gone.name, "never")).unwrap();
        for part in 0..count {
            sink.deliver(&fragment(part));
            delivered.send(part).unwrap();
        }
        sink.finish();
    });
    // The pipe holds 64 KiB and the queue its bound: with nobody reading, the run stands still well before its end.
    let mut taken = 0;
    while taken < limits::SINK_QUEUE_RECORDS {
        taken = progress.recv().unwrap() + 1;
    }
    while let Ok(part) = progress.recv_timeout(std::time::Duration::from_millis(300)) {
        taken = part + 1;
    }
    assert!(taken < 5_000, "{taken}");
    for (part, line) in (0..count).zip(BufReader::new(File::from(reader)).lines()) {
        assert_eq!(line.unwrap(), **fragment(part).line());
    }
    run.join().unwrap();
}

#[test]
fn a_record_larger_than_the_queue_goes_through_whole() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let size = limits::size(limits::SINK_QUEUE_BYTES) * 2;
    let run = std::thread::spawn(move || {
        let mut sink = LineSink::start(output(writer), |_| ()).unwrap();
        for delivery in [notice(1), notice(size), notice(2), notice(size)] {
            sink.deliver(&delivery);
        }
        sink.finish();
    });
    let lengths: Vec<usize> = BufReader::new(File::from(reader)).lines().map(|line| line.unwrap().matches('n').count()).collect();
    run.join().unwrap();
    let extra = notice(0).line().matches('n').count();
    assert_eq!(lengths, [1, size, 2, size].map(|length| length + extra));
}

#[test]
fn a_reader_that_goes_away_is_told_once_and_the_run_goes_on() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let (told, gone) = mpsc::channel();
    let mut sink = LineSink::start(output(writer), move |it| told.send(it).unwrap()).unwrap();
    let mut reader = BufReader::new(File::from(reader));
    sink.deliver(&fragment(0));
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    for part in 0..5_000 {
        sink.deliver(&fragment(part));
    }
    sink.finish();
    assert_eq!(
        gone.recv().unwrap(),
        SinkGone { name: "fd:3".to_owned(), detail: "its reader went away".to_owned(), by_reader: true }
    );
    assert!(gone.recv().is_err(), "said once");
}

#[test]
fn a_full_disk_is_named() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (told, gone) = mpsc::channel();
    let mut sink = LineSink::start(output(full.into()), move |it| told.send(it).unwrap()).unwrap();
    sink.deliver(&fragment(0));
    sink.finish();
    assert_eq!(gone.recv().unwrap().detail, "its disk is full");
}

#[test]
fn a_valve_frees_the_run_from_a_reader_that_takes_nothing() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let mut sink = LineSink::start(output(writer), |_| ()).unwrap();
    let valve = sink.valve().unwrap();
    let (delivered, progress) = mpsc::channel();
    let run = std::thread::spawn(move || {
        for part in 0..5_000 {
            sink.deliver(&fragment(part));
            delivered.send(()).unwrap();
        }
        sink.finish();
    });
    while progress.recv_timeout(std::time::Duration::from_millis(300)).is_ok() {}
    valve.give_up();
    assert!(valve.is_given_up());
    run.join().unwrap();
    let (left, read) = (valve.left_out(), File::from(reader));
    // What was never taken is counted; what the pipe held is still there, in whole lines but for its very end.
    let mut buffer = [0; 256];
    let got = (&read).read(&mut buffer).unwrap();
    assert!(got > 0 && left > limits::SINK_QUEUE_RECORDS, "{left}");
}

#[test]
fn a_valve_of_a_reader_that_took_all_gives_nothing_up() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let mut sink = LineSink::start(output(writer), |_| ()).unwrap();
    sink.deliver(&fragment(0));
    sink.finish();
    let valve = sink.valve().unwrap();
    valve.give_up();
    assert_eq!((valve.is_given_up(), valve.left_out(), valve.name()), (false, 0, "fd:3"));
    drop(sink);
    // The reader sees the end of the stream.
    let mut text = String::new();
    File::from(reader).read_to_string(&mut text).unwrap();
    assert_eq!(text, format!("{}\n", fragment(0).line()));
}
