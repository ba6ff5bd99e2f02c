//! What records of frames lead to in the memory of a made kernel: names of files, free blocks, slab caches.

use super::super::free::{FreeBlocks, FreeLayout};
use super::super::ground::{Ground, OwnFile, RandomBytes};
use super::super::image::Image;
use super::super::layout::{Member, PageLayout};
use super::super::names::{FileNames, NameLayout, NameMember};
use super::super::pages::PageRecords;
use super::super::slab::{SlabCaches, SlabLayout, SlabMember};
use super::super::{FreeBlock, NamedFile, PageOfFile, SlabCache};
use super::kernel::{Kernel, MEMORY, PAGE, RECORDS, X86_64};
use super::tapes;
use crate::access::Error;
use crate::kernel::{Device, PageFlags, WordFile};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What leads nowhere.
const JUNK: u64 = 0x1234_5678;
const FRAME: u64 = 0x2000;

fn layout() -> &'static PageLayout {
    static LAYOUT: OnceLock<PageLayout> = OnceLock::new();
    LAYOUT.get_or_init(|| tapes().next().expect("a tape").1.layout())
}

fn in_record(frame: u64, member: Member) -> u64 {
    RECORDS + frame * 64 + layout().at(member).expect("a member")
}

/// `/proc/kpageflags` of some frames, and pages of pmdb's own: an anonymous one, and those of files.
#[derive(Default)]
pub(super) struct Known {
    pub(super) flags: BTreeMap<u64, PageFlags>,
    pub(super) own_page: Option<u64>,
    pub(super) own_files: Vec<u64>,
}

impl Ground for Known {
    fn page_bytes(&self) -> u64 {
        PAGE
    }

    fn sample(&self) -> Option<RandomBytes> {
        self.own_page.map(|frame| RandomBytes { frame, offset: 0, bytes: Vec::new(), _page: Box::new(()) })
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Option<()> {
        assert_eq!(file, WordFile::FrameFlags);
        for (frame, word) in (first..).zip(into) {
            *word = self.flags.get(&frame).copied().unwrap_or_default().bits();
        }
        Some(())
    }

    fn own_frames(&self) -> Vec<u64> {
        Vec::new()
    }

    fn take_references(&self, _: u32, _: &mut dyn FnMut(u64)) {}

    fn own_files(&self, look: &mut dyn FnMut(OwnFile)) {
        for &frame in &self.own_files {
            look(OwnFile { frame, device: Device::default(), inode: 0, index: 0 });
        }
    }

    fn huge_page(&self, _: &mut dyn FnMut(u64, bool)) {}

    fn pin_huge_page(&self, _: u32, _: &mut dyn FnMut(u64)) {}
}

/// In the order of [`NameMember::ALL`].
const NAMES: [u64; NameMember::ALL.len()] = [352, 0, 176, 48, 24, 104, 16, 40, 36, 104, 1248];

fn at(member: NameMember) -> u64 {
    NAMES[member as usize]
}

/// A filesystem with a file, of which one page is in memory.
struct OneFile {
    kernel: Kernel,
    filesystem: u64,
    root: u64,
    mapping: u64,
    inode: u64,
}

impl OneFile {
    fn new() -> OneFile {
        let mut kernel = Kernel::new(X86_64);
        let [filesystem, mapping, inode] = [(); 3].map(|()| kernel.page(JUNK));
        let layout = layout();
        let member = |member: Member| layout.at(member).expect("a member");
        let uptodate = layout.flags.iter().find(|(flag, _)| *flag == PageFlags::UPTODATE).expect("a flag").1;
        kernel.words.extend([
            (in_record(FRAME, Member::Flags), 1 << uptodate),
            (in_record(FRAME, Member::Mapping), mapping),
            (mapping + member(Member::Host), inode),
            (inode + member(Member::InodeMapping), mapping),
            (inode + member(Member::InodeNumber), 77),
            (inode + member(Member::InodeFilesystem), filesystem),
            (inode + at(NameMember::First), 0),
        ]);
        kernel.put(filesystem + member(Member::FilesystemDevice), &0x80_0001_u32.to_le_bytes());
        kernel.put(filesystem + at(NameMember::Id), b"sda1\0");
        let mut made = OneFile { kernel, filesystem, root: 0, mapping, inode };
        made.root = made.name(b"/", None);
        made.put(filesystem, NameMember::Root, made.root);
        made
    }

