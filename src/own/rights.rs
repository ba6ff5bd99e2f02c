//! The capabilities of pmdb, which are raised for an open and lowered after it, and the remedies for missing ones.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::cell::Cell;

/// The capabilities that files of other processes need: for frame numbers in pagemap and for `map_files`, for any
/// process, and for any file mode.
const WANTED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Whether the effective set of this thread contains the wanted capabilities.
#[derive(Clone, Copy)]
enum HeldRights {
    /// It contains all that are permitted.
    All,
    /// It lacks some, except during an open. The value is its sets outside an open.
    Lowered(CapabilitySets),
}

thread_local! {
    /// The rights of this thread. Only the thread can change its sets (kernel/capability.c), so they are read once and
    /// not for each open.
    static HELD: Cell<Option<HeldRights>> = const { Cell::new(None) };
}

fn held_now() -> HeldRights {
    let held = HELD.get().unwrap_or_else(|| match capabilities(None) {
        Ok(sets) if !sets.effective.contains(sets.permitted & WANTED) => HeldRights::Lowered(sets),
        _ => HeldRights::All,
    });
    HELD.set(Some(held));
    held
}

/// Does `work` with the wanted capabilities that are permitted (`setcap …=p`).
pub(crate) fn with_raised_rights<T>(work: impl FnOnce() -> T) -> T {
    let _lowered_at_the_end = raise();
    work()
}

fn raise() -> Option<LowerOnDrop> {
    let HeldRights::Lowered(before) = held_now() else {
        return None;
    };
    let raised = CapabilitySets { effective: before.effective | (before.permitted & WANTED), ..before };
    set_capabilities(None, raised).ok()?;
    HELD.set(Some(HeldRights::All));
    Some(LowerOnDrop(before))
}

/// Does `work` with CAP_SYS_RAWIO too, which the memory of the kernel needs. The thread lacks it afterwards.
pub(crate) fn with_raw_memory<T>(work: impl FnOnce() -> T) -> T {
    let change = |change: fn(CapabilitySet, CapabilitySet) -> CapabilitySet| {
        if let Ok(sets) = capabilities(None) {
            let effective = change(sets.effective, sets.permitted & CapabilitySet::SYS_RAWIO);
            // A permitted capability can be raised, and any can be lowered.
            _ = set_capabilities(None, CapabilitySets { effective, ..sets });
        }
    };
    let done = with_raised_rights(|| {
        change(|effective, raw_memory| effective | raw_memory);
        work()
    });
    change(|effective, raw_memory| effective - raw_memory);
    HELD.set(None);
    done
}

struct LowerOnDrop(CapabilitySets);

impl Drop for LowerOnDrop {
    fn drop(&mut self) {
        // Lowering capabilities never fails.
        _ = set_capabilities(None, self.0);
        HELD.set(Some(HeldRights::Lowered(self.0)));
    }
}

/// Returns whether CAP_SYS_ADMIN, which frame numbers need, is permitted.
pub(crate) fn has_sys_admin() -> bool {
    capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::SYS_ADMIN))
}

/// Returns whether CAP_SYS_PTRACE, which processes of other users need, is permitted.
pub(crate) fn has_sys_ptrace() -> bool {
    capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::SYS_PTRACE))
}

/// The open files that pmdb wants: two for each of some thousand libraries.
const OPEN_FILES: u64 = 8192;

/// Raises the limit of open files to the wanted number, or to the hard limit if it is lower. Shells usually start
/// programs with 1024; a large process maps half as many libraries, each with its debug file.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OPEN_FILES, |hard| hard.min(OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), ..limit };
        // Any process may raise it up to the hard limit. After a failure fewer modules have symbols.
        _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Returns the limit of open files.
pub(crate) fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Lowers the capabilities that file capabilities gave this program (`setcap …=ep`) until they are needed: files that
/// the user names are opened with the user's rights. Root keeps them.
pub fn hold_back() {
    if !rustix::process::geteuid().is_root() {
        lower();
    }
    // CAP_SYS_RAWIO is lowered for root too.
    with_raw_memory(|| ());
}

fn lower() {
    if let Ok(sets) = capabilities(None) {
        let lowered = CapabilitySets { effective: sets.effective - WANTED, ..sets };
        // Lowering capabilities never fails.
        _ = set_capabilities(None, lowered);
        HELD.set(None);
    }
}

/// The way to give pmdb its capabilities without sudo.
pub(crate) const SETCAP: &str = "after `setcap cap_sys_admin,cap_sys_ptrace,cap_dac_read_search=p` on its file";

/// Returns how the user can give pmdb the capabilities `needed`.
pub fn way_to(needed: &str) -> String {
    match in_first_user_namespace() {
        Some(false) => format!(
            "run pmdb with {needed} outside of this user namespace (container): rights in it do not reach out of it"
        ),
        _ if are_among(needed, &usable_capabilities()) => format!(
            "refused although pmdb has {needed}: another user namespace, kernel lockdown or a security module prevents it"
        ),
        _ if rustix::process::geteuid().is_root() => {
            format!("give pmdb {needed}, which root has unless a container or a bounding set removes it")
        }
        _ => format!("run pmdb with {needed}: with sudo, or {SETCAP}"),
    }
}

