//! Samples of records about the session, its target, and values.

use super::pages::{data, va, why};
use crate::kernel::*;
use crate::report::*;

pub fn value() -> ValueReport {
    ValueReport {
        as_number: None,
        number: Some(1),
        name: None,
        kind: "address",
        value: "0x555555558010".into(),
        also: Some("93824992247824".into()),
        elements: None,
        symbol: Some(AsText(SymbolBrief { name: Name::from("counter"), offset: 16, module: Name::from("demo") })),
        region: Some(Name::from("/usr/bin/demo")),
    }
}

pub fn symbol() -> SymbolReport {
    SymbolReport {
        name: Name::from("core::fmt::write"),
        mangled: Some(Name::from("_ZN4core3fmt5writeE")),
        address: va(0x555555555139),
        size: 45,
        offset: 16,
        kind: "function",
        section: Some(Name::from(".text")),
        module: Name::from("demo"),
        file_address: va(0x1139),
    }
}

pub fn symbol_row() -> SymbolReport {
    SymbolReport { offset: 0, ..symbol() }
}

pub fn symbols_summary() -> SymbolsSummary {
    SymbolsSummary {
        symbols: 12,
        cut_short: true,
        silent: vec![SilentModule {
            module: Name::from("libodd.so"),
            reason: "the file ends before its symbol table".into(),
        }],
    }
}

pub fn module() -> ModuleReport {
    ModuleReport {
        start: va(0x555555554000),
        end: va(0x55555555a000),
        name: Name::from("/usr/bin/demo"),
        deleted: false,
        build_id: Some("abcdef0123456789".into()),
        answers: Some("debug-file"),
        debug_file: Some(Name::from("/usr/lib/debug/.build-id/ab/cdef0123456789.debug")),
        symbols: Some(1234),
        why: Why::default(),
    }
}

pub fn module_of_exports() -> ModuleReport {
    ModuleReport {
        deleted: true,
        answers: Some("dynamic"),
        debug_file: None,
        why: why(&[("debug_file", Reason::NotInFile("no separate debug file is installed".into()))]),
        ..module()
    }
}

pub fn module_unread() -> ModuleReport {
    ModuleReport {
        build_id: None,
        answers: None,
        symbols: None,
        why: why(&[("symbols", Reason::NotInFile("not an ELF file".into()))]),
        ..module_of_exports()
    }
}

pub fn line() -> LineReport {
    let mut no_column = Why::default();
    no_column.note("column", &Reason::NotApplicable("the compiler told no column"));
    let file = Some(Name::from("/src/server.c"));
    LineReport {
        address: va(0x555555555139),
        start: Some(va(0x555555555131)),
        end: Some(va(0x555555555140)),
        module: Some(Name::from("demo")),
        symbol: Some(SymbolBrief { name: Name::from("handle"), offset: 25, module: Name::from("demo") }),
        file: file.clone(),
        line: Some(210),
        column: Some(5),
        first: None,
        frames: vec![
            LineFrame {
                function: Some(Name::from("parse::header(char const*)")),
                file: file.clone(),
                line: Some(210),
                column: Some(5),
                inlined: true,
                why: Why::default(),
            },
            LineFrame {
                function: Some(Name::from("handle")),
                file,
                line: Some(300),
                column: None,
                inlined: false,
                why: no_column,
            },
        ],
        why: Why::default(),
    }
}

/// Stretches of code of one line: the first, one behind it, and one where it has no code.
pub fn line_places() -> [LineReport; 3] {
    let place = |start, end, first| LineReport {
        address: va(start),
        start: Some(va(start)),
        end: Some(va(end)),
        first: Some(first),
        ..line()
    };
    [
        place(0x555555555131, 0x555555555140, true),
        place(0x555555555148, 0x55555555514c, false),
        place(0x555555555160, 0x555555555160, true),
    ]
}

pub fn no_line() -> LineReport {
    let mut why = Why::default();
    let reason = Reason::NotInFile("no debug information in libc.so.6".into());
    for field in ["start", "end", "file", "line", "column", "frames"] {
        why.note(field, &reason);
    }
    why.note("symbol", &Reason::NotApplicable("no symbol of its module covers it"));
    LineReport {
        start: None,
        end: None,
        module: Some(Name::from("libc.so.6")),
        symbol: None,
        file: None,
        line: None,
        column: None,
        frames: Vec::new(),
        why,
        ..line()
    }
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
            MemoryField { name: "VmPeak".into(), bytes: 12 << 20, meaning: "the most address space it ever had" },
            MemoryField { name: "VmRSS".into(), bytes: 3508 << 10, meaning: "in memory now" },
        ],
        frames_hidden: true,
    }
}

pub fn capabilities() -> Capabilities {
    let capability = |name, available, found: &str, without| Capability {
        name,
        available,
        found: found.into(),
        without,
        remedy: None,
    };
    Capabilities {
        kernel: "6.18.44-amd64".into(),
        pid: Some(812),
        user: Some(1000),
        rights: Some(vec!["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"]),
        first_user_namespace: Some(false),
        capabilities: vec![
            capability("pagemap_scan", Some(true), "PAGEMAP_SCAN answers", ""),
            Capability {
                remedy: Some("a kernel built with CONFIG_MEM_SOFT_DIRTY".into()),
                ..capability(
                    "soft_dirty",
                    Some(false),
                    "pmdb's own regions have no `sd` among their VmFlags",
                    "pages written to since the bits were cleared are unknown",
                )
            },
            capability("swap_types", None, "it may not be read", "told as a group"),
        ],
    }
}

