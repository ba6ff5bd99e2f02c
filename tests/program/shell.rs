//! What is typed in a shell: a process and a command, `help`, colours and widths.

use crate::run::Home;

#[test]
fn a_process_and_a_command_give_one_answer() {
    let home = Home::new();
    let run = home.run(&["self", "print", "6*7"]);
    // A remark about the process, such as that it is pmdb itself, comes before.
    assert!(run.is_fine().out.ends_with("\n$1 = 42  (0x2a)\n"));
    assert_eq!(run.status, Some(0));
    let run = home.run(&["self", "frobnicate", "x"]);
    assert_eq!(run.status, Some(1));
    assert!(run.err.contains("there is no command `frobnicate`"), "{}", run.err);
    let run = home.run(&["self", "regions", "|", "cat"]);
    assert_eq!(run.status, Some(2));
    assert!(run.err.contains("use the shell"), "{}", run.err);
    for block in ["if 1", "while 1", "foreach $i in 1, 2", "define x"] {
        home.run(&["self", block]).failed(2, "a block of several lines: write the block into a command file for -x");
    }
}

#[test]
fn a_bar_that_was_meant_as_an_operator_needs_parentheses() {
    let home = Home::new();
    let run = home.run(&["-batch", "-ex", "print 5 & 3 | 8"]);
    run.failed(6, "`|` begins a shell command; as an operator it needs parentheses: `print (5 & 3 | 8)`\n");
    for (line, said) in [
        ("print 5 | /nowhere/8", "error: the shell has not found the command\n"),
        ("print 5 | exit 3", "`set shell errors off` makes it a remark\n"),
    ] {
        home.run(&["-batch", "-ex", line]).failed(6, said);
    }
}

#[test]
fn the_help_needs_no_process() {
    let home = Home::new();
    for (topic, word) in [
        (&["help"][..], "topics"),
        (&["help", "filters"], "mapcount"),
        (&["help", "info", "symbol"], "info symbol ADDRESS"),
        (&["help", "vmmap"], "`vmmap` is `regions` in pmdb"),
        (&["self", "walk", "--help"], "walk [--how] RANGE"),
    ] {
        let run = home.run(topic);
        assert!(run.is_fine().out.contains(word), "{topic:?}: {}", run.out);
    }
    let run = home.run(&["help", "break"]);
    assert_eq!(run.status, Some(1));
    assert!(run.err.contains("gdb -p PID"), "{}", run.err);
}

#[test]
fn a_width_that_is_set_holds_in_a_pipe_too() {
    let home = Home::new();
    let widest = |arguments: &[&str]| {
        let run = home.run(arguments);
        let lines = run.is_fine().out.lines();
        lines.map(|line| line.chars().count()).max()
    };
    assert!(widest(&["-batch", "-ex", "show"]) > Some(90));
    assert!(widest(&["-batch", "-ex", "set width 60", "-ex", "show"]) <= Some(60));
}

#[test]
fn a_line_of_a_file_goes_on_behind_a_backslash() {
    let home = Home::new();
    home.file("f", "print 1 + \\\n  2\n");
    let run = home.run(&["-batch", "-x", "f"]);
    assert_eq!(run.is_fine().out, "$1 = 3\n");
}

#[test]
fn the_help_of_options_is_coloured_as_everything_is() {
    let home = Home::new();
    for (variables, arguments, coloured) in [
        (&[][..], &[][..], false),
        (&[("CLICOLOR_FORCE", "1")], &[], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[], false),
        (&[("CLICOLOR_FORCE", "1")], &["--color", "never"], false),
        (&[("NO_COLOR", "1")], &["--color", "always"], true),
    ] {
        for asked in [&["--help"][..], &["-batch", "-ex", "help walk"]] {
            let mut command = home.command(&[arguments, asked].concat());
            let output = command.envs(variables.iter().copied()).output().unwrap();
            let has = output.stdout.contains(&0x1b);
            assert_eq!(has, coloured, "{variables:?} {arguments:?} {asked:?}");
        }
    }
}
