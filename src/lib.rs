// The list of modules is below, after the documentation of the library.

//! The memory *behind* a Linux process: where each byte physically lies, why a page is or is not there, what the kernel
//! records about it, who else maps it, and what changes over time.
//!
//! This is the engine of the program `pmdb`. It reads `/proc`, some settings in `/sys`, and the files that the process
//! has mapped. It does not disturb the process: no ptrace, no signal, no page fault.
//!
//! [`Target::attach`] opens a process. An [`AddressSpace`] is its regions at one moment. [`Evidence`] is what to find out
//! about its pages: each costs reads of its own. What is not known is never zero, but a [`Reason`].
//!
//! # The shortest uses
//!
//! Which parts of a buffer are resident?
//!
//! ```
//! # use pmdb::kernel::State;
//! # use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//! # fn resident(buffer: &[u8]) -> Result<Vec<AddressRange>, Box<dyn std::error::Error>> {
//! let range = AddressRange::of(buffer).ok_or("an empty buffer")?;
//! let space = AddressSpace::in_ranges(&Target::attach(std::process::id())?, &[range])?;
//! let (mut pages, mut resident) = (space.pages(&[range], Evidence::empty()), Vec::new());
//! while let Some(chunk) = pages.next()? {
//!     let present = chunk.pages().filter(|page| page.state() == State::Present);
//!     resident.extend(present.filter_map(|page| AddressRange::of_length(page.address, page.bytes(space.page_size()))));
//! }
//! # Ok(AddressRange::joined(&resident))
//! # }
//! # let buffer = vec![1; 1 << 20];
//! # let parts = resident(&buffer)?;
//! # assert!(parts[0].len() >= 1 << 20, "{parts:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In which frame is each page of a range? [`Evidence::FRAMES`] needs CAP_SYS_ADMIN:
//!
//! ```
//! # use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//! # let buffer = vec![1; 10_000];
//! # let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
//! let space = AddressSpace::in_ranges(&Target::attach(std::process::id())?, &[range])?;
//! let mut pages = space.pages(&[range], space.obtainable(Evidence::FRAMES));
//! while let Some(chunk) = pages.next()? {
//!     for page in chunk.pages() {
//!         println!("{}: {} pages, frames from {:?}", page.address, page.pages, page.frame());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Did a page change? Below is [how to watch one](#watch-until-a-page-moves): `sample` returns each change since the
//! last call.
//!
//! # Translate an address
//!
//! ```
//! use pmdb::{AddressSpace, Target, VirtualAddress};
//!
//! let number = Box::new(42);
//! let address = VirtualAddress::of(&*number);
//!
//! let target = Target::attach(std::process::id())?;
//! let (_, detail) = AddressSpace::detail_at(&target, address)?;
//! match detail.physical {
//!     Ok(physical) => println!("{address} is at {physical}"),
//!     Err(reason) => println!("{address} is {}: {reason}", detail.page.state()),
//! }
//! # assert_eq!(detail.page.state(), pmdb::kernel::State::Present);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Count resident huge pages
//!
//! ```
//! use pmdb::kernel::State;
//! use pmdb::{AddressSpace, Evidence, Target};
//!
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::of(&target)?;
//! if let Err(reason) = space.require(Evidence::HUGE) {
//!     println!("{reason}");
//! }
//! let mut pages = space.pages(&space.spans(), space.obtainable(Evidence::HUGE));
//! let (mut resident, mut huge) = (0, 0);
//! while let Some(chunk) = pages.next()? {
//!     for page in chunk.pages().filter(|page| page.state() == State::Present) {
//!         let bytes = page.bytes(space.page_size());
//!         resident += bytes;
//!         huge += if page.huge == Some(true) { bytes } else { 0 };
//!     }
//! }
//! println!("{huge} of {resident} resident bytes are mapped huge; one PMD maps {}", space.huge_bytes());
//! # assert!(resident > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Who maps this page
//!
//! ```
//! use pmdb::inspect::who::{FrameQuestion, SearchEvent, who};
//! use pmdb::{AddressSpace, Target};
//!
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::of(&target)?;
//! let is_shared = |name: &str| name.contains("libc.so") || name == "[vdso]";
//! let region = space.regions().find(|region| is_shared(&region.name.to_string())).ok_or("no shared page")?;
//! match space.detail(region.range.start())?.frame {
//!     Ok(frame) => {
//!         let mut search = who(&target.machine, &FrameQuestion::of(frame))?;
//!         while let Some(step) = search.next()? {
//!             if let SearchEvent::Found(mapper) = step {
//!                 println!("{} has it at {}", mapper.process.name, mapper.address);
//!             }
//!         }
//!     }
//!     Err(reason) => println!("cannot find who maps it: {reason}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Watch until a page moves
//!
//! ```
//! use pmdb::budget::Budget;
//! use pmdb::inspect::Watcher;
//! use pmdb::report::EventKind;
//! use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//! use std::time::Duration;
//!
//! let buffer = vec![1; 4096];
//! let range = AddressRange::of(&buffer[..]).ok_or("an empty buffer")?;
//!
//! let target = Target::attach(std::process::id())?;
//! for (kind, reason) in Watcher::unobservable(&AddressSpace::of(&target)?, &[range], Evidence::empty()) {
//!     println!("changes of this kind are not seen: {} ({reason})", kind.words());
//! }
//! let mut watcher = Watcher::new(Evidence::empty()).of_ranges(&[range]);
//! let mut has_moved = false;
//! for _ in 0..5 {
//!     let look = watcher.sample(&target, Budget::unlimited(), |_| vec![range])?;
//!     if look.changes().any(|change| change.kind == EventKind::Moved) {
//!         has_moved = true;
//!         break;
//!     }
//!     std::thread::sleep(Duration::from_millis(10));
//! }
//! println!("moved: {has_moved}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # End in time
//!
//! A [`Budget`](budget::Budget) limits time, steps and memory, or ends with Ctrl-C. Everything that is pulled has a
//! method `with_budget`, and [`Target::with_budget`] limits each reading of its regions. What is out of budget is
//! an error. What was pulled before is valid.
//!
//! ```
//! use pmdb::budget::{Budget, OutOfBudget};
//! use pmdb::inspect::Error;
//! use pmdb::kernel::State;
//! use pmdb::{AddressSpace, Evidence, Target};
//! use std::collections::BTreeMap;
//! use std::time::Duration;
//!
//! let second = Budget::unlimited().within(Duration::from_secs(1));
//! let target = Target::attach(std::process::id())?.with_budget(second.clone());
//! let space = AddressSpace::of(&target)?;
//! let mut pages = space.pages(&space.spans(), Evidence::empty()).with_budget(second);
//! let mut resident: BTreeMap<String, u64> = BTreeMap::new();
//! loop {
//!     match pages.next() {
//!         Ok(Some(chunk)) => {
//!             let name = chunk.region.map(|viewed| viewed.region.name.to_string()).unwrap_or_default();
//!             let present = chunk.pages().filter(|page| page.state() == State::Present);
//!             *resident.entry(name).or_default() += present.map(|page| page.bytes(space.page_size())).sum::<u64>();
//!         }
//!         Ok(None) => break,
//!         Err(Error::OutOfBudget(OutOfBudget::Time)) => {
//!             println!("this is what a second was enough for:");
//!             break;
//!         }
//!         Err(error) => return Err(error.into()),
//!     }
//! }
//! for (name, bytes) in resident {
//!     println!("{bytes:>12} {name}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What each fact needs
//!
//! These rights are for your own processes. For those of other users, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are needed
//! as well. root has them all, unless it is root of a container.
//!
#![doc = include_str!("inspect/facts.md")]
//!
//! # The same question to other crates
//!
//! Of a buffer of 1 MiB, 100 pages were written, 50 only read, 20 are guard pages (MADV_GUARD_INSTALL), and 86 were not
//! touched. How much of it is resident, and in which frames?
//!
//! | | `procfs` 0.18 | `pagemap` 0.1 | this crate |
//! |---|---|---|---|
//! | code | 9 lines | 11 lines | 10 lines |
//! | resident | 150 pages | 150 pages | 150, of which 50 are the zero page |
//! | guard pages | 20 "swap" pages | 20 "swapped" | 20 guard pages |
//! | frames without rights | frame 0, 150 times | frame 0, 150 times | hidden without CAP_SYS_ADMIN |
//! | 100 pages spread over 1 GiB | 2.3 ms | 570 ms | 0.3 ms |
//! | 100 pages spread over 64 GiB | 620 ms | – | 0.9 ms |
//!
//! Times are medians (of 21 runs, 7 for 64 GiB, and 51 of this crate) on Linux 6.18, x86-64. The other two read every
//! entry of the range (`pagemap`: of the whole region). Their code has to divide addresses by the size of a page. The
//! code with this crate:
//!
//! ```
//! # use pmdb::kernel::State;
//! # use pmdb::{AddressRange, AddressSpace, Evidence, Target};
//! # fn frames(buffer: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let range = AddressRange::of(buffer).ok_or("an empty buffer")?;
//! let target = Target::attach(std::process::id())?;
//! let space = AddressSpace::in_ranges(&target, &[range])?;
//! let mut pages = space.pages(&[range], space.obtainable(Evidence::KINDS | Evidence::FRAMES));
//! while let Some(chunk) = pages.next()? {
//!     for page in chunk.pages().filter(|page| page.state() == State::Present) {
//!         println!("{}: {} pages, frames from {:?}", page.address, page.pages, page.frame());
//!     }
//! }
//! # Ok(())
//! # }
//! # frames(&[1; 10_000]).expect("pages of its own");
//! ```
//!
//! # Features
//!
//! - `symbols`: names of functions and variables, and lines of the source, in a module of that name.
//! - `serde`: facts can be serialized.
//! - `cli` (default): the program, with both of these.
//!
//! With none of them the library takes 20 other crates. No part of it is stable yet. What this documentation does not
//! show is for the program and its tests alone, and may change with any release.

