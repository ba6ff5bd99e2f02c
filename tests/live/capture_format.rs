//! The format of captures: a reader of sixty lines reads them, and what commands ask is in them.

use super::Test;
use super::capture_compared::{lines, stopped};
use super::how::Records;
use super::puppet::Puppet;
use super::support::{is_root, page_bytes, shows_frames, skip};
use pmdb::Target;
use pmdb::budget::Budget;
use pmdb::command::{self, LANGUAGE};
use pmdb::lang::ParsedLine;
use pmdb::process::InMemory;
use pmdb::source::{self, About, Held, Kept, Question, Reply, Source};
use pmdb::state::DebugState;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

pub const TESTS: &[Test] = &[
    ("capture_format::sixty_lines_read_it", sixty_lines_read_it),
    ("capture_format::what_commands_ask_is_in_it", what_commands_ask_is_in_it),
];

fn pmdb(words: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_pmdb")).arg("-nx").args(words).output().expect("pmdb runs");
    assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("text")
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// The reader is written from the description in `help capture-format` alone.
fn sixty_lines_read_it() {
    const NAME: &str = "capture_format::sixty_lines_read_it";
    const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/read_capture.py");
    let mut puppet = Puppet::start();
    let memory = puppet.maps_far();
    puppet.writes(memory, 40);
    let pid = puppet.0.pid().to_string();
    puppet.0.stop();
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("one");
    let file = file.to_str().expect("a path");
    pmdb(&["-p", &pid, "capture", file]);
    let Ok(read) = Command::new("python3").args([READER, file]).output() else {
        return skip(NAME, "no python3");
    };
    assert!(std::fs::read_to_string(READER).expect("the reader").lines().count() <= 60);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let read = objects(&String::from_utf8(read.stdout).expect("text"));
    let regions = objects(&pmdb(&["--json", "-c", file, "regions"]));
    let regions: Vec<&Value> = regions.iter().filter(|row| row["type"] == "region").collect();
    assert_eq!(read.len(), regions.len());
    let mut resident = 0;
    for (read, region) in read.iter().zip(regions) {
        for field in ["start", "end", "perms"] {
            assert_eq!(read[field], region[field], "{region}");
        }
        let pages = read["pages"].as_object().expect("pages");
        resident += pages.len();
        // Of memory that the kernel hides no sum is known.
        if let Some(present) = region["present"].as_u64() {
            assert_eq!(present, pages.len() as u64 * page_bytes(), "{region}");
        }
    }
    assert!(resident > 100, "{resident}");
    if !shows_frames() {
        return skip(NAME, "frame numbers are hidden here");
    }
    let pages: BTreeMap<&str, &Value> =
        read.iter().flat_map(|row| row["pages"].as_object().expect("pages")).map(|(at, pfn)| (&**at, pfn)).collect();
    let rows = objects(&pmdb(&["--json", "-c", file, "walk", "all", "where", "present"]));
    let mut compared = 0;
    for row in rows.iter().filter(|row| row["type"] == "pages" && row["pfn"].is_u64()) {
        assert_eq!(pages.get(row["start"].as_str().expect("an address")), Some(&&row["pfn"]), "{row}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

/// What was asked: of whom, how its answer is kept, and whether there was one.
type Asked = BTreeMap<(u32, String), (About, Kept, bool)>;

/// A source that notes the questions that another answers.
struct Asking {
    source: Arc<dyn Source>,
    asked: Arc<Mutex<Asked>>,
}

impl Source for Asking {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> pmdb::access::Result<Reply> {
        let answer = self.source.ask(question, budget);
        let class = question.class();
        let whom = (self.source.identity().pid, question.whole().key());
        self.asked.lock().expect("a lock").insert(whom, (class.about, class.kept, answer.is_ok()));
        answer
    }

    fn open(&self, pid: u32, held: &Held) -> pmdb::access::Result<Arc<dyn Source>> {
        let source = self.source.open(pid, held)?;
        Ok(Arc::new(Asking { source, asked: Arc::clone(&self.asked) }))
    }
}

/// All keys in the index of a capture, of its machine and of its processes.
fn keys(file: &Path) -> BTreeSet<(Option<u64>, String)> {
    let unpacked = Command::new("sh").args(["-c", "tar xOf \"$0\" index.json.gz | gunzip"]).arg(file).output();
    let index: Value = serde_json::from_slice(&unpacked.expect("tar").stdout).expect("the index");
    let processes = index["processes"].as_array().expect("processes");
    let answers = processes.iter().map(|one| (one["pid"].as_u64(), &one["answers"]));
    let kinds = answers.chain([(None, &index["machine"])]).flat_map(|(pid, answers)| {
        let kinds = answers.as_object().expect("answers").values();
        kinds.map(move |kind| (pid, kind.as_object().expect("keys")))
    });
    kinds.flat_map(|(pid, kind)| kind.keys().map(move |key| (pid, key.clone()))).collect()
}

/// What each of these lines asks of a source, and whether it is answered.
fn what_is_asked(source: Arc<dyn Source>, set_up: &[String], lines: &[String]) -> Vec<(Asked, bool)> {
    let asked: Arc<Mutex<Asked>> = Arc::default();
    let target = Target::new(Arc::new(Asking { source, asked: Arc::clone(&asked) }));
    let mut state = DebugState::new(target.machine.clone());
    state.attach(target);
    let mut run = |line: &str| match LANGUAGE.parse_line(line) {
        Ok(ParsedLine::Command { command, .. }) => {
            command::run(&*command.node, &mut state, &mut Records(Vec::new()), None).is_ok()
        }
        _ => false,
    };
    assert!(set_up.iter().all(|line| run(line)), "{set_up:?}");
    let answers = lines.iter().flat_map(|line| line.lines()).map(|line| {
        let is_answered = run(line);
        (std::mem::take(&mut *asked.lock().expect("a lock")), is_answered)
    });
    let answers: Vec<(Asked, bool)> = answers.collect();
    let ran = answers.iter().filter(|(_, is_answered)| *is_answered).count();
    assert!(ran > 200, "{ran} of {} lines", lines.len());
    answers
}

/// Runs the examples of all commands on a live process and on its capture: what the one answers the other has, unless
/// its class gives the reason why not.
fn what_commands_ask_is_in_it() {
    const NAME: &str = "capture_format::what_commands_ask_is_in_it";
    if !is_root() {
        return skip(NAME, "frame numbers are hidden here");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let demonstration = stopped(folder.path());
    let pid = demonstration.pid;
    let areas = demonstration.areas.iter();
    let areas = areas.map(|area| format!("set ${} = {}, +{}", area.name, area.range.start(), area.range.len()));
    let set_up: Vec<String> = std::iter::once("set kernel records off".to_owned()).chain(areas).collect();
    let lines = lines(&["-p", &pid.to_string()], folder.path());
    let unchanged = crate::system::as_it_is();
    let live = what_is_asked(source::live::process(pid).expect("a process"), &set_up, &lines);
    let file = folder.path().join("one.capture");
    let path = file.to_str().expect("a path");
    pmdb(&["-p", &pid.to_string(), "capture", path, "children", "with", "memory,", "dontdump"]);
    drop(unchanged);
    let bytes = std::fs::read(&file).expect("the capture");
    let capture = source::capture::open(Box::new(InMemory::file(bytes))).expect("the capture");
    let replayed = what_is_asked(capture, &set_up, &lines);
    // A line that needs what is not kept of the machine, such as the processes of a cgroup, is refused with all that it
    // asks beside.
    let is_never = |(about, kept, is_answered): &(About, Kept, bool)| {
        matches!((about, kept, is_answered), (About::Machine, Kept::Never(_) | Kept::OfCgroup, true))
    };
    let refused = |asked: &Asked, then: bool| !then && asked.values().any(is_never);
    let live = live.into_iter().zip(&replayed).filter(|((asked, _), (_, then))| !refused(asked, *then));
    let live: Asked = live.flat_map(|((asked, _), _)| asked).collect();
    let replayed: Asked = replayed.into_iter().flat_map(|(asked, _)| asked).collect();
    let keys = keys(&file);
    let captured: BTreeSet<u64> = keys.iter().filter_map(|(pid, _)| *pid).collect();
    let mut missing = Vec::new();
    let answered = live.iter().filter(|(_, (.., is_answered))| *is_answered);
    for ((pid, key), (about, kept, _)) in answered.clone() {
        let place = match about {
            About::Machine => None,
            About::Process => Some(u64::from(*pid)),
        };
        // The address of a mapping of the pmdb that asks, which is another one each time.
        let is_own = key.starts_with("probe follow-own ");
        let is_outside = place.is_some_and(|pid| !captured.contains(&pid));
        if is_own || is_outside || matches!(kept, Kept::Never(_) | Kept::OfCgroup) {
            continue;
        }
        let is_kept = keys.contains(&(place, key.clone())) || matches!(kept, Kept::Elsewhere(_));
        let is_refused = replayed.get(&(*pid, key.clone())).is_some_and(|(.., is_answered)| !is_answered);
        if !is_kept || is_refused {
            missing.push(format!("{pid} {key} ({kept:?})"));
        }
    }
    let count = |begins: &str| answered.clone().filter(|((_, key), _)| key.starts_with(begins)).count();
    assert!(count("text ") > 20 && count("probe ") > 10 && count("backing ") > 5, "{live:?}");
    assert!(missing.is_empty(), "{missing:#?}");
}
