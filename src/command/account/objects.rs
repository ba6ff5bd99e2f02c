//! The rows of `account` for objects in memory that have more pages than mappings show.

use super::records::bytes;
use crate::inspect::account::{MemoryObject, MemoryObjects};
use crate::kernel::Name;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{ObjectKind, Stopped};

/// Rows of objects that are shown; the sum has all.
const MOST_ROWS: usize = 10;
/// Holders of an object that are named.
const MOST_HOLDERS: usize = 3;

record! {
    /// An object in memory that has more pages than the counted processes have in their page tables.
    pub struct AccountObject as "account-object" {
        /// Its kind.
        kind: ObjectKind,
        /// Its path, or the name that the kernel gives it.
        name: Name,
        /// The device of its file system.
        device: String,
        /// Its inode there: two objects may have one name.
        inode: u64,
        /// Bytes of its pages, in memory or in swap.
        bytes: u64,
        /// Whether it may have fewer: its size is known, but not what of it was filled.
        at_most: bool,
        /// Of these, bytes that are in a page table of the counted processes.
        mapped: u64,
        /// Bytes that are in none.
        unmapped: u64,
        /// Who holds it.
        holders: Vec<AccountHolder>,
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
    Column::word("object", 24, Role::Name).cell(|_, row| Cell::new(format!("{}, inode {}", row.name, row.inode))),
    Column::word("held by; freed by", 24, Role::Plain)
        .cell(|_, row| Cell::new(format!("{}{}; {}", at_most(row), held_by(row), row.freed_by))),
]);

fn at_most(row: &AccountObject) -> &'static str {
    if row.at_most { "at most; " } else { "" }
}

/// `fd 3 of 812, mapped by 813 and 2 more`
fn held_by(row: &AccountObject) -> String {
    let first = row.holders.first().map(|holder| holder.pid);
    let is_of_one = row.holders.iter().all(|holder| Some(holder.pid) == first);
    let words = |holder: &AccountHolder| {
        let what = holder.descriptor.map_or_else(|| "mapped".to_owned(), |number| format!("fd {number}"));
        match holder.thread {
            Some(thread) => format!("{what} of thread {thread}"),
            None if is_of_one => what,
            None if holder.descriptor.is_none() => format!("{what} by {}", holder.pid),
            None => format!("{what} of {}", holder.pid),
        }
    };
    let named: Vec<String> = row.holders.iter().take(MOST_HOLDERS).map(words).collect();
    match row.holders.len().saturating_sub(MOST_HOLDERS) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The rows of the largest objects, and a note of the others.
pub(super) fn emit(objects: &MemoryObjects, sink: &mut dyn Sink) -> Result<(), Stopped> {
    objects.all.iter().take(MOST_ROWS).try_for_each(|object| sink.emit(&row(object)))?;
    let rest = objects.all.get(MOST_ROWS..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(());
    }
    let bytes = rest.iter().map(MemoryObject::unmapped).sum();
    sink.note(format!("{} with {} unmapped", counted(rest.len() as u64, "more object"), size(bytes)))
}

fn row(object: &MemoryObject) -> AccountObject {
    let (device, inode) = object.identity;
    let holders = object.holders.iter();
    AccountObject {
        kind: object.kind,
        name: object.name.clone(),
        device: device.to_string(),
        inode,
        bytes: object.bytes,
        at_most: object.is_at_most,
        mapped: object.mapped,
        unmapped: object.unmapped(),
        holders: holders
            .map(|one| AccountHolder { pid: one.process, thread: one.thread, descriptor: one.descriptor })
            .collect(),
        freed_by: match object.kind {
            ObjectKind::SystemV => "ipcrm, and the end of all mappings",
            _ if object.is_without_path => "the end of all holders",
            _ => "rm, and the end of all holders",
        },
    }
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
            device: "00:01".to_owned(),
            inode: 1030,
            bytes: 24 << 20,
            at_most: false,
            mapped: 8 << 20,
            unmapped: 16 << 20,
            holders: vec![held(812, Some(3)), held(812, None)],
            freed_by: "the end of all holders",
        };
        let pool = AccountObject {
            kind: ObjectKind::Tmpfs,
            name: Name::from("/dev/shm/a pool of buffers"),
            inode: 7,
            bytes: 3 << 30,
            mapped: 0,
            unmapped: 3 << 30,
            holders: (812..818).map(|pid| held(pid, Some(pid - 800))).collect(),
            freed_by: "rm, and the end of all holders",
            ..ring.clone()
        };
        let of_thread = AccountObject {
            kind: ObjectKind::Secret,
            name: Name::from("/secretmem"),
            at_most: true,
            holders: vec![AccountHolder { pid: 812, thread: Some(815), descriptor: Some(9) }],
            ..ring.clone()
        };
        vec![Box::new(ring), Box::new(pool), Box::new(of_thread)]
    }
}
