//! `account cgroup [PATH]`: what is charged to the group, in classes that add up to memory.current.

use super::family_records::AccountCgroup;
use super::records::{FREES_FILE_PAGES, FREES_SHARED_MEMORY, bytes, of_which_most, share};
use super::{filesystems, objects};
use crate::command::attach::KEPT_WITH_GROUP;
use crate::command::floor::Error;
use crate::command::rows::pull;
use crate::command::summary::all_frames;
use crate::inspect::account::{Family, FamilySums, GroupCharges, MemoryObject, MemoryObjects};
use crate::lang::listed;
use crate::process::{self, CgroupMemory};
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{ChargeClass, Fact, FamilyClass, ObjectKind, Reason};
use std::cmp::Reverse;

record! {
    /// A row of `account cgroup`: memory of one class that is charged to the group.
    pub struct AccountCharge as "account-charge" {
        /// The class.
        class: ChargeClass,
        /// Bytes of its frames, or of a counter for the kernel and sockets.
        bytes: u64,
        /// All bytes of these rows, for the share of this class.
        of: u64,
        /// The action that frees the memory.
        freed_by: &'static str,
        /// Of shared memory that nobody maps, the most that is in objects which its processes hold.
        [optional] held: Option<u64>,
        /// Of shared memory that nobody maps, the most that is in files of tmpfs which its processes do not hold.
        [optional] files: Option<u64>,
        /// Of shared memory that nobody maps, the most that is in System V segments of others that no process has
        /// attached; absent if these are unknown.
        [optional] segments: Option<u64>,
    }
}

impl Record for AccountCharge {
    fn write(&self, text: &mut Text) {
        text.row_of_share(&CHARGES, self, Some(words(self.class)), (self.bytes, self.of));
    }
}

static CHARGES: Table<AccountCharge> = Table::of(&[
    bytes("charged").cell(|_, row| Cell::size(row.bytes)),
    Column::number("share", 6, Role::Plain).cell(|_, row| share(row.bytes, row.of)),
    Column::word("to the group", 38, Role::Plain).cell(|_, row| Cell::new(words(row.class))),
    Column::word("freed by", 34, Role::Plain).cell(|_, row| Cell::new(freed_in_parts(row))),
]);

/// What frees it; of shared memory apart what frees the files, objects and segments in the rows below. Whose pages
/// these are is not known: each part is the most that it can be.
fn freed_in_parts(row: &AccountCharge) -> String {
    let is_worth_a_word = |part: u64| part > 0 && part.saturating_mul(100) >= row.bytes;
    let parts = [(row.files, "rm the files"), (row.held, "free the objects"), (row.segments, "ipcrm the segments")];
    let parts = parts.map(|(most, action)| (most.unwrap_or(0), action));
    let shown: Vec<_> = parts.iter().filter(|(most, _)| is_worth_a_word(*most)).collect();
    if shown.is_empty() {
        return row.freed_by.to_owned();
    }
    let actions: Vec<_> = shown.iter().map(|(_, action)| (*action).to_owned()).collect();
    let below = format!("{} below", listed(&actions, "and"));
    let rest = parts.iter().fold(row.bytes, |rest, (most, _)| rest.saturating_sub(*most));
    match row.segments {
        None => format!("{below}, or ipcrm (ipcs -m)"),
        Some(_) if is_worth_a_word(rest) => format!("{below}; the rest was not found"),
        Some(_) => below,
    }
}

/// A class in a few words.
fn words(class: ChargeClass) -> &'static str {
    match class {
        ChargeClass::Mapped => "mapped by its processes",
        ChargeClass::MappedOutside => "mapped only by processes outside",
        ChargeClass::SharedMemory => "shared memory that nobody maps",
        ChargeClass::PageCache => "page cache that nobody maps",
        ChargeClass::Anonymous => "anonymous memory that nobody maps",
        ChargeClass::Hugetlb => "hugetlb pages",
        ChargeClass::Kernel => "memory of the kernel",
        ChargeClass::Sockets => "buffers of sockets",
        ChargeClass::Unclear => "not mapped by its processes",
    }
}

