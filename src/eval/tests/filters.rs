//! Filters of pages and of regions.

use super::language::{page_filter, region_filter};
use super::{World, process};
use crate::eval::{self, Error};
use crate::inspect::{AddressSpace, Evidence, HiddenEntry, Page, RegionAmount, StateSet};
use crate::kernel::{Kind, PageFlags, PageMapEntry, State, VirtualAddress};
use crate::process::fake::Fake;

/// The answer of the filter of `walk all where TEXT` for one page.
fn holds(fake: Fake, text: &str, page: &Page) -> Result<bool, Error> {
    let world = World::of(fake);
    let space = AddressSpace::of(world.target.as_ref().unwrap()).unwrap();
    let filter = page_filter(text);
    let filter = eval::page_filter(&filter, &space, &world)?;
    Ok(filter.matches(page, space.viewed_region(page.address)))
}

#[test]
fn a_field_that_is_easily_mistaken_comes_with_a_note() {
    for (text, words, notes) in [
        ("not locked", "`mlocked`", 1),
        ("mlocked or flags(locked)", "`mlocked`", 0),
        ("cached", "not mapped here", 1),
        ("cached or (file or shmem) and present", "not mapped here", 0),
        ("dirty", "until they are written back", 1),
        ("not huge", "add `or not present`", 1),
        ("not huge or not present", "add `or not present`", 0),
        ("shared", "MAP_SHARED", 1),
        ("shared and not exclusive", "MAP_SHARED", 0),
    ] {
        let world = World::of(process());
        let space = AddressSpace::of(world.target.as_ref().unwrap()).unwrap();
        eval::page_filter(&page_filter(text), &space, &world).unwrap();
        let noted = world.notes.take();
        assert_eq!(noted.iter().filter(|note| note.contains(words)).count(), notes, "{text}: {noted:?}");
    }
}

#[test]
fn pages_are_selected_by_the_name_of_their_region() {
    let named = |text| {
        let fake = Fake::new().region(0x40_0000, 0x41_0000, "r-xp", 7, "/usr/lib/libc.so.6");
        let page = Page { address: VirtualAddress::new(0x40_0000), ..present() };
        holds(fake, text, &page).unwrap()
    };
    for (text, is) in [
        ("region == \"libc.so.6\"", true),
        ("region == \"/usr/lib/libc.so.6\"", true),
        ("region ~ \"^libc\"", true),
        ("region != \"libc.so.6\"", false),
        ("region == \"\"", false),
        ("not region ~ \"libm\"", true),
    ] {
        assert_eq!(named(text), is, "{text}");
    }
    // In no region there is no name.
    assert!(!holds(Fake::new(), "region == \"\" or region != \"\"", &present()).unwrap());
}

fn present() -> Page {
    Page {
        entry: PageMapEntry::new(1 << 63 | 0x1234),
        kind: Some(Kind::Anonymous),
        flags: Some(PageFlags::DIRTY | PageFlags::LRU),
        map_count: Some(2),
        ..Page::new(VirtualAddress::new(0x50_0000), State::Present.into())
    }
}

fn untouched() -> Page {
    Page { entry: PageMapEntry::default(), states: State::Untouched.into(), flags: None, map_count: None, ..present() }
}

