//! The answers of `translate`, `explain`, `walk` and `flags` for a page, as JSON and as text, compared with the
//! kernel's own files.
//!
//! Each page is really brought into its state. The modules below do that, and declare what is then true of it.

pub mod files;
pub mod large;
pub mod memory;
pub mod rights;
pub mod swap;
pub mod threads;

use super::support::{self, page_bytes, plain_entry, plain_maps};
use super::who::RESTLESS;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// What is true of a page.
pub struct Truth {
    /// The state's name and how it was made, for the output of the test.
    pub what: &'static str,
    pub state: &'static str,
    pub kind: Option<&'static str>,
    /// Its kind in a row of `walk`, which does not read the backing content of a page that is not mapped.
    pub walked: Option<&'static str>,
    /// Whether a huge entry maps it; `None` where that means nothing.
    pub huge: Option<bool>,
    /// What the next read and write will do; if that cannot be known, the possible effects with `|` between.
    pub read: &'static str,
    pub write: &'static str,
}

impl Truth {
    /// A present page that may be read and written without a fault.
    pub const fn present(what: &'static str, kind: &'static str) -> Truth {
        Truth {
            what,
            state: "present",
            kind: Some(kind),
            walked: Some(kind),
            huge: Some(false),
            read: "nothing",
            write: "nothing",
        }
    }

    /// Where there is no page.
    pub const fn absent(what: &'static str, state: &'static str, effect: &'static str) -> Truth {
        Truth { what, state, kind: None, walked: None, huge: None, read: effect, write: effect }
    }

    pub const fn of_kind(mut self, kind: &'static str) -> Truth {
        self.kind = Some(kind);
        self.walked = Some(kind);
        self
    }

    /// A page with backing content, in a mapping of another kind.
    pub const fn behind(mut self, kind: &'static str, mapping: &'static str) -> Truth {
        self.kind = Some(kind);
        self.walked = Some(mapping);
        self
    }

    pub const fn huge(mut self) -> Truth {
        self.huge = Some(true);
        self
    }

    pub const fn when_written(mut self, effect: &'static str) -> Truth {
        self.write = effect;
        self
    }
}

/// The answers for a page, once they were checked.
pub struct Said {
    pub translation: Value,
    pub explanation: Value,
    pub text: String,
}

/// The kernel's word on a frame, read without pmdb; `None` without the right to it.
pub fn of_frame(name: &str, frame: u64) -> Option<u64> {
    let file = File::open(format!("/proc/{name}")).ok()?;
    let mut word = [0; 8];
    file.read_exact_at(&mut word, frame * 8).ok()?;
    Some(u64::from_ne_bytes(word))
}

/// The kernel's words about a page, with which all answers are compared.
#[derive(Debug, PartialEq, Eq)]
struct Words {
    entry: Option<u64>,
    frame: Option<u64>,
    flags: Option<u64>,
    map_count: Option<u64>,
}

impl Words {
    fn read(pid: u32, address: u64) -> Words {
        let entry = plain_entry(pid, address);
        let frame =
            entry.filter(|entry| entry >> 63 == 1).map(|entry| entry & ((1 << 55) - 1)).filter(|&frame| frame != 0);
        let flags = frame.and_then(|frame| of_frame("kpageflags", frame));
        Words {
            entry,
            frame,
            flags: flags.map(|flags| flags & !RESTLESS),
            map_count: frame.and_then(|frame| of_frame("kpagecount", frame)),
        }
    }
}

fn hexadecimal(value: &Value) -> Option<u64> {
    let digits = value.as_str()?.strip_prefix("0x").expect("hexadecimal");
    Some(u64::from_str_radix(digits, 16).expect("a number"))
}

/// Runs the program on one process, started by the command `before` if that is not empty.
pub fn program(before: &[&str], pid: u32, json: bool, lines: &[String]) -> String {
    let mut words: Vec<&str> = before.to_vec();
    words.push(env!("CARGO_BIN_EXE_pmdb"));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["-nx", "-batch"]);
    command.args(["--color", "never", "--keep-going", "-p", &pid.to_string()]);
    if json {
        command.arg("--json");
    }
    for line in lines {
        command.args(["-ex", line]);
    }
    let output = command.output().expect("pmdb runs");
    assert!(output.stderr.is_empty() || !json, "{output:?}");
    let mut text = String::from_utf8(output.stdout).expect("UTF-8");
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

/// Queries a page in every way, and compares the answers with the kernel's words and with the truth.
pub fn says(pid: u32, address: u64, truth: &Truth) -> Said {
    says_to(&[], pid, address, truth)
}

