//! The records of `account … from FILE`, and how they are written.

use super::records::bytes;
use crate::kernel::Name;
use crate::render::Record;
use crate::render::columns::{Cell, Column, MakeCell, Table, amount, change};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::text::words::group_heading;
use crate::render::theme::Role;
use crate::render::units::{difference, size};
use crate::report::Fact;
use crate::report::record::record;

record! {
    /// A row of `account … from FILE`.
    pub struct AccountChange as "account-change" {
        /// The key: `class`, `region`, `mapping`, …; `object` for what objects in memory have beside page tables.
        by: String,
        /// Its value for this row.
        key: String,
        /// Bytes in the capture.
        before: u64,
        /// Bytes now.
        bytes: u64,
    }

    /// The sums of `account … from FILE`.
    pub struct AccountComparison as "account-comparison" with why {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// All its bytes.
        bytes: u64,
        /// The capture, as it was typed.
        file: String,
        /// The process in it.
        other: u32,
        /// The name of that.
        other_process: Name,
        /// When the capture was begun, in seconds since 1970.
        time: Option<u64>,
        /// All bytes of the process in it.
        before: u64,
        /// Bytes of objects in memory that are in no page table of the process.
        unmapped: Fact<u64>,
        /// The same in the capture.
        unmapped_before: Fact<u64>,
        /// Bytes of large anonymous folios that nobody maps, while another part of the folio is mapped.
        folio_rests: Fact<u64>,
        /// The same in the capture.
        folio_rests_before: Fact<u64>,
    }
}

/// The key of objects in memory.
pub(super) const OBJECT: &str = "object";

impl Record for AccountChange {
    fn write(&self, text: &mut Text) {
        let key: MakeCell<AccountChange> = |_, row| Cell::new(&row.key);
        let heading = if self.by == OBJECT { "unmapped parts of objects" } else { group_heading(&self.by) };
        text.row(&CHANGES.by([Some(Column::word(heading, 26, Role::Plain).cell(key)), None]), self);
    }
}

impl Record for AccountComparison {
    fn write(&self, text: &mut Text) {
        text.line(comparison, self);
    }
}

/// `account … from FILE`
static CHANGES: Table<AccountChange> = Table::of(&[
    bytes("before").cell(|_, row| amount(row.before)),
    bytes("now").cell(|_, row| amount(row.bytes)),
    Column::number("change", 9, Role::Size).cell(|_, row| change(row.before, row.bytes)),
]);

fn comparison(lines: &mut Lines, sums: &AccountComparison) {
    let line = lines.line();
    line.indent(2).plain(format!("{} ({}): {}", sums.pid, sums.process, size(sums.bytes)));
    let same = if sums.bytes == sums.before { "the same".to_owned() } else { difference(sums.before, sums.bytes) };
    line.plain(format!(", {same} since ")).push(Role::Name, &sums.file);
    line.plain(format!(" of {} ({}): {}", sums.other, sums.other_process, size(sums.before)));
    let beside = [
        ("unmapped parts of objects", &sums.unmapped, &sums.unmapped_before),
        ("unmapped parts of large folios", &sums.folio_rests, &sums.folio_rests_before),
    ];
    let is_any = |one: &&(_, &Fact<u64>, &Fact<u64>)| [one.1, one.2].iter().any(|fact| matches!(fact, Ok(1..)));
    let amount = |fact: &Fact<u64>| fact.as_ref().map_or_else(|_| "unknown".to_owned(), |bytes| size(*bytes));
    let words = |&(what, now, before): &(_, _, _)| format!("{what} {} (before: {})", amount(now), amount(before));
    let beside: Vec<String> = beside.iter().filter(is_any).map(words).collect();
    if !beside.is_empty() {
        lines.line().indent(2).plain(format!("not in these sums: {}", beside.join(", ")));
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        let row = |by, key: &str, before, bytes| AccountChange { by, key: key.to_owned(), before, bytes };
        vec![
            Box::new(row("class".to_owned(), "anonymous, exclusive", 5 << 30, 6 << 30)),
            Box::new(row("mapping".to_owned(), "/usr/lib/libc.so.6", 1_400_000, 0)),
            Box::new(row("mapping".to_owned(), "[stack]", 132 << 10, 132 << 10)),
            Box::new(row(OBJECT.to_owned(), "/memfd:ring", 0, 16 << 20)),
            Box::new(AccountComparison {
                pid: 812,
                process: Name::from("redis-server"),
                bytes: 6 << 30,
                file: "before.capture".to_owned(),
                other: 640,
                other_process: Name::from("redis-server"),
                time: Some(1_700_000_000),
                before: 5 << 30,
                unmapped: Ok(16 << 20),
                unmapped_before: Ok(0),
                folio_rests: Ok(2 << 20),
                folio_rests_before: Err(Reason::FrameHidden),
            }),
        ]
    }
}
