//! The machine: its frames, zones and configuration, against plain reads.

use super::Test;
use super::account::command::{of_type, records};
use super::puppet::{Puppet, answer};
use super::support::{self, Numbers, page_bytes, skip};
use pmdb::kernel::{FrameNumber, PageFlags, WordFile};
use pmdb::process::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;

pub const TESTS: &[Test] = &[
    ("machine::frames_are_what_pread_says", frames_are_what_pread_says),
    ("machine::frames_end_where_memory_does", frames_end_where_memory_does),
    ("machine::zones_hold_every_frame_in_use", zones_hold_every_frame_in_use),
    ("machine::memory_is_where_iomem_says", memory_is_where_iomem_says),
    ("machine::flags_of_private_memory_are_believable", flags_of_private_memory_are_believable),
    ("machine::version_and_configuration", version_and_configuration),
    ("machine::mappings_and_their_limit", mappings_and_their_limit),
    ("machine::why_neighbours_are_not_merged", why_neighbours_are_not_merged),
];

/// Makes a mapping of every second page: by its protection, by its name, by MADV_DONTFORK, or by writing to it before
/// its neighbours are mapped.
pub fn striped(start: usize, pages: usize, way: usize) -> i64 {
    let bytes = page_bytes() as usize;
    for page in (0..pages).step_by(2) {
        let at = (start + page * bytes) as *mut libc::c_void;
        // SAFETY: memory of the test's own, which nothing else uses.
        let result = unsafe {
            match way {
                0 => libc::mprotect(at, bytes, libc::PROT_READ),
                1 => libc::prctl(0x5356_4d41, 0, at, bytes, c"stripe".as_ptr()),
                2 => libc::madvise(at, bytes, libc::MADV_DONTFORK),
                _ => libc::munmap(at, bytes),
            }
        };
        if result != 0 {
            return answer(result.into());
        }
    }
    if way == 3 {
        // What is left is written, piece by piece, before what is between is mapped, and written too.
        for page in (1..pages).step_by(2).chain((0..pages).step_by(2)) {
            let at = (start + page * bytes) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: as above.
            unsafe {
                if page % 2 == 0 && libc::mmap(at, bytes, prot, flags, -1, 0) == libc::MAP_FAILED {
                    return answer(-1);
                }
                // As the rest of it: the verb that mapped it wants no huge pages.
                libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE);
                at.cast::<u8>().write_volatile(1);
            }
        }
    }
    0
}

/// Half of the limit is used: by protection, names, flags, and by what no file shows.
fn why_neighbours_are_not_merged() {
    const NAME: &str = "machine::why_neighbours_are_not_merged";
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("the limit");
    let limit: u64 = limit.trim().parse().expect("a number");
    if limit > 100_000 {
        return skip(NAME, "a process may have very many mappings here");
    }
    let mut puppet = Puppet::start();
    let pages = limit / 6;
    let mut stripe = |way| {
        let memory = puppet.maps("anonymous", pages);
        puppet.asks("striped", &[memory, pages, way])
    };
    assert_eq!(stripe(0), 0);
    // Linux 5.17 and later, if it was built so.
    let has_names = stripe(1) == 0;
    assert_eq!(stripe(2), 0);
    assert_eq!(stripe(3), 0);
    if !has_names {
        assert_eq!(stripe(2), 0);
    }
    puppet.0.stop();
    let all = records(puppet.0.pid(), "info process");
    let process = of_type(&all, "process")[0];
    let pairs = |what: &str| -> u64 {
        let all = process["unmerged"].as_array().expect("a list").iter();
        let named = all.filter(|pairs| pairs["differ_in"] == serde_json::json!([what]));
        named.map(|pairs| pairs["pairs"].as_u64().expect("a number")).sum()
    };
    let near = |what: &str, expected: u64| {
        let counted = pairs(what);
        assert!(counted.abs_diff(expected) < 100, "{what}: {counted} pairs, not {expected}");
    };
    near("protection", pages);
    near("flag dc", if has_names { pages } else { 2 * pages });
    if has_names {
        near("name", pages);
    }
    // A page that is mapped between two others merges with one of them.
    near("hidden", pages / 2);
    let note = records(puppet.0.pid(), "regions limit 1");
    let is_led =
        |record: &&serde_json::Value| record["message"].as_str().is_some_and(|text| text.contains("max_map_count"));
    assert_eq!(note.iter().filter(is_led).count(), 1);
}

