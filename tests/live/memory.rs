//! What `x`, `find`, `telescope` and `print` read, compared with the target's own bytes and gdb; and that reading
//! changes nothing, page by page.

use super::answers::program;
use super::behind::{DiskFile, Held, drop_cached, is_cached};
use super::how::RESTLESS;
use super::puppet::Puppet;
use super::states::MADV_GUARD_INSTALL;
use super::support::{Numbers, is_hole, is_root, page_bytes, plain_entry, plain_maps, skip};
use super::system;
use super::target::{Target, announce, wait};
use super::{Scenario, Test};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("memory::looking_changes_nothing", looking_changes_nothing),
    ("memory::a_page_that_is_read_counts_as_referenced", a_page_that_is_read_counts_as_referenced),
    ("memory::the_page_cache_is_read_and_not_filled", the_page_cache_is_read_and_not_filled),
    ("memory::a_file_that_ends_within_its_page", a_file_that_ends_within_its_page),
    ("memory::what_is_found_of_a_number", what_is_found_of_a_number),
    ("memory::what_goes_on_after_its_first_page", what_goes_on_after_its_first_page),
    ("memory::fault_reads_through", fault_reads_through),
    ("memory::rows_are_gdb_s", rows_are_gdb_s),
    ("memory::words_are_the_machine_s", words_are_the_machine_s),
];

pub const SCENARIOS: &[Scenario] = &[("memory", |_| {
    let mut numbers = Numbers(7);
    let bytes: Vec<u8> = (0..BYTES).map(|_| numbers.next() as u8).collect();
    let texts = *b"\0one\0two\0three\0four\0five\0six\0seven\0eight\0\
        plain\0tab\tquote\" back\\slash\x1b\x7f\n\0\0end\0\
        one\0two\0three\0four\0five\0six\0seven\0eight\0";
    let (bytes, texts) = (std::hint::black_box(bytes), std::hint::black_box(texts));
    let plain = texts.windows(5).position(|word| word == b"plain");
    announce(format_args!("{:#x} {:#x}", bytes.as_ptr().addr(), texts.as_ptr().addr() + plain.expect("it is there")));
    wait();
    drop(bytes);
})];

/// Bytes that the scenario shows.
const BYTES: usize = 512;

/// Bytes of texts that it shows, with other words before and after them: gdb and pmdb may show random bytes of a stack
/// differently, such as a character for private use.
const TEXT_BYTES: usize = 35;

/// Pages of each stretch of memory that is read.
const PAGES: u64 = 4;

