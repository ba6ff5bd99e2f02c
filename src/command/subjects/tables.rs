//! The tables in the texts: rows of a word and its meaning, from the tables of the code.

use crate::command::walk;
use crate::hint::habits::{Does, HABITS};
use crate::kernel::page_flags::FLAGS;
use crate::kernel::words::{Worded, fragment};
use crate::kernel::{Kind, State, WordFile};
use crate::lang::{FilterField, Format, PageField, RegionField, Setting, Unit, ValueType, grammar};
use crate::process::kept_under_no_key;
use crate::report::{EXIT_STATUSES, ErrorCode, EventKind, JsonForm, Shape};

/// The rows of a table by its name in the text; one of the tables describes `all` records.
pub(super) fn rows(name: &str, all: &[Shape]) -> String {
    match name {
        "operators" => operators(),
        "page-fields" => page_fields(),
        "needs" => needs(),
        "region-fields" => region_fields(),
        "group-keys" => group_keys(),
        "states" => rows_of_words::<State>(18),
        "kinds" => rows_of_words::<Kind>(18),
        "codes" => codes(),
        "exit-statuses" => EXIT_STATUSES.iter().map(|(status, meaning)| row(status, 6, meaning)).collect(),
        "events" => rows_of_words::<EventKind>(22),
        "flags" => flags(),
        "formats" => formats(),
        "settings" => settings(),
        "habits" => habits(),
        "records" => records(all),
        "kernels" => kernels(),
        "under-no-key" => kept_under_no_key().iter().map(|(words, why)| row(words, 43, why)).collect(),
        "files-of-frames" => row(&format!("/proc/{}", files_of_frames()), 45, "a word for each page frame"),
        "words-of-frames" => row(&joined(WordFile::words), 28, &format!("the words of {}", files_of_frames())),
        "captured-frames" => {
            let frames = format!("{} of its frames, and of the other frames of their folios", files_of_frames());
            row("frames", 14, &frames)
        }
        _ => String::new(),
    }
}

/// A word, and its meaning from `column` on.
fn row(word: &str, column: usize, meaning: &str) -> String {
    let width = column.saturating_sub(4);
    format!("  {word:<width$}  {meaning}\n")
}

fn rows_of_words<W: Worded>(column: usize) -> String {
    let rows = W::ALL.iter();
    rows.map(|one| row(one.word(), column, &fragment(one.about()))).collect()
}

/// The codes of errors, each with its exit status.
fn codes() -> String {
    let meaning = |code: &ErrorCode| format!("{}: {}", code.status(), fragment(code.about()));
    ErrorCode::ALL.iter().map(|code| row(code.word(), 19, &meaning(code))).collect()
}

/// The facts by the kernel that shows them, from the table that is part of the documentation of the library.
fn kernels() -> String {
    let rows = include_str!("../../inspect/facts.md").lines().skip(2);
    let mut kernels: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [fact, _rights, since] = cells[..] else { continue };
        match kernels.last_mut() {
            Some((kernel, facts)) if *kernel == since => facts.push(fact),
            _ => kernels.push((since, vec![fact])),
        }
    }
    kernels.iter().map(|(kernel, facts)| row(kernel, 25, &facts.join(", "))).collect()
}

fn operators() -> String {
    let rows = grammar::OPERATORS.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.split_once(' '))
        .map(|(kind, operators)| {
            let names = operators.split_whitespace().map(|operator| operator_name(kind, operator));
            let mut names: Vec<&str> = names.collect();
            names.dedup();
            let place = if kind == "prefix" { "before one operand: " } else { "" };
            row(operators.trim(), 24, &format!("{place}{}", names.join(", ")))
        })
        .collect()
}

/// The name of an operator of `grammar/operators`.
fn operator_name(kind: &str, operator: &str) -> &'static str {
    match (kind, operator) {
        ("prefix", "-") => "negative",
        ("prefix", "+") => "positive",
        ("prefix", "~") => "bitwise not",
        ("prefix", "!") => "logical not",
        ("prefix", "*") => "memory at an address",
        (_, "||" | "or") => "logical or",
        (_, "&&" | "and") => "logical and",
        (_, "|") => "bitwise or",
        (_, "^") => "bitwise exclusive or",
        (_, "&") => "bitwise and",
        (_, "==") => "equal",
        (_, "!=") => "not equal",
        (_, "~") => "matches a regular expression",
        (_, "<") => "less",
        (_, "<=") => "less or equal",
        (_, ">") => "greater",
        (_, ">=") => "greater or equal",
        (_, "<<") => "shift left",
        (_, ">>") => "shift right",
        (_, "+") => "sum",
        (_, "-") => "difference",
        (_, "*") => "product",
        (_, "/") => "quotient",
        (_, "%") => "remainder",
        _ => "",
    }
}

fn page_fields() -> String {
    let is_shown = |field: &PageField| match field {
        PageField::Fact(fact) => fact.row().value_type != ValueType::Word,
        PageField::Flag(_) => true,
        PageField::State(_) | PageField::Kind(_) => false,
    };
    let rows = |field: PageField| {
        let need = match field.fact().row().need {
            "" => String::new(),
            need => format!(" [{need}]"),
        };
        row(field.name(), 20, &format!("{}{need}", fragment(field.about()))) + &others(field)
    };
    PageField::all().filter(is_shown).map(rows).collect()
}

