//! Findings: which facts are available for a process and its machine, and why others are not.

use super::{core_notes, maps_text};
use crate::access::Result;
use crate::budget::Budget;
use crate::kernel::{AddressRange, Name, Region, VirtualAddress, WordFile, maps};
use crate::records::RecordParts;
use crate::source::{
    Feature, File, Finding, Place, Probe, Rights, Source, available, by_trying, unavailable, undetermined,
};

/// Returns the findings that differ between processes.
pub(super) fn of_process(source: &dyn Source, budget: &mut Budget) -> Result<Vec<Finding>> {
    let identity = source.identity();
    let who = if identity.name.is_empty() {
        format!("process {}", identity.pid)
    } else {
        format!("process {} ({})", identity.pid, identity.name)
    };
    let regions = maps_text::read(source, budget).map_or_else(|_| Vec::new(), |(regions, _)| regions);
    budget.check()?;
    Ok(vec![
        by_trying(
            Feature::PageMap,
            if source.origin().has_page_map() {
                Ok(())
            } else {
                source.words(WordFile::PageMap, 0, &mut [0]).map(drop)
            },
            &relation(source, &who),
        ),
        map_files(&regions, &who, |range| source.fetch(Probe::Follow(range))),
        by_trying(
            Feature::Memory,
            source.bytes(Place::Memory, VirtualAddress::default(), &mut []),
            &format!("the memory of {who} can be opened"),
        ),
    ])
}

/// The facts from files of a machine that decide its findings.
pub(super) struct MachineFacts {
    pub(super) kernel: (u32, u32),
    pub(super) exact_map_counts: Option<bool>,
    pub(super) iomem: Result<()>,
    pub(super) soft_dirty: Option<bool>,
    pub(super) configuration: Option<Name>,
    pub(super) records: Vec<Finding>,
}

/// Returns the findings about a machine, by its source's trials and by its files.
pub(super) fn of_machine(source: &dyn Source, facts: MachineFacts) -> Vec<Finding> {
    let Ok(Some(access)) = source.fetch(Rights) else {
        return Vec::new();
    };
    let mut findings = access.findings;
    let own_maps = source.fetch(File::OwnMaps);
    findings.extend(own_maps.ok().map(|text| {
        let regions = maps::parse(&text).unwrap_or_default();
        let follow = |range| source.fetch(Probe::FollowOwn(range));
        map_files(&regions, "pmdb itself", follow)
    }));
    findings.extend([
        exact_map_counts(facts.exact_map_counts, facts.kernel),
        by_trying(Feature::Iomem, facts.iomem, "/proc/iomem shows addresses"),
        soft_dirty(facts.soft_dirty),
        swap_types(facts.configuration.as_ref()),
    ]);
    findings.extend(facts.records);
    findings.sort_by_cached_key(|finding| finding.feature);
    findings
}

/// Returns the finding that the page map of a process is open, with the owner of the process.
fn relation(source: &dyn Source, who: &str) -> String {
    let read = |file| source.fetch(file).ok();
    let user = match (core_notes::status(source).ok(), source.word(Probe::User)) {
        (Some(status), Some(us)) if u64::from(status.user) != us => {
            format!(", which runs as user {}, pmdb as user {us}", status.user)
        }
        _ => String::new(),
    };
    let namespace = match read(File::UserNamespace).zip(read(File::OwnUserNamespace)) {
        Some((theirs, own)) if own != theirs => "; it is in another user namespace",
        _ => "",
    };
    format!("the page map of {who} is open{user}{namespace}")
}

/// Finds whether links in `map_files` can be followed, by a trial with one of these regions.
fn map_files(regions: &[Region], whose: &str, follow: impl FnOnce(AddressRange) -> Result<Vec<u64>>) -> Finding {
    let feature = Feature::MapFiles;
    let Some(region) = regions.iter().find(|region| region.inode != 0) else {
        return undetermined(feature, format!("no file is mapped by {whose}"), "");
    };
    match follow(region.range) {
        Ok(_) => available(feature, format!("a link of {whose} can be followed")),
        Err(error) => {
            let found = format!("a link of {whose} cannot be followed: {error}");
            unavailable(feature, found, error.remedy().unwrap_or_default())
        }
    }
}

/// Finds whether soft-dirty bits have a meaning, by the entry of a page of pmdb.
fn soft_dirty(known: Option<bool>) -> Finding {
    let feature = Feature::SoftDirty;
    let remedy = "a kernel built with CONFIG_MEM_SOFT_DIRTY, which not every architecture has";
    match known {
        Some(true) => available(feature, "a page that pmdb has just written to is soft-dirty (bit 55)"),
        Some(false) => unavailable(feature, "a page that pmdb has just written to is not soft-dirty (bit 55)", remedy),
        None => undetermined(feature, "the entry of a page of pmdb's own cannot be read", remedy),
    }
}

/// Finds whether map counts are of single pages.
fn exact_map_counts(exact: Option<bool>, kernel: (u32, u32)) -> Finding {
    let feature = Feature::ExactMapCounts;
    let remedy = "a kernel built with CONFIG_PAGE_MAPCOUNT";
    match exact {
        Some(true) if kernel < (6, 15) => available(feature, "before Linux 6.15 every kernel counts for each page"),
        Some(true) => available(feature, "the kernel was built with CONFIG_PAGE_MAPCOUNT"),
        Some(false) => unavailable(feature, "the kernel was built without CONFIG_PAGE_MAPCOUNT", remedy),
        None => undetermined(feature, NO_CONFIG, CONFIG),
    }
}

const NO_CONFIG: &str = "the configuration of this kernel cannot be read";
const CONFIG: &str = "a /proc/config.gz (CONFIG_IKCONFIG_PROC), or /boot/config-RELEASE";

/// Finds whether the numbering of swap types is known, by the file of the kernel's configuration.
fn swap_types(configuration: Option<&Name>) -> Finding {
    let feature = Feature::SwapTypes;
    match configuration {
        Some(place) => available(feature, format!("from the configuration of this kernel in {place}")),
        None => unavailable(feature, NO_CONFIG, CONFIG),
    }
}

/// Finds whether the kernel's records of frames can be read, and which parts were proved to be right.
pub(super) fn records(require: impl Fn(RecordParts) -> Result<()>) -> Vec<Finding> {
    let parts = [
        (
            Feature::References,
            RecordParts::REFERENCES,
            "the count follows the references that pmdb adds to its own page",
        ),
        (
            Feature::FolioMappings,
            RecordParts::LARGE_MAPPINGS,
            "the counts agree with /proc/kpagecount, on a huge page of pmdb's own too",
        ),
        (Feature::Owners, RecordParts::OWNER, "the records of pages of pmdb's own files have their inodes and indexes"),
        (Feature::FolioPins, RecordParts::PINS, "the count follows the pins that pmdb adds to its own huge page"),
    ];
    let opened = require(RecordParts::FOLIO);
    let is_open = opened.is_ok();
    let of_all = by_trying(
        Feature::KernelRecords,
        opened,
        "/proc/kcore has the records of frames (struct page), and their flags agree with /proc/kpageflags",
    );
    let of_parts = parts.into_iter().filter(|_| is_open);
    let of_parts = of_parts.map(|(feature, part, found)| by_trying(feature, require(part), found));
    std::iter::once(of_all).chain(of_parts).collect()
}

/// Finds whether the page tables of a process can be read.
pub(super) fn tables(required: Result<()>) -> Finding {
    by_trying(Feature::PageTables, required, "the entries of its page tables have the frames of its page map")
}