/// The records of some commands on a process.
fn records(pid: u32, lines: &[String]) -> Vec<Value> {
    let json = program(&[], pid, true, lines);
    json.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Rows of `x`: state, source, and length of each.
fn rows(records: &[Value]) -> Vec<(String, Option<String>, u64)> {
    let rows = records.iter().filter(|record| record["type"] == "memory");
    rows.map(|row| {
        let word = |field: &str| row[field].as_str().map(str::to_owned);
        let state = word("state").expect("a state");
        (state, word("source"), row["length"].as_u64().expect("bytes"))
    })
    .collect()
}

/// What a touch of a page would change in a process: the bits of its entries (frames may move by themselves), and its
/// fault counts.
#[derive(PartialEq, Debug)]
struct Standing {
    entries: Vec<(u64, u64)>,
    faults: Vec<String>,
}

impl Standing {
    /// Of every page of every region that is not too large to read one by one.
    fn of(pid: u32) -> Standing {
        // Bits 0 to 56 may change by themselves: the frame, soft-dirty, and whether others map the page too.
        const RESTLESS: u64 = (1 << 57) - 1;
        let map = File::open(format!("/proc/{pid}/pagemap")).expect("its page map");
        let mut entries = Vec::new();
        for (start, end, _) in plain_maps(pid) {
            let mut words = vec![0; ((end - start) / page_bytes() * 8) as usize];
            let read = map.read_at(&mut words, start / page_bytes() * 8).expect("a read");
            let words = words[..read].chunks_exact(8);
            let words = words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight")));
            for (address, entry) in (start..).step_by(page_bytes() as usize).zip(words) {
                let present = entry >> 63 == 1;
                entries.push((address, if present { entry & !RESTLESS } else { entry }));
            }
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its stat");
        let behind_name = stat.rsplit_once(')').expect("a name").1;
        let fields: Vec<&str> = behind_name.split_whitespace().collect();
        // Minor and major faults, its own and those of children it has waited for.
        let faults = fields[7..11].iter().map(|field| (*field).to_owned());
        Standing { entries, faults: faults.collect() }
    }
}

/// The flags of the frames of some pages, without those that change by themselves: a read changes none of these.
fn steady_flags(pid: u32, start: u64, pages: u64) -> Vec<u64> {
    const FRAME: u64 = (1 << 55) - 1;
    let file = File::open("/proc/kpageflags").expect("flags");
    let flags = (0..pages).map(|page| {
        let entry = plain_entry(pid, start + page * page_bytes()).expect("an entry");
        assert_eq!(entry >> 63, 1, "a page that was written to");
        let mut word = [0; 8];
        let offset = (entry & FRAME) * 8;
        file.read_exact_at(&mut word, offset).expect("a word");
        u64::from_ne_bytes(word) & !RESTLESS
    });
    flags.collect()
}

/// What a touch would change in shared memory: the counts of smaps for the region, and the size of the object itself.
#[derive(PartialEq, Debug)]
struct Object {
    counted: Vec<String>,
    /// Blocks, and when it was last read; not for everybody to see.
    kept: Option<(u64, i64, i64)>,
}

impl Object {
    fn of(pid: u32, start: u64) -> Object {
        let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
        let begins = format!("{start:x}-");
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&begins));
        let first = lines.next().expect("the region");
        let range = first.split(' ').next().expect("a range");
        let counts = lines.take_while(|line| !line.starts_with("VmFlags"));
        Object {
            counted: counts.filter(|line| !line.starts_with("Referenced")).map(str::to_owned).collect(),
            kept: std::fs::metadata(format!("/proc/{pid}/map_files/{range}"))
                .ok()
                .map(|object| (object.blocks(), object.atime(), object.atime_nsec())),
        }
    }
}

/// Pages of shared memory that only a child has written are read, though the process has not mapped them. Holes stay
/// holes.
fn what_only_others_have_touched_is_read(pid: u32, start: u64) {
    let bytes = PAGES * page_bytes();
    let records = records(pid, &[format!("x/{bytes}xb {start:#x}")]);
    let rows: Vec<&Value> = records.iter().filter(|record| record["type"] == "memory").collect();
    let number = |row: &Value, field: &str| row[field].as_u64().expect("a number");
    let mut read = rows.iter().filter(|row| row["source"] == "file");
    match read.next() {
        Some(first) => {
            let at = format!("{:#x}", start + page_bytes());
            assert_eq!(first["address"], *at, "{first}");
            // The child has added one to each first byte.
            assert_eq!(first["bytes"], "0100000000000000", "{first}");
            let bytes: u64 = 8 + read.map(|row| number(row, "length")).sum::<u64>();
            assert_eq!(bytes, page_bytes());
        }
        None => {
            let why = &rows[0]["why"]["kind"];
            let told = why.as_str().expect("a reason");
            assert!(told.contains("CAP_CHECKPOINT_RESTORE"), "{told}");
            skip("memory::looking_changes_nothing", "this user may not look behind shared memory");
        }
    }
    let absent = rows.iter().filter(|row| row["source"].is_null());
    for row in absent {
        assert_eq!(row["state"], "untouched", "{row}");
        assert_eq!(row["kind"], "shmem", "{row}");
    }
}

