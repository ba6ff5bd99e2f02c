//! The page-table entries of what a sweep has read: of a huge mapping one.

use super::super::address_space::AddressSpace;
use super::super::table_entry::confirmed;
use super::chunk::{PageStretches, StretchWords};
use crate::process;

/// Reads the frames of device mappings.
pub(super) fn read_devices(stretches: &mut PageStretches, space: &AddressSpace) -> process::Result<()> {
    let of_devices = stretches.all.iter().filter_map(|stretch| {
        let viewed = space.regions().get(stretch.region?)?;
        match &stretch.words {
            StretchWords::Read { at, stride: 1, .. } if space.is_of_device(viewed) => Some((stretch, at)),
            _ => None,
        }
    });
    for (stretch, at) in of_devices {
        let mut found = vec![None; at.len()];
        space.target().process.table_entries(space.page().index(stretch.range.start()), &mut found)?;
        stretches.device_frames.resize(stretches.entries.len(), None);
        let frames = stretches.device_frames.get_mut(at.clone()).unwrap_or_default();
        for (frame, found) in frames.iter_mut().zip(found) {
            *frame = found.map(|entry| entry.frame);
        }
    }
    Ok(())
}

/// Reads the bits of the entries of all pages that have a frame.
pub(super) fn read_tables(stretches: &mut PageStretches, space: &AddressSpace) -> process::Result<()> {
    let process = &space.target().process;
    stretches.tables.resize(stretches.entries.len(), None);
    let mut found = Vec::new();
    for stretch in &stretches.all {
        let StretchWords::Read { at, stride, .. } = &stretch.words else {
            continue;
        };
        let first = space.page().index(stretch.range.start());
        found.clear();
        found.resize(at.len(), None);
        if *stride == 1 {
            process.table_entries(first, &mut found)?;
        } else {
            for (number, one) in (0..).zip(&mut found) {
                process.table_entries(first + number * stride, std::slice::from_mut(one))?;
            }
        }
        let entries = stretches.entries.get(at.clone()).unwrap_or_default();
        let bits = stretches.tables.get_mut(at.clone()).unwrap_or_default();
        for ((bits, entry), found) in bits.iter_mut().zip(entries).zip(&found) {
            *bits = confirmed(*found, entry.frame()).map(|entry| entry.bits);
        }
    }
    Ok(())
}
