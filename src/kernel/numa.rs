//! NUMA nodes: lists of them, and the memory policies in `/proc/PID/numa_maps`.

use super::VirtualAddress;
use super::text;

/// A list of nodes, as the kernel prints it: `0-1,3`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeList(Vec<(u32, u32)>);

impl NodeList {
    /// Decodes a list; `None` if the text is not one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.trim_ascii();
        let parts = bytes.split(|&byte| byte == b',').filter(|_| !bytes.is_empty());
        let ranges = parts.map(|part| {
            let (first, last) = text::split_once(part, b'-').unwrap_or((part, part));
            Some((text::decimal(first)?, text::decimal(last)?))
        });
        ranges.collect::<Option<_>>().map(NodeList)
    }

    /// Returns whether the list contains `node`.
    pub fn contains(&self, node: u32) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&node))
    }
}

/// The nodes that a policy limits memory to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyNodes {
    /// Any node that the process may use: such policies only prefer some nodes.
    Any,
    /// Only these nodes (MPOL_BIND).
    Only(NodeList),
}

/// Returns the memory policy of the region that begins at `start`, by numa_maps; `None` if the region is not listed, or
/// the policy is not understood. The nodes of a relative policy are relative to those that the process may use.
pub fn policy(bytes: &[u8], start: VirtualAddress) -> Option<PolicyNodes> {
    let (_, policy) = policies(bytes).find(|&(at, _)| at == start)?;
    let Some(bound) = policy.strip_prefix(b"bind") else {
        return Some(PolicyNodes::Any);
    };
    let nodes = bound.strip_prefix(b"=static:").or_else(|| bound.strip_prefix(b":"))?;
    NodeList::parse(nodes).map(PolicyNodes::Only)
}

/// Returns the first address of each region and its policy, by numa_maps.
///
/// They are the first two words of a line: `7f0000000000 bind=static:0-1 anon=3 …` (`mpol_to_str` in mm/mempolicy.c).
pub(crate) fn policies(bytes: &[u8]) -> impl Iterator<Item = (VirtualAddress, &[u8])> {
    text::lines(bytes).filter_map(|line| {
        let mut fields = text::fields(line.bytes);
        let at = text::hexadecimal(fields.next()?)?;
        Some((VirtualAddress::new(at), fields.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes() {
        let list = NodeList::parse(b"0-1,3\n").expect("a list");
        assert_eq!([0, 1, 2, 3, 4].map(|node| list.contains(node)), [true, true, false, true, false]);
        assert!(NodeList::parse(b"0-4294967295").is_some_and(|list| list.contains(7)));
        assert_eq!(NodeList::parse(b""), Some(NodeList::default()));
        for wrong in [&b"0-"[..], b"a", b"1,,2", b"4294967296"] {
            assert_eq!(NodeList::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn policies_of_regions() {
        let text = b"00400000 default file=/bin/cat mapped=5 N0=5 kernelpagesize_kB=4\n\
            7f0000000000 bind:1 anon=3 dirty=3 N1=3 kernelpagesize_kB=4\n\
            7f0000200000 bind=static:0,2 huge dirty=1 N0=1 kernelpagesize_kB=2048\n\
            7f0000400000 bind=relative:0 anon=1\n\
            7f0000600000 prefer:1 anon=1\n\
            7f0000800000 interleave:0-1\n\
            7f0000a00000\n";
        let at = |start| policy(text, VirtualAddress::new(start));
        let only = |list: &[u8]| Some(PolicyNodes::Only(NodeList::parse(list).expect("a list")));
        assert_eq!(at(0x40_0000), Some(PolicyNodes::Any));
        assert_eq!(at(0x7f00_0000_0000), only(b"1"));
        assert_eq!(at(0x7f00_0020_0000), only(b"0,2"));
        // Which nodes these are depends on the cpuset.
        assert_eq!(at(0x7f00_0040_0000), None);
        assert_eq!(at(0x7f00_0060_0000), Some(PolicyNodes::Any));
        assert_eq!(at(0x7f00_0080_0000), Some(PolicyNodes::Any));
        assert_eq!(at(0x7f00_00a0_0000), None);
        assert_eq!(at(0x1000), None);
    }
}
