//! Captures of machines other than this one.

use crate::capabilities::USER;
use crate::executable;
use crate::made::{BASE, FRAME, Machine, Made, PID, packed};
use crate::run::{Home, PMDB, Run};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
fn what_was_refused_is_to_be_captured_again() {
    let mut made = MACHINES[1].capture();
    let iomem = packed(b"00000000-00000000 : System RAM\n");
    let (at, length) = (made.add("machine/iomem.gz", "0", &iomem), iomem.len());
    made.index["machine"]["texts"] = json!({ "text iomem": [[at, length, 31]] });
    let refusal = json!({ "not-permitted": ["cannot open it", "run pmdb with sudo"] });
    made.index["counts"] = json!({ "failure": refusal });
    let (_, out, err) = asked(&made, "flags pfn:0x5000");
    assert!(out.contains("(when capturing, run pmdb with CAP_SYS_ADMIN)"), "{out}{err}");
    assert!(out.contains("cannot open it (when capturing, run pmdb with sudo)"), "{out}{err}");
    // Whose rights they are comes first.
    let rights = json!({ "findings": [], "user": 65534, "rights": [], "in_first_user_namespace": true });
    made.index["machine"]["rights"] = json!({ "rights": rights });
    let (_, out, err) = asked(&made, "info capabilities");
    let said = out + &err;
    let (whose, rights) = said.split_once("pmdb      user 65534, without capabilities").expect("the user");
    assert!(whose.contains("of the pmdb that captured"), "{whose}{rights}");
}

#[test]
fn a_capture_of_a_part_is_compared_where_it_has_pages() {
    let (home, machine) = (Home::new(), MACHINES[1]);
    home.file("whole", machine.capture().whole());
    let mut made = machine.capture();
    let first = BASE / machine.page;
    let process = &mut made.index["processes"][0];
    process["parts"] = json!([[BASE, BASE + 4 * machine.page]]);
    process["left_out"] = json!([[first + 4, first + 16]]);
    made.index["times"] = json!([1_600_000_000, 1_600_000_001]);
    home.file("part", made.whole());
    let only = "0x10000000..0x10040000 only";
    let on = |file: &str, command: &str| home.run(&["-nx", "-c", file, "-batch", "-ex", command]);
    for (file, command) in [("whole", "diff from part"), ("part", "diff from whole")] {
        let run = on(file, command);
        let said = run.out.clone() + &run.err;
        assert_eq!(run.status, Some(0), "{command}: {said}");
        assert!(said.contains("nothing changed") && said.contains("only the part that both"), "{command}: {said}");
        let is_backwards = said.contains("`whole` is the later one: changes are shown backwards");
        assert_eq!(is_backwards, file == "part", "{command}: {said}");
    }
    let inside = on("whole", "diff from part in 0x10000000, +1p");
    assert!(inside.is_fine().out.contains("nothing changed"), "{inside:?}");
    for command in ["diff from part in 0x10080000, +1p", "account from part"] {
        on("whole", command).failed(1, only);
    }
    on("part", "walk all").failed(1, only);
    let opened = home.run(&["-nx", "-c", "part"]);
    assert!((opened.out.clone() + &opened.err).contains(&format!("it has {only}")), "{opened:?}");
}

#[test]
fn a_file_that_is_no_capture_is_named() {
    let home = Home::new();
    let whole = MACHINES[1].capture().whole();
    home.file("short", &whole[..whole.len() - 1]);
    home.file("start", &whole[..600]);
    home.file("packed", packed(&whole));
    for (file, says) in [
        ("short", "its last bytes are missing"),
        ("start", "its last bytes are missing (0 members are whole"),
        ("packed", "use `gunzip` on it first"),
        ("-", "a capture is a regular file"),
    ] {
        home.run(&["-nx", "-c", file, "-batch"]).failed(1, says);
    }
}

