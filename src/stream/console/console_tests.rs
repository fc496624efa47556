#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs::File;
use std::io::Read;

use mission_contract::event::{Answer, AnswerDelta, Event, MissionFinished, MissionStarted, StepStarted, ToolCall};

use super::*;
use crate::sys::clock::SystemClock;

fn delivery(event: Event) -> Delivery {
    Delivery::new(Arc::new(event))
}

fn console(output: impl Into<OwnedFd>, look: Look) -> Console {
    Console::start(output.into(), look, Arc::new(SystemClock::start()), Arc::default()).unwrap()
}

/// Reads until the text holds what is waited for.
fn read_until(reader: &mut File, text: &mut String, wanted: &str) {
    let mut buffer = [0; 1024];
    while !text.contains(wanted) {
        let got = reader.read(&mut buffer).unwrap();
        assert!(got > 0, "{text:?} ends without {wanted:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..got]));
    }
}

#[test]
fn a_pipe_gets_plain_lines_and_no_live_one() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let variables = |name: &str| (name == "TERM").then(|| "xterm".to_owned());
    let look = Look::of(&writer, variables);
    assert_eq!(look, Look::default());
    let mut console = console(writer, look);
    console.deliver(&delivery(Event::MissionStarted(MissionStarted::default())));
    console.deliver(&delivery(Event::StepStarted(StepStarted::default())));
    console.deliver(&delivery(Event::Answer(Answer { text: "Yes.".into(), ..Default::default() })));
    console.finish();
    drop(console);
    let mut text = String::new();
    File::from(reader).read_to_string(&mut text).unwrap();
    assert_eq!(text, "run (not recorded)\n  0 tools\nstep 1\n\nYes.\n");
}

#[test]
fn a_terminal_gets_a_live_line_that_counts_and_is_erased() {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let said = |term: &'static str, no_colour: &'static str| {
        move |name: &str| match name {
            "TERM" => Some(term.to_owned()),
            "NO_COLOR" => Some(no_colour.to_owned()),
            _ => None,
        }
    };
    let look = |term, no_colour| Look::of(&terminal.slave, said(term, no_colour));
    assert_eq!(look("xterm", " "), Look { colours: true, live: Some(USUAL_COLUMNS) });
    assert_eq!(look("xterm", "1"), Look { colours: false, live: Some(USUAL_COLUMNS) });
    assert_eq!(look("dumb", ""), Look::default());
    let look = look("xterm", "1");

    let mut console = console(terminal.slave, look);
    let mut reader = File::from(terminal.master);
    let mut text = String::new();
    console.deliver(&delivery(Event::StepStarted(StepStarted::default())));
    read_until(&mut reader, &mut text, "asking the model… 1 s");
    console.deliver(&delivery(Event::ToolCall(ToolCall { tool: "mcp.echo".into(), ..Default::default() })));
    read_until(&mut reader, &mut text, "mcp.echo…");
    console.deliver(&delivery(Event::MissionFinished(MissionFinished::default())));
    console.finish();
    read_until(&mut reader, &mut text, "0 steps\r\n");
    assert_eq!(
        text,
        "step 1\r\nasking the model…\r\x1b[2Kasking the model… 1 s\r\x1b[2K  mcp.echo {}\r\nmcp.echo…\r\x1b[2K\r\nnot finished: 0 steps\r\n"
    );
}

#[test]
fn a_reader_that_takes_nothing_holds_nobody_up_and_misses_neither_answer_nor_ending() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let mut console = console(writer, Look::default());
    let count = 20_000;
    for part in 0..count {
        let text = format!("{:06}\n", part);
        console.deliver(&delivery(Event::AnswerDelta(AnswerDelta { part, text: text.repeat(8), ..Default::default() })));
    }
    console.deliver(&delivery(Event::Answer(Answer { text: "Yes.".into(), ..Default::default() })));
    console.deliver(&delivery(Event::MissionFinished(MissionFinished::default())));
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        File::from(reader).read_to_string(&mut text).unwrap();
        text
    });
    console.finish();
    drop(console);
    let text = reading.join().unwrap();
    assert!(text.contains("records left out here"), "{} bytes", text.len());
    assert!(text.ends_with("\nYes.\n\nnot finished: 0 steps\n"));
}

#[test]
fn a_reader_that_went_away_ends_the_console_alone() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    let mut console = console(writer, Look::default());
    for _ in 0..3 {
        console.deliver(&delivery(Event::StepStarted(StepStarted::default())));
    }
    console.finish();
}
