//! `info line ADDRESS`, `info line FILE:LINE`.

use super::floor::{About, Command, CommandName, Context, Flow, Group, Outcome, example};
use super::translate::brief;
use crate::eval;
use crate::kernel::{Name as TargetName, VirtualAddress};
use crate::lang::parser::{Parsed, Tokens, address, silent_mark};
use crate::lang::{Expected, Expression, Spanned, SymbolName, WrittenName};
use crate::render::Record;
use crate::render::text::footnotes::Footnotes;
use crate::render::text::lines::Lines;
use crate::render::text::{Text, block};
use crate::render::theme::Role;
use crate::report::record::record;
use crate::report::{Declared, Fact, Reason, Shape, Stopped, SymbolBrief, Why};
use crate::symbol::{Frame, LineAt, LinePlace, NoLines, TargetSymbols};
use nom::Parser;
use nom::combinator::{map, opt};
use nom::sequence::preceded;
use std::fmt::{self, Formatter};

/// Why a function has no name.
const UNNAMED: &str = "the debug information names no function there";
/// The most places of one line that are shown; the rest is counted.
const MOST_PLACES: usize = 100;

/// `info line ADDRESS`, `info line FILE:LINE`. The `*` that gdb needs before an address is dropped.
#[derive(Debug)]
pub struct InfoLine(pub(super) Spanned<Expression>);

impl Command for InfoLine {
    const RECORDS: &'static [Shape] = &[LineReport::SHAPE];
    const ABOUT: About = About {
        name: CommandName::new("info line").displayed(),
        group: Group::Memory,
        summary: "find the source line of an address, or a line's addresses",
        text: "\
For an address, shows the file and the line of its code, its function, and the functions that this one was inlined \
into. For FILE:LINE, lists all code of that line, in every function and in every inlined copy.

The end of the file's path is enough. Put a path with slashes or hyphens in quotes: 'src/server.c':210. Tab \
completes the names of source files, with their quotes: those of the program, and of libraries whose lines were \
shown before.

As in gdb, a * may precede an address. Only this command reads debug information, from the module or its debug files.",
        examples: &[
            example("info line pmdb::main", "show the first line of a function"),
            example("info line pmdb::main + 8", "show the line of code inside a function"),
        ],
    };

    #[cfg(test)]
    fn samples() -> Vec<Box<dyn Record>> {
        samples::all()
    }

    fn parse(input: Tokens<'_>) -> Parsed<'_, Self> {
        input.expect(Expected::SourceFile);
        map(preceded(opt(silent_mark("*")), address), InfoLine).parse(input)
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.node.to_string() {
            // The first star would be taken for gdb's.
            read if read.starts_with('*') => write!(f, " *{read}"),
            address => write!(f, " {address}"),
        }
    }

    fn run(&self, context: &mut Context) -> Outcome {
        let InfoLine(place) = self;
        if let Expression::SourceLine { file, line } = &place.node {
            return run_line(context, file, line);
        }
        let target = context.target()?;
        let addresses = match eval::address(place, context.state) {
            Ok(address) => vec![address],
            Err(error) => namesakes(place, context).ok_or_else(|| without_line(place, error))?,
        };
        if let [only] = addresses[..] {
            come_to(context, only);
        }
        for address in addresses {
            let regions = context.state.symbols.regions_at(&target, address)?;
            let names = context.state.symbols.over(&target, &*regions);
            let found = names.line_at(address).map_err(Stopped::from)?;
            let report = report(&names, address, found);
            context.sink.emit(&report)?;
            if let Expression::Integer(number) = place.node
                && regions.iter().all(|region| !region.range.contains(address))
            {
                // In gdb a number is a line of the current file.
                let message = format!("a number is an address; for a line, name its file: `info line FILE:{number}`");
                context.sink.note(message)?;
            }
        }
        Ok(Flow::Done)
    }
}

/// All code of a line.
fn run_line(context: &mut Context, file: &Spanned<WrittenName>, line: &Spanned<u64>) -> Outcome {
    let target = context.target()?;
    let search = eval::lines(file, line, MOST_PLACES, &*context.state);
    // After Ctrl-C there is no answer to explain.
    context.sink.check()?;
    let search = search?;
    if let Some(next) = search.line.filter(|&next| next != line.node) {
        let has_code = search.places.iter().any(|place| place.start < place.end);
        let message = elsewhere(&file.node, line.node, next, has_code);
        context.sink.note(message)?;
    }
    if let [only] = search.firsts()[..] {
        come_to(context, only);
    }
    let all = search.places.len();
    let mut shown = 0;
    for place in &search.places {
        let LinePlace { start, known, .. } = place;
        let Some(known) = known.clone().filter(|_| shown < MOST_PLACES) else {
            continue;
        };
        shown += 1;
        let regions = context.state.symbols.regions_at(&target, *start)?;
        let names = context.state.symbols.over(&target, &*regions);
        let report = LineReport { first: Some(place.is_first), ..report(&names, *start, known) };
        context.sink.emit(&report)?;
    }
    if let Some(message) = left_out(all - shown) {
        context.sink.note(message)?;
    }
    if let Some(unasked) = eval::modules_without_lines(&search) {
        let message = format!("some modules could not be searched: {unasked}");
        context.sink.note(message)?;
    }
    Ok(Flow::Done)
}

/// The note that another line is shown: the next one in the debug information, which may have no code either.
fn elsewhere(file: &WrittenName, line: u64, next: u64, has_code: bool) -> String {
    if has_code {
        format!("{file}:{line} has no code; the next line that has is {next}")
    } else {
        format!("{file}:{line} has no code; the next line in the debug information is {next}")
    }
}

/// As in gdb, `$_` is the address, and a bare `x` shows the code there.
fn come_to(context: &mut Context, address: VirtualAddress) {
    context.state.last_address = Some(address);
    context.state.examined.next = Some(address);
}

/// The note about places that are not shown.
fn left_out(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("the line has code at 1 more place".into()),
        _ => Some(format!("the line has code at {count} more places")),
    }
}