/// The page cache has no bytes after the end of a file: that is no failure of `find`, and no change.
fn a_file_that_ends_within_its_page() {
    const REST: u64 = 1360;
    let file = DiskFile::of(page_bytes() + REST);
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, 2, libc::PROT_READ, libc::MAP_PRIVATE);
    let found = records(puppet.0.pid(), &[format!("find {memory:#x}, +2p, \"no such text\"")]);
    let summary = found.last().expect("a summary");
    assert_eq!((&summary["cached"], &summary["cache_unread"]), (&2.into(), &0.into()), "{summary}");
    assert_eq!(summary["searched"], page_bytes() + REST, "{summary}");
    let end = memory + page_bytes() + REST;
    let rows = records(puppet.0.pid(), &[format!("x/8xb {:#x}", end - 4)]);
    let lengths: Vec<_> = rows.iter().map(|row| (&row["length"], &row["source"])).collect();
    assert_eq!(lengths, [(&4.into(), &"file".into()), (&4.into(), &Value::Null)], "{rows:?}");
    assert_eq!(rows[1]["why"]["source"], "after the end of the file", "{rows:?}");
}

/// `find` searches a number without a type as four bytes. If that finds nothing, a note names the search for bytes.
fn what_is_found_of_a_number() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let contents = File::open(format!("/proc/{}/mem", puppet.0.pid())).expect("its memory");
    let mut first = [0];
    contents.read_exact_at(&mut first, memory).expect("a byte");
    let byte = first[0];
    let find = |how: &str, number: &str| {
        program(&[], puppet.0.pid(), false, &[format!("find{how} {memory:#x}, +1, {number}")])
    };
    let note = "`find/b` searches for single bytes";
    let plain = find("", &byte.to_string());
    assert!(plain.contains("0 matches") && plain.contains(note), "{plain}");
    for said in [find("/b", &byte.to_string()), find("", &format!("(char){byte}"))] {
        assert!(said.contains("1 match ") && !said.contains(note), "{said}");
    }
}

/// What answers for one page says how many the range has.
fn what_goes_on_after_its_first_page() {
    let puppet = Puppet::start();
    let says = |line: &str| program(&[], puppet.0.pid(), false, &[line.to_owned()]).contains(", page 1 of ");
    assert!(says("explain [stack]"));
    assert!(!says("explain start([stack])"));
    if is_root() {
        assert!(says("flags heap") && says("who heap"));
        assert!(!says("flags start(heap)") && !says("who start(heap)"));
    }
}

