mod made;

use super::{BadBtf, Layout, MemberPlace};
use crate::budget::{Budget, OutOfBudget};
use made::{Made, kernel};

fn parsed(bytes: Vec<u8>) -> Result<Layout, BadBtf> {
    Layout::parse(bytes, &mut Budget::unlimited())
}

fn layout(made: &Made) -> Layout {
    parsed(made.bytes()).expect("a layout")
}

/// Both byte orders.
fn kernels() -> [(bool, Layout); 2] {
    [false, true].map(|is_big_endian| (is_big_endian, layout(&kernel(is_big_endian))))
}

fn number(bit_offset: u64, bits: u64) -> Option<MemberPlace> {
    Some(MemberPlace { bit_offset, bits, is_signed: false, is_bit_field: false })
}

fn signed(bit_offset: u64, bits: u64) -> Option<MemberPlace> {
    number(bit_offset, bits).map(|member| MemberPlace { is_signed: true, ..member })
}

fn field(bit_offset: u64, bits: u64) -> Option<MemberPlace> {
    number(bit_offset, bits).map(|member| MemberPlace { is_bit_field: true, ..member })
}

#[test]
fn members_of_structures() {
    for (_, layout) in kernels() {
        for (structure, path, expected) in [
            ("page", "flags", number(0, 64)),
            ("page", "_refcount", signed(192, 32)),
            ("page", "_refcount.counter", signed(192, 32)),
            ("page", "_mapcount", signed(224, 32)),
            // In structures without a name.
            ("page", "mapping", number(64, 64)),
            ("page", "index", number(128, 64)),
            ("page", "lru", number(64, 128)),
            ("page", "lru.prev", number(128, 64)),
            ("folio", "page.flags", number(0, 64)),
            ("folio", "page.index", number(128, 64)),
            ("folio", "private", number(192, 64)),
            ("folio", "page", number(0, 256)),
            ("folio", "_pincount", signed(320, 32)),
            ("folio", "kind", signed(352, 32)),
            ("node", "shift", number(0, 8)),
            ("node", "slots", number(64, 3 * 4 * 64)),
            ("node", "load", number(832, 64)),
            // Bit fields, as newer and as older BTF has them.
            ("packed", "low", field(0, 3).map(|member| MemberPlace { is_signed: true, ..member })),
            ("packed", "next", field(3, 40)),
            ("packed", "whole", number(48, 8)),
            ("old", "field", field(34, 3)),
            // The same in both structures of that name, or not.
            ("twice", "same", signed(32, 32)),
            ("twice", "other", None),
            // No pointer is followed, and none of these exist.
            ("list_head", "next.prev", None),
            ("page", "compound_info", None),
            ("page", "private", None),
            ("page", "flag", None),
            ("page", "flagss", None),
            ("page", "flags.f", None),
            ("page", "lru.", None),
            ("page", ".lru", None),
            ("page", "", None),
            ("", "flags", None),
            ("pageflags", "PG_head", None),
            ("atomic_t", "counter", None),
        ] {
            assert_eq!(layout.member(structure, path), expected, "{structure}.{path}");
        }
        assert_eq!(layout.member("page", "index").and_then(|member| member.byte_offset()), Some(16));
        assert_eq!(layout.member("packed", "low").and_then(|member| member.byte_offset()), None);
    }
}

#[test]
fn sizes_and_values_of_enumerations() {
    for (_, layout) in kernels() {
        let sizes = ["page", "folio", "twice", "pageflags", "struct", ""].map(|name| layout.size_of(name));
        assert_eq!(sizes, [Some(32), Some(64), Some(16), None, None, None]);
        for (enumeration, name, expected) in [
            ("pageflags", "PG_locked", Some(0)),
            ("pageflags", "PG_head", Some(6)),
            // Without signs it could be -2 as well.
            ("pageflags", "PG_last", None),
            ("pageflags", "PG_hea", None),
            ("page", "PG_head", None),
            ("state", "GONE", Some(-2)),
            ("state", "HERE", Some(3)),
            ("wide", "HIGH", Some(1 << 40)),
            ("wide", "HIGHEST", None),
            ("wide_signed", "LOWEST", Some(i64::MIN)),
        ] {
            assert_eq!(layout.enumerator(enumeration, name), expected, "{enumeration} {name}");
        }
    }
}

