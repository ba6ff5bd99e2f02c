//! Large folios: mapped whole, page by page, in part; of the sizes in between; of the hugetlb pool; copied in part by a
//! child.

use super::super::Test;
use super::super::puppet::Puppet;
use super::super::states::MADV_COLLAPSE;
use super::super::support::{self, huge_page_bytes, page_bytes, plain_entry, skip};
use super::super::system;
use super::{Truth, of_frame, program, says};

pub const TESTS: &[Test] = &[
    ("answers::huge_pages", huge_pages),
    ("answers::folios_in_between", folios_in_between),
    ("answers::pages_of_the_pool", pages_of_the_pool),
    ("answers::other_pools", other_pools),
    ("answers::markers_of_the_pool", markers_of_the_pool),
    ("answers::an_empty_pool", an_empty_pool),
    ("answers::the_first_page_copied", the_first_page_copied),
];

const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
const THP: u64 = 1 << 22;

/// A huge page, and how many small ones are in it.
pub fn huge_page(puppet: &mut Puppet) -> Result<(u64, u64), String> {
    let bytes = huge_page_bytes().ok_or("no transparent huge pages")?;
    let pages = bytes / page_bytes();
    let memory = puppet.maps("huge", pages);
    puppet.writes(memory, pages);
    _ = puppet.advises(memory, pages, MADV_COLLAPSE);
    if in_huge_pages(puppet.0.pid(), memory) == bytes {
        // Or khugepaged may later collapse what a test gave back of it. The huge page stays.
        puppet.advises(memory, pages, libc::MADV_NOHUGEPAGE).map_err(|errno| format!("errno {errno}"))?;
        Ok((memory, pages))
    } else {
        Err("the kernel gave no huge page".into())
    }
}

