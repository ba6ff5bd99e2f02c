//! How single fields are written in JSON.

use crate::kernel::address::serialize_hex;
use crate::kernel::{PageFlags, State};
use serde::Serializer;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Flags by name, or `null`.
pub fn flag_names<S: Serializer>(
    flags: &Option<PageFlags>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match flags {
        Some(flags) => serializer.collect_seq(flags.names()),
        None => serializer.serialize_none(),
    }
}

/// Flags as a number.
pub fn flags_hex_only<S: Serializer>(flags: &PageFlags, serializer: S) -> Result<S::Ok, S::Error> {
    serialize_hex(&flags.bits(), serializer)
}

/// Flags by name.
pub fn flag_names_only<S: Serializer>(flags: &PageFlags, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(flags.names())
}

/// A count for each state, 0 where there are none: programs need not ask which are there.
pub fn every_state<S: Serializer>(
    states: &BTreeMap<State, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        State::ALL
            .iter()
            .map(|state| (state.word(), states.get(state).copied().unwrap_or(0))),
    )
}

/// Names and numbers as an object, or `null`.
pub fn optional_object<S: Serializer>(
    fields: &Option<Vec<(String, u64)>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match fields {
        Some(fields) => serializer.collect_map(fields.iter().map(|(name, bytes)| (name, bytes))),
        None => serializer.serialize_none(),
    }
}

/// Whether a field that is there only when it is true is left out.
pub fn not(field: &bool) -> bool {
    !field
}

/// Words as hexadecimal strings.
pub fn hex_words<S: Serializer>(words: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(words.iter().map(|word| format!("{word:#x}")))
}

/// As it is written in text, or `null`.
pub fn optional_text<S: Serializer, T: Display>(
    field: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match field {
        Some(field) => serializer.collect_str(field),
        None => serializer.serialize_none(),
    }
}

/// Serialises an optional word as a hexadecimal string.
pub fn optional_hex<S: Serializer>(raw: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match raw {
        Some(raw) => serialize_hex(raw, serializer),
        None => serializer.serialize_none(),
    }
}

/// Bytes as digits, two a byte, or `null`.
pub fn optional_bytes<S: Serializer>(
    bytes: &Option<Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    use std::fmt::Write;
    let Some(bytes) = bytes else {
        return serializer.serialize_none();
    };
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    serializer.serialize_str(&digits)
}