fn freed_by(class: ChargeClass) -> &'static str {
    match class {
        ChargeClass::Mapped => "munmap, or the end of its processes",
        ChargeClass::MappedOutside | ChargeClass::Unclear => "munmap there, and reclaim of clean file pages",
        ChargeClass::SharedMemory => "rm of files in tmpfs (df -t tmpfs), closing of memfds, ipcrm (ipcs -m)",
        ChargeClass::PageCache => FREES_FILE_PAGES,
        ChargeClass::Anonymous => "munmap of the rest of huge pages; reclaim of the swap cache",
        ChargeClass::Hugetlb => FREES_SHARED_MEMORY,
        ChargeClass::Kernel => "the end of processes; reclaim of caches (dentries, inodes)",
        ChargeClass::Sockets => "reading or closing them",
    }
}

/// Emits what is charged to the group, after the sentence that answers, and its limits.
pub(super) fn emit(
    before: CgroupMemory,
    family: &Family,
    sums: &FamilySums,
    objects: &Fact<MemoryObjects>,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let found = match objects {
        Err(reason) => Err(reason.clone()),
        // No frame of it is worth a search of all.
        Ok(_) if !before.is_root && matches!(before.current, Ok(0)) => Ok(GroupCharges::default()),
        Ok(_) => search(&before, family, sink)?,
    };
    // Now, as the frames.
    let memory = family.machine().cgroup_memory(before.path.as_bytes()).unwrap_or(before);
    let found = found.map(|found| with_counters(found, &memory));
    if let Ok(found) = &found {
        let of = found.bytes();
        let mut rows: Vec<_> = found.classes.iter().filter(|(_, bytes)| **bytes > 0).collect();
        rows.sort_by_cached_key(|(_, bytes)| Reverse(**bytes));
        let most = rows.first().map(|(class, bytes)| of_which_most(**bytes, of, words(**class)));
        // The kernel does not count all that is charged to the root.
        let counted = memory.current.as_ref().ok().filter(|_| !memory.is_root);
        let charged = counted.copied().unwrap_or(of);
        sink.answer(format!("cgroup {} is charged {}{}", memory.path, size(charged), most.unwrap_or_default()))?;
        for &(&class, &bytes) in &rows {
            sink.emit(&charge((class, bytes), of, objects))?;
        }
        if let Ok(objects) = objects {
            rows.iter().try_for_each(|(class, bytes)| candidates(**class, **bytes, objects, sink))?;
            let is_hugetlb = |class| match class {
                ChargeClass::SharedMemory => Some(false),
                ChargeClass::Hugetlb => Some(true),
                _ => None,
            };
            let kinds: Vec<bool> = rows.iter().filter_map(|(class, _)| is_hugetlb(**class)).collect();
            if !kinds.is_empty() {
                filesystems::note_others(&objects.filesystems, &kinds, sink)?;
            }
        }
    }
    Ok(sink.emit(&of_cgroup(memory, found, sums))?)
}

fn charge((class, bytes): (ChargeClass, u64), of: u64, objects: &Fact<MemoryObjects>) -> AccountCharge {
    let shared = Some(objects).filter(|_| class == ChargeClass::SharedMemory);
    let segments = shared.and_then(|objects| objects.as_ref().ok()?.unattached.as_ref().ok());
    AccountCharge {
        class,
        bytes,
        of,
        freed_by: freed_by(class),
        held: shared.map(in_objects),
        files: shared.map(|objects| {
            objects.as_ref().map_or(0, |objects| filesystems::not_held(&objects.filesystems, false)).min(bytes)
        }),
        segments: segments.map(|segments| in_segments(segments).min(bytes)),
    }
}

/// The rows of what may have memory of the class, and is not held by the processes.
fn candidates(class: ChargeClass, bytes: u64, objects: &MemoryObjects, sink: &mut dyn Sink) -> Result<(), Error> {
    match class {
        ChargeClass::Hugetlb => filesystems::emit(&objects.filesystems, true, bytes, sink)?,
        ChargeClass::SharedMemory => {
            filesystems::emit(&objects.filesystems, false, bytes, sink)?;
            objects::emit_of_any_group(objects.unattached.as_deref().unwrap_or_default(), sink)?;
        }
        _ => {}
    }
    Ok(())
}

