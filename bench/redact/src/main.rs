//! How fast the redactor reads: a line a text, in MB/s, and how long it takes to build.
//!
//! `redact-bench [RUNS]` prints JSON: for each text its name, its bytes, whether it was copied, and the MB/s of each run, whole and in
//! pieces of 32 bytes.
#![allow(dead_code)] // the program uses more of these rooms than this does

#[path = "../../../src/limits.rs"]
mod limits;
#[path = "../../../src/redact/mod.rs"]
mod redact;

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

use redact::Redactor;
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;
const BYTES: usize = 16 * MIB;

/// Seconds that a processor worked for this process: another load on the machine does not count. Elapsed time where the system does
/// not say.
fn worked(began: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| nanoseconds as f64 / 1e9)
}

/// A small generator that always says the same (a linear congruence; the upper bits are good enough for texts).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }
}

const WORDS: &str = "the a of and to in is that it was for on are with as they be at one have this from or had by hot word but what some \
    we can out other were all there when up use your how said an each she which do their time if will way about many then them write \
    would like so these her long make thing see him two has look more day could go come did number sound no most people my over know \
    water than call first who may down side been now find any new work part take get place made live where after back little only \
    round man year came show every good me give our under name very through just form sentence great think say help low line differ \
    turn cause much mean before move right boy old too same tell does set three want air well also play small end put home read hand \
    key token secret password session bearer certificate value server request response header";

fn words(numbers: &mut Numbers, between: &str) -> String {
    let all: Vec<&str> = WORDS.split_whitespace().collect();
    let mut text = String::new();
    let mut column = 0;
    while text.len() < BYTES {
        let word = all[numbers.below(all.len())];
        text.push_str(word);
        column += word.len();
        text.push_str(if column > 80 { "\n" } else { between });
        column = if column > 80 { 0 } else { column + 1 };
    }
    text
}

fn rows(numbers: &mut Numbers) -> String {
    let mut rows = Vec::new();
    let mut bytes = 0;
    while bytes < BYTES {
        let row = json!({
            "id": format!("{:08x}-{:04x}", numbers.below(1 << 30), numbers.below(1 << 16)), "key": format!("row-{}", rows.len()),
            "tokens": numbers.below(5000), "path": format!("src/part_{}/file.rs", numbers.below(900)), "secret": false,
            "url": format!("https://host{}.invalid/a/b?page={}", numbers.below(99), numbers.below(99)), "text": "a line\nand \"another\" one",
            "value": numbers.below(1 << 30), "done": numbers.below(2) == 0,
        });
        bytes += row.to_string().len() + 1;
        rows.push(row);
    }
    Value::Array(rows).to_string()
}

fn unbroken(numbers: &mut Numbers, alphabet: &str) -> String {
    let alphabet = alphabet.as_bytes();
    (0..BYTES).map(|_| char::from(alphabet[numbers.below(alphabet.len())])).collect()
}

const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn main() {
    let began = Instant::now();
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(5);
    let mut numbers = Numbers(7);
    // Values as an environment has them, put together so that nothing takes them for real ones.
    let variables: Vec<_> = (0..6)
        .map(|number| (format!("SERVICE_{number}_KEY").into(), unbroken(&mut numbers, BASE64)[..48].to_owned().into()))
        .collect();
    let secret =
        variables.first().map(|(_, value): &(std::ffi::OsString, std::ffi::OsString)| value.to_string_lossy().into_owned());
    let secret = secret.unwrap_or_default();
    let mut builds = Vec::new();
    let mut redactor = Redactor::default();
    for _ in 0..runs {
        let before = worked(began);
        for _ in 0..100 {
            redactor = Redactor::new(variables.clone(), []).unwrap();
        }
        builds.push((worked(began) - before) * 1e4);
    }
    let texts = [
        ("prose", words(&mut numbers, " ")),
        ("JSON", rows(&mut numbers)),
        ("base64 without a break", unbroken(&mut numbers, BASE64)),
        ("digits without a break", unbroken(&mut numbers, "0123456789abcdef")),
        ("one letter", "a".repeat(BYTES)),
        (
            "prose with a secret every 4 KiB",
            words(&mut numbers, " ")
                .as_bytes()
                .chunks(4096)
                .map(|chunk| format!("{} {secret} ", String::from_utf8_lossy(chunk)))
                .collect(),
        ),
        ("beginnings of a value", secret[..40].repeat(BYTES / 40)),
        ("line breaks", format!("{}\n", &secret[..7]).repeat(BYTES / 8)),
        ("escapes", "\\n%41\\u0041".repeat(BYTES / 11)),
        ("anchors", "sk-key=token: eyJ.bearer ://a:b -----BEGIN ".repeat(BYTES / 44)),
    ];
    let mut rows = Vec::new();
    for (name, text) in &texts {
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let mut copied = false;
        for _ in 0..runs {
            let before = worked(began);
            copied = matches!(black_box(redactor.text(black_box(text))), Cow::Owned(_));
            whole.push(text.len() as f64 / (worked(began) - before) / 1e6);
        }
        for _ in 0..runs.min(3) {
            let mut stream = redactor.stream();
            let part = &text[..MIB];
            let before = worked(began);
            for piece in part.as_bytes().chunks(32) {
                black_box(stream.push(std::str::from_utf8(piece).unwrap_or_default()));
            }
            black_box(stream.finish());
            pieces.push(part.len() as f64 / (worked(began) - before) / 1e6);
        }
        rows.push(json!({"text": name, "bytes": text.len(), "copied": copied, "whole": whole, "pieces": pieces}));
    }
    println!("{}", json!({"build_us": builds, "texts": rows}));
}
