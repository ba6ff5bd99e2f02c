//! The short files about one process or thread: `/proc/PID/stat`, `status`, `syscall` (program counter and stack
//! pointer of a waiting thread) and `auxv` (the auxiliary vector that the kernel passed to a program).

use super::numa::NodeList;
use super::text::{self, BadLine};
use super::{AddressRange, Name, VirtualAddress};
use procfs::FromRead;

/// The flag of a kernel thread (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

/// The largest process id that the kernel assigns (`PID_MAX_LIMIT` in include/linux/threads.h).
pub const LARGEST_PID: u32 = 4 << 20;

/// The fields of `/proc/PID/stat` that pmdb needs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stat {
    /// The name of the process (`comm`), not escaped as it is in `status`.
    pub name: Name,
    /// The state: `R`, `S`, `D`, `Z` …
    pub state: char,
    /// Process id of the parent.
    pub parent: u32,
    /// Whether the process is a kernel thread, which has no user memory.
    pub is_kernel_thread: bool,
    /// Number of threads.
    pub threads: u32,
    /// Clock ticks from boot to the start of the process.
    pub start_time: u64,
    /// Resident pages.
    pub resident_pages: u64,
    /// The addresses of the arguments, if the reader may see them.
    pub arguments: Option<AddressRange>,
    /// The first address of the heap (`start_brk`), if the reader may see it.
    pub heap: Option<VirtualAddress>,
    /// The address at which the first stack began (`start_stack`), if the reader may see it.
    pub stack: Option<VirtualAddress>,
    /// The exit status, as `wait` gives it; 0 also if the reader may not see it.
    pub exit_code: i32,
}

impl Stat {
    /// Decodes the line. `comm` is in parentheses and may contain any byte, also parentheses and newlines.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        Self::fields(bytes).ok_or_else(|| BadLine { file: "stat", line: 1, text: Name::new(bytes.trim_ascii_end()) })
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let open = bytes.iter().position(|&byte| byte == b'(')?;
        let close = bytes.iter().rposition(|&byte| byte == b')')?;
        let rest = bytes.get(close + 1..)?.trim_ascii();
        // `procfs` decodes the numbers well, but needs a UTF-8 name and something other than whitespace (also of
        // Unicode) after it. So the name is replaced, and the rest is never blank.
        let line = [b"1 (name) ", rest].concat();
        let stat = rest.first()?.is_ascii_graphic().then(|| procfs::process::Stat::from_read(&line[..]))?.ok()?;
        let address = |address: Option<u64>| address.map(VirtualAddress::new);
        Some(Stat {
            name: Name::new(bytes.get(open + 1..close)?),
            state: stat.state,
            parent: u32::try_from(stat.ppid).ok()?,
            is_kernel_thread: stat.flags & PF_KTHREAD != 0,
            threads: u32::try_from(stat.num_threads).ok()?,
            start_time: stat.starttime,
            resident_pages: stat.rss,
            arguments: address(stat.arg_start)
                .zip(address(stat.arg_end))
                .and_then(|(start, end)| AddressRange::new(start, end)),
            heap: address(stat.start_brk.filter(|&start| start > 0)),
            stack: address(Some(stat.startstack).filter(|&start| start > 0)),
            exit_code: stat.exit_code.unwrap_or_default(),
        })
    }
}

/// The fields of `/proc/PID/status` that pmdb needs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The state, as one letter and its word: `S (sleeping)`.
    pub state: String,
    /// The process of the thread (Tgid).
    pub process: u32,
    /// The process id in the innermost PID namespace of the process (NSpid, Linux 4.1), or `process` if the kernel does
    /// not show it.
    pub own_number: u32,
    /// The process id of the tracer; 0 if there is none.
    pub tracer: u32,
    /// Real user id.
    pub user: u32,
    /// Real, effective and saved user id, as far as the file has them.
    pub users: Vec<u32>,
    /// Real, effective and saved group id, as far as the file has them.
    pub groups: Vec<u32>,
    /// The permitted capabilities (CapPrm), a bit each; 0 if the file does not have the line.
    pub permitted: u64,
    /// The effective capabilities (CapEff).
    pub effective: u64,
    /// The Vm, Rss and Huge fields in the order of the file: the kernel's name and bytes. Empty for a process without
    /// memory.
    pub memory: Vec<(String, u64)>,
    /// `THP_enabled`: whether transparent huge pages are not switched off for the process (PR_SET_THP_DISABLE); since
    /// Linux 5.0.
    pub may_be_huge: Option<bool>,
    /// `Mems_allowed_list`: the nodes that the cpuset allows; `None` if the file does not have the line.
    pub allowed_nodes: Option<NodeList>,
}

