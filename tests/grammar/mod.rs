//! Holds the parser to `grammar/`, the language as written down.
//!
//! The recogniser here is built from `language.ebnf` alone and shares no code with the parser: where they disagree on a
//! sentence, one of them is wrong.

mod abbreviations;
mod blocks;
mod derive;
mod ebnf;
mod files;
mod hints;
mod names;
mod operators;
mod pasted;
mod recognise;
mod scan;

use crate::sample;
use derive::{Deriver, Random, join, mutate};
use ebnf::Grammar;
use pmdb::command::LANGUAGE;
use pmdb::lang::SyntaxError;
use proptest::prelude::*;
use recognise::Recogniser;
use std::collections::HashMap;

/// Whether a message of the parser is only complete with the words that could have stood there.
fn needs_alternatives(message: &str) -> bool {
    const BEGIN: [&str; 5] =
        ["unexpected `", "unexpected condition", "incomplete command", "unknown type", "there is no function"];
    const END: [&str; 2] = ["is not a format", "is the beginning of several commands"];
    BEGIN.iter().any(|words| message.starts_with(words)) || END.iter().any(|words| message.ends_with(words))
}

/// Whether an error has either a complete cause or what could have stood there.
fn is_answered(error: &SyntaxError) -> bool {
    error.expected.is_empty() != needs_alternatives(&error.message)
}

const GRAMMAR: &str = include_str!("../../grammar/language.ebnf");

fn grammar() -> Grammar {
    Grammar::read(GRAMMAR)
}

/// The parser's nesting limit is far above; longer lines only cost time.
const LONGEST: usize = 300;

/// PMDB_GRAMMAR_SEED repeats a run that failed, PMDB_GRAMMAR_SENTENCES makes it longer.
fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A tree without the places of its parts.
fn without_places(tree: &pmdb::lang::ParsedLine) -> String {
    let tree = format!("{tree:?}");
    let mut parts = tree.split('@');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// The line as the parser sees it must mean the same when it is printed and parsed again.
fn check_round_trip(line: &str, tree: &pmdb::lang::ParsedLine) -> Result<(), String> {
    let printed = tree.to_string();
    match LANGUAGE.parse_line(&printed) {
        Ok(again) if without_places(&again) == without_places(tree) => Ok(()),
        Ok(again) => Err(format!("{line}\nis printed as\n{printed}\nand that means\n{again:?}\nbut not\n{tree:?}")),
        Err(error) => Err(format!("{line}\nis printed as\n{}", error.draw(&printed))),
    }
}

/// Parser and recogniser must agree; whether they accept.
fn check_line(recogniser: &Recogniser, line: &str) -> Result<bool, String> {
    let recognised = recogniser.accepts(line);
    // The words of other programs are a table, and no syntax.
    if !recognised && pmdb::hint::habits::of(line).is_some() {
        return Ok(false);
    }
    match (recognised, LANGUAGE.parse_line(line)) {
        (true, Ok(tree)) => check_round_trip(line, &tree).map(|()| true),
        (false, Err(error)) if !is_answered(&error) => {
            Err(format!("{line}\n{error}\nhas a cause or alternatives, not both"))
        }
        (false, Err(_)) => Ok(false),
        (true, Err(error)) => {
            Err(format!("the grammar has this line, the parser has not:\n{line}\n{}", error.draw(line)))
        }
        (false, Ok(tree)) => Err(format!("the parser has this line, the grammar has not:\n{line}\n{tree:?}")),
    }
}

/// How many sentences were derived and damaged, and what became of them.
#[derive(Default)]
struct Tally {
    derived: u64,
    accepted: u64,
    mutated: u64,
    rejected: u64,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, more: Tally) {
        self.derived += more.derived;
        self.accepted += more.accepted;
        self.mutated += more.mutated;
        self.rejected += more.rejected;
        self.wrong.extend(more.wrong);
    }
}

/// Each production is in so many sentences of a sample, if it is in so many at all.
const OF_EACH_PRODUCTION: usize = 3;

/// The seed of one sentence.
fn seed_of(seed: u64, number: u64) -> u64 {
    seed.wrapping_mul(0x1_0000_0001).wrapping_add(number)
}

