//! The state that a session keeps between lines: target, variables, values, settings, typed lines.
//!
//! Regions are not part of it: each command reads them anew. To attach or detach, or a change of the target, discards
//! what was true only of the old one. A target that logs its reads may replace the target for one command.

mod definitions;
mod readable;

pub use crate::eval::NamedSnapshot;
pub use definitions::{
    DemoVariable, DisplayEntry, Displays, ExamineState, LineHistory, Remarks, Snapshots, UserCommand, ValueHistory,
};
pub use readable::ReadableFiles;

use crate::access::Identity;
use crate::access::log::Log;
use crate::budget::Budget;
use crate::eval::{Integer, Remark, Scope, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::{HistoryReference, Settings};
use crate::process::{self, Liveness, Machine, Target};
use crate::symbol::Symbols;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// The state that a session keeps between lines.
pub struct DebugState {
    /// The target, if any, which [`DebugState::attach`] and [`DebugState::detach`] change.
    target: Option<Arc<Target>>,
    /// Whether the exit of the target has been reported.
    is_exit_reported: bool,
    /// The machine that pmdb runs on, for commands without a target.
    own_machine: Arc<Machine>,
    /// The symbols of the files that the target maps, read when a name first needs them.
    pub symbols: Symbols,
    /// The variables `$name`, by their names without the `$`.
    pub variables: BTreeMap<String, Value>,
    /// The areas of the demonstration process, if pmdb has started it.
    pub areas: Vec<DemoVariable>,
    /// The commands that the user has defined, by name.
    pub commands: BTreeMap<String, UserCommand>,
    /// The arguments `$argc`, `$arg0` … of the command files and user commands that run, those of the outermost first.
    pub arguments: Vec<Vec<Value>>,
    /// The values that `print` has printed: `$1`, `$2` …
    pub values: ValueHistory,
    /// `$_`: the last address that was examined.
    pub last_address: Option<VirtualAddress>,
    /// The snapshots that `snapshot` has taken.
    pub snapshots: Snapshots,
    /// The process whose soft-dirty bits pmdb has cleared last, and the time.
    pub soft_dirty_cleared: Option<(Identity, SystemTime)>,
    /// The format, unit, count and end of the last `x`.
    pub examined: ExamineState,
    /// The displays, which are shown at each prompt.
    pub displays: Displays,
    /// The settings of `set` and `show`.
    pub settings: Settings,
    /// The path of the log: `set logging file`.
    pub log_file: String,
    /// Whether a program reads the replies (`--serve`), which then stay JSON.
    pub is_serving: bool,
    /// The captures and core files that lines may open.
    pub readable_files: ReadableFiles,
    /// The thread of the current iteration of `foreach … in threads`.
    pub thread: Option<u32>,
    /// The notes that have been shown, of those that are shown once in a session.
    pub noted: BTreeSet<String>,
    /// The typed lines.
    pub lines: LineHistory,
    /// The line of the current command; empty if it has none.
    pub line: String,
    /// Whether Ctrl-C was pressed, which long evaluations check.
    pub interrupted: Arc<AtomicBool>,
    /// The listener to the progress of long evaluations.
    pub progress: ProgressListener,
    /// The remarks of the evaluations of the current command.
    pub remarks: Remarks,
}

impl DebugState {
    /// Returns the state without a target. `own_machine` is the machine that pmdb runs on.
    pub fn new(own_machine: Arc<Machine>) -> Self {
        DebugState {
            target: None,
            is_exit_reported: false,
            thread: None,
            own_machine,
            symbols: Symbols::default(),
            variables: BTreeMap::new(),
            areas: Vec::new(),
            commands: BTreeMap::new(),
            arguments: Vec::new(),
            values: ValueHistory::default(),
            last_address: None,
            snapshots: Snapshots::default(),
            soft_dirty_cleared: None,
            examined: ExamineState::default(),
            displays: Displays::default(),
            settings: Settings::default(),
            log_file: "pmdb.txt".to_owned(),
            is_serving: false,
            readable_files: ReadableFiles::All,
            noted: BTreeSet::new(),
            lines: LineHistory::default(),
            line: String::new(),
            interrupted: Arc::default(),
            progress: ProgressListener::default(),
            remarks: Remarks::default(),
        }
    }

    /// Returns the target, if any.
    pub fn target(&self) -> Option<&Arc<Target>> {
        self.target.as_ref()
    }

    /// Returns the machine of the target, or without one the machine that pmdb runs on.
    pub fn machine(&self) -> &Arc<Machine> {
        self.target.as_ref().map_or(&self.own_machine, |target| &target.machine)
    }

    /// Applies the setting whether the kernel's records of frames (`struct page`) are read.
    pub fn apply_kernel_records(&self) {
        for machine in [self.machine(), &self.own_machine] {
            machine.set_records(self.settings.kernel_records);
        }
    }
}

impl Scope for DebugState {
    fn target(&self) -> Option<&Target> {
        self.target.as_deref()
    }

    fn page_size(&self) -> PageSize {
        self.target.as_ref().map_or_else(|| self.own_machine.page_size(), |target| target.process.page_size())
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn variable(&self, name: &str) -> Option<Value> {
        self.argument(name).or_else(|| self.variables.get(name).cloned())
    }

    fn history(&self, reference: HistoryReference) -> Result<Value, String> {
        self.values.get(reference).cloned()
    }

    fn last_address(&self) -> Option<VirtualAddress> {
        self.last_address
    }

    fn thread(&self) -> Option<u32> {
        self.thread
    }

    fn remark(&self, remark: Remark) {
        self.remarks.add(remark);
    }

    fn snapshots(&self) -> &[NamedSnapshot] {
        self.snapshots.all()
    }

    fn machine(&self) -> Option<&Arc<Machine>> {
        Some(DebugState::machine(self))
    }

    fn progress(&self, done: u64, total: u64, what: &'static str) {
        self.progress.show(done, total, what);
    }

    fn budget(&self) -> Budget {
        Budget::until(Arc::clone(&self.interrupted))
    }
}

impl DebugState {
    /// Returns `$argc`, `$arg0` … of the current command file or user command.
    fn argument(&self, name: &str) -> Option<Value> {
        let number = name.strip_prefix("arg")?;
        let arguments = self.arguments.last()?;
        match number {
            "c" => Some(Value::Integer(Integer::from(arguments.len() as u64))),
            _ => arguments.get(number.parse::<usize>().ok()?).cloned(),
        }
    }
}

type ShowProgress = dyn Fn(u64, u64, &'static str);

/// A listener to the progress of long work, `done` of `total` `what`. The default ignores it.
#[derive(Clone, Default)]
pub struct ProgressListener(Option<Rc<ShowProgress>>);

impl ProgressListener {
    /// Returns a listener that calls `show`.
    pub fn new(show: impl Fn(u64, u64, &'static str) + 'static) -> Self {
        ProgressListener(Some(Rc::new(show)))
    }

    /// Reports that `done` of `total` `what` are done.
    pub fn show(&self, done: u64, total: u64, what: &'static str) {
        if let Some(show) = &self.0 {
            show(done, total, what);
        }
    }
}

/// A change of the target since the last check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetChange {
    /// The process has executed another program: earlier addresses, regions and symbols are void.
    Executed,
    /// The process has exited. It remains the target, so that later commands can report it.
    Exited,
}

impl DebugState {
    /// Attaches `target`. Variables and values stay, but `$_`, an address of another process, is reset.
    pub fn attach(&mut self, target: Target) -> Arc<Target> {
        let target = Arc::new(target.with_budget(self.budget()));
        self.forget_program();
        self.is_exit_reported = false;
        self.set_exit_variables(None);
        self.target = Some(Arc::clone(&target));
        target
    }

    /// Detaches from the target. Returns it.
    pub fn detach(&mut self) -> Option<Arc<Target>> {
        self.forget_program();
        self.target.take()
    }

    /// Checks whether the target still exists and runs the same program. Discards what a new program makes void, and
    /// reports each change once.
    ///
    /// # Errors
    /// Fails if the target cannot be checked.
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
            Liveness::Exited(_) if self.is_exit_reported => Ok(None),
            Liveness::Exited(code) => {
                self.is_exit_reported = true;
                self.set_exit_variables(code);
                Ok(Some(TargetChange::Exited))
            }
        }
    }

    /// Sets `$_exitcode` or `$_exitsignal` as gdb does, and removes both without a known wait status.
    fn set_exit_variables(&mut self, code: Option<i32>) {
        let number = |number: i32| Value::Integer(Integer::from(i64::from(number)));
        let (code, signal) = match code {
            None => (None, None),
            // Decoded as by WIFSIGNALED, WTERMSIG and WEXITSTATUS.
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

    /// Sets `$_demo` to whether the target is the demonstration that pmdb has started.
    pub fn set_demonstration(&mut self, is: bool) {
        self.variables.insert("_demo".to_owned(), Value::Integer(Integer::from(u64::from(is))));
    }

    /// Discards what was known about the program that the target ran.
    fn forget_program(&mut self) {
        self.set_demonstration(false);
        self.last_address = None;
        self.examined.next = None;
        self.symbols.forget();
    }
}

/// The target and machine whose reads are not logged, kept during a recording.
pub struct UnrecordedTarget {
    target: Option<Arc<Target>>,
    own_machine: Arc<Machine>,
}

impl DebugState {
    /// Begins to log the reads of the target and the machine in `log`. No file is reopened.
    pub fn record(&mut self, log: &Arc<Log>) -> UnrecordedTarget {
        let target = self.target.take();
        let own_machine = self.own_machine.recorded(log);
        self.target = target.as_ref().map(|target| Arc::new(target.recorded(log)));
        UnrecordedTarget { target, own_machine: std::mem::replace(&mut self.own_machine, own_machine) }
    }

    /// Ends the recording that [`record`](Self::record) began.
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
        becomes(&fake, Liveness::Exited(Some(9)));
        assert_eq!(state.notice().unwrap(), Some(TargetChange::Exited));
        assert_eq!(state.notice().unwrap(), None);
        let signal = Value::Integer(Integer::from(9u64));
        assert_eq!(state.variables.get("_exitsignal"), Some(&signal));
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
        becomes(&fake, Liveness::Exited(None));
        assert_eq!(state.notice().unwrap(), None);
        assert_eq!(state.page_size().bytes(), 4096);
    }
}
