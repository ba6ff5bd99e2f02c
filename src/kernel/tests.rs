//! Bytes that no machine and no guest of `scripts/guests` shows, each with its place in the kernel source.

use super::physical::{ZoneLookup, Zones};
use super::swaps::{SwapLayout, SwapMeaning, SwapOptions};
use super::*;

/// Bits 59 and 60 have no meaning up to Linux 7.2 (`PM_*` in fs/proc/task_mmu.c). If a later kernel sets them, the
/// meaning of the others stays, and `decode` shows the two without a meaning.
#[test]
fn bits_of_later_kernels_change_no_other() {
    for raw in [0x8180_0000_001a_4eac, 0xa000_0000_0000_0001, 0x4400_0000_0000_009f, 0x4000_0000_0000_0020, 0] {
        let known = PageMapEntry::new(raw);
        for later in [1 << 59, 1 << 60, 3 << 59] {
            let entry = PageMapEntry::new(raw | later);
            assert_eq!(entry.frame(), known.frame());
            assert_eq!(entry.swap(), known.swap());
            assert_eq!(entry.is_present(), known.is_present());
            assert_eq!(entry.is_guard(), known.is_guard());
            assert_eq!(entry.is_exclusive(), known.is_exclusive());
            assert_eq!(entry.is_soft_dirty(), known.is_soft_dirty());
            let names: Vec<_> = entry.set_bits().map(|bit| bit.name).collect();
            assert_eq!(names.contains(&"bit59"), later >> 59 & 1 == 1);
            assert_eq!(names.contains(&"bit60"), later >> 60 & 1 == 1);
        }
    }
}

/// HMM moves pages of a process into the memory of a graphics card and leaves entries of a type of its own:
/// `SWP_DEVICE_WRITE` and `SWP_DEVICE_READ` (include/linux/swap.h), whose offset is a frame number that no processor
/// can read.
#[test]
fn memory_of_a_graphics_card_is_not_swap() {
    let options = SwapOptions { memory_failure: true, migration: true, device_private: true, pte_marker: true };
    // Kernel, and the types of device-private memory: two below what lies above them (MAX_SWAPFILES + SWP_HWPOISON_NUM
    // + SWP_MIGRATION_NUM).
    for (kernel, types) in [((5, 10), [30, 31]), ((5, 15), [28, 29]), ((6, 12), [27, 28])] {
        let layout = SwapLayout { options: Some(options), kernel };
        for kind in types {
            let entry = PageMapEntry::new(1 << 62 | 0x7f_ffff << 5 | kind);
            let swap = entry.swap().expect("an entry that is not present");
            assert_eq!(swap.offset, 0x7f_ffff);
            assert_eq!(layout.meaning(swap.kind), SwapMeaning::Device, "{kernel:?}");
            assert_eq!(entry.frame(), None);
        }
    }
}

/// Memory behind CXL comes in as a node without processors, with a number of its own and only a movable zone, at an
/// address far above all other (`dev_dax_kmem_probe` in drivers/dax/kmem.c). Its zone has start_pfn 0 until it is
/// brought online.
#[test]
fn a_node_of_memory_alone() {
    let text = b"Node 0, zone   Normal\n  pages free     100\n        spanned  4194304\n        present  4194304\n  start_pfn:           1048576\n\
        Node 3, zone   Normal\n  pages free     0\n        spanned  0\n        present  0\n\
        Node 3, zone  Movable\n  pages free     100\n        spanned  33554432\n        present  33554432\n  start_pfn:           4294967296\n";
    let zones = Zones::parse(text).expect("zones");
    assert_eq!(zones.iter().count(), 2);
    let far = zones.of(FrameNumber::new(4_294_967_296 + 7)).expect("a zone");
    assert_eq!((far.node, far.name.as_str()), (3, "Movable"));
    let gap = zones.span_of(FrameNumber::new(1 << 31));
    assert_eq!(gap.spanned, ZoneLookup::InNone);
    let page = PageSize::FOUR_KIB;
    let physical = FrameNumber::new(4_294_967_296).physical(page);
    assert_eq!(physical, Some(PhysicalAddress::new(1 << 44)));
}

/// The largest page that a kernel can be built with: CONFIG_PAGE_SIZE_256KB in arch/hexagon/Kconfig,
/// CONFIG_PPC_256K_PAGES in arch/powerpc/Kconfig.
#[test]
fn pages_of_256_kib() {
    let page = PageSize::from_bytes(256 << 10).expect("a page size");
    let address = VirtualAddress::new(0x4013_2abc);
    assert_eq!(page.offset(address), 0x3_2abc);
    assert_eq!(page.index(address), 0x1004);
    assert_eq!(page.floor(address), VirtualAddress::new(0x4010_0000));
    assert_eq!(page.pages_in(0x4_0001), 2);
    let physical = PhysicalAddress::new(0x1_2345_6789);
    assert_eq!(physical.frame(page), FrameNumber::new(0x48d1));
    assert_eq!(physical.offset(page), 0x1_6789);
    let frame = FrameNumber::new(0x48d1);
    assert_eq!(frame.physical(page), Some(PhysicalAddress::new(0x1_2344_0000)));
    let range = AddressRange::new(address, VirtualAddress::new(0x4020_0001)).expect("a range");
    assert_eq!(range.pages(page), 5);
}