/// A name with a dot is more likely a file alone than a symbol.
fn without_line(place: &Spanned<Expression>, error: eval::Error) -> eval::Error {
    match &place.node {
        Expression::Name(name) if name.0.contains('.') => error.hint(format!("add a line: `info line {name}:1`")),
        _ => error,
    }
}

/// The addresses of all functions with the same name: each is shown, as in gdb.
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

fn report(names: &TargetSymbols, address: VirtualAddress, found: LineAt) -> LineReport {
    let LineAt { module, row, frames, missing } = found;
    let last = frames.len().saturating_sub(1);
    let told_by_symbol = frames.iter().find(|frame| frame.is_named_by_symbol);
    let told_by_symbol = told_by_symbol.and_then(Frame::name);
    let frames: Vec<LineFrame> = frames
        .into_iter()
        .enumerate()
        .map(|(number, frame)| line_frame(frame, number, last, missing.as_ref()))
        .collect();
    let missing = missing.as_ref().map(in_file);
    let mut why = Why::default();
    if let Some(reason) = note_on_frames(missing.as_ref(), told_by_symbol.as_ref()) {
        why.note("frames", &reason);
    }
    let missing = missing.unwrap_or(Reason::Changed);
    let first = frames.first().ok_or(&missing);
    LineReport {
        address,
        start: row.map(|(start, _)| start).ok_or_else(|| missing.clone()),
        end: row.map(|(_, end)| end).ok_or_else(|| missing.clone()),
        module: module.map(|module| module.file_name()).ok_or_else(|| in_file(&NoLines::NoModule)),
        symbol: brief(names, address).ok_or_else(|| no_symbol(names, address)),
        file: first.map_err(Reason::clone).and_then(|first| first.file.clone()),
        line: first.map_err(Reason::clone).and_then(|first| first.line.clone()),
        column: first.map_err(Reason::clone).and_then(|first| first.column.clone()),
        first: None,
        frames,
        why,
    }
}

/// Why the frames are incomplete, and whether a name comes from a symbol.
fn note_on_frames(missing: Option<&Reason>, told_by_symbol: Option<&TargetName>) -> Option<Reason> {
    let Some(name) = told_by_symbol else {
        return missing.cloned();
    };
    let unnamed = missing.map_or_else(|| UNNAMED.to_owned(), Reason::to_string);
    let text = format!("{unnamed}; {name} is the symbol that the code lies in");
    Some(Reason::NotInFile(text))
}

/// A frame by its number, of which `last` is the function that the code belongs to.
fn line_frame(frame: Frame, number: usize, last: usize, missing: Option<&NoLines>) -> LineFrame {
    let is_call = number > 0;
    let unnamed = || missing.map_or_else(|| Reason::NotInFile(UNNAMED.into()), in_file);
    let function = frame.name().ok_or_else(unnamed);
    let no_file = if is_call {
        "the debug information does not contain the file of the call"
    } else {
        "the line table does not contain the file"
    };
    let no_line = || {
        let of_call = Reason::NotInFile("the debug information does not contain the place of the call".into());
        if is_call { of_call } else { in_file(&NoLines::NoLine) }
    };
    LineFrame {
        function,
        file: frame.file.ok_or_else(|| Reason::NotInFile(no_file.into())),
        line: frame.line.ok_or_else(no_line),
        column: frame.column.ok_or(Reason::NotApplicable("the compiler recorded no column")),
        inlined: number < last,
    }
}

