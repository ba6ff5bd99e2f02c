//! A process with its reads written down.

use super::log::{Log, Read, counted, dump, told};
use super::stretches::Stretches;
use crate::kernel::smaps::Smaps;
use crate::kernel::{AddressRange, PageMapEntry, Region, Registers, VirtualAddress};
use crate::target::{
    Categories, Finding, Identity, Layout, Liveness, MapsText, Populated, Process, ProcessStatus,
    Result,
};
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

/// Bytes of memory that are kept of one read.
const BYTES: usize = 16;

/// Entries that are read again by a single command: those of a GiB.
const MOST_ENTRIES: u64 = 1 << 18;

/// The kernel's call that finds what is populated.
const SCAN: &str = "PAGEMAP_SCAN";

/// A [`Process`] around another.
pub(super) struct RecordedProcess<P> {
    pid: u32,
    process: P,
    log: Arc<Log>,
}

impl<P: Deref<Target = dyn Process>> RecordedProcess<P> {
    pub(super) fn new(process: P, log: Arc<Log>) -> Self {
        RecordedProcess {
            pid: process.identity().pid,
            process,
            log,
        }
    }

    fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }

    /// That all regions were read.
    fn all_regions(&self, found: String) {
        let file = self.file("maps");
        self.log.add_file("maps", file, "all regions", found);
    }

    /// That the page map was asked what is in `range`, by the kernel's scan where that may be used.
    fn asked(&self, range: AddressRange, what: String, found: String) {
        let page = self.process.layout().page;
        let range = range.to_pages(page);
        let (offset, length) = (page.index(range.start()) * 8, range.pages(page) * 8);
        let file = self.file("pagemap");
        // The scan tells more than entries do, and no command makes it.
        let is_scan = self.way() == SCAN;
        let repeat = (!is_scan && range.pages(page) <= MOST_ENTRIES).then(|| {
            // Lines of zeros are left out.
            dump(&file, offset, length).replacen("xxd", "xxd -a", 1)
        });
        self.log.add(
            "scan",
            Read {
                file,
                offset: Some(offset),
                length: Some(length),
                what,
                found: Some(found),
                repeat,
                ..Read::default()
            },
        );
    }

    /// By which of its two ways the page map is asked about ranges: only the scan knows these categories.
    fn way(&self) -> &'static str {
        match self
            .process
            .categories()
            .intersects(Categories::ZERO | Categories::HUGE)
        {
            true => SCAN,
            false => "entries",
        }
    }
}

