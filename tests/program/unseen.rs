//! What does not show is said, and never counted as nothing; and hints for what a number or name was meant for.

use crate::run::Home;

#[test]
fn writes_in_place_are_unknown_without_contents() {
    let home = Home::new();
    let lines = ["snapshot bare in demo_buffer", "diff bare", "print changed(bare, now)"];
    let lines = lines.iter().flat_map(|line| ["-ex", line]);
    let run = home.run(&["demo", "-batch"].into_iter().chain(lines).collect::<Vec<_>>());
    assert!(run.out.contains("no change (writes in place cannot be seen)"), "{run:?}");
    assert!(run.out.contains("show only after `snapshot NAME with content`"), "{run:?}");
    assert!(run.err.contains("changed() is unknown"), "{run:?}");
    // With their contents, that nothing has changed is known.
    let lines = ["snapshot whole in demo_buffer with content", "diff whole", "print written(whole, now)"];
    let lines = lines.iter().flat_map(|line| ["-ex", line]);
    let run = home.run(&["demo", "-batch"].into_iter().chain(lines).collect::<Vec<_>>());
    assert!(run.out.contains(": n") && !run.out.contains("writes in place") && run.out.contains("= 0"), "{run:?}");
}

#[test]
fn a_number_that_is_no_address_is_a_frame_only_if_there_is_this_one() {
    let home = Home::new();
    for command in ["who", "flags"] {
        // Below the first address that a process can map, and far above the last frame of any machine.
        let hint =
            format!("hint: for a page frame `{command} pfn:0x1000`, for a physical address `{command} phys:0x1000`\n");
        for (number, hint) in [("0x1000", Some(hint)), ("0x7f0000000000", None)] {
            let run = home.run(&["demo", "-batch", "-ex", &format!("{command} {number}")]);
            match hint {
                Some(hint) => assert!(run.err.contains(&hint), "{run:?}"),
                None => assert!(run.err.contains("unmapped") && !run.err.contains("hint:"), "{run:?}"),
            }
        }
    }
}
