//! Pages of page pools in the records of a made kernel.

use super::super::layout::Member;
use super::super::pool::{PoolLayout, PoolMember};
use super::kernel::{Kernel, RECORDS, X86_64};
use super::tapes;
use crate::kernel::PageFlags;

const FRAME: u64 = 0x2000;
/// The offset of the signature.
const MAGIC: u64 = 8;
/// Numbers of x86-64 and of 64-bit PowerPC.
const DELTA: u64 = 0xdead << 48;
const POWERPC: u64 = 0x5dea_dbee_f000_0000;
/// Frames of removed pages have this distance, which is that of the places in which pmdb looks for them.
const STEP: u64 = 256;
const ENOUGH: u64 = 8;

/// A kernel with so many pages that were removed from lists.
fn with_removed(delta: u64, pages: u64) -> Kernel {
    let mut kernel = Kernel::new(X86_64);
    (1..=pages).for_each(|page| remove(&mut kernel, page * STEP, delta));
    kernel
}

fn remove(kernel: &mut Kernel, frame: u64, delta: u64) {
    let record = RECORDS + frame * 64 + MAGIC;
    kernel.words.extend([(record, delta.wrapping_add(0x100)), (record + 8, delta.wrapping_add(0x122))]);
}

fn belongs_at(kernel: &Kernel, magic: u64, frame: u64) -> Option<bool> {
    let (pages, layout) = (kernel.pages(), PoolLayout([magic]));
    layout.has(&pages, layout.delta(&pages)?, frame)
}

/// Whether a page with this word belongs to a pool of that kernel.
fn belongs(mut kernel: Kernel, word: u64) -> Option<bool> {
    kernel.words.extend([(RECORDS + FRAME * 64, 1 << 40), (RECORDS + FRAME * 64 + MAGIC, word)]);
    belongs_at(&kernel, MAGIC, FRAME)
}

#[test]
fn a_page_with_the_signature_belongs_to_a_pool() {
    let kernel = with_removed(DELTA, ENOUGH);
    for index in [0, 1, 2, 0xffff, u64::from(u32::MAX)] {
        for own in [0, 2] {
            assert_eq!(belongs(kernel.clone(), DELTA | 0x40 | index << 7 | own), Some(true), "{index} {own}");
        }
    }
    for other in [0x100, 0x122, 0x400, 0, 0x44, 0x60, 0x40 | 1 << 39, 0x40 | 1 << 62] {
        assert_eq!(belongs(kernel.clone(), DELTA ^ other), Some(false), "{other:#x}");
    }
    for word in [0, 0x40, 0xffff_8880_0000_0040, POWERPC + 0x40] {
        assert_eq!(belongs(kernel.clone(), word), Some(false), "{word:#x}");
    }
    let kernel = with_removed(POWERPC, ENOUGH);
    assert_eq!(belongs(kernel.clone(), POWERPC | 0x40 | 1 << 27), Some(true));
    assert_eq!(belongs(kernel, POWERPC ^ (0x40 | 1 << 28)), Some(false));
}

#[test]
fn pages_that_were_allocated_again_prove_it_too() {
    let mut kernel = with_removed(DELTA, ENOUGH);
    for page in (1..=ENOUGH).step_by(2) {
        kernel.words.insert(RECORDS + page * STEP * 64 + MAGIC, 0);
    }
    assert_eq!(belongs(kernel, DELTA + 0x40), Some(true));
}

#[test]
fn all_pages_of_a_folio_belong_to_its_pool() {
    let layout = tapes().next().expect("a tape").1.layout();
    let at = |frame: u64, member| RECORDS + frame * 64 + layout.at(member).expect("a member");
    let head = layout.flags.iter().find(|(flag, _)| *flag == PageFlags::COMPOUND_HEAD).expect("a flag").1;
    let mut kernel = with_removed(DELTA, ENOUGH);
    kernel.words.extend([(RECORDS + FRAME * 64 + MAGIC, DELTA + 0x40), (at(FRAME, Member::Flags), 1 << head)]);
    kernel.put(at(FRAME, Member::Pages), &4u32.to_le_bytes());
    for tail in FRAME + 1..FRAME + 5 {
        kernel.words.insert(at(tail, Member::Compound), RECORDS + FRAME * 64 + 1);
    }
    let found = [0, 1, 3, 4, 5].map(|after| belongs_at(&kernel, MAGIC, FRAME + after));
    assert_eq!(found, [Some(true), Some(true), Some(true), None, None]);
}

#[test]
fn a_signature_that_is_not_proved_is_refused() {
    let signature = DELTA + 0x40;
    assert_eq!(belongs(with_removed(DELTA, ENOUGH - 1), signature), None);
    // The pages disagree.
    let mut kernel = with_removed(DELTA, ENOUGH);
    remove(&mut kernel, STEP * 100, POWERPC);
    assert_eq!(belongs(kernel, signature), None);
    // Such a signature may be an address.
    for delta in [0, 0x1000, 0x7fff << 32, 0xffff_8880 << 32, 0u64.wrapping_sub(0x1000), DELTA + 0x800] {
        assert_eq!(belongs(with_removed(delta, ENOUGH), delta.wrapping_add(0x40)), None, "{delta:#x}");
    }
    // One of the two words contradicts the other.
    for (after, word) in [(0, DELTA), (0, DELTA + 0x101), (0, 0x100), (8, DELTA), (8, DELTA + 0x123), (8, 0x122)] {
        let mut kernel = with_removed(DELTA, ENOUGH);
        kernel.words.insert(RECORDS + STEP * 64 + MAGIC + after, word);
        assert_eq!(belongs(kernel, signature), None, "{word:#x} after {after}");
    }
}

#[test]
fn a_wrong_offset_of_the_signature_is_refused() {
    let mut kernel = with_removed(DELTA, ENOUGH);
    kernel.words.extend((8..64).step_by(8).map(|at| (RECORDS + FRAME * 64 + at, DELTA + 0x40)));
    assert_eq!(PoolMember::ALL.len(), 1);
    assert_eq!(belongs_at(&kernel, MAGIC, FRAME), Some(true));
    for wrong in [0, 4, 12, 16, 24, 32, 40, 48, 56, 60, 64, 72, 1 << 40, u64::MAX] {
        assert_eq!(belongs_at(&kernel, wrong, FRAME), None, "{wrong}");
    }
}
