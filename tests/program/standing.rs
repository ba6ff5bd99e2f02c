//! The answers with different rights: everybody sees states, frames need rights, and a refusal has a reason.

use crate::executable;
use crate::run::{Home, PMDB, Run};
use crate::shown::shows_frames;
use crate::skips::skip;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

/// `nobody`, as nearly every system has it.
pub const USER: &str = "65534";

/// A home that everybody may read, with a copy of the program: this build may be where others cannot reach it.
pub struct Place {
    home: Home,
}

impl Place {
    pub fn new() -> Self {
        let home = Home::new();
        executable::copy(PMDB, home.path("pmdb"));
        fs::set_permissions(home.path("pmdb"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::set_permissions(home.path(""), PermissionsExt::from_mode(0o755)).unwrap();
        Place { home }
    }

    /// A program that runs this one: `setpriv …`, `unshare …`, or nothing.
    pub fn command(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let program = self.home.path("pmdb");
        let mut command = match wrapper {
            [] => Command::new(program),
            [wrapper, words @ ..] => {
                let mut command = Command::new(wrapper);
                command.args(words).arg(program);
                command
            }
        };
        command
            .args(arguments)
            .current_dir(self.home.path(""))
            .env_clear()
            .env("HOME", self.home.path(""))
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null());
        command
    }

    /// Lets everybody write files there.
    pub fn open_to_all(&self) {
        fs::set_permissions(self.home.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    }

    fn run(&self, wrapper: &[&str], arguments: &[&str]) -> Run {
        self.command(wrapper, arguments).output().unwrap().into()
    }

    /// Why nothing can be run so here, if it cannot.
    pub fn cannot(&self, wrapper: &[&str]) -> Option<String> {
        match self.command(wrapper, &["--version"]).output() {
            Err(error) => Some(format!("{}: {error}", wrapper[0])),
            Ok(output) if !output.status.success() => {
                let said = String::from_utf8_lossy(&output.stderr);
                Some(format!("{}: {}", wrapper.join(" "), said.trim()))
            }
            Ok(_) => None,
        }
    }

    /// The answers to these lines, at the demonstration process, which is then this user's own.
    fn at_the_demonstration(&self, wrapper: &[&str], lines: &[String]) -> Vec<Value> {
        let mut arguments = vec!["demo", "--json", "-nx", "-batch"];
        arguments.extend(lines.iter().flat_map(|line| ["-ex", line.as_str()]));
        let run = self.run(wrapper, &arguments);
        run.is_fine();
        let mut objects = run.objects();
        objects.retain(|object| object["type"] != "target" && object["type"] != "note");
        objects
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Variables of the demonstration, with state and kind of their first page. Not every kernel has all of them.
const AREAS: [(&str, &str, &str); 5] = [
    ("buffer", "present", "private_copy"),
    ("anonymous", "present", "anonymous"),
    ("shared", "present", "shmem"),
    ("untouched", "untouched", "anonymous"),
    ("guard", "guard", "anonymous"),
];

/// Checks the areas and the reported capabilities: with any rights, the states are right.
fn look(place: &Place, wrapper: &[&str]) -> (Vec<Value>, Value) {
    let shown = place.at_the_demonstration(wrapper, &["show convenience".into()]);
    let is_there = |name: &str| shown.iter().any(|value| value["name"] == name);
    let there: Vec<_> = AREAS.iter().filter(|(name, ..)| is_there(name)).collect();
    assert!(there.len() >= 4, "{shown:?}");
    let lines = there.iter().map(|(name, ..)| format!("translate start(${name})"));
    let lines: Vec<String> = lines.chain(["info capabilities".to_owned()]).collect();
    let mut answers = place.at_the_demonstration(wrapper, &lines);
    let capabilities = answers.pop().expect("the last answer");
    assert_eq!(capabilities["type"], "capabilities");
    assert_eq!(answers.len(), there.len(), "{answers:?}");
    for ((name, state, kind), answer) in there.into_iter().zip(&answers) {
        assert_eq!((&answer["state"], &answer["kind"]), (&(*state).into(), &(*kind).into()), "{name}: {answer}");
    }
    (answers, capabilities)
}

/// Whether a feature is available, and the rest of its record.
fn capability<'a>(capabilities: &'a Value, name: &str) -> &'a Value {
    let all = capabilities["capabilities"].as_array().expect("a list");
    let found = all.iter().find(|capability| capability["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {capabilities}"))
}

/// Frames exist but are hidden: nowhere a number, everywhere the reason.
fn assert_hidden(answers: &[Value]) {
    for answer in answers.iter().filter(|answer| answer["state"] == "present") {
        assert_eq!(answer["pfn_hidden"], true, "{answer}");
        for field in ["pfn", "physical", "zone", "iomem", "cgroup", "map_count", "flags"] {
            assert!(answer[field].is_null(), "{field}: {answer}");
            let why = answer["why"][field].as_str().unwrap_or_default();
            assert!(why.contains("CAP_SYS_ADMIN"), "{field}: {answer}");
        }
        let entry = answer["entry"].as_str().expect("an entry");
        let entry = u64::from_str_radix(&entry[2..], 16).expect("a number");
        assert_eq!(entry & ((1 << 55) - 1), 0, "{answer}");
        // Bit 56 is shown to everybody.
        assert_eq!(answer["exclusive"].as_bool(), Some(entry >> 56 & 1 == 1));
    }
}

fn assert_shown(answers: &[Value]) {
    for answer in answers.iter().filter(|answer| answer["state"] == "present") {
        assert_eq!(answer["pfn_hidden"], false, "{answer}");
        for field in ["pfn", "physical", "zone", "map_count", "flags_raw"] {
            assert!(!answer[field].is_null(), "{field}: {answer}");
        }
    }
}

#[test]
fn an_ordinary_user_sees_states_but_no_frames() {
    let place = Place::new();
    let user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"];
    let wrapper: &[&str] = if is_root() { &user } else { &[] };
    if let Some(why) = place.cannot(wrapper) {
        return skip("an_ordinary_user_sees_states_but_no_frames", &why);
    }
    if !is_root() && shows_frames() {
        return skip("an_ordinary_user_sees_states_but_no_frames", "this user sees frames");
    }
    let (answers, capabilities) = look(&place, wrapper);
    assert_hidden(&answers);
    for name in ["frame_numbers", "kpageflags", "kpagecount", "kpagecgroup", "iomem", "other_users"] {
        let capability = capability(&capabilities, name);
        assert_eq!(capability["available"], false, "{capability}");
        assert!(!capability["without"].as_str().unwrap_or_default().is_empty());
    }
    let remedy = &capability(&capabilities, "frame_numbers")["remedy"];
    assert!(remedy.as_str().is_some_and(|text| text.contains("sudo")), "{remedy}");
    for name in ["page_map", "memory"] {
        assert_eq!(capability(&capabilities, name)["available"], true, "{name}");
    }
    assert_eq!(capabilities["rights"], serde_json::json!([]));
}

#[test]
fn root_of_a_user_namespace_is_not_root() {
    let place = Place::new();
    let wrapper = ["unshare", "-U", "-r"];
    if let Some(why) = place.cannot(&wrapper) {
        return skip("root_of_a_user_namespace_is_not_root", &why);
    }
    let (answers, capabilities) = look(&place, &wrapper);
    for answer in answers.iter().filter(|answer| answer["state"] == "present") {
        assert_eq!((&answer["pfn_hidden"], &answer["pfn"]), (&true.into(), &Value::Null), "{answer}");
    }
    assert_eq!((&capabilities["user"], &capabilities["first_user_namespace"]), (&0.into(), &false.into()));
    for name in ["frame_numbers", "other_users", "iomem"] {
        assert_eq!(capability(&capabilities, name)["available"], false, "{name}");
    }
    let remedy = &capability(&capabilities, "frame_numbers")["remedy"];
    assert!(remedy.as_str().is_some_and(|text| text.contains("outside of this user namespace")), "{remedy}");
    // This user is its root: whether the file of flags opens depends only on its owner and mode.
    let opens = fs::File::open("/proc/kpageflags").is_ok();
    assert_eq!(capability(&capabilities, "kpageflags")["available"], opens);
}

#[test]
fn root_without_its_right_sees_flags_but_no_frames() {
    let name = "root_without_its_right_sees_flags_but_no_frames";
    let place = Place::new();
    let wrapper = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
    if !is_root() || !shows_frames() {
        return skip(name, "only root can give a right of root away");
    }
    if let Some(why) = place.cannot(&wrapper) {
        return skip(name, &why);
    }
    let (answers, capabilities) = look(&place, &wrapper);
    assert_hidden(&answers);
    assert_eq!(capability(&capabilities, "frame_numbers")["available"], false);
    let remedy = &capability(&capabilities, "frame_numbers")["remedy"];
    assert!(remedy.as_str().is_some_and(|text| text.contains("give pmdb CAP_SYS_ADMIN")), "{remedy}");
    if fs::File::open("/proc/kpageflags").is_err() {
        return skip(name, "not even root may read /proc/kpageflags here");
    }
    assert_eq!(capability(&capabilities, "kpageflags")["available"], true);
    let run = place.run(&wrapper, &["--json", "-nx", "-batch", "-ex", "flags pfn:1"]);
    let answer = &run.is_fine().objects()[0];
    assert!(answer["flags_raw"].is_string(), "{answer}");
}

#[test]
fn root_sees_frames() {
    if !is_root() || !shows_frames() {
        return skip("root_sees_frames", "frames are hidden from this user");
    }
    let (answers, capabilities) = look(&Place::new(), &[]);
    assert_shown(&answers);
    for name in ["frame_numbers", "iomem", "other_users", "page_map", "map_files", "memory"] {
        assert_eq!(capability(&capabilities, name)["available"], true, "{name}");
    }
}

#[test]
fn the_right_to_trace_alone_opens_no_page_map_of_others() {
    let name = "the_right_to_trace_alone_opens_no_page_map_of_others";
    if !is_root() {
        return skip(name, "only root can hand out rights");
    }
    let place = Place::new();
    let wrapper = [
        "setpriv",
        "--reuid",
        USER,
        "--regid",
        USER,
        "--clear-groups",
        "--inh-caps=+sys_ptrace",
        "--ambient-caps=+sys_ptrace",
    ];
    if let Some(why) = place.cannot(&wrapper) {
        return skip(name, &why);
    }
    // Its own process as ever …
    let (answers, capabilities) = look(&place, &wrapper);
    assert_hidden(&answers);
    let others = capability(&capabilities, "other_users");
    assert_eq!(others["available"], false);
    assert_eq!(others["found"], "CAP_DAC_READ_SEARCH not held");
    assert_eq!(capabilities["rights"], serde_json::json!(["CAP_SYS_PTRACE"]));
    // … but of this one the kernel gives the regions and refuses the pages, whose file is for its owner alone.
    let pid = std::process::id().to_string();
    let run = place.run(&wrapper, &["-nx", "-batch", "-p", &pid, "-ex", "regions"]);
    run.failed(4, &format!("may not open /proc/{pid}/pagemap"));
    assert!(run.err.contains("CAP_DAC_READ_SEARCH") && run.out.is_empty(), "{run:?}");
}

#[test]
fn the_process_of_another_user_is_refused() {
    let name = "the_process_of_another_user_is_refused";
    if !is_root() {
        return skip(name, "only root can become somebody else");
    }
    let place = Place::new();
    let pid = std::process::id().to_string();
    let user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"];
    // Rights in a namespace of one's own do not reach out of it.
    let inside = [&user[..], &["unshare", "-U", "-r"]].concat();
    for (wrapper, way) in [(&user[..], "sudo"), (&inside, "outside of this user namespace")] {
        if let Some(why) = place.cannot(wrapper) {
            skip(name, &why);
            continue;
        }
        let run = place.run(wrapper, &["-nx", "-batch", "-p", &pid, "-ex", "regions"]);
        run.failed(4, &format!("may not open /proc/{pid}/pagemap"));
        assert!(run.err.contains(way) && run.out.is_empty(), "{run:?}");
    }
}

/// A process that has announced itself, and ends when this is dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn whose_process_it_is_is_said() {
    let name = "whose_process_it_is_is_said";
    if !is_root() || !shows_frames() {
        return skip(name, "only root may look at the processes of others");
    }
    let place = Place::new();
    let wrapper = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "unshare", "-U", "-r"];
    if let Some(why) = place.cannot(&wrapper) {
        return skip(name, &why);
    }
    let started = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .args(["sh", "-c", "echo here; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut other = Other(started.unwrap());
    let mut said = String::new();
    let out = other.0.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut said).unwrap();
    assert_eq!(said, "here\n");
    let pid = other.0.id().to_string();
    let run = place.run(&[], &["--json", "-nx", "-batch", "-p", &pid, "-ex", "info capabilities"]);
    let objects = run.is_fine().objects();
    let capabilities = objects.last().expect("an answer");
    assert_eq!(capabilities["pid"], other.0.id());
    let page_map = capability(capabilities, "page_map");
    let found = page_map["found"].as_str().expect("words");
    assert!(found.contains("runs as user 65534, pmdb as user 0"), "{found}");
    assert!(found.contains("another user namespace"), "{found}");
    // From inside of it, the capabilities of a process outside are those of another namespace: they prove nothing.
    let outside = std::process::id().to_string();
    let inside = ["unshare", "-U", "-r"];
    let run = place.run(&inside, &["-nx", "-batch", "-p", &outside, "-ex", "regions"]);
    assert!(run.err.contains("is in another user namespace, or a security module protects it"), "{run:?}");
}

/// Features are available if and only if they are reported so: each is checked a second time without pmdb.
#[test]
fn capabilities_are_what_they_are() {
    let place = Place::new();
    let run = place.run(&[], &["--json", "-nx", "-batch", "-ex", "info capabilities"]);
    let objects = run.is_fine().objects();
    let [capabilities] = objects.as_slice() else { panic!("{objects:?}") };
    assert!(capabilities["pid"].is_null());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(capabilities["kernel"], release.trim());
    let version: Vec<u32> =
        release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok()).take(2).collect();
    let version = (version[0], version[1]);
    let says = |name: &str| capability(capabilities, name)["available"].as_bool();
    for file in ["kpageflags", "kpagecount", "kpagecgroup"] {
        let opens = fs::File::open(format!("/proc/{file}")).is_ok();
        assert_eq!(says(file), Some(opens), "{file}");
    }
    assert_eq!(says("frame_numbers"), Some(shows_frames()));
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let flags = smaps.lines().find(|line| line.starts_with("VmFlags:"));
    let marked = flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "sd"));
    assert_eq!(says("soft_dirty"), flags.map(|_| marked));
    let idle = fs::metadata("/sys/kernel/mm/page_idle/bitmap").is_ok();
    assert!(idle || says("idle_bitmap") == Some(false));
    // These exist since a version of Linux; nothing here refuses them.
    for (name, since) in [
        ("pagemap_scan", (6, 7)),
        ("scan_huge", (6, 7)),
        ("scan_zero", (6, 7)),
        ("scan_wpallowed", (6, 7)),
        ("procmap_query", (6, 11)),
        ("guard_bit", (6, 15)),
    ] {
        assert_eq!(says(name), Some(version >= since), "{name} on {release}");
    }
    // What the call knows stands in its own row.
    let scan = capability(capabilities, "pagemap_scan");
    let known = scan["found"].as_str().unwrap();
    for (category, since) in [(" PRESENT", (6, 7)), (" GUARD", (6, 16))] {
        assert_eq!(known.contains(category), version >= since, "{scan}");
    }
    // Each says how it was found out, and what it means that it is not there.
    let mut names = std::collections::BTreeSet::new();
    for capability in capabilities["capabilities"].as_array().unwrap() {
        assert!(names.insert(capability["name"].as_str().unwrap()), "twice: {capability}");
        for field in ["found", "without"] {
            let text = capability[field].as_str().unwrap();
            assert!(!text.is_empty() && !text.ends_with('.'), "{capability}");
        }
    }
    assert_eq!(names.len(), 22, "{names:?}");
}

