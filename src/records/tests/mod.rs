//! The reader on the bytes of real kernels. The tapes beside this file were recorded in the guests of `scripts/guests`.

mod kernel;
mod owners;
mod pool;
mod reverse;
mod swapped;
mod tables;
pub(crate) mod tape;

use super::layout::{Member, PageLayout};
use super::pages::PageRecords;
use super::*;
use crate::kernel::PageFlags;
use crate::sample::sample;
use tape::Tape;

const TAPES: [(&str, &[u8]); 2] = [("6.1", include_bytes!("6.1-amd64.gz")), ("7.2", include_bytes!("7.2-amd64.gz"))];

fn tapes() -> impl Iterator<Item = (&'static str, Tape)> {
    TAPES.into_iter().map(|(kernel, packed)| (kernel, Tape::unpack(packed)))
}

/// What is proved with this layout, pins too.
fn proved(tape: &Tape, layout: PageLayout) -> Result<RecordParts> {
    let ground = tape.ground();
    let pages = PageRecords::find(Image::open(tape.core())?, layout, &ground)?;
    let mut parts = proof::prove(&pages, &ground)?;
    parts.set(RecordParts::PINS, proof::pins(&pages, &ground) == Some(true));
    Ok(parts)
}

#[test]
fn every_part_is_proved_on_real_kernels() {
    for (kernel, tape) in tapes() {
        assert_eq!(proved(&tape, tape.layout()).expect(kernel), RecordParts::all(), "{kernel}");
    }
}

/// The parts that a member is read for.
fn parts_of(member: Member) -> RecordParts {
    match member {
        Member::Flags | Member::Compound | Member::Pages | Member::SectionMap => RecordParts::FOLIO,
        Member::References => RecordParts::REFERENCES,
        Member::Maps => RecordParts::MAPPINGS,
        Member::EntireMaps | Member::AllMaps => RecordParts::LARGE_MAPPINGS,
        Member::Pins => RecordParts::PINS,
        Member::Mapping
        | Member::Index
        | Member::Host
        | Member::InodeNumber
        | Member::InodeFilesystem
        | Member::InodeMapping
        | Member::FilesystemDevice => RecordParts::OWNER,
    }
}

#[test]
fn a_wrong_offset_is_refused() {
    let mut believed = Vec::new();
    for (kernel, tape) in tapes() {
        for &member in Member::ALL {
            let right = tape.layout();
            let Some(offset) = right.at(member) else {
                continue;
            };
            let others = [-16, -8, -4, 4, 8, 16].into_iter().filter_map(|by| offset.checked_add_signed(by));
            for wrong in sample(others, 3) {
                let mut layout = right.clone();
                layout.offsets[member as usize] = Some(wrong);
                let shown = proved(&tape, layout).unwrap_or_default();
                if shown.intersects(parts_of(member)) {
                    believed.push(format!("{kernel}: {member:?} at {wrong}, not {offset}"));
                }
            }
        }
    }
    assert_eq!(believed, Vec::<String>::new());
}

#[test]
fn wrong_sizes_and_bits_are_refused() {
    for (kernel, tape) in tapes() {
        for size in [56, 72, 80, 128] {
            let layout = PageLayout { page: size, ..tape.layout() };
            assert!(proved(&tape, layout).is_err(), "{kernel}: {size} bytes in a page");
        }
        let seen = PageFlags::UPTODATE | PageFlags::LRU | PageFlags::SWAPBACKED | PageFlags::COMPOUND_HEAD;
        for flag in seen.iter() {
            let mut layout = tape.layout();
            layout.flags.iter_mut().filter(|(one, _)| *one == flag).for_each(|(_, bit)| *bit += 1);
            assert!(proved(&tape, layout).is_err(), "{kernel}: {:?}", flag.names());
        }
    }
}

#[test]
fn what_is_no_kcore_is_refused() {
    let (_, tape) = tapes().next().expect("a tape");
    let changed = |at: u64, byte: u8| {
        let core = tape.core();
        let changed = move |offset: u64, into: &mut [u8]| {
            let read = core(offset, into);
            if let Some(place) = at.checked_sub(offset).and_then(|at| into.get_mut(at as usize)) {
                *place = byte;
            }
            read
        };
        Image::open(Box::new(changed)).err().map(|error| error.to_string())
    };
    assert_eq!(changed(0, 0x7f), None);
    assert!(changed(0, 0).expect("not ELF").contains("headers"));
    assert!(changed(4, 1).expect("32 bits").contains("32 bits"));
    // The size and the number of program headers.
    assert!(changed(54, 1).is_some());
    assert!(changed(57, 0xff).is_some());
    let none = Image::open(Box::new(|_: u64, _: &mut [u8]| false));
    assert!(none.is_err());
}
