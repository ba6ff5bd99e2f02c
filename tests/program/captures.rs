//! Captures of machines other than this one.

use crate::made::{BASE, FRAME, Machine, PID};
use crate::run::Home;

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
