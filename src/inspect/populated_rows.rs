//! Rows of a timeline of many regions, each with about as much populated memory as the others.

use super::AddressSpace;
use crate::kernel::{AddressRange, PageSize};
use crate::process::Categories;

/// A part of a region, and the number of the region.
pub type RegionPart = (AddressRange, usize);

/// A row: parts of regions that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PopulatedRow {
    pub range: AddressRange,
    pub parts: Vec<RegionPart>,
    /// Populated pages in them.
    pub pages: u64,
}

/// A part of a region with its populated stretches, in address order.
type PopulatedPart = (RegionPart, Vec<AddressRange>);

/// Divides `parts`, which are in address order, into at most `most` rows. `None` if nothing is populated, or it cannot
/// be read: then they are divided by their length.
pub fn divided(space: &AddressSpace, parts: &[RegionPart], most: usize) -> Option<Vec<PopulatedRow>> {
    let process = &space.target().process;
    let populated = parts.iter().map(|part| {
        let found = process.populated(part.0, Categories::empty());
        let stretches: Option<Vec<AddressRange>> =
            found.map(|one| Some(one.ok()?.range.intersection(part.0))).collect::<Option<Vec<_>>>().map(clip);
        Some((*part, stretches?))
    });
    divide(&populated.collect::<Option<Vec<_>>>()?, space.page_size(), most)
}

fn clip(stretches: Vec<Option<AddressRange>>) -> Vec<AddressRange> {
    stretches.into_iter().flatten().collect()
}

fn divide(parts: &[PopulatedPart], size: PageSize, most: usize) -> Option<Vec<PopulatedRow>> {
    let total: u64 = parts.iter().map(|(_, stretches)| pages(stretches, size)).sum();
    let mut wanted = total.div_ceil(most as u64);
    if wanted == 0 {
        return None;
    }
    loop {
        let rows = rows_of(parts, size, wanted);
        if rows.len() <= most || wanted >= total {
            return Some(rows);
        }
        wanted += wanted.div_ceil(8);
    }
}

fn pages(stretches: &[AddressRange], size: PageSize) -> u64 {
    stretches.iter().map(|stretch| stretch.pages(size)).sum()
}

/// Rows of at most `wanted` populated pages: a region with more has several, and small neighbours share one.
fn rows_of(parts: &[PopulatedPart], size: PageSize, wanted: u64) -> Vec<PopulatedRow> {
    let mut rows: Vec<PopulatedRow> = Vec::new();
    // Whether the last row has room for another region.
    let mut is_open = false;
    for ((part, index), stretches) in parts {
        let own = pages(stretches, size);
        if own > wanted {
            rows.extend(
                pieces(*part, stretches, size, own.div_ceil(own.div_ceil(wanted))).map(|(range, pages)| PopulatedRow {
                    range,
                    parts: vec![(range, *index)],
                    pages,
                }),
            );
            is_open = false;
            continue;
        }
        match rows.last_mut().filter(|last| is_open && last.pages + own <= wanted) {
            Some(last) => {
                last.range = AddressRange::new(last.range.start(), part.end()).unwrap_or(last.range);
                last.parts.push((*part, *index));
                last.pages += own;
            }
            None => rows.push(PopulatedRow { range: *part, parts: vec![(*part, *index)], pages: own }),
        }
        is_open = true;
    }
    rows
}

/// The range in pieces of so many populated pages each, the last with the rest.
fn pieces(
    range: AddressRange,
    stretches: &[AddressRange],
    size: PageSize,
    wanted: u64,
) -> impl Iterator<Item = (AddressRange, u64)> {
    let mut cuts = Vec::new();
    let (mut start, mut inside) = (range.start(), 0);
    for stretch in stretches {
        let (mut from, mut left) = (stretch.start(), stretch.pages(size));
        while inside + left > wanted {
            let more = wanted - inside;
            let end = from.checked_add(more * size.bytes()).unwrap_or(stretch.end());
            cuts.extend(AddressRange::new(start, end).map(|piece| (piece, wanted)));
            (start, from, inside, left) = (end, end, 0, left - more);
        }
        inside += left;
    }
    cuts.extend(AddressRange::new(start, range.end()).map(|piece| (piece, inside)));
    cuts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::VirtualAddress;

    fn range(first: u64, pages: u64) -> AddressRange {
        AddressRange::of_length(VirtualAddress::new(first << 12), pages << 12).unwrap()
    }

    #[test]
    fn rows_have_about_as_much_populated_memory() {
        let size = PageSize::from_bytes(4096).unwrap();
        // Fifty small regions, a sparse large one with 800 pages in two stretches, and one that is untouched.
        let mut parts: Vec<PopulatedPart> = (0..50)
            .map(|index| ((range(0x1000 + 2 * index, 1), index as usize), vec![range(0x1000 + 2 * index, 1)]))
            .collect();
        parts.push(((range(0x10_0000, 100_000), 50), vec![range(0x10_0000, 700), range(0x11_0000, 100)]));
        parts.push(((range(0x80_0000, 1000), 51), Vec::new()));
        let rows = divide(&parts, size, 20).unwrap();
        assert!(rows.len() <= 20 && rows.len() > 15, "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.pages).sum::<u64>(), 850);
        let most = rows.iter().map(|row| row.pages).max().unwrap();
        assert!((43..=60).contains(&most), "{most}");
        // In address order, and every part is in a row.
        assert!(rows.windows(2).all(|pair| pair[0].range.end() <= pair[1].range.start()), "{rows:?}");
        let covered: u64 = rows.iter().flat_map(|row| &row.parts).map(|(part, _)| part.pages(size)).sum();
        assert_eq!(covered, 50 + 100_000 + 1000);
        let large = rows.iter().filter(|row| row.parts[0].1 == 50).count();
        assert!(large >= 13, "{rows:?}");
        assert_eq!(divide(&parts[51..], size, 20), None);
    }
}