    fn put(&mut self, structure: u64, member: NameMember, value: u64) {
        self.kernel.words.insert(structure + at(member), value);
    }

    /// A name in a directory, or in none.
    fn name(&mut self, text: &[u8], directory: Option<u64>) -> u64 {
        let [name, bytes] = [(); 2].map(|()| self.kernel.page(JUNK));
        self.put(name, NameMember::Parent, directory.unwrap_or(name));
        self.put(name, NameMember::Filesystem, self.filesystem);
        self.put(name, NameMember::Hashed, directory.unwrap_or_default());
        self.put(name, NameMember::Text, bytes);
        self.kernel.put(name + at(NameMember::Length), &(text.len() as u32).to_le_bytes());
        self.kernel.put(bytes, &[text, b"\0"].concat());
        name
    }

    /// Names the file, before all names that it has.
    fn links(&mut self, name: u64) {
        let next = self.kernel.words[&(self.inode + at(NameMember::First))];
        let node = name + at(NameMember::Alias);
        self.put(name, NameMember::File, self.inode);
        self.put(node, NameMember::Next, next);
        self.put(self.inode, NameMember::First, node);
    }

    /// A file with a path.
    fn with(path: &str) -> OneFile {
        let mut made = OneFile::new();
        let name = path.split('/').fold(made.root, |above, part| made.name(part.as_bytes(), Some(above)));
        made.links(name);
        made
    }

    /// The address of the name of the file.
    fn first(&self) -> u64 {
        self.kernel.words[&(self.inode + at(NameMember::First))] - at(NameMember::Alias)
    }

    fn found_in(pages: &PageRecords, offsets: [u64; NAMES.len()]) -> crate::access::Result<NamedFile> {
        FileNames { pages, layout: &NameLayout(offsets) }.of_frame(FRAME)
    }

    fn found(&self) -> crate::access::Result<NamedFile> {
        Self::found_in(&self.kernel.pages(), NAMES)
    }

