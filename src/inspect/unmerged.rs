//! Why the kernel keeps neighbouring mappings apart (`can_vma_merge_before` in mm/vma.c, mm/mmap.c before Linux 6.12).

use super::Result;
use crate::budget::Budget;
use crate::kernel::Region;
use crate::kernel::smaps::{Smaps, VM_FLAGS};
use crate::process::Process;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// In what two neighbours differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Difference {
    /// There are free addresses between them.
    Gap,
    /// The four letters of maps.
    Protection,
    /// What they map.
    File,
    /// Where in the file they begin.
    Offset,
    /// The names that prctl(2) gave them.
    Name,
    /// A flag of the region, by its code in smaps.
    Flag(&'static str),
    /// A flag that pmdb does not have.
    UnknownFlag,
    /// The protection key.
    ProtectionKey,
    /// The memory policy.
    Policy,
    /// In nothing, but no two mappings of this kind are merged.
    Kind,
    /// In nothing that `/proc` shows.
    Hidden,
    /// In nothing that maps shows. Such pairs are too few to be looked up.
    Few,
    /// One of them changed before smaps was read.
    Changed,
}

impl Difference {
    /// A word for programs.
    pub fn word(self) -> String {
        let word = match self {
            Difference::Flag(code) => return format!("flag {code}"),
            Difference::Gap => "gap",
            Difference::Protection => "protection",
            Difference::File => "file",
            Difference::Offset => "offset",
            Difference::Name => "name",
            Difference::UnknownFlag => "unknown flag",
            Difference::ProtectionKey => "protection key",
            Difference::Policy => "policy",
            Difference::Kind => "kind",
            Difference::Hidden => "hidden",
            Difference::Few => "few",
            Difference::Changed => "changed",
        };
        word.to_owned()
    }
}

/// Flags that the kernel ignores when it merges (`VM_IGNORE_MERGE`): `gu` has always been one of them.
const IGNORED: [&str; 2] = ["sd", "gu"];
/// Flags with which nothing is merged (`VM_SPECIAL`).
const SPECIAL: [&str; 4] = ["io", "pf", "mm", "de"];

/// The part of all pairs that is worth reading smaps.
const LEAST_PART: usize = 100;

/// In what the neighbours among `regions` differ, and how many pairs differ so; the most frequent first. Each pair is
/// compared by maps. Those that are alike there are compared by smaps, and then by numa_maps, which take long: not for
/// less than a hundredth of all.
///
/// # Errors
/// Something cannot be read, or it is out of budget.
pub fn differences<'r>(process: &Process, regions: &[&'r Region], budget: &mut Budget) -> Result<Vec<Unmerged<'r>>> {
    let mut counted = Counted::default();
    let mut alike = Vec::new();
    for (&one, &next) in regions.iter().zip(regions.iter().skip(1)) {
        budget.spend(1)?;
        match by_maps(one, next) {
            found if found.is_empty() => alike.push((one, next)),
            found => counted.add(found, (one, next)),
        }
    }
    if alike.len() < regions.len() / LEAST_PART {
        alike.into_iter().for_each(|pair| counted.add(vec![Difference::Few], pair));
    } else if !alike.is_empty() {
        let smaps = process.smaps(budget)?;
        let mut rest = Vec::new();
        for (one, next) in alike {
            let of = |region: &Region| Smaps::of_region(&smaps, region.range);
            let Some((first, second)) = of(one).zip(of(next)) else {
                counted.add(vec![Difference::Changed], (one, next));
                continue;
            };
            match by_smaps(first, second) {
                found if !found.is_empty() => counted.add(found, (one, next)),
                _ if is_special(first) || one.is_segment() => counted.add(vec![Difference::Kind], (one, next)),
                _ => rest.push((one, next)),
            }
        }
        if !rest.is_empty() {
            // There are none where the kernel has no NUMA.
            let policies = process.policies().unwrap_or_default();
            let policy = |region: &Region| policies.get(&region.range.start());
            for (one, next) in rest {
                let found = if policy(one) != policy(next) { Difference::Policy } else { Difference::Hidden };
                counted.add(vec![found], (one, next));
            }
        }
    }
    let mut counted: Vec<_> = counted.0.into_values().collect();
    counted.sort_by_cached_key(|one| Reverse(one.pairs));
    Ok(counted)
}

/// Neighbours that differ in the same.
#[derive(Debug)]
pub struct Unmerged<'r> {
    /// In what.
    pub differ_in: Vec<Difference>,
    /// The number of pairs.
    pub pairs: u64,
    /// The first pair.
    pub first: (&'r Region, &'r Region),
}

#[derive(Default)]
struct Counted<'r>(BTreeMap<Vec<Difference>, Unmerged<'r>>);

impl<'r> Counted<'r> {
    fn add(&mut self, differ_in: Vec<Difference>, pair: (&'r Region, &'r Region)) {
        let new = || Unmerged { differ_in: differ_in.clone(), pairs: 0, first: pair };
        self.0.entry(differ_in.clone()).or_insert_with(new).pairs += 1;
    }
}

