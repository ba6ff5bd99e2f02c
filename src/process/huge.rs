//! The settings of transparent huge pages, and the free memory for them.

use super::{Error, Machine, Result};
use crate::budget::until_interrupted;
use crate::kernel::Device;
use crate::kernel::huge::{FreeBlocks, HugeChoice};
use crate::kernel::mounts::{MemoryFiles, Mount};
use crate::kernel::words::Worded as _;
use crate::source::{File, KernelSetting};

/// The settings of transparent huge pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HugeSettings {
    /// Which memory gets huge pages (`enabled`); `None` on a kernel without transparent huge pages.
    pub memory: Option<HugeChoice>,
    /// Which shared memory gets huge pages (`shmem_enabled`).
    pub shared: Option<HugeChoice>,
    /// The settings for each size, in ascending order. Before Linux 6.8 there is only one size, without separate
    /// settings.
    pub sizes: Vec<HugeSize>,
    /// `max_ptes_none`: the most empty pages in a range that khugepaged collapses.
    pub max_empty: Option<u64>,
    /// `max_ptes_swap`: the most swapped pages in such a range.
    pub max_swapped: Option<u64>,
    /// `max_ptes_shared`: the most shared pages in such a range (since Linux 5.8).
    pub max_shared: Option<u64>,
    /// `pages_to_scan`: the pages, of all processes, that khugepaged scans before it sleeps.
    pub scanned: Option<u64>,
    /// `scan_sleep_millisecs`: the milliseconds that it sleeps then.
    pub sleep: Option<u64>,
}

/// The settings for transparent huge pages of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HugeSize {
    /// The size of the huge pages in bytes.
    pub bytes: u64,
    /// Which memory gets huge pages of this size.
    pub memory: Option<HugeChoice>,
    /// Which shared memory gets huge pages of this size (since Linux 6.11).
    pub shared: Option<HugeChoice>,
}

impl HugeSettings {
    /// Returns the settings for pages of this many bytes.
    pub fn of(&self, bytes: u64) -> Option<&HugeSize> {
        self.sizes.iter().find(|size| size.bytes == bytes)
    }
}

impl Machine {
    /// Reads the settings of transparent huge pages.
    ///
    /// # Errors
    /// Fails if the settings cannot be read on a kernel that may have transparent huge pages.
    pub fn huge_settings(&self) -> Result<HugeSettings> {
        let memory = match self.huge_choice(KernelSetting::HugePages) {
            Ok(choice) => Some(choice),
            Err(_) if self.kernel_option("CONFIG_TRANSPARENT_HUGEPAGE") == Some(false) => {
                return Ok(HugeSettings::default());
            }
            Err(error) => return Err(error),
        };
        let choice = |setting| self.huge_choice(setting).ok();
        let of_size = |bytes| HugeSize {
            bytes,
            memory: choice(KernelSetting::HugePagesOf(bytes)),
            shared: choice(KernelSetting::HugeSharedOf(bytes)),
        };
        Ok(HugeSettings {
            memory,
            shared: choice(KernelSetting::HugeShared),
            sizes: self
                .huge_sizes()
                .map(of_size)
                .filter(|size| size.memory.is_some() || size.shared.is_some())
                .collect(),
            max_empty: self.setting(KernelSetting::CollapseEmpty),
            max_swapped: self.setting(KernelSetting::CollapseSwapped),
            max_shared: self.setting(KernelSetting::CollapseShared),
            scanned: self.setting(KernelSetting::CollapseScan),
            sleep: self.setting(KernelSetting::CollapseSleep),
        })
    }

    /// Returns the possible sizes of large folios, in bytes.
    fn huge_sizes(&self) -> impl Iterator<Item = u64> {
        let (page, largest) = (self.page_size().bytes(), self.huge_page_bytes().unwrap_or_default());
        (1..32).map(move |order| page << order).take_while(move |&bytes| bytes <= largest)
    }

    /// Returns the sizes of anonymous folios, in bytes, of which some on the machine are partly mapped; `None` before
    /// Linux 6.12, which does not count them.
    pub(crate) fn partly_mapped_sizes(&self) -> Option<Vec<u64>> {
        let count = |bytes| Some((bytes, self.setting(KernelSetting::PartlyMapped(bytes))?));
        let counts: Vec<_> = self.huge_sizes().filter_map(count).collect();
        let mapped = counts.iter().filter(|(_, count)| *count > 0).map(|(bytes, _)| *bytes).collect();
        (!counts.is_empty()).then_some(mapped)
    }

    /// Returns which shared memory on a mounted filesystem gets huge pages (the option `huge` of tmpfs); `None` for
    /// shared memory in no mounted filesystem.
    #[doc(hidden)]
    pub fn huge_option(&self, device: Device) -> Option<HugeChoice> {
        let choice = |mount: &Mount| {
            let is_shared = mount.memory_files() == Some(MemoryFiles::Shared);
            is_shared.then(|| mount.option("huge").and_then(HugeChoice::from_word).unwrap_or(HugeChoice::Never))
        };
        self.find_mount(device, &mut until_interrupted(), choice).ok().flatten()
    }

    /// Reads the free blocks of memory (`/proc/buddyinfo`).
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn free_blocks(&self) -> Result<FreeBlocks> {
        Ok(FreeBlocks::parse(&self.source().fetch(File::FreeBlocks)?)?)
    }

    fn huge_choice(&self, setting: KernelSetting) -> Result<HugeChoice> {
        let text = self.source().fetch(File::Setting(setting))?;
        let unknown = || Error::not_available("unknown setting of huge pages on this kernel");
        HugeChoice::parse(&text).ok_or_else(unknown)
    }
}