/// Returns how the user can give pmdb the right to read the memory of the kernel. It does not suggest file
/// capabilities: this right reaches farther than pmdb does.
pub(crate) fn way_to_raw_memory() -> String {
    let needed = "CAP_SYS_RAWIO and CAP_DAC_READ_SEARCH";
    match in_first_user_namespace() {
        Some(false) => way_to(needed),
        _ if rustix::process::geteuid().is_root() => {
            format!("give pmdb {needed}, which root has unless a container or a bounding set removes it")
        }
        _ => "run pmdb with sudo".to_owned(),
    }
}

/// Returns whether pmdb has all of the capabilities `A and B`, and runs in the first user namespace.
pub(crate) fn holds(needed: &str) -> bool {
    in_first_user_namespace() != Some(false) && are_among(needed, &usable_capabilities())
}

/// Returns whether `held` contains all of `A and B`.
fn are_among(needed: &str, held: &[&str]) -> bool {
    needed.split(" and ").all(|right| held.contains(&right))
}

/// Returns the useful capabilities that are permitted.
pub(crate) fn usable_capabilities() -> Vec<&'static str> {
    let permitted = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    let held = NAMES.iter().filter(|(right, _)| permitted.contains(*right));
    held.map(|(_, name)| *name).collect()
}

const NAMES: [(CapabilitySet, &str); 4] = [
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    (CapabilitySet::CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE"),
];

/// Returns the capabilities that pmdb lacks for page maps of other users' processes: to inspect these, and to open a
/// file of mode 0400.
pub(crate) fn missing_for_other_users() -> Vec<&'static str> {
    let permitted = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    let opens = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE;
    let looks = permitted.contains(CapabilitySet::SYS_PTRACE);
    let mut missing = Vec::new();
    missing.extend((!looks).then_some("CAP_SYS_PTRACE"));
    missing.extend((!permitted.intersects(opens)).then_some("CAP_DAC_READ_SEARCH"));
    missing
}

/// Returns whether this program runs in the first user namespace, whose inode number is fixed (PROC_USER_INIT_INO in
/// include/linux/proc_ns.h).
pub(crate) fn in_first_user_namespace() -> Option<bool> {
    const FIRST: u64 = 0xEFFF_FFFD;
    let stat = rustix::fs::stat("/proc/self/ns/user").ok()?;
    Some(stat.st_ino == FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_with_the_rights_is_not_told_to_get_them() {
        let held = ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"];
        assert!(are_among("CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", &held));
        assert!(are_among("CAP_DAC_READ_SEARCH", &held));
        assert!(!are_among("CAP_SYS_PTRACE and CAP_SYS_ADMIN", &held));
        assert!(!are_among("CAP_SYS_PTRACE", &[]));
        let all = NAMES.map(|(_, name)| name).join(" and ");
        if held_all() && in_first_user_namespace() != Some(false) {
            assert!(way_to(&all).contains("refused although"));
        } else {
            assert!(!way_to(&all).contains("refused although"));
        }
    }

    /// Lowers the rights of a new thread, and there calls `check` with the effective ones without and with them.
    fn with_rights_lowered(check: fn(CapabilitySet, CapabilitySet)) {
        let thread = std::thread::spawn(move || {
            let before = capabilities(None).expect("the sets");
            with_raised_rights(|| ());
            lower();
            let without = before.effective - WANTED;
            assert_eq!(effective(), without);
            check(without, without | (before.permitted & WANTED));
        });
        thread.join().expect("a check that holds");
    }

    #[test]
    fn rights_are_held_only_while_something_is_opened() {
        with_rights_lowered(|without, with| {
            for _ in 0..2 {
                with_raised_rights(|| {
                    assert_eq!(effective(), with);
                    // An open within another leaves them raised.
                    with_raised_rights(|| assert_eq!(effective(), with));
                    assert_eq!(effective(), with);
                });
                assert_eq!(effective(), without);
            }
            let panics = std::panic::catch_unwind(|| with_raised_rights(|| panic!("as it is meant to")));
            assert!(panics.is_err());
            assert_eq!(effective(), without);
        });
    }

    #[test]
    fn each_thread_asks_for_its_own_rights() {
        with_rights_lowered(|without, with| {
            with_raised_rights(|| ());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    with_raised_rights(|| assert_eq!(effective(), with));
                    assert_eq!(effective(), without);
                });
            });
        });
    }

    #[test]
    fn rights_are_asked_for_once() {
        with_rights_lowered(|without, _| {
            assert!(HELD.get().is_none());
            with_raised_rights(|| ());
            assert!(HELD.get().is_some());
            // The known sets are not read again.
            HELD.set(Some(HeldRights::All));
            with_raised_rights(|| assert_eq!(effective(), without));
        });
    }

    fn effective() -> CapabilitySet {
        capabilities(None).expect("the sets").effective
    }

    fn held_all() -> bool {
        usable_capabilities().len() == NAMES.len()
    }
}
