//! `where` and `until`: filters, compiled for many pages or regions.
//!
//! A condition on a field that a page does not have (the map count of a page without a frame) is neither true nor
//! false, and neither is its `not`: such a page is left out. A field that can be known of no page here is an error that
//! names it.

mod field;
mod predicate;

use super::Scope;
use super::error::{Error, Result};
use super::evaluator::Evaluator;
use super::operators::Space;
use crate::inspect::{self, AddressSpace, Facts, Page, RegionStats, ViewedRegion};
use crate::kernel::{PageFlags, PageSize};
use crate::lang::{self, FilterField, PageField, RegionField, Span, Spanned};
use crate::process::Machine;
use predicate::{Answers, Compiler, Fields, Predicate};
use std::sync::Arc;

/// A filter over pages, for `walk` and `watch`. All that it needs can be known in `space`.
///
/// # Errors
/// A field cannot be known here, a flag is unknown, or an expression has no value. The error gives the place.
pub fn page_filter(
    filter: &Spanned<lang::Filter<PageField>>,
    space: &AddressSpace,
    scope: &dyn Scope,
) -> Result<inspect::Filter> {
    let mut fields = PageFields { space, need: Facts::empty() };
    let predicate = predicate(filter, &mut fields, scope)?;
    let machine = space.target().machine.clone();
    Ok(compiled(predicate, fields.need, machine, false))
}

/// A filter over page frames without a process, for `walk pfn:A..pfn:B`. Frames of `machine` have flags, a map count, a
/// number, an address, a zone, and a cgroup; what belongs to pages of a process is refused.
///
/// # Errors
/// Frames do not have a field, a flag is unknown, or an expression has no value. The error gives the place.
pub fn frame_filter(
    filter: &Spanned<lang::Filter<PageField>>,
    machine: &Arc<Machine>,
    scope: &dyn Scope,
) -> Result<inspect::Filter> {
    let mut fields = FrameFields { machine, need: Facts::empty() };
    let predicate = predicate(filter, &mut fields, scope)?;
    Ok(compiled(predicate, fields.need, machine.clone(), true))
}

fn predicate<F: FilterField>(
    filter: &Spanned<lang::Filter<F>>,
    fields: &mut dyn Fields<F>,
    scope: &dyn Scope,
) -> Result<Predicate<F>> {
    Compiler { fields, evaluator: &Evaluator::new(scope) }.condition(&filter.node.condition, filter.at)
}

/// The filter over pages, or over frames without a process.
fn compiled(predicate: Predicate<PageField>, need: Facts, machine: Arc<Machine>, of_frames: bool) -> inspect::Filter {
    let size = machine.page();
    let names = field::Names::of(machine);
    inspect::Filter::new(need, move |page, region| {
        let answers = PageAnswers { page, region, size, names: &names, of_frames };
        predicate.holds(&answers) == Some(true)
    })
}

/// A filter over regions, for `regions`.
#[derive(Debug)]
pub struct RegionFilter {
    predicate: Predicate<RegionField>,
    asked: Vec<RegionField>,
}

/// A filter over regions.
///
/// # Errors
/// An expression has no value. The error gives its place.
pub fn region_filter(filter: &Spanned<lang::Filter<RegionField>>, scope: &dyn Scope) -> Result<RegionFilter> {
    let mut fields = RegionFields { asked: Vec::new() };
    Ok(RegionFilter { predicate: predicate(filter, &mut fields, scope)?, asked: fields.asked })
}

impl RegionFilter {
    /// Whether [`RegionFilter::holds`] needs `stats`.
    pub fn needs_stats(&self) -> bool {
        self.asked.iter().any(|field| field::needs_stats(*field))
    }

    /// The fields that it uses.
    pub fn asked(&self) -> &[RegionField] {
        &self.asked
    }

    /// Whether it uses this field.
    pub fn asks(&self, field: RegionField) -> bool {
        self.asked.contains(&field)
    }

    /// Whether it holds for a region; `None` where a field has no value.
    pub fn holds(&self, region: &ViewedRegion, stats: Option<&RegionStats>) -> Option<bool> {
        self.predicate.holds(&RegionAnswers { region, stats })
    }
}

