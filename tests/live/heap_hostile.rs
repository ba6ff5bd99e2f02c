//! Heaps that a program has overwritten itself: each is refused, and none is added up.

use super::answers::program;
use super::heap::{arenas, has_glibc, sums};
use super::target::{Target, command};
use super::{Scenario, Test};
use pmdb::AddressSpace;
use pmdb::budget::Budget;
use pmdb::inspect::heap::{ArenaOutcome, HeapArena, HeapSearch};
use serde_json::Value;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("heap_hostile::overwritten_heaps_are_refused", overwritten_heaps_are_refused),
    ("heap_hostile::very_many_chunks_end_in_the_budget", very_many_chunks_end_in_the_budget),
];

pub const SCENARIOS: &[Scenario] = &[("heap_poked", poked)];

const BLOCKS: usize = 3000;
const WORD: u64 = size_of::<usize>() as u64;

/// Allocates in two arenas and prints the address of a block of each. Then it writes each word that its input has, and
/// allocates nothing meanwhile.
fn poked(arguments: &[String]) {
    let bytes: usize = arguments[0].parse().expect("a size");
    let blocks: usize = arguments[1].parse().expect("a number");
    let fill = move || {
        // SAFETY: the blocks are written within their size, and every second one is freed once.
        unsafe {
            let all: Vec<*mut libc::c_void> =
                (0..blocks).map(|_| libc::memset(libc::malloc(bytes), 7, bytes)).collect();
            all.iter().step_by(2).for_each(|block| libc::free(*block));
            let middle = all[(blocks / 2) | 1] as u64;
            std::mem::forget(all);
            middle
        }
    };
    let (say, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        say.send(fill()).expect("it waits");
        loop {
            // SAFETY: it waits for a signal.
            unsafe { libc::pause() };
        }
    });
    let of_thread = heard.recv().expect("an address");
    println!("{} {of_thread}", fill());
    loop {
        let mut line = [0_u8; 64];
        // SAFETY: the buffer is as long as is said.
        let read = unsafe { libc::read(0, line.as_mut_ptr().cast(), line.len()) };
        let Some(text) = line.get(..read as usize).filter(|text| !text.is_empty()) else {
            return;
        };
        let mut numbers = [0_u64; 2];
        let digits = text.iter().filter(|byte| **byte != b'\n');
        let mut place = 0;
        for &byte in digits {
            match byte {
                b' ' => place = 1,
                digit => numbers[place] = numbers[place].wrapping_mul(10).wrapping_add(u64::from(digit - b'0')),
            }
        }
        // The end of the line may come later than the rest.
        if numbers[0] == 0 {
            continue;
        }
        // SAFETY: the test gives the address of a word of the heap.
        unsafe {
            (numbers[0] as *mut usize).write_volatile(numbers[1] as usize);
            libc::write(1, b"done\n".as_ptr().cast(), 5);
        }
    }
}

struct Poked {
    target: Target,
    /// A block in use of the main arena, and one of an arena of threads.
    blocks: [u64; 2],
}

impl Poked {
    fn start(bytes: u64, blocks: usize) -> Self {
        let arguments = [bytes.to_string(), blocks.to_string()];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = command("heap_poked", &arguments);
        let mut target = Target::spawn(command.env_remove("MALLOC_ARENA_MAX").env_remove("GLIBC_TUNABLES"));
        let line = target.line();
        let mut blocks = line.split(' ').map(|word| word.parse().expect("an address"));
        let blocks = std::array::from_fn(|_| blocks.next().expect("two addresses"));
        Poked { target, blocks }
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; size_of::<usize>()];
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.target.pid())).expect("its memory");
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut bytes, address).expect("a word");
        usize::from_ne_bytes(bytes) as u64
    }

    fn write(&mut self, address: u64, word: u64) {
        self.target.send(&format!("{address} {word}"));
        assert_eq!(self.target.line(), "done");
    }

    /// What is found, and how long that takes.
    fn arenas(&self) -> Vec<HeapArena> {
        let began = Instant::now();
        let found = arenas(&self.target);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        found
    }
}

