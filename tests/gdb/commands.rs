//! The commands of pmdb in gdb, and what their arguments mean.

use super::session::{PMDB, compiled, plugin};
use crate::skips::skip;
use crate::standing::is_root;
use std::process::Command;

/// Stops in the last of eight turns that touch a page each: seven pages are present.
const AT_WORK: &[&str] = &["break turn if number == 7", "run"];

#[test]
fn expressions_mean_what_they_mean_to_x() {
    let Some(program) = compiled("expressions_mean_what_they_mean_to_x", "pages.c") else {
        return;
    };
    program.check(
        AT_WORK,
        &[
            // A pointer is an address; an array is its bytes.
            ("pmdb walk pool by state", "1 page, 4 KiB: 1 present"),
            ("pmdb walk pool[2] by state", "1 page, 4 KiB: 1 present"),
            ("pmdb walk *pool@16 by state", "16 pages, 64 KiB: 7 present, 9 untouched"),
            ("pmdb walk (*pool@16) by state", "16 pages, 64 KiB: 7 present, 9 untouched"),
            ("pmdb walk pool, +16*sizeof(*pool) by state", "7 present, 9 untouched"),
            ("pmdb walk pool[6]..pool[8] by state", "1 present, 1 untouched"),
            ("pmdb walk bytes + 6*page, +2*page by state", "1 present, 1 untouched"),
            // A structure and what is in it.
            ("pmdb walk object by state", "4 pages"),
            ("pmdb walk object.inner.bytes by state", "4 pages"),
            ("pmdb translate object.first", "state     unmapped"),
            ("pmdb translate &object.first", "<object> in program"),
            ("pmdb explain $sp", "[stack]"),
            ("pmdb translate turn", "<turn> in program"),
            ("pmdb region bytes full", "VmFlags"),
            ("pmdb telescope $sp 2", "+0x008"),
            ("pmdb x/2xb pool[3]", "0x01    0x00"),
            ("pmdb find bytes, +8*page, 0x01", "7 matches"),
            ("pmdb -- print {page} + 1", "4097"),
            ("pmdb -- print count({pool}..{bytes + 16*page} where present) + 0x1000", "(0x1007)"),
            ("pmdb -- print count({*pool@16} where present) + 0x1000", "(0x1007)"),
            ("pmdb -- print count({pool, +2*page}) + 0x1000", "(0x1002)"),
            ("pmdb -- walk all where state == present by state limit {turns}", "present"),
            // Clauses begin outside of brackets and after an operand.
            ("pmdb walk *pool@16 where present limit 2", " present"),
            ("pmdb snapshot before in *pool@16", "before"),
            ("pmdb diff before in *pool@16", "from before to now"),
            // Braces mean an expression of gdb everywhere, also where one stands anyway.
            ("pmdb diff before in {pool}, +8p", "from before to now"),
            ("pmdb walk {pool}, +16p by state", "16 pages, 64 KiB: 7 present, 9 untouched"),
            ("pmdb walk {pool[6]}..{pool[8]} by state", "1 present, 1 untouched"),
            ("pmdb explain {$sp}", "[stack]"),
            ("pmdb w *pool@16 by state", "7 present"),
            // Where a command takes more than a range.
            ("pmdb account *pool@16", "28 KiB  100 %  anonymous, exclusive"),
            ("pmdb account pool[5]..pool[8] by region", "   8 KiB  100 %    8 KiB"),
            ("pmdb account (*pool@16) with content", "28 KiB  100 %  anonymous, exclusive"),
            ("pmdb account by mapping top 1", "program"),
            ("pmdb account children", "freed at exit"),
            ("pmdb account \"program\"", "freed at exit"),
            ("pmdb account pool", "one address is not a range"),
            ("pmdb walk pool by state", "note: one address is one page: for its whole region, write `walk region(0x"),
            ("pmdb walk *pool@4M by state", "for a number of bytes write &*pool, +4M"),
            (
                "pmdb walk pool@2 by state",
                "note: these are 2 pointers; for what the first one points to, write *(pool)@2\n",
            ),
            ("pmdb explain huge *pool@16", "has small pages already"),
            ("pmdb explain huge in *pool@16", "has small pages already"),
            ("pmdb account of no-such-program", "no process is called `no-such-program`"),
            ("pmdb explain huge pool[7] with content", "has small pages already"),
            ("pmdb explain huge with content", " in small pages"),
        ],
    );
}

