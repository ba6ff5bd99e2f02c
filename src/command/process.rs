//! `info process`: what the kernel reports about the target.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::kernel::Name;
use crate::kernel::status::ResourceLimit;
use crate::lang::parser::{Parsed, Tokens};
use crate::process::Target;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{count, counted, duration, size};
use crate::render::{Record, Sink};
use crate::report::record::record;
use crate::report::{Declared, Fact, Reason, Shape};

/// `info process`
#[derive(Debug)]
pub struct InfoProcess;

impl Command for InfoProcess {
    const RECORDS: &'static [Shape] = &[ProcessReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info process").displayed(),
        group: Group::Target,
        summary: "show the facts that the kernel reports about the process",
        text: "\
Shows the name, executable, command line, parent, threads, user and tracer of the process, and the number of its mappings. \
With more of them than vm.max_map_count, mmap(2) and mprotect(2) fail with ENOMEM. So they do at the limits of \
setrlimit(2) (`ulimit`): RLIMIT_AS and RLIMIT_DATA are shown if they are set, RLIMIT_STACK and RLIMIT_MEMLOCK if half is used. Then shows the memory fields of /proc/PID/status, each \
with its meaning.",
        examples: &[example("info process", "show the attached process")],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

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
        let memory: Vec<MemoryField> = memory.collect();
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
            limits: limits(&target, &memory),
            memory,
            mappings: mappings(&target, context.sink)?,
            most_mappings: target.machine.most_mappings().map_err(Reason::from),
            frames_hidden: target.process.has_page_map().then(|| target.process.are_frames_hidden()),
        };
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// The names of pages that are in the list of regions, and are no mappings.
const GATES: [&[u8]; 2] = [b"[vsyscall]", b"[vectors]"];

/// Its mappings, as `vm.max_map_count` counts them: the page that x86 and 32-bit ARM kernels give every process outside
/// of its memory is none (`get_gate_vma` in arch/).
fn mappings(target: &Target, sink: &mut dyn Sink) -> Result<u64, Error> {
    let regions = target.process.regions_within(&mut sink.budget())?;
    Ok(regions.iter().filter(|region| !GATES.contains(&region.name.as_bytes())).count() as u64)
}

/// The limits at which the kernel refuses memory, but for those that are not set.
fn limits(target: &Target, memory: &[MemoryField]) -> Vec<LimitField> {
    let limits = ResourceLimit::ALL.into_iter().filter_map(|limit| {
        let bytes = target.process.limit(limit).ok()??;
        let used = memory.iter().find(|field| field.name == limit.field()).map_or(0, |field| field.bytes);
        Some(LimitField { name: limit.name().to_owned(), bytes, field: limit.field(), used })
    });
    limits.collect()
}

