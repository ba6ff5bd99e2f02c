//! One record of each type, as a real session gives them.

pub use super::account::*;
pub use super::pages::*;
pub use super::reads::*;
pub use super::regions::*;
pub use super::session::*;
pub use super::who::*;
use crate::command::COMMANDS;
use crate::kernel::Name;
use crate::render::Record;
use crate::report::*;

/// One record of each type at least.
pub fn all() -> Vec<Box<dyn Record>> {
    let text = Text { text: "hello\n".into() };
    let note = Note { message: "frames are hidden: they need CAP_SYS_ADMIN".into() };
    let [place, place_behind, place_without_code] = line_places();
    let history = HistoryEntry { number: 7, line: Name::from("translate $sp") };
    let hello = Hello { program: "pmdb", version: "0.1.0", protocol: 1 };
    let end = End { id: RequestId::Number(1), status: EndStatus::Ok, code: None };
    let mut all: Vec<Box<dyn Record>> = vec![
        Box::new(present()),
        Box::new(hidden()),
        Box::new(swapped()),
        Box::new(untouched()),
        Box::new(unmapped()),
        Box::new(explained(present())),
        Box::new(explained(hidden())),
        Box::new(explained(swapped())),
        Box::new(explained(unmapped())),
        Box::new(run()),
        Box::new(hidden_run()),
        Box::new(pages()),
        Box::new(hidden_pages()),
        Box::new(huge_pages()),
        Box::new(untouched_pages()),
        Box::new(frames()),
        Box::new(walk_summary()),
        Box::new(frames_summary()),
        Box::new(group("present", 40_000)),
        Box::new(map_region()),
        Box::new(account_row()),
        Box::new(account_group()),
        Box::new(account_summary()),
        Box::new(account_summary_differing()),
        Box::new(summary()),
        Box::new(summary_without_frame()),
        Box::new(summary_unreadable()),
        Box::new(mapper()),
        Box::new(mapper_gone()),
        Box::new(who_counted()),
        Box::new(who_searched()),
        Box::new(who_zero()),
        Box::new(who_limited()),
        Box::new(who_limited_uncounted()),
        Box::new(who_interrupted()),
        Box::new(who_nobody()),
        Box::new(region_row()),
        Box::new(region_full()),
        Box::new(regions_summary()),
        Box::new(flags()),
        Box::new(decoded_entry()),
        Box::new(decoded_flags()),
        Box::new(timeline_row(0)),
        Box::new(timeline_sample(&[(1, Mark::Anonymous, true)])),
        Box::new(read_of_words()),
        Box::new(read_of_text()),
        Box::new(read_of_behind()),
        Box::new(reads_summary()),
        Box::new(reads_summary_of_many()),
        Box::new(value()),
        Box::new(displayed()),
        Box::new(displayed_in_vain()),
        Box::new(symbol()),
        Box::new(SymbolRow { symbol: symbol_row() }),
        Box::new(symbols_summary()),
        Box::new(module()),
        Box::new(module_of_exports()),
        Box::new(module_unread()),
        Box::new(line()),
        Box::new(place),
        Box::new(place_behind),
        Box::new(place_without_code),
        Box::new(no_line()),
        Box::new(process()),
        Box::new(capabilities()),
        Box::new(process_row()),
        Box::new(process_memory_row()),
        Box::new(thread()),
        Box::new(running_thread()),
        Box::new(target()),
        Box::new(setting()),
        Box::new(history),
        Box::new(text),
        Box::new(help_overview()),
        Box::new(help_group()),
        Box::new(help_command()),
        Box::new(help_subject()),
        Box::new(note),
        Box::new(assertion()),
        Box::new(assertions()),
        Box::new(error()),
        Box::new(hello),
        Box::new(end),
    ];
    all.extend(COMMANDS.entries.iter().flat_map(|entry| (entry.samples)()));
    all
}
