//! Makes an error message of the furthest failure.

use super::failure::{Failure, short};
use super::input::{Language, Notes};
use super::operands::second_operand;
use super::paste::{alone_in, behind_row, paste_hint};
use super::slips;
use crate::kernel::words::Worded;
use crate::kernel::{Key, PageFlags, State};
use crate::lang::error::{Span, Spanned, SyntaxError};
use crate::lang::expected::{Expected, describe_all};
use crate::lang::expression::{ChangeFunction, Function, is_operator_word};
use crate::lang::field::{FilterField, PageField, RegionField, word_of_title};
use crate::lang::lexer::{self, NumberFault, Token, TokenKind};
use crate::lang::syntax::Resolved;

/// The error of a line that failed.
pub(super) fn error(line: &str, tokens: &[Token<'_>], notes: &Notes<'_>) -> SyntaxError {
    let mut error = without_pasted(line, tokens, notes);
    if let Some(hint) = paste_hint(notes.language, line, tokens, &error) {
        error.hint = Some(hint);
    }
    error
}

fn without_pasted(line: &str, tokens: &[Token<'_>], notes: &Notes<'_>) -> SyntaxError {
    if let Some(fault) = notes.fault() {
        return fault;
    }
    let (position, expected) = notes.furthest();
    let failed = Failure { language: notes.language, line, tokens, position, expected, hint: notes.hint(position) };
    let Some(token) = failed.token().filter(|token| token.kind != TokenKind::Comment) else {
        let comment = failed.token();
        let end = comment.map_or(line.trim_end().len(), |comment| comment.at.start);
        return SyntaxError {
            at: Span::new(end, end),
            message: "incomplete command".into(),
            expected: describe_all(&failed.expected),
            hint: slips::quotes_around(&failed)
                .or_else(|| alone(&failed))
                .or_else(|| slips::trailing_comma(&failed))
                .or_else(|| slips::field_without_comparison(&failed)),
        };
    };
    if let Some(fault) = bytes(&failed) {
        return fault;
    }
    let (message, hint) = message_and_hint(&failed, token);
    let hint =
        path_without_quotes(&failed).or_else(|| else_if(&failed)).or_else(|| file_without_folder(&failed)).or(hint);
    let hint = behind_row(&failed)
        .or_else(|| slips::hint(&failed))
        .or_else(|| slips::quotes_around(&failed))
        .or(hint)
        .or_else(|| slips::quotes_near(&failed))
        .or_else(|| slips::command_in_assert(&failed))
        .or_else(|| second_operand(&failed));
    SyntaxError { at: token.at, message, expected: describe_all(&failed.expected), hint }
}

/// Letters that are short for other commands in gdb, where a number follows them.
const LETTERS: &[(&str, &str)] = &[("f", "selects a frame of the stack"), ("t", "selects a thread")];

/// What to say of a line that parses, and was meant for gdb or is its output: a frame, which is a comment here, or a
/// short command with a number that is no address.
pub(super) fn meant_for_gdb(language: Language, line: &str) -> Option<String> {
    let pasted = line.trim();
    if pasted.starts_with('#') {
        let shown = alone_in(&lexer::pasted_row(pasted)?);
        return Some(format!(
            "a line that begins with # is a comment; put a command before pasted text: `translate {shown}`"
        ));
    }
    let (letter, number) = pasted.split_once(' ')?;
    let (_, does) = LETTERS.iter().find(|(known, _)| *known == letter)?;
    // Nothing is mapped in the first page.
    let number = number.trim().parse::<u16>().ok().filter(|number| *number < 0x1000)?;
    let Resolved::One(ours) = language.resolve_first(letter) else {
        return None;
    };
    Some(format!("in gdb `{letter} {number}` {does}; here `{letter}` is `{ours}`, and {number} is an address"))
}

/// What to type for commands without the argument that they need.
const ALONE: &[(&str, &str)] = &[
    ("print", "the last value is $: `print $`"),
    ("telescope", "for the stack: `telescope $sp`"),
    ("info", "`help info` lists them"),
];

/// What single letters are in gdb, which are short for commands that need an argument here.
const LETTERS_ALONE: &[(&str, &str)] = &[
    ("r", "in gdb `r` runs the program; here it is short for `region`: `region $sp`"),
    ("f", "in gdb `f` shows the frame of the stack; here it is short for `flags`: `flags $sp`"),
    ("t", "in gdb `t` shows the thread; here it is short for `translate`: `translate $sp`"),
];

/// The hint for a command without its argument.
fn alone(failed: &Failure<'_>) -> Option<String> {
    if let (Some("find"), [_, word]) = (failed.command(), failed.tokens)
        && word.kind == TokenKind::Name
    {
        let word = word.text;
        return Some(format!("add a value, as in `find {word}, VALUE`; to search for a text: `find all, \"{word}\"`"));
    }
    let command = failed.command().filter(|_| failed.tokens.len() == 1)?;
    let typed = failed.tokens.first()?.text;
    let of_letter = LETTERS_ALONE.iter().find(|(letter, _)| *letter == typed);
    let (_, hint) = of_letter.or_else(|| ALONE.iter().find(|(known, _)| *known == command))?;
    Some((*hint).to_owned())
}

/// `hex"…"` without valid bytes: the lexer makes a name and a text of it.
fn bytes(failed: &Failure<'_>) -> Option<SyntaxError> {
    let (name, text) = (failed.before()?, failed.token()?);
    let is = name.text == "hex" && text.is_glued && text.text.starts_with('"');
    let at = name.at.to(text.at);
    let message = match text.kind {
        TokenKind::Text(_) => "these are not bytes in hexadecimal",
        _ => "this quote has no end",
    };
    is.then(|| SyntaxError {
        at,
        message: message.into(),
        expected: vec!["two hexadecimal digits a byte".into()],
        hint: Some("write `hex\"7f 45 4c 46\"` or `hex\"7f454c46\"`".into()),
    })
}

/// The hint for a path without quotes.
fn path_without_quotes(failed: &Failure<'_>) -> Option<String> {
    let token = failed.token()?;
    let is_name = failed.expects(Expected::Range) || failed.expects(Expected::Expression);
    if token.text != "/" || token.is_glued || !is_name {
        return None;
    }
    let path = failed.line.get(token.at.start..)?.split_whitespace().next()?;
    let is_format = |c: char| c.is_ascii_digit() || "xduotaczsfbhwg-".contains(c);
    let is_path = path.len() > 1 && !path.contains('\'') && !path.chars().skip(1).all(is_format);
    is_path.then(|| format!("put a path in 'single quotes': `'{path}'`"))
}

/// The hint for `else if`, which gdb does not have either.
fn else_if(failed: &Failure<'_>) -> Option<String> {
    let (first, second) = (failed.before()?, failed.token()?);
    let is = failed.position == 1 && first.text == "else" && second.text == "if";
    is.then(|| "write `else` on its own line, and then an `if` with its own `end`".to_owned())
}

/// The hint for `map > x.svg`: `>` redirects only before what looks like a path.
fn file_without_folder(failed: &Failure<'_>) -> Option<String> {
    let [sign, name] = failed.tokens.get(failed.position..)? else {
        return None;
    };
    let is_file = matches!(sign.text, ">" | ">>") && name.kind == TokenKind::Name && failed.expects(Expected::Pipe);
    is_file.then(|| {
        format!("the path of a file begins with / ./ ../ ~/ or a quote: `{} ./{}`", sign.text, short(name.text))
    })
}

/// What is wrong with this token here, and a hint.
fn message_and_hint(failed: &Failure<'_>, token: &Token<'_>) -> (String, Option<String>) {
    let expected = failed.expected.as_slice();
    let in_parentheses = || Some("as an operator it needs parentheses: `(a | b)`".to_owned());
    match (&token.kind, token.text) {
        (_, text) if matches!(expected, [Expected::Format | Expected::Layout | Expected::Search]) => no_format(text),
        (TokenKind::BadNumber(fault), word) => number(*fault, word),
        (TokenKind::LonePipe, _) => ("a shell command must follow `|`".into(), in_parentheses()),
        (TokenKind::Pipe { .. } | TokenKind::Redirect { .. }, _) if expected == [Expected::End] => {
            ("a command has one output only".into(), None)
        }
        (TokenKind::Pipe { .. }, _) => ("the command is not complete before `|`".into(), in_parentheses()),
        (TokenKind::Redirect { .. }, _) => {
            let hint = "before a path or a quote, > writes a file; as an operator it needs parentheses: `(a > 'b')`";
            ("the command is not complete before `>`".into(), Some(hint.into()))
        }
        (TokenKind::Other, "'" | "\"") => ("this quote has no end".into(), None),
        (_, "!") if expected.contains(&Expected::Command) => {
            ("a shell command must follow `!`".into(), Some("as in `!ls`".into()))
        }
        (TokenKind::Name, word) if expected == [Expected::Command] => {
            let words = failed.language.words(Expected::Command);
            if slips::called(failed).is_some() {
                return (format!("unexpected parenthesis after `{word}`"), None);
            }
            (format!("there is no command `{word}`"), SyntaxError::did_you_mean(word, words))
        }
        (_, text) => (format!("unexpected `{}`", short(text)), hint_for(failed, token)),
    }
}

/// The message for an invalid format.
fn no_format(text: &str) -> (String, Option<String>) {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (count, _) = text.split_at(digits.unwrap_or(text.len()));
    if !count.is_empty() && count.parse::<u64>().is_err() {
        return ("this count is larger than 2^64-1".into(), None);
    }
    let hint = match text {
        "-" => Some("for bytes before an address: `x/-3xb ADDRESS`".to_owned()),
        "i" => Some("use `x/i` in `gdb -p PID`. Here `x/xb` shows the bytes".to_owned()),
        _ => None,
    };
    (format!("`{}` is not a format", short(text)), hint)
}

/// The function that adds up what this word is about.
fn sum_of(word: &str) -> Option<&'static str> {
    let word = if word == "resident" { Function::Rss.name() } else { word };
    Function::from_word(word).filter(|function| function.takes_filter()).map(Function::name)
}

/// No process has a larger number (`PID_MAX_LIMIT` in include/linux/threads.h).
const LARGEST_PID: u64 = 1 << 22;

/// The hint for a token that cannot stand here.
fn hint_for(failed: &Failure<'_>, token: &Token<'_>) -> Option<String> {
    let expected = failed.expected.as_slice();
    let wanted = |one| expected.contains(&one);
    let in_filter =
        [(Expected::PageField, Expected::PageQuantity, false), (Expected::RegionField, Expected::RegionQuantity, true)]
            .into_iter()
            .find(|(field, quantity, _)| wanted(*field) || wanted(*quantity));
    match (&token.kind, token.text) {
        (TokenKind::Name, unit)
            if is_unit(unit)
                && failed
                    .before()
                    .is_some_and(|before| before.text.starts_with(|first: char| first.is_ascii_digit())) =>
        {
            let number = failed.before().map_or("", |before| before.text);
            Some(suffixes(&format!("{number}{unit}")))
        }
        (TokenKind::Name, word) if is_operator_word(word) && wanted(Expected::Expression) => {
            Some(format!("`{word}` is an operator; put a symbol of that name in 'single quotes'"))
        }
        (TokenKind::Name, word) => {
            let words: Vec<&str> = expected.iter().flat_map(|one| failed.language.words(*one)).collect();
            let wants_page = matches!(in_filter, Some((_, _, false)));
            let other_name = word_of_title(word);
            let sum = sum_of(word).filter(|_| wants_page && failed.command() == Some("watch"));
            let meant = other_name.filter(|field| wants_page || words.contains(field));
            let takes_runs = |one: &Expected| matches!(one, Expected::Key(keys) if keys.takes(Key::Run));
            let is_fact = PageField::from_name(word).is_some() || other_name.is_some();
            match in_filter {
                _ if meant.is_some() => meant.map(|field| format!("did you mean `{field}`?")),
                None if is_fact && expected.iter().any(takes_runs) => {
                    Some(format!("`{word}` is another one for each page: `by run` shows consecutive frames"))
                }
                _ if sum.is_some() => sum.map(|sum| format!("`until {sum}(RANGE) > 1G` compares bytes")),
                Some((_, _, false)) if RegionField::from_name(word).is_some() => {
                    Some(format!("`{word}` is a field of regions: `regions where {word} …`"))
                }
                Some((_, _, true)) if PageField::from_name(word).is_some() => {
                    Some(format!("`{word}` is a field of pages: `walk all where {word} …`"))
                }
                Some((_, _, regions)) if PageFlags::from_flag_name(word).is_some() => {
                    let flag = format!("flags({word})");
                    Some(if !regions {
                        format!("`{word}` is a flag of the frame: `{flag}`")
                    } else {
                        format!("`{word}` is a flag of frames: `walk all where {flag}`")
                    })
                }
                Some((_, _, regions)) if word == "resident" => {
                    Some(format!("did you mean `{}`?", if regions { "rss" } else { State::Present.word() }))
                }
                Some((_, _, false)) if matches!(word, "cow" | "copy_on_write" | "forked") => {
                    Some("`present and not exclusive` selects pages that others map too".into())
                }
                Some((_, _, false))
                    if ChangeFunction::from_word(word).is_some() && failed.command() == Some("watch") =>
                {
                    Some(format!("`{word}` is a change: `watch RANGE count 1` ends after the first change"))
                }
                Some((_, _, false)) if ChangeFunction::from_word(word).is_some() => Some(format!(
                    "`{word}` is a change, not a state of a page: use `diff by change` or `print {word}(SNAPSHOT, now)`"
                )),
                Some((_, _, false)) if matches!(word, "lazy_free" | "lazyfree" | "lazily_freed") => {
                    Some("pages that were freed with MADV_FREE: `anonymous and not flags(swapbacked)`".into())
                }
                Some((_, _, true)) if matches!(word, "lazy_free" | "lazyfree" | "lazily_freed") => Some(
                    "pages that were freed with MADV_FREE: `walk all where anonymous and not flags(swapbacked)`".into(),
                ),
                Some(_) => SyntaxError::did_you_mean(word, words).or_else(|| {
                    Some(format!(
                        "in a filter, bare words are fields (`help filters`); a symbol of this name is `&{word}`"
                    ))
                }),
                None if wanted(Expected::QuotedText) => Some(format!("put the text in quotes: `\"{word}\"`")),
                None => SyntaxError::did_you_mean(word, words),
            }
        }
        (_, "<" | ">" | "<=" | ">=") if failed.command() == Some("watch") && wanted(Expected::Word("or")) => {
            Some("`until rss(RANGE) > 1G` compares bytes".into())
        }
        (_, "=") if wanted(Expected::Comparison) || wanted(Expected::Mark("==")) || wanted(Expected::Operator) => {
            slips::row_with_value(failed).or_else(|| Some("write a test for equality as `==`".into()))
        }
        (TokenKind::Number(value), number) if wanted(Expected::Command) => {
            let is_process = (1..=LARGEST_PID).contains(value) && number.bytes().all(|digit| digit.is_ascii_digit());
            Some(if is_process {
                format!("`attach {number}` attaches to a process, and `translate {number}` translates an address")
            } else {
                format!("to translate an address: `translate {number}`")
            })
        }
        (_, "|" | "&") if wanted(Expected::Word("or")) => Some("join conditions with `and`, `or`".into()),
        (_, sign @ ("&" | "^" | "|")) if wanted(Expected::Comparison) => {
            Some(format!("in a filter {sign} needs parentheses: `(pfn {sign} 1) == 0`"))
        }
        (_, "/") if wanted(Expected::Range) => Some("write the format directly after the command: `print/x`".into()),
        (_, "#") => Some("a frame can be pasted if it has an address: `#1 0x401136 in main ()`".into()),
        _ => None,
    }
}

fn number(fault: NumberFault, word: &str) -> (String, Option<String>) {
    let hexadecimal = || {
        let digits = word.trim_start_matches('0');
        Some(format!("write hexadecimal as `0x{}`", if digits.is_empty() { "0" } else { digits }))
    };
    match fault {
        NumberFault::TooLarge => ("this number is larger than 2^64-1".into(), None),
        NumberFault::LeadingZero => (format!("`{}` begins with a zero", short(word)), hexadecimal()),
        NumberFault::LooksHexadecimal => (format!("`{}` is not a decimal number", short(word)), hexadecimal()),
        NumberFault::Suffix => (format!("`{}` has an unknown suffix", short(word)), Some(suffixes(word))),
        NumberFault::Malformed => (format!("`{}` is not a number", short(word)), None),
    }
}

/// Whether a word is a unit of sizes, as in `8 MiB`.
fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches(['b', 'B']).trim_end_matches('i');
    matches!(unit, "k" | "K" | "M" | "G" | "T") || matches!(word, "B" | "bytes")
}

/// How to write a number with an unknown suffix: `4GiB` is 4G.
pub fn suffixes(word: &str) -> String {
    let size = word.trim_end_matches(['b', 'B']).trim_end_matches('i').to_uppercase();
    let is_size = size.ends_with(['K', 'M', 'G', 'T'])
        && size[..size.len() - 1].bytes().all(|digit| digit.is_ascii_digit())
        && size.len() > 1;
    let has_fraction = size.contains('.') && size.ends_with(['K', 'M', 'G', 'T']);
    match is_size {
        true => format!("write it as `{size}`: K M G T are powers of 1024"),
        false if has_fraction => "a size has no fraction: 1.5G is `1536M`".into(),
        false => "write sizes with K M G T, or p for pages; times with ms s m h".into(),
    }
}

/// `pipe pipe …`, `pipe shell …`
pub(super) fn not_piped(inner: &Spanned<&'static str>) -> SyntaxError {
    SyntaxError {
        at: inner.at,
        message: format!("`{}` cannot be piped", inner.node),
        expected: vec![Expected::Command.describe()],
        hint: Some("the shell has its own pipes: `!CMD | CMD`".into()),
    }
}
