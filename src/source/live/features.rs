//! Tries which features this kernel and pmdb's rights make available, on pmdb itself.

use super::cgroups::CgroupMount;
use super::directory::{Directory, own_file};
use super::memory::{self, FrameFiles};
use crate::access::{Error, Result};
use crate::budget::until_interrupted;
use crate::kernel::mounts::Controller;
use crate::kernel::{AddressRange, PageFlags, VirtualAddress, WordFile};
use crate::own::rights;
use crate::source::feature::{available, by_trying, unavailable, undetermined};
use crate::source::file::mapped_file;
use crate::source::{Categories, Feature, Finding, Query, sys};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

const SYS_ADMIN: &str = "CAP_SYS_ADMIN";

/// Finds whether frame numbers are shown, by a page of pmdb.
pub(super) fn frame_numbers() -> Finding {
    let feature = Feature::FrameNumbers;
    match memory::own_entry() {
        Some(entry) if entry.is_frame_hidden() => unavailable(
            feature,
            "the page map does not show the frame of pmdb's own resident page",
            rights::way_to(SYS_ADMIN),
        ),
        Some(_) => available(feature, "the page map shows the frame of pmdb's own resident page"),
        None => {
            let found = "pmdb's own page map could not be read; judged by its rights";
            if rights::has_sys_admin() {
                available(feature, found)
            } else {
                unavailable(feature, found, rights::way_to(SYS_ADMIN))
            }
        }
    }
}

/// Finds whether processes of other users can be read, by the necessary rights.
pub(super) fn other_users() -> Finding {
    let feature = Feature::OtherUsers;
    let missing = rights::missing_for_other_users();
    if !missing.is_empty() {
        let remedy = rights::way_to(&missing.join(" and "));
        return unavailable(feature, format!("{} not held", missing.join(", ")), remedy);
    }
    match rights::in_first_user_namespace() {
        Some(false) => unavailable(
            feature,
            "the rights are held, but only over processes of this user namespace",
            "run pmdb outside of this user namespace (container)",
        ),
        _ => available(feature, "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH are held"),
    }
}

/// Finds whether the files with a word for each frame can be read, by reading a word.
pub(super) fn frame_files(files: &FrameFiles) -> impl Iterator<Item = Finding> {
    WordFile::OF_FRAMES.into_iter().filter_map(|file| {
        let (feature, found) = (Feature::of_frames(file)?, format!("/proc/{} can be read", file.name()));
        Some(by_trying(feature, files.read(file, 0, &mut [0]), &found))
    })
}

/// Finds whether cgroups have paths here.
pub(super) fn cgroup_paths() -> Finding {
    let feature = Feature::CgroupPaths;
    let opened = CgroupMount::open(Controller::Memory, &mut until_interrupted());
    match opened.and_then(|hierarchy| hierarchy.require_controller().map(|()| hierarchy)) {
        Ok(hierarchy) => available(feature, format!("mounted at {}", hierarchy.point())),
        error => by_trying(feature, error, ""),
    }
}

/// Finds whether the ioctls on page maps and maps are available, by calls on pmdb.
pub(super) fn calls() -> Vec<Finding> {
    let mut findings = Vec::new();
    let known =
        own_file("pagemap").map(|own| Categories::supported(|question| sys::scan(&own, question, &mut []).is_ok()));
    findings.push(match &known {
        Ok(known) if known.is_empty() => unavailable(
            Feature::Scan,
            "the kernel has no PAGEMAP_SCAN",
            "Linux 6.7 or later; no sandbox that refuses it",
        ),
        Ok(known) => available(
            Feature::Scan,
            format!("PAGEMAP_SCAN answers for pmdb's own page map; it supports {}", category_names(*known).join(" ")),
        ),
        Err(error) => undetermined(Feature::Scan, not_opened("pagemap", *error), ""),
    });
    findings.extend(CATEGORIES.iter().map(|&(feature, category, tells)| match known {
        Ok(known) if known.contains(category) => available(feature, tells),
        Ok(_) => unavailable(feature, "PAGEMAP_SCAN does not support its category", "Linux 6.7 or later"),
        Err(_) => undetermined(feature, "not tested: pmdb's own page map cannot be read", ""),
    }));
    findings.push(match own_file("maps") {
        Ok(maps) => maps_query(maps),
        Err(error) => undetermined(Feature::MapsQuery, not_opened("maps", error), ""),
    });
    findings
}

/// The categories that show more than page-map entries, with their meanings. Linux 6.7 has them all.
const CATEGORIES: [(Feature, Categories, &str); 3] = [
    (Feature::ScanZero, Categories::ZERO, "PAGE_IS_PFNZERO identifies the zero page, without any rights"),
    (Feature::ScanHuge, Categories::HUGE, "PAGE_IS_HUGE identifies pages that one entry maps as a huge page"),
    (
        Feature::ScanWriteTracked,
        Categories::WRITE_TRACKED,
        "PAGE_IS_WPALLOWED identifies regions where userfaultfd records writes and lets them pass",
    ),
];

