//! The benchmarks, each with its process and its requirement.

use super::measure::{in_turn, on_one_core};
use super::subject::Subject;
use super::table::{Required, Table};
use super::{Size, floor, ours, peers};
use Required::{Bytes, Nothing, Ratio};
use pmdb::inspect::Evidence;
use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

type Question = (&'static str, fn(&Size, &mut Table));

/// All of them, by name.
pub const ALL: &[Question] = &[
    ("a small pages", small_pages),
    ("b huge pages", huge_pages),
    ("c reservations", reservations),
    ("d regions", regions),
    ("e processes", processes),
    ("f start", start),
    ("g machine", machine),
    ("h families", families),
    ("i heaps", super::heaps::heaps),
    ("k captures", super::captures::captures),
    ("l waits", super::waits::waits),
    ("m memory", memory),
    ("n numbers", numbers),
    ("p plugin", super::gdb::plugin),
    ("s symbols", super::symbols::symbols),
    ("t snapshots", snapshots),
    ("v slopes", super::slopes::slopes),
    ("w watch", watch),
];

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// All facts about each frame.
const ALL_FACTS: Evidence = Evidence::FLAGS.union(Evidence::COUNTS).union(Evidence::HUGE);

/// (a) 4 GiB of 4 KiB pages.
fn small_pages(size: &Size, table: &mut Table) {
    let subject = Subject::start("small", &[size.of(4 * GIB, 2 * MIB)]);
    let (pid, whole) = (subject.pid(), subject.range());
    let target = subject.target.attach();
    // First of all, before anything else has grown the heap.
    let grown = growth(&target, whole);
    table.bytes("(a) growth of anonymous memory", grown, Bytes(16 * MIB));
    let frames = || ours::walk(&target, whole, Evidence::ENTRIES, || ());
    let facts = || ours::walk(&target, whole, ALL_FACTS, || ());

    let [raw, one, two, scanned, states] = in_turn(
        size.rounds,
        [
            &mut || floor::entries(pid, whole),
            &mut || on_one_core(frames),
            &mut || frames(),
            &mut || floor::scan(pid, whole),
            &mut || on_one_core(|| ours::walk(&target, whole, Evidence::empty(), || ())),
        ],
    );
    let entries = "pread of the entries";
    table.row("(a) frames and states, one core", &one, entries, &raw, Ratio(1.1));
    table.row("(a) frames and states, two cores", &two, entries, &raw, Ratio(0.65));
    table.row("(a) states alone, one core", &states, entries, &raw, Ratio(0.5));
    table.row("(a) states alone, one core", &states, "PAGEMAP_SCAN", &scanned, Nothing);

    let runs = floor::frame_runs(pid, whole);
    let [raw, one, two] = in_turn(
        size.rounds,
        [&mut || floor::three_files(pid, whole, &runs), &mut || on_one_core(facts), &mut || facts()],
    );
    let three = "pread of three files, by frame";
    table.row("(a) with flags and map counts, one core", &one, three, &raw, Ratio(1.15));
    table.row("(a) with flags and map counts, two cores", &two, three, &raw, Ratio(0.7));

    let [crate_pagemap] = in_turn(1, [&mut || peers::pagemap(pid)]);
    table.row("(a) with flags and map counts, two cores", &two, "crate pagemap", &crate_pagemap, Nothing);
    const PART: u64 = 256;
    let part = (subject.start, (subject.len / PART).max(2 * MIB));
    let [crate_procfs] = in_turn(1, [&mut || peers::procfs(pid, part)]);
    let crate_procfs = crate_procfs.scaled(subject.len as f64 / part.1 as f64);
    let name = format!("crate procfs, flags alone ({PART} × a part)");
    table.row("(a) with flags and map counts, two cores", &two, &name, &crate_procfs, Nothing);
    let question = "(a) with flags and map counts, two cores";
    match peers::page_types() {
        Some(program) => {
            let [types] = in_turn(size.rounds, [&mut || peers::run_page_types(&program, pid)]);
            table.row(question, &two, "page-types, flags alone", &types, Nothing);
        }
        None => table.without(question, "page-types is not on PATH"),
    }
}

/// How much anonymous memory of this program a walk takes at most.
fn growth(target: &pmdb::process::Target, whole: (u64, u64)) -> u64 {
    let (before, most) = (floor::own_anonymous_bytes(), Cell::new(0));
    let mut chunks = 0u64;
    ours::walk(target, whole, ALL_FACTS, || {
        chunks += 1;
        if chunks.is_multiple_of(16) {
            most.set(most.get().max(floor::own_anonymous_bytes()));
        }
    });
    most.get().saturating_sub(before)
}

/// (t) Snapshots of 4 GiB of 4 KiB pages.
fn snapshots(size: &Size, table: &mut Table) {
    let subject = Subject::start("small", &[size.of(4 * GIB, 2 * MIB)]);
    let whole = subject.range();
    let target = subject.target.attach();
    let kept = [
        ("(t) memory of a snapshot", Evidence::empty(), false, 12),
        ("(t) with flags, map counts and contents", Evidence::FLAGS | Evidence::COUNTS, true, 40),
    ];
    for (name, extra, contents, most) in kept {
        let before = floor::own_anonymous_bytes();
        let snapshot = ours::snapshot(&target, whole, extra, contents);
        let grown = floor::own_anonymous_bytes().saturating_sub(before);
        let bytes = grown.max(snapshot.size() as u64);
        table.bytes(name, bytes, Bytes(most * MIB));
    }
    let [runs, snapshot] = in_turn(
        size.rounds,
        [&mut || ours::runs(&target, whole), &mut || drop(ours::snapshot(&target, whole, Evidence::empty(), false))],
    );
    let question = "(t) a snapshot, two cores";
    table.row(question, &snapshot, "a walk by run", &runs, Ratio(1.15));
}

/// (b) 4 GiB of huge pages, alone and after a fork.
fn huge_pages(size: &Size, table: &mut Table) {
    let len = size.of(4 * GIB, 2 * MIB);
    let small = Subject::start("small", &[len]);
    let mut huge = Subject::start("huge", &[len]);
    let (small_target, huge_target) = (small.target.attach(), huge.target.attach());
    let on_small = |need| on_one_core(|| ours::walk(&small_target, small.range(), need, || ()));
    let on_huge = |need| on_one_core(|| ours::walk(&huge_target, huge.range(), need, || ()));
    // Each runs after one that has evicted the kernel's own data on these pages from the processor's caches.
    let [frames, small_frames, least, _] = in_turn(
        size.rounds,
        [
            &mut || on_huge(Evidence::ENTRIES),
            &mut || on_small(Evidence::ENTRIES),
            &mut || floor::huge_entries(huge.pid(), huge.range()),
            &mut || on_small(Evidence::ENTRIES),
        ],
    );
    let [facts, small_facts] = in_turn(size.rounds, [&mut || on_huge(ALL_FACTS), &mut || on_small(ALL_FACTS)]);
    for (name, ours, plain) in [
        ("(b) frames and states, one core", &frames, &small_frames),
        ("(b) with flags and map counts, one core", &facts, &small_facts),
    ] {
        table.row(name, ours, "the same of (a)", plain, Ratio(1.0 / 40.0));
    }
    table.row("(b) frames and states, one core", &frames, "PAGEMAP_SCAN and pread of an entry each", &least, Nothing);
    drop(small);

    huge.target.send("fork");
    assert_eq!(huge.target.line(), "forked");
    let (pid, whole) = (huge.pid(), huge.range());
    let runs = floor::frame_runs(pid, whole);
    let [raw, ours] = in_turn(
        size.rounds,
        [&mut || floor::three_files(pid, whole, &runs), &mut || {
            on_one_core(|| ours::walk(&huge_target, whole, ALL_FACTS, || ()))
        }],
    );
    let three = "pread of three files, by frame";
    table.row("(b) after a fork, flags and map counts, one core", &ours, three, &raw, Ratio(1.15));
}

/// (c) 1 TiB and 16 TiB that nobody may touch, with a thousand pages.
fn reservations(size: &Size, table: &mut Table) {
    let pages = 1000;
    let one = Subject::start("reserved", &[TIB, pages]);
    let sixteen = Subject::start("reserved", &[16 * TIB, pages]);
    let walk = |subject: &Subject| {
        let line = format!("walk {:#x},+{:#x} where present", subject.start, subject.len);
        assert!(ours::program(subject.pid(), &line));
    };
    let [small, large] = in_turn(size.rounds, [&mut || walk(&one), &mut || walk(&sixteen)]);
    let most = Required::Time(Duration::from_millis(25));
    table.row("(c) walk 1 TiB where present, whole program", &small, "16 TiB", &large, most);
    table.row("(c) walk 16 TiB where present, whole program", &large, "1 TiB", &small, Ratio(1.2));
}

/// (d) Very many regions.
fn regions(size: &Size, table: &mut Table) {
    let subject = Subject::start("regions", &[size.of(60_000, 2)]);
    let (pid, all) = (subject.pid(), subject.range());
    let middle = subject.start + subject.len / 2;
    let mut prompt = ours::Prompt::start(pid);
    let line = format!("region {middle:#x}");
    let [raw, reads, region, whole, regions, json] = in_turn(
        size.rounds,
        [
            &mut || floor::maps(pid),
            &mut || floor::counted_regions(pid, all),
            &mut || prompt.ask(&line),
            &mut || assert!(ours::program(pid, &line)),
            &mut || assert!(ours::program(pid, "regions")),
            &mut || assert!(ours::alone(&["--json", "-p", &pid.to_string(), "-ex", "regions"])),
        ],
    );
    let most = Required::Time(Duration::from_millis(2));
    table.row("(d) region ADDR, at the prompt", &region, "read of maps", &raw, most);
    table.row("(d) region ADDR, whole program", &whole, "read of maps", &raw, Nothing);
    table.row("(d) regions, whole program", &regions, "read of maps", &raw, Ratio(1.5));
    let counted = "maps, entries, maps: one thread";
    table.row("(d) regions, whole program", &regions, counted, &reads, Nothing);
    table.row("(d) regions in JSON", &json, counted, &reads, Nothing);
    table.row("(d) maps, entries, maps: one thread", &reads, "read of maps", &raw, Nothing);
}

/// (e) Who maps a frame, among very many processes.
fn processes(size: &Size, table: &mut Table) {
    let len = 256 << 10;
    let mut subject = Subject::start("processes", &[size.of(2000, 1), len, len]);
    let pids: Vec<u32> = subject.target.numbers().iter().map(|&pid| pid as u32).collect();
    let pid = subject.pid();
    let address = subject.start;
    if !ours::program(pid, &format!("who {address:#x}")) {
        return table.without("(e) who ADDR, whole program", "pmdb cannot tell here");
    }
    subject.target.send("one more");
    let [file, near, moved, child] = subject.target.numbers()[..] else {
        panic!("three addresses and a number");
    };
    let who = |pid, address| assert!(ours::program(pid, &format!("who {address:#x}")));
    let [raw, everywhere, of_file, in_relative, elsewhere] = in_turn(
        size.rounds,
        [
            &mut || floor::populated(&pids),
            &mut || who(pid, address),
            &mut || who(child as u32, file),
            &mut || who(child as u32, near),
            &mut || who(pid, moved),
        ],
    );
    let floor = "PAGEMAP_SCAN and pread of all";
    let most = Ratio(1.3);
    for (what, who, most) in [
        ("a frame that all of them map", everywhere, most),
        ("a page of a file that two map", of_file, Nothing),
        ("a page at the same address in two", in_relative, Nothing),
        ("a page that one has moved", elsewhere, most),
    ] {
        let question = format!("(e) who: {what}, whole program");
        table.row(&question, &who, floor, &raw, most);
    }
}

/// (h) The account of 200 processes that share 4 GiB.
fn families(size: &Size, table: &mut Table) {
    const OWN: u64 = MIB;
    let mut subject = Subject::start("processes", &[200, size.of(4 * GIB, 2 * MIB), OWN]);
    let mut pids: Vec<u32> = subject.target.numbers().iter().map(|&pid| pid as u32).collect();
    pids.push(subject.pid());
    let whole = subject.range();
    let machine = subject.target.attach().machine;
    // First of all, before anything else has grown the heap.
    let mut most = 0;
    let before = floor::own_anonymous_bytes();
    let sums = ours::family(&machine, &pids, || most = most.max(floor::own_anonymous_bytes()));
    let (used, rss) = (whole.1, whole.1 * pids.len() as u64);
    assert!(sums.distinct >= used && sums.distinct < used + rss / 10 && sums.rss >= rss, "{sums:?}");
    table.bytes("(h) growth of anonymous memory", most.saturating_sub(before), Bytes(64 * MIB));
    let [raw, one, two] = in_turn(
        size.rounds,
        [
            &mut || pids.iter().for_each(|&pid| floor::entries(pid, whole)),
            &mut || drop(on_one_core(|| ours::family(&machine, &pids, || ()))),
            &mut || drop(ours::family(&machine, &pids, || ())),
        ],
    );
    let entries = "pread of the shared entries of each";
    table.row("(h) account of 200 processes, one core", &one, entries, &raw, Ratio(2.0));
    table.row("(h) account of 200 processes, two cores", &two, entries, &raw, Ratio(2.0));
}

/// (f) The start of the program, for one answer.
fn start(size: &Size, table: &mut Table) {
    let subject = Subject::start("small", &[MIB]);
    let (pid, address) = (subject.pid(), subject.start);
    let folder = tempfile::tempdir().expect("a folder");
    let Some(minimal) = floor::Minimal::compile(folder.path()) else {
        return table.without("(f) translate ADDR, whole program", "no C compiler");
    };
    let [least, ours, nothing] = in_turn(
        size.rounds * 20,
        [
            &mut || minimal.run(pid, address),
            &mut || assert!(ours::program(pid, &format!("translate {address:#x}"))),
            &mut || assert!(ours::alone(&["--version"])),
        ],
    );
    let most = Required::Longer(Duration::from_micros(600));
    table.row("(f) translate ADDR, whole program", &ours, "a C program of one pread", &least, Ratio(2.0));
    table.row("(f) translate ADDR, whole program", &ours, "--version", &nothing, most);
    names(size, table);
}

/// (f) A name, which is looked up in every program and library.
fn names(size: &Size, table: &mut Table) {
    let [few, many] = [200, 60_000].map(|count| Subject::start("regions", &[count]));
    let ask = |subject: &Subject| assert!(ours::program(subject.pid(), "info address main"));
    let [few, many] = in_turn(size.rounds * 5, [&mut || ask(&few), &mut || ask(&many)]);
    table.row("(f) info address NAME, 60,000 regions", &many, "200 regions", &few, Ratio(1.5));

    let question = "(f) walk heap, with 30 libraries";
    let script = "import ctypes, decimal, json, lzma, sqlite3, ssl; print(); input()";
    let mut python = Command::new("python3");
    let python = python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = python else {
        return table.without(question, "python3 is not installed");
    };
    let mut line = String::new();
    let said = BufReader::new(python.stdout.take().expect("its output")).read_line(&mut line);
    if said.is_ok_and(|length| length > 0) {
        let pid = python.id();
        let walk = |name: &str| assert!(ours::program(pid, &format!("walk {name} by state")));
        let [bare, bracketed] = in_turn(size.rounds * 5, [&mut || walk("heap"), &mut || walk("[heap]")]);
        table.row(question, &bare, "walk [heap]", &bracketed, Ratio(2.0));
    } else {
        table.without(question, "python3 lacks a module");
    }
    drop(python.stdin.take());
    _ = python.wait();
}

/// (n) Pages as a number, and a loop of arithmetic.
fn numbers(size: &Size, table: &mut Table) {
    let subject = Subject::start("small", &[size.of(4 * GIB, 2 * MIB)]);
    let mut prompt = ours::Prompt::start(subject.pid());
    let mut other = ours::Prompt::start(subject.pid());
    let [walk, count] = in_turn(
        size.rounds,
        [&mut || prompt.ask("walk all by state"), &mut || other.ask("print count(all where present)")],
    );
    table.row("(n) count(all where present)", &count, "walk all by state", &walk, Ratio(1.1));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("loop.pmdb");
    let turns = size.of(100_000, 100);
    let text = format!("set $i = 0\nwhile $i < {turns}\nset $i = $i + 1\nend\nassert $i == {turns}\n");
    std::fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("a plain path");
    let [nothing, turned] = in_turn(
        size.rounds,
        [&mut || assert!(ours::alone(&["-ex", "echo"])), &mut || assert!(ours::alone(&["-x", path]))],
    );
    table.row(
        "(n) a loop of 100,000 turns, whole program",
        &turned,
        "the program alone",
        &nothing,
        Required::Time(Duration::from_millis(100)),
    );
}

/// (g) The flags of all frames.
fn machine(size: &Size, table: &mut Table) {
    let summary = || assert!(ours::alone(&["-ex", "summary frames"]));
    let [raw, one, all] =
        in_turn(size.rounds, [&mut || _ = floor::all_flags(), &mut || on_one_core(summary), &mut || summary()]);
    let flags = "pread of kpageflags";
    table.row("(g) summary frames, one core", &one, flags, &raw, Nothing);
    table.row("(g) summary frames, two cores", &all, flags, &raw, Ratio(0.7));
}

/// A watch of memory in which nothing happens: the cost of a sample.
fn watch(size: &Size, table: &mut Table) {
    let subject = Subject::start("small", &[size.of(GIB, 2 * MIB)]);
    let (pid, whole) = (subject.pid(), subject.range());
    let target = subject.target.attach();
    let mut watch = ours::Watch::of(&target, ours::range(whole));
    let [raw, look] = in_turn(size.rounds, [&mut || floor::entries(pid, whole), &mut || on_one_core(|| watch.look())]);
    let most = Required::Time(Duration::from_millis(10));
    table.row("watch 1 GiB, one look, one core", &look, "pread of the entries", &raw, most);
}

/// A search in 1 GiB of resident memory, without a match.
fn memory(size: &Size, table: &mut Table) {
    const NEEDLE: &str = "no such text";
    let subject = Subject::start("small", &[size.of(GIB, 2 * MIB)]);
    let (pid, whole) = (subject.pid(), subject.range());
    let mut prompt = ours::Prompt::start(pid);
    let line = format!("find {:#x}, +{}, \"{NEEDLE}\"", whole.0, whole.1);
    let [raw, find] =
        in_turn(size.rounds, [&mut || floor::find(pid, whole, NEEDLE.as_bytes()), &mut || prompt.ask(&line)]);
    table.row("find in 1 GiB", &find, "memmem over process_vm_readv", &raw, Ratio(1.5));
    let subject = Subject::start("partly", &[size.of(128 * MIB, 2 * MIB)]);
    let (start, len) = subject.range();
    let mut prompt = ours::Prompt::start(subject.pid());
    let find = format!("find {start:#x}, +{len}, \"{NEEDLE}\"");
    let shown = format!("x/{}xg {start:#x}", len / 8 / 16);
    let [raw, find, rows] = in_turn(
        size.rounds,
        [&mut || floor::entries(subject.pid(), subject.range()), &mut || prompt.ask(&find), &mut || {
            assert!(ours::program(subject.pid(), &shown))
        }],
    );
    let entries = "pread of the entries";
    let file = "of a file, cached by 4 pages";
    table.row(&format!("find in 128 MiB {file}"), &find, entries, &raw, Nothing);
    table.row(&format!("x of 8 MiB {file}, whole program"), &rows, entries, &raw, Nothing);
}
