//! The rows of `account` for filesystems in memory, whose files nobody may have open.

use super::records::bytes;
use crate::inspect::account::{MemoryFilesystem, MemoryFilesystems};
use crate::kernel::Name;
use crate::render::columns::{Cell, Column, ColumnOf, Table};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::render::{Record, Sink};
use crate::report::Stopped;
use crate::report::record::record;

record! {
    /// A filesystem in memory (tmpfs, hugetlbfs) with files that no counted process maps or has open. Its pages belong
    /// to the group that wrote them first.
    pub struct AccountFilesystem as "account-filesystem" {
        /// Its type: `tmpfs`, `devtmpfs`, `hugetlbfs` …
        filesystem: String,
        /// The directory where it is mounted; in another mount namespace by way of `/proc/PID/root`.
        path: Name,
        /// Its device number.
        device: String,
        /// Whether only a part of its directories is mounted there, so that the other files have no path.
        is_part: bool,
        /// Bytes of all files, in memory or in swap; for hugetlbfs also those of reserved pages.
        used: u64,
        /// Of these, bytes of files that the counted processes map or have open; absent if no process is counted.
        [optional] held: Option<u64>,
        /// The most that the other files have of the memory in question.
        at_most: u64,
        /// All bytes in question: what is charged to the group and in no page table, or all shared memory of the
        /// machine.
        of: u64,
        /// The action that frees the memory.
        freed_by: &'static str,
    }
}

impl Record for AccountFilesystem {
    fn write(&self, text: &mut Text) {
        let table = if self.held.is_some() { &NOT_HELD } else { &ALL };
        text.row_of_share(table, self, None, (self.at_most, self.of));
    }
}

const UP_TO: ColumnOf<AccountFilesystem> = bytes("at most").cell(|_, row| Cell::size(row.at_most));
const USED: ColumnOf<AccountFilesystem> = bytes("in use").cell(|_, row| Cell::size(row.used));
const KIND: ColumnOf<AccountFilesystem> = Column::word("type", 9, Role::Plain).cell(|_, row| Cell::new(kind(row)));
const FREED: ColumnOf<AccountFilesystem> =
    Column::word("freed by", 8, Role::Plain).cell(|_, row| Cell::new(row.freed_by));

/// The files that the counted processes do not hold.
static NOT_HELD: Table<AccountFilesystem> = Table::of(&[
    UP_TO,
    USED,
    Column::name("filesystem with files not open", 39, Role::Name).cell(|_, row| Cell::new(&row.path)),
    KIND,
    FREED,
]);

/// All files, where no process is counted.
static ALL: Table<AccountFilesystem> = Table::of(&[
    UP_TO,
    USED,
    Column::name("filesystem with files", 33, Role::Name).cell(|_, row| Cell::new(&row.path)),
    KIND,
    FREED,
]);

/// `tmpfs (a part)`
fn kind(row: &AccountFilesystem) -> String {
    let part = if row.is_part { " (a part)" } else { "" };
    let reserved = if row.filesystem == "hugetlbfs" { " (reserved too)" } else { "" };
    format!("{}{reserved}{part}", row.filesystem)
}

/// The filesystems of one kind, those with the most bytes first.
fn of_kind(filesystems: &MemoryFilesystems, is_hugetlb: bool) -> impl Iterator<Item = &MemoryFilesystem> {
    filesystems.all.iter().filter(move |one| one.is_hugetlb == is_hugetlb)
}

/// The bytes of all files of one kind that the counted processes do not hold.
pub(super) fn not_held(filesystems: &MemoryFilesystems, is_hugetlb: bool) -> u64 {
    of_kind(filesystems, is_hugetlb).map(MemoryFilesystem::not_held).fold(0, u64::saturating_add)
}

/// Emits a row for each filesystem that may have some of `of` bytes in files.
pub(super) fn emit(
    filesystems: &MemoryFilesystems,
    is_hugetlb: bool,
    of: u64,
    sink: &mut dyn Sink,
) -> Result<(), Stopped> {
    of_kind(filesystems, is_hugetlb).try_for_each(|one| sink.emit(&row(one, of)))
}

/// Emits a note of the filesystems of some kinds whose size is unknown. The rows say only how much each has at most:
/// they do not prove that nothing is elsewhere.
pub(super) fn note_others(filesystems: &MemoryFilesystems, kinds: &[bool], sink: &mut dyn Sink) -> Result<(), Stopped> {
    /// The most that are named.
    const MOST: usize = 4;
    let is_wanted = |is_hugetlb: &Option<bool>| is_hugetlb.is_none_or(|is_hugetlb| kinds.contains(&is_hugetlb));
    let unknown = filesystems.unknown.iter().filter(|(is_hugetlb, _)| is_wanted(is_hugetlb));
    let why: Vec<&str> = unknown.map(|(_, reason)| reason.cause()).collect();
    let (named, more) = why.split_at(why.len().min(MOST));
    let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
    match named {
        [] => Ok(()),
        named => sink.note(format!("files may be elsewhere too: {}{more}", named.join("; "))),
    }
}

fn row(one: &MemoryFilesystem, of: u64) -> AccountFilesystem {
    AccountFilesystem {
        filesystem: one.kind.clone(),
        path: one.path.clone(),
        device: one.device.to_string(),
        is_part: one.is_part,
        used: one.used,
        held: one.held,
        at_most: one.not_held().min(of),
        of,
        freed_by: "rm",
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let shm = AccountFilesystem {
            filesystem: "tmpfs".into(),
            path: Name::from("/dev/shm"),
            device: "00:18".to_owned(),
            is_part: false,
            used: 80 << 20,
            held: Some(60 << 20),
            at_most: 20 << 20,
            of: 80 << 20,
            freed_by: "rm",
        };
        let inner = AccountFilesystem {
            path: Name::from("/proc/812/root/run/a\nb"),
            is_part: true,
            used: 600 << 20,
            held: Some(0),
            at_most: 80 << 20,
            ..shm.clone()
        };
        let small = AccountFilesystem { path: Name::from("/run"), at_most: 4096, ..shm.clone() };
        let all = AccountFilesystem { held: None, at_most: 80 << 20, ..shm.clone() };
        let pool = AccountFilesystem {
            filesystem: "hugetlbfs".into(),
            path: Name::new([b"/".as_slice(), &[b'x'; 200]].concat()),
            ..shm.clone()
        };
        vec![Box::new(inner), Box::new(shm), Box::new(pool), Box::new(small), Box::new(all)]
    }
}
