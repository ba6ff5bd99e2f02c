//! What a newcomer types first, at a terminal.

use crate::terminal::Session;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Reached only if the expected output does not come.
const PATIENCE: Duration = Duration::from_secs(30);

const SHELL: &str = "newcomer> ";

/// Programs of the system that a newcomer uses with pmdb.
pub const PROGRAMS: &[&str] = &["unshare", "bash", "zsh", "fish", "man", "gdb"];

/// A directory with nothing but the places of what [`command`] mounts.
pub fn empty_root() -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for part in ["proc", "dev"] {
        std::fs::create_dir(root.path().join(part)).expect("a directory");
    }
    root
}

/// A command in `root`, which has /proc and /dev as any container. Before it, a shell runs `prepare`, where `$root` is
/// the root. All mounts and processes end with the command.
pub fn command(root: &Path, prepare: &str, variables: &str, words: &[&str]) -> Command {
    let script = format!(
        "set -e; root=$0; {prepare}\n\
        mount -t proc proc \"$root/proc\"; mount --rbind /dev \"$root/dev\"\n\
        exec env -i TERM=xterm NO_COLOR=1 {variables} \"$(command -v chroot)\" \"$root\" \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]).arg(root).args(words);
    command
}

/// The program alone: a one-shot, and the prompt.
pub fn in_an_empty_root(root: &Path, program: &[&str], variables: &str) {
    let words = |more: &[&'static str]| [program, more].concat();
    let one_shot = super::succeed(&mut command(root, "", variables, &words(&["self", "print 6*7"])));
    assert!(one_shot.ends_with("$1 = 42  (0x2a)\n"), "{one_shot}");
    let mut terminal = Terminal::start(command(root, "", variables, &words(&["demo"])));
    terminal.uses_the_prompt();
    terminal.ends();
}

/// Installs the package on a copy of this system, uses it, and runs `after` in the shell there. What that changes is in
/// memory, and gone with it.
pub fn install(package: &Path, install: &str, prefix: &str, after: impl FnOnce(&mut Terminal)) {
    let package = package.to_str().expect("a plain path");
    let layers = empty_root();
    let prepare = format!(
        "mount -t tmpfs tmpfs \"$root\"; mkdir \"$root/up\" \"$root/work\" \"$root/all\"\n\
        mount -t overlay -o \"lowerdir=/,upperdir=$root/up,workdir=$root/work\" overlay \"$root/all\"\n\
        root=$root/all; cp '{package}' \"$root/package\""
    );
    let variables = "HOME=/root LC_ALL=C.UTF-8 MANWIDTH=80 \
        XDG_DATA_DIRS=/usr/local/share:/usr/share PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let bash = ["bash", "--noprofile", "--norc", "-i"];
    let mut terminal = Terminal::start(command(layers.path(), &prepare, variables, &bash));
    terminal.sees("# ");
    // As typed, the prompt has quotes in it.
    terminal.types("bind 'set enable-bracketed-paste off'; PS1='newcom''er> '\r");
    terminal.sees(SHELL);
    terminal.run(install);
    terminal.run(&format!("[ \"$(command -v pmdb)\" = {prefix}/bin/pmdb ]"));
    terminal.completes(prefix);
    assert!(terminal.run("pmdb help").contains("translate"));
    assert!(terminal.run("pmdb self print 6*7").contains("$1 = 42"));
    let manual = terminal.run("man pmdb | cat");
    assert!(manual.contains("EXAMPLES") && manual.contains("pmdb-language(7)"), "{manual}");
    terminal.types("pmdb -nx demo\r");
    terminal.uses_the_prompt();
    terminal.sees(SHELL);
    let plugin = format!("-ex 'source {prefix}/share/pmdb/pmdb-gdb.py' -ex 'pmdb explain $sp'");
    let said = terminal.run(&format!("gdb -nx -batch -ex starti {plugin} /bin/true"));
    assert!(said.contains("[stack]"), "{said:?}");
    after(&mut terminal);
    terminal.types("exit\r");
    terminal.ends();
}

/// A program at a terminal.
pub struct Terminal(Session);

impl Terminal {
    fn start(command: Command) -> Terminal {
        Terminal(Session::start(command, PATIENCE))
    }

    fn ends(&mut self) {
        self.0.expect_end().expect("it ends");
    }

    fn sees(&mut self, text: &str) -> String {
        self.0.expect(text).unwrap_or_else(|missing| panic!("{missing}"))
    }

    fn types(&mut self, keys: &str) {
        self.0.send(keys);
    }

    /// What a line of the shell prints. It has to succeed.
    pub fn run(&mut self, line: &str) -> String {
        self.types(&format!("{line}; echo en''ded: $?\r"));
        let said = self.sees("ended: ");
        let status = self.sees(SHELL);
        assert_eq!(status.lines().next(), Some("0"), "{line}: {said}");
        said
    }

    /// Tab in each shell, with the files where it looks for them.
    fn completes(&mut self, prefix: &str) {
        // bash itself looks for them only where bash-completion is installed.
        self.run(&format!(". {prefix}/share/bash-completion/completions/pmdb"));
        self.types("pmdb hel\twho\r");
        self.sees("Lists every process");
        self.sees(SHELL);
        // Debian's zsh does not look where that of Arch does.
        let start = "fpath+=(/usr/share/zsh/site-functions); autoload -U compinit; compinit -u -D";
        self.run(&format!("zsh -fc '{start}; [ $_comps[pmdb] = _pmdb ]'"));
        let said = self.run("fish -c 'complete --do-complete \"pmdb hel\"'");
        assert!(said.contains("help\t"), "{said:?}");
    }

    /// The prompt of pmdb with its demonstration: Tab, the help, and the end.
    fn uses_the_prompt(&mut self) {
        const PROMPT: &str = "(pmdb) ";
        self.sees(PROMPT);
        self.types("transl\tdemo_buf\t + 0x123\r");
        self.sees("<demo_buffer+291>");
        self.sees(PROMPT);
        self.types("help\r");
        self.sees("apropos WORD");
        self.sees(PROMPT);
        self.types("quit\r");
    }
}
