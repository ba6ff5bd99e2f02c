//! The proof of the layout: each field is compared with the files of `/proc` about the same frames, or with experiments
//! on pages of pmdb.

use super::ground::{Ground, OwnFile};
use super::layout::Member;
use super::pages::{FolioNumbers, PageRecords, unproved};
use super::record::{FrameOwner, FrameRecord, PageOfFile, RecordParts};
use crate::access::Result;
use crate::kernel::{PageFlags, WordFile};
use std::collections::BTreeMap;

/// The results of comparisons.
#[derive(Default)]
struct ProofTally {
    /// The values that agreed, each with the number of agreements.
    agreements: BTreeMap<u64, u32>,
    has_differed: bool,
}

impl ProofTally {
    fn add(&mut self, compared: Option<(u64, u64)>) {
        match compared {
            Some((ours, theirs)) if ours == theirs => *self.agreements.entry(ours).or_default() += 1,
            Some(_) => self.has_differed = true,
            None => {}
        }
    }

    /// Returns whether all comparisons agreed, in at least `values` different values.
    fn proves(&self, values: usize) -> bool {
        !self.has_differed && self.agreements.len() >= values
    }
}

/// How often a comparison is repeated after a difference, because the page may change.
const TRIES: u32 = 4;

/// The number of places in memory that are examined, and of frames in each.
const PLACES: u64 = 256;
const FRAMES: usize = 128;
/// The map count from which a page of a file counts as mapped by several processes. No process maps one so often.
const SHARED: u64 = 3;
/// The most frames with the same flags and count that are compared.
const ALIKE: u32 = 6;

/// Finds which parts are proved.
pub(super) fn prove(pages: &PageRecords, ground: &dyn Ground) -> Result<RecordParts> {
    let mut proof = Proof {
        pages,
        ground,
        flags: ProofTally::default(),
        tails: ProofTally::default(),
        orders: ProofTally::default(),
        maps: ProofTally::default(),
        large: ProofTally::default(),
        is_shared: false,
        anonymous: ProofTally::default(),
    };
    let frames = proof.frames();
    for &frame in &frames {
        proof.compare(frame, SHARED);
    }
    let mut files = ProofTally::default();
    ground.own_files(&mut |own| {
        proof.compare(own.frame, SHARED);
        files.add(proof.compare_file(&own));
    });
    ground.huge_page(&mut |frame, by_two| proof.compare(frame, if by_two { 2 } else { SHARED }));
    // If huge pages are switched off, only slab caches may have large folios.
    if !proof.orders.proves(1) {
        for frame in frames {
            if proof.kpageflags(frame).is_some_and(is_large) {
                proof.orders.add(proof.compare_order(frame));
            }
        }
    }
    let is_folio_proved = proof.flags.proves(4) && proof.tails.proves(2) && proof.orders.proves(1);
    if !is_folio_proved {
        return Err(unproved("its flags of frames are not those of /proc/kpageflags"));
    }
    let mut proved = RecordParts::FOLIO;
    proved.set(RecordParts::REFERENCES, references(pages, ground));
    proved.set(RecordParts::MAPPINGS, proof.maps.proves(2) && !proof.large.has_differed);
    // Besides the count of all mappings, the kernel keeps those of single processes (Linux 6.15). The numbers are equal
    // unless several processes map the folio.
    let is_of_all = proof.is_shared || pages.layout.at(Member::AllMaps).is_none();
    proved.set(RecordParts::LARGE_MAPPINGS, proof.maps.proves(2) && proof.large.proves(1) && is_of_all);
    proved.set(RecordParts::OWNER, proof.anonymous.proves(2) && files.proves(2));
    Ok(proved)
}

struct Proof<'a> {
    pages: &'a PageRecords,
    ground: &'a dyn Ground,
    flags: ProofTally,
    /// Whether a page is a tail of a folio.
    tails: ProofTally,
    /// The order of folios.
    orders: ProofTally,
    /// The number of mappings of a page.
    maps: ProofTally,
    /// The number of mappings of a large folio.
    large: ProofTally,
    /// Whether several processes mapped one of these folios.
    is_shared: bool,
    anonymous: ProofTally,
}

