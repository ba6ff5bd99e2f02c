//! `info line ADDRESS`, `info line FILE:LINE`.

use super::{About, Context, Example, Flow, Group, Outcome};
use crate::eval;
use crate::kernel::VirtualAddress;
use crate::lang::{Expression, Name, Spanned, SymbolName};
use crate::report::{LineFrame, LineReport, Note, Reason, Record, Sink, Stopped, SymbolBrief, Why};
use crate::symbol::{LineAt, NoLines, View};

pub(super) const ABOUT: About = About {
    name: "info line",
    group: Group::Memory,
    summary: "the line of the source behind an address, or the addresses of a line",
    text: "The file and line that the code at an address was compiled from, its function, and the functions that \
           this one was inlined into. FILE:LINE instead of an address lists where that line has code; the end of the \
           file's path is enough, and paths with slashes or hyphens go in quotes: 'src/server.c':210. As in gdb a * \
           may stand before an address. Debug information is read from the module or from the file that belongs to \
           it, and only here.",
    examples: &[
        Example {
            line: "info line pmdb::main",
            does: "the line that a function begins at",
        },
        Example {
            line: "info line areas.rs:66",
            does: "where that line has code",
        },
    ],
};

pub(super) fn run(context: &mut Context, place: &Spanned<Expression>) -> Outcome {
    let target = context.target()?;
    let addresses = match &place.node {
        Expression::SourceLine { file, line } => {
            let mut stopped = None;
            let mut stop = || context.sink.check().inspect_err(|why| stopped = Some(*why));
            let found = eval::lines(file, line, &*context.state, &mut stop);
            if let Some(stopped) = stopped {
                return Err(stopped.into());
            }
            let found = found?;
            if let Some(next) = found.line.filter(|&next| next != line.node) {
                let (file, line) = (&file.node, line.node);
                let message =
                    format!("{file}:{line} has no code; the next line that has is {next}");
                context.sink.emit(Record::Note(Note { message }))?;
            }
            found.addresses
        }
        _ => match eval::address(place, context.state) {
            Ok(address) => vec![address],
            Err(error) => namesakes(place, context).ok_or_else(|| without_line(place, error))?,
        },
    };
    if let [only] = addresses[..] {
        context.state.last_address = Some(only);
        // As in gdb, where a bare x shows the code of the line that was asked for.
        context.state.examined.next = Some(only);
    }
    let regions = target.process.regions()?;
    let names = context.state.symbols.over(&target, &regions);
    for address in addresses {
        let report = report(&names, address, context.sink)?;
        if let Expression::SourceLine { file, line } = &place.node
            && let Some(note) = superseded(&report, &file.node, line.node)
        {
            context.sink.emit(Record::Note(note))?;
        }
        context.sink.emit(Record::Line(Box::new(report)))?;
    }
    Ok(Flow::Done)
}

/// A name with a dot is more likely a file alone than a symbol.
fn without_line(place: &Spanned<Expression>, error: eval::Error) -> eval::Error {
    match &place.node {
        Expression::Name(name) if name.0.contains('.') => {
            error.hint(format!("of a file it takes a line too: info line {name}:1"))
        }
        _ => error,
    }
}

/// Where the functions are that share a name: each is told, as in gdb.
fn namesakes(place: &Spanned<Expression>, context: &Context) -> Option<Vec<VirtualAddress>> {
    let (module, symbol) = match &place.node {
        Expression::Name(name) => (None, Spanned::new(name.clone(), place.at)),
        Expression::ModuleSymbol { module, symbol } => (Some(module.clone()), symbol.clone()),
        _ => return None,
    };
    let found = eval::symbols(&SymbolName { module, symbol }, context.state).ok()?;
    let mut addresses: Vec<_> = found.iter().map(|symbol| symbol.start).collect();
    addresses.sort_unstable();
    addresses.dedup();
    (addresses.len() > 1).then_some(addresses)
}

/// That a line is told at an address whose code belongs to the line that follows there.
fn superseded(report: &LineReport, file: &Name, line: u64) -> Option<Note> {
    let told = report.line?;
    let is_of_it = report.frames.iter().any(|frame| frame.line == Some(line));
    let address = report.address;
    (!is_of_it).then(|| Note {
        message: format!(
            "{file}:{line} begins at {address} but has no code there: it is of line {told}"
        ),
    })
}

fn report(
    names: &View,
    address: VirtualAddress,
    sink: &mut dyn Sink,
) -> Result<LineReport, Stopped> {
    let LineAt {
        module,
        frames,
        missing,
    } = names.line_at(address, &mut || sink.check())?;
    let last = frames.len().saturating_sub(1);
    let frames: Vec<LineFrame> = frames
        .into_iter()
        .enumerate()
        .map(|(number, frame)| LineFrame {
            function: frame.name(),
            file: frame.file,
            line: frame.line,
            column: frame.column,
            inlined: number < last,
        })
        .collect();
    let first = frames.first();
    let mut why = Why::default();
    let reason = |why: &NoLines| Reason::NotInFile(why.to_string());
    match (first, &missing) {
        (None, missing) => {
            let missing = missing.as_ref().map_or(Reason::Changed, reason);
            why.note("file", &missing);
            why.note("line", &missing);
        }
        (Some(first), missing) => {
            if first.line.is_none() {
                why.note("line", &reason(&NoLines::NoLine));
            }
            if let Some(missing) = missing {
                why.note("frames", &reason(missing));
            }
        }
    }
    Ok(LineReport {
        address,
        module: module.map(|module| module.file_name()),
        symbol: names.at(address).map(|symbol| SymbolBrief {
            name: symbol.name(),
            offset: symbol.offset,
            module: symbol.module.file_name(),
        }),
        file: first.and_then(|first| first.file.clone()),
        line: first.and_then(|first| first.line),
        column: first.and_then(|first| first.column),
        frames,
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_whose_code_is_of_another_line_says_so() {
        let frame = |line, inlined| LineFrame {
            function: None,
            file: None,
            line: Some(line),
            column: None,
            inlined,
        };
        let report = LineReport {
            address: VirtualAddress::new(0x4010c0),
            module: None,
            symbol: None,
            file: None,
            line: Some(31),
            column: None,
            frames: vec![frame(31, true), frame(44, false)],
            why: Why::default(),
        };
        let file = Name("c.c".into());
        let note = superseded(&report, &file, 30).map(|note| note.message);
        let said = "c.c:30 begins at 0x4010c0 but has no code there: it is of line 31";
        assert_eq!(note.as_deref(), Some(said));
        assert!(superseded(&report, &file, 31).is_none());
        assert!(
            superseded(&report, &file, 44).is_none(),
            "it calls what is there"
        );
        let unknown = LineReport {
            line: None,
            ..report
        };
        assert!(superseded(&unknown, &file, 30).is_none());
    }
}
