//! Hints for words, signs and numbers in the wrong place.

use super::commands::takes_value;
use super::numbers::{is_unit, suffixes};
use crate::kernel::status::LARGEST_PID;
use crate::kernel::words::Worded;
use crate::kernel::{Key, PageFlags, State};
use crate::lang::lexer::TokenKind;
use crate::lang::parser::short;
use crate::lang::{
    ChangeFunction, Expected, Failure, FilterField, FilterSubject, Function, PageField, RegionField, SyntaxError,
    is_operator_word,
};

/// Returns the failing token, if it is a plain word.
fn word<'a>(failed: &Failure<'a>) -> Option<&'a str> {
    failed.token().filter(|token| token.kind == TokenKind::Name).map(|token| token.text)
}

/// Returns the subject of the filter in which the line fails.
fn subject_of_filter(failed: &Failure<'_>) -> Option<FilterSubject> {
    [
        (FilterSubject::Page, Expected::PageField, Expected::PageQuantity),
        (FilterSubject::Region, Expected::RegionField, Expected::RegionQuantity),
    ]
    .into_iter()
    .find(|(_, field, quantity)| failed.expects(*field) || failed.expects(*quantity))
    .map(|(subject, _, _)| subject)
}

/// Returns the hint for `else if`, which gdb does not have either.
pub(super) fn else_if(failed: &Failure<'_>) -> Option<String> {
    let (first, second) = (failed.before()?, failed.token()?);
    let is_else_if = failed.position == 1 && first.text == "else" && second.text == "if";
    is_else_if.then(|| "write `else` on its own line, and then an `if` with its own `end`".to_owned())
}

/// Returns the hint for `map > x.svg`: `>` redirects only if a path follows.
pub(super) fn file_without_folder(failed: &Failure<'_>) -> Option<String> {
    let [sign, name] = failed.tokens.get(failed.position..)? else {
        return None;
    };
    let is_file = matches!(sign.text, ">" | ">>") && name.kind == TokenKind::Name && failed.expects(Expected::Pipe);
    is_file.then(|| {
        format!("the path of a file begins with / ./ ../ ~/ or a quote: `{} ./{}`", sign.text, short(name.text))
    })
}

/// Returns the hint for a pipe or a redirection inside an expression, or at the end of the line.
pub(super) fn operator_of_output(failed: &Failure<'_>) -> Option<String> {
    let hint = match failed.token()?.kind {
        TokenKind::LonePipe => "as an operator it needs parentheses: `(a | b)`",
        _ if failed.expected == [Expected::End] => return None,
        TokenKind::Pipe { .. } => "as an operator it needs parentheses: `(a | b)`",
        TokenKind::Redirect { .. } => {
            "before a path or a quote, > writes a file; as an operator it needs parentheses: `(a > 'b')`"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Returns the hint for `!` alone.
pub(super) fn lone_shell(failed: &Failure<'_>) -> Option<String> {
    let is_lone = failed.token()?.text == "!" && failed.expects(Expected::Command);
    is_lone.then(|| "as in `!ls`".to_owned())
}

/// Returns the hint for a unit after a number: `8 MiB`.
pub(super) fn unit_behind_number(failed: &Failure<'_>) -> Option<String> {
    let (unit, number) = (word(failed).filter(|word| is_unit(word))?, failed.before()?.text);
    number.starts_with(|first: char| first.is_ascii_digit()).then(|| suffixes(&format!("{number}{unit}")))
}

/// Returns the hint for `and` as the name of a symbol.
pub(super) fn operator_as_name(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|word| is_operator_word(word) && failed.expects(Expected::Expression))?;
    Some(format!("`{word}` is an operator; put a symbol of that name in 'single quotes'"))
}

/// Returns the hint for a field of pages in the place of a key.
pub(super) fn fact_as_key(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|word| PageField::from_name(word).is_some())?;
    let takes_runs = |one: &Expected| matches!(one, Expected::Key(keys) if keys.takes(Key::Run));
    (subject_of_filter(failed).is_none() && failed.expected.iter().any(takes_runs))
        .then(|| format!("`{word}` is another one for each page: `by run` shows consecutive frames"))
}

/// Returns the hint for `account by pid`: no page belongs to one process.
pub(super) fn process_as_key(failed: &Failure<'_>) -> Option<String> {
    let is_key = failed.expected.iter().any(|one| matches!(one, Expected::Key(_)));
    let is_process = word(failed).is_some_and(|word| ["pid", "process", "processes"].contains(&word));
    (is_key && is_process)
        .then(|| "`account children`, `account of A, B` and `account \"NAME\"` have a row for each process".to_owned())
}

/// Returns the hint for a second key where there is only one.
pub(super) fn second_key(failed: &Failure<'_>) -> Option<String> {
    let command = failed.command()?;
    let by = failed.position.checked_sub(2).and_then(|at| failed.tokens.get(at))?;
    (by.text == "by" && failed.token()?.text == ",")
        .then(|| format!("`{command}` has one key: `walk all by region, state` has two"))
}

/// Returns the function with this name that sums pages; `rss` for `resident`.
fn sum_of(word: &str) -> Option<&'static str> {
    let word = if word == "resident" { Function::Rss.name() } else { word };
    Function::from_word(word).filter(|function| function.takes_filter()).map(Function::name)
}

