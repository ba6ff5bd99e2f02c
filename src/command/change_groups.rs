//! The facts that samples hold, for `watch` and `diff`: which changes can be asked for, by which facts changes can be
//! grouped, and the names of the groups.

use super::floor::Error;
use super::named_pages::{PagesOfSymbols, name_among_symbols};
use super::rows::name_of_region;
use crate::eval;
use crate::inspect::fact::changing_facts;
use crate::inspect::{ChangedGroup, ChangesOfGroup, Evidence, FactReader, MOST_LATER_REGIONS, SymbolAt};
use crate::kernel::{Key, PageFact, PageField};
use crate::lang::parser::{Failed, Parsed, Tokens, silent_word, word};
use crate::lang::{FilterField, WrittenKey};

/// The key that was written. Samples that read `held` have its value; `more` says how to make them read more.
///
/// # Errors
/// No flag has this name. The samples do not hold the fact: the hint is what to type.
pub(super) fn key_of_changes(
    written: &WrittenKey,
    held: Evidence,
    more: impl Fn(PageFact) -> String,
) -> Result<Key, Error> {
    let key = eval::key(written)?;
    let Key::Page(field) = key else {
        return Ok(key);
    };
    // Samples have frames, which tell the node.
    let held = held | Evidence::ZONES;
    let message = format!("changes cannot be grouped by `{key}`: it was not sampled");
    let fact = field.fact();
    match fact.need_of_samples().filter(|_| fact.row().is_of_changes) {
        Some(need) if held.contains(need) => Ok(key),
        Some(_) => Err(Error::refused(message, more(fact))),
        None => Err(Error::refused(message, as_they_are(fact))),
    }
}

/// A fact whose changes samples show on request.
pub(super) fn changing_fact(input: Tokens<'_>) -> Parsed<'_, PageFact> {
    let mut words = changing_facts().map(|fact| Ok((word(fact.row().word)(input)?.0, fact)));
    let mut others = changing_facts().flat_map(|fact| {
        let others = fact.row().accepted.iter();
        others.map(move |other| Ok((silent_word(other)(input)?.0, fact)))
    });
    let found = words.find_map(Result::<_, nom::Err<Failed>>::ok);
    found.or_else(|| others.find_map(Result::<_, nom::Err<Failed>>::ok)).ok_or_else(|| {
        let typed = input.first().and_then(|token| PageField::from_name(token.text));
        let hint = |fact: PageFact| match fact.row() {
            row if row.is_of_changes => format!("`by {}` needs no `with`", row.word),
            _ => as_they_are(fact),
        };
        typed.into_iter().for_each(|field| input.hint(hint(field.fact())));
        nom::Err::Error(Failed)
    })
}

/// What to type for a fact that samples do not hold.
pub(super) fn as_they_are(fact: PageFact) -> String {
    let word = fact.row().word;
    if fact.row().is_key {
        format!("`walk RANGE by {word}` counts the pages as they are now")
    } else {
        format!("`walk RANGE where {word} …` lists the pages as they are now")
    }
}

/// Names the groups of changes by a key.
pub(super) struct GroupNames<'a> {
    pub by: Key,
    pub reader: FactReader,
    pub symbols: PagesOfSymbols<'a>,
}

