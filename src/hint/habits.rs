//! The commands of gdb, lldb, pwndbg, gef, crash, page-types, pmap and vmtouch. pmdb runs its own command for each,
//! ignores it, or refuses it with a hint. It also refuses words for a task, such as `fork`, with a hint.
//!
//! `help` looks for words of a task first in `command::subjects::questions`, which has every question about them. This
//! table has only the one hint for a line.
//!
//! The words count only if the line does not parse, and only if they are typed in full: the table never changes the
//! meaning of a command or an abbreviation.

use crate::lang::lexer::is_blank;
use crate::lang::{OtherMeaning, OtherWords, Span};

/// A row of [`HABITS`].
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// The first words of the lines that the row is for. A blank matches any number of blanks.
    pub words: &'static [&'static str],
    /// What pmdb does with such a line.
    pub does: Does,
}

/// What pmdb does with a line of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Replaces the words by these. The hint is for a line that does not parse even then.
    Run(&'static str, Option<&'static str>),
    /// Ignores the line, a setting that has no meaning in pmdb.
    Nothing,
    /// Refuses the line with this hint, in which `{}` stands for the words.
    Refuse(&'static str),
    /// Refuses a word for a task with a hint. `help` suggests the command.
    Point {
        /// The name of the command.
        to: &'static str,
        /// The hint: what to type instead.
        hint: &'static str,
    },
}

const fn run(command: &'static str, words: &'static [&'static str]) -> Habit {
    let does = Does::Run(command, None);
    Habit { words, does }
}

const fn run_or(command: &'static str, hint: &'static str, words: &'static [&'static str]) -> Habit {
    let does = Does::Run(command, Some(hint));
    Habit { words, does }
}

const fn refuse(hint: &'static str, words: &'static [&'static str]) -> Habit {
    let does = Does::Refuse(hint);
    Habit { words, does }
}

const fn point(to: &'static str, hint: &'static str, words: &'static [&'static str]) -> Habit {
    let does = Does::Point { to, hint };
    Habit { words, does }
}