// # The modules
//
// A module is a folder under `src/`. It uses the modules under it in this list and never one above; `tests/layers`
// reads the `use` lines and holds the code to that. From the top:
//
// - **`main.rs`, `args`**: build a `session` from the command line, and exit with its status. `args/complete`
//   completes words for shells. `args/generate` puts manual pages together, of texts that the commands and
//   `command/subjects/` hold.
// - **`repl`**: the prompt: the line editor, completion, hints, colours of input.
// - **`session`**: runs lines, from parse to output; reads command files. Only `session` decides where records are
//   printed (screen and pager, pipe, file, JSON), and only `session` handles Ctrl-C.
// - **`command`**: `NAME.rs` holds a command: its help, its arguments with their parser and their printed form, what it
//   does, and the records that only it emits. A long one is a folder, with `mod.rs` and mostly `records.rs`: account,
//   capture, compare, diff, examine, explain, find, heap, huge, patched, pins, telescope, watch, who. The trait
//   `Command` in `floor/` says what a command is, and one list in `mod.rs` names them all: the parser, help,
//   completion, manual pages and tests walk it. A command of two words (`info symbol`) is one like any other. Lines of
//   blocks are in `control.rs`; `session` runs them. The texts of `help SUBJECT` are in `subjects/`.
// - **`state`**: what lasts from line to line: target, variables, kept values, settings.
// - **`eval`**: evaluates expressions and ranges, and turns filters into `inspect` filters, for a target.
// - **`inspect`**: the engine: classifies pages, sweeps ranges, adds up, searches, watches. Each question that takes
//   long is a type that is pulled, with a budget. No output, no parsing.
// - **`symbol`**: symbols and source lines, from the ELF files behind regions and their debug files. It reads them
//   only when a command needs them. Why a file gives none is in `symbol/reason.rs`.
// - **`process`**: the decoded target: a process, its machine, the files behind its regions. Only `process` gets
//   bytes from a source and decodes them with `kernel`.
// - **`source`**: where bytes come from: one trait, one table of questions whose answers are data (`asked.rs`), each
//   with its written key and what a capture does with it (`class.rs`), and what a source is (`origin.rs`). The live
//   source reads `/proc`; a core file gives its memory and its notes; a recorded source logs each read (`--how`).
//   Nothing above `process` knows a source. The only `unsafe` outside `demo` is in `source/sys`.
// - **`render`**: writes records as text, as JSON and in pictures, and colours them. The trait `Record` says what a
//   record is, and `Sink` what takes records. In `text/` are the sentences and tables of records that several commands
//   emit, and those of `explain`.
// - **`report`**: words for facts, and for what is unknown and why. With `cli` also the records that several commands
//   emit, plain data.
// - **`hint`**: what people mean with lines that do not parse: one list of common mistakes, each with its example, and
//   the words of other programs (`habits.rs`). Pure: `lang` calls it through `Language`.
// - **`lang`**: the command language: tokens, expressions (a filter is one), ranges, clauses, and errors with a place.
//   Pure. It knows no command: `Language` is made of the list of them, and names none but the words of its own rules.
//   What it accepts is written down in `grammar/language.ebnf`, beside `src/`.
// - **`records`**: the kernel's own records of page frames, of bytes of its memory and the layout that it describes
//   (BTF): closed answers, each of a layout that is proved. It knows no source: `source/live` gives it the bytes.
// - **`own`**: what pmdb takes of the machine that it runs on, for itself: memory, rights, the files that it reads and
//   writes, and what it does before a signal ends it.
// - **`access`**: what everybody who reads foreign bytes speaks of: why they cannot be had (the error), which process
//   they are of and how long its memory lives, files that are read at places (`read_at.rs`), the log of reads.
// - **`kernel`**: bytes become types: maps, page-map entries (`page.rs`), page flags (`page_flags.rs`), zones, swaps,
//   the notes of core files (`core_notes.rs`), and the layout of the kernel's own structures (`btf`). Pure. The state
//   that a page is in follows from them in `inspect::classify`.
// - **`budget`**: what work on foreign bytes may cost, and Ctrl-C.
//
// Beside them stands **`demo`**, the demonstration process, which uses only `process` and what is below it.
//
// # The way of one line
//
// Down: `repl → session → Language::parse_line`, which finds the command by its name, and calls its `parse`. Then
// `session → command::run`, and the command's `run` asks `eval` for ranges and filters, and `inspect` for pages:
// `inspect → process → source`, and `kernel` decodes. Up: the command makes records of the pages, `record → sink →
// render`.
//
// # Where to change what is printed
//
// - A column of a table: its title is a string in a `Table`, in the file of its command or in the `records.rs` of its
//   folder (`compare`: `command/compare/records.rs`). Columns that several tables have are in `render/columns.rs`.
// - The JSON name of a field: its name in `record! { … }`, in the file that has the columns. Of records that several
//   commands emit: `report/records/`, and their text in `render/text/`. The fields of a `[flat]` type are often in
//   `report/facts.rs`. Order and labels in text go by these names: `render/text/words.rs`.
// - A fact about pages, for filters and groups: its words in `kernel/page_fact.rs`, its value, its reasons and what it
//   needs in `inspect/fact/`, and the rule of its type (`integer<page>`, …) in `grammar/language.ebnf`. Words that name
//   a state or a kind are in `kernel/page.rs`, those that name a flag in `kernel/page_flags.rs`. Of regions:
//   `lang/field.rs` and `eval/filter/region_field.rs`.
// - A sentence of `explain`: `render/text/explanation.rs`. Which effects it predicts is decided in `inspect/explain/`
//   and `inspect/outcome/`. Sentences about states and kinds, for all commands: `kernel/page.rs`. Of `huge`:
//   `command/huge/records.rs`.
// - The text of `help`: `ABOUT` in the file of its command; of other subjects: `command/subjects/`. Codes of errors and
//   exit statuses: `report/error_code.rs`.
// - A symbol that is not found: written bare (`main`), `eval/names.rs`; as `MODULE!NAME` or `&NAME`, `eval/symbols.rs`.
// - A colour: the role of a state is in `render/text/words.rs`, that of its letter in pictures in `render/marks.rs`.
//   Many have one role: `render/theme.rs` gives it a colour.
// - A default: a constant in the file of its command, and a sentence of its `ABOUT`.
//
// # What always holds
//
// 1. **The target is not disturbed.** No ptrace, no signal: a file with a lease is not opened, because that would
//    signal the holder. Memory is read only where the page map has just reported a resident page. Whatever could fault
//    a page in, write-protect or clear something needs an explicit word.
// 2. **Unknown is never zero.** Hidden, not permitted, not known to this kernel, and none are four different answers,
//    each with its reason (`report::Fact`). A filter that keeps no page because a fact is unknown is an error.
//    Pages for which it is unknown are left out, counted and reported.
// 3. **Every answer is decoded from bytes, and once.** `kernel` decodes and does no I/O, `source` fetches and decodes
//    only who the process is and what notes a core file has, and `process` brings the two together. Nothing writes a
//    text of `/proc` to have it decoded again, but captures without names. Byte order, page size and pointer width are
//    the target's.
// 4. **Work follows what is populated**, never virtual size; walks stream and hold no list of pages.
// 5. **A target is an identity**: a pidfd, a `/proc/PID` handle and a start time, not a number. pmdb notices exec,
//    exit and reuse of the number. Each command reads regions anew.
// 6. **Names are hostile.** Mapping names, symbols and `comm` are bytes from an attacker; only `kernel::Name` prints
//    them, and it escapes them. A file behind a mapping is opened only if it is the same regular file.
// 7. **The grammar is written down once**, in `grammar/`; tests hold the parser, help and completion to it.
// 8. **Commands emit records, renderers print.** Each record has a text and a JSON form.
// 9. **Rights are used only where needed**: file capabilities are raised around the opens under `/proc` and dropped
//    again.

#![deny(unsafe_code)]
#![deny(missing_docs)]

pub mod access;
pub mod budget;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod command;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod demo;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod eval;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod hint;
pub mod inspect;
pub mod kernel;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod lang;
#[doc(hidden)]
pub mod own;
pub mod process;
pub mod records;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod render;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod repl;
pub mod report;
#[cfg(test)]
#[path = "../tests/sample/mod.rs"]
mod sample;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod session;
#[cfg(test)]
#[path = "../tests/skips/mod.rs"]
mod skips;
pub mod source;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod state;
#[cfg(feature = "symbols")]
pub mod symbol;

pub use inspect::{AddressSpace, Evidence};
pub use kernel::{AddressRange, FrameNumber, PhysicalAddress, VirtualAddress};
pub use process::Target;
pub use report::{Fact, Reason};
