//! Casts at pmdb's prompt mean what they mean in gdb.

use crate::session::compiled;

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
];

/// The number behind `= ` in an answer.
fn number(answer: &str) -> String {
    let value = answer.trim().rsplit_once("= ").map_or("", |(_, value)| value);
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
        let same = match (gdb.parse::<f64>(), pmdb.parse::<f64>()) {
            (Ok(gdb), Ok(pmdb)) => gdb.to_bits() == pmdb.to_bits(),
            _ => false,
        };
        assert!(same, "{text}: {pair:?}");
    }
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
            ("pmdb -- x/s text", "gdb would follow `text`, which has the size of a pointer: x/s *text"),
            ("pmdb -- x/s *text", "\"hello\""),
            ("pmdb -- x/xg large", "gdb would follow `large`"),
        ],
    );
}