/// The words of other programs that pmdb knows.
#[rustfmt::skip]
pub static HABITS: &[Habit] = &[
    // ---- Commands with another name in pmdb.
    run("quit", &["exit"]),
    run_or("set", "`set $x = 3` sets a variable of pmdb; use `gdb -p PID` to set one of the process", &["set var", "set variable"]),
    run_or("regions", "`region ADDRESS` describes the region of one address, and `regions by rss` sorts the list", &[
        "info proc mappings", "info proc map", "info proc m", "i proc m", "info mappings", "info maps", "vmmap", "vmap", "maps", "vm", "libs",
    ]),
    run("info modules", &[
        "image list", "target modules list", "info sharedlibrary", "info shared", "info sharedlib", "info dll", "info files", "info target", "sharedlibrary", "xfiles", "libcinfo", "mod",
    ]),
    run("info process", &[
        "process status", "process info", "process",
        "info proc all", "info proc status", "info proc stat", "info proc cmdline", "info proc exe", "info proc cwd", "info inferiors", "info program",
        "procinfo", "process-status", "pid", "task",
    ]),
    run_or("info symbols", "add a regular expression: `info symbols ^main$`", &[
        "info functions", "info fun", "info variables", "info var", "info non-debugging-symbols",
    ]),
    run("info symbol", &["sym", "image lookup -a", "image lookup --address"]),
    run("info address", &["image lookup -s", "image lookup -n", "image lookup --symbol", "image lookup --name"]),
    run("attach", &["process attach -p", "process attach --pid", "process attach -n", "process attach --name"]),
    run("detach", &["process detach"]),
    run("info registers", &["info register", "info reg", "info r", "i r", "regs", "registers", "register read", "register"]),
    run("info threads", &["info thr", "info th"]),
    run("translate", &["vtop", "v2p", "virt2phys", "pagewalk", "physical"]),
    run_or("region", "add an address: `xinfo $sp`", &["xinfo", "memory region"]),
    run_or("x/64xb", "put the count in the format: `x/64xb ADDRESS`", &["hexdump", "db", "xxd", "hd"]),
    run_or("x/2xg", "put the count in the format: `x/8xg ADDRESS`", &["rd", "mem"]),
    run_or("x/8xg", "put the count in the format: `x/8xg ADDRESS`", &["dq"]),
    run_or("x/32xb", "put count, format and size after the slash: `x/8xw ADDRESS`", &["memory read"]),
    run_or("x/16xw", "put the count in the format: `x/16xw ADDRESS`", &["dd"]),
    run_or("x/32xh", "put the count in the format: `x/32xh ADDRESS`", &["dw"]),
    run("x/s", &["da", "ds"]),
    run("telescope", &["dereference", "deref", "dps", "dqs"]),
    run("telescope $sp", &["stack"]),
    run_or("find all,", "add a value, a \"text\" or hex\"bytes\"; `find RANGE, VALUE` searches only a range", &["search", "search-pattern", "grep"]),
    run("print", &["inspect", "eval"]),
    run("show convenience", &["show values", "show conv"]),
    run("show history size", &["show history"]),
    run("history", &["show commands"]),
    refuse("`set pagination off` prints without a pager", &["set pager off"]),
    refuse("`help user-defined` lists the commands that you defined", &["show user", "info user"]),
    run("help", &["man", "?"]),
    // A row for each topic, as the topic is not inserted into `help`.
    run("help cookbook", &["cookbook"]),
    run("help faq", &["faq"]),
    refuse("`help cookbook` lists commands by question, and `tour` shows the main ones on the demonstration (`pmdb demo`)", &["recipes", "tutorial"]),
    run("source ':tour'", &["tour"]),
    refuse("in a shell, `pmdb demo` starts the demonstration process, and `tour` at its prompt shows the main commands", &["demo"]),
    refuse("`{}` is a command of the gdb plugin (`help gdb`); here `watch RANGE` reports changes, and `diff` the changes since a snapshot", &["track", "until-change"]),
    refuse("this is the prompt of pmdb: leave the word out, or attach to a process with `attach PID`", &["pmdb"]),

    // ---- Settings of a ~/.gdbinit, which are ignored.
    Habit {
        words: &[
            "set annotate", "set architecture", "set auto-load", "set auto-solib-add", "set backtrace", "set breakpoint", "set case-sensitive",
            "set charset", "set check", "set complaints", "set confirm", "set context-sections", "set cp-abi", "set debug", "set debuginfod",
            "set demangle-style", "set detach-on-fork", "set disable-randomization", "set disassemble-next-line", "set disassembly-flavor",
            "set dprintf-style", "set endian", "set extended-prompt", "set filename-display", "set follow-exec-mode", "set follow-fork-mode",
            "set history expansion", "set history filename", "set history remove-duplicates", "set history save", "set host-charset",
            "set language", "set listsize", "set max-completions", "set max-value-size", "set multiple-symbols", "set non-stop", "set osabi",
            "set print", "set p", "set prompt", "set python", "set record", "set remotetimeout", "set scheduler-locking",
            "set schedule-multiple", "set show-tips", "set startup-quietly", "set startup-with-shell", "set step-mode",
            "set stop-on-solib-events", "set style enabled", "set style sources", "set editing on", "set editing off", "set suppress-cli-notifications", "set target-charset", "set trace-commands", "set tui",
            "set unwindonsignal", "set verbose", "set watchdog",
        ],
        does: Does::Nothing,
    },

    // ---- Commands that need the process to stop.
    refuse("pmdb never starts, stops or steps a process: use `{}` in `gdb -p PID`. pmdb can examine the same process at the same time", &[
        "run", "start", "starti", "c", "fg", "step", "s", "next", "n", "stepi", "si", "nexti", "ni", "until", "u", "advance", "finish",
        "return", "jump", "j", "kill", "k", "signal", "queue-signal", "interrupt", "stop", "handle", "process launch", "process continue", "process interrupt", "process kill", "process signal", "checkpoint", "restart", "record", "rec",
        "reverse-continue", "rc", "reverse-step", "rs", "reverse-next", "rn", "reverse-finish", "stepover", "nextcall", "stepret", "stepuntilasm",
        "nextret", "nextsyscall", "xuntil", "skip", "skipi", "entry", "entry-break", "follow", "inferior", "add-inferior", "clone-inferior",
        "unattach", "disconnect", "set args", "set environment", "unset environment", "unset", "set cwd", "set exec-wrapper", "show args",
        "show environment", "info terminal", "tty",
    ]),
    refuse("write `else` on its own line, and then an `if` with its own `end` (`help scripts`)", &["elif", "elsif", "elseif"]),
    refuse("pmdb never stops or starts a process: use `{}` in `gdb -p PID`. In loops of command files, use `loop_break` and `loop_continue`", &["break", "continue"]),
    refuse("pmdb never stops a process: use `{}` in `gdb -p PID`. Here `watch RANGE until FILTER` waits until a page matches", &[
        "br", "brea", "b", "tbreak", "tb", "hbreak", "thbreak", "rbreak", "rwatch", "awatch", "catch", "tcatch", "condition", "commands",
        "ignore", "enable", "disable", "delete", "del", "d", "clear breakpoints", "trace", "ftrace", "strace", "tstart", "tstop", "tstatus", "collect",
        "actions", "save", "dprintf", "info breakpoints", "info break", "info b", "i b", "info watchpoints", "info catchpoints", "info signals",
        "info handle", "info record", "info checkpoints", "info tracepoints", "info skip", "info tvariables", "breakrva", "brva", "name-break",
        "trace-run",
    ]),
    refuse("pmdb does not unwind the stack: use `{}` in `gdb -p PID`. Here `telescope $sp` shows the contents of the stack, and `info line $pc` the source line", &[
        "bt", "backtrace", "where", "up", "down", "select-frame", "faas", "frame apply", "info frame", "info f", "info stack", "info s",
        "stackf", "retaddr", "context", "ctx", "ctxp", "info unwinder",
    ]),
    refuse("`flags pfn:N` explains a page frame, and `flags phys:ADDRESS` that of a physical address; pmdb does not unwind the stack (`telescope $sp` shows its contents)", &["frame"]),
    refuse("all threads share one address space (`info threads` lists them); for one thread, use `{}` in `gdb -p PID`", &[
        "thread", "threads", "t a a", "thread apply", "taas", "tfaas", "thread name", "thread find", "info tasks",
    ]),
    refuse("pmdb shows no source text: use `{}` in `gdb -p PID`. Here `info line ADDRESS` names the file and the line", &[
        "list", "l", "edit", "directory", "dir", "forward-search", "reverse-search", "info source", "info sources", "tags",
    ]),
    refuse("pmdb reads no types and no local variables: use `{}` in `gdb -p PID`. Here `info address NAME` finds a symbol, and `x/8xg NAME` shows its memory", &[
        "ptype", "whatis", "explore", "info types", "info locals", "info args", "info scope", "info vtbl", "info macro", "info macros", "macro",
        "info type-printers", "info pretty-printer", "struct", "union", "tree", "pcustom", "dt", "info selectors", "info classic",
        "info common", "info exceptions",
    ]),
    refuse("pmdb does not decode instructions: use `x/i` in `gdb -p PID`. Here `x/xb` shows the bytes, and `info symbol ADDRESS` the function", &[
        "disassemble", "disas", "disass", "nearpc", "pdisass", "u-disassemble", "emulate", "dis", "capstone-disassemble", "unicorn-emulate", "asm",
    ]),
    refuse("pmdb changes nothing in the process: use `gdb -p PID`, with set var or call", &[
        "call", "compile", "restore", "wr", "eb", "ed", "ew", "eq", "ez", "eza", "patch", "patch_list", "nop", "mprotect", "memfrob", "xor", "mmap",
        "edit-flags", "hijack-fd", "sigreturn", "load", "vmmap_load", "inject",
    ]),
    refuse("`info registers` and `info threads` show $pc and $sp of waiting threads; use `gdb -p PID` for other registers", &[
        "info all-registers", "info float", "info vector", "info os", "cpsr", "fsbase", "gsbase", "tls",
    ]),
    run_or("export core", "add a file: `export core FILE`", &["gcore", "generate-core-file"]),
    refuse("pmdb writes no raw memory: use `{}` in `gdb -p PID`. Here `x/4096xb ADDRESS > FILE` writes the bytes as text", &[
        "dump", "append", "dumpargs",
    ]),
    run_or("target capture", "add a file: `target capture FILE` opens a capture or a core file", &["core-file", "core", "target core"]),
    refuse("pmdb reads names from the files that the process maps (`info modules`), and for a core file from /usr/lib/debug; `target capture FILE` opens a capture or a core file", &[
        "file", "exec-file", "symbol-file", "add-symbol-file", "remove-symbol-file", "target remote", "target extended-remote", "target exec", "remote", "monitor", "mon",
        "gef-remote", "set sysroot", "set solib-search-path", "set substitute-path", "set debug-file-directory", "section", "nosharedlibrary",
        "add-symbol-file-from-memory", "info auto-load", "info extensions", "info win", "info w32",
    ]),
    refuse("pmdb prints line by line: for a second window beside gdb, run `watch RANGE` in another terminal", &[
        "layout", "tui", "focus", "refresh", "winheight", "winwidth", "winname", "winsize", "update", "tmux-setup",
    ]),
    refuse("command files have `if`, `while`, `foreach` and `define` (`help scripts`); for programs, `pmdb --serve` is a server (`help serve`)", &[
        "python", "py", "python-interactive", "guile", "gu", "gr", "guile-repl", "make", "extend", "gef", "pwndbg", "maintenance",
        "mt", "maint", "with", "add-auto-load-safe-path", "memoize", "reload", "plugins", "theme", "config", "info guile", "interpreter-exec",
    ]),
    refuse("`x ADDRESS` shows memory, and `regions` lists it", &["memory"]),
    refuse("`help gdb` explains how to use pmdb together with gdb", &["gdb"]),
    refuse("`print EXPRESSION` shows a value, and `echo TEXT` a text", &["po", "p2p", "probeleak", "leakfind", "xaddr", "hex2ptr"]),
    refuse("subtract the addresses: `print B - A`", &["distance", "dist", "offset"]),
    refuse("`print start(NAME)` shows where a module begins, and `info modules` lists all modules", &["piebase", "codebase", "libcbase", "kbase", "rebase"]),

    // ---- Of pwndbg and gef: allocators, exploits.
    refuse("`heap` adds up the chunks of malloc, in use and free; use pwndbg or gef for single chunks and lists", &[
        "arena", "arenas", "bins", "fastbins", "smallbins", "largebins", "unsortedbin", "tcache", "tcachebins", "vis_heap_chunks", "vis",
        "malloc_chunk", "malloc-chunk", "mp", "find_fake_fast", "heap-info", "heap_config", "top_chunk", "try_free", "jemalloc_heap", "mallocng-explain",
        "ptmalloc",
    ]),
    refuse("`x/gx NAME@got` shows an entry of the table, and `info symbols @got` lists all entries by name", &["got", "gotplt", "plt", "tracegot"]),
    refuse("`regions` shows the permissions of each region; for the file, use `checksec --file=PROGRAM` or `readelf -lW PROGRAM`", &[
        "checksec", "elf", "elfheader", "elf-info", "elfsections", "elf-section", "readelf", "info sections", "maint info sections", "aslr", "vdso",
        "canary", "kchecksec", "info probes",
    ]),
    refuse("pmdb does not show the auxiliary vector: use `{}` in `gdb -p PID`", &["info auxv", "auxv"]),
    refuse("pmdb stays in the directory in which it was started (`!pwd` shows it)", &["cd", "pwd"]),
    refuse("pmdb has few of gdb's settings: `show` lists them", &[
        "show print", "show p", "show confirm", "show architecture", "show language", "show disassembly-flavor", "show follow-fork-mode",
        "show endian", "show prompt", "show listsize", "show scheduler-locking", "show non-stop", "show verbose", "show charset",
    ]),
    refuse("pmdb has no tools for exploits: use `{}` in pwndbg or gef", &[
        "rop", "ropgadget", "ropper", "cyclic", "pattern", "shellcode", "format-string-helper", "onegadget", "fmtarg", "radare2", "r2", "ghidra",
        "rizin", "decomp", "errno", "spray", "killthreads", "valist",
    ]),
    refuse("`find RANGE, VALUE` searches for a value, and `telescope ADDRESS` follows pointers", &["scan", "functions", "pointer", "references"]),

    // ---- Of crash.
    refuse("`who phys:ADDRESS` lists the processes that map a physical address, and `flags phys:ADDRESS` describes its page frame", &["ptov", "p2v", "phys2virt"]),
    refuse("`decode VALUE as entry` explains a page-map entry, and `translate --how ADDRESS` shows the entry of an address", &["pte", "pgd"]),
    refuse("`print pfn(ADDRESS)` shows the frame, and `print phys(ADDRESS)` the physical address", &["btop", "ptob", "pfn", "phys"]),
    refuse("`flags phys:ADDRESS` explains a page frame, and `summary frames` counts all physical frames", &["kmem", "page_owner", "buddydump", "pcplist", "page"]),
    refuse("`regions by {}` lists the largest regions first, and `info process` shows the sums of the process", &["rss", "pss"]),
    refuse("`walk all where swapped or maybe_swapped` lists pages in swap, and `regions where swapped > 0` their regions", &["swap", "swaps", "swapon"]),
    refuse("`who ADDRESS` lists the processes that map a page", &["fuser", "lsof", "files", "filemap"]),
    refuse("pmdb examines the memory of processes: for the kernel, use `{}` in crash, or drgn", &[
        "bpf", "dev", "irq", "log", "dmesg", "kdmesg", "mach", "mount", "net", "runq", "sig", "sys", "timer", "waitq", "ipcs", "ascii", "repeat", "sbitmapq",
        "ktask", "kversion", "kcmdline", "ksymaddr-remote", "slabinfo", "kmod",
    ]),

    // ---- Other programs of the shell.
    refuse("`walk all by flags` counts pages by their flags, as page-types does; `walk RANGE where FILTER` selects pages, and `flags ADDRESS` explains them", &[
        "page-types", "pagetypes", "kpageflags", "kpagecount",
    ]),
    refuse("`translate ADDRESS` explains the page-map entry of an address, and `walk all by flags` counts all pages by their flags", &["pagemap"]),
    refuse("`regions` shows the facts of pmap, and `region ADDRESS full` those of pmap -X and smaps; `regions by rss` begins with the largest", &[
        "pmap", "smaps", "cat", "smem", "info mem", "maps_dump", "procmem",
    ]),
    refuse("`walk RANGE where cached` counts untouched pages that are in the page cache, and `walk RANGE where not_cached` those that are not", &["vmtouch", "fincore", "pcstat", "mincore"]),
    refuse("`walk all by node` counts the pages of each node", &["numa", "numastat", "numactl", "numa_maps", "numa-maps"]),

    // ---- Words for a task.
    point("walk", "`walk pfn:A..pfn:B where flags(slab)` lists the frames of the kernel's slab allocator; pmdb does not show the blocks of malloc", &[
        "slab", "slub", "kmalloc",
    ]),
    point("watch", "`watch RANGE as timeline` draws the states of pages over time", &["timeline"]),
    point("walk", "`walk RANGE by run` lists the physical pieces, and `assert runs(RANGE) == 1` checks that there is one", &[
        "fragmentation", "fragmented", "contiguous", "contiguity",
    ]),
    point("pins", "`pins RANGE` lists the pages that are pinned, and who may have pinned them", &["pinned"]),
    point("pins", "`pins RANGE` lists who holds pages, and `explain ADDRESS` the references to one page", &["refs"]),
    point("who", "`who ADDRESS` lists the processes that map a page", &["sharers", "sharing"]),
    point("regions", "`regions where swapped > 0` lists regions with pages in swap, and `walk all where swapped or maybe_swapped` these pages", &["swapped"]),
    point("huge", "`huge` lists why memory is not on huge pages, and `walk RANGE where thp` the pages that are", &[
        "hugepage", "hugepages", "thp",
    ]),
    point("heap", "`heap every 1s for 10s` lists the sizes of blocks that grow, and `source ':leak'` the regions that grow; from a shell: `pmdb -batch -x :leak PID`", &["leak", "leaks"]),
    point("compare", "`compare children` lists what a fork copied and what it still shares", &["fork"]),

    // ---- Commands of the shell.
    refuse("`ps top 5` lists the largest processes; the program: `!top`", &["top"]),
    refuse("run it in the shell: `!{}`", &["ls", "free", "vmstat", "htop", "slabtop", "clear", "less", "vi", "vim", "sudo", "bash"]),
];

