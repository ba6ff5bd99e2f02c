//! Decodes the status of a process from the files of `/proc`, or from the notes of a core file.

use super::Result;
use crate::access;
use crate::budget::Budget;
use crate::kernel::Region;
use crate::kernel::core_notes::CoreNotes;
use crate::kernel::mounts::Mount;
use crate::kernel::status::{Stat, Status};
use crate::source::{File, KernelSetting, Notes, Source};
use std::sync::Arc;

/// Returns the notes, if the source is a core file.
pub(super) fn notes(source: &dyn Source) -> Option<Arc<CoreNotes>> {
    source.fetch(Notes).ok().flatten()
}

/// Reads `/proc/PID/stat`, or the same from the notes.
pub(super) fn stat(source: &dyn Source) -> Result<Stat> {
    match notes(source) {
        Some(notes) => Ok(notes.stat()),
        None => Ok(Stat::parse(&source.fetch(File::Stat)?)?),
    }
}

/// Reads `/proc/PID/status`, or the same from the notes.
pub(super) fn status(source: &dyn Source) -> Result<Status> {
    match notes(source) {
        Some(notes) => Ok(notes.status()),
        None => Ok(Status::parse(&source.fetch(File::Status)?)?),
    }
}

/// Returns the value of a setting of the machine, if it is known.
pub(super) fn setting(source: &dyn Source, setting: KernelSetting) -> Option<u64> {
    let Some(notes) = notes(source) else {
        let text = source.fetch(File::Setting(setting)).ok()?;
        return std::str::from_utf8(&text).ok()?.trim().parse().ok();
    };
    let machine = notes.machine.as_ref()?;
    match setting {
        KernelSetting::HugePageBytes => machine.huge_page_bytes,
        KernelSetting::MergedPages => machine.merged_pages,
        _ => None,
    }
}

/// Decodes a list of mounts. Each costs one step. A core file has only the mounts that its notes describe.
pub(super) fn mounts(source: &dyn Source, list: File, budget: &mut Budget) -> Result<Vec<Mount>> {
    let noted = matches!(list, File::OwnMounts).then(|| notes(source)).flatten();
    match noted.and_then(|notes| Some(notes.machine.as_ref()?.mounts())) {
        Some(mounts) => Ok(mounts),
        None => access::mounts(&source.get(list, budget)?, budget),
    }
}

/// Makes the regions of a core file without the text of `maps`; `None` for other sources. Each costs one step.
pub(super) fn regions(source: &dyn Source, budget: &mut Budget) -> Result<Option<Vec<Region>>> {
    let notes = notes(source).filter(|notes| !notes.has_maps);
    Ok(notes.map(|notes| notes.regions(budget)).transpose()?)
}
