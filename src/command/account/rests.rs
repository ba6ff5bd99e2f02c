//! The rows of `account` for the rest of large anonymous folios that are mapped in part.

use super::records::bytes;
use crate::command::rows::name_of_region;
use crate::inspect::AddressSpace;
use crate::inspect::account::{FamilySums, FolioRest};
use crate::kernel::Name;
use crate::render::columns::{Cell, Column, Table};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{Fact, Stopped};

/// Rows that are shown; the sum has all.
const MOST_ROWS: usize = 5;

record! {
    /// Large anonymous folios, such as huge pages, of which one part is mapped and the other nowhere.
    pub struct AccountRest as "account-rest" {
        /// The region that maps the other part, for one process.
        [optional] region: Option<String>,
        /// The process that maps it, for several; of those that share it the first.
        [optional] pid: Option<u32>,
        /// Its name.
        [optional] process: Option<Name>,
        /// The number of folios.
        folios: u64,
        /// All their bytes.
        of: u64,
        /// Of these, bytes that nobody maps.
        unmapped: u64,
        /// The action that frees the memory.
        freed_by: &'static str,
    }
}

impl Record for AccountRest {
    fn write(&self, text: &mut Text) {
        text.row(&RESTS, self);
    }
}

static RESTS: Table<AccountRest> = Table::of(&[
    bytes("unmapped").cell(|_, row| Cell::size(row.unmapped)),
    bytes("of").cell(|_, row| Cell::size(row.of)),
    Column::word("large folios, mapped in part", 28, Role::Plain)
        .cell(|_, row| Cell::new(format!("{}, freed by {}", folios(row), row.freed_by))),
]);

/// `16 folios in 0x7f1234400000 rw-p (anonymous)`
fn folios(row: &AccountRest) -> String {
    let owner = match (&row.region, &row.process) {
        (Some(region), _) => format!(" in {region}"),
        (None, Some(process)) => format!(" of {process} ({})", row.pid.unwrap_or_default()),
        (None, None) => String::new(),
    };
    format!("{}{owner}", counted(row.folios, "folio"))
}

/// The kernel splits such folios when memory is short (`deferred_split_scan` in mm/huge_memory.c).
const FREES_RESTS: &str = "munmap of the rest or memory pressure";

fn row(rest: &FolioRest) -> AccountRest {
    AccountRest {
        region: None,
        pid: None,
        process: None,
        folios: rest.folios,
        of: rest.of,
        unmapped: rest.bytes,
        freed_by: FREES_RESTS,
    }
}

/// The rows of one process, by region.
pub(super) fn emit(rests: &Fact<Vec<FolioRest>>, space: &AddressSpace, sink: &mut dyn Sink) -> Result<(), Stopped> {
    emit_rows(rests, sink, |rest| {
        let region = space.viewed_regions().get(rest.owner).map(|viewed| name_of_region(&viewed.region));
        AccountRest { region, ..row(rest) }
    })
}

/// The rows of several processes.
pub(super) fn emit_of_family(sums: &FamilySums, sink: &mut dyn Sink) -> Result<(), Stopped> {
    emit_rows(&sums.rests, sink, |rest| {
        let identity = sums.members.get(rest.owner).map(|member| &member.identity);
        let (pid, process) = identity.map(|identity| (identity.pid, identity.name.clone())).unzip();
        AccountRest { pid, process, ..row(rest) }
    })
}

fn emit_rows(
    rests: &Fact<Vec<FolioRest>>,
    sink: &mut dyn Sink,
    row: impl Fn(&FolioRest) -> AccountRest,
) -> Result<(), Stopped> {
    let Ok(rests) = rests else {
        return Ok(());
    };
    let (shown, others) = rests.split_at(rests.len().min(MOST_ROWS));
    shown.iter().try_for_each(|rest| sink.emit(&row(rest)))?;
    match others {
        [] => Ok(()),
        others => {
            let bytes = others.iter().map(|rest| rest.bytes).sum();
            let folios = others.iter().map(|rest| rest.folios).sum();
            sink.note(format!("{} with {} unmapped", counted(folios, "more folio"), size(bytes)))
        }
    }
}

/// All bytes that nobody maps.
pub(super) fn sum(rests: &Fact<Vec<FolioRest>>) -> Fact<u64> {
    rests.as_ref().map(|rests| rests.iter().map(|rest| rest.bytes).sum()).map_err(Clone::clone)
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        let region = AccountRest {
            region: Some("0x7f1234400000 rw-p (anonymous)".to_owned()),
            pid: None,
            process: None,
            folios: 16,
            of: 32 << 20,
            unmapped: 16 << 20,
            freed_by: FREES_RESTS,
        };
        let process = AccountRest {
            region: None,
            pid: Some(812),
            process: Some("redis-server".into()),
            folios: 1,
            of: 2 << 20,
            unmapped: 1 << 20,
            ..region.clone()
        };
        vec![Box::new(region), Box::new(process)]
    }
}
