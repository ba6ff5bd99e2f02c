//! Compares the answers with the kernel's words.

use super::answers::{Answers, BYTE, number};
use super::raw::{Snapshot, Words};
use super::subject::{Area, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Flags that depend on the page's place in its folio. A row of several pages leaves them out: they are not the same
/// for all.
const PLACE_IN_FOLIO: u64 = 1 << 15 | 1 << 16;

/// Swap types from here on are the kernel's own: at most 12 of the 32 are, whatever its configuration
/// (include/linux/swap.h).
const FIRST_SPECIAL_TYPE: u64 = 20;

/// The last type is that of markers, from Linux 5.19 on (include/linux/swapops.h).
const MARKER_TYPE: u64 = 31;

/// What was compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    /// A page in a row of `walk`, by its address.
    Page,
    /// A byte that `translate` answered for.
    Address,
    /// The sums of a region, by its first address.
    Region,
    /// The pages in a node.
    Node,
    /// What the subject made, by its first address.
    Area,
}

/// The results: something that agreed in one comparison agrees; something that agreed in none differs.
#[derive(Default)]
pub struct Tally {
    agreed: BTreeSet<(What, u64)>,
    differing: BTreeMap<(What, u64), String>,
}

impl Tally {
    pub fn compare(&mut self, before: &Snapshot, after: &Snapshot, answers: &Answers, subject: &Subject) {
        let is_same = |&(address, words): &(&u64, &Words)| after.pages.get(address) == Some(words);
        let steady = before.pages.iter().filter(is_same);
        let steady: BTreeMap<u64, Words> = steady.map(|(&address, &words)| (address, words)).collect();
        let rows = rows_by_page(answers);
        let page_bytes = before.page;
        for (&address, words) in &steady {
            let differences = match rows.get(&address) {
                Some(&(row, index)) => page(row, index, words),
                None => vec!["is in no row of walk".to_owned()],
            };
            self.note(What::Page, address, differences);
        }
        for record in answers.of_type("translation") {
            let asked = number(record, "address").expect("an address");
            if let Some(words) = steady.get(&(asked - BYTE)) {
                self.note(What::Address, asked, translation(record, words, before));
            }
        }
        for record in answers.of_type("region") {
            let start = number(record, "start").expect("an address");
            let smaps = before.smaps.get(&start);
            if let Some(smaps) = smaps.filter(|_| smaps == after.smaps.get(&start)) {
                let end = number(record, "end").expect("an address");
                let pages = || before.pages.range(start..end).map(|(_, words)| words);
                let special = pages().filter(|words| is_special(words));
                let special = special.count() as u64 * page_bytes;
                let mut differences = region(record, smaps, special);
                if !differences.is_empty() {
                    differences.push(format!("{}: {}", record["name"], summary(pages())));
                }
                self.note(What::Region, start, differences);
            }
        }
        let frames = |snapshot: &Snapshot| -> Vec<_> { snapshot.pages.values().map(Words::frame).collect() };
        if frames(before) == frames(after) {
            self.nodes(before, answers);
        }
        for area in &subject.areas {
            self.note(What::Area, area.start, states(area, &rows));
        }
    }

    /// The sums of `walk … by node`, where the node of each frame is certain.
    fn nodes(&mut self, before: &Snapshot, answers: &Answers) {
        let present = before.pages.values().filter(|words| words.is_present());
        let nodes = present.map(|words| words.frame().and_then(|frame| before.node(frame)));
        let Some(nodes) = nodes.collect::<Option<Vec<u64>>>() else {
            return;
        };
        for record in answers.of_type("group") {
            let said = record["pages"].as_u64();
            let Some(node) = record["key"].as_str().and_then(|key| key.parse().ok()) else {
                self.note(What::Node, u64::MAX, vec![format!("a row of no node: {record}")]);
                continue;
            };
            let pages = nodes.iter().filter(|&&one| one == node).count() as u64;
            let differs = said != Some(pages);
            let differences = differs.then(|| format!("{said:?} pages in it, {pages} by zoneinfo"));
            self.note(What::Node, node, differences.into_iter().collect());
        }
    }

    fn note(&mut self, what: What, key: u64, differences: Vec<String>) {
        let key = (what, key);
        if differences.is_empty() {
            self.differing.remove(&key);
            self.agreed.insert(key);
        } else if !self.agreed.contains(&key) {
            self.differing.insert(key, differences.join("; "));
        }
    }

    pub fn differs(&self) -> bool {
        !self.differing.is_empty()
    }

    /// Pages that agreed.
    pub fn pages(&self) -> usize {
        self.agreed_of(What::Page)
    }

