//! The rights of pmdb: capabilities are raised around an open, and dropped again; and what would give pmdb those that it
//! lacks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::cell::Cell;

/// The capabilities for the files of another process: frame numbers in its page map and `map_files`, any process, any
/// file mode.
const WANTED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Which of the wanted capabilities this thread holds.
#[derive(Clone, Copy)]
enum HeldRights {
    /// All that it was permitted.
    All,
    /// Not all, except during an open: these are its sets otherwise.
    Lowered(CapabilitySets),
}

thread_local! {
    /// Each thread has sets of its own, which only it can change (kernel/capability.c): they are read once, not at each
    /// of the very many opens.
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

/// Does `work` with the wanted capabilities that this program was permitted (`setcap …=p`).
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

/// Does `work` with CAP_SYS_RAWIO too, which the kernel's memory needs. Afterwards this thread does not have it.
pub(crate) fn with_raw_memory<T>(work: impl FnOnce() -> T) -> T {
    let change = |change: fn(CapabilitySet, CapabilitySet) -> CapabilitySet| {
        if let Ok(sets) = capabilities(None) {
            let effective = change(sets.effective, sets.permitted & CapabilitySet::SYS_RAWIO);
            // What is permitted may be raised, and anything may be dropped.
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
        // Dropping capabilities is always allowed.
        _ = set_capabilities(None, self.0);
        HELD.set(Some(HeldRights::Lowered(self.0)));
    }
}

/// Whether CAP_SYS_ADMIN, which frame numbers need, is held or permitted.
pub(crate) fn has_sys_admin() -> bool {
    capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::SYS_ADMIN))
}

/// Whether CAP_SYS_PTRACE, which opens processes of other users, is held or permitted.
pub(crate) fn has_sys_ptrace() -> bool {
    capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::SYS_PTRACE))
}

/// Files that this program should be able to have open at the same time: two for each of some thousand libraries.
const OPEN_FILES: u64 = 8192;

/// Allows this program as many open files as it wants and the hard limit grants: shells mostly start programs with
/// 1024, and a large process maps half as many libraries, each with its debug file.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OPEN_FILES, |hard| hard.min(OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), ..limit };
        // Everybody may raise it up to the hard limit. If it is refused all the same, fewer modules have names.
        _ = setrlimit(Resource::Nofile, raised);
    }
}

/// How many files this program may have open.
pub(crate) fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Holds back the rights that file capabilities gave this program (`setcap …=ep`) until they are needed, so that files
/// named by the user are opened with the user's own rights. Root, who has them anyway, keeps them.
pub fn hold_back() {
    if !rustix::process::geteuid().is_root() {
        lower();
    }
    // Not even root reads the kernel's memory by the way.
    with_raw_memory(|| ());
}

fn lower() {
    if let Ok(sets) = capabilities(None) {
        let lowered = CapabilitySets { effective: sets.effective - WANTED, ..sets };
        // Dropping capabilities is always allowed.
        _ = set_capabilities(None, lowered);
        HELD.set(None);
    }
}

/// How pmdb gets its rights without sudo.
pub(crate) const SETCAP: &str = "after `setcap cap_sys_admin,cap_sys_ptrace,cap_dac_read_search=p` on its file";

/// How the user can give pmdb the missing rights.
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

/// How the user can give pmdb the right to read the kernel's memory. File capabilities are no way: this right reaches
/// farther than pmdb does.
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

/// Whether pmdb has all of the rights `A and B`, and no user namespace of its own limits them.
pub(crate) fn holds(needed: &str) -> bool {
    in_first_user_namespace() != Some(false) && are_among(needed, &usable_capabilities())
}

/// Whether all of `A and B` are held.
fn are_among(needed: &str, held: &[&str]) -> bool {
    needed.split(" and ").all(|right| held.contains(&right))
}

/// The useful capabilities that pmdb holds, or can raise.
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

/// The capabilities for page maps of other users' processes that pmdb lacks: to inspect them, and to open a file of
/// mode 0400.
pub(crate) fn missing_for_other_users() -> Vec<&'static str> {
    let permitted = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.permitted);
    let opens = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE;
    let looks = permitted.contains(CapabilitySet::SYS_PTRACE);
    let mut missing = Vec::new();
    missing.extend((!looks).then_some("CAP_SYS_PTRACE"));
    missing.extend((!permitted.intersects(opens)).then_some("CAP_DAC_READ_SEARCH"));
    missing
}

/// Whether this program runs in the first user namespace. Its number is fixed (PROC_USER_INIT_INO in
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