/// All bytes of segments.
fn in_segments(segments: &[MemoryObject]) -> u64 {
    segments.iter().map(|segment| segment.bytes).fold(0, u64::saturating_add)
}

/// The shared memory in objects that the processes hold and do not map, as far as it is in memory.
fn in_objects(objects: &Fact<MemoryObjects>) -> u64 {
    objects.as_ref().map_or(0, held_by_processes)
}

fn held_by_processes(objects: &MemoryObjects) -> u64 {
    use ObjectKind::{Memfd, SharedAnonymous, SystemV, Tmpfs};
    let shared = objects.all.iter().filter(|object| matches!(object.kind, Memfd | Tmpfs | SharedAnonymous | SystemV));
    shared.map(MemoryObject::unmapped).fold(0, u64::saturating_add)
}

/// The frames that are charged to the group and to those below it.
fn search(group: &CgroupMemory, family: &Family, sink: &mut dyn Sink) -> Result<Fact<GroupCharges>, Error> {
    let mut search = || {
        let range = all_frames(family.machine())?;
        let mut charges = family.charges(range, group.inodes.clone()).with_budget(sink.budget());
        match pull(sink, "frames", || charges.next(), |(), _| Ok(()))? {
            None => Ok(charges.finish()),
            Some(stopped) => Err(stopped.into()),
        }
    };
    match search() {
        Err(Error::Target(process::Error::NotAvailable { .. })) if family.machine().is_captured() => {
            let why = format!("other memory of the cgroup is not in this capture: {KEPT_WITH_GROUP}");
            Ok(Err(Reason::NotInFile(why)))
        }
        Err(Error::Target(error)) => Ok(Err(error.into())),
        found => found.map(Ok),
    }
}

/// With what counters know better than frames do.
fn with_counters(mut found: GroupCharges, memory: &CgroupMemory) -> GroupCharges {
    let stat = |name| memory.stat.as_ref().ok().and_then(|stat| stat.get(name).copied());
    for (class, name) in [(ChargeClass::Kernel, "kernel"), (ChargeClass::Sockets, "sock")] {
        if let Some(bytes) = stat(name) {
            found.classes.insert(class, bytes);
        }
    }
    found
}

fn of_cgroup(memory: CgroupMemory, charges: Fact<GroupCharges>, sums: &FamilySums) -> AccountCgroup {
    let stat = |name: &str| {
        let stat = memory.stat.as_ref().map_err(|error| Reason::from(error.clone()))?;
        let missing = || Reason::NotOnThisKernel("memory.stat does not show it".into());
        stat.get(name).copied().ok_or_else(missing)
    };
    let (file, mapped) = (stat("file"), stat("file_mapped"));
    let unmapped = file.clone().and_then(|file| Ok(file.saturating_sub(mapped.clone()?)));
    let elsewhere = sums.classes.iter().filter(|(class, _)| *class == FamilyClass::Elsewhere);
    let frames = sums.distinct - elsewhere.map(|(_, sum)| sum.bytes).sum::<u64>();
    AccountCgroup {
        anon: stat("anon"),
        shmem: stat("shmem"),
        kernel: stat("kernel"),
        zswapped: stat("zswapped"),
        zswap: stat("zswap"),
        file,
        file_mapped: mapped,
        unmapped_file: unmapped,
        charged_elsewhere: charges
            .as_ref()
            .map(|found| frames.saturating_sub(found.in_page_tables))
            .map_err(Clone::clone),
        found: charges.map(|found| found.bytes()),
        outside: memory.outside.map_err(Reason::from),
        is_root: memory.is_root,
        current: memory.current.map_err(Reason::from),
        limit: memory.limit.map_err(Reason::from),
        peak: memory.peak.map_err(Reason::from),
        killed: memory.killed.map_err(Reason::from),
        path: memory.path,
    }
}

