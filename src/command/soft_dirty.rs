//! `soft-dirty [RANGE]`, `soft-dirty clear [--yes]`: which pages were written since their soft-dirty bits were cleared.

use super::floor::{About, Command, CommandName, Context, Error, Flow, Group, Nature, Outcome, Resume, example};
use super::rows;
use super::snapshot::seconds;
use super::walk::Walk;
use crate::eval;
use crate::inspect::{AddressSpace, Filter, SoftDirtyCounts};
use crate::kernel::{Name, PageFact};
use crate::lang::display::word_if;
use crate::lang::parser::{Parsed, Tokens, end_of_text, option, range, word};
use crate::lang::{self, Expression, PageField, Reach, Span, Spanned};
use crate::process::{self, Target};
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{count, counted, duration};
use crate::report::record::record;
use crate::report::{Declared, Fact, Shape};
use nom::Parser;
use nom::branch::alt;
use nom::combinator::{map, opt};
use std::fmt::{self, Formatter};
use std::time::{Instant, SystemTime};

/// `soft-dirty [RANGE]`, `soft-dirty clear [--yes]`
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one line at a time")]
pub enum SoftDirty {
    /// `[RANGE]`: shows the written pages; those of the whole process if absent.
    Written(Option<Spanned<lang::Range>>),
    /// `clear [--yes]`
    Clear {
        /// Whether to clear without a question.
        is_agreed: bool,
    },
}

impl Command for SoftDirty {
    const RECORDS: &'static [Shape] = RECORDS;

