//! Whether the kernel may move a page to another frame, by its record and its flags.

use crate::kernel::{Kind, PageFlags};
use crate::report::{KernelRecord, Movable};

/// Whether a present page may get another frame; `None` if its pins or its holders are unknown.
pub fn movable(kind: Option<Kind>, flags: Option<PageFlags>, record: &KernelRecord) -> Option<Movable> {
    let has = |flag| flags.is_some_and(|flags| flags.intersects(flag));
    let is_kernel_s = matches!(
        kind,
        Some(Kind::Zero | Kind::HugeZero | Kind::Vdso | Kind::DeviceMemory | Kind::DriverMemory | Kind::Secret)
    );
    let has_owner = record.owner.as_ref().ok().is_none_or(|owner| owner.has_contents());
    if is_kernel_s || has(PageFlags::RESERVED) || !has_owner {
        return Some(Movable::Never);
    }
    match (&record.pins, record.pins_at_most) {
        (Ok(0), _) => {}
        (Ok(_), _) => return Some(Movable::Pinned),
        (Err(_), Some(_)) => return Some(Movable::PossiblyPinned),
        (Err(_), None) => return None,
    }
    // Migration expects no reference but those of mappings and files (folio_expected_ref_count in include/linux/mm.h).
    let holders = record.holders.as_ref().ok()?;
    Some(match holders.others {
        1.. => Movable::Held,
        0 if kind == Some(Kind::Hugetlb) || has(PageFlags::MLOCKED | PageFlags::UNEVICTABLE) => Movable::Unreclaimable,
        // A journal may hold them (__buffer_migrate_folio in mm/migrate.c).
        0 if holders.filesystem > 0 => Movable::UnlessBuffersHeld,
        0 => Movable::Freely,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Holders, Reason, RecordedOwner};

    #[test]
    fn what_holds_a_page_decides() {
        let unknown = || Reason::NotOnThisKernel("unknown".into());
        let holders = |others| Holders { mappings: 1, page_cache: 0, swap_cache: 0, filesystem: 0, pins: 0, others };
        let record = |pins: Option<u64>, at_most: Option<u64>, others: Option<u64>, owner| KernelRecord {
            references: Ok(1),
            holders: others.map(holders).ok_or_else(unknown),
            pins: pins.ok_or_else(unknown),
            pins_at_most: at_most,
            owner: Ok(owner),
            file_page: None,
            free_block: None,
            slab: None,
        };
        let anonymous = Some(Kind::Anonymous);
        let of = |kind, flags, record: &KernelRecord| movable(kind, Some(flags), record);
        let (none, locked) = (PageFlags::empty(), PageFlags::MLOCKED | PageFlags::UNEVICTABLE);
        let quiet = record(Some(0), None, Some(0), RecordedOwner::Anonymous);
        assert_eq!(of(anonymous, none, &quiet), Some(Movable::Freely));
        let mut buffered = record(Some(0), None, Some(0), RecordedOwner::File);
        buffered.holders = Ok(Holders { page_cache: 1, filesystem: 1, ..holders(0) });
        assert_eq!(of(Some(Kind::File), PageFlags::PRIVATE, &buffered), Some(Movable::UnlessBuffersHeld));
        assert_eq!(of(anonymous, locked, &quiet), Some(Movable::Unreclaimable));
        assert_eq!(of(Some(Kind::Hugetlb), none, &quiet), Some(Movable::Unreclaimable));
        assert_eq!(of(Some(Kind::Zero), none, &quiet), Some(Movable::Never));
        assert_eq!(of(anonymous, PageFlags::RESERVED, &quiet), Some(Movable::Never));
        assert_eq!(
            of(anonymous, locked, &record(Some(2), None, Some(0), RecordedOwner::Anonymous)),
            Some(Movable::Pinned)
        );
        assert_eq!(
            of(anonymous, none, &record(None, Some(1), Some(2000), RecordedOwner::File)),
            Some(Movable::PossiblyPinned)
        );
        assert_eq!(of(anonymous, none, &record(Some(0), None, Some(1), RecordedOwner::Anonymous)), Some(Movable::Held));
        assert_eq!(
            of(Some(Kind::File), none, &record(Some(0), None, Some(7), RecordedOwner::Unrecorded)),
            Some(Movable::Never)
        );
        assert_eq!(of(anonymous, none, &record(None, None, Some(0), RecordedOwner::Anonymous)), None);
        assert_eq!(of(anonymous, none, &record(Some(0), None, None, RecordedOwner::Anonymous)), None);
    }
}
