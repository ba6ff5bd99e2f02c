//! Captures of several processes of which one ends meanwhile.

use super::puppet::Puppet;
use super::support::is_root;
use super::target::command_as;
use super::{Test, executable};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const TESTS: &[Test] = &[
    ("capture::goes_on_without_a_process_that_ends", goes_on_without_a_process_that_ends),
    ("capture::goes_on_without_a_process_that_has_ended", goes_on_without_a_process_that_has_ended),
    ("capture::goes_on_wherever_a_process_ends", goes_on_wherever_a_process_ends),
];

/// A name that no other process has.
const NAME: &str = "pmdb-kin";

fn pmdb(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pmdb")).arg("-nx").args(words).output().expect("pmdb runs")
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Processes of one name, by number.
fn family(folder: &Path, name: &str) -> Vec<Puppet> {
    let copy = folder.join(name);
    executable::copy(std::env::current_exe().expect("this program"), &copy);
    let mut all: Vec<Puppet> = (0..3).map(|_| Puppet::run(&mut command_as(&copy, "puppet"))).collect();
    for one in &mut all {
        let memory = one.maps("anonymous", 100);
        one.writes(memory, 70);
    }
    all.sort_by_key(|one| one.0.pid());
    all
}

/// Begins a capture of all processes of this name, and waits until it has written something, after which nobody reads
/// it. Returns what it has written.
fn begun(name: &str) -> (std::process::Child, Vec<u8>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    let command = command.args(["-nx", "-batch", "-ex", &format!("capture - \"{name}\"")]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("pmdb runs");
    let mut first = vec![0];
    running.stdout.as_mut().expect("its output").read_exact(&mut first).expect("a capture");
    (running, first)
}

/// Reads the rest, and writes the capture into a file. Returns what was reported.
fn ended((mut running, mut bytes): (std::process::Child, Vec<u8>), file: &Path) -> String {
    running.stdout.take().expect("its output").read_to_end(&mut bytes).expect("the rest");
    let output = running.wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", text(&output));
    std::fs::write(file, bytes).expect("written");
    text(&output)
}

/// The pipe and the buffer before it hold less than the symbols of one process: the last process has answered for its
/// pages by then, and not for the rest.
fn goes_on_without_a_process_that_ends() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut all = family(folder.path(), NAME);
    let pids: Vec<String> = all.iter().map(|one| one.0.pid().to_string()).collect();
    let rows = text(&pmdb(&["-p", &pids[2], "regions"]));
    let longer = family(folder.path(), "pmdb-kinship");
    let writing = begun(NAME);
    all[2].0.end();
    let file = folder.path().join("one");
    let said = ended(writing, &file);
    assert!(said.contains("left out: processes with similar names ('pmdb-kinship')"), "{said}");
    drop(longer);
    let lost = format!("process {} ({NAME}) ended: only a part of it is in", pids[2]);
    assert!(said.contains(&format!("{lost} the capture")), "{said}");
    let opened = text(&pmdb(&["-c", path(&file), "ps"]));
    assert!(opened.contains(&format!("{lost} this capture")), "{opened}");
    assert!(pids.iter().all(|pid| opened.contains(pid)), "{opened}");
    let member = |pid: &str, line: &str| {
        let take = format!("target capture {} {pid}", path(&file));
        pmdb(&["-batch", "-q", "-ex", &take, "-ex", line])
    };
    let then = member(&pids[2], "regions");
    assert!(then.status.success(), "{}", text(&then));
    let names = |rows: &str| rows.lines().filter(|row| row.starts_with("0x")).count();
    assert_eq!(names(&text(&then)), names(&rows), "{}", text(&then));
    let status = text(&member(&pids[2], "info process"));
    assert!(status.contains(&format!("not in this capture, because process {} ended", pids[2])), "{status}");
    // The others are whole.
    for pid in &pids[..2] {
        let line = |output: Output| text(&output).lines().find(|line| line.contains("VmRSS")).map(str::to_owned);
        let (then, now) = (line(member(pid, "info process")), line(pmdb(&["-p", pid, "info process"])));
        assert!(then.is_some() && then == now, "{then:?} {now:?}");
    }
}

/// A child that nobody has waited for is in the list of processes, and has no memory.
fn goes_on_without_a_process_that_has_ended() {
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 10);
    puppet.writes(memory, 10);
    let child = puppet.does("fork", &[memory, 5]).to_string();
    let pid = puppet.0.pid().to_string();
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("one");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(child.parse().expect("a number")).expect("a process"),
        rustix::process::Signal::KILL,
    )
    .expect("to end it");
    let stat = || std::fs::read_to_string(format!("/proc/{child}/stat")).expect("a process that nobody waits for");
    while !stat().contains(") Z ") {
        std::thread::yield_now();
    }
    let written = pmdb(&[&pid, "--json", "-batch", "-ex", &format!("capture {} children", path(&file))]);
    assert!(written.status.success(), "{}", text(&written));
    let record: serde_json::Value = serde_json::from_slice(&written.stdout).expect("a record");
    assert_eq!((&record["processes"], &record["missing"]), (&1.into(), &1.into()), "{record}");
    let lost = &record["lost"][0];
    assert_eq!(
        (lost["pid"].to_string(), &lost["why"], &lost["in_part"]),
        (child.clone(), &"ended".into(), &false.into())
    );
    let opens = format!("target capture {} {child}", path(&file));
    // Frames are hidden from others.
    let compares = is_root().then(|| format!("compare {child}"));
    for line in [opens].into_iter().chain(compares) {
        let refused = pmdb(&["-c", path(&file), "-batch", "-ex", &line]);
        let expected = format!("process {child} is not in this capture, because it ended");
        assert!(!refused.status.success() && text(&refused).contains(&expected), "{line}: {}", text(&refused));
    }
}

/// Whichever process ends, and whenever: the capture is whole without it.
fn goes_on_wherever_a_process_ends() {
    const NAME: &str = "pmdb-kith";
    let folder = tempfile::tempdir().expect("a directory");
    for ending in 0..3 {
        let mut all = family(folder.path(), NAME);
        let pids: Vec<u32> = all.iter().map(|one| one.0.pid()).collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
        let command = command.args(["-nx", "-batch", "-ex", &format!("capture - \"{NAME}\"")]);
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("pmdb runs");
        // As soon as it has been opened.
        let page_map = format!("/proc/{}/pagemap", pids[ending]);
        let descriptors = format!("/proc/{}/fd", running.id());
        let is_open = || {
            let links = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
            links.filter_map(|link| std::fs::read_link(link.path()).ok()).any(|to| to == Path::new(&page_map))
        };
        while !is_open() {
            std::thread::yield_now();
        }
        all[ending].0.end();
        let file = folder.path().join("one");
        let said = ended((running, Vec::new()), &file);
        // The first one may have answered all by then. To list it, its page map is read before it is opened: it has no
        // name if it ended in between.
        let lost = format!("process {}", pids[ending]);
        let is_named = [format!("{lost} ({NAME}) ended: "), format!("{lost} ended: it is not in the capture")];
        assert!(ending == 0 || is_named.iter().any(|sentence| said.contains(sentence)), "{said}");
        for (at, pid) in pids.iter().enumerate().filter(|(at, _)| *at != ending) {
            let take = format!("target capture {} {pid}", path(&file));
            let then = text(&pmdb(&["-batch", "-q", "-ex", &take, "-ex", "print count(all where present) > 0"]));
            assert!(then.trim_end().ends_with("= 1"), "{at}: {then}");
        }
    }
}
