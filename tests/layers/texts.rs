//! Every text of the program, the literals of `src` that a person can see, is held to the rules of our English.
//! `PMDB_BLESS=1` writes them to `target/tmp/texts.txt`, to be read from top to bottom.

use super::{Source, sources};
use crate::english::{faults, filled, meaning};
use pmdb::command::LANGUAGE;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Macros and methods whose texts only somebody who changes the program can see.
const INTERNAL: [&str; 9] =
    ["expect", "unreachable", "panic", "assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "cfg"];

/// The macros in which a comment is shown: it says in the help what a field of a record means.
const SHOWN_COMMENTS: [&str; 2] = ["record", "records"];

/// The texts among `tokens`, in their order.
fn texts(tokens: TokenStream, has_shown_comments: bool, found: &mut Vec<String>) {
    let tokens = Vec::from_iter(tokens);
    let mut rest = &tokens[..];
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            // The comment at the beginning of a file.
            (TokenTree::Punct(mark), [TokenTree::Punct(_), TokenTree::Group(_), after @ ..])
                if mark.as_char() == '#' =>
            {
                rest = after;
            }
            (TokenTree::Punct(mark), [TokenTree::Group(attribute), after @ ..]) if mark.as_char() == '#' => {
                rest = after;
                let inside = attribute.stream().to_string();
                if inside.replace(' ', "").starts_with("cfg(test") {
                    rest = after_item(after);
                } else if has_shown_comments || !inside.starts_with("doc") {
                    texts(attribute.stream(), has_shown_comments, found);
                }
            }
            (TokenTree::Ident(word), [TokenTree::Group(_), after @ ..]) if is_internal(&word.to_string()) => {
                rest = after;
            }
            (TokenTree::Ident(word), [TokenTree::Punct(mark), TokenTree::Group(body), after @ ..])
                if mark.as_char() == '!' =>
            {
                let word = word.to_string();
                if !is_internal(&word) {
                    texts(body.stream(), has_shown_comments || SHOWN_COMMENTS.contains(&&*word), found);
                }
                rest = after;
            }
            (TokenTree::Group(group), _) => texts(group.stream(), has_shown_comments, found),
            (TokenTree::Literal(literal), _) => found.extend(text_of(&literal.to_string())),
            _ => {}
        }
    }
}

/// What follows the item at the beginning of `tokens`.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => matches!(mark.as_char(), ';' | ','),
        _ => false,
    };
    let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
    &tokens[end..]
}

fn is_internal(word: &str) -> bool {
    INTERNAL.contains(&word)
}

/// The text of a literal, if it is one.
fn text_of(literal: &str) -> Option<String> {
    if literal.starts_with('r') {
        let text = literal.trim_start_matches('r').trim_matches('#');
        return Some(text.trim_matches('"').to_owned());
    }
    let inside = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut letters = inside.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('t')) => text.push('\t'),
            // The end of a line, and the blanks after it.
            ('\\', Some('\n')) => {
                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                continue;
            }
            ('\\', Some(&other)) => text.push(other),
            _ => {
                text.push(letter);
                continue;
            }
        }
        letters.next();
    }
    Some(text)
}

/// Whether a text has words that follow each other.
fn is_prose(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let is_word = |word: &&str| word.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
    words.windows(2).any(|pair| pair.iter().all(is_word))
}

/// The literals of a file that a person can see, words alone too.
pub(super) fn literals(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    texts(TokenStream::from_iter(file.tokens()), false, &mut found);
    found
}

/// Each file with the texts in it.
fn all() -> Vec<(String, Vec<String>)> {
    let mut files = Vec::new();
    sources(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files.retain(|file| !is_test(&file.path));
    let with_texts = |file: Source| -> (String, Vec<String>) {
        let found = literals(&file).into_iter().filter(|text| is_prose(text)).collect();
        (file.path, found)
    };
    files.into_iter().map(with_texts).filter(|(_, found)| !found.is_empty()).collect()
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "fake"))
}