/// Those of the first `sentences` that show each production of the grammar, or all.
fn chosen(seed: u64, sentences: u64) -> Vec<u64> {
    if sample::is_exhaustive() {
        return (0..sentences).collect();
    }
    let grammar = grammar();
    let deriver = Deriver::new(&grammar);
    let mut seen: HashMap<_, usize> = HashMap::new();
    let shows_more = |number: &u64| {
        let mut random = Random::new(seed_of(seed, *number));
        let sentence = deriver.sentence(&mut random);
        if join(&sentence.tokens, &mut random).len() > LONGEST {
            return false;
        }
        let mut is_needed = false;
        for production in sentence.productions {
            let seen = seen.entry(production).or_default();
            *seen += 1;
            is_needed |= *seen <= OF_EACH_PRODUCTION;
        }
        is_needed
    };
    (0..sentences).filter(shows_more).collect()
}

/// Checks these sentences, each with three mutations.
fn check_sentences(seed: u64, numbers: impl Iterator<Item = u64>) -> Tally {
    let grammar = grammar();
    let recogniser = Recogniser::new(&grammar);
    let deriver = Deriver::new(&grammar);
    let mut tally = Tally::default();
    for number in numbers {
        let mut random = Random::new(seed_of(seed, number));
        let tokens = deriver.sentence(&mut random).tokens;
        let line = join(&tokens, &mut random);
        if line.len() > LONGEST {
            continue;
        }
        let wrong = &mut tally.wrong;
        let mut check = |line: &str| {
            check_line(&recogniser, line).unwrap_or_else(|fault| {
                wrong.push(format!("(sentence {number}) {fault}"));
                false
            })
        };
        tally.derived += 1;
        tally.accepted += u64::from(check(&line));
        let mut damaged = tokens;
        for _ in 0..3 {
            damaged = mutate(&damaged, &deriver, &mut random);
            let line = join(&damaged, &mut random);
            if line.len() <= LONGEST {
                tally.mutated += 1;
                tally.rejected += u64::from(!check(&line));
            }
        }
        if tally.wrong.len() > 5 {
            break;
        }
    }
    tally
}

#[test]
fn parser_and_grammar_agree() {
    let seed = from_environment("PMDB_GRAMMAR_SEED", sample::number());
    let numbers = chosen(seed, from_environment("PMDB_GRAMMAR_SENTENCES", 8_000));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let shares = (0..threads).map(|first| numbers.iter().copied().skip(first).step_by(threads));
        let running: Vec<_> = shares.map(|share| scope.spawn(move || check_sentences(seed, share))).collect();
        running.into_iter().for_each(|one| tally.add(one.join().expect("a tally")));
    });
    let Tally { derived, accepted, mutated, rejected, wrong } = tally;
    println!("{derived} derived, {accepted} of them accepted; {mutated} mutated, {rejected} of them rejected");
    assert!(wrong.is_empty(), "PMDB_GRAMMAR_SEED={seed}\n{}", wrong.join("\n\n"));
    // Joined without a blank, cut by a comment or at a pipe, some derived sentences are none.
    assert!(accepted * 10 > derived * 7, "only {accepted} of {derived} derived sentences are accepted");
    assert!(rejected * 10 > mutated * 3, "only {rejected} of {mutated} mutations are rejected");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(line in "\\PC*|[ -~\\t\\n]*|(walk|print|translate|watch|echo) [ -~]*") {
        match LANGUAGE.parse_line(&line) {
            Ok(tree) => check_round_trip(&line, &tree).map_err(TestCaseError::fail)?,
            Err(error) => {
                prop_assert!(is_answered(&error), "{}", error);
                prop_assert!(error.at.start <= error.at.end && error.at.end <= line.len());
                prop_assert!(!error.draw(&line).contains(|c: char| c.is_control() && c != '\n'));
            }
        }
    }

    #[test]
    fn completion_never_panics(line in "(walk|print|translate|watch|set|info|show) [ -~]*", cursor in 0_usize..40) {
        let expectation = LANGUAGE.expectation(&line, cursor);
        prop_assert!(expectation.start <= line.len());
    }
}
