//! The questions that people bring, each with the line that answers it, and the words by which it is found in `help`.
//!
//! `hint::habits` has words too, for lines that do not parse: there each has one answer, with what to type in that place,
//! and most are names of commands. Here a word is about a subject, and has every question about it. A test holds both
//! to the same commands.

use crate::report::HelpQuestion;

/// How many of [`QUESTIONS`] `help` begins with.
pub const FIRST: usize = 9;

/// A question, and the words for it in `help WORD`.
pub struct Question {
    /// As the help shows it. Words in capitals in its line are placeholders.
    pub shown: HelpQuestion,
    words: &'static [&'static str],
}

impl Question {
    /// The texts that the help shows.
    pub fn texts(&self) -> [&'static str; 2] {
        [self.shown.line, self.shown.asks]
    }

    /// The words that stand for it.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.words.iter().copied()
    }

    /// Whether a word stands for the question.
    pub fn has_word(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The questions that a word stands for.
    pub fn about(word: &str) -> impl Iterator<Item = &'static Question> + use<> {
        let word = word.to_lowercase();
        QUESTIONS.iter().filter(move |question| question.has_word(&word))
    }
}

const fn question(line: &'static str, asks: &'static str, words: &'static [&'static str]) -> Question {
    Question { shown: HelpQuestion { line, asks }, words }
}

/// Every question. The first ones are those that most people bring.
#[rustfmt::skip]
pub static QUESTIONS: &[Question] = &[
    question("account", "where is the memory, and what would free it?",
        &["rss", "pss", "uss", "oom", "usage", "footprint", "reclaim", "leak", "munmap", "madvise", "madv_dontneed", "madv_free"]),
    question("account of NAME", "what do all processes of a name use together?",
        &["rss", "pss", "shared", "workers", "family", "total"]),
    question("heap", "is the heap live, or freed and kept?",
        &["malloc", "free", "arena", "allocator", "fragmentation", "trim", "malloc_trim", "glibc", "leak", "rss"]),
    question("huge", "why is memory not on huge pages?",
        &["huge", "thp", "khugepaged", "hugepage", "hugepages", "huge pages", "madv_collapse", "madv_hugepage", "madv_nohugepage"]),
    question("translate ADDRESS", "which physical address belongs to this one?",
        &["physical", "virtual", "dma", "bus", "frame", "pagemap"]),
    question("explain ADDRESS", "what is this page, and what will an access do?",
        &["fault", "segfault", "sigsegv", "sigbus", "crash", "lazy"]),
    question("who ADDRESS", "which processes map this page?",
        &["shared", "sharing", "sharers", "rmap", "owner"]),
    question("compare children", "what did a fork copy, and what is still shared?",
        &["fork", "cow", "copy", "child", "children"]),
    question("capture FILE", "how can I look at it later, or elsewhere?",
        &["oom", "offline", "dump", "remote", "save"]),
    question("help :oom", "the OOM killer ends it at night: what was in memory just before?",
        &["oom", "kill", "killed", "killer", "oom killer", "oom-killer", "out of memory", "dies", "night", "unattended"]),
    question("watch RANGE", "which pages change while I look?",
        &["migration", "migrate", "compaction", "moved", "balancing", "growth"]),
    question("account cgroup", "what is charged to its cgroup?",
        &["cgroup", "container", "docker", "memcg", "kubernetes", "limit"]),
    question("account children", "which memfds and shared memory does nobody map?",
        &["memfd", "shm", "tmpfs", "held", "unmapped", "fd", "ipcrm", "ipcs"]),
    question("regions by rss", "which mappings are largest?",
        &["mapping", "mappings", "maps", "pmap", "vma", "rss"]),
    question("source :dma RANGE", "can a device use it: in one piece, pinned, and does it stay?",
        &["contiguous", "dma", "scatter", "pinned", "device", "bounce"]),
    question("walk RANGE by run", "is this buffer in one piece?",
        &["contiguous", "dma", "scatter", "fragmentation"]),
    question("walk RANGE by node", "on which NUMA nodes is it?",
        &["numa", "node", "nodes", "mbind", "membind"]),
    question("pins RANGE", "which pages are pinned, and who may have pinned them?",
        &["pin", "pinned", "gup", "dma", "rdma", "vfio"]),
    question("regions where swapped > 0", "which regions are swapped out?",
        &["swap", "swapped", "swapoff", "zram", "zswap"]),
    question("walk all where file by region", "how much page cache is mapped?",
        &["cache", "cached", "pagecache", "mmap"]),
    question("who phys:ADDRESS", "whose page is at the physical address of a memory error?",
        &["mce", "ecc", "hwpoison", "poison", "physical", "memory error", "memory failure", "hardware", "hardware error", "dimm"]),
    question("snapshot", "at the prompt: what changes until `diff`?",
        &["growth", "leak", "changes", "written", "before", "touched", "touch", "request"]),
    question("heap every 1s for 10s", "which sizes of blocks grow?",
        &["leak", "growth", "leaks"]),
    question("info process", "how near are the limits of mappings and of ulimit?",
        &["enomem", "max_map_count", "ulimit", "rlimit", "limits", "limit", "sysctl", "mmap", "mmap fails", "malloc", "memlock", "mlock"]),
    question("account frames", "what is all memory of the machine used for?",
        &["overcommit", "enomem", "machine", "free", "meminfo", "oom"]),
    question("patched", "which code differs from its file?",
        &["breakpoint", "hook", "code", "tampered"]),
];
