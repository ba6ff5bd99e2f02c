//! Several processes, each frame once.

use super::command::{bytes, end, of_type, records};
use super::*;
use crate::cgroup::Cgroup;
use pmdb::inspect::account::{Family, FamilySums};
use pmdb::process::ProcessHandle;
use pmdb::report::FamilyClass;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

fn sums(pids: &[u32]) -> FamilySums {
    let target = pmdb::Target::attach(pids[0]).expect("to attach");
    let processes = pids.iter().map(|&pid| ProcessHandle::of_numbers(pid, 0)).collect();
    let mut family = Family::new(&target.machine, processes, true);
    while family.next().expect("to count").is_some() {}
    family.sums().expect("sums")
}

fn word(file: &File, index: u64) -> u64 {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, index * 8).map_or(0, |()| u64::from_ne_bytes(word))
}

/// The frames of memory that a process maps and that Rss counts, with how often, read without pmdb.
fn frames(pid: u32) -> HashMap<u64, u64> {
    const HUGE: u64 = 1 << 17;
    const ZERO: u64 = 1 << 24;
    let flags = File::open("/proc/kpageflags").expect("flags");
    let mut found = HashMap::new();
    for (start, end, rest) in support::plain_maps(pid) {
        let rest = String::from_utf8_lossy(&rest);
        if rest.contains("[vvar") || rest.contains("[vsyscall]") {
            continue;
        }
        for (_, entry) in support::plain_entries(pid, start, end) {
            let frame = entry & ((1 << 55) - 1);
            if entry >> 63 == 1 && word(&flags, frame) & (HUGE | ZERO) == 0 {
                *found.entry(frame).or_default() += 1;
            }
        }
    }
    found
}

/// A parent and its child, both stopped, with memory on both sides.
fn pair() -> (Puppet, u32) {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 40);
    puppet.writes(memory, 30);
    puppet.reads(memory + 30 * page_bytes(), 5);
    let shared = puppet.maps("shared", 20);
    puppet.writes(shared, 15);
    let copies = puppet.maps("program", 8);
    puppet.writes(copies, 4);
    let child = puppet.does("fork", &[memory, 7]) as u32;
    puppet.writes(memory + 10 * page_bytes(), 4);
    puppet.0.stop();
    (puppet, child)
}

pub fn is_counted_once() {
    let (puppet, child) = pair();
    let pids = [puppet.0.pid(), child];
    // Others map and unmap the same files meanwhile, which moves Pss and what is private, and the child may not wait
    // yet: the kernel counts the same before and after, or pmdb is asked again.
    let found = (0..300).find_map(|_| {
        let before = pids.map(rollup);
        let found = sums(&pids);
        (before == pids.map(rollup)).then_some((found, before))
    });
    let (found, kernel) = found.expect("the two to be left alone for a moment");
    let rss = found.rss;
    for (member, kernel) in found.members.iter().zip(&kernel) {
        assert_eq!(member.rss, kernel["Rss"]);
        assert_eq!(member.alone, Ok(kernel["Private_Clean"] + kernel["Private_Dirty"]));
    }
    assert_eq!(rss, kernel.iter().map(|one| one["Rss"]).sum::<u64>());
    if !support::shows_frames() {
        assert_eq!((found.distinct, found.is_lower_bound), (kernel.iter().map(|one| one["Pss"]).sum(), true));
        assert!(found.classes.is_empty());
        return end(child.into());
    }
    let [one, two] = pids.map(frames);
    let distinct: BTreeSet<u64> = one.keys().chain(two.keys()).copied().collect();
    assert_eq!(found.distinct, distinct.len() as u64 * page_bytes());
    let mapped: u64 = found.classes.iter().map(|(_, sum)| sum.mapped).sum();
    assert_eq!((mapped, one.values().chain(two.values()).sum::<u64>() * page_bytes()), (rss, rss));
    let both = one.keys().filter(|frame| two.contains_key(frame)).count() as u64 * page_bytes();
    let several = [FamilyClass::PrivateSeveral, FamilyClass::ShmemSeveral, FamilyClass::FileSeveral];
    let of = |class| found.classes.iter().find(|(one, _)| *one == class).map_or(0, |(_, sum)| sum.bytes);
    // One of them may have touched more of the kernel's own pages than the other.
    let several: u64 = several.map(of).iter().sum();
    assert!(several <= both && both <= several + of(FamilyClass::Kernel), "{several} {both} {found:?}");
    // 30 pages were written; the child wrote 7 of them again, the parent 4.
    assert!(of(FamilyClass::PrivateSeveral) >= 19 * page_bytes());
    for (member, kernel) in found.members.iter().zip(&kernel) {
        let ends = member.ends.clone().expect("counts");
        // Private memory of its own: all anonymous memory that nobody shares.
        assert!(ends >= 4 * page_bytes() && ends <= kernel["Anonymous"], "{ends}");
    }
    end(child.into());
}

