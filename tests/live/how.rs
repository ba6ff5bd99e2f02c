//! The reads that `--how` shows, compared with a second read of the same place while the target stands still.

use super::Test;
use super::puppet::Puppet;
use super::support::{is_root, page_bytes, plain_entry, pool_is_hidden, pool_page_bytes, shows_frames, skip};
use pmdb::access::log::Log;
use pmdb::command::{self, LANGUAGE};
use pmdb::lang::ParsedLine;
use pmdb::render::{Record, Sink};
use pmdb::report::Stopped;
use pmdb::state::DebugState;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    ("how::every_word_is_what_stands_in_the_file", every_word_is_what_stands_in_the_file),
    ("how::what_is_not_shown_is_counted", what_is_not_shown_is_counted),
    ("how::the_shell_command_reads_the_same", the_shell_command_reads_the_same),
    ("how::an_answer_is_the_same_with_it", an_answer_is_the_same_with_it),
    ("how::a_command_that_fails_shows_its_reads", a_command_that_fails_shows_its_reads),
    ("how::what_decides_about_the_pool_is_shown", what_decides_about_the_pool_is_shown),
    ("how::a_walk_of_a_range_asks_for_the_regions_in_it_alone", a_walk_of_a_range_asks_for_the_regions_in_it_alone),
    ("how::changes_of_a_range_need_the_regions_in_it_alone", changes_of_a_range_need_the_regions_in_it_alone),
    ("how::which_files_were_really_read", which_files_were_really_read),
    ("how::explain_reads_smaps_only_where_it_decides", explain_reads_smaps_only_where_it_decides),
];

/// Flags that change by themselves: by reclaim, batches of the LRU, and idle page tracking.
pub const RESTLESS: u64 = 1 << 2 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 25;

/// The output of pmdb for some lines, and whether it succeeded.
fn asked(pid: u32, lines: &str) -> (Vec<Value>, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "--json", "-batch", "-p", &pid.to_string()])
        .args(lines.lines().flat_map(|line| ["-ex", line]))
        .output()
        .expect("pmdb runs");
    let text = String::from_utf8(output.stdout).expect("JSON");
    let objects = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
    (objects.collect(), output.status.success())
}

fn is_read(object: &&Value) -> bool {
    object["type"] == "read"
}

fn hexadecimal(value: &Value) -> u64 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    u64::from_str_radix(digits.expect("hexadecimal"), 16).expect("a number")
}

fn words(read: &Value) -> &[Value] {
    read["words"].as_array().expect("words")
}

/// Six pages written to, two read (of zeros), two left alone; and the process stands still.
fn stopped() -> (Puppet, u64) {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 10);
    puppet.writes(memory, 6);
    puppet.reads(memory + 6 * page_bytes(), 2);
    puppet.0.stop();
    (puppet, memory)
}

/// With 60,000 regions, reading them all takes a hundred times as long as everything else.
fn a_walk_of_a_range_asks_for_the_regions_in_it_alone() {
    let name = "how::a_walk_of_a_range_asks_for_the_regions_in_it_alone";
    let (puppet, memory) = stopped();
    // Beyond both ends of its region.
    let (start, end) = (memory - 4 * page_bytes(), memory + 14 * page_bytes());
    let how = |line: &str| {
        let (answer, is_fine) = asked(puppet.0.pid(), &format!("set scan on\n{line}"));
        assert!(is_fine, "{answer:?}");
        let what = |read: &Value| read["what"].as_str().expect("words").to_owned();
        // pmdb has few regions, and needs its own to know which pages it maps too.
        let folder = format!("/proc/{}/", puppet.0.pid());
        let is_of_target = |read: &&Value| read["file"].as_str().is_some_and(|file| file.starts_with(&folder));
        let reads = answer.iter().filter(is_read);
        reads.filter(is_of_target).map(what).collect::<Vec<_>>()
    };
    let reads = how(&format!("region --how {memory:#x}"));
    if !reads.iter().any(|what| what.contains("PROCMAP_QUERY")) {
        return skip(name, "this kernel cannot be asked for one region");
    }
    for line in [
        format!("walk --how {start:#x}..{end:#x} by state"),
        format!("walk --how {start:#x}..{end:#x} by region, kind"),
        format!("translate --how {start:#x}..{end:#x}"),
    ] {
        let reads = how(&line);
        assert!(!reads.iter().any(|what| what.contains("all regions")), "{line}: {reads:?}");
    }
    for (start, end) in [(start, end), (memory, memory + page_bytes()), (end, end + page_bytes())] {
        let line = format!("walk --how {start:#x}..{end:#x}");
        let reads = how(&line);
        assert!(reads.iter().any(|what| what.contains("PROCMAP_QUERY")), "{line}: {reads:?}");
        assert!(!reads.iter().any(|what| what.contains("all regions")), "{line}: {reads:?}");
        // The list of all gives the same answer. Without PAGEMAP_SCAN, huge pages are not known, and without rights
        // zero pages neither.
        let (kind, sum) = if shows_frames() { ("kind", "rss") } else { ("state", "count") };
        let fields = ["type", "start", "end", "pages", "state", kind, "pfn", "region", "value", "message"];
        let answers = ["on", "off"].map(|scan| {
            let lines = format!("set scan {scan}\nwalk {start:#x}..{end:#x}\nprint {sum}({start:#x}..{end:#x})");
            let (answer, is_fine) = asked(puppet.0.pid(), &lines);
            let known = answer.iter().map(|one| fields.map(|field| one[field].clone()));
            (known.collect::<Vec<_>>(), is_fine)
        });
        assert_eq!(answers[0], answers[1], "{line}");
    }
}

