//! `info process`: what the kernel reports about the target.

use super::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use crate::lang::parser::{Parsed, Tokens};
use crate::report::{MemoryField, ProcessReport};

/// `info process`
#[derive(Debug)]
pub struct InfoProcess;

impl Command for InfoProcess {
    const ABOUT: About = About {
        name: CommandName::new("info process").displayed(),
        group: Group::Target,
        summary: "show the facts that the kernel reports about the process",
        text: "\
Shows the name, program, command line, parent, threads, user and tracer of the process. Then shows the memory fields \
of /proc/PID/status, each with its meaning.",
        examples: &[example("info process", "show the attached process")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoProcess))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        let status = target.process.status()?;
        let layout = target.process.layout();
        let memory = status.memory.into_iter().map(|(name, bytes)| {
            let meaning = meaning(&name);
            MemoryField { name, bytes, meaning }
        });
        let report = ProcessReport {
            pid: status.pid,
            parent: status.parent,
            name: status.name,
            state: status.state,
            threads: status.threads,
            user: status.user,
            tracer: Some(status.tracer).filter(|&tracer| tracer != 0),
            executable: status.executable,
            command_line: status.command_line,
            age: status.age,
            page_size: layout.page.bytes(),
            pointer_bytes: layout.pointer_bytes,
            memory: memory.collect(),
            frames_hidden: target.process.frames_hidden(),
        };
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// What a memory field of `/proc/PID/status` says (proc_pid_status(5), fs/proc/task_mmu.c).
fn meaning(field: &str) -> &'static str {
    match field {
        "VmPeak" => "the most address space it ever had",
        "VmSize" => "address space, touched or not",
        "VmLck" => "locked by mlock",
        "VmPin" => "pinned: the kernel may not move it",
        "VmHWM" => "the most that was ever resident",
        "VmRSS" => "resident: the three Rss fields below",
        "RssAnon" => "resident anonymous memory",
        "RssFile" => "resident file pages",
        "RssShmem" => "resident shared memory (tmpfs, memfd, shared anonymous)",
        "VmData" => "private writable mappings without the stack",
        "VmStk" => "stack",
        "VmExe" => "program text",
        "VmLib" => "text of libraries",
        "VmPTE" => "page tables",
        "VmSwap" => "anonymous memory in swap; shared memory in swap is not counted",
        "HugetlbPages" => "hugetlb pages, which VmRSS leaves out",
        _ => "",
    }
}
