//! The same pages, queried with fewer rights.

use super::super::Test;
use super::super::behind::{DiskFile, Held};
use super::super::puppet::Puppet;
use super::super::states::MADV_COLLAPSE;
use super::super::support::{self, page_bytes, skip};
use super::super::system;
use super::super::target::{Target, command_as, command_by};
use super::super::undisturbed::looks;
use super::{Truth, hexadecimal, says_to};
use crate::executable;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const TESTS: &[Test] = &[
    ("answers::in_a_user_namespace", in_a_user_namespace),
    ("answers::without_rights", without_rights),
    ("answers::swapped_and_locked_without_rights", swapped_and_locked_without_rights),
    ("answers::with_file_capabilities", with_file_capabilities),
    ("answers::where_yama_refuses", where_yama_refuses),
    ("answers::huge_pages_of_an_ordinary_user", huge_pages_of_an_ordinary_user),
];

/// Root there is not root here: frames are hidden, and reported as hidden.
fn in_a_user_namespace() {
    const NAME: &str = "answers::in_a_user_namespace";
    let unshare = ["unshare", "--user", "--map-root-user"];
    let works = std::process::Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        return skip(NAME, "no user namespaces");
    }
    // A process may inspect only its own namespace and those within it, so the puppet is in it too.
    let mut puppet = Puppet::run(&mut command_by(&unshare, "puppet"));
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 1);
    let pid = puppet.0.pid();
    let number = pid.to_string();
    let enter = ["nsenter", "--user", "--preserve-credentials", "--target", &number];
    let truth = Truth::present("written, asked from a user namespace", "anonymous");
    let said = says_to(&enter, pid, memory, &truth);
    hides_frames(&said.translation);
    let untouched = Truth::absent("untouched, asked from a user namespace", "untouched", "zeros");
    says_to(&enter, pid, memory + page_bytes(), &untouched.of_kind("anonymous"));
}

fn hides_frames(translation: &serde_json::Value) {
    assert_eq!(translation["pfn_hidden"], true, "{translation}");
    for hidden in ["pfn", "physical", "flags", "map_count"] {
        assert!(translation[hidden].is_null(), "{translation}");
        assert!(translation["why"][hidden].is_string(), "{translation}");
    }
}

/// Root that lacks the one right that shows frames.
fn without_rights() {
    const NAME: &str = "answers::without_rights";
    if !support::is_root() {
        return skip(NAME, "only root has rights to lose");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let without = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
    let truth = Truth::present("written, asked without CAP_SYS_ADMIN", "anonymous");
    let said = says_to(&without, puppet.0.pid(), memory, &truth);
    hides_frames(&said.translation);
}

/// smaps needs no rights: it confirms what may be in swap, and shows what is locked.
fn swapped_and_locked_without_rights() {
    const NAME: &str = "answers::swapped_and_locked_without_rights";
    if !support::is_root() {
        return skip(NAME, "only root has rights to lose");
    }
    let (mut puppet, memory, swap) = match Puppet::in_swap(16, 10) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    let pid = puppet.0.pid();
    let says = |line: &str| -> Vec<Value> {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", env!("CARGO_BIN_EXE_pmdb")]);
        let output = command.args(at(pid, line)).output().expect("setpriv");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let regions = says("regions where swapped > 0");
    let has_it = |one: &&Value| {
        let [start, end] = ["start", "end"].map(|name| hexadecimal(&one[name]).expect("an address"));
        (start..end).contains(&memory)
    };
    let found = regions.iter().find(|one| one["type"] == "region" && has_it(one)).expect("its region");
    assert!(found["swapped"].as_u64() >= Some(10 * support::page_bytes()), "{found}");
    let kept = memory + 12 * support::page_bytes();
    // Nothing is locked yet: smaps decides nothing.
    assert!(says(&format!("explain {kept:#x}"))[0]["region_locked"].is_null());
    puppet.does("lock", &[kept, support::page_bytes()]);
    assert_eq!(says(&format!("explain {kept:#x}"))[0]["region_locked"], true);
    drop(puppet);
    drop(swap);
}

/// `nobody`, as nearly every system has it.
const USER: u32 = 65534;

/// The program with the file capabilities that the README recommends, run by an ordinary user whose shell has no
/// rights: such a program is not dumpable, so most of its own `/proc/self` belongs to root.
struct Capable {
    folder: tempfile::TempDir,
}

impl Capable {
    fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).expect("its mode");
        let program = folder.path().join("pmdb");
        executable::copy(env!("CARGO_BIN_EXE_pmdb"), &program);
        let rights = "cap_sys_admin,cap_sys_ptrace,cap_dac_read_search=p";
        let given = Command::new("setcap").arg(rights).arg(&program).output();
        let given = given.map_err(|error| format!("setcap: {error}"))?;
        if !given.status.success() {
            return Err(String::from_utf8_lossy(&given.stderr).into_owned());
        }
        let capable = Capable { folder };
        let output = capable.run(&["-nx", "-batch", "-ex", "info capabilities"]);
        if output.status.success() { Ok(capable) } else { Err(format!("such a program does not run here: {output:?}")) }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
            .args(["env", "-i", "PATH=/usr/bin:/bin"])
            .arg(self.folder.path().join("pmdb"))
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null());
        command.output().expect("setpriv")
    }
}