fn in_file(why: &NoLines) -> Reason {
    Reason::NotInFile(why.to_string())
}

fn no_symbol(names: &TargetSymbols, address: VirtualAddress) -> Reason {
    match names.module_at(address) {
        None => Reason::NotApplicable("it is in no module"),
        Some(module) => match names.reason(module) {
            Some(reason) => Reason::NotInFile(reason.to_string()),
            None => Reason::NotApplicable("no symbol of its module covers it"),
        },
    }
}

record! {
    /// `info line`
    pub struct LineReport as "line" with why {
        /// The address; for a line, the first address of its code.
        address: VirtualAddress,
        /// The first address of the code of the same line.
        start: Fact<VirtualAddress>,
        /// The address after that code; equal to `start` if the line has no code of its own there.
        end: Fact<VirtualAddress>,
        /// File name of the module it belongs to.
        module: Fact<TargetName>,
        /// The symbol it lies in.
        symbol: Fact<SymbolBrief>,
        /// Source file, with the path that the compiler recorded.
        file: Fact<TargetName>,
        /// Line, from 1.
        line: Fact<u64>,
        /// Column, from 1.
        column: Fact<u64>,
        /// For a line, whether a debugger stops here. That is at its first statement in the function or inlined copy,
        /// or at its first code without a statement.
        [optional] first: Option<bool>,
        /// The function and the functions that it was inlined into, the innermost first. The first one has the file and
        /// line above.
        frames: Vec<LineFrame>,
        /// Why `frames` is not complete.
        [flat] why: Why,
    }

    /// A function around an address.
    #[derive(Eq)]
    pub struct LineFrame with why {
        /// Demangled name.
        function: Fact<TargetName>,
        /// Source file.
        file: Fact<TargetName>,
        /// Line of the address, or of the call to the function before.
        line: Fact<u64>,
        /// Column on that line.
        column: Fact<u64>,
        /// Whether it was inlined into the next.
        inlined: bool,
    }
}

impl Record for LineReport {
    fn write(&self, text: &mut Text) {
        text.block(write_block, self);
    }
}

/// `0x401136 <main+4> of demo, in 0x401132..0x40113a`, or for a line `0x401132..0x40113a <main> of demo`; then a line
/// for each function, the innermost first.
fn write_block(lines: &mut Lines, report: &LineReport) {
    let line = lines.line();
    let is_of_line = report.first.is_some();
    let range = report.start.as_ref().ok().copied().zip(report.end.as_ref().ok().copied());
    let range = range.filter(|(start, end)| start < end);
    match range.filter(|_| is_of_line) {
        Some((start, end)) => line.push(Role::Address, format!("{start}..{end}")),
        None => line.push(Role::Address, report.address),
    };
    if let Ok(symbol) = &report.symbol {
        block::symbol(line.plain(" "), symbol);
    }
    if let Ok(module) = &report.module {
        line.plain(" of ").push(Role::Name, module);
    }
    match (range, report.first) {
        (Some((start, end)), None) => {
            line.plain(", in ").push(Role::Address, format!("{start}..{end}"));
        }
        (None, Some(_)) => {
            line.push(Role::Dim, ", where it begins without code");
        }
        (Some(_), Some(false)) => _ = line.push(Role::Dim, ", not its first statement"),
        _ => {}
    }
    for frame in &report.frames {
        write_frame(lines, frame);
    }
    footnotes(report).write(lines);
}

/// The reasons that a reader needs: a missing line also explains a missing column.
fn footnotes(report: &LineReport) -> Footnotes {
    let mut notes = Footnotes::default();
    let line = report.line.as_ref().err();
    for (field, reason) in
        [("module", report.module.as_ref().err()), ("file", report.file.as_ref().err()), ("line", line)]
    {
        if let Some(reason) = reason {
            notes.add(field, reason);
        }
    }
    if let Some(reason) = report.why.of("frames").filter(|reason| line != Some(*reason)) {
        notes.add("frames", reason);
    }
    notes
}

/// ` parse at /src/server.c:210:5, inlined into`
fn write_frame(lines: &mut Lines, frame: &LineFrame) {
    let line = lines.line();
    line.plain("  ").indent(4);
    if let Ok(function) = &frame.function {
        line.push(Role::Symbol, function).plain(" ");
    }
    line.plain("at ");
    match &frame.file {
        Ok(file) => line.push(Role::Name, file),
        Err(_) => line.push(Role::Dim, "an unknown file"),
    };
    match &frame.line {
        Ok(number) => {
            line.plain(format!(":{number}"));
            if let Ok(column) = &frame.column {
                line.plain(format!(":{column}"));
            }
        }
        Err(_) => _ = line.plain(", no line"),
    }
    if frame.inlined {
        line.push(Role::Dim, ", inlined into");
    }
}

