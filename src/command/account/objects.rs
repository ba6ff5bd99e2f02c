//! The rows of `account` for objects in memory that have more pages than mappings show.

use super::records::{FREES_KEPT_MEMORY, bytes};
use crate::inspect::account::{Bound, MemoryObject, MemoryObjects, UnknownFiles};
use crate::kernel::Name;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::text::block::{DELETED, mapped_name, object_number};
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{Fact, ObjectKind, Reason, Stopped, Why};

/// Why objects are not searched after Ctrl-C.
pub(super) const INTERRUPTED: &str = "the count was interrupted";
/// Rows of objects that are shown; the sum has all.
const MOST_ROWS: usize = 10;

record! {
    /// An object in memory that has more pages than the counted processes have in their page tables. With `full` also
    /// a deleted file that is open, and its page cache.
    pub struct AccountObject as "account-object" {
        /// Its kind.
        kind: ObjectKind,
        /// Its path, or the name that the kernel gives it.
        name: Name,
        /// The device of its file system; `null` for a System V segment, and for a client of a driver.
        device: Option<String>,
        /// Its inode there, or the number of the segment or of the client: two objects may have one name.
        inode: u64,
        /// Bytes of its pages, in memory or in swap.
        bytes: u64,
        /// Whether fewer may be outside of page tables.
        at_most: bool,
        /// Of these, bytes that are in a page table of the counted processes.
        mapped: u64,
        /// Bytes that are in none.
        unmapped: u64,
        /// Who holds it, of the counted processes; of many only the first.
        holders: Vec<AccountHolder>,
        /// Number of all these holders.
        held: u64,
        /// Whether several processes were counted.
        of_several: bool,
        /// Of memory of a driver the bytes of buffers that other clients have too.
        [optional] shared: Option<u64>,
        /// The process that made it, of a System V segment that no process has attached; absent if that process is in
        /// another PID namespace.
        [optional] creator: Option<u32>,
        /// Whether that process runs still, and no other one with its number.
        [optional] creator_runs: Option<bool>,
        /// The action that frees the memory.
        freed_by: String,
        /// Whether it may be charged to another group: the kernel does not show to which a segment is.
        [optional] may_be_of_another_group: bool,
    }

    /// A file descriptor or a mapping that holds an object in memory.
    #[derive(Eq)]
    pub struct AccountHolder {
        /// The process.
        pid: u32,
        /// The thread in whose own table the descriptor is.
        thread: Option<u32>,
        /// The file descriptor; `null` for a mapping.
        descriptor: Option<u32>,
    }
}

impl Record for AccountObject {
    fn write(&self, text: &mut Text) {
        text.row(&OBJECTS, self);
    }
}

static OBJECTS: Table<AccountObject> = Table::of(&[
    Column::number("unmapped", 10, Role::Size).cell(|_, row| unmapped(row)),
    bytes("size").cell(|_, row| Cell::size(row.bytes)),
    Column::name("object", 24, Role::Name).cell(|_, row| object(row)),
    Column::word("number", 12, Role::Plain).cell(|_, row| Cell::new(number(row))),
    Column::word("held by", 16, Role::Plain).cell(|_, row| Cell::new(held_by(row))),
    Column::word("freed by", 17, Role::Plain).cell(|_, row| {
        if row.may_be_of_another_group {
            Cell::new(format!("{} (may be charged to another group)", row.freed_by))
        } else {
            Cell::new(&row.freed_by)
        }
    }),
]);

fn object(row: &AccountObject) -> Cell<'_> {
    let (_, name) = mapped_name(&row.name, row.kind == ObjectKind::SharedAnonymous);
    Cell::new(name)
}

fn unmapped(row: &AccountObject) -> Cell<'static> {
    if row.at_most { Cell::new(format!("up to {}", size(row.unmapped))) } else { Cell::size(row.unmapped) }
}

