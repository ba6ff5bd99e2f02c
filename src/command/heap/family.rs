//! The heaps of several processes: a row for each, and their sum.

use super::super::account::family::FamilyOf;
use super::super::floor::{Context, Error, Flow, Outcome};
use super::super::rows::{RowLimit, keep_shown, note_hidden_rows, stop_of_sweep};
use super::one::heaps;
use super::records::{HeapFamily, ProcessRow};
use super::rows::{Found, HeapKey, emit};
use crate::process::{self, OpenedProcess, ProcessHandle, Target};
use crate::report::Stopped;
use std::sync::Arc;

/// What was found so far.
#[derive(Default)]
struct FamilyHeaps {
    sums: HeapFamily,
    rows: Vec<ProcessRow>,
    arenas: Vec<Found>,
    /// Why the first process that was left out was.
    error: Option<Error>,
}

pub(super) fn run(of: &FamilyOf, by: Option<HeapKey>, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    let (processes, _) = of.processes(context)?;
    let listed = processes.len() as u64;
    let (mut found, mut done) = (FamilyHeaps::default(), 0);
    let mut read = || {
        for process in &processes {
            context.sink.progress(done, listed, "processes")?;
            found.add(process, context)?;
            done += 1;
        }
        Ok(())
    };
    let read = read();
    let stopped = stop_of_sweep(read, context.sink)?;
    found.sums.not_read = listed - done;
    let FamilyHeaps { sums, mut rows, arenas, error } = found;
    match (stopped, error) {
        (Some(Stopped::Closed), _) => return Err(Stopped::Closed.into()),
        // A sum of nothing is no answer.
        (None, Some(error)) if rows.is_empty() => return Err(error),
        _ => context.sink.emit(&sums)?,
    }
    match by {
        Some(by) => _ = emit(by, arenas, cut, context)?,
        None => {
            let more = keep_shown(&mut rows, cut, |row| row.resident.as_ref().copied().unwrap_or_default());
            rows.iter().try_for_each(|row| context.sink.emit(row))?;
            note_hidden_rows(more, "process", context.sink)?;
        }
    }
    stopped.map_or(Ok(Flow::Done), |stopped| Err(stopped.into()))
}

impl FamilyHeaps {
    /// Reads a process. One that cannot be read is left out.
    fn add(&mut self, process: &ProcessHandle, context: &mut Context) -> Result<(), Error> {
        let machine = Arc::clone(context.state.machine());
        let opened = machine.open(process);
        let is_kernel_thread = matches!(opened, Err(process::Error::NotAvailable { .. })) && !machine.is_captured();
        let opened = opened.map_err(Error::from).and_then(|OpenedProcess { process, modules }| {
            process.set_scan(context.state.settings.scan);
            let process = process.with_budget(context.sink.budget());
            heaps(&Target { process, machine, modules }, context)
        });
        let error = match opened {
            Ok((summary, arenas)) => {
                self.sums.add(&summary, &arenas);
                self.arenas.extend(arenas.into_iter().map(|arena| (Some(summary.pid), arena)));
                self.rows.push(ProcessRow::of(summary));
                return Ok(());
            }
            Err(error) => error,
        };
        let sums = &mut self.sums;
        *match &error {
            _ if is_kernel_thread => &mut sums.kernel_threads,
            Error::Refused { .. } => &mut sums.without_memory,
            Error::Target(process::Error::NotPermitted { .. }) => &mut sums.refused,
            Error::Target(process::Error::Gone { .. }) => &mut sums.ended,
            _ => return Err(error),
        } += 1;
        self.error.get_or_insert(error);
        Ok(())
    }
}
