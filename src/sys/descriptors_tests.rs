#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::os::fd::IntoRawFd;

use super::*;

fn refusal(word: &str) -> String {
    Inherited::guard().output("--events", word).unwrap_err().to_string()
}

#[test]
fn the_three_forms() {
    assert_eq!(parse_output("--events", "-").unwrap(), Target::Standard);
    assert_eq!(parse_output("--events", "fd:1").unwrap(), Target::Standard);
    assert_eq!(parse_output("--events", "fd:03").unwrap(), Target::Descriptor(3));
    assert_eq!(parse_output("--events", "fd").unwrap(), Target::Path("fd".into()));
    assert_eq!(parse_output("--events", "./fd:3").unwrap(), Target::Path("./fd:3".into()));
    for word in [" - ", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert_eq!(parse_output("--events", word).unwrap(), Target::Standard, "{word}");
    }
    for word in [" fd:3 ", "/dev/fd/3", "/proc/self/fd/3"] {
        assert_eq!(parse_output("--events", word).unwrap(), Target::Descriptor(3), "{word}");
    }
    for word in ["/dev/stdin", "/dev/stderr", "/dev/fd/2"] {
        assert!(matches!(parse_output("--events", word), Err(DescriptorError::Reserved { .. })), "{word}");
    }
    for word in ["", "  ", "FD:3", "fd:", "fd:x", "fd:-1", "fd:99999999999999"] {
        assert!(matches!(parse_output("--events", word), Err(DescriptorError::Form { .. })), "{word}");
    }
}

#[test]
fn reserved_and_closed_descriptors_are_refused_by_name() {
    assert!(refusal("fd:0").starts_with("--events fd:0: descriptor 0 is standard input; use descriptor 3"));
    assert!(refusal("fd:2").starts_with("--events fd:2: descriptor 2 is for diagnostics; use"));
    assert!(refusal("fd:987654").starts_with("--events fd:987654: descriptor 987654 is not open in this process; open it"));
}

#[test]
fn the_reading_end_and_a_folder_are_refused() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let number = reader.as_raw_fd();
    let text = refusal(&format!("fd:{number}"));
    assert!(text.contains("is open for reading only"), "{text}");
    drop((reader, writer));

    let folder = tempfile::tempdir().unwrap();
    let handle = File::open(folder.path()).unwrap();
    assert!(refusal(&format!("fd:{}", handle.as_raw_fd())).contains("that is a folder"));
    assert!(refusal(folder.path().to_str().unwrap()).contains("that is a folder"));
    assert!(refusal(folder.path().join("none/events").to_str().unwrap()).contains("make the folder first"));
}

#[test]
fn a_descriptor_is_adopted_once_and_closed_to_children() {
    let (mut reader, writer) = pipe();
    let number = writer.into_raw_fd();
    fcntl(borrow(number), FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let mut inherited = Inherited::guard();
    let flags = fcntl(borrow(number), FcntlArg::F_GETFD).unwrap();
    assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));

    let word = format!("fd:{number}");
    let output = inherited.output("--events", &word).unwrap();
    assert!(!output.standard);
    let again = inherited.output("--control", &word).unwrap_err().to_string();
    assert!(again.contains(&format!("--events {word} uses it already")), "{again}");

    write_fully(output.descriptor.as_fd(), b"through").unwrap();
    drop(output);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

#[test]
fn standard_output_is_given_out_once_under_both_names() {
    let mut inherited = Inherited::guard();
    assert!(inherited.output("--events", "-").unwrap().standard);
    assert!(matches!(inherited.output("--events", "fd:1"), Err(DescriptorError::Taken { .. })));
}

#[test]
fn a_path_is_appended_to_and_given_out_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    std::fs::write(&path, "before\n").unwrap();
    let mut inherited = Inherited::guard();
    let output = inherited.output("--events", path.to_str().unwrap()).unwrap();
    write_fully(output.descriptor.as_fd(), b"after\n").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before\nafter\n");
    let other = folder.path().join("./events");
    assert!(matches!(inherited.output("--events", other.to_str().unwrap()), Err(DescriptorError::Taken { .. })));
}

#[test]
fn a_fifo_waits_for_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || std::fs::read_to_string(path).unwrap()
    });
    let output = Inherited::guard().output("--events", path.to_str().unwrap()).unwrap();
    write_fully(output.descriptor.as_fd(), b"hello").unwrap();
    drop(output);
    assert_eq!(reader.join().unwrap(), "hello");
}

#[test]
fn a_non_blocking_pipe_takes_everything_in_the_end() {
    let (mut reader, writer) = pipe();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let bytes = vec![b'x'; 1_000_000];
    let read = std::thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all.len()
    });
    write_fully(writer.as_fd(), &bytes).unwrap();
    drop(writer);
    assert_eq!(read.join().unwrap(), bytes.len());
}

#[test]
fn a_file_is_no_terminal() {
    let file = tempfile::tempfile().unwrap();
    assert_eq!(terminal_columns(file.as_fd()), None);
}

fn pipe() -> (File, File) {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    (File::from(reader), File::from(writer))
}
