//! Memory of devices: the page map does not show it (VM_PFNMAP), and pmdb must not report it as empty.

use super::Test;
use super::answers::program;
use super::puppet::Puppet;
use super::support::{page_bytes, skip};
use super::tables;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] =
    &[("devices::registers_of_a_device", registers_of_a_device), ("devices::physical_memory", physical_memory)];

/// The memory of QEMU's pci-testdev, which no driver uses: its file, and its bus address.
fn test_device() -> Result<(PathBuf, u64), &'static str> {
    const MISSING: &str = "no PCI device that is there to be tested with (pci-testdev of QEMU)";
    let devices = std::fs::read_dir("/sys/bus/pci/devices").map_err(|_| MISSING)?;
    let is = |path: &Path, name: &str, is: &str| {
        std::fs::read_to_string(path.join(name)).is_ok_and(|text| text.trim() == is)
    };
    let mut devices = devices.flatten().map(|entry| entry.path());
    let device = devices.find(|path| is(path, "vendor", "0x1b36") && is(path, "device", "0x0005")).ok_or(MISSING)?;
    let bars = std::fs::read_to_string(device.join("resource")).map_err(|_| MISSING)?;
    let start = bars.lines().nth(2).and_then(|line| line.split(' ').next());
    let start = start.and_then(|start| u64::from_str_radix(start.strip_prefix("0x")?, 16).ok());
    let start = start.filter(|&start| start != 0).ok_or(MISSING)?;
    Ok((device.join("resource2"), start))
}

fn read_write(path: &Path) -> Option<File> {
    File::options().read(true).write(true).open(path).ok()
}

fn answer(pid: u32, line: String) -> Value {
    let said = program(&[], pid, true, &[line]);
    let last = said.lines().last().expect("an answer");
    serde_json::from_str(last).expect("an object")
}

/// Whether the kernel's own memory shows what the page map hides.
fn are_tables_read(pid: u32) -> bool {
    tables::refusal(&pmdb::Target::attach(pid).expect("the process")).is_none()
}

/// The answer for a byte. The page map shows no frame.
fn translation(pid: u32, address: u64) -> Value {
    let said = answer(pid, format!("translate {address:#x}"));
    assert_eq!(said["state"], "pfn_mapped", "{said}");
    let is_known = are_tables_read(pid);
    assert_eq!(said["pfn"].is_number(), is_known, "{said}");
    assert_eq!(said["why"]["pfn"].is_string(), !is_known, "{said}");
    said
}

/// It is memory of the device, at its bus address.
fn is_on_the_bus(pid: u32, address: u64, physical: u64) {
    let said = translation(pid, address);
    assert_eq!(said["kind"], "device_memory", "{said}");
    assert_eq!(said["physical"], format!("{physical:#x}"), "{said}");
}

/// Where page tables can be read, all commands show the frames that the page map hides.
fn frames_are_shown(pid: u32, memory: u64, physical: u64, pages: u64) {
    if !are_tables_read(pid) {
        return;
    }
    let first = |line: String| -> Value {
        let said = program(&[], pid, true, &[line]);
        serde_json::from_str(said.lines().next().expect("an answer")).expect("an object")
    };
    let frame = physical / page_bytes();
    let run = first(format!("translate {memory:#x},+{pages}p"));
    assert_eq!(
        (&run["pfn"], &run["pages"], &run["state"]),
        (&frame.into(), &pages.into(), &"pfn_mapped".into()),
        "{run}"
    );
    let row = first(format!("walk {memory:#x},+{pages}p"));
    assert_eq!(
        (&row["pfn"], &row["pages"], &row["state"]),
        (&frame.into(), &pages.into(), &"pfn_mapped".into()),
        "{row}"
    );
    let flags = answer(pid, format!("flags {memory:#x}"));
    assert_eq!((&flags["pfn"], &flags["physical"]), (&frame.into(), &format!("{physical:#x}").into()), "{flags}");
    let who = first(format!("who {memory:#x}"));
    let why = who["message"].as_str().unwrap_or_default();
    assert!(why.contains(&format!("{frame:#x} of a device")), "{who}");
}

/// All pages have the addresses of the device, and hidden pages are not counted.
fn nothing_is_claimed(pid: u32, memory: u64, pages: u64) {
    let bytes = pages * page_bytes();
    let walk = answer(pid, format!("walk {memory:#x},+{bytes:#x}"));
    assert_eq!(walk["pfn_mapped"], pages, "{walk}");
    let region = answer(pid, format!("region {memory:#x}"));
    for sum in ["present", "shared", "private", "swapped"] {
        assert!(region[sum].is_null(), "{region}");
        assert!(region["why"][sum].is_string(), "{region}");
    }
}

fn registers_of_a_device() {
    const NAME: &str = "devices::registers_of_a_device";
    let (path, start) = match test_device() {
        Ok(device) => device,
        Err(reason) => return skip(NAME, reason),
    };
    let Some(file) = read_write(&path) else {
        return skip(NAME, "its memory may not be mapped here");
    };
    let mut puppet = Puppet::start();
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    let memory = puppet.maps_file(&file, 2, rw, libc::MAP_SHARED);
    let pid = puppet.0.pid();
    for _ in 0..2 {
        let byte = page_bytes() + 9;
        is_on_the_bus(pid, memory + byte, start + byte);
        nothing_is_claimed(pid, memory, 2);
        frames_are_shown(pid, memory, start, 2);
        puppet.writes(memory, 2);
    }
}

/// A write to a private mapping makes a copy in ordinary memory, which the page map does not show either. So once one
/// page was written, the kind of every page is unknown.
fn physical_memory() {
    const NAME: &str = "devices::physical_memory";
    let (_, start) = match test_device() {
        Ok(device) => device,
        Err(reason) => return skip(NAME, reason),
    };
    let Some(file) = read_write("/dev/mem".as_ref()) else {
        return skip(NAME, "/dev/mem may not be opened here");
    };
    let rw = libc::PROT_READ | libc::PROT_WRITE;
    for flags in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
        let mut puppet = Puppet::start();
        let memory = puppet.maps_file_at(&file, start, 2, rw, flags);
        let pid = puppet.0.pid();
        puppet.reads(memory, 1);
        nothing_is_claimed(pid, memory, 2);
        if flags == libc::MAP_SHARED {
            is_on_the_bus(pid, memory, start);
        }
        puppet.writes(memory, 1);
        if flags == libc::MAP_SHARED {
            is_on_the_bus(pid, memory, start);
            frames_are_shown(pid, memory, start, 2);
            continue;
        }
        for page in [0, 1] {
            let said = translation(pid, memory + page * page_bytes());
            assert!(said["kind"].is_null() && said["why"]["kind"].is_string(), "{said}");
            let device = format!("{:#x}", start + page * page_bytes());
            if are_tables_read(pid) {
                // The first page is a copy.
                assert_eq!(said["physical"] == device, page == 1, "{said}");
            } else {
                assert!(said["physical"].is_null() && said["why"]["physical"].is_string(), "{said}");
            }
        }
    }
}
