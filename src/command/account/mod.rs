//! `account [RANGE] [by KEY] [with PART]`: where the memory is that Rss counts. `account children` and the like:
//! that of several processes, each frame once. `account from FILE`: how it changed since a capture.

mod change;
mod change_records;
mod charges;
pub(super) mod family;
pub(super) mod family_records;
mod filesystems;
mod machine;
pub(super) mod objects;
mod one;
pub(super) mod records;
mod rests;
mod summary;
mod summary_text;

use change_records::{AccountChange, AccountComparison};
use charges::AccountCharge;
use family::FamilyOf;
use family_records::{AccountCgroup, AccountFamily, AccountFamilyClass, AccountFamilyGroup, AccountMember};

use super::floor::{About, Command, CommandName, Context, Error, Group, Outcome, example};
use super::rows::RowLimit;
use super::summary::all_frames;
use crate::eval;
use crate::kernel::words::worded;
use crate::kernel::{Key, PageFact, PageField};
use crate::lang::lexer::TokenKind;
use crate::lang::parser::{
    Parsed, Tokens, are_clauses, clause, cut_or_name, key, list_once, range, snapshot_file, split_text, takes_all, word,
};
use crate::lang::{self, Expression, KeyFacts, Range, Spanned, TakenKeys, WrittenKey, WrittenName, display};
use crate::render::More;
#[cfg(test)]
use crate::render::Record;
use crate::report::{Declared, Shape};
use filesystems::AccountFilesystem;
use machine::{AccountFrames, AccountMachine};
use nom::Parser;
use nom::combinator::opt;
use nom::sequence::preceded;
use objects::AccountObject;
use records::{AccountGroup, AccountRow, AccountSummary};
use rests::AccountRest;
use std::fmt::{self, Formatter};

/// The keys of `account … by`: by symbol, pages that begin in none are added up by region.
const KEYS: TakenKeys = TakenKeys {
    facts: KeyFacts::OfFrames,
    others: &[Key::Region, Key::Symbol, Key::Mapping, Key::Page(PageField::Fact(PageFact::Heap))],
};

/// The keys of the account of several processes.
const FAMILY_KEYS: TakenKeys = TakenKeys { facts: KeyFacts::OfFrames, others: &[Key::Region, Key::Mapping] };

/// `account [RANGE] [by KEY] [with PART, …] [from FILE] [top N | limit N] [full]`
#[derive(Debug)]
pub struct AccountFor {
    /// Of what; the whole process if absent.
    of: Option<AccountOf>,
    /// Group by this; by class if absent.
    by: Option<WrittenKey>,
    /// What is found in memory.
    with: Vec<AccountPart>,
    /// The capture to compare with; a leading `~/` is still as typed.
    file: Option<Spanned<String>>,
    /// Which rows.
    cut: Option<lang::LimitClause>,
    /// Whether the method and small classes are shown.
    is_full: bool,
}

worded! {
    /// What an account finds in memory, and not in page tables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AccountPart, word {
        /// The zero-filled subpages of huge pages.
        Content = "content",
        /// What is in use of glibc's heaps, and what is free.
        Heap = "heap",
    }
}

/// What an account is of.
#[derive(Debug)]
enum AccountOf {
    Range(Spanned<Range>),
    Family(FamilyOf),
    /// All physical frames.
    Frames,
}

