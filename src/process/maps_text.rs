//! The text of `maps`, and the regions in it. A read returns at most a page of the text. Long text is read by another
//! thread while this one decodes.
//!
//! Ambiguous names are looked up: a file name may end in the kernel's mark for deleted files, or contain `\012`, which
//! is also the escape of a newline.

use super::core_notes;
use crate::access::{Error, Result};
use crate::budget::Budget;
use crate::kernel::maps::{self, RegionDecoder};
use crate::kernel::{Name, Region, VirtualAddress, text};
use crate::own::memory;
use crate::source::{Answer, File, Probe, Query, Source};
use rustix::io::Errno;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

/// Bytes that are decoded together, and that are read before another thread starts. Decoding them lasts some 0.2 ms,
/// starting a thread 0.05 ms.
const BLOCK: usize = 64 << 10;
/// The length of short text, of some hundred regions. Reading it is as fast as querying the regions that map files.
#[cfg(feature = "symbols")]
const SHORT: usize = 32 << 10;
/// The length of long text, of 60,000 regions and more: it is read only while there is memory for it and its regions.
const MUCH: u64 = 6 << 20;
/// The memory of the text and its regions, as a multiple of the length of the text, with vectors that double.
const AS_REGIONS: u64 = 6;
/// The most blocks that may wait to be decoded.
const AHEAD: usize = 4;

/// The text of `/proc/PID/maps`, to be compared with a later one, which is twice as fast as decoding the regions again.
/// Empty if there is no text.
#[derive(Default)]
pub struct MapsText(Vec<u8>);

impl MapsText {
    /// Wraps the text that was read.
    pub fn new(text: Vec<u8>) -> Self {
        MapsText(text)
    }

    /// Returns the text.
    #[cfg(feature = "cli")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Compares `later`, the text after `so_far` equal bytes. Returns how many more bytes are equal, 0 at the end of
    /// both; `None` if they differ.
    pub fn same_from(&self, so_far: usize, later: &[u8]) -> Option<usize> {
        let is_same = match later {
            [] => self.is_known() && so_far == self.0.len(),
            later => self.0.get(so_far..)?.starts_with(later),
        };
        is_same.then_some(later.len())
    }

    /// Returns whether there is a text.
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the start of the first region whose line begins at `offset` or later.
    pub fn region_at(&self, offset: usize) -> Option<VirtualAddress> {
        let before = self.0.get(offset.checked_sub(1)?..)?;
        let line = before.get(memchr::memchr(b'\n', before)? + 1..)?;
        maps::start_of_line(line)
    }
}

/// Reads all regions and their text. Each line costs one step.
pub(super) fn read(source: &dyn Source, budget: &mut Budget) -> Result<(Vec<Region>, Vec<u8>)> {
    if let Some(regions) = core_notes::regions(source, budget)? {
        return Ok((regions, Vec::new()));
    }
    let mut read = RegionReader::default();
    let first = block(source, 0, BLOCK)?;
    read.add(&first, budget)?;
    if !is_last(&first) {
        let behind = || Blocks::behind(source, first.len() as u64);
        std::thread::scope(|scope| -> Result<()> {
            let (sender, blocks) = sync_channel(AHEAD);
            let ahead = move || behind().try_for_each(|next| sender.send(next));
            let mut add = |next: Result<Vec<u8>>| read.add(&next?, budget);
            match Builder::new().spawn_scoped(scope, ahead) {
                Ok(_) => blocks.into_iter().try_for_each(&mut add),
                // This user may have no more threads, so this one reads as well.
                Err(_) => behind().try_for_each(&mut add),
            }
        })?;
    }
    let (mut regions, text) = read.finish(budget)?;
    settle(source, &mut regions, budget)?;
    Ok((regions, text))
}

/// Reads all regions, if their text is short; `None` if it is not.
#[cfg(feature = "symbols")]
pub(super) fn read_short(source: &dyn Source, budget: &mut Budget) -> Result<Option<Vec<Region>>> {
    if let Some(regions) = core_notes::regions(source, budget)? {
        return Ok(Some(regions));
    }
    let text = block(source, 0, SHORT)?;
    if text.len() >= SHORT {
        return Ok(None);
    }
    let mut read = RegionReader::default();
    read.add(&text, budget)?;
    let (mut regions, _) = read.finish(budget)?;
    settle(source, &mut regions, budget)?;
    Ok(Some(regions))
}

/// Reads a file in blocks, to its end or the first error.
struct Blocks<'a> {
    source: &'a dyn Source,
    so_far: u64,
    is_at_end: bool,
}