    fn agreed_of(&self, what: What) -> usize {
        self.agreed.iter().filter(|(one, _)| *one == what).count()
    }

    /// The first differences.
    pub fn differences(&self) -> String {
        let lines = self.differing.iter().take(40);
        let lines = lines.map(|((what, key), words)| format!("{what:?} {key:#x}: {words}\n"));
        lines.collect()
    }

    /// A line for each kind of comparison: its name, how many there were, how many of them differ.
    pub fn print(&self) {
        let kinds = [
            ("states", What::Area),
            ("pages", What::Page),
            ("addresses", What::Address),
            ("regions", What::Region),
            ("nodes", What::Node),
        ];
        for (name, what) in kinds {
            let differing = self.differing.keys().filter(|(one, _)| *one == what).count();
            println!("compared {name} {} {differing}", self.agreed_of(what) + differing);
        }
    }
}

/// The row of `walk` that each page is in, and which of its pages it is.
fn rows_by_page(answers: &Answers) -> BTreeMap<u64, (&Value, u64)> {
    let mut rows = BTreeMap::new();
    for row in answers.of_type("pages") {
        let field = |name| number(row, name).expect("a number");
        let (start, end, pages) = (field("start"), field("end"), field("pages"));
        let page = (end - start) / pages;
        for index in 0..pages {
            let twice = rows.insert(start + index * page, (row, index));
            assert!(twice.is_none(), "two rows hold {:#x}", start + index * page);
        }
    }
    rows
}

/// A difference in words, if there is one.
fn differ<T: PartialEq + std::fmt::Debug>(name: &str, said: T, is: T) -> Option<String> {
    (said != is).then(|| format!("{name}: {said:x?} in pmdb, {is:x?} in the kernel"))
}