/// Keeps the records of a command, and waits as long as it asks.
pub struct Records(pub Vec<Box<dyn Record>>);

impl Sink for Records {
    fn emit(&mut self, record: &dyn Record) -> Result<(), Stopped> {
        self.0.push(record.boxed());
        Ok(())
    }
    fn check(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
    fn wait(&mut self, pause: Duration) -> Result<(), Stopped> {
        std::thread::sleep(pause);
        Ok(())
    }
}

/// Whether it is a row of `diff`.
fn is_change(record: &dyn Record) -> bool {
    let mut json = Vec::new();
    record.write_json(&mut json).expect("JSON");
    json.starts_with(br#"{"type":"change","#)
}

/// Runs a line that is one command, and returns what it read of regions, and its records.
fn regions_read(state: &mut DebugState, line: &str) -> (Vec<String>, Vec<Box<dyn Record>>) {
    let Ok(ParsedLine::Command { command, .. }) = LANGUAGE.parse_line(line) else {
        panic!("no command: {line}");
    };
    let (log, mut sink) = (Arc::<Log>::default(), Records(Vec::new()));
    let before = state.record(&log);
    let ended = command::run(&*command.node, state, &mut sink, None);
    state.end_recording(before);
    assert!(ended.is_ok(), "{line}: {ended:?}");
    let folder = format!("/proc/{}/", state.target().expect("a target").process.identity().pid);
    let reads = log.take().kept.into_iter().filter(|read| read.file.starts_with(&folder));
    (reads.map(|read| read.what).filter(|what| what.contains("region")).collect(), sink.0)
}

/// A tracked stop of the plugin for gdb is the first two of these lines.
fn changes_of_a_range_need_the_regions_in_it_alone() {
    let name = "how::changes_of_a_range_need_the_regions_in_it_alone";
    let mut puppet = Puppet::start();
    let memory = puppet.maps_far();
    puppet.writes(memory, 1);
    let target = puppet.0.attach();
    let mut state = DebugState::new(target.machine.clone());
    state.attach(target);
    let range = format!("{:#x}..{:#x}", memory - 4 * page_bytes(), memory + 14 * page_bytes());
    let (reads, _) = regions_read(&mut state, &format!("snapshot a in {range}"));
    if !reads.iter().any(|what| what.contains("PROCMAP_QUERY")) {
        return skip(name, "this kernel cannot be asked for one region");
    }
    puppet.writes(memory, 2);
    // Without frames, pages that moved do not show: their number is unknown.
    let counted = shows_frames().then(|| "print moved(a, now)".to_owned());
    let lines = [
        format!("snapshot b in {range}"),
        "diff a b".to_owned(),
        "diff a where present by region".to_owned(),
        format!("watch {range} every 1ms for 5ms"),
        format!("watch {range} every 1ms for 5ms by region"),
        format!("watch {range} until present"),
        format!("watch {range} every 1ms for 5ms as timeline"),
        format!("x/4a {memory:#x}"),
        format!("x/-4xb {:#x}", memory + 100),
    ];
    for line in lines.into_iter().chain(counted) {
        let (reads, records) = regions_read(&mut state, &line);
        assert!(!reads.iter().any(|what| what.contains("all regions")), "{line}: {reads:?}");
        if line == "diff a b" {
            let changed = records.iter().filter(|record| is_change(record.as_ref())).count();
            assert_eq!(changed, 1, "{records:?}");
        }
    }
    // Any variable of the program may point to anonymous memory, and any region may be what it points to.
    let (reads, _) = regions_read(&mut state, "diff a by symbol");
    assert_eq!(reads.iter().filter(|what| what.contains("all regions")).count(), 1, "{reads:?}");
}

fn every_word_is_what_stands_in_the_file() {
    const TRIES: u32 = 5;
    let (puppet, memory) = stopped();
    let pid = puppet.0.pid();
    let page_map = format!("/proc/{pid}/pagemap");
    let frames_are_readable = is_root();
    let own = own_frames(&page_map, memory);
    let mut compared = BTreeSet::new();
    for line in [
        format!("translate --how {memory:#x}"),
        format!("translate --how {memory:#x}, +10p"),
        format!("t --how {:#x}", memory + 6 * page_bytes()),
        format!("region --how {memory:#x}"),
        "regions --how".to_owned(),
        format!("walk --how {memory:#x}, +10p"),
        format!("walk --how {memory:#x}, +10p where present by kind"),
        format!("flags --how {memory:#x}"),
        format!("explain --how {memory:#x}"),
        format!("who --how {memory:#x}"),
        format!("summary --how {memory:#x}, +10p"),
    ] {
        let mut tries = 1;
        let objects = loop {
            let (objects, success) = asked(pid, &line);
            assert!(success || !frames_are_readable, "{line}: {objects:?}");
            match differing_word(&objects, &page_map, &own, &mut compared) {
                None => break objects,
                // Other processes map and unmap pages of the same files, which changes bit 56 of their entries.
                Some(differing) => assert!(tries < TRIES, "{line}: {differing}"),
            }
            tries += 1;
        };
        let reads: Vec<&Value> = objects.iter().filter(is_read).collect();
        assert!(reads.iter().any(|read| read["file"] == *page_map), "{line}: {reads:?}");
        // Where a command fails for want of rights, the error comes after what was read.
        let mut summaries = objects.iter().filter(|object| object["type"] == "reads-summary");
        let summary = summaries.next().unwrap_or_else(|| panic!("{line}: {objects:?}"));
        assert_eq!(summary["reads"].as_u64(), Some(reads.len() as u64), "{line}");
        let last = objects.last().expect("a last object");
        let failed = last["type"] == "error" && !frames_are_readable;
        assert!(failed || last["type"] == "reads-summary", "{line}: {last}");
    }
    if frames_are_readable {
        for file in ["/proc/kpageflags", "/proc/kpagecount", "/proc/kpagecgroup"] {
            assert!(compared.contains(file), "{compared:?}");
        }
    }
}

/// The first word that is not what its file has there now; of frames, only those of `own`. Adds the files to
/// `compared`.
fn differing_word(objects: &[Value], page_map: &str, own: &[u64], compared: &mut BTreeSet<String>) -> Option<String> {
    for read in objects.iter().filter(is_read) {
        let file = read["file"].as_str().expect("a file");
        let restless = match file {
            "/proc/kpageflags" => RESTLESS,
            _ => 0,
        };
        // Pages of other processes, and frames that they share, keep changing.
        let still = file == page_map || file.starts_with("/proc/kpage");
        if !still || words(read).is_empty() {
            continue;
        }
        let opened = File::open(file).expect("a file that pmdb has read");
        for (index, word) in (0u64..).zip(words(read)) {
            let offset = hexadecimal(&read["offset"]) + index * 8;
            let mut bytes = [0; 8];
            opened.read_exact_at(&mut bytes, offset).expect("a word");
            let now = u64::from_ne_bytes(bytes);
            if file == page_map || own.contains(&(offset / 8)) {
                compared.insert(file.to_owned());
                if now & !restless != hexadecimal(word) & !restless {
                    return Some(format!("{read} at {offset:#x} is {now:#x}"));
                }
            }
        }
        assert!(read["length"].as_u64() >= Some(words(read).len() as u64 * 8));
    }
    None
}

/// The frames of the six pages that the target alone maps.
fn own_frames(page_map: &str, memory: u64) -> Vec<u64> {
    let page_map = File::open(page_map).expect("its page map");
    let mut entries = [0; 6 * 8];
    page_map.read_exact_at(&mut entries, memory / page_bytes() * 8).expect("entries");
    let entries = entries.chunks_exact(8);
    entries
        .map(|entry| u64::from_ne_bytes(entry.try_into().expect("eight bytes")) & ((1 << 55) - 1))
        .filter(|&frame| frame != 0)
        .collect()
}

fn what_is_not_shown_is_counted() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 300);
    puppet.writes(memory, 300);
    puppet.0.stop();
    let line = format!("walk --how {memory:#x}, +300p");
    let (objects, success) = asked(puppet.0.pid(), &line);
    assert!(success, "{objects:?}");
    let page_map = format!("/proc/{}/pagemap", puppet.0.pid());
    let of_entries: Vec<&Value> = objects
        .iter()
        .filter(is_read)
        .filter(|read| read["file"] == page_map.as_str() && !words(read).is_empty())
        .collect();
    let shown: usize = of_entries.iter().map(|read| words(read).len()).sum();
    assert_eq!(shown, 64, "{of_entries:?}");
    let last = objects.last().expect("a last object");
    assert!(last["more_words"].as_u64() >= Some(300 - 64), "{last}");
}

