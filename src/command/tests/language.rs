//! The language from the outside; `tests/grammar` holds it to `grammar/` sentence by sentence.

use super::{Kept, attached, run_line};
use crate::command::LANGUAGE;
use crate::hint;
use crate::lang::{Output, ParsedCommand, ParsedLine, SyntaxError};
use crate::process::fake::{World, region};
use crate::sample::sample;
use std::rc::Rc;

fn parsed(line: &str) -> ParsedLine {
    LANGUAGE.parse_line(line).unwrap_or_else(|error| panic!("{}", error.draw(line)))
}

fn command(line: &str) -> Rc<dyn ParsedCommand> {
    match parsed(line) {
        ParsedLine::Command { command, .. } => command.node,
        other => panic!("{line}: {other:?}"),
    }
}

fn error(line: &str) -> SyntaxError {
    match LANGUAGE.parse_line(line) {
        Err(error) => error,
        Ok(tree) => panic!("{line}: {tree:?}"),
    }
}

#[test]
fn a_hundred_thousand_of_anything_is_an_answer_and_no_crash() {
    for part in
        ["(", "-", "!", "* ", "not ", "[", "'", "\"", "&", "pfn:", "$1 = (", "0x1 <a", "u8(", "a+", "{", "1,", "|"]
    {
        for head in sample(["print ", "walk all where ", "echo ", ""], 4) {
            let line = format!("{head}{}", part.repeat(if part.len() > 4 { 500 } else { 20_000 }));
            if let Err(error) = LANGUAGE.parse_line(&line) {
                assert!(!error.expected.is_empty() || !error.message.starts_with("unexpected `"), "{head}{part}");
                assert!(error.draw(&line).len() < 2_000, "{head}{part}");
            }
        }
    }
    // Hints try other lines, and these no further ones.
    for words in ["timeline ", "kind by ", "heap in "] {
        assert!(error(&format!("watch heap {}", words.repeat(200))).message.starts_with("unexpected"), "{words}");
    }
    assert!(error(&format!("print {}", "(".repeat(200_000))).message.contains("nested more than"));
    assert!(error(&format!("print 1{}", "+1".repeat(1_000))).message.contains("operators"));
}

#[test]
fn a_comparison_is_no_redirection() {
    let line = parsed("walk heap where mapcount > 1");
    assert!(matches!(line, ParsedLine::Command { output: Output::Screen, .. }), "{line:?}");
    let line = parsed("walk heap where mapcount > 1 >> ~/x # as asked");
    assert!(matches!(line, ParsedLine::Command { output: Output::File { append: true, .. }, .. }), "{line:?}");
}

#[test]
fn shortened_names() {
    assert_eq!(command("w heap").to_string(), command("walk heap").to_string());
    assert_eq!(command("inf proc").to_string(), "info process");
    assert_eq!(error("wa heap").expected, ["`walk`", "`watch`"]);
    assert_eq!(error("wlak heap").hint.as_deref(), Some("did you mean `walk`?"));
}

#[test]
fn a_name_as_its_source_spells_it_is_told_about_quotes() {
    for line in [
        "print ns::Box<int, 4>::counter",
        "print ns::Op::operator()",
        "print overloaded(int)",
        "info address <rs::inner::A as rs::Go>::go",
        "info symbol ns::~Box",
        "print rs::main::{closure}",
    ] {
        let hint = error(line).hint.unwrap_or_default();
        assert!(hint.contains("'single quotes'"), "{line}: {hint}");
    }
    for line in ["print 1 < , 2", "print main, ,", "info address libc.so.6:", "print 1 2"] {
        let hint = error(line).hint.unwrap_or_default();
        assert!(!hint.contains("'single quotes'"), "{line}: {hint}");
    }
    assert_eq!(error("print strat(1)").hint.as_deref(), Some("did you mean `start`?"));
}