/// The same, with the program run by `before`, which may take the rights to see frames.
pub fn says_to(before: &[&str], pid: u32, address: u64, truth: &Truth) -> Said {
    let what = truth.what;
    let page = address / page_bytes() * page_bytes();
    let lines = [
        format!("translate {address:#x}"),
        format!("explain {address:#x}"),
        format!("walk {page:#x},+{:#x}", page_bytes()),
        format!("flags {address:#x}"),
    ];
    // Every process has the vdso, and processes come and go.
    let is_everybodys = truth.kind == Some("vdso");
    let read = || {
        let mut words = Words::read(pid, address);
        words.map_count = words.map_count.filter(|_| !is_everybodys);
        words
    };
    // Other processes map and unmap shared pages at any time.
    let (words, json) = (0..50)
        .find_map(|_| {
            let words = read();
            let json = program(before, pid, true, &lines);
            (words == read()).then_some((words, json))
        })
        .expect("a page that stands still");
    let objects: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of_type = |kind: &str| objects.iter().find(|object| object["type"] == kind);
    let translation = of_type("translation").unwrap_or_else(|| panic!("{what}: {json}"));
    let explanation = of_type("explanation").unwrap_or_else(|| panic!("{what}: {json}"));
    let row = of_type("pages").unwrap_or_else(|| panic!("{what}: {json}"));
    let text = program(before, pid, false, &lines);
    let entry = words.entry.map_or("none".into(), |entry| format!("{entry:#018x}"));
    let state = text.lines().find(|line| line.starts_with("state"));
    println!("{what} | {entry} | {}", state.unwrap_or("-"));

    let counts = |answer: &Value, plain: Option<u64>| match answer["map_count"].as_u64() {
        // The target has it and the program too.
        Some(count) if is_everybodys => assert!(count >= 2, "{what}: {answer}"),
        count => assert_eq!(count, plain, "{what}: {answer}"),
    };
    for (answer, kind) in [(translation, truth.kind), (explanation, truth.kind), (row, truth.walked)] {
        let kind = kind.map_or(Value::Null, Value::from);
        assert_eq!(answer["state"], truth.state, "{what}: {answer}");
        assert_eq!(answer["kind"], kind, "{what}: {answer}");
        let sees = before.is_empty();
        let frame = words.frame.filter(|_| sees);
        assert_eq!(answer["pfn"].as_u64(), frame, "{what}: {answer}");
        if frame.is_some() {
            let flags = hexadecimal(&answer["flags_raw"]).map(|flags| flags & !RESTLESS);
            assert_eq!(flags, words.flags, "{what}: {answer}");
            counts(answer, words.map_count);
        }
        match (truth.huge, answer["huge"].is_null()) {
            // This is known only since Linux 6.7.
            (Some(_), true) if !support::has_scan() => {
                assert!(answer["why"]["huge"].is_string(), "{what}: {answer}")
            }
            (Some(huge), _) => assert_eq!(answer["huge"], huge, "{what}: {answer}"),
            (None, _) => {}
        }
    }
    for answer in [translation, explanation] {
        if before.is_empty() {
            assert_eq!(hexadecimal(&answer["entry"]), words.entry, "{what}: {answer}");
        }
        let physical = answer["pfn"].as_u64().map(|frame| frame * page_bytes() + address % page_bytes());
        assert_eq!(hexadecimal(&answer["physical"]), physical, "{what}: {answer}");
        let region = plain_maps(pid).into_iter().find(|&(start, end, _)| (start..end).contains(&address));
        let told = &answer["region"];
        let told = hexadecimal(&told["start"]).zip(hexadecimal(&told["end"]));
        assert_eq!(told, region.map(|(start, end, _)| (start, end)), "{what}: {answer}");
    }
    for (access, effect) in [("next_read", truth.read), ("next_write", truth.write)] {
        let effects = explanation[access]["effects"].as_array();
        let told: Vec<&str> = effects.expect("a list").iter().flat_map(Value::as_str).collect();
        let all = effect.split('|').all(|one| told.contains(&one));
        assert!(all, "{what}: {access}: {explanation}");
        if support::is_root() && before.is_empty() {
            let expected = Vec::from_iter(effect.split('|'));
            let is_certain = |one: &&str| expected.contains(one) || !support::is_left_open(one);
            let told: Vec<&str> = told.into_iter().filter(is_certain).collect();
            assert_eq!(told, expected, "{what}: {access}");
        }
    }
    for (answer, field) in
        [(translation, "kind"), (translation, "huge"), (row, "kind"), (row, "huge"), (explanation, "owner")]
    {
        let is_unknown = truth.state == "present" && answer[field].is_null();
        let why = &answer["why"][field];
        assert!(!is_unknown || why.is_string(), "{what}: {field}: {answer}");
    }
    let said: Vec<&str> = text.split_whitespace().collect();
    let said = said.join(" ");
    for word in essential(truth, translation, explanation) {
        assert!(said.contains(word), "{what}: {word}: {text}");
    }
    match of_type("page-flags") {
        Some(flags) => {
            let sees = before.is_empty();
            let frame = words.frame.filter(|_| sees);
            assert_eq!(flags["pfn"].as_u64(), frame, "{what}: {flags}");
            let told = hexadecimal(&flags["flags_raw"]).map(|flags| flags & !RESTLESS);
            assert_eq!(told, words.flags.filter(|_| sees), "{what}: {flags}");
            counts(flags, words.map_count.filter(|_| sees));
        }
        None => assert!(of_type("error").is_some() && translation["pfn"].is_null(), "{what}: {json}"),
    }
    Said { translation: translation.clone(), explanation: explanation.clone(), text }
}

