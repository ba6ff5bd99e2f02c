//! A file with the names of its source files, and nothing else.

use super::builder::{Builder, Extra};

/// One unit of DWARF 4 with `files` in the folder `/src`.
pub(crate) fn compiled_from(files: &[&[u8]]) -> Builder {
    let measured = |rest: &[u8]| {
        let length = (rest.len() as u32 + 2).to_le_bytes();
        [&length[..], &4u16.to_le_bytes(), rest].concat()
    };
    // A compilation unit that has only DW_AT_stmt_list, DW_FORM_sec_offset.
    let abbreviations = vec![1, 0x11, 0, 0x10, 0x17, 0, 0, 0];
    let unit = measured(&[0, 0, 0, 0, 8, 1, 0, 0, 0, 0]);
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend(b"/src\0\0");
    for file in files {
        header.extend([file, &b"\0\x01\0\0"[..]].concat());
    }
    header.push(0);
    let length = (header.len() as u32).to_le_bytes();
    let rows = measured(&[&length[..], &header].concat());
    Builder {
        sections: vec![
            Extra::new(".debug_abbrev", abbreviations),
            Extra::new(".debug_info", unit),
            Extra::new(".debug_line", rows),
        ],
        ..Builder::default()
    }
}
