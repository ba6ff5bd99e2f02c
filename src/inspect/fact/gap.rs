//! The reasons why a fact of a page is unknown, in one byte each. The sentences are made when they are shown.

use super::super::error::{copied_or_not, no_scan, swap_hidden};
use super::super::holders;
use super::super::states::{StateSet, Uncertainty};
use crate::kernel::State;
use crate::report::{Fact, Reason};

/// The reason why a fact of a page is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Gap {
    /// The page changed during the read.
    Changed,
    /// The kernel does not show the flags and map count of the frame.
    Hidden,
    /// The entry does not show which state the page is in.
    Uncertain(Uncertainty),
    /// The page is of shared memory, and may be in swap.
    Swap,
    /// The page map hides the frames of device mappings.
    DeviceFrame,
    /// The page is of a private device mapping, and may be a copy.
    DeviceOrCopy,
    /// No zone spans the frame.
    NoZone,
    /// The contents of the file of an untouched page are unknown.
    Contents,
    /// Without page flags a page may be merged, or the zero page.
    NoFlags,
    /// The kernel sets the flag of merged pages on every anonymous page.
    MergedFlag,
    /// Nothing that can be read shows the kind.
    Kind,
    /// The map count is an average over a large folio.
    Average,
    /// The page is in a huge mapping, and its map count is unknown.
    HugeUncounted,
    /// The page may be in a huge mapping, and its map count is unknown.
    Unscanned,
    /// Nothing shows whether one PMD maps the page.
    NoScan,
    /// A core does not contain the rights of the region.
    Rights,
    /// A core does not contain whether the region is shared.
    Sharing,
    /// The kernel does not show its record of the frame.
    Record,
    /// The memory may belong to an arena that was not walked to its end.
    Heap,
}

const _: () = assert!(size_of::<Gap>() == 1);

impl Gap {
    /// Returns whether a filter leaves the page out without a message: the page has no such fact, or the sweep reports
    /// it separately.
    pub fn is_reported_apart(self) -> bool {
        matches!(self, Gap::Uncertain(_) | Gap::DeviceFrame | Gap::NoZone)
    }

    /// Returns the likeliest state of a page whose state is unknown.
    pub(super) fn likeliest(self) -> State {
        match self {
            Gap::Uncertain(cause) => StateSet::from(cause).likeliest(),
            _ => State::Untouched,
        }
    }

    /// Returns the reason as a sentence. `counts` is whether map counts can be known.
    pub(in crate::inspect) fn reason(self, counts: &Fact<()>) -> Reason {
        match self {
            Gap::Changed => Reason::Changed,
            Gap::Hidden => Reason::words_hidden(),
            Gap::Uncertain(cause) => StateSet::from(cause).uncertainty().unwrap_or(Reason::Changed),
            Gap::Swap => swap_hidden("`maybe_swapped` finds it"),
            Gap::DeviceFrame => Reason::NotOnThisKernel(
                "the page map does not show the frames of device mappings (VM_PFNMAP)".to_owned(),
            ),
            Gap::DeviceOrCopy => copied_or_not(),
            Gap::NoZone => Reason::NotApplicable("no memory zone spans this frame"),
            Gap::Contents => Reason::NotOnThisKernel("the page cache of the file cannot be examined".to_owned()),
            Gap::NoFlags => Reason::NotOnThisKernel(
                "without page flags it may be a merged page, or the zero page".to_owned(),
            ),
            Gap::MergedFlag => Reason::NotOnThisKernel(
                "this kernel sets the flag of merged pages (KPF_KSM) on every anonymous page, and other pages of the region may be merged"
                    .to_owned(),
            ),
            Gap::Kind => Reason::NotOnThisKernel("the data that pmdb can read does not show it".to_owned()),
            Gap::Average => {
                Reason::NotOnThisKernel("the map counts of large folios are averages on this kernel".to_owned())
            }
            // Bit 56 is wrong inside huge mappings.
            Gap::HugeUncounted => uncounted("in huge mappings only map counts show it", counts),
            Gap::Unscanned => uncounted("only map counts or PAGEMAP_SCAN (Linux 6.7) show it", counts),
            Gap::NoScan => no_scan(),
            Gap::Rights => Reason::NotInFile("the rights of its region: not in this core".to_owned()),
            Gap::Sharing => Reason::NotInFile("whether regions are shared: not in this core".to_owned()),
            Gap::Record => holders::not_shown(),
            Gap::Heap => Reason::NotOnThisKernel(
                "it may belong to a heap that was not read to its end: `heap` has the reason".to_owned(),
            ),
        }
    }
}

/// Returns the reason for a fact that map counts would show, with the cause why they cannot be read.
fn uncounted(what: &str, counts: &Fact<()>) -> Reason {
    match counts {
        Err(reason) if reason.is_refusal() => Reason::NotPermitted {
            what: format!("{what}; {}", reason.cause()),
            remedy: reason.remedy().map(str::to_owned),
        },
        Err(reason) => Reason::NotOnThisKernel(format!("{what}; {}", reason.cause())),
        Ok(()) => Reason::words_hidden(),
    }
}
