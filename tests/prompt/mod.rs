//! The prompt, at a real terminal.

mod input;
mod outside;
mod shells;

use crate::executable::{self, Running};
use crate::skips::skip;
use crate::terminal::Session;
use rexpect::process::{Signal, WaitStatus};
use rustix::fs::Mode;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Reached only if the expected output does not come.
const PATIENCE: Duration = Duration::from_secs(20);

const PROMPT: &str = "(pmdb) ";

/// The editor's output when a line is entered: end of bracketed paste, next row. Before, it may redraw the line at any
/// key.
const TAKEN: &str = "\u{1b}[?2004l\r\n";

struct Terminal {
    session: Session,
    home: TempDir,
}

impl Terminal {
    /// The program at a terminal of its own, in an empty home, at the first prompt.
    fn new(arguments: &[&str]) -> Self {
        Terminal::at_home(tempfile::tempdir().expect("a folder"), arguments)
    }

    fn at_home(home: TempDir, arguments: &[&str]) -> Self {
        Terminal::with(home, arguments, &[])
    }

    /// The same with more in the environment.
    fn with(home: TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = program(home.path(), arguments);
        command.envs(variables.iter().copied());
        let session = Session::start(command, PATIENCE);
        let mut terminal = Terminal { session, home };
        terminal.sees(PROMPT);
        terminal
    }

    /// What stands before `text`, which must come.
    fn sees(&mut self, text: &str) -> String {
        self.session.expect(text).unwrap_or_else(|missing| panic!("{missing}"))
    }

    fn types(&mut self, keys: &str) {
        self.session.send(keys);
    }

    /// Types a line and its end, and waits until the editor has taken it.
    fn enters(&mut self, line: &str) {
        self.types(line);
        self.types("\r");
        self.sees(TAKEN);
    }

    /// What a line prints.
    fn answer(&mut self, line: &str) -> String {
        self.enters(line);
        self.sees(PROMPT)
    }

    fn ends_with(&mut self, status: i32) {
        self.session.expect_end().expect("it ends");
        let ended = self.session.ended();
        assert!(matches!(ended, WaitStatus::Exited(_, code) if code == status), "{ended:?}");
    }

    fn history(&self) -> String {
        fs::read_to_string(self.home.path().join(".local/state/pmdb/history")).expect("a history")
    }
}

fn start(home: &Path, arguments: &[&str]) -> Session {
    let command = program(home, arguments);
    Session::start(command, PATIENCE)
}

fn program(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmdb"));
    command
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    command
}

/// The question for the background, and the one that nearly every terminal answers.
const QUESTION: &str = "\u{1b}]11;?\u{7}\u{1b}[c";

#[test]
fn a_terminal_is_asked_for_its_background_where_colours_depend_on_it() {
    let home = tempfile::tempdir().expect("a folder");
    let asked = |variables: &[(&str, &str)]| {
        let mut command = program(home.path(), &["-nx"]);
        command.envs(variables.iter().copied());
        let mut session = Session::start(command, PATIENCE);
        let before = session.expect(PROMPT).expect("a prompt, also without an answer");
        session.send_line("quit");
        session.expect_end().expect("it ends");
        before.contains(QUESTION)
    };
    assert!(asked(&[("NO_COLOR", "")]));
    for variables in [
        &[("NO_COLOR", "1")][..],
        &[("NO_COLOR", ""), ("COLORFGBG", "15;0")],
        &[("NO_COLOR", ""), ("TERM", "linux")],
        &[("NO_COLOR", ""), ("SSH_CONNECTION", "192.0.2.1 1000 192.0.2.2 22")],
    ] {
        assert!(!asked(variables), "{variables:?}");
    }
}

#[test]
fn ctrl_d_leaves() {
    let mut terminal = Terminal::new(&[]);
    terminal.types("\u{4}");
    terminal.ends_with(0);
}

#[test]
fn an_error_does_not_end_the_prompt_and_quit_does() {
    let mut terminal = Terminal::new(&[]);
    let said = terminal.answer("frobnicate");
    assert!(said.contains("error: "), "{said}");
    assert!(terminal.answer("echo on").contains("on\r\n"));
    terminal.enters("quit 5");
    terminal.ends_with(5);
}

#[test]
fn a_terminal_gets_no_binary_capture() {
    let mut terminal = Terminal::new(&["self"]);
    let said = terminal.answer("capture -");
    assert!(said.contains("standard output is a terminal"), "{said}");
}