#[test]
fn values_in_bytes() {
    for (is_big_endian, layout) in kernels() {
        let value = |structure, name, bytes: &[u8]| {
            let member = layout.member(structure, name).expect("a member");
            layout.value(member, bytes)
        };
        let mut page = [0; 32];
        let write = |page: &mut [u8], little: [u8; 8]| {
            page.copy_from_slice(&little);
            if is_big_endian {
                page.reverse();
            }
        };
        write(&mut page[16..24], 0x8000_0000_0000_0007u64.to_le_bytes());
        page[28..].fill(0xff);
        assert_eq!(value("page", "index", &page), Some(0x8000_0000_0000_0007));
        assert_eq!(value("page", "_mapcount", &page), Some(-1));
        assert_eq!(value("page", "_refcount", &page), Some(0));
        assert_eq!(value("page", "_mapcount", &page[..31]), None);
        // 128 bits are no number.
        assert_eq!(value("page", "lru", &page), None);
        // The lowest bits are in the first byte, or the highest.
        let packed = if is_big_endian { [0xb4, 0, 0, 0, 0, 0x5f, 9, 0] } else { [0x2d, 0, 0, 0, 0, 0xf8, 9, 0] };
        let (low, next) = if is_big_endian { (-3, 0x14 << 35 | 2) } else { (-3, 5) };
        assert_eq!(value("packed", "low", &packed), Some(low));
        assert_eq!(value("packed", "next", &packed), Some(next));
        assert_eq!(value("packed", "whole", &packed), Some(9));
    }
}

#[test]
fn without_long_no_pointer_has_a_width() {
    let mut made = Made::new(false);
    let byte = made.int("char", 1, true, 0, 8);
    let pointer = made.reference("", 2, byte);
    made.structure("page", 4, 16, &[("flags", byte, 0), ("mapping", pointer, 64)]);
    assert_eq!(layout(&made).member("page", "mapping"), None);
    assert_eq!(layout(&made).member("page", "flags"), signed(0, 8));
    made.int("long int", 4, true, 0, 32);
    assert_eq!(layout(&made).member("page", "mapping"), number(64, 32));
}

#[test]
fn kinds_of_newer_kernels_are_passed_over_if_their_sizes_are_there() {
    for is_big_endian in [false, true] {
        let mut made = kernel(is_big_endian);
        made.future();
        assert_eq!(parsed(made.bytes()).err(), Some(BadBtf::Kind(40)));
        let int = made.int("int", 4, true, 0, 32);
        made.structure("last", 4, 8, &[("late", int, 32)]);
        let layout = parsed(made.with_kinds()).expect("a layout");
        assert_eq!(layout.member("last", "late"), signed(32, 32));
    }
}

#[test]
fn other_files_and_versions() {
    let bytes = kernel(false).bytes();
    let changed = |at: usize, byte| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        parsed(bytes).err()
    };
    assert_eq!(changed(0, 0x7f), Some(BadBtf::NotBtf));
    assert_eq!(changed(2, 2), Some(BadBtf::Version(2)));
    assert_eq!(changed(4, 23), Some(BadBtf::CutShort("header")));
    // Where the types begin, and how long they and the names are.
    assert_eq!(changed(11, 0xff), Some(BadBtf::CutShort("types")));
    assert_eq!(changed(15, 0xff), Some(BadBtf::CutShort("types")));
    assert_eq!(changed(23, 0xff), Some(BadBtf::CutShort("names")));
    assert_eq!(parsed(Vec::new()).err(), Some(BadBtf::NotBtf));
}