pub fn thread() -> ThreadRow {
    ThreadRow {
        id: 812,
        name: Name::from("demo"),
        state: "S".into(),
        sp: Ok(va(0x7ffd_1234_5678)),
        pc: Ok(va(0x5555_5555_5136)),
        symbol: Some(super::pages::counter()),
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

pub fn process_row() -> ProcessRow {
    ProcessRow {
        memory: None,
        pid: 812,
        user: 1000,
        state: 'S',
        resident: Some(3 << 20),
        name: Name::from("demo"),
        command_line: Some(Name::from("demo --size 4")),
    }
}

pub fn process_memory_row() -> ProcessRow {
    ProcessRow {
        memory: Some(ProcessMemory {
            rss: Some(3 << 20),
            pss: Some(2 << 20),
            uss: Some(1 << 20),
            swapped: Some(0),
            huge: None,
            hidden: false,
        }),
        ..process_row()
    }
}

pub fn displayed() -> DisplayReport {
    DisplayReport { number: Some(1), expression: "rss(heap)".into(), value: Some("4096".into()), reason: None }
}

pub fn displayed_in_vain() -> DisplayReport {
    DisplayReport { number: Some(2), value: None, reason: Some("no process is attached".into()), ..displayed() }
}

pub fn target() -> TargetReport {
    TargetReport {
        event: "attached",
        pid: 812,
        name: Name::from("demo"),
        executable: Some(Name::from("/usr/bin/demo")),
        regions: Some(34),
        remarks: vec!["815 is a thread of this process".into()],
    }
}

pub fn setting() -> SettingReport {
    SettingReport { name: "pagination".into(), value: "on".into(), meaning: "show long output in a pager".into() }
}

pub fn help_overview() -> Help {
    let entry = |name, summary| HelpEntry { name, short: vec![], summary };
    Help::Overview(HelpOverview {
        groups: vec![
            HelpGroup {
                name: "target",
                about: "choose the process to examine",
                commands: vec![
                    entry("attach", "choose the process to examine"),
                    entry("detach", "detach from the process"),
                    entry("info process", "show the facts that the kernel reports about the process"),
                    entry("info threads", "list the threads"),
                    entry("info registers", "show the program counter and the stack pointer"),
                    entry("info capabilities", "list the features that kernel and rights allow"),
                ],
            },
            HelpGroup { name: "look", about: "examine pages", commands: vec![entry("map", "draw the address space")] },
        ],
    })
}

pub fn help_group() -> Help {
    Help::Group(HelpGroup {
        name: "look",
        about: "what is behind addresses",
        commands: vec![
            HelpEntry {
                name: "translate",
                short: vec!["t"],
                summary: "physical address, entry, state and flags of an address",
            },
            HelpEntry { name: "decode", short: vec![], summary: "any raw number in words" },
        ],
    })
}

pub fn help_subject() -> Help {
    Help::Subject(HelpSubject {
        name: "states",
        summary: "the states of a page",
        text: "A page is in one of these states, and the words are the same in tables, in JSON and in filters.\n\n  present         a page frame is mapped\n  guard           a guard page (MADV_GUARD_INSTALL): any access ends the process with a signal\n  walk heap by state\n".into(),
    })
}

pub fn help_command() -> Help {
    Help::Command(HelpCommand {
        name: "translate",
        short: vec!["t"],
        usage: vec!["translate ADDRESS".into(), "translate RANGE".into()],
        summary: "where the byte at an address really is",
        text: "The block shows what the page map says.\nA range gives a row for each run.\n\n  as it is\n\nThe end.",
        examples: vec![
            HelpExample { line: "translate $sp", does: "the top of the stack" },
            HelpExample { line: "translate [heap]", does: "the runs of the heap" },
        ],
    })
}

pub fn assertion() -> AssertionReport {
    AssertionReport {
        expression: "count(buf where present) == 512".into(),
        holds: false,
        message: Some("the buffer is not whole".into()),
        values: vec![AssertionValue {
            expression: "count(buf where present)".into(),
            value: "412".into(),
            wanted: Some("512".into()),
        }],
        place: None,
    }
}

pub fn assertions() -> AssertionsSummary {
    AssertionsSummary { held: 12, failed: 1, unknown: 0 }
}

pub fn error() -> ErrorReport {
    ErrorReport {
        code: ErrorCode::Evaluation,
        message: "there is no symbol, region or module `fooo`".into(),
        place: Some(ErrorPlace {
            file: Some(Name::from("tour.pmdb")),
            line: Some(3),
            column: Some(11),
            width: 4,
            text: "translate fooo".into(),
        }),
        callers: vec![ErrorPlace {
            file: Some(Name::from("all.pmdb")),
            line: Some(1),
            column: Some(8),
            width: 9,
            text: "source tour.pmdb".into(),
        }],
        expected: vec!["an address".into(), "a range".into()],
        hint: Some("did you mean `foo`?".into()),
        nearest: vec![data()],
    }
}