#[test]
fn after_ex_a_terminal_gets_the_prompt_even_if_it_failed() {
    let mut terminal = Terminal::new(&["-ex", "frobnicate", "-ex", "echo never"]);
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

#[test]
fn a_faulty_init_file_keeps_nobody_from_the_target() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/pmdb");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("init"), "set color always\nfrobnicate\n").expect("a file");
    let mut session = start(home.path(), &["self", "--color", "never"]);
    let said = session.expect(PROMPT).expect("a prompt");
    assert!(said.contains("init:2:1:") && said.contains("attached"), "{said}");
    let mut terminal = Terminal { session, home };
    assert!(terminal.answer("show color").contains("never"), "the command line goes before the file");
}

#[test]
fn an_empty_line_repeats_the_last_command() {
    let mut terminal = Terminal::new(&[]);
    terminal.answer("echo again");
    terminal.enters("");
    assert!(terminal.sees(PROMPT).contains("again"));
}

#[test]
fn an_empty_line_after_a_file_repeats_the_file_and_after_an_error_nothing() {
    let mut terminal = Terminal::new(&[]);
    fs::write(terminal.home.path().join("f"), "echo first\necho last\n").expect("a file");
    terminal.answer("source f");
    assert!(terminal.answer("").contains("first\r\nlast\r\n"));
    terminal.answer("frobnicate");
    assert_eq!(terminal.answer("").find(|c: char| c.is_alphabetic() && c != 'h' && c != 'K'), None);
}

#[test]
fn a_walk_with_a_limit_goes_on_where_it_stopped() {
    let mut terminal = Terminal::new(&["self"]);
    let rows = |said: String| -> Vec<String> {
        said.lines().filter(|line| line.starts_with("0x")).map(str::to_owned).collect()
    };
    let first = rows(terminal.answer("walk all limit 1"));
    let second = rows(terminal.answer(""));
    let third = rows(terminal.answer(""));
    assert_eq!((first.len(), second.len(), third.len()), (1, 1, 1), "{first:?} {second:?} {third:?}");
    assert!(first < second && second < third, "{first:?} {second:?} {third:?}");
}

#[test]
fn an_empty_line_after_x_goes_on_behind_what_it_showed() {
    let mut terminal = Terminal::new(&["self"]);
    let mut shown = |line: &str| -> Vec<u64> {
        let said = terminal.answer(line);
        let rows = said.lines().filter(|line| line.starts_with("0x"));
        let addresses = rows.map(|row| {
            let end = row.find([' ', ':']).expect("an address");
            u64::from_str_radix(&row[2..end], 16).expect("an address")
        });
        addresses.collect()
    };
    let first = shown("x/16xb end([stack]) - 256");
    let [start, next] = first[..] else {
        panic!("two rows: {first:x?}");
    };
    assert_eq!(next, start + 8);
    // Rows of eight bytes, as many as before; with a size of its own, and then that again.
    for (line, expected) in [("", [16, 24]), ("", [32, 40]), ("x", [48, 56]), ("x/4xg", [64, 80]), ("", [96, 112])] {
        assert_eq!(shown(line), expected.map(|into| start + into), "{line:?}");
    }
}

#[test]
fn shell_lines_and_redirections_are_not_repeated() {
    let mut terminal = Terminal::new(&[]);
    for line in ["!echo o'n'ce", "show width | sed s/^/o'n'ce/", "show width > ./once"] {
        terminal.answer("echo before");
        terminal.answer(line);
        terminal.enters("");
        let said = terminal.sees(PROMPT);
        assert!(!said.contains("once") && !said.contains("before"), "{line}: {said}");
    }
}

#[test]
fn tab_lists_what_could_follow() {
    let mut terminal = Terminal::new(&[]);
    terminal.types("regi\t\t");
    terminal.sees("region");
    terminal.sees("regions");
    // One that is whole gets its blank.
    terminal.types("\u{15}transl\t");
    terminal.sees("translate ");
    terminal.enters("\u{15}show pagi\t");
    terminal.sees("pagination");
    terminal.sees(PROMPT);
}

#[test]
fn tab_completes_files() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("commands.pmdb"), "echo sourced\n").expect("a file");
    let mut terminal = Terminal::at_home(home, &[]);
    terminal.enters("source comm\t");
    terminal.sees("sourced");
}

