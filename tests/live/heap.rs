//! Heaps of glibc: what a program's own `mallinfo` and `malloc_trim` say, beside what is seen from outside.

use super::answers::program;
use super::support::{Numbers, skip};
use super::target::{Target, command};
use super::{Scenario, Test};
use pmdb::AddressSpace;
use pmdb::budget::Budget;
use pmdb::inspect::heap::{ArenaOutcome, HeapArena, HeapSearch, HeapSums};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const TESTS: &[Test] = &[
    ("heap::one_arena_as_mallinfo_says", one_arena_as_mallinfo_says),
    ("heap::many_threads_as_mallinfo_says", many_threads_as_mallinfo_says),
    ("heap::memory_that_the_program_took_itself", memory_that_the_program_took_itself),
    ("heap::a_heap_in_several_pieces_is_put_together", a_heap_in_several_pieces_is_put_together),
    ("heap::what_a_trim_gives_back", what_a_trim_gives_back),
    ("heap::several_processes_in_one_sum", several_processes_in_one_sum),
    ("heap::what_grows_is_named", what_grows_is_named),
    ("heap::the_command_in_a_process_and_in_its_capture", the_command_in_a_process_and_in_its_capture),
];

pub const SCENARIOS: &[Scenario] = &[("heap", scenario), ("heap_leak", leak)];

/// Keeps more blocks of 500 bytes each time that a line comes.
fn leak(_: &[String]) {
    let mut next = String::new();
    loop {
        println!("more");
        next.clear();
        if std::io::stdin().read_line(&mut next).is_ok_and(|read| read == 0) {
            return;
        }
        for _ in 0..20_000 {
            std::mem::forget(vec![7_u8; 500]);
        }
    }
}

