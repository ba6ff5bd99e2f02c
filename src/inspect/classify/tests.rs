use super::*;
use crate::kernel::swaps::{SwapLayout, SwapOptions};
use Backing::{Anonymous, File, Hugetlb, Kernel, Shmem};
use State::*;

/// Linux 6.18 with every option, some swap and some merging.
#[derive(Clone, Copy)]
struct Known {
    swap: bool,
    ksm: bool,
    options: bool,
    /// Linux 6.11 or later.
    recent: bool,
}
const ALL: Known = Known { swap: true, ksm: true, options: true, recent: true };

impl KernelBehaviour for Known {
    fn swap_meaning(&self, kind: u8) -> SwapMeaning {
        let options = SwapOptions { memory_failure: true, migration: true, device_private: true, pte_marker: true };
        let layout = SwapLayout { options: self.options.then_some(options), kernel: (6, 12) };
        layout.meaning(kind)
    }
    fn swap_in_use(&self) -> bool {
        self.swap
    }
    fn ksm_is_marked(&self) -> bool {
        self.ksm
    }
    fn guards_are_marked(&self) -> bool {
        true
    }
    fn huge_files_are_marked(&self) -> bool {
        self.recent
    }
}

const fn place(backing: Backing, shared: bool) -> Option<RegionFacts> {
    Some(RegionFacts::plain(backing, shared))
}
const HEAP: Option<RegionFacts> = place(Anonymous, false);
const LIBRARY: Option<RegionFacts> = place(File, false);

fn evidence(raw: u64) -> PageObservation {
    PageObservation::of(PageMapEntry::new(raw))
}

/// With the likeliest state alone.
fn classify(
    evidence: PageObservation,
    place: Option<RegionFacts>,
    rules: &dyn KernelBehaviour,
) -> (State, Option<Kind>) {
    let (states, kind) = classify_whole(evidence, place, rules);
    (states.likeliest(), kind)
}

/// The entry as given, and as by a kernel that tracks soft-dirty pages: it sets bit 55 on holes too.
fn classify_whole(
    evidence: PageObservation,
    place: Option<RegionFacts>,
    rules: &dyn KernelBehaviour,
) -> (StateSet, Option<Kind>) {
    let plain = super::classify(evidence, place, rules);
    let with_bit = |entry: PageMapEntry| PageMapEntry::new(entry.raw() | 1 << 55);
    let tracked = PageObservation { entry: evidence.entry.map(with_bit), ..evidence };
    assert_eq!(super::classify(tracked, place, rules), plain, "{tracked:?}");
    plain
}

#[test]
fn the_backing_content_of_untouched_pages() {
    use BackingContent::{Contents, Hole, PastEnd};
    let shared = place(Shmem, true);
    let (is, is_not) = (Contents { cached: true }, Contents { cached: false });
    for (place, content, kind) in [
        (LIBRARY, None, Kind::File),
        (LIBRARY, Some(PastEnd), Kind::PastEnd),
        (LIBRARY, Some(is), Kind::Cached),
        (LIBRARY, Some(is_not), Kind::NotCached),
        (shared, None, Kind::Shmem),
        (shared, Some(Hole), Kind::Shmem),
        (shared, Some(PastEnd), Kind::PastEnd),
        (shared, Some(is), Kind::Cached),
        (shared, Some(is_not), Kind::MaybeSwapped),
        // Memory without an object.
        (HEAP, Some(is), Kind::Anonymous),
        (place_of_kernel(), Some(is), Kind::Vdso),
    ] {
        let evidence = PageObservation { content, ..evidence(0) };
        let classified = classify(evidence, place, &ALL);
        assert_eq!(classified, (Untouched, Some(kind)), "{place:?} {content:?}");
    }
    // A marker or a frame decides, whatever the backing content.
    for raw in [0x4400_0000_0000_009f, PLAIN] {
        let evidence = PageObservation { content: Some(PastEnd), ..evidence(raw) };
        assert_ne!(classify(evidence, LIBRARY, &ALL).1, Some(Kind::PastEnd));
    }
}

const fn place_of_kernel() -> Option<RegionFacts> {
    place(Kernel, false)
}

