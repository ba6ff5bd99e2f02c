//! Pages that are refused for lack of room, or charged to a cgroup at its limit.

use super::*;

/// The first access to a hole takes a page or a block of its file system, which may be full.
#[test]
fn file_systems_without_room() {
    let content = Some(BackingContent::Hole);
    let hole = |room| AccessFacts { room, content, permissions: Some(SHARED), ..untouched(Kind::Shmem) };
    check(hole(Room::Enough), &[Zeros], &[Zeros]);
    check(hole(Room::None), &[NoSpace], &[NoSpace]);
    // A refused access copies nothing.
    let private = |facts| AccessFacts { permissions: Some(RW), ..facts };
    assert_eq!(outcome(&private(hole(Room::None)), Write).copies, Some(false));
    assert_eq!(outcome(&private(hole(Room::Enough)), Write).copies, Some(true));
    let unknown = AccessFacts { content: None, ..hole(Room::None) };
    check(unknown, &[MapCached, NoSpace, SwapIn], &[MapCached, NoSpace, SwapIn]);
    let pool = |reserved| AccessFacts { pool_may_be_reserved: reserved, kind: Some(Kind::Hugetlb), ..hole(Room::None) };
    check(pool(Some(false)), &[NoSpace], &[NoSpace]);
    check(pool(Some(true)), &[Zeros, NoSpace], &[Zeros, NoSpace]);
    // If the file cannot be found, its room is unknown.
    check(hole(Room::Unknown), &[Zeros, NoSpace], &[Zeros, NoSpace]);
    let there = AccessFacts { kind: Some(Kind::Cached), ..hole(Room::Unknown) };
    check(there, &[MapCached], &[MapCached]);
    // A read of a file takes no block.
    let file = |kind, room| AccessFacts { room, permissions: Some(SHARED), ..untouched(kind) };
    check(file(Kind::NotCached, Room::Little), &[ReadFile], &[ReadFile, NoSpace]);
    check(file(Kind::Cached, Room::Little), &[MapCached], &[MapCached, NoSpace]);
    check(file(Kind::PastEnd, Room::Little), &[PastEnd], &[PastEnd]);
    let clean = AccessFacts { state: State::Present, is_dirty: Some(false), ..file(Kind::File, Room::Little) };
    check(clean, &[Nothing], &[Reuse, Nothing, NoSpace]);
    let private = AccessFacts { permissions: Some(RW), ..file(Kind::NotCached, Room::Little) };
    check(private, &[ReadFile], &[ReadFile]);
}

/// Only a new page is charged to the cgroup, and only its charge may be refused.
#[test]
fn cgroups_at_their_limit() {
    let at_limit = |charge, facts: AccessFacts| AccessFacts { charge, ..facts };
    let kill = |facts| at_limit(Charge::MayKill, facts);
    check(kill(untouched(Kind::Anonymous)), &[Zeros], &[Zeros, OutOfMemory]);
    check(at_limit(Charge::MayWait, untouched(Kind::Anonymous)), &[Zeros], &[Zeros, WaitForMemory]);
    check(at_limit(Charge::Passes, untouched(Kind::Anonymous)), &[Zeros], &[Zeros]);
    let hole = AccessFacts { content: Some(BackingContent::Hole), permissions: Some(SHARED), ..untouched(Kind::Shmem) };
    check(kill(hole), &[Zeros, OutOfMemory], &[Zeros, OutOfMemory]);
    // The page cache already has the page; a private copy is new.
    check(kill(untouched(Kind::Cached)), &[MapCached], &[MapCached, OutOfMemory]);
    let shared = AccessFacts { permissions: Some(SHARED), ..untouched(Kind::Cached) };
    check(kill(shared), &[MapCached], &[MapCached]);
    check(kill(untouched(Kind::NotCached)), &[ReadFile, OutOfMemory], &[ReadFile, OutOfMemory]);
    check(kill(present(PageFlags::ANON | PageFlags::OWNER_2, 1)), &[Nothing], &[Nothing]);
    check(kill(present(PageFlags::ANON, 2)), &[Nothing], &[Copy, OutOfMemory]);
    check(kill(page(State::Swapped, Kind::Anonymous)), &[SwapIn, OutOfMemory], &[SwapIn, OutOfMemory]);
    let hole = AccessFacts { content: Some(BackingContent::Hole), ..untouched(Kind::Hugetlb) };
    check(kill(hole), &[Zeros], &[Zeros]);
    let limited = AccessFacts { pool_limit_is_reached: true, ..hole };
    check(limited, &[PoolLimit], &[PoolLimit]);
    let cached = AccessFacts { content: Some(BackingContent::Contents { cached: true }), ..limited };
    check(AccessFacts { permissions: Some(SHARED), ..cached }, &[MapCached], &[MapCached]);
}