impl Proof<'_> {
    /// Returns frames of all kinds in memory.
    fn frames(&self) -> Vec<u64> {
        let mut alike: BTreeMap<(u64, u64), u32> = BTreeMap::new();
        let mut frames = self.ground.own_frames();
        for first in self.pages.places(PLACES) {
            let (mut flags, mut counts) = ([0; FRAMES], [0; FRAMES]);
            let read = self.ground.words(WordFile::FrameFlags, first, &mut flags);
            if read.and_then(|()| self.ground.words(WordFile::FrameCounts, first, &mut counts)).is_none() {
                continue;
            }
            for (frame, kind) in (first..).zip(flags.into_iter().zip(counts)) {
                let seen = alike.entry(kind).or_default();
                *seen += 1;
                if *seen <= ALIKE {
                    frames.push(frame);
                }
            }
        }
        frames
    }

    fn word(&self, file: WordFile, frame: u64) -> Option<u64> {
        let mut word = [0];
        self.ground.words(file, frame, &mut word)?;
        Some(word[0])
    }

    fn kpageflags(&self, frame: u64) -> Option<PageFlags> {
        self.word(WordFile::FrameFlags, frame).map(PageFlags::from_bits_retain)
    }

    /// Compares the results of `ours` and `theirs`, and repeats it if they differ. `None` if a result changes all the
    /// time.
    fn compare_until_stable(
        &self,
        ours: &dyn Fn() -> Option<u64>,
        theirs: &dyn Fn() -> Option<u64>,
    ) -> Option<(u64, u64)> {
        let mut compared = None;
        for _ in 0..TRIES {
            let (before, own, after) = (theirs()?, ours(), theirs()?);
            if before != after {
                continue;
            }
            // A value that cannot be read counts as different.
            compared = Some((own.unwrap_or(!before), before));
            if own == Some(before) {
                break;
            }
        }
        compared
    }

    fn compare(&mut self, frame: u64, shared_from: u64) {
        let pages = self.pages;
        let Some(twin) = self.kpageflags(frame) else {
            return;
        };
        let is_shown = pages.with(frame, |_| Some(())).is_some();
        if !is_shown || twin.contains(PageFlags::HWPOISON) || twin.contains(PageFlags::OFFLINE) {
            return;
        }
        let head = || pages.with(frame, |page| page.head(frame));
        let is_tail = || Some(u64::from(head()? != frame));
        let was_tail = || Some(u64::from(self.kpageflags(frame)?.contains(PageFlags::COMPOUND_TAIL)));
        let tail = self.compare_until_stable(&is_tail, &was_tail);
        let known = pages.layout.known_flags() - PageFlags::SLAB;
        let word = || Some((pages.with(frame, |page| page.flags())? & known).bits());
        let twin_word = || Some((self.kpageflags(frame)? & known).bits());
        let flags = if tail == Some((0, 0)) { self.compare_until_stable(&word, &twin_word) } else { None };
        let count = |frame| self.word(WordFile::FrameCounts, frame);
        let is_slab = twin.contains(PageFlags::SLAB);
        let is_large = is_large(twin);
        let maps = || pages.with(frame, |page| page.maps());
        let maps = if is_slab || is_large { None } else { self.compare_until_stable(&maps, &|| count(frame)) };
        let anonymous = || {
            let mapping = pages.folio(head()?)?.mapping;
            Some(mapping & 1)
        };
        let twin_anonymous = || Some(u64::from(self.kpageflags(frame)?.contains(PageFlags::ANON)));
        let has_owner = twin.intersects(PageFlags::LRU | PageFlags::UPTODATE) && !is_slab;
        let anonymous = if has_owner { self.compare_until_stable(&anonymous, &twin_anonymous) } else { None };
        let (mut order, mut large) = (None, None);
        if is_large && !is_slab {
            order = self.compare_order(frame);
            let folio = || pages.folio(head()?);
            let is_small_enough = folio().is_some_and(|folio| folio.order <= 11);
            if is_small_enough && !twin.contains(PageFlags::HUGE) {
                let ours = || pages.mappings(&folio()?);
                let theirs = || Some(self.counts_of(&folio()?)?.mappings);
                large = self.compare_until_stable(&ours, &theirs).filter(|&(_, theirs)| theirs > 0);
                if !self.is_shared && large.is_some_and(|(ours, theirs)| ours == theirs) {
                    let counts = folio().and_then(|folio| self.counts_of(&folio));
                    self.is_shared = counts.is_some_and(|counts| counts.most >= shared_from);
                }
            }
        }
        self.tails.add(tail);
        self.flags.add(flags);
        self.maps.add(maps);
        self.anonymous.add(anonymous);
        self.orders.add(order);
        self.large.add(large);
    }

    /// Compares the order of a frame's large folio.
    fn compare_order(&self, frame: u64) -> Option<(u64, u64)> {
        let head = || self.pages.with(frame, |page| page.head(frame));
        let ours = || Some(u64::from(self.pages.folio(head()?)?.order));
        self.compare_until_stable(&ours, &|| self.order_of(head()?))
    }

    /// Compares the record of a page of pmdb's file.
    fn compare_file(&self, own: &OwnFile) -> Option<(u64, u64)> {
        let mut record = [FrameRecord::default()];
        self.pages.read(own.frame, RecordParts::OWNER, &mut record);
        let expected = PageOfFile { device: own.device, inode: own.inode, index: own.index };
        let is_right = record[0].owner == Some(FrameOwner::File(expected));
        Some((if is_right { own.index } else { !own.index }, own.index))
    }

    /// Returns the order of the folio that begins with `head`, by its tails.
    fn order_of(&self, head: u64) -> Option<u64> {
        let is_tail = |frame| Some(self.kpageflags(frame)?.contains(PageFlags::COMPOUND_TAIL));
        for order in 1..32 {
            // Memory may end with the folio.
            if !is_tail(head + (1 << order)).unwrap_or(false) {
                let is_whole = is_tail(head + (1 << order) - 1)?;
                return is_whole.then_some(order);
            }
        }
        None
    }

    /// Returns the mappings of a folio, by the map counts of its pages, each of which includes the mappings of the
    /// whole.
    fn counts_of(&self, folio: &FolioNumbers) -> Option<FolioCounts> {
        let mut counts = vec![0; 1 << folio.order];
        self.ground.words(WordFile::FrameCounts, folio.head, &mut counts)?;
        let sum: u64 = counts.iter().sum();
        let of_all = folio.entire.saturating_mul(counts.len() as u64 - 1);
        // If the counts are too small they are wrong.
        let mappings = sum.checked_sub(of_all).unwrap_or(u64::MAX);
        Some(FolioCounts { mappings, most: counts.into_iter().max().unwrap_or_default() })
    }
}