/// Returns their names in the kernel (include/uapi/linux/fs.h), without the common prefix.
fn category_names(known: Categories) -> Vec<&'static str> {
    let names = [
        (Categories::WRITE_TRACKED, "WPALLOWED"),
        (Categories::WRITTEN, "WRITTEN"),
        (Categories::FILE, "FILE"),
        (Categories::PRESENT, "PRESENT"),
        (Categories::SWAPPED, "SWAPPED"),
        (Categories::ZERO, "PFNZERO"),
        (Categories::HUGE, "HUGE"),
        (Categories::SOFT_DIRTY, "SOFT_DIRTY"),
        (Categories::GUARD, "GUARD"),
    ];
    let names = names.iter().filter(|(one, _)| known.contains(*one));
    names.map(|&(_, name)| name).collect()
}

fn maps_query(maps: OwnedFd) -> Finding {
    let feature = Feature::MapsQuery;
    let here = 0u8;
    match sys::query_mapping(maps, Query::At(VirtualAddress::new((&raw const here).addr() as u64))) {
        Ok(_) => available(feature, "PROCMAP_QUERY finds a region of pmdb's own"),
        Err(error) => unavailable(
            feature,
            format!("PROCMAP_QUERY fails on pmdb's own regions: {error}"),
            "Linux 6.11 or later; no sandbox that refuses it",
        ),
    }
}

fn not_opened(name: &str, error: Errno) -> String {
    format!("/proc/self/{name} cannot be opened: {error}")
}

/// Finds whether bit 58 is set, by a guard page of pmdb.
pub(super) fn guard_bit() -> Finding {
    let feature = Feature::GuardBit;
    let page = match sys::ClosedPages::guard() {
        Ok(page) => page,
        Err(error) => {
            let found = format!("pmdb cannot make a guard page (MADV_GUARD_INSTALL): {error}");
            return unavailable(feature, found, "Linux 6.13 or later, the first with guard pages");
        }
    };
    match memory::own_entry_at(page.address()) {
        Some(entry) if entry.is_guard() => available(feature, "the entry of a guard page of pmdb's own has bit 58"),
        Some(_) => unavailable(feature, "the entry of a guard page of pmdb's own has no bit 58", "Linux 6.15 or later"),
        None => undetermined(feature, "pmdb's own page map cannot be read", ""),
    }
}

/// Finds whether the idle bitmap can be read.
pub(super) fn idle_bitmap() -> Finding {
    const PATH: &str = "kernel/mm/page_idle/bitmap";
    let opened = Directory::open("/sys").and_then(|sys| sys.file(PATH));
    let (feature, path) = (Feature::IdleBitmap, format!("/sys/{PATH}"));
    match opened {
        Ok(_) => available(feature, format!("{path} can be opened")),
        Err(Errno::NOENT) => {
            unavailable(feature, format!("there is no {path}"), "a kernel built with CONFIG_IDLE_PAGE_TRACKING")
        }
        Err(error) => {
            unavailable(feature, format!("{path} cannot be opened: {error}"), rights::way_to("CAP_DAC_READ_SEARCH"))
        }
    }
}

/// Checks that the link of a mapped file, of the process with this directory, can be followed.
pub(super) fn follow(directory: &Directory, range: AddressRange) -> Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let link = mapped_file(range);
    let followed = rights::with_raised_rights(|| openat(directory.fd(), link, flags, Mode::empty()));
    followed.map(drop).map_err(|error| {
        let remedy = match error {
            Errno::NOENT => "a kernel whose /proc/PID/map_files is not hidden".to_owned(),
            _ => rights::way_to(SYS_ADMIN),
        };
        Error::not_permitted(error.to_string(), remedy)
    })
}

/// Finds whether the KSM flag is true, by the flags of a private page of pmdb.
pub(super) fn ksm_flag(files: &FrameFiles) -> Finding {
    let feature = Feature::KsmFlag;
    match memory::own_flags(files) {
        Some(flags) if flags.contains(PageFlags::KSM) => unavailable(
            feature,
            "a page of pmdb's own, which nobody merged, has the flag",
            "a kernel that does not set it on all anonymous pages",
        ),
        Some(_) => available(feature, "a page of pmdb's own, which nobody merged, does not have the flag"),
        None => undetermined(
            feature,
            "the flags of a page of pmdb's own cannot be read",
            "the needs of frame_numbers and kpageflags",
        ),
    }
}

/// Opens a file of pmdb in `/proc/self`, with errors like those for a target.
pub(super) fn open_own_file(file: &str) -> Result<OwnedFd> {
    own_file(file).map_err(|error| Error::io(format!("opening /proc/self/{file}"), error))
}