#[test]
fn pages_that_are_not_present() {
    // Raw entries as Linux 6.18 gave them, where not marked otherwise.
    let table: &[(u64, Option<RegionFacts>, State, Option<Kind>)] = &[
        (0, None, Unmapped, None),
        (0, HEAP, Untouched, Some(Kind::Anonymous)),
        (0, LIBRARY, Untouched, Some(Kind::File)),
        (0, place(Shmem, true), Untouched, Some(Kind::Shmem)),
        (0, place(Hugetlb, true), Untouched, Some(Kind::Hugetlb)),
        // Kernels that track soft-dirty pages set the bit on holes too.
        (0x0080_0000_0000_0000, HEAP, Untouched, Some(Kind::Anonymous)),
        (0x4000_0000_0000_0020, HEAP, Swapped, Some(Kind::Anonymous)),
        (0x4000_0000_0000_0020, LIBRARY, Swapped, Some(Kind::PrivateCopy)),
        (0x4400_0000_0000_009f, HEAP, Guard, Some(Kind::Anonymous)),
        (0x4400_0000_0000_009f, LIBRARY, Guard, Some(Kind::File)),
        // 6.13 and 6.14 have guard pages, but not yet bit 58.
        (0x4000_0000_0000_009f, HEAP, Guard, Some(Kind::Anonymous)),
        // The same for an opener without CAP_SYS_ADMIN: only bit 58 is left.
        (0x4400_0000_0000_0000, HEAP, Guard, Some(Kind::Anonymous)),
        (0x4200_0000_0000_003f, HEAP, UffdWp, Some(Kind::Anonymous)),
        (0x4000_0000_0000_005f, HEAP, Poisoned, Some(Kind::Anonymous)),
        // Types 23 to 30 of a kernel with all options (6.12): hwpoison, migration, device.
        (0x4000_0000_0000_0037, HEAP, Hwpoison, Some(Kind::Anonymous)),
        (0x4000_0000_0000_0038, HEAP, Migrating, Some(Kind::Anonymous)),
        (0x6000_0000_0000_003a, LIBRARY, Migrating, Some(Kind::File)),
        (0x4000_0000_0000_003b, HEAP, Device, Some(Kind::Anonymous)),
        // Hidden type and slot: with swap in use, most likely swap.
        (0x4000_0000_0000_0000, HEAP, Swapped, Some(Kind::Anonymous)),
    ];
    for &(raw, place, state, kind) in table {
        assert_eq!(classify(evidence(raw), place, &ALL), (state, kind), "{raw:#x} {place:?}");
    }
}

#[test]
fn hidden_entries_without_swap_are_not_swapped() {
    let none = Known { swap: false, ..ALL };
    let state = |raw| classify(evidence(raw), HEAP, &none).0;
    assert_eq!(state(0x4200_0000_0000_0000), UffdWp);
    assert_eq!(state(0x4000_0000_0000_0000), Poisoned);
}

#[test]
fn states_of_hidden_entries_are_uncertain() {
    let none = Known { swap: false, ..ALL };
    let unknown = Known { options: false, ..ALL };
    let may_be = |raw, rules: Known| {
        let reason = classify_whole(evidence(raw), HEAP, &rules).0.uncertainty()?;
        Some(reason.to_string())
    };
    let swap = may_be(0x4000_0000_0000_0000, ALL).expect("hidden");
    assert!(swap.contains("hidden") && swap.contains("poisoned"), "{swap}");
    let marker = may_be(0x4000_0000_0000_0000, none).expect("hidden");
    assert!(marker.contains("no swap is in use"), "{marker}");
    // Bit 57 says that it is write-protected, with or without contents in swap.
    assert_eq!(classify(evidence(0x4200_0000_0000_0000), HEAP, &ALL).0, UffdWp);
    let protected = may_be(0x4200_0000_0000_0000, ALL).expect("hidden");
    assert!(protected.contains("also be in swap"), "{protected}");
    let special = may_be(0x4000_0000_0000_0038, unknown).expect("no configuration");
    assert!(special.contains("hwpoison"), "{special}");
    for raw in [0, PLAIN, 0x4400_0000_0000_0000, 0x4000_0000_0000_0020, 0x4000_0000_0000_005f, 0x4000_0000_0000_0038] {
        assert_eq!(may_be(raw, ALL), None, "{raw:#x}");
    }
}

#[test]
fn without_the_configuration_a_pseudo_type_is_no_swap() {
    let unknown = Known { options: false, ..ALL };
    for kind in 0x17..0x1f {
        let (states, _) = classify_whole(evidence(0x4000_0000_0000_0020 | kind), HEAP, &unknown);
        assert_eq!(states.is(Swapped), Some(false), "type {kind}");
    }
}

