//! Any expression at all: a value or an error at a place, and never a page touched that was not resident.

use super::{World, process};
use crate::eval::{self, Error};
use crate::kernel::VirtualAddress;
use proptest::prelude::*;

fn atom() -> impl Strategy<Value = String> {
    let atoms = [
        "0",
        "1",
        "8",
        "0x500ffd",
        "0x500000",
        "0x502000",
        "0x503000",
        "0x504000",
        "0xffffffffffffffff",
        "0xffffffffff600000",
        "3p",
        "main",
        "buffer",
        "both",
        "sizeless",
        "table",
        "heap",
        "stack",
        "[heap]",
        "[stack]",
        "[vsyscall]",
        "[none]",
        "libc.so.6",
        "libc.so.6[1]",
        "libc.so.6[7]",
        "libc.so.6!malloc",
        "libc.so.6!0x1149",
        "libc.so.6!0x9999",
        "program!helper",
        "'data.bin'",
        "'new\nline'",
        "&main",
        "pfn:0x1234",
        "phys:0x1234567",
        "$a",
        "$none",
        "$",
        "$7",
        "$_",
        "$pc",
        "$sp",
        "\"text\"",
        "nobody",
    ];
    prop::sample::select(atoms.to_vec()).prop_map(str::to_owned)
}

fn expression() -> impl Strategy<Value = String> {
    atom().prop_recursive(5, 24, 3, |inner| {
        let unary = prop::sample::select(vec!["-", "+", "~", "!", "*"]);
        let binary = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "<<", ">>", "<", "<=", "==", "!=", "&", "^", "|", "&&", "||",
        ]);
        let call = prop::sample::select(vec![
            "pfn", "phys", "page", "region", "start", "end", "size", "symbol", "u8", "u16", "u32", "u64", "i8", "i64",
        ]);
        prop_oneof![
            (unary, inner.clone()).prop_map(|(operator, a)| format!("{operator}({a})")),
            (inner.clone(), binary, inner.clone()).prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            (call, inner.clone()).prop_map(|(function, a)| format!("{function}({a})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("size({a}..{b})")),
        ]
    })
}

fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        expression(),
        Just("all".to_owned()),
        (expression(), expression()).prop_map(|(a, b)| format!("{a}..{b}")),
        (expression(), expression()).prop_map(|(a, b)| format!("{a}, +{b}")),
    ]
}

fn world() -> World {
    let fake = process()
        .page(0x50_0000, 0x1234, &0x40_1000u64.to_le_bytes())
        .page(0x50_1000, 0x1300, &[1, 2, 3, 4])
        .page(0x40_2000, 0x1301, &[])
        .entry(0x50_2000, 1 << 62 | 77 << 5)
        .entry(0x50_3000, 1 << 62 | 1 << 58);
    let mut world = World::of(fake);
    let address = eval::Value::Address(VirtualAddress::new(0x50_0008));
    world.variables.insert("a".into(), address.clone());
    world.values.push(address);
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn is_a_value_or_an_error_at_its_place(text in range()) {
        let line = format!("print {text}");
        let value = super::range(&text);
        let world = world();
        let errors: [Option<Error>; 3] = [
            eval::value(&value, &world).err(),
            eval::range(&value, &world).err(),
            eval::subject(&value, &world).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!(!error.message.is_empty());
            let part = line.get(error.at.start..error.at.end);
            prop_assert!(part.is_some_and(|part| !part.is_empty()), "{:?}", error);
            // The target's answer to a read of a page without a frame.
            prop_assert!(!error.message.contains("cannot be read"), "{:?}", error);
        }
    }
}
