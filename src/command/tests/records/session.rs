//! Samples of records about the session, its target, and values.

use super::pages::data;
use crate::kernel::*;
use crate::report::*;

pub fn target() -> TargetReport {
    TargetReport {
        event: TargetEvent::Attached,
        pid: 812,
        name: Name::from("demo"),
        executable: Some(Name::from("/usr/bin/demo")),
        regions: Some(34),
        remarks: vec!["815 is a thread of this process".into()],
    }
}

pub fn help_overview() -> Help {
    let entry = |name, summary| HelpEntry { name, short: vec![], summary };
    Help::Overview(HelpOverview {
        questions: vec![
            HelpQuestion { line: "account", asks: "where is the memory?" },
            HelpQuestion { line: "account of NAME", asks: "what do all processes of a name use together?" },
        ],
        core: vec!["map", "info process"],
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

pub fn help_questions() -> Help {
    let question = HelpQuestion { line: "compare children", asks: "what did a fork copy?" };
    Help::Questions(HelpQuestions { about: "fork".into(), questions: vec![question] })
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
