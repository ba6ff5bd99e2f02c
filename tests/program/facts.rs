//! Answers that were wrong once, as somebody reads them: on the memory of the demonstration process.

use crate::executable;
use crate::run::{Home, PMDB, Run};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn demo(line: &str) -> Run {
    Home::new().run(&["demo", "-q", "-batch", "-ex", line])
}

#[test]
fn an_address_or_a_range_is_never_compared_with_a_count() {
    let refused = |line, says| _ = demo(line).failed(1, says);
    refused("assert region($anonymous) >= 1G", "`size(RANGE)` is its length in bytes");
    refused("assert demo_counter > 1000000", "the address of `demo_counter` is compared with a number");
    refused("assert demo_buffer", "the address of `demo_buffer` is always true");
    refused("regions where size > region($zero)", "cannot compare a range with a number");
    demo("assert (long)demo_counter >= 0 and &demo_counter > 0x1000 and size(demo_buffer) > 1").is_fine();
}

#[test]
fn a_range_that_starts_somewhere_is_not_equal_to_what_starts_there() {
    let refused = |line, says| _ = demo(line).failed(1, says);
    refused("assert region(demo_buffer) == demo_buffer", "cannot compare a range with an address");
    refused("assert region($anonymous) == start($anonymous)", "cannot compare a range with an address");
    refused("assert region(demo_buffer) == [stack]", "the assertion fails: region(demo_buffer) = ");
    refused("print region(demo_buffer) == demo_buffer..demo_buffer+64K", "cannot start or end with a result of `==`");
    // The longest run needs frame numbers.
    if demo("print longest($anonymous)").status == Some(0) {
        refused("assert longest(demo_buffer) == demo_buffer", "cannot compare a range with an address");
        refused("assert longest($anonymous) == $anonymous", "the assertion fails: longest($anonymous) = ");
    }
    demo("assert region(demo_buffer) == region(&demo_buffer) and [heap] != [stack]").is_fine();
}