fn looking_changes_nothing() {
    const NAME: &str = "memory::looking_changes_nothing";
    let swap = system::swap();
    let mut puppet = Puppet::start();
    let pid = puppet.0.pid();
    let written = puppet.maps("anonymous", PAGES);
    puppet.writes(written, PAGES);
    let untouched = puppet.maps("anonymous", PAGES);
    puppet.writes(untouched, 1);
    let zeros = puppet.maps("anonymous", PAGES);
    puppet.reads(zeros, PAGES);
    let shared = puppet.maps("memfd", PAGES);
    puppet.writes(shared, 1);
    let guard = puppet.maps("anonymous", PAGES);
    puppet.writes(guard, PAGES);
    let guarded = puppet.advises(guard + page_bytes(), 1, MADV_GUARD_INSTALL);
    let swapped = puppet.maps("anonymous", PAGES);
    puppet.writes(swapped, PAGES);
    _ = puppet.advises(swapped, PAGES, libc::MADV_PAGEOUT);
    let file = DiskFile::of(PAGES * page_bytes());
    drop_cached(&file, 0, PAGES);
    let held = Held::of(&file, 1, 1);
    let mapped = puppet.maps_file(&file, PAGES, libc::PROT_READ, libc::MAP_PRIVATE);
    // Pages that only a child has touched are in the page cache, not mapped here, and between holes. Another one is in
    // swap.
    let objects = ["shared", "memfd", "copied"].map(|verb| {
        let object = puppet.maps(verb, PAGES);
        if verb != "copied" {
            let child = puppet.does("fork", &[object + page_bytes(), 1]);
            puppet.does("kill", &[child]);
        }
        object
    });
    let [touched_by_a_child, other, _] = objects;
    let paged_out = puppet.maps("memfd", PAGES);
    puppet.writes(paged_out, PAGES);
    _ = puppet.advises(paged_out, PAGES, libc::MADV_PAGEOUT);
    puppet.0.stop();
    let behind = || objects.map(|start| Object::of(pid, start));
    let (objects_before, swapped_before) = (behind(), Object::of(pid, paged_out));
    let cached = || -> Vec<bool> { (0..PAGES).map(|page| is_cached(&file, page)).collect() };
    let (before, cached_before) = (Standing::of(pid), cached());
    let flags = || is_root().then(|| steady_flags(pid, written, PAGES));
    let flags_before = flags();

    let areas =
        [written, untouched, zeros, shared, guard, swapped, mapped, touched_by_a_child, other, objects[2], paged_out];
    let bytes = PAGES * page_bytes();
    let mut lines = Vec::new();
    for area in areas {
        lines.push(format!("x/{bytes}xb {area:#x}"));
        lines.push(format!("x/{}xg {:#x}", bytes / 8, area + 4));
        lines.push(format!("x/20s {area:#x}"));
        lines.push(format!("x/-{}xw {:#x}", bytes / 4, area + bytes));
        lines.push(format!("x/-20s {:#x}", area + bytes));
        lines.push(format!("telescope {area:#x} {}", bytes / 8));
        lines.push(format!("find {area:#x}, +{bytes}, 0x01020304"));
        lines.push(format!("print *{:#x}", area + 2 * page_bytes()));
        lines.push(format!("print u32({area:#x})"));
    }
    lines.push("find/b3 all, \"no such text: \", hex\"00 ff 00 ff\"".to_owned());
    let said = program(&[], pid, false, &lines);
    assert!(said.contains("<not resident: untouched>"), "{said}");
    assert_eq!(cached(), cached_before);
    let after = Standing::of(pid);
    for (before, after) in before.entries.iter().zip(&after.entries) {
        assert_eq!(before, after, "page {:#x}", before.0);
    }
    assert_eq!(before, after);
    assert_eq!(flags(), flags_before);
    assert_eq!(behind(), objects_before);
    assert_eq!(Object::of(pid, paged_out), swapped_before);
    if flags_before.is_none() {
        skip(NAME, "only root may read /proc/kpageflags");
    }

    // The answers are true of each page.
    let of = |area: u64| rows(&records(pid, &[format!("x/{bytes}xb {area:#x}")]));
    let states = |area: u64| {
        let mut states: Vec<(String, u64)> = Vec::new();
        for (state, _, length) in of(area) {
            match states.last_mut() {
                Some((last, total)) if *last == state => *total += length,
                _ => states.push((state, length)),
            }
        }
        states
    };
    let page = page_bytes();
    let known = |parts: &[(&str, u64)]| -> Vec<(String, u64)> {
        let parts = parts.iter();
        parts.map(|(state, pages)| ((*state).to_owned(), pages * page)).collect()
    };
    assert_eq!(states(written), known(&[("present", PAGES)]));
    assert_eq!(states(zeros), known(&[("present", PAGES)]));
    let rest = [("present", 1), ("untouched", PAGES - 1)];
    assert_eq!(states(untouched), known(&rest));
    assert_eq!(states(shared), known(&rest));
    match guarded {
        Ok(()) => {
            let parts = [("present", 1), ("guard", 1), ("present", PAGES - 2)];
            assert_eq!(states(guard), known(&parts));
        }
        Err(error) => skip(NAME, &format!("MADV_GUARD_INSTALL: error {error}")),
    }
    match (&swap, plain_entry(pid, swapped)) {
        (Ok(_), Some(entry)) if entry >> 62 == 1 => {
            assert_eq!(states(swapped), known(&[("swapped", PAGES)]));
        }
        (Err(reason), _) => skip(NAME, reason),
        (Ok(_), entry) => skip(NAME, &format!("not swapped out: {entry:x?}")),
    }
    what_only_others_have_touched_is_read(pid, touched_by_a_child);
    what_only_others_have_touched_is_read(pid, other);
    assert_eq!(behind(), objects_before);
    drop(held);
    drop(puppet);
    drop(swap);
}

