//! `info threads`, `info registers`: what the kernel shows of running and waiting threads.

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::print;
use super::translate::brief;
use crate::eval::Value;
use crate::kernel::status::ThreadState;
use crate::kernel::{Name, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens};
use crate::render::Record;
use crate::render::columns::{Cell, Column, Table, fact, symbol};
use crate::render::text::Text;
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, Fact, Reason, Shape, SymbolBrief};

/// `info threads`
#[derive(Debug)]
pub struct InfoThreads;

impl Command for InfoThreads {
    const RECORDS: &'static [Shape] = &[ThreadRow::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info threads").whole().displayed(),
        group: Group::Target,
        summary: "list the threads, with program counter and stack pointer",
        text: "\
Lists each thread with its id, name, state, stack pointer and program counter. Stops no thread.

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
        let regions = context.state.symbols.regions(&target)?;
        let symbols = context.state.symbols.over(&target, &*regions);
        for thread in target.process.threads()? {
            context.sink.check()?;
            let registers = match target.process.thread_state(thread.id) {
                _ if thread.has_ended() => {
                    Err(Reason::NotApplicable("the thread has ended: it has no registers any more"))
                }
                Ok(ThreadState::Waiting(registers)) => Ok(registers),
                Ok(ThreadState::Running) => Err(Reason::NotApplicable(
                    "the thread runs: the kernel shows the registers of waiting threads only",
                )),
                Err(error) => Err(error.into()),
            };
            let row = ThreadRow {
                id: thread.id,
                name: thread.name,
                state: thread.state.to_string(),
                symbol: registers.as_ref().ok().and_then(|registers| brief(&symbols, registers.program_counter)),
                sp: registers.clone().map(|registers| registers.stack_pointer),
                pc: registers.map(|registers| registers.program_counter),
            };
            context.sink.emit(&row)?;
        }
        Ok(Flow::Done)
    }
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
        /// The symbol at the program counter.
        symbol: Option<SymbolBrief>,
    }
}

impl Record for ThreadRow {
    fn write(&self, text: &mut Text) {
        text.row_with_notes(&THREADS, self);
    }
}

/// `info threads`
static THREADS: Table<ThreadRow> = Table::of(&[
    Column::number("id", 7, Role::Size).cell(|_, thread| Cell::new(&thread.id)),
    Column::name("name", 15, Role::Name).cell(|_, thread| Cell::new(&thread.name)),
    Column::word("state", 5, Role::Plain).cell(|_, thread| Cell::new(&thread.state)),
    Column::word("stack pointer", 14, Role::Address).cell(|_, thread| fact(&thread.sp)),
    Column::word("program counter", 14, Role::Address).rank(1).cell(|_, thread| fact(&thread.pc)),
    Column::name("symbol", 16, Role::Symbol).cell(|_, thread| symbol(&thread.symbol)),
]);

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::va;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(thread()), Box::new(running_thread())]
    }

    pub fn thread() -> ThreadRow {
        ThreadRow {
            id: 812,
            name: Name::from("demo"),
            state: "S".into(),
            sp: Ok(va(0x7ffd_1234_5678)),
            pc: Ok(va(0x5555_5555_5136)),
            symbol: Some(crate::command::tests::records::pages::counter()),
        }
    }

    pub fn running_thread() -> ThreadRow {
        let reason = Reason::NotApplicable("the thread runs");
        ThreadRow {
            id: 813,
            name: Name::from("worker"),
            state: "R".into(),
            sp: Err(reason.clone()),
            pc: Err(reason),
            symbol: None,
        }
    }
}