impl GroupNames<'_> {
    /// The numbers of the symbols that pages begin in.
    pub fn symbol_at(&mut self) -> SymbolAt<'_> {
        Box::new(|address| self.symbols.at(address))
    }

    pub fn name(&self, of: &ChangesOfGroup) -> String {
        match (self.by, &of.group) {
            (Key::Page(field), ChangedGroup::Pages(answer)) => self.reader.shown(field, *answer).0,
            (_, ChangedGroup::Symbol(symbol)) => self.symbols.name(*symbol),
            (_, ChangedGroup::NoSymbol(region)) => name_among_symbols(region),
            (_, ChangedGroup::Kind(kind)) => kind.words().to_owned(),
            _ => match &of.region {
                Some(region) => name_of_region(region),
                None => format!("all regions after the first {MOST_LATER_REGIONS} new ones"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::named_pages::names_in;
    use super::*;
    use crate::inspect::{AddressSpace, Answer, Change, ChangeGroups};
    use crate::kernel::State;
    use crate::process::fake::{World, region};
    use crate::report::EventKind;
    use crate::symbol::Symbols;

    #[test]
    fn groups_have_the_names_of_what_their_changes_have_in_common() {
        let (_, target) = World::new([region(0x1000, 4)]).target();
        let space = AddressSpace::of(&target).expect("a space");
        let symbols = Symbols::default();
        let name = |by, group, region| {
            let symbols = PagesOfSymbols::new(names_in(&space, &symbols), space.page_size());
            let names = GroupNames { by, reader: FactReader::of_pages(&space), symbols };
            let mut groups = ChangeGroups::new(by, space.page_size());
            groups.add(&Change { region: Some(self::region(0x1000, 4)), ..Change::of_process(EventKind::Came) }, 0);
            let of = groups.finish().remove(0);
            names.name(&ChangesOfGroup { group, region, ..of })
        };
        let by = |fact| Key::Page(PageField::Fact(fact));
        let pages = |answer| ChangedGroup::Pages(answer);
        let one = self::region(0x1000, 4);
        for (by, group, region, expected) in [
            (by(PageFact::State), pages(Answer::Is(State::Swapped as u64)), None, "swapped"),
            (by(PageFact::MapCount), pages(Answer::Is(2)), None, "2"),
            (by(PageFact::MapCount), pages(Answer::None), None, "no frame"),
            (by(PageFact::MapCount), ChangedGroup::Kind(EventKind::RegionWent), None, "region went"),
            (Key::Symbol, ChangedGroup::NoSymbol("[heap]".into()), None, "[heap]"),
            (Key::Region, ChangedGroup::Region(Some(0)), Some(one), "0x1000000..0x1004000 rw-p"),
            (Key::Region, ChangedGroup::Region(None), None, "all regions after the first 65536 new ones"),
        ] {
            assert_eq!(name(by, group, region), expected);
        }
    }

    #[test]
    fn what_samples_do_not_hold_is_refused_with_what_to_type() {
        let key = |fact, held| {
            let written = WrittenKey::Key(Key::Page(PageField::Fact(fact)));
            key_of_changes(&written, held, |fact| format!("add `with {}`", fact.row().word))
        };
        let none = Evidence::empty();
        assert!(key(PageFact::State, none).is_ok() && key(PageFact::Node, none).is_ok());
        assert!(key(PageFact::MapCount, Evidence::COUNTS).is_ok());
        for (fact, hint) in [
            (PageFact::MapCount, "add `with mapcount`"),
            (PageFact::Order, "`walk RANGE by order` counts the pages as they are now"),
            (PageFact::SoftDirty, "`walk RANGE by soft_dirty` counts the pages as they are now"),
        ] {
            match key(fact, none) {
                Err(Error::Refused { hint: Some(found), .. }) => assert_eq!(found, hint),
                other => panic!("{other:?}"),
            }
        }
        let expected = |line: &str| {
            let kinds = crate::command::LANGUAGE.expectation(line, line.len()).kinds;
            let keys = kinds.iter().find_map(|kind| match kind {
                crate::lang::Expected::Key(keys) => Some(*keys),
                _ => None,
            });
            keys.into_iter().flat_map(crate::lang::TakenKeys::all).map(Key::word).collect::<Vec<_>>()
        };
        for line in ["watch heap by ", "diff a by "] {
            let words = expected(line);
            assert!(
                ["state", "flags", "mapcount", "node", "present", "dirty"].iter().all(|word| words.contains(word)),
                "{line}"
            );
            assert!(["order", "soft_dirty", "file"].iter().all(|word| !words.contains(word)), "{line}");
        }
        let words: Vec<&str> = changing_facts().map(|fact| fact.row().word).collect();
        assert_eq!(words, ["flags", "mapcount", "soft_dirty"]);
    }
}