fn overwritten_heaps_are_refused() {
    if !has_glibc("heap_hostile::overwritten_heaps_are_refused") {
        return;
    }
    let mut poked = Poked::start(600, BLOCKS);
    let before = poked.arenas();
    assert!(before.len() > 1 && before.iter().all(|arena| arena.outcome == ArenaOutcome::Complete), "{before:?}");
    let [main, thread] = [0, before.len() - 1].map(|number| before[number].address.get());
    // The last arena of the circle is the oldest one of threads.
    let top_of = |poked: &Poked, arena: &HeapArena| {
        let end = arena.parts.last().expect("its memory").end().get() - sums(arena).top;
        let state = arena.address.get();
        (state..state + 0x100).step_by(WORD as usize).find(|at| poked.word(*at) == end).expect("`top`")
    };
    let [top, top_of_thread] = [&before[0], before.last().expect("one")].map(|arena| top_of(&poked, arena));
    let size = poked.blocks.map(|block| block - WORD);
    let heap_info = before.last().expect("one").parts[0].start().get();
    let [size_word, top_word] = [poked.word(size[0]), poked.word(top)];
    let high = 1 << (8 * WORD - 1);
    // What is overwritten, with what, and the arena that has no sums then.
    let cases = [
        ("a wrong top", top, top_word + 2 * WORD, main),
        ("a top in the stretch before", top, size[0] - WORD, main),
        ("a top that is not mapped", top, 16 * WORD, main),
        ("a size of half of all memory", size[0], high | 1, main),
        ("a size of 0, which leads to itself", size[0], 1, main),
        ("a size that is too large by one", size[0], size_word + 2 * WORD, main),
        ("a word of the program", size[0], 0x6161_6161, main),
        ("a state that nothing explains", size[0], size_word ^ 2, main),
        ("a size in an arena of threads", size[1], 0x6161_6161, thread),
        ("a top of an arena of threads", top_of_thread, 0, thread),
        ("a heap that leads to itself", heap_info + WORD, heap_info, thread),
        ("a heap of another arena", heap_info, main, thread),
        ("a heap that is too large", heap_info + 2 * WORD, high, thread),
    ];
    for (what, address, word, arena) in cases {
        let old = poked.word(address);
        poked.write(address, word);
        let found = poked.arenas();
        // A head that is no head hides the arena, and those that it leads to.
        let of = found.iter().find(|one| one.address.get() == arena);
        assert!(of.is_none_or(|one| one.sums.is_none() && one.outcome != ArenaOutcome::Complete), "{what}: {of:?}");
        let said = program(&[], poked.target.pid(), true, &["heap".to_owned(), "heap by size".to_owned()]);
        let first: Value = serde_json::from_str(said.lines().next().expect("a summary")).expect("an object");
        assert_eq!(first["type"], "heap-summary", "{what}: {said}");
        let is_named = first["incomplete"] != 0 || first["arenas"] == 0;
        assert!(is_named, "{what}: {first}");
        poked.write(address, old);
        let again = poked.arenas();
        assert_eq!(again.len(), before.len(), "{what}");
        assert!(again.iter().all(|arena| arena.outcome == ArenaOutcome::Complete), "{what}: {again:?}");
    }
    // The circle of arenas, led elsewhere.
    let next = (main..main + 0x1000).step_by(WORD as usize).find(|at| poked.word(*at) == thread).expect("`next`");
    for word in [heap_info, 0, high] {
        let old = poked.word(next);
        poked.write(next, word);
        let found = poked.arenas();
        assert!(found.is_empty(), "{word:x}: {found:?}");
        poked.write(next, old);
    }
    assert!(poked.arenas().iter().all(|arena| arena.outcome == ArenaOutcome::Complete));
}

/// The smallest chunks, very many: a walk takes no more steps than it may.
fn very_many_chunks_end_in_the_budget() {
    if !has_glibc("heap_hostile::very_many_chunks_end_in_the_budget") {
        return;
    }
    let poked = Poked::start(3 * WORD, 200_000);
    let space = AddressSpace::of(&poked.target.attach()).expect("its regions");
    let mut search = HeapSearch::new(&space, Budget::unlimited().at_most(100_000)).expect("few steps");
    let mut arenas = 0;
    let ended = loop {
        match search.next() {
            Ok(Some(_)) => arenas += 1,
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(ended, Some(pmdb::inspect::Error::OutOfBudget(_))), "{arenas} arenas, {ended:?}");
    let whole = poked.arenas();
    let smallest = |arena: &HeapArena| sums(arena).in_use.chunks;
    // Freed chunks of this size stay with the thread or in a fastbin, or are joined with their neighbours.
    assert!(whole.iter().map(smallest).sum::<u64>() > 200_000, "{whole:?}");
}
