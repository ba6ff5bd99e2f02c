//! The true names of mapped files, where the text of `maps` is ambiguous: a name may itself end in the kernel's mark
//! for deleted files, or hold the `\012` that stands for a newline.

use crate::kernel::{Name, Region, maps, text};
use crate::source::{Answer, File, Probe, Query, Source};

/// Corrects the names of `regions`, which were read from the text of `maps`. Names that are not ambiguous cost nothing.
pub(super) fn settle(source: &dyn Source, regions: &mut [Region]) {
    // The regions of a file mostly lie side by side.
    let mut last = None;
    for region in regions.iter_mut().filter(|region| is_path(region)) {
        let has_newline = region.name.as_bytes().contains(&b'\n');
        if !has_newline && !region.deleted {
            continue;
        }
        let read = (region.device, region.inode, called(region));
        match &last {
            Some((known, settled)) if *known == read => {
                (region.name, region.deleted) = Clone::clone(settled);
                continue;
            }
            _ => {}
        }
        if has_newline && let Some(said) = unescaped(source, region) {
            (region.name, region.deleted) = said;
        }
        settle_mark(source, region);
        last = Some((read, called(region)));
    }
}

/// Corrects the name of a region that came without escapes.
pub(super) fn settle_unescaped(source: &dyn Source, region: &mut Region) {
    if is_path(region) {
        settle_mark(source, region);
    }
}

fn is_path(region: &Region) -> bool {
    region.name.as_bytes().starts_with(b"/")
}

fn called(region: &Region) -> (Name, bool) {
    (region.name.clone(), region.deleted)
}

/// The name as PROCMAP_QUERY (Linux 6.11) has it, or the link in `map_files`, which takes rights: there a newline
/// stands for itself. `None` if neither is available, or something else is mapped there by now.
fn unescaped(source: &dyn Source, region: &Region) -> Option<(Name, bool)> {
    let name = match source.query(Query::At(region.range.start())) {
        Ok(Answer::Found(mapping)) => mapping.name,
        _ => source.whole(File::MappedFile(region.range)).ok()?,
    };
    let is_it = maps::name(&text::unescape_newline(&name)) == called(region);
    is_it.then(|| maps::name(&name))
}

/// Takes what looks like the kernel's mark for the end of the name, if the file that is mapped bears that name.
fn settle_mark(source: &dyn Source, region: &mut Region) {
    if !region.deleted {
        return;
    }
    let whole = [region.name.as_bytes(), maps::DELETED].concat();
    let is_named = source.probe(Probe::IsNamed(region, &whole));
    if is_named.is_ok_and(|words| words == [1]) {
        (region.name, region.deleted) = (Name::new(whole), false);
    }
}
