//! Casts at pmdb's prompt mean what they mean in gdb.

use super::session::compiled;

/// Expressions of which gdb and pmdb have the same value.
const SAME: &[&str] = &[
    "*(int *)&global_int",
    "*(unsigned *)&global_int",
    "*(unsigned char *)&global_int",
    "*(signed char *)&small",
    "*(short int *)&half",
    "*(unsigned short *)&half",
    "*(long *)&large",
    "*(unsigned long long *)&widest",
    "*(long long *)&widest",
    "*(float *)&single",
    "*(double *)&ratio",
    "*(char *)&character",
    "*(int *)array",
    "*((int *)array + 3)",
    "*((int *)&array + 1)",
    "*(short *)((int *)array + 1)",
    "(int *)array + 2 == &array[2]",
    "**(int **)&pointer",
    "***(int ***)&twice",
    "*(char *)*(char **)&text",
    "(int)global_int",
    "(unsigned)unsigned_int",
    "(unsigned char)byte",
    "(long)large",
    "(double)ratio",
    "(float)single",
    "*(int *)pointer",
    "*((int *)pointer - 1)",
    "(char)65",
    "(char)200",
    "(unsigned char)300",
    "(int)0xffffffff",
    "(unsigned)-1",
    "(unsigned long)-1",
    "(short)70000",
    "(int)7.9",
    "(double)7/2",
    "7.5",
    "7.5*2-1",
    "(long)(char)200",
    "-(int)3.5",
    "(char)65 + 1",
    "(int *)0x1000 + 1 - (int *)0x1000",
    "(char *)0x1000 + 1 == 0x1001",
    "(_Bool)17",
    "(float)0.1 + (float)0.2",
    "(float)0.1 + 0.2",
    "(float)1/3",
    "-(float)0.1",
    "(float)16777217 == 16777217",
    "(int)3 + 1.5",
    "(float)1.5 * (int)2",
    "(unsigned char)300 + 1",
    "(unsigned char)200 + (unsigned char)100",
    "(char)200 == 200",
    "(int)0x7fffffff + 1",
    "(unsigned)0 - 1",
    "5 - (unsigned)6",
    "(unsigned)0 - 1 > 0",
    "-(unsigned)1",
    "~(unsigned char)1",
    "!(int)5",
    "(int)1 << 31",
    "1 << (char)4",
    "(short)-8 >> 1",
    "(unsigned)-8 >> 1",
    "(unsigned)1 + 0x100000000",
    "(long)-1 < (unsigned)1",
    "(int)-1 < (unsigned)1",
    "(unsigned long)1 * -1",
    "(unsigned long)-1 / 2",
    "(int)-7 / 2",
    "(int)-7 % 3",
    "(unsigned)7 % -3",
    "(short)-1 == 65535",
    "(unsigned short)-1 + 1",
    "(unsigned long long)1 << 63",
    "*(short *)&half * 100000",
    "*(unsigned *)&unsigned_int + 1000000000",
    "*(signed char *)&small - *(unsigned char *)&byte",
    "((int *)array)[3]",
    "((char *)&array)[4]",
    "((short *)array)[2] + 1",
    "**(int **)&pointer + ((int *)pointer)[1]",
];

/// Lines of which both print the same.
const SAME_TEXT: &[(&str, &str)] = &[
    ("print/x (short)-1", "0xffff"),
    ("print/x (char)-1", "0xff"),
    ("print/x ~(short)0", "0xffffffff"),
    ("print/x (short)-1 * 2", "0xfffffffe"),
    ("print/x (unsigned short)-1 + 1", "0x10000"),
    ("print/d (unsigned)-1", "-1"),
    ("print/u (short)-1", "65535"),
    ("print/o (short)-1", "0177777"),
    ("print/t (short)-1", "1111111111111111"),
    ("print/z (short)1", "0x0001"),
    ("print/a (int)-1", "0xffffffffffffffff"),
    ("print/f (int)1", "1.40129846e-45"),
    ("print/f (short)1", "1"),
    ("print/c (int)300", "44 ','"),
    ("print/x *(short *)&half", "0xf830"),
    ("print {int[4]}&array", "{1, -2, 3, -4}"),
    ("print {int[2][3]}&matrix", "{{1, 2, 3}, {4, 5, 6}}"),
    ("print/x {int[4]}&array", "{0x1, 0xfffffffe, 0x3, 0xfffffffc}"),
    ("print {int[16]}&zeros", "{0 <repeats 16 times>}"),
    ("print {int[300]}&many", "196, 197, 198, 199...}"),
    ("print {char[16]}&greeting", "\"hello\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\""),
    ("print {char[40]}&dashes", "\"a\", '-' <repeats 16 times>, \"b\", '\\000' <repeats 21 times>"),
    ("print {unsigned char[4]}&bytes", "\"\\001\\310\\\"\\n\""),
    ("print {short[10]}&sevens", "{7, 7, 7, 7, 7, 7, 7, 7, 7, 7}"),
];