/// Returns the hint for a word that is no field in a filter of pages.
pub(super) fn word_in_page_filter(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|_| subject_of_filter(failed) == Some(FilterSubject::Page))?;
    let is_watched = failed.command() == Some("watch");
    if let Some(sum) = sum_of(word).filter(|_| is_watched) {
        return Some(format!("`until {sum}(RANGE) > 1G` compares bytes"));
    }
    if RegionField::from_name(word).is_some() {
        return Some(format!("`{word}` is a field of regions: `regions where {word} …`"));
    }
    if PageFlags::from_flag_name(word).is_some() {
        return Some(format!("`{word}` is a flag of the frame: `flags({word})`"));
    }
    if ChangeFunction::from_word(word).is_some() {
        return Some(if is_watched {
            format!("`{word}` is a change: `watch RANGE count 1` ends after the first change")
        } else {
            format!(
                "`{word}` is a change, not a state of a page: use `diff by change` or `print {word}(SNAPSHOT, now)`"
            )
        });
    }
    Some(match word {
        "resident" => format!("did you mean `{}`?", State::Present.word()),
        "cow" | "copy_on_write" | "forked" => {
            "`present and not exclusive` selects pages that are mapped more than once".into()
        }
        "lazy_free" | "lazyfree" | "lazily_freed" => {
            "pages that were freed with MADV_FREE: `anonymous and not flags(swapbacked)`".into()
        }
        _ => return None,
    })
}

/// Returns the hint for a word that is no field in a filter of regions.
pub(super) fn word_in_region_filter(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|_| subject_of_filter(failed) == Some(FilterSubject::Region))?;
    if PageField::from_name(word).is_some() {
        // What mlock keeps is meant, not the lock of a page during I/O.
        let meant = if word == "locked" { "mlocked" } else { word };
        return Some(format!("`{word}` is a field of pages: `walk all where {meant} by region`"));
    }
    if PageFlags::from_flag_name(word).is_some() {
        return Some(format!("`{word}` is a flag of frames: `walk all where flags({word})`"));
    }
    Some(match word {
        "resident" => "did you mean `rss`?".into(),
        "lazy_free" | "lazyfree" | "lazily_freed" => {
            "pages that were freed with MADV_FREE: `walk all where anonymous and not flags(swapbacked)`".into()
        }
        _ => return None,
    })
}

/// Returns the hint for a text without quotes.
pub(super) fn text_without_quotes(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|_| subject_of_filter(failed).is_none() && failed.expects(Expected::QuotedText))?;
    Some(format!("put the text in quotes: `\"{word}\"`"))
}

