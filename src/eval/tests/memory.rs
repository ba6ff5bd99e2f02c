//! Reading memory: only what is resident, in the target's own order and width.

use super::{World, process};
use crate::kernel::{Registers, VirtualAddress};
use crate::process::Liveness;
use crate::process::fake::Fake;
use std::sync::atomic::Ordering;

const SWAP_ENTRY: u64 = 1 << 62;

/// Two resident pages, and after them a page of each other state.
fn heap() -> Fake {
    let mut first = vec![0xff; 4096];
    first[..8].copy_from_slice(&0x50_0010u64.to_le_bytes());
    first[0x10..0x18].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0xf1]);
    process()
        .page(0x50_0000, 0x1234, &first)
        .page(0x50_1000, 0x1300, &[1, 2, 3, 4])
        .entry(0x50_2000, SWAP_ENTRY | 77 << 5)
        .entry(0x50_3000, SWAP_ENTRY | 1 << 58)
}

#[test]
fn words_of_every_width() {
    let world = World::of(heap());
    for (text, value) in [
        ("*0x500000", "address 0x500010"),
        ("**0x500000", "address 0xf122334455667788"),
        ("u8(0x500010)", "integer 136"),
        ("i8(0x500010)", "integer -120"),
        ("u16(0x500010)", "integer 30600"),
        ("i16(0x500010)", "integer 30600"),
        ("u32(0x500010)", "integer 1432778632"),
        ("i32(0x500014)", "integer -249416892"),
        ("u64(0x500010)", "integer 17375506680932366216"),
        ("i64(0x500010)", "integer -1071237392777185400"),
        // Across two pages that are both resident.
        ("u32(0x500ffe)", "integer 33685503"),
        ("u16([heap])", "integer 16"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
}

#[test]
fn the_targets_own_order_and_width() {
    let mut fake = heap();
    fake.layout.pointer_bytes = 4;
    fake.layout.is_little_endian = false;
    let world = World::of(fake);
    assert_eq!(world.print("*0x500010"), "address 0x88776655");
    assert_eq!(world.print("i16(0x500010)"), format!("integer {}", 0x8877u16 as i16));
}

#[test]
fn pages_that_are_not_resident_are_not_touched() {
    let world = World::of(heap());
    for (text, refusal) in [
        ("*0x502008", "*0x502008: cannot read 0x502008: its page is swapped"),
        ("u8(0x503000)", "0x503000: cannot read 0x503000: its page is a guard page"),
        ("u8(0x504000)", "0x504000: cannot read 0x504000: its page is untouched"),
        // The first byte is resident, the last is not.
        ("u32(0x501ffe)", "0x501ffe: cannot read 0x502000: its page is swapped"),
        ("u8(0x100)", "0x100: cannot read 0x100: its page is unmapped"),
        ("u8([vsyscall])", "[vsyscall]: cannot read 0xffffffffff600000: its page is outside of the page map"),
        ("u64(0xfffffffffffffffc)", "0xfffffffffffffffc: a read at 0xfffffffffffffffc would pass 2^64-1"),
    ] {
        assert_eq!(world.refusal(text), refusal);
    }
    assert_eq!(world.watched.memory_reads.load(Ordering::Relaxed), 0);
}

#[test]
fn a_page_that_goes_during_the_read_is_an_error() {
    let world = World::of(heap());
    world.watched.gone_after_read.lock().unwrap().push(0x500);
    let refusal = world.refusal("u8(0x500010)");
    assert!(refusal.contains("changed during the read"), "{refusal}");
}

#[test]
fn frames_and_physical_addresses() {
    let world = World::of(heap());
    for (text, value) in [
        ("pfn(0x500010)", "frame pfn:0x1234"),
        ("phys(0x500010)", "physical phys:0x1234010"),
        ("phys([heap] + 0x1004)", "physical phys:0x1300004"),
        ("pfn([heap]) == 0x1234", "integer 1"),
        ("region(0x500010)", "range 0x500000..0x510000"),
        ("size(region(0x500010))", "integer 65536"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
    for (text, refusal) in [
        ("pfn(0x502000)", "0x502000: 0x502000 has no page frame: its page is swapped"),
        ("phys(0x504000)", "0x504000: 0x504000 has no page frame: its page is untouched"),
        ("region(0x100)", "0x100: 0x100 is in no region"),
    ] {
        assert_eq!(world.refusal(text), refusal);
    }
}

#[test]
fn hidden_frames_are_not_zero() {
    let mut fake = heap();
    fake.frames_hidden = true;
    let world = World::of(fake);
    for text in ["pfn(0x500010)", "phys(0x500010)"] {
        let (part, error) = world.error(text);
        assert_eq!(part, "0x500010");
        assert!(error.message.contains("hidden without CAP_SYS_ADMIN"), "{error}");
        assert_eq!(error.status(), 4);
    }
    assert_eq!(world.print("u16(0x500000)"), "integer 16");
}

#[test]
fn a_program_that_ends_meanwhile_is_gone() {
    let world = World::of(heap());
    for text in ["mapcount(0x500010)", "count(0x500000..0x501000)"] {
        *world.watched.liveness.lock().unwrap() = Some(Liveness::Executed);
        let (_, error) = world.error(text);
        assert_eq!(error.status(), 3, "{text}: {error}");
    }
}

#[test]
fn registers_of_a_thread_that_waits() {
    let mut fake = heap();
    assert!(World::of(fake.clone()).refusal("$pc").contains("running"));
    fake.registers = Some(Registers {
        program_counter: VirtualAddress::new(0x40_1003),
        stack_pointer: VirtualAddress::new(0x50_0010),
    });
    let world = World::of(fake);
    assert_eq!(world.print("symbol($pc)"), "text main+3");
    assert_eq!(world.print("$sp - 0x10"), "address 0x500000");
}
