//! `info process`: what the kernel reports about the target.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Outcome, example};
use crate::inspect;
use crate::inspect::unmerged::{self, Difference, Unmerged};
use crate::kernel::smaps::vm_flag_meaning;
use crate::kernel::status::ResourceLimit;
use crate::kernel::{Name, Region, VirtualAddress};
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
With more of them than vm.max_map_count, mmap(2) and mprotect(2) fail with ENOMEM. If half of that is used, a line counts \
the mappings that the kernel does not merge with the next one, by cause. The two calls also fail at the limits of \
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
        let regions = target.process.regions_within(&mut context.sink.budget())?;
        let gate = regions.iter().map(|region| &region.name).find(|name| GATES.contains(&name.as_bytes())).cloned();
        let (mappings, unmerged) = mappings(&target, &regions, context.sink)?;
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
            mappings,
            gate,
            most_mappings: target.machine.most_mappings().map_err(Reason::from),
            unmerged,
            frames_hidden: target.process.has_page_map().then(|| target.process.are_frames_hidden()),
        };
        context.sink.emit(&report)?;
        Ok(Flow::Done)
    }
}

/// Differences of neighbours that are shown after the most frequent one.
const SHOWN_DIFFERENCES: usize = 3;

/// The names of pages that are in the list of regions, and are no mappings.
const GATES: [&[u8]; 2] = [b"[vsyscall]", b"[vectors]"];

/// Its mappings, as `vm.max_map_count` counts them, and where half of that is used, in what neighbours differ.
fn mappings(
    target: &Target,
    regions: &[Region],
    sink: &mut dyn Sink,
) -> Result<(u64, Fact<Vec<UnmergedPairs>>), Error> {
    let mut budget = sink.budget();
    let mapped: Vec<&Region> = counted_regions(regions).collect();
    let count = mapped.len() as u64;
    if used_limit(target, count).is_none() {
        return Ok((count, Err(Reason::NotApplicable("less than half of vm.max_map_count is used"))));
    }
    let pairs = |found: Unmerged<'_>| UnmergedPairs {
        pairs: found.pairs,
        differ_in: found.differ_in.iter().map(|difference| difference.word()).collect(),
        meaning: found.differ_in.into_iter().map(in_words).collect::<Vec<_>>().join(" and "),
        first: found.first.1.range.start(),
        permissions: [found.first.0, found.first.1].map(|region| region.permissions.to_string()).to_vec(),
    };
    match unmerged::differences(&target.process, &mapped, &mut budget) {
        Ok(found) => Ok((count, Ok(found.into_iter().map(pairs).collect()))),
        Err(inspect::Error::Target(why)) => Ok((count, Err(why.into()))),
        Err(error) => Err(error.into()),
    }
}

/// The regions that `vm.max_map_count` counts: the page that x86 and 32-bit ARM kernels give every process outside of
/// its memory is none of them (`get_gate_vma` in arch/).
pub(super) fn counted_regions<'a>(regions: impl IntoIterator<Item = &'a Region>) -> impl Iterator<Item = &'a Region> {
    regions.into_iter().filter(|region| !GATES.contains(&region.name.as_bytes()))
}

/// `vm.max_map_count`, if half of it is used.
pub(super) fn used_limit(target: &Target, mappings: u64) -> Option<u64> {
    target.machine.most_mappings().ok().filter(|most| mappings >= most / 2)
}