/// Blocks that are kept grow what is in use, in their class of sizes.
fn what_grows_is_named() {
    if !has_glibc("heap::what_grows_is_named") {
        return;
    }
    let mut target =
        Target::spawn(command("heap_leak", &[]).env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
    target.line();
    let said = program(&[], target.pid(), true, &["heap every 1s for 1ms".to_owned(), "heap every 1s by arena".into()]);
    assert!(said.contains("growth is unknown") && said.contains("samples are sums of all arenas"), "{said}");
    let mut pmdb = std::process::Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "--json", "-p", &target.pid().to_string(), "-ex", "heap every 20ms"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("pmdb runs");
    let mut lines = BufReader::new(pmdb.stdout.take().expect("its output")).lines().map(|line| line.expect("text"));
    let mut next = || serde_json::from_str::<Value>(&lines.next().expect("a line")).expect("an object");
    let first = next();
    assert_eq!((&first["type"], &first["incomplete"]), (&"heap-sample".into(), &0.into()), "{first}");
    // Null in a sample whose arenas changed during the walk.
    let in_use = |sample: &Value| sample["in_use"].as_u64().unwrap_or_default();
    target.send("");
    target.line();
    // At the latest the sample after this one has all of it.
    let grown = in_use(&first) + 20_000 * 500;
    while in_use(&next()) < grown {}
    // SAFETY: it sends a signal to a child that was not waited for.
    assert_eq!(unsafe { libc::kill(pmdb.id() as i32, libc::SIGINT) }, 0);
    let rows: Vec<Value> = lines.map(|line| serde_json::from_str(&line).expect("an object")).collect();
    pmdb.wait().expect("it ends");
    let row = rows.iter().find(|row| row["type"] == "heap-growth").expect("what grew");
    assert!(rows.iter().all(|row| row["type"] != "error"), "{rows:?}");
    let grew = |now: &str, before: &str| row[now].as_u64().expect("a number") - row[before].as_u64().expect("a number");
    assert_eq!(row["smallest"], 512, "{rows:?}");
    assert!((20_000..20_100).contains(&grew("chunks", "chunks_before")), "{row}");
    assert!(grew("in_use", "in_use_before") >= 20_000 * 512, "{row}");
}

/// Allocates and frees blocks at random: `random` of a number each for `threads`.
fn scenario(arguments: &[String]) {
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let (threads, blocks, taken) = (number(0), number(1), number(2));
    // Huge pages would be given back only once they are split.
    // SAFETY: it sets a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    let done = Arc::new(AtomicU64::new(0));
    for seed in 0..threads {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            allocate(seed, blocks);
            done.fetch_add(1, Ordering::Release);
            // Its arena stays its own, and nothing is allocated any more.
            loop {
                // SAFETY: it waits for a signal.
                unsafe { libc::pause() };
            }
        });
    }
    while done.load(Ordering::Acquire) < threads {
        std::thread::yield_now();
    }
    if arguments.get(3).is_some() {
        // SAFETY: the page after the break is nobody's yet.
        unsafe {
            let after = libc::sbrk(0) as usize;
            let after = ((after + 0xffff) & !0xffff) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            assert_eq!(libc::mmap(after, 0x1_0000, libc::PROT_READ, flags, -1, 0), after);
        }
    }
    if threads == 0 {
        allocate(1, blocks / 2);
        if taken > 0 {
            // SAFETY: the break moves up, and nobody else uses these bytes.
            unsafe { libc::sbrk(taken as isize) };
        }
        allocate(2, blocks / 2);
    }
    say_and_wait(false);
    // What it says holds until the next line comes: from here on nothing is allocated.
    while say_and_wait(true) {
        // SAFETY: it gives free memory back.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Announces the sums of `mallinfo`, and waits for a line. Neither allocates. Returns whether one came.
pub(super) fn say_and_wait(is_last: bool) -> bool {
    use std::io::Write;
    let mut text = [0; 128];
    // The newer `mallinfo2` is missing from some libraries; no sum here reaches 2 GiB.
    // SAFETY: it reads counters.
    let info = unsafe { libc::mallinfo() };
    let mut rest = &mut text[..];
    let all = [info.arena, info.fordblks, info.fsmblks];
    writeln!(rest, "{} {} {} {is_last}", all[0], all[1], all[2]).expect("room");
    let left = rest.len();
    let mut line = [0; 64];
    // SAFETY: the buffers are as long as is said.
    unsafe {
        libc::write(1, text.as_ptr().cast(), text.len() - left);
        libc::read(0, line.as_mut_ptr().cast(), line.len()) > 0
    }
}

/// Blocks of 24 to some thousand bytes, of which one in five stays.
pub(super) fn allocate(seed: u64, blocks: u64) {
    let mut random = Numbers(seed);
    let mut kept = Vec::new();
    for _ in 0..blocks {
        let size = 24 + random.below(3000) as usize;
        kept.push(vec![7_u8; size]);
    }
    let mut index = 0;
    kept.retain(|_| {
        index += 1;
        index / 40 % 5 == 0
    });
    std::mem::forget(kept);
}

pub(super) fn arenas(target: &Target) -> Vec<HeapArena> {
    let space = AddressSpace::of(&target.attach()).expect("its regions");
    let mut search = HeapSearch::new(&space, Budget::unlimited()).expect("its memory");
    let mut all = Vec::new();
    while let Some(arena) = search.next().expect("its memory") {
        all.push(arena);
    }
    all
}

/// Whether this program has glibc's malloc.
pub(super) fn has_glibc(test: &str) -> bool {
    let is_gnu = cfg!(target_env = "gnu");
    if !is_gnu {
        skip(test, "this program does not have the C library of GNU");
    }
    is_gnu
}

/// What it says: bytes from the kernel, free bytes, and those of them in lists of small chunks.
pub(super) fn said(target: &mut Target) -> [u64; 3] {
    let line = target.line();
    let mut words = line.split(' ').map(|word| word.parse().unwrap_or_default());
    std::array::from_fn(|_| words.next().expect("three numbers"))
}

/// The same once nothing changes any more.
fn settled(target: &mut Target) -> [u64; 3] {
    said(target);
    target.send("");
    said(target)
}

/// A process with a heap. Settings of the library in the environment would give it another one.
fn start(arguments: &[&str]) -> Target {
    let mut command = command("heap", arguments);
    command.env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES");
    Target::spawn(&mut command)
}

/// What is in an arena that was walked to its end.
#[track_caller]
pub(super) fn sums(arena: &HeapArena) -> &HeapSums {
    arena.sums.as_ref().unwrap_or_else(|| panic!("{arena:?}"))
}

#[track_caller]
pub(super) fn hold(arenas: &[HeapArena], [system, free, fast]: [u64; 3]) {
    for arena in arenas {
        assert_eq!(arena.outcome, ArenaOutcome::Complete, "{arena:?}");
        let sums = sums(arena);
        let heads = arena.system_bytes - sums.in_use.bytes - sums.free.bytes - sums.top - sums.foreign;
        assert!(heads < 0x1000 * arena.parts.len() as u64, "{arena:?}");
        // Nearly all was written to, and nothing given back.
        let resident = arena.resident.expect("a page map");
        let is_large = arena.system_bytes > 1 << 20;
        assert!(resident <= arena.system_bytes && (!is_large || resident > arena.system_bytes / 2), "{arena:?}");
    }
    assert_eq!(arenas.iter().map(|arena| arena.system_bytes).sum::<u64>(), system);
    assert_eq!(arenas.iter().map(|arena| sums(arena).free.bytes + sums(arena).top).sum::<u64>(), free - fast);
}

fn one_arena_as_mallinfo_says() {
    if !has_glibc("heap::one_arena_as_mallinfo_says") {
        return;
    }
    let mut target = start(&["0", "20000"]);
    let said = settled(&mut target);
    hold(&arenas(&target), said);
}

fn many_threads_as_mallinfo_says() {
    if !has_glibc("heap::many_threads_as_mallinfo_says") {
        return;
    }
    let mut target = start(&["7", "50000"]);
    let said = settled(&mut target);
    let arenas = arenas(&target);
    assert!(arenas.len() > 2, "{arenas:?}");
    // More than one heap of 64 MiB.
    assert!(arenas.iter().any(|arena| arena.parts.len() > 1), "{arenas:?}");
    hold(&arenas, said);
}

fn memory_that_the_program_took_itself() {
    if !has_glibc("heap::memory_that_the_program_took_itself") {
        return;
    }
    let mut target = start(&["0", "20000", "40000"]);
    let said = settled(&mut target);
    let arenas = arenas(&target);
    assert!(sums(&arenas[0]).foreign >= 40000, "{arenas:?}");
    let [system, free, fast] = said;
    assert_eq!(arenas[0].outcome, ArenaOutcome::Complete);
    assert_eq!(arenas[0].system_bytes, system);
    assert_eq!(sums(&arenas[0]).free.bytes + sums(&arenas[0]).top, free - fast);
}

/// The sums of the command are those of the program, in a capture with memory too; without memory it refuses.
fn the_command_in_a_process_and_in_its_capture() {
    if !has_glibc("heap::the_command_in_a_process_and_in_its_capture") {
        return;
    }
    let mut target = start(&["2", "20000"]);
    let [system, free, fast] = settled(&mut target);
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (with, without) = (path("with.capture"), path("without.capture"));
    let lines = [
        "heap".to_owned(),
        "heap by size".into(),
        format!("capture {without}"),
        format!("capture {with} with memory"),
        format!("target capture {with}"),
        "heap".into(),
        format!("target capture {without}"),
        "heap".into(),
    ];
    let said = program(&[], target.pid(), true, &lines);
    let records: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of = |word: &'static str| records.iter().filter(move |record| record["type"] == word);
    let sum =
        |record: &Value, names: &[&str]| names.iter().map(|name| record[name].as_u64().expect("a number")).sum::<u64>();
    assert_eq!(of("heap-summary").count(), 3, "{said}");
    for summary in of("heap-summary") {
        assert_eq!((&summary["incomplete"], sum(summary, &["system"])), (&0.into(), system), "{summary}");
        assert_eq!(sum(summary, &["free", "top"]), free - fast, "{summary}");
    }
    let summary = of("heap-summary").next().expect("one");
    let sizes = |name| of("heap-size").map(|row| sum(row, &[name])).sum::<u64>();
    assert_eq!((sizes("in_use"), sizes("free")), (sum(summary, &["in_use"]), sum(summary, &["free"])));
    let error = of("error").next().expect("a refusal");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("has no memory")), "{error}");
}

