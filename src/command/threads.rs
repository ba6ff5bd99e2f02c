//! `info threads`, `info registers`: what the kernel shows of running and waiting threads.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use super::print;
use super::translate::brief;
use crate::eval::Value;
use crate::inspect::{AddressSpace, Evidence};
use crate::kernel::status::{Registers, ThreadState};
use crate::kernel::{AddressRange, Name, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens};
use crate::process::{Target, Thread};
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table, amount, fact, reason, symbol};
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{counted, size};
use crate::report::record::record;
use crate::report::{Declared, Fact, Reason, Shape, SymbolBrief};
use std::collections::{BTreeMap, BTreeSet};

/// `info threads`
#[derive(Debug)]
pub struct InfoThreads;

impl Command for InfoThreads {
    const RECORDS: &'static [Shape] = &[ThreadRow::SHAPE, ThreadsSummary::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info threads").whole().displayed(),
        group: Group::Target,
        summary: "list the threads: program counter, stack and its size",
        text: "\
Lists each thread with its id, name, state, stack pointer and program counter. `stack` is the size of the region that \
the stack pointer is in, and `resident` what of it is in memory. The last line has the sums, in which a region of several \
stacks counts once. Stops no thread.

The kernel shows the two registers only for waiting threads (/proc/PID/task/TID/syscall). All threads share one \
address space: every other command covers all of them.",
        examples: &[example("info threads", "list all threads")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoThreads))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        let space = AddressSpace::of(&target)?;
        let mut threads = Vec::new();
        for thread in target.process.threads()? {
            context.sink.check()?;
            threads.push((registers(&target, &thread), thread));
        }
        let stacks = stacks(&space, threads.iter().filter_map(|(registers, _)| registers.as_ref().ok()), context)?;
        let regions = context.state.symbols.regions(&target)?;
        let symbols = context.state.symbols.over(&target, &*regions);
        let mut summary = ThreadsSummary::of(&stacks);
        for (registers, thread) in threads {
            context.sink.check()?;
            let stack = registers.clone().and_then(|registers| {
                let viewed = space.viewed_region(registers.stack_pointer).ok_or(Reason::NotApplicable(NO_STACK))?;
                Ok(viewed.range())
            });
            let resident = stack.clone().and_then(|stack| match stacks.get(&stack.start()) {
                Some((_, resident)) => resident.clone(),
                None => Err(Reason::Changed),
            });
            let row = ThreadRow {
                id: thread.id,
                name: thread.name,
                state: thread.state.to_string(),
                symbol: registers.as_ref().ok().and_then(|registers| brief(&symbols, registers.program_counter)),
                stack: stack.map(|stack| stack.len()),
                resident,
                sp: registers.clone().map(|registers| registers.stack_pointer),
                pc: registers.map(|registers| registers.program_counter),
            };
            summary.threads += 1;
            summary.unknown += u64::from(row.stack.is_err());
            context.sink.emit(&row)?;
        }
        context.sink.emit(&summary)?;
        Ok(Flow::Done)
    }
}

/// Why a stack has no size.
const NO_STACK: &str = "the stack pointer is in no region";