/// Returns the hint for a misspelt word.
pub(super) fn near_word(failed: &Failure<'_>) -> Option<String> {
    let typed = word(failed)?;
    SyntaxError::did_you_mean(typed, failed.words()).or_else(|| {
        // A command that must be typed in full, or another word of which only the beginning is here.
        let begun: Vec<String> =
            failed.words().into_iter().filter(|word| word.starts_with(typed)).map(|word| format!("`{word}`")).collect();
        (typed.len() > 2 && (1..=3).contains(&begun.len())).then(|| format!("did you mean {}?", begun.join(" or ")))
    })
}

/// Returns the hint for any other word in a filter.
pub(super) fn symbol_in_filter(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|_| subject_of_filter(failed).is_some())?;
    Some(format!("in a filter, bare words are fields (`help filters`); a symbol of this name is `&{word}`"))
}

/// Returns the hint for `watch heap until > 1G`.
pub(super) fn sum_until(failed: &Failure<'_>) -> Option<String> {
    let is_sign = matches!(failed.token()?.text, "<" | ">" | "<=" | ">=");
    let is_sum = is_sign && failed.command() == Some("watch") && failed.expects(Expected::Word("or"));
    is_sum.then(|| "`until rss(RANGE) > 1G` compares bytes".to_owned())
}

/// Returns the hint for `=` in the place of `==`.
pub(super) fn single_equals(failed: &Failure<'_>) -> Option<String> {
    let is_compared = [Expected::Comparison, Expected::Mark("=="), Expected::Operator];
    if failed.token()?.text != "=" || !is_compared.into_iter().any(|one| failed.expects(one)) {
        return None;
    }
    let is_test =
        [Expected::Comparison, Expected::Mark("==")].into_iter().any(|one| failed.expects(one)) || takes_value(failed);
    is_test.then(|| "write a test for equality as `==`".to_owned())
}

/// Returns the hint for a number in the place of a command.
pub(super) fn number_as_command(failed: &Failure<'_>) -> Option<String> {
    let (TokenKind::Number(value), number) = (&failed.token()?.kind, failed.token()?.text) else {
        return None;
    };
    let is_process = (1..=u64::from(LARGEST_PID)).contains(value) && number.bytes().all(|digit| digit.is_ascii_digit());
    failed.expects(Expected::Command).then(|| {
        if is_process {
            format!("`attach {number}` attaches to a process, and `translate {number}` translates an address")
        } else {
            format!("to translate an address: `translate {number}`")
        }
    })
}

/// Returns the hint for `|` or `&` in the place of a word, or an operator on bits in a filter.
pub(super) fn sign_in_filter(failed: &Failure<'_>) -> Option<String> {
    match failed.token()?.text {
        "|" | "&" if failed.expects(Expected::Word("or")) => Some("join conditions with `and`, `or`".to_owned()),
        sign @ ("&" | "^" | "|") if failed.expects(Expected::Comparison) => {
            Some(format!("in a filter {sign} needs parentheses: `(pfn {sign} 1) == 0`"))
        }
        _ => None,
    }
}

/// `present > 3`: a condition where a command is wanted.
pub(super) fn condition_as_command(failed: &Failure<'_>) -> Option<String> {
    let word = word(failed).filter(|word| FilterSubject::Page.has_condition(word))?;
    failed
        .expects(Expected::Command)
        .then(|| format!("`{word}` is a condition on pages: `walk all where {word}`, `print count(all where {word})`"))
}

/// Returns the hint for a format after a blank.
pub(super) fn late_format(failed: &Failure<'_>) -> Option<String> {
    let is_format = failed.token()?.text == "/" && failed.expects(Expected::Range);
    is_format.then(|| "write the format directly after the command: `print/x`".to_owned())
}

/// Returns the hint for a frame of gdb without an address.
pub(super) fn frame_of_gdb(failed: &Failure<'_>) -> Option<String> {
    let is_frame = failed.token()?.text == "#";
    is_frame.then(|| "this frame has no address: `print $pc` in gdb shows it".to_owned())
}
