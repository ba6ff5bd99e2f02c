//! `/proc/PID/smaps`: the kernel's counts for each region.

use super::text::{self, BadLine, TextLine};
use super::{AddressRange, VirtualAddress, maps};

/// The fields of one region in smaps.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Smaps {
    /// The addresses of the region.
    pub range: AddressRange,
    /// The fields in the order of the file: name as the kernel spells it, bytes. Fields without a unit are left out.
    pub fields: Vec<(String, u64)>,
    /// The two-letter codes of `VmFlags`.
    pub vm_flags: Vec<String>,
    /// `THPeligible`: whether the settings let the kernel put transparent huge pages there; since Linux 5.0. From 6.8
    /// on these may be smaller than what one PMD maps, if only those are allowed.
    pub may_be_huge: Option<bool>,
    /// `ProtectionKey`: on machines with protection keys for memory, since Linux 4.9.
    pub protection_key: Option<u64>,
}

impl Smaps {
    /// Makes the record of a region without any fields.
    pub const fn of(range: AddressRange) -> Self {
        Smaps { range, fields: Vec::new(), vm_flags: Vec::new(), may_be_huge: None, protection_key: None }
    }

    fn add(&mut self, line: &TextLine<'_>) -> Result<(), BadLine> {
        let mut words = line.fields();
        match words.next().and_then(|first| first.strip_suffix(b":")).unwrap_or_default() {
            b"VmFlags" => self.vm_flags = words.map(text::lossy).collect(),
            b"THPeligible" => {
                self.may_be_huge = words.next().and_then(text::decimal).map(|number: u64| number > 0);
            }
            b"ProtectionKey" => self.protection_key = words.next().and_then(text::decimal),
            name => {
                if let (Some(number), Some(b"kB")) = (words.next(), words.next()) {
                    let kibibytes: u64 = text::decimal(number).ok_or_else(|| line.bad("smaps"))?;
                    self.fields.push((text::lossy(name), kibibytes.saturating_mul(1024)));
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes of the field with this name.
    pub fn field(&self, name: &str) -> Option<u64> {
        self.fields.iter().find(|(field, _)| field == name).map(|&(_, bytes)| bytes)
    }

    /// Returns the resident bytes that no other process maps. `Rss` and `Pss` do not include the hugetlb pool, so this
    /// does not either.
    pub fn uss(&self) -> u64 {
        self.sum(["Private_Clean", "Private_Dirty"])
    }

    /// Returns the resident bytes that other processes map as well, without the hugetlb pool.
    pub fn shared(&self) -> u64 {
        self.sum(["Shared_Clean", "Shared_Dirty"])
    }

    /// Returns the bytes of the hugetlb pool.
    pub(crate) fn hugetlb(&self) -> u64 {
        self.sum(["Shared_Hugetlb", "Private_Hugetlb"])
    }

    fn sum(&self, fields: [&str; 2]) -> u64 {
        fields.iter().filter_map(|field| self.field(field)).fold(0, u64::saturating_add)
    }

    /// Returns whether `VmFlags` has this two-letter code, which must be one that [decides](VmFlag::decides) an answer.
    pub fn has_flag(&self, code: &str) -> bool {
        debug_assert!(VM_FLAGS.iter().any(|flag| flag.code == code && flag.decides.is_some()), "{code}");
        self.vm_flags.iter().any(|flag| flag == code)
    }

    /// Returns the flags that pmdb knows.
    pub fn flags(&self) -> impl Iterator<Item = &'static VmFlag> {
        self.vm_flags.iter().filter_map(|code| VM_FLAGS.iter().find(|flag| flag.code == code))
    }

    /// Returns whether the region that contains `address` has this code; `None` if no region of `all` contains it.
    pub fn flag_at(all: &[Smaps], address: VirtualAddress, code: &str) -> Option<bool> {
        Some(Smaps::at(all, address)?.has_flag(code))
    }

    /// Returns the fields of the region `range`. `all` is in address order.
    pub fn of_region(all: &[Smaps], range: AddressRange) -> Option<&Smaps> {
        Smaps::at(all, range.start()).filter(|smaps| smaps.range == range)
    }

    /// Returns the fields of the region that contains `address`. `all` is in address order.
    pub fn at(all: &[Smaps], address: VirtualAddress) -> Option<&Smaps> {
        let after = all.partition_point(|one| one.range.start() <= address);
        let last = all.get(after.checked_sub(1)?)?;
        last.range.contains(address).then_some(last)
    }
}

/// Decodes the regions of the file one by one. A truncated file gives the regions before its end.
pub fn regions(bytes: &[u8]) -> impl Iterator<Item = Result<Smaps, BadLine>> {
    let mut lines = text::lines(bytes).peekable();
    std::iter::from_fn(move || {
        let header = lines.next()?;
        let region = maps::region(header.bytes).ok_or_else(|| header.bad("smaps"));
        Some(region.and_then(|region| {
            let mut smaps = Smaps::of(region.range);
            while let Some(line) = lines.next_if(is_field) {
                smaps.add(&line)?;
            }
            Ok(smaps)
        }))
    })
}

fn is_field(line: &TextLine<'_>) -> bool {
    line.fields().next().is_some_and(|first| first.ends_with(b":"))
}

/// A two-letter code of `VmFlags`.
#[derive(Clone, Copy, Debug)]
pub struct VmFlag {
    /// The code as smaps prints it.
    pub code: &'static str,
    /// The meaning of the code.
    pub meaning: &'static str,
    /// The answer that depends on the code; `None` if other data already decide it, or if the code is not about pages.
    pub decides: Option<&'static str>,
    /// Whether madvise sets the flag; drivers also set some of these.
    pub is_advice: bool,
}

/// The codes up to Linux 7.2 (show_smap_vma_flags in fs/proc/task_mmu.c).
pub const VM_FLAGS: [VmFlag; 39] = {
    const fn flag(code: &'static str, meaning: &'static str) -> VmFlag {
        VmFlag { code, meaning, decides: None, is_advice: false }
    }
    const fn deciding(code: &'static str, meaning: &'static str, what: &'static str) -> VmFlag {
        VmFlag { decides: Some(what), ..flag(code, meaning) }
    }
    const fn advice(flag: VmFlag) -> VmFlag {
        VmFlag { is_advice: true, ..flag }
    }
    [
        flag("rd", "readable"),
        flag("wr", "writable"),
        flag("ex", "executable"),
        flag("sh", "shared"),
        flag("mr", "may become readable"),
        flag("mw", "may become writable"),
        flag("me", "may become executable"),
        flag("ms", "may become shared"),
        deciding("gd", "grows down, like a stack", "whether an access below the region makes it grow"),
        deciding(
            "pf",
            "page frames without struct page (VM_PFNMAP): the page map hides them",
            "whether its empty entries are pages without struct page",
        ),
        deciding(
            "lo",
            "locked: its pages stay resident",
            "the bytes that this process has locked, and not another mapping of the frame",
        ),
        deciding("io", "memory-mapped I/O", "whether huge pages may come"),
        advice(flag("sr", "sequential reads expected (MADV_SEQUENTIAL)")),
        advice(flag("rr", "random reads expected (MADV_RANDOM)")),
        advice(flag("dc", "not copied by fork (MADV_DONTFORK, drivers)")),
        deciding("de", "cannot be grown by mremap", "whether huge pages may come"),
        flag("ac", "counts against the commit limit"),
        deciding("nr", "no swap space was reserved", "whether the hugetlb pool may have reserved its pages"),
        flag("ht", "hugetlb pages"),
        flag("sf", "synchronous page faults (DAX)"),
        flag("ar", "set by the architecture"),
        advice(deciding(
            "wf",
            "a child begins with nothing here (MADV_WIPEONFORK)",
            "that different frames after a fork are no copies",
        )),
        advice(deciding(
            "dd",
            "left out of core dumps (MADV_DONTDUMP, drivers)",
            "the regions that a core file leaves out",
        )),
        deciding("sd", "soft-dirty", "whether soft-dirty bits were ever cleared"),
        deciding("mm", "device pages and normal ones mixed (VM_MIXEDMAP)", "whether huge pages may come"),
        advice(deciding("hg", "huge pages requested (MADV_HUGEPAGE)", "whether huge pages may come")),
        advice(deciding("nh", "huge pages refused (MADV_NOHUGEPAGE)", "whether huge pages may come")),
        advice(deciding(
            "mg",
            "samepage merging allowed (MADV_MERGEABLE, or for the process)",
            "whether its private pages may be merged ones",
        )),
        flag("bt", "arm64: branch targets are guarded"),
        flag("mt", "arm64: memory tagging"),
        deciding(
            "um",
            "userfaultfd reports missing pages",
            "whether an access to a missing page waits for a handler, and whether huge pages may come",
        ),
        deciding("uw", "userfaultfd reports writes", "whether huge pages may come"),
        deciding(
            "ui",
            "userfaultfd reports minor faults",
            "whether an access to a page that the object has waits for a handler",
        ),
        flag("ss", "shadow stack, or arm64 guarded control stack"),
        flag("sl", "sealed: cannot be unmapped or changed"),
        flag("lf", "locked as it is touched (MLOCK_ONFAULT)"),
        deciding(
            "dp",
            "droppable: the kernel may discard its pages (MAP_DROPPABLE)",
            "that the kernel may discard its pages, whatever was written there",
        ),
        advice(flag("gu", "may have guard pages (MADV_GUARD_INSTALL)")),
        flag("dw", "its file may not be written to (before Linux 5.15)"),
    ]
};

/// Returns the meaning of a code of `VmFlags`.
pub fn vm_flag_meaning(code: &str) -> &'static str {
    VM_FLAGS.iter().find(|flag| flag.code == code).map_or("unknown to pmdb", |flag| flag.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Vec<Smaps>, BadLine> {
        regions(bytes).collect()
    }

    const REAL: &str = "\
55d2c0a4b000-55d2c0a4d000 r--p 00000000 fe:00 1310803                    /usr/bin/a b: 1 kB
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   8 kB
Pss_Dirty:             0 kB
THPeligible:           0
ProtectionKey:         3
VmFlags: rd mr mw me sd
7ffe1000-7ffe2000 rw-p 00000000 00:00 0 
Rss:                   4 kB
VmFlags: rd wr gd ac zz
";

    #[test]
    fn fields_and_flags_belong_to_their_region() {
        let regions = parse(REAL.as_bytes()).unwrap();
        assert_eq!(regions.len(), 2);
        assert_eq!(regions[0].field("Rss"), Some(8192));
        assert_eq!(regions[0].field("THPeligible"), None);
        assert_eq!(regions[0].vm_flags, ["rd", "mr", "mw", "me", "sd"]);
        assert_eq!([regions[0].protection_key, regions[1].protection_key], [Some(3), None]);
        assert_eq!(regions[1].range.len(), 4096);
        assert_eq!(regions[1].field("Rss"), Some(4096));
        assert_eq!(vm_flag_meaning(&regions[1].vm_flags[4]), "unknown to pmdb");
    }

    #[test]
    fn a_file_that_is_not_needed_whole_may_be_truncated() {
        let cut = REAL.find("7ffe1000").unwrap() + 11;
        let first = regions(&REAL.as_bytes()[..cut]).next();
        assert_eq!(first.unwrap().unwrap().vm_flags.len(), 5);
        assert!(parse(&REAL.as_bytes()[..cut]).is_err());
    }

    #[test]
    fn a_field_before_any_region_is_an_error() {
        assert_eq!(parse(b"Rss: 4 kB\n").unwrap_err().line, 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            _ = parse(&bytes);
        }
        #[test]
        fn a_damaged_file_is_decoded_or_refused(at in 0..REAL.len(), byte in any::<u8>()) {
            let mut bytes = REAL.as_bytes().to_vec();
            bytes[at] = byte;
            _ = parse(&bytes);
        }
    }
}
