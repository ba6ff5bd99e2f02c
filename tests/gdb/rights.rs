//! gdb of an ordinary user, with a pmdb that has its capabilities.

use crate::capabilities;
use crate::session::{PLUGIN, PMDB, compiled};
use crate::skips::skip;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

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
    fs::copy(PMDB, plain.join("pmdb")).expect("a copy");
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