fn at(pid: u32, line: &str) -> [String; 7] {
    ["-nx", "-batch", "--json", "-p", &pid.to_string(), "-ex", line].map(str::to_owned)
}

fn by_root(pid: u32, line: &str) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_pmdb")));
    command.args(at(pid, line)).stdin(Stdio::null());
    command.output().expect("it runs")
}

/// The last record, which is the summary.
fn last(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{output:?}"))
}

fn with_file_capabilities() {
    const NAME: &str = "answers::with_file_capabilities";
    if !support::is_root() {
        return skip(NAME, "only root may give a file capabilities");
    }
    let capable = match Capable::new() {
        Ok(capable) => capable,
        Err(why) => return skip(NAME, &why),
    };
    let file = DiskFile::of(2 * page_bytes());
    let _held = Held::of(&file, 0, 2);
    let mut puppet = Puppet::start();
    let memory = puppet.maps_file(&file, 2, libc::PROT_READ, libc::MAP_SHARED);
    let pid = puppet.0.pid();
    let as_user = |line: &str| {
        let arguments = at(pid, line);
        capable.run(&arguments.each_ref().map(String::as_str))
    };
    // The kernel does not show others the page cache of root's file: its pages are counted as unknown, with the reason.
    let bytes = 2 * page_bytes();
    let find = format!("find/b {memory:#x}, +{bytes}, 7");
    let hidden = last(&as_user(&find));
    let shows_all = hidden["cached"] == 2;
    if !shows_all {
        assert_eq!((&hidden["matches"], &hidden["cache_unread"]), (&0.into(), &2.into()), "{hidden}");
        let why = hidden["why"]["cache_unread"].as_str().unwrap_or_default();
        assert!(why.contains("the page cache"), "{hidden}");
    }
    // A file of the user's own is searched as root's search would.
    std::os::unix::fs::fchown(&*file, Some(USER), Some(USER)).expect("to give it away");
    for found in [last(&as_user(&find)), last(&by_root(pid, &find))] {
        assert_eq!((&found["matches"], &found["cached"]), (&bytes.into(), &2.into()), "{found}");
        assert_eq!(found["cache_unread"], 0, "{found}");
    }
    for line in looks(memory) {
        let (user, root) = (as_user(&line), by_root(pid, &line));
        assert_eq!(user.status.code(), root.status.code(), "{line}: {user:?}");
        assert_eq!(user.stderr, root.stderr, "{line}");
    }
}