#[test]
fn newcomers_get_the_way_out() {
    for (line, out) in [
        ("compare parent", "`info process` shows the PID"),
        ("compare from one.capture", "`diff from FILE`"),
        ("12124", "`attach 12124`"),
        ("translate ring.data, ring.size", "`translate ring.data, +LENGTH`"),
        ("assert walk *(&ring+16), +64K where not mlocked == 0", "`assert count(RANGE where swapped) == 0`"),
        ("assert count *(&ring+16), +64K where mlocked == 16", "`assert count(RANGE where swapped) == 0`"),
        ("assert pages(heap where mlocked) == 16", "`count(RANGE where FILTER)`"),
        ("snapshot b with content of *thp, +4M", "`snapshot NAME in *thp, +4M`"),
        ("walk buffer, -4K", "`walk buffer-4K..buffer`"),
        ("walk pfn:0x1000..pfn:0x1010 where anon", "`flags(anon)`"),
        ("set pager off", "set pagination off"),
        ("regions where name =~ \"x\"", "name ~ "),
        ("display p 1", ": `display 1`"),
        ("display print/x 1", ": `display/x 1`"),
        ("p arr@10", "p {int[10]}(int *)arr"),
        ("(lldb) memory read 0x555555558010", "memory read 0x555555558010"),
        ("f", "in gdb `f`"),
    ] {
        let hint = error(line).hint.unwrap_or_default();
        assert!(hint.contains(out), "{line}: {hint}");
    }
    assert!(error("flags").hint.is_none());
    assert_eq!(parsed("memory read 0x555555558010"), parsed("x/32xb 0x555555558010"));
}

#[test]
fn hints_for_expressions_of_c_can_be_typed() {
    for (line, out) in [
        ("print *(int*)table@5", "print {int[5]}(int *)table"),
        ("p/x *(unsigned char*)buf@4", "p/x {unsigned char[4]}(unsigned char *)buf"),
        ("p/x *buf@4", "p/x {int[4]}(int *)buf"),
        ("print buf[0]@10", "print {int[10]}(int *)buf"),
        ("print buf[2]@10", "print {int[10]}((int *)buf + 2)"),
        ("print *((int*)table+1)@2", "print {int[2]}((int*)table+1)"),
        ("print (int[5])table", "print {int[5]}table"),
        ("x/4xw table@4", "x/4xw table"),
        ("x/xw table@4", "x/4xw table"),
        ("x table@4", "x/4xb table"),
        ("x/2xw *table@2", "x/2xw (char *)table"),
        ("walk *table@64", "walk (char *)table, +64"),
    ] {
        let hint = error(line).hint.unwrap_or_default();
        assert!(hint.ends_with(&format!("`{out}`")), "{line}: {hint}");
        assert!(matches!(parsed(out), ParsedLine::Command { .. }), "{out}");
    }
    for (line, out) in [
        ("print r->count", "an int there is `u32(*r + OFFSET)`"),
        ("walk *$r->slots@64", "points to is at `*($r + OFFSET)`"),
        ("explain &r->next->in.gain", "the member is at `*r + OFFSET`"),
        ("p &R.inl[1].len", "the member is at `&R + OFFSET`"),
        ("walk buf where fys > 4G", "a symbol of this name is `&fys`"),
        ("p sizeof(struct ring)", "types are only in gdb"),
    ] {
        let hint = error(line).hint.unwrap_or_default();
        assert!(hint.contains(out), "{line}: {hint}");
    }
    // Nothing is offered of which the type is unknown.
    for line in ["print u32(table)@2", "print (table)@2", "print (table@4", "print (f(x))->count"] {
        assert!(!error(line).hint.unwrap_or_default().contains('{'), "{line}");
    }
}