/// The number in an answer: gdb's is behind `$N = `, which is gdb's alone.
fn number(answer: &str) -> String {
    let value = answer.trim().rsplit_once("= ").map_or(answer.trim(), |(_, value)| value);
    let value = match value {
        "true" => "1",
        "false" => "0",
        value => value,
    };
    value.split([' ', '\n']).next().unwrap_or_default().to_owned()
}

#[test]
fn a_cast_means_what_it_means_in_gdb() {
    let Some(program) = compiled("a_cast_means_what_it_means_in_gdb", "types.c") else {
        return;
    };
    let lines: Vec<String> = SAME
        .iter()
        .flat_map(|text| {
            // pmdb has no elements of arrays.
            let ours = text.replace("&array[2]", "array + 8");
            [format!("print {text}"), format!("pmdb -- print {ours}")]
        })
        .collect();
    let all: Vec<&str> = ["break done", "run"].into_iter().chain(lines.iter().map(String::as_str)).collect();
    let answers = program.answers(&all);
    for (text, pair) in SAME.iter().zip(answers[2..].chunks(2)) {
        let [gdb, pmdb] = [&pair[0], &pair[1]].map(|answer| number(answer));
        assert!(!pair[1].contains('$'), "{text}: {pair:?}");
        let is_single = text.contains("float") && !text.contains("0.1 + 0.2");
        let same = match (gdb.parse::<f64>(), pmdb.parse::<f64>()) {
            // gdb writes nine digits of a float, pmdb those that tell it from its neighbours.
            (Ok(gdb), Ok(pmdb)) if is_single => gdb as f32 == pmdb as f32,
            (Ok(gdb), Ok(pmdb)) => gdb.to_bits() == pmdb.to_bits(),
            _ => false,
        };
        assert!(same, "{text}: {pair:?}");
    }
}

#[test]
fn formats_and_arrays_are_written_as_gdb_writes_them() {
    let Some(program) = compiled("formats_and_arrays_are_written_as_gdb_writes_them", "types.c") else {
        return;
    };
    let pairs = SAME_TEXT.iter().flat_map(|(line, _)| [(*line).to_owned(), format!("pmdb -- {line}")]);
    let lines: Vec<String> = ["break done", "run"].map(str::to_owned).into_iter().chain(pairs).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answers = program.answers(&lines);
    for ((line, expected), pair) in SAME_TEXT.iter().zip(answers[2..].chunks(2)) {
        let [gdb, pmdb] =
            [&pair[0], &pair[1]].map(|answer| answer.split_once("= ").map_or(&**answer, |(_, value)| value).trim());
        assert!(gdb.contains(expected), "{line}: {gdb}");
        // What pmdb adds: the number in hexadecimal.
        let pmdb = pmdb.split_once(" (").map_or(pmdb, |(value, _)| value).trim();
        assert_eq!(gdb, pmdb, "{line}");
    }
}

#[test]
fn pointers_of_two_types_have_no_difference() {
    let Some(program) = compiled("pointers_of_two_types_have_no_difference", "types.c") else {
        return;
    };
    program.check(
        &["break done", "run"],
        &[
            ("pmdb -- print (int *)array - (long *)array", "`int *` and `long *` cannot be subtracted"),
            ("pmdb -- print (int *)array - (int *)array + 0x1000", "(0x1000)"),
        ],
    );
}

#[test]
fn x_notes_what_gdb_would_follow() {
    let Some(program) = compiled("x_notes_what_gdb_would_follow", "types.c") else {
        return;
    };
    program.check(
        &["break done", "run"],
        &[
            ("x/s text", "\"hello\""),
            ("pmdb -- x/s text", "`text` has the size of a pointer: to follow it, write `x/s *text`"),
            ("pmdb -- x/s *text", "\"hello\""),
            ("pmdb -- x/xg large", "to follow it, write `x *large`"),
            ("pmdb -- walk text", ": for the memory there, write `walk region(*text)`"),
            ("pmdb -- walk text + 4096", ": for the memory there, write `walk region(*text + 4096)`"),
            ("pmdb -- explain text", ": for the memory there, write `explain *text`"),
            ("pmdb -- walk text, +64K", ": for the memory there, write `walk *text, +64K`"),
            ("pmdb -- find text, +8, 3", ": for the memory there, write `find *text, +8, 3`"),
            (
                "pmdb -- watch global_int for 1ms",
                "to wait until `global_int` has another value: `watch global_int until u32(global_int) != 4294967291`",
            ),
            // Functions, and the addresses of variables.
            ("pmdb -- print count(text)", ": for the memory there, write `print count(region(*text))`"),
            ("pmdb -- assert count(text) == 1", ": for the memory there, write `assert count(region(*text)) == 1`"),
            ("pmdb -- assert runs(*text) == 1", "runs() needs a range, and one address is one page"),
            ("pmdb -- assert runs(*text) == 1", "`runs(region(*text))` is of its whole region"),
            ("pmdb -- assert count($sp) == 1", ": for its whole region, write `assert count(region($sp)) == 1`"),
            ("pmdb -- print state(text)", ": for the memory there, write `print state(*text)`"),
            ("pmdb -- region text", ": for the memory there, write `region *text`"),
            ("pmdb -- print global_int", "address of `global_int`: for its value, write `print (int)global_int`"),
            ("pmdb -- print (int)global_int", "-5"),
            ("pmdb -- print pointer", "address of `pointer`: for its value, write `print *pointer`"),
            ("pmdb -- print (char)*text", ": for what it points to, write `print *(char *)text`"),
            ("pmdb -- print *(char *)text", "104"),
            (
                "pmdb -- explain &text[1024*4]",
                "at `*text + 1024*4` if this is a pointer, and at `&text + 1024*4` if it is an array",
            ),
            ("pmdb -- print *&global_int", "`global_int` has 4: for its value, write `print (int)global_int`"),
            ("pmdb -- print *&array", "`array` has 16: for its value, write `print {int[4]}&array`"),
            ("pmdb -- print {int[4]}&array", "{1, -2, 3, -4}"),
            // Every command with a range.
            ("pmdb -- account text", ": for the memory there, write `account region(*text)`"),
            ("pmdb -- summary text", ": for the memory there, write `summary region(*text)`"),
            ("pmdb -- map text", ": for the memory there, write `map region(*text)`"),
            ("pmdb -- patched text", ": for the memory there, write `patched region(*text)`"),
            ("pmdb -- explain huge text", ": for the memory there, write `huge region(*text)`"),
            ("pmdb -- find text, 1", ": for the memory there, write `find region(*text), 1`"),
            ("pmdb -- snapshot a in text", ": for the memory there, write `snapshot a in region(*text)`"),
            ("pmdb -- diff a in text", ": for the memory there, write `diff a in region(*text)`"),
        ],
    );
}