fn by_maps(one: &Region, next: &Region) -> Vec<Difference> {
    if one.range.end() != next.range.start() {
        return vec![Difference::Gap];
    }
    let is_same_file = (one.device, one.inode) == (next.device, next.inode);
    let goes_on = one.inode == 0 || one.offset.checked_add(one.range.len()) == Some(next.offset);
    // Names such as [heap] are made for maps.
    let given = |region: &Region| Some(region.name.clone()).filter(|name| name.as_bytes().starts_with(b"[anon"));
    let found = [
        (one.permissions != next.permissions, Difference::Protection),
        (!is_same_file, Difference::File),
        (is_same_file && !goes_on, Difference::Offset),
        (given(one) != given(next), Difference::Name),
    ];
    found.into_iter().filter_map(|(differs, how)| differs.then_some(how)).collect()
}

fn by_smaps(one: &Smaps, next: &Smaps) -> Vec<Difference> {
    let has = |smaps: &Smaps, code: &str| smaps.vm_flags.iter().any(|flag| flag == code);
    let known = VM_FLAGS.iter().map(|flag| flag.code).filter(|code| !IGNORED.contains(code));
    let differing = known.filter(|code| has(one, code) != has(next, code)).map(Difference::Flag);
    let mut found: Vec<_> = differing.collect();
    let unknown = |smaps: &Smaps| -> Vec<String> {
        let is_unknown = |code: &&String| !VM_FLAGS.iter().any(|flag| flag.code == *code);
        smaps.vm_flags.iter().filter(is_unknown).cloned().collect()
    };
    if unknown(one) != unknown(next) {
        found.push(Difference::UnknownFlag);
    }
    if one.protection_key != next.protection_key {
        found.push(Difference::ProtectionKey);
    }
    found
}

fn is_special(smaps: &Smaps) -> bool {
    smaps.vm_flags.iter().any(|flag| SPECIAL.contains(&flag.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{maps, smaps};
    use crate::process::fake::World;

    /// What differs between each two regions of a text.
    fn of_maps(text: &str) -> Vec<Vec<Difference>> {
        let regions = maps::parse(text.as_bytes()).expect("regions");
        regions.windows(2).map(|pair| by_maps(&pair[0], &pair[1])).collect()
    }

    #[test]
    fn maps_show_most_differences() {
        use Difference::{File, Gap, Name, Offset, Protection};
        let text = "\
1000-2000 rw-p 00000000 00:00 0 
2000-3000 r--p 00000000 00:00 0 
3000-4000 r--p 00000000 00:00 0 [anon:a]
4000-5000 rw-p 00000000 00:00 0 [anon:b]
5000-6000 rw-p 00000000 00:00 0 [anon:b]
6000-7000 rw-p 00000000 fe:00 7 /f
7000-8000 rw-p 00001000 fe:00 7 /f
8000-9000 rw-p 00001000 fe:00 7 /f
a000-b000 rw-p 00000000 00:00 0 
b000-c000 rw-p 00000000 00:00 0 [heap]
";
        let expected: [&[Difference]; 9] =
            [&[Protection], &[Name], &[Protection, Name], &[], &[File, Name], &[], &[Offset], &[Gap], &[]];
        assert_eq!(of_maps(text), expected);
    }

    /// smaps of very many mappings takes long.
    #[test]
    fn few_alike_pairs_are_not_looked_up() {
        let difference = |count: u64| {
            let line = |index: u64| {
                let (start, letter) =
                    (0x1000 * (index + 1), if index > 0 && index.is_multiple_of(2) { '-' } else { 'r' });
                format!("{start:x}-{:x} {letter}w-p 00000000 00:00 0 \n", start + 0x1000)
            };
            let text: String = (0..count).map(line).collect();
            let regions = maps::parse(text.as_bytes()).expect("regions");
            let (_, target) = World::new(regions.clone()).target();
            let regions: Vec<&Region> = regions.iter().collect();
            let found = differences(&target.process, &regions, &mut Budget::unlimited());
            found.map(|found| found.into_iter().map(|one| (one.differ_in[0], one.pairs)).collect::<Vec<_>>())
        };
        let found = difference(300).expect("maps alone");
        assert_eq!(found, [(Difference::Protection, 298), (Difference::Few, 1)]);
        let found = difference(50).unwrap_or_default();
        assert!(!found.iter().any(|(how, _)| *how == Difference::Few), "{found:?}");
    }

    #[test]
    fn smaps_show_flags_and_keys() {
        let text = "\
1000-2000 rw-p 00000000 00:00 0 
ProtectionKey:         0
VmFlags: rd wr mr mw me ac sd
2000-3000 rw-p 00000000 00:00 0 
ProtectionKey:         0
VmFlags: rd wr mr mw me ac gu
3000-4000 rw-p 00000000 00:00 0 
ProtectionKey:         0
VmFlags: rd wr mr mw me ac dc
4000-5000 rw-p 00000000 00:00 0 
ProtectionKey:         3
VmFlags: rd wr mr mw me ac zz
5000-6000 rw-p 00000000 00:00 0 
ProtectionKey:         3
VmFlags: rd wr mr mw me ac zz
";
        let all: Vec<Smaps> = smaps::regions(text.as_bytes()).collect::<std::result::Result<_, _>>().expect("smaps");
        let found: Vec<_> = all.windows(2).map(|pair| by_smaps(&pair[0], &pair[1])).collect();
        use Difference::{Flag, ProtectionKey, UnknownFlag};
        let expected: [&[Difference]; 4] = [&[], &[Flag("dc")], &[Flag("dc"), UnknownFlag, ProtectionKey], &[]];
        assert_eq!(found, expected);
    }
}
