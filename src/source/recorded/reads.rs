//! The log entry of each operation: the file, the request, the result, and a command that reads the same.

use crate::access::Result;
use crate::access::log::{LoggedRead, MOST, dump_command};
use crate::kernel::status::ThreadState;
use crate::kernel::{AddressRange, Name, PageSize, TableEntry, VirtualAddress, WordFile};
use crate::records::{FrameRecord, OwnerDetail, RecordParts, RecordedMapper, SwappedRange};
use crate::source::{
    Answer, BackingContent, BackingRun, Categories, Cgroup, CgroupQuery, File, List, Listed, Mapping, PageRegion,
    Probe, Query, Scan,
};

/// The size of a word in bytes, in the files with one for each page.
const WORD: u64 = 8;

/// Returns the command that prints the first of `words` words of a file from `offset` on, one a line.
fn dump(file: &str, offset: u64, words: usize) -> String {
    let length = words.clamp(1, MOST) as u64 * WORD;
    dump_command(file, &format!("{offset:#x}"), &length.to_string())
}

/// Returns the command that prints a file.
fn cat(path: &str) -> String {
    format!("cat {}", in_shell_quotes(path))
}

/// Quotes a path for a shell. Characters that must not reach a terminal are escaped, so that such a path does not work
/// in a shell.
fn in_shell_quotes(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// Returns the result in a few words, or the error.
pub(super) fn result_words<T>(result: &Result<T>, tell: impl FnOnce(&T) -> String) -> String {
    match result {
        Ok(found) => tell(found),
        Err(error) => error.to_string(),
    }
}

/// Formats a number with its noun: `1 region`, `2 regions`.
pub(super) fn count_of(number: usize, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

/// The number of bytes of memory in the entry of a read.
const BYTES: usize = 16;

/// The most ranges in an entry; further ones are only counted.
const STRETCHES: usize = 4;

/// The frame that is read to find out whether frames may be read. Every machine has it, and no process maps it.
const PROBED: u64 = 1;

/// Returns the kind of file by which reads of this one are counted. `None` for files that identify the process, the
/// kernel or pmdb: they are read once, and not for one answer.
pub(super) fn kind(file: File) -> Option<&'static str> {
    match file {
        File::Smaps => Some("smaps"),
        File::Config(_) => Some("config"),
        File::Setting(_) => Some("setting"),
        File::Release | File::Auxiliary | File::Uptime | File::OwnMaps | File::OwnSmaps => None,
        File::Stat
        | File::Status
        | File::MainStatus
        | File::Limits
        | File::Syscall
        | File::ThreadSyscall(_)
        | File::DescriptorInfo(_)
        | File::ThreadDescriptorInfo(..)
        | File::SmapsRollup
        | File::NumaMaps
        | File::CommandLine
        | File::Cgroup
        | File::Mounts
        | File::Program
        | File::UserNamespace
        | File::IpcNamespace
        | File::MountNamespace
        | File::Root
        | File::MappedFile(_)
        | File::OwnMounts
        | File::OwnUserNamespace
        | File::OwnIpcNamespace
        | File::OwnProcessNamespace
        | File::Segments
        | File::MostMappings
        | File::MemoryCounters
        | File::Swaps
        | File::Zones
        | File::FreeBlocks
        | File::EventCounters
        | File::Iomem => Some("file"),
    }
}

/// Logs the contents of a file: a single line itself, for a longer text the number of lines.
pub(super) fn contents(file: File, bytes: &[u8]) -> String {
    let text = bytes.trim_ascii();
    match (file, ThreadState::parse(bytes)) {
        (File::Syscall | File::ThreadSyscall(_), Some(ThreadState::Waiting(registers))) => {
            format!("program counter {}, stack pointer {}", registers.program_counter, registers.stack_pointer)
        }
        (File::Config(_), _) => "read".to_owned(),
        _ if memchr::memchr(b'\n', text).is_none() => Name::new(text).to_string(),
        _ => count_of(memchr::memchr_iter(b'\n', bytes).count(), "line", "lines"),
    }
}

/// Logs words from `first` on, as many as `into` has.
pub(super) fn words(
    file: WordFile,
    path: String,
    first: u64,
    answer: &Result<usize>,
    into: &[u64],
    page: PageSize,
) -> LoggedRead {
    let asked = into.len();
    let (words, found) = match answer {
        Ok(read) if *read < asked => (into.get(..*read), Some(format!("it ends after {read} of {asked} words"))),
        Ok(_) => (Some(into), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let words = words.unwrap_or_default().to_vec();
    let offset = first.saturating_mul(WORD);
    LoggedRead {
        repeat: Some(dump(&path, offset, words.len())),
        file: path,
        offset: Some(offset),
        length: Some(asked as u64 * WORD),
        words,
        what: what_words(file, first, asked, page),
        found,
        ..LoggedRead::default()
    }
}

/// Logs bytes of memory, read from `mem`.
pub(super) fn memory(file: String, address: VirtualAddress, answer: &Result<usize>, into: &[u8]) -> LoggedRead {
    let length = into.len();
    LoggedRead {
        repeat: Some(format!("xxd -s {address} -l {length} {file}")),
        file,
        offset: Some(address.get()),
        length: Some(length as u64),
        what: format!("memory at {address}"),
        found: Some(result_words(answer, |&read| bytes(into.get(..read).unwrap_or_default()))),
        ..LoggedRead::default()
    }
}

/// Logs the write to `clear_refs`.
pub(super) fn clear_soft_dirty(file: String, answer: &Result<()>) -> LoggedRead {
    LoggedRead {
        what: "written to: clears the soft-dirty bits of all pages".to_owned(),
        found: Some(result_words(answer, |()| "done".to_owned())),
        repeat: Some(format!("echo 4 > {file}")),
        file,
        ..LoggedRead::default()
    }
}

/// Logs a scan of a range.
pub(super) fn scan(
    file: String,
    question: Scan,
    answer: &Result<(usize, u64)>,
    into: &[PageRegion],
    page: PageSize,
) -> LoggedRead {
    let (start, end) = (VirtualAddress::new(question.start), VirtualAddress::new(question.end));
    let bytes = end.get() - start.get();
    LoggedRead {
        file,
        offset: Some(page.index(start) * WORD),
        length: Some(bytes.div_ceil(page.bytes()) * WORD),
        what: match question.any_of {
            0 => format!("PAGEMAP_SCAN: whether the region at {start} is passed over"),
            _ => format!("PAGEMAP_SCAN: the populated pages of {start}..{end}"),
        },
        found: Some(result_words(answer, |&(found, _)| stretches(into.get(..found).unwrap_or_default()))),
        ..LoggedRead::default()
    }
}

/// Logs a list of the directory `file`.
pub(super) fn list(which: List, file: String, answer: &Result<Vec<Listed>>) -> LoggedRead {
    let (what, one, several) = match which {
        List::Threads => ("the threads", "thread", "threads"),
        List::Descriptors => ("the file descriptors", "descriptor", "descriptors"),
        List::DescriptorsOf(_) => ("the file descriptors of a thread", "descriptor", "descriptors"),
        List::Held | List::All | List::One(_) => ("the processes", "process", "processes"),
    };
    let found = result_words(answer, |all| count_of(all.len(), one, several));
    LoggedRead {
        what: what.to_owned(),
        found: Some(found),
        repeat: Some(format!("ls {file}")),
        file,
        ..LoggedRead::default()
    }
}

/// Logs a query of a mapping.
pub(super) fn query(question: Query, file: String, answer: &Result<Answer>) -> LoggedRead {
    LoggedRead {
        what: match question {
            Query::At(address) => format!("the region at {address} (PROCMAP_QUERY)"),
            Query::From(address) => format!("the region at {address} or next above (PROCMAP_QUERY)"),
        },
        repeat: Some(match answer {
            Ok(Answer::Found(mapping)) => format!("grep ^{:08x}-{:08x} {file}", mapping.start, mapping.end),
            _ => format!("cat {file}"),
        }),
        found: Some(result_words(answer, mapping)),
        file,
        ..LoggedRead::default()
    }
}

/// Logs the links of mapped files in the directory `file`.
pub(super) fn file_mappings(file: String, answer: &Result<Option<Vec<Mapping>>>) -> LoggedRead {
    LoggedRead {
        what: "the regions that map files".to_owned(),
        repeat: Some(format!("ls {file}")),
        found: Some(result_words(answer, |all| count_of(all.iter().flatten().count(), "region", "regions"))),
        file,
        ..LoggedRead::default()
    }
}

/// Logs a file of a cgroup.
pub(super) fn group_text(file: String, answer: &Result<Vec<u8>>) -> LoggedRead {
    LoggedRead {
        what: "a file of a cgroup".to_owned(),
        found: Some(result_words(answer, |text| format!("{} bytes", text.len()))),
        repeat: Some(cat(&file)),
        file,
        ..LoggedRead::default()
    }
}

/// Returns the meaning of words.
fn what_words(file: WordFile, first: u64, count: usize, page: PageSize) -> String {
    let what = file.holds();
    if file == WordFile::PageMap {
        let at = VirtualAddress::new(first.saturating_mul(page.bytes()));
        return match count {
            1 => format!("{what} of {at}"),
            _ => format!("page-map entries from {at} on"),
        };
    }
    match count {
        1 if first == PROBED => format!("{what} of frame {first:#x}: whether they may be read"),
        1 => format!("{what} of frame {first:#x}"),
        _ => format!("{what} from frame {first:#x} on"),
    }
}

/// Logs records of frames. The log names the structures and fields that were read, never their kernel addresses.
pub(super) fn records(first: u64, parts: RecordParts, answer: &Result<()>, found: &[FrameRecord]) -> LoggedRead {
    let place = match found.len() {
        1 => format!("the kernel's record of frame {first:#x}"),
        _ => format!("the kernel's records from frame {first:#x} on"),
    };
    let found = result_words(answer, |()| match found {
        [record] => record.to_string(),
        records => count_of(records.iter().filter(|record| record.is_known()).count(), "record", "records"),
    });
    let what = format!("{place}: {}", parts.members());
    LoggedRead { file: "/proc/kcore".to_owned(), what, found: Some(found), ..LoggedRead::default() }
}

/// Logs the reverse map of a frame, without addresses of the kernel.
pub(super) fn mappers(frame: u64, answer: &Result<Vec<RecordedMapper>>) -> LoggedRead {
    let found = result_words(answer, |mappers| count_of(mappers.len(), "process", "processes"));
    let members = "anon_vma.rb_root or address_space.i_mmap, vm_area_struct.vm_mm, mm_struct.owner, mm_struct.pgd";
    let what = format!("the kernel's records of the mappings of frame {frame:#x}: {members}");
    LoggedRead { file: "/proc/kcore".to_owned(), what, found: Some(found), ..LoggedRead::default() }
}

/// Logs the object that a frame belongs to by the records, without addresses of the kernel.
pub(super) fn owner_detail(frame: u64, answer: &Result<Option<OwnerDetail>>) -> LoggedRead {
    let found = result_words(answer, |detail| match detail {
        Some(OwnerDetail::File(file)) => match &file.path {
            Some(path) => Name::copied(path).to_string(),
            None => "no name".to_owned(),
        },
        Some(OwnerDetail::Free(block)) => format!("a free block of order {} at frame {}", block.order, block.first),
        Some(OwnerDetail::Slab(cache)) => Name::copied(&cache.name).to_string(),
        Some(OwnerDetail::PagePool) => "a page pool".to_owned(),
        None => "nothing".to_owned(),
    });
    let members = match answer {
        Ok(Some(OwnerDetail::Free(_))) => "page.private",
        Ok(Some(OwnerDetail::Slab(_))) => "slab.slab_cache, kmem_cache.name",
        Ok(Some(OwnerDetail::PagePool) | None) => "page.pp_magic",
        _ => "inode.i_dentry, dentry.d_name, dentry.d_parent",
    };
    let what = format!("the kernel's records of the owner of frame {frame:#x}: {members}");
    LoggedRead { file: "/proc/kcore".to_owned(), what, found: Some(found), ..LoggedRead::default() }
}

/// Logs entries of page tables, without addresses of the kernel.
pub(super) fn table_entries(start: VirtualAddress, answer: &Result<()>, found: &[Option<TableEntry>]) -> LoggedRead {
    let place = match found.len() {
        1 => format!("the page-table entry of {start}"),
        pages => format!("the page-table entries of {pages} pages from {start} on"),
    };
    let found = result_words(answer, |()| match found {
        [Some(entry)] => format!("level {}, frame {}, {}", entry.level, entry.frame, entry.names().join(" ")),
        [None] => "nothing is mapped".to_owned(),
        entries => count_of(entries.iter().flatten().count(), "entry", "entries"),
    });
    let what = format!("{place}: anon_vma.rb_root, vm_area_struct.vm_mm, mm_struct.pgd");
    LoggedRead { file: "/proc/kcore".to_owned(), what, found: Some(found), ..LoggedRead::default() }
}

/// Logs the slots of shared memory, without addresses of the kernel.
pub(super) fn slots(range: AddressRange, answer: &Result<Vec<SwappedRange>>) -> LoggedRead {
    let found = result_words(answer, |found| match found.as_slice() {
        [] => "nothing is in swap".to_owned(),
        [one] => format!("{} in the slots of type {} from {:#x} on", one.range, one.slot.kind, one.slot.offset),
        several => count_of(several.len(), "range", "ranges"),
    });
    let what = format!("the page cache of {range}: vm_area_struct.vm_file, address_space.i_pages");
    LoggedRead { file: "/proc/kcore".to_owned(), what, found: Some(found), ..LoggedRead::default() }
}

/// Formats the first bytes in hexadecimal.
fn bytes(read: &[u8]) -> String {
    let first = read.iter().take(BYTES);
    let first: String = first.map(|byte| format!("{byte:02x}")).collect();
    match read.len() {
        0 => "nothing".to_owned(),
        length if length > BYTES => format!("{first}\u{2026}"),
        _ => first,
    }
}

/// Formats ranges of a scan: `0x1000..0x3000 present file; and 3 more`.
fn stretches(found: &[PageRegion]) -> String {
    let mut listed: Vec<String> = found.iter().take(STRETCHES).map(stretch).collect();
    match found.len().saturating_sub(STRETCHES) {
        0 if listed.is_empty() => listed.push("nothing".to_owned()),
        0 => {}
        more => listed.push(format!("and {more} more")),
    }
    listed.join("; ")
}

fn stretch(one: &PageRegion) -> String {
    let range = format!("{:#x}..{:#x}", one.start, one.end);
    // The names of the kernel, in lower case.
    let names = Categories::from_bits_retain(one.categories);
    let names = names.iter_names().map(|(name, _)| name.to_ascii_lowercase());
    std::iter::once(range).chain(names).collect::<Vec<_>>().join(" ")
}

/// Formats a mapping as its line in `maps`, with an escaped name.
fn mapping(answer: &Answer) -> String {
    let Answer::Found(mapping) = answer else {
        return "none".to_owned();
    };
    let letter = |bit: u64, on: char, off: char| match mapping.flags & bit {
        0 => off,
        _ => on,
    };
    let letters = [letter(1, 'r', '-'), letter(2, 'w', '-'), letter(4, 'x', '-'), letter(8, 's', 'p')];
    let (start, end, offset) = (mapping.start, mapping.end, mapping.offset);
    let letters: String = letters.iter().collect();
    let (major, minor) = mapping.device;
    let name = Name::copied(&mapping.name);
    let inode = mapping.inode;
    let line = format!("{start:08x}-{end:08x} {letters} {offset:08x} {major:02x}:{minor:02x} {inode} {name}");
    line.trim_end().to_owned()
}

/// Logs a list of cgroups below the mount `file`.
pub(super) fn cgroups(which: CgroupQuery<'_>, answer: &Result<Vec<Cgroup>>, file: String) -> LoggedRead {
    let (what, found) = match which {
        CgroupQuery::All => (
            "all cgroup directories and their inodes".to_owned(),
            result_words(answer, |all| count_of(all.len(), "cgroup", "cgroups")),
        ),
        CgroupQuery::At(path) => (
            if path.is_empty() {
                "the inode of the cgroup directory /".to_owned()
            } else {
                format!("the inode of the cgroup directory {}", Name::copied(path))
            },
            result_words(answer, |found| match found.first() {
                Some(group) => group.inode.to_string(),
                None => "none".to_owned(),
            }),
        ),
    };
    let inode = answer.as_ref().ok().and_then(|found| found.first());
    let repeat = match (which, inode) {
        (CgroupQuery::At(_), Some(group)) => format!("find {} -inum {}", in_shell_quotes(&file), group.inode),
        _ => format!("find {} -type d", in_shell_quotes(&file)),
    };
    LoggedRead { file, what, found: Some(found), repeat: Some(repeat), ..LoggedRead::default() }
}

/// Formats the first run, and the number of further ones.
pub(super) fn runs(runs: &[BackingRun]) -> String {
    let Some((first, more)) = runs.split_first() else {
        return "nothing".to_owned();
    };
    let content = result_words(&first.content, |content| content_word(*content).to_owned());
    match more.len() {
        0 => content,
        more => format!("{} {content}; and {more} more", first.range),
    }
}

fn content_word(content: BackingContent) -> &'static str {
    match content {
        BackingContent::PastEnd => "past the end",
        BackingContent::Hole => "a hole",
        BackingContent::Contents { cached: true } => "contents, cached",
        BackingContent::Contents { cached: false } => "contents, not cached",
    }
}

/// Returns the name of a probe; `None` for probes that are not about a page.
pub(super) fn probe(probe: Probe<'_>) -> Option<&'static str> {
    match probe {
        Probe::SharedMemory => Some("the device of shared memory without a path"),
        Probe::Pools => Some("the devices of the hugetlb pools"),
        Probe::MappedFile(_) => Some("the file of the region"),
        Probe::PageBytes
        | Probe::LittleEndian
        | Probe::Machine
        | Probe::TicksPerSecond
        | Probe::OwnEntry
        | Probe::OwnFlags
        | Probe::FrameRight
        | Probe::User
        | Probe::OwnNumber
        | Probe::Compare(..)
        | Probe::CompareFiles(..)
        | Probe::Follow(_)
        | Probe::FollowOwn(_)
        | Probe::IsNamed(..)
        | Probe::Descriptor(..)
        | Probe::DescriptorMount(..)
        | Probe::DescriptorCache(..)
        | Probe::Filesystem(..)
        | Probe::OwnFilesystem(..) => None,
    }
}

/// Formats the devices in the result of a probe.
pub(super) fn devices(words: &[u64]) -> String {
    let device = |pair: &[u64]| match pair {
        [major, minor] => format!("{major:02x}:{minor:02x}"),
        _ => String::new(),
    };
    match words {
        [] => "none".to_owned(),
        words => words.chunks(2).map(device).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_path_for_one_word() {
        for (path, word) in [
            ("/sys/fs/cgroup", "/sys/fs/cgroup"),
            ("/mnt/a b", "'/mnt/a b'"),
            ("/mnt/$(reboot);it's", "'/mnt/$(reboot);it'\\''s'"),
        ] {
            assert_eq!(in_shell_quotes(path), word);
            let printed = std::process::Command::new("sh").args(["-c", &format!("printf %s {word}")]).output();
            assert_eq!(printed.expect("a shell").stdout, path.as_bytes());
        }
    }
}
