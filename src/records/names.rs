//! The name of a file in memory: its inode has a list of its names (dentries), each of which leads to its directory, up
//! to the root of the filesystem.
//!
//! The walk has no locks. Each name must be of that file in that filesystem, and each directory of that filesystem. All
//! is read twice.

use super::ground::{Ground, OWN_FILE};
use super::layout::{Member, member_list};
use super::pages::PageRecords;
use super::record::NamedFile;
use crate::access::{Error, Result};

member_list! {
    /// A member on the way from a file to its name.
    NameMember, NameLayout {
        /// The first name of a file.
        First: "inode"."i_dentry.first";
        /// The next name of the same file.
        Next: "hlist_node"."next";
        /// The place of the list node in a name (moved in Linux 7.1).
        Alias: "dentry"."d_u.d_alias", "dentry"."d_alias";
        /// The file of a name.
        File: "dentry"."d_inode";
        /// The name of its directory; the topmost one names itself.
        Parent: "dentry"."d_parent";
        Filesystem: "dentry"."d_sb";
        /// Zero for a name that is in no directory.
        Hashed: "dentry"."d_hash.pprev";
        Text: "dentry"."d_name.name";
        Length: "dentry"."d_name.len";
        /// The name of the root of a filesystem.
        Root: "super_block"."s_root";
        /// The kernel's name of a filesystem.
        Id: "super_block"."s_id";
    }
}

use NameMember::*;

/// The most names of one file, and the most directories above it.
const MOST_NAMES: u32 = 64;
const DEEPEST: u32 = 64;
/// `NAME_MAX`
const LONGEST: u32 = 255;
/// The size of `s_id` in bytes.
const LONGEST_ID: usize = 32;
/// How often a reading is repeated if two readings differ.
const TRIES: u32 = 4;

/// Finds the names of files.
pub(super) struct FileNames<'a> {
    pub(super) pages: &'a PageRecords,
    pub(super) layout: &'a NameLayout,
}

impl FileNames<'_> {
    /// Returns whether the files of pmdb have their names.
    pub(super) fn are_proved(&self, ground: &dyn Ground) -> bool {
        let expected = format!("memfd:{OWN_FILE}");
        let is_right = |frame: u64| {
            let name = self.of_frame(frame).ok()?;
            (name.path.as_deref() == Some(expected.as_bytes())).then_some(())
        };
        let (mut right, mut wrong) = (0, 0);
        ground.own_files(&mut |own| *if is_right(own.frame).is_some() { &mut right } else { &mut wrong } += 1);
        right > 0 && wrong == 0
    }

    /// Returns the file that a frame belongs to.
    pub(super) fn of_frame(&self, frame: u64) -> Result<NamedFile> {
        let read = || self.of_page_cache(self.pages.page_cache(frame)?);
        for _ in 0..TRIES {
            let (first, second) = (read(), read());
            match first {
                first if first != second => {}
                Some(name) => return Ok(name),
                None => {
                    return Err(Error::not_available("the kernel's records of the file's name contradict each other"));
                }
            }
        }
        Err(Error::gone("the kernel's record of the file changed during the read"))
    }

    fn member(&self, structure: u64, member: NameMember) -> Option<u64> {
        self.pages.image.word(structure.checked_add(self.layout.at(member))?)
    }

    fn of_page_cache(&self, mapping: u64) -> Option<NamedFile> {
        let file = self.pages.file(mapping)?;
        let follow = |address: u64, member| self.pages.image.word(address.checked_add(self.pages.layout.at(member)?)?);
        let inode = follow(mapping, Member::Host)?;
        let filesystem = follow(inode, Member::InodeFilesystem)?;
        let root = self.member(filesystem, Root)?;
        let is_root = self.member(root, Filesystem)? == filesystem && self.member(root, Parent)? == root;
        is_root.then_some(())?;
        let mut id = vec![0; LONGEST_ID];
        self.pages.image.read(filesystem.checked_add(self.layout.at(Id))?, &mut id)?;
        id.truncate(id.iter().position(|&byte| byte == 0)?);
        (!id.is_empty() && id.iter().all(u8::is_ascii_graphic)).then_some(())?;
        let (name, is_deleted) = self.name(inode, filesystem)?.map_or((None, false), |(name, gone)| (Some(name), gone));
        let path = match name {
            Some(name) => self.path(name, filesystem, root)?,
            None => None,
        };
        // The root is in no directory either.
        Some(NamedFile { file, path, filesystem: id, is_deleted: is_deleted && name != Some(root) })
    }

    /// Returns a name of a file, preferably one in a directory, and whether it is in none. The inner `None` means that
    /// the file has no name in memory.
    fn name(&self, inode: u64, filesystem: u64) -> Option<Option<(u64, bool)>> {
        let mut removed = None;
        let mut node = self.member(inode, First)?;
        for _ in 0..MOST_NAMES {
            if node == 0 {
                break;
            }
            let name = node.checked_sub(self.layout.at(Alias))?;
            let is_of = self.member(name, File)? == inode && self.member(name, Filesystem)? == filesystem;
            is_of.then_some(())?;
            if self.member(name, Hashed)? != 0 {
                return Some(Some((name, false)));
            }
            removed.get_or_insert((name, true));
            node = self.member(node, Next)?;
        }
        Some(removed)
    }

    /// Returns the path of a name. It begins with `/` if it reaches the root of the filesystem, and with `…/` if the
    /// upper directories are unknown. A file without a directory, such as a memfd, has only a name.
    fn path(&self, name: u64, filesystem: u64, root: u64) -> Option<Option<Vec<u8>>> {
        const NOT_KNOWN: &[u8] = "…".as_bytes();
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut at = name;
        while at != root {
            if parts.len() as u32 == DEEPEST {
                parts.push(NOT_KNOWN.to_vec());
                break;
            }
            let parent = self.member(at, Parent)?;
            let text = self.text(at).filter(|_| self.member(at, Filesystem) == Some(filesystem))?;
            match (parent == at, text.as_slice()) {
                // The file was opened by its number (`d_obtain_alias` in fs/dcache.c).
                (true, b"/") if parts.is_empty() => return Some(None),
                (true, b"/") => parts.push(NOT_KNOWN.to_vec()),
                (true, _) => parts.push(text),
                (false, name) if name.contains(&b'/') => return None,
                (false, _) => parts.push(text),
            }
            if parent == at {
                break;
            }
            at = parent;
        }
        if at == root {
            // The path of the root is `/`.
            let above = 1 + usize::from(parts.is_empty());
            parts.extend(vec![Vec::new(); above]);
        }
        parts.reverse();
        Some(Some(parts.join(&b'/')))
    }

    /// Reads the text of a name.
    fn text(&self, name: u64) -> Option<Vec<u8>> {
        let length = self.pages.image.half(name.checked_add(self.layout.at(Length))?)?;
        let length = Some(length).filter(|length| (1..=LONGEST).contains(length))?;
        let mut text = vec![0; length as usize + 1];
        self.pages.image.read(self.member(name, Text)?, &mut text)?;
        (text.pop() == Some(0) && !text.contains(&0)).then_some(text)
    }
}