/// What may follow the range.
fn clauses(mut input: Tokens<'_>, range: Option<Spanned<Range>>) -> Parsed<'_, AccountFor> {
    let (mut by, mut with, mut file, mut cut, mut full) = (None, None, None, None, None);
    while clause(&mut input, &mut by, |input| preceded(word("by"), key(KEYS)).parse(input))?
        || clause(&mut input, &mut with, |input| preceded(word("with"), list_once::<AccountPart>).parse(input))?
        || clause(&mut input, &mut file, |input| preceded(word("from"), snapshot_file).parse(input))?
        || clause(&mut input, &mut cut, cut_or_name)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    let of = range.map(AccountOf::Range);
    Ok((input, AccountFor { of, by, with: with.unwrap_or_default(), file, cut, is_full: full.is_some() }))
}

fn of_range(input: Tokens<'_>) -> Parsed<'_, AccountFor> {
    let (behind, range) = opt(range).parse(input)?;
    clauses(behind, range)
}

fn of_frames(input: Tokens<'_>) -> Parsed<'_, AccountFor> {
    let (mut input, _) = word("frames")(input)?;
    let (mut cut, mut full) = (None, None);
    while clause(&mut input, &mut cut, cut_or_name)? || clause(&mut input, &mut full, word("full"))? {}
    let (of, is_full) = (Some(AccountOf::Frames), full.is_some());
    Ok((input, AccountFor { of, by: None, with: Vec::new(), file: None, cut, is_full }))
}

fn of_family(input: Tokens<'_>) -> Parsed<'_, AccountFor> {
    let (mut input, family) = family::family(input)?;
    let (mut by, mut with, mut cut, mut full) = (None, None, None, None);
    while clause(&mut input, &mut by, |input| preceded(word("by"), key(FAMILY_KEYS)).parse(input))?
        || clause(&mut input, &mut with, |input| preceded(word("with"), list_once::<AccountPart>).parse(input))?
        || clause(&mut input, &mut cut, cut_or_name)?
        || clause(&mut input, &mut full, word("full"))?
    {}
    let (of, is_full) = (Some(AccountOf::Family(family)), full.is_some());
    Ok((input, AccountFor { of, by, with: with.unwrap_or_default(), file: None, cut, is_full }))
}

/// Whether a name follows the slash of `cgroup /NAME` without a blank: nobody writes a division so.
fn begins_path(input: Tokens<'_>) -> bool {
    matches!(input.rest, [_, slash, name, ..] if !slash.is_glued && name.is_glued && name.kind == TokenKind::Name)
}

/// The error for `account frames by KEY`: only the classes add up.
fn without_keys(by: &WrittenKey, context: &Context) -> Result<Error, Error> {
    let frames = all_frames(context.state.machine())?;
    let (start, end) = (frames.start(), frames.end());
    let of_frames =
        format!("`walk pfn:{start}..pfn:{end} by node` divides frames, also by zone, cgroup, flags, order …");
    let of_symbol = format!("for a symbol `account 'frames' by {by}`");
    Ok(Error::refused("`account frames` has a row for each class, and no `by`", format!("{of_frames}; {of_symbol}")))
}

impl AccountFor {
    fn finds(&self, part: AccountPart) -> bool {
        self.with.contains(&part)
    }

    /// The key of `account frames by KEY`, if the name is not quoted as that of a symbol.
    fn key_of_frames(&self, line: &str) -> Option<&WrittenKey> {
        let Some(AccountOf::Range(range)) = &self.of else {
            return None;
        };
        let is_frames =
            matches!(&range.node, Range::Expression(Expression::Name(WrittenName(name))) if name == "frames");
        let is_word = || line.get(range.at.start..).is_some_and(|written| written.starts_with("frames"));
        self.by.as_ref().filter(|_| is_frames && is_word())
    }

    fn is_family(&self, what: impl Fn(&FamilyOf) -> bool) -> bool {
        matches!(&self.of, Some(AccountOf::Family(of)) if what(of))
    }
}

impl Command for AccountFor {
    const RECORDS: &'static [Shape] = &[
        AccountRow::SHAPE,
        AccountObject::SHAPE,
        AccountRest::SHAPE,
        AccountGroup::SHAPE,
        AccountSummary::SHAPE,
        AccountFamilyClass::SHAPE,
        AccountFamilyGroup::SHAPE,
        AccountMember::SHAPE,
        AccountFamily::SHAPE,
        AccountCharge::SHAPE,
        AccountFilesystem::SHAPE,
        AccountCgroup::SHAPE,
        AccountFrames::SHAPE,
        AccountMachine::SHAPE,
        AccountChange::SHAPE,
        AccountComparison::SHAPE,
    ];

    const ABOUT: About = About {
        name: CommandName::new("account").of_session().whole().alone_before(&["cgroup", "of", "\"", "frames"]),
        group: Group::Look,
        summary: "add up resident memory by class",
        text: "\
Adds up the resident memory of the process, or of a range, in classes that add up to Rss: anonymous memory, private \
copies, shared memory, file pages and others.

These choose the memory:

  RANGE         only this range
  FAMILY        several processes, each frame once, by one of these forms:
  children      the process and its descendants
  of NAME       all processes of this name
  of A, B, …    these processes: each a PID, a variable or a name
  cgroup        the processes of its memory cgroup and of those below it
  cgroup PATH   those of another cgroup
  frames        all physical frames; a symbol of this name is 'frames'
  from FILE     compare with a capture, also of another process
  with content  count the zero-filled subpages of huge pages
  with heap     show what of it glibc's heaps use and keep

These choose the rows, one for each class without them:

  by region     each region
  by mapping    each file or name, with all its regions
  by symbol     each symbol in which pages begin
  by node       each NUMA node
  by cgroup     each memory cgroup that pages are charged to
  by heap       pages of glibc's heaps: in use (`live`), free (`free`, `top`), or `both`
  by KEY        another fact of frames: mapcount, order … (`help language`)
  top N         the N largest groups: regions, without `by`
  limit N       the first N groups; regions by address
  full          also rows under 1 %, and the comparison with smaps_rollup

The row of a class is the sum of its pages, each in one class. Parts of it are in brackets. The summary lists \
hugetlb pages, page tables and swap, which Rss leaves out. `help classes` explains classes, columns and words.",
        examples: &[
            example("account", "add up the memory of the whole process"),
            example("account by mapping top 5", "list the files and names with the most memory"),
            example("account [heap] with content", "find zero-filled subpages of huge pages in the heap"),
            example("account with heap", "show how much of the sum is freed memory that glibc keeps"),
            example("capture demo.capture --overwrite\naccount by mapping from demo.capture", "compare with a capture"),
            example("account children", "count the memory of a process and its descendants once"),
            example("account cgroup", "show what is charged to its memory cgroup, with the limit and OOM kills"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        let of_family = family_records::samples::all();
        [
            records::samples::all(),
            objects::samples::all(),
            rests::samples::all(),
            of_family,
            change_records::samples::all(),
            charges::samples::all(),
            filesystems::samples::all(),
            machine::samples::all(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Where no clause follows them, `by`, `with`, `top` and `limit` are names like any other, and so is `full` if more
    /// follows. `frames` and words of families are words where only their clauses follow.
    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        let (behind, whole) = clauses(input, None)?;
        if are_clauses(input, behind, whole.is_full) {
            return Ok((behind, whole));
        }
        if let Some(found) = of_frames(input).ok().filter(|(behind, _)| split_text(*behind).0.is_empty()) {
            return Ok(found);
        }
        let found = of_family(input).ok();
        // `cgroup / 2` could be a division, if all of the line is one.
        let is_family = |(behind, account): &(Tokens<'_>, AccountFor)| {
            let is_path = || begins_path(input) || !takes_all(input, of_range);
            split_text(*behind).0.is_empty()
                || account.is_family(FamilyOf::is_own_cgroup)
                || account.is_family(FamilyOf::is_of_path) && is_path()
        };
        found.filter(is_family).map_or_else(|| of_range(input), Ok)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(AccountOf::Range(range)) => match &range.node {
                // Unquoted they are words.
                Range::Expression(Expression::Name(WrittenName(name)))
                    if matches!(name.as_str(), "cgroup" | "children" | "frames" | "full") =>
                {
                    write!(f, " '{name}'")?
                }
                range => write!(f, " {range}")?,
            },
            Some(AccountOf::Frames) => f.write_str(" frames")?,
            Some(AccountOf::Family(family)) => family.write(f)?,
            None => {}
        }
        display::clause(f, "by", self.by.as_ref())?;
        let with: Vec<&str> = self.with.iter().map(|part| part.word()).collect();
        display::clause(f, "with", (!with.is_empty()).then(|| with.join(", ")))?;
        if let Some(file) = &self.file {
            f.write_str(" from")?;
            display::write_quoted(f, Some(&file.node))?;
        }
        display::cut(f, self.cut.as_ref())?;
        display::word_if(f, self.is_full, "full")
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let cut = RowLimit::of(self.cut.as_ref(), context.state)?;
        if self.is_full {
            context.sink.show(More::All);
        }
        if matches!(self.of, Some(AccountOf::Frames)) {
            return machine::run(cut, context);
        }
        if let Some(by) = self.key_of_frames(&context.state.line) {
            return Err(without_keys(by, context)?);
        }
        if let Some(AccountOf::Family(family)) = &self.of {
            if self.finds(AccountPart::Content) {
                let message = "zero-filled subpages are searched only in one process";
                return Err(Error::refused(message, "leave `content` out"));
            }
            let (by, heaps) = (self.by.as_ref().map(eval::key).transpose()?, self.finds(AccountPart::Heap));
            if by.is_some() && heaps {
                let message = "groups of several processes have no classes";
                return Err(Error::refused(message, "leave `by` or `with heap` out"));
            }
            return family.run(by, (heaps, self.is_full), cut, context);
        }
        if let Some(AccountOf::Range(Spanned { node: Range::Expression(Expression::Text(_)), .. })) = &self.of {
            let message = match &self.by {
                Some(key) => format!("processes of one name cannot be grouped by `{key}`"),
                None => "a capture is compared with one process".to_owned(),
            };
            return Err(Error::refused(message, "attach to one of them, and leave the name out"));
        }
        if let Some(file) = &self.file {
            return self.run_change(file, cut, context);
        }
        self.run_one(cut, context)
    }
}
