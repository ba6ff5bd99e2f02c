//! A note that pmdb writes to its core files: the facts about the machine that decide states and kinds of pages.

use super::mounts::Mount;
use super::text::{self, decimal, fields};
use super::{Device, Name};

/// The facts about the machine on which the process of a core file ran.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CoreMachine {
    /// The release of the kernel, as `uname -r` prints it.
    pub release: String,
    /// Bytes that one PMD maps, if known.
    pub huge_page_bytes: Option<u64>,
    /// Pages that KSM has merged, if known.
    pub merged_pages: Option<u64>,
    /// The devices of shared memory that regions map.
    pub shared_memory: Vec<Device>,
    /// The devices of hugetlb pools that regions map.
    pub pools: Vec<Device>,
}

const RELEASE: &str = "release";
const HUGE: &str = "huge-page-bytes";
const MERGED: &str = "merged-pages";
const SHARED: &str = "shared-memory";
const POOL: &str = "pool";

impl CoreMachine {
    /// Returns the text of the note: a name and a value in each line.
    pub fn text(&self) -> String {
        let mut text = format!("{RELEASE} {}\n", self.release);
        let numbers = [(HUGE, self.huge_page_bytes), (MERGED, self.merged_pages)];
        for (name, number) in numbers.into_iter().filter_map(|(name, number)| Some((name, number?))) {
            text += &format!("{name} {number}\n");
        }
        for (name, devices) in [(SHARED, &self.shared_memory), (POOL, &self.pools)] {
            devices.iter().for_each(|device| text += &format!("{name} {}:{}\n", device.major, device.minor));
        }
        text
    }

    /// Returns a tmpfs mount for each device of shared memory: the kind of a file is found by its device number among
    /// mounts.
    pub fn mounts(&self) -> Vec<Mount> {
        let mount = |&device: &Device| Mount {
            id: 1,
            device,
            root: Name::from("/"),
            point: Name::from("/"),
            filesystem: "tmpfs".to_owned(),
            options: "rw".to_owned(),
        };
        self.shared_memory.iter().map(mount).collect()
    }

    /// Parses the text of a note. Lines of another form are skipped: a later version may write them.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut machine = CoreMachine::default();
        for line in text::lines(bytes) {
            let mut parts = fields(line.bytes);
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
                continue;
            };
            let device = || {
                let (major, minor) = text::split_once(value, b':')?;
                Some(Device { major: decimal(major)?, minor: decimal(minor)? })
            };
            match std::str::from_utf8(name) {
                Ok(RELEASE) => machine.release = text::lossy(value),
                Ok(HUGE) => machine.huge_page_bytes = decimal(value),
                Ok(MERGED) => machine.merged_pages = decimal(value),
                Ok(SHARED) => machine.shared_memory.extend(device()),
                Ok(POOL) => machine.pools.extend(device()),
                _ => {}
            }
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_passed_over() {
        let machine = CoreMachine {
            release: "6.12.5-arm64".to_owned(),
            huge_page_bytes: Some(2 << 20),
            merged_pages: Some(0),
            shared_memory: vec![Device { major: 0, minor: 1 }, Device { major: 0, minor: 26 }],
            pools: vec![Device { major: 0, minor: 17 }],
        };
        let text = machine.text();
        assert_eq!(CoreMachine::parse(text.as_bytes()), machine);
        let more = format!("later 1 2\n{text}pool\npool 0\nshared-memory x:1\nmerged-pages -1\n");
        assert_eq!(CoreMachine::parse(more.as_bytes()), CoreMachine { merged_pages: None, ..machine });
        assert_eq!(CoreMachine::parse(b"\xff\xff\n"), CoreMachine::default());
    }
}