#[test]
fn each_type_costs_a_step() {
    let made = kernel(false);
    let with = |steps: u32| Layout::parse(made.bytes(), &mut Budget::unlimited().at_most(steps.into()));
    assert!(with(made.count()).is_ok());
    assert_eq!(with(made.count() - 1).err(), Some(BadBtf::GivenUp(OutOfBudget::Steps)));
}

#[test]
fn cut_at_every_length() {
    for is_big_endian in [false, true] {
        let made = kernel(is_big_endian);
        for bytes in [made.bytes(), made.with_kinds()] {
            assert!(parsed(bytes.clone()).is_ok());
            for length in 0..bytes.len() {
                assert!(parsed(bytes[..length].to_vec()).is_err(), "{length} bytes");
            }
        }
    }
}

/// All that the small kernel can be asked.
fn answers(layout: &Layout) -> String {
    let members = [
        ("page", "_refcount"),
        ("page", "mapping"),
        ("folio", "page.lru.prev"),
        ("node", "slots"),
        ("packed", "next"),
        ("old", "field"),
        ("twice", "same"),
    ];
    let members = members.map(|(structure, name)| layout.member(structure, name));
    let values = [layout.enumerator("pageflags", "PG_head"), layout.enumerator("wide", "HIGH")];
    format!("{members:?} {values:?} {:?}", layout.size_of("page"))
}

#[test]
fn flipped_bits() {
    let bytes = kernel(false).bytes();
    let whole = answers(&parsed(bytes.clone()).expect("a layout"));
    let (mut refused, mut same, mut other) = (0, 0, 0);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match parsed(flipped) {
            Err(_) => refused += 1,
            Ok(layout) if answers(&layout) == whole => same += 1,
            Ok(_) => other += 1,
        }
    }
    assert!(refused > 500 && same > 500 && other > 500, "{refused} refused, {same} without effect, {other} with");
}

#[test]
fn cycles_and_deep_nesting_end() {
    let mut made = Made::new(false);
    let int = made.int("int", 4, true, 0, 32);
    // Each refers to itself: its number is the next one.
    let itself = made.count() + 1;
    made.reference("loop", 8, itself);
    let array = made.count() + 1;
    made.array(array, 2);
    let inner = made.count() + 1;
    made.structure("", 4, 8, &[("", inner, 0), ("", inner, 0), ("last", int, 32)]);
    let single = made.count() + 1;
    made.structure("single", 4, 8, &[("only", single, 0)]);
    let mut deep = int;
    for _ in 0..70_000 {
        deep = made.reference("", 10, deep);
    }
    let members = [("typedef", itself, 0), ("array", array, 0), ("deep", deep, 0), ("one", single, 0), ("", inner, 64)];
    made.structure("page", 4, 64, &members);
    let layout = layout(&made);
    for name in ["typedef", "array", "deep", "one", "none"] {
        assert_eq!(layout.member("page", name), None, "{name}");
    }
    assert_eq!(layout.member("page", "last"), signed(96, 32));
    // The numbers of elements multiply.
    let mut made = Made::new(false);
    let mut element = made.int("int", 4, true, 0, 32);
    for _ in 0..3 {
        element = made.array(element, u32::MAX);
    }
    made.structure("page", 4, 64, &[("rows", element, 0)]);
    assert_eq!(self::layout(&made).member("page", "rows"), None);
}

#[test]
fn members_far_away_do_not_overflow() {
    let mut made = Made::new(false);
    let int = made.int("int", 4, true, 0, 32);
    let mut inner = made.structure("", 4, 4, &[("last", int, u32::MAX)]);
    for _ in 0..8 {
        inner = made.structure("", 4, 4, &[("", inner, u32::MAX)]);
    }
    made.structure("page", 4, 4, &[("", inner, u32::MAX)]);
    let member = layout(&made).member("page", "last").expect("a member");
    assert_eq!(member.bit_offset, 10 * u64::from(u32::MAX));
    assert_eq!(layout(&made).value(member, &[0; 64]), None);
}
