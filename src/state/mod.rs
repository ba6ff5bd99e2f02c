//! What a debugging session keeps from one line to the next: target, variables, values, settings, lines.
//!
//! It does not keep regions: each command reads them anew.

mod attachment;
mod definitions;
mod history;
mod settings;

pub use crate::eval::NamedSnapshot;
pub use attachment::{TargetChange, UnrecordedTarget};
pub use definitions::{Area, Display, Displays, Snapshots, UserCommand};
pub use history::{Examined, LineHistory, ValueHistory};
pub use settings::{Settings, WrongType};

use crate::budget::Budget;
use crate::eval::{Integer, Scope, Value};
use crate::kernel::{PageSize, VirtualAddress};
use crate::lang::HistoryReference;
use crate::process::{Machine, Target};
use crate::source::Identity;
use crate::symbol::Symbols;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Everything that lasts from one line to the next.
pub struct DebugState {
    /// The target, if any; changed by [`DebugState::attach`] and [`DebugState::detach`].
    target: Option<Arc<Target>>,
    /// Whether the exit of the target has been reported.
    is_exit_reported: bool,
    /// The machine that pmdb runs on, for commands without a target.
    own_machine: Arc<Machine>,
    /// The symbols of the files behind its regions, read when a name is first needed.
    pub symbols: Symbols,
    /// `$name`, without the `$`.
    pub variables: BTreeMap<String, Value>,
    /// The areas of the demonstration process, if pmdb has started it.
    pub areas: Vec<Area>,
    /// The commands that the user has defined, by name.
    pub commands: BTreeMap<String, UserCommand>,
    /// The arguments of the command file or user's command that runs, the outermost first: `$argc`, `$arg0` …
    pub arguments: Vec<Vec<Value>>,
    /// What `print` printed: `$1`, `$2` …
    pub values: ValueHistory,
    /// `$_`: the last address that was looked at.
    pub last_address: Option<VirtualAddress>,
    /// What `snapshot` has kept.
    pub snapshots: Snapshots,
    /// The process whose soft-dirty bits pmdb has cleared last, and when.
    pub soft_dirty_cleared: Option<(Identity, SystemTime)>,
    /// What `x` showed last.
    pub examined: Examined,
    /// What is shown at each prompt.
    pub displays: Displays,
    /// How pmdb works: `set` and `show`.
    pub settings: Settings,
    /// Whether `regions where` has reported that it leaves out the kernel's own regions.
    pub kernel_regions_noted: bool,
    /// The lines that were typed.
    pub lines: LineHistory,
    /// Whether Ctrl-C was typed, for evaluations that take long.
    pub interrupted: Arc<AtomicBool>,
    /// Shows the progress of such an evaluation.
    pub progress: ProgressListener,
    /// The notes to be printed after the answer of the command that runs.
    pub notes: RefCell<Vec<String>>,
}

impl DebugState {
    /// A session without a target, on this machine.
    pub fn new(own_machine: Arc<Machine>) -> Self {
        DebugState {
            target: None,
            is_exit_reported: false,
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
            examined: Examined::default(),
            displays: Displays::default(),
            settings: Settings::default(),
            kernel_regions_noted: false,
            lines: LineHistory::default(),
            interrupted: Arc::default(),
            progress: ProgressListener::default(),
            notes: RefCell::default(),
        }
    }

    /// The target, if any.
    pub fn target(&self) -> Option<&Arc<Target>> {
        self.target.as_ref()
    }

    /// The target's machine; without a target the one that pmdb runs on.
    pub fn machine(&self) -> &Arc<Machine> {
        self.target.as_ref().map_or(&self.own_machine, |target| &target.machine)
    }
}

impl Scope for DebugState {
    fn target(&self) -> Option<&Target> {
        self.target.as_deref()
    }

    fn page_size(&self) -> PageSize {
        self.target.as_ref().map_or_else(|| self.own_machine.page(), |target| target.process.layout().page)
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

    fn note(&self, message: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&message) {
            notes.push(message);
        }
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
    /// `$argc`, `$arg0` … of the command that runs.
    fn argument(&self, name: &str) -> Option<Value> {
        let number = name.strip_prefix("arg")?;
        let arguments = self.arguments.last()?;
        match number {
            "c" => Some(Value::Integer(Integer::from(arguments.len() as u64))),
            _ => arguments.get(number.parse::<usize>().ok()?).cloned(),
        }
    }
}

type Show = dyn Fn(u64, u64, &'static str);

/// Receives the progress of long work: `done` of `total` `what`. By default nobody listens.
#[derive(Clone, Default)]
pub struct ProgressListener(Option<Rc<Show>>);

impl ProgressListener {
    /// Passes the progress to `show`.
    pub fn new(show: impl Fn(u64, u64, &'static str) + 'static) -> Self {
        ProgressListener(Some(Rc::new(show)))
    }

    /// `done` of `total` `what` are done.
    pub fn show(&self, done: u64, total: u64, what: &'static str) {
        if let Some(show) = &self.0 {
            show(done, total, what);
        }
    }
}
