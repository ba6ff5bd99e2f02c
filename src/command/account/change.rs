//! `account … from FILE`: how the memory of each class, or of each group, changed since a capture. It may be of another
//! process: classes and names are compared, and not addresses.

use super::change_records::{AccountChange, AccountComparison};
use super::one::{add_all, name};
use super::records::words;
use super::{AccountFor, AccountPart};
use crate::command::capture;
use crate::command::floor::{Context, Error, Flow, Outcome};
use crate::command::named_pages::{PagesOfSymbols, names_in};
use crate::command::rows::{self, RowLimit, note_hidden_rows};
use crate::inspect::AddressSpace;
use crate::kernel::Key;
use crate::lang::Spanned;
use crate::process::Target;
use crate::report::AccountClass;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl AccountFor {
    /// Compares the attached process with the one of a capture.
    pub(super) fn run_change(&self, file: &Spanned<String>, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
        if self.of.is_some() {
            let message = "`from` compares all memory of one process, not a range and not several processes";
            return Err(Error::refused(message, "leave the rest out: `account from FILE`"));
        }
        let target = context.target()?;
        let earlier = capture::open(&file.node, context.state)?;
        earlier.process.set_scan(context.state.settings.scan);
        let by = self.key()?;
        let before = self.sums(&earlier, context)?;
        let now = self.sums(&target, context)?;
        let of = |sums: &Sums, key: &String| sums.groups.get(key).copied().unwrap_or_default();
        let keys: BTreeSet<&String> = before.groups.keys().chain(now.groups.keys()).collect();
        let mut rows: Vec<AccountChange> = keys
            .into_iter()
            .map(|key| AccountChange {
                by: by.map_or_else(|| "class".to_owned(), |by| by.to_string()),
                key: key.clone(),
                before: of(&before, key),
                bytes: of(&now, key),
            })
            .collect();
        rows.sort_by_cached_key(|row| Reverse((row.bytes.abs_diff(row.before), row.bytes)));
        let more = rows::keep_shown(&mut rows, cut, |row| row.bytes.abs_diff(row.before));
        rows.iter().try_for_each(|row| context.sink.emit(row))?;
        note_hidden_rows(more, "group", context.sink)?;
        let (this, other) = (target.process.identity(), earlier.process.identity());
        context.sink.emit(&AccountComparison {
            pid: this.pid,
            process: this.name,
            bytes: now.total,
            file: file.node.clone(),
            other: other.pid,
            other_process: other.name,
            time: earlier.process.capture_times().map(|[begun, _]| begun),
            before: before.total,
        })?;
        Ok(Flow::Done)
    }

    /// The sums of a whole process.
    fn sums(&self, target: &Target, context: &mut Context) -> Result<Sums, Error> {
        let space = AddressSpace::of(target)?;
        let by = self.key()?;
        let more = self.evidence(by, &space)?;
        let state = &*context.state;
        let mut symbols =
            (by == Some(Key::Symbol)).then(|| PagesOfSymbols::new(names_in(&space, &state.symbols), space.page_size()));
        let accounting = space.account(&space.spans(), more, self.finds(AccountPart::Content));
        let (sums, stopped) = add_all(accounting, by, symbols.as_mut(), context.sink)?;
        if let Some(stopped) = stopped {
            return Err(stopped.into());
        }
        let groups = match by {
            Some(by) => {
                let named = sums.named(|group| name(&sums, by, group, symbols.as_ref()));
                named.into_iter().map(|(key, one)| (key, one.total())).collect()
            }
            None => {
                let classes = AccountClass::ALL.iter().map(|&class| (words(class).to_owned(), sums.all.of(class)));
                classes.filter(|(_, bytes)| *bytes > 0).collect()
            }
        };
        Ok(Sums { groups, total: sums.all.total() })
    }
}

/// The bytes of each class or group by its name, and of all.
struct Sums {
    groups: BTreeMap<String, u64>,
    total: u64,
}
