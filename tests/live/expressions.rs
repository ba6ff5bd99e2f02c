//! Expressions on real processes: against what the process says of itself, and against plain reads.

use super::support::{is_hole, page_bytes, plain_entry, shows_frames, skip};
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use pmdb::command::LANGUAGE;
use pmdb::command::Print;
use pmdb::eval::{self, Error, Value};
use pmdb::lang::ParsedLine;
use pmdb::process;
use pmdb::state::DebugState;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::sync::atomic::{AtomicU64, Ordering};

pub const TESTS: &[Test] = &[
    ("expressions::memory_is_what_the_process_says", memory_is_what_the_process_says),
    ("expressions::refused_memory_stays_untouched", refused_memory_stays_untouched),
    ("expressions::frames_are_what_pread_says", frames_are_what_pread_says),
    ("expressions::registers_are_what_the_kernel_says", registers_are_what_the_kernel_says),
    ("expressions::a_process_that_is_gone_is_said_to_be", a_process_that_is_gone_is_said_to_be),
];

pub const SCENARIOS: &[Scenario] = &[("expressions", expressions)];

/// A variable with a symbol, on a page of its own making.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Announces where [`NUMBER`] is and what it holds, and a page that was never touched.
fn expressions(_: &[String]) {
    NUMBER.store(0xfedc_ba98_7654_3210, Ordering::SeqCst);
    let (flags, rights) = (MapFlags::PRIVATE, ProtFlags::READ | ProtFlags::WRITE);
    let bytes = 16 * page_bytes() as usize;
    // SAFETY: a fresh mapping at no fixed address, never unmapped and never used.
    let untouched = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, rights, flags) };
    let untouched = untouched.expect("memory").addr();
    let number = (&raw const NUMBER).addr();
    announce(format_args!("{number:#x} {:#x} {untouched:#x}", NUMBER.load(Ordering::SeqCst)));
    wait();
}

/// A session that looks at a process.
fn looking_at(target: &Target) -> DebugState {
    let mut state = DebugState::new(process::machine());
    state.attach(target.attach());
    state
}

fn value(state: &DebugState, text: &str) -> Result<Value, Error> {
    match LANGUAGE.parse_line(&format!("print {text}")) {
        Ok(ParsedLine::Command { command, .. }) => match command.node.downcast_ref() {
            Some(Print { value, .. }) => eval::value(value, state),
            other => panic!("{other:?}"),
        },
        other => panic!("{text}: {other:?}"),
    }
}

fn text(state: &DebugState, text: &str) -> String {
    match value(state, text) {
        Ok(value) => value.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn memory_is_what_the_process_says() {
    let mut target = Target::start("expressions", &[]);
    let announced = target.numbers();
    let [number, holds, _] = announced[..] else {
        panic!("{announced:?}");
    };
    let state = looking_at(&target);
    let name = "live::expressions::NUMBER";
    assert_eq!(text(&state, name), format!("{number:#x}"));
    assert_eq!(text(&state, &format!("{number:#x} - &{name}")), "0");
    assert_eq!(text(&state, &format!("size({name})")), "8");
    assert_eq!(text(&state, &format!("u64({name})")), holds.to_string());
    let [a, b, c, d, ..] = holds.to_ne_bytes();
    let signed = i32::from_ne_bytes([a, b, c, d]);
    assert_eq!(text(&state, &format!("i32({number:#x})")), signed.to_string());
    assert_eq!(text(&state, &format!("symbol({number:#x} + 3)")), format!("{name}+3"));
    assert_eq!(text(&state, &format!("start(region({name})) <= {name}")), "1");
}

fn refused_memory_stays_untouched() {
    let mut target = Target::start("expressions", &[]);
    let untouched = target.numbers()[2];
    let state = looking_at(&target);
    for read in ["u8", "i64", "*"] {
        let error = value(&state, &format!("{read}({untouched:#x})")).expect_err("no memory");
        assert!(error.message.contains("untouched"), "{error}");
    }
    assert!(value(&state, &format!("pfn({untouched:#x})")).is_err());
    assert!(is_hole(target.pid(), untouched));
}

fn frames_are_what_pread_says() {
    let mut target = Target::start("expressions", &[]);
    let number = target.numbers()[0];
    let state = looking_at(&target);
    let got = value(&state, &format!("phys({number:#x})"));
    let frame = plain_entry(target.pid(), number).expect("an entry") & ((1 << 55) - 1);
    match (got, shows_frames()) {
        (Ok(Value::Physical(address)), true) => {
            let wanted = frame * page_bytes() + number % page_bytes();
            assert_eq!(address.get(), wanted);
        }
        (Err(error), false) => {
            assert!(error.message.contains("hidden"), "{error}");
            assert_eq!(error.status(), 4);
        }
        (got, shown) => panic!("{got:?}, and frames are shown: {shown}"),
    }
}

fn registers_are_what_the_kernel_says() {
    let mut target = Target::start("expressions", &[]);
    target.line();
    // Stopped, it stands where it is until the end of the test.
    target.stop();
    let state = looking_at(&target);
    let plain = match std::fs::read_to_string(format!("/proc/{}/syscall", target.pid())) {
        Ok(plain) => plain,
        Err(error) => {
            assert!(value(&state, "$pc").is_err());
            return skip("expressions::registers_are_what_the_kernel_says", &error.to_string());
        }
    };
    let mut words = plain.split_whitespace().rev();
    let mut word = || words.next().expect("a register").to_owned();
    assert_eq!(text(&state, "$pc"), word());
    assert_eq!(text(&state, "$sp"), word());
    assert_eq!(text(&state, "start([stack]) <= $sp && $sp < end([stack])"), "1");
}

fn a_process_that_is_gone_is_said_to_be() {
    let mut target = Target::start("expressions", &[]);
    let number = target.numbers()[0];
    let state = looking_at(&target);
    target.end();
    for gone in [
        format!("u8({number:#x})"),
        format!("pfn({number:#x})"),
        format!("region({number:#x})"),
        format!("symbol({number:#x})"),
        "[heap]".to_owned(),
        "all".to_owned(),
        "main".to_owned(),
        "$pc".to_owned(),
    ] {
        let error = value(&state, &gone).expect_err("nothing of a process that is gone");
        assert_eq!(error.status(), 3, "{gone}: {error}");
        assert!(error.message.contains("has exited"), "{gone}: {error}");
    }
    assert_eq!(text(&state, "2 * 21"), "42");
}