#[test]
fn tab_completes_source_files_before_a_line() {
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir(home.path().join("my-src")).expect("a folder");
    let text = "#include <unistd.h>\nint main(void) {\n  return pause();\n}\n";
    let hostile = "my-src/qzserver\u{1b}]0;title\u{7}.c";
    for (program, source) in [("client", "my-src/qzclient.c"), ("server", hostile)] {
        fs::write(home.path().join(source), text).expect("a file");
        let done = Command::new("gcc").args(["-g", "-O0", "-o", program, source]).current_dir(home.path()).status();
        if !done.is_ok_and(|status| status.success()) {
            return skip("tab_completes_source_files_before_a_line", "no gcc that works");
        }
    }
    let of = |name: &str| Running::start(&mut Command::new(home.path().join(name)));
    let [client, server] = ["client", "server"].map(of);
    let mut terminal = Terminal::at_home(home, &["-p", &client.id().to_string()]);
    // What was typed before, and how it is to come.
    for (typed, whole) in [
        ("qzcl", "qzclient.c:"),
        ("my-src/qzcl", "'my-src/qzclient.c':"),
        ("'my-src/qzcl", "'my-src/qzclient.c':"),
        ("'qzcl", "qzclient.c:"),
    ] {
        terminal.types(&format!("info line {typed}\t"));
        terminal.sees(whole);
        let said = terminal.answer("3");
        assert!(said.contains("qzclient.c:3") && said.contains("main"), "{said}");
    }
    terminal.answer(&format!("attach {}", server.id()));
    terminal.types("info line 'qzser\t");
    let shown = terminal.sees(".c':");
    assert!(shown.contains("qzserver\\x1b]0;title\\x07"), "{shown:?}");
    assert!(!shown.contains("\u{1b}]0;") && !shown.contains('\u{7}'), "{shown:?}");
    let said = terminal.answer("3");
    assert!(said.contains("title") && said.contains("main"), "{said}");
}

#[test]
fn the_usage_shows_while_typing() {
    let mut terminal = Terminal::new(&[]);
    terminal.types("walk ");
    terminal.sees("limit");
}

#[test]
fn what_is_typed_is_coloured_and_set_color_never_stops_that() {
    let home = tempfile::tempdir().expect("a folder");
    let session = start(home.path(), &["--color", "always"]);
    let mut terminal = Terminal { session, home };
    terminal.sees("(pmdb) ");
    terminal.types("walk 0x10 ");
    terminal.sees("mwalk\u{1b}[0m");
    terminal.types("\u{3}");
    terminal.sees(TAKEN);
    terminal.enters("set color never");
    terminal.sees(PROMPT);
    terminal.types("walk 0x10 ");
    terminal.sees("walk 0x10 ");
}