    const ABOUT: About = About {
        name: CommandName::new("soft-dirty").whole().how(),
        group: Group::Time,
        summary: "list pages written since their soft-dirty bits were cleared",
        text: "\
Lists the pages with a soft-dirty bit, of the process or of a range. The kernel sets this bit of each page that is \
written. The command is short for `walk RANGE where soft_dirty`, which can also group and count.

  clear  clear the bits of all pages of the process
  --yes  clear without a confirmation

`soft-dirty clear` is the only command that changes how the process runs. The kernel write-protects every page: the \
next write to each is a page fault (one for a whole huge page). Page faults of the process wait during the clearing. \
Other readers of these bits, such as CRIU, miss the earlier writes. Therefore pmdb first shows the effects and \
prompts for a confirmation. In a file, with -ex and with --serve it cannot prompt, and needs `--yes`.

All pages of a new region are soft-dirty, and so are those of a region that it is merged into. Pinned pages keep the \
bit. Hugetlb pages have no bit of their own: after clearing they are never shown as written.

Kernels without CONFIG_MEM_SOFT_DIRTY accept the clearing and do nothing. pmdb tests this on itself and refuses. \
There, `snapshot with content` and `diff` find written pages.",
        examples: &[
            example("soft-dirty demo_busy", "list the written pages of a symbol"),
            example("soft-dirty clear --yes", "clear the bits without a confirmation"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        // `clear` by itself is a word; in an expression, or in quotes, it is a name.
        let clear = (word("clear"), option("--yes"), end_of_text);
        let clear = map(clear, |(_, yes, ())| SoftDirty::Clear { is_agreed: yes });
        alt((clear, map(opt(range), SoftDirty::Written))).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SoftDirty::Clear { is_agreed: yes } => {
                f.write_str(" clear")?;
                word_if(f, *yes, "--yes")
            }
            SoftDirty::Written(None) => Ok(()),
            SoftDirty::Written(Some(range)) => match &range.node {
                lang::Range::Expression(Expression::Name(lang::WrittenName(name))) if name == "clear" => {
                    f.write_str(" 'clear'")
                }
                range => write!(f, " {range}"),
            },
        }
    }

    fn reach(&self) -> Reach {
        if matches!(self, SoftDirty::Clear { .. }) { Reach::Outside } else { Self::ABOUT.name.reach }
    }

    fn nature(&self) -> Nature {
        Nature { changes_process: matches!(self, SoftDirty::Clear { .. }), ..Nature::default() }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let target = context.target()?;
        require(&target)?;
        match self {
            SoftDirty::Written(range) => report_written(context, &target, range.as_ref()),
            SoftDirty::Clear { is_agreed: yes } => clear(context, &target, *yes),
        }
    }
}

/// Refuses if the kernel has no such bits: it would accept the clearing, and no page would ever be soft-dirty.
fn require(target: &Target) -> Result<(), Error> {
    let why = match target.machine.has_soft_dirty() {
        Some(true) => return Ok(()),
        Some(false) => {
            "this kernel does not track soft-dirty pages: it is built without CONFIG_MEM_SOFT_DIRTY".to_owned()
        }
        None => target.machine.why_no_soft_dirty(),
    };
    if !target.process.has_page_map() {
        return Err(process::Error::not_available(why).into());
    }
    let content = "`snapshot with content`, then `diff`, shows pages that were written in the meantime".to_owned();
    let space = AddressSpace::of(target)?;
    let tracked = target.process.write_tracked(&space.spans())?;
    let region = tracked.and_then(|range| space.viewed_region(range.start()));
    let hint = match region.map(|region| region.range()) {
        Some(range) => format!(
            "{content}; the process itself tracks writes to {range} with userfaultfd: there `translate ADDRESS` shows uffd_wp no for a \
             page that was written"
        ),
        None => content,
    };
    Err(Error::refused(why, hint))
}

fn report_written(context: &mut Context, target: &Target, range: Option<&Spanned<lang::Range>>) -> Outcome {
    let identity = target.process.identity();
    let cleared = context.state.soft_dirty_cleared.as_ref();
    let cleared = cleared.filter(|(process, _)| process.is_same_process(&identity));
    let message = match cleared {
        Some((_, time)) => format!(
            "written since pmdb cleared the soft-dirty bits, {:.1} s ago",
            seconds(SystemTime::now()) - seconds(*time)
        ),
        None => {
            "pmdb has not cleared the marks of this process: they cover all writes since a region was made, or since \
                 another program cleared them"
                .to_owned()
        }
    };
    context.sink.note(message)?;
    let all = Spanned::new(lang::Range::All, Span::default());
    let asked = Walk {
        range: range.cloned().unwrap_or(all),
        filter: Some(is(PageField::Fact(PageFact::SoftDirty))),
        by: Vec::new(),
        cut: None,
    };
    asked.run(context)
}

fn is(field: PageField) -> Spanned<lang::FilterExpression<PageField>> {
    Spanned::new(lang::FilterExpression::is(field), Span::default())
}

fn clear(context: &mut Context, target: &Target, yes: bool) -> Outcome {
    let identity = target.process.identity();
    let agreed = context.resume == Some(Resume::Agreed);
    if !agreed {
        let marked = count_marked(context, target)?;
        context.sink.emit(&marked)?;
        if !yes {
            let (pid, name) = (identity.pid, &identity.name);
            return Ok(Flow::Ask(format!("Clear the soft-dirty bits of process {pid} ({name})?")));
        }
    }
    // The question was about the program before.
    if let Some(change) = context.state.notice()? {
        return Err(Error::Refused {
            message: match change {
                crate::state::TargetChange::Executed => "it has executed another program".to_owned(),
                crate::state::TargetChange::Exited => "it has exited".to_owned(),
            },
            hint: None,
        });
    }
    let began = Instant::now();
    target.process.clear_soft_dirty()?;
    let seconds = began.elapsed().as_secs_f64();
    context.state.soft_dirty_cleared = Some((identity.clone(), SystemTime::now()));
    let pages = count_marked(context, target)?.pages;
    context.sink.emit(&SoftDirtyCleared { pid: identity.pid, process: identity.name, seconds, pages })?;
    Ok(Flow::Done)
}

/// The pages that clearing affects: those that are present, soft-dirty and writable.
fn count_marked(context: &mut Context, target: &Target) -> Result<SoftDirtyReport, Error> {
    let space = AddressSpace::of(target)?;
    let filter =
        [PageFact::SoftDirty, PageFact::Writable].map(|fact| lang::FilterExpression::is(PageField::Fact(fact)));
    let [filter, writable] = filter;
    let filter = filter.and(writable);
    let filter = Spanned::new(filter, Span::default());
    let filter: Filter = eval::page_filter(&filter, &space, context.state)?;
    let mut counting = space.soft_dirty_pages(&filter)?.with_budget(context.sink.budget());
    if let Some(stopped) = rows::pull(context.sink, "pages", || counting.next(), |(), _| Ok(()))? {
        return Err(stopped.into());
    }
    let SoftDirtyCounts { pages, huge, hugetlb, .. } = counting.finish();
    let identity = target.process.identity();
    Ok(SoftDirtyReport { pid: identity.pid, process: identity.name, pages, huge, hugetlb })
}

/// The records that no other command emits.
pub(in crate::command) const RECORDS: &[Shape] = &[SoftDirtyReport::SHAPE, SoftDirtyCleared::SHAPE];

record! {
    /// The expected effect of `soft-dirty clear`.
    pub struct SoftDirtyReport as "soft-dirty" with why {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// Pages that are soft-dirty and writable: they are write-protected, and the next write to each is a page
        /// fault.
        pages: u64,
        /// Of these, the pages that are mapped as huge pages: one fault for each whole huge page.
        huge: Fact<u64>,
        /// Hugetlb pages, which have no bits of their own: after the clearing they never show as soft-dirty.
        hugetlb: u64,
    }

