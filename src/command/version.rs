//! Which pmdb this is: `show version`.

use super::{Context, Error};
use crate::report::SettingReport;

/// The facts that a bug report needs: name, value, meaning.
fn facts() -> [(&'static str, &'static str, &'static str); 4] {
    [
        ("version", env!("CARGO_PKG_VERSION"), "of pmdb"),
        ("commit", env!("PMDB_COMMIT"), "of the source, recorded in release builds"),
        ("target", env!("PMDB_TARGET"), "processor, system and C library"),
        ("build", env!("PMDB_PROFILE"), "how it was compiled"),
    ]
}

pub(super) fn run(context: &mut Context) -> Result<(), Error> {
    for (name, value, meaning) in facts() {
        context.sink.emit(&SettingReport { name: name.into(), value: value.into(), meaning: meaning.into() })?;
    }
    Ok(())
}
