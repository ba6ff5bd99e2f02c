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
use crate::report::record::record;

record! {
    /// A row of `account … from FILE`.
    pub struct AccountChange as "account-change" {
        /// The key: `class`, `region`, `mapping`, …
        by: String,
        /// Its value for this row.
        key: String,
        /// Bytes in the capture.
        before: u64,
        /// Bytes now.
        bytes: u64,
    }

    /// The sums of `account … from FILE`.
    pub struct AccountComparison as "account-comparison" {
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
    }
}

impl Record for AccountChange {
    fn write(&self, text: &mut Text) {
        let key: MakeCell<AccountChange> = |_, row| Cell::new(&row.key);
        text.row(&CHANGES.by([Some(Column::word(group_heading(&self.by), 26, Role::Plain).cell(key)), None]), self);
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
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let row = |by, key: &str, before, bytes| AccountChange { by, key: key.to_owned(), before, bytes };
        vec![
            Box::new(row("class".to_owned(), "anonymous, exclusive", 5 << 30, 6 << 30)),
            Box::new(row("mapping".to_owned(), "/usr/lib/libc.so.6", 1_400_000, 0)),
            Box::new(row("mapping".to_owned(), "[stack]", 132 << 10, 132 << 10)),
            Box::new(AccountComparison {
                pid: 812,
                process: Name::from("redis-server"),
                bytes: 6 << 30,
                file: "before.capture".to_owned(),
                other: 640,
                other_process: Name::from("redis-server"),
                time: Some(1_700_000_000),
                before: 5 << 30,
            }),
        ]
    }
}