/// How many bytes of the region at `start` huge entries map, as smaps has it.
pub fn in_huge_pages(pid: u32, start: u64) -> u64 {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("its smaps");
    let inside = |line: &&str| {
        let (range, _) = line.split_once(' ').unwrap_or((line, ""));
        range.split_once('-').is_some_and(|(low, high)| {
            let [low, high] = [low, high].map(|end| u64::from_str_radix(end, 16));
            low.is_ok_and(|low| low <= start) && high.is_ok_and(|high| start < high)
        })
    };
    let mut lines = smaps.lines().skip_while(|line| !inside(line));
    let line = lines.find(|line| line.starts_with("AnonHugePages:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.expect("a size").parse::<u64>().expect("a number") * 1024
}

/// Since Linux 6.10 the kernel gives the flags of a folio's first page for all its pages: they do not tell whether
/// another page is exclusive (PG_anon_exclusive).
fn of_folio(truth: Truth, page: u64) -> Truth {
    match page {
        0 => truth,
        _ if ((5, 19)..(6, 10)).contains(&support::release()) => truth,
        _ => truth.when_written("nothing|reuse|copy"),
    }
}

fn huge_pages() {
    const NAME: &str = "answers::huge_pages";
    let mut puppet = Puppet::start();
    let (memory, pages) = match huge_page(&mut puppet) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    let pid = puppet.0.pid();
    for (page, what) in [(0, "huge page, its first"), (7, "huge page, its eighth"), (pages - 1, "huge page, its last")]
    {
        let mut truth = Truth::present(what, "anonymous").huge();
        // Only a scan tells whether one PMD maps the page: then the mark of the first page (PG_anon_exclusive) counts,
        // otherwise its own.
        if !support::has_scan() && page != 0 {
            truth = truth.when_written("nothing|reuse|copy");
        }
        says(pid, memory + page * page_bytes(), &truth);
    }
    // Other permissions for one page: small entries map the folio, which stays whole.
    let read_only = libc::PROT_READ as u64;
    puppet.does("protect", &[memory + 7 * page_bytes(), page_bytes(), read_only]);
    puppet.does("protect", &[memory + 7 * page_bytes(), page_bytes(), 3]);
    assert_eq!(in_huge_pages(pid, memory), 0);
    let small = Truth::present("huge page, mapped page by page", "anonymous");
    let said = says(pid, memory + 8 * page_bytes(), &of_folio(small, 8));
    let flags = said.translation["flags_raw"].as_str();
    assert!(flags.is_some() || !support::is_root(), "{}", said.translation);
    if let Some(flags) = flags {
        let flags = u64::from_str_radix(&flags[2..], 16).expect("a number");
        assert_eq!(flags & (TAIL | THP), TAIL | THP, "the folio is whole");
    }
    puppet.unmaps(memory + 9 * page_bytes(), 1);
    puppet.advises(memory + 11 * page_bytes(), 1, libc::MADV_DONTNEED).expect("to drop a page");
    let rest = Truth::present("huge page, partly unmapped: the rest", "anonymous");
    says(pid, memory + 10 * page_bytes(), &of_folio(rest, 10));
    let gone = Truth::absent("huge page, partly unmapped: the hole", "unmapped", "no_region");
    says(pid, memory + 9 * page_bytes(), &gone);
    let dropped = Truth::absent("huge page, one page dropped", "untouched", "zeros");
    says(pid, memory + 11 * page_bytes(), &dropped.of_kind("anonymous"));
}

fn folios_in_between() {
    const NAME: &str = "answers::folios_in_between";
    let sizes = [
        (16, "folio of 16 KiB"),
        (32, "folio of 32 KiB"),
        (64, "folio of 64 KiB"),
        (128, "folio of 128 KiB"),
        (256, "folio of 256 KiB"),
        (512, "folio of 512 KiB"),
        (1024, "folio of 1 MiB"),
    ];
    for (kib, what) in sizes {
        let wanted = match system::folios(kib) {
            Ok(wanted) => wanted,
            Err(reason) => {
                skip(NAME, &reason);
                continue;
            }
        };
        let mut puppet = Puppet::start();
        let pages = kib * 1024 / page_bytes();
        let memory = puppet.maps("huge", pages);
        // One page is touched, and the whole folio comes.
        puppet.asks("store", &[memory + page_bytes()]);
        let pid = puppet.0.pid();
        let entry = |page: u64| plain_entry(pid, memory + page * page_bytes()).expect("an entry");
        let frame = |page: u64| entry(page) & ((1 << 55) - 1);
        let flags = |page: u64| of_frame("kpageflags", frame(page)).expect("flags, for root");
        if entry(0) >> 63 == 0 {
            skip(NAME, &format!("{what}: the kernel gave small pages"));
            continue;
        }
        for page in 0..pages {
            assert_eq!(frame(page), frame(0) + page, "{what}");
            let part = if page == 0 { HEAD } else { TAIL };
            assert_eq!(flags(page) & (HEAD | TAIL | THP), part | THP, "{what}");
        }
        for page in [0, 1, pages - 1] {
            let truth = of_folio(Truth::present(what, "anonymous"), page);
            let said = says(pid, memory + page * page_bytes(), &truth);
            assert!(said.text.contains("thp"), "{}", said.text);
        }
        let line = format!("walk {memory:#x},+{:#x}", kib * 1024);
        let rows = program(&[], pid, true, &[line]);
        let order = u64::from(pages.trailing_zeros());
        for row in rows.lines().filter(|row| row.contains("\"pages\",")) {
            let row: serde_json::Value = serde_json::from_str(row).expect("an object");
            assert_eq!(row["order"], order, "{what}: {row}");
        }
        drop(puppet);
        drop(wanted);
    }
}

fn pages_of_the_pool() {
    const NAME: &str = "answers::pages_of_the_pool";
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = support::pool_page_bytes();
    hugetlb(NAME, bytes, ["hugetlb, its first page", "hugetlb, its fourth page", "hugetlb, untouched"]);
    drop(pool);
}

/// 1 GiB, and what else the machine has: 64 KiB, 32 MiB and others.
fn other_pools() {
    const NAME: &str = "answers::other_pools";
    let pools = std::fs::read_dir("/sys/kernel/mm/hugepages");
    let sizes = pools.into_iter().flatten().flatten().filter_map(|pool| {
        let name = pool.file_name().into_string().ok()?;
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some(kib << 10)
    });
    let mut sizes: Vec<u64> = sizes.filter(|&size| size != support::pool_page_bytes()).collect();
    sizes.sort_unstable();
    if sizes.is_empty() {
        return skip(NAME, "one size of huge pages or none");
    }
    for bytes in sizes {
        let name = format!("{NAME} ({} KiB)", bytes >> 10);
        let pool = match system::pool_page(bytes) {
            Ok(pool) => pool,
            Err(reason) => {
                skip(&name, &reason);
                continue;
            }
        };
        hugetlb(&name, bytes, ["its first page", "its fourth page", "untouched"]);
        drop(pool);
    }
}

/// One page of the pool: before it is touched, and then at two places of it.
fn hugetlb(name: &str, bytes: u64, [first, later, untouched]: [&'static str; 3]) {
    let mut puppet = Puppet::start();
    let size = bytes.trailing_zeros().into();
    let Ok(memory) = u64::try_from(puppet.asks("hugetlb", &[bytes, size])) else {
        return skip(name, "the pool gave no page");
    };
    let pid = puppet.0.pid();
    // If the only page of a pool is reserved, it is not visible that it is for this mapping.
    let effect = if bytes == support::pool_page_bytes() { "zeros" } else { "zeros|pool_empty" };
    let empty = Truth::absent(untouched, "untouched", effect).of_kind("hugetlb");
    says(pid, memory, &empty);
    puppet.writes(memory, 1);
    // After a read the first write faults. Only the target knows whether it read or wrote.
    let present = |what| Truth::present(what, "hugetlb").huge().when_written("nothing|reuse");
    says(pid, memory, &present(first));
    let said = says(pid, memory + 3 * page_bytes() + 9, &present(later));
    assert_eq!(said.translation["exclusive"], true);
    // The pool's pages are not among those that `where pmd_mapped` matches, and the function agrees with the field.
    let mapped = program(&[], pid, true, &[format!("print pmd_mapped({memory:#x})")]);
    let mapped: serde_json::Value = serde_json::from_str(&mapped).expect("an object");
    assert_eq!(mapped["value"], "0", "{mapped}");
    // An Rss or Pss of 0 would be wrong: the kernel does not count the pool there.
    let region = program(&[], pid, true, &[format!("region {memory:#x}")]);
    let region: serde_json::Value = serde_json::from_str(&region).expect("an object");
    assert!(region["pss"].is_null(), "{region}");
    assert!(region["why"]["pss"].is_string(), "{region}");
    sums_leave_out_the_pool(pid, memory, bytes);
}

/// The kernel counts the hugetlb pool neither in Rss nor in Pss, so no sum with those names has it.
fn sums_leave_out_the_pool(pid: u32, memory: u64, bytes: u64) {
    let range = format!("{memory:#x}, +{bytes}");
    for function in ["rss", "pss", "uss"] {
        let refused = program(&[], pid, true, &[format!("print {function}({range})")]);
        assert!(refused.contains("leave out the hugetlb pool"), "{refused}");
    }
    let line = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its sums");
        let sums = text.lines().filter_map(|line| line.strip_prefix(name)?.split_whitespace().nth(1));
        sums.map(|kib| kib.parse::<u64>().expect("a number") << 10).sum::<u64>()
    };
    let lines = [format!("print huge({range})"), "print rss(all)".to_owned(), "ps by uss".to_owned()];
    // Processes that begin or end change which pages of libraries are private.
    let private = || line("Private_Clean") + line("Private_Dirty");
    let mut tries = 0..20;
    let memory = loop {
        let before = private();
        let told = program(&[], pid, true, &lines);
        let mut rows = told.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("an object"));
        let mut value = || rows.next().expect("a value")["value"].as_str().and_then(|value| value.parse::<u64>().ok());
        assert_eq!(value(), Some(bytes), "{told}");
        assert_eq!(value(), Some(line("Rss")), "{told}");
        let row = rows.find(|row| row["pid"] == pid).expect("the process");
        let after = private();
        if row["memory"]["uss"].as_u64().is_some_and(|uss| (before.min(after)..=before.max(after)).contains(&uss)) {
            break row["memory"].clone();
        }
        assert!(tries.next().is_some(), "{before} B are private: {row}");
    };
    assert!(
        memory["uss"].as_u64() <= memory["pss"].as_u64() && memory["pss"].as_u64() <= memory["rss"].as_u64(),
        "{memory}"
    );
    assert!(memory["huge"].as_u64() >= Some(bytes), "{memory}");
}

/// Only a scan shows hugetlb entries that are not present: the page map has at most bit 57.
fn markers_of_the_pool() {
    const NAME: &str = "answers::markers_of_the_pool";
    let pool = match system::huge_pages() {
        Ok(pool) => pool,
        Err(reason) => return skip(NAME, &reason),
    };
    let bytes = support::pool_page_bytes();
    for (verb, what, state, effect, certain) in [
        ("uffd", "hugetlb, UFFDIO_WRITEPROTECT, unpopulated", "uffd_wp", "zeros", true),
        ("poison", "hugetlb, UFFDIO_POISON", "poisoned", "poisoned|wait|hwpoison", false),
    ] {
        let mut puppet = Puppet::start();
        let Ok(memory) = u64::try_from(puppet.asks("hugetlb", &[bytes])) else {
            return skip(NAME, "the pool gave no page");
        };
        let answer = puppet.asks(verb, &[memory, bytes, bytes]);
        if answer < 0 {
            skip(NAME, &format!("{what}: error {}", -answer));
            continue;
        }
        let pid = puppet.0.pid();
        assert_eq!(plain_entry(pid, memory).expect("an entry") >> 62, 0, "{what}");
        let truth = Truth::absent(what, state, effect).of_kind("hugetlb");
        for page in [0, 3] {
            let said = says(pid, memory + page * page_bytes(), &truth);
            assert_eq!(said.translation["why"]["state"].is_null(), certain, "{}", said.text);
        }
        // Without a scan nothing about it is certain.
        let lines = ["set scan off".to_owned(), format!("translate {memory:#x}")];
        let said = program(&[], pid, true, &lines);
        assert_eq!(said.contains("\"state\":\"uffd_wp\""), certain, "{said}");
        assert_eq!(said.contains("only PAGEMAP_SCAN (Linux 6.7) shows"), !certain, "{said}");
    }
    drop(pool);
}

/// Memory of a pool without a free page, and without a reservation: the access is SIGBUS.
fn an_empty_pool() {
    const NAME: &str = "answers::an_empty_pool";
    const SIZE: u64 = 1 << 30;
    let pages = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    // Another test fills it for a while.
    let _machine = system::as_it_is();
    match std::fs::read_to_string(pages) {
        Ok(pages) if pages.trim() == "0" => {}
        Ok(_) => return skip(NAME, "the pool of 1 GiB is in use"),
        Err(_) => return skip(NAME, "no pool of 1 GiB"),
    }
    let mut puppet = Puppet::start();
    let numbers = [SIZE, SIZE.trailing_zeros().into(), libc::MAP_NORESERVE as u64];
    let Ok(memory) = u64::try_from(puppet.asks("hugetlb", &numbers)) else {
        return skip(NAME, "no memory of a pool without pages");
    };
    let truth = Truth::absent("1 GiB, of an empty pool", "untouched", "pool_empty|zeros");
    says(puppet.0.pid(), memory, &truth.of_kind("hugetlb"));
}

/// What the kernel says about the first page of a huge page must not be reported for all of it.
fn the_first_page_copied() {
    const NAME: &str = "answers::the_first_page_copied";
    let mut puppet = Puppet::start();
    let (memory, pages) = match huge_page(&mut puppet) {
        Ok(found) => found,
        Err(reason) => return skip(NAME, &reason),
    };
    puppet.does("fork", &[memory, 1]);
    let pid = puppet.0.pid();
    let line = format!("walk {memory:#x},+{:#x}", pages * page_bytes());
    let before: Vec<Option<u64>> = (0..pages)
        .map(|page| {
            let entry = plain_entry(pid, memory + page * page_bytes()).expect("an entry");
            let frame = entry & ((1 << 55) - 1);
            of_frame("kpagecount", frame).filter(|_| frame != 0)
        })
        .collect();
    let rows = program(&[], pid, true, &[line]);
    let mut counts = Vec::new();
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("an object");
        if row["type"] == "pages" {
            let inside = row["pages"].as_u64().expect("how many");
            counts.extend((0..inside).map(|_| row["map_count"].as_u64()));
        }
    }
    assert_eq!(counts, before, "page by page");
    // Bit 56 is that of the first page there: without map counts it is unknown for all pages, with a scan and without.
    let place = format!("{memory:#x},+{:#x}", pages * page_bytes());
    let without: &[&str] =
        if support::is_root() { &["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"] } else { &[] };
    for scan in ["on", "off"] {
        let line = |line: String| [format!("set scan {scan}"), line];
        let said = |page: u64| {
            let line = line(format!("translate {:#x}", memory + page * page_bytes()));
            let said = program(without, pid, true, &line);
            let mut objects =
                said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
            let translation = objects.find(|object| object["type"] == "translation");
            translation.unwrap_or_else(|| panic!("{said}"))
        };
        for page in [0, 5] {
            let said = said(page);
            assert!(said["map_count"].is_null(), "{said}");
            assert!(said["exclusive"].is_null(), "scan {scan}: {said}");
            assert!(said["why"]["exclusive"].is_string(), "{said}");
        }
        let kept = program(without, pid, true, &line(format!("walk {place} where exclusive")));
        assert!(!kept.contains("\"pages\","), "scan {scan}: {kept}");
    }
    if !support::is_root() {
        return skip(NAME, "only root sees map counts");
    }
    assert_eq!((before[0], before[1]), (Some(1), Some(2)));
    let shared = Truth::present("huge page, the child copied the first: another", "anonymous");
    let said = says(pid, memory + page_bytes(), &shared.huge().when_written("copy"));
    assert_eq!(said.translation["exclusive"], false);
    let line = format!("translate {memory:#x}");
    let said = program(&[], pid, true, &[line]);
    let said: serde_json::Value = serde_json::from_str(said.trim()).expect("an object");
    assert_eq!((&said["exclusive"], &said["map_count"]), (&true.into(), &1.into()));
}
