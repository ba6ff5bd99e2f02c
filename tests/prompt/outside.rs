//! `--no-shell` at the prompt, and runs that open none.

use super::{PROMPT, Terminal, start};

#[test]
fn without_a_shell_the_prompt_keeps_no_file_and_starts_no_pager() {
    let home = tempfile::tempdir().expect("a folder");
    let mut terminal = Terminal::with(home, &["--no-shell", "-nx"], &[("PAGER", "touch paged; cat")]);
    for line in ["set height 5", "set pager program", "set logging on", "print 1", "!touch ran"] {
        terminal.answer(line);
    }
    terminal.enters("help walk");
    // pmdb itself asks at each screen.
    terminal.sees("--Type <RET> for more");
    terminal.types("q\r");
    terminal.sees(PROMPT);
    let files: Vec<_> = std::fs::read_dir(terminal.home.path()).expect("the home").collect();
    assert!(files.is_empty(), "{files:?}");
    terminal.types("\u{4}");
    terminal.ends_with(0);
}

#[test]
fn a_name_of_no_process_opens_no_prompt() {
    let home = tempfile::tempdir().expect("a folder");
    let session = start(home.path(), &["-nx", "helo"]);
    let mut terminal = Terminal { session, home };
    assert!(!terminal.sees("did you mean `help`?").contains(PROMPT));
    terminal.ends_with(3);
}
