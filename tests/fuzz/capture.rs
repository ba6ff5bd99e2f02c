//! Captures: the file as it is, and its index before compression, as otherwise a checksum would catch every change.

use crate::made::{BASE, Machine};
use pmdb::budget::Budget;
use pmdb::kernel::{AddressRange, FrameNumber, PageFlags, Region, VirtualAddress};
use pmdb::process::{InMemory, Modules, Target};
use pmdb::{AddressSpace, Evidence};
use std::sync::Arc;

const MACHINES: [Machine; 3] = [
    Machine { is_big: false, page: 4096, pointer: 8 },
    Machine { is_big: true, page: 4096, pointer: 8 },
    Machine { is_big: false, page: 64 << 10, pointer: 4 },
];

/// Chunks of a sweep, and bytes of a file: what a capture claims to have may be endless, and a user would stop it.
const MOST_CHUNKS: usize = 100;
const MOST_BYTES: usize = 1 << 20;

/// Whole captures, and indexes of captures: the latter begin with `{`.
pub fn seeds() -> Vec<Vec<u8>> {
    let made = MACHINES.map(Machine::capture);
    made.iter().for_each(|made| is_sound(&made.whole()));
    made.iter().flat_map(|made| [made.whole(), made.index.to_string().into()]).collect()
}

/// Seeds must be valid: regions and memory are found in them.
pub fn is_sound(file: &[u8]) {
    let target = Target::of_capture(Box::new(InMemory::file(file.to_vec())), 0).expect("a valid seed");
    assert_eq!(target.process.regions().expect("regions")[0].range.start().get(), BASE);
    assert!(target.process.memory(VirtualAddress::new(BASE), &mut [0; 8]).is_ok_and(|read| read == 8));
}

pub fn feed(bytes: &[u8]) {
    ask(file_of(bytes));
}

/// The file that an input stands for.
pub fn file_of(bytes: &[u8]) -> Vec<u8> {
    match bytes.first() {
        Some(b'{') => MACHINES[0].capture().with_index(bytes),
        _ => bytes.to_vec(),
    }
}

/// Every question about the target in a file, if it is one.
pub fn ask(file: Vec<u8>) {
    let Ok(target) = Target::of_capture(Box::new(InMemory::file(file)), 0) else {
        return;
    };
    let Target { process, machine, modules } = &target;
    _ = (process.identity(), process.layout(), process.status(), process.threads(), process.registers());
    _ = (process.findings(), process.rollup(), process.smaps(&mut Budget::unlimited()), process.capture_times());
    _ = (
        machine.kernel(),
        machine.zones(),
        machine.iomem(),
        machine.swaps(),
        machine.findings(),
        machine.credentials(),
    );
    _ = (machine.processes(), machine.cgroup_path(1), machine.cgroup_mount(), machine.own_process().is_ok());
    for first in [0, 0x5000, u64::MAX - 1] {
        _ = machine.frame_flags(FrameNumber::new(first), &mut [PageFlags::empty(); 16]);
        _ = machine.frame_counts(FrameNumber::new(first), &mut [0; 16]);
    }
    let mut memory = vec![0; MOST_BYTES];
    for address in [BASE, 0, u64::MAX] {
        _ = process.memory(VirtualAddress::new(address), &mut memory);
    }
    for region in process.regions().unwrap_or_default().iter().take(MOST_CHUNKS) {
        _ = process.is_pfn_mapped(region);
        ask_file(modules, region, &mut memory);
    }
    let target = Arc::new(target);
    let Ok(space) = AddressSpace::of(&target) else {
        return;
    };
    _ = space.detail(VirtualAddress::new(BASE)).is_ok();
    let spans: Vec<AddressRange> = space.spans();
    let mut pages = space.pages(&spans, space.obtainable(Evidence::KINDS | Evidence::FRAMES | Evidence::COUNTS));
    for _ in 0..MOST_CHUNKS {
        let Ok(Some(chunk)) = pages.next() else {
            break;
        };
        for page in chunk.pages().take(MOST_BYTES) {
            _ = page.state();
        }
    }
}

fn ask_file(modules: &Modules, region: &Region, into: &mut [u8]) {
    _ = modules.backing_content(region, region.range);
    if let Ok(file) = modules.open(region) {
        _ = file.read_up_to(0, into);
        _ = file.read_up_to(file.len().saturating_sub(1), into);
    }
}