#[test]
fn what_was_meant_for_gdb_is_told() {
    for (line, address) in [
        ("#1  0x00007ffff7e0a1b0 in malloc () from /lib/libc.so.6", "0x7ffff7e0a1b0"),
        ("    #3 0x565117927100 (/tmp/p/vs+0x1100)", "0x565117927100"),
        ("#0  0x00007f21a1c95f14 n/a (libc.so.6 + 0x85f14)", "0x7f21a1c95f14"),
    ] {
        assert_eq!(parsed(line), ParsedLine::Comment);
        let hint = hint::choose(&hint::comment(line).expect("a row"), Some(&|one| Some(one.to_string())));
        assert!(hint.ends_with(&format!("`translate {address}`")), "{line}: {hint}");
    }
    assert_eq!(hint::comment("# a remark about 0x7ffff7e0a1b0"), None);
    assert!(hint::meant_for_gdb(LANGUAGE, "f 1").is_some_and(|note| note.contains("here `f` is `flags`")));
    assert!(hint::meant_for_gdb(LANGUAGE, "t 2").is_some_and(|note| note.contains("here `t` is `translate`")));
    for line in ["f main", "f 4096", "flags 1", "t 0x7ffff7e0a1b0"] {
        assert_eq!(hint::meant_for_gdb(LANGUAGE, line), None, "{line}");
    }
}

/// A path could be a division too: it is one only if the whole line is.
#[test]
fn a_path_of_a_cgroup_is_not_divided_by_what_follows() {
    for line in ["account cgroup /", "account cgroup / top 3", "account cgroup /a.slice/b-1.service"] {
        assert!(command(line).to_string().starts_with("account cgroup \"/"), "{line}: {}", command(line));
    }
    assert_eq!(command("account cgroup / 2").to_string(), "account cgroup / 2");
    for (line, expected) in [
        ("account cgroup / by heap", "mapping"),
        ("account cgroup /a by heap", "mapping"),
        ("account cgroup /a with flags", "heap"),
    ] {
        let error = error(line);
        assert!(error.expected.iter().any(|word| word.contains(expected)) && error.hint.is_none(), "{line}: {error:?}");
    }
}

/// An option where its command does not take it is moved to where it does. It is no file of that name.
#[test]
fn options_at_another_place() {
    for (line, meant) in [
        ("capture a heap --overwrite", "capture a --overwrite heap"),
        ("capture --overwrite a", "capture a --overwrite"),
        ("capture --overwrite a b", "capture a --overwrite b"),
        ("capture --overwrite /tmp/a heap", "capture /tmp/a --overwrite heap"),
        ("capture a with memory --overwrite", "capture a --overwrite with memory"),
        ("export core --overwrite a", "export core a --overwrite"),
        ("snapshot a to b in heap --overwrite", "snapshot a to b --overwrite in heap"),
        ("snapshot to --overwrite b", "snapshot to b --overwrite"),
        ("walk heap --how where dirty", "walk --how heap where dirty"),
        ("soft-dirty --yes clear", "soft-dirty clear --yes"),
        ("x/4xg $sp --fault", "x/4xg --fault $sp"),
    ] {
        assert_eq!(error(line).hint, Some(format!("move the option: `{meant}`")), "{line}");
        command(meant);
    }
    for line in ["capture --overwrite", "snapshot a --overwrite", "walk heap --overwrite", "account cgroup --overwrite"]
    {
        let hint = error(line).hint;
        assert!(hint.as_ref().is_some_and(|hint| hint.contains("`capture FILE --overwrite`")), "{line}: {hint:?}");
    }
    assert_eq!(command("capture './--overwrite'").to_string(), "capture \"./--overwrite\"");
}

#[test]
fn lines_that_fail_when_they_run_name_the_slip() {
    let mut state = attached(World::new([region(0x1000, 1)]).target().1);
    for (line, said) in [
        ("account -full", "`full` is written without a dash"),
        ("account \"x\" by heap", "processes of one name cannot be grouped by `heap`"),
        ("decode phys:0x1000", "`flags phys:0x1000` explains the frame"),
        ("help walk foo", "the help of `walk` has no `foo`"),
        ("quit x", "an exit status is a number from 0 to 255"),
    ] {
        let mut sink = Kept { records: Vec::new(), stop_at: usize::MAX };
        let error = run_line(&mut state, line, None, &mut sink).expect_err(line);
        assert!(format!("{error:?}").contains(said), "{line}: {error:?}");
    }
}
