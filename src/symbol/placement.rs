//! Where a file was loaded: how far its addresses are moved in the process.
//!
//! A load segment puts the page of file offset `p_offset` at `bias + p_vaddr`. A region of the file says at which address a file offset
//! is; held together they give the bias. One page of the file is often mapped twice, at the end of one segment and at
//! the start of the next, so a single region can be explained in two ways: the bias that explains most regions is right.

use super::elf::Segment;
use super::module::Module;
use crate::kernel::{AddressRange, PageSize, Region, VirtualAddress};
use std::collections::HashMap;

/// One copy of a module in the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Placement {
    /// Runtime address minus file address, modulo 2^64.
    bias: u64,
    /// The regions of the file that it explains.
    regions: Vec<AddressRange>,
    /// How many load segments have a region.
    segments: usize,
}

impl Placement {
    /// The file address of a runtime address.
    pub(super) fn file_address(&self, address: VirtualAddress) -> u64 {
        address.get().wrapping_sub(self.bias)
    }

    /// The runtime address of a file address.
    pub(super) fn address(&self, file_address: u64) -> VirtualAddress {
        VirtualAddress::new(file_address.wrapping_add(self.bias))
    }

    /// Whether one of its regions holds `address`.
    pub(super) fn maps(&self, address: VirtualAddress) -> bool {
        self.regions.iter().any(|range| range.contains(address))
    }

    /// Whether `address` lies in the memory of a load segment, `.bss` included.
    pub(super) fn loads(&self, segments: &[Segment], address: VirtualAddress) -> bool {
        in_segment(segments, self.file_address(address))
    }
}

/// Whether a file address lies in the memory of a load segment.
pub(super) fn in_segment(segments: &[Segment], file_address: u64) -> bool {
    segments.iter().any(|segment| {
        file_address
            .checked_sub(segment.address)
            .is_some_and(|into| into < segment.memory_size)
    })
}

/// The copies of `module`, the one with most regions first; none if it is mapped as mere data.
pub(super) fn place(module: &Module, segments: &[Segment], page: PageSize) -> Vec<Placement> {
    let mut votes: HashMap<u64, u64> = HashMap::new();
    let candidates: Vec<Vec<(u64, usize)>> = module
        .regions
        .iter()
        .map(|region| candidates(region, segments, page))
        .collect();
    for (region, biases) in module.regions.iter().zip(&candidates) {
        for &(bias, number) in biases {
            let segment = segments.get(number);
            let same = |one: fn(&Segment) -> bool, other: bool| {
                u64::from(segment.is_some_and(|segment| one(segment) == other))
            };
            // Rights decide only between explanations that are otherwise equal: they are changed while a program starts.
            *votes.entry(bias).or_default() += 4
                + 2 * same(|segment| segment.executable, region.permissions.execute)
                + same(|segment| segment.writable, region.permissions.write);
        }
    }

    let mut placements: Vec<(u64, Placement)> = Vec::new();
    for (region, biases) in module.regions.iter().zip(&candidates) {
        let weight = |bias: u64| votes.get(&bias).copied().unwrap_or(0);
        // The first of equals: the order of the segments.
        let Some(&(bias, _)) = biases.iter().rev().max_by_key(|&&(bias, _)| weight(bias)) else {
            continue;
        };
        match placements.iter_mut().find(|(_, one)| one.bias == bias) {
            Some((_, one)) => one.regions.push(region.range),
            None => placements.push((
                weight(bias),
                Placement {
                    bias,
                    regions: vec![region.range],
                    segments: 0,
                },
            )),
        }
    }
    for (_, placement) in &mut placements {
        placement.segments = segments
            .iter()
            .filter(|segment| placement.maps(placement.address(segment.address)))
            .count();
    }
    // A tool that maps the head of a file to look at it is no second copy of a library.
    let most = placements.iter().map(|(_, one)| one.segments).max();
    placements.retain(|(_, one)| Some(one.segments) == most);
    placements.sort_by_key(|&(weight, _)| std::cmp::Reverse(weight));
    placements.into_iter().map(|(_, one)| one).collect()
}

/// The biases that would explain `region`, each with the number of the segment that says so.
fn candidates(region: &Region, segments: &[Segment], page: PageSize) -> Vec<(u64, usize)> {
    let Some(last) = region.offset.checked_add(region.range.len() - 1) else {
        return Vec::new();
    };
    let moved = |segment: &Segment| segment.address.wrapping_sub(segment.offset);
    let mut found: Vec<(u64, usize)> = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        // Neighbouring segments can share a region if they are moved alike; what follows the last one is no loaded file.
        let ends_in_one = || {
            segments
                .iter()
                .any(|other| moved(other) == moved(segment) && pages_hold(other, last, page))
        };
        if pages_hold(segment, region.offset, page) && ends_in_one() {
            let bias = region
                .range
                .start()
                .get()
                .wrapping_sub(region.offset)
                .wrapping_sub(moved(segment));
            if found.iter().all(|&(other, _)| other != bias) {
                found.push((bias, number));
            }
        }
    }
    found
}

/// Whether a file offset lies in the pages that hold the segment's bytes.
fn pages_hold(segment: &Segment, offset: u64, page: PageSize) -> bool {
    let mask = page.bytes() - 1;
    segment.file_size > 0
        && offset >= segment.offset & !mask
        && segment
            .offset
            .checked_add(segment.file_size - 1)
            .is_some_and(|last| offset <= last | mask)
}
