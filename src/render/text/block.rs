//! Blocks: labelled lines under each other, and the pieces that several of them share.

use super::Look;
use super::words;
use crate::kernel::Name;
use crate::render::line::Line;
use crate::render::theme::Role;
use crate::report::{Reason, RegionBrief, SymbolBrief, Why};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Where the values begin.
const VALUE: usize = 10;
/// Where the remark right of a value begins: a value is mostly a 64-bit number, 18 columns wide.
pub const REMARK: usize = VALUE + 20;

/// Begins a labelled line; what is wrapped stands under its value.
pub fn field(look: &Look, label: &str) -> Line {
    let mut line = look.line();
    line.push(Role::Label, label).tab_to(VALUE).indent_here();
    line
}

/// A symbol as gdb shows it: `<malloc+16>`.
pub fn symbol(line: &mut Line, symbol: &SymbolBrief) {
    let text = match symbol.offset {
        0 => format!("<{}>", symbol.name),
        offset => format!("<{}+{offset}>", symbol.name),
    };
    line.push(Role::Symbol, text);
}

/// What a region is called, in words where it has no name.
pub fn region_name(name: &Name) -> (Role, String) {
    match name.is_empty() {
        true => (Role::Dim, "(anonymous)".into()),
        false => (Role::Name, name.to_string()),
    }
}

/// A region: its range as the prompt takes it, rights, offset in the file, name.
pub fn region(line: &mut Line, region: &RegionBrief) {
    line.push(Role::Address, format!("{}..{}", region.start, region.end))
        .plain("  ")
        .plain(&region.perms)
        .plain("  ");
    let (role, name) = region_name(&region.name);
    line.push(role, name);
    if region.offset != 0 {
        line.plain(format!("  file offset {:#x}", region.offset));
    }
}

/// Says once each why something is not known, or has no answer, with all the fields that this is about.
pub fn reasons(look: &Look, why: &Why, out: &mut dyn Write) -> io::Result<()> {
    let mut unknown: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut none: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (field, reason) in why.iter() {
        let group = match reason {
            Reason::NotApplicable(_) => &mut none,
            _ => &mut unknown,
        };
        group.entry(reason.to_string()).or_default().push(field);
    }
    for (text, fields) in &unknown {
        reason(look, "unknown", fields, text, out)?;
    }
    for (text, fields) in &none {
        reason(look, "none", fields, text, out)?;
    }
    Ok(())
}

/// One reason and the fields it is about.
pub fn reason(
    look: &Look,
    label: &str,
    fields: &[&str],
    reason: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let role = match label {
        "none" => Role::Dim,
        _ => Role::Warn,
    };
    // `flags` and `flags_raw` are one thing to a person.
    let mut names: Vec<&str> = fields.iter().map(|field| words::field(field)).collect();
    names.dedup();
    let mut line = field(look, label);
    line.prose(role, format!("{}: {reason}", names.join(", ")));
    line.end(out)
}

/// The word that stands for a missing value: `hidden`, `?` (not known here), `-` (there is none).
pub fn missing(why: &Why, field: &str) -> (Role, &'static str) {
    match why.of(field) {
        Some(Reason::FrameHidden) => (Role::Warn, "hidden"),
        Some(Reason::NotApplicable(_)) => (Role::Dim, "-"),
        Some(Reason::NotPermitted(_) | Reason::NotOnThisKernel(_) | Reason::Changed) => {
            (Role::Warn, "?")
        }
        None => (Role::Dim, "-"),
    }
}