impl Status {
    /// Decodes the file. Unknown fields are skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let (mut state, mut process, mut tracer, mut user) = (None, None, None, None);
        let (mut users, mut groups, mut permitted, mut effective) = (Vec::new(), Vec::new(), 0, 0);
        let (mut memory, mut own_number, mut may_be_huge, mut allowed_nodes) = (Vec::new(), None, None, None);
        for line in text::lines(bytes) {
            let bad = || line.bad("status");
            let (key, value) = text::split_once(line.bytes, b':').ok_or_else(bad)?;
            let first = text::fields(value).next().unwrap_or_default();
            let number = || text::decimal(first).ok_or_else(bad);
            let ids = || text::fields(value).take(3).filter_map(text::decimal).collect();
            let bits = || text::hexadecimal(first).unwrap_or(0);
            match key {
                b"State" => state = Some(text::lossy(value.trim_ascii())),
                b"Tgid" => process = Some(number()?),
                b"NSpid" => own_number = text::fields(value).last().and_then(text::decimal),
                b"TracerPid" => tracer = Some(number()?),
                b"Uid" => (user, users) = (Some(number()?), ids()),
                b"Gid" => groups = ids(),
                b"CapPrm" => permitted = bits(),
                b"CapEff" => effective = bits(),
                b"Mems_allowed_list" => allowed_nodes = NodeList::parse(value),
                b"THP_enabled" => may_be_huge = Some(number()? != 0),
                key if is_of_memory(key) => {
                    memory.push((text::lossy(key), amount(value).ok_or_else(bad)?));
                }
                _ => {}
            }
        }
        let missing = |field: &str| BadLine {
            file: "status",
            line: text::lines(bytes).count() + 1,
            text: Name::new(format!("{field} is missing")),
        };
        let process = process.ok_or_else(|| missing("Tgid"))?;
        Ok(Status {
            state: state.ok_or_else(|| missing("State"))?,
            process,
            own_number: own_number.unwrap_or(process),
            tracer: tracer.ok_or_else(|| missing("TracerPid"))?,
            user: user.ok_or_else(|| missing("Uid"))?,
            users,
            groups,
            permitted,
            effective,
            memory,
            may_be_huge,
            allowed_nodes,
        })
    }
}

impl Status {
    /// Returns why the kernel refuses a process with this status access to `other`, in the order of its checks
    /// (__ptrace_may_access in kernel/ptrace.c, cap_ptrace_access_check in security/commoncap.c). `None` if users,
    /// groups and capabilities are no reason. Capabilities of different user namespaces are not compared.
    pub fn refused_by(&self, other: &Status, is_one_namespace: bool) -> Option<String> {
        let differ = |what: &str, own: &[u32], theirs: &[u32]| {
            // The kernel uses the filesystem id, which follows the effective one.
            let own = own.get(1)?;
            if theirs.iter().all(|id| id == own) {
                return None;
            }
            Some(match theirs {
                [first, rest @ ..] if rest.iter().all(|id| id == first) => {
                    format!("it runs as {what} {first}, pmdb as {what} {own}")
                }
                theirs => {
                    let all: Vec<String> = theirs.iter().map(u32::to_string).collect();
                    format!(
                        "its real, effective and saved {what} ids are {}, and pmdb runs as {what} {own}",
                        all.join(", ")
                    )
                }
            })
        };
        let has_more = is_one_namespace && other.permitted & !self.effective != 0;
        differ("user", &self.users, &other.users)
            .or_else(|| differ("group", &self.groups, &other.groups))
            .or_else(|| has_more.then(|| "it has capabilities that pmdb does not have".to_owned()))
    }
}

/// Returns whether a field is about the memory of a process.
fn is_of_memory(key: &[u8]) -> bool {
    let starts = [&b"Vm"[..], b"Rss", b"Huge"];
    starts.iter().any(|start| key.starts_with(start))
}

/// Parses `1800 kB`, and returns bytes.
fn amount(value: &[u8]) -> Option<u64> {
    let words: Vec<&[u8]> = text::fields(value).collect();
    match words.as_slice() {
        [number, b"kB"] => text::kibibytes(number),
        _ => None,
    }
}