/// What the text must have: what the page is, and all that the next accesses may do.
fn essential(truth: &Truth, translation: &Value, explanation: &Value) -> Vec<&'static str> {
    let is_certain = translation["why"]["state"].is_null();
    let is_secret = translation["region"]["name"] == "/secretmem";
    let what = match (truth.state, truth.kind) {
        _ if !is_certain => "most likely",
        ("present", Some("anonymous")) => "memory without a file",
        ("present", Some("file")) if is_secret => "memfd_secret",
        ("present", Some("file")) => "a page of a file",
        ("present", Some("shmem")) => "shared memory",
        ("present", Some("private_copy")) => "a private copy of a page of a file",
        ("present", Some("zero")) => "zero page",
        ("present", Some("huge_zero")) => "huge zero page",
        ("present", Some("ksm")) => "merged with equal pages",
        ("present", Some("hugetlb")) => "from the hugetlb pool",
        ("present", Some("vdso")) => "the kernel provides",
        ("present", Some("device_memory")) => "memory of a device",
        ("present", _) => "present",
        ("untouched", Some("past_end")) => "beyond the end of the file",
        ("untouched", Some("maybe_swapped")) => "swapped out",
        ("untouched", _) => "mapped here",
        ("swapped", _) => "swap",
        ("guard", _) => "a guard page (MADV_GUARD_INSTALL)",
        ("poisoned", _) => "a poison marker",
        ("hwpoison", _) => "a frame that failed in hardware",
        ("uffd_wp", _) => "userfaultfd",
        ("unmapped", _) => "in no region",
        ("pfn_mapped", _) => "pfn_mapped",
        ("outside", _) => "outside",
        (state, _) => panic!("what is told of {state}?"),
    };
    let told = ["next_read", "next_write"].into_iter().flat_map(|access| {
        let effects = explanation[access]["effects"].as_array();
        effects.into_iter().flatten().flat_map(Value::as_str)
    });
    let effects = told.map(|effect| match effect {
        "nothing" => "no fault",
        "zeros" => "zeros",
        "huge_zeros" => "huge zero page",
        "copy" => "gets a copy",
        "reuse" => "made writable in place",
        "map_cached" => "mapped from the page cache",
        "read_file" => "major fault: the file is read",
        "swap_in" => "major fault: the page is read back from swap",
        "map" => "maps its own page",
        "unprotect" => "records the write",
        "notify" => "userfault: the thread waits",
        "wait" => "waits until the page has moved",
        "from_device" => "brought back from the device",
        "stack_grows" => "the stack above grows",
        "no_region" => "SIGSEGV: there is no region",
        "protection" => "SIGSEGV: the region does not permit it",
        "protection_key" => "SIGSEGV: if the thread has no such right",
        "guard" => "SIGSEGV: a guard page",
        "past_end" => "SIGBUS: the file ends",
        "no_kernel_page" => "SIGBUS: the kernel has no such page",
        "pool_empty" => "SIGBUS: the hugetlb pool has no page left",
        "no_space" => "has no room for a",
        "poisoned" => "SIGBUS: the page is poisoned",
        "hwpoison" => "SIGBUS: the memory of the page has failed",
        effect => panic!("what is told of {effect}?"),
    });
    std::iter::once(what).chain(effects).collect()
}