#[test]
fn outside_and_pfn_mapped() {
    let none = PageObservation { entry: None, ..evidence(0) };
    assert_eq!(classify(none, place(Kernel, false), &ALL), (Outside, Some(Kind::Vdso)));
    assert_eq!(classify(none, None, &ALL), (Outside, None));
    let hidden = |backing| {
        Some(RegionFacts {
            backing,
            is_shared: true,
            is_pfn_mapped: true,
            may_be_copied: false,
            may_be_huge: false,
            merged: Some(false),
        })
    };
    let classified = |backing| classify(evidence(0), hidden(backing), &ALL);
    assert_eq!(classified(Kernel), (PfnMapped, Some(Kind::Vdso)));
    assert_eq!(classified(File), (PfnMapped, Some(Kind::DeviceMemory)));
}

const PLAIN: u64 = 0x8000_0000_0012_3456;
const EXCLUSIVE: u64 = PLAIN | 1 << 56;
const FILE_BIT: u64 = PLAIN | 1 << 61;

fn kind(evidence: PageObservation, place: Option<RegionFacts>, rules: Known) -> Option<Kind> {
    let (state, kind) = classify(evidence, place, &rules);
    assert_eq!(state, Present);
    kind
}

#[test]
fn what_is_present() {
    let table: &[(u64, Option<RegionFacts>, Option<Kind>)] = &[
        (EXCLUSIVE, HEAP, Some(Kind::Anonymous)),
        // The zero page, or shared by fork: the entry alone does not say.
        (PLAIN, HEAP, None),
        (FILE_BIT, HEAP, Some(Kind::HugeZero)),
        (FILE_BIT, LIBRARY, Some(Kind::File)),
        (PLAIN, LIBRARY, Some(Kind::PrivateCopy)),
        (EXCLUSIVE, place(Shmem, false), Some(Kind::PrivateCopy)),
        (FILE_BIT, place(Shmem, true), Some(Kind::Shmem)),
        (FILE_BIT, place(Hugetlb, true), Some(Kind::Hugetlb)),
        (EXCLUSIVE, place(Hugetlb, false), Some(Kind::Hugetlb)),
        (FILE_BIT, place(Kernel, false), Some(Kind::Vdso)),
        (PLAIN, place(File, true), Some(Kind::DeviceMemory)),
        (PLAIN, None, None),
        // Hidden frames change nothing.
        (0x8100_0000_0000_0000, HEAP, Some(Kind::Anonymous)),
        (0xa000_0000_0000_0000, LIBRARY, Some(Kind::File)),
    ];
    for &(raw, place, expected) in table {
        assert_eq!(kind(evidence(raw), place, ALL), expected, "{raw:#x} {place:?}");
    }
}

#[test]
fn flags_and_categories_decide_more() {
    let with_flags = |raw, flags| PageObservation { flags: Some(flags), ..evidence(raw) };
    let with_categories = |raw, categories| PageObservation { categories: Some(categories), ..evidence(raw) };
    let zero = PageFlags::ZERO_PAGE | PageFlags::RESERVED;
    let huge_zero = PageFlags::ZERO_PAGE | PageFlags::THP | PageFlags::COMPOUND_TAIL;
    let merged = PageFlags::ANON | PageFlags::KSM;
    let own = merged | PageFlags::OWNER_2;
    let slab = PageFlags::SLAB | PageFlags::ANON | PageFlags::KSM;
    let anonymous = Some(Kind::Anonymous);
    let no_ksm = Known { ksm: false, ..ALL };
    let table = [
        (with_flags(PLAIN, zero), ALL, Some(Kind::Zero)),
        (with_flags(FILE_BIT, huge_zero), ALL, Some(Kind::HugeZero)),
        (with_flags(PLAIN, PageFlags::ANON), ALL, anonymous),
        (with_flags(PLAIN, merged), ALL, Some(Kind::Ksm)),
        // Set on every anonymous page by some kernels.
        (with_flags(EXCLUSIVE, own), ALL, anonymous),
        (with_flags(PLAIN, merged), no_ksm, anonymous),
        (with_flags(EXCLUSIVE, slab), ALL, anonymous),
        (with_flags(EXCLUSIVE, PageFlags::HUGE), ALL, Some(Kind::Hugetlb)),
        (with_categories(PLAIN, Categories::ZERO), ALL, Some(Kind::Zero)),
        (with_categories(FILE_BIT, Categories::ZERO | Categories::HUGE), ALL, Some(Kind::HugeZero)),
        (with_categories(PLAIN, Categories::empty()), ALL, anonymous),
    ];
    for (evidence, rules, expected) in table {
        assert_eq!(kind(evidence, HEAP, rules), expected, "{evidence:?}");
    }
}

