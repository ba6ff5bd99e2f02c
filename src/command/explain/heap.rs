//! `explain ADDR with heap`: in which chunk of glibc's heap an address lies.

use super::super::floor::{Context, Error};
use super::super::heap::why_incomplete;
use crate::inspect::AddressSpace;
use crate::inspect::heap::{HeapPiece, HeapPlace, require_memory};
use crate::kernel::VirtualAddress;
use crate::process::Target;
use crate::render::Record;
use crate::render::text::Text;
use crate::render::text::lines::Lines;
use crate::render::theme::Role;
use crate::render::units::size;
use crate::report::record::record;
use crate::report::{Fact, Reason};

record! {
    /// The place of an address in the heaps of glibc.
    pub struct HeapChunk as "heap-chunk" with why if any {
        /// The address.
        address: VirtualAddress,
        /// The kind of place. `in use`: or freed and kept in tcache or a fastbin. `top`: the free end of an arena.
        /// `other`: heads of the allocator, or memory from `sbrk`. `mapping`: a chunk that is a mapping of its own.
        lies: Fact<&'static str>,
        /// The number of the arena; 0 is the main one.
        [optional] arena: Option<u64>,
        /// The address of the head of the arena (`malloc_state`).
        [optional] head: Option<VirtualAddress>,
        /// The first byte of the chunk: that of its head.
        [optional] chunk: Option<VirtualAddress>,
        /// Its bytes, with its head.
        [optional] bytes: Option<u64>,
        /// The word for the chunk right before it.
        [optional] before: Option<&'static str>,
        /// The bytes of the chunk right before it.
        [optional] before_bytes: Option<u64>,
        /// The word for the chunk right after it.
        [optional] after: Option<&'static str>,
        /// The bytes of the chunk right after it.
        [optional] after_bytes: Option<u64>,
    }
}

impl HeapChunk {
    fn of(address: VirtualAddress, place: HeapPlace) -> Self {
        let none = HeapChunk {
            address,
            lies: Ok("none"),
            arena: None,
            head: None,
            chunk: None,
            bytes: None,
            before: None,
            before_bytes: None,
            after: None,
            after_bytes: None,
        };
        let word = |piece: &HeapPiece| piece.kind.word();
        match place {
            HeapPlace::Arena { number, head, at, before, after } => HeapChunk {
                lies: Ok(at.kind.word()),
                arena: Some(number as u64),
                head: Some(head),
                chunk: Some(at.start),
                bytes: Some(at.bytes),
                before: before.as_ref().map(word),
                before_bytes: before.map(|piece| piece.bytes),
                after: after.as_ref().map(word),
                after_bytes: after.map(|piece| piece.bytes),
                ..none
            },
            HeapPlace::Mapping(range) => {
                HeapChunk { lies: Ok("mapping"), chunk: Some(range.start()), bytes: Some(range.len()), ..none }
            }
            HeapPlace::Outside => none,
            HeapPlace::Unknown(outcome) => {
                let why = format!("a heap was not read to its end: {}", why_incomplete(outcome));
                HeapChunk { lies: Err(Reason::NotInFile(why)), ..none }
            }
            HeapPlace::Unsearched => {
                let why = "variables in which heaps are found are in swap, or too many".to_owned();
                HeapChunk { lies: Err(Reason::NotInFile(why)), ..none }
            }
        }
    }
}

/// Emits the place of an address.
pub(super) fn emit(target: &Target, address: VirtualAddress, context: &mut Context) -> Result<(), Error> {
    let space = AddressSpace::of(target)?;
    require_memory(&space)?;
    let place = HeapPlace::of(&space, address, &context.sink.budget())?;
    Ok(context.sink.emit(&HeapChunk::of(address, place))?)
}

impl Record for HeapChunk {
    fn write(&self, text: &mut Text) {
        text.line(write, self);
    }
}

fn write(lines: &mut Lines, chunk: &HeapChunk) {
    let line = lines.field("heap");
    let lies = match &chunk.lies {
        Ok(lies) => *lies,
        Err(reason) => {
            line.push(Role::Warn, "unknown").plain(": ").prose(Role::Plain, reason.cause());
            return;
        }
    };
    let (Some(start), Some(bytes)) = (chunk.chunk, chunk.bytes) else {
        line.plain("in no heap of glibc");
        return;
    };
    let into = chunk.address.get().saturating_sub(start.get());
    let what = match lies {
        "mapping" => "in use, a mapping of its own",
        "in use" => "in use, or freed and kept (tcache, fastbins)",
        "top" => "free: the end of the arena, from which chunks are cut",
        "other" => "a head of the allocator, or memory that the program got with sbrk",
        lies => lies,
    };
    line.push(if lies == "in use" || lies == "mapping" { Role::Good } else { Role::Note }, what);
    line.plain(format!(", {} at ", size(bytes))).push(Role::Address, start).plain(format!(", byte {into:#x} of it"));
    match chunk.arena {
        Some(0) => _ = line.plain(", main arena"),
        Some(number) => _ = line.plain(format!(", arena {number}")),
        None => {}
    }
    let beside = [("before", chunk.before.zip(chunk.before_bytes)), ("after", chunk.after.zip(chunk.after_bytes))];
    for (side, (what, bytes)) in beside.into_iter().filter_map(|(side, known)| Some((side, known?))) {
        lines.field("").plain(format!("right {side} it: {what}, {}", size(bytes)));
    }
}

/// Samples of its record.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::inspect::heap::{ArenaOutcome, PieceKind};
    use crate::kernel::AddressRange;

    pub fn all() -> Vec<Box<dyn Record>> {
        let piece = |start, bytes, kind| HeapPiece { start: VirtualAddress::new(start), bytes, kind };
        let at = VirtualAddress::new(0x5555_0000_1040);
        let arena = |number, kind| HeapPlace::Arena {
            number,
            head: VirtualAddress::new(0x7f40_0000_0030),
            at: piece(0x5555_0000_1000, 3072, kind),
            before: Some(piece(0x5555_0000_0fe0, 32, PieceKind::InUse)),
            after: Some(piece(0x5555_0000_1c00, 1 << 20, PieceKind::Free)),
        };
        let range = AddressRange::of_length(VirtualAddress::new(0x5555_0000_0000), 1 << 20).expect("a range");
        [
            arena(0, PieceKind::InUse),
            arena(1, PieceKind::Free),
            arena(2, PieceKind::Top),
            arena(3, PieceKind::Other),
            HeapPlace::Mapping(range),
            HeapPlace::Outside,
            HeapPlace::Unknown(ArenaOutcome::Scattered),
            HeapPlace::Unsearched,
        ]
        .into_iter()
        .map(|place| Box::new(HeapChunk::of(at, place)) as Box<dyn Record>)
        .collect()
    }
}
