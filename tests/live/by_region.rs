//! Changes added up by region, and rows that lie in several symbols, as the program shows them.

use super::Test;
use super::puppet::Puppet;
use super::support::{page_bytes, plain_entries, plain_maps};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub const TESTS: &[Test] = &[
    ("by_region::diff_tells_regions_of_one_name_apart", diff_tells_regions_of_one_name_apart),
    ("by_region::watch_follows_a_region_that_grows_and_shrinks", watch_follows_a_region_that_grows_and_shrinks),
    ("by_region::a_row_in_several_symbols_names_both_ends", a_row_in_several_symbols_names_both_ends),
];

const MADV_DONTNEED: i32 = 4;

/// The program as a server of the test.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn on(puppet: &Puppet) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pmdb"))
            .args(["-nx", "--serve", "-p", &puppet.0.pid().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("pmdb runs");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("its output"));
        let mut server = Server { child, input, output: BufReader::new(output) };
        server.answer();
        server
    }

    fn asks(&mut self, line: &str) -> Vec<Value> {
        writeln!(self.input.as_mut().expect("its input"), "{line}").expect("to be read");
        self.answer()
    }

    /// The records up to the end of an answer.
    fn answer(&mut self) -> Vec<Value> {
        let mut records = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "it ended too early: {records:?}");
            let record: Value = serde_json::from_str(&line).expect("a record");
            if record["type"] == "end" {
                return records;
            }
            records.push(record);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        _ = self.child.wait();
    }
}

fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}

/// The group of the region that begins at `start`.
fn group_of(groups: &[&Value], start: u64) -> Value {
    let start = format!("{start:#x}..");
    let mut found = groups.iter().filter(|group| group["key"].as_str().expect("a key").starts_with(&start));
    let group = found.next().unwrap_or_else(|| panic!("no group {start}: {groups:?}"));
    assert_eq!(found.next(), None, "a region is one group");
    (*group).clone()
}

/// Two regions of the same kind and name that the kernel does not join.
fn two_regions(puppet: &mut Puppet, pages: u64) -> (u64, u64) {
    let memory = puppet.maps("anonymous", 2 * pages + 1);
    puppet.unmaps(memory + pages * page_bytes(), 1);
    (memory, memory + (pages + 1) * page_bytes())
}

fn diff_tells_regions_of_one_name_apart() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let (one, other) = two_regions(&mut puppet, 40);
    puppet.writes(one, 10);
    let mut server = Server::on(&puppet);
    server.asks("snapshot before");
    puppet.writes(one + 10 * page, 20);
    puppet.writes(other, 4);
    // The second one shrinks, and a part of it changes its rights.
    puppet.unmaps(other + 30 * page, 10);
    puppet.does("protect", &[other + 20 * page, page, libc::PROT_READ as u64]);
    let diff = server.asks("diff before by region");
    let groups = of_type(&diff, "change-group");
    let (first, second) = (group_of(&groups, one), group_of(&groups, other));
    assert_eq!((&first["pages"], &first["came"]), (&20.into(), &(20 * page).into()));
    assert_eq!(first["key"], format!("{one:#x}..{:#x} rw-p", one + 40 * page));
    assert_eq!((&first["regions"], &first["region"]), (&0.into(), &"".into()));
    assert_eq!((&second["pages"], &second["came"]), (&4.into(), &(4 * page).into()));
    assert_eq!(second["regions"], 2, "it shrank, and a part changed: {second}");
    // The same regions are the groups of `walk`.
    let walk = server.asks("walk all where present by region");
    group_of(&of_type(&walk, "group"), one);
    // Changes of regions are counted where there are no pages.
    let changes = server.asks("diff before by change");
    let changed = of_type(&changes, "change-group").into_iter().find(|group| group["key"] == "region changed");
    let changed = changed.expect("a changed region");
    assert_eq!((&changed["pages"], &changed["regions"]), (&0.into(), &1.into()));
}