struct PageFields<'v> {
    space: &'v AddressSpace,
    need: Facts,
}

impl Fields<PageField> for PageFields<'_> {
    fn ask(&mut self, field: PageField, at: Span) -> Result<()> {
        self.need |= field::require(field, self.space)
            .map_err(|cause| Error::inspection(at, format_args!("'{}'", field.name()), cause))?;
        Ok(())
    }

    fn ask_flag(&mut self, at: Span) -> Result<()> {
        self.space.require(Facts::FLAGS).map_err(|cause| Error::inspection(at, "flags()", cause))?;
        self.need |= Facts::FLAGS;
        Ok(())
    }

    fn space(&self, field: PageField) -> Option<Space> {
        page_space(field)
    }
}

fn page_space(field: PageField) -> Option<Space> {
    match field {
        PageField::Pfn => Some(Space::Frames),
        PageField::Phys => Some(Space::Physical),
        PageField::Address => Some(Space::Virtual),
        _ => None,
    }
}

struct FrameFields<'m> {
    machine: &'m Machine,
    need: Facts,
}

impl Fields<PageField> for FrameFields<'_> {
    fn ask(&mut self, field: PageField, at: Span) -> Result<()> {
        let need = field::require_for_frames(field, self.machine)
            .map_err(|cause| Error::inspection(at, format_args!("'{}'", field.name()), cause))?;
        self.need |= need.ok_or_else(|| {
            let message = format!("'{}' works on pages of a process, not on frames", field.name());
            Error::new(at, message)
                .hint("for frames: `flags(NAME)`, `dirty`, `referenced` and the like, `mapcount`, `pfn`, `phys`")
        })?;
        Ok(())
    }

    fn ask_flag(&mut self, _: Span) -> Result<()> {
        self.need |= Facts::FLAGS;
        Ok(())
    }

    fn space(&self, field: PageField) -> Option<Space> {
        page_space(field)
    }
}

struct PageAnswers<'p> {
    page: &'p Page,
    region: Option<&'p ViewedRegion>,
    size: PageSize,
    names: &'p field::Names,
    /// Whether the page stands for frames that no process maps.
    of_frames: bool,
}

impl Answers<PageField> for PageAnswers<'_> {
    fn boolean(&self, field: PageField) -> Option<bool> {
        field::boolean(field, self.page, self.region)
    }
    fn integer(&self, field: PageField) -> Option<u64> {
        if self.of_frames {
            field::integer_of_frame(field, self.page, self.size)
        } else {
            field::integer(field, self.page, self.size)
        }
    }
    fn text_is(&self, field: PageField, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        self.names.text_is(field, self.page, is)
    }
    fn flag(&self, flag: PageFlags) -> Option<bool> {
        field::flag(flag, self.page)
    }
}

struct RegionFields {
    asked: Vec<RegionField>,
}

impl Fields<RegionField> for RegionFields {
    fn ask(&mut self, field: RegionField, _: Span) -> Result<()> {
        self.asked.push(field);
        Ok(())
    }

    fn ask_flag(&mut self, at: Span) -> Result<()> {
        Err(Error::new(at, "regions have no page flags").hint("for pages: `walk RANGE where flags(NAME)`"))
    }

    fn space(&self, field: RegionField) -> Option<Space> {
        matches!(field, RegionField::Start | RegionField::End).then_some(Space::Virtual)
    }
}

struct RegionAnswers<'r> {
    region: &'r ViewedRegion,
    stats: Option<&'r RegionStats>,
}

impl Answers<RegionField> for RegionAnswers<'_> {
    fn boolean(&self, field: RegionField) -> Option<bool> {
        field::region_boolean(field, self.region)
    }
    fn integer(&self, field: RegionField) -> Option<u64> {
        field::region_integer(field, self.region, self.stats)
    }
    fn bounds(&self, field: RegionField) -> Option<(u64, u64)> {
        self.stats?;
        field::region_bounds(field, self.region)
    }
    fn text_is(&self, field: RegionField, is: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
        field::region_text_is(field, self.region, is)
    }
}
