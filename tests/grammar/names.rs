//! The tables of names in the code are those of the grammar, both ways.

use std::collections::BTreeSet;

use pmdb::command::LANGUAGE;
use pmdb::kernel::PageFact;
use pmdb::lang::ValueType;
use pmdb::lang::{FilterField, KeyFacts, PageField, RegionField, Setting, TakenKeys};

use super::ebnf::CommandWord;
use super::grammar;

fn set(words: impl IntoIterator<Item = impl Into<String>>) -> BTreeSet<String> {
    words.into_iter().map(Into::into).collect()
}

#[test]
fn command_names() {
    // `!` is how SHELL begins, not a word.
    let short = |forms: &[&str]| forms.iter().filter(|form| **form != "!").map(|form| (*form).to_owned()).collect();
    let code: BTreeSet<CommandWord> = LANGUAGE
        .names()
        .map(|command| CommandWord {
            name: command.name.to_owned(),
            short: short(command.short),
            whole: command.is_whole,
        })
        .collect();
    let written: BTreeSet<CommandWord> = grammar().commands().into_iter().collect();
    assert_eq!(code, written);
}

#[test]
fn every_command_rule_is_named_as_its_command() {
    let grammar = grammar();
    for CommandWord { name, .. } in grammar.commands() {
        let rule = name.replace([' ', '-'], "_");
        assert!(grammar.names().any(|one| one == rule), "{name} has no rule {rule}");
    }
}

fn fields<F: FilterField>(wanted: impl Fn(ValueType) -> bool) -> BTreeSet<String> {
    set(F::all().filter(|field| wanted(field.value_type())).flat_map(F::names))
}

#[test]
fn fields_of_filters() {
    let grammar = grammar();
    let words = |rule: &str| set(grammar.words(rule));
    assert_eq!(fields::<PageField>(|kind| kind == ValueType::Boolean), words("boolean<page>"));
    assert_eq!(fields::<PageField>(|kind| kind == ValueType::Integer), words("integer<page>"));
    assert_eq!(fields::<RegionField>(|kind| kind == ValueType::Boolean), words("boolean<region>"));
    assert_eq!(fields::<RegionField>(|kind| kind == ValueType::Integer), words("integer<region>"));
    for (field, rule) in [(PageField::Fact(PageFact::State), "state"), (PageField::Fact(PageFact::Kind), "kind")] {
        assert_eq!(field.value_type(), ValueType::Word, "{rule}");
        let taken = PageField::all().filter(|word| field.takes(*word));
        assert_eq!(set(taken.map(PageField::name)), words(rule));
    }
}

#[test]
fn keys_of_groups() {
    let grammar = grammar();
    for (facts, rule) in [(KeyFacts::All, "page_key"), (KeyFacts::OfFrames, "frame_key")] {
        let words = TakenKeys { facts, others: &[] }.words();
        let is_word = |text: &String| text.len() > 1 && text.starts_with(|first: char| first.is_ascii_lowercase());
        let written: BTreeSet<String> = set(grammar.words(rule)).into_iter().filter(is_word).collect();
        assert_eq!(set(words), written, "{rule}");
    }
}

#[test]
fn types_of_one_word() {
    let grammar = grammar();
    let qualified = ["signed", "unsigned", "short", "long"].map(str::to_owned);
    let mut written: BTreeSet<String> = set(grammar.words("c_number"));
    written.extend(qualified);
    assert_eq!(set(pmdb::lang::type_words()), written);
}

#[test]
fn settings() {
    let written = grammar();
    let mut words: BTreeSet<String> = set(written.words("switch"));
    let second = ["records", "maps", "errors", "commands", "enabled", "overwrite", "redirect"];
    for word in ["kernel", "perf", "shell", "trace", "logging"].into_iter().chain(second) {
        assert!(words.remove(word), "two words: {word}");
    }
    words.extend(
        [
            "height",
            "width",
            "history size",
            "kernel records",
            "perf maps",
            "shell errors",
            "trace commands",
            "logging enabled",
            "logging overwrite",
            "logging redirect",
            "color",
            "style",
            "editing",
            "pager",
        ]
        .map(str::to_owned),
    );
    assert_eq!(set(Setting::ALL.iter().map(|setting| setting.name())), words);
}
