//! What the files of `/proc` say of a process that runs, and the notes of a core file of one that was dumped.

use super::Result;
use crate::access;
use crate::budget::Budget;
use crate::kernel::Region;
use crate::kernel::core_notes::CoreNotes;
use crate::kernel::mounts::Mount;
use crate::kernel::status::{Stat, Status};
use crate::source::{File, KernelSetting, Notes, Source};
use std::sync::Arc;

/// The notes, if the source is a core file.
pub(super) fn notes(source: &dyn Source) -> Option<Arc<CoreNotes>> {
    source.fetch(Notes).ok().flatten()
}

/// What `stat` says.
pub(super) fn stat(source: &dyn Source) -> Result<Stat> {
    match notes(source) {
        Some(notes) => Ok(notes.stat()),
        None => Ok(Stat::parse(&source.fetch(File::Stat)?)?),
    }
}

/// What `status` says.
pub(super) fn status(source: &dyn Source) -> Result<Status> {
    match notes(source) {
        Some(notes) => Ok(notes.status()),
        None => Ok(Status::parse(&source.fetch(File::Status)?)?),
    }
}

/// The value of a setting of the machine, if it is known.
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

/// The mounts in a list of them. Each is a step. Of those where pmdb runs, a core file has what its notes tell.
pub(super) fn mounts(source: &dyn Source, list: File, budget: &mut Budget) -> Result<Vec<Mount>> {
    let noted = matches!(list, File::OwnMounts).then(|| notes(source)).flatten();
    match noted.and_then(|notes| Some(notes.machine.as_ref()?.mounts())) {
        Some(mounts) => Ok(mounts),
        None => access::mounts(&source.get(list, budget)?, budget),
    }
}

/// The regions of a core file that does not have their text; `None` of all others. Each is a step.
pub(super) fn regions(source: &dyn Source, budget: &mut Budget) -> Result<Option<Vec<Region>>> {
    let notes = notes(source).filter(|notes| !notes.has_maps);
    Ok(notes.map(|notes| notes.regions(budget)).transpose()?)
}