/// A row for each of two processes, and their sum.
fn several_processes_in_one_sum() {
    if !has_glibc("heap::several_processes_in_one_sum") {
        return;
    }
    let mut targets = [start(&["0", "20000"]), start(&["2", "20000"])];
    let said = targets.each_mut().map(settled);
    // Kernel threads have none, which is no answer about them alone.
    let is_there = std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
    let also = if is_there { ", 2" } else { "" };
    let line = format!("heap of {}, {}{also}", targets[0].pid(), targets[1].pid());
    let text = program(&[], targets[0].pid(), true, &[line]);
    if is_there {
        let alone = program(&[], targets[0].pid(), true, &["heap of 2".to_owned()]);
        assert!(alone.contains("is a kernel thread") && !alone.contains("heap-family"), "{alone}");
    }
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of = |word: &'static str| records.iter().filter(move |record| record["type"] == word);
    let family = of("heap-family").next().expect("a sum");
    assert_eq!((&family["processes"], &family["with_heap"]), (&2.into(), &2.into()), "{family}");
    assert_eq!(family["kernel_threads"], u64::from(is_there), "{family}");
    assert_eq!(of("heap-process").count(), 2, "{text}");
    for (target, [system, free, fast]) in targets.iter().zip(said) {
        let row = of("heap-process").find(|row| row["pid"] == target.pid()).expect("a row");
        let in_use = row["in_use"].as_u64().expect("a number");
        // What is not free is in use, but for the heads of arenas and heaps.
        let used = system - (free - fast);
        assert!(in_use <= used && used - in_use < 0x4000, "{row}: {used}");
    }
}