fn the_shell_command_reads_the_same() {
    const NAME: &str = "how::the_shell_command_reads_the_same";
    if Command::new("xxd").arg("-v").output().is_err() {
        return skip(NAME, "there is no xxd");
    }
    let (puppet, memory) = stopped();
    let (objects, _) = asked(puppet.0.pid(), &format!("translate --how {memory:#x}, +10p"));
    let mut compared = 0;
    for read in objects.iter().filter(is_read) {
        if words(read).is_empty() || !read["file"].as_str().is_some_and(|file| file.ends_with("/pagemap")) {
            continue;
        }
        let repeat = read["repeat"].as_str().expect("a command");
        let output = Command::new("sh").args(["-c", repeat]).output().expect("a shell");
        let text = String::from_utf8(output.stdout).expect("text");
        let again: Vec<u64> = text
            .lines()
            .map(|row| {
                let word = row.split_whitespace().nth(1).expect("a word");
                u64::from_str_radix(word, 16).expect("hexadecimal")
            })
            .collect();
        let shown: Vec<u64> = words(read).iter().map(hexadecimal).collect();
        assert_eq!(again, shown, "{repeat}");
        compared += shown.len();
    }
    assert!(compared >= 10, "{objects:?}");
}

fn an_answer_is_the_same_with_it() {
    let (puppet, memory) = stopped();
    let pid = puppet.0.pid();
    for (command, arguments) in [
        ("translate", format!("{memory:#x}")),
        ("walk", format!("{memory:#x}, +10p")),
        ("region", format!("{memory:#x}")),
    ] {
        let (without, _) = asked(pid, &format!("{command} {arguments}"));
        let (with, _) = asked(pid, &format!("{command} --how {arguments}"));
        assert!(!without.iter().any(|object| is_read(&object)));
        let answer: Vec<&Value> =
            with.iter().filter(|object| !is_read(object) && object["type"] != "reads-summary").collect();
        assert!(with.len() > answer.len() + 1);
        let quiet = |object: &Value| {
            let mut object = object.clone();
            let flags = object["flags_raw"].as_str().map(str::to_owned);
            if flags.is_some() {
                object["flags_raw"] = (hexadecimal(&object["flags_raw"]) & !RESTLESS).into();
                object["flags"] = Value::Null;
            }
            object
        };
        let without: Vec<Value> = without.iter().map(quiet).collect();
        let answer: Vec<Value> = answer.into_iter().map(quiet).collect();
        assert_eq!(without, answer, "{command}");
    }
}

