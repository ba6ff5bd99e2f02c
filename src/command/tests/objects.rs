//! `account` on made-up descriptors.

use super::{World, all, records};
use crate::command::account::objects::AccountObject;
use crate::command::account::records::AccountSummary;
use crate::process::fake::region;
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
    world.descriptors = vec![
        ("socket:[1]", String::new()),
        (node, client(31, 40)),
        (node, client(31, 40)),
        (node, client(32, 30)),
        (node, "pos:\t0\n".to_owned()),
    ];
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