/// A pointer and an array have the same elements in C. What is hinted shows them, of both.
#[test]
fn hints_for_elements_and_members_are_right_for_pointers_and_for_arrays() {
    let Some(program) = compiled("hints_for_elements_and_members_are_right", "types.c") else {
        return;
    };
    program.check(
        &["break done", "run"],
        &[
            ("pmdb -- print pointer[1]", "its address is `(int *)pointer + 1`, and its value `((int *)pointer)[1]`"),
            ("pmdb -- print ((int *)pointer)[1] + 0x1000", "(0x1003)"),
            ("pmdb -- print (int *)pointer + 1", "<array+8>"),
            ("pmdb -- print pair[1]", "if `pair` is an array, write `&pair` for `pair`"),
            ("pmdb -- print ((int *)&pair)[1]", "6"),
            ("pmdb -- print (int *)&pair + 1", "<pair+4>"),
            (
                "pmdb -- print (char *)tag",
                "as one: its own value is `(long)tag`; for an array, write `print (char *)&tag`",
            ),
            ("pmdb -- print (char *)&tag", "<tag>"),
            ("pmdb -- print ((int *)array)[1]", "-2"),
            ("pmdb -- explain &text[4096]", "and if it is a char, `explain (char *)text + 4096`"),
            ("pmdb -- print (char *)pointer + 4", "<array+8>"),
            ("pmdb -- print &many[100]", "if an element is an int: `print (int *)many + 100`,"),
            ("pmdb -- print (int *)many + 100", "<many+400>"),
            ("pmdb -- print/x *pointer@2", "for 2 ints: `print/x {int[2]}(int *)pointer`"),
            ("pmdb -- print/x {int[2]}(int *)pointer", "{0xfffffffe, 0x3}"),
            ("pmdb -- print/x {int[2]}(int *)array", "{0x1, 0xfffffffe}"),
            ("pmdb -- walk *pointer@64", "for 64 bytes: `walk (char *)pointer, +64`"),
            ("pmdb -- walk (char *)pointer, +64", "1 page, 4 KiB"),
            ("pmdb -- x/2xw *pointer@2", "the count follows the slash: `x/2xw (char *)pointer`"),
            ("pmdb -- x/2xw (char *)pointer", "<array+4>:"),
            ("pmdb -- explain *pointer@2", "for the first element: `explain (char *)pointer`"),
            ("pmdb -- print ring_pointer->length", "an int there is `u32(*ring_pointer + OFFSET)`"),
            ("pmdb -- print u32(*ring_pointer + 8)", "(0x12c)"),
            ("pmdb -- print ring_pointer.length", "an int there is `u32(*ring_pointer + OFFSET)`"),
            ("pmdb -- translate *ring.base, +4K", "the member is at `&ring + OFFSET`; an int there"),
            ("pmdb -- explain &ring.length", "the member is at `&ring + OFFSET`"),
            ("pmdb -- print u32(&ring + 8)", "(0x12c)"),
            ("pmdb -- print *(&ring + 0)", "<many>"),
            ("pmdb -- find many, many + 64, 3", "put a plus before a length: `find (char *)many, +64, 3`"),
            ("pmdb -- find (char *)many, +64, 3", "1 match in 64 B"),
            ("pmdb -- find text, text+4, 3", "put a plus before a length: `find (char *)text, +4, 3`"),
            ("pmdb -- find (char *)text, +4, \"ell\"", "1 match in 4 B"),
            ("pmdb -- find many, ring_pointer, 3", "0 matches"),
        ],
    );
}
