//! Casts to types of C: sizes and signs of the target, and what gdb makes of names and pointers.

use super::{World, process};
use crate::process::fake::Fake;

/// The library's writable page holds `table`; the heap, numbers of each size.
fn numbers() -> Fake {
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(&0x1122_3344_ffff_fffbu64.to_le_bytes());
    page[8..16].copy_from_slice(&3.25f64.to_le_bytes());
    page[16..20].copy_from_slice(&(-1.5f32).to_le_bytes());
    page[24..32].copy_from_slice(&0x50_0008u64.to_le_bytes());
    let mut data = vec![0; 4096];
    data[0x900..0x904].copy_from_slice(&7u32.to_le_bytes());
    let mut bss = vec![0; 4096];
    bss[0x200..0x208].copy_from_slice(&(-9i64).to_le_bytes());
    process().page(0x50_0000, 0x1234, &page).page(0x40_2000, 0x1235, &data).page(0x40_3000, 0x1236, &bss)
}

#[test]
fn memory_is_read_in_the_size_of_the_type() {
    let world = World::of(numbers());
    for (text, value) in [
        ("*(int *)0x500000", "integer -5"),
        ("*(unsigned *)0x500000", "integer 4294967291"),
        ("*(unsigned char*)0x500000", "integer 251"),
        ("*(signed char*)0x500000", "integer -5"),
        ("*(short *)0x500004", "integer 13124"),
        ("*(long *)0x500000", "integer 1234605619298697211"),
        ("*(const unsigned long long int *) 0x500000", "integer 1234605619298697211"),
        ("{int}0x500000", "integer -5"),
        ("{double} 0x500008", "float 3.25"),
        ("*(float *)0x500010", "float -1.5"),
        ("f64(0x500008)", "float 3.25"),
        ("f32(0x500010)", "float -1.5"),
        ("**(double **)0x500018", "float 3.25"),
        ("*(void **)0x500018", "address 0x500008"),
        ("*(uint16_t *)0x500000", "integer 65531"),
        ("*(u8 *)0x500000", "integer 251"),
        // Without a type it is a pointer, as ever.
        ("*0x500018", "address 0x500008"),
        // A pointer counts in what it points to.
        ("*((short *)0x500000 + 2)", "integer 13124"),
        ("(int *)0x500000 + 4", "address 0x500010"),
        ("4 + (int *)0x500000", "address 0x500010"),
        ("(long *)0x500010 - 2", "address 0x500000"),
        ("(long *)0x500010 - (long *)0x500000", "integer 2"),
        ("(char *)0x500010 + 1 - 0x500000", "address 0x11"),
        ("(void *)0x500010 + 1", "address 0x500011"),
        ("*(int *)0x500000 == -5 && 1", "integer 1"),
        ("(struct s *)0x500010", "address 0x500010"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
}

#[test]
fn values_are_cut_to_the_type() {
    // No target: a word of this machine.
    let world = World::default();
    for (text, value) in [
        ("(char)65", "integer 65"),
        ("(unsigned char)300", "integer 44"),
        ("(signed char)0xff", "integer -1"),
        ("(int)0xffffffff", "integer -1"),
        ("(unsigned)-1", "integer 4294967295"),
        ("(unsigned long long)-1", "integer 18446744073709551615"),
        ("(bool)2", "integer 1"),
        ("(int)7.9 + (int)-7.9", "integer 0"),
        ("(double)7 / 2", "float 3.5"),
        ("(float)0.1 == 0.1", "integer 0"),
        ("7.5", "float 7.5"),
        ("-7.5 * 2 < 1 && !0.0", "integer 1"),
        ("(short)(1 << 15)", "integer -32768"),
        ("-(char)1 + ~(char)1", "integer -3"),
        ("(char *)-1 == 0xffffffffffffffff", "integer 1"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    for (text, refusal) in [
        ("7.5 % 2", "%: `%` needs integers"),
        ("7.5 & 1", "&: `&` needs integers"),
        ("~7.5", "~: `~` needs integers"),
        ("(unsigned)-1.5", "-1.5: -1.5 does not fit 4 bytes"),
        ("(char *)1.5", "1.5: a floating-point number is not an address"),
        ("(double)\"x\"", "\"x\": text is not a number with a fraction"),
        ("1 << 1.5", "<<: `<<` needs integers"),
    ] {
        assert_eq!(world.refusal(text), refusal);
    }
}

#[test]
fn arithmetic_with_a_cast_is_c_s_and_without_one_exact() {
    let world = World::of(numbers());
    for (text, value) in [
        ("(unsigned char)300 + 1", "integer 45"),
        ("(unsigned char)200 + (unsigned char)100", "integer 300"),
        ("(int)0x7fffffff + 1", "integer -2147483648"),
        ("0x7fffffff + 1", "integer 2147483648"),
        ("(unsigned)0 - 1", "integer 4294967295"),
        ("0 - 1", "integer -1"),
        ("~(unsigned)1", "integer 4294967294"),
        ("(int)1 << 31", "integer -2147483648"),
        ("1 << (char)40", "integer 1099511627776"),
        ("(long)-1 < (unsigned)1", "integer 1"),
        ("(int)-1 < (unsigned)1", "integer 0"),
        ("(unsigned long)-1 + 2", "integer 1"),
        ("*(int *)0x500000 * 1000000000", "integer -705032704"),
        // Not cast: exact.
        ("i32(0x500000) * 1000000000", "integer -5000000000"),
        ("(int)3 * 1G", "integer -1073741824"),
        ("(int)5000000000 + 5000000000", "integer 5705032704"),
        ("(float)0.1 + (float)0.2 == (float)0.3", "integer 1"),
        ("0.1 + 0.2 == 0.3", "integer 0"),
        ("(float)1 / 3", "float 0.33333334"),
        ("-(float)0.1", "float -0.1"),
        ("(float)16777217 == 16777217", "integer 1"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    assert_eq!(world.refusal("(int)1 / 0"), "0: division by zero");
}

#[test]
fn elements_and_arrays() {
    let world = World::of(numbers());
    for (text, value) in [
        ("{short[2]}0x500000", "array {-5, -1}"),
        ("{short [2][2]}0x500000", "array {{-5, -1}, {13124, 4386}}"),
        ("{unsigned char[3]}0x500000", "array \"\\373\\377\\377\""),
        ("{u8[64]}0x500020", "array '\\000' <repeats 63 times>"),
        ("{int[14]}0x500010", "array {-1077936128, 0, 5242888, 0 <repeats 11 times>}"),
        ("{int[1000]}0x500020", "array {0 <repeats 1000 times>}"),
        ("({short[2]}0x500000)[1]", "integer -1"),
        ("((short *)0x500000)[2]", "integer 13124"),
        ("((int *)0x500008)[0] + 1", "integer 1"),
        ("-((short *)0x500000)[0]", "integer 5"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    for (text, refusal) in [
        ("((0x500000))[1]", "((0x500000)): an integer has no elements: its type is not known"),
        ("({int[2]}0x500000)[2]", "[2]: the array has 2 elements, the first of which is [0]"),
        ("{int[2]}0x500000 + 1", "{int[2]}0x500000: an array is not a number"),
        ("{int[100000]}0x500000", "{int[100000]}0x500000: `int[100000]` has 400000 bytes: an array ends at 65536"),
        ("(int *)0x500008 - (long *)0x500000", "-: `int *` and `long *` cannot be subtracted: their types differ"),
    ] {
        assert_eq!(world.refusal(text), refusal);
    }
}

#[test]
fn a_plain_char_has_a_sign_where_the_target_s_has() {
    let mut fake = numbers();
    fake.layout.is_char_signed = false;
    let world = World::of(fake);
    assert_eq!(world.print("*(char *)0x500000"), "integer 251");
    assert_eq!(world.print("(char)-1 + (signed char)-1"), "integer 254");
}

#[test]
fn the_name_of_a_variable_is_read_and_an_array_is_its_address() {
    let world = World::of(numbers());
    for (text, value) in [
        // Eight bytes.
        ("(long)stack", "integer -9"),
        ("(char *)stack", "address 0xfffffffffffffff7"),
        ("*(int *)&stack", "integer -9"),
        // 32 bytes.
        ("*(int *)program!table", "integer 7"),
        ("(int *)program!table + 1", "address 0x402904"),
        // Code and regions are addresses.
        ("(long)main", "integer 4198400"),
        ("(char *)[heap]", "address 0x500000"),
        ("*(int *)[heap]", "integer -5"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    let (part, error) = world.error("(int)stack");
    assert_eq!((part.as_str(), error.message.as_str()), ("(int)stack", "`stack` has 8 bytes, and `int` 4"));
    assert_eq!(error.hint.as_deref(), Some("to read its first bytes: `*(int *)&stack`"));
}

#[test]
fn long_and_pointers_are_as_wide_as_the_target_s() {
    let mut fake = numbers();
    fake.layout.pointer_bytes = 4;
    let world = World::of(fake);
    for (text, value) in [
        ("*(long *)0x500000", "integer -5"),
        ("*(size_t *)0x500000", "integer 4294967291"),
        ("*(long long *)0x500000", "integer 1234605619298697211"),
        ("(long *)0x500000 + 1", "address 0x500004"),
        ("(unsigned long)-1", "integer 4294967295"),
        ("(char *)-1", "address 0xffffffff"),
        ("*(char **)0x500018", "address 0x500008"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    let mut fake = numbers();
    fake.layout.is_little_endian = false;
    assert_eq!(World::of(fake).print("*(short *)0x500004"), "integer 17459");
}

#[test]
fn types_of_the_program_are_refused_where_they_matter() {
    let world = World::of(numbers());
    for (text, part) in [
        ("*(struct s *)0x500010", "*(struct s *)0x500010"),
        ("(struct s *)0x500010 + 1", "(struct s *)0x500010"),
        ("{struct s}0x500010", "{struct s}0x500010"),
        ("{struct s[4]}0x500010", "{struct s[4]}0x500010"),
    ] {
        let (at, error) = world.error(text);
        assert_eq!(at, part);
        assert!(error.message.contains("unknown type"), "{error}");
        assert!(error.hint.is_some());
    }
    assert!(world.refusal("*(void *)0x500010").contains("`void` has no size"));
}
