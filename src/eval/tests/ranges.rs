//! Ranges, and the functions of ranges.

use super::language::{Arguments, arguments};
use super::{World, process, range};
use crate::eval::{self, Extent, Location, Origin};

fn world() -> World {
    World::of(process())
}

#[test]
fn every_way_to_write_a_range() {
    let world = world();
    for (text, wanted) in [
        ("0x1000..0x3000", "0x1000..0x3000"),
        ("main..main + 8", "0x401000..0x401008"),
        ("heap..[stack]", "0x500000..0x7ffffff00000"),
        ("buffer, +0x10", "0x403010..0x403020"),
        ("buffer, +2p", "0x403010..0x405010"),
        ("buffer", "0x403010..0x403110"),
        ("sizeless", "0x401200..0x401201"),
        ("0x1000", "0x1000..0x1001"),
        ("region(buffer)", "0x403000..0x404000"),
        ("libc.so.6", "0x7f0000001000..0x7f0000004000"),
        ("pfn:0x10..pfn:0x20", "pfn:0x10..pfn:0x20"),
        ("pfn:0x10..0x20", "pfn:0x10..pfn:0x20"),
        ("pfn:0x10, +2p", "pfn:0x10..pfn:0x12"),
        ("pfn:0x10", "pfn:0x10..pfn:0x11"),
        ("phys:0x1800..phys:0x2001", "pfn:0x1..pfn:0x3"),
        ("phys:0x1800..phys:0x3000", "pfn:0x1..pfn:0x3"),
    ] {
        let got = match eval::range(&range(text), &world) {
            Ok(extent) => eval::Value::from(extent).to_string(),
            Err(error) => panic!("{text}: {error}"),
        };
        assert_eq!(got, wanted, "{text}");
    }
}

#[test]
fn all_is_what_is_mapped() {
    let world = world();
    let Ok(Extent::Addresses(spans)) = eval::range(&range("all"), &world) else {
        panic!("no range");
    };
    assert_eq!(spans.origin(), &Origin::All);
    // Each program's three regions touch and are one span.
    assert_eq!(spans.ranges().len(), 8);
    assert_eq!(spans.size(), 2 * 0x3000 + 0x1_0000 + 3 * 0x1000 + 0x2_0000 + 0x1000);
}

#[test]
fn ranges_that_are_none() {
    let world = world();
    for (text, refusal) in [
        ("0x2000..0x1000", "0x2000..0x1000: the range is reversed: 0x2000 lies after 0x1000"),
        ("0x2000..0x2000", "0x2000..0x2000: the range from 0x2000 to 0x2000 is empty"),
        ("pfn:2..pfn:1", "pfn:2..pfn:1: the range is reversed: pfn:0x2 lies after pfn:0x1"),
        ("0xfffffffffffff000, +1p", "0xfffffffffffff000, +1p: the range passes 2^64-1, the last address there is"),
        ("0x1000, +0", "0: a length must be more than zero"),
        ("0x1000, +main", "main: a length must be an integer, not an address"),
        ("0x1000..pfn:5", "0x1000..pfn:5: an integer and a page frame do not form a range"),
        ("pfn:5..main", "main: a page frame and an address do not form a range"),
        ("main == buffer..buffer + 8", "main == buffer: a range cannot start or end with a result of `==`"),
        ("main..main == 5 || 1", "main == 5 || 1: a range cannot start or end with a result of `||`"),
        ("main > 5, +8", "main > 5: a range cannot start or end with a result of `>`"),
        ("heap / 2", "heap: a range is not a number"),
        ("0x2000 % 4096, +1p", "%: `%` gives a number, and not an address"),
        ("1 << heap", "heap: a range is not a number"),
        ("pfn:5, +1", "1: a length of frames must be whole pages"),
    ] {
        assert_eq!(world.refusal(text), refusal);
    }
    let error = eval::range(&range("0x500000..+4M"), &world).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("put a comma before a length: `A, +LENGTH`"));
    let error = eval::range(&range("0x1000/1M"), &world).unwrap_err();
    assert_eq!(error.message, "`/` gives a number, and not an address");
    assert_eq!(error.hint.as_deref(), Some("put a comma before a length: `A, +LENGTH`"));
    let error = eval::range(&range("0xffffffffffffffff"), &world).unwrap_err();
    assert!(error.message.contains("passes 2^64-1"), "{error}");
}

#[test]
fn runs_of_one_address_are_refused() {
    let world = world();
    for text in ["runs(0x401000)", "longest(main + 8)", "runs(&buffer where present)"] {
        let (_, error) = world.error(text);
        assert!(error.message.ends_with("() needs a range, and one address is one page"), "{text}: {error}");
        let argument = &text[text.find('(').unwrap()..].replace(" where present", "");
        let hint = error.hint.unwrap();
        assert!(hint.contains(&format!("(region{argument})")), "{text}: {hint}");
    }
    // A symbol and a region have a size.
    for text in ["runs(buffer)", "longest(region(buffer))"] {
        let refused = eval::value(&range(text), &world).err().filter(|error| error.message.contains("needs a range"));
        assert!(refused.is_none(), "{text}");
    }
}

