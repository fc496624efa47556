//! Text that may be large: shared by reference, and storable once in a log.

use std::sync::Arc;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A string that is cheap to share, or (in a log only) a pointer to the `result` line that holds it.
///
/// On the wire it is always a string. In a log, a text over [`DEDUPLICATED_BYTES`] that a `record` repeats
/// from a `result` is written as `{"$of": seq}`; readers put it back before anything leaves the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Text {
    /// The text itself.
    Inline(Arc<str>),
    /// Only in a log: the `text` of the `result` line with this sequence number.
    Of {
        /// Sequence number of that line.
        #[serde(rename = "$of")]
        seq: u64,
    },
}

/// A text longer than this many bytes is stored once in a log (64 KiB: below it the pointer saves little).
pub const DEDUPLICATED_BYTES: usize = 64 * 1024;

impl Text {
    /// The text, or nothing where a log only points at it.
    pub fn as_str(&self) -> &str {
        match self {
            Text::Inline(text) => text,
            Text::Of { .. } => "",
        }
    }
}

/// By hand rather than derived: an untagged enum would copy a large text twice.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string, or an object with `$of` alone")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::Inline(Arc::from(text)))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Text, E> {
                Ok(Text::Inline(Arc::from(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                match map.next_key::<String>()?.as_deref() {
                    Some("$of") => {}
                    _ => return Err(de::Error::missing_field("$of")),
                }
                let seq = map.next_value()?;
                match map.next_key::<String>()? {
                    None => Ok(Text::Of { seq }),
                    Some(other) => Err(de::Error::unknown_field(&other, &["$of"])),
                }
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::Inline(Arc::from(""))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::Inline(Arc::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::Inline(Arc::from(text))
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Text::Inline(text)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Text {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}
