//! Who holds a frame, by the kernel's own record of it.

use super::block::REMARK;
use super::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::report::{FilePage, Holders, KernelRecord, REFERENCES_OF_A_PIN, RecordedOwner};

/// Writes the references and the pins.
pub fn write(lines: &mut Lines, record: &KernelRecord) {
    let Ok(references) = record.references else {
        return;
    };
    let line = lines.field("held");
    line.plain(counted(references, "reference")).indent_at(REMARK);
    if let (Ok(holders), Ok(owner)) = (&record.holders, &record.owner)
        && owner.has_contents()
    {
        for part in parts(holders) {
            line.word(", ", Role::Plain, part);
        }
    }
    match (&record.pins, record.pins_at_most) {
        (Ok(0), _) => _ = line.word(", ", Role::Dim, "not pinned"),
        (Ok(pins), _) => _ = line.word(", ", Role::Note, format!("pinned {}", times(*pins))),
        (Err(_), Some(most)) => {
            let references = most.saturating_mul(REFERENCES_OF_A_PIN);
            let text = format!("{} or {} references", counted(most, "pin"), count(references));
            _ = line.word(", ", Role::Note, format!("maybe {text}"));
        }
        (Err(_), None) => {}
    }
}

/// The holders.
fn parts(holders: &Holders) -> Vec<String> {
    let known = [
        (holders.page_cache, "of the page cache"),
        (holders.swap_cache, "of the swap cache"),
        (holders.filesystem, "of the filesystem"),
        (holders.pins, "for pins"),
    ];
    let known = known.iter().filter(|(number, _)| *number > 0);
    let known = known.map(|(number, what)| format!("{} {what}", count(*number)));
    let mappings = Some(holders.mappings).filter(|&mappings| mappings > 0);
    let mut parts: Vec<String> =
        mappings.map(|mappings| counted(mappings, "mapping")).into_iter().chain(known).collect();
    match holders.others {
        0 => {}
        // Kernels hold pages that are on their way to a list of reclaimable pages, a few for each processor.
        1 => parts.push("1 more (normal)".to_owned()),
        more => parts.push(format!("{} that nothing explains", count(more))),
    }
    parts
}

fn times(pins: u64) -> String {
    match pins {
        1 => "once".to_owned(),
        pins => format!("{} times", count(pins)),
    }
}

/// Writes the owner.
pub fn write_owner(lines: &mut Lines, record: &KernelRecord) {
    if let Some((owner, more)) = owner(record) {
        let line = lines.field("owner");
        line.plain(owner);
        if !more.is_empty() {
            line.tab_to(REMARK).prose(Role::Plain, more);
        }
    }
}

/// The owner in words, and what else is known of it.
pub fn owner(record: &KernelRecord) -> Option<(String, String)> {
    let short = |words: &str| (words.to_owned(), String::new());
    Some(match *record.owner.as_ref().ok()? {
        RecordedOwner::Anonymous => short("anonymous memory"),
        RecordedOwner::Merged => short("merged anonymous memory"),
        RecordedOwner::PageTable => short("a page table"),
        RecordedOwner::HugetlbPool => short("the hugetlb pool, in no file"),
        RecordedOwner::PagePool => short("a page pool of the network stack"),
        RecordedOwner::File => of_file(record.file_page.as_ref()?),
        RecordedOwner::Free => {
            match record.free_block.as_ref().map(|block| (block.order.as_ref(), block.head.as_ref())) {
                Some((Ok(order), Ok(head))) => (format!("free block of order {order}"), format!("first frame {head}")),
                _ => short("free block"),
            }
        }
        RecordedOwner::Slab => match record.slab.as_ref().map(|slab| (slab.cache.as_ref(), slab.object_bytes.as_ref()))
        {
            Some((Ok(cache), Ok(&bytes))) => {
                (format!("slab cache {cache}"), format!("objects of {}", counted(bytes, "byte")))
            }
            _ => short("a slab cache"),
        },
        RecordedOwner::Unrecorded if record.references == Ok(0) => short("no owner recorded, no references"),
        RecordedOwner::Unrecorded => short("allocated; no owner recorded"),
    })
}

fn of_file(page: &FilePage) -> (String, String) {
    let file = match &page.path {
        // Where the filesystem is mounted is not known.
        Ok(path) if path.as_bytes().starts_with(b"/") => format!("…{path}"),
        Ok(path) => path.to_string(),
        Err(_) => "a file".to_owned(),
    };
    let deleted = if page.deleted { " (deleted)" } else { "" };
    let mut more = format!("inode {}, device {}", page.inode, page.device);
    if let Ok(filesystem) = &page.filesystem {
        more += &format!(", filesystem {filesystem}");
    }
    (format!("page {} of {file}{deleted}", count(page.index)), more)
}