/// `inode 1030 (deleted)`: which object, where others have the same name, and what a long name must not hide.
fn number(row: &AccountObject) -> String {
    let number = match row.kind {
        ObjectKind::Graphics => format!("client {}", row.inode),
        _ => object_number(row.name.as_bytes(), Some(row.inode)).trim_start_matches(", ").to_owned(),
    };
    let deleted = if row.kind == ObjectKind::DeletedFile { DELETED } else { "" };
    format!("{number}{deleted}")
}

/// Its holders in short: `mapped, fd 3` of one process, `812 and 3 more` of several.
fn held_by(row: &AccountObject) -> String {
    if let Some(creator) = row.creator {
        let state = if row.creator_runs == Some(false) { " (ended or reused)" } else { "" };
        return format!("nobody; created by PID {creator}{state}");
    }
    let mut processes: Vec<u32> = row.holders.iter().map(|holder| holder.pid).collect();
    processes.dedup();
    let held = match processes[..] {
        [first, _, ..] => format!("{first} and {} more", processes.len() - 1),
        [first] if row.of_several => format!("{first}: {}", held_in_one(row)),
        _ => held_in_one(row),
    };
    let shared = row.shared.filter(|shared| *shared > 0);
    shared.map_or(held.clone(), |shared| format!("{held}; {} shared with other clients", size(shared)))
}

/// `mapped, fd 3`, `2 fds`
fn held_in_one(row: &AccountObject) -> String {
    // All mappings are listed.
    let mappings = row.holders.iter().filter(|holder| holder.descriptor.is_none()).count() as u64;
    let first = row.holders.iter().find_map(|holder| Some((holder.descriptor?, holder.thread)));
    let descriptors = match (row.held.saturating_sub(mappings), first) {
        (0, _) | (_, None) => None,
        (1, Some((number, None))) => Some(format!("fd {number}")),
        (1, Some((number, Some(thread)))) => Some(format!("fd {number} of thread {thread}")),
        (many, _) => Some(counted(many, "fd")),
    };
    let mapped = (mappings > 0).then(|| "mapped".to_owned());
    mapped.into_iter().chain(descriptors).collect::<Vec<_>>().join(", ")
}

/// The rows of the largest objects, and a note of the others.
pub(super) fn emit(objects: &MemoryObjects, of_several: bool, sink: &mut dyn Sink) -> Result<(), Stopped> {
    emit_rows(&objects.all, of_several, sink)?;
    if let Some(reason) = why_more(objects) {
        sink.note(format!("there may be more objects: {reason}"))?;
    }
    if let Some(UnknownFiles { files, reason: Some(reason), .. }) = &objects.unknown_files {
        let files = counted(*files, "deleted file");
        sink.note(format!("the page cache of {files} is unknown: {}", reason.cause()))?;
    }
    Ok(())
}

/// The same of any objects.
pub(super) fn emit_rows(objects: &[MemoryObject], of_several: bool, sink: &mut dyn Sink) -> Result<(), Stopped> {
    objects.iter().take(MOST_ROWS).try_for_each(|object| sink.emit(&row(object, of_several)))?;
    note_more(objects, sink)
}

/// The rows of segments of others: the kernel does not show to which group they are charged.
pub(super) fn emit_of_any_group(segments: &[MemoryObject], sink: &mut dyn Sink) -> Result<(), Stopped> {
    segments.iter().take(MOST_ROWS).try_for_each(|segment| sink.emit(&of_any_group(row(segment, true))))?;
    note_more(segments, sink)
}

fn of_any_group(row: AccountObject) -> AccountObject {
    AccountObject { may_be_of_another_group: true, ..row }
}

/// A note of the objects that have no row.
fn note_more(objects: &[MemoryObject], sink: &mut dyn Sink) -> Result<(), Stopped> {
    match objects.get(MOST_ROWS..).unwrap_or_default() {
        [] => Ok(()),
        rest => {
            let bytes = rest.iter().map(MemoryObject::unmapped).fold(0, u64::saturating_add);
            sink.note(format!("{} with {} unmapped", counted(rest.len() as u64, "more object"), size(bytes)))
        }
    }
}