impl Record for AccountCgroup {
    fn write(&self, text: &mut Text) {
        text.line(cgroup, self);
    }
}

fn cgroup(lines: &mut Lines, group: &AccountCgroup) {
    // Otherwise the rows above have them.
    if lines.style.is_full || group.found.is_err() {
        kinds(lines, group);
    }
    limits(lines, group);
    if let (Ok(bytes @ 1..), Ok(memory)) = (&group.zswapped, &group.zswap) {
        lines.line().indent(4).plain(format!(
            "zswap holds {} of its swapped memory in {}",
            size(*bytes),
            size(*memory)
        ));
    }
    match (&group.found, &group.current) {
        (Ok(found), Ok(current)) => {
            charges(lines, *found, group.charged_elsewhere.as_ref().copied().unwrap_or(0), (*current, group.is_root));
        }
        _ => unmapped_file(lines, group),
    }
    let outside = match &group.outside {
        Ok(0) => None,
        Ok(number) => Some(format!("{number}; their memory is charged here, and not counted below")),
        Err(reason) => Some(format!("unknown: {}", reason.cause())),
    };
    if let Some(outside) = outside {
        lines.line().indent(4).word("", Role::Warn, format!("processes in another PID namespace: {outside}"));
    }
    for reason in [&group.current, &group.file, &group.found].into_iter().filter_map(|fact| fact.as_ref().err()).take(1)
    {
        lines.line().indent(4).word("", Role::Note, reason.to_string());
    }
}

/// What is charged, by kind, as memory.stat has it.
fn kinds(lines: &mut Lines, group: &AccountCgroup) {
    let amount = |bytes: &Fact<u64>| bytes.as_ref().map_or_else(|_| "unknown".to_owned(), |bytes| size(*bytes));
    let line = lines.line();
    line.indent(2).plain("cgroup ").push(Role::Name, &group.path);
    line.plain(format!(": {} charged; anonymous {}", amount(&group.current), amount(&group.anon)));
    line.plain(format!(", page cache {}", amount(&group.file)));
    for (bytes, what) in [(&group.shmem, "of it shared memory"), (&group.kernel, "kernel")] {
        if let Ok(bytes) = bytes {
            line.plain(format!(", {what} {}", size(*bytes)));
        }
    }
}

/// `limit 256 MiB, peak 256 MiB, 2 processes killed by the OOM killer`
fn limits(lines: &mut Lines, group: &AccountCgroup) {
    let limit = match group.limit {
        Ok(limit) => limit.map(|bytes| format!("limit {}", size(bytes))),
        Err(_) => Some("limit unknown".to_owned()),
    };
    let peak = group.peak.as_ref().ok().map(|peak| format!("peak {}", size(*peak)));
    let known: Vec<String> = limit.into_iter().chain(peak).collect();
    let killed = group.killed.as_ref().copied().unwrap_or(0);
    if known.is_empty() && killed == 0 {
        return;
    }
    let line = lines.line();
    line.indent(4).plain(known.join(", "));
    if killed > 0 {
        let separator = if known.is_empty() { "" } else { ", " };
        line.word(separator, Role::Bad, format!("{} killed by the OOM killer", counted(killed, "process")));
    }
}

/// How the sum of the rows differs from what is charged.
fn charges(lines: &mut Lines, found: u64, elsewhere: u64, (current, is_root): (u64, bool)) {
    /// A processor charges up to 64 pages more than it has given out, which are of 4 KiB mostly (`MEMCG_CHARGE_BATCH`;
    /// 32 before Linux 6.1).
    const SLACK: u64 = 1 << 20;
    let difference = current.abs_diff(found);
    if is_root {
        let counted = format!("the kernel counts {}, without some memory that is charged to the root", size(current));
        lines.line().indent(4).word("", Role::Note, counted);
    } else if lines.style.is_full || difference > (current / 100).max(SLACK) {
        let what = if found < current { "less" } else { "more" };
        lines.line().indent(4).plain(format!(
            "the rows add up to {}, {} {what}: processors charge in advance, and memory changes meanwhile",
            size(found),
            size(difference)
        ));
    }
    if elsewhere > 0 && (lines.style.is_full || elsewhere > current / 100) {
        lines.line().indent(4).plain(format!(
            "its processes also map {} that is not charged here, but to the group that touched it first",
            size(elsewhere)
        ));
    }
}

