//! The same work by pmdb: by the engine, and by the whole program.

use pmdb::budget::Budget;
use pmdb::inspect::account::{Family, FamilySums};
use pmdb::inspect::{AddressSpace, Evidence, Neighbours, PhysicalRuns, Snapshot, Totals, Watcher};
use pmdb::kernel::{AddressRange, State, VirtualAddress};
use pmdb::process::{Machine, ProcessHandle, Target};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

pub fn range((start, len): (u64, u64)) -> AddressRange {
    let at = VirtualAddress::new;
    AddressRange::new(at(start), at(start + len)).expect("a range")
}

/// Sweeps a range and counts what is there. `meanwhile` is called for each chunk.
pub fn walk(target: &Target, whole: (u64, u64), need: Evidence, mut meanwhile: impl FnMut()) {
    let space = AddressSpace::of(target).expect("regions");
    let mut totals = Totals::new(space.page_size(), need);
    let mut pages = space.pages(&[range(whole)], need);
    while let Some(chunk) = pages.next().expect("to the end") {
        chunk.pages().for_each(|page| totals.add(&page));
        meanwhile();
    }
    assert!(totals.state(State::Present) > 0);
    assert_eq!(totals.runs().is_some(), need.has_entries());
    black_box(totals.runs());
}

/// Sweeps a range and joins its pages to physically contiguous runs.
pub fn runs(target: &Target, whole: (u64, u64)) {
    let space = AddressSpace::of(target).expect("regions");
    let need = Evidence::FRAMES;
    let (mut runs, mut count) = (PhysicalRuns::new(space.page_size()), 0u64);
    let mut swept = space.pages(&[range(whole)], need);
    while let Some(chunk) = swept.next().expect("to the end") {
        let pages = chunk.pages().filter(|page| page.state() == State::Present);
        pages.for_each(|page| count += u64::from(runs.push(&page, None).is_some()));
    }
    assert!(runs.finish().is_some());
    black_box(count);
}

/// The account of several processes. `meanwhile` is called at each step.
pub fn family(machine: &Arc<Machine>, pids: &[u32], mut meanwhile: impl FnMut()) -> FamilySums {
    let processes = pids.iter().map(|&pid| ProcessHandle::of_numbers(pid, 0)).collect();
    let mut family = Family::new(machine, processes, true);
    while family.next().expect("to the end").is_some() {
        meanwhile();
    }
    let sums = family.sums().expect("sums");
    meanwhile();
    sums
}

/// A snapshot of a range.
pub fn snapshot(target: &Target, whole: (u64, u64), extra: Evidence, contents: bool) -> Snapshot {
    let space = AddressSpace::of(target).expect("regions");
    let spans = vec![range(whole)];
    Snapshot::begin(&space, spans, extra, contents).finish().expect("a snapshot")
}

/// A watch of a range, whose first look has been taken.
pub struct Watch<'a> {
    watcher: Watcher,
    target: &'a Target,
    range: AddressRange,
}

impl<'a> Watch<'a> {
    pub fn of(target: &'a Target, range: AddressRange) -> Self {
        let watcher = Watcher::new(Evidence::empty());
        let mut watch = Watch { watcher, target, range };
        watch.look();
        watch
    }

    pub fn look(&mut self) {
        let range = self.range;
        let look = self.watcher.sample(self.target, Budget::unlimited(), |_| vec![range]).expect("a sample");
        assert_eq!(look.changes().count(), 0, "nothing moves");
    }
}

/// The whole program: starts it with one command, and waits for its end. False if the command failed.
pub fn program(pid: u32, line: &str) -> bool {
    alone(&["-p", &pid.to_string(), "-ex", line])
}

/// The same without a target.
pub fn alone(arguments: &[&str]) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command.args(["-nx", "-batch"]).args(arguments);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().expect("to start pmdb").success()
}

/// The program as at a prompt: started once, for one line after the other.
pub struct Prompt {
    pmdb: Child,
    lines: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Prompt {
    pub fn start(pid: u32) -> Prompt {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
        command.args(["--serve", "-nx", "-p", &pid.to_string()]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut pmdb = piped.spawn().expect("to start pmdb");
        let lines = pmdb.stdin.take();
        let answers = BufReader::new(pmdb.stdout.take().expect("its output")).lines();
        let mut prompt = Prompt { pmdb, lines, answers };
        prompt.answer();
        prompt
    }

    /// Sends a line, and waits for the end of its answer.
    pub fn ask(&mut self, line: &str) {
        let lines = self.lines.as_mut().expect("its input");
        writeln!(lines, "{line}").expect("a prompt");
        self.answer();
    }

    fn answer(&mut self) {
        loop {
            let answer = self.answers.next().expect("an end").expect("text");
            if answer.contains(r#""type":"end""#) {
                assert!(answer.contains(r#""status":"ok""#), "{answer}");
                return;
            }
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.lines = None;
        _ = self.pmdb.wait();
    }
}