#[test]
fn without_rights_the_owner_has_the_kernel_s_own_sums_of_a_region() {
    let home = Home::new();
    let arguments = ["-nx", "-batch", "--json", "demo", "-ex", "region [stack]", "-ex", "region [stack] full"];
    let mut command = if rustix::process::geteuid().is_root() {
        let program = home.path("pmdb");
        executable::copy(PMDB, &program);
        std::fs::set_permissions(home.path(""), PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(program);
        command.uid(65534).gid(65534).args(arguments).stdin(Stdio::null());
        command
    } else {
        home.command(&arguments)
    };
    let objects = Run::from(command.output().unwrap()).objects();
    let [brief, full] = [&objects[0], &objects[1]];
    let kernel = |field: &str| full["smaps"][field].as_u64().unwrap_or_else(|| panic!("{field}: {full}"));
    assert_eq!(brief["pss"], kernel("Pss"), "{brief}");
    assert_eq!(brief["private"], kernel("Private_Clean") + kernel("Private_Dirty"), "{brief}");
    assert_eq!(brief["shared"], kernel("Shared_Clean") + kernel("Shared_Dirty"), "{brief}");
    assert!(kernel("Private_Dirty") > 0, "{full}");
}

#[test]
fn the_first_read_of_shared_memory_adds_a_page_to_it() {
    for page in ["$shared + 9p", "$shared + 10p"] {
        let run = demo(&format!("explain {page}"));
        let of = |access| run.out.lines().find(|line| line.starts_with(access)).unwrap_or_else(|| panic!("{run:?}"));
        for access in ["read", "write"] {
            assert!(of(access).contains("filled with zeros"), "{run:?}");
            assert!(of(access).contains("is added to the shared memory"), "{run:?}");
        }
    }
    let run = demo("explain $untouched");
    assert!(run.is_fine().out.contains("the shared zero page is mapped"), "{run:?}");
    assert!(run.out.contains("a new page, filled with zeros, is mapped"), "{run:?}");
}

#[test]
fn shared_memory_that_has_no_name_needs_no_file_to_be_deleted() {
    let run = demo("account full");
    let shared: Vec<&str> = run.is_fine().out.lines().filter(|line| line.contains("shared memory,")).collect();
    assert!(
        !shared.is_empty()
            && shared.iter().all(|line| line.contains("munmap everywhere, and delete the file if it has one")),
        "{run:?}"
    );
}

#[test]
fn pages_of_zeros_are_one_row_and_no_run() {
    let run = demo("translate $zero");
    assert_eq!(
        run.is_fine().out.lines().filter(|line| !line.is_empty()).count(),
        3,
        "the sum, a heading and a row: {run:?}"
    );
}

#[test]
fn what_is_no_memory_leads_to_the_line_that_was_meant() {
    for (line, hint) in [
        ("explain ENOMEM", "`help enomem` leads to `info process` and `account frames`"),
        ("account enomem", "`help enomem` leads to"),
        ("help hep", "did you mean `heap` or `help`?"),
        ("help foo", "no help on `foo`"),
        ("help alk", "did you mean `walk`?"),
        ("source oom", "`source :oom`"),
        ("frame 0x12345000", "`flags phys:ADDRESS`"),
        ("account children by pid", "`account children`"),
        ("account by region, node", "`walk all by region, state` has two"),
        ("account childs by mapping", "did you mean `account children by mapping`?"),
        ("account frmaes", "did you mean `account frames`?"),
        ("heap childs", "did you mean `children`?"),
        ("huge region demo_buffer with content", "did you mean `huge region(demo_buffer) with content`?"),
    ] {
        demo(line).failed(1, hint);
    }
    demo("compare childs").failed(3, "did you mean `compare children`?");
    demo("account of childs").failed(3, "did you mean `children`?");
    let home = Home::new();
    home.file("old.capture", b"a capture");
    home.run(&["-batch", "-ex", "compare old.capture", "demo"]).failed(3, "`diff from old.capture`");
}

#[test]
fn the_answer_about_a_range_names_it() {
    assert!(demo("account heap").is_fine().out.starts_with("heap of pmdb-demo ("));
    assert!(demo("huge demo_buffer, +16K").is_fine().out.starts_with("`demo_buffer, +16K` of pmdb-demo ("));
    assert!(demo("account all").is_fine().out.starts_with("pmdb-demo ("));
}

#[test]
fn the_name_of_a_region_is_written_in_single_quotes() {
    demo("walk \"/memfd:demo_shared\" by state").failed(1, "write `'/memfd:demo_shared'`");
    demo("region memfd:demo_shared").failed(1, "`'memfd:demo_shared'`");
    for line in ["walk '/memfd:demo_shared' by state", "region 'memfd:demo_shared'"] {
        demo(line).is_fine();
    }
}

#[test]
fn mappings_of_the_page_of_zeros_are_not_counted() {
    let run = demo("translate first($zero)");
    assert!(!run.is_fine().out.contains("mapped    0 times"), "{run:?}");
    let run = Home::new().run(&["-batch", "-ex", "decode 0x868 as entry"]);
    assert!(run.is_fine().out.contains("0x868: without bit 62 or 63"), "{run:?}");
}

#[test]
fn a_beginner_finds_the_tour_and_the_words_of_the_help() {
    let home = Home::new();
    home.run(&["-batch", "-ex", "help demo"]).failed(1, "`pmdb demo` starts the demonstration process");
    let run = home.run(&["-batch", "-ex", "help tour"]);
    assert!(run.is_fine().out.contains("source FILE"), "{run:?}");
    let needed = "the tour needs the demonstration: in a shell `pmdb demo`, then `tour`";
    for asked in [&["-batch", "-x", ":tour"][..], &["-batch", "-ex", "tour"], &["self", "-batch", "-ex", "tour"]] {
        let run = home.run(asked);
        assert!(!run.failed(1, needed).out.contains("demonstration:"), "{run:?}");
    }
    demo("print $_demo").is_fine();
    demo("explain present").failed(1, "`walk all where present` lists them, `print count(all where present)` counts");
    demo("print count(all where present)").is_fine();
    for flag in ["dirty", "lru"] {
        let line = format!("flags {flag}");
        demo(&line).failed(1, &format!("`flags ADDRESS` shows the flags of a page; `help {flag}` explains this one"));
        demo(&format!("help {flag}")).is_fine();
    }
    for words in ["fault", "page fault", "minor fault", "major fault"] {
        let run = home.run(&["-batch", "-ex", &format!("help {words}")]);
        assert!(run.is_fine().out.contains("I/O"), "{words}: {run:?}");
    }
    let found = home.run(&["-batch", "-ex", "apropos ping"]);
    assert!(!found.is_fine().out.contains("map"), "not mapping: {found:?}");
    for words in ["endian", "big-endian", "byte order"] {
        let found = home.run(&["-batch", "-ex", &format!("apropos {words}")]);
        assert!(found.is_fine().out.contains("captures "), "{words}: {found:?}");
    }
}
