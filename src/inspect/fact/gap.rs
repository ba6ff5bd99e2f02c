//! Why a fact of a page is unknown, in few bytes; the sentences are made once, where they are shown.

use super::super::error::{copied_or_not, no_scan, swap_hidden};
use super::super::holders;
use super::super::states::{StateSet, Uncertainty};
use crate::kernel::State;
use crate::report::{Fact, Reason};

/// Why a fact of a page is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Gap {
    /// The page changed during the read.
    Changed,
    /// The kernel shows no words of the frame.
    Hidden,
    /// The entry does not show which state the page is in.
    Uncertain(Uncertainty),
    /// Shared memory that may be in swap.
    Swap,
    /// The page map hides the frames of device mappings.
    DeviceFrame,
    /// A page of a private device mapping, which may be a copy.
    DeviceOrCopy,
    /// No zone spans the frame.
    NoZone,
    /// The contents of the file behind an untouched page are unknown.
    Contents,
    /// Without page flags a page may be merged, or the zero page.
    NoFlags,
    /// The kernel sets the flag of merged pages on every anonymous page.
    MergedFlag,
    /// Nothing that can be read shows the kind.
    Kind,
    /// The map count is an average over a large folio.
    Average,
    /// A page in a huge mapping, without its map count.
    HugeUncounted,
    /// A page that may be in a huge mapping, without its map count.
    Unscanned,
    /// Nothing shows whether one PMD maps it.
    NoScan,
    /// The rights of the region are not in a core.
    Rights,
    /// Whether the region is shared is not in a core.
    Sharing,
    /// The kernel does not show its record of the frame.
    Record,
    /// The memory may belong to an arena that was not walked to its end.
    Heap,
}

const _: () = assert!(size_of::<Gap>() == 1);

impl Gap {
    /// Whether a filter leaves the page out without a word: what it asks is nothing that the page has, or the sweep
    /// reports it apart.
    pub fn is_reported_apart(self) -> bool {
        matches!(self, Gap::Uncertain(_) | Gap::DeviceFrame | Gap::NoZone)
    }

    /// The likeliest state of a page whose state is unknown.
    pub(super) fn likeliest(self) -> State {
        match self {
            Gap::Uncertain(cause) => StateSet::from(cause).likeliest(),
            _ => State::Untouched,
        }
    }

    /// In a sentence. `counts` is whether map counts can be known.
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

/// Map counts would show it, and this is why they do not.
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
