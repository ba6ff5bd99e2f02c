//! `account` on made-up descriptors.

use super::{World, all, records};
use crate::command::account::objects::AccountObject;
use crate::command::account::records::AccountSummary;
use crate::kernel::{Device, PageFlags, Region};
use crate::process::fake::region;
use crate::render::{More, Renderer, Text, Theme};
use crate::report::ObjectKind;

/// Three descriptors of two clients: one of them is there twice.
#[test]
fn memory_of_a_driver_counts_once_for_each_client() {
    let client = |number: u32, resident: u32| {
        format!(
            "pos:\t0\ndrm-driver:\ti915\ndrm-client-id:\t{number}\ndrm-pdev:\t0000:00:02.0\n\
             drm-total-system0:\t90 MiB\ndrm-shared-system0:\t1 MiB\ndrm-resident-system0:\t{resident} MiB\n\
             drm-total-local0:\t4096\ndrm-engine-render:\t9 ns\n"
        )
    };
    let mut world = World::new([region(0x700, 0x710)]);
    world.maps(0x700, 3, 0x100);
    let node = "/dev/dri/renderD128";
    world.descriptors =
        vec![("socket:[1]", String::new()), (node, client(31, 40)), (node, client(31, 40)), (node, client(32, 30))];
    let records = records("account", world.target().1);
    let rows: Vec<_> = all::<AccountObject>(&records)
        .map(|row| (row.name.to_string(), row.inode, row.unmapped, row.at_most, row.shared, row.held))
        .collect();
    let name = |place| format!("i915 0000:00:02.0 {place}");
    assert_eq!(
        rows,
        [
            (name("system0"), 31, 40 << 20, false, Some(1 << 20), 2),
            (name("system0"), 32, 30 << 20, false, Some(1 << 20), 1),
            (name("local0"), 31, 4096, true, None, 2),
            (name("local0"), 32, 4096, true, None, 1),
        ]
    );
    assert!(all::<AccountObject>(&records).all(|row| row.kind == ObjectKind::Graphics && row.device.is_none()));
    // It may be on the device.
    let summary = all::<AccountSummary>(&records).next().expect("a sum");
    assert_eq!((summary.unmapped.clone().ok(), summary.unmapped_bound), (Some(0), None));
}

/// What has such a name and shows no client may be any file: here nobody knows its mount.
#[test]
fn a_name_does_not_make_a_device() {
    let mut world = World::new([region(0x700, 0x710)]);
    world.maps(0x700, 3, 0x100);
    world.descriptors = vec![("/dev/dri/renderD128", "pos:\t0\n".to_owned())];
    let records = records("account", world.target().1);
    let summary = all::<AccountSummary>(&records).next().expect("a sum");
    let reason = summary.unmapped.clone().expect_err("it may be in memory");
    assert!(reason.to_string().contains("mounts that the process does not see"), "{reason}");
}

/// The kernel holds the lock of the address space while it adds up smaps_rollup.
#[test]
fn sums_of_the_kernel_are_read_where_they_are_needed() {
    let compared = |line: &str| {
        let mut world = World::new([region(0x700, 0x710)]);
        world.maps(0x700, 3, 0x100);
        for frame in 0x100..0x103 {
            world.flags.insert(frame, (PageFlags::ANON | PageFlags::SWAPBACKED).bits());
        }
        let rollup = "700000-710000 ---p 00000000 00:00 0 [rollup]\nRss: 12 kB\nLazyFree: 8 kB\nKSM: 0 kB\n";
        world.has_rollup(rollup);
        let records = records(line, world.target().1);
        let summary = all::<AccountSummary>(&records).next().expect("a sum").clone();
        (summary.kernel.is_ok(), summary.lazy_free.ok())
    };
    assert_eq!(compared("account"), (false, Some(0)));
    assert_eq!(compared("account full"), (true, Some(8 << 10)));
}

#[test]
fn objects_with_one_name_have_their_numbers_behind_it() {
    let device = Device { major: 0, minor: 1 };
    let object =
        |start, inode, name: &str| Region { device, inode, deleted: true, name: name.into(), ..region(start, 1) };
    let regions = [
        object(0x1000, 5, "/memfd:ring"),
        object(0x2000, 6, "/memfd:ring"),
        object(0x3000, 7, "/SYSV00000000"),
        object(0x4000, 8, "/tmp/gone"),
    ];
    for line in ["regions", "map", "account by region", "account by mapping", "walk all by region"] {
        let mut world = World::new(regions.clone());
        world.maps(0x1000, 1, 0x9000);
        let found = records(line, world.target().1);
        for width in [None, Some(100)] {
            let mut text = Text::new(Theme::PLAIN, width);
            text.show(More::All);
            let mut out = Vec::new();
            found.iter().for_each(|record| text.record(record.as_ref(), &mut out).expect("text"));
            text.finish(&mut out).expect("text");
            let out = String::from_utf8(out).expect("text");
            let is_there = |number: &str| out.contains(number);
            assert!(is_there("memfd:ring, inode 5"), "{line}\n{out}");
            // Nothing of the others is resident.
            if !line.starts_with("account") {
                assert!(is_there("memfd:ring, inode 6") && is_there("SYSV00000000, shmid 7"), "{line}\n{out}");
                assert!(!is_there("inode 8"), "{line}\n{out}");
            }
        }
    }
}
