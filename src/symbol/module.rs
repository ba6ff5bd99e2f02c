//! Modules: the regions that map one file.

use crate::kernel::{AddressRange, Device, Name, Region};
use crate::process::Target;
use crate::source;
use std::collections::HashMap;

/// The most anonymous regions between a module and the end of its `.bss`.
pub(super) const MOST_BSS_REGIONS: usize = 256;
/// The widest gap between them: linkers align segments to the largest page size that they support.
pub(super) const WIDEST_GAP: u64 = 2 << 20;

/// The regions of one file (or of the vdso), in address order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// Its name in `maps`: a whole path, or `[vdso]`.
    pub name: Name,
    /// Filesystem of the file.
    pub device: Device,
    /// Inode of the file; 0 for the vdso.
    pub inode: u64,
    /// Its regions, never empty. The anonymous memory of `.bss` after them is not included.
    pub regions: Vec<Region>,
}

impl Module {
    /// The part of its name after the last slash.
    pub fn file_name(&self) -> Name {
        self.name.file_name()
    }

    /// From its first address to its last.
    pub(super) fn hull(&self) -> Option<AddressRange> {
        let (first, last) = (self.regions.first()?, self.regions.last()?);
        AddressRange::new(first.range.start(), last.range.end())
    }

    /// Whether any of it may be executed: a program or a library, not just a mapped data file.
    pub fn is_executable(&self) -> bool {
        self.regions.iter().any(|region| region.permissions.execute)
    }

    /// Whether it is the vdso, which is only in memory.
    pub fn is_vdso(&self) -> bool {
        self.inode == 0
    }

    /// Whether `name` means it: its whole path or file name, raw or as displayed, and `vdso` for `[vdso]`.
    pub fn is_called(&self, name: &[u8]) -> bool {
        self.name.as_bytes() == name
            || self.file_name().as_bytes() == name
            || self.name.escaped().as_bytes() == name
            || self.name.escaped_file_name().as_bytes() == name
            || (self.is_vdso() && name == b"vdso")
    }
}

/// Whether a region belongs to a module: it maps a file, or is the vdso.
pub(super) fn belongs_to_module(region: &Region) -> bool {
    region.inode != 0 || region.name.as_bytes() == b"[vdso]"
}

/// The regions before `region` of which one may be the module whose `.bss` it is; `None` if only the list of all has
/// them.
pub(super) fn regions_before(target: &Target, region: &Region) -> source::Result<Option<Vec<Region>>> {
    target.process.nearest_below(region.range.start(), WIDEST_GAP, MOST_BSS_REGIONS)
}

/// The modules among `regions` (which are in address order), in order of their first address.
pub fn modules(regions: &[Region]) -> Vec<Module> {
    group(regions).0
}

/// The modules, and for each region the index of its module.
pub(super) fn group<'a>(regions: impl IntoIterator<Item = &'a Region>) -> (Vec<Module>, Vec<Option<usize>>) {
    let mut modules: Vec<Module> = Vec::new();
    let mut numbers: HashMap<(Device, u64, &Name), usize> = HashMap::new();
    let of_region = regions
        .into_iter()
        .map(|region| {
            if !belongs_to_module(region) {
                return None;
            }
            let key = (region.device, region.inode, &region.name);
            let number = *numbers.entry(key).or_insert_with(|| {
                modules.push(Module {
                    name: region.name.clone(),
                    device: region.device,
                    inode: region.inode,
                    regions: Vec::new(),
                });
                modules.len() - 1
            });
            if let Some(module) = modules.get_mut(number) {
                module.regions.push(region.clone());
            }
            Some(number)
        })
        .collect();
    (modules, of_region)
}
