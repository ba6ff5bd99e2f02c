//! What a core file has of the machine, as the answers of a source.

use super::contents::not_in_core;
use crate::access::Result;
use crate::kernel::core_machine::CoreMachine;
use crate::source::{File, KernelSetting};

/// A file of the machine.
pub(super) fn text(machine: Option<&CoreMachine>, file: File) -> Result<Vec<u8>> {
    let number = |number: Option<u64>| number.map(|number| format!("{number}\n"));
    let text = machine.and_then(|machine| match file {
        File::Release => Some(machine.release.clone()),
        File::OwnMounts => Some(mounts(machine)),
        File::Setting(KernelSetting::HugePageBytes) => number(machine.huge_page_bytes),
        File::Setting(KernelSetting::MergedPages) => number(machine.merged_pages),
        _ => None,
    });
    text.map_or_else(|| not_in_core(file.what()), |text| Ok(text.into_bytes()))
}

/// A mount for each device of shared memory: that is how one of many devices is found to be such memory.
fn mounts(machine: &CoreMachine) -> String {
    let line =
        |device: &crate::kernel::Device| format!("1 1 {}:{} / / rw - tmpfs none rw\n", device.major, device.minor);
    machine.shared_memory.iter().map(line).collect()
}

/// The devices of the hugetlb pools.
pub(super) fn pools(machine: Option<&CoreMachine>) -> Result<Vec<u64>> {
    match machine {
        Some(machine) => Ok(machine.pools.iter().flat_map(|pool| [pool.major.into(), pool.minor.into()]).collect()),
        None => not_in_core("the devices of the hugetlb pools"),
    }
}