/// The rows of the other names of a field.
fn others<F: FilterField>(field: F) -> String {
    let same = if field.is_integer() { "as a number the same as" } else { "the same as" };
    field.other_names().iter().map(|other| row(other, 20, &format!("{same} {}", field.name()))).collect()
}

/// What pages can be grouped by; a row for all yes-or-no words.
fn group_keys() -> String {
    let keys = walk::KEYS.all().filter(|key| key.value_type() != ValueType::Boolean);
    let rows: String = keys.map(|key| row(key.word(), 16, &fragment(key.about()))).collect();
    let words = "yes or no: a condition on pages, such as dirty, exclusive, huge or flags(NAME)";
    rows + &row("WORD", 16, words)
}

/// What facts need beside files with a word for each frame, as the rows of the fields have it.
const NEEDS: &[(&str, &str)] = &[
    ("frames", "frame numbers: CAP_SYS_ADMIN"),
    ("kcore", "struct page (/proc/kcore): root outside of containers"),
    ("scan", "Linux 6.7 or later, or flags (but `exclusive` on small pages needs nothing)"),
    ("soft-dirty", "a kernel with CONFIG_MEM_SOFT_DIRTY"),
    ("memory", "the memory of the process, as for `x`; in captures, those `with memory`"),
];

fn needs() -> String {
    let files =
        WordFile::OF_FRAMES.map(|file| row(file.words(), 20, &format!("/proc/{}: {}", file.name(), file.need())));
    files.into_iter().chain(NEEDS.iter().map(|(need, what)| row(need, 20, what))).collect()
}

/// The files with a word for each frame, by their names.
fn files_of_frames() -> String {
    joined(WordFile::name)
}

fn joined(word: fn(WordFile) -> &'static str) -> String {
    WordFile::OF_FRAMES.map(word).join(", ")
}

fn region_fields() -> String {
    let fields = RegionField::all();
    fields.map(|field| row(field.name(), 20, &fragment(field.doc())) + &others(field)).collect()
}

fn flags() -> String {
    let flags = FLAGS.iter().map(|info| {
        let bit = info.flag.bits().trailing_zeros();
        let letter = info.flag.set_letters();
        row(&format!("{bit:>2} {letter} {}", info.name), 22, info.meaning)
    });
    flags.collect()
}

fn formats() -> String {
    let formats = Format::ALL.iter().map(|format| row(format.letter(), 8, format.doc()));
    let units = Unit::ALL.iter().map(|unit| {
        let meaning = match unit.bytes() {
            1 => "units of one byte".to_owned(),
            bytes => format!("units of {bytes} bytes"),
        };
        row(unit.letter(), 8, &meaning)
    });
    formats.chain(units).collect()
}

/// A paragraph for each record and a row for each of its fields.
fn records(all: &[Shape]) -> String {
    let mut text = String::new();
    for (index, shape) in all.iter().enumerate() {
        let is_known = |other: &Shape| other.name == shape.name;
        if all.iter().take(index).any(is_known) {
            continue;
        }
        let about = words(shape.about);
        text.push_str(&format!("{}: {about}\n\n", shape.name));
        for field in shape.form.fields() {
            let name = if field.is_optional { format!("[{}]", field.name) } else { field.name.to_owned() };
            let meaning = format!("{}: {}", form(field.form), words(field.about));
            text.push_str(&row(&name, 24, &meaning));
        }
        text.push('\n');
    }
    text
}

/// A doc comment in one line.
fn words(about: &str) -> String {
    about.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a value is in JSON, in words.
fn form(of: JsonForm) -> String {
    match of {
        JsonForm::Bool => "true or false".to_owned(),
        JsonForm::Integer | JsonForm::Number => "number".to_owned(),
        JsonForm::Hex => "hexadecimal".to_owned(),
        JsonForm::Text | JsonForm::Word(_) => "text".to_owned(),
        JsonForm::Flags => "list of text".to_owned(),
        JsonForm::List(form) => format!("list of {}", self::form(*form)),
        JsonForm::Map(form) => format!("object of names, each with {}", self::form(*form)),
        JsonForm::Either(one, other) => format!("{} or {}", self::form(*one), self::form(*other)),
        JsonForm::OrNull(form) => format!("{}, or null", self::form(*form)),
        _ => {
            let fields = of.fields();
            let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
            format!("{{{}}}", names.join(", "))
        }
    }
}

fn settings() -> String {
    let rows = Setting::ALL.iter();
    rows.map(|setting| row(setting.name(), 24, setting.about())).collect()
}

fn habits() -> String {
    let rows = HABITS.iter().filter_map(|habit| match habit.does {
        Does::Run(ours, _) => {
            let theirs = habit.words.iter().take(4).copied().collect::<Vec<_>>();
            Some(row(ours, 22, &theirs.join(", ")))
        }
        Does::Nothing | Does::Refuse(_) | Does::Point { .. } => None,
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::PageFact;

    #[test]
    fn each_need_is_explained() {
        let mut needs = PageFact::ALL.iter().map(|fact| fact.row().need).filter(|need| !need.is_empty());
        let files = WordFile::OF_FRAMES.map(WordFile::words);
        let is_known = |need: &str| files.contains(&need) || NEEDS.iter().any(|(known, _)| *known == need);
        assert_eq!(needs.find(|need| !is_known(need)), None);
        let used = |need: &str| PageFact::ALL.iter().any(|fact| fact.row().need == need);
        assert_eq!(NEEDS.iter().find(|(need, _)| !used(need)), None);
    }
}