#[test]
fn ctrl_c_at_the_prompt_clears_the_line() {
    let mut terminal = Terminal::new(&[]);
    terminal.types("echo never\u{3}");
    terminal.sees(TAKEN);
    terminal.sees(PROMPT);
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

#[test]
fn a_signal_from_outside_does_not_end_the_prompt() {
    let mut terminal = Terminal::new(&[]);
    terminal.session.signal(Signal::SIGINT);
    // The editor may begin its row anew before.
    terminal.types("echo on\r");
    terminal.sees(&format!("{TAKEN}on\r\n"));
}

#[test]
fn ctrl_c_stops_a_watch_and_keeps_the_prompt() {
    let mut terminal = Terminal::new(&["self"]);
    terminal.enters("watch [stack]");
    // It says how often it looks once it has started.
    terminal.sees("every");
    terminal.types("\u{3}");
    terminal.sees(PROMPT);
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

/// The terminal shows `^C` behind the progress line. Both must be in one row, since only one is cleared.
#[test]
fn ctrl_c_leaves_nothing_of_a_progress_line() {
    const NAME: &str = "prompt::ctrl_c_leaves_nothing_of_a_progress_line";
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, "only root can look at all frames");
    }
    let mut terminal = Terminal::new(&[]);
    terminal.enters("account frames");
    terminal.sees("\r\u{1b}[2K");
    let line = terminal.sees("\r\u{1b}[2K");
    assert!(line.contains(" frames") && line.chars().count() <= 78, "{line:?}");
    terminal.types("\u{3}");
    terminal.sees("\u{1b}[2K");
    terminal.sees(PROMPT);
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

/// The last picture stays, with its legend; then come the summary and the prompt.
#[test]
fn a_timeline_ends_in_order_by_ctrl_c_and_by_the_end_of_the_process() {
    let mut watched = Running::sleep("sleep");
    let mut terminal = Terminal::new(&["-p", &watched.id().to_string()]);
    let ends_in_order = |shown: &str, end: &str| {
        let (_, picture) = shown.rsplit_once("samples 1 to ").expect("a picture");
        let parts = ["legend: ", "watched for ", end];
        let places = parts.map(|part| picture.find(part).unwrap_or_else(|| panic!("{part} is missing in {picture}")));
        assert!(places.is_sorted(), "{picture}");
        assert_eq!(picture.matches("legend: ").count(), 1, "{picture}");
    };
    // This terminal does not say how high it is.
    terminal.answer("set height 24");
    terminal.answer("set pagination off");
    let watch = "watch [stack] every 50ms as timeline";
    terminal.enters(watch);
    terminal.sees("samples 1 to 3, ");
    // At Ctrl-C a terminal throws away what it has not shown: the picture is complete, and the next one has not begun.
    let drawn = terminal.sees("\u{1b}[J");
    terminal.types("\u{3}");
    let shown = format!("samples 1 to 3, {drawn}{}", terminal.sees(PROMPT));
    ends_in_order(&shown, "ended by Ctrl-C");
    assert!(terminal.answer("echo still here").contains("still here\r\n"));

    terminal.enters(watch);
    terminal.sees("samples 1 to 3, ");
    watched.kill().expect("it is there");
    watched.wait().expect("it ends");
    let shown = format!("samples 1 to 3, {}", terminal.sees(PROMPT));
    ends_in_order(&shown, "ended because the process exited");
}

#[test]
#[allow(unsafe_code)]
fn long_work_says_how_far_it_has_got_and_ctrl_c_stops_it_with_what_was_found() {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    // So much that reading it through without the kernel's scan takes minutes. It is memory of this test.
    const RESERVED: usize = 4 << 40;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice, never accessed.
    let reserved = unsafe { mmap_anonymous(std::ptr::null_mut(), RESERVED, ProtFlags::empty(), flags) };
    if let Err(error) = reserved {
        let reason = format!("4 TiB cannot be reserved: {error}");
        return skip("long_work_says_how_far_it_has_got", &reason);
    }
    let mut terminal = Terminal::new(&["-q", "-p", &std::process::id().to_string()]);
    terminal.answer("set scan off");
    terminal.enters("walk all by state");
    terminal.sees(" % ");
    terminal.sees(" of ");
    terminal.sees(" pages");
    terminal.types("\u{3}");
    let said = terminal.sees(PROMPT);
    assert!(said.contains("stopped early"), "{said}");
    assert!(said.contains("present"), "{said}");
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

#[test]
fn ctrl_c_ends_a_shell_command_and_keeps_the_prompt() {
    let mut terminal = Terminal::new(&[]);
    terminal.enters("!echo rea'd'y; read never");
    terminal.sees("ready");
    terminal.types("\u{3}");
    terminal.sees(PROMPT);
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

#[test]
fn long_output_stops_at_each_screen() {
    let mut terminal = Terminal::new(&[]);
    terminal.answer("set height 5");
    terminal.enters("show");
    let page = terminal.sees("--Type <RET> for more");
    assert_eq!(page.matches("\r\n").count(), 4, "four rows and the question: {page}");
    terminal.types("q\r");
    terminal.sees(PROMPT);
    terminal.enters("show");
    terminal.sees("without paging--");
    terminal.types("c\r");
    assert!(!terminal.sees(PROMPT).contains("--Type"));
    terminal.enters("show");
    terminal.sees("without paging--");
    terminal.types("\u{3}");
    terminal.sees(PROMPT);
    terminal.enters("show");
    terminal.sees("without paging--");
    terminal.types("/width \r");
    terminal.sees(" lines skipped)\r\nwidth ");
    terminal.sees(PROMPT);
    terminal.enters("show");
    terminal.sees("without paging--");
    terminal.types("/no such text\r");
    terminal.sees("skipped: no line has `no such text`)");
    terminal.sees(PROMPT);
    // A command leaves the pager and runs, and so do those behind it.
    terminal.enters("show");
    terminal.sees("without paging--");
    terminal.types("nonsense\r");
    terminal.sees("c      show the rest without stopping");
    terminal.sees("without paging--");
    terminal.types("print 40 + 2\rprint 40 + 3\r");
    terminal.sees("print 40 + 2");
    terminal.sees("$1 = 42");
    terminal.sees("$2 = 43");
    terminal.answer("set pagination off");
    assert!(!terminal.answer("show").contains("--Type"));
}

/// A pager that says what it was given.
const PAGER: &str = r#"printf 'pager %s has %s lines\n' "$LESS" "$(wc -l)""#;

#[test]
fn a_program_shows_output_that_is_longer_than_the_screen() {
    let home = tempfile::tempdir().expect("a folder");
    let mut terminal = Terminal::with(home, &[], &[("PAGER", PAGER)]);
    let lines = terminal.answer("show | wc -l");
    let lines = lines.split_whitespace().next().expect("a number");
    assert!(!terminal.answer("show pager").contains("pager RX"));
    terminal.answer("set height 5");
    let shown = terminal.answer("show");
    assert!(shown.contains(&format!("pager RX has {lines} lines")), "{shown}");
    assert!(!shown.contains("pagination"), "{shown}");
    terminal.answer("set pager ask");
    terminal.enters("show");
    terminal.sees("--Type <RET> for more");
    terminal.types("q\r");
    terminal.sees(PROMPT);
}

#[test]
fn a_pager_may_be_left_early_or_be_missing() {
    let home = tempfile::tempdir().expect("a folder");
    let mut terminal = Terminal::with(home, &[], &[("PAGER", "head -n 1")]);
    terminal.answer("set height 5");
    let shown = terminal.answer("show");
    assert_eq!(shown.matches("\r\n").count(), 1, "{shown}");
    let home = tempfile::tempdir().expect("a folder");
    let mut terminal = Terminal::with(home, &[], &[("PAGER", "/does/not/exist")]);
    terminal.answer("set height 5");
    let shown = terminal.answer("show");
    assert!(shown.contains("set pager ask"), "{shown}");
    assert!(terminal.answer("echo on").contains("on\r\n"));
}

#[test]
fn a_watch_does_not_wait_for_a_pager() {
    let home = tempfile::tempdir().expect("a folder");
    let mut terminal = Terminal::with(home, &["demo"], &[("PAGER", PAGER)]);
    terminal.answer("set height 5");
    terminal.enters("watch demo_busy every 10ms");
    terminal.sees("Ctrl-C ends it");
    terminal.sees("came");
    terminal.types("\u{3}");
    let shown = terminal.sees(PROMPT);
    assert!(!shown.contains("pager"), "{shown}");
}

#[test]
fn a_comparison_over_time_does_not_wait_for_a_pager() {
    let mut terminal = Terminal::new(&["demo"]);
    terminal.answer("set height 5");
    for picture in ["", " as timeline"] {
        // A pager would wait for a key.
        terminal.answer(&format!("compare children every 10ms for 200ms{picture}"));
    }
}

#[test]
fn a_block_is_typed_over_several_lines_and_is_one_entry_of_the_history() {
    let mut terminal = Terminal::new(&[]);
    terminal.enters("set $i = 0");
    terminal.sees(PROMPT);
    for line in ["while $i < 2", "set $i = $i + 1", "print $i"] {
        terminal.enters(line);
        terminal.sees(">");
    }
    let answer = terminal.answer("end");
    assert!(answer.contains("$1 = 1") && answer.contains("$2 = 2"), "{answer}");
    // Ctrl-C leaves a block that is being typed.
    terminal.enters("if 1");
    terminal.sees(">");
    terminal.types("\u{3}");
    terminal.sees(PROMPT);
    // Ctrl-D closes one, as in gdb.
    terminal.enters("if 1");
    terminal.sees(">");
    terminal.enters("echo inside");
    terminal.sees(">");
    terminal.types("\u{4}");
    assert!(terminal.sees(PROMPT).contains("end\r\ninside"));
    let history = terminal.history();
    let lines = history.lines().filter(|line| line.contains("while")).count();
    let entry = history.lines().find(|line| line.contains("while")).expect("an entry");
    assert!(lines == 1 && entry.contains("end"), "{history}");
    assert!(terminal.answer("print $i").contains("$3 = 2"));
}

#[test]
fn what_is_displayed_comes_before_each_prompt() {
    let mut terminal = Terminal::new(&[]);
    let first = terminal.answer("display 6 * 7");
    assert_eq!(first.matches("1: 6 * 7 = 42").count(), 1, "{first}");
    let next = terminal.answer("echo next");
    let place = next.find("next\r\n").expect("the answer");
    assert!(next[place..].contains("1: 6 * 7 = 42"), "{next}");
    // A display without a value says why, and stays.
    terminal.answer("set $x = 1");
    terminal.answer("display $x / 0");
    assert!(!terminal.answer("echo other").contains("2: "));
    let gone = terminal.answer("undisplay 1");
    assert!(!gone.contains("= 42"), "{gone}");
    assert!(!terminal.answer("echo last").contains("= 42"));
    terminal.types("\u{4}");
    terminal.ends_with(0);
}

#[test]
fn several_pasted_lines_are_run_one_after_the_other() {
    let mut terminal = Terminal::new(&[]);
    terminal.enters("\u{1b}[200~echo one\necho two\u{1b}[201~");
    terminal.sees("one\r\n");
    terminal.sees("two\r\n");
    terminal.sees(PROMPT);
    let history = terminal.history();
    assert!(history.ends_with("\necho one\necho two\n"), "{history}");
}

#[test]
fn a_row_that_gdb_broke_in_two_is_pasted_as_one() {
    let mut terminal = Terminal::new(&[]);
    let rows = "print Line 7 of \"a.c\" starts at address 0x10000 <work>\n   and ends at 0x10010 <work+16>.";
    terminal.enters(&format!("\u{1b}[200~{rows}\u{1b}[201~"));
    terminal.sees("0x10000..0x10010");
    terminal.sees(PROMPT);
}

#[test]
fn lines_that_come_faster_than_they_are_run_are_all_run() {
    let mut terminal = Terminal::new(&[]);
    // As a terminal without bracketed paste sends what is pasted: at once.
    terminal.types("print 10 + 1\rprint 10 + 2\rprint 10 + 3\r");
    for answer in [" = 11", " = 12", " = 13"] {
        terminal.sees(answer);
    }
}

#[test]
fn what_is_typed_while_a_command_runs_is_run_after_it() {
    let mut terminal = Terminal::new(&[]);
    let gate = terminal.home.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, Mode::RWXU).expect("a pipe");
    terminal.enters("!echo rea'd'y; cat gate");
    terminal.sees("ready\r\n");
    terminal.types("print 20 + 1\rprint 20 + 2\r");
    fs::write(&gate, "opened\n").expect("it is read");
    for answer in ["opened", " = 21", " = 22"] {
        terminal.sees(answer);
    }
}

#[test]
fn history_lasts_and_is_private() {
    let mut terminal = Terminal::new(&[]);
    terminal.answer("echo remembered");
    terminal.types("\u{4}");
    terminal.ends_with(0);
    let folder = terminal.home.path().join(".local/state/pmdb");
    let mode = |path: &Path| Mode::from_raw_mode(fs::metadata(path).expect("it is there").permissions().mode());
    assert_eq!(mode(&folder), Mode::RWXU);
    assert_eq!(mode(&folder.join("history")), Mode::RUSR | Mode::WUSR);
    let mut terminal = Terminal::at_home(terminal.home, &[]);
    // The line before this one, from the session before.
    terminal.enters("\u{10}");
    assert!(terminal.sees(PROMPT).contains("remembered\r\n"));
    assert!(terminal.answer("history").contains("echo remembered"));
}

#[test]
fn a_history_that_cannot_be_kept_is_said_once() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join(".local"), "in the way").expect("a file");
    let mut session = start(home.path(), &[]);
    let said = session.expect(PROMPT).expect("a prompt");
    assert!(said.contains("not kept"), "{said}");
    let mut terminal = Terminal { session, home };
    for _ in 0..2 {
        assert!(!terminal.answer("echo on").contains("not kept"));
    }
}

