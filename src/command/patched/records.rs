//! The records of `patched`, and how they are written.

use crate::kernel::VirtualAddress;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::block::{of_region, symbol};
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{count, counted, size};
use crate::report::record::record;
use crate::report::{Declared, Hex, HexString, RegionBrief, Shape, SymbolBrief, Why};

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[Patch::SHAPE, PatchedSummary::SHAPE];

record! {
    /// A row of `patched`.
    pub struct Patch as "patch" {
        /// Address of the first byte.
        address: VirtualAddress,
        /// Number of bytes.
        length: u64,
        /// The function there.
        symbol: Option<SymbolBrief>,
        /// The bytes in memory; `null` where they are those of the file.
        memory: Option<HexString>,
        /// The bytes in the file; `null` where they are those in memory.
        file: Option<HexString>,
        /// Their offset in the file.
        file_offset: Hex,
        /// The name of the breakpoint instruction, if the bytes in memory are nothing else.
        breakpoint: Option<&'static str>,
        /// Whether other memory is mapped in the place of the file.
        replaced: bool,
        /// The region.
        region: RegionBrief,
    }

    /// The totals of `patched`.
    #[derive(Default)]
    pub struct PatchedSummary as "patched-summary" with why {
        /// Pages that are private copies of pages of files.
        private_copies: u64,
        /// Private copies and replaced pages that are the same as in the file.
        equal: u64,
        /// Pages that differ from the file only outside of the range.
        outside: u64,
        /// Number of stretches of bytes that differ.
        stretches: u64,
        /// Number of bytes that differ, in whole instructions on machines with one instruction size.
        bytes: u64,
        /// Number of stretches that are breakpoint instructions.
        breakpoints: u64,
        /// Pages of code in whose place other memory is mapped.
        replaced: u64,
        /// Pages that are or may be private copies or replaced, and could not be compared.
        uncompared: u64,
        /// Whether Ctrl-C ended it before the end.
        cut_short: bool,
        /// Why pages could not be compared.
        [flat] why: Why,
    }
}

impl Record for Patch {
    fn write(&self, text: &mut Text) {
        text.line(patch, self);
    }
}

/// The most bytes of a stretch that are shown.
const MOST_PATCHED: usize = 16;

/// `0x55… <work+19> int3 (cc, in the file c7) a r-xp`
fn patch(lines: &mut Lines, patch: &Patch) {
    let line = lines.line();
    line.indent(4).push(Role::Address, patch.address);
    if let Some(named) = &patch.symbol {
        line.plain(" ");
        symbol(line, named);
    }
    let digits = |bytes: &HexString| {
        let shown = bytes.0.iter().take(MOST_PATCHED);
        let mut text: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
        if bytes.0.len() > MOST_PATCHED {
            text.push(format!("\u{2026} ({})", size(patch.length)));
        }
        text.join(" ")
    };
    match (&patch.memory, &patch.file) {
        (Some(memory), Some(file)) => {
            line.plain("  ");
            if let Some(name) = patch.breakpoint {
                line.push(Role::Warn, format!("{name}  "));
            }
            line.push(Role::Raw, digits(memory));
            line.push(Role::Dim, format!("  in the file: {}", digits(file)));
        }
        _ => {
            let what =
                if patch.replaced { "not mapped from the file, but the same" } else { "private, the same as the file" };
            let text = format!("  {} {what}", size(patch.length));
            line.push(Role::Note, text);
        }
    }
    of_region(line, &patch.region);
}

impl Record for PatchedSummary {
    fn write(&self, text: &mut Text) {
        text.line(patched_summary, self);
    }
}

