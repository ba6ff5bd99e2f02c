//! `snapshot`, `snapshot delete NAME`, `info snapshots`: keeps the page map, to compare it later.

use super::capture;
use super::capture::WriteCapture;
use super::change_groups::as_they_are;
use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, example};
use crate::budget::OutOfBudget;
use crate::eval::{self, Keep, OpenNamedSnapshot, Spans};
use crate::inspect::{self, Evidence, SnapshotProgress};
use crate::kernel::words::worded;
use crate::kernel::{Name, PageFact};
use crate::lang::parser::{
    Parsed, Tokens, after, clause, hint_at_missing_with, list_once, option, range, snapshot_file, snapshot_name, word,
};
use crate::lang::{self, Reach, Spanned, display};
use crate::process::Target;
use crate::render::columns::{Cell, Column, PID, Table};
use crate::render::text::Text;
use crate::render::text::changes::{TIME, time};
use crate::render::theme::Role;
use crate::render::units::counted;
use crate::render::{Record, Sink};
use crate::report::json::words;
use crate::report::record::record;
use crate::report::{Declared, Shape};
use crate::state::{DebugState, NamedSnapshot};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{cut, map, opt};
use std::fmt::{self, Formatter};
use std::sync::Arc;
use std::time::SystemTime;

worded! {
    /// What a snapshot keeps beside the page map.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SnapshotPart, word {
        /// The frames' `/proc/kpageflags`.
        Flags = "flags",
        /// The frames' `/proc/kpagecount`.
        Counts = "counts",
        /// A hash of the contents of each resident page.
        Content = "content",
    }
}

words!(SnapshotPart => "snapshot_part");

impl SnapshotPart {
    /// What is read of frames for it.
    fn evidence(self) -> Evidence {
        match self {
            SnapshotPart::Flags => Evidence::FLAGS,
            SnapshotPart::Counts => Evidence::COUNTS,
            SnapshotPart::Content => Evidence::empty(),
        }
    }
}

/// How to take snapshots that hold `fact`.
pub(super) fn how_to_keep(fact: PageFact) -> String {
    let need = fact.need_of_samples();
    let part = SnapshotPart::ALL.iter().find(|part| Some(part.evidence()) == need);
    part.map_or_else(|| as_they_are(fact), |part| format!("both snapshots have to be made `with {part}`"))
}

/// The capture of a snapshot; a leading `~/` is still as typed.
#[derive(Debug)]
pub enum SnapshotFile {
    /// `from FILE`: the capture that it is read from.
    From(Spanned<String>),
    /// `to FILE [--overwrite]`: the capture that it is saved as.
    To {
        /// The file.
        path: Spanned<String>,
        /// Whether a file that exists is replaced.
        may_overwrite: bool,
    },
}

impl SnapshotFile {
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let path_to = |input| (snapshot_file, option("--overwrite")).parse(input);
        let from = map(after("from", snapshot_file), SnapshotFile::From);
        let to = map(after("to", path_to), |(path, may_overwrite)| SnapshotFile::To { path, may_overwrite });
        alt((from, to)).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (word, path, may_overwrite) = match self {
            SnapshotFile::From(path) => ("from", path, false),
            SnapshotFile::To { path, may_overwrite } => ("to", path, *may_overwrite),
        };
        write!(f, " {word}")?;
        display::write_quoted(f, Some(&path.node))?;
        display::word_if(f, may_overwrite, "--overwrite")
    }
}

/// `snapshot …`
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum SnapshotCommand {
    /// `[NAME] [from FILE|to FILE] [in RANGE] [with KEPT, …]`: keeps the page map.
    Take {
        /// What it is to be called; a number if absent.
        name: Option<Spanned<String>>,
        /// The capture that it is read from or saved as; of the attached process, and in memory alone, if absent.
        file: Option<SnapshotFile>,
        /// Of what; all if absent.
        range: Option<Spanned<lang::Range>>,
        /// What else is kept.
        with: Vec<SnapshotPart>,
    },
    /// `delete NAME`
    Delete(Spanned<String>),
}