/// The mappings of a process, and the limit, as the kernel has them.
fn mappings_and_their_limit() {
    let puppet = Puppet::start();
    puppet.0.stop();
    let pid = puppet.0.pid();
    let mapped = support::plain_maps(pid)
        .into_iter()
        .filter(|(.., rest)| ![&b"[vsyscall]"[..], b"[vectors]"].iter().any(|gate| rest.ends_with(gate)))
        .count();
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("the limit");
    let of = rustix::process::Pid::from_raw(pid.cast_signed());
    let old = rustix::process::getrlimit(rustix::process::Resource::As);
    let new = rustix::process::Rlimit { current: Some(1 << 40), maximum: old.maximum };
    rustix::process::prlimit(of, rustix::process::Resource::As, new).expect("it is ours");
    let records = records(pid, "info process");
    let process = of_type(&records, "process")[0];
    assert_eq!(process["mappings"], mapped);
    let limits = process["limits"].as_array().expect("a list");
    let space = limits.iter().find(|limit| limit["name"] == "RLIMIT_AS").expect("it is set");
    let size = process["memory"].as_array().expect("a list").iter().find(|field| field["name"] == "VmSize");
    assert_eq!((&space["bytes"], &space["used"]), (&(1_u64 << 40).into(), &size.expect("a field")["bytes"]));
    assert_eq!(process["most_mappings"], limit.trim().parse::<u64>().expect("a number"));
}

fn frames_are_what_pread_says() {
    let machine = pmdb::process::machine();
    if !support::is_root() {
        let error = machine.frame_flags(FrameNumber::new(0), &mut [PageFlags::empty()]);
        let error = error.expect_err("it is for root");
        assert!(matches!(error, Error::NotPermitted { .. } | Error::NotAvailable { .. }), "{error:?}");
        return skip("machine::frames_are_what_pread_says", "only root may read /proc/kpageflags");
    }
    let files = ["kpageflags", "kpagecount", "kpagecgroup"];
    let zones = machine.zones().expect("zones");
    let spans: Vec<(u64, u64)> = zones.iter().map(|zone| (zone.start.get(), zone.spanned)).collect();
    let mut numbers = Numbers(1);
    for file in files {
        let Ok(plain) = File::open(format!("/proc/{file}")) else {
            skip(&format!("machine::frames_are_what_pread_says ({file})"), "this kernel has none");
            continue;
        };
        let (mut same, mut all) = (0, 0);
        for _ in 0..200 {
            let (start, spanned) = spans[numbers.below(spans.len() as u64) as usize];
            let first = start + numbers.below(spanned);
            let count = numbers.below(100) as usize + 1;
            let mut flags = vec![PageFlags::empty(); count];
            let mut words = vec![0u64; count];
            let at = FrameNumber::new(first);
            let read = match file {
                "kpageflags" => machine.frame_flags(at, &mut flags),
                "kpagecount" => machine.frame_counts(at, &mut words),
                _ => machine.frame_words(WordFile::FrameCgroups, at, &mut words),
            };
            let read = read.expect("words");
            if file == "kpageflags" {
                words = flags.iter().map(|flags| flags.bits()).collect();
            }
            let mut bytes = vec![0; count * 8];
            let plainly = plain.read_at(&mut bytes, first * 8).expect("a read");
            assert_eq!(read * 8, plainly);
            for (ours, plain) in words[..read].iter().zip(bytes.chunks_exact(8)) {
                all += 1;
                same += usize::from(*ours == u64::from_ne_bytes(plain.try_into().expect("8 bytes")));
            }
        }
        // The machine keeps running: a few frames may have changed between the two reads.
        assert!(all > 2000 && same * 100 >= all * 98, "{file}: {same} of {all}");
    }
}

fn frames_end_where_memory_does() {
    if !support::is_root() {
        return skip("machine::frames_end_where_memory_does", "only root may read /proc/kpageflags");
    }
    let machine = pmdb::process::machine();
    for far in [1 << 50, u64::MAX / 8, u64::MAX] {
        let mut flags = [PageFlags::empty(); 8];
        assert_eq!(machine.frame_flags(FrameNumber::new(far), &mut flags).expect("an end"), 0);
        assert_eq!(machine.frame_counts(FrameNumber::new(far), &mut [0; 8]).expect("an end"), 0);
    }
}

fn zones_hold_every_frame_in_use() {
    if !support::is_root() {
        return skip("machine::zones_hold_every_frame_in_use", "frame numbers are hidden from this user");
    }
    let machine = pmdb::process::machine();
    let zones = machine.zones().expect("zones");
    let own = pmdb::process::Target::attach(std::process::id()).expect("this program");
    let block = std::hint::black_box(vec![1u8; 1 << 20]);
    let pages = block.len() / support::page_bytes() as usize;
    let entries = support::entries(&own.process, block.as_ptr().addr() as u64, pages);
    let frames: Vec<FrameNumber> = entries.iter().filter_map(|entry| entry.frame()).collect();
    assert!(frames.len() > pages / 2, "{} of {pages}", frames.len());
    for frame in frames {
        assert!(zones.of(frame).is_some(), "{frame}");
    }
}