/// The page cache that no process maps, as far as memory.stat shows it.
fn unmapped_file(lines: &mut Lines, group: &AccountCgroup) {
    if let Ok(bytes) = &group.unmapped_file
        && *bytes > 0
    {
        // Which shared memory is mapped, memory.stat does not tell.
        let text = match group.shmem.as_ref().copied() {
            Ok(0) => format!("no process maps {} of the page cache: reclaim frees it, if clean", size(*bytes)),
            Ok(shmem) => format!(
                "no process maps {} of the page cache: reclaim frees {} or more, if clean; the rest may be shared memory",
                size(*bytes),
                size(bytes.saturating_sub(shmem))
            ),
            Err(_) => format!(
                "no process maps {} of the page cache: reclaim frees what is clean, and no shared memory",
                size(*bytes)
            ),
        };
        lines.line().indent(4).word("", Role::Good, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts are upper bounds: 203 MiB in files of others say nothing about 40 MiB in a segment.
    #[test]
    fn each_remedy_of_shared_memory_that_is_possible() {
        let text = |files: u64, held: u64, segments: Option<u64>| {
            let of = |mib: u64| Some(mib << 20);
            let segments = segments.map(|mib| mib << 20);
            let class = ChargeClass::SharedMemory;
            let (bytes, freed_by) = (40 << 20, freed_by(class));
            freed_in_parts(&AccountCharge {
                class,
                bytes,
                of: bytes,
                freed_by,
                held: of(held),
                files: of(files),
                segments,
            })
        };
        assert_eq!(text(40, 0, Some(0)), "rm the files below");
        assert_eq!(text(40, 0, Some(40)), "rm the files and ipcrm the segments below");
        assert_eq!(text(40, 0, None), "rm the files below, or ipcrm (ipcs -m)");
        assert_eq!(text(0, 20, Some(0)), "free the objects below; the rest was not found");
        assert_eq!(text(0, 0, Some(0)), freed_by(ChargeClass::SharedMemory));
    }
}

/// Samples of its records.
#[cfg(test)]
pub(super) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let row = |class, bytes| -> Box<dyn Record> {
            let is_shared = class == ChargeClass::SharedMemory;
            let (held, files) = (is_shared.then_some(60 << 20), is_shared.then_some(20 << 20));
            let segments = is_shared.then_some(8 << 20);
            Box::new(AccountCharge { class, bytes, of: 220 << 20, freed_by: freed_by(class), held, files, segments })
        };
        let group = AccountCgroup {
            path: "/system.slice/postgresql.service".into(),
            current: Ok(226 << 20),
            limit: Ok(None),
            peak: Ok(256 << 20),
            killed: Ok(0),
            anon: Ok(60 << 20),
            file: Ok(150 << 20),
            shmem: Ok(80 << 20),
            file_mapped: Ok(50 << 20),
            unmapped_file: Ok(100 << 20),
            kernel: Ok(10 << 20),
            zswapped: Ok(40 << 20),
            zswap: Ok(12 << 20),
            found: Ok(220 << 20),
            charged_elsewhere: Ok(3 << 20),
            outside: Err(Reason::NotApplicable("cgroup v1 lists only the processes of pmdb's PID namespace")),
            is_root: false,
        };
        let root = AccountCgroup {
            path: "/".into(),
            is_root: true,
            outside: Ok(3),
            charged_elsewhere: Ok(0),
            ..group.clone()
        };
        vec![
            row(ChargeClass::SharedMemory, 80 << 20),
            row(ChargeClass::Mapped, 70 << 20),
            row(ChargeClass::PageCache, 60 << 20),
            row(ChargeClass::Kernel, 10 << 20),
            Box::new(group),
            Box::new(root),
        ]
    }
}