/// What a memory field of `/proc/PID/status` says (proc_pid_status(5), fs/proc/task_mmu.c).
fn meaning(field: &str) -> &'static str {
    match field {
        "VmPeak" => "peak address space",
        "VmSize" => "address space, touched or not",
        "VmLck" => "locked by mlock",
        "VmPin" => "pinned, as counted by drivers; vmsplice and O_DIRECT are not counted",
        "VmHWM" => "peak resident memory",
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

record! {
    /// `info process`
    pub struct ProcessReport as "process" with why if any {
        /// Process id.
        pid: u32,
        /// Parent.
        parent: u32,
        /// Short name (`comm`).
        name: Name,
        /// State of the process: `S (sleeping)`.
        state: String,
        /// Threads.
        threads: u32,
        /// User id.
        user: u32,
        /// The process that traces it.
        tracer: Option<u32>,
        /// Executable.
        executable: Option<Name>,
        /// Command line.
        command_line: Option<Name>,
        /// Seconds since it started.
        age: Option<f64>,
        /// Bytes in a page.
        page_size: u64,
        /// Bytes in a pointer.
        pointer_bytes: u8,
        /// The memory fields of status, with their meaning.
        memory: Vec<MemoryField>,
        /// The limits of setrlimit(2) at which the kernel refuses memory, but for those that are not set.
        limits: Vec<LimitField>,
        /// Its mappings.
        mappings: u64,
        /// `vm.max_map_count`: with more mappings than this, mmap(2) and mprotect(2) fail with ENOMEM.
        most_mappings: Fact<u64>,
        /// Whether frame numbers are hidden; `null` in a core file without a page map.
        frames_hidden: Option<bool>,
    }

    /// A limit of `/proc/PID/limits`.
    #[derive(Eq)]
    pub struct LimitField {
        /// `RLIMIT_AS`, `RLIMIT_DATA`, `RLIMIT_STACK` or `RLIMIT_MEMLOCK`.
        name: String,
        /// Bytes.
        bytes: u64,
        /// The memory field that is compared with it.
        field: &'static str,
        /// Bytes of that.
        used: u64,
    }

    /// A memory field of `/proc/PID/status`.
    #[derive(Eq)]
    pub struct MemoryField {
        /// As the kernel spells it: `VmRSS`.
        name: String,
        /// Bytes.
        bytes: u64,
        /// In words.
        meaning: &'static str,
    }
}

impl LimitField {
    /// Whether half of it is used. A limit of the address space or of the data is seldom set, and always worth a line.
    fn is_near(&self) -> bool {
        self.used >= self.bytes / 2 || ["RLIMIT_AS", "RLIMIT_DATA"].contains(&self.name.as_str())
    }
}

impl Record for ProcessReport {
    fn write(&self, text: &mut Text) {
        text.block(write_block, self);
    }
}

/// The block of `info process`.
fn write_block(lines: &mut Lines, process: &ProcessReport) {
    let line = lines.field("process");
    line.plain(process.pid).plain("  ").push(Role::Name, &process.name).plain(format!(
        "  {}, {}, user {}, parent {}",
        process.state,
        counted(process.threads.into(), "thread"),
        process.user,
        process.parent
    ));
    if let Some(tracer) = process.tracer {
        lines.field("traced").plain(format!("by process {tracer}"));
    }
    if let Some(executable) = &process.executable {
        lines.field("program").push(Role::Name, executable);
    }
    if let Some(command_line) = &process.command_line {
        lines.field("command").plain(command_line);
    }
    if let Some(age) = process.age {
        lines.field("running").plain(format!("for {}", duration(age)));
    }
    lines.field("layout").plain(format!(
        "pages of {}, {}-bit pointers",
        size(process.page_size),
        u32::from(process.pointer_bytes) * 8
    ));
    let line = lines.field("mappings");
    line.push(Role::Plain, count(process.mappings));
    if let Ok(most) = process.most_mappings {
        line.plain(format!("; vm.max_map_count is {}", count(most)));
    }
    let mut label = "limits";
    for limit in process.limits.iter().filter(|limit| limit.is_near()) {
        let line = lines.field(label);
        line.plain(format!("{} ", limit.name)).push(Role::Size, size(limit.bytes));
        line.plain(format!("; {} is {}", limit.field, size(limit.used)));
        label = "";
    }
    let frames = lines.field("frames");
    match process.frames_hidden {
        Some(true) => frames.prose(Role::Warn, Reason::FrameHidden),
        Some(false) => frames.plain("shown"),
        None => frames.push(Role::Warn, "not in this core"),
    };
    let mut label = "memory";
    for memory in &process.memory {
        let line = lines.field(label);
        let bytes = size(memory.bytes);
        line.push(Role::Plain, &memory.name)
            .pad_to(32usize.saturating_sub(bytes.len()))
            .push(Role::Size, bytes)
            .indent_at(34)
            .prose(Role::Dim, memory.meaning);
        label = "";
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(process())]
    }

    pub fn process() -> ProcessReport {
        ProcessReport {
            pid: 812,
            parent: 1,
            name: Name::from("demo"),
            state: "S (sleeping)".into(),
            threads: 4,
            user: 1000,
            tracer: Some(99),
            executable: Some(Name::from("/usr/bin/demo")),
            command_line: Some(Name::from("demo --size 4")),
            age: Some(7500.0),
            page_size: 4096,
            pointer_bytes: 8,
            memory: vec![
                MemoryField { name: "VmPeak".into(), bytes: 12 << 20, meaning: "peak address space" },
                MemoryField { name: "VmRSS".into(), bytes: 3508 << 10, meaning: "in memory now" },
            ],
            limits: vec![
                LimitField { name: "RLIMIT_AS".into(), bytes: 16 << 20, field: "VmSize", used: 12 << 20 },
                LimitField { name: "RLIMIT_STACK".into(), bytes: 8 << 20, field: "VmStk", used: 132 << 10 },
                LimitField { name: "RLIMIT_MEMLOCK".into(), bytes: 64 << 10, field: "VmLck", used: 64 << 10 },
            ],
            mappings: 240,
            most_mappings: Ok(65_530),
            frames_hidden: Some(true),
        }
    }
}
