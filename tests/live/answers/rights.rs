//! The same pages, asked by who may see less of them.

use super::super::Test;
use super::super::puppet::Puppet;
use super::super::support::{self, page_bytes, skip};
use super::super::target::command_by;
use super::{Truth, says_to};

pub const TESTS: &[Test] = &[
    ("answers::in_a_user_namespace", in_a_user_namespace),
    ("answers::without_rights", without_rights),
];

/// Root there is not root here: frames are hidden, and said to be.
fn in_a_user_namespace() {
    const NAME: &str = "answers::in_a_user_namespace";
    let unshare = ["unshare", "--user", "--map-root-user"];
    let works = std::process::Command::new(unshare[0])
        .args(&unshare[1..])
        .arg("true")
        .status();
    if !works.is_ok_and(|status| status.success()) {
        return skip(NAME, "no user namespaces");
    }
    // Nobody looks into another namespace than the own one or one within it: the puppet is in it too.
    let mut puppet = Puppet::run(&mut command_by(&unshare, "puppet"));
    let memory = puppet.maps("anonymous", 2);
    puppet.writes(memory, 1);
    let pid = puppet.0.pid();
    let number = pid.to_string();
    let enter = [
        "nsenter",
        "--user",
        "--preserve-credentials",
        "--target",
        &number,
    ];
    let truth = Truth::present("written, asked from a user namespace", "anonymous");
    let said = says_to(&enter, pid, memory, &truth);
    hides_frames(&said.translation);
    let untouched = Truth::absent(
        "untouched, asked from a user namespace",
        "untouched",
        "zeros",
    );
    says_to(
        &enter,
        pid,
        memory + page_bytes(),
        &untouched.of_kind("anonymous"),
    );
}

fn hides_frames(translation: &serde_json::Value) {
    assert_eq!(translation["pfn_hidden"], true, "{translation}");
    for hidden in ["pfn", "physical", "flags", "map_count"] {
        assert!(translation[hidden].is_null(), "{translation}");
        assert!(translation["why"][hidden].is_string(), "{translation}");
    }
}

/// Root that lacks the one right that shows frames.
fn without_rights() {
    const NAME: &str = "answers::without_rights";
    if !support::is_root() {
        return skip(NAME, "only root has rights to lose");
    }
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 1);
    puppet.writes(memory, 1);
    let without = [
        "setpriv",
        "--bounding-set=-sys_admin",
        "--inh-caps=-sys_admin",
    ];
    let truth = Truth::present("written, asked without CAP_SYS_ADMIN", "anonymous");
    let said = says_to(&without, puppet.0.pid(), memory, &truth);
    hides_frames(&said.translation);
}
