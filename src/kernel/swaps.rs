//! Swap areas (`/proc/swaps`), and the kernel's pseudo swap types, which follow from its configuration
//! (`/proc/config.gz`, unpacked).

use super::text::{self, BadLine};
use super::{Name, PageSize, SwapEntry};

/// The rows of `/proc/swaps`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwapAreas(pub Vec<SwapArea>);

/// One swap area.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwapArea {
    /// Device or file.
    pub name: Name,
    /// `partition` or `file`.
    pub kind: String,
    /// Size of the area in bytes.
    pub size: u64,
    /// Bytes of the area that are in use.
    pub used: u64,
}

impl SwapArea {
    /// Returns the number of the zram device, if the area is on one. zram compresses its contents.
    pub fn zram(&self) -> Option<u32> {
        zram_number(self.name.as_bytes())
    }
}

/// Returns the number of a zram device from its path.
pub fn zram_number(path: &[u8]) -> Option<u32> {
    text::decimal(path.strip_prefix(b"/dev/zram")?)
}

/// Swapped memory that is compressed in memory, by zram or by zswap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compressed {
    /// Uncompressed size in bytes.
    pub bytes: u64,
    /// Memory in use for the compressed data, in bytes, with the overhead of the allocator.
    pub memory: u64,
}

impl Compressed {
    /// Decodes `mm_stat` of a zram device: `orig_data_size compr_data_size mem_used_total …`
    pub fn of_zram(text: &[u8]) -> Option<Self> {
        let line = text::lines(text).next()?;
        let mut fields = line.fields();
        let mut at = |index| text::decimal(fields.nth(index)?);
        Some(Compressed { bytes: at(0)?, memory: at(1)? })
    }
}

impl SwapAreas {
    /// Decodes `/proc/swaps`: a heading, then a row for each area in use.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let rows = text::lines(bytes).skip(1).map(|line| {
            let mut fields = line.fields();
            let mut next = || fields.next().ok_or_else(|| line.bad("swaps"));
            let name = Name::new(text::unescape_octal(next()?));
            let kind = text::lossy(next()?);
            let mut bytes = || text::kibibytes(next()?).ok_or_else(|| line.bad("swaps"));
            Ok(SwapArea { name, kind, size: bytes()?, used: bytes()? })
        });
        Ok(SwapAreas(rows.collect::<Result<_, _>>()?))
    }

    /// Returns the area of `slot`, if only one is possible. The rows are in the order of the swap types (`swap_start`
    /// in mm/swapfile.c), but the type of an area that was switched off stays free until another area uses it: at most
    /// N rows precede that of type N. An area has as many slots as pages. Slot 0 is its header, so pages begin at slot
    /// 1.
    pub fn area(&self, slot: SwapEntry, page: PageSize) -> Option<&SwapArea> {
        let holds = |area: &&SwapArea| {
            let bytes = slot.offset.checked_mul(page.bytes());
            bytes.is_some_and(|bytes| bytes <= area.size)
        };
        let mut able = self.0.iter().take(usize::from(slot.kind) + 1).filter(holds);
        able.next().filter(|_| able.next().is_none())
    }
}

/// How a kernel lays out the swap types above the real areas (include/linux/swap.h): from the top of the 32 types down,
/// by its version and its configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapLayout {
    /// The options that decide the layout; `None` if the configuration cannot be read.
    pub options: Option<SwapOptions>,
    /// Major and minor number of the kernel release.
    pub kernel: (u32, u32),
}

/// The configuration options that decide the layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapOptions {
    /// CONFIG_MEMORY_FAILURE
    pub memory_failure: bool,
    /// CONFIG_MIGRATION
    pub migration: bool,
    /// CONFIG_DEVICE_PRIVATE
    pub device_private: bool,
    /// CONFIG_PTE_MARKER (only Linux 5.19 to 6.1 depend on it).
    pub pte_marker: bool,
}