    /// The path, and whether it was removed.
    fn path(&self) -> (Option<String>, bool) {
        let found = self.found().expect("a file");
        (found.path.map(|path| String::from_utf8(path).expect("text")), found.is_deleted)
    }
}

fn some(path: &str, is_deleted: bool) -> (Option<String>, bool) {
    (Some(path.to_owned()), is_deleted)
}

#[test]
fn a_page_leads_to_the_path_of_its_file() {
    let file = PageOfFile { device: Device { major: 8, minor: 1 }, inode: 77, index: 0 };
    let expected = NamedFile {
        file,
        path: Some(b"/var/log/a b\x1b[2J".to_vec()),
        filesystem: b"sda1".to_vec(),
        is_deleted: false,
    };
    assert_eq!(OneFile::with("var/log/a b\x1b[2J").found().expect("a file"), expected);
    assert_eq!(OneFile::with("top").path(), some("/top", false));
    let longest = "n".repeat(255);
    assert_eq!(OneFile::with(&longest).path(), some(&format!("/{longest}"), false));
    // The root itself.
    let mut root = OneFile::new();
    root.links(root.root);
    assert_eq!(root.path(), some("/", false));
}

#[test]
fn of_several_names_one_in_its_directory_is_taken() {
    let mut made = OneFile::with("var/first");
    let removed = made.name(b"removed", Some(made.root));
    made.put(removed, NameMember::Hashed, 0);
    made.links(removed);
    assert_eq!(made.path(), some("/var/first", false));
    let second = made.name(b"second", Some(made.root));
    made.links(second);
    assert_eq!(made.path(), some("/second", false));
    let mut made = OneFile::new();
    let removed = made.name(b"removed", Some(made.root));
    made.put(removed, NameMember::Hashed, 0);
    made.links(removed);
    assert_eq!(made.path(), some("/removed", true));
}

#[test]
fn files_in_no_directory_have_a_name_or_none() {
    let mut memfd = OneFile::new();
    let name = memfd.name(b"memfd:a/b", None);
    memfd.links(name);
    assert_eq!(memfd.path(), some("memfd:a/b", true));
    // No name in memory, as of block devices, and one that was found by its number.
    assert_eq!(OneFile::new().path(), (None, false));
    let mut by_number = OneFile::new();
    let name = by_number.name(b"/", None);
    by_number.links(name);
    assert_eq!(by_number.path(), (None, true));
    let mut below = OneFile::new();
    let above = below.name(b"/", None);
    let name = below.name(b"name", Some(above));
    below.links(name);
    assert_eq!(below.path(), some("…/name", false));
}

#[test]
fn deep_paths_and_cycles_end() {
    let deep = vec!["d"; 100].join("/");
    let (path, _) = OneFile::with(&deep).path();
    assert_eq!(path, Some(format!("…/{}", vec!["d"; 64].join("/"))));
    let mut cycle = OneFile::with("a/b");
    let (name, above) = (cycle.first(), cycle.name(b"c", None));
    cycle.put(above, NameMember::Parent, name);
    cycle.put(name, NameMember::Parent, above);
    assert_eq!(cycle.path().0, Some(format!("…/{}", vec!["c/b"; 32].join("/"))));
    let mut cycle = OneFile::with("a");
    let name = cycle.first();
    cycle.put(name, NameMember::Hashed, 0);
    cycle.put(name + at(NameMember::Alias), NameMember::Next, name + at(NameMember::Alias));
    assert_eq!(cycle.path(), some("/a", true));
}

#[test]
fn what_does_not_point_back_has_no_name() {
    let refused = |change: &dyn Fn(&mut OneFile, u64)| {
        let mut made = OneFile::with("var/name");
        let name = made.first();
        change(&mut made, name);
        let error = made.found().expect_err("no name");
        assert!(matches!(error, Error::NotAvailable { .. }), "{error}");
    };
    use NameMember::*;
    refused(&|made, name| made.put(name, File, MEMORY));
    refused(&|made, name| made.put(name, NameMember::Filesystem, MEMORY));
    refused(&|made, name| made.put(made.kernel.words[&(name + at(Parent))], NameMember::Filesystem, MEMORY));
    refused(&|made, _| made.put(made.root, NameMember::Filesystem, MEMORY));
    refused(&|made, _| made.put(made.root, Parent, MEMORY));
    refused(&|made, _| made.put(made.filesystem, Root, JUNK));
    refused(&|made, _| made.kernel.put(made.filesystem + at(Id), &[b'x'; 40]));
    refused(&|made, _| made.kernel.put(made.filesystem + at(Id), b"\x01\0"));
    // Outside of the memory that /proc/kcore has.
    refused(&|made, name| made.put(name, Parent, 0x1000));
    refused(&|made, name| made.put(name, Text, JUNK));
    refused(&|made, _| made.put(made.inode, First, JUNK));
    // Another length, a separator, an end within.
    for length in [0u32, 3, 5, 256, u32::MAX] {
        refused(&|made, name| made.kernel.put(name + at(Length), &length.to_le_bytes()));
    }
    for text in [&b"na/e\0"[..], b"n\0me\0", b"name!"] {
        refused(&|made, name| made.kernel.put(made.kernel.words[&(name + at(Text))], text));
    }
    // The page cache of another file.
    refused(&|made, _| {
        let place = made.inode + layout().at(Member::InodeMapping).expect("a member");
        made.kernel.words.insert(place, made.mapping + 8);
    });
}

#[test]
fn a_name_that_changes_all_the_time_has_changed() {
    let made = OneFile::with("var/name");
    let text = made.kernel.words[&(made.first() + at(NameMember::Text))];
    let changing = |until: u64| {
        let (core, reads) = (made.kernel.core(), AtomicU64::new(0));
        let core = move |offset: u64, into: &mut [u8]| {
            let read = core(offset, into);
            if offset == PAGE + text - MEMORY {
                into[0] = b'a' + reads.fetch_add(1, Ordering::Relaxed).min(until) as u8;
            }
            read
        };
        OneFile::found_in(&Kernel::pages_of(Image::open(Box::new(core)).expect("headers")), NAMES)
    };
    assert_eq!(changing(0).expect("a name").path.as_deref(), Some(&b"/var/aame"[..]));
    assert_eq!(changing(3).expect("a name").path.as_deref(), Some(&b"/var/dame"[..]));
    let error = changing(25).expect_err("another name each time");
    assert!(matches!(error, Error::Gone { .. }), "{error}");
}

#[test]
fn wrong_offsets_of_names_are_refused() {
    let mut made = OneFile::new();
    let name = made.name(b"memfd:pmdb", None);
    made.links(name);
    let pages = made.kernel.pages();
    let ground = Known { own_files: vec![FRAME], ..Known::default() };
    let are_proved = |offsets| FileNames { pages: &pages, layout: &NameLayout(offsets) }.are_proved(&ground);
    assert!(are_proved(NAMES));
    for &(member, _) in NameMember::ALL {
        // This file has one name, which was never in a directory.
        if matches!(member, NameMember::Next | NameMember::Hashed) {
            continue;
        }
        let right = at(member);
        let near = [-16, -8, -4, 4, 8, 16].into_iter().filter_map(|by| right.checked_add_signed(by));
        for wrong in near.chain([1 << 40, u64::MAX]) {
            let mut offsets = NAMES;
            offsets[member as usize] = wrong;
            assert!(!are_proved(offsets), "{member:?} at {wrong}");
        }
    }
    // Without such files nothing is proved.
    assert!(!FileNames { pages: &pages, layout: &NameLayout(NAMES) }.are_proved(&Known::default()));
}

/// Free memory: blocks by their first frames and orders.
struct FreeMemory {
    kernel: Kernel,
    known: Known,
}

const PRIVATE: u64 = 40;
const NO_MARK: u32 = u32::MAX;

impl FreeMemory {
    /// Blocks with the mark of a kernel: of Linux 6.1 and of Linux 6.12.
    fn new(mark: u32, blocks: &[(u64, u64)]) -> FreeMemory {
        let mut made = FreeMemory { kernel: Kernel::new(X86_64), known: Known::default() };
        for frame in FRAME - 64..FRAME + 4096 {
            made.mark(frame, NO_MARK);
        }
        for &(first, order) in blocks {
            made.mark(first, mark);
            made.kernel.words.insert(RECORDS + first * 64 + PRIVATE, order);
            made.known.flags.extend((first..first + (1 << order)).map(|frame| (frame, PageFlags::BUDDY)));
        }
        made
    }