/// The row that matches the beginning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundHabit {
    /// The span of the words in the line.
    pub at: Span,
    /// The words as in the table.
    pub words: &'static str,
    /// What pmdb does with the line.
    pub does: Does,
}

/// Returns the row with the longest words that `line` begins with.
pub fn of(line: &str) -> Option<FoundHabit> {
    let start = line.len() - line.trim_start_matches(is_blank).len();
    let rest = line.get(start..)?;
    let all = HABITS.iter().flat_map(|habit| {
        let words = habit.words.iter();
        words.map(move |words| (*words, habit.does))
    });
    let found = all.filter_map(|(words, does)| {
        let end = start + length(words, rest)?;
        let at = Span::new(start, end);
        Some(FoundHabit { at, words, does })
    });
    found.max_by_key(|found| found.at.end)
}

/// Returns the length in bytes of `words` at the start of `text`, with all its blanks. Returns `None` if `text` does
/// not begin with them as whole words.
fn length(words: &str, text: &str) -> Option<usize> {
    let mut rest = text;
    for word in words.split(' ') {
        rest = rest.trim_start_matches(is_blank).strip_prefix(word)?;
        if !rest.is_empty() && !rest.starts_with(|c| is_blank(c) || c == '/') {
            return None;
        }
    }
    Some(text.len() - rest.len())
}

impl FoundHabit {
    /// Converts the row for the parser. Returns `None` for a pasted row, such as `frame #0: …` of lldb, which is not
    /// refused.
    pub(super) fn for_parser(self, is_pasted: bool) -> Option<OtherWords> {
        let meaning = match self.does {
            Does::Nothing => OtherMeaning::Nothing,
            Does::Run(ours, hint) => OtherMeaning::Ours(ours, hint),
            Does::Refuse(_) | Does::Point { .. } if is_pasted => return None,
            Does::Refuse(hint) | Does::Point { hint, .. } => OtherMeaning::Refused(self.hint(hint)),
        };
        Some(OtherWords { at: self.at, meaning })
    }

    /// Returns `hint` with the words inserted.
    pub fn hint(&self, hint: &str) -> String {
        hint.replace("{}", self.words)
    }
}