/// The meaning of a non-present entry, by its swap type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SwapMeaning {
    /// A slot of the area with that number.
    Area,
    /// Failed memory; the offset is a frame number.
    Hwpoison,
    /// In migration; the offset is a frame number.
    Migration,
    /// Device-private or device-exclusive memory.
    Device,
    /// A PTE marker; the offset is a set of [`MARKER_BITS`].
    Marker,
    /// Reading the page from swap failed (a separate type from Linux 5.19 to 6.1): any access raises SIGBUS.
    ReadError,
    /// Hwpoison, migration or device (5.19 to 6.1: or marker): which of them is unknown without the kernel's
    /// configuration.
    Special,
}

/// The bits in the offset of a PTE marker, each with its meaning (`PTE_MARKER_UFFD_WP` and the following constants in
/// include/linux/swapops.h). The guard bit exists since Linux 6.13, bit 58 of the page map since 6.15.
pub const MARKER_BITS: [(u64, &str); 3] =
    [(MARKER_UFFD_WP, "userfaultfd write-protection"), (MARKER_POISONED, "poisoned"), (MARKER_GUARD, "guard page")];
/// The marker of a page that userfaultfd protects from writes.
pub const MARKER_UFFD_WP: u64 = 1;
/// The marker of a poisoned page.
pub const MARKER_POISONED: u64 = 2;
/// The marker of a guard page.
pub const MARKER_GUARD: u64 = 4;

/// The number of swap types (MAX_SWAPFILES_SHIFT is 5).
const TYPES: u8 = 32;

impl SwapLayout {
    /// Returns the meaning of swap type `kind` (0 to 31) on this kernel.
    pub fn meaning(self, kind: u8) -> SwapMeaning {
        let Some(options) = self.options else {
            return self.meaning_without_options(kind);
        };
        // Groups of types from the top down: `kind` is in the first that reaches it.
        let groups = [
            (self.read_errors(), SwapMeaning::ReadError),
            (self.markers(options.pte_marker), SwapMeaning::Marker),
            (self.devices(options.device_private), SwapMeaning::Device),
            (self.migrations(options.migration), SwapMeaning::Migration),
            (u8::from(options.memory_failure), SwapMeaning::Hwpoison),
        ];
        let mut bottom = TYPES;
        for (count, meaning) in groups {
            bottom -= count;
            if kind >= bottom {
                return meaning;
            }
        }
        SwapMeaning::Area
    }

    /// Returns what is true for all options: the fixed types at the top, and the types below the lowest possible pseudo
    /// type.
    fn meaning_without_options(self, kind: u8) -> SwapMeaning {
        let top = TYPES - self.read_errors();
        if kind >= top {
            return SwapMeaning::ReadError;
        }
        let certain_markers = self.markers(false);
        if kind >= top - certain_markers {
            return SwapMeaning::Marker;
        }
        let lowest = top - self.markers(true) - self.devices(true) - self.migrations(true) - 1;
        if kind >= lowest { SwapMeaning::Special } else { SwapMeaning::Area }
    }

    fn read_errors(self) -> u8 {
        u8::from(self.kernel >= (5, 19) && self.kernel < (6, 2))
    }
    fn markers(self, option: bool) -> u8 {
        u8::from(self.kernel >= (6, 2) || (self.kernel >= (5, 19) && option))
    }
    fn devices(self, option: bool) -> u8 {
        match (option, self.kernel) {
            (false, _) => 0,
            // Device-exclusive entries were a pair of types from 5.14 on and are a single type since 6.15.
            (true, kernel) if kernel >= (6, 15) => 3,
            (true, kernel) if kernel >= (5, 14) => 4,
            (true, _) => 2,
        }
    }
    fn migrations(self, option: bool) -> u8 {
        match (option, self.kernel) {
            (false, _) => 0,
            // Since 5.19 the third type is for read-exclusive entries, with the anon-exclusive flag.
            (true, kernel) if kernel >= (5, 19) => 3,
            (true, _) => 2,
        }
    }
}

