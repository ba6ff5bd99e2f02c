//! `/proc/PID/smaps`: what the kernel adds up for each region.

use super::Region;
use super::maps;
use super::text::{self, BadLine};

/// One region and the kernel's account of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionAccount {
    /// As a line of `maps` says it.
    pub region: Region,
    /// The amounts in the order of the file: name as the kernel spells it, bytes.
    pub amounts: Vec<(String, u64)>,
    /// What is no amount of memory: `THPeligible`, `ProtectionKey`.
    pub numbers: Vec<(String, u64)>,
    /// The two-letter codes of VmFlags.
    pub flags: Vec<String>,
}

impl RegionAccount {
    /// The amount of that name, in bytes.
    pub fn amount(&self, name: &str) -> Option<u64> {
        let mut amounts = self.amounts.iter();
        amounts
            .find(|(one, _)| one == name)
            .map(|(_, bytes)| *bytes)
    }
    /// Whether VmFlags has that code.
    pub fn has_flag(&self, code: &str) -> bool {
        self.flags.iter().any(|flag| flag == code)
    }
}

/// Decodes the file. Fields that are not known here are kept; regions may overlap where the target changed meanwhile.
pub fn parse(bytes: &[u8]) -> Result<Vec<RegionAccount>, BadLine> {
    let mut accounts: Vec<RegionAccount> = Vec::new();
    for line in text::lines(bytes) {
        // A region begins with its addresses; a field with its name and a colon.
        if let Some(region) = maps::region(line.bytes) {
            accounts.push(RegionAccount {
                region,
                amounts: Vec::new(),
                numbers: Vec::new(),
                flags: Vec::new(),
            });
            continue;
        }
        let bad = || line.bad("smaps");
        let account = accounts.last_mut().ok_or_else(bad)?;
        let (key, value) = text::split_once(line.bytes, b':').ok_or_else(bad)?;
        let words: Vec<&[u8]> = text::fields(value).collect();
        let key = String::from_utf8_lossy(key).into_owned();
        match words.as_slice() {
            codes if key == "VmFlags" => {
                let codes = codes
                    .iter()
                    .map(|code| String::from_utf8_lossy(code).into_owned());
                account.flags.extend(codes);
            }
            [number, b"kB"] => {
                let bytes = text::decimal(number).and_then(|kib: u64| kib.checked_mul(1024));
                account.amounts.push((key, bytes.ok_or_else(bad)?));
            }
            [number] => account
                .numbers
                .push((key, text::decimal(number).ok_or_else(bad)?)),
            _ => return Err(bad()),
        }
    }
    Ok(accounts)
}

/// What a code of VmFlags means, on a kernel whose first two numbers are `kernel`.
pub fn flag_meaning(code: &str, kernel: (u32, u32)) -> &'static str {
    match code {
        "rd" => "readable",
        "wr" => "writable",
        "ex" => "executable",
        "sh" => "shared",
        "mr" => "may be made readable",
        "mw" => "may be made writable",
        "me" => "may be made executable",
        "ms" => "may be shared",
        "gd" => "grows downwards, as a stack does",
        "pf" => "raw frames of a device, hidden from the page map",
        // The letters were used again: until 5.15 for a flag of mmap that had no effect any more.
        "gu" => "may hold guard pages",
        "dw" if kernel < (5, 15) => "writes to the file are denied",
        "lo" => "locked into memory",
        "io" => "memory of a device",
        "sr" => "read in order: readahead is large",
        "rr" => "read at random: no readahead",
        "dc" => "not copied by fork",
        "de" => "cannot be enlarged by mremap",
        "ac" => "counted as committed memory",
        "nr" => "no swap space is set aside for it",
        "ht" => "hugetlb pages",
        "sf" => "page faults are synchronous (DAX)",
        "ar" => "flag of the architecture",
        "wf" => "wiped in the child of a fork",
        "dd" => "left out of core dumps",
        "bt" => "guarded branch targets (arm64)",
        "mt" => "memory tags are on (arm64)",
        "sd" => "soft-dirty as a whole",
        "mm" => "frames of a device and pages mixed",
        "hg" => "huge pages are wanted (madvise)",
        "nh" => "huge pages are not wanted (madvise)",
        "mg" => "may be merged by samepage merging",
        "um" => "userfaultfd catches missing pages",
        "uw" => "userfaultfd catches writes",
        "ui" => "userfaultfd catches minor faults",
        "ss" => "shadow stack",
        "sl" => "sealed against changes (mseal)",
        "dp" => "may be dropped instead of swapped",
        "lf" => "pages are locked when they are faulted in",
        _ => "not known to this version of pmdb",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"5555a000-5555b000 rw-p 00000000 fe:01 17                 /tmp/Rss: 4 kB\n\
        Size:                  4 kB\nKernelPageSize:        4 kB\nRss:                  12 kB\nPss_Dirty:             2 kB\n\
        SomethingNew:          8 kB\nTHPeligible:    1\nProtectionKey:         0\nVmFlags: rd wr mr mw me ac sd \n\
        ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\nSize:                  4 kB\nVmFlags: ex\n";

    #[test]
    fn regions_and_their_fields() {
        let accounts = parse(TEXT).expect("two regions");
        let [first, second] = accounts.as_slice() else {
            panic!("{accounts:?}");
        };
        assert_eq!(first.region.name.as_bytes(), b"/tmp/Rss: 4 kB");
        assert_eq!(first.amount("Rss"), Some(12 << 10));
        assert_eq!(first.amount("SomethingNew"), Some(8 << 10));
        assert_eq!(first.amount("THPeligible"), None);
        assert_eq!(
            first.numbers,
            [
                ("THPeligible".to_owned(), 1),
                ("ProtectionKey".to_owned(), 0)
            ]
        );
        assert_eq!(first.flags, ["rd", "wr", "mr", "mw", "me", "ac", "sd"]);
        assert!(first.has_flag("sd") && !first.has_flag("pf"));
        assert_eq!(
            (second.region.name.as_bytes(), &*second.flags),
            (&b"[vsyscall]"[..], &["ex".to_owned()][..])
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, number) in [
            (&b"Rss: 4 kB\n"[..], 1),
            (b"1000-2000 rw-p 0 0:0 0\nRss: four kB\n", 2),
            (b"1000-2000 rw-p 0 0:0 0\nnothing\n", 2),
            (b"1000-2000 rw-p 0 0:0 0\nRss: 1 2 3\n", 2),
        ] {
            assert_eq!(parse(text).map_err(|bad| bad.line), Err(number));
        }
    }

    #[test]
    fn codes_in_words() {
        assert_eq!(flag_meaning("dw", (5, 10)), "writes to the file are denied");
        assert!(flag_meaning("dw", (6, 1)).starts_with("not known"));
        assert!(flag_meaning("??", (6, 1)).starts_with("not known"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = parse(&bytes);
        }
    }
}