fn a_command_that_fails_shows_its_reads() {
    let (puppet, memory) = stopped();
    // Nothing is mapped there: there is no frame to look for.
    let untouched = memory + 9 * page_bytes();
    let (objects, success) = asked(puppet.0.pid(), &format!("who --how {untouched:#x}"));
    assert!(!success);
    let page_map = format!("/proc/{}/pagemap", puppet.0.pid());
    let entry =
        objects.iter().filter(is_read).find(|read| read["file"] == page_map.as_str() && !words(read).is_empty());
    let entry = entry.unwrap_or_else(|| panic!("{objects:?}"));
    assert_eq!(hexadecimal(&entry["offset"]), untouched / page_bytes() * 8);
    assert_eq!(hexadecimal(&words(entry)[0]) >> 62, 0);
    assert!(objects.iter().any(|object| object["type"] == "error"));
}

/// The settings of the pool of that page size decide whether an access finds a free page.
fn what_decides_about_the_pool_is_shown() {
    const NAME: &str = "how::what_decides_about_the_pool_is_shown";
    if pool_is_hidden() {
        return skip(NAME, "the pool may not be changed here");
    }
    let bytes = pool_page_bytes();
    let mut puppet = Puppet::start();
    let memory = match puppet.maps_unreserved(bytes) {
        Ok(memory) => memory,
        Err(error) => return skip(NAME, &format!("no memory of a pool: error {error}")),
    };
    let (objects, _) = asked(puppet.0.pid(), &format!("explain --how {memory:#x}"));
    let files: Vec<&str> = objects.iter().filter(is_read).map(|read| read["file"].as_str().expect("a file")).collect();
    let pool = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/", bytes / 1024);
    assert!(files.iter().any(|file| file.starts_with(&pool)), "{files:?}");
    // The device of a file tells which pool the memory is of.
    assert!(files.contains(&"memfd_create"), "{files:?}");
}

