//! File capabilities: held back until something under `/proc` is opened, and never used for the user's own files.

use crate::capabilities;
use crate::run::{Home, PMDB, Run};
use crate::skips::skip;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn frame_is_shown(run: &Run) -> bool {
    run.status == Some(0) && run.objects().iter().any(|object| object["pfn"].is_number())
}

/// Every file of `/proc` that pmdb uses is open to it, also those for which the kernel checks the reader: the addresses
/// of the arguments of another user's process (in `stat`) are shown only to those who may inspect that process.
fn assert_all_is_possible(run: &Run) {
    run.is_fine();
    let objects = run.objects();
    let of_type = |kind: &str| objects.iter().find(|object| object["type"] == kind);
    let capabilities = of_type("capabilities").expect("capabilities");
    let names =
        ["page_map", "other_users", "frame_numbers", "kpageflags", "kpagecount", "iomem", "map_files", "memory"];
    for capability in capabilities["capabilities"].as_array().expect("a list") {
        let name = capability["name"].as_str().expect("a name");
        assert!(capability["available"] == true || !names.contains(&name), "{capability}");
    }
    let process = of_type("process").expect("a process");
    let program = std::env::args().next().expect("this program");
    let line = process["command_line"].as_str().expect("its arguments");
    assert!(line.starts_with(&program), "{line}");
}

#[test]
fn file_capabilities_show_frames_and_open_no_file_of_the_user() {
    let home = Home::new();
    if let Some(why) = capabilities::are_refused(&home.path("")) {
        return skip("file_capabilities_show_frames_and_open_no_file_of_the_user", why);
    }
    let pid = std::process::id().to_string();
    let look = ["--json", "-p", &pid, "-batch", "-ex", "walk all where present limit 1"];
    if !frame_is_shown(&home.run(&look)) {
        return skip(
            "file_capabilities_show_frames_and_open_no_file_of_the_user",
            "frames are hidden even from root here",
        );
    }
    home.file("secret", "echo never\n");
    fs::set_permissions(home.path("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::set_permissions(home.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    for effective in [false, true] {
        let program = home.path(if effective { "effective" } else { "permitted" });
        capabilities::copy(PMDB, &program, effective);
        let as_user = |arguments: &[&str]| -> Run {
            let mut command = Command::new(&program);
            command
                .args(arguments)
                .current_dir(home.path(""))
                .uid(capabilities::USER)
                .gid(capabilities::USER)
                .env_clear()
                .stdin(Stdio::null());
            command.output().unwrap().into()
        };
        let run = as_user(&look);
        assert!(frame_is_shown(&run), "effective: {effective}: {run:?}");
        assert_all_is_possible(&as_user(&[
            "--json",
            "-p",
            &pid,
            "-batch",
            "-ex",
            "info capabilities",
            "-ex",
            "info process",
        ]));
        as_user(&["-batch", "-x", "secret"]).failed(1, "cannot read secret: permission denied");
        as_user(&["-batch", "-ex", "show > /etc/pmdb-test"]).failed(1, "permission denied");
        as_user(&["-batch", "-ex", "source secret"]).failed(1, "permission denied");
    }
}

/// Shells start programs with few files allowed; a process may have mapped more libraries than that.
#[test]
fn as_many_files_may_be_open_as_the_hard_limit_grants() {
    let home = Home::new();
    for (limits, expected) in [("-Hn 3000", "3000"), ("-Sn 200", ""), ("-Hn 200", "200")] {
        let script = format!("ulimit -Sn 100 && ulimit {limits} && exec \"$0\" \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &script, PMDB, "-batch", "-ex", "shell ulimit -Sn"])
            .current_dir(home.path("."))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let out = String::from_utf8_lossy(&output.stdout);
        match expected {
            "" => assert!(out.trim().parse().is_ok_and(|limit: u64| limit > 200), "{out}"),
            expected => assert_eq!(out.trim(), expected, "{limits}"),
        }
    }
}
