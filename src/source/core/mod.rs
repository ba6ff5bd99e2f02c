//! ELF core files as a source: those of pmdb, and those of the kernel. No file that a core names is opened.
//!
//! A core contains memory, and the kernel's facts about the process when it was written. Missing parts are reported as
//! missing: the contents of a page that is not in the file are unknown, which is not the same as a page that is not
//! present.

mod contents;
mod image;

use super::live::installed_debug_file;
use super::origin::no_page_map;
use super::{
    Asked, CoreOrigin, File, FileLocation, List, Listed, Origin, Place, Probe, Question, Reply, Source, add_piece,
};
use crate::access::{Error, Identity, ReadAt, Result};
use crate::budget::{Budget, until_interrupted};
use crate::kernel::elf::ElfStart;
use crate::kernel::{Device, Name, VirtualAddress, WordFile};
use contents::{Core, not_in_core};
use image::CoreImage;
use std::sync::Arc;

/// Returns whether a file begins like an ELF core file.
pub fn is_core(file: &dyn ReadAt) -> bool {
    let mut start = [0; ElfStart::BYTES];
    let read = file.read_up_to(0, &mut start).unwrap_or(0);
    let start = start.get(..read).and_then(ElfStart::parse);
    start.is_some_and(|start| start.kind == ElfStart::CORE)
}

/// Opens a core file that was written at `time`, in seconds since 1970.
///
/// # Errors
/// Fails if the file is no core, or is damaged, and on Ctrl-C.
pub fn open(file: Box<dyn ReadAt>, time: u64) -> Result<Arc<dyn Source>> {
    let core = Core::read(file, &mut until_interrupted())?;
    let stored = core.pages.is_none().then(|| core.stored());
    Ok(Arc::new(CoreSource { core: Arc::new(core), origin: Arc::new(CoreOrigin { time, stored }) }))
}

/// A core file as a source.
struct CoreSource {
    core: Arc<Core>,
    origin: Arc<CoreOrigin>,
}

impl CoreSource {
    /// Returns a file that a note contains unchanged.
    fn text(&self, file: File) -> Result<Vec<u8>> {
        let notes = &self.core.notes;
        let found = match file {
            File::Auxiliary => notes.vector.clone(),
            File::Program => notes.program().map(<[u8]>::to_vec),
            File::CommandLine => Some(notes.process.command.clone()),
            File::Release => notes.machine.as_ref().map(|machine| machine.release.clone().into_bytes()),
            _ => None,
        };
        found.map_or_else(|| not_in_core(file.what()), Ok)
    }

    fn probe(&self, probe: Probe<'_>) -> Result<Vec<u64>> {
        match probe {
            Probe::PageBytes => Ok(vec![self.core.notes.page.bytes()]),
            Probe::LittleEndian => Ok(vec![self.core.notes.form.is_little.into()]),
            Probe::Machine => Ok(vec![self.core.notes.processor.into()]),
            Probe::FrameRight => {
                Ok(vec![self.core.pages.as_ref().is_some_and(|pages| pages.has_frames(self.core.notes.form)).into()])
            }
            Probe::OwnEntry => not_in_core("whether the kernel tracks soft-dirty pages"),
            Probe::Pools => {
                let pools = self.core.notes.machine.as_ref().map(|machine| &machine.pools);
                let words = |pools: &Vec<Device>| {
                    pools.iter().flat_map(|pool| [pool.major.into(), pool.minor.into()]).collect()
                };
                pools.map_or_else(|| not_in_core("the devices of the hugetlb pools"), |pools| Ok(words(pools)))
            }
            Probe::IsNamed(region, path) => self.core.is_named(region, path),
            _ => not_in_core("this probe of the kernel"),
        }
    }
}

impl Source for CoreSource {
    fn identity(&self) -> Identity {
        let process = &self.core.notes.process;
        Identity { pid: process.id, start_time: 0, name: Name::new(process.name.clone()) }
    }

    fn origin(&self) -> Origin {
        Origin::Core(Arc::clone(&self.origin))
    }

    fn ask(&self, question: Question<'_>, _: &mut Budget) -> Result<Reply> {
        match question {
            Question::Text(file) => file.reply(self.text(file)),
            Question::Probe(probe) => probe.reply(self.probe(probe)),
            Question::Notes(asked) => asked.reply(Ok(Some(Arc::clone(&self.core.notes)))),
            question => question.unanswered(),
        }
    }

    fn maps(&self, offset: u64, into: &mut Vec<u8>) -> Result<usize> {
        Ok(add_piece(&self.core.maps, offset, into))
    }

    fn words(&self, file: WordFile, first: u64, into: &mut [u64]) -> Result<usize> {
        match (&self.core.pages, file) {
            (Some(pages), WordFile::PageMap) => {
                into.fill(0);
                pages.read(self.core.notes.form, first, into);
                Ok(into.len())
            }
            (None, WordFile::PageMap) => no_page_map(),
            _ => not_in_core(file.name()),
        }
    }

    fn bytes(&self, place: Place<'_>, address: VirtualAddress, into: &mut [u8]) -> Result<usize> {
        if let Place::PageCache(_) = place {
            return not_in_core(&place.what());
        }
        match self.core.memory(address.get(), into)? {
            0 if !into.is_empty() => not_in_core(&format!("memory at {address}")),
            read => Ok(read),
        }
    }

    fn clear_soft_dirty(&self) -> Result<()> {
        Err(Error::not_available("a core file does not run: its soft-dirty bits cannot be cleared"))
    }

    fn list(&self, which: List) -> Result<Vec<Listed>> {
        not_in_core(which.what())
    }

    fn file(&self, place: FileLocation<'_>) -> Result<Option<Box<dyn ReadAt>>> {
        match place {
            FileLocation::Region(region) => match CoreImage::of(&self.core, region) {
                Some(image) => Ok(Some(Box::new(image))),
                None => not_in_core(&region.name.to_string()),
            },
            FileLocation::OwnPath(path) => installed_debug_file(path),
            _ => Ok(None),
        }
    }
}
