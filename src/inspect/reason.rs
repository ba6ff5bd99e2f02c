//! Reasons why a fact is unknown, shared by several answers.

use super::page::Page;
use crate::kernel::{PageFlags, State};
use crate::process;
use crate::report::Reason;

/// Why the kind of a page in a region is not known.
pub fn kind_unknown(page: &Page) -> Reason {
    if page.state() == State::PfnMapped {
        return copied_or_not();
    }
    let is_flagged = |flags: PageFlags| flags.contains(PageFlags::KSM);
    Reason::NotOnThisKernel(match page.flags {
        Some(flags) if is_flagged(flags) => {
            "this kernel sets the flag of merged pages (KPF_KSM) on every anonymous page, and other pages of the region may be merged"
                .into()
        }
        Some(_) => "the data that pmdb can read does not show it".into(),
        None => "without page flags it may be a merged page, or the page of zeros".into(),
    })
}

/// Why it is unknown whether a page of a private device mapping is the device's.
pub(super) fn copied_or_not() -> Reason {
    Reason::NotOnThisKernel(
        "pages of this private device mapping may have been written, which makes them ordinary memory, and the page map does not show which"
            .into(),
    )
}

/// There is no PAGEMAP_SCAN.
pub fn no_scan() -> Reason {
    Reason::NotOnThisKernel("only PAGEMAP_SCAN (Linux 6.7) shows it".into())
}

impl From<process::Error> for Reason {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::NotPermitted { what, remedy } => {
                Reason::NotPermitted { what, remedy: Some(remedy).filter(|remedy| !remedy.is_empty()) }
            }
            // It went, or changed during the read.
            process::Error::Gone { .. } => Reason::Changed,
            process::Error::NotAvailable { .. }
            | process::Error::Malformed(_)
            | process::Error::Ambiguous { .. }
            | process::Error::OutOfBudget(_)
            | process::Error::Io { .. } => Reason::NotOnThisKernel(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_reason_of_its_class() {
        let refused = Reason::from(process::Error::not_permitted("may not", "sudo"));
        assert_eq!((refused.cause(), refused.remedy()), ("may not", Some("sudo")));
        let what = || "process 1 has exited".to_owned();
        assert_eq!(Reason::from(process::Error::gone(what())), Reason::Changed);
        let missing = Reason::from(process::Error::not_available(what()));
        assert_eq!(missing, Reason::NotOnThisKernel(what()));
    }
}
