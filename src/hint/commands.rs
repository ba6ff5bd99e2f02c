//! Hints for mistakes in the arguments of certain commands.

use crate::kernel::PageFlags;
use crate::kernel::words::Worded;
use crate::lang::lexer::{Token, TokenKind};
use crate::lang::parser::short;
use crate::lang::{Expected, Failure, FilterField, Function, Language, RegionField, Resolved, near};

/// Commands whose argument is an expression.
const TAKE_VALUES: [&str; 5] = ["print", "output", "assert", "if", "while"];

/// Returns whether the command of the line takes an expression.
pub(super) fn takes_value(failed: &Failure<'_>) -> bool {
    failed.command().is_some_and(|command| TAKE_VALUES.contains(&command))
}

/// Letters that are other commands in gdb, and short here for commands that need an argument.
const LETTERS_ALONE: &[(&str, &str)] = &[
    ("r", "in gdb `r` runs the program; here it is short for `region`: `region $sp`"),
    ("f", "in gdb `f` shows the frame of the stack; here it is short for `flags`: `flags $sp`"),
    ("t", "in gdb `t` shows the thread; here it is short for `translate`: `translate $sp`"),
];

/// Commands that need an argument, with the hint if there is none.
const ALONE: &[(&str, &str)] = &[
    ("print", "the last value is $: `print $`"),
    ("telescope", "for the stack: `telescope $sp`"),
    ("assert", "it tests a condition, as in `assert swapped(heap) == 0`"),
    ("if", "a condition follows, as in `if swapped(heap) > 0`"),
    ("while", "a condition follows, as in `while swapped(heap) > 0`"),
    ("info", "`help info` lists them"),
];

/// Returns the hint for a command without its argument, or for a letter that is another command in gdb.
pub(super) fn alone(failed: &Failure<'_>) -> Option<String> {
    let [typed] = failed.tokens else {
        return None;
    };
    let command = failed.command()?;
    let of_letter = LETTERS_ALONE.iter().find(|(letter, _)| *letter == typed.text);
    let (_, hint) = of_letter.or_else(|| ALONE.iter().find(|(known, _)| *known == command))?;
    Some((*hint).to_owned())
}

/// Returns the hint for `find WORD`.
pub(super) fn find_without_value(failed: &Failure<'_>) -> Option<String> {
    let [_, word] = failed.tokens else {
        return None;
    };
    let is_search = failed.command() == Some("find") && word.kind == TokenKind::Name;
    let word = word.text;
    is_search.then(|| format!("add a value, as in `find {word}, VALUE`; to search for a text: `find all, \"{word}\"`"))
}

/// Letters that are short for other commands in gdb if a number follows.
const LETTERS: &[(&str, &str)] = &[("f", "selects a frame of the stack"), ("t", "selects a thread")];

/// Returns the note about a line that parses: a short command of gdb with a number that is no address.
pub(super) fn letter_with_number(language: Language, line: &str) -> Option<String> {
    let (letter, number) = line.split_once(' ')?;
    let (_, does) = LETTERS.iter().find(|(known, _)| *known == letter)?;
    // Nothing is mapped in the first page.
    let number = number.trim().parse::<u16>().ok().filter(|number| *number < 0x1000)?;
    let Resolved::One(ours) = language.resolve_first(letter) else {
        return None;
    };
    Some(format!("in gdb `{letter} {number}` {does}; here `{letter}` is `{ours}`, and {number} is an address"))
}

/// Returns the hint for a command with parentheses, like a function of C.
pub(super) fn called(failed: &Failure<'_>) -> Option<String> {
    failed.called().map(|meant| format!("write it without parentheses: `{meant}`"))
}

/// Returns the hint for `heap` with several processes and an arena.
pub(super) fn arena_of_several(failed: &Failure<'_>) -> Option<String> {
    let (command, token) = (failed.command()?, failed.token()?);
    let is_number = matches!(token.kind, TokenKind::Number(_));
    let are_several = failed.expects_word("by") && !failed.expects_word("every");
    (command == "heap" && is_number && are_several)
        .then(|| format!("several processes have no common arena: `heap {}` is of the attached one", token.text))
}

