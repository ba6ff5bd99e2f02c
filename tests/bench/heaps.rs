//! What `heap` costs, against one reading of the same bytes.

use super::measure::cpu_in_turn;
use super::subject::Subject;
use super::table::{Required, Table};
use super::target::{announce, wait};
use super::{Size, floor, ours};

/// Chunks of each size: what malloc was asked for.
const CHUNKS: [(u64, u64); 3] = [(8_000, 64 << 10), (1_000_000, 500), (4_500_000, 56)];

/// (i) CPU time of `heap`, the program as a whole, in heaps of about 500 MiB and of very many chunks.
pub fn heaps(size: &Size, table: &mut Table) {
    for (count, bytes) in CHUNKS {
        let subject = Subject::start("heap", &[size.of(count, 1), bytes]);
        let (pid, whole) = (subject.pid(), subject.range());
        let [raw, heap] =
            cpu_in_turn(size.rounds, [&mut || floor::memory(pid, whole), &mut || assert!(ours::program(pid, "heap"))]);
        let question = format!("(i) heap, {count} chunks of {bytes} bytes, CPU");
        table.row(&question, &heap, "pread of their memory", &raw, Required::Ratio(1.5));
    }
}

/// So many chunks of the main arena, of which every third is free. Announces where it is, and how large.
pub fn play(count: usize, bytes: usize) {
    // Large chunks would be mappings of their own.
    // SAFETY: the program has one thread.
    unsafe { libc::mallopt(libc::M_MMAP_MAX, 0) };
    let mut chunks: Vec<*mut libc::c_void> = Vec::with_capacity(count);
    for _ in 0..count {
        // SAFETY: filled at once, and freed at most once, below.
        let chunk = unsafe { libc::malloc(bytes) };
        assert!(!chunk.is_null(), "no memory");
        // SAFETY: as long as it was asked for.
        unsafe { chunk.write_bytes(1, bytes) };
        chunks.push(chunk);
    }
    // SAFETY: each once.
    chunks.iter().step_by(3).for_each(|&chunk| unsafe { libc::free(chunk) });
    let maps = std::fs::read_to_string("/proc/self/maps").expect("its maps");
    let heap = maps.lines().find(|line| line.ends_with("[heap]")).expect("a heap");
    let (start, end) = heap.split_once(' ').and_then(|(range, _)| range.split_once('-')).expect("a range");
    let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).expect("an address"));
    announce(format!("{start} {}", end - start));
    wait();
}