fn watch_follows_a_region_that_grows_and_shrinks() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let (one, other) = two_regions(&mut puppet, 40);
    puppet.unmaps(one + 20 * page, 20);
    let watch = "watch all every 1ms count 3000 by region";
    let mut child = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "--json", "-p", &puppet.0.pid().to_string(), "-ex", watch])
        .stdout(Stdio::piped())
        .spawn()
        .expect("pmdb runs");
    // Until it has seen enough, which may take any time.
    let mut rounds = 0;
    while child.try_wait().expect("a child").is_none() {
        rounds += 1;
        let pages = 20 + rounds % 10;
        puppet.does("grow", &[one, 20 * page, pages * page]);
        puppet.writes(one, pages);
        puppet.writes(other, 3);
        puppet.unmaps(one + 20 * page, pages - 20 + u64::from(pages == 20));
        puppet.advises(one, 20, MADV_DONTNEED).expect("to drop them");
        puppet.advises(other, 3, MADV_DONTNEED).expect("to drop them");
    }
    let output = child.wait_with_output().expect("its output");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let groups = of_type(&records, "event-group");
    let group = group_of(&groups, one);
    assert!(group["pages"].as_u64() > Some(0), "{group}");
    assert_ne!(group, group_of(&groups, other));
    let summary = &of_type(&records, "watch-summary")[0];
    let number = |field: &str| summary[field].as_u64().expect("a number");
    let due = summary["seconds"].as_f64().expect("a time") / 0.001;
    let counted = (number("samples") + number("missed")) as f64;
    assert!((due - counted).abs() <= 5.0 + due / 5.0, "{counted} of {due}: {summary}");
}

fn a_row_in_several_symbols_names_both_ends() {
    let mut puppet = Puppet::start();
    let page = page_bytes();
    let pid = puppet.0.pid();
    let program = std::fs::canonicalize(format!("/proc/{pid}/exe")).expect("its program");
    let code = code_of(pid, program.as_os_str().as_encoded_bytes());
    let mut server = Server::on(&puppet);
    // From the middle of the code of this program on, which a waiting puppet does not run: where symbols of different
    // names are at both ends. Instances of a generic function have one name.
    let pages = 16;
    let name_at = |server: &mut Server, address: u64| {
        let said = server.asks(&format!("info symbol {address:#x}"));
        of_type(&said, "symbol").first().map(|symbol| symbol["name"].clone())
    };
    let middle = code.0 + (code.1 - code.0) / 2 / page * page;
    let start = (0..(code.1 - middle) / page - pages).map(|nth| middle + nth * page).find(|&start| {
        let [first, last] = [start, start + pages * page - 1].map(|address| name_at(&mut server, address));
        if first.is_none() || last.is_none() || first == last {
            return false;
        }
        puppet.reads(start, pages);
        server.asks("snapshot before");
        puppet.advises(start, pages, MADV_DONTNEED).expect("to drop them");
        // Where the puppet runs code nearby before it waits, the fault maps the pages around that too.
        plain_entries(pid, start, start + pages * page).iter().all(|(_, entry)| entry >> 63 == 0)
    });
    let start = start.expect("code with symbols that a waiting puppet does not run");
    let line = format!("diff before in {start:#x}, +{pages}p");
    let diff = server.asks(&line);
    let rows = of_type(&diff, "change");
    assert!(!rows.is_empty(), "{diff:?}");
    let mut named_both = 0;
    for row in rows {
        let number = |field: &str| {
            let text = row[field].as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
            u64::from_str_radix(text, 16).expect("an address")
        };
        for (field, address) in [("symbol", number("start")), ("last_symbol", number("end") - 1)] {
            let said = server.asks(&format!("info symbol {address:#x}"));
            let expected =
                of_type(&said, "symbol").first().map(|symbol| (symbol["name"].clone(), symbol["offset"].clone()));
            let told = row[field].as_object().map(|symbol| (symbol["name"].clone(), symbol["offset"].clone()));
            assert_eq!(told, expected, "{field} of {row}");
        }
        named_both += u64::from(row["symbol"]["name"] != row["last_symbol"]["name"]);
    }
    assert_ne!(named_both, 0, "{diff:?}");
    let text = server.asks(&format!("{{\"line\":\"{line}\",\"as\":\"text\",\"width\":400}}"));
    assert!(text.iter().any(|one| one.to_string().contains("> to <")), "{text:?}");
}

/// The addresses of the code of a program.
fn code_of(pid: u32, program: &[u8]) -> (u64, u64) {
    let maps = plain_maps(pid).into_iter().filter(|(_, _, row)| {
        let has = |part: &[u8]| row.windows(part.len()).any(|window| window == part);
        has(program) && row.starts_with(b"r-xp")
    });
    let all = maps.map(|(start, end, _)| (start, end));
    all.max_by_key(|(start, end)| end - start).expect("its code")
}