#[test]
fn filters_on_each_field_of_pages() {
    for (text, on_present, on_untouched) in [
        ("present", true, false),
        ("not present", false, true),
        ("state == untouched", false, true),
        ("state != untouched", true, false),
        ("dirty and not locked", true, false),
        ("flags(dirty)", true, false),
        // Without a frame there is no answer to any question about it, nor to its `not`.
        ("dirty or not dirty", true, false),
        ("not locked", true, false),
        ("not flags(bit60)", true, false),
        ("not exclusive", true, false),
        ("exclusive or not exclusive", true, false),
        ("mapcount < 5", true, false),
        ("pfn != 5", true, false),
        ("not dirty or untouched", false, true),
        ("mapcount > 1", true, false),
        ("mapcount <= 1", false, false),
        // No map count is neither true nor false.
        ("not mapcount > 1", false, false),
        ("mapcount > 1 or untouched", true, true),
        ("mapcount > 1 and untouched", false, false),
        ("mapcount * 2 + 1 == 5", true, false),
        ("pfn == 0x1234", true, false),
        ("pfn == pfn:0x1234", true, false),
        ("phys >= phys:0x1234000 and phys < 0x1235000", true, false),
        ("address == start(heap)", true, true),
        ("(address & 0xfff) == 0", true, true),
        ("address / (mapcount - 2) > 0", false, false),
        ("writable and private and not executable", true, true),
        ("present or present or present or not present", true, true),
        // What values have: words and signs, texts, memory, casts. What is the same for all is evaluated once.
        ("dirty && !locked || !(1 == 1)", true, false),
        ("name(heap) == \"[heap]\" and perms(heap) ~ \"^rw\" and 1 < 2", true, true),
        ("not name(heap) ~ \"stack\" and mapcount == (int)2", true, false),
        ("address == start([heap]) and address >= 'main'", true, true),
        ("1 > 2 and dirty or untouched", false, true),
    ] {
        let ask = |page: &Page| match holds(process(), text, page) {
            Ok(holds) => holds,
            Err(error) => panic!("{text}: {error}"),
        };
        assert_eq!(ask(&present()), on_present, "{text}, a present page");
        assert_eq!(ask(&untouched()), on_untouched, "{text}, an untouched page");
    }
}

#[test]
fn a_field_that_cannot_be_known_here_is_an_error_that_names_it() {
    let mut fake = process();
    fake.counts = None;
    let error = holds(fake.clone(), "present and mapcount > 1", &present()).unwrap_err();
    assert!(error.message.contains("`mapcount`") && error.message.contains("kpagecount"), "{error}");
    let line = "walk all where present and mapcount > 1";
    assert_eq!(line.get(error.at.start..error.at.end), Some("mapcount"));
    for (text, unknown) in [("refcount > 1", "references of frames"), ("not pinned", "pins of frames")] {
        let error = holds(fake.clone(), text, &present()).unwrap_err();
        assert!(error.to_string().contains(unknown), "{error}");
    }
    fake.flags = None;
    let error = holds(fake.clone(), "flags(thp)", &present()).unwrap_err();
    assert!(error.message.contains("kpageflags"), "{error}");
    assert_eq!(error.status(), 4);
    fake.frames_hidden = true;
    let error = holds(fake, "pfn == 1", &present()).unwrap_err();
    assert!(error.message.contains("CAP_SYS_ADMIN"), "{error}");
    let error = holds(process(), "soft_dirty", &present()).unwrap_err();
    assert!(error.message.contains("soft-dirty"), "{error}");
    assert_eq!(error.status(), 1);
}

#[test]
fn numbers_are_typed_and_evaluated_once() {
    for (text, part, message) in [
        ("pfn == &main", "==", "page frames and addresses cannot be compared"),
        ("address + &main > 0", "+", "two addresses cannot be added"),
        ("-pfn > 0", "-", "page frames cannot be negated or inverted"),
        ("mapcount > 1 / 0", "1 / 0", "division by zero"),
        ("mapcount > u8(0x508000)", "0x508000", "cannot read 0x508000: its page is untouched"),
        ("flags(drity)", "drity", "no page flag is called `drity`"),
        ("mapcount > $no", "$no", "$no has not been set"),
        ("dirty and size(heap) ~ \"1\"", "~", "`~` needs two texts"),
        ("name(heap) ~ \"(\" or dirty", "\"(\"", "not a regular expression"),
    ] {
        let error = holds(process(), text, &present()).unwrap_err();
        let line = format!("walk all where {text}");
        assert!(error.message.contains(message), "{text}: {error}");
        if !text.contains("/ 0") {
            assert_eq!(line.get(error.at.start..error.at.end), Some(part), "{text}");
        }
    }
    let error = holds(process(), "flags(drity)", &present()).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `dirty`?"));
}

#[test]
fn only_the_facts_that_a_filter_needs_are_read() {
    let world = World::of(process());
    let space = AddressSpace::of(world.target.as_ref().unwrap()).unwrap();
    for (text, need) in [
        ("present or swapped", Evidence::empty()),
        ("dirty", Evidence::FLAGS),
        ("mapcount > 1", Evidence::COUNTS),
        ("order >= 4", Evidence::ORDER),
        ("pfn > 5", Evidence::FRAMES | Evidence::EACH),
        ("dirty or mapcount > 1", Evidence::FLAGS | Evidence::COUNTS),
    ] {
        let filter = page_filter(text);
        let filter = eval::page_filter(&filter, &space, &world).unwrap();
        assert_eq!(filter.need(), need, "{text}");
    }
}

