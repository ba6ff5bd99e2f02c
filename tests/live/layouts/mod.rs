//! Structures of the running kernel, compared with what the crate `btfparse` reads of the same file.

mod members;

use super::Test;
use super::support::skip;
use btfparse::{Integer32Value, Integer64Value, Offset, Readable, TypeInformation, TypeVariant};
use members::{ENUMERATORS, MEMBERS};
use pmdb::budget::Budget;
use pmdb::kernel::btf::Layout;
use std::collections::HashMap;

pub const TESTS: &[Test] = &[("layouts::of_this_kernel_as_btfparse_reads_them", of_this_kernel_as_btfparse_reads_them)];

const FILE: &str = "/sys/kernel/btf/vmlinux";

struct Bytes(Vec<u8>);

impl Readable for Bytes {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> btfparse::Result<()> {
        let bytes = self.0.get(offset as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }
}

/// The answer of all definitions of a name, if they agree.
fn agreed<T: PartialEq>(answers: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut answers = answers;
    let first = answers.next()??;
    answers.all(|answer| answer.as_ref() == Some(&first)).then_some(first)
}

/// Offset and width in bits, and whether it is a bit field.
fn place(info: &TypeInformation, number: u32, path: &str) -> Option<(u64, u64, bool)> {
    match info.offset_of(number, path).ok()? {
        (inner, Offset::ByteOffset(bytes)) => {
            Some((u64::from(bytes) * 8, info.size_of(inner).expect("its size") as u64 * 8, false))
        }
        (_, Offset::BitOffsetAndSize(offset, bits)) => Some((offset.into(), bits.into(), true)),
    }
}

fn enumerator(info: &TypeInformation, number: u32, name: &str) -> Option<i64> {
    match info.from_id(number)? {
        TypeVariant::Enum(one) => {
            let value = one.named_value_list().iter().find(|value| value.name == name)?;
            Some(match value.value {
                Integer32Value::Signed(value) => value.into(),
                Integer32Value::Unsigned(value) => value.into(),
            })
        }
        TypeVariant::Enum64(one) => {
            let value = one.named_value_list().iter().find(|value| value.name == name)?;
            match value.value {
                Integer64Value::Signed(value) => Some(value),
                Integer64Value::Unsigned(value) => value.try_into().ok(),
            }
        }
        _ => None,
    }
}

fn of_this_kernel_as_btfparse_reads_them() {
    let Ok(bytes) = std::fs::read(FILE) else {
        return skip("layouts::of_this_kernel_as_btfparse_reads_them", "this kernel does not describe its structures");
    };
    let layout = Layout::parse(bytes.clone(), &mut Budget::unlimited()).expect("the layout of this kernel");
    let info = TypeInformation::new(&Bytes(bytes)).expect("what btfparse reads");
    let mut definitions: HashMap<String, Vec<u32>> = HashMap::new();
    for (&number, one) in info.get() {
        use TypeVariant::{Enum, Enum64, Struct, Union};
        if matches!(one, Struct(_) | Union(_) | Enum(_) | Enum64(_)) {
            let name = info.name_of(number);
            definitions.entry(name.unwrap_or_default()).or_default().push(number);
        }
    }
    let numbers = |name: &str| definitions.get(name).into_iter().flatten().copied();
    let mut missing = Vec::new();
    for &(structure, members) in MEMBERS {
        let size = agreed(numbers(structure).map(|number| info.size_of(number).ok()));
        assert_eq!(layout.size_of(structure), size.map(|size| size as u64), "{structure}");
        for path in members {
            let expected = agreed(numbers(structure).map(|number| place(&info, number, path)));
            let found = layout.member(structure, path);
            let found = found.map(|member| (member.bit_offset, member.bits, member.is_bit_field));
            assert_eq!(found, expected, "{structure}.{path}");
            missing.extend(found.is_none().then(|| format!("{structure}.{path}")));
        }
    }
    for &(enumeration, names) in ENUMERATORS {
        for name in names {
            let expected = agreed(numbers(enumeration).map(|number| enumerator(&info, number, name)));
            assert_eq!(layout.enumerator(enumeration, name), expected, "{enumeration} {name}");
        }
    }
    // These every kernel since 5.10 has.
    for always in ["page.flags", "page._refcount", "page._mapcount", "page.mapping", "mm_struct.pgd", "inode.i_ino"] {
        assert!(!missing.iter().any(|name| name == always), "{always}");
    }
    assert!(
        layout.enumerator("pageflags", "PG_locked") == Some(0) && layout.enumerator("pageflags", "PG_head") > Some(0)
    );
    println!("not in this kernel: {}", missing.join(" "));
}
