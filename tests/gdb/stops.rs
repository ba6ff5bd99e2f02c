//! What changed between two stops.

use super::session::compiled;
use crate::skips::skip;
use crate::standing::is_root;

#[test]
fn first_touches_and_writes_show_at_the_next_stop() {
    let Some(program) = compiled("first_touches_and_writes", "pages.c") else {
        return;
    };
    let before = ["break turn if number == 3", "break done", "run"];
    program.check(
        &before,
        &[
            ("info pmdb track", "No range is tracked."),
            ("info pmdb", "info pmdb track -- List the ranges"),
            ("info pmdb tracks", "info pmdb has no subcommand tracks"),
            ("pmdb track", "pmdb track needs a range"),
            ("pmdb until-change", "until-change needs a range"),
            ("pmdb track object", "tracking object"),
            ("pmdb track/content *pool@16", "tracking *pool@16"),
            ("info pmdb track", "inferior 1: *pool@16"),
            ("pmdb track/contents pool", "the only option of pmdb track is /content"),
            ("pmdb track nowhere", "No symbol"),
            ("continue", "came            5 pages 0x"),
            ("continue", "written         2 pages 0x"),
            ("pmdb track off", ""),
            ("info pmdb track", "No range is tracked."),
        ],
    );
    // Each stretch has one line; memory that is not tracked has none.
    let lines = ["pmdb track *pool@16", "continue", "continue"];
    let answers = program.answers(&[&before[..], &lines].concat());
    let said = |at: usize| answers[at].matches("pmdb: ").count();
    assert_eq!((said(4), said(5)), (1, 0), "{answers:#?}");
}

#[test]
fn until_change_ends_behind_the_instruction_that_touched() {
    let Some(program) = compiled("until_change", "pages.c") else {
        return;
    };
    program.check(
        &["break turn if number == 3", "run"],
        &[
            ("pmdb until-change *pool@16", "came            1 page  0x"),
            ("info line", "at address 0x"),
            ("print $_resident(pool, 16*4096)", "= 4"),
            ("tbreak done", "Temporary"),
            // A breakpoint ends it too.
            ("pmdb until-change object", "stopped without a change after"),
            ("help pmdb until-change", "thousands a second"),
        ],
    );
}

#[test]
fn until_change_counts_the_instructions_of_its_thread() {
    let test = "until_change_counts_the_instructions";
    let Some(program) = compiled(test, "pages.c") else {
        return;
    };
    // The same steps as gdb's own, one by one.
    let before = ["break turn if number == 3", "run"];
    let answers = program.answers(&[&before[..], &["pmdb until-change *pool@16"]].concat());
    let count = answers[2].split_once("changed after ").and_then(|(_, rest)| rest.split(' ').next());
    let count: u32 = count.and_then(|count| count.parse().ok()).expect("a number of instructions");
    let all_but_one = format!("stepi {}", count - 1);
    program.check(
        &[&before[..], &[&all_but_one]].concat(),
        &[("print $_resident(pool, 16*4096)", "= 3"), ("stepi", ""), ("print $_resident(pool, 16*4096)", "= 4")],
    );
    let Some(program) = compiled(test, "threads.c") else {
        return;
    };
    program.check(
        &["break ready", "run", "delete"],
        &[
            ("thread 2", "Switching to thread 2"),
            // Only the selected thread runs, and it stays selected.
            ("print begun = 1", ""),
            ("pmdb until-change *pool@16", "of thread 2\n"),
            ("thread", "Current thread is 2"),
            ("show scheduler-locking", "replay"),
            // The others run too: one of them changes the page.
            ("thread 1", "Switching to thread 1"),
            ("set scheduler-locking off", ""),
            ("pmdb until-change *pool@16", "of thread 1, by this or another thread"),
            ("thread", "Current thread is 1"),
        ],
    );
}

