//! A source without names: those of files, processes, cgroups and memory are replaced by numbers. Equal names have
//! equal numbers, so that relations remain visible.
//!
//! The decoders above read the numbers as names, and use them in questions. Names that the kernel gives remain:
//! `[heap]`, `/dev/zero`.

use crate::access::{Error, Identity, ReadAt, Result};
use crate::budget::Budget;
use crate::kernel::maps::DELETED;
use crate::kernel::swaps::zram_number;
use crate::kernel::text::{unescape_newline, unescape_octal};
use crate::kernel::{Name, Region, VirtualAddress};
use crate::source::{
    Asked, Backing, BackingRun, Cgroup, CgroupQuery, File, FileLocation, GroupText, Held, KernelRecords, List, Listed,
    Named, Place, Probe, Question, Reply, Source, add_piece,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names that the kernel gives to mappings without a file.
const OF_THE_KERNEL: [&[u8]; 5] = [b"/dev/zero", b"/dev/mem", b"/anon_hugepage", b"/[aio]", b"/secretmem"];
/// Directories whose files show the kind of a mapping.
const TELLING: [&[u8]; 5] = [b"/dev/shm/", b"/dev/", b"/sys/devices/", b"/sys/", b"/proc/"];
/// Mount options that decide the kind of pages.
const OPTIONS: [&[u8]; 9] =
    [b"rw", b"ro", b"size", b"nr_inodes", b"inode64", b"inode32", b"huge", b"pagesize", b"memory"];

/// The numbers that replace names.
#[derive(Default)]
struct Names {
    numbers: HashMap<Vec<u8>, usize>,
    names: Vec<Vec<u8>>,
    /// The names of regions, by their replacements.
    regions: HashMap<Vec<u8>, Vec<u8>>,
}

impl Names {
    /// Returns the number that replaces a name, from 1 on.
    fn number(&mut self, name: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_vec());
        self.numbers.insert(name.to_vec(), self.names.len());
        self.names.len()
    }

    /// Replaces each part of a path by a number, so that files of one directory remain so.
    fn path(&mut self, path: &[u8]) -> Vec<u8> {
        let (path, mark) = path.strip_suffix(DELETED).map_or((path, &[][..]), |path| (path, DELETED));
        let kept = TELLING.into_iter().find(|kept| path.starts_with(kept)).unwrap_or_default();
        let is_kept = |part: &[u8]| {
            let is_resource = kept == b"/sys/devices/" && part.starts_with(b"resource");
            matches!(part, b"" | b"." | b"..") || is_resource
        };
        let parts = path.get(kept.len()..).unwrap_or_default().split(|&byte| byte == b'/');
        let parts =
            parts.map(|part| if is_kept(part) { part.to_vec() } else { self.number(part).to_string().into_bytes() });
        let parts: Vec<Vec<u8>> = parts.collect();
        [kept, &parts.join(&b'/'), mark].concat()
    }

    /// Returns the original of a replaced path.
    fn original_path(&self, path: &[u8]) -> Vec<u8> {
        let original = |part: &[u8]| {
            let number = std::str::from_utf8(part).ok().and_then(|part| part.parse::<usize>().ok());
            let name = number.and_then(|number| self.names.get(number.checked_sub(1)?));
            name.map_or_else(|| part.to_vec(), Clone::clone)
        };
        path.split(|&byte| byte == b'/').map(original).collect::<Vec<_>>().join(&b'/')
    }

    /// Replaces the name of a region, or the target of a link.
    fn region(&mut self, name: &[u8]) -> Vec<u8> {
        let (bare, mark) = name.strip_suffix(DELETED).map_or((name, &[][..]), |bare| (bare, DELETED));
        let mut within = |before: &[u8], after: &[u8]| {
            let inner = bare.strip_prefix(before)?.strip_suffix(after)?;
            Some([before, self.number(inner).to_string().as_bytes(), after, mark].concat())
        };
        let numbered = within(b"[anon:", b"]").or_else(|| within(b"[anon_shmem:", b"]"));
        let numbered = numbered.or_else(|| within(b"/memfd:", b"")).or_else(|| within(b"/dmabuf:", b""));
        let numbered = numbered.or_else(|| within(b"socket:[", b"]"));
        if let Some(numbered) = numbered {
            return numbered;
        }
        if let Some(key) = bare.strip_prefix(b"/SYSV") {
            return [format!("/SYSV{:08x}", self.number(key)).as_bytes(), mark].concat();
        }
        match bare.first() {
            None | Some(b'[') => name.to_vec(),
            _ if OF_THE_KERNEL.contains(&bare) || bare.starts_with(b"anon_inode:") => name.to_vec(),
            Some(b'/') => self.path(name),
            Some(_) => self.number(bare).to_string().into_bytes(),
        }
    }

    /// Replaces names in the lines of maps or smaps.
    fn regions(&mut self, text: &[u8]) -> Vec<u8> {
        let mut numbered = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let (line, end) = line.strip_suffix(b"\n").map_or((line, &[][..]), |line| (line, b"\n"));
            let is_region = line.first().is_some_and(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
            if !is_region {
                numbered.extend([line, end].concat());
                continue;
            }
            let blanks = line.iter().enumerate().filter(|(_, byte)| **byte == b' ');
            let fifth = blanks.map(|(at, _)| at + 1).nth(4);
            let (fields, name) = line.split_at(fifth.unwrap_or(line.len()));
            let padding = name.len() - name.trim_ascii_start().len();
            let (padding, name) = name.split_at(padding);
            let name = unescape_newline(name);
            let replaced = self.region(&name);
            let bare =
                |name: &[u8]| name.strip_suffix(DELETED).filter(|_| name.starts_with(b"/")).unwrap_or(name).to_vec();
            self.regions.insert(bare(&replaced), bare(&name));
            // A file name may end like the mark for deleted files.
            self.regions.insert(replaced.clone(), name.to_vec());
            numbered.extend([fields, padding, &replaced, end].concat());
        }
        numbered
    }

    /// Replaces a part of each line that has it.
    fn lines(&mut self, text: &[u8], replaced: impl Fn(&mut Self, &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
        let lines = text.split(|&byte| byte == b'\n');
        let lines = lines.map(|line| replaced(self, line).unwrap_or_else(|| line.to_vec()));
        lines.collect::<Vec<_>>().join(&b'\n')
    }

    /// Replaces the name of the process or thread in the text of status.
    fn status(&mut self, text: &[u8]) -> Vec<u8> {
        self.lines(text, |names, line| {
            let name = line.strip_prefix(b"Name:\t")?;
            Some([b"Name:\t", names.number(name).to_string().as_bytes()].concat())
        })
    }

    /// Replaces the name in the text of stat, where it is in parentheses and may contain some.
    fn stat(&mut self, text: &[u8]) -> Vec<u8> {
        let start = text.iter().position(|&byte| byte == b'(').map(|at| at + 1);
        let end = text.iter().rposition(|&byte| byte == b')');
        let (Some(start), Some(end)) = (start, end) else {
            return Vec::new();
        };
        let name = text.get(start..end).unwrap_or_default();
        let number = self.number(name).to_string();
        [text.get(..start).unwrap_or_default(), number.as_bytes(), text.get(end..).unwrap_or_default()].concat()
    }

    /// Replaces the path of the group in each line of the text of cgroup.
    fn cgroup(&mut self, text: &[u8]) -> Vec<u8> {
        self.lines(text, |names, line| {
            let mut fields = line.splitn(3, |&byte| byte == b':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let controllers = match controllers.strip_prefix(b"name=") {
                Some(name) => format!("name={}", names.number(name)).into_bytes(),
                None => controllers.to_vec(),
            };
            Some([number, b":", &controllers, b":", &names.path(path)].concat())
        })
    }

    /// Replaces directories, sources and options in the text of mountinfo.
    fn mounts(&mut self, text: &[u8]) -> Vec<u8> {
        self.lines(text, |names, line| {
            let mut fields: Vec<Vec<u8>> = line.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect();
            let end = fields.iter().position(|field| field == b"-")?;
            for field in fields.get_mut(3..5)? {
                *field = names.path(&unescape_octal(field));
            }
            let source = fields.get_mut(end + 2)?;
            *source = names.number(source).to_string().into_bytes();
            for place in [5, end + 3] {
                let options = fields.get_mut(place)?;
                let is_kept = |option: &&[u8]| {
                    let name = option.split(|&byte| byte == b'=').next().unwrap_or_default();
                    OPTIONS.contains(&name)
                };
                let kept: Vec<&[u8]> = options.split(|&byte| byte == b',').filter(is_kept).collect();
                *options = if kept.is_empty() { b"rw".to_vec() } else { kept.join(&b',') };
            }
            Some(fields.join(&b' '))
        })
    }

    /// Replaces the file or device of each area in the text of swaps.
    fn swaps(&mut self, text: &[u8]) -> Vec<u8> {
        self.lines(text, |names, line| {
            let end = line.iter().position(u8::is_ascii_whitespace)?;
            let (path, rest) = line.split_at(end);
            let is_named = path.starts_with(b"/") && zram_number(path).is_none();
            is_named.then(|| [&names.path(path)[..], rest].concat())
        })
    }

    /// Replaces the names in a text by numbers.
    fn replaced(&mut self, named: Named, text: Vec<u8>) -> Vec<u8> {
        match named {
            Named::Nothing => text,
            Named::Stat => self.stat(&text),
            Named::Status => self.status(&text),
            Named::Regions => self.regions(&text),
            Named::Cgroups => self.cgroup(&text),
            Named::Mounts => self.mounts(&text),
            Named::Link => self.region(&text),
            Named::Swaps => self.swaps(&text),
            Named::Policies => policies(&text),
            Named::Blanked | Named::LeftOut => Vec::new(),
        }
    }

    fn renamed(&mut self, one: Listed) -> Listed {
        Listed {
            stat: self.stat(&one.stat),
            status: self.status(&one.status),
            program: one.program.map(|program| self.region(&program)),
            ..one
        }
    }
}

/// A source that returns the answers of another without names.
pub struct Nameless {
    source: Arc<dyn Source>,
    names: Arc<Mutex<Names>>,
    /// The text of maps that is being read.
    maps: Mutex<Vec<u8>>,
}

fn left_out<T>(what: &str) -> Result<T> {
    Err(Error::not_available(format!("{what}: left out of this capture (without names)")))
}

/// Removes the subject from an error, which may be a name.
fn without_subject(error: Error, what: &str) -> Error {
    match error {
        Error::Gone { .. } => Error::gone(format!("{what}: the process has exited")),
        Error::NotPermitted { remedy, .. } => Error::not_permitted(format!("{what}: permission denied"), remedy),
        Error::Io { error, .. } => Error::io(what, error),
        Error::OutOfBudget(_) => error,
        _ => Error::not_available(format!("{what} is not known")),
    }
}

impl Nameless {
    /// Wraps a source.
    pub fn over(source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(Nameless { source, names: Arc::default(), maps: Mutex::default() })
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the name of a process by its number.
    fn numbered(&self, identity: Identity) -> Identity {
        let number = self.names().number(identity.name.as_bytes()).to_string();
        Identity { name: Name::new(number.into_bytes()), ..identity }
    }

    /// Returns the region with its original name.
    fn original(&self, region: &Region) -> Region {
        let name = self.names().regions.get(region.name.as_bytes()).cloned();
        Region { name: name.map_or_else(|| region.name.clone(), Name::new), ..region.clone() }
    }

    /// Reads the whole text of maps.
    fn whole_maps(&self) -> Result<Vec<u8>> {
        const ROOM: usize = 1 << 20;
        let mut text = Vec::new();
        loop {
            text.reserve(ROOM);
            if self.source.maps(text.len() as u64, &mut text)? == 0 {
                return Ok(text);
            }
        }
    }

    fn text(&self, file: File, budget: &mut Budget) -> Result<Vec<u8>> {
        let text = self.source.get(file, budget).map_err(|error| match error {
            Error::Gone { .. } | Error::Malformed(_) => without_subject(error, file.what()),
            error => error,
        })?;
        Ok(self.names().replaced(file.class().named, text))
    }

    fn group_text(&self, asked: GroupText<'_>, budget: &mut Budget) -> Result<Vec<u8>> {
        let path = self.names().original_path(asked.path);
        let text = self.source.get(GroupText { path: &path, ..asked }, budget);
        let text = text.map_err(|error| without_subject(error, "this file of a cgroup"))?;
        Ok(self.names().replaced(asked.file.class().named, text))
    }

    fn groups(&self, which: CgroupQuery<'_>, budget: &mut Budget) -> Result<Vec<Cgroup>> {
        let what = "the hierarchy of cgroups";
        let found = match which {
            CgroupQuery::All => self.source.get(CgroupQuery::All, budget),
            CgroupQuery::At(path) => {
                let path = self.names().original_path(path);
                self.source.get(CgroupQuery::At(&path), budget)
            }
        };
        let mut names = self.names();
        let numbered = |group: Cgroup| Cgroup { path: names.path(&group.path), ..group };
        Ok(found.map_err(|error| without_subject(error, what))?.into_iter().map(numbered).collect())
    }

    fn backing(&self, asked: Backing<'_>, budget: &mut Budget) -> Result<Vec<BackingRun>> {
        let what = "the page cache of this region";
        let runs = self.source.get(Backing { region: &self.original(asked.region), ..asked }, budget);
        let scrub =
            |run: BackingRun| BackingRun { content: run.content.map_err(|error| without_subject(error, what)), ..run };
        runs.map(|runs| runs.into_iter().map(scrub).collect()).map_err(|error| without_subject(error, what))
    }

    fn probe(&self, probe: Probe<'_>, budget: &mut Budget) -> Result<Vec<u64>> {
        match probe {
            // The path consists of numbers. Only the mark after the original path is ever queried.
            Probe::IsNamed(region, path) if path == [region.name.as_bytes(), DELETED].concat() => {
                let original = self.original(region);
                let path = [original.name.as_bytes(), DELETED].concat();
                let answer = self.source.get(Probe::IsNamed(&original, &path), budget);
                answer.map_err(|error| without_subject(error, "whether this file was deleted"))
            }
            Probe::IsNamed(..) => left_out("the path of this file"),
            Probe::Filesystem(..) | Probe::OwnFilesystem(..) => left_out("the path of this filesystem"),
            Probe::MappedFile(region) => {
                let answer = self.source.get(Probe::MappedFile(&self.original(region)), budget);
                answer.map_err(|error| without_subject(error, "the file of this region"))
            }
            Probe::PageBytes
            | Probe::LittleEndian
            | Probe::Machine
            | Probe::TicksPerSecond
            | Probe::OwnEntry
            | Probe::OwnFlags
            | Probe::FrameRight
            | Probe::User
            | Probe::OwnNumber
            | Probe::SharedMemory
            | Probe::Pools
            | Probe::Compare(..)
            | Probe::CompareFiles(..)
            | Probe::Follow(_)
            | Probe::FollowOwn(_)
            | Probe::Descriptor(..)
            | Probe::DescriptorMount(..)
            | Probe::DescriptorCache(..) => {
                self.source.get(probe, budget).map_err(|error| without_subject(error, "this probe of the kernel"))
            }
        }
    }
}

/// Returns the addresses and policies of numa_maps, without the names of files and the counts.
fn policies(text: &[u8]) -> Vec<u8> {
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let first_two = lines.map(|line| line.splitn(3, |&byte| byte == b' ').take(2).collect::<Vec<_>>().join(&b' '));
    first_two.flat_map(|line| [line, b"\n".to_vec()].concat()).collect()
}

impl Source for Nameless {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn identity(&self) -> Identity {
        self.numbered(self.source.identity())
    }

    fn ask(&self, question: Question<'_>, budget: &mut Budget) -> Result<Reply> {
        match question {
            Question::Text(file) if file.class().named == Named::LeftOut => left_out(file.what()),
            _ if question.class().named == Named::LeftOut => question.unanswered(),
            Question::Text(file) => file.reply(self.text(file, budget)),
            Question::GroupText(asked) => asked.reply(self.group_text(asked, budget)),
            Question::Groups(which) => which.reply(self.groups(which, budget)),
            // The text of maps contains the mappings, and words about the heap contain no names.
            Question::Mapping(_) | Question::FileMappings(_) | Question::Notes(_) | Question::HeapWords(_) => {
                question.unanswered()
            }
            Question::Backing(asked) => asked.reply(self.backing(asked, budget)),
            Question::Probe(probe) => probe.reply(self.probe(probe, budget)),
            Question::Rights(_) | Question::Records(_) => self.source.ask(question, budget),
        }
    }

    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        if offset == 0 {
            let text = self.whole_maps()?;
            let text = self.names().regions(&text);
            *self.maps.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        let text = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(add_piece(&text, offset, into))
    }

    // The records lead to names of files and processes.
    fn kernel_records(&self) -> Result<&dyn KernelRecords> {
        left_out("the kernel's own records")
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        if which.class().named == Named::LeftOut {
            return left_out(which.what());
        }
        let listed = self.source.list(which).map_err(|error| without_subject(error, "the list"))?;
        let mut names = self.names();
        Ok(listed.into_iter().map(|one| names.renamed(one)).collect())
    }

    fn open(&self, pid: u32, held: &Held) -> Result<Arc<dyn Source>> {
        let source = self.source.open(pid, held).map_err(|error| without_subject(error, &format!("process {pid}")))?;
        Ok(Arc::new(Nameless { source, names: Arc::clone(&self.names), maps: Mutex::default() }))
    }

    // Files contain names and build-ids.
    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        match place {
            FileLocation::Region(_) => left_out("names and symbols"),
            FileLocation::Path(_) | FileLocation::OwnPath(_) | FileLocation::Trusted(..) | FileLocation::OwnVdso(_) => {
                Ok(None)
            }
        }
    }

    fn hold(&self, region: &Region) -> Held {
        self.source.hold(&self.original(region))
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        let Place::PageCache(region) = place else {
            return self.source.bytes(place, address, into);
        };
        let cache = self.source.bytes(Place::PageCache(&self.original(region)), address, into);
        cache.map_err(|error| without_subject(error, "the page cache of this region"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_still_does() {
        let mut names = Names::default();
        let text = b"1000-2000 r-xp 00000000 08:01 77                         /opt/secret/a b\n\
            2000-3000 r--p 00001000 08:01 77                         /opt/secret/a b (deleted)\n\
            3000-4000 rw-p 00000000 00:00 0 \n\
            4000-5000 rw-p 00000000 00:00 0                          [heap]\n\
            5000-6000 rw-p 00000000 00:00 0                          [anon:secret]\n\
            6000-7000 rw-s 00000000 00:01 9                          /memfd:secret (deleted)\n\
            7000-8000 rw-s 00000000 00:01 9                          /SYSV00c0ffee (deleted)\n\
            8000-9000 rw-s 00000000 00:05 9                          /dev/shm/secret\n\
            9000-a000 rw-s 00000000 00:05 9                          /dev/zero (deleted)\n\
            a000-b000 r--p 00000000 08:01 78                         /opt/secret/other\n\
            Size:                  4 kB\nVmFlags: rd wr sh \n";
        let numbered = String::from_utf8(names.regions(text)).expect("text");
        let names_of = numbered.lines().filter_map(|line| line.splitn(6, ' ').nth(5).filter(|_| line.contains('-')));
        let found: Vec<&str> = names_of.map(str::trim).filter(|name| !name.is_empty()).collect();
        let expected = [
            "/1/2/3",
            "/1/2/3 (deleted)",
            "[heap]",
            "[anon:2]",
            "/memfd:2 (deleted)",
            "/SYSV00000004 (deleted)",
            "/dev/shm/2",
            "/dev/zero (deleted)",
            "/1/2/5",
        ];
        assert_eq!(found, expected, "{numbered}");
        assert!(numbered.contains("3000-4000 rw-p 00000000 00:00 0 \n4000"), "{numbered}");
        assert!(numbered.ends_with("Size:                  4 kB\nVmFlags: rd wr sh \n"), "{numbered}");
        assert_eq!(names.regions[&b"/1/2/3"[..]], b"/opt/secret/a b");
        assert_eq!(names.original_path(b"/2/3"), b"/secret/a b");
    }

    #[test]
    fn texts_keep_their_form() {
        let mut names = Names::default();
        assert_eq!(names.stat(b"7 (a) (b) S 1 2"), b"7 (1) S 1 2");
        assert_eq!(names.status(b"Name:\ta) (b\nUmask:\t0022\n"), b"Name:\t1\nUmask:\t0022\n");
        assert_eq!(names.cgroup(b"0::/\n1:name=x:/a/../b (deleted)\n"), b"0::/\n1:name=2:/3/../4 (deleted)\n");
        let mounts = b"36 35 98:0 /a /b rw,noatime shared:1 - overlay host:/x rw,lowerdir=/l,size=4k\n";
        assert_eq!(names.mounts(mounts), b"36 35 98:0 /3 /4 rw shared:1 - overlay 5 rw,size=4k\n");
        let swaps = b"Filename Type\n/a/b                 file  100 0 -2\n";
        assert_eq!(names.swaps(swaps), b"Filename Type\n/3/4                 file  100 0 -2\n");
    }

    /// Texts and groups are replaced here by the class of their question. An answer of numbers has no names in it.
    #[test]
    fn what_is_named_is_replaced_or_left_out() {
        let all = Question::classes();
        assert!(all.len() > 80 && all.iter().any(|(words, _)| words == "text setting thp-enabled"), "{all:?}");
        for (words, class) in all {
            let is_replaced = ["text", "cgroup-file", "cgroups"].iter().any(|begins| words.starts_with(begins));
            let is_left_out = matches!(class.named, Named::LeftOut);
            assert!(class.named == Named::Nothing || is_replaced || is_left_out, "{words}");
        }
    }
}
