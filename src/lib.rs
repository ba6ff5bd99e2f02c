//! pmdb: a gdb-style prompt for the memory *behind* a Linux process.
//!
//! gdb says what a program's variables hold. pmdb says where each byte physically lives, why a page is or is not there,
//! what the kernel records about it, who else maps it, and what changes over time. It reads `/proc`, some settings in
//! `/sys`, and the files that the process has mapped.
//!
//! # The map of the house
//!
//! A room is a folder under `src/`. A room uses the rooms under it in this list and never one above; `tests/layers`
//! reads the `use` lines and holds the code to that. From the top:
//!
//! - **`main.rs`, `args.rs`**: build a [`session`] from the command line, and exit with its status.
//! - **[`repl`]**: the prompt: the line editor, completion, hints, colours of input.
//! - **[`session`]**: runs lines, from parse to output; reads command files. Only this room decides where records are
//!   printed (screen and pager, pipe, file, JSON), and only this room handles Ctrl-C.
//! - **[`command`]**: one file a command, and a static table that names them all for help, completion and tests.
//! - **[`state`]**: what lasts from line to line: target, variables, kept values, settings.
//! - **[`eval`]**: evaluates expressions and ranges, and turns filters into [`inspect`] filters, for a target.
//! - **[`inspect`]**: the engine: classifies pages, sweeps ranges, adds up, watches. No output, no parsing.
//! - **[`symbol`]**: symbols and source lines, from the ELF files behind regions and their debug files. It reads them
//!   only when a command needs them.
//! - **[`process`]**: the decoded target: a process, its machine, the files behind its regions. Only this room gets
//!   bytes from a source and decodes them with [`kernel`].
//! - **[`source`]**: where bytes come from: one trait. The live source reads `/proc`; a recorded one logs each read
//!   (`--how`). The only `unsafe` outside `demo` is in `source/sys.rs`.
//! - **[`render`]**: records become text or JSON.
//! - **[`report`]**: the records themselves, plain data, and the sink that takes them.
//! - **[`lang`]**: the command language: text to syntax tree. Pure. Its truth is in `grammar/`.
//! - **[`kernel`]**: bytes become types: maps, page-map entries, page flags, zones, swaps. Pure. The state that a page
//!   is in follows from them in [`inspect::classify`].
//! - **[`budget`]**: what work on foreign bytes may cost, and Ctrl-C.
//!
//! Beside them stands **[`demo`]**, the demonstration process, which uses only `process` and what is below it.
//!
//! # The way of one line
//!
//! Down: `repl → session → lang::parse_line → command`, which asks `eval` for ranges and filters, and `inspect` for
//! pages: `inspect → process → source`, and `kernel` decodes. Up: the command makes records of the pages, `record →
//! sink → render`.
//!
//! # What always holds
//!
//! 1. **The target is not disturbed.** No ptrace, no signal: a file with a lease is not opened, because that would
//!    signal the holder. Memory is read only where the page map has just reported a resident page. Whatever could fault
//!    a page in, write-protect or clear something needs an explicit word.
//! 2. **Unknown is never zero.** Hidden, not permitted, not known to this kernel, and none are four different answers,
//!    each with its reason ([`report::Fact`]). A filter on an unknown fact is an error.
//! 3. **Every answer is decoded from bytes.** [`kernel`] decodes and does no I/O, [`source`] fetches and decodes only
//!    who the process is, and [`process`] brings the two together. Byte order, page size and pointer width are the
//!    target's.
//! 4. **Work follows what is populated**, never virtual size; walks stream and hold no list of pages.
//! 5. **A target is an identity**: a pidfd, a `/proc/PID` handle and a start time, not a number. pmdb notices exec,
//!    exit and reuse of the number. Each command reads regions anew.
//! 6. **Names are hostile.** Mapping names, symbols and `comm` are bytes from an attacker; only [`kernel::Name`] prints
//!    them, and it escapes them. A file behind a mapping is opened only if it is the same regular file.
//! 7. **The grammar is written down once**, in `grammar/`; tests hold the parser, help and completion to it.
//! 8. **Commands emit records, renderers print.** Each record has a text and a JSON form.
//! 9. **Rights are used only where needed**: file capabilities are raised around the opens under `/proc` and dropped
//!    again.
//!
//! # As a library
//!
//! The rooms from [`inspect`] down, without `render` and `lang`, are a library of their own: without the default
//! feature `cli` nothing of the prompt and its language is built. The documentation leaves those rooms out; `cargo doc
//! --document-private-items` shows them. No part of the library is stable yet.
//!
//! ```
//! use pmdb::kernel::State;
//! use pmdb::{AddressSpace, Target, VirtualAddress};
//!
//! let number = Box::new(42);
//! let address = VirtualAddress::new((&raw const *number).addr() as u64);
//!
//! let target = Target::attach(std::process::id())?;
//! let (_, page) = AddressSpace::detail_at(&target, address)?;
//! assert_eq!(page.page.state(), State::Present);
//! match page.physical {
//!     Ok(physical) => println!("{address} is at {physical}"),
//!     Err(reason) => println!("{address} is somewhere: {reason}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]
#![warn(missing_docs)]

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
pub mod inspect;
pub mod kernel;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod lang;
pub mod process;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod render;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod repl;
pub mod report;
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

pub use inspect::{AddressSpace, Facts};
pub use kernel::{AddressRange, FrameNumber, PhysicalAddress, VirtualAddress};
pub use process::Target;
pub use report::{Fact, Reason};
