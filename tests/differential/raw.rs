//! The kernel's own data: the words that `words` has read, smaps, and zoneinfo.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The words of one page; `None`: the kernel has none, or does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words {
    pub entry: Option<u64>,
    pub flags: Option<u64>,
    pub count: Option<u64>,
    pub cgroup: Option<u64>,
}

impl Words {
    pub fn is_present(&self) -> bool {
        self.bit(63)
    }

    pub fn bit(&self, bit: u32) -> bool {
        self.entry.is_some_and(|entry| entry >> bit & 1 == 1)
    }

    /// The frame, of a page that is present.
    pub fn frame(&self) -> Option<u64> {
        let entry = self.entry.filter(|_| self.is_present())?;
        Some(entry & ((1 << 55) - 1)).filter(|&frame| frame != 0)
    }
}

/// A process at one moment.
pub struct Snapshot {
    /// Bytes in a page.
    pub page: u64,
    /// By address.
    pub pages: BTreeMap<u64, Words>,
    /// The fields of each region in bytes, by the address it starts at.
    pub smaps: BTreeMap<u64, BTreeMap<String, u64>>,
    /// First frame, frames and node of each zone that has memory.
    pub zones: Vec<(u64, u64, u64)>,
}

impl Snapshot {
    pub fn take(program: &Path, pid: u32) -> Self {
        let smaps = std::fs::read(format!("/proc/{pid}/smaps")).expect("its smaps");
        let output = Command::new(program).arg(pid.to_string()).output().expect("words runs");
        assert!(output.status.success(), "words fails: {output:?}");
        let lines = String::from_utf8(output.stdout).expect("plain text");
        Snapshot {
            page: rustix::param::page_size() as u64,
            pages: lines.lines().map(page).collect(),
            smaps: regions(&String::from_utf8_lossy(&smaps)),
            zones: zones(&std::fs::read_to_string("/proc/zoneinfo").expect("zoneinfo")),
        }
    }

    /// Addresses all over the process: the ends of each region, and a regular sample of the others.
    pub fn sample(&self) -> Vec<u64> {
        let step = (self.pages.len() / 200).max(1);
        let spread = self.pages.keys().copied().step_by(step);
        let mut sample: Vec<u64> = spread.chain(self.smaps.keys().copied()).collect();
        sample.sort_unstable();
        sample.dedup();
        sample
    }

    /// The node of a frame; `None` where no zone or zones of several nodes span it.
    pub fn node(&self, frame: u64) -> Option<u64> {
        let holds = |&&(first, frames, _): &&(u64, u64, u64)| (first..first + frames).contains(&frame);
        let mut nodes: Vec<u64> = self.zones.iter().filter(holds).map(|zone| zone.2).collect();
        nodes.dedup();
        match nodes[..] {
            [node] => Some(node),
            _ => None,
        }
    }
}

fn page(line: &str) -> (u64, Words) {
    let mut fields = line.split(' ').map(|field| u64::from_str_radix(field, 16).ok());
    let mut next = || fields.next().expect("a field");
    let address = next().expect("an address");
    let words = Words { entry: next(), flags: next(), count: next(), cgroup: next() };
    (address, words)
}

fn regions(smaps: &str) -> BTreeMap<u64, BTreeMap<String, u64>> {
    let mut regions = BTreeMap::new();
    let mut start = 0;
    for line in smaps.lines() {
        let mut fields = line.split_whitespace();
        let (Some(first), Some(second)) = (fields.next(), fields.next()) else {
            continue;
        };
        match (first.strip_suffix(':'), second.parse::<u64>()) {
            (Some(name), Ok(kib)) => {
                let region: &mut BTreeMap<String, u64> = regions.entry(start).or_default();
                region.insert(name.to_owned(), kib << 10);
            }
            (None, _) => {
                let digits = first.split('-').next().expect("a range");
                start = u64::from_str_radix(digits, 16).expect("an address");
            }
            _ => {}
        }
    }
    regions
}

fn zones(zoneinfo: &str) -> Vec<(u64, u64, u64)> {
    let mut zones = Vec::new();
    let (mut node, mut spanned) = (0, 0);
    for line in zoneinfo.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| text.trim_end_matches(',').parse::<u64>().expect("a number");
        match fields[..] {
            ["Node", one, "zone", _] => (node, spanned) = (number(one), 0),
            ["spanned", frames] => spanned = number(frames),
            ["start_pfn:", first] if spanned > 0 => zones.push((number(first), spanned, node)),
            _ => {}
        }
    }
    zones
}
