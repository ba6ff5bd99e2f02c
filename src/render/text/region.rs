//! A region: in full for `region`, a row for `regions`.

use crate::kernel::{AddressRange, Permissions, State, VirtualAddress};
use crate::render::bar::{BAR, bar_of_largest};
use crate::render::columns::{
    Cell, Column, END, PERMISSIONS, SIZE, START, Table, amount, reason, region as name, unknown,
};
use crate::render::text::block::{self, REMARK, after_file, word_for_missing};
use crate::render::text::footnotes::Footnotes;
use crate::render::text::lines::Lines;
use crate::render::text::{Text, pages, words};
use crate::render::theme::Role;
use crate::render::units::{count, exact_size, percent, size};
use crate::render::{Record, RowRange};
use crate::report::{HowMapped, LargeFolios, Reason, RegionPlace, RegionReport, VmFlag};

impl Record for RegionReport {
    fn write(&self, text: &mut Text) {
        if is_row(self) {
            text.row_with_reasons(&table(self), self, &self.why, self.present.is_some());
        } else {
            text.block(write, self);
        }
    }

    /// `region ADDRESS` keeps the address itself.
    fn address(&self) -> Option<VirtualAddress> {
        self.at.is_none().then_some(self.start)
    }

    fn range(&self) -> Option<RowRange> {
        AddressRange::new(self.start, self.end).map(RowRange::Addresses)
    }
}

/// Whether it is a row of `regions` rather than a block of its own.
fn is_row(region: &RegionReport) -> bool {
    region.at.is_none() && region.states.is_empty() && !is_full(region)
}

fn is_full(region: &RegionReport) -> bool {
    region.vm_flags.is_some() || region.smaps.is_some()
}

/// Writes the block.
pub fn write(lines: &mut Lines, region: &RegionReport) {
    head(lines, region);
    if let Some(place) = &region.at {
        at(lines, place);
    }
    contents(lines, region);
    let advice = region.advice.as_deref().unwrap_or_default();
    write_advice(lines, advice);
    if let Some(flags) = &region.vm_flags {
        let line = lines.field("VmFlags");
        for flag in flags.iter().filter(|flag| !advice.contains(flag)) {
            line.word(", ", Role::Flag, &flag.code).plain(" ").prose(Role::Plain, flag.meaning);
        }
    }
    if let Some(key) = region.protection_key {
        let line = lines.field("key");
        line.plain(key).indent_at(REMARK).prose(
            Role::Dim,
            match key {
                0 => "default protection key",
                _ => "protection key: each thread has its own rights for it, in a register",
            },
        );
    }
    if let Some(fields) = &region.smaps {
        smaps(lines, fields);
    }
    Footnotes::of(&region.why, |_, _| true).write(lines);
    if region.changed {
        pages::note_change(lines, "the region");
    }
}

/// What madvise has set.
pub fn write_advice(lines: &mut Lines, advice: &[VmFlag]) {
    if !advice.is_empty() {
        let line = lines.field("advice");
        advice.iter().for_each(|flag| _ = line.word(", ", Role::Plain, flag.meaning));
    }
}

fn head(lines: &mut Lines, region: &RegionReport) {
    let line = lines.field("region");
    line.push(Role::Address, format!("{}..{}", region.start, region.end)).plain("  ");
    let (role, name) = block::mapped_name(&region.name, region.object.is_some());
    line.push(role, name);
    if let Some(file) = &region.after {
        line.plain(" ").push(role, after_file(file));
    }
    if region.deleted {
        line.push(Role::Warn, block::DELETED);
    }
    let line = lines.field("size");
    line.plain(exact_size(region.size));
    let line = lines.field("access");
    line.plain(region.perms).indent_at(REMARK).plain(access(region.perms));
    if region.inode != Some(0) {
        let line = lines.field("file");
        line.plain(format!("offset {:#x}", region.offset));
        if let (Some(inode), Some(device)) = (region.inode, region.device) {
            line.indent_at(REMARK).plain(format!("inode {inode} of device {device}"));
        }
    }
}

/// `rw-p` in words.
fn access(perms: Permissions) -> String {
    if perms.is_unknown {
        return "not in this core".to_owned();
    }
    let rights = [(perms.read, "read"), (perms.write, "write"), (perms.execute, "execute")];
    let given = rights.into_iter().filter(|(given, _)| *given);
    let mut words: Vec<&str> = given.map(|(_, word)| word).collect();
    if words.is_empty() {
        words.push("none");
    }
    let sharing = match perms.sharing() {
        Some(true) => "shared: writes are seen by all who map it",
        Some(false) => "private: copied on write",
        None => "shared or private: not in this core",
    };
    format!("{}; {sharing}", words.join(", "))
}

fn at(lines: &mut Lines, place: &RegionPlace) {
    let line = lines.field("address");
    line.push(Role::Address, place.address)
        .indent_at(REMARK)
        .plain(format!("{:#x} into the region", place.region_offset));
    if let Some(offset) = place.file_offset {
        line.word(", ", Role::Plain, format!("{offset:#x} into the file"));
    }
    if let Some(section) = &place.section {
        line.word(", ", Role::Plain, format!("section {section}"));
    }
    if let Some(symbol) = &place.symbol {
        let line = lines.field("symbol");
        block::symbol(line, symbol);
        line.plain(" in ").push(Role::Name, &symbol.module);
    }
}

