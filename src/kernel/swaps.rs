//! Swap areas (`/proc/swaps`) and the kernel's pseudo swap types.

use super::Name;
use super::text::{self, BadLine};

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
    /// Bytes.
    pub size: u64,
}

impl SwapAreas {
    /// Decodes `/proc/swaps`: a heading, then a row for each area in use.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let rows = text::lines(bytes).skip(1).map(|line| {
            let mut fields = line.fields();
            let mut next = || fields.next().ok_or_else(|| line.bad("swaps"));
            let name = Name::new(text::unescape_octal(next()?));
            let kind = String::from_utf8_lossy(next()?).into_owned();
            let size = text::decimal(next()?)
                .and_then(|kib: u64| kib.checked_mul(1024))
                .ok_or_else(|| line.bad("swaps"))?;
            Ok(SwapArea { name, kind, size })
        });
        Ok(SwapAreas(rows.collect::<Result<_, _>>()?))
    }

    /// The area of swap type `kind`, going by the order of the rows. The kernel keeps the number of an area that was
    /// switched off until the next one takes it, so after a `swapoff` a row may stand for a later number.
    pub fn area(&self, kind: u8) -> Option<&SwapArea> {
        self.0.get(usize::from(kind))
    }
}

/// How a kernel lays out the swap types above the real areas (include/linux/swap.h): from the top of the 32
/// types down, by its version and its configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapLayout {
    /// The options that decide; `None` when the configuration cannot be read.
    pub options: Option<SwapOptions>,
    /// The first two numbers of the kernel release.
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
    /// CONFIG_PTE_MARKER (only Linux 5.19 to 6.1 ask for it).
    pub pte_marker: bool,
}

/// What a non-present entry really is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapMeaning {
    /// A slot of the area with that number.
    Area,
    /// Failed memory; the offset is a frame number.
    Hwpoison,
    /// In migration; the offset is a frame number.
    Migration,
    /// Device-private or device-exclusive memory.
    Device,
    /// A PTE marker; the offset is a set of bits: 1 uffd-wp, 2 poisoned, 4 guard.
    Marker,
    /// Reading it back from swap failed (a type of its own from Linux 5.19 to 6.1): any access is SIGBUS.
    ReadError,
    /// One of hwpoison, migration, device (5.19 to 6.1: or marker): which, cannot be told without the kernel's configuration.
    Special,
}

/// The swap types that there are (MAX_SWAPFILES_SHIFT is 5).
const TYPES: u8 = 32;

impl SwapLayout {
    /// What swap type `kind` (0 to 31) means on this kernel.
    pub fn meaning(self, kind: u8) -> SwapMeaning {
        let Some(options) = self.options else {
            return self.meaning_without_options(kind);
        };
        // From the top down; the first group that `kind` falls into.
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

    /// Only what holds whatever the options: the fixed types at the top, and those below the lowest possible pseudo type.
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
        if kind >= lowest {
            SwapMeaning::Special
        } else {
            SwapMeaning::Area
        }
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
            // Device-exclusive entries came in 5.14 as a pair and became a single type in 6.15.
            (true, kernel) if kernel >= (6, 15) => 3,
            (true, kernel) if kernel >= (5, 14) => 4,
            (true, _) => 2,
        }
    }
    fn migrations(self, option: bool) -> u8 {
        match (option, self.kernel) {
            (false, _) => 0,
            // The third, read-exclusive, came with the anon-exclusive flag in 5.19.
            (true, kernel) if kernel >= (5, 19) => 3,
            (true, _) => 2,
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
        SwapLayout {
            options: Some(options),
            kernel,
        }
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
            assert_eq!(
                top(layout(kernel, options)),
                expected,
                "{kernel:?} {options}"
            );
        }
    }

    #[test]
    fn without_the_configuration_only_what_is_certain() {
        for (kernel, expected) in [
            ((6, 12), "aaa????????p"),
            ((6, 18), "aaaa???????p"),
            ((6, 1), "aa?????????e"),
            ((5, 10), "aaaaaaa?????"),
        ] {
            let layout = SwapLayout {
                options: None,
                kernel,
            };
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
        assert_eq!(areas.area(0).map(|a| a.size), Some(1_048_572 * 1024));
        assert_eq!(
            areas.area(1).map(|a| a.name.as_bytes()),
            Some(&b"/var/swap file"[..])
        );
        assert_eq!(areas.area(1).map(|a| &*a.kind), Some("file"));
        assert!(areas.area(2).is_none());
        assert_eq!(
            SwapAreas::parse(b"Filename\n/x file twelve").map_err(|bad| bad.line),
            Err(2)
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = SwapAreas::parse(&bytes);
        }
    }
}