    fn mark(&mut self, frame: u64, mark: u32) {
        self.kernel.put(in_record(frame, Member::Maps), &mark.to_le_bytes());
    }

    fn found_at(&self, frame: u64, private: u64) -> crate::access::Result<FreeBlock> {
        let (pages, layout) = (self.kernel.pages(), FreeLayout([private]));
        FreeBlocks { pages: &pages, layout: &layout, ground: &self.known }.of_frame(frame)
    }

    fn found(&self, frame: u64) -> Option<(u64, u8)> {
        self.found_at(frame, PRIVATE).ok().map(|block| (block.first.get(), block.order))
    }
}

#[test]
fn every_frame_of_a_free_block_leads_to_it() {
    let blocks = [(FRAME, 10), (FRAME + 1024, 0), (FRAME + 1026, 1), (FRAME + 1032, 3), (FRAME + 1040, 4)];
    for mark in [0xffff_ff7f, 0xf000_0000, 0xbfff_ffff] {
        let made = FreeMemory::new(mark, &blocks);
        for (first, order) in blocks {
            let last = first + (1 << order) - 1;
            for frame in [first, first + (last - first) / 2, last] {
                assert_eq!(made.found(frame), Some((first, order as u8)), "{frame:#x}");
            }
        }
        let error = made.found_at(FRAME + 1025, PRIVATE).expect_err("an allocated frame");
        assert!(matches!(error, Error::Gone { .. }), "{error}");
    }
}

#[test]
fn a_block_that_contradicts_other_facts_is_refused() {
    let block = [(FRAME, 4)];
    let mark = 0xf000_0000;
    let refused = |change: &dyn Fn(&mut FreeMemory)| {
        let mut made = FreeMemory::new(mark, &block);
        assert_eq!(made.found(FRAME + 5), Some((FRAME, 4)));
        change(&mut made);
        let error = made.found_at(FRAME + 5, PRIVATE).expect_err("no block");
        assert!(matches!(error, Error::NotAvailable { .. }), "{error}");
    };
    let order = RECORDS + FRAME * 64 + PRIVATE;
    for wrong in [0, 1, 3, 5, 14, 64, u64::MAX, MEMORY] {
        refused(&|made| _ = made.kernel.words.insert(order, wrong));
    }
    refused(&|made| made.mark(FRAME, NO_MARK));
    refused(&|made| made.mark(FRAME, 3));
    refused(&|made| made.mark(FRAME + 7, mark));
    refused(&|made| _ = made.known.flags.insert(FRAME + 9, PageFlags::empty()));
    refused(&|made| _ = made.known.flags.insert(FRAME, PageFlags::PGTABLE));
    // It goes on.
    refused(&|made| _ = made.known.flags.insert(FRAME + 16, PageFlags::BUDDY));
    let made = FreeMemory::new(mark, &block);
    for private in [0, 32, 48, 56, 1 << 40, u64::MAX] {
        assert!(made.found_at(FRAME + 5, private).is_err(), "{private}");
    }
}

/// In the order of [`SlabMember::ALL`].
const SLAB: [u64; SlabMember::ALL.len()] = [24, 96, 28, 24, 104, 8];

/// Four frames of a cache.
struct Slab {
    kernel: Kernel,
    cache: u64,
    name: u64,
}

impl Slab {
    fn new() -> Slab {
        let mut kernel = Kernel::new(X86_64);
        let [cache, next, name] = [(); 3].map(|()| kernel.page(JUNK));
        let link = cache + SLAB[SlabMember::Next as usize];
        kernel.words.extend([
            (RECORDS + FRAME * 64, 1),
            (RECORDS + FRAME * 64 + SLAB[SlabMember::Cache as usize], cache),
            (cache + SLAB[SlabMember::Name as usize], name),
            (cache + SLAB[SlabMember::Bytes as usize], 192 << 32 | 200),
            (link, next),
            (next + SLAB[SlabMember::Previous as usize], link),
        ]);
        for frame in FRAME + 1..FRAME + 4 {
            kernel.words.insert(in_record(frame, Member::Compound), RECORDS + FRAME * 64 + 1);
        }
        kernel.put(name, b"ext4_inode (x)\0");
        Slab { kernel, cache, name }
    }