/// Returns the clause of `walk` with which it does for a range what `command` does for one address, and what that is.
fn for_a_range(command: &str) -> Option<(&'static str, &'static str)> {
    Some(match command {
        "who" => ("by mapcount", "counts the mappings of its pages"),
        "flags" => ("by flags", "counts its pages by their flags"),
        "region" => ("by region", "lists its regions"),
        "explain" => ("by state", "counts its pages by their states"),
        _ => return None,
    })
}

/// Returns the hint for a range after a command of one address, `who A, +64K`: a command for a range.
pub(super) fn range_for_address(failed: &Failure<'_>) -> Option<String> {
    let command = failed.command()?;
    let (clause, answer) = for_a_range(command)?;
    let token = failed.token()?;
    if !matches!(token.text, "," | "..") {
        let is_another = match token.kind {
            TokenKind::Number(_) | TokenKind::Variable => true,
            TokenKind::Name => {
                let is_begun = failed.words().iter().any(|word| word.starts_with(token.text));
                !is_begun && near(token.text, failed.words()).is_empty()
            }
            _ => false,
        };
        let is_one =
            |first: &&Token<'_>| matches!(first.kind, TokenKind::Number(_) | TokenKind::Name | TokenKind::Variable);
        let is_alone = is_another && failed.tokens.len() == 3 && failed.position == 2;
        let first = failed.before().filter(|_| is_alone).filter(is_one)?;
        if let ("phys" | "pfn", TokenKind::Number(_)) = (first.text, &token.kind) {
            return Some(format!("write a colon: `{command} {}:{}`", first.text, token.text));
        }
        return Some(format!("one address at a time: `{command} {}`", first.text));
    }
    let is_behind = |token: &&Token<'_>| {
        ["where", "by", "limit", "top", "full"].contains(&token.text)
            || matches!(token.kind, TokenKind::Pipe { .. } | TokenKind::Redirect { .. } | TokenKind::Comment)
    };
    let behind = failed.tokens.get(failed.position..)?.iter().find(is_behind);
    let end = behind.map_or(failed.line.len(), |token| token.at.start);
    let range = failed.line.get(failed.tokens.get(1)?.at.start..end)?.trim_end();
    let parses = |line: &str| failed.language.parse_line(line).is_ok();
    let whole = format!("walk {range} {clause}");
    let huge = format!("huge {range}");
    let more = match command {
        "explain" if parses(&huge) => format!(", and `{huge}` is about huge pages"),
        _ => String::new(),
    };
    parses(&whole).then(|| format!("`{command}` is for one address; for a range `{whole}` {answer}{more}"))
}

/// Returns the hint for `regions (anonymous)`, the name of such a region as it is shown, and for `regions where anon`,
/// a flag of frames.
pub(super) fn condition_on_regions(failed: &Failure<'_>) -> Option<String> {
    failed.command().filter(|command| *command == "regions")?;
    let is_condition = |word: &str| failed.language.parse_line(&format!("regions where {word}")).is_ok();
    match failed.tokens {
        [_, open, name, ..] if failed.position == 1 && open.text == "(" && is_condition(name.text) => {
            Some(format!("as a condition: `regions where {}`", name.text))
        }
        _ => {
            let word = failed.token()?.text;
            PageFlags::from_flag_name(word).filter(|_| failed.expects(Expected::RegionField))?;
            let mut longer = RegionField::all().map(RegionField::name).filter(|name| name.starts_with(word));
            let name = longer.find(|name| *name != word && is_condition(name))?;
            Some(format!("for regions `regions where {name}`, for frames `walk all where flags({word})`"))
        }
    }
}

/// Returns the hint for a word of filters or of another language after a command that takes an expression.
pub(super) fn filter_word_in_value(failed: &Failure<'_>) -> Option<String> {
    let command = failed.command()?;
    let is_value = takes_value(failed) && failed.expects(Expected::Operator);
    if !is_value {
        return None;
    }
    let (line, token) = (failed.line, failed.token()?);
    match token.text {
        "where" if !failed.expects(Expected::Mark(")")) => {
            let pages = line.get(failed.tokens.get(1)?.at.start..token.at.start)?.trim();
            let than = match command {
                "print" | "output" => "",
                _ => " > 0",
            };
            Some(format!("to count pages: `{command} count({pages} where FILTER){than}`"))
        }
        "then" | "do" | "{" | ":" | ";" if matches!(command, "if" | "while") => {
            Some(format!("leave `{}` out: write each command on its own line, and `end` after them", token.text))
        }
        _ => None,
    }
}