/// Frames that both have are in the region of the first: the rows of both add up to the distinct frames.
pub fn by_region() {
    if !support::shows_frames() {
        return skip("account::a_family_by_region", "families need frame numbers");
    }
    let mut puppet = Puppet::start();
    // Of 30 pages the child writes 7 again, and the parent 4 others: each has its own of 11, and 19 are shared.
    let memory = puppet.maps("anonymous", 30);
    puppet.writes(memory, 30);
    let child = puppet.does("fork", &[memory, 7]) as u32;
    puppet.writes(memory + 10 * page_bytes(), 4);
    puppet.0.stop();
    let parent = puppet.0.pid();
    let (one, two) = (frames_of(parent, memory, 30), frames_of(child, memory, 30));
    let all = records(parent, &format!("account of {parent}, {child} by region"));
    end(child.into());
    let rows = of_type(&all, "account-family-group");
    let amount = |row: &Value, field: &str| row[field].as_u64().expect("bytes") / page_bytes();
    let sum: u64 = rows.iter().map(|row| amount(row, "bytes")).sum();
    let [whole] = of_type(&all, "account-family")[..] else { panic!("{all:?}") };
    assert_eq!(sum, amount(whole, "bytes"), "{all:?}");
    let of = |pid: u32| {
        let place = format!("{memory:#x}..");
        let mut found =
            rows.iter().filter(|row| row["pid"] == pid && row["key"].as_str().expect("a key").contains(&place));
        let row = found.next().expect("its region");
        assert!(found.next().is_none() && row["processes"].is_null(), "{row}");
        ["bytes", "mapped", "in_one"].map(|field| amount(row, field))
    };
    let shared = one.intersection(&two).count() as u64;
    let alone = [&one, &two].map(|frames| frames.len() as u64 - shared);
    assert!(shared > 0 && alone[1] > 0, "{shared} {alone:?}");
    let first = [alone[0] + shared, alone[0] + 2 * shared, alone[0]];
    let second = [alone[1] + shared, alone[1] + 2 * shared, alone[1]];
    // The one of the lower number comes first.
    let expected = if parent < child { [first, [alone[1]; 3]] } else { [[alone[0]; 3], second] };
    assert_eq!([of(parent), of(child)], expected);
}

/// The frames of present pages from an address on.
fn frames_of(pid: u32, start: u64, pages: u64) -> BTreeSet<u64> {
    let entries = support::plain_entries(pid, start, start + pages * page_bytes());
    entries.into_iter().filter(|(_, entry)| entry >> 63 == 1).map(|(_, entry)| entry & ((1 << 55) - 1)).collect()
}

extern "C" fn waits(_: *mut libc::c_void) -> libc::c_int {
    loop {
        // SAFETY: it touches no memory.
        unsafe { libc::pause() };
    }
}

/// A relative that shares the memory, as after vfork, counts once.
pub fn one_address_space_is_one_member() {
    const STACK: usize = 64 << 10;
    let own = std::process::id();
    let mut stack = vec![0u8; STACK];
    // SAFETY: the child has a stack of its own, which lives until it has ended, and only waits.
    let child = unsafe {
        let top = stack.as_mut_ptr().add(STACK - 64) as usize & !15;
        libc::clone(waits, top as *mut _, libc::CLONE_VM | libc::SIGCHLD, std::ptr::null_mut())
    };
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    let found = std::panic::catch_unwind(|| sums(&[own, child as u32]));
    let compared = Command::new(env!("CARGO_BIN_EXE_pmdb"))
        .args(["-nx", "-q", "-batch", "-p", &own.to_string(), "-ex", &format!("compare {child}")])
        .output()
        .expect("pmdb runs");
    end(child as u64);
    // SAFETY: it is a child of this process.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    drop(stack);
    let found = found.expect("sums");
    if found.members.len() == 2 {
        return skip("account::one_address_space_is_one_member", "the kernel has no kcmp, or refuses it");
    }
    if support::shows_frames() {
        let compared = String::from_utf8_lossy(&compared.stdout);
        let said = format!("processes {own} and {child} have one address space");
        assert!(compared.contains(&said), "{compared}");
    }
    let [member] = &found.members[..] else { panic!("{found:?}") };
    assert_eq!((member.identity.pid, &member.same_memory[..]), (own, &[child as u32][..]));
}

