//! Unit tests: lines as people write them, on a fake target.

mod any;
mod casts;
mod facts;
mod filters;
mod language;
mod memory;
mod names;
mod ranges;
mod values;

use super::{Error, Remark, Scope, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::{HistoryReference, Range, Spanned};
use crate::process::Target;
use crate::process::fake::{Fake, WatchedAnswers};
use crate::symbol::Symbols;
use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, LOCAL, OBJECT, entry};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The scope of an expression.
#[derive(Default)]
struct World {
    target: Option<Target>,
    symbols: Symbols,
    variables: BTreeMap<String, Value>,
    values: Vec<Value>,
    last_address: Option<VirtualAddress>,
    watched: Arc<WatchedAnswers>,
    notes: RefCell<Vec<String>>,
}

impl Scope for World {
    fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }
    fn page_size(&self) -> PageSize {
        PageSize::FOUR_KIB
    }
    fn symbols(&self) -> &Symbols {
        &self.symbols
    }
    fn variable(&self, name: &str) -> Option<Value> {
        self.variables.get(name).cloned()
    }
    fn history(&self, reference: HistoryReference) -> Result<Value, String> {
        let value = match reference {
            HistoryReference::Last => self.values.last(),
            _ => None,
        };
        value.cloned().ok_or_else(|| "no such value".to_owned())
    }
    fn last_address(&self) -> Option<VirtualAddress> {
        self.last_address
    }
    fn remark(&self, remark: Remark) {
        if let Remark::Note(message) = remark {
            self.notes.borrow_mut().push(message);
        }
    }
}

impl World {
    fn of(fake: Fake) -> World {
        World { watched: fake.watched.clone(), target: Some(fake.target()), ..World::default() }
    }

    /// What `print TEXT` would print: type and value.
    fn print(&self, text: &str) -> String {
        match super::value(&range(text), self) {
            Ok(value) => format!("{} {value}", value.kind()),
            Err(error) => panic!("{text}: {error} ({:?})", error.hint),
        }
    }

    /// The error of `print TEXT`: the part of the text at its place, and the message.
    fn error(&self, text: &str) -> (String, Error) {
        match super::value(&range(text), self) {
            Ok(value) => panic!("{text} is {value:?}"),
            Err(error) => (meant(text, &error), error),
        }
    }

    /// What is wrong with `TEXT`, as `part: message`.
    fn refusal(&self, text: &str) -> String {
        let (part, error) = self.error(text);
        format!("{part}: {}", error.message)
    }
}

/// The part of the text that an error points at.
fn meant(text: &str, error: &Error) -> String {
    let line = format!("print {text}");
    let part = line.get(error.at.start..error.at.end);
    part.unwrap_or_else(|| panic!("no such place: {error:?}")).to_owned()
}

/// The expression after `print`.
fn range(text: &str) -> Spanned<Range> {
    match language::arguments(&format!("print {text}")) {
        language::Arguments::Range(value) => value,
        other => panic!("{text}: {other:?}"),
    }
}

const PROGRAM: u64 = 0x40_0000;
const LIBRARY: u64 = 0x7f00_0000_0000;

/// A program and a library with symbols, files of the same name, a heap, a stack, and an awkward name.
fn process() -> Fake {
    let program = Builder::with(vec![
        entry("main", 0x1000, 0x20, GLOBAL, FUNCTION),
        entry("helper", 0x1040, 0x10, LOCAL, FUNCTION),
        entry("helper", 0x1060, 0x10, LOCAL, FUNCTION),
        entry("both", 0x1100, 4, GLOBAL, FUNCTION),
        entry("sizeless", 0x1200, 0, GLOBAL, FUNCTION),
        entry("table", 0x2900, 0x20, GLOBAL, OBJECT),
        entry("buffer", 0x3010, 0x100, GLOBAL, OBJECT),
        entry("stack", 0x3200, 8, GLOBAL, OBJECT),
    ]);
    let library = Builder::with(vec![
        entry("malloc", 0x1000, 0x40, GLOBAL, FUNCTION),
        entry("both", 0x1100, 4, GLOBAL, FUNCTION),
        entry("table", 0x1200, 8, LOCAL, OBJECT),
    ]);
    let mut fake = Fake::new()
        .region(0x50_0000, 0x51_0000, "rw-p", 0, "[heap]")
        .region(0x6000_0000, 0x6000_1000, "r--p", 20, "/opt/a/data.bin")
        .region(0x6000_2000, 0x6000_3000, "r--p", 21, "/opt/b/data.bin")
        .region(0x6100_0000, 0x6100_1000, "rw-s", 22, "/tmp/new\nline")
        .region(0x7fff_fff0_0000, 0x7fff_fff2_0000, "rw-p", 0, "[stack]")
        .region(0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_1000, "--xp", 0, "[vsyscall]")
        .file("/usr/bin/program", program.bytes())
        .file("/usr/lib/libc.so.6", library.bytes());
    for (at, inode, name) in [(PROGRAM, 7, "/usr/bin/program"), (LIBRARY, 8, "/usr/lib/libc.so.6")] {
        fake = fake
            .region(at + 0x1000, at + 0x2000, "r-xp", inode, name)
            .region(at + 0x2000, at + 0x3000, "rw-p", inode, name)
            .region(at + 0x3000, at + 0x4000, "rw-p", 0, "");
    }
    fake
}