#[test]
fn an_exec_ends_what_was_begun_in_the_program_before() {
    let Some(program) = compiled("an_exec_ends", "family.c") else {
        return;
    };
    let before = ["set follow-fork-mode child", "break wrote", "run", "tbreak execve", "continue"];
    let said = "the process executes another program now";
    program.check(&before, &[("pmdb until-change shared, +4*4096", said)]);
    program.check(
        &[&before[..], &["break forked"]].concat(),
        &[
            ("pmdb track shared, +4*4096", "tracking"),
            ("continue", said),
            ("info pmdb track", "No range is tracked."),
            ("pmdb track $sp, +4096", "tracking"),
            ("next", "return 0"),
        ],
    );
}

#[test]
fn the_end_of_a_tracked_range_is_said() {
    let Some(program) = compiled("the_end_of_a_tracked_range", "pages.c") else {
        return;
    };
    let killed = "*pool@16 is no longer tracked: process";
    program.check(
        &["break turn if number == 3", "run"],
        &[
            ("pmdb track *pool@16", "tracking"),
            ("run", killed),
            ("pmdb track *pool@16", "tracking"),
            ("detach", "was killed or detached"),
            ("run", "turn (number=3)"),
            ("pmdb track *pool@16", "tracking"),
            ("continue", "has exited"),
            ("info pmdb track", "No range is tracked."),
        ],
    );
    // Where gdb follows the child, the parent is detached.
    if let Some(family) = compiled("the_end_of_a_tracked_range", "family.c") {
        family.check(
            &["set follow-fork-mode child", "break forked", "run", "break wrote", "pmdb track shared, +4*4096"],
            &[("continue", "was killed or detached; in inferior 2: pmdb track shared, +4*4096")],
        );
    }
}

#[test]
fn both_sides_of_a_fork_and_a_collapse_show() {
    let Some(program) = compiled("both_sides_of_a_fork", "family.c") else {
        return;
    };
    if !is_root() {
        return skip("both_sides_of_a_fork", "copies of anonymous pages show by their frames alone");
    }
    let before = ["set detach-on-fork off", "set schedule-multiple on", "break forked", "run", "tbreak wrote"];
    program.check(
        &before,
        &[
            ("pmdb track shared, +4*4096", "tracking"),
            ("pmdb track huge, +2<<20", "tracking"),
            ("continue", "hit Temporary breakpoint"),
            ("info inferiors", "* 2 "),
            ("print $_map_count(shared) + 10*$_map_count(shared + 4096)", "= 12"),
            ("print $_exclusive(shared) + 10*$_exclusive(shared + 4096)", "= 10"),
            ("inferior 1", "Switching to inferior 1"),
            ("print $_map_count(shared) + 10*$_map_count(shared + 4096)", "= 12"),
            ("pmdb compare children", ""),
        ],
    );
    let parent = ["break done", "run", "print collapsed"];
    if !program.answers(&parent)[2].contains("= 1") {
        return skip("a_collapse", "this kernel makes no huge page of small ones");
    }
    program.check(
        &["break forked", "run", "pmdb track huge, +2<<20", "break done"],
        &[("continue", "collapsed     512 pages 0x"), ("print $_huge(huge)", "= 1")],
    );
}

#[test]
fn breakpoints_in_code_are_seen_and_so_is_that_they_are_gone() {
    let Some(program) = compiled("breakpoints_in_code", "pages.c") else {
        return;
    };
    let instruction = if cfg!(target_arch = "x86_64") { "<turn+7>  int3  cc  in the file: " } else { "<turn+" };
    program.check(
        &["set breakpoint always-inserted on", "break turn if number == 7", "run"],
        &[
            ("pmdb patched turn", instruction),
            ("pmdb patched turn", "1 stretch differs from the file"),
            ("pmdb patched turn", "1 breakpoint"),
            ("delete", ""),
            ("pmdb patched turn", "private, the same as the file"),
            ("pmdb patched turn", "is a private copy; it is the same as the file"),
            ("pmdb patched pool", "one address is not a range"),
        ],
    );
    // Elsewhere gdb takes its breakpoints out at a stop.
    program.check(
        &["break turn if number == 7", "run"],
        &[
            ("pmdb patched turn", "private, the same as the file"),
            ("pmdb patched", "private, the same as the file  program r-xp"),
            ("pmdb patched turn", "a debugger removes its breakpoints from a process that it has stopped"),
        ],
    );
}
