//! The same work by other programs and libraries.

use super::floor::page_bytes;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The crate `pagemap`: entries of all regions, with flags and map counts, which it reads page by page.
pub fn pagemap(pid: u32) {
    let mut map = pagemap::PageMap::new(pid.into()).expect("a page map");
    for region in map.maps().expect("its regions") {
        // It cannot read the page map of [vsyscall].
        if region.path() != Some("[vsyscall]") {
            black_box(map.pagemap_region(&region.memory_region()).expect("its entries"));
        }
    }
}

/// The crate `procfs`: entries of a range at once, the flags of each frame as it offers them, one by one.
pub fn procfs(pid: u32, (start, len): (u64, u64)) {
    use procfs::process::{PageInfo, Process};
    let process = Process::new(pid as i32).expect("the process");
    let mut map = process.pagemap().expect("its page map");
    let mut flags = procfs::KPageFlags::new().expect("to be root");
    let page = page_bytes();
    let pages = (start / page) as usize..((start + len) / page) as usize;
    for entry in map.get_range_info(pages).expect("entries") {
        if let PageInfo::MemoryPage(entry) = entry {
            let frame = entry.get_page_frame_number();
            black_box(flags.get_info(frame).expect("flags"));
        }
    }
}

/// The kernel's own `page-types`, if it is on PATH.
pub fn page_types() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&path).map(|folder| folder.join("page-types"));
    programs.find(|program| program.is_file())
}

/// Its summary of a process.
pub fn run_page_types(program: &PathBuf, pid: u32) {
    let mut command = Command::new(program);
    command.arg("-p").arg(pid.to_string()).stdout(Stdio::null());
    assert!(command.status().expect("to start it").success());
}

/// All symbols of a file by `nm`, if it is installed.
pub fn nm(path: &str) {
    let mut command = Command::new("nm");
    command.arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    _ = command.status();
}