impl<'a> Blocks<'a> {
    fn behind(source: &'a dyn Source, so_far: u64) -> Self {
        Blocks { source, so_far, is_at_end: false }
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let next = block(self.source, self.so_far, BLOCK);
        self.so_far += next.as_ref().map_or(0, |next| next.len() as u64);
        self.is_at_end = next.as_ref().map_or(true, |next| is_last(next));
        Some(next)
    }
}

/// Reads the next bytes after `so_far`: at least `wanted`, unless the file ends.
fn block(source: &dyn Source, so_far: u64, wanted: usize) -> Result<Vec<u8>> {
    const PAGE: usize = 4 << 10;
    if so_far >= MUCH {
        let room = memory::check(so_far.saturating_mul(AS_REGIONS));
        room.map_err(|_| Error::io("reading all regions", Errno::NOMEM))?;
    }
    let mut bytes = Vec::with_capacity(wanted + PAGE);
    while bytes.len() < wanted {
        let at = so_far + bytes.len() as u64;
        if source.maps(at, &mut bytes)? == 0 {
            break;
        }
    }
    Ok(bytes)
}

fn is_last(block: &[u8]) -> bool {
    block.len() < BLOCK
}

/// Decodes the blocks that were read.
#[derive(Default)]
struct RegionReader {
    text: Vec<u8>,
    /// Bytes of the text that are decoded: whole lines.
    decoded: usize,
    regions: RegionDecoder,
}

impl RegionReader {
    fn add(&mut self, block: &[u8], budget: &mut Budget) -> Result<()> {
        self.text.extend_from_slice(block);
        let end = self.text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        self.decode(end, budget)
    }

    fn decode(&mut self, end: usize, budget: &mut Budget) -> Result<()> {
        let lines = self.text.get(self.decoded..end).unwrap_or_default();
        self.decoded = self.decoded.max(end);
        // Decoding a block lasts a fraction of a millisecond, so that the budget is checked only before it.
        budget.look()?;
        // `memchr` would first query the features of the processor, as for `text::lines`.
        budget.spend(lines.iter().filter(|&&byte| byte == b'\n').count() as u64)?;
        Ok(self.regions.read(lines)?)
    }

    fn finish(mut self, budget: &mut Budget) -> Result<(Vec<Region>, Vec<u8>)> {
        self.decode(self.text.len(), budget)?;
        Ok((self.regions.regions, self.text))
    }
}

/// Corrects the names of `regions`, which were decoded from the text of `maps`. Names that are not ambiguous cost
/// nothing.
pub(super) fn settle(source: &dyn Source, regions: &mut [Region], budget: &mut Budget) -> Result<()> {
    // The regions of a file are mostly adjacent.
    let mut last = None;
    for region in regions.iter_mut().filter(|region| is_path(region)) {
        let has_newline = region.name.as_bytes().contains(&b'\n');
        if !has_newline && !region.deleted {
            continue;
        }
        let read = (region.device, region.inode, name_and_mark(region));
        match &last {
            Some((known, settled)) if *known == read => {
                (region.name, region.deleted) = Clone::clone(settled);
                continue;
            }
            _ => {}
        }
        // The lookup may need several system calls.
        budget.look()?;
        if has_newline && let Some(later) = find_raw_name(source, region) {
            (region.name, region.deleted) = later;
        }
        settle_mark(source, region);
        last = Some((read, name_and_mark(region)));
    }
    Ok(())
}

/// Corrects the name of a region that was read without escapes.
pub(super) fn settle_unescaped(source: &dyn Source, region: &mut Region) {
    if is_path(region) {
        settle_mark(source, region);
    }
}

fn is_path(region: &Region) -> bool {
    region.name.as_bytes().starts_with(b"/")
}

fn name_and_mark(region: &Region) -> (Name, bool) {
    (region.name.clone(), region.deleted)
}

/// Returns the name by PROCMAP_QUERY (Linux 6.11) or by the link in `map_files`, which needs rights. Neither escapes
/// newlines. `None` if neither is available, or another file is mapped there now.
fn find_raw_name(source: &dyn Source, region: &Region) -> Option<(Name, bool)> {
    let name = match source.fetch(Query::At(region.range.start())) {
        Ok(Answer::Found(mapping)) => mapping.name,
        _ => source.fetch(File::MappedFile(region.range)).ok()?,
    };
    let is_it = maps::name(&text::unescape_newline(&name)) == name_and_mark(region);
    is_it.then(|| maps::name(&name))
}

/// Makes the apparent mark for deleted files a part of the name, if the mapped file has that name.
fn settle_mark(source: &dyn Source, region: &mut Region) {
    if !region.deleted {
        return;
    }
    let whole = [region.name.as_bytes(), maps::DELETED].concat();
    let is_named = source.fetch(Probe::IsNamed(region, &whole));
    if is_named.is_ok_and(|words| words == [1]) {
        (region.name, region.deleted) = (Name::new(whole), false);
    }
}