impl Command for SnapshotCommand {
    const RECORDS: &'static [Shape] = RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("snapshot").of_session().whole(),
        group: Group::Time,
        summary: "save the page map for a later comparison",
        text: "\
Saves the page map of the process or of a range, for `diff` to compare it with another snapshot or with the present.

  NAME          its name, otherwise s1, s2 and so on; replaces a snapshot of the same name
  from FILE     from a capture of the same process (`help capture`), to compare a process with itself at an earlier time
  to FILE       also saves it as a capture; with --overwrite after it, a file that exists is replaced
  in RANGE      only this part
  with flags    also the flags of the frames (/proc/kpageflags)
  with counts   also the map count of each frame
  with content  also a hash of each resident page, so that `diff` finds pages that were written in place
  delete NAME   delete this snapshot

`info snapshots` lists the snapshots with the memory that they use. Snapshots remain when another process is attached, \
and are lost when pmdb ends. `to FILE` keeps one for longer: `snapshot NAME from FILE` and `diff from FILE` read it \
later, and all read-only commands work on it (`pmdb -c FILE`). A snapshot cannot be saved afterwards: a capture has \
facts that a snapshot in memory lacks. After the process has executed another program, `diff` refuses those from \
before: their pages are gone.

Does not touch pages that are not resident. The kernel marks pages whose content is read as used. Names that begin \
with `_` are for programs: they are not listed, and `diff` without names ignores them.",
        examples: &[
            example("snapshot before", "save the whole process"),
            example("snapshot in demo_busy with content", "save a symbol, with a hash of each page"),
            example("snapshot before\nsnapshot delete before", "delete a snapshot"),
            example(
                "snapshot before to demo.capture --overwrite\nsnapshot again from demo.capture\ndiff again",
                "save a snapshot as a capture, and read it from there",
            ),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        if let Ok((behind, _)) = word("delete")(input) {
            return map(cut(snapshot_name), SnapshotCommand::Delete).parse(behind);
        }
        let (mut input, name) = opt(snapshot_name).parse(input)?;
        let (mut file, mut in_, mut with) = (None, None, None);
        while clause(&mut input, &mut file, SnapshotFile::parse)?
            || clause(&mut input, &mut in_, after("in", range))?
            || clause(&mut input, &mut with, after("with", list_once::<SnapshotPart>))?
        {}
        if with.is_none() {
            hint_at_missing_with::<SnapshotPart>(input);
        }
        let (range, with) = (in_, with.unwrap_or_default());
        Ok((input, SnapshotCommand::Take { name, file, range, with }))
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, file, range, with) = match self {
            SnapshotCommand::Delete(name) => return write!(f, " delete {}", name.node),
            SnapshotCommand::Take { name, file, range, with } => (name, file, range, with),
        };
        if let Some(name) = name {
            write!(f, " {}", name.node)?;
        }
        if let Some(file) = file {
            file.write(f)?;
        }
        display::clause(f, "in", range.as_ref().map(|range| &range.node))?;
        let kept: Vec<&str> = with.iter().map(|kept| kept.word()).collect();
        display::clause(f, "with", (!kept.is_empty()).then(|| kept.join(", ")))
    }

    fn reach(&self) -> Reach {
        if self.nature().writes_file { Reach::Outside } else { Self::ABOUT.name.reach }
    }

    fn nature(&self) -> Nature {
        let saves = matches!(self, SnapshotCommand::Take { file: Some(SnapshotFile::To { .. }), .. });
        Nature { writes_file: saves, ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let (name, file, range, with) = match self {
            SnapshotCommand::Delete(name) if context.state.snapshots.delete(&name.node) => return Ok(Flow::Done),
            SnapshotCommand::Delete(name) => return Err(no_snapshot(context.state, name)),
            SnapshotCommand::Take { name, file, range, with } => (name, file, range, with),
        };
        let target = match file {
            Some(SnapshotFile::From(path)) => Arc::new(capture::open(&path.node, context.state)?),
            Some(SnapshotFile::To { path, may_overwrite }) => {
                if path.node == "-" {
                    return Err(capture::no_regular("-"));
                }
                let with_memory = with.contains(&SnapshotPart::Content);
                WriteCapture::of_snapshot(path, *may_overwrite, range.as_ref(), with_memory).run(context)?;
                Arc::new(capture::open(&path.node, context.state)?)
            }
            None => context.target()?,
        };
        let spans = range.as_ref().map(|range| spans(range, context.state)).transpose()?;
        let name = match name {
            Some(name) => name.node.clone(),
            None => context.state.snapshots.free_name(),
        };
        let taken = take(context, &target, name, spans, with)?;
        context.sink.emit(&row(&taken))?;
        context.state.snapshots.add(taken);
        Ok(Flow::Done)
    }
}

