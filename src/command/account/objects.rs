//! The rows of `account` for objects in memory that have more pages than mappings show.

use super::records::{FREES_KEPT_MEMORY, bytes};
use crate::inspect::account::{Bound, MemoryObject, MemoryObjects, UnknownFiles};
use crate::kernel::Name;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::text::block::DELETED;
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{ObjectKind, Stopped};

/// Why objects are not searched after Ctrl-C.
pub(super) const INTERRUPTED: &str = "the count was interrupted";
/// Rows of objects that are shown; the sum has all.
const MOST_ROWS: usize = 10;
/// Holders of an object that are named.
const MOST_HOLDERS: usize = 3;

record! {
    /// An object in memory that has more pages than the counted processes have in their page tables; with `full` also
    /// a deleted file that is open, and what of it is in the page cache.
    pub struct AccountObject as "account-object" {
        /// Its kind.
        kind: ObjectKind,
        /// Its path, or the name that the kernel gives it.
        name: Name,
        /// The device of its file system; `null` for a System V segment.
        device: Option<String>,
        /// Its inode there, or the number of the segment: two objects may have one name.
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
        /// The action that frees the memory.
        freed_by: &'static str,
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
    bytes("unmapped").cell(|_, row| Cell::size(row.unmapped)),
    bytes("of").cell(|_, row| Cell::size(row.bytes)),
    Column::word("object", 24, Role::Name).cell(|_, row| Cell::new(object(row))),
    Column::word("held by; freed by", 24, Role::Plain)
        .cell(|_, row| Cell::new(format!("{}; {}", held_by(row), row.freed_by))),
]);

fn object(row: &AccountObject) -> String {
    let at_most = if row.at_most { " (at most)" } else { "" };
    let deleted = if row.kind == ObjectKind::DeletedFile { DELETED } else { "" };
    format!("{}{deleted}, {} {}{at_most}", row.name, number_of(row.device.as_deref()), row.inode)
}

/// The word for the number of an object on this device.
pub(super) fn number_of(device: Option<&str>) -> &'static str {
    if device.is_some() { "inode" } else { "shmid" }
}

/// `fd 3 of 812, mapped by 813 and 2 more`
fn held_by(row: &AccountObject) -> String {
    let words = |holder: &AccountHolder| {
        let what = holder.descriptor.map_or_else(|| "mapped".to_owned(), |number| format!("fd {number}"));
        match holder.thread {
            Some(thread) => format!("{what} of thread {thread}"),
            None if !row.of_several => what,
            None if holder.descriptor.is_none() => format!("{what} by {}", holder.pid),
            None => format!("{what} of {}", holder.pid),
        }
    };
    let named: Vec<String> = row.holders.iter().take(MOST_HOLDERS).map(words).collect();
    match row.held.saturating_sub(named.len() as u64) {
        0 => named.join(", "),
        more => format!("{} and {} more", named.join(", "), count(more)),
    }
}

/// The rows of the largest objects, and a note of the others.
pub(super) fn emit(objects: &MemoryObjects, of_several: bool, sink: &mut dyn Sink) -> Result<(), Stopped> {
    objects.all.iter().take(MOST_ROWS).try_for_each(|object| sink.emit(&row(object, of_several)))?;
    let rest = objects.all.get(MOST_ROWS..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().map(MemoryObject::unmapped).sum();
        sink.note(format!("{} with {} unmapped", counted(rest.len() as u64, "more object"), size(bytes)))?;
    }
    if let UnknownFiles { files, reason: Some(reason), .. } = &objects.unknown_files {
        let files = counted(*files, "deleted file");
        sink.note(format!("the page cache of {files} is unknown: {}", reason.cause()))?;
    }
    Ok(())
}

/// What frees a file that a directory has.
const FREES_NAMED_FILE: &str = "rm, and the end of all mappings and descriptors";
/// What frees the page cache of a deleted file. Its room on the disk is free when nobody holds it.
const FREES_DELETED_FILE: &str = "reclaim, if clean, or the end of all mappings and descriptors";
/// What frees a System V segment. The kernel marks all of them as deleted in `maps`: `ipcs -m` shows which are.
const FREES_SEGMENT: &str = "ipcrm -m unless `ipcs -m` shows dest, and the last detach";

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
        freed_by: match object.has_path {
            _ if object.is_segment() => FREES_SEGMENT,
            _ if object.kind == ObjectKind::DeletedFile => FREES_DELETED_FILE,
            true => FREES_NAMED_FILE,
            false => FREES_KEPT_MEMORY,
        },
    }
}

/// What a sum of unmapped bytes is, in words.
pub(super) fn bound(objects: &MemoryObjects) -> Option<&'static str> {
    Some(match objects.bound()? {
        Bound::AtLeast => "at least",
        Bound::AtMost => "at most",
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
            freed_by: FREES_KEPT_MEMORY,
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
            freed_by: FREES_NAMED_FILE,
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
            freed_by: FREES_SEGMENT,
            ..ring.clone()
        };
        let deleted = AccountObject {
            kind: ObjectKind::DeletedFile,
            name: Name::from("/var/log/access.log"),
            device: Some("08:01".to_owned()),
            bytes: 16 << 20,
            mapped: 0,
            holders: vec![held(812, Some(5))],
            held: 1,
            freed_by: FREES_DELETED_FILE,
            ..ring.clone()
        };
        vec![Box::new(ring), Box::new(pool), Box::new(of_thread), Box::new(segment), Box::new(deleted)]
    }
}
