//! `account … from FILE`: how the memory of each class, or of each group, changed since a capture. It may be of another
//! process: classes and names are compared, and not addresses.

use super::change_records::{AccountChange, AccountComparison, OBJECT};
use super::one::{add_all, name};
use super::records::words;
use super::{AccountFor, AccountPart, rests};
use crate::command::capture;
use crate::command::floor::{Context, Error, Flow, Outcome};
use crate::command::named_pages::{PagesOfSymbols, names_in};
use crate::command::rows::{self, RowLimit, note_hidden_rows};
use crate::inspect::AddressSpace;
use crate::kernel::Key;
use crate::lang::Spanned;
use crate::process::Target;
use crate::report::{AccountClass, Fact};
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
        let by = by.map_or_else(|| "class".to_owned(), |by| by.to_string());
        let mut rows = changes(&by, &before.groups, &now.groups);
        let more = rows::keep_shown(&mut rows, cut, |row| row.bytes.abs_diff(row.before));
        rows.iter().try_for_each(|row| context.sink.emit(row))?;
        note_hidden_rows(more, "group", context.sink)?;
        show_objects(&before, &now, context)?;
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
            unmapped: now.unmapped,
            unmapped_before: before.unmapped,
            folio_rests: now.rests,
            folio_rests_before: before.rests,
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
        let accounting = accounting.opening_deleted_files(self.is_full);
        let (mut sums, stopped) = add_all(accounting, by, symbols.as_mut(), context.sink)?;
        if let Some(stopped) = stopped {
            return Err(stopped.into());
        }
        let found = sums.objects()?;
        let mut objects = BTreeMap::new();
        for object in &found.all {
            let bytes: &mut u64 = objects.entry(object.name.to_string()).or_default();
            *bytes = bytes.saturating_add(object.unmapped());
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
        Ok(Sums {
            groups,
            total: sums.all.total(),
            objects: found.unknown.clone().map_or(Ok(objects), Err),
            unmapped: found.unmapped(),
            rests: rests::sum(&sums.rests()),
        })
    }
}

/// Objects that are shown; the sums have all.
const MOST_OBJECTS: usize = 10;

/// Shows the objects that changed, if the list of both is complete: an object that one lacks may have been there.
fn show_objects(before: &Sums, now: &Sums, context: &mut Context) -> Result<(), Error> {
    let (before, now) = match (&before.objects, &now.objects) {
        (Ok(before), Ok(now)) => (before, now),
        (Err(reason), _) | (_, Err(reason)) => {
            return Ok(context.sink.note(format!("objects without a mapping are not compared: {reason}"))?);
        }
    };
    let rows = changes(OBJECT, before, now);
    let changed = rows.iter().filter(|row| row.bytes != row.before);
    changed.clone().take(MOST_OBJECTS).try_for_each(|row| context.sink.emit(row))?;
    note_hidden_rows(changed.count().saturating_sub(MOST_OBJECTS), "object", context.sink)?;
    Ok(())
}

/// The rows of all keys, those that changed most first.
fn changes(by: &str, before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<AccountChange> {
    let of = |sums: &BTreeMap<String, u64>, key: &String| sums.get(key).copied().unwrap_or_default();
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let row = |key: &String| AccountChange {
        by: by.to_owned(),
        key: key.clone(),
        before: of(before, key),
        bytes: of(now, key),
    };
    let mut rows: Vec<AccountChange> = keys.into_iter().map(row).collect();
    rows.sort_by_cached_key(|row| Reverse((row.bytes.abs_diff(row.before), row.bytes)));
    rows
}

/// The bytes of each class or group by its name, and of all.
struct Sums {
    groups: BTreeMap<String, u64>,
    total: u64,
    /// The bytes of objects by name that are in no page table of the process. Unknown if there may be more objects.
    objects: Fact<BTreeMap<String, u64>>,
    /// The same of all objects.
    unmapped: Fact<u64>,
    /// The bytes of large folios of which it maps only a part.
    rests: Fact<u64>,
}