    /// The effect of `soft-dirty clear`.
    pub struct SoftDirtyCleared as "soft-dirty-cleared" {
        /// The process.
        pid: u32,
        /// Its name.
        process: Name,
        /// Seconds that the kernel needed, while faults of the process waited.
        seconds: f64,
        /// Writable pages that are still or again soft-dirty.
        pages: u64,
    }
}

impl Record for SoftDirtyReport {
    fn write(&self, text: &mut Text) {
        text.line(soft_dirty, self);
    }
}

/// The effects of clearing.
fn soft_dirty(lines: &mut Lines, report: &SoftDirtyReport) {
    let line = lines.line();
    let (pid, process) = (report.pid, &report.process);
    line.indent(2).plain(format!("clearing the soft-dirty bits of process {pid} ({process}):"));
    let huge = match &report.huge {
        Ok(0) => String::new(),
        Ok(huge) => format!("; {} of them are in huge pages, which have one fault for the whole", count(*huge)),
        Err(reason) => format!("; how many of them are in huge pages is not known: {reason}"),
    };
    let pages = counted(report.pages, "writable page");
    let mut effects = vec![
        format!("{pages} will be write-protected: the next write to each is a page fault{huge}"),
        "page faults, mmap and munmap of the process wait while the kernel walks its page tables".to_owned(),
        "other readers of these bits (CRIU, another pmdb) do not see what was written before".to_owned(),
    ];
    if report.hugetlb > 0 {
        let pages = counted(report.hugetlb, "hugetlb page");
        effects.push(format!("{pages} will never be shown as written: the kernel tracks none of them"));
    }
    for effect in effects {
        let line = lines.line();
        line.indent(4).word("", Role::Warn, format!("- {effect}"));
    }
}

impl Record for SoftDirtyCleared {
    fn write(&self, text: &mut Text) {
        text.line(soft_dirty_cleared, self);
    }
}

/// `cleared in 1.2 ms; 3 writable pages are still or again soft-dirty`
fn soft_dirty_cleared(lines: &mut Lines, report: &SoftDirtyCleared) {
    let line = lines.line();
    line.indent(2).plain(format!("cleared in {}", duration(report.seconds)));
    if report.pages > 0 {
        let pages = counted(report.pages, "writable page");
        let verb = if report.pages == 1 { "is" } else { "are" };
        line.word("; ", Role::Note, format!("{pages} {verb} still or again soft-dirty"));
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;

    pub fn all() -> Vec<Box<dyn Record>> {
        vec![Box::new(soft_dirty()), Box::new(soft_dirty_cleared())]
    }

    pub fn soft_dirty() -> SoftDirtyReport {
        SoftDirtyReport { pid: 4242, process: Name::from("demo"), pages: 1_234, huge: Ok(512), hugetlb: 1_024 }
    }

    pub fn soft_dirty_cleared() -> SoftDirtyCleared {
        SoftDirtyCleared { pid: 4242, process: Name::from("demo"), seconds: 0.0012, pages: 3 }
    }
}