/// A limit of `/proc/PID/limits` at which the kernel refuses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceLimit {
    /// RLIMIT_AS: mmap(2) and brk(2) fail with ENOMEM.
    AddressSpace,
    /// RLIMIT_DATA: mmap(2) and brk(2) fail with ENOMEM for private writable memory.
    Data,
    /// RLIMIT_STACK: an access beyond it raises SIGSEGV.
    Stack,
    /// RLIMIT_MEMLOCK: mlock(2) fails with ENOMEM, and so do drivers that pin memory.
    Locked,
}

impl ResourceLimit {
    /// All limits.
    pub const ALL: [ResourceLimit; 4] =
        [ResourceLimit::AddressSpace, ResourceLimit::Data, ResourceLimit::Stack, ResourceLimit::Locked];

    /// Returns the name of the limit in setrlimit(2).
    pub fn name(self) -> &'static str {
        match self {
            ResourceLimit::AddressSpace => "RLIMIT_AS",
            ResourceLimit::Data => "RLIMIT_DATA",
            ResourceLimit::Stack => "RLIMIT_STACK",
            ResourceLimit::Locked => "RLIMIT_MEMLOCK",
        }
    }

    /// Returns the field of `/proc/PID/status` that the kernel compares with the limit.
    pub fn field(self) -> &'static str {
        match self {
            ResourceLimit::AddressSpace => "VmSize",
            ResourceLimit::Data => "VmData",
            ResourceLimit::Stack => "VmStk",
            ResourceLimit::Locked => "VmLck",
        }
    }

    /// Returns the soft limit in bytes: `Some(None)` if it is unlimited, `None` if the file does not have it.
    pub fn find(self, bytes: &[u8]) -> Option<Option<u64>> {
        let row = match self {
            ResourceLimit::AddressSpace => "Max address space",
            ResourceLimit::Data => "Max data size",
            ResourceLimit::Stack => "Max stack size",
            ResourceLimit::Locked => "Max locked memory",
        };
        // `procfs` underflows on a line with fewer words than the kernel writes.
        let line = text::lines(bytes).find_map(|line| line.bytes.strip_prefix(row.as_bytes()))?;
        let soft = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
        match soft {
            b"unlimited" => Some(None),
            number => text::decimal(number).map(Some),
        }
    }
}

/// The two registers of a waiting thread in `/proc/PID/syscall`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// The address of the next instruction in user space.
    pub program_counter: VirtualAddress,
    /// The stack pointer in user space.
    pub stack_pointer: VirtualAddress,
}

/// The state of a thread in `/proc/PID/syscall`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadState {
    /// On a processor, or about to be: its registers keep changing.
    Running,
    /// In the kernel, by a system call, a fault or a signal.
    Waiting(Registers),
}

impl ThreadState {
    /// Decodes `running`, `-1 SP PC` (waiting, but in no system call) or `NUMBER ARGUMENT*6 SP PC`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        if text == "running" {
            return Some(ThreadState::Running);
        }
        let mut words = text.split(' ').rev();
        let mut address = || {
            let digits = words.next()?.strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok().map(VirtualAddress::new)
        };
        let program_counter = address()?;
        let stack_pointer = address()?;
        let number = match words.count() {
            // One word is the number alone, and seven are the number and six arguments.
            1 | 7 => text.split(' ').next()?,
            _ => return None,
        };
        number.parse::<i64>().ok()?;
        Some(ThreadState::Waiting(Registers { program_counter, stack_pointer }))
    }
}

/// Returns the size of a pointer of the program in bytes. The entries are pairs of its words, in either byte order. The
/// size of a program header (`AT_PHENT`, 4, of include/uapi/linux/auxvec.h) is 56 in a 64-bit program and 32 in a
/// 32-bit one.
pub fn pointer_bytes(bytes: &[u8]) -> Option<u8> {
    let wide = [[4u64, 56].map(u64::to_le_bytes).concat(), [4u64, 56].map(u64::to_be_bytes).concat()];
    let narrow = [[4u32, 32].map(u32::to_le_bytes).concat(), [4u32, 32].map(u32::to_be_bytes).concat()];
    let has = |entries: &[Vec<u8>; 2]| {
        let size = entries[0].len();
        bytes.chunks_exact(size).any(|pair| entries.iter().any(|entry| entry == pair))
    };
    match (has(&wide), has(&narrow)) {
        (true, _) => Some(8),
        (_, true) => Some(4),
        _ => None,
    }
}

