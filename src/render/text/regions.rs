//! The table of `regions`.

use super::cells::{amount, reason, region as name, unknown};
use super::tables::{END, PERMISSIONS, SIZE, START, Table};
use crate::render::columns::{Cell, Column};
use crate::render::theme::Role;
use crate::report::RegionReport;

const NAME: Column = Column::name("name", 16, Role::Name);

static REGIONS: Table<RegionReport> = Table::of(&[
    START.cell(|_, region| Cell::new(&region.start)),
    END.rank(4).cell(|_, region| Cell::new(&region.end)),
    PERMISSIONS.cell(|_, region| Cell::new(region.perms.letters())),
    SIZE.cell(|_, region| Cell::size(region.size)),
    part("present", 0).cell(|_, region| bytes(region, region.present, "present")),
    part("pss", 0).cell(|_, region| bytes(region, region.pss, "pss")),
    part("swapped", 1).cell(|_, region| bytes(region, region.swapped, "swapped")),
    part("shared", 2).cell(|_, region| bytes(region, region.shared, "shared")),
    part("private", 5).cell(|_, region| bytes(region, region.private, "private")),
    part("huge", 3).cell(|_, region| bytes(region, region.huge, "huge")),
    NAME.cell(|style, region| name(style, &region.name, region.deleted)),
]);

const fn part(title: &'static str, rank: u8) -> Column {
    Column::number(title, 8, Role::Size).rank(rank)
}

/// The table of a region: with the share of each page, where that was asked for.
pub fn table(region: &RegionReport) -> Table<RegionReport> {
    let has_share = region.pss.is_some() || region.why.of("pss").is_some();
    REGIONS.without((!has_share).then_some("pss"))
}

/// The bytes of a part of the region. Without a reason, what is missing is `?`: a present page has it.
fn bytes(region: &RegionReport, part: Option<u64>, field: &str) -> Cell<'static> {
    match (part, region.why.of(field)) {
        (Some(bytes), _) => amount(bytes),
        (None, Some(why)) => reason(why),
        (None, None) => unknown(),
    }
}

/// The headings of its columns.
#[cfg(test)]
pub(crate) fn headings() -> Vec<&'static str> {
    REGIONS.columns().iter().map(|column| column.title).collect()
}