/// Returns the hint for a field with a number of regions that is not compared: `regions where huge`.
pub(super) fn field_without_comparison(failed: &Failure<'_>) -> Option<String> {
    let before = failed.before()?;
    let takes_regions = failed.command() == Some("regions") && failed.expects(Expected::Comparison);
    let field = RegionField::all().find(|field| field.name() == before.text).filter(|_| takes_regions)?;
    Some(format!("`{}` is a number: `{0} > 0`, `{0} == 0`", field.name()))
}

/// Returns the hint for a range after the name of a snapshot without `in`.
pub(super) fn missing_in(failed: &Failure<'_>) -> Option<String> {
    argument(failed, "snapshot").filter(|_| failed.position > 1)?;
    let token = failed.token().filter(|_| failed.expects(Expected::Word("in")))?;
    let range = match token.text {
        "from" | "to" => return None,
        "of" | "over" => failed.line.get(token.at.end..)?.trim(),
        text if !matches!(token.kind, TokenKind::Mark | TokenKind::Other) => text,
        _ => return None,
    };
    Some(format!("to limit a snapshot to a range: `snapshot NAME in {}`", short(range)))
}

/// Returns the first word after `command`, if the line is of this command.
fn argument<'a>(failed: &Failure<'a>, command: &str) -> Option<&'a Token<'a>> {
    failed.tokens.get(1).filter(|_| failed.command() == Some(command))
}

/// Returns the hint for `foreach i in …`.
pub(super) fn variable_of_foreach(failed: &Failure<'_>) -> Option<String> {
    let word = argument(failed, "foreach").filter(|word| failed.position == 1 && word.kind == TokenKind::Name)?;
    Some(format!("a variable begins with $: `foreach ${} in \u{2026}`", word.text))
}

/// Returns the hint for `foreach $i in 1 2 3`.
pub(super) fn values_of_foreach(failed: &Failure<'_>) -> Option<String> {
    argument(failed, "foreach")?;
    let is_value = matches!(failed.token()?.kind, TokenKind::Number(_)) && failed.expects(Expected::Mark(","));
    is_value.then(|| "put commas between the values: `foreach $i in 1, 2, 3`".to_owned())
}

/// Returns the hint for `compare parent`.
pub(super) fn process_of_compare(failed: &Failure<'_>) -> Option<String> {
    let first = argument(failed, "compare").filter(|word| failed.position == 1 && word.kind == TokenKind::Name)?;
    match first.text {
        "parent" => Some("`info process` shows the PID of the parent, for `compare PID`".to_owned()),
        "child" => Some("`compare children` compares with each child".to_owned()),
        "from" => Some("`diff from FILE` shows the changes since a capture".to_owned()),
        _ => None,
    }
}

/// Returns the hint for `set $i += 1`.
pub(super) fn compound_assignment(failed: &Failure<'_>) -> Option<String> {
    let variable = argument(failed, "set").filter(|word| failed.position == 2 && word.kind == TokenKind::Variable)?;
    let (operator, equals) = (failed.token()?, failed.tokens.get(3)?);
    let value = failed.line.get(equals.at.end..)?.trim();
    let line = format!("set {0} = {0} {1} {value}", variable.text, operator.text);
    (equals.text == "=" && equals.is_glued && failed.language.accepts(&line)).then(|| format!("write it out: `{line}`"))
}

/// Returns the hint for `set $_ = 5`.
pub(super) fn fixed_variable(failed: &Failure<'_>) -> Option<String> {
    let variable = argument(failed, "set").filter(|word| failed.position == 1 && word.text.starts_with('$'))?;
    Some(format!("pmdb sets `{}` itself: choose another name, as in `set $x = 5`", variable.text))
}

