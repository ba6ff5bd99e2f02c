//! Bytes in the index, which is JSON: `%` and bytes that are not ASCII text are percent-encoded.

use crate::source::class::percent_encode;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt::{self, Formatter};

/// Bytes that are percent-encoded in the index, if necessary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EncodedBytes(pub Vec<u8>);

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    percent_encode(bytes, |byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'), &mut text);
    text
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            _ => byte,
        });
    }
    Some(bytes)
}

impl EncodedBytes {
    /// Decodes percent-encoded bytes.
    pub(super) fn decoded<E: de::Error>(text: &str) -> Result<Self, E> {
        decoded(text).map(EncodedBytes).ok_or_else(|| E::custom("no percent-encoded bytes"))
    }
}

impl Serialize for EncodedBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encoded(&self.0))
    }
}

impl<'de> Deserialize<'de> for EncodedBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = EncodedBytes;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("percent-encoded bytes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EncodedBytes, E> {
                EncodedBytes::decoded(text)
            }
        }
        from.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encoded(&all);
        assert!(text.is_ascii() && text.contains("%00") && text.contains("%25") && text.contains("%FF"), "{text}");
        assert_eq!(decoded(&text), Some(all));
        for damaged in ["%", "%4", "%zz"] {
            assert_eq!(decoded(damaged), None);
        }
    }
}
