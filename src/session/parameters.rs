//! The arguments that a command file or a user-defined command takes.
//!
//! The comments at the beginning of a file may declare them, in an indented line with the name of the file:
//! `oom.pmdb PID LIMIT [SECONDS]`. A file without such a line, and a user-defined command, takes the arguments that its
//! lines read. If they read `$argc`, it takes any number.

use crate::lang::script::{Block, Node, ScriptStatement};
use crate::lang::{Span, Spanned};
use std::path::Path;

/// The arguments that a command file, a user-defined command or a line takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// What takes them, as it is written: `:oom`.
    name: String,
    /// Its usage, if it has one.
    declared: Option<Declared>,
    /// The most arguments; `None` for any number.
    most: Option<usize>,
}

impl Parameters {
    /// Returns those of a file that cannot be read before it runs.
    pub fn unknown(path: &Path) -> Self {
        Parameters { name: path.display().to_string(), declared: None, most: None }
    }

    /// Returns those of a line.
    pub fn of_line(option: &str, line: &str) -> Self {
        let mut reads = Reads::default();
        reads.add_text(line);
        Parameters { name: option.to_owned(), declared: None, most: reads.most() }
    }

    /// Returns those of a command that `define` makes.
    pub(super) fn of_command(name: &str, body: &Block) -> Self {
        let mut reads = Reads::default();
        body.0.iter().for_each(|statement| reads.add(statement));
        Parameters { name: name.to_owned(), declared: None, most: reads.most() }
    }

    pub(super) fn of_file(path: &Path, statements: &[ScriptStatement]) -> Self {
        let mut reads = Reads::default();
        statements.iter().for_each(|statement| reads.add(statement));
        let lines = statements.iter().map(|statement| &*statement.text);
        let declared = declared(path, lines.take_while(|line| line.starts_with('#')));
        let most = match &declared {
            Some(Declared { arguments, .. }) if arguments.iter().any(|word| is_repeated(word)) => None,
            Some(Declared { arguments, .. }) => Some(arguments.len().max(reads.read)),
            None => reads.most(),
        };
        Parameters { name: path.display().to_string(), declared, most }
    }

    /// Returns why it cannot run with so few arguments, if it cannot.
    pub(super) fn fault_of_missing(&self, given: usize, caller: Caller) -> Option<String> {
        let declared = self.declared.as_ref()?;
        let arguments = declared.arguments.iter().map(String::as_str);
        let needed: Vec<&str> = arguments.take_while(|word| !word.starts_with('[')).collect();
        let missing = needed.get(given..).filter(|missing| !missing.is_empty())?.join(" and ");
        Some(format!("`{}` needs {missing}: {}", self.name, self.usage(declared, caller)))
    }

    /// Returns the number of the first argument that it does not take, if it is given so many.
    pub(super) fn first_surplus(&self, given: usize) -> Option<usize> {
        self.most.filter(|most| given > *most)
    }

    /// Returns what is wrong with an argument that it does not take.
    pub(super) fn fault_of_surplus(&self, argument: &str, caller: Caller) -> String {
        let of = &self.name;
        let taken = match (&self.declared, self.most) {
            (Some(declared), _) => self.usage(declared, caller),
            (None, Some(1)) => format!("`{of}` reads only $arg0"),
            (None, Some(most @ 2..)) => format!("`{of}` reads only $arg0 to $arg{}", most - 1),
            (None, _) => format!("`{of}` reads no arguments"),
        };
        format!("unexpected argument `{argument}`: {taken}")
    }

    /// `pmdb -batch -x :oom PID LIMIT [SECONDS]`
    fn usage(&self, declared: &Declared, caller: Caller) -> String {
        let before = match caller {
            Caller::Shell if !declared.has_process => return declared.line.clone(),
            Caller::Shell => format!("pmdb -batch -x {} PID", self.name),
            Caller::Line => format!("source {}", self.name),
        };
        std::iter::once(before).chain(declared.arguments.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
}

/// The usage in the comments of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Declared {
    /// All of it: `oom.pmdb PID LIMIT [SECONDS]`
    line: String,
    /// Whether it has a PID.
    has_process: bool,
    /// What follows: `LIMIT`, `[SECONDS]`.
    arguments: Vec<String>,
}

/// Where the arguments are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Caller {
    /// On the command line of pmdb, after the process.
    Shell,
    /// In a line.
    Line,
}

/// Checks that some of the command files and lines of a command line takes each of its arguments.
///
/// # Errors
/// Fails with what is wrong, in words.
pub fn check_arguments(takers: &[Parameters], arguments: &[String]) -> Result<(), String> {
    let surplus: Option<Vec<usize>> = takers.iter().map(|taker| taker.first_surplus(arguments.len())).collect();
    let Some(first) = surplus.and_then(|surplus| surplus.into_iter().max()) else {
        return Ok(());
    };
    let argument = arguments.get(first).map_or("", String::as_str);
    Err(match takers {
        [only] => only.fault_of_surplus(argument, Caller::Shell),
        _ => format!("unexpected argument `{argument}`: no -x and no -ex reads $arg{first}"),
    })
}

/// Returns what is wrong with an argument of a line, and its place.
pub(super) fn surplus_in_line<T>(taker: &Parameters, arguments: &[Spanned<T>], line: &str) -> Option<(Span, String)> {
    let at = arguments.get(taker.first_surplus(arguments.len())?)?.at;
    let typed = line.get(at.start..at.end).unwrap_or_default();
    Some((at, taker.fault_of_surplus(typed, Caller::Line)))
}

/// The arguments that lines read.
#[derive(Default)]
struct Reads {
    /// The number of the highest one, plus 1.
    read: usize,
    /// Whether they read `$argc`.
    counts: bool,
}

