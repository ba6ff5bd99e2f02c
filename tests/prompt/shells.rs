//! Tab in bash, zsh and fish, at a terminal, as a user types it.
//!
//! The `pmdb` that the shell finds prints its arguments, unless the shell asks for completions: what a line means to
//! the program is what counts.

use super::PATIENCE;
use crate::executable::{self, Running};
use crate::skips::skip;
use crate::terminal::Session;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const SHELL: &str = "shell> ";

/// A shell at a terminal, with the completion of pmdb.
struct Shell {
    session: Session,
    home: TempDir,
}

impl Shell {
    /// `None` if it is not installed.
    fn new(name: &str) -> Option<Shell> {
        Command::new(name).arg("--version").stdout(Stdio::null()).status().ok()?;
        let home = tempfile::tempdir().expect("a folder");
        let path = |name: &str| home.path().join(name).display().to_string();
        let pmdb = env!("CARGO_BIN_EXE_pmdb");
        let script = |shell: &str| {
            let output =
                Command::new(pmdb).args(["--generate", &format!("complete-{shell}")]).output().expect("it runs");
            String::from_utf8(output.stdout).expect("text")
        };
        for folder in ["bin", "functions", "notes/folder"] {
            fs::create_dir_all(path(folder)).expect("a folder");
        }
        let stand_in = format!(
            "#!/bin/sh\n[ \"$1\" != --complete ] || exec '{pmdb}' \"$@\"\nprintf 'given'; printf '<%s>' \"$@\"; echo .\n"
        );
        fs::write(path("bin/pmdb"), stand_in).expect("a file");
        fs::set_permissions(path("bin/pmdb"), PermissionsExt::from_mode(0o755)).expect("its mode");
        fs::write(path("notes/look at.pmdb"), "").expect("a file");
        let mut command = Command::new(name);
        match name {
            "bash" => {
                fs::write(path("rc"), format!("PS1='{SHELL}'\n{}", script(name))).expect("a file");
                command.args(["--noprofile", "--rcfile", &path("rc"), "-i"]);
            }
            "zsh" => {
                fs::write(path("functions/_pmdb"), script(name)).expect("a file");
                // It would ask before a long list.
                let start = "fpath=($HOME/functions $fpath)\nautoload -U compinit\ncompinit -u -D\nLISTMAX=1000\n";
                fs::write(path(".zshrc"), format!("{start}PS1='{SHELL}'\n")).expect("a file");
                command.arg("-i");
            }
            _ => {
                let folder = home.path().join(".config/fish/completions");
                fs::create_dir_all(&folder).expect("a folder");
                fs::write(folder.join("pmdb.fish"), script(name)).expect("a file");
                let start = format!("function fish_prompt; printf '{SHELL}'; end\nset -g fish_greeting\n");
                fs::write(home.path().join(".config/fish/config.fish"), start).expect("a file");
                command.arg("-i");
            }
        }
        command
            .current_dir(path("notes"))
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", format!("{}:/usr/bin:/bin", path("bin")))
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm");
        let session = Session::start(command, PATIENCE);
        let mut shell = Shell { session, home };
        shell.sees(SHELL);
        Some(shell)
    }

    fn sees(&mut self, text: &str) -> String {
        self.session.expect(text).unwrap_or_else(|missing| panic!("{missing}"))
    }

    fn types(&mut self, keys: &str) {
        self.session.send(keys);
    }

    /// The arguments of pmdb in the line that these keys make.
    fn given(&mut self, keys: &str) -> String {
        self.types(keys);
        self.types("\r");
        let shown = self.sees("given<");
        self.says_nothing(keys, &shown);
        let given = self.sees(">.");
        self.sees(SHELL);
        given.replace("><", "|")
    }

    /// No complaint of the shell or of pmdb is among what Tab has printed.
    fn says_nothing(&self, keys: &str, shown: &str) {
        for complaint in
            ["error", "not found", "usage", "bad ", "unmatched", "pmdb:", "fish:", "bash:", "zsh:", "(eval)"]
        {
            assert!(!shown.contains(complaint), "{complaint:?} after {keys:?}: {shown}");
        }
        assert!(!self.home.path().join("notes/made").exists(), "{keys:?} ran the name of a process");
    }
}

