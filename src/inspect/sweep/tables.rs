//! The page-table entries of what a sweep has read: of a huge mapping one.

use super::super::address_space::AddressSpace;
use super::super::table_entry::confirmed;
use super::chunk::{PageStretches, StretchWords};
use super::columns::{Column, UNREAD};
use crate::process;

/// Reads the frames of device mappings.
pub(super) fn read_devices(stretches: &mut PageStretches, space: &AddressSpace) -> process::Result<()> {
    let of_devices = stretches.all.iter().filter_map(|stretch| {
        let viewed = space.viewed_regions().get(stretch.region?)?;
        match &stretch.words {
            StretchWords::Read { at, stride: 1, .. } if space.is_of_device(viewed) => Some((stretch, at)),
            _ => None,
        }
    });
    for (stretch, at) in of_devices {
        let mut found = vec![None; at.len()];
        space.target().process.table_entries(space.page_size().index(stretch.range.start()), &mut found)?;
        let frames = stretches.columns.of_mut(Column::DeviceFrames);
        frames.resize(stretches.entries.len(), UNREAD);
        for (frame, found) in frames.get_mut(at.clone()).unwrap_or_default().iter_mut().zip(found) {
            *frame = found.map_or(UNREAD, |entry| entry.frame.get());
        }
    }
    Ok(())
}

/// Reads the bits of the entries of all pages that have a frame.
pub(super) fn read_tables(stretches: &mut PageStretches, space: &AddressSpace) -> process::Result<()> {
    let process = &space.target().process;
    stretches.columns.begin(Column::Tables, stretches.entries.len());
    let mut table_entries = Vec::new();
    for stretch in &stretches.all {
        let StretchWords::Read { at, stride, .. } = &stretch.words else {
            continue;
        };
        let first = space.page_size().index(stretch.range.start());
        table_entries.clear();
        table_entries.resize(at.len(), None);
        if *stride == 1 {
            process.table_entries(first, &mut table_entries)?;
        } else {
            for (number, one) in (0..).zip(&mut table_entries) {
                process.table_entries(first + number * stride, std::slice::from_mut(one))?;
            }
        }
        let entries = stretches.entries.get(at.clone()).unwrap_or_default();
        let bits = stretches.columns.of_mut(Column::Tables).get_mut(at.clone()).unwrap_or_default();
        for ((bits, entry), table_entry) in bits.iter_mut().zip(entries).zip(&table_entries) {
            *bits = confirmed(*table_entry, entry.frame()).map_or(UNREAD, |entry| entry.bits.bits().into());
        }
    }
    Ok(())
}
