//! What a page costs in CPU time: the slope between two sizes, so that what a command costs at all does not count. Of
//! fresh memory, whose frames mostly follow each other, and of churned memory, of which parts were freed and filled
//! again.

use super::Size;
use super::floor;
use super::measure::cpu_in_turn;
use super::ours;
use super::peers;
use super::subject::Subject;
use super::table::{Required, Table};
use pmdb::inspect::{AddressSpace, Evidence, FactReader, Groups};
use pmdb::kernel::{Key, PageFact, PageField};
use pmdb::process::Target;
use std::hint::black_box;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// The two sizes.
const SIZES: [u64; 2] = [512 * MIB, 2048 * MIB];

/// (v) CPU time a page, of both kinds of memory.
pub fn slopes(size: &Size, table: &mut Table) {
    for kind in ["small", "churned"] {
        slopes_of(kind, size, table);
    }
}

/// One of the two processes.
struct Sized {
    subject: Subject,
    target: Target,
    runs: Vec<(u64, u64)>,
}

impl Sized {
    fn start(kind: &str, bytes: u64) -> Sized {
        let subject = Subject::start(kind, &[bytes]);
        let target = subject.target.attach();
        let runs = floor::frame_runs(subject.pid(), subject.range());
        Sized { subject, target, runs }
    }

    fn pages(&self) -> u64 {
        self.subject.len / floor::page_bytes()
    }

    fn by(&self, fact: PageFact) {
        by(&self.target, self.subject.range(), fact);
    }
}

fn slopes_of(kind: &str, size: &Size, table: &mut Table) {
    let [small, large] = SIZES.map(|bytes| Sized::start(kind, size.of(bytes, 2 * MIB)));
    let page_types = peers::page_types();
    let each = |one: &Sized| {
        let (pid, whole, target) = (one.subject.pid(), one.subject.range(), &one.target);
        cpu_in_turn(
            size.rounds,
            [
                &mut || floor::entries(pid, whole),
                &mut || floor::entries_and_flags(pid, whole, &one.runs),
                &mut || ours::walk(target, whole, Evidence::empty(), || ()),
                &mut || one.by(PageFact::Exclusive),
                &mut || one.by(PageFact::MapCount),
                &mut || one.by(PageFact::Flags),
                &mut || assert!(ours::program(pid, "account")),
                &mut || floor::page_types_reads(pid, whole),
                &mut || page_types.iter().for_each(|program| peers::run_page_types(program, pid)),
            ],
        )
    };
    let [of_small, of_large] = [each(&small), each(&large)];
    let pages = large.pages() - small.pages();
    let slope = |index: usize| of_large[index].slope(&of_small[index], pages);
    let mean = large.pages() as f64 / runs_in_order(&large) as f64;
    let question = |what: &str| format!("(v) {kind}, mean run {mean:.1}: {what}, CPU a page");
    let ns = Duration::from_nanos;
    let raw = [slope(0), slope(1)];
    let most = |limit| Required::Time(ns(limit));
    table.row(&question("states"), &slope(2), "entries", &raw[0], most(15));
    table.row(&question("by exclusive"), &slope(3), "entries", &raw[0], most(60));
    table.row(&question("by mapcount"), &slope(4), "entries", &raw[0], most(60));
    table.row(&question("by flags"), &slope(5), "entries and flags", &raw[1], Required::Ratio(1.15));
    table.row(&question("account"), &slope(6), "entries and flags", &raw[1], Required::Ratio(1.3));
    // The program is in few distributions. Its reads alone are less than what it needs.
    table.row(&question("by flags"), &slope(5), "the reads of page-types", &slope(7), Required::Ratio(1.0));
    match page_types {
        Some(_) => table.row(&question("by flags"), &slope(5), "page-types", &slope(8), Required::Ratio(1.0)),
        None => table.without(&question("by flags"), "page-types is not installed"),
    }
}

/// The physically contiguous runs in the order of addresses.
fn runs_in_order(one: &Sized) -> u64 {
    let space = AddressSpace::of(&one.target).expect("regions");
    let mut totals = pmdb::inspect::Totals::new(space.page_size(), Evidence::FRAMES);
    let mut pages = space.pages(&[ours::range(one.subject.range())], Evidence::FRAMES);
    while let Some(chunk) = pages.next().expect("to the end") {
        chunk.pages().for_each(|page| totals.add(&page));
    }
    totals.runs().expect("frames")
}

/// `walk RANGE by FACT`.
fn by(target: &Target, whole: (u64, u64), fact: PageFact) {
    let space = AddressSpace::of(target).expect("regions");
    let reader = FactReader::of_pages(&space);
    let field = PageField::Fact(fact);
    let need = reader.require(field).expect("the right to read it").expect("a fact of pages");
    let mut groups = Groups::new(Key::Page(field), reader);
    let mut pages = space.pages(&[ours::range(whole)], need | Evidence::KINDS);
    while let Some(chunk) = pages.next().expect("to the end") {
        chunk.pages().for_each(|page| groups.add(&page, chunk.region_index));
    }
    black_box(groups.finish().pages);
}
