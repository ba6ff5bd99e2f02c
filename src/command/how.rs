//! Runs a command; with `--how` it shows the reads behind the answer, after it.

use super::{Context, Error, Outcome};
use crate::lang::{How, ParsedCommand};
use crate::render::Sink;
use crate::report::{Hex, KernelRead, ReadsSummary, Stopped};
use crate::source::recorded::{Log, Read, Reads, dump_of_any};
use std::sync::Arc;

/// Runs a command, with its reads after `--how`.
pub(super) fn run(command: &dyn ParsedCommand, context: &mut Context) -> Outcome {
    let Some(found) = context.commands.find(command) else {
        return Err(Error::refused(format!("`{command}` is not a command"), "see `help`"));
    };
    match command.downcast_ref() {
        Some(How(_)) => with_reads(context, |context| found.run(context)),
        None => found.run(context),
    }
}

/// Runs a command, records its reads, and emits them when it has ended, even if it failed or was interrupted.
fn with_reads(context: &mut Context, command: impl FnOnce(&mut Context) -> Outcome) -> Outcome {
    let log = Arc::default();
    let before = context.state.record(&log);
    let outcome = command(context);
    context.state.end_recording(before);
    match outcome {
        // Nobody reads any more.
        Err(Error::Stopped(Stopped::Closed)) => outcome,
        Err(error) => {
            // The command's own error matters more than one of the output.
            let _ = emit(context.sink, &log);
            Err(error)
        }
        Ok(flow) => {
            emit(context.sink, &log)?;
            Ok(flow)
        }
    }
}

fn emit(sink: &mut dyn Sink, log: &Log) -> Result<(), Stopped> {
    let Reads { kept, more_reads, more_words } = log.take();
    let reads = kept.len() as u64;
    for read in kept {
        sink.emit(&record(read))?;
    }
    sink.emit(&ReadsSummary { reads, more_reads, more_words, repeat: dump_of_any() })
}

fn record(read: Read) -> KernelRead {
    KernelRead {
        file: read.file,
        offset: read.offset.map(Hex),
        length: read.length,
        words: read.words.into_iter().map(Hex).collect(),
        what: read.what,
        found: read.found,
        times: read.times,
        repeat: read.repeat,
    }
}