    fn found_at(&self, frame: u64, offsets: [u64; SLAB.len()]) -> crate::access::Result<SlabCache> {
        SlabCaches { pages: &self.kernel.pages(), layout: &SlabLayout(offsets) }.of_frame(frame)
    }
}

#[test]
fn every_frame_of_a_slab_leads_to_its_cache() {
    let slab = Slab::new();
    let expected = SlabCache { name: b"ext4_inode (x)".to_vec(), object_bytes: 192 };
    for frame in FRAME..FRAME + 4 {
        assert_eq!(slab.found_at(frame, SLAB).expect("a cache"), expected);
    }
    assert!(slab.found_at(FRAME + 4, SLAB).is_err());
}

#[test]
fn a_cache_that_proves_nothing_is_refused() {
    use SlabMember::*;
    let refused = |change: &dyn Fn(&mut Slab)| {
        let mut slab = Slab::new();
        change(&mut slab);
        let error = slab.found_at(FRAME, SLAB).expect_err("no cache");
        assert!(matches!(error, Error::NotAvailable { .. }), "{error}");
    };
    let put = |slab: &mut Slab, member: SlabMember, value| {
        slab.kernel.words.insert(slab.cache + SLAB[member as usize], value);
    };
    refused(&|slab| put(slab, Name, JUNK));
    refused(&|slab| put(slab, Next, MEMORY));
    refused(&|slab| put(slab, Bytes, 192 << 32 | 191));
    refused(&|slab| put(slab, Bytes, 200));
    refused(&|slab| put(slab, Bytes, 192 << 32 | 1 << 30));
    refused(&|slab| slab.kernel.put(slab.name, b"\0"));
    refused(&|slab| slab.kernel.put(slab.name, b"ext4\x1b"));
    refused(&|slab| slab.kernel.put(slab.name, &[b'x'; 200]));
    for &(member, _) in SlabMember::ALL {
        for wrong in [0, 8, 24, 40, 96, 112, 1 << 40, u64::MAX] {
            let right = SLAB[member as usize];
            let mut offsets = SLAB;
            offsets[member as usize] = wrong;
            // A size is a number: any other sensible one would do.
            let is_size = matches!(member, ObjectBytes | Bytes);
            assert!(
                wrong == right || is_size || Slab::new().found_at(FRAME, offsets).is_err(),
                "{member:?} at {wrong}"
            );
        }
    }
}
