//! Who holds a frame, by the kernel's own record of it.

use super::block::REMARK;
use super::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::{count, counted};
use crate::report::{Holders, KernelRecord};

/// Writes the references and the pins.
pub fn write(lines: &mut Lines, record: &KernelRecord) {
    let Ok(references) = record.references else {
        return;
    };
    let line = lines.field("held");
    line.plain(counted(references, "reference")).indent_at(REMARK);
    if let (Ok(holders), Ok("anonymous" | "merged" | "file")) = (&record.holders, &record.owner) {
        for part in parts(holders) {
            line.word(", ", Role::Plain, part);
        }
    }
    match (&record.pins, record.pins_at_most) {
        (Ok(0), _) => _ = line.word(", ", Role::Dim, "not pinned"),
        (Ok(pins), _) => _ = line.word(", ", Role::Note, format!("pinned {}", times(*pins))),
        (Err(_), Some(most)) => _ = line.word(", ", Role::Note, format!("pinned at most {}", times(most))),
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

/// Writes the file that the frame is a page of.
pub fn write_owner(lines: &mut Lines, record: &KernelRecord) {
    match (record.owner.as_ref(), record.file_page) {
        (Ok(_), Some(page)) => {
            let line = lines.field("owner");
            line.plain(format!("page {} of a file", count(page.index))).indent_at(REMARK);
            line.plain(format!("inode {}, device {}", page.inode, page.device));
        }
        (Ok(&"anonymous"), _) => _ = lines.field("owner").plain("anonymous memory"),
        (Ok(&"merged"), _) => _ = lines.field("owner").plain("merged anonymous memory"),
        _ => {}
    }
}