/// The list to be read, by file.
fn list() -> String {
    let mut listed = String::new();
    for (path, texts) in all() {
        listed += &format!("\n== {path}\n");
        for text in texts {
            listed += &text.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
        }
    }
    let help = Command::new(env!("CARGO_BIN_EXE_pmdb")).arg("--help").env("COLUMNS", "80").output().expect("pmdb runs");
    listed + "\n== pmdb --help\n" + &String::from_utf8(help.stdout).expect("text")
}

#[test]
fn every_text_is_listed() {
    let listed = list();
    if std::env::var_os("PMDB_BLESS").is_some() {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("texts.txt");
        fs::write(&path, &listed).expect("written");
        println!("all texts: {}", path.display());
    }
    let summaries = pmdb::command::COMMANDS.abouts().map(|about| about.summary);
    let missing: Vec<&str> = summaries.filter(|summary| is_prose(summary) && !listed.contains(summary)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Texts that are no English: the beginning of each.
const NO_ENGLISH: [&str; 4] = ["__float128", "==\\d+", ": ${{LESS", "{open}"];

/// Without what is filled in.
fn without_placeholders(line: &str) -> String {
    let mut parts = line.split('{');
    let begin = parts.next().unwrap_or_default().to_owned();
    parts.fold(begin, |line, part| line + "it" + part.split_once('}').map_or("", |(_, rest)| rest))
}

#[test]
fn every_text_is_written_by_the_rules() {
    let mut found = Vec::new();
    for (path, texts) in all() {
        let is_english = |text: &&String| !NO_ENGLISH.iter().any(|begin| text.starts_with(begin));
        for line in texts.iter().filter(is_english).flat_map(|text| text.lines()) {
            found.extend(
                faults(&without_placeholders(meaning(line)))
                    .into_iter()
                    .map(|fault| format!("{path}: {fault}: {line}")),
            );
        }
    }
    assert_eq!(found.join("\n"), "");
}

#[test]
fn names_in_messages_stand_in_backticks() {
    let is_quoted = |text: &str| {
        let behind_each = text.match_indices("'{").filter(|(at, _)| text[*at..].contains("}'"));
        // Single quotes inside of backticks are typed.
        behind_each.into_iter().any(|(at, _)| text[..at].matches('`').count().is_multiple_of(2))
    };
    assert!(is_quoted("no symbol is called '{name}'") && !is_quoted("put it in 'quotes': `'{name}'`"));
    let mut found = Vec::new();
    for (path, texts) in all() {
        let quoted = texts.iter().filter(|text| is_quoted(text));
        found.extend(quoted.map(|text| format!("{path}: {text}")));
    }
    assert_eq!(found.join("\n"), "");
}

/// The commands in a text: in backticks, or after a colon.
fn commands(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let after_colon = text.split(": ").skip(1).map(|rest| rest.split([';', '`']).next().unwrap_or_default());
    let without_remark = |line: &str| line.split(" (").next().unwrap_or_default().trim_end_matches('.').to_owned();
    let begins = |line: &String| LANGUAGE.names().any(|command| line.starts_with(&format!("{} ", command.name)));
    quoted.chain(after_colon).map(without_remark).filter(begins).collect()
}

#[test]
fn commands_in_texts_can_be_typed() {
    let (mut seen, mut refused) = (0, Vec::new());
    for (path, texts) in all() {
        let lines = texts.iter().flat_map(|text| text.lines());
        for command in lines.flat_map(commands).filter(|command| !command.contains(['{', '…'])) {
            seen += 1;
            // Words may follow it: `info threads lists them`.
            let filled = filled(&command.replace("FILTER)", "dirty)"));
            let ends = filled.match_indices([' ', ',', '.']).map(|(end, _)| end).skip(1).chain([filled.len()]);
            if !ends.into_iter().any(|end| LANGUAGE.parse_line(&filled[..end]).is_ok()) {
                refused.push(format!("{path}: {command}"));
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert_eq!(refused.join("\n"), "");
}