fn page(row: &Value, index: u64, words: &Words) -> Vec<String> {
    let several = row["pages"].as_u64() != Some(1);
    let hidden = if several { PLACE_IN_FOLIO } else { 0 };
    let repeats = row["frames"].as_u64().unwrap_or(u64::MAX);
    let frame = row["pfn"].as_u64().map(|first| first + index % repeats);
    let state = row["state"].as_str().unwrap_or("");
    let is_shared_memory = row["kind"] == "shmem";
    [
        differ("frame", frame, words.frame()).filter(|_| !is_of_device(row)),
        flags(row, words, hidden),
        map_count(row, words),
        (!state_fits(state, is_shared_memory, words)).then(|| format!("{state}: the entry is {:x?}", words.entry)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The vdso is mapped by every process, also by pmdb and this test.
fn is_everybodys(record: &Value) -> bool {
    record["kind"] == "vdso"
}

/// Whether a page has the frame of a device, which the page map does not show: only the page tables do.
fn is_of_device(record: &Value) -> bool {
    record["state"] == "pfn_mapped" && !record["pfn"].is_null()
}

/// Compares the flags, except the `hidden` ones. A process that exits marks the pages that it mapped as referenced, and
/// reclaim clears that again (zap_pte_range in mm/memory.c): on the vdso, which all map, that bit keeps changing.
fn flags(record: &Value, words: &Words, hidden: u64) -> Option<String> {
    const REFERENCED: u64 = 1 << 2;
    let passing = if is_everybodys(record) { REFERENCED } else { 0 };
    let visible = |flags: u64| flags & !hidden & !passing;
    let differs = differ("flags", number(record, "flags_raw").map(visible), words.flags.map(visible));
    differs.filter(|_| !is_of_device(record))
}

fn map_count(record: &Value, words: &Words) -> Option<String> {
    let differs = differ("map count", record["map_count"].as_u64(), words.count);
    differs.filter(|_| !is_everybodys(record) && !is_of_device(record))
}

/// Whether the entry is compatible with the state. For pages that are neither present nor in swap it depends on the
/// kernel: there the subject's own word is compared.
fn state_fits(state: &str, is_shared_memory: bool, words: &Words) -> bool {
    let Some(entry) = words.entry else {
        return state == "outside";
    };
    if words.is_present() {
        return state == "present";
    }
    if !words.bit(62) {
        // The page map has nothing for shared memory in swap: smaps counts it.
        return is_shared_memory && state == "swapped"
            || ["untouched", "pfn_mapped", "poisoned", "uffd_wp", "guard"].contains(&state);
    }
    let markers = entry >> 5 & ((1 << 50) - 1);
    match entry & 31 {
        0..FIRST_SPECIAL_TYPE => state == "swapped",
        MARKER_TYPE if markers & 4 != 0 => state == "guard",
        MARKER_TYPE if markers & 2 != 0 => state == "poisoned",
        MARKER_TYPE if markers & 1 != 0 => state == "uffd_wp",
        _ => ["migrating", "hwpoison", "device"].contains(&state),
    }
}

fn translation(record: &Value, words: &Words, before: &Snapshot) -> Vec<String> {
    let frame = words.frame();
    // No word shows those of a device: they come from its file, or from the page tables.
    let (shown, physical) = match (record["state"].as_str(), number(record, "physical")) {
        (Some("pfn_mapped"), physical) => {
            let of_tables = physical.filter(|_| !record["pfn"].is_null());
            (of_tables.map(|physical| physical / before.page), physical)
        }
        _ => (frame, frame.map(|frame| frame * before.page + BYTE)),
    };
    let bit = |name: &str, bit: u32| match record[name].as_bool() {
        Some(said) if words.entry.is_some() => differ(name, said, words.bit(bit)),
        _ => None,
    };
    let node = frame.and_then(|frame| before.node(frame));
    [
        differ("page size", record["page_size"].as_u64(), Some(before.page)),
        differ("entry", number(record, "entry"), words.entry),
        differ("frame", record["pfn"].as_u64(), shown),
        differ("physical", number(record, "physical"), physical),
        flags(record, words, 0),
        map_count(record, words),
        differ("cgroup", record["cgroup"].as_u64(), words.cgroup).filter(|_| !is_of_device(record)),
        node.and_then(|node| differ("node", record["node"].as_u64(), Some(node))),
        bit("soft_dirty", 55),
        bit("uffd_wp", 57),
        bit("file_mapped", 61),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The number of pages for each entry (without its frame) and map count.
fn summary<'a>(pages: impl Iterator<Item = &'a Words>) -> String {
    let mut counts = BTreeMap::<String, u64>::new();
    for words in pages {
        let entry = words.entry.map(|entry| if words.is_present() { entry >> 55 << 55 } else { entry });
        let kind = format!("entry {entry:x?}, flags {:x?}, mapped {:?}", words.flags, words.count);
        *counts.entry(kind).or_default() += 1;
    }
    let lines = counts.iter().map(|(kind, count)| format!("\n    {count} pages: {kind}"));
    lines.collect()
}

/// Whether the entry is of a page that is migrating, failed, or in a device. A marker has no page.
fn is_special(words: &Words) -> bool {
    let kind = words.entry.unwrap_or(0) & 31;
    words.bit(62) && !words.is_present() && (FIRST_SPECIAL_TYPE..MARKER_TYPE).contains(&kind)
}

/// The sums of a region. Smaps may count migrating or failed pages as present (`pfn_swap_entry_to_page` in
/// fs/proc/task_mmu.c): at most `special` bytes.
fn region(record: &Value, smaps: &BTreeMap<String, u64>, special: u64) -> Vec<String> {
    let said = |name: &str| record[name].as_u64();
    let resident = said("present").zip(said("zero")).map(|(all, zero)| all - zero);
    let sum = |name, said: Option<u64>, fields: &[&str]| {
        let kernel = fields.iter().filter_map(|name| smaps.get(*name)).sum();
        // Pages that the page map hides are reported as unknown, with the reason. Smaps counts none of them, except
        // shared memory in swap.
        let unknown = said.is_none() && record["why"].as_object().is_some_and(|why| !why.is_empty());
        let fits = unknown && (kernel == 0 || name == "swapped");
        let counted = said.is_some_and(|said| special > 0 && said + special == kernel);
        differ(name, said, Some(kernel)).filter(|_| !fits && !counted)
    };
    [
        sum("shared", said("shared"), &["Shared_Clean", "Shared_Dirty", "Shared_Hugetlb"]),
        sum("private", said("private"), &["Private_Clean", "Private_Dirty", "Private_Hugetlb"]),
        sum("present but for zero pages", resident, &["Rss", "Shared_Hugetlb", "Private_Hugetlb"]),
        sum("swapped", said("swapped"), &["Swap"]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn states(area: &Area, rows: &BTreeMap<u64, (&Value, u64)>) -> Vec<String> {
    let mut pages = 0;
    let mut differences = BTreeSet::new();
    // A row may begin before the area and end after it.
    for (row, _) in rows.range(area.start..).take(area.pages as usize).map(|(_, row)| row) {
        pages += 1;
        let kind = row["kind"].as_str();
        let fits = row["state"] == *area.state && area.kind.as_deref().is_none_or(|one| kind == Some(one));
        if !fits {
            differences.insert(format!("{}: a row of {} {kind:?}", area.name, row["state"]));
        }
    }
    if pages != area.pages {
        differences.insert(format!("{}: {pages} pages", area.name));
    }
    differences.into_iter().collect()
}
