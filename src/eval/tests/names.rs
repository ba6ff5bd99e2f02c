//! What names stand for.

use super::language::{Arguments, arguments};
use super::{Builder, FUNCTION, Fake, GLOBAL, LOCAL, OBJECT, World, entry, process};
use crate::eval::{AddressOrRange, Origin, subject};
use crate::kernel::Name;
use std::sync::atomic::Ordering;

#[test]
fn a_symbol_first_then_what_is_mapped() {
    let world = World::of(process());
    for (text, value) in [
        ("main", "address 0x401000"),
        ("&main", "address 0x401000"),
        ("main + 0x10", "address 0x401010"),
        ("program!main", "address 0x401000"),
        ("&libc.so.6!both", "address 0x7f0000001100"),
        ("program!both", "address 0x401100"),
        ("libc.so.6!0x1149", "address 0x7f0000001149"),
        ("'/usr/lib/libc.so.6'!malloc", "address 0x7f0000001000"),
        ("libc.so.6", "range 0x7f0000001000..0x7f0000004000"),
        ("libc.so.6[1]", "range 0x7f0000002000..0x7f0000003000"),
        ("libc.so.6 + 0x10", "address 0x7f0000001010"),
        ("[heap]", "range 0x500000..0x510000"),
        ("heap", "range 0x500000..0x510000"),
        ("[stack]", "range 0x7ffffff00000..0x7ffffff20000"),
        // The program has a symbol of that name.
        ("stack", "address 0x403200"),
        ("[vsyscall]", "range 0xffffffffff600000..0xffffffffff601000"),
        ("'/opt/a/data.bin'", "range 0x60000000..0x60001000"),
        // The name as it is displayed; in quotes the backslash itself is escaped.
        ("'new\\\\x0aline'", "range 0x61000000..0x61001000"),
        ("buffer - main", "integer 8208"),
        ("buffer & ~0xfff", "address 0x403000"),
        ("symbol(buffer)", "text buffer"),
        ("symbol(main + 3)", "text main+3"),
        ("symbol(main) == \"main\"", "integer 1"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
}

#[test]
fn several_matches_are_listed() {
    let world = World::of(process());
    let (part, error) = world.error("1 + both");
    assert_eq!(part, "both");
    assert_eq!(
        error.message,
        "several symbols are called `both`: program!both at 0x401100, libc.so.6!both at 0x7f0000001100"
    );
    assert_eq!(error.hint.as_deref(), Some("name the module: `MODULE!NAME`"));
    let (_, error) = world.error("program!helper");
    assert!(error.message.contains("0x401040") && error.message.contains("0x401060"));
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("address itself"), "{hint}");
    let (_, error) = world.error("'data.bin'");
    assert_eq!(
        error.message,
        "several files called `data.bin` are mapped: '/opt/a/data.bin' at 0x60000000, '/opt/b/data.bin' at 0x60002000"
    );
}

#[test]
fn an_exported_symbol_goes_before_a_static() {
    let world = World::of(process());
    assert_eq!(world.print("table"), world.print("program!table"));
    assert_eq!(world.print("&table"), world.print("program!table"));
    assert_eq!(world.print("&libc.so.6!table"), "address 0x7f0000001200", "where it is asked for, it is found");
    let Arguments::Symbol(symbol) = arguments("info address table") else {
        panic!("another command");
    };
    let all = crate::eval::symbols(&symbol.node, &world).expect("two symbols");
    assert_eq!(all.len(), 2, "all that bear the name are told");
}

#[test]
fn the_programs_own_symbol_comes_first_and_the_others_are_mentioned() {
    let program = Name::from("/usr/bin/program");
    let mut fake = process();
    fake.executable = Some(program.clone());
    let world = World::of(fake);
    assert_eq!(world.print("both + 1"), "address 0x401101");
    assert_eq!(
        world.notes.take(),
        ["`both` is program!both at 0x401100 here; others of that name: libc.so.6!both at 0x7f0000001100"]
    );
    assert_eq!(world.print("libc.so.6!both"), "address 0x7f0000001100");
    assert_eq!(world.print("main"), "address 0x401000");
    assert!(world.notes.take().is_empty(), "nothing else is called so");
    let (_, error) = world.error("helper");
    assert!(error.message.contains("several symbols"), "{error}");

    // A static of the program goes before an exported symbol of a library.
    let of_program =
        Builder::with(vec![entry("name", 0x2100, 8, LOCAL, OBJECT), entry("shown", 0x1100, 8, LOCAL, FUNCTION)]);
    let of_library =
        Builder::with(vec![entry("name", 0x2200, 8, LOCAL, OBJECT), entry("shown", 0x1200, 8, GLOBAL, FUNCTION)]);
    let mut fake = Fake::new()
        .region(0x40_1000, 0x40_2000, "r-xp", 7, "/usr/bin/program")
        .region(0x40_2000, 0x40_3000, "rw-p", 7, "/usr/bin/program")
        .region(0x7100_1000, 0x7100_2000, "r-xp", 8, "/lib.so")
        .region(0x7100_2000, 0x7100_3000, "rw-p", 8, "/lib.so")
        .file("/usr/bin/program", of_program.bytes())
        .file("/lib.so", of_library.bytes());
    let (_, error) = World::of(fake.clone()).error("name");
    assert!(error.message.contains("several symbols"), "{error}");
    fake.executable = Some(program);
    let world = World::of(fake);
    assert_eq!(world.print("name"), "address 0x402100");
    assert_eq!(world.print("shown"), "address 0x401100");
    assert_eq!(world.notes.take().len(), 2);
}

#[test]
fn a_symbol_of_a_library_with_the_name_of_a_region_is_noted() {
    let library =
        Builder::with(vec![entry("stack", 0x2200, 8, GLOBAL, OBJECT), entry("heap", 0x2300, 8, GLOBAL, OBJECT)]);
    let fake = || {
        let fake = Fake::new()
            .region(0x7100_1000, 0x7100_2000, "r-xp", 8, "/lib.so")
            .region(0x7100_2000, 0x7100_3000, "rw-p", 8, "/lib.so")
            .region(0x7ffe_0000, 0x7ffe_8000, "rw-p", 0, "[stack]");
        fake.file("/lib.so", library.bytes())
    };
    let world = World::of(fake());
    assert_eq!(world.print("stack"), "address 0x71002200");
    assert_eq!(world.notes.take(), ["`stack` is a symbol of lib.so here; the region is `[stack]`"]);
    // There is no such region, the region is meant, or the module is named.
    assert_eq!(world.print("heap"), "address 0x71002300");
    world.print("[stack]");
    world.print("lib.so!stack");
    assert!(world.notes.take().is_empty());
    // The program's own is what its user means.
    let mut fake = fake();
    fake.executable = Some(Name::from("/lib.so"));
    let world = World::of(fake);
    assert_eq!(world.print("stack"), "address 0x71002200");
    assert!(world.notes.take().is_empty());
}

#[test]
fn libraries_of_one_name_are_told_apart_by_their_paths() {
    let mut fake = process();
    let copy = fake.files.values().last().cloned().unwrap_or_default();
    for (at, inode, name) in [(0x7100_0000u64, 30, "/a/lib.so"), (0x7200_0000, 31, "/b/lib.so")] {
        fake = fake
            .region(at + 0x1000, at + 0x2000, "r-xp", inode, name)
            .region(at + 0x2000, at + 0x3000, "rw-p", inode, name)
            .file(name, copy.clone());
    }
    let world = World::of(fake);
    let (_, error) = world.error("lib.so!malloc");
    assert_eq!(
        error.message,
        "several symbols are called `malloc`: '/a/lib.so'!malloc at 0x71001000, '/b/lib.so'!malloc at 0x72001000"
    );
    assert_eq!(error.hint.as_deref(), Some("name the module: `MODULE!NAME`"));
    assert_eq!(world.print("'/b/lib.so'!malloc"), "address 0x72001000");
    let (_, error) = world.error("lib.so!0x1000");
    assert!(error.message.contains("0x71001000, 0x72001000"), "{error}");
}

#[test]
fn a_library_is_called_as_it_is_displayed() {
    let mut fake = process();
    let copy = fake.files.values().last().cloned().unwrap_or_default();
    let path = "/a/esc\u{1b}[31m\u{202e}.so";
    fake = fake
        .region(0x7100_1000, 0x7100_2000, "r-xp", 30, path)
        .region(0x7100_2000, 0x7100_3000, "rw-p", 30, path)
        .file(path, copy);
    let world = World::of(fake);
    let (_, error) = world.error("malloc");
    let way_out = r"'esc\x1b[31m\u{202e}.so'!malloc";
    assert!(error.message.contains(way_out), "{error}");
    assert_eq!(world.print(way_out), "address 0x71001000");
    assert_eq!(world.print(r"'/a/esc\x1b[31m\u{202e}.so'!0x1000"), "address 0x71001000");
}

#[test]
fn overloaded_functions_are_told_with_their_parameters() {
    let program = |names: [&str; 2]| {
        let [one, two] = names;
        let file =
            Builder::with(vec![entry(one, 0x1000, 0x10, GLOBAL, FUNCTION), entry(two, 0x1020, 0x10, GLOBAL, FUNCTION)]);
        let fake = Fake::new().region(0x40_1000, 0x40_2000, "r-xp", 7, "/bin/cc");
        World::of(fake.file("/bin/cc", file.bytes()))
    };
    let world = program(["_Z10overloadedi", "_Z10overloadedd"]);
    let (_, error) = world.error("overloaded");
    assert_eq!(
        error.message,
        "several symbols are called `overloaded`: \
         cc!'overloaded(int)' at 0x401000, cc!'overloaded(double)' at 0x401020"
    );
    assert_eq!(error.hint.as_deref(), Some("write the whole name, in quotes: 'overloaded(int)'"));
    assert_eq!(world.print("cc!'overloaded(double)'"), "address 0x401020");
    // Rust names whose hashes alone differ.
    let hashed = ["_ZN2rs4main17h0123456789abcdefE", "_ZN2rs4main17hfedcba9876543210E"];
    let world = program(hashed);
    let (_, error) = world.error("rs::main");
    for (name, address) in hashed.into_iter().zip(["0x401000", "0x401020"]) {
        let listed = format!("cc!{name} at {address}");
        assert!(error.message.contains(&listed), "{error}");
        assert_eq!(world.print(&format!("cc!{name}")), format!("address {address}"));
    }
}

const MEMBER_OF_BUFFER: &str = "the member is at `&buffer + OFFSET`; an int there is `u32(&buffer + OFFSET)`, \
    and what a pointer there points to is at `*(&buffer + OFFSET)` (gdb's `ptype /o` shows the offset)";

const NOWHERE: &str = "`regions` lists the mapped regions; local variables, constants and types are only in gdb";

#[test]
fn suggestions() {
    let world = World::of(process());
    for (text, part, hint) in [
        ("mian", "mian", "did you mean `main`?"),
        ("lib", "lib", "did you mean `libc.so.6`? (local variables are only in gdb)"),
        ("[haep]", "[haep]", "did you mean `[heap]`?"),
        ("vsyscall", "vsyscall", "did you mean `[vsyscall]`?"),
        ("libc.so.7", "libc.so.7", "did you mean `libc.so.6`?"),
        ("libd.so.6!malloc", "libd.so.6", "did you mean `libc.so.6`?"),
        ("libc.so.6!maloc", "maloc", "did you mean `malloc`?"),
        ("&bufer", "bufer", "did you mean `buffer`?"),
        ("buff", "buff", "did you mean `buffer`? (local variables are only in gdb)"),
        (
            "buffer[3]",
            "buffer",
            "if an element is an int, its address is `(int *)buffer + 3`, and its value `((int *)buffer)[3]`",
        ),
        (
            "table[3]",
            "table",
            "if an element is an int, its address is `(int *)table + 3`, and its value `((int *)table)[3]`; \
             if `table` is an array, write `&table` for `table`",
        ),
        (
            "vector[3]",
            "vector",
            "`MODULE[N]` is a region of a module; an element of an array of int is `((int *)NAME)[3]`",
        ),
        ("buffer.base", "buffer.base", MEMBER_OF_BUFFER),
        ("&buffer.base", "buffer.base", MEMBER_OF_BUFFER),
        ("buffer.inl[1]", "buffer.inl", MEMBER_OF_BUFFER),
        ("heap > x.svg", "x.svg", "the path of a file begins with / ./ ../ ~/ or a quote: `> ./x.svg`"),
        ("bufer[3]", "bufer", "did you mean `buffer`?"),
        ("c0ffee", "c0ffee", "write a hexadecimal number as `0xc0ffee`"),
        ("nothing_like_it", "nothing_like_it", NOWHERE),
        ("rss < 1M", "rss", "`rss` is a function of a range: `rss(all)`"),
        ("frames", "frames", "`walk pfn:A..pfn:B` lists frames, and `summary frames` counts those of the machine"),
    ] {
        let (meant, error) = world.error(text);
        assert_eq!(meant, part, "{text}: {error}");
        assert_eq!(error.hint.as_deref(), Some(hint), "{text}: {error}");
    }
    for (text, refusal) in [
        ("libc.so.6[2]", "2: `libc.so.6` has 2 regions: [0] to [1]"),
        ("'[heap]'[9]", "9: `[heap]` has one region: [0]"),
        ("libc.so.6!0x9000", "0x9000: 0x9000 lies in no load segment of `libc.so.6`"),
        ("symbol([heap])", "[heap]: 0x500000 is in no symbol"),
    ] {
        assert_eq!(world.refusal(text), refusal);
    }
}

#[test]
fn a_module_without_symbols_says_why() {
    let mut fake = process();
    fake.files.clear();
    let world = World::of(fake);
    let (part, error) = world.error("libc.so.6!malloc");
    assert_eq!(part, "libc.so.6");
    assert!(error.message.contains("may not open"), "{error}");
    assert_eq!(error.status(), 4);
    // A name is not simply unknown if no module has symbols.
    let (_, error) = world.error("malloc");
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("`libc.so.6`: may not open"), "{hint}");
}