fn contents(lines: &mut Lines, region: &RegionReport) {
    let parts = [
        ("present", region.present, region.size),
        ("private", region.private, region.present.unwrap_or(0)),
        ("shared", region.shared, region.present.unwrap_or(0)),
        ("zero", region.zero.filter(|&bytes| bytes > 0), region.present.unwrap_or(0)),
        ("swapped", region.swapped, region.size),
        ("huge", region.huge, region.present.unwrap_or(0)),
        ("pss", region.pss, 0),
    ];
    for (name, bytes, whole) in parts {
        let label = if name == "private" { words::field(name) } else { name };
        match (bytes, region.why.of(name)) {
            (Some(bytes), _) => {
                let line = lines.field(label);
                line.pad_to(REMARK - 10 - size(bytes).len().min(8)).plain(match name {
                    "shared" | "private" | "pss" => words::map_count(size(bytes), region.map_count_average),
                    _ => size(bytes),
                });
                line.indent_at(REMARK).plain(part_words(name));
                if let Some(share) = percent(bytes, whole).filter(|_| bytes > 0) {
                    line.plain(format!(", {share} of {}", whole_words(name)));
                }
                if let Some(with_pmdb) = region.shared_with_pmdb.filter(|_| name == "shared") {
                    line.push(Role::Dim, format!("; {} only by pmdb itself", size(with_pmdb)));
                }
            }
            (None, None | Some(Reason::NotApplicable(_))) => {}
            (None, why) => {
                let (role, text) = word_for_missing(why);
                lines.field(label).push(role, text);
            }
        }
    }
    for (index, large) in region.folios.iter().flatten().enumerate() {
        folios(lines, if index == 0 { "folios" } else { "" }, large);
    }
    if !region.states.is_empty() {
        let line = lines.field("pages");
        for (state, pages) in region.states.iter().filter(|(_, pages)| **pages > 0) {
            let role = words::state_role(*state);
            let text = format!("{} {}", count(*pages), State::word(*state));
            line.word(", ", role, text);
        }
    }
}

/// Large folios of one size that are mapped in one way.
fn folios(lines: &mut Lines, label: &str, large: &LargeFolios) {
    let line = lines.field(label);
    line.pad_to(REMARK - 10 - size(large.bytes).len().min(8)).plain(size(large.bytes)).indent_at(REMARK);
    let how = match large.mapped {
        HowMapped::Pmd => "mapped by one entry each",
        HowMapped::Pte => "mapped page by page",
        HowMapped::Hugetlb => "of the hugetlb pool",
        HowMapped::Unknown => "mapped",
    };
    line.prose(Role::Dim, format!("in folios of {}, {how}", size(large.size)));
    match large.partly {
        0 => {}
        partly if partly == large.bytes => {
            _ = line.word("; ", Role::Note, "only a part of each is mapped in this region")
        }
        partly => {
            let text = format!("{} in folios of which only a part is mapped in this region", size(partly));
            line.word("; ", Role::Note, text);
        }
    }
    if large.unaligned > 0 {
        line.word("; ", Role::Note, format!("{} not aligned", size(large.unaligned)));
    }
}

fn part_words(name: &str) -> &'static str {
    match name {
        "present" => "in memory and mapped",
        "private" => "mapped once",
        "shared" => "also mapped elsewhere",
        "swapped" => "in swap",
        "zero" => "the shared zero page",
        "huge" => "mapped by whole huge pages",
        _ => "proportional share: each page divided by the number of its mappings",
    }
}

fn whole_words(name: &str) -> &'static str {
    match name {
        "present" | "swapped" => "the region",
        _ => "the resident part",
    }
}

/// The kernel's own fields, two in a line if there is room; fields that are 0 share a line.
fn smaps(lines: &mut Lines, fields: &[(String, u64)]) {
    let line = lines.field("smaps");
    for (name, bytes) in fields.iter().filter(|(_, bytes)| *bytes > 0) {
        line.word(", ", Role::Plain, format!("{name} {}", size(*bytes)));
    }
    let zero: Vec<&str> = fields.iter().filter(|(_, bytes)| *bytes == 0).map(|(name, _)| name.as_str()).collect();
    if zero.is_empty() {
        return;
    }
    let line = lines.field("");
    line.prose(Role::Dim, format!("0: {}", zero.join(", ")));
}

const NAME: Column = Column::name("name", 16, Role::Name);

static REGIONS: Table<RegionReport> = Table::of(&[
    START.cell(|_, region| Cell::new(&region.start)),
    END.rank(4).cell(|_, region| Cell::new(&region.end)),
    PERMISSIONS.cell(|_, region| Cell::new(region.perms.letters())),
    SIZE.cell(|_, region| Cell::size(region.size)),
    part("present", 0).cell(|_, region| bytes(region, region.present, "present")),
    BAR.cell(|_, region| bar_of_largest(region.present.unwrap_or_default())),
    part("pss", 0).cell(|_, region| bytes(region, region.pss, "pss")),
    part("swapped", 1).cell(|_, region| bytes(region, region.swapped, "swapped")),
    part("shared", 2).cell(|_, region| bytes(region, region.shared, "shared")),
    Column::number("exclusive", 9, Role::Size).rank(5).cell(|_, region| bytes(region, region.private, "private")),
    part("huge", 3).cell(|_, region| bytes(region, region.huge, "huge")),
    NAME.cell(|style, region| match &region.after {
        Some(file) => {
            let (role, name) = block::region_name(&region.name);
            let cell = Cell::of(role, format!("{name} {}", after_file(file)));
            if style.width.is_some() { cell.or(after_file(file)) } else { cell }
        }
        None => name(style, &region.name, region.deleted, region.object, region.object.is_some()),
    }),
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
    REGIONS.columns().iter().map(|column| column.title).filter(|title| !title.is_empty()).collect()
}