fn a_page_that_is_read_counts_as_referenced() {
    let mut puppet = Puppet::start();
    let pid = puppet.0.pid();
    let area = puppet.maps("anonymous", PAGES);
    puppet.writes(area, PAGES);
    // It uses no page by itself from now on.
    puppet.0.stop();
    let referenced = || {
        let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("smaps");
        let mut lines = smaps.lines().skip_while(|line| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let at = |text: &str| u64::from_str_radix(text, 16).ok();
            let range = range.and_then(|(start, end)| at(start).zip(at(end)));
            !range.is_some_and(|(start, end)| (start..end).contains(&area))
        });
        lines.find(|line| line.starts_with("Referenced:")).expect("a count").to_owned()
    };
    std::fs::write(format!("/proc/{pid}/clear_refs"), "1").expect("cleared");
    assert_eq!(referenced().split_whitespace().nth(1), Some("0"));
    program(&[], pid, false, &[format!("walk {area:#x}, +{PAGES}p"), format!("translate {area:#x}")]);
    assert_eq!(referenced().split_whitespace().nth(1), Some("0"), "commands that read no memory");
    program(&[], pid, false, &[format!("x/8xb {:#x}", area + page_bytes())]);
    let page = (page_bytes() >> 10).to_string();
    assert_eq!(referenced().split_whitespace().nth(1), Some(&*page));
}

/// The pages of a file that are in the page cache, once read-ahead is done.
fn settled(file: &File, pages: u64) -> Vec<bool> {
    let cached = || -> Vec<bool> { (0..pages).map(|page| is_cached(file, page)).collect() };
    let (mut last, mut since) = (cached(), Instant::now());
    while since.elapsed() < Duration::from_millis(100) {
        let now = cached();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        std::thread::yield_now();
    }
    last
}

fn the_page_cache_is_read_and_not_filled() {
    const NAME: &str = "memory::the_page_cache_is_read_and_not_filled";
    const MANY: u64 = 64;
    let file = DiskFile::of(MANY * page_bytes());
    drop_cached(&file, 0, MANY);
    let mut puppet = Puppet::start();
    let mapped = puppet.maps_file(&file, MANY, libc::PROT_READ, libc::MAP_PRIVATE);
    puppet.0.stop();
    let pid = puppet.0.pid();
    // One read, after which the kernel reads some pages ahead and marks one of them: reading that one starts more
    // read-ahead.
    file.read_exact_at(&mut [0], 0).expect("a read");
    let before = settled(&file, MANY);
    if before.iter().all(|cached| *cached) || !before[0] {
        return skip(NAME, "the kernel keeps all of the file, or nothing of it");
    }
    let lines = [format!("x/{}xb {mapped:#x}", MANY * page_bytes())];
    let rows = records(pid, &lines);
    assert_eq!(settled(&file, MANY), before);
    let mut from_file = vec![false; MANY as usize];
    for row in rows.iter().filter(|row| row["type"] == "memory") {
        let address = row["address"].as_str().expect("an address");
        let address = u64::from_str_radix(&address[2..], 16).expect("a number");
        let page = (address - mapped) / page_bytes();
        assert_eq!(row["state"], "untouched");
        if row["source"] == "file" {
            from_file[page as usize] = true;
            let bytes = row["bytes"].as_str().expect("bytes");
            assert!(bytes.as_bytes().chunks(2).all(|byte| byte == b"07"), "{row}");
        }
    }
    // The file belongs to this user, so that the kernel shows its page cache.
    assert_eq!(from_file, before);
    for page in 0..MANY {
        assert!(is_hole(pid, mapped + page * page_bytes()));
    }
}