/// Returns the hint for `find RANGE, VALUE limit 5`.
pub(super) fn limit_of_find(failed: &Failure<'_>) -> Option<String> {
    let is_limit = |word: &Token<'_>| matches!(word.text.trim_start_matches('-'), "limit" | "top");
    argument(failed, "find").filter(|_| failed.token().is_some_and(is_limit))?;
    let count = failed.tokens.get(failed.position + 1).filter(|count| matches!(count.kind, TokenKind::Number(_)))?;
    let what = failed.line.get(failed.tokens.get(1)?.at.start..failed.token()?.at.start)?.trim_end();
    let line = format!("find/{} {what}", count.text);
    failed.language.accepts(&line).then(|| format!("the count follows a slash: `{line}`"))
}

/// Returns the hint for `display print VALUE`.
pub(super) fn print_in_display(failed: &Failure<'_>) -> Option<String> {
    let first = argument(failed, "display").filter(|_| failed.position > 1)?;
    if !matches!(first.text, "p" | "print" | "inspect" | "output") {
        return None;
    }
    let value = failed.line.get(first.at.end..)?.trim_start();
    let format = if value.starts_with('/') { "" } else { " " };
    Some(format!("leave `{}` out: `display{format}{}`", first.text, short(value)))
}

/// Returns the hint for `info registers pc`.
pub(super) fn one_register(failed: &Failure<'_>) -> Option<String> {
    argument(failed, "info").filter(|word| failed.position == 2 && word.text.starts_with("reg"))?;
    Some(match failed.token()?.text {
        register @ ("pc" | "sp" | "rip" | "rsp" | "eip" | "esp") => format!("for one register: `print ${register}`"),
        _ => "for one register: `print $sp` or `print $pc`; use gdb for the others".to_owned(),
    })
}

/// Returns the hint for a clause without a range: `walk where dirty`.
pub(super) fn range_first(failed: &Failure<'_>) -> Option<String> {
    let (name, word) = (failed.command()?, failed.tokens.get(1)?.text);
    let is_clause = matches!(name, "walk" | "watch") && failed.position == 2 && failed.expects_word(word);
    is_clause.then(|| format!("put the range first: `{name} all {word} \u{2026}`"))
}

/// Returns the hint for a time after the range of `watch` without `every` or `for`.
pub(super) fn time_of_watch(failed: &Failure<'_>) -> Option<String> {
    argument(failed, "watch").filter(|_| failed.position > 1 && failed.expects(Expected::Word("every")))?;
    let time = failed.token()?;
    let text = time.text;
    matches!(time.kind, TokenKind::Duration(_) | TokenKind::Fraction(_)).then(|| {
        format!("`watch RANGE every {text}` sets the time between samples, and `watch RANGE for {text}` the whole time")
    })
}

/// Returns the hint for a command or a function without parentheses in `assert`: `assert walk RANGE …`.
pub(super) fn command_in_assert(failed: &Failure<'_>) -> Option<String> {
    let [assert, word, next, ..] = failed.tokens else {
        return None;
    };
    let is_called = next.text == "(" && next.is_glued;
    let is_word = |known: &str| known == word.text;
    let is_command = failed.language.first_words().any(is_word) || Function::words().any(is_word);
    (assert.text == "assert" && is_command && !is_called)
        .then(|| "it tests an expression, as in `assert count(RANGE where swapped) == 0`".to_owned())
}

/// Returns the hint for the size of a number as pwndbg has it: `search -8 VALUE`.
pub(super) fn unit_as_option(failed: &Failure<'_>) -> Option<String> {
    argument(failed, "find").filter(|_| failed.expects(Expected::Mark(",")))?;
    let [comma, minus, size, value] = failed.tokens.get(failed.position.checked_sub(3)?..=failed.position)? else {
        return None;
    };
    let unit = match size.kind {
        TokenKind::Number(1) => 'b',
        TokenKind::Number(2) => 'h',
        TokenKind::Number(4) => 'w',
        TokenKind::Number(8) => 'g',
        _ => return None,
    };
    let is_option = comma.text == "," && minus.text == "-" && size.is_glued;
    is_option.then(|| format!("the size is a letter after a slash: `find/{unit} all, {}`", value.text))
}