/// `info snapshots`
#[derive(Debug)]
pub struct InfoSnapshots;

impl Command for InfoSnapshots {
    const ABOUT: About = About {
        name: CommandName::new("info snapshots").whole().displayed().detached(),
        group: Group::Time,
        summary: "list the snapshots",
        text: "\
Lists each snapshot with its name, its process, its time and the number of pages that were present. Also shows the \
facts kept besides the page map, and the memory that it uses.",
        examples: &[example("snapshot\ninfo snapshots", "list all snapshots")],
    };

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        Ok((input, InfoSnapshots))
    }

    fn run(&self, context: &mut Context) -> Outcome {
        for snapshot in context.state.snapshots.iter() {
            context.sink.emit(&row(snapshot))?;
        }
        if context.state.snapshots.iter().next().is_none() {
            return Err(Error::refused("there is no snapshot", eval::NO_SNAPSHOT_HINT));
        }
        Ok(Flow::Done)
    }
}

/// What a range stands for in `in RANGE`; `None` for `all`.
pub(super) fn spans(range: &Spanned<lang::Range>, state: &DebugState) -> Result<Spans, Error> {
    let message = "a snapshot holds pages of the process, not frames";
    let of_frames = || eval::Error::new(range.at, message);
    Ok(eval::range(range, state)?.addresses(of_frames)?)
}

/// The snapshot of that name.
pub(super) fn snapshot_called<'a>(state: &'a DebugState, name: &Spanned<String>) -> Result<&'a NamedSnapshot, Error> {
    state.snapshots.by_name(&name.node).ok_or_else(|| no_snapshot(state, name))
}

fn no_snapshot(state: &DebugState, name: &Spanned<String>) -> Error {
    let error = eval::unknown_snapshot(name, state.snapshots.all());
    let is_similar = error.hint.as_deref().is_some_and(|hint| hint != eval::NO_SNAPSHOT_HINT);
    if is_similar { error } else { error.hint("`info snapshots` lists the names") }.into()
}

/// Takes a snapshot.
pub(super) fn take(
    context: &mut Context,
    target: &Target,
    name: String,
    spans: Option<Spans>,
    with: &[SnapshotPart],
) -> Result<NamedSnapshot, Error> {
    let mut keep = Keep::default();
    for kept in with {
        keep.extra |= kept.evidence();
        keep.contents |= *kept == SnapshotPart::Content;
    }
    let symbols = &context.state.symbols;
    let taken = NamedSnapshot::begin(name, target, symbols, spans, keep);
    let sink = &mut *context.sink;
    let taken = taken.and_then(|open| finish(open, sink));
    or_say(taken, "interrupted: no snapshot was kept", sink)
}

/// Takes a snapshot that was begun, and shows how far it is.
pub(super) fn finish(open: OpenNamedSnapshot, sink: &mut dyn Sink) -> inspect::Result<NamedSnapshot> {
    let mut open = open.with_budget(sink.budget());
    while let Some(progress) = open.advance()? {
        pages_done(progress, sink)?;
    }
    open.finish()
}