/// Linux 6.12 sets KPF_KSM on every anonymous page, and without rights flags are hidden: then the region decides.
#[test]
fn merged_pages_where_their_flag_does_not_tell() {
    let unmarked = Known { ksm: false, ..ALL };
    let flagged = PageFlags::ANON | PageFlags::KSM;
    let own = Some(Kind::Anonymous);
    for (flags, merged, expected) in [
        (Some(flagged), Some(true), Some(Kind::Ksm)),
        (Some(flagged), Some(false), own),
        (Some(flagged), None, None),
        // These decide by themselves.
        (Some(flagged | PageFlags::OWNER_2), None, own),
        (Some(PageFlags::ANON), None, own),
        (None, Some(true), Some(Kind::Ksm)),
        (None, Some(false), own),
        (None, None, None),
    ] {
        let place = HEAP.map(|place| RegionFacts { merged, ..place });
        for raw in [PLAIN, EXCLUSIVE] {
            let evidence = PageObservation {
                flags,
                // It is not the zero page.
                categories: Some(Categories::empty()),
                ..evidence(raw)
            };
            let kind = classify(evidence, place, &unmarked).1;
            assert_eq!(kind, expected, "{flags:?} {merged:?} {raw:#x}");
        }
    }
}

/// pagemap_hugetlb_range shows neither markers nor migration entries; a scan says that something is there.
#[test]
fn hugetlb_entries_that_are_not_present_show_less() {
    let pool = place(Hugetlb, false);
    let with = |raw, categories| PageObservation { categories, ..evidence(raw) };
    let is = |evidence| {
        let (states, kind) = classify_whole(evidence, pool, &ALL);
        assert_eq!(kind, Some(Kind::Hugetlb));
        states
    };
    let marker = Some(Categories::HUGE | Categories::SWAPPED);
    let protected = 0x0200_0000_0000_0000;
    assert_eq!(is(with(protected, marker)), UffdWp.into());
    assert_eq!(is(with(protected, None)), UffdWp.into());
    let something = is(with(0, marker));
    assert_eq!(something.likeliest(), Poisoned);
    assert_eq!(something.is(Untouched), Some(false));
    let unasked = is(with(0, None));
    assert_eq!(unasked.likeliest(), Untouched);
    assert_eq!(unasked.is(Poisoned), None);
    let empty = Some(Categories::HUGE);
    assert_eq!(is(with(0, empty)), Untouched.into());
}

#[test]
fn bit_61_of_what_one_pmd_maps_is_missing_before_linux_6_11() {
    let old = Known { recent: false, ..ALL };
    let room = |backing, shared| place(backing, shared).map(|place| RegionFacts { may_be_huge: true, ..place });
    let flags = |flags| PageObservation { flags: Some(flags), ..evidence(PLAIN) };
    let categories = |categories| PageObservation { categories: Some(categories), ..evidence(PLAIN) };
    let file = PageFlags::LRU | PageFlags::THP | PageFlags::COMPOUND_TAIL;
    let copy = Some(Kind::PrivateCopy);
    for (evidence, place, expected) in [
        (flags(file), room(Shmem, true), Some(Kind::Shmem)),
        (flags(file), room(File, false), Some(Kind::File)),
        (categories(Categories::HUGE), room(File, false), Some(Kind::File)),
        (categories(Categories::empty()), room(File, false), copy),
        (flags(PageFlags::ANON), room(File, false), copy),
        (flags(file | PageFlags::ANON), room(File, false), copy),
        (flags(PageFlags::RESERVED), room(File, true), Some(Kind::DeviceMemory)),
        (evidence(PLAIN), room(File, false), None),
        (evidence(PLAIN), room(Shmem, true), None),
        // Too small for it.
        (evidence(PLAIN), LIBRARY, copy),
        (evidence(FILE_BIT), room(File, false), Some(Kind::File)),
        (categories(Categories::ZERO | Categories::HUGE), room(Anonymous, false), Some(Kind::HugeZero)),
        (flags(PageFlags::ZERO_PAGE | PageFlags::THP), room(Anonymous, false), Some(Kind::HugeZero)),
    ] {
        assert_eq!(kind(evidence, place, old), expected, "{evidence:?} {place:?}");
    }
    assert_eq!(kind(evidence(PLAIN), room(File, false), ALL), copy);
}

#[test]
fn a_page_without_the_hugetlb_flag_is_not_of_the_pool() {
    let flags = |flags| PageObservation { flags: Some(flags), ..evidence(FILE_BIT) };
    let pool = place(Hugetlb, true);
    assert_eq!(kind(flags(PageFlags::HUGE), pool, ALL), Some(Kind::Hugetlb));
    assert_eq!(kind(flags(PageFlags::LRU), pool, ALL), None);
}