#[test]
fn start_end_and_size() {
    let world = world();
    for (text, value) in [
        ("start(heap)", "address 0x500000"),
        ("end(heap)", "address 0x510000"),
        ("size(heap)", "integer 65536"),
        ("size(buffer)", "integer 256"),
        ("end(buffer)", "address 0x403110"),
        ("size(libc.so.6)", "integer 12288"),
        ("size(0x1000..0x1800)", "integer 2048"),
        ("start(buffer, +2p)", "address 0x403010"),
        ("start(pfn:0x10..pfn:0x20)", "frame pfn:0x10"),
        ("size(pfn:0x10..pfn:0x20)", "integer 65536"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    for text in ["size(0x1000)", "size(sizeless)", "end(main + 1)", "size(pfn:1)"] {
        let (_, error) = world.error(text);
        assert!(error.message.contains("has no size"), "{text}: {error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn ranges_are_equal_if_their_bytes_are() {
    let mut world = world();
    for (name, range_of) in [("half", "heap, +32K"), ("frames", "pfn:0x10..pfn:0x20")] {
        let value = eval::value(&range(range_of), &world).unwrap();
        world.variables.insert(name.into(), value);
    }
    for (text, holds) in [
        ("region(heap) == [heap]", true),
        ("region(buffer) != region(main)", true),
        ("$half == heap", false),
        ("$half == $half", true),
        ("$frames == $frames", true),
        ("start($half) == start(heap)", true),
    ] {
        assert_eq!(world.print(text), format!("integer {}", u8::from(holds)), "{text}");
    }
}

#[test]
fn a_variable_may_hold_a_range() {
    let mut world = world();
    let value = eval::value(&range("heap"), &world).unwrap();
    world.variables.insert("r".into(), value);
    assert_eq!(world.print("size($r)"), "integer 65536");
    assert_eq!(world.print("$r + 1"), "address 0x500001");
}

#[test]
fn a_range_stands_for_its_first_address() {
    let world = world();
    let location = |text: &str| {
        let Arguments::Address(place) = arguments(&format!("flags {text}")) else {
            panic!("{text}");
        };
        eval::location(&place, &world)
    };
    assert!(matches!(location("buffer"), Ok(Location::Address(at, Some(_))) if at.get() == 0x40_3010));
    assert!(matches!(location("heap"), Ok(Location::Address(at, Some(_))) if at.get() == 0x50_0000));
    assert!(matches!(location("pfn:0x12"), Ok(Location::Frame(frame)) if frame.get() == 0x12));
    assert!(matches!(location("phys:0x12"), Ok(Location::Physical(at)) if at.get() == 0x12));
    assert!(location("\"text\"").is_err());
    assert!(location("3 - 5").is_err_and(|error| error.message.contains("negative")));
}

#[test]
fn a_variable_that_holds_a_symbol_remembers_its_bytes() {
    let mut world = World::of(process());
    let value = eval::value(&range("buffer"), &world).unwrap();
    world.variables.insert("b".to_owned(), value.clone());
    world.values.push(value);
    let spans = |text: &str| match eval::range(&range(text), &world) {
        Ok(extent) => eval::Value::from(extent).to_string(),
        Err(error) => panic!("{text}: {error}"),
    };
    for name in ["$b", "$"] {
        assert_eq!(spans(name), "0x403010..0x403110");
        assert_eq!(world.print(name), "address 0x403010");
        assert_eq!(world.print(&format!("{name} + 1")), "address 0x403011");
        assert_eq!(world.print(&format!("{name} == buffer")), "integer 1");
        assert_eq!(world.print(&format!("size({name})")), "integer 256");
        assert_eq!(spans(&format!("{name}, +4p")), "0x403010..0x407010");
    }
    assert_eq!(spans("&buffer"), "0x403010..0x403011");
}

#[test]
fn two_addresses_with_a_minus_are_told_how_a_range_is_written() {
    let world = World::of(process());
    for line in ["walk 0x500000-0x501000", "translate 0x500000-0x501000", "region 0x500000 - 0x501000"] {
        let error = match arguments(line) {
            Arguments::Pages(range, _) => eval::range(&range, &world).err(),
            Arguments::Range(range) => eval::subject(&range, &world).err(),
            Arguments::Address(address) => eval::address(&address, &world).err(),
            other => panic!("{other:?}"),
        };
        let hint = error.and_then(|error| error.hint).unwrap_or_default();
        assert_eq!(hint, "write a range as A..B: `0x500000..0x501000`", "{line}");
    }
    for function in ["size", "rss", "state"] {
        let (_, error) = world.error(&format!("{function}(0x500000-0x501000)"));
        let hint = error.hint.unwrap_or_default();
        assert_eq!(hint, "write a range as A..B: `0x500000..0x501000`", "{function}");
    }
    assert_eq!(world.print("0x500000-0x501000"), "integer -4096");
}
