//! Real processes, inspected through pmdb and, by each test, in a second way that shares no code with it.
//!
//! The target processes are this program again, started with the name of a scenario; see [`target`]. A module of tests
//! has a list of `TESTS`, each a name and a function, and one of `SCENARIOS`, which run in those processes.
//!
//! Tests that this machine or this user cannot run are skipped, see [`skips`].
#![allow(unsafe_code)]

mod access;
mod account;
mod answers;
mod behind;
mod by_region;
mod capture;
mod capture_compared;
mod capture_families;
mod capture_files;
mod capture_format;
mod capture_names;
mod cgroup;
mod changes;
mod devices;
#[path = "../differential/mod.rs"]
mod differential;
#[path = "../program/executable.rs"]
mod executable;
mod explain;
mod expressions;
mod failing;
mod files;
mod heap;
mod heap_blocks;
mod heap_capture;
mod heap_family;
mod heap_hostile;
mod heap_libcs;
mod heap_rows;
mod held;
mod held_up;
mod how;
mod huge;
mod identity;
mod layouts;
mod lent;
mod limits;
mod lines;
mod machine;
mod memory;
mod nodes;
mod owners;
mod page_map;
mod patched;
mod pointers;
mod programs;
mod puppet;
mod reconcile;
mod regions;
mod reverse;
#[path = "../sample/mod.rs"]
mod sample;
mod shown;
mod silent;
#[path = "../skips/mod.rs"]
mod skips;
mod slots;
mod snapshots;
mod soft_dirty;
mod states;
mod support;
mod symbols;
mod system;
mod tables;
mod target;
mod timeline;
mod undisturbed;
mod userfault;
mod waits;
mod walk;
mod watch;
mod who;

use libtest_mimic::{Arguments, Trial};
use std::time::Instant;

/// A test: its name and its function. It fails by panicking.
type Test = (&'static str, fn());

/// A scenario: its name, and what a target does with its arguments.
type Scenario = (&'static str, fn(&[String]));

const TESTS: &[&[Test]] = &[
    account::TESTS,
    answers::files::TESTS,
    answers::large::TESTS,
    answers::memory::TESTS,
    answers::rights::TESTS,
    answers::swap::TESTS,
    answers::threads::TESTS,
    behind::TESTS,
    by_region::TESTS,
    capture::TESTS,
    capture_compared::TESTS,
    capture_families::TESTS,
    capture_files::TESTS,
    capture_format::TESTS,
    capture_names::TESTS,
    cgroup::TESTS,
    changes::TESTS,
    devices::TESTS,
    differential::TESTS,
    explain::TESTS,
    explain::entries::TESTS,
    explain::large::TESTS,
    explain::not_huge::TESTS,
    explain::userfaults::TESTS,
    explain::zeros::TESTS,
    expressions::TESTS,
    failing::TESTS,
    files::TESTS,
    heap::TESTS,
    heap_blocks::TESTS,
    heap_capture::TESTS,
    heap_family::TESTS,
    heap_hostile::TESTS,
    heap_libcs::TESTS,
    heap_rows::TESTS,
    held::TESTS,
    held_up::TESTS,
    huge::TESTS,
    how::TESTS,
    identity::TESTS,
    layouts::TESTS,
    lent::TESTS,
    limits::TESTS,
    lines::addr2line::TESTS,
    lines::back::TESTS,
    lines::elsewhere::TESTS,
    lines::gdb::TESTS,
    lines::reasons::TESTS,
    machine::TESTS,
    memory::TESTS,
    nodes::TESTS,
    owners::TESTS,
    page_map::TESTS,
    programs::TESTS,
    reconcile::TESTS,
    regions::TESTS,
    reverse::TESTS,
    silent::TESTS,
    slots::TESTS,
    snapshots::TESTS,
    soft_dirty::TESTS,
    states::TESTS,
    symbols::TESTS,
    tables::TESTS,
    undisturbed::TESTS,
    walk::TESTS,
    timeline::TESTS,
    watch::TESTS,
    patched::TESTS,
    pointers::TESTS,
    who::TESTS,
];

const SCENARIOS: &[&[Scenario]] = &[
    account::charges::SCENARIOS,
    account::filesystems::SCENARIOS,
    account::deleted::SCENARIOS,
    account::device_files::SCENARIOS,
    account::objects::SCENARIOS,
    account::reserved::SCENARIOS,
    account::rings::SCENARIOS,
    account::segments::SCENARIOS,
    answers::swap::SCENARIOS,
    capture_names::SCENARIOS,
    expressions::SCENARIOS,
    files::SCENARIOS,
    heap::SCENARIOS,
    heap_blocks::SCENARIOS,
    heap_capture::SCENARIOS,
    heap_family::SCENARIOS,
    heap_hostile::SCENARIOS,
    heap_rows::SCENARIOS,
    held::SCENARIOS,
    held_up::SCENARIOS,
    identity::SCENARIOS,
    memory::SCENARIOS,
    owners::SCENARIOS,
    page_map::SCENARIOS,
    patched::SCENARIOS,
    pointers::SCENARIOS,
    puppet::SCENARIOS,
    regions::SCENARIOS,
    reverse::SCENARIOS,
    silent::SCENARIOS,
    slots::SCENARIOS,
    symbols::SCENARIOS,
    target::SCENARIOS,
    undisturbed::SCENARIOS,
    who::SCENARIOS,
];

fn main() {
    if let Some(scenario) = target::asked_for() {
        return target::play(&scenario, SCENARIOS);
    }
    let arguments = Arguments::from_args();
    // As `--report-time` of the other test programs, which libtest-mimic does not have.
    let prints_times = std::env::var_os("PMDB_TIMES").is_some();
    let all = TESTS.iter().flat_map(|list| list.iter());
    let trials = all.map(|&(name, test)| {
        Trial::test(name, move || {
            let begin = Instant::now();
            test();
            if prints_times {
                println!("test live::{name} ... ok <{:.3}s>", begin.elapsed().as_secs_f64());
            }
            Ok(())
        })
    });
    skips::count_at_exit();
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
