//! What is said of what is not there: pages in no region, frames of pages without one, pages that are nobody's.

use crate::run::Home;
use serde_json::Value;

fn objects(arguments: &[&str]) -> Vec<Value> {
    let home = Home::new();
    let run = home.run(&[&["-nx", "-batch", "--json"], arguments].concat());
    run.is_fine();
    run.objects()
}

fn of_type<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let all = objects.iter();
    all.filter(|object| object["type"] == kind).collect()
}

#[test]
fn pages_in_no_region_have_no_region() {
    // Below mmap_min_addr, where nothing can be mapped.
    let walk = ["-p", "self", "-ex", "walk 0x0..0x1000"];
    let found = objects(&walk);
    let rows = of_type(&found, "pages");
    assert_eq!(rows.len(), 1, "{found:?}");
    assert_eq!(rows[0]["state"], "unmapped");
    assert_eq!(rows[0].get("region"), Some(&Value::Null));
    let text = Home::new().run(&[&["-nx", "-batch"], &walk[..]].concat());
    text.is_fine();
    let row = text.out.lines().find(|line| line.contains("unmapped"));
    let row = row.unwrap_or_else(|| panic!("{text:?}"));
    assert!(!row.contains("anonymous"), "{row}");
}

#[test]
fn questions_about_a_frame_have_no_answer_without_one() {
    let walk = |filter: &str| format!("walk all where ({filter}) and not outside by state");
    let states = |filter: &str| {
        let found = objects(&["demo", "-ex", &walk(filter)]);
        let groups = of_type(&found, "group").into_iter();
        let states = groups.map(|group| group["key"].as_str().unwrap_or_default().to_owned());
        states.collect::<Vec<_>>()
    };
    assert!(states("present or not present").contains(&"untouched".to_owned()));
    assert_eq!(states("exclusive or not exclusive"), ["present"]);
    assert_eq!(states("not exclusive and not present"), [""; 0]);
}

#[test]
fn the_page_of_zeros_is_said_to_be_nobodys() {
    let found = objects(&["demo", "-ex", "region $zero"]);
    let region = of_type(&found, "region");
    let bytes = |field: &str| region[0][field].as_u64();
    let zero = bytes("zero").expect("told here");
    assert!(zero > 0, "{region:?}");
    if let (Some(present), Some(shared), Some(private)) = (bytes("present"), bytes("shared"), bytes("private")) {
        assert_eq!(present, shared + private + zero);
    }
    let home = Home::new();
    let run = home.run(&["-nx", "-batch", "demo", "-ex", "region $zero"]);
    run.is_fine();
    assert!(run.out.contains("the shared zero page"), "{run:?}");
}

#[test]
fn a_thread_is_told_whose_registers_are_shown() {
    // Tests run in threads of their own: this one is not the main thread.
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    assert_ne!(thread, std::process::id().to_string());
    let home = Home::new();
    let run = home.run(&["-nx", "-batch", "-p", &thread, "-ex", "print 1"]);
    run.is_fine();
    let says = format!("{thread} is a thread of it: $pc and $sp are those of its main thread");
    assert!(run.out.contains(&says), "{run:?}");
}

#[test]
fn ps_finds_no_process_by_the_text_in_its_own_command_line() {
    let run = Home::new().run(&["-batch", "-ex", "ps no-process-has-this-argument"]);
    run.is_fine();
    assert!(run.out.contains("no process matches `no-process-has-this-argument`"), "{run:?}");
}