#[test]
fn filters_on_regions() {
    let world = World::of(process());
    let space = AddressSpace::of(world.target.as_ref().unwrap()).unwrap();
    for (text, names) in [
        ("size >= 64K", "[heap] [stack]"),
        ("name == \"data.bin\"", "/opt/a/data.bin /opt/b/data.bin"),
        ("file and executable", "/usr/bin/program /usr/lib/libc.so.6"),
        ("perms == \"--xp\"", "[vsyscall]"),
        ("name ~ \"^/opt\" && !(name == name(0x60002000))", "/opt/a/data.bin"),
        ("shared", "/tmp/new\\x0aline"),
        // As it was typed, and as it is printed.
        ("name == \"new\\nline\"", "/tmp/new\\x0aline"),
        ("name == \"/tmp/new\\x0aline\"", "/tmp/new\\x0aline"),
        ("name != \"/tmp/new\\x0aline\" and shared", ""),
        // Bytes in quotes are exact.
        ("name == \"/tmp/new\\\\x0aline\"", ""),
        ("name == name(0x61000000)", "/tmp/new\\x0aline"),
        ("start == start([heap]) or end - start == 0x20000", "[heap] [stack]"),
        ("not (private or readable)", ""),
    ] {
        let filter = region_filter(text);
        let filter = eval::region_filter(&filter, &world).unwrap();
        assert!(filter.amounts().is_empty(), "{text}");
        let found = space.viewed_regions().iter().filter(|one| filter.holds(one, None) == Some(true));
        let found: Vec<String> = found.map(|one| one.region.name.to_string()).collect();
        assert_eq!(found.join(" "), names, "{text}");
    }
    let filter = region_filter("rss > 0");
    let filter = eval::region_filter(&filter, &world).unwrap();
    assert_eq!(filter.amounts(), [RegionAmount::Rss]);
}

#[test]
fn an_uncertain_state_is_no_answer_where_it_matters() {
    let hidden = Page {
        entry: PageMapEntry::new(1 << 62),
        states: StateSet::hidden(HiddenEntry { is_write_protected: false, swap_in_use: true, guards_are_marked: true }),
        kind: None,
        ..untouched()
    };
    for (text, kept, undecided) in [
        ("swapped", false, true),
        ("not swapped", false, true),
        ("state == swapped", false, true),
        ("state != swapped", false, true),
        ("poisoned", false, true),
        // What it cannot be.
        ("not present", true, false),
        ("untouched", false, false),
        ("not guard", true, false),
        ("uffd_wp", false, false),
        // Here the state does not matter.
        ("swapped or not present", true, false),
        ("swapped and present", false, false),
        // Without a frame there is no answer whatever the state.
        ("swapped and mapcount > 1", false, false),
        ("mapcount > 1", false, false),
        // In swap it would be a copy of the file's page, a marker is the file's.
        ("private_copy", false, true),
        ("file", false, true),
        ("anonymous", false, false),
    ] {
        let world = World::of(process());
        let space = AddressSpace::of(world.target.as_ref().unwrap()).unwrap();
        let filter = page_filter(text);
        let filter = eval::page_filter(&filter, &space, &world).unwrap();
        let file =
            space.viewed_regions().iter().find(|viewed| viewed.region.inode != 0 && !viewed.region.permissions.shared);
        assert!(file.is_some());
        assert_eq!(filter.matches(&hidden, file), kept, "{text}");
        assert_eq!(filter.answer(&hidden, file).is_err(), undecided, "{text}");
    }
}

