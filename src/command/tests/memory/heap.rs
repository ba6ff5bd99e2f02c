//! Programs without a heap of glibc: their allocators are named, so that nobody takes silence for an empty heap.

use super::*;
use crate::symbol::tests::builder::{Builder, FUNCTION, GLOBAL, entry};

/// A program with one symbol, which has mapped a library.
fn program(symbol: &str, library: &str) -> Session {
    let file = Builder::with(vec![entry(symbol, 0x1000, 0x10, GLOBAL, FUNCTION)]);
    let fake = Fake::new()
        .region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/server")
        .file("/bin/server", file.bytes())
        .region(0x50_0000, 0x50_2000, "rw-p", 0, "")
        .page(0x50_0000, 0x1300, b"not a chunk")
        .region(0x7000_0000, 0x7000_1000, "r-xp", 8, library);
    Session::on(Fake { executable: Some("/bin/server".into()), ..fake })
}

#[test]
fn allocators_that_are_not_read_are_named() {
    let named = |session: &mut Session| {
        let said = session.says("heap");
        assert!(said.starts_with("no heap of glibc was found\n"), "{said}");
        assert!(said.contains("4 KiB of anonymous memory belongs to the program itself"), "{said}");
        let lines =
            said.lines().filter_map(|line| line.trim().split_once(" is in this program, and its heap is not read"));
        lines.map(|(name, how)| (name.to_owned(), how.to_owned())).collect::<Vec<_>>()
    };
    for (name, asked, libraries, symbols) in [
        (
            "jemalloc",
            "malloc_stats_print",
            &["/usr/lib/libjemalloc.so.2"][..],
            &["je_malloc", "_rjem_malloc", "malloc_stats_print"][..],
        ),
        (
            "tcmalloc",
            "MallocExtension::GetStats",
            &["/usr/lib/libtcmalloc.so.4", "/usr/lib/libtcmalloc_minimal.so.4"],
            &["tc_malloc", "TCMallocInternalMalloc"],
        ),
        ("mimalloc", "mi_stats_print", &["/opt/libmimalloc.so.2.1"], &["mi_malloc"]),
        ("musl", "it keeps no sums", &["/lib/ld-musl-x86_64.so.1"], &["__malloc_replaced", "__expand_heap"]),
        ("Go", "runtime.MemStats", &[], &["runtime.mallocgc"]),
        ("Java", "GC.heap_info", &["/usr/lib/jvm/lib/server/libjvm.so"], &[]),
    ] {
        let by_library = libraries.iter().map(|library| ("main", *library));
        for (symbol, library) in by_library.chain(symbols.iter().map(|symbol| (*symbol, "/lib/libm.so.6"))) {
            let found = named(&mut program(symbol, library));
            let [(word, how)] = found.as_slice() else { panic!("{symbol} {library}: {found:?}") };
            assert_eq!(word, name, "{symbol} {library}");
            assert!(how.contains(asked), "{symbol} {library}: {how}");
        }
    }
    // A name alone that only contains one of these is none.
    assert_eq!(named(&mut program("my_je_malloc", "/lib/notlibjemalloc.so")), []);
}

#[test]
fn a_search_of_chunks_needs_a_heap() {
    let mut session = program("je_malloc", "/lib/libm.so.6");
    assert!(session.says("find all, \"a chunk\"").starts_with("0x500004"));
    let Error::Refused { message, .. } = session.refuses("find all, \"a chunk\" in heap live") else {
        panic!("another error");
    };
    assert_eq!(message, "no heap of glibc was found");
}
