//! The one number that matters in pasted text of no known form, and what it counts: an address, an address in a file,
//! or a page frame.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

/// What a number in pasted text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lang) enum Shown {
    /// An address of the process.
    Address(u64),
    /// An address in a file, which perf, the sanitizers and coredumpctl show behind its name.
    InFile { module: String, address: u64 },
    /// The number of a page frame.
    Frame(u64),
    /// The frame in an entry of the processor's page table, in the format of x86.
    Entry(u64),
    /// A pointer of the kernel, which is no address here.
    Pointer,
}

/// What a number at a place is.
type Meaning = fn(u64) -> Shown;

/// Where the number stands: in the last group. The first row that matches counts.
const PLACES: &[(&str, Meaning)] = &[
    // BUG: Bad page map: the address is named, beside the entry.
    (r"\baddr:([0-9a-f]{8,16})\b", Shown::Address),
    // Memory failure: 0x1a4eac: recovery action for dirty LRU page: Recovered
    (r"Memory failure: 0x([0-9a-f]+)", Shown::Frame),
    // EDAC MC0: 1 CE … (channel:1 slot:0 page:0x1a4eac offset:0x0 grain:32)
    (r"\bpage:0x([0-9a-f]+) offset:", Shown::Frame),
    // BUG: Bad page state in process a pfn:1a4eac; dump_page()
    (r"\bpfn[:=] ?(?:0x)?([0-9a-f]+)", Shown::Frame),
    // page-types -p PID -L: page of the process, frame, flags; with -l also a number of pages. Its flags have a place
    // each.
    (r"^(?:[0-9a-f]{9,13}[ \t]+)([0-9a-f]{1,8})[ \t]+(?:[0-9a-f]+[ \t]+)?[A-Za-z0-9_]{30,}", Shown::Frame),
    (r"^([0-9a-f]{1,8})[ \t]+[A-Za-z_][A-Za-z0-9_]{29,}", Shown::Frame),
    // BUG: Bad page map in process a pte:8000000123456867 pmd:…
    (r"\bpte:([0-9a-f]{8,16})\b", |entry| Shown::Entry((entry & 0x000f_ffff_ffff_f000) >> 12)),
    // page:00000000c6ca4b3e refcount:1 mapcount:0 mapping:0000000000000000
    (r"\bpage:([0-9a-f]{8,16})\b", |_| Shown::Pointer),
];

/// `libc.so.6+0x85f14`, `(cont+0x11200)`, `(libc.so.6 + 0x85f14)`, `libc.so.6(+0x85f14)`, `cont[0x11200]`
const IN_FILE: &[&str] = &[
    r"(?:^|[/ \t(])([\w.+-]+\.so[\w.]*) ?\+ ?0x([0-9a-f]+)",
    r"(?:^|[ \t])\((?:[^() \t]*/)?([^()/ \t]+?) ?\+ ?0x([0-9a-f]+)\)",
    r"([^()/ \t]+)\(\+0x([0-9a-f]+)\)",
    r"/([^()/ \t]+)\+0x([0-9a-f]+)",
    r"(?:^|[/ \t(])([A-Za-z_][\w.+-]*)\[0x([0-9a-f]+)\]",
];

/// Numbers with digits of addresses, which are none: kernel pointers, which are hashed, and words of the kernel.
const NO_ADDRESS: &str = r"\b(?:page|pte|pmd|pud|p4d|pgd|head|mapping|anon_vma|index|pgoff|flags|vm_flags|private|raw|memcg|cookie|error_code|cs|cr2|cr3):(?:0x)?[0-9a-f]{8,16}\b";

static PLACE_REGEXES: LazyLock<Vec<(Regex, Meaning)>> = LazyLock::new(|| {
    let compiled = PLACES.iter().filter_map(|(place, meaning)| Some((Regex::new(place).ok()?, *meaning)));
    compiled.collect()
});
static FILE_REGEXES: LazyLock<Vec<Regex>> =
    LazyLock::new(|| IN_FILE.iter().filter_map(|form| Regex::new(form).ok()).collect());
static NO_ADDRESS_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NO_ADDRESS).ok());

/// Numbers are looked for within so many bytes, which bounds the time that a line takes.
const LONGEST: usize = 4096;

/// The one number in a text that says what its author looks at.
pub(in crate::lang) fn only_number(text: &str) -> Option<Shown> {
    let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or("").trim_start();
    let number = |captures: &Captures<'_>, group| {
        let digits = captures.get(group)?.as_str();
        u64::from_str_radix(digits, 16).ok()
    };
    let placed = PLACE_REGEXES.iter().find_map(|(regex, meaning)| Some(meaning(number(&regex.captures(text)?, 1)?)));
    if placed.is_some() {
        return placed;
    }
    let in_file = FILE_REGEXES.iter().find_map(|regex| {
        let captures = regex.captures(text)?;
        let module = captures.get(1)?.as_str().to_owned();
        Some((captures.get(0)?.range(), Shown::InFile { module, address: number(&captures, 2)? }))
    });
    let rest = match &in_file {
        Some((at, _)) => format!("{} {}", text.get(..at.start).unwrap_or(""), text.get(at.end..).unwrap_or("")),
        None => text.to_owned(),
    };
    only_address(&rest).map(Shown::Address).or(in_file.map(|(_, shown)| shown))
}

/// The address in a text that contains exactly one: with `0x`, or with as many digits as only addresses have.
fn only_address(text: &str) -> Option<u64> {
    let text = match &*NO_ADDRESS_REGEX {
        Some(regex) => regex.replace_all(text, " "),
        None => text.into(),
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let addresses = words.filter_map(|word| {
        let address = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None if matches!(word.len(), 12 | 16) => u64::from_str_radix(word, 16).ok()?,
            None => return None,
        };
        // Nothing is mapped below: smaller numbers are sizes, offsets and flags.
        (address >= 0x1_0000).then_some(address)
    });
    let mut found: Vec<u64> = addresses.collect();
    found.dedup();
    match found[..] {
        [address] => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_a_regular_expression() {
        assert_eq!((PLACE_REGEXES.len(), FILE_REGEXES.len()), (PLACES.len(), IN_FILE.len()));
        assert!(NO_ADDRESS_REGEX.is_some());
    }
}