#[test]
fn summary_and_decode_evaluate_expressions_too() {
    let test = "summary_and_decode_evaluate_expressions_too";
    let Some(program) = compiled(test, "pages.c") else {
        return;
    };
    program.check(
        AT_WORK,
        &[
            // A value, and what it is read as.
            ("pmdb decode turns + 0x860 as flags", "flags     0x0000000000000867"),
            ("pmdb decode object.first", "entry     0x0000000000000000"),
            ("pmdb decode (char)-1", "entry     0x00000000000000ff"),
            ("pmdb decode 0x8180000000123456 as entry", "frame     0x123456"),
            ("pmdb decode {turns} + 1 as flags", "flags     0x0000000000000008"),
            ("pmdb decode object", "a value of type nested is not a number"),
            ("pmdb decode", "expected an address, a number or a name"),
        ],
    );
    if !is_root() {
        return skip(test, "flags are hidden from this user");
    }
    program.check(
        AT_WORK,
        &[
            ("pmdb summary bytes, +16*page", "16 pages, 64 KiB: 7 present, 9 untouched"),
            ("pmdb summary *pool@16 top 1", "16 pages, 64 KiB: 7 present, 9 untouched"),
            ("pmdb summary object.inner.bytes", "4 pages, 16 KiB"),
            ("pmdb summary pool", "for its whole region, write `summary region(0x"),
            ("pmdb summary region(pool)", "pages, "),
            ("pmdb summary top 1", "more rows"),
            ("pmdb summary frames limit 1", "frames, "),
            ("pmdb summary pfn:0x1000..pfn:{0x1000 + 16}", "16 frames, 64 KiB"),
            ("pmdb summary phys:0x1000000..phys:0x1010000", "16 frames, 64 KiB"),
        ],
    );
}

#[test]
fn each_part_is_evaluated_once_and_its_contents_are_not_fetched() {
    let Some(program) = compiled("each_part_is_evaluated_once", "pages.c") else {
        return;
    };
    let set = ["set $turn = 0", "set max-value-size 128", "set print elements 1"];
    program.check(
        &[AT_WORK, &set].concat(),
        &[
            ("pmdb walk pool[$turn++]..pool[15+$turn++] by state", "7 present, 9 untouched"),
            ("print $turn", "= 2"),
            ("pmdb walk pool[$turn++], +page*($turn++ + 11) by state", "14 pages"),
            ("print $turn", "= 4"),
            ("pmdb walk pool[$turn++]@4 by state", "3 present, 1 untouched"),
            ("pmdb walk pool[$turn++] by state", "1 present"),
            ("print $turn", "= 6"),
            ("pmdb walk object by state", "4 pages"),
            ("pmdb -- print {$turn++} + 0x1000", "(0x1006)"),
            ("print $turn", "= 7"),
        ],
    );
}

#[test]
fn errors_are_those_of_gdb_in_one_line() {
    let Some(program) = compiled("errors_are_those_of_gdb", "pages.c") else {
        return;
    };
    let table = [
        ("pmdb walk nowhere", "No symbol \"nowhere\" in current context."),
        ("pmdb walk pool frob", "A syntax error in expression"),
        ("pmdb walk", "expected an address or a range"),
        ("pmdb x/2i tick", "gdb's own command does: x/2i tick"),
        ("pmdb walk pool where frob", "unexpected `frob`"),
        ("pmdb walk 1.5", "a value of type double is not an address"),
        ("pmdb walk \"text\"", "is not in memory"),
        ("pmdb walk pool | cat", "gdb's own pipe"),
        ("pmdb walk pool where present | cat", "gdb's own pipe"),
        ("pmdb walk pool > /tmp/file", "gdb's own pipe"),
        ("pmdb -- !ls", "gdb's own pipe"),
        ("pmdb -- attach 1", "pmdb in gdb has no attach"),
        ("pmdb -- target capture file", "pmdb in gdb has no target"),
        ("pmdb -- print {1", "a { has no }"),
        ("pmdb walk pool[1]..pool[0]", "its end must be above its start"),
        ("pmdb walk pool, 4096", "a length follows a comma as +LENGTH"),
        ("pmdb frobnicate", "pmdb has no command frobnicate"),
        ("pmdb print *pool", "`print` is not available as `pmdb print` in gdb: write `pmdb -- print ...`"),
        ("pmdb ps", "`ps` is not available as `pmdb ps` in gdb: write `pmdb -- ps ...`"),
        ("pmdb attach 1", "pmdb in gdb has no attach"),
        ("pmdb wlak pool", "did you mean pmdb walk?"),
        ("pmdb", "help pmdb lists them"),
        ("set pmdb program pmdb", "absolute path"),
        ("pmdb who *pool@16", "pmdb who takes one address, not a range"),
        ("pmdb explain (pool[0]..pool[2])", "pmdb explain takes one address, not a range"),
        ("pmdb flags pool, +2*page", "pmdb flags takes one address, not a range"),
        ("pmdb region *pool@2 full", "pmdb region takes one address, not a range"),
    ];
    program.check(AT_WORK, &table);
    let lines: Vec<&str> = table.iter().map(|(line, _)| *line).collect();
    for answer in &program.answers(&[AT_WORK, &lines].concat())[AT_WORK.len()..] {
        assert_eq!(answer.trim().lines().count(), 1, "{answer}");
    }
    program.check(
        &[],
        &[
            ("pmdb walk pool", "the program is not being run"),
            ("pmdb -- regions", "the program is not being run"),
            ("print $_resident(pool, 1)", "the program is not being run"),
            // Some need no process.
            ("pmdb decode 0x8000000000001234", "frame     0x1234"),
            ("pmdb info capabilities", "pagemap_scan"),
            ("pmdb -- print 6 * 7", "42"),
            // Those of blocks are gdb's own.
            ("pmdb while 1", "blocks of gdb, such as while and define, can have lines of pmdb"),
            ("pmdb -- while 1", "blocks of gdb, such as while and define, can have lines of pmdb"),
        ],
    );
}

