//! gdb of an ordinary user, with a pmdb that has its capabilities.

use super::session::{PLUGIN, PMDB, compiled};
use crate::capabilities;
use crate::executable;
use crate::skips::skip;
use crate::standing::is_root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

#[test]
fn what_does_not_show_without_rights_is_said_and_the_page_of_zeros_shows() {
    let test = "what_does_not_show_without_rights";
    let Some(program) = compiled(test, "zeros.c") else {
        return;
    };
    let folder = program.folder.path();
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let (pmdb, plugin) = (folder.join("pmdb"), folder.join("plugin.py"));
    executable::copy(PMDB, &pmdb);
    fs::copy(PLUGIN, &plugin).expect("a copy");
    let mut gdb = program.gdb();
    gdb.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    if is_root() {
        gdb.uid(capabilities::USER).gid(capabilities::USER);
    }
    let lines = ["break ready", "run", "delete", "pmdb track *pool@5", "pmdb until-change *pool@5"];
    let answers = program.answers_from(gdb, &plugin.display().to_string(), &lines);
    for answer in &answers[3..] {
        assert!(answer.contains("pmdb: not visible here: moved: "), "{answers:#?}");
        assert!(answer.contains("pmdb: not visible here: copied on write: only copies of file pages"), "{answers:#?}");
    }
    if !answers[3].contains("of the zero page show") {
        return skip(test, "this kernel has no scan, which shows the zero page without rights");
    }
    assert!(answers[4].contains("copied on write      1 page"), "{answers:#?}");
    // The other view of it, at the same stop.
    assert_eq!(answers[4].matches("pmdb: copied on write").count(), 2, "{answers:#?}");
}

#[test]
fn frames_are_shown_to_a_user_whose_pmdb_has_capabilities() {
    let test = "frames_are_shown_to_a_user";
    let Some(program) = compiled(test, "pages.c") else {
        return;
    };
    let folder = program.folder.path();
    if let Some(why) = capabilities::are_refused(folder) {
        return skip(test, why);
    }
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let (plain, able, plugin) = (folder.join("plain"), folder.join("able"), folder.join("plugin.py"));
    for path in [&plain, &able] {
        fs::create_dir(path).expect("a folder");
    }
    executable::copy(PMDB, plain.join("pmdb"));
    capabilities::copy(PMDB, &able.join("pmdb"), false);
    fs::copy(PLUGIN, &plugin).expect("a copy");
    let answer = |beside: &std::path::Path| {
        let mut gdb = program.gdb();
        gdb.env("PATH", format!("{}:/usr/bin:/bin", beside.display())).uid(capabilities::USER).gid(capabilities::USER);
        let lines = ["break turn if number == 7", "run", "print $_pfn(pool) != 0", "pmdb walk *pool@16 by state"];
        program.answers_from(gdb, &plugin.display().to_string(), &lines)
    };
    let hidden = answer(&plain);
    assert!(hidden[2].contains("hidden"), "{hidden:#?}");
    let shown = answer(&able);
    for answers in [&hidden, &shown] {
        assert!(answers[3].contains("7 present, 9 untouched"), "{answers:#?}");
    }
    if shown[2].contains("hidden even from root") {
        return skip(test, "frames are hidden even from root here");
    }
    assert!(shown[2].contains("= 1"), "{shown:#?}");
}
