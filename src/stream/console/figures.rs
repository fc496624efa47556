//! Numbers, times and arguments as people read them.

use mission_contract::event::Arguments;

use super::visible;
use crate::limits;

/// The beginning of some arguments. However large they are, only so much of them is written.
pub fn short_json(arguments: &Arguments) -> String {
    struct Beginning(Vec<u8>);

    impl std::io::Write for Beginning {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Four bytes hold any character: this is enough for what is shown and one more.
            if self.0.len() > limits::size(limits::CONSOLE_TEXT_CHARACTERS).saturating_mul(4) {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            self.0.extend_from_slice(bytes.get(..bytes.len().min(64 * 1024)).unwrap_or(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut beginning = Beginning(Vec::new());
    // The only error is the one above: enough is there then.
    let _ = serde_json::to_writer(&mut beginning, arguments);
    visible::shortened(&String::from_utf8_lossy(&beginning.0), limits::size(limits::CONSOLE_TEXT_CHARACTERS)).into_owned()
}

/// A number of things.
pub fn plural(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// A size as people read it.
pub fn size(bytes: u64) -> String {
    const STEP: u64 = 1024;
    let tenths = |unit: u64| {
        let tenths = bytes.saturating_mul(10).checked_div(unit).unwrap_or_default();
        format!("{}.{}", tenths.checked_div(10).unwrap_or_default(), tenths.checked_rem(10).unwrap_or_default())
    };
    match bytes {
        0 => "empty".to_owned(),
        1..STEP => format!("{bytes} B"),
        STEP..1_048_576 => format!("{} KiB", tenths(STEP)),
        _ => format!("{} MiB", tenths(1_048_576)),
    }
}

/// A span of time as people read it.
pub fn time(ms: u64) -> String {
    let seconds = ms.checked_div(1000).unwrap_or_default();
    let tenth = ms.checked_rem(1000).unwrap_or_default().checked_div(100).unwrap_or_default();
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{seconds}.{tenth} s"),
        _ => {
            format!("{} min {} s", seconds.checked_div(60).unwrap_or_default(), seconds.checked_rem(60).unwrap_or_default())
        }
    }
}