/// How a region was found, the hierarchy that was searched for a cgroup, and the settings of samepage merging.
fn which_files_were_really_read() {
    const NAME: &str = "how::which_files_were_really_read";
    let mut puppet = Puppet::start();
    let memory = puppet.maps_far();
    puppet.writes(memory, 1);
    puppet.0.stop();
    let pid = puppet.0.pid();
    let (objects, _) = asked(pid, &format!("explain --how {memory:#x}"));
    let reads: Vec<&Value> = objects.iter().filter(is_read).collect();
    let of = |words: &str| {
        let text = |read: &Value| read["what"].as_str().is_some_and(|what| what.contains(words));
        reads.iter().find(|read| text(read)).copied()
    };
    // PROCMAP_QUERY came with Linux 6.11.
    let (query, text) = (of("(PROCMAP_QUERY)"), of("(the text)"));
    assert!(query.is_some() != text.is_some(), "{objects:?}");
    let off = format!("set scan off\nexplain --how {memory:#x}");
    let (objects, _) = asked(pid, &off);
    let plain = objects.iter().filter(is_read).any(|read| {
        let what = read["what"].as_str().unwrap_or_default();
        assert!(!what.contains("PROCMAP_QUERY"), "{read}");
        what.contains("(the text)")
    });
    assert!(plain, "{objects:?}");
    // smaps costs as much as all other reads together: it is read only for facts that only it has.
    let (objects, _) = asked(pid, "regions --how\nwalk --how all by state");
    let reads: Vec<&Value> = objects.iter().filter(is_read).collect();
    let has_scan = reads.iter().any(|read| read["what"].as_str().unwrap_or_default().contains("PAGEMAP_SCAN"));
    if has_scan {
        let is_smaps = |read: &&&Value| {
            let file = read["file"].as_str().unwrap_or_default();
            file.ends_with("/smaps")
        };
        assert_eq!(reads.iter().find(is_smaps), None);
    }
    if !is_root() {
        return skip(NAME, "flags and cgroups of frames are hidden from this user");
    }
    if let Some(cgroup) = of("the cgroup directory") {
        let mount = cgroup["file"].as_str().expect("a file");
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
        let is_mount = |line: &str| line.split(' ').nth(4) == Some(mount) && line.contains(" - cgroup");
        assert!(mounts.lines().any(is_mount), "{cgroup}");
    }
    if std::path::Path::new("/sys/kernel/mm/ksm").is_dir() {
        let (objects, _) = asked(pid, &format!("walk --how {memory:#x}, +10p by kind"));
        let mut files = objects.iter().filter(is_read).map(|read| &read["file"]);
        let is_told = files.any(|file| file == "/sys/kernel/mm/ksm/pages_shared");
        assert!(is_told, "{objects:?}");
    }
}

/// smaps takes the kernel a walk of all page tables, and seconds where there are 60,000 regions.
fn explain_reads_smaps_only_where_it_decides() {
    let (puppet, memory) = stopped();
    let pid = puppet.0.pid();
    let program = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its regions");
    let program = program.lines().find(|line| line.contains("r-xp")).and_then(|line| line.split_once('-'));
    let program = program.and_then(|(start, _)| u64::from_str_radix(start, 16).ok()).expect("its program");
    let is_of_file = |&page: &u64| plain_entry(pid, page).is_some_and(|entry| entry >> 61 == 0b101);
    let program = (0..).map(|index| program + index * page_bytes()).find(is_of_file).expect("a page of a file");
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
    let has_keys = smaps.contains("ProtectionKey:");
    let is_tracked = plain_entry(pid, memory).expect("an entry") >> 55 & 1 == 1;
    for (what, address, decides) in [
        // The write may be the first since soft-dirty bits were cleared. Without flags, the page may be freed memory.
        ("written to", memory, has_keys || is_tracked || !is_root()),
        ("of zeros", memory + 6 * page_bytes(), has_keys || !is_root()),
        ("of the program", program, has_keys),
        // A userfaultfd may be registered.
        ("untouched", memory + 8 * page_bytes(), true),
    ] {
        let (objects, _) = asked(pid, &format!("explain --how {address:#x}"));
        let file = format!("/proc/{pid}/smaps");
        let read = objects.iter().filter(is_read).any(|read| read["file"] == file.as_str());
        assert_eq!(read, decides, "{what}: {objects:?}");
    }
}