// What is not handed on would be answered by a default, and otherwise than without the record.
#[deny(clippy::missing_trait_methods)]
impl<P> Process for RecordedProcess<P>
where
    P: Deref<Target = dyn Process> + Send + Sync,
{
    fn identity(&self) -> Identity {
        self.process.identity()
    }

    fn layout(&self) -> Layout {
        self.process.layout()
    }

    fn liveness(&self) -> Result<Liveness> {
        self.process.liveness()
    }

    fn regions(&self) -> Result<Vec<Region>> {
        let answer = self.process.regions();
        self.all_regions(told(&answer, |regions| {
            counted(regions.len(), "region", "regions")
        }));
        answer
    }

    fn regions_and_text(&self) -> Result<(Vec<Region>, MapsText)> {
        let answer = self.process.regions_and_text();
        self.all_regions(told(&answer, |(regions, _)| {
            counted(regions.len(), "region", "regions")
        }));
        answer
    }

    fn still_says(&self, before: &MapsText, so_far: usize) -> Result<Option<usize>> {
        let answer = self.process.still_says(before, so_far);
        // Of a text that is read piece by piece, only how that ends.
        match answer {
            Ok(Some(0)) => self.all_regions("the same as before".to_owned()),
            Ok(None) if before.is_known() => self.all_regions("others than before".to_owned()),
            _ => {}
        }
        answer
    }

    fn region_at(&self, address: VirtualAddress) -> Result<Option<Region>> {
        let answer = self.process.region_at(address);
        let file = self.file("maps");
        let way = match self.process.has_queried() {
            true => "PROCMAP_QUERY",
            false => "the text",
        };
        let repeat = match &answer {
            Ok(Some(region)) => {
                let (start, end) = (region.range.start().get(), region.range.end().get());
                format!("grep ^{start:08x}-{end:08x} {file}")
            }
            _ => format!("cat {file}"),
        };
        self.log.add(
            "maps",
            Read {
                file,
                what: format!("the region at {address} ({way})"),
                found: Some(told(&answer, |region| {
                    region.as_ref().map_or_else(|| "none".to_owned(), line)
                })),
                repeat: Some(repeat),
                ..Read::default()
            },
        );
        answer
    }

    fn has_queried(&self) -> bool {
        self.process.has_queried()
    }

    fn nearest_below(
        &self,
        address: VirtualAddress,
        gap: u64,
        most: usize,
    ) -> Result<Option<Vec<Region>>> {
        let answer = self.process.nearest_below(address, gap, most);
        // Where the kernel cannot be asked so, nothing was read.
        if !matches!(answer, Ok(None)) {
            let found = told(&answer, |regions| {
                let found = regions.as_ref().map_or(0, Vec::len);
                counted(found, "region", "regions")
            });
            let what = format!("the regions not far below {address} (PROCMAP_QUERY)");
            self.log.add_file("maps", self.file("maps"), &what, found);
        }
        answer
    }

    fn entries(&self, first: u64, into: &mut [PageMapEntry]) -> Result<usize> {
        let answer = self.process.entries(first, into);
        let words = answer.as_ref().map(|&read| {
            let read = into.get(..read).unwrap_or_default();
            read.iter().map(|entry| entry.raw()).collect()
        });
        let page = self.process.layout().page;
        let at = VirtualAddress::new(first.saturating_mul(page.bytes()));
        let what = match into.len() {
            1 => format!("page-map entry of {at}"),
            _ => format!("page-map entries from {at} on"),
        };
        self.log.add_words(
            "pagemap",
            self.file("pagemap"),
            first,
            into.len(),
            words,
            what,
        );
        answer
    }

    fn categories(&self) -> Categories {
        self.process.categories()
    }

    fn set_scan(&self, on: bool) {
        self.process.set_scan(on);
    }

    fn populated(
        &self,
        range: AddressRange,
        wanted: Categories,
        visit: &mut dyn FnMut(Populated) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut stretches = Stretches::default();
        let answer = self.process.populated(range, wanted, &mut |stretch| {
            stretches.add(stretch);
            visit(stretch)
        });
        let found = told(&answer, |()| stretches.told());
        let what = format!("{}: what is populated in {range}", self.way());
        self.asked(range, what, found);
        answer
    }

    fn is_pfn_mapped(&self, region: &Region) -> Result<Option<bool>> {
        let answer = self.process.is_pfn_mapped(region);
        let found = told(&answer, |answer| {
            match answer {
                Some(true) => "passed over",
                Some(false) => "not passed over",
                None => "not known",
            }
            .to_owned()
        });
        let start = region.range.start();
        let end = start.checked_add(self.process.layout().page.bytes());
        if let Some(first) = end.and_then(|end| AddressRange::new(start, end)) {
            let what = format!(
                "{}: whether the region at {start} is passed over",
                self.way()
            );
            self.asked(first, what, found);
        }
        answer
    }

    fn memory(&self, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let answer = self.process.memory(address, into);
        let file = self.file("mem");
        let length = into.len();
        self.log.add(
            "mem",
            Read {
                repeat: Some(format!("xxd -s {address} -l {length} {file}")),
                file,
                offset: Some(address.get()),
                length: Some(length as u64),
                what: format!("memory at {address}"),
                found: Some(told(&answer, |&read| {
                    bytes(into.get(..read).unwrap_or_default())
                })),
                ..Read::default()
            },
        );
        answer
    }

    fn frames_hidden(&self) -> bool {
        self.process.frames_hidden()
    }

    fn status(&self) -> Result<ProcessStatus> {
        let answer = self.process.status();
        let found = told(&answer, |status| status.state.clone());
        self.log
            .add_file("status", self.file("status"), "the process", found);
        answer
    }

    fn findings(&self) -> Vec<Finding> {
        self.process.findings()
    }

    fn smaps(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Vec<Smaps>> {
        let answer = self.process.smaps(go_on);
        let found = told(&answer, |smaps| counted(smaps.len(), "region", "regions"));
        let what = "what the kernel counts in each region";
        self.log.add_file("smaps", self.file("smaps"), what, found);
        answer
    }

    fn stack_limit(&self) -> Result<Option<u64>> {
        let answer = self.process.stack_limit();
        let found = told(&answer, |limit| {
            limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} bytes"))
        });
        let what = "how large the stack may grow";
        self.log
            .add_file("limits", self.file("limits"), what, found);
        answer
    }

    fn registers(&self) -> Result<Registers> {
        let answer = self.process.registers();
        let found = told(&answer, |registers| {
            let Registers {
                program_counter,
                stack_pointer,
            } = registers;
            format!("program counter {program_counter}, stack pointer {stack_pointer}")
        });
        self.log
            .add_file("syscall", self.file("syscall"), "registers", found);
        answer
    }
}

/// A region as its line of `maps` begins, and its name with nothing raw in it.
fn line(region: &Region) -> String {
    let (start, end) = (region.range.start().get(), region.range.end().get());
    let line = format!(
        "{start:08x}-{end:08x} {} {:08x} {} {} {}",
        region.permissions, region.offset, region.device, region.inode, region.name
    );
    line.trim_end().to_owned()
}

/// The first bytes, in hexadecimal.
fn bytes(read: &[u8]) -> String {
    let first: String = read
        .iter()
        .take(BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match read.len() {
        0 => "nothing".to_owned(),
        length if length > BYTES => format!("{first}\u{2026}"),
        _ => first,
    }
}