/// As systemd-coredump keeps core files.
#[test]
fn a_compressed_file_is_named_with_what_unpacks_it() {
    let home = Home::new();
    home.file("core", MACHINES[1].capture().whole());
    let (mut tools, mut missing) = (0, Vec::new());
    for (tool, unpack) in [
        ("gzip", "gunzip"),
        ("zstd", "zstd -d"),
        ("lz4", "lz4 -d"),
        ("xz", "unxz"),
        ("bzip2", "bunzip2"),
        ("lzip", "lzip -d"),
    ] {
        let file = std::fs::File::open(home.path("core")).expect("the file");
        let Ok(packed) = Command::new(tool).arg("-c").stdin(file).output() else {
            missing.push(tool);
            continue;
        };
        tools += 1;
        home.file("packed", packed.stdout);
        let says = format!("this file is compressed: use `{unpack}` on it first");
        home.run(&["-nx", "-c", "packed", "-batch"]).failed(1, &says);
    }
    assert!(tools > 0, "none of {missing:?} is installed");
}

#[test]
fn a_capture_without_rights_says_so() {
    let home = Home::new();
    let words = ["-nx", "demo", "-q", "-batch", "-ex", "capture one", "-ex", "capture none 0x1000..0x2000"];
    let output = if rustix::process::geteuid().is_root() {
        let program = home.path("pmdb");
        executable::copy(PMDB, &program);
        std::fs::set_permissions(home.path(""), PermissionsExt::from_mode(0o777)).expect("the mode");
        Command::new(program).uid(USER).gid(USER).args(words).current_dir(home.path("")).output()
    } else {
        home.command(&words).output()
    };
    let run = Run::from(output.expect("it runs"));
    assert!(run.out.contains(" pages, 0 frames"), "{run:?}");
    assert!((run.out.clone() + &run.err).contains("nothing is mapped in this range"), "{run:?}");
    // The rights of the reader do not matter.
    let run = home.run(&["-nx", "-c", "one", "-batch", "-ex", "flags pfn:1"]);
    assert!(run.out.contains("(when capturing, run pmdb with CAP_SYS_ADMIN)"), "{run:?}");
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
fn fields_that_are_not_known_are_listed() {
    let mut made = MACHINES[1].capture();
    made.index["warmth"] = json!({ "deep": [1, { "deeper": 2 }] });
    made.index["processes"][0]["answers"]["smells"] = json!("strange");
    made.index["flags"]["taste"] = json!(7);
    let (status, out, err) = asked(&made, "print count(all where present)");
    assert_eq!(status, Some(0), "{err}");
    assert!(out.trim_end().ends_with("= 5"), "{out}");
    let notes = out + &err;
    assert!(notes.contains("skipped 3 fields of a later version of the format: smells, taste, warmth"), "{notes}");
}

/// `tar` fills a file with empty records up to 10 KiB, and so may copies.
#[test]
fn zeros_behind_a_capture_are_no_part_of_it() {
    let whole = MACHINES[1].capture().whole();
    for more in [0, 1, 511, 512, 10_240, 60_000] {
        let home = Home::new();
        home.file("made.capture", [&whole[..], &vec![0; more]].concat());
        let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", "print count(all where present)"]);
        assert!(run.status == Some(0) && run.out.trim_end().ends_with("= 5"), "{more}: {run:?}");
    }
}

/// A wrong byte in the name of a member makes no member of a later version. One in its size or in the mark of the
/// format hides the members after it.
#[test]
fn a_member_with_a_damaged_header_is_called_damaged() {
    let made = MACHINES[1].capture();
    for (byte, member) in [(0, "x7/maps"), (125, "77/maps"), (258, "77/maps")] {
        let mut whole = made.whole();
        let name = b"77/maps";
        let at = whole.windows(name.len()).position(|bytes| bytes == name).expect("a member of the process");
        whole[at + byte] = b'x';
        let home = Home::new();
        home.file("made.capture", whole);
        let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", "print count(all where present)"]);
        assert_eq!(run.status, Some(0), "{byte}: {run:?}");
        let notes = run.out + &run.err;
        assert!(notes.contains(&format!("this capture is damaged, in the headers of 1 member: {member}")), "{notes}");
        assert!(!notes.contains("later version"), "{notes}");
    }
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

/// The error for a capture with this index.
fn refusal(change: impl FnOnce(&mut Made)) -> String {
    let mut made = MACHINES[2].capture();
    change(&mut made);
    let home = Home::new();
    home.file("made.capture", made.whole());
    // A sweep of all content, which would not end.
    let run = home.run(&["-nx", "-c", "made.capture", "-batch", "-ex", "count(all where cached)"]);
    assert_eq!((run.status, run.out.as_str()), (Some(1), ""), "{run:?}");
    run.err
}

#[test]
fn an_index_that_leads_nowhere_is_refused_when_it_is_opened() {
    let page = MACHINES[2].page;
    let backing = |runs: serde_json::Value| {
        refusal(|made| {
            let key = format!("backing 08:01 4d 0-{:x}", 16 * page);
            made.index["processes"][0]["answers"]["runs"] = json!({ key: runs });
        })
    };
    let run = |from: u64, to: u64| json!([from, to, "cached"]);
    for runs in [
        // Not at a page boundary.
        json!([run(0, page - 1), run(page, 2 * page)]),
        json!([run(1, page)]),
        // Without an end, past the region, out of order, and with an overlap.
        json!([run(page, page)]),
        json!([run(0, 17 * page)]),
        json!([run(page, 2 * page), run(0, page)]),
        json!([run(0, 2 * page), run(page, 3 * page)]),
    ] {
        let error = backing(runs.clone());
        assert!(error.contains("this capture is damaged: its index cannot be read"), "{runs}: {error}");
    }
    let process = |name: &str, value: serde_json::Value| refusal(|made| made.index["processes"][0][name] = value);
    for (name, value) in [
        ("parts", json!([[BASE + page, BASE]])),
        ("changed", json!([[u64::MAX, 2]])),
        ("left_out", json!([[5, 5]])),
        ("looks", json!({ (BASE + page).to_string(): [0, BASE] })),
    ] {
        let error = process(name, value);
        assert!(error.contains("this capture is damaged: its index cannot be read"), "{name}: {error}");
    }
    for times in [[1_u64 << 63, u64::MAX], [2, 1], [0, 253_402_300_800]] {
        let error = refusal(|made| made.index["times"] = json!(times));
        assert!(error.contains("this capture is damaged: its time cannot be read"), "{error}");
    }
}

/// A text of one block, many times: each would be expanded.
#[test]
fn a_text_has_each_block_once() {
    let error = refusal(|made| {
        let machine = Machine { is_big: false, page: 4096, pointer: 8 };
        *made = machine.capture();
        let bytes = packed(&[b' '; 64 << 10]);
        let at = made.add("77/maps2.gz", "0", &bytes);
        made.index["processes"][0]["maps"] = vec![json!([at, bytes.len(), 64 << 10]); 1000].into();
    });
    assert!(error.contains("this capture is damaged: its index cannot be read"), "{error}");
}

/// The version decides before all else, and is a whole number.
#[test]
fn other_formats_are_named() {
    let home = Home::new();
    let whole = MACHINES[0].capture().whole();
    let mark = b"pmdb capture 2\n";
    let at = whole.windows(mark.len()).position(|bytes| bytes == mark).expect("the head");
    for (version, says) in [
        ("3", "this capture has format 3; this pmdb reads 2"),
        ("10", "this capture has format 10; this pmdb reads 2"),
        ("21", "this capture has format 21; this pmdb reads 2"),
        ("1", "this capture has format 1, which pmdb reads up to its commit 5ec26212"),
    ] {
        // The rest is as it is, or something else.
        for rest in [&whole[at + mark.len()..], b"nothing that this version knows"] {
            let file = [&whole[..at], format!("pmdb capture {version}\n").as_bytes(), rest].concat();
            home.file("other.capture", file);
            home.run(&["-nx", "-c", "other.capture", "-batch", "-ex", "regions"]).failed(1, says);
        }
    }
    home.file("cut.capture", [&whole[..2000].to_vec()[..], b"nothing that this version knows"].concat());
    home.run(&["-nx", "-c", "cut.capture", "-batch", "-ex", "regions"]).failed(1, "this capture is cut short");
}

/// A capture of the demonstration, made once without names by a user who may not see frames. Whatever reads format 2
/// reads it, and answers what is written beside it.
#[test]
fn the_committed_capture_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let file = folder.join("demonstration.capture");
    assert!(std::fs::metadata(&file).expect("the capture").len() <= 64_000);
    let answers = std::fs::read_to_string(folder.join("demonstration.answers")).expect("the answers");
    let mut count = 0;
    for answer in answers.split("(pmdb) ").skip(1) {
        let (line, expected) = answer.split_once('\n').expect("a line");
        let run = Home::new().run(&["-nx", "-c", file.to_str().expect("a path"), "-batch", "-ex", line]);
        assert_eq!(run.is_fine().out, expected, "{line}");
        count += 1;
    }
    assert!(count >= 4);
}