/// Resident bytes of the process, as the kernel counts them.
pub(super) fn resident(target: &Target) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", target.pid())).expect("its sums");
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a sum");
    line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// With the break in the way, or with huge pages of its own, the library maps memory for the main arena piece by piece.
fn a_heap_in_several_pieces_is_put_together() {
    if !has_glibc("heap::a_heap_in_several_pieces_is_put_together") {
        return;
    }
    let pieces: [(&[&str], &str); 2] =
        [(&["0", "20000", "0", "blocked"], ""), (&["0", "20000"], "glibc.malloc.hugetlb=2")];
    for (arguments, tunables) in pieces {
        let mut target =
            Target::spawn(command("heap", arguments).env_remove("MALLOC_ARENA_MAX").env("GLIBC_TUNABLES", tunables));
        let said = settled(&mut target);
        let arenas = arenas(&target);
        // Libraries before 2.35 do not have the second.
        assert!(arenas[0].parts.len() > 1 || !tunables.is_empty(), "{arenas:?}");
        hold(&arenas, said);
    }
}

fn what_a_trim_gives_back() {
    if !has_glibc("heap::what_a_trim_gives_back") {
        return;
    }
    for threads in ["0", "5"] {
        let mut target = start(&[threads, "40000"]);
        settled(&mut target);
        let foretold: u64 = arenas(&target).iter().map(|arena| sums(arena).trimmable.expect("a page map").now).sum();
        let before = resident(&target);
        target.send("");
        said(&mut target);
        let given = before.saturating_sub(resident(&target));
        println!("{threads} threads: foretold {foretold}, given {given}");
        assert!(foretold > 8 << 20, "{foretold}");
        assert!(foretold.abs_diff(given) <= given / 50, "foretold {foretold}, given {given}");
    }
}