/// Returns whether a frame with these flags is part of a large folio.
fn is_large(flags: PageFlags) -> bool {
    flags.intersects(PageFlags::COMPOUND_HEAD | PageFlags::COMPOUND_TAIL)
}

/// The number of mappings of a folio.
struct FolioCounts {
    /// All mappings.
    mappings: u64,
    /// The mappings of its most mapped page.
    most: u64,
}

/// Returns whether the references rise and fall with those that pmdb adds.
fn references(pages: &PageRecords, ground: &dyn Ground) -> bool {
    let read = |frame| pages.folio(pages.with(frame, |page| page.head(frame))?).map(|folio| folio.references);
    rises_and_falls(&|taken, look| ground.take_references(taken, look), &read) == Some(true)
}

/// Returns whether the pins of large folios rise and fall with those of pmdb; `None` if pmdb could not pin a huge page.
pub(super) fn pins(pages: &PageRecords, ground: &dyn Ground) -> Option<bool> {
    let read = |frame| pages.folio(pages.with(frame, |page| page.head(frame))?)?.pins;
    rises_and_falls(&|taken, look| ground.pin_huge_page(taken, look), &read)
}

/// An experiment: does something as often as the number says, and calls its argument with the frame before, in between
/// and afterwards.
type Experiment<'a> = dyn Fn(u32, &mut dyn FnMut(u64)) + 'a;

/// Returns whether a number follows an experiment, for several repetitions; `None` if the kernel refused it. The kernel
/// may add a reference at the same time, so each may be repeated.
fn rises_and_falls(experiment: &Experiment<'_>, read: &dyn Fn(u64) -> Option<u32>) -> Option<bool> {
    for taken in [3, 5] {
        let mut follows = false;
        for _ in 0..TRIES {
            let mut seen: Vec<Option<u32>> = Vec::new();
            experiment(taken, &mut |frame| seen.push(read(frame)));
            follows = match seen.as_slice() {
                [Some(before), Some(between), Some(after)] => {
                    between.checked_sub(*before) == Some(taken) && before == after
                }
                [_, _, _] => false,
                _ => return None,
            };
            if follows {
                break;
            }
        }
        if !follows {
            return Some(false);
        }
    }
    Some(true)
}