fn fault_reads_through() {
    let file = DiskFile::of(page_bytes());
    drop_cached(&file, 0, 1);
    let mut puppet = Puppet::start();
    let pid = puppet.0.pid();
    let anonymous = puppet.maps("anonymous", 1);
    let mapped = puppet.maps_file(&file, 1, libc::PROT_READ, libc::MAP_PRIVATE);
    puppet.0.stop();
    for (address, bytes) in [(anonymous, "00000000"), (mapped, "07070707")] {
        assert!(is_hole(pid, address));
        let records = records(pid, &[format!("x/4xb --fault {address:#x}")]);
        let row = &records[0];
        // What was in the page cache already needs no fault.
        let source = row["source"].as_str();
        assert_eq!(row["bytes"], bytes, "{row}");
        assert_eq!(row["faulted"], true, "{row}");
        assert_eq!(source, Some("memory"), "{row}");
        assert_eq!(row["state"], "untouched", "{row}");
        let entry = plain_entry(pid, address).expect("an entry");
        assert_eq!(entry >> 63, 1, "{entry:#x}");
        assert!(records[1]["message"].as_str().expect("a note").contains("--fault"));
    }
}

/// The lines after each `==`, with blanks normalised, and without the symbols after addresses, which gdb may name
/// differently.
fn parts(text: &str) -> Vec<String> {
    let plain = |line: &str| {
        let (label, rest) = line.split_once(':').unwrap_or((line, ""));
        let label = label.split(" <").next().unwrap_or(label);
        let words: Vec<&str> = rest.split_whitespace().collect();
        format!("{label}: {}", words.join(" "))
    };
    let parts = text.split("==\n").skip(1);
    parts
        .map(|part| {
            let lines = part.lines().take_while(|line| line.starts_with("0x"));
            lines.map(plain).collect::<Vec<_>>().join("\n")
        })
        .collect()
}

/// Words are put together in the byte order of the machine, whichever that is: by `x`, `print` and `find`, and by
/// `telescope` those of a pointer.
fn words_are_the_machine_s() {
    let mut numbers = Numbers(7);
    let expected: Vec<u8> = (0..BYTES).map(|_| numbers.next() as u8).collect();
    let word = |from: usize, size: usize| {
        let bytes = &expected[from..from + size];
        match size {
            2 => u16::from_ne_bytes(bytes.try_into().expect("2 bytes")).into(),
            4 => u32::from_ne_bytes(bytes.try_into().expect("4 bytes")).into(),
            _ => u64::from_ne_bytes(bytes.try_into().expect("8 bytes")),
        }
    };
    let mut target = Target::start("memory", &[]);
    let start = target.numbers()[0];
    for (unit, size) in [("h", 2), ("w", 4), ("g", 8)] {
        let (bits, at) = (size * 8, start + 40);
        let value = word(40, size);
        let lines = [
            format!("x/2x{unit} {at:#x}"),
            format!("print/x u{bits}({at:#x})"),
            format!("find/{unit}1 {start:#x},+{BYTES}, {value:#x}"),
        ];
        let said = records(target.pid(), &lines);
        let hexadecimal = |value: &Value| {
            let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
            u64::from_str_radix(digits.expect("hexadecimal"), 16).expect("a number")
        };
        assert_eq!(hexadecimal(&said[0]["values"][0]), value, "{said:?}");
        assert_eq!(hexadecimal(&said[0]["values"][1]), word(40 + size, size), "{said:?}");
        assert_eq!(hexadecimal(&said[1]["value"]), value, "{said:?}");
        let first = (0..).find(|&from| word(from, size) == value).expect("it is there");
        assert_eq!(hexadecimal(&said[2]["address"]), start + first as u64, "{said:?}");
    }
    // Those of a pointer.
    let pointer = size_of::<usize>();
    let said = records(target.pid(), &[format!("telescope {:#x} 1", start + 48)]);
    assert_eq!(said[0]["value"], format!("{:#x}", word(48, pointer)), "{said:?}");
}