/// A page with a frame of which a fact is unknown is never taken for one that has no such fact.
#[test]
fn an_unknown_fact_is_no_answer_where_it_matters() {
    // Bit 56 is wrong inside a huge mapping, and there is no map count.
    let huge = Page { map_count: None, huge: Some(true), ..present() };
    for (text, kept, undecided) in [
        ("exclusive", false, true),
        ("not exclusive", false, true),
        ("present and exclusive", false, true),
        ("mapcount > 1", false, true),
        ("not mapcount > 1", false, true),
        ("mapcount * 2 + 1 == 5", false, true),
        // Here the fact does not matter.
        ("exclusive or dirty", true, false),
        ("exclusive and locked", false, false),
        ("not (exclusive and dirty)", false, true),
        ("not (exclusive or dirty)", false, false),
        ("exclusive or untouched", false, true),
        ("exclusive and untouched", false, false),
    ] {
        let world = World::of(process());
        let space = AddressSpace::of(world.target.as_ref().unwrap()).unwrap();
        let filter = page_filter(text);
        let filter = eval::page_filter(&filter, &space, &world).unwrap();
        assert_eq!(filter.matches(&huge, None), kept, "{text}");
        assert_eq!(filter.answer(&huge, None).is_err(), undecided, "{text}");
        // Without a frame there is no such fact.
        assert!(filter.answer(&untouched(), None).is_ok(), "{text}");
    }
}

/// The reason names what would show the fact.
#[test]
fn an_unknown_fact_comes_with_its_reason() {
    let (_, target) = crate::process::fake::World {
        hidden: true,
        ..crate::process::fake::World::new([crate::process::fake::region(0x100, 1024)])
    }
    .target();
    let space = AddressSpace::of(&target).unwrap();
    let filter = page_filter("exclusive");
    let filter = eval::page_filter(&filter, &space, &World::of(process())).unwrap();
    let huge = Page { map_count: None, flags: None, huge: Some(true), ..present() };
    let reason = filter.answer(&huge, None).expect_err("a reason");
    assert!(reason.is_refusal() && reason.cause().contains("map counts"), "{reason}");
    let zeros = Page { kind: Some(Kind::HugeZero), ..huge };
    assert_eq!(filter.answer(&zeros, None), Ok(false));
}

/// The error of a fact that no page shows has the place of its word in the filter, in functions too.
#[test]
fn a_fact_that_is_known_of_no_page_is_an_error_at_its_word() {
    use crate::process::fake::{HUGE, World as Process, region};
    let mut process = Process { hidden: true, ..Process::new([region(HUGE, HUGE)]) };
    process.maps_huge(HUGE, 1 << 20);
    let world = World { target: Some(process.target().1), ..World::default() };
    for (text, word) in [
        ("count(0x200000..0x400000 where present and exclusive)", "exclusive"),
        ("rss(0x200000..0x400000 where exclusive or exclusive and present)", "exclusive"),
        ("bytes(0x200000..0x400000 where not exclusive)", "exclusive"),
    ] {
        let (part, error) = world.error(text);
        assert_eq!(part, word, "{text}: {error}");
        assert!(error.message.starts_with("`exclusive` cannot be determined: "), "{text}: {error}");
    }
}

/// Whether `walk pfn:0..pfn:9 where TEXT` keeps a frame.
fn keeps(text: &str, frame: u64) -> Result<bool, Error> {
    let world = World::of(process());
    let machine = world.target.as_ref().unwrap().machine.clone();
    let filter = page_filter(text);
    let filter = eval::frame_filter(&filter, &machine, &world)?;
    let entry = PageMapEntry::new(1 << 63 | frame);
    Ok(filter.matches(&Page { entry, ..present() }, None))
}

#[test]
fn frame_0_is_a_frame_like_others() {
    for (text, kept) in [
        ("pfn == 0", [true, false]),
        ("pfn != 0", [false, true]),
        ("phys < 4096", [true, false]),
        ("phys < 8192", [true, true]),
        ("dirty", [true, true]),
    ] {
        let are = [0, 1].map(|frame| keeps(text, frame).expect("an answer"));
        assert_eq!(are, kept, "{text}");
    }
}

/// Facts that cannot be read here are refused, for frames as for pages.
#[test]
fn filters_on_cgroups_that_cannot_be_read_are_errors() {
    let text = "cgroup == \"/\"";
    let refusals = [keeps(text, 1).map(drop), holds(process(), text, &present()).map(drop)];
    for refusal in refusals {
        let error = refusal.expect_err("refused");
        assert!(error.message.contains("`cgroup`"), "{error}");
    }
}
