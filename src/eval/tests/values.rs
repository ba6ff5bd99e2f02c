//! Arithmetic with and without types, and exactness.

use super::World;
use crate::eval::{Integer, Value};
use crate::kernel::VirtualAddress;
use proptest::prelude::*;

#[test]
fn arithmetic_needs_no_target() {
    let world = World::default();
    for (text, value) in [
        ("1 + 2 * 3", "integer 7"),
        ("-7 / 2", "integer -3"),
        ("-7 % 2", "integer -1"),
        ("-8 >> 1", "integer -4"),
        ("1 << 63", "integer 9223372036854775808"),
        ("~0", "integer -1"),
        ("4p + 1K", "integer 17408"),
        ("0xffffffffffffffff", "integer 18446744073709551615"),
        ("!5 + !0", "integer 1"),
        ("3 < 4 && 4 <= 4 && 5 != 6", "integer 1"),
        ("(6 | 9) == 15", "integer 1"),
        ("6 ^ 3 & 2", "integer 4"),
        ("0 && 1 / 0", "integer 0"),
        ("2 || 1 / 0", "integer 1"),
        ("\"a\" == \"a\"", "integer 1"),
        ("\"a\" != \"a\"", "integer 0"),
        ("\"libc.so.6\" ~ \"^lib\" && !(\"a\" ~ \"b\")", "integer 1"),
        ("not 1 == 2 and !1 == 0 or 1 / 0", "integer 1"),
        ("pfn:0x10 + 2", "frame pfn:0x12"),
        ("pfn:0x10 - pfn:0x8", "integer 8"),
        ("phys:0x1234 & ~0xfff", "physical phys:0x1000"),
        ("phys(pfn:0x12)", "physical phys:0x12000"),
        ("pfn(phys:0x12345)", "frame pfn:0x12"),
        ("page(phys:0x12345)", "physical phys:0x12000"),
        ("page(0x12345)", "address 0x12000"),
        ("type(3500M)", "text integer"),
        ("type(1.5)", "text float"),
        ("type(\"x\") == \"text\"", "integer 1"),
        ("type(0x1000..0x2000)", "text range"),
        ("type(phys:1)", "text physical"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
}

#[test]
fn an_overflow_is_an_error_at_its_place() {
    let world = World::default();
    for (text, refusal) in [
        ("0xffffffffffffffff + 1", "+: the result does not fit: integers range from -2^63 to 2^64-1"),
        ("1 << 64", "<<: the result does not fit: integers range from -2^63 to 2^64-1"),
        ("-0x8000000000000001", "-: the result does not fit: integers range from -2^63 to 2^64-1"),
        ("pfn:1 - 2", "-: the result does not fit: page frames range from 0 to 2^64-1"),
        ("1 / (3 - 3)", "(3 - 3): division by zero"),
        ("5 % 0", "0: division by zero"),
        ("1 << -1", "-1: cannot shift by a negative number"),
        ("pfn:1 + pfn:2", "+: two page frames cannot be added"),
        ("pfn:1 + phys:2", "+: page frames and physical addresses cannot be added"),
        ("phys:1 < pfn:2", "<: physical addresses and page frames cannot be compared"),
        ("pfn:1 * 2", "*: page frames cannot be multiplied"),
        ("-pfn:1", "-: page frames cannot be negated or inverted"),
        ("1 ~ \"1\"", "~: `~` needs two texts: the second is a regular expression"),
        ("\"a\" + 1", "\"a\": the text \"a\" is not a number"),
        ("pfn:zz", "zz: `zz` is not a hexadecimal number"),
        ("phys:face", "face: `face` is not a hexadecimal number"),
        ("pfn:(0 - 1)", "(0 - 1): -1 is negative"),
        ("0x10000000000000p", "0x10000000000000p: too many pages: their bytes pass 2^64-1"),
    ] {
        assert_eq!(world.refusal(text), refusal, "{text}");
    }
}

#[test]
fn variables_and_the_value_history() {
    let mut world = World::default();
    let refusal = world.refusal("$nothing + 1");
    assert_eq!(refusal, "$nothing: $nothing has not been set");
    assert_eq!(world.refusal("1 + $"), "$: no such value");
    assert!(world.refusal("$_").starts_with("$_: $_ has no value"));
    let address = Value::Address(VirtualAddress::new(0x1000));
    world.variables.insert("a".into(), address.clone());
    world.values.push(Integer::from(5u64).into());
    world.last_address = Some(VirtualAddress::new(0x77));
    assert_eq!(world.print("$a + $"), "address 0x1005");
    assert_eq!(world.print("$_"), "address 0x77");
    assert_eq!(world.refusal("$a + $a"), "+: two addresses cannot be added");
    assert_eq!(world.print("$a - 0x800"), "address 0x800");
    assert_eq!(world.print("0x1800 - $a"), "integer 2048");
    assert_eq!(world.print("$a >> 12"), "integer 1");
    assert_eq!(world.print("$a == 0x1000"), "integer 1");
}

#[test]
fn without_a_target_the_error_has_a_remedy() {
    let world = World::default();
    for text in ["heap", "[heap]", "main", "*0x1000", "pfn(0x1000)", "$pc", "all", "a!b", "a!0x10", "a[0]"] {
        let (_, error) = world.error(text);
        assert!(error.message.contains("no process is attached"), "{text}: {error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("attach PID")), "{text}");
    }
    let (part, error) = world.error("1 + deadbeef");
    assert_eq!(part, "deadbeef");
    assert!(error.hint.is_some_and(|hint| hint.contains("0xdeadbeef")));
}

/// The number that an expression gives; `None` for an error.
#[derive(Clone, Debug)]
enum Tree {
    Number(u64),
    Negated(Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Number(number) => number.to_string(),
            Tree::Negated(inner) => format!("(-{})", inner.text()),
            Tree::Binary(operator, a, b) => format!("({} {operator} {})", a.text(), b.text()),
        }
    }

    /// The value in i128, where each result of two numbers of the language fits but for shifts; `None` as soon as one
    /// is not of the language.
    fn number(&self) -> Option<i128> {
        let value = match self {
            Tree::Number(number) => i128::from(*number),
            Tree::Negated(inner) => -inner.number()?,
            Tree::Binary("&&", a, b) => i128::from(a.number()? != 0 && b.number()? != 0),
            Tree::Binary("||", a, b) => i128::from(a.number()? != 0 || b.number()? != 0),
            Tree::Binary(operator, a, b) => {
                let (a, b) = (a.number()?, b.number()?);
                match *operator {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a.checked_mul(b)?,
                    "/" => a.checked_div(b)?,
                    "%" => a.checked_rem(b)?,
                    "<" => i128::from(a < b),
                    "==" => i128::from(a == b),
                    _ => a & b,
                }
            }
        };
        (-(1 << 63)..1 << 64).contains(&value).then_some(value)
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let edges = vec![0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 32];
    let number = prop_oneof![prop::sample::select(edges), 0u64..10, any::<u64>()];
    number.prop_map(Tree::Number).prop_recursive(5, 32, 2, |inner| {
        let operators: &[&str] = &["+", "-", "*", "/", "%", "<", "==", "&", "&&", "||"];
        let binary = (prop::sample::select(operators), inner.clone(), inner.clone());
        prop_oneof![
            4 => binary.prop_map(|(operator, a, b)| Tree::Binary(operator, a.into(), b.into())),
            1 => inner.prop_map(|inner| Tree::Negated(inner.into())),
        ]
    })
}

proptest! {
    #[test]
    fn every_result_is_exact_or_an_error(tree in tree()) {
        let text = tree.text();
        let got = crate::eval::value(&super::range(&text), &World::default());
        match (got, tree.number()) {
            (Ok(Value::Integer(got)), Some(wanted)) => prop_assert_eq!(got.get(), wanted),
            (Err(error), None) => prop_assert!(error.at.start < error.at.end),
            (got, wanted) => prop_assert!(false, "{} is {:?}, not {:?}", text, got, wanted),
        }
    }
}