fn in_words(difference: Difference) -> String {
    match difference {
        Difference::Gap => "a gap lies between them",
        Difference::Protection => "protection differs",
        Difference::File => "the file differs",
        Difference::Offset => "the offset in the file differs",
        Difference::Name => "the name differs (prctl)",
        Difference::Flag(code) => return format!("flag `{code}` differs ({})", vm_flag_meaning(code)),
        Difference::UnknownFlag => "a flag differs that is unknown to pmdb",
        Difference::ProtectionKey => "the protection key differs",
        Difference::Policy => "the memory policy differs (NUMA)",
        Difference::Few => "of what smaps shows, which is not read for so few",
        Difference::Changed => "one of them changed during the command",
        Difference::Kind => "the kernel merges none of their kind",
        Difference::Hidden => "they were written apart, or one was moved (/proc does not show it)",
    }
    .to_owned()
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
        /// A page among its regions that is no mapping, and does not count: `[vsyscall]`.
        [optional] gate: Option<Name>,
        /// `vm.max_map_count`: with more mappings than this, mmap(2) and mprotect(2) fail with ENOMEM.
        most_mappings: Fact<u64>,
        /// In what neighbouring mappings differ, so that the kernel does not merge them, the most frequent first; not
        /// looked for if less than half of the limit is used.
        unmerged: Fact<Vec<UnmergedPairs>>,
        /// Whether frame numbers are hidden; `null` in a core file without a page map.
        frames_hidden: Option<bool>,
    }

    /// Pairs of neighbouring mappings that differ in the same.
    #[derive(Eq)]
    pub struct UnmergedPairs {
        /// Their number.
        pairs: u64,
        /// In what: `protection`, `flag dc`.
        differ_in: Vec<String>,
        /// The same in a few words.
        meaning: String,
        /// The address where the first of these pairs meets, or where its second mapping begins.
        first: VirtualAddress,
        /// The permissions of the two mappings of that pair.
        permissions: Vec<String>,
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
    write_mappings(lines, process);
    write_unmerged(lines, process);
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

/// What the limit does not count.
fn without(gate: Option<&Name>) -> String {
    gate.map_or_else(String::new, |gate| format!(" without {gate}"))
}

/// How many mappings it has, and whether more fail.
fn write_mappings(lines: &mut Lines, process: &ProcessReport) {
    let line = lines.field("mappings");
    line.push(Role::Plain, count(process.mappings));
    if let Ok(most) = process.most_mappings {
        let (without, limit) = (without(process.gate.as_ref()), count(most));
        // See do_mmap in mm/mmap.c.
        let limits = match process.mappings {
            mappings if mappings >= most => {
                format!(
                    "{without} reach the limit, and more fail with ENOMEM (`sysctl vm.max_map_count={}` raises it)",
                    most.saturating_mul(2)
                )
            }
            mappings if mappings >= most - most / 10 => {
                format!("{without} of the allowed {limit} (vm.max_map_count): more fail with ENOMEM")
            }
            _ => format!("{without} of the allowed {limit} (vm.max_map_count)"),
        };
        line.prose(Role::Plain, limits);
    }
}

/// In what neighbouring mappings differ.
fn write_unmerged(lines: &mut Lines, process: &ProcessReport) {
    if let Ok([first, rest @ ..]) = process.unmerged.as_deref() {
        let are = if first.pairs == 1 { "is" } else { "are" };
        let mut words = format!("{} {are} not merged with the next one because {}", count(first.pairs), first.meaning);
        if let [before, after] = first.permissions.as_slice() {
            words.push_str(&format!(" (at {}: {before}, then {after})", first.first));
        }
        let (shown, others) = rest.split_at(rest.len().min(SHOWN_DIFFERENCES));
        words.extend(shown.iter().map(|pairs| format!("\n{} because {}", count(pairs.pairs), pairs.meaning)));
        if !others.is_empty() {
            let others = others.iter().map(|pairs| pairs.pairs).sum();
            words.push_str(&format!("\n{} for other causes", count(others)));
        }
        lines.field("").prose(Role::Plain, words);
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
            mappings: 60_000,
            gate: Some(Name::from("[vsyscall]")),
            most_mappings: Ok(65_530),
            unmerged: Ok(vec![
                UnmergedPairs {
                    pairs: 59_000,
                    differ_in: vec!["protection".into()],
                    meaning: "protection differs".into(),
                    first: VirtualAddress::new(0x7f00_0000_1000),
                    permissions: vec!["rw-p".into(), "---p".into()],
                },
                UnmergedPairs {
                    pairs: 900,
                    differ_in: vec!["flag dc".into()],
                    meaning: "flag `dc` differs (not copied by fork)".into(),
                    first: VirtualAddress::new(0x7f00_0020_0000),
                    permissions: vec!["rw-p".into(), "rw-p".into()],
                },
            ]),
            frames_hidden: Some(true),
        }
    }
}