/// What frees a file that a directory has.
const FREES_NAMED_FILE: &str = "rm, munmap, closing";
/// What frees the page cache of a deleted file. Its room on the disk is free when nobody holds it.
const FREES_DELETED_FILE: &str = "reclaim if clean; or munmap, closing";
/// What frees buffers of a client of a driver.
const FREES_BUFFERS: &str = "closing its buffers or fds";
/// What frees a System V segment that is marked for removal.
const FREES_REMOVED: &str = "detach";
/// What frees a segment of another IPC namespace. The kernel marks all as deleted in `maps`: `ipcs -m` shows which are.
const FREES_SEGMENT: &str = "ipcrm -m unless `ipcs -m` shows dest, detach";

fn row(object: &MemoryObject, of_several: bool) -> AccountObject {
    let (device, inode) = object.identity.numbers();
    let holders = object.holders.iter();
    AccountObject {
        kind: object.kind,
        name: object.name.clone(),
        device: device.map(|device| device.to_string()),
        inode,
        bytes: object.bytes,
        at_most: object.is_at_most,
        mapped: object.mapped,
        unmapped: object.unmapped(),
        holders: holders
            .map(|one| AccountHolder { pid: one.process, thread: one.thread, descriptor: one.descriptor })
            .collect(),
        held: object.held,
        of_several,
        shared: object.shared,
        creator: object.creator,
        creator_runs: object.creator_runs,
        freed_by: freed_by(object),
        may_be_of_another_group: false,
    }
}

fn freed_by(object: &MemoryObject) -> String {
    let (_, number) = object.identity.numbers();
    let action = match (object.is_segment(), object.is_removed) {
        (true, Some(true)) => FREES_REMOVED,
        (true, Some(false)) if object.held == 0 => return format!("ipcrm -m {number}"),
        (true, Some(false)) => return format!("ipcrm -m {number}, detach"),
        (true, None) => FREES_SEGMENT,
        _ if object.kind == ObjectKind::DeletedFile => FREES_DELETED_FILE,
        _ if object.kind == ObjectKind::Graphics => FREES_BUFFERS,
        _ if object.has_path => FREES_NAMED_FILE,
        _ => FREES_KEPT_MEMORY,
    };
    action.to_owned()
}

/// Why there may be more objects than those that were found.
fn why_more(objects: &MemoryObjects) -> Option<&Reason> {
    objects.unmapped().ok().and(objects.unknown.as_ref())
}

/// The same, for a record with the sum of their unmapped bytes.
pub(super) fn why(objects: &Fact<MemoryObjects>) -> Why {
    let mut why = Why::default();
    if let Some(reason) = objects.as_ref().ok().and_then(why_more) {
        why.note("unmapped", reason);
    }
    why
}

/// The word of programs for an upper bound.
pub(super) const AT_MOST: &str = "at most";