/// Starts a process whose name would make a file in a shell.
fn hostile(home: &Path) -> Running {
    let program = home.join("zz\"$(>made)");
    executable::copy("/bin/sleep", &program);
    Running::sleep(program)
}

fn completes(test: &str, name: &str) {
    let Some(mut shell) = Shell::new(name) else {
        return skip(test, &format!("there is no {name} here"));
    };
    let hostile = hostile(shell.home.path());
    for (keys, given) in [
        ("pmdb -ba\tdem\twal\t", "-batch|demo|walk"),
        ("pmdb --keep\t", "--keep-going"),
        ("pmdb --color=al\t", "--color=always"),
        ("pmdb -color al\t", "-color|always"),
        ("pmdb --generate complete-b\t", "--generate|complete-bash"),
        ("pmdb -x :fork-\t", "-x|:fork-cost"),
        ("pmdb -x ../n\tl\t", "-x|../notes/look at.pmdb"),
        ("pmdb -x 'lo\t", "-x|look at.pmdb"),
        ("pmdb help filt\t", "help|filters"),
        ("pmdb self info snap\t", "self|info|snapshots"),
        ("pmdb self info thr\t", "self|info|threads"),
        // Without the backslash, zsh itself completes it as the index of an array.
        ("pmdb self region \\[st\t", "self|region|[stack]"),
        ("pmdb self -ex 'region [st\t full'", "self|-ex|region [stack] full"),
        ("pmdb self -ex \"region [st\t\"", "self|-ex|region [stack]"),
        ("pmdb -p sel\twalk all by zon\t", "-p|self|walk|all|by|zone"),
        // Within a quote the command goes on, and a quote is closed only behind a word to which nothing can be added.
        ("pmdb self -ex \"wal\tall wh\tpresent\"", "self|-ex|walk all where present"),
        ("pmdb self -ex 'info snap\t'", "self|-ex|info snapshots "),
        ("pmdb -p zz\t", "-p|zz\"$(>made)"),
        ("pmdb -p \"zz\tregions", "-p|zz\"$(>made)|regions"),
    ] {
        let seen = shell.given(keys);
        assert_eq!(seen, given, "{keys:?}");
    }
    // fish offers nothing that has another beginning, such as a quote.
    if name != "fish" {
        assert_eq!(shell.given("pmdb self -ex 'attach zz\t'"), "self|-ex|attach 'zz\"$(>made)'");
    }
    if name != "zsh" {
        assert_eq!(shell.given("pmdb self region [st\t"), "self|region|[stack]");
    }
    drop(hostile);
    inserts_nothing_that_was_not_chosen(&mut shell);
    shell.types("pmdb demo wa\t\t\t");
    let shown = shell.sees("list the pages of a range");
    shell.says_nothing("wa", &shown);
    shell.sees("watch");
}

/// Presses Tab where so many files begin with the word, which have nothing else in common.
fn inserts_nothing_that_was_not_chosen(shell: &mut Shell) {
    for offers in [0, 1, 2, 9, 10, 12, 19, 100, 141] {
        let folder = shell.home.path().join(format!("offers/{offers}"));
        fs::create_dir_all(&folder).expect("a folder");
        for number in 0..offers {
            let digits: String = format!("{number:03}").chars().rev().collect();
            fs::write(folder.join(format!("x{digits}")), "").expect("a file");
        }
        let begun = format!("../offers/{offers}/x");
        let all = if offers == 1 { format!("{begun}000") } else { begun.clone() };
        assert_eq!(shell.given(&format!("pmdb -c {begun}\t")), format!("-c|{all}"), "{offers} offers");
    }
}

#[test]
fn bash_completes_at_a_terminal() {
    completes("bash_completes_at_a_terminal", "bash");
}

#[test]
fn zsh_completes_at_a_terminal() {
    completes("zsh_completes_at_a_terminal", "zsh");
}

#[test]
fn fish_completes_at_a_terminal() {
    completes("fish_completes_at_a_terminal", "fish");
}
