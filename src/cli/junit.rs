//! A report of `mission replay` as JUnit XML: one test case a recording. A drift that fails the build is a failure, a recording that could
//! not be replayed an error, and a drift that does not fail it stands in the case's output.

use std::io;

use mission_contract::replay::{Drift, ReplayReport, ReplayVerdict, ReplayedRecording};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::replay::place;
use super::replay_verb::is_failure;

/// The name of the one suite.
const SUITE: &str = "mission replay";

/// The document.
///
/// # Errors
/// None but those of writing to memory.
pub(super) fn document(report: &ReplayReport, strict: bool) -> io::Result<String> {
    let counted =
        |counts: &dyn Fn(&ReplayedRecording) -> bool| report.recordings.iter().filter(|each| counts(each)).count().to_string();
    let errors = counted(&|each| each.verdict == ReplayVerdict::Broken);
    let failures = counted(&|each| each.verdict != ReplayVerdict::Broken && is_failure(each.verdict, strict));
    let tests = report.recordings.len().to_string();
    let counts = [("name", SUITE), ("tests", &tests), ("failures", &failures), ("errors", &errors)];
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.create_element("testsuites").with_attributes(counts).write_inner_content(|writer| {
        writer
            .create_element("testsuite")
            .with_attributes(counts)
            .write_inner_content(|writer| report.recordings.iter().try_for_each(|recording| case(writer, recording, strict)))?;
        Ok(())
    })?;
    let mut bytes = writer.into_inner();
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn case(writer: &mut Writer<Vec<u8>>, recording: &ReplayedRecording, strict: bool) -> io::Result<()> {
    let name = allowed(&recording.recording);
    let element = writer.create_element("testcase").with_attributes([("classname", "replay"), ("name", name.as_str())]);
    let drifts: Vec<String> = recording.drift.iter().map(told).collect();
    match recording.verdict {
        ReplayVerdict::Same => element.write_empty()?,
        ReplayVerdict::Broken => {
            let problem = allowed(recording.problem.as_deref().unwrap_or_default());
            element.write_inner_content(|writer| {
                let attributes = [("type", "broken"), ("message", problem.as_str())];
                writer.create_element("error").with_attributes(attributes).write_empty()?;
                Ok(())
            })?
        }
        verdict if is_failure(verdict, strict) => element.write_inner_content(|writer| {
            let first = recording.drift.iter().max_by_key(|drift| drift.kind).map(|drift| allowed(&drift.what));
            let message = first.unwrap_or_default();
            let attributes = [("type", verdict.name()), ("message", message.as_str())];
            let failure = writer.create_element("failure").with_attributes(attributes);
            failure.write_text_content(BytesText::new(&drifts.join("\n")))?;
            Ok(())
        })?,
        _ => element.write_inner_content(|writer| {
            writer.create_element("system-out").write_text_content(BytesText::new(&drifts.join("\n")))?;
            Ok(())
        })?,
    };
    Ok(())
}

fn told(drift: &Drift) -> String {
    let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "(nothing)".to_owned());
    let (recorded, replayed) = (side(&drift.recorded), side(&drift.replayed));
    allowed(&format!("{}: {}{}\nrecorded: {recorded}\nreplayed: {replayed}", drift.kind.name(), drift.what, place(drift)))
}

/// A text without the characters that XML 1.0 has no way to write.
fn allowed(text: &str) -> String {
    let is_allowed =
        |each: char| matches!(each, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|each| if is_allowed(each) { each } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mission_contract::replay::DriftKind;

    use super::*;

    fn recorded(recording: &str, verdict: ReplayVerdict, kinds: &[DriftKind]) -> ReplayedRecording {
        let drift = kinds.iter().map(|kind| Drift {
            kind: *kind,
            what: format!("`x` of \"{}\"", kind.name()),
            step: Some(1),
            seq: Some(7),
            recorded: Some("a < b & c\u{1}".to_owned()),
            replayed: None,
        });
        let problem = (verdict == ReplayVerdict::Broken).then(|| "there is no run <x>".to_owned());
        ReplayedRecording {
            recording: recording.to_owned(),
            verdict,
            drift: drift.collect(),
            problem,
            ..ReplayedRecording::default()
        }
    }

    fn report() -> ReplayReport {
        use DriftKind::{Decision, Text};
        let recordings = vec![
            recorded("a", ReplayVerdict::Same, &[]),
            recorded("b", ReplayVerdict::Text, &[Text]),
            recorded("c", ReplayVerdict::Decision, &[Text, Decision]),
            recorded("d", ReplayVerdict::Broken, &[]),
        ];
        ReplayReport { recordings }
    }

    #[test]
    fn every_verdict_has_its_element() {
        insta::assert_snapshot!(document(&report(), false).unwrap(), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="mission replay" tests="4" failures="1" errors="1">
          <testsuite name="mission replay" tests="4" failures="1" errors="1">
            <testcase classname="replay" name="a"/>
            <testcase classname="replay" name="b">
              <system-out>text: `x` of &quot;text&quot;, step 1, seq 7
        recorded: a &lt; b &amp; c�
        replayed: (nothing)</system-out>
            </testcase>
            <testcase classname="replay" name="c">
              <failure type="decision" message="`x` of &quot;decision&quot;">text: `x` of &quot;text&quot;, step 1, seq 7
        recorded: a &lt; b &amp; c�
        replayed: (nothing)
        decision: `x` of &quot;decision&quot;, step 1, seq 7
        recorded: a &lt; b &amp; c�
        replayed: (nothing)</failure>
            </testcase>
            <testcase classname="replay" name="d">
              <error type="broken" message="there is no run &lt;x&gt;"/>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn under_strict_a_text_is_a_failure() {
        let strict = document(&report(), true).unwrap();
        assert!(strict.contains(r#"failures="2""#) && !strict.contains("system-out"), "{strict}");
    }
}