/// Shows how many pages are done. The sink reports Ctrl-C only once: what it says must not be lost.
pub(super) fn pages_done(progress: SnapshotProgress, sink: &mut dyn Sink) -> inspect::Result<()> {
    sink.progress(progress.done, progress.total, "pages").map_err(|_| OutOfBudget::Interrupted.into())
}

/// Says after Ctrl-C what became of it.
pub(super) fn or_say(
    taken: inspect::Result<NamedSnapshot>,
    message: &str,
    sink: &mut dyn Sink,
) -> Result<NamedSnapshot, Error> {
    if let Err(inspect::Error::OutOfBudget(_)) = &taken {
        sink.note(message)?;
    }
    Ok(taken?)
}

/// What a snapshot keeps beside the page map.
fn kept_parts(snapshot: &inspect::Snapshot) -> Vec<SnapshotPart> {
    let is_kept = |kept: &SnapshotPart| match kept {
        SnapshotPart::Content => snapshot.has_contents(),
        of_frames => snapshot.extra().contains(of_frames.evidence()),
    };
    SnapshotPart::ALL.iter().copied().filter(is_kept).collect()
}

fn row(named: &NamedSnapshot) -> SnapshotRow {
    let snapshot = &named.snapshot;
    SnapshotRow {
        name: named.name.clone(),
        pid: named.process.pid,
        process: named.process.name.clone(),
        time: seconds(named.time),
        pages: snapshot.present(),
        swapped: snapshot.swapped(),
        with: kept_parts(snapshot),
        unread: snapshot.unread(),
        memory: snapshot.size() as u64,
    }
}

/// Seconds since the epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[SnapshotRow::SHAPE];

record! {
    /// `snapshot`, and a row of `info snapshots`.
    pub struct SnapshotRow as "snapshot" {
        /// Its name.
        name: String,
        /// The process.
        pid: u32,
        /// The name of the process.
        process: Name,
        /// Its time, in seconds since the epoch.
        time: f64,
        /// Pages that were present.
        pages: u64,
        /// Pages that were in swap, as far as the page map shows.
        swapped: u64,
        /// The facts that it has besides the page map: `flags`, `counts`, `content`.
        with: Vec<SnapshotPart>,
        /// Present pages whose contents could not be read; 0 without `content`.
        unread: u64,
        /// Bytes of pmdb's own memory that it uses.
        memory: u64,
    }
}

impl Record for SnapshotRow {
    fn write(&self, text: &mut Text) {
        text.row(&SNAPSHOTS, self);
    }
}

/// `snapshot`, `info snapshots`
static SNAPSHOTS: Table<SnapshotRow> = Table::of(&[
    Column::word("snapshot", 10, Role::Name).cell(|_, snapshot| Cell::new(&snapshot.name)),
    PID.cell(|_, snapshot| Cell::new(&snapshot.pid)),
    TIME.rank(1).cell(|style, snapshot| time(style, snapshot.time)),
    Column::number("present", 9, Role::Size).cell(|_, snapshot| Cell::count(snapshot.pages)),
    Column::number("swapped", 9, Role::Size).rank(2).cell(|_, snapshot| Cell::count(snapshot.swapped)),
    Column::number("kept in", 8, Role::Size).cell(|_, snapshot| Cell::size(snapshot.memory)),
    Column::word("with", 10, Role::Plain).cell(|_, snapshot| with(snapshot)),
]);

fn with(snapshot: &SnapshotRow) -> Cell<'static> {
    let mut with = snapshot.with.iter().map(|part| part.word()).collect::<Vec<_>>().join(", ");
    if snapshot.unread > 0 {
        with.push_str(&format!(" ({} not read)", counted(snapshot.unread, "page")));
    }
    Cell::new(with)
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(snapshot())]
    }

    pub fn snapshot() -> SnapshotRow {
        SnapshotRow {
            name: "before".into(),
            pid: 4242,
            process: Name::from("demo"),
            time: 1_700_000_000.25,
            pages: 1_048_576,
            swapped: 12,
            with: vec![SnapshotPart::Counts, SnapshotPart::Content],
            unread: 3,
            memory: 9 << 20,
        }
    }
}
