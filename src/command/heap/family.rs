//! The heaps of several processes: a row for each, and their sum.

use super::super::account::family::FamilyOf;
use super::super::floor::{Context, Error, Flow, Outcome};
use super::super::rows::{RowLimit, keep_shown, note_hidden_rows};
use super::one::heaps;
use super::records::{HeapFamily, ProcessRow};
use super::rows::{HeapKey, emit};
use crate::process::{self, OpenedProcess, Target};
use std::sync::Arc;

pub(super) fn run(of: &FamilyOf, by: Option<HeapKey>, cut: Option<RowLimit>, context: &mut Context) -> Outcome {
    let (processes, _) = of.processes(context)?;
    let machine = Arc::clone(context.state.machine());
    let mut sums = HeapFamily::default();
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    let mut first = None;
    for (done, one) in (0..).zip(&processes) {
        context.sink.progress(done, processes.len() as u64, "processes")?;
        let opened = machine.open(one);
        let is_kernel_thread = matches!(opened, Err(process::Error::NotAvailable { .. })) && !machine.is_captured();
        let opened = opened.map_err(Error::from).and_then(|OpenedProcess { process, modules }| {
            process.set_scan(context.state.settings.scan);
            let process = process.with_budget(context.sink.budget());
            let target = Target { process, machine: Arc::clone(&machine), modules };
            heaps(&target, context)
        });
        let error = match opened {
            Ok((summary, arenas)) => {
                sums.add(&summary);
                all.extend(arenas.into_iter().map(|arena| (Some(summary.pid), arena)));
                rows.push(ProcessRow::of(summary));
                continue;
            }
            Err(error) => error,
        };
        *match &error {
            _ if is_kernel_thread => &mut sums.kernel_threads,
            Error::Refused { .. } => &mut sums.without_memory,
            Error::Target(process::Error::NotPermitted { .. }) => &mut sums.refused,
            Error::Target(process::Error::Gone { .. }) => &mut sums.ended,
            _ => return Err(error),
        } += 1;
        first.get_or_insert(error);
    }
    // A sum of nothing is no answer.
    if let Some(error) = first.filter(|_| rows.is_empty()) {
        return Err(error);
    }
    context.sink.emit(&sums)?;
    if let Some(by) = by {
        return emit(by, all, cut, context);
    }
    let more = keep_shown(&mut rows, cut, |row| row.resident.as_ref().copied().unwrap_or_default());
    for row in &rows {
        context.sink.emit(row)?;
    }
    note_hidden_rows(more, "process", context.sink)?;
    Ok(Flow::Done)
}