fn rows_are_gdb_s() {
    const NAME: &str = "memory::rows_are_gdb_s";
    let version = Command::new("gdb").arg("--version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        return skip(NAME, "there is no gdb");
    }
    let mut target = Target::start("memory", &[]);
    let announced = target.numbers();
    let [bytes, text] = announced[..] else {
        panic!("{announced:?}");
    };
    let mut lines = Vec::new();
    for unit in ["b", "h", "w", "g"] {
        for format in ["x", "d", "u", "o", "t", "a", "c", "z", "f"] {
            lines.push(format!("x/19{format}{unit} {bytes:#x}"));
            lines.push(format!("x/3{format}{unit} {:#x}", bytes + 101));
        }
    }
    lines.push(format!("x/5s {text:#x}"));
    for unit in ["b", "h", "w", "g"] {
        for format in ["x", "d", "a", "c", "z", "f"] {
            lines.push(format!("x/-19{format}{unit} {:#x}", bytes + 301));
        }
    }
    // Far enough from unreadable memory, near which gdb loses the last text.
    for before in 0..TEXT_BYTES as u64 {
        lines.push(format!("x/-{}s {:#x}", 1 + before % 5, text + before));
        lines.push(format!("x/{} ", if before % 3 == 0 { "-s" } else { "s" }));
    }
    for size in ["h", "w"] {
        lines.push(format!("x/-4s{size} {:#x}", text + TEXT_BYTES as u64));
        lines.push(format!("x/-7s{size} {:#x}", bytes + 303));
    }
    // Omitted parts, and where the next x continues.
    for sticky in [
        "x/2xh", "x", "x/d", "x/3c", "x", "x/a", "x", "x/2f", "x/x", "x/ow", "x/s", "x/x", "x/-3gx", "x", "x/-2",
        "x/-d", "x/-s", "x", "x/-3s", "x/-2", "x/2", "x/-b", "x/x",
    ] {
        let first = sticky == "x/2xh";
        let address = if first { format!(" {bytes:#x}") } else { String::new() };
        lines.push(format!("{sticky}{address}"));
    }
    let marked = |mark: &str| -> Vec<String> {
        let marked = lines.iter().flat_map(|line| [mark.to_owned(), line.clone()]);
        marked.collect()
    };
    let mut gdb = Command::new("gdb");
    // Without a locale gdb takes text for ASCII.
    gdb.env("LC_ALL", "C.UTF-8");
    gdb.args(["-q", "-nx", "-batch", "-p", &target.pid().to_string()]);
    gdb.args(["-ex", "set width 0", "-ex", "set print repeats unlimited"]);
    gdb.args(["-ex", "set print max-symbolic-offset 1"]);
    for line in marked("echo ==\\n") {
        gdb.args(["-ex", &line]);
    }
    let output = gdb.output().expect("gdb runs");
    let theirs = parts(&String::from_utf8_lossy(&output.stdout));
    if theirs.iter().all(String::is_empty) {
        return skip(NAME, "gdb may not attach");
    }
    let ours = parts(&program(&[], target.pid(), false, &marked("echo ==")));
    assert_eq!(ours.len(), lines.len());
    // gdb shows random characters of two or four bytes by other tables: only the starts of the texts are the same.
    let compared = |line: &str, part: &str| {
        if line.contains("sh ") || line.contains("sw ") {
            part.lines().map(|row| row.split(':').next().unwrap_or(row).to_owned()).collect()
        } else {
            vec![part.to_owned()]
        }
    };
    for ((line, ours), theirs) in lines.iter().zip(&ours).zip(&theirs) {
        assert_eq!(compared(line, ours), compared(line, theirs), "{line}");
    }
}