pub fn by_name_and_without_a_target() {
    // Shells that give themselves a name.
    let name = format!("pmdb-fam{}", std::process::id() % 100_000);
    let mut children: Vec<_> = (0..3)
        .map(|_| {
            let mut shell = Command::new("sh")
                .args(["-c", "printf %s $1 > /proc/$$/comm; echo done; read go", "sh", &name])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a shell");
            let mut said = [0; 5];
            shell.stdout.as_mut().expect("its output").read_exact(&mut said).expect("that it is done");
            shell
        })
        .collect();
    let run = |command: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_pmdb"))
            .args(["-nx", "-q", "-batch", "--json", "-ex", command])
            .output()
            .expect("pmdb runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let records: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        (output.status.success(), records)
    };
    let (is_ok, all) = run(&format!("account \"{name}\" top 2"));
    let pids: BTreeSet<u64> = children.iter().map(|child| child.id().into()).collect();
    let [first, second, _] = pids.iter().copied().collect::<Vec<_>>()[..] else { panic!("{pids:?}") };
    let lists = [
        (format!("account of {name}"), pids.clone()),
        (format!("account of {first},{second}"), [first, second].into()),
        (format!("account of {second}, '{name}', {first}"), pids.clone()),
        (format!("account of {}, {second}", vec![first.to_string(); 15_000].join(",")), [first, second].into()),
    ];
    let (kernel_thread, with_one) = (run("account of 2"), run(&format!("account of {first}, 2")));
    let listed: Vec<_> = lists.into_iter().map(|(command, pids)| (run(&command), command, pids)).collect();
    let lines: HashMap<u64, String> = pids.iter().map(|&pid| (pid, plain_command_line(pid))).collect();
    for child in &mut children {
        child.kill().expect("to end it");
        child.wait().expect("its end");
    }
    assert!(is_ok, "{all:?}");
    let rows = of_type(&all, "account-process");
    assert_eq!(rows.len(), 2, "{all:?}");
    assert!(rows.iter().all(|row| pids.contains(&row["pid"].as_u64().expect("a number"))));
    let [summary] = of_type(&all, "account-family")[..] else { panic!("{all:?}") };
    assert_eq!(summary["processes"], 3);
    assert!(bytes(summary) <= summary["rss"].as_u64().expect("a sum"));
    for ((is_ok, all), command, pids) in listed {
        assert!(is_ok, "{command}: {all:?}");
        let rows = of_type(&all, "account-process");
        let found: BTreeSet<u64> = rows.iter().map(|row| row["pid"].as_u64().expect("a number")).collect();
        assert_eq!((found, rows.len()), (pids.clone(), pids.len()), "{command}");
        // They have one name, so the rows have command lines.
        for row in rows {
            assert_eq!(row["command_line"], lines[&row["pid"].as_u64().expect("a number")], "{command}");
        }
    }
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        let (is_ok, all) = kernel_thread;
        let [error] = of_type(&all, "error")[..] else { panic!("{all:?}") };
        assert!(!is_ok && error["message"].as_str().is_some_and(|text| text.contains("is a kernel thread")), "{all:?}");
        let (is_ok, all) = with_one;
        let [sums] = of_type(&all, "account-family")[..] else { panic!("{all:?}") };
        assert!(is_ok && sums["processes"] == 1 && sums["kernel_threads"] == 1 && sums["ended"] == 0, "{all:?}");
    }
    for missing in ["account \"there is no such process\"", "account of 2147483647", "account of no-such-process"] {
        let (is_ok, all) = run(missing);
        assert!(!is_ok, "{all:?}");
        assert_eq!(of_type(&all, "error").len(), 1);
    }
}

/// The arguments of a process with blanks between them, read without pmdb.
fn plain_command_line(pid: u64) -> String {
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("a command line");
    line.trim_end_matches('\0').replace('\0', " ")
}