/// `3 code pages are private copies; 2 stretches differ from the file (2 B), 1 breakpoint; 1 of them is the same …`
fn patched_summary(lines: &mut Lines, summary: &PatchedSummary) {
    let line = lines.line();
    line.indent(2);
    if summary.private_copies == 0 && summary.replaced > 0 {
        line.push(Role::Warn, replaced(summary.replaced));
    } else if summary.private_copies == 0 {
        let known = if summary.uncompared == 0 { "" } else { "known to be " };
        line.plain(format!("no code page is {known}a private copy"));
    } else {
        let copies = match summary.private_copies {
            1 => "1 code page is a private copy".to_owned(),
            pages => format!("{} code pages are private copies", count(pages)),
        };
        line.plain(copies);
    }
    if summary.private_copies > 0 && summary.replaced > 0 {
        line.word("; ", Role::Warn, replaced(summary.replaced));
    }
    if summary.stretches > 0 {
        let stretches = counted(summary.stretches, "stretch");
        let differ = if summary.stretches == 1 { "differs" } else { "differ" };
        let text = format!("{stretches} {differ} from the file ({})", size(summary.bytes));
        line.word("; ", Role::Warn, text);
        if summary.breakpoints > 0 {
            line.word(", ", Role::Warn, counted(summary.breakpoints, "breakpoint"));
        }
    }
    if summary.outside > 0 {
        let text = match (summary.stretches, summary.uncompared) {
            (0, 0) => "nothing in the range differs from the file".to_owned(),
            _ if summary.outside == 1 => "1 page differs only outside the range".to_owned(),
            _ => format!("{} pages differ only outside the range", count(summary.outside)),
        };
        line.word("; ", Role::Note, text);
    }
    if summary.equal > 0 {
        let text = match (summary.private_copies + summary.replaced, summary.equal) {
            (1, 1) => "it is the same as the file".to_owned(),
            (_, 1) => "1 of them is the same as the file".to_owned(),
            (_, equal) => format!("{} of them are the same as the file", count(equal)),
        };
        line.word("; ", Role::Note, text);
    }
    if summary.uncompared > 0 {
        let why = summary.why.of("uncompared");
        let why = why.map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("{} not compared{why}", counted(summary.uncompared, "page"));
        line.word("; ", Role::Warn, text);
    }
    if summary.cut_short {
        line.word("; ", Role::Note, "stopped early");
    }
}

/// How many pages of code are replaced.
fn replaced(pages: u64) -> String {
    match pages {
        1 => "1 code page is not mapped from its file".to_owned(),
        pages => format!("{} code pages are not mapped from their file", count(pages)),
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::memory::{brief, libc};
    use crate::report::Reason;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![
            Box::new(patch()),
            Box::new(patch_of_many()),
            Box::new(patch_taken_back()),
            Box::new(same_as_replaced()),
            Box::new(patched_summary()),
            Box::new(PatchedSummary { replaced: 512, equal: 512, ..PatchedSummary::default() }),
            Box::new(PatchedSummary { private_copies: 1, outside: 1, ..PatchedSummary::default() }),
            Box::new(PatchedSummary::default()),
        ]
    }

    pub fn patch() -> Patch {
        Patch {
            address: VirtualAddress::new(0x7fff_f7de_80c4),
            length: 1,
            symbol: Some(brief("malloc", 20)),
            memory: Some(HexString(vec![0xcc])),
            file: Some(HexString(vec![0x55])),
            file_offset: Hex(0x280c4),
            breakpoint: Some("int3"),
            replaced: false,
            region: libc(),
        }
    }

    pub fn patch_of_many() -> Patch {
        Patch {
            length: 20,
            memory: Some(HexString(vec![0x90; 20])),
            file: Some(HexString((0..20).collect())),
            breakpoint: None,
            ..patch()
        }
    }

    pub fn patch_taken_back() -> Patch {
        Patch {
            address: VirtualAddress::new(0x7fff_f7de_8000),
            length: 8192,
            symbol: None,
            memory: None,
            file: None,
            file_offset: Hex(0x28000),
            breakpoint: None,
            ..patch()
        }
    }

    pub fn same_as_replaced() -> Patch {
        Patch { replaced: true, ..patch_taken_back() }
    }

    pub fn patched_summary() -> PatchedSummary {
        let mut why = Why::default();
        let reason = Reason::NotInFile("swapped pages are not read".into());
        why.note("uncompared", &reason);
        PatchedSummary {
            private_copies: 5,
            replaced: 1,
            equal: 2,
            outside: 1,
            stretches: 2,
            bytes: 21,
            breakpoints: 1,
            uncompared: 1,
            cut_short: true,
            why,
        }
    }
}
