//! Attaching, detaching and changes of the target, and what each makes void; and its replacement by a recorded one.

use super::DebugState;
use crate::eval::{Integer, Value};
use crate::process::{self, Liveness, Machine, Target};
use crate::source::recorded::Log;
use std::sync::Arc;

/// A change of the target since the last check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetChange {
    /// It runs another program now: earlier addresses, regions and symbols are void.
    Executed,
    /// It has exited. It stays the target, so that every later command can say so.
    Exited,
}

impl DebugState {
    /// Attaches `target`. Variables and values stay; `$_` does not, as it was an address of another process.
    pub fn attach(&mut self, target: Target) -> Arc<Target> {
        let target = Arc::new(target);
        self.forget_program();
        self.is_exit_reported = false;
        self.set_exit_variables(None);
        self.target = Some(Arc::clone(&target));
        target
    }

    /// Detaches from the target, and returns it.
    pub fn detach(&mut self) -> Option<Arc<Target>> {
        self.forget_program();
        self.target.take()
    }

    /// Checks whether the target still exists and runs the same program, and forgets what a new program has made void.
    /// Each change is reported once.
    ///
    /// # Errors
    /// The target could not be checked.
    pub fn notice(&mut self) -> process::Result<Option<TargetChange>> {
        let Some(target) = &self.target else {
            return Ok(None);
        };
        match target.process.liveness()? {
            Liveness::Alive => Ok(None),
            Liveness::Executed => {
                self.forget_program();
                Ok(Some(TargetChange::Executed))
            }
            Liveness::Exited if self.is_exit_reported => Ok(None),
            Liveness::Exited => {
                self.is_exit_reported = true;
                self.set_exit_variables(target.process.exit_code());
                Ok(Some(TargetChange::Exited))
            }
        }
    }

    /// Sets `$_exitcode` or `$_exitsignal`, as gdb does, if the target's end is known.
    fn set_exit_variables(&mut self, code: Option<i32>) {
        let number = |number: i32| Value::Integer(Integer::from(i64::from(number)));
        let (code, signal) = match code {
            None => (None, None),
            // Decoded as WIFSIGNALED and its like do.
            Some(code) => match code & 0x7f {
                0 => (Some(number(code >> 8 & 0xff)), None),
                signal => (None, Some(number(signal))),
            },
        };
        for (name, value) in [("_exitcode", code), ("_exitsignal", signal)] {
            match value {
                Some(value) => _ = self.variables.insert(name.to_owned(), value),
                None => _ = self.variables.remove(name),
            }
        }
    }

    /// Forgets what was known of the program that the target ran.
    fn forget_program(&mut self) {
        self.last_address = None;
        self.examined.next = None;
        self.symbols.forget();
    }
}

/// The target and machine from before, to be restored.
pub struct UnrecordedTarget {
    target: Option<Arc<Target>>,
    own_machine: Arc<Machine>,
}

impl DebugState {
    /// From now on, `log` records what is read of the target and of the machine. No file is opened anew.
    pub fn record(&mut self, log: &Arc<Log>) -> UnrecordedTarget {
        let target = self.target.take();
        let own_machine = self.own_machine.recorded(log);
        self.target = target.as_ref().map(|target| Arc::new(target.recorded(log)));
        UnrecordedTarget { target, own_machine: std::mem::replace(&mut self.own_machine, own_machine) }
    }

    /// Ends what [`record`](Self::record) began.
    pub fn end_recording(&mut self, before: UnrecordedTarget) {
        self.target = before.target;
        self.own_machine = before.own_machine;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Scope;
    use crate::kernel::VirtualAddress;
    use crate::process::fake::Fake;

    fn state(fake: &Fake) -> DebugState {
        let mut state = DebugState::new(fake.clone().target().machine);
        state.attach(fake.clone().target());
        state.last_address = Some(VirtualAddress::new(0x1000));
        let kept = Value::Integer(Integer::from(5u64));
        state.variables.insert("kept".into(), kept);
        state
    }

    fn becomes(fake: &Fake, liveness: Liveness) {
        *fake.watched.liveness.lock().unwrap() = Some(liveness);
    }

    #[test]
    fn a_new_program_makes_addresses_void_and_is_reported_once() {
        let fake = Fake::new();
        let mut state = state(&fake);
        assert_eq!(state.notice().unwrap(), None);
        assert!(state.last_address.is_some());
        becomes(&fake, Liveness::Executed);
        assert_eq!(state.notice().unwrap(), Some(TargetChange::Executed));
        assert_eq!(state.last_address, None);
        assert!(state.target().is_some());
        assert!(state.variables.contains_key("kept"));
        assert_eq!(state.notice().unwrap(), None);
    }

    #[test]
    fn an_exit_is_reported_once_and_the_target_stays() {
        let fake = Fake::new();
        let mut state = state(&fake);
        becomes(&fake, Liveness::Exited);
        assert_eq!(state.notice().unwrap(), Some(TargetChange::Exited));
        assert_eq!(state.notice().unwrap(), None);
        assert!(state.target().is_some());
        // Another target's exit is another exit.
        state.attach(fake.clone().target());
        assert_eq!(state.notice().unwrap(), Some(TargetChange::Exited));
    }

    #[test]
    fn without_a_target_nothing_changes() {
        let fake = Fake::new();
        let mut state = state(&fake);
        assert!(state.detach().is_some());
        assert!(state.detach().is_none());
        assert_eq!(state.last_address, None);
        assert!(Scope::target(&state).is_none());
        becomes(&fake, Liveness::Exited);
        assert_eq!(state.notice().unwrap(), None);
        assert_eq!(state.page_size().bytes(), 4096);
    }
}