#[test]
fn the_end_of_the_target_is_said_once() {
    let mut child = Running::sleep("sleep");
    let mut terminal = Terminal::new(&[&child.id().to_string()]);
    terminal.answer("echo on");
    child.kill().expect("it dies");
    child.wait().expect("it dies");
    let said = terminal.answer("echo on");
    assert!(said.contains("exited"), "{said}");
    let said = terminal.answer("echo on");
    assert!(!said.contains("exited"), "{said}");
}

#[test]
fn signals_that_end_the_prompt_give_the_terminal_back() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGALRM] {
        // Without a core file.
        let home = tempfile::tempdir().expect("a folder");
        // A shell tells how the terminal is, before and after.
        let program = env!("CARGO_BIN_EXE_pmdb");
        let line = format!("ulimit -c 0; echo $$; stty -g; {program} -nx; stty -g; echo over");
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(home.path()).env_clear();
        command.env("HOME", home.path()).env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
        let mut session = Session::start(command, PATIENCE);
        let (_, shell) = session.expect_match("[0-9]+\r").expect("its number");
        let shell = shell.trim_end();
        let before = session.expect_match("[0-9a-f:]{40,}\r").expect("how it is").1;
        session.expect(PROMPT).expect("a prompt");
        let children = format!("/proc/{shell}/task/{shell}/children");
        let child = fs::read_to_string(children).expect("its children");
        let child: i32 = child.trim().parse().expect("one child");
        let raw = rustix::process::Pid::from_raw(child).expect("a number");
        let number = rustix::process::Signal::from_named_raw(signal as i32).expect("a signal");
        rustix::process::kill_process(raw, number).expect("to send it");
        let ended = session.expect("over");
        let after = ended.unwrap_or_else(|missing| panic!("{signal}: {missing}: {}", threads(child)));
        assert!(after.contains(&before), "{signal}: {before}: {after}");
    }
}

