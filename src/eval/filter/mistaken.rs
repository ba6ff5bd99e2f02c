//! Words of filters that are easily confused, and the notes about them.

use crate::kernel::{Kind, PageFact, PageFlags};
use crate::lang::{PageField, RegionField};

/// Fields with misleading names, the field that is mostly meant, and the meaning of the first. There is no note if a
/// filter has both.
pub(super) const EASILY_MISTAKEN: [(PageField, PageField, &str); 5] = [
    (
        PageField::Flag(PageFlags::LOCKED),
        PageField::Flag(PageFlags::MLOCKED),
        "`locked` is the kernel's lock of a page during I/O; what mlock keeps in memory is `mlocked`",
    ),
    (
        PageField::Flag(PageFlags::DIRTY),
        PageField::Fact(PageFact::TableDirty),
        "pages of a file are `dirty` until they are written back; in anonymous memory reclaim sets this flag, not the write (`help filters`)",
    ),
    (
        PageField::Kind(Kind::Cached),
        PageField::Kind(Kind::File),
        "`cached` pages are in the page cache but not mapped here; `cached or (file or shmem) and present` adds the mapped ones",
    ),
    (
        PageField::Fact(PageFact::Shared),
        PageField::Fact(PageFact::Exclusive),
        "`shared` selects the regions mapped with MAP_SHARED; `present and not exclusive` selects pages that are mapped more than once",
    ),
    (
        PageField::Fact(PageFact::Private),
        PageField::Fact(PageFact::Exclusive),
        "`private` selects the regions mapped with MAP_PRIVATE; `present and exclusive` selects pages that are mapped once",
    ),
];

/// Such fields of regions: two columns have the names of conditions.
pub(super) const REGION_EASILY_MISTAKEN: [(RegionField, RegionField, &str); 2] = [
    (
        RegionField::Shared,
        RegionField::SharedBytes,
        "`shared` selects the regions mapped with MAP_SHARED; the column of that name is `shared > 0`",
    ),
    (
        RegionField::Private,
        RegionField::ExclusiveBytes,
        "`private` selects the regions mapped with MAP_PRIVATE; the column of that name is `private > 0`",
    ),
];