#[test]
fn objects_of_other_languages_lie_somewhere_too() {
    if let Some(program) = compiled("objects_of_c_plus_plus", "objects.cc") {
        program.check(
            &["break stop", "run"],
            &[
                ("pmdb walk reference by state", "9 pages, 36 KiB: 9 present"),
                ("pmdb translate &element", "+4096>"),
                ("pmdb walk reference.items, +8*4096 where present by state", "present"),
                ("pmdb walk 'ring'.items by state", "present"),
                ("pmdb explain this", "No symbol \"this\" in current context."),
                // An operator or a comma makes a variable of a name.
                ("pmdb explain huge + 4096", "<huge+4096>"),
                ("pmdb explain &huge[5]", "<huge+5>"),
                ("pmdb account children[0]@4096", "anonymous, exclusive"),
                ("pmdb summary frames - 4096", "1 page, 4 KiB: 1 present"),
                ("pmdb account children", "1 process uses "),
                // A path is no division: an error of pmdb, or its sums.
                ("pmdb account cgroup / top 1", "cgroup"),
                // `!` is of gdb.
                ("pmdb explain !frames", "in no region"),
                ("pmdb walk huge > /tmp/no-such-file", "pmdb in gdb has no >"),
                ("pmdb walk numbers by state", "note: numbers is a header of 24 bytes"),
            ],
        );
    }
    if let Some(program) = compiled("objects_of_rust", "slices.rs") {
        program.check(
            &["break slices::stop", "run"],
            &[
                ("pmdb walk slice.data_ptr, +length by state", "present"),
                ("pmdb walk slices::TABLE by state", "9 pages, 36 KiB: "),
                ("pmdb walk slices::TABLE[0]..slices::TABLE[4096] by state", "its end must be"),
                ("pmdb walk &slices::TABLE[0]..&slices::TABLE[4096] by state", "present"),
                ("pmdb translate &length", "[stack]"),
                ("pmdb walk slice by state", "for those, write *slice.data_ptr@slice.length"),
                ("pmdb walk *slice.data_ptr@slice.length by state", "present"),
                // The letters of `present`.
                ("print $_page_state(slice.data_ptr)", "[112, 114, 101, 115, 101, 110, 116]"),
                ("up", "slices::main"),
                ("pmdb walk vector by state", "note: vector is a header of 24 bytes"),
            ],
        );
    }
}

/// gdb calls functions in the process: that of a template, whose arguments are no file, and one that allocates.
#[test]
fn calls_in_the_process() {
    let Some(program) = compiled("calls_in_the_process", "objects.cc") else {
        return;
    };
    let called = program.answers(&["break stop", "run", "print skipped<char, 4096>(huge)"]);
    if called[2].contains("Couldn't write extended state status") {
        // Debian 12's gdb fails where the processor has more state than it knows.
        return skip("calls_in_the_process", "gdb cannot call a function here");
    }
    program.check(
        &["break stop", "run"],
        &[
            ("pmdb translate skipped<char, 4096>(huge)", "<huge+4096>"),
            ("pmdb walk *skipped<char, 4096>(huge)@4096 by state", "present"),
            ("printf \"%s\\n\", $_page_state(&huge[5])", "present"),
        ],
    );
}

#[test]
fn help_and_completion_are_those_of_pmdb() {
    let Some(program) = compiled("help_and_completion", "pages.c") else {
        return;
    };
    program.check(
        &[],
        &[
            ("help pmdb", "pmdb walk, pmdb w -- list the pages of a range"),
            ("help pmdb --", "Usage: pmdb -- COMMAND"),
            ("help pmdb walk", "walk [--how] RANGE [where FILTER]"),
            ("complete pmdb expl", "pmdb explain"),
            ("complete pmdb walk poo", "pmdb walk pool"),
            ("complete pmdb walk pool wh", "pmdb walk pool where"),
            ("complete pmdb walk pool where pres", "pmdb walk pool where present"),
            ("complete pmdb walk pool + obj", "pmdb walk pool + object"),
            ("complete pmdb -- sh", "pmdb -- show"),
            ("show pmdb program", PMDB),
            ("apropos copied on write", "pmdb "),
        ],
    );
}

#[test]
fn the_program_prints_the_plugin() {
    let output = Command::new(PMDB).args(["--generate", "gdb"]).output();
    let printed = String::from_utf8(output.expect("it runs").stdout).expect("text");
    assert_eq!(printed, plugin());
    let check = "import ast, sys; ast.parse(sys.argv[1], feature_version=(3, 7))";
    let checked = Command::new("python3").args(["-c", check, &printed]).status();
    assert!(checked.is_ok_and(|status| status.success()), "Python 3.7 reads it");
}