#[test]
fn a_stripped_program_is_named_where_a_name_is_unknown() {
    let exported = vec![entry("main_arena", 0x1000, 0x20, GLOBAL, FUNCTION)];
    let stripped = Builder { dynamic: exported, ..Builder::default() }.bytes();
    let of_program = |program: Option<&str>| {
        let fake = Fake { executable: program.map(Name::from), ..process() };
        World::of(fake.file("/usr/bin/program", stripped.clone()))
    };
    let silent = "`program` has no symbol table (stripped): only its imported and exported names are known";
    for (program, text, hint) in [
        (Some("/usr/bin/program"), "bounce", silent.to_owned()),
        (Some("/usr/bin/program"), "program!bounce", silent.to_owned()),
        (
            Some("/usr/bin/program"),
            "main",
            format!("did you mean `main_arena`? (local variables are only in gdb) {silent}"),
        ),
        // That of a library is what nearly all have.
        (None, "bounce", NOWHERE.to_owned()),
    ] {
        let (_, error) = of_program(program).error(text);
        assert_eq!(error.hint, Some(hint), "{text}: {error}");
    }
}

#[test]
fn numbers_and_brackets_open_no_file() {
    let world = World::of(process());
    world.print("[heap] + 0x10 + size([stack])");
    world.print("libc.so.6[1]");
    let opened = || world.watched.files_opened.load(Ordering::Relaxed);
    assert_eq!(opened(), 0);
    world.print("main");
    assert!(opened() > 0);
}