/// Without map counts it is unknown whether a page of a huge mapping is exclusive: a filter neither keeps nor silently
/// leaves out such pages.
fn huge_pages_of_an_ordinary_user() {
    const NAME: &str = "answers::huge_pages_of_an_ordinary_user";
    if !support::is_root() {
        return skip(NAME, "only root can become another user");
    }
    let Some(bytes) = support::huge_page_bytes().filter(|_| support::has_scan()) else {
        return skip(NAME, "no transparent huge pages, or no PAGEMAP_SCAN");
    };
    // Where that user may execute them.
    let folder = tempfile::tempdir().expect("a folder");
    let [program, copy] = ["pmdb", "puppet"].map(|name| folder.path().join(name));
    executable::copy(env!("CARGO_BIN_EXE_pmdb"), &program);
    executable::copy(std::env::current_exe().expect("this program"), &copy);
    for path in [folder.path(), &program, &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("for everyone");
    }
    let mut puppet = Puppet::run(command_as(&copy, "puppet").uid(USER).gid(USER).current_dir("/"));
    let pages = bytes / page_bytes();
    let untouched = puppet.maps("huge", 3 * pages);
    let memory = untouched + bytes;
    puppet.writes(memory, 2 * pages);
    for place in [memory, memory + bytes] {
        _ = puppet.advises(place, pages, MADV_COLLAPSE);
    }
    let pid = puppet.0.pid();
    let range = format!("{memory:#x}, +{:#x}", 2 * bytes);
    let as_root = |line: &str| last(&by_root(pid, line));
    if as_root(&format!("walk {range} where pmd_mapped"))["pages"] != 2 * pages {
        return skip(NAME, "the kernel gave no huge pages");
    }
    let as_user = |line: &str| {
        let mut command = Command::new(&program);
        command.args(at(pid, line)).uid(USER).gid(USER).current_dir("/").stdin(Stdio::null());
        command.output().expect("it runs")
    };
    for (filter, matching) in [("exclusive", 2 * pages), ("not exclusive", 0), ("present and exclusive", 2 * pages)] {
        let truth = as_root(&format!("walk {range} where {filter}"));
        assert_eq!((&truth["pages"], &truth["undecided"]), (&matching.into(), &0.into()), "{filter}");
        for line in ["walk RANGE where FILTER", "walk RANGE where FILTER by kind", "map RANGE where FILTER"] {
            let line = line.replace("RANGE", &range).replace("FILTER", filter);
            let output = as_user(&line);
            let why = last(&output)["message"].to_string();
            assert!(!output.status.success() && why.contains("exclusive"), "{line}: {output:?}");
            assert!(why.contains("only map counts show it") && why.contains("kpagecount"), "{line}: {why}");
        }
        // Where other pages are kept, those that nothing decides are left out.
        for line in ["walk RANGE where FILTER", "map RANGE where FILTER"] {
            let some = format!("{untouched:#x}, +{:#x}", 3 * bytes);
            let line = line.replace("RANGE", &some).replace("FILTER", &format!("not present or {filter}"));
            let output = as_user(&line);
            let sums = last(&output);
            assert_eq!(sums["undecided"], 2 * pages, "{line}: {output:?}");
            let why = sums["why"]["undecided"].as_str().unwrap_or_default();
            assert!(why.contains("only map counts show it") && why.contains("kpagecount"), "{line}: {why}");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("left out: "), "{line}: {text}");
        }
        for line in ["print count(RANGE where FILTER)", "assert count(RANGE where FILTER) == 0"] {
            let output = as_user(&line.replace("RANGE", &range).replace("FILTER", filter));
            let error = String::from_utf8_lossy(&output.stderr);
            let error = format!("{error}{}", String::from_utf8_lossy(&output.stdout));
            assert!(
                !output.status.success() && error.contains("`exclusive` cannot be determined"),
                "{filter}: {output:?}"
            );
        }
    }
    let groups = as_user(&format!("walk {range} by exclusive"));
    let text = String::from_utf8_lossy(&groups.stdout);
    let group: Value = serde_json::from_str(text.lines().next().expect("a group")).expect("a record");
    assert_eq!((&group["key"], &group["pages"]), (&"unknown".into(), &(2 * pages).into()), "{group}");
    let why = group["why"]["exclusive"].as_str().unwrap_or_default();
    assert!(why.contains("kpagecount") && !why.contains("PAGEMAP_SCAN"), "{group}");
    // Of whole regions the kernel tells everybody how much is shared.
    for line in ["regions where start == START and private >= BYTES", "regions where start == START by private"] {
        let line = line.replace("START", &format!("{untouched:#x}")).replace("BYTES", &(2 * bytes).to_string());
        let text = String::from_utf8(as_user(&line).stdout).expect("UTF-8");
        let row: Value = serde_json::from_str(text.lines().next().expect("a region")).expect("a record");
        assert_eq!(
            (&row["start"], &row["private"]),
            (&format!("{untouched:#x}").into(), &(2 * bytes).into()),
            "{line}"
        );
    }
}

/// Memory of a process of the same user that is no child of pmdb, at each scope of Yama that can be changed again.
fn where_yama_refuses() {
    const NAME: &str = "answers::where_yama_refuses";
    const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    // Where nobody may execute it.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("pmdb");
    executable::copy(env!("CARGO_BIN_EXE_pmdb"), &program);
    let everyone = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everyone).expect("a folder for everyone");
    for (scope, says) in [
        (0, None),
        (1, Some("Yama allows it only to ancestors of the process (ptrace_scope 1)")),
        (2, Some("Yama allows it only with CAP_SYS_PTRACE (ptrace_scope 2)")),
    ] {
        let changed = match system::yama(scope) {
            Ok(changed) => changed,
            Err(reason) => return skip(NAME, &reason),
        };
        if Command::new("setpriv").arg("--version").output().is_err() {
            return skip(NAME, "there is no setpriv");
        }
        let mut shell = Command::new("setpriv");
        let mut shell = Target::spawn(shell.args(NOBODY).args(["sh", "-c", "echo ready; read line"]));
        assert_eq!(shell.line(), "ready");
        let mut command = Command::new("setpriv");
        command.args(NOBODY).arg(&program).args(["-nx", "-batch", "-p", &shell.pid().to_string()]);
        let output = command.args(["-ex", "x/1xb first([stack] where present)"]).output().expect("pmdb runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        match says {
            None => assert!(output.status.success(), "{told}"),
            Some(says) => assert!(told.contains(says) && told.contains("ptrace_scope to 0 as root"), "{told}"),
        }
        drop(changed);
    }
}