/// What a sum of unmapped bytes is, in words.
pub(super) fn bound(objects: &MemoryObjects) -> Option<&'static str> {
    Some(match objects.bound()? {
        Bound::AtLeast => "at least",
        Bound::AtMost => AT_MOST,
        _ => "about",
    })
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let held = |pid, descriptor| AccountHolder { pid, thread: None, descriptor };
        let ring = AccountObject {
            kind: ObjectKind::Memfd,
            name: Name::from("/memfd:ring"),
            device: Some("00:01".to_owned()),
            inode: 1030,
            bytes: 24 << 20,
            at_most: false,
            mapped: 8 << 20,
            unmapped: 16 << 20,
            holders: vec![held(812, None), held(812, Some(3))],
            held: 2,
            of_several: false,
            shared: None,
            creator: None,
            creator_runs: None,
            freed_by: FREES_KEPT_MEMORY.to_owned(),
            may_be_of_another_group: false,
        };
        let pool = AccountObject {
            kind: ObjectKind::Tmpfs,
            name: Name::from("/dev/shm/a pool of buffers"),
            inode: 7,
            bytes: 3 << 30,
            mapped: 0,
            unmapped: 3 << 30,
            holders: (812..818).map(|pid| held(pid, Some(pid - 800))).collect(),
            held: 6,
            of_several: true,
            freed_by: FREES_NAMED_FILE.to_owned(),
            may_be_of_another_group: false,
            ..ring.clone()
        };
        let unnamed = AccountObject {
            kind: ObjectKind::SharedAnonymous,
            name: Name::from("/dev/zero"),
            inode: 9,
            ..ring.clone()
        };
        let of_thread = AccountObject {
            kind: ObjectKind::Secret,
            name: Name::from("/secretmem"),
            at_most: true,
            holders: vec![AccountHolder { pid: 812, thread: Some(815), descriptor: Some(9) }],
            held: 1,
            ..ring.clone()
        };
        let segment = AccountObject {
            kind: ObjectKind::SystemV,
            name: Name::from("/SYSV00000000"),
            device: None,
            inode: 0,
            holders: vec![held(812, None)],
            held: 1,
            freed_by: FREES_SEGMENT.to_owned(),
            may_be_of_another_group: false,
            ..ring.clone()
        };
        let buffers = AccountObject {
            kind: ObjectKind::Graphics,
            name: Name::from("i915 0000:00:02.0 system0"),
            device: None,
            inode: 31,
            bytes: 30 << 20,
            mapped: 0,
            unmapped: 30 << 20,
            holders: vec![held(812, Some(7))],
            held: 1,
            shared: Some(12 << 20),
            freed_by: FREES_BUFFERS.to_owned(),
            may_be_of_another_group: false,
            ..ring.clone()
        };
        let lone = AccountObject {
            mapped: 0,
            unmapped: 24 << 20,
            inode: 5,
            holders: Vec::new(),
            held: 0,
            creator: Some(811),
            creator_runs: Some(false),
            freed_by: "ipcrm -m 5".to_owned(),
            may_be_of_another_group: false,
            ..segment.clone()
        };
        let deleted = AccountObject {
            kind: ObjectKind::DeletedFile,
            name: Name::from("/var/log/access.log"),
            device: Some("08:01".to_owned()),
            bytes: 16 << 20,
            mapped: 0,
            holders: vec![held(812, Some(5))],
            held: 1,
            freed_by: FREES_DELETED_FILE.to_owned(),
            may_be_of_another_group: false,
            ..ring.clone()
        };
        vec![
            Box::new(ring),
            Box::new(pool),
            Box::new(unnamed),
            Box::new(of_thread),
            Box::new(segment),
            Box::new(AccountObject { creator: None, creator_runs: None, ..lone.clone() }),
            Box::new(of_any_group(lone.clone())),
            Box::new(lone),
            Box::new(deleted),
            Box::new(buffers),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::account::{MemoryFilesystems, ObjectIdentity};
    use crate::kernel::Device;

    #[test]
    fn a_sum_of_what_was_found_has_the_reason_for_what_was_not() {
        let object = MemoryObject {
            kind: ObjectKind::Tmpfs,
            identity: ObjectIdentity::File(Device { major: 0, minor: 40 }, 7),
            name: Name::from("/tmp/f"),
            has_path: true,
            is_removed: None,
            shared: None,
            creator: None,
            creator_runs: None,
            bytes: 1 << 20,
            is_at_most: false,
            mapped: 0,
            holders: Vec::new(),
            held: 0,
        };
        let objects = |all: Vec<MemoryObject>, unknown: Option<Reason>| {
            let filesystems = MemoryFilesystems::default();
            Ok(MemoryObjects { all, unknown, unknown_files: None, unattached: Ok(Vec::new()), filesystems })
        };
        let reason = Reason::NotApplicable("files of a mount are left out");
        let found = objects(vec![object.clone()], Some(reason.clone()));
        assert_eq!(why(&found).of("unmapped"), Some(&reason));
        assert_eq!(found.as_ref().ok().and_then(why_more), Some(&reason));
        // The sum itself has the reason.
        assert!(why(&objects(Vec::new(), Some(reason))).is_empty());
        assert!(why(&objects(vec![object], None)).is_empty());
    }
}
