//! Which pages were written to since somebody asked the kernel to watch for it.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::support::{page_bytes, skip};
use serde_json::Value;

pub const TESTS: &[Test] = &[("soft_dirty::pages_written_to", pages_written_to)];

fn records(pid: u32, line: String) -> Vec<Value> {
    let json = program(&[], pid, true, &[line]);
    json.lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect()
}

/// New regions have the bits on all of their pages, also on those that are not there.
fn pages_written_to() {
    const NAME: &str = "soft_dirty::pages_written_to";
    const PAGES: u64 = 16;
    const WRITTEN: u64 = 5;
    let mut puppet = Puppet::start();
    let memory = puppet.maps("anonymous", 2 * PAGES);
    puppet.writes(memory, PAGES);
    let pid = puppet.0.pid();
    let range = format!("{memory:#x},+{:#x}", 2 * PAGES * page_bytes());
    let written = || {
        let rows = records(pid, format!("walk {range} where soft_dirty and present"));
        rows.last().expect("a summary")["pages"].as_u64()
    };
    if puppet.0.attach().machine.has_soft_dirty() != Some(true) {
        let said = records(pid, format!("walk {range} where soft_dirty"));
        assert_eq!(said[0]["type"], "error", "{said:?}");
        return skip(NAME, "this kernel does not track soft-dirty pages");
    }
    assert_eq!(written(), Some(PAGES));
    let cleared = std::fs::write(format!("/proc/{pid}/clear_refs"), "4");
    cleared.expect("to clear its soft-dirty bits");
    assert_eq!(written(), Some(0));
    puppet.writes(memory + WRITTEN * page_bytes(), 1);
    puppet.reads(memory, PAGES);
    assert_eq!(written(), Some(1));
    for page in [WRITTEN, WRITTEN + 1] {
        let said = records(
            pid,
            format!("translate {:#x}", memory + page * page_bytes()),
        );
        assert_eq!(said[0]["soft_dirty"], page == WRITTEN, "{said:?}");
    }
}