/// What each thread of a process waits for, and its signals, for the message of a failure.
fn threads(process: i32) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let files = tasks.flat_map(|task| ["status", "wchan", "syscall"].map(|name| task.path().join(name)));
    let texts = files.map(|file| format!("{}:\n{}\n", file.display(), fs::read_to_string(&file).unwrap_or_default()));
    texts.collect()
}

#[test]
fn what_steers_a_terminal_is_not_echoed_when_it_is_pasted_or_called_back() {
    let hostile = |said: &str| said.contains(['\u{9b}', '\u{202e}']);
    let mut terminal = Terminal::new(&[]);
    terminal.types("\u{1b}[200~# a\u{9b}31mb\u{202e}c\u{1b}[201~");
    let typed = terminal.sees("not shown: U+009B U+202E");
    assert!(!hostile(&typed), "{typed:?}");
    terminal.types("\r");
    let answered = terminal.sees(PROMPT);
    assert!(!hostile(&answered), "{answered:?}");
    terminal.types("\u{10}");
    let called_back = terminal.sees("not shown: U+009B U+202E");
    assert!(called_back.contains("# a31mbc") && !hostile(&called_back), "{called_back:?}");
}

/// A process whose name is a pipe and a redirection in a line of pmdb.
#[test]
fn tab_makes_the_name_of_a_process_one_argument() {
    let mut terminal = Terminal::new(&["-nx"]);
    let program = terminal.home.path().join("ww|tee made");
    executable::copy("/bin/sleep", &program);
    let process = Running::sleep(&program);
    terminal.types("attach ww\t");
    terminal.sees("'ww|tee made'");
    terminal.types("\r");
    terminal.sees(&format!("{} (ww|tee made)", process.id()));
    terminal.sees(PROMPT);
    assert!(!terminal.home.path().join("made").exists(), "it ran");
}

#[test]
fn a_history_that_is_no_file_of_the_user_is_neither_read_nor_waited_for() {
    for why in ["it is a named pipe", "it is a symbolic link"] {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".local/state/pmdb");
        fs::create_dir_all(&folder).expect("a folder");
        let history = folder.join("history");
        if why.ends_with("pipe") {
            rustix::fs::mknodat(rustix::fs::CWD, &history, rustix::fs::FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
        } else {
            std::os::unix::fs::symlink("elsewhere", &history).expect("a link");
        }
        let mut session = start(home.path(), &[]);
        session.expect("the history is not kept").expect("it is said");
        session.expect(why).expect("it is said");
        session.expect(PROMPT).expect("it is said");
    }
}

#[test]
fn a_long_line_does_not_hold_up_the_prompt() {
    let mut terminal = Terminal::new(&["-nx"]);
    // As a terminal without bracketed paste sends it: key by key.
    terminal.enters(&format!("# {}", "word ".repeat(2000)));
    terminal.sees(PROMPT);
}