#[test]
fn the_regions_are_read_once_a_line() {
    let world = World::of(process());
    world.print("[heap] == [heap] && libc.so.6 == libc.so.6 && main == main");
    assert_eq!(world.watched.region_reads.load(Ordering::Relaxed), 1);
}

#[test]
fn subjects_of_translate() {
    let world = World::of(process());
    let subject = |text: &str| subject(&super::range(text), &world).map_err(|error| error.message);
    let sized = |text: &str| match subject(text) {
        Ok(AddressOrRange::Sized(spans)) => spans.to_string(),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(sized("buffer"), "0x403010..0x403110");
    // The address alone: its one byte.
    assert!(matches!(subject("&buffer"), Ok(AddressOrRange::Address(at)) if at.get() == 0x40_3010));
    assert_eq!(sized("program!buffer"), "0x403010..0x403110");
    assert!(matches!(subject("sizeless"), Ok(AddressOrRange::Address(at)) if at.get() == 0x40_1200));
    assert!(matches!(subject("buffer + 1"), Ok(AddressOrRange::Address(at)) if at.get() == 0x40_3011));
    assert!(matches!(subject("0x1234"), Ok(AddressOrRange::Address(at)) if at.get() == 0x1234));
    assert!(matches!(subject("heap"), Ok(AddressOrRange::Range(spans)) if spans.size() == 0x1_0000));
    assert!(matches!(subject("buffer, +4p"), Ok(AddressOrRange::Range(spans)) if spans.size() == 0x4000));
    let origin = |text: &str| match subject(text) {
        Ok(AddressOrRange::Range(spans)) => spans.origin().clone(),
        other => panic!("{text}: {other:?}"),
    };
    let path = Name::from("/usr/lib/libc.so.6");
    assert_eq!(origin("libc.so.6"), Origin::Module(path));
    assert_eq!(origin("heap"), Origin::Region(Name::from("[heap]")));
    assert!(subject("pfn:1..pfn:2").is_err_and(|message| message.contains("already physical")));
    assert!(subject("pfn:1").is_err());
}

#[test]
fn a_word_of_a_clause_alone_needs_its_operand() {
    let world = World::of(process());
    for (word, operand) in [
        ("of", "the name of a process, or a PID"),
        ("by", "a key, such as `region`"),
        ("with", "a word, such as `heap`"),
        ("top", "a number"),
        ("limit", "a number"),
        ("from", "a capture"),
        ("every", "a time, such as 1s"),
        ("for", "a time, such as 1s"),
        ("where", "a condition, such as `dirty`"),
        ("until", "a condition, such as `dirty`"),
        ("in", "a range"),
        ("to", "a name"),
    ] {
        let (_, error) = world.error(word);
        assert_eq!((error.message, error.hint), (format!("`{word}` needs {operand}"), None));
    }
}

#[test]
fn words_in_brackets_are_the_kernels() {
    let fake = process().region(0x6200_0000, 0x6200_1000, "r--p", 23, "/tmp/[heap]");
    let world = World::of(fake);
    assert_eq!(world.print("[heap]"), "range 0x500000..0x510000");
    assert_eq!(world.print("heap"), "range 0x500000..0x510000");
    assert_eq!(world.print("'[heap]'[0]"), "range 0x500000..0x510000");
    assert_eq!(world.print("'/tmp/[heap]'"), "range 0x62000000..0x62001000");
    let alone = crate::process::fake::Fake::new().region(0x6200_0000, 0x6200_1000, "r--p", 23, "/tmp/[heap]");
    let (_, error) = World::of(alone).error("[heap]");
    assert_eq!(error.message, "no region is called `[heap]`");
}

#[test]
fn the_hint_for_a_condition_or_a_flag_is_a_command() {
    let world = World::of(process());
    for (text, hint) in [
        (
            "present",
            "`present` is a condition on pages: `walk all where present` lists them, `print count(all where present)` counts them",
        ),
        ("lru", "`lru` is a flag of frames: `walk all where flags(lru)` lists their pages"),
        ("mapcount", "`mapcount` is a field of pages: `help mapcount` explains it"),
    ] {
        let (_, error) = world.error(text);
        let given = error.hint.unwrap_or_default();
        assert!(given.starts_with(hint), "{text}: {given}");
    }
}

#[test]
fn the_address_of_a_name_is_not_a_count() {
    let world = World::of(process());
    let value = "`(long)stack` is its value, and `&stack` is its address";
    for (text, refusal, hint) in [
        ("stack > 5", "stack: the address of `stack` is compared with a number", value),
        ("1000000 < stack", "stack: the address of `stack` is compared with a number", value),
        ("main == (int)5", "main: the address of `main` is compared with a number", "`&main` is its address"),
        ("buffer != 0", "buffer: the address of `buffer` is compared with a number", "`&buffer` is its address"),
        ("!buffer", "buffer: the address of `buffer` is always true", "`&buffer` is its address"),
        ("1 && stack", "stack: the address of `stack` is always true", value),
        ("stack || 1", "stack: the address of `stack` is always true", value),
        ("[heap] > 5", "[heap]: cannot compare a range with a number", "`size(RANGE)` is its length"),
        ("5 == libc.so.6", "libc.so.6: cannot compare a range with a number", "`size(RANGE)` is its length"),
        ("region(buffer) == buffer", "region(buffer): cannot compare a range with an address", "`runs(RANGE) == 1`"),
        ("&main < [heap]", "[heap]: cannot compare a range with an address", "`start(RANGE)` its first address"),
        ("heap < [heap]", "<: two ranges can only be equal or not", "`size(RANGE)` is its length"),
        ("![heap]", "[heap]: a range is neither true nor false", "rss(RANGE)"),
    ] {
        let (part, error) = world.error(text);
        assert_eq!(format!("{part}: {}", error.message), refusal, "{text}");
        assert!(error.hint.as_ref().is_some_and(|given| given.contains(hint)), "{text}: {:?}", error.hint);
    }
    for (text, value) in [
        ("&stack == 0x403200", "integer 1"),
        ("&buffer > 5", "integer 1"),
        ("stack > buffer", "integer 1"),
        ("start([heap]) <= &stack", "integer 0"),
        ("stack + 1 == 0x403201", "integer 1"),
        ("size(stack) == 8", "integer 1"),
    ] {
        assert_eq!(world.print(text), value, "{text}");
    }
}