/// The frames of a program lie in System RAM. A user who may not know its addresses gets that reason.
fn memory_is_where_iomem_says() {
    let name = "machine::memory_is_where_iomem_says";
    let machine = pmdb::process::machine();
    let Ok(text) = std::fs::read_to_string("/proc/iomem") else {
        return skip(name, "there is no /proc/iomem here");
    };
    // Rows that lie in no other, decoded without pmdb.
    let rows = text.lines().filter(|line| !line.starts_with(' '));
    let rows: Vec<(u64, u64, &str)> = rows
        .map(|line| {
            let (range, name) = line.split_once(" : ").expect("a row");
            let (first, last) = range.split_once('-').expect("a range");
            let number = |digits| u64::from_str_radix(digits, 16).expect("a number");
            (number(first), number(last), name)
        })
        .collect();
    if rows.iter().all(|&(first, last, _)| (first, last) == (0, 0)) {
        let error = machine.iomem().expect_err("addresses of 0 are no answer");
        assert!(matches!(error, Error::NotPermitted { .. }), "{error:?}");
        return skip(name, "the kernel hides its addresses from this user");
    }
    let iomem = machine.iomem().expect("its rows");
    for &(first, last, name) in &rows {
        for address in [first, last, first + (last - first) / 2] {
            let found = iomem.at(pmdb::kernel::PhysicalAddress::new(address));
            assert_eq!(found[0].name.as_bytes(), name.as_bytes(), "{address:#x}");
        }
    }
    let own = pmdb::process::Target::attach(std::process::id()).expect("this program");
    let block = std::hint::black_box(vec![5u8; 64 << 10]);
    let entry = support::entries(&own.process, block.as_ptr().addr() as u64 + 8192, 1)[0];
    let frame = entry.frame().expect("who sees these addresses sees frames");
    let place = pmdb::inspect::frame_detail(&machine, &Ok(frame)).place;
    assert_eq!(place.iomem.expect("its place"), ["System RAM".into()]);
}

fn version_and_configuration() {
    let machine = pmdb::process::machine();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the release");
    let kernel = machine.kernel();
    assert_eq!(kernel.release, release.trim());
    assert!(release.starts_with(&format!("{}.{}", kernel.number.0, kernel.number.1)));
    machine.swaps().expect("swap areas");
    match machine.kernel_option("CONFIG_MMU") {
        Some(set) => assert!(set),
        None => {
            return skip("machine::version_and_configuration (options)", "the configuration cannot be read");
        }
    }
    assert_eq!(machine.kernel_option("CONFIG_NO_SUCH_THING"), Some(false));
    let exact = if kernel.number < (6, 15) { Some(true) } else { machine.kernel_option("CONFIG_PAGE_MAPCOUNT") };
    assert_eq!(machine.has_exact_map_counts(), exact);
    assert!(machine.swap_layout().options.is_some());
}

/// Fresh private memory is anonymous, exclusive, in swap-backed pages, and merged with nothing.
fn flags_of_private_memory_are_believable() {
    use pmdb::kernel::page_flags::{FlagContext, believable, explain};
    let name = "machine::flags_of_private_memory_are_believable";
    let own = pmdb::process::Target::attach(std::process::id()).expect("this program");
    const INTO: usize = 8192;
    let mut block = std::hint::black_box(vec![3u8; 64 << 10]);
    let mut flags = [PageFlags::empty()];
    // A fork of another test shares the page until it is written again.
    for number in 0..100 {
        std::hint::black_box(&mut block)[INTO] = number;
        let entry = support::entries(&own.process, block.as_ptr().addr() as u64 + INTO as u64, 1)[0];
        let Some(frame) = entry.frame() else {
            return skip(name, "frame numbers are hidden from this user");
        };
        if let Err(error) = own.machine.frame_flags(frame, &mut flags) {
            return skip(name, &error.to_string());
        }
        if flags[0].contains(PageFlags::OWNER_2) {
            break;
        }
    }
    let context = FlagContext { kernel: own.machine.kernel().number, false_flags: own.machine.false_flags() };
    let [flags] = flags;
    let believed = believable(flags, context);
    assert!(believed.contains(PageFlags::ANON | PageFlags::SWAPBACKED | PageFlags::UPTODATE), "{believed:?}");
    assert!(!believed.intersects(PageFlags::KSM | PageFlags::SLAB | PageFlags::BUDDY), "{believed:?}");
    if context.kernel >= (5, 19) {
        assert!(believed.contains(PageFlags::OWNER_2), "{believed:?}");
        let words = explain(PageFlags::OWNER_2, flags, context);
        assert!(words.contains("exclusive to one process"), "{words}");
    }
    let merged = std::fs::read_to_string("/sys/kernel/mm/ksm/pages_shared").unwrap_or_default();
    let is_false = flags.contains(PageFlags::KSM) || merged.trim() == "0";
    let expected = if is_false { PageFlags::KSM } else { PageFlags::empty() };
    assert_eq!(context.false_flags, Some(expected));
}
