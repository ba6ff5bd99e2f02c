//! Looks at a made-up process.

use super::*;
use crate::inspect::fake::{PAGE, World, region};
use crate::kernel::Name;

/// One look; `meanwhile` is run before the first read.
fn look(watcher: &mut Watcher, target: &Target, meanwhile: impl FnOnce()) -> Vec<Change> {
    let mut meanwhile = Some(meanwhile);
    let mut changes = Vec::new();
    let looked = watcher.look(
        target,
        &mut |view| view.spans(),
        &mut || {
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile();
            }
            Ok(())
        },
        &mut |change| {
            changes.push(change);
            Ok(())
        },
    );
    assert_eq!(looked.expect("a look"), Look::GoOn);
    changes
}

#[test]
fn regions_that_change_under_way_are_seen_as_they_are() {
    let mut world = World::new([region(0x1000, 10)]);
    world.maps(0x1000, 10, 500);
    let (world, target) = world.target();
    let mut watcher = Watcher::new(Need::empty());
    assert_eq!(look(&mut watcher, &target, || ()), []);
    let mut other = region(0x1005, 5);
    other.name = Name::from("[anon:other]");
    let changes = look(&mut watcher, &target, || {
        *world.regions.lock().expect("a lock") = vec![region(0x1000, 5), other.clone()];
    });
    let brief = |change: &Change| {
        let start = change.address.map(|address| address.get() / PAGE);
        (change.kind, start)
    };
    let briefs: Vec<_> = changes.iter().map(brief).collect();
    assert_eq!(
        briefs,
        [
            (EventKind::RegionShrank, Some(0x1005)),
            (EventKind::RegionAppeared, Some(0x1005))
        ]
    );
    assert_eq!(look(&mut watcher, &target, || ()), []);
}

#[test]
fn a_look_that_was_stopped_loses_nothing() {
    let mut world = World::new([region(0x1000, 10)]);
    world.maps(0x1000, 3, 500);
    let (_, target) = world.target();
    let mut watcher = Watcher::new(Need::empty());
    assert_eq!(look(&mut watcher, &target, || ()), []);
    let stopped = watcher.look(
        &target,
        &mut |view| view.spans(),
        &mut || Err(Stopped::Interrupted),
        &mut |_| Ok(()),
    );
    assert!(matches!(stopped, Err(Error::Stopped(_))));
    assert_eq!(look(&mut watcher, &target, || ()), []);
}