/// The kernel configuration, as the text of its file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config(Vec<u8>);

impl Config {
    /// Wraps the text of the file; `None` if it has no option.
    pub fn new(text: Vec<u8>) -> Option<Self> {
        let is_one = text::lines(&text).any(|line| line.bytes.starts_with(b"CONFIG_"));
        is_one.then_some(Config(text))
    }

    /// Returns whether `option`, such as `CONFIG_MIGRATION`, is built in (`=y`).
    pub fn is_set(&self, option: &str) -> bool {
        text::lines(&self.0)
            .any(|line| line.bytes.strip_prefix(option.as_bytes()).map(<[u8]>::trim_ascii_end) == Some(b"=y"))
    }

    /// Returns whether the kernel counts the mappings of each page, as all did before Linux 6.15. Without
    /// CONFIG_PAGE_MAPCOUNT it counts those of a large folio only as a whole.
    pub fn counts_each_page(&self) -> bool {
        self.is_set("CONFIG_PAGE_MAPCOUNT")
    }

    /// The options that decide the layout of the swap types.
    pub fn swap_options(&self) -> SwapOptions {
        SwapOptions {
            memory_failure: self.is_set("CONFIG_MEMORY_FAILURE"),
            migration: self.is_set("CONFIG_MIGRATION"),
            device_private: self.is_set("CONFIG_DEVICE_PRIVATE"),
            pte_marker: self.is_set("CONFIG_PTE_MARKER"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(kernel: (u32, u32), on: &str) -> SwapLayout {
        let has = |letter| on.contains(letter);
        let options = SwapOptions {
            memory_failure: has('f'),
            migration: has('m'),
            device_private: has('d'),
            pte_marker: has('p'),
        };
        SwapLayout { options: Some(options), kernel }
    }

    /// One letter for each of the types 20 to 31.
    fn top(layout: SwapLayout) -> String {
        let letter = |kind| match layout.meaning(kind) {
            SwapMeaning::Area => 'a',
            SwapMeaning::Hwpoison => 'h',
            SwapMeaning::Migration => 'm',
            SwapMeaning::Device => 'd',
            SwapMeaning::Marker => 'p',
            SwapMeaning::ReadError => 'e',
            SwapMeaning::Special => '?',
        };
        (20..32).map(letter).collect()
    }

    #[test]
    fn pseudo_types_by_version_and_options() {
        for (kernel, options, expected) in [
            ((6, 12), "fmd", "aaahmmmddddp"),
            ((6, 18), "fmd", "aaaahmmmdddp"),
            ((6, 12), "fm", "aaaaaaahmmmp"),
            ((6, 18), "m", "aaaaaaaammmp"),
            ((6, 18), "", "aaaaaaaaaaap"),
            ((6, 1), "fmdp", "aahmmmddddpe"),
            ((6, 1), "fmd", "aaahmmmdddde"),
            ((5, 15), "fmd", "aaaaahmmdddd"),
            ((5, 10), "fmd", "aaaaaaahmmdd"),
        ] {
            assert_eq!(top(layout(kernel, options)), expected, "{kernel:?} {options}");
        }
    }

    #[test]
    fn without_the_configuration_only_what_is_certain() {
        for (kernel, expected) in
            [((6, 12), "aaa????????p"), ((6, 18), "aaaa???????p"), ((6, 1), "aa?????????e"), ((5, 10), "aaaaaaa?????")]
        {
            let layout = SwapLayout { options: None, kernel };
            assert_eq!(top(layout), expected, "{kernel:?}");
        }
    }

    #[test]
    fn rows_of_swaps() {
        let text = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/zram0                              partition\t1048572\t\t0\t\t-2\n\
            /var/swap\\040file                       file\t\t524284\t\t12\t\t-3\n";
        let areas = SwapAreas::parse(text).expect("two rows");
        assert_eq!(areas.0.len(), 2);
        assert_eq!(areas.0[0].size, 1_048_572 * 1024);
        assert_eq!(areas.0[1].name.as_bytes(), b"/var/swap file");
        assert_eq!(areas.0[1].kind, "file");
        assert_eq!(SwapAreas::parse(b"Filename\n/x file twelve").map_err(|bad| bad.line), Err(2));
    }

    #[test]
    fn what_a_zram_device_holds() {
        let text = b" 8388608  2097152  2359296        0  2359296      120        0        0        0\n";
        assert_eq!(Compressed::of_zram(text), Some(Compressed { bytes: 8 << 20, memory: 2_359_296 }));
        assert_eq!(Compressed::of_zram(b"8388608 2097152\n"), None);
        assert_eq!(Compressed::of_zram(b""), None);
        assert_eq!(
            (zram_number(b"/dev/zram12"), zram_number(b"/dev/zram"), zram_number(b"/dev/sda1")),
            (Some(12), None, None)
        );
    }

    #[test]
    fn a_slot_is_in_an_area_only_where_no_other_can_have_it() {
        const PAGE: u64 = 4096;
        let area = |name: &str, pages: u64| SwapArea {
            name: Name::from(name),
            kind: "file".to_owned(),
            size: pages * PAGE,
            used: 0,
        };
        let page = PageSize::from_bytes(PAGE).expect("a power of two");
        let areas = SwapAreas(vec![area("/a", 10), area("/b", 20), area("/c", 20)]);
        let name = |areas: &SwapAreas, kind, offset| {
            let area = areas.area(SwapEntry { kind, offset }, page);
            area.map(|area| area.name.to_string())
        };
        // Only the first row can have type 0.
        assert_eq!(name(&areas, 0, 5).as_deref(), Some("/a"));
        // Type 1: /b, or /a if type 0 was switched off. The size decides.
        assert_eq!(name(&areas, 1, 10), None);
        assert_eq!(name(&areas, 1, 11).as_deref(), Some("/b"));
        assert_eq!(name(&areas, 2, 11), None);
        // No area is so large.
        assert_eq!(name(&areas, 1, 21), None);
        assert_eq!(name(&areas, 1, u64::MAX), None);
        // The only one, whatever was switched off before.
        let only = SwapAreas(vec![area("/a", 10)]);
        assert_eq!(name(&only, 3, 1).as_deref(), Some("/a"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = SwapAreas::parse(&bytes);
        }
    }

    #[test]
    fn options_of_a_kernel() {
        let text = b"#\n# Linux/x86 6.12\n#\nCONFIG_MIGRATION=y\n# CONFIG_MEMORY_FAILURE is not set\nCONFIG_ZRAM=m\nCONFIG_HZ=250\nCONFIG_DEVICE_PRIVATE=y\n";
        let config = Config::new(text.to_vec()).expect("options");
        assert_eq!(
            config.swap_options(),
            SwapOptions { memory_failure: false, migration: true, device_private: true, pte_marker: false }
        );
        for absent in ["CONFIG_ZRAM", "CONFIG_HZ", "CONFIG_MIGRATIO", "CONFIG", "MIGRATION"] {
            assert!(!config.is_set(absent), "{absent}");
        }
        assert!(!config.counts_each_page());
        let exact = Config::new(b"# CONFIG_NO_PAGE_MAPCOUNT is not set\nCONFIG_PAGE_MAPCOUNT=y\n".to_vec());
        assert!(exact.expect("options").counts_each_page());
        let average = Config::new(b"CONFIG_NO_PAGE_MAPCOUNT=y\n# CONFIG_PAGE_MAPCOUNT is not set\n".to_vec());
        assert!(!average.expect("options").counts_each_page());
        assert_eq!(Config::new(b"# nothing\n".to_vec()), None);
        assert_eq!(Config::new(Vec::new()), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_config_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = Config::new(bytes).map(|config| config.swap_options());
        }
    }
}