/// Samples of its records.
#[cfg(test)]
pub(in crate::command) mod samples {
    use super::*;
    use crate::command::tests::records::pages::va;

    pub fn all() -> Vec<Box<dyn Record>> {
        let [place, place_behind, place_without_code] = line_places();
        vec![
            Box::new(line()),
            Box::new(place),
            Box::new(place_behind),
            Box::new(place_without_code),
            Box::new(no_line()),
        ]
    }

    pub fn line() -> LineReport {
        let file = Ok(TargetName::from("/src/server.c"));
        LineReport {
            address: va(0x555555555139),
            start: Ok(va(0x555555555131)),
            end: Ok(va(0x555555555140)),
            module: Ok(TargetName::from("demo")),
            symbol: Ok(SymbolBrief { name: TargetName::from("handle"), offset: 25, module: TargetName::from("demo") }),
            file: file.clone(),
            line: Ok(210),
            column: Ok(5),
            first: None,
            frames: vec![
                LineFrame {
                    function: Ok(TargetName::from("parse::header(char const*)")),
                    file: file.clone(),
                    line: Ok(210),
                    column: Ok(5),
                    inlined: true,
                },
                LineFrame {
                    function: Ok(TargetName::from("handle")),
                    file,
                    line: Ok(300),
                    column: Err(Reason::NotApplicable("the compiler told no column")),
                    inlined: false,
                },
            ],
            why: Why::default(),
        }
    }

    /// Stretches of code of one line: the first, one behind it, and one where it has no code.
    pub fn line_places() -> [LineReport; 3] {
        let place = |start, end, first| LineReport {
            address: va(start),
            start: Ok(va(start)),
            end: Ok(va(end)),
            first: Some(first),
            ..line()
        };
        [
            place(0x555555555131, 0x555555555140, true),
            place(0x555555555148, 0x55555555514c, false),
            place(0x555555555160, 0x555555555160, true),
        ]
    }

    pub fn no_line() -> LineReport {
        let missing = || Reason::NotInFile("no debug information in libc.so.6".into());
        let mut why = Why::default();
        why.note("frames", &missing());
        LineReport {
            start: Err(missing()),
            end: Err(missing()),
            module: Ok(TargetName::from("libc.so.6")),
            symbol: Err(Reason::NotApplicable("no symbol of its module covers it")),
            file: Err(missing()),
            line: Err(missing()),
            column: Err(missing()),
            frames: Vec::new(),
            why,
            ..line()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(line: Option<u64>, function: Option<&str>) -> Frame {
        Frame { function: function.map(TargetName::from), is_named_by_symbol: false, file: None, line, column: None }
    }

    /// Which of its function, file, line and column are unknown.
    fn unknown(frame: &LineFrame) -> [bool; 4] {
        [frame.function.is_err(), frame.file.is_err(), frame.line.is_err(), frame.column.is_err()]
    }

    #[test]
    fn what_a_frame_does_not_tell_has_its_reason() {
        let written = line_frame(frame(Some(7), Some("f")), 0, 1, None);
        assert_eq!(unknown(&written), [false, true, false, true]);
        assert!(written.inlined);
        let missing = NoLines::NotNamed;
        let written = line_frame(frame(None, None), 1, 1, Some(&missing));
        assert_eq!(written.function, Err(in_file(&missing)));
        assert_eq!(unknown(&written), [true; 4]);
        assert!(!written.inlined);
    }

    #[test]
    fn a_name_that_only_a_symbol_tells_is_said_to_be_one() {
        let name = TargetName::from("work");
        let sentence = |missing, name| {
            let reason = note_on_frames(missing, name);
            reason.map_or_else(String::new, |reason| reason.to_string())
        };
        assert_eq!(sentence(None, None), "");
        let missing = in_file(&NoLines::NotNamed);
        assert_eq!(sentence(Some(&missing), None), missing.to_string());
        for missing in [None, Some(&missing)] {
            let first = missing.map_or(UNNAMED.to_owned(), Reason::to_string);
            let expected = format!("{first}; work is the symbol that the code lies in");
            assert_eq!(sentence(missing, Some(&name)), expected);
        }
    }

    #[test]
    fn a_line_without_code_is_not_said_to_have_some() {
        let file = WrittenName("f.c".to_owned());
        assert!(elsewhere(&file, 3, 5, true).ends_with("the next line that has is 5"));
        assert!(elsewhere(&file, 3, 5, false).ends_with("the next line in the debug information is 5"));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(left_out(0), None);
        assert!(left_out(1).is_some_and(|text| text.ends_with("1 more place")));
        assert!(left_out(7).is_some_and(|text| text.ends_with("7 more places")));
    }
}