/// Containers mount empty files over others to hide them, and show one hierarchy of cgroups and not another: none of
/// that is an answer.
#[test]
fn what_a_container_hides_is_called_hidden() {
    let name = "what_a_container_hides_is_called_hidden";
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let memory = mounts.lines().find_map(|line| {
        let (mount, what) = line.split_once(" - cgroup ")?;
        what.split([' ', ',']).any(|word| word == "memory").then(|| mount.split(' ').nth(4))?
    });
    let Some(memory) = memory.filter(|_| is_root() && shows_frames()) else {
        return skip(name, "only root can hide things, and a hierarchy of its own has to have memory");
    };
    let script = "mount --bind /dev/null /proc/iomem && mount --bind /dev/null /proc/kpageflags && umount -l \"$0\" && exec \"$@\"";
    let wrapper = ["unshare", "--mount", "sh", "-c", script, memory];
    let place = Place::new();
    if let Some(why) = place.cannot(&wrapper) {
        return skip(name, &why);
    }
    let lines = ["info capabilities".to_owned(), "flags start($anonymous)".to_owned()];
    let answers = place.at_the_demonstration(&wrapper, &lines);
    let [capabilities, flags] = answers.as_slice() else { panic!("{answers:?}") };
    for (name, why) in
        [("iomem", "is empty"), ("kpageflags", "is empty"), ("cgroup_paths", "memory cgroups are not mounted")]
    {
        let capability = capability(capabilities, name);
        assert_eq!(capability["available"], false, "{capability}");
        let found = capability["found"].as_str().expect("words");
        assert!(found.contains(why), "{capability}");
    }
    assert!(capability(capabilities, "ksm_flag")["available"].is_null());
    assert!(flags["pfn"].is_number() && flags["cgroup"].is_number(), "{flags}");
    for field in ["iomem", "cgroup_path", "flags"] {
        assert!(flags[field].is_null() && flags["why"][field].is_string(), "{field}: {flags}");
    }
}
