//! Captures of machines other than this one.

use crate::made::{BASE, FRAME, Machine, Made, PID, packed};
use crate::run::Home;
use serde_json::json;

/// Runs one command on a capture of this machine.
fn answer(machine: Machine, command: &str) -> String {
    let home = Home::new();
    home.file("made.capture", machine.capture().whole());
    let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", command]);
    assert_eq!(run.status, Some(0), "{command}: {}", run.err);
    run.out
}

const MACHINES: [Machine; 4] = [
    Machine { is_big: true, page: 4096, pointer: 8 },
    Machine { is_big: false, page: 64 << 10, pointer: 8 },
    Machine { is_big: false, page: 16 << 10, pointer: 8 },
    Machine { is_big: true, page: 4096, pointer: 4 },
];

#[test]
fn words_of_other_machines_are_read_as_theirs() {
    for machine in MACHINES {
        let page = machine.page;
        // Page 2, and an offset.
        let said = answer(machine, &format!("print phys({:#x})", BASE + 2 * page + 0x123));
        assert!(said.contains(&format!("{:#x}", (FRAME + 2) * page + 0x123)), "{said}");
        let said = answer(machine, &format!("flags {:#x}", BASE + 5 * page));
        assert!(said.contains("anon") && said.contains("lru"), "{said}");
        let said = answer(machine, "print count(all where present)");
        assert!(said.trim_end().ends_with("= 5"), "{said}");
        let said = answer(machine, &format!("print count({BASE:#x}, +16p where mapcount == 1)"));
        assert!(said.trim_end().ends_with("= 5"), "{said}");
    }
}

#[test]
fn memory_of_other_machines_is_read_in_their_order_and_width() {
    for machine in MACHINES {
        let said =
            answer(machine, &format!("print u32({:#x}) == 0x11223344", BASE + if is_high(machine) { 4 } else { 0 }));
        assert!(said.trim_end().ends_with("= 1"), "{said}");
        let said = answer(machine, &format!("print *{:#x} == {BASE:#x}", BASE + machine.pointer as u64));
        assert!(said.trim_end().ends_with("= 1"), "{said}");
    }
}

/// Whether the four low bytes of a pointer come last.
fn is_high(machine: Machine) -> bool {
    machine.is_big && machine.pointer == 8
}

#[test]
fn records_of_a_capture_say_when_it_was_taken() {
    let home = Home::new();
    home.file("made.capture", MACHINES[0].capture().whole());
    let run = home.run(&["-nx", "--json", "-c", "made.capture", "translate", "0x10000000"]);
    let record: serde_json::Value = serde_json::from_str(run.out.trim()).expect("one record");
    assert_eq!((&record["capture"], &record["pid"]), (&1_700_000_000.into(), &PID.into()), "{record}");
}

#[test]
fn commands_over_time_are_refused() {
    let home = Home::new();
    home.file("made.capture", MACHINES[0].capture().whole());
    for command in ["watch all for 1s", "watch all until present", "compare 1 every 1s"] {
        let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", command]);
        assert_eq!(run.status, Some(1), "{command}");
        assert!(run.err.contains("nothing changes in a capture"), "{command}: {}", run.err);
    }
    let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", "soft-dirty clear --yes"]);
    assert_ne!(run.status, Some(0));
}

/// What one command prints on a made capture, and its errors.
fn asked(made: &Made, command: &str) -> (Option<i32>, String, String) {
    let home = Home::new();
    home.file("made.capture", made.whole());
    let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", command]);
    (run.status, run.out, run.err)
}

#[test]
fn members_that_are_not_known_are_listed_and_not_opened() {
    let mut made = MACHINES[1].capture();
    // Regular files, a hard link, a symbolic link, a device and a sparse file.
    let members = [
        ("heat/77.gz", "0"),
        ("../../climbs", "0"),
        ("/etc/passwd", "0"),
        ("hard", "1"),
        ("link", "2"),
        ("device", "3"),
        ("sparse", "S"),
    ];
    members.iter().for_each(|(name, kind)| _ = made.add(name, kind, b"7"));
    let (status, out, err) = asked(&made, "print count(all where present)");
    assert_eq!(status, Some(0), "{err}");
    assert!(out.trim_end().ends_with("= 5"), "{out}");
    let notes = out + &err;
    assert!(notes.contains("7 members of a later version of the format: heat/77.gz, ../../climbs"), "{notes}");
    assert!(notes.contains("and 2 more"), "{notes}");
}

#[test]
fn bombs_are_damaged() {
    let bomb = packed(&vec![0; 256 << 20]);
    let mut made = MACHINES[1].capture();
    let at = made.add("77/bomb.gz", "0", &bomb);
    // More than the block says, and more than a block may have.
    for length in [65536, 256 << 20, 1 << 31] {
        made.index["processes"][0]["maps"] = json!([[at, bomb.len(), length]]);
        let (status, _, err) = asked(&made, "regions");
        assert_eq!(status, Some(1), "{err}");
        assert!(err.contains("this capture is damaged"), "{err}");
    }
    // An index that says that it is short.
    let (status, _, err) = {
        let mut file = MACHINES[1].capture().whole();
        let end = file.len() - 1024;
        let text = String::from_utf8_lossy(&file[end - 512..end]).trim_end_matches('\0').to_owned();
        let size = text.split_whitespace().last().expect("a size");
        let wrong = text.replace(&format!(" {size}\n"), " 5\n");
        file[end - 512..end].fill(0);
        file[end - 512..end - 512 + wrong.len()].copy_from_slice(wrong.as_bytes());
        let home = Home::new();
        home.file("made.capture", file);
        let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", "regions"]);
        (run.status, run.out, run.err)
    };
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("its index"), "{err}");
}
