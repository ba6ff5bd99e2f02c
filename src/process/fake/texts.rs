//! The texts of `/proc` and `/sys` that a fake world makes.

use super::{HUGE, PAGE, World, none};
use crate::access::{Error, Result};
use crate::budget::Budget;
use crate::kernel::{Device, Region};
use crate::source::{ConfigPlace, File, GroupText, KernelSetting};

/// Writes a region as a line of `maps`.
fn line(region: &Region) -> Vec<u8> {
    let (start, end) = (region.range.start().get(), region.range.end().get());
    let (offset, device, inode) = (region.offset, region.device, region.inode);
    let permissions = region.permissions;
    let head = format!("{start:08x}-{end:08x} {permissions} {offset:08x} {device} {inode} ");
    let mut line = head.into_bytes();
    for &byte in region.name.as_bytes() {
        match byte {
            b'\n' => line.extend(b"\\012"),
            byte => line.push(byte),
        }
    }
    line.extend(if region.deleted { &b" (deleted)\n"[..] } else { b"\n" });
    line
}

impl World {
    pub(super) fn maps_text(&self) -> Vec<u8> {
        let regions = self.regions.lock().expect("a lock");
        regions.iter().flat_map(line).collect()
    }

    fn config(&self) -> Option<String> {
        let options = ["MEMORY_FAILURE", "MIGRATION", "DEVICE_PRIVATE", "PTE_MARKER"];
        let exact = (!self.average_counts).then_some("PAGE_MAPCOUNT");
        let options = options.into_iter().chain(exact);
        let text = options.map(|option| format!("CONFIG_{option}=y\n"));
        self.has_config.then(|| text.collect())
    }

    fn smaps(&self) -> String {
        let mut text = String::new();
        for region in &self.smaps {
            let (start, end) = (region.range.start().get(), region.range.end().get());
            text += &format!("{start:08x}-{end:08x} rw-p 00000000 00:00 0\n");
            for (name, bytes) in &region.fields {
                text += &format!("{name}: {} kB\n", bytes / 1024);
            }
            if let Some(may_be_huge) = region.may_be_huge {
                text += &format!("THPeligible: {}\n", u8::from(may_be_huge));
            }
            if let Some(key) = region.protection_key {
                text += &format!("ProtectionKey: {key}\n");
            }
            text += &format!("VmFlags: {}\n", region.vm_flags.join(" "));
        }
        text
    }

    fn mounts(&self) -> String {
        let mount = |device: Option<Device>, kind: &str| {
            device.map(|device| {
                let (major, minor) = (device.major, device.minor);
                format!("25 1 {major}:{minor} / /mnt rw - {kind} none rw\n")
            })
        };
        let mounts = [mount(self.hugetlbfs, "hugetlbfs"), mount(self.tmpfs, "tmpfs")];
        mounts.into_iter().flatten().collect()
    }
}

pub(super) fn stat(pid: u32, parent: u32, start_time: u64) -> Vec<u8> {
    let zeros = "0 ".repeat(17);
    let rest = "0 ".repeat(30);
    format!("{pid} (fake) S {parent} {zeros}{start_time} {rest}\n").into_bytes()
}

impl World {
    pub(super) fn text_of(&self, file: File, budget: &mut Budget) -> Result<Vec<u8>> {
        if let File::Stat | File::Status | File::MainStatus | File::Syscall | File::Smaps | File::Auxiliary = file {
            self.answer()?;
        }
        if let Some(text) = self.made_text(file) {
            return Ok(text.into_bytes());
        }
        let text = match file {
            File::Stat => return Ok(stat(self.pid, 1, self.start_time)),
            File::Status | File::MainStatus => {
                let pid = self.pid;
                format!("State:\tS (sleeping)\nTgid:\t{pid}\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n")
            }
            File::Syscall | File::ThreadSyscall(_) => self.syscall.clone(),
            File::DescriptorInfo(number) => match self.descriptors.get(number as usize) {
                Some((_, info)) => info.clone(),
                None => return none(),
            },
            File::Program => match &self.executable {
                Some(path) => return Ok(path.as_bytes().to_vec()),
                None => return none(),
            },
            File::Smaps => {
                budget.look()?;
                self.smaps()
            }
            File::OwnSmaps => self.smaps(),
            // The size of a program header.
            File::Auxiliary => {
                return Ok(match self.layout.pointer_bytes {
                    4 => [4u32, 32].map(u32::to_ne_bytes).concat(),
                    _ => [4u64, 56].map(u64::to_ne_bytes).concat(),
                });
            }
            File::Mounts | File::OwnMounts => self.mounts(),
            File::Release => self.release.to_owned(),
            File::Swaps => {
                let area = if self.swaps { "/dev/zram0 partition 65532 0 -2\n" } else { "" };
                format!("Filename\tType\tSize\tUsed\tPriority\n{area}")
            }
            File::Config(ConfigPlace::Boot) => match self.config() {
                Some(text) => text,
                None => return none(),
            },
            File::Setting(KernelSetting::MergedPages) if self.has_config => {
                format!("{}\n", self.merged_pages)
            }
            File::Setting(KernelSetting::ZeroPageIsMerged) => format!("{}\n", u8::from(self.merges_zeros)),
            File::Setting(KernelSetting::HugePageBytes) if self.has_config => {
                format!("{}\n", HUGE * PAGE)
            }
            _ => return none(),
        };
        Ok(text.into_bytes())
    }

    pub(super) fn group_text(&self, GroupText { path, file }: GroupText<'_>) -> Result<Vec<u8>> {
        let name = format!("{}/{}", String::from_utf8_lossy(path), file.name());
        match self.group_files.get(&name) {
            Some(text) => Ok(text.clone().into_bytes()),
            None if self.group_files.is_empty() => none(),
            None => Err(Error::io(name, rustix::io::Errno::NOENT)),
        }
    }
}