impl Reads {
    fn most(&self) -> Option<usize> {
        (!self.counts).then_some(self.read)
    }

    /// Adds the lines of a statement. A command that it defines has arguments of its own.
    fn add(&mut self, statement: &ScriptStatement) {
        if matches!(statement.node, Node::Define { .. } | Node::Document { .. }) {
            return;
        }
        if !statement.text.trim_start().starts_with('#') {
            self.add_text(&statement.text);
        }
        statement.node.blocks().flat_map(|block| &block.0).for_each(|inner| self.add(inner));
    }

    /// Adds what a line reads. A `$arg0` that is only text counts too.
    fn add_text(&mut self, text: &str) {
        for after in text.split("$arg").skip(1) {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let word = after.get(..end).unwrap_or_default();
            self.counts |= word == "c";
            let number = word.parse::<usize>().ok();
            self.read = self.read.max(number.map_or(0, |number| number.saturating_add(1)));
        }
    }
}

/// Returns the first indented comment with the name of the file, if it is a usage: words in capitals follow the name.
fn declared<'a>(path: &Path, comments: impl Iterator<Item = &'a str>) -> Option<Declared> {
    let name = path.file_name()?.to_str().map(plain_name)?;
    let mut lines = comments.filter_map(|line| line.strip_prefix("#  "));
    let (line, behind) = lines.find_map(|line| {
        let mut words = line.split_whitespace();
        words.find(|word| plain_name(word) == name)?;
        Some((line.trim(), words.collect::<Vec<_>>()))
    })?;
    let (has_process, arguments) = match &behind[..] {
        ["PID", arguments @ ..] => (true, arguments),
        arguments => (false, arguments),
    };
    let arguments: Option<_> = arguments.iter().map(|word| is_placeholder(word).then(|| (*word).to_owned())).collect();
    Some(Declared { line: line.to_owned(), has_process, arguments: arguments? })
}

/// Returns the name of a command file without its directories, its colon and its ending.
fn plain_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_prefix(':').unwrap_or(name);
    name.strip_suffix(".pmdb").unwrap_or(name)
}

/// Returns whether a word stands for an argument: `LIMIT`, `[SECONDS]`, `NAME…`.
fn is_placeholder(word: &str) -> bool {
    let inner = word.trim_matches(|c: char| "[].\u{2026}".contains(c));
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    inner.starts_with(|c: char| c.is_ascii_uppercase()) && inner.chars().all(is_part)
}

fn is_repeated(word: &str) -> bool {
    word.contains("...") || word.contains('\u{2026}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::LANGUAGE;
    use crate::lang::script::Builder;

    fn of(path: &str, text: &str) -> Parameters {
        let mut builder = Builder::new(LANGUAGE);
        let lines = text.lines().enumerate();
        let statements: Vec<_> =
            lines.filter_map(|(index, line)| builder.push(index + 1, line).expect("a line")).collect();
        Parameters::of_file(Path::new(path), &statements)
    }

    #[test]
    fn a_file_takes_what_it_declares_or_reads() {
        let declaring = "#!/usr/bin/env pmdb\n# One.\n#\n#     f.pmdb PID SIZE [TIME]\n#\n#     f.pmdb 812 4M\necho\n";
        for (text, most) in [
            (declaring, Some(2)),
            ("#  f PID A\nprint $arg2", Some(3)),
            ("#  f PID A...\n", None),
            ("#  f.pmdb 812 5\nprint $arg0", Some(1)),
            ("#  f PID 80\n", Some(0)),
            ("# f PID A\n", Some(0)),
            ("#  pmdb demo -x f\nif $argc\nend", Some(0)),
            ("print $argc", None),
            ("if 1\nif $arg1\nend\nend", Some(2)),
            ("# $arg5\ndefine own\nprint $arg7\nend\nown 1 $args", Some(0)),
        ] {
            assert_eq!(of("sub/f.pmdb", text).most, most, "{text}");
        }
        let declaring = of("sub/f.pmdb", declaring);
        let missing = |given| declaring.fault_of_missing(given, Caller::Shell);
        assert_eq!(missing(0).as_deref(), Some("`sub/f.pmdb` needs SIZE: pmdb -batch -x sub/f.pmdb PID SIZE [TIME]"));
        assert_eq!(missing(1), None);
        assert_eq!(declaring.first_surplus(2), None);
        assert_eq!(declaring.first_surplus(3), Some(2));
        assert_eq!(
            declaring.fault_of_surplus("x", Caller::Line),
            "unexpected argument `x`: source sub/f.pmdb SIZE [TIME]"
        );
    }

    #[test]
    fn an_argument_is_surplus_if_nothing_takes_it() {
        let arguments: Vec<String> = ["1", "2", "3"].map(str::to_owned).into();
        let check = |takers: &[Parameters], given: usize| {
            check_arguments(takers, &arguments[..given]).err().unwrap_or_default()
        };
        let line = |text| Parameters::of_line("-ex", text);
        assert_eq!(check(&[line("walk heap")], 0), "");
        assert_eq!(check(&[line("walk heap")], 1), "unexpected argument `1`: `-ex` reads no arguments");
        assert_eq!(check(&[line("walk $arg0")], 2), "unexpected argument `2`: `-ex` reads only $arg0");
        assert_eq!(check(&[line("$arg1")], 3), "unexpected argument `3`: `-ex` reads only $arg0 to $arg1");
        let two = [of("f", "print $arg0"), line("walk $arg1")];
        assert_eq!(check(&two, 2), "");
        assert_eq!(check(&two, 3), "unexpected argument `3`: no -x and no -ex reads $arg2");
        assert_eq!(check(&[of("f", "print $argc"), line("")], 3), "");
    }
}