/// The registers of a thread, if it waits.
fn registers(target: &Target, thread: &Thread) -> Fact<Registers> {
    match target.process.thread_state(thread.id) {
        _ if thread.has_ended() => Err(Reason::NotApplicable("the thread has ended: it has no registers any more")),
        Ok(ThreadState::Waiting(registers)) => Ok(registers),
        Ok(ThreadState::Running) => {
            Err(Reason::NotApplicable("the thread runs: the kernel shows the registers of waiting threads only"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Each region that a stack pointer is in, by its first address: its bytes, and how many of them are resident.
type Stacks = BTreeMap<VirtualAddress, (u64, Fact<u64>)>;

fn stacks<'a>(
    space: &AddressSpace,
    registers: impl Iterator<Item = &'a Registers>,
    context: &mut Context,
) -> Result<Stacks, Error> {
    let ranges = registers.filter_map(|registers| Some(space.viewed_region(registers.stack_pointer)?.range()));
    let ranges: BTreeSet<AddressRange> = ranges.collect();
    let ranges: Vec<AddressRange> = ranges.into_iter().collect();
    let mut found = Stacks::new();
    let mut regions = space.region_stats(&ranges, Evidence::empty()).with_budget(context.sink.budget());
    while let Some((viewed, stats)) = regions.next()? {
        let resident = stats.why_hidden().map_or(Ok(stats.present), Err);
        found.insert(viewed.range().start(), (viewed.range().len(), resident));
    }
    Ok(found)
}

/// `info registers`
#[derive(Debug)]
pub struct InfoRegisters;

impl Command for InfoRegisters {
    const ABOUT: About = About {
        name: CommandName::new("info registers").whole().displayed(),
        group: Group::Target,
        summary: "show the program counter and the stack pointer",
        text: "\
Shows two registers of the main thread, $pc and $sp, also under the machine's own names ($rip and $rsp). In a \
loop over threads (`foreach`) both are those of the current thread.

/proc shows them only while the thread waits in the kernel. The other registers need a debugger that stops the \
process, such as gdb.",
        examples: &[example("info registers", "show both registers")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoRegisters))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        let registers = match context.state.thread {
            Some(thread) => target.process.registers_of(thread)?,
            None => target.process.registers()?,
        };
        for (name, address) in [("pc", registers.program_counter), ("sp", registers.stack_pointer)] {
            let mut report = print::described_value(context.state, &Value::Address(address));
            report.name = Some(name.to_owned());
            context.sink.emit(&report)?;
        }
        let message = match target.process.capture_times() {
            None => "use `gdb -p PID`, which stops the process, for other registers",
            Some(_) => "only these registers are read from a file: use `gdb PROGRAM CORE` for those in a core file",
        };
        context.sink.note(message)?;
        Ok(Flow::Done)
    }
}

record! {
    /// A row of `info threads`.
    pub struct ThreadRow as "thread" with why if any {
        /// Thread id.
        id: u32,
        /// Its short name.
        name: Name,
        /// One letter, as `ps` shows it: `R` running, `S` sleeping, `D` waiting for a device, `T` stopped.
        state: String,
        /// Its stack pointer; unknown while it runs.
        sp: Fact<VirtualAddress>,
        /// Its program counter; unknown while it runs.
        pc: Fact<VirtualAddress>,
        /// Bytes of its stack: of the region that the stack pointer is in.
        stack: Fact<u64>,
        /// Those that are resident.
        resident: Fact<u64>,
        /// The symbol at the program counter.
        symbol: Option<SymbolBrief>,
    }

    /// The sums of `info threads`.
    pub struct ThreadsSummary as "threads-summary" with why if any {
        /// Threads.
        threads: u64,
        /// Regions that their stack pointers are in.
        stacks: u64,
        /// Bytes of these.
        stack: u64,
        /// Those that are resident.
        resident: Fact<u64>,
        /// Threads whose stack is unknown.
        unknown: u64,
    }
}

impl Record for ThreadRow {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&THREADS, self);
    }
}

impl ThreadsSummary {
    /// The sums of stacks, without threads.
    fn of(stacks: &Stacks) -> Self {
        let stack = stacks.values().map(|(bytes, _)| bytes).sum();
        let resident = stacks.values().map(|(_, resident)| resident.clone()).sum();
        ThreadsSummary { threads: 0, stacks: stacks.len() as u64, stack, resident, unknown: 0 }
    }
}

impl Record for ThreadsSummary {
    fn write(&self, text: &mut Text) {
        text.answer_of_rows(write_summary, self);
        text.notes();
    }
}

fn write_summary(lines: &mut Lines, sums: &ThreadsSummary) {
    let line = lines.line();
    line.plain(format!("{}: {} of ", counted(sums.threads, "thread"), counted(sums.stacks, "stack")));
    line.push(Role::Size, size(sums.stack));
    if let Ok(resident) = sums.resident {
        line.plain(", ").push(Role::Size, size(resident)).plain(" resident");
    }
    if sums.unknown > 0 {
        line.plain(format!("; the stack of {} is unknown", counted(sums.unknown, "thread")));
    }
}

/// `info threads`
static THREADS: Table<ThreadRow> = Table::of(&[
    Column::number("id", 7, Role::Size).cell(|_, thread| Cell::new(&thread.id)),
    Column::name("name", 15, Role::Name).cell(|_, thread| Cell::new(&thread.name)),
    Column::word("state", 5, Role::Plain).cell(|_, thread| Cell::new(&thread.state)),
    Column::number("stack", 8, Role::Size).cell(|_, thread| bytes(&thread.stack)),
    Column::number("resident", 8, Role::Size).cell(|_, thread| bytes(&thread.resident)),
    Column::word("stack pointer", 14, Role::Address).cell(|_, thread| fact(&thread.sp)),
    Column::word("program counter", 14, Role::Address).rank(1).cell(|_, thread| fact(&thread.pc)),
    Column::name("symbol", 16, Role::Symbol).cell(|_, thread| symbol(&thread.symbol)),
]);

fn bytes(bytes: &Fact<u64>) -> Cell<'_> {
    bytes.as_ref().map_or_else(reason, |&bytes| amount(bytes))
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::va;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(thread()), Box::new(running_thread()), Box::new(summary())]
    }

    fn summary() -> ThreadsSummary {
        ThreadsSummary { threads: 2, stacks: 1, stack: 132 << 10, resident: Ok(20 << 10), unknown: 1 }
    }

    pub fn thread() -> ThreadRow {
        ThreadRow {
            id: 812,
            name: Name::from("demo"),
            state: "S".into(),
            sp: Ok(va(0x7ffd_1234_5678)),
            pc: Ok(va(0x5555_5555_5136)),
            symbol: Some(crate::command::tests::records::pages::counter()),
            stack: Ok(132 << 10),
            resident: Ok(20 << 10),
        }
    }

    pub fn running_thread() -> ThreadRow {
        let reason = Reason::NotApplicable("the thread runs");
        ThreadRow {
            id: 813,
            name: Name::from("worker"),
            state: "R".into(),
            sp: Err(reason.clone()),
            stack: Err(reason.clone()),
            resident: Err(reason.clone()),
            pc: Err(reason),
            symbol: None,
        }
    }
}