/// What nobody maps: the question after an OOM kill.
pub fn a_cgroup_with_page_cache() {
    const NAME: &str = "account::a_cgroup_with_page_cache";
    const CACHE: u64 = 100 << 20;
    let cgroup = match Cgroup::make() {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    cgroup.takes(puppet.0.pid());
    let memory = puppet.maps("anonymous", 300);
    puppet.writes(memory, 300);
    // A shell in the group writes a file: the pages are charged to it.
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("cached");
    let mut shell = Command::new("sh")
        .args(["-c", "read go; head -c \"$1\" /dev/zero > \"$2\"; echo done; read go", "sh"])
        .arg(CACHE.to_string())
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    cgroup.takes(shell.id());
    let mut input = shell.stdin.take().expect("its input");
    std::io::Write::write_all(&mut input, b"go\n").expect("to tell it");
    let mut said = [0; 5];
    shell.stdout.take().expect("its output").read_exact(&mut said).expect("that it is done");
    let machine = puppet.0.attach().machine;
    let group = machine.cgroup_memory(cgroup.path.as_os_str().as_bytes()).expect("its memory");
    let below = cgroup.path.strip_prefix(crate::cgroup::hierarchy().expect("it is there")).expect("below it");
    let again = machine.cgroup_memory(below.as_os_str().as_bytes()).expect("the same");
    assert_eq!((&group.path, &group.processes), (&again.path, &again.processes));
    let mut listed = group.processes.clone();
    listed.sort_unstable();
    let mut expected = vec![puppet.0.pid(), shell.id()];
    expected.sort_unstable();
    assert_eq!(listed, expected);
    let stat = group.stat.clone().expect("memory.stat");
    let (cached, mapped) = (stat["file"], stat["file_mapped"]);
    assert!(cached - mapped >= CACHE && cached - mapped < CACHE + (8 << 20), "{stat:?}");
    assert!(group.current.clone().expect("memory.current") >= CACHE + 300 * page_bytes());
    assert!(stat["anon"] >= 300 * page_bytes());
    let current = group.current.clone().expect("memory.current");
    if stat.contains_key("kernel") {
        let rest = current.saturating_sub(stat["anon"] + cached).abs_diff(stat["kernel"]);
        // Each processor charges and counts in batches of pages.
        assert!(rest < 1024 * page_bytes(), "{current}: {stat:?}");
    }
    assert_eq!((group.limit.ok(), group.killed.ok()), (Some(None), Some(0)));
    let limits = ["memory.max", "memory.limit_in_bytes"].map(|name| cgroup.path.join(name));
    let limit = limits.iter().find(|file| file.exists()).expect("a limit can be set");
    std::fs::write(limit, (1u64 << 40).to_string()).expect("a limit");
    let limited = machine.cgroup_memory(below.as_os_str().as_bytes()).expect("the same");
    assert_eq!(limited.limit.ok(), Some(Some(1u64 << 40)));
    assert!(group.peak.is_err() || group.peak.is_ok_and(|peak| peak >= current));
    let found = sums(&expected);
    assert!(found.distinct >= 300 * page_bytes() && found.distinct < CACHE);
    assert!(machine.cgroup_memory(b"/there is/no such group").is_err());
    // The command, for the root of the hierarchy: everybody is in it.
    let all = records(puppet.0.pid(), "account cgroup / top 1");
    let [of_root] = of_type(&all, "account-cgroup")[..] else { panic!("{all:?}") };
    assert_eq!(of_root["path"], "/");
    // Its sentence is about the rows: the kernel counts less.
    let rows = of_type(&all, "account-charge");
    let [of, charged] = ["of", "bytes"].map(|field| rows[0][field].as_u64().expect("a number"));
    assert_eq!(rows.iter().filter_map(|row| row["bytes"].as_u64()).sum::<u64>(), of);
    let said = all.iter().find(|record| record["type"] == "answer").and_then(|answer| answer["message"].as_str());
    let words = |bytes| pmdb::render::units::size(bytes);
    let expected = format!("cgroup / is charged {}: {} (", words(of), words(charged));
    assert!(said.is_some_and(|said| said.starts_with(&expected)), "{said:?}: {expected}");
    // A capture does not list who is in the group: that is no group of 0 processes.
    let capture = folder.path().join("of-one.capture");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pmdb")).args(["-nx", "-batch"]).args(arguments).output();
        let output = output.expect("pmdb runs");
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).expect("text"))
    };
    let (file, pid) = (capture.to_str().expect("text"), puppet.0.pid().to_string());
    let (is_ok, said) = run(&["-p", &pid, "-ex", &format!("capture {file}")]);
    assert!(is_ok, "{said}");
    let (is_ok, said) = run(&["-c", file, "-ex", &format!("account cgroup '{}'", group.path)]);
    assert!(!is_ok && said.contains("not in this capture") && !said.contains("0 processes"), "{said}");
    drop(input);
    _ = shell.wait();
    drop(puppet);
    drop(cgroup);
}

/// Memory that was touched before its process came stays charged to the group before.
pub fn a_cgroup_that_is_charged_less() {
    const NAME: &str = "account::a_cgroup_that_is_charged_less";
    let name = format!("pmdb-live-{}", std::process::id());
    let cgroup = match Cgroup::called(name.as_bytes()) {
        Ok(cgroup) => cgroup,
        Err(reason) => return skip(NAME, &reason),
    };
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 300);
    puppet.writes(memory, 300);
    cgroup.takes(puppet.0.pid());
    let all = records(puppet.0.pid(), &format!("account cgroup /{name}"));
    let of_group = of_type(&all, "account-cgroup")[0];
    let [charged, elsewhere] = ["current", "charged_elsewhere"].map(|field| of_group[field].as_u64().expect("known"));
    assert!(charged < 300 * page_bytes() && elsewhere >= 300 * page_bytes(), "{of_group}");
    drop(puppet);
    drop(cgroup);
}