/// Returns the address of the program's vdso (`AT_SYSINFO_EHDR`, 33), for the given size of pointers.
pub fn vdso(bytes: &[u8], pointer_bytes: u8) -> Option<u64> {
    const VDSO: u64 = 33;
    let word = |bytes: &[u8]| match pointer_bytes {
        8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
    };
    let size = usize::from(pointer_bytes);
    let mut entries = bytes.chunks_exact(2 * size).filter_map(|pair| pair.split_at_checked(size));
    entries.find_map(|(name, value)| if word(name)? == VDSO { word(value) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What follows the name on Linux 6.18.
    const TAIL: &str = " S 1 5 6 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 3 0 98134 3133440 394 18446744073709551615 94558467072000 \
        94558467090505 140721310389312 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 94558467105840 94558467107456 94558480224256 140721310392163 \
        140721310392183 140721310392183 140721310396393 0\n";

    #[test]
    fn stat_with_any_name() {
        for name in [&b"cat"[..], b"", b"a) S 1 (b", b"x\ny", b"\xff\x1b[0m", b"(sd-pam)"] {
            let line = [b"5 (".as_slice(), name, b")", TAIL.as_bytes()].concat();
            let stat = Stat::parse(&line).expect("a good line");
            assert_eq!(stat.name.as_bytes(), name);
            assert_eq!((stat.state, stat.parent, stat.threads), ('S', 1, 3));
            assert_eq!((stat.start_time, stat.resident_pages), (98134, 394));
            assert!(!stat.is_kernel_thread);
        }
        let kernel =
            b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 18446744073709551615 0 0 0 0 0 0 0 \
            2147483647 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert!(Stat::parse(kernel).expect("a good line").is_kernel_thread);
        for bad in [&b""[..], b"1 (x", b"1 x) S 1", b")(", b"1 (x) S 1 2 3", b"1 (x)", b"1 (x) "] {
            assert!(Stat::parse(bad).is_err());
        }
    }

    const STATUS: &[u8] =
        b"Name:\tbash\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t812\nNgid:\t0\nPid:\t813\nPPid:\t1\nTracerPid:\t77\n\
        Uid:\t1000\t1001\t1002\t1003\nGroups:\t \nVmPeak:\t    2928 kB\nVmRSS:\t    1800 kB\nRssAnon:\t     116 kB\n\
        HugetlbPages:\t       0 kB\nuntag_mask:\t0xffffffffffffffff\nThreads:\t1\n";

    #[test]
    fn status_in_order() {
        let status = Status::parse(STATUS).expect("status");
        assert_eq!((status.process, status.tracer, status.user), (812, 77, 1000));
        assert_eq!(status.state, "S (sleeping)");
        let names: Vec<_> = status.memory.iter().map(|(name, bytes)| (&**name, *bytes)).collect();
        assert_eq!(names, [("VmPeak", 2928 << 10), ("VmRSS", 1800 << 10), ("RssAnon", 116 << 10), ("HugetlbPages", 0)]);
    }

    /// Each of the kernel's questions, in its order: the first that is answered with no is the reason.
    #[test]
    fn why_one_process_may_not_look_at_another() {
        let status = |users: &str, groups: &str, permitted: u64, effective: u64| {
            let text = format!(
                "State:\tS\nTgid:\t1\nTracerPid:\t0\nUid:\t{users}\t9\nGid:\t{groups}\t9\nCapPrm:\t{permitted:016x}\n\
                 CapEff:\t{effective:016x}\n"
            );
            Status::parse(text.as_bytes()).expect("status")
        };
        let own = status("1000\t1000\t1000", "100\t100\t100", 0b11, 0b01);
        let why = |users, groups, permitted| own.refused_by(&status(users, groups, permitted, 0), true);
        assert_eq!(why("1000\t1000\t1000", "100\t100\t100", 0b01), None);
        let as_user = Some("it runs as user 7, pmdb as user 1000".to_owned());
        assert_eq!(why("7\t7\t7", "7\t7\t7", 0), as_user);
        let set_user =
            Some("its real, effective and saved user ids are 1000, 0, 0, and pmdb runs as user 1000".to_owned());
        assert_eq!(why("1000\t0\t0", "100\t100\t100", 0), set_user);
        let group = Some("it runs as group 7, pmdb as group 100".to_owned());
        assert_eq!(why("1000\t1000\t1000", "7\t7\t7", 0b10), group);
        let more = Some("it has capabilities that pmdb does not have".to_owned());
        assert_eq!(why("1000\t1000\t1000", "100\t100\t100", 0b10), more);
        let elsewhere = status("1000\t1000\t1000", "100\t100\t100", 0b10, 0);
        assert_eq!(own.refused_by(&elsewhere, false), None);
    }

    #[test]
    fn the_limits_of_memory() {
        let limits = std::fs::read("/proc/self/limits").expect("limits");
        let text = String::from_utf8(limits.clone()).expect("text");
        let rows = ["Max address space", "Max data size", "Max stack size", "Max locked memory"];
        for (limit, title) in ResourceLimit::ALL.into_iter().zip(rows) {
            let row = text.lines().find(|line| line.starts_with(title)).expect("a row");
            let soft = row.split_whitespace().nth(3).expect("a limit");
            assert_eq!(limit.find(&limits), Some(soft.parse().ok()), "{title}");
            let of = |soft: &str| text.replace(row, &format!("{title:<26}{soft:<21}unlimited            bytes     "));
            assert_eq!(limit.find(of("unlimited").as_bytes()), Some(None));
            assert_eq!(limit.find(of("4096").as_bytes()), Some(Some(4096)));
            assert_eq!(limit.find(b"Limit\n"), None);
        }
    }

    #[test]
    fn what_is_wrong_with_status_is_named() {
        let error = Status::parse(b"State:\tS\nTgid:\t1\nVmRSS:\tmuch\n").expect_err("no number");
        assert_eq!(error.line, 3);
        let error = Status::parse(b"State:\tS\nTgid:\t1\n").expect_err("cut short");
        assert_eq!(error.text.as_bytes(), b"TracerPid is missing");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = Stat::parse(&bytes);
            _ = Status::parse(&bytes);
        }
    }

    #[test]
    fn the_three_forms_of_syscall() {
        let waiting = |stack, counter| {
            Some(ThreadState::Waiting(Registers {
                program_counter: VirtualAddress::new(counter),
                stack_pointer: VirtualAddress::new(stack),
            }))
        };
        assert_eq!(ThreadState::parse(b"running\n"), Some(ThreadState::Running));
        assert_eq!(
            ThreadState::parse(b"-1 0x7ffc0f0e7a58 0x7f5b1c2d4a1e\n"),
            waiting(0x7ffc_0f0e_7a58, 0x7f5b_1c2d_4a1e)
        );
        assert_eq!(
            ThreadState::parse(b"230 0x0 0x0 0x7ffd 0x7ffd 0x0 0x0 0x7ffdcc0 0x7f4e9\n"),
            waiting(0x7ff_dcc0, 0x7_f4e9)
        );
    }

    #[test]
    fn any_other_syscall_text_is_no_state() {
        for text in ["", "running away", "-1 0x1", "-1 1 2", "0 0x1 0x2 0x3", "x 0x1 0x2", "-1 0x1 0x10000000000000000"]
        {
            assert_eq!(ThreadState::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(ThreadState::parse(b"\xff 0x1 0x2"), None);
    }

    #[test]
    fn the_size_of_a_program_header_tells_the_width() {
        let wide = [33, 0x7fff_f7fc_1000, 16, 4, 6, 4096, 4, 56, 0, 0];
        let narrow = [33, 0xf7fc_1000, 16, 4, 6, 4096, 4, 32, 0, 0];
        let wide: Vec<u8> = wide.iter().copied().flat_map(u64::to_ne_bytes).collect();
        let narrow: Vec<u8> = narrow.iter().copied().flat_map(u32::to_ne_bytes).collect();
        assert_eq!(vdso(&wide, 8), Some(0x7fff_f7fc_1000));
        assert_eq!(vdso(&narrow, 4), Some(0xf7fc_1000));
        assert_eq!(vdso(&wide[16..], 8), None);
        assert_eq!(vdso(&wide[..12], 8), None);
        assert_eq!(pointer_bytes(&wide), Some(8));
        assert_eq!(pointer_bytes(&narrow), Some(4));
        assert_eq!(pointer_bytes(&narrow[..narrow.len() - 12]), None);
        assert_eq!(pointer_bytes(&[]), None);
    }
}
