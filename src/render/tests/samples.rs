//! One record of each type, as a real session gives them.

pub use super::memory::*;
pub use super::pages::*;
pub use super::reads::*;
pub use super::regions::*;
pub use super::session::*;
pub use super::snapshots::*;
pub use super::who::*;
use crate::kernel::Name;
use crate::report::*;

/// One record of each type at least, with its name in JSON.
pub fn all() -> Vec<(&'static str, Record)> {
    let text = Text {
        text: "hello\n".into(),
    };
    let note = Note {
        message: "frames are hidden: they need CAP_SYS_ADMIN".into(),
    };
    let [place, place_behind, place_without_code] = line_places();
    let history = HistoryEntry {
        number: 7,
        line: Name::from("translate $sp"),
    };
    let hello = Hello {
        program: "pmdb",
        version: "0.1.0",
        protocol: 1,
    };
    let end = End {
        id: RequestId::Number(1),
        status: "ok",
    };
    vec![
        ("translation", Record::Translation(Box::new(present()))),
        ("translation", Record::Translation(Box::new(hidden()))),
        ("translation", Record::Translation(Box::new(swapped()))),
        ("translation", Record::Translation(Box::new(untouched()))),
        ("translation", Record::Translation(Box::new(unmapped()))),
        (
            "explanation",
            Record::Explanation(Box::new(explained(present()))),
        ),
        (
            "explanation",
            Record::Explanation(Box::new(explained(hidden()))),
        ),
        (
            "explanation",
            Record::Explanation(Box::new(explained(swapped()))),
        ),
        (
            "explanation",
            Record::Explanation(Box::new(explained(unmapped()))),
        ),
        ("run", Record::Run(run())),
        ("run", Record::Run(hidden_run())),
        ("pages", Record::Pages(pages())),
        ("pages", Record::Pages(hidden_pages())),
        ("pages", Record::Pages(huge_pages())),
        ("pages", Record::Pages(untouched_pages())),
        ("frames", Record::Frames(frames())),
        ("walk-summary", Record::WalkSummary(walk_summary())),
        ("frames-summary", Record::FramesSummary(frames_summary())),
        ("group", Record::Group(group("present", 40_000))),
        ("map-region", Record::MapRegion(map_region())),
        ("summary", Record::Summary(summary())),
        ("summary", Record::Summary(summary_without_frame())),
        ("summary", Record::Summary(summary_unreadable())),
        ("mapper", Record::Mapper(mapper())),
        ("mapper", Record::Mapper(mapper_gone())),
        ("who-summary", Record::WhoSummary(who_counted())),
        ("who-summary", Record::WhoSummary(who_searched())),
        ("who-summary", Record::WhoSummary(who_zero())),
        ("who-summary", Record::WhoSummary(who_limited())),
        ("who-summary", Record::WhoSummary(who_limited_uncounted())),
        ("who-summary", Record::WhoSummary(who_interrupted())),
        ("who-summary", Record::WhoSummary(who_nobody())),
        ("region", Record::Region(Box::new(region_row()))),
        ("region", Record::Region(Box::new(region_full()))),
        ("regions-summary", Record::RegionsSummary(regions_summary())),
        ("page-flags", Record::PageFlags(flags())),
        ("decoded", Record::Decoded(decoded_entry())),
        ("decoded", Record::Decoded(decoded_flags())),
        ("watch-start", Record::WatchStart(watch_start())),
        ("event", Record::Event(event())),
        ("event", Record::Event(flags_event())),
        ("event", Record::Event(doubted_event())),
        ("event", Record::Event(exit_event())),
        ("event-group", Record::EventGroup(event_group())),
        ("watch-summary", Record::WatchSummary(watch_summary())),
        ("timeline-row", Record::TimelineRow(timeline_row(0))),
        (
            "timeline-sample",
            Record::TimelineSample(timeline_sample(&[(1, Mark::Anonymous, true)])),
        ),
        ("read", Record::Read(read_of_words())),
        ("read", Record::Read(read_of_text())),
        ("read", Record::Read(read_of_behind())),
        ("reads-summary", Record::ReadsSummary(reads_summary())),
        (
            "reads-summary",
            Record::ReadsSummary(reads_summary_of_many()),
        ),
        ("memory", Record::Memory(Box::new(memory()))),
        ("memory", Record::Memory(Box::new(memory_of_file()))),
        ("memory", Record::Memory(Box::new(memory_of_text()))),
        ("memory", Record::Memory(Box::new(memory_untouched()))),
        ("memory", Record::Memory(Box::new(memory_faulted()))),
        ("memory", Record::Memory(Box::new(memory_unread()))),
        ("memory", Record::Memory(Box::new(memory_in_doubt()))),
        ("memory", Record::Memory(Box::new(memory_of_text_cut()))),
        ("match", Record::Match(place_found())),
        ("match", Record::Match(place_found_in_file())),
        ("find-summary", Record::FindSummary(find_summary())),
        ("find-summary", Record::FindSummary(find_summary_early())),
        ("patch", Record::Patch(Box::new(patch()))),
        ("patch", Record::Patch(Box::new(patch_of_many()))),
        ("patch", Record::Patch(Box::new(patch_taken_back()))),
        ("patched-summary", Record::PatchedSummary(patched_summary())),
        (
            "patched-summary",
            Record::PatchedSummary(PatchedSummary::default()),
        ),
        ("telescope", Record::Telescope(Box::new(telescope()))),
        ("telescope", Record::Telescope(Box::new(telescope_text()))),
        ("telescope", Record::Telescope(Box::new(telescope_cycle()))),
        (
            "telescope",
            Record::Telescope(Box::new(telescope_of_file())),
        ),
        (
            "telescope",
            Record::Telescope(Box::new(telescope_swapped())),
        ),
        ("snapshot", Record::Snapshot(snapshot())),
        (
            "diff-summary",
            Record::DiffSummary(Box::new(diff_summary())),
        ),
        ("change", Record::Change(Box::new(change_of_pages()))),
        ("change", Record::Change(Box::new(change_of_region()))),
        ("change-group", Record::ChangeGroup(change_group())),
        ("comparison", Record::Comparison(comparison())),
        (
            "comparison-group",
            Record::ComparisonGroup(comparison_group()),
        ),
        (
            "comparison-summary",
            Record::ComparisonSummary(comparison_summary()),
        ),
        ("soft-dirty", Record::SoftDirty(soft_dirty())),
        (
            "soft-dirty-cleared",
            Record::SoftDirtyCleared(soft_dirty_cleared()),
        ),
        ("value", Record::Value(value())),
        ("display", Record::Display(displayed())),
        ("display", Record::Display(displayed_in_vain())),
        ("symbol", Record::Symbol(symbol())),
        ("symbol", Record::SymbolRow(symbol_row())),
        ("symbols-summary", Record::SymbolsSummary(symbols_summary())),
        ("module", Record::Module(module())),
        ("module", Record::Module(module_of_exports())),
        ("module", Record::Module(module_unread())),
        ("line", Record::Line(Box::new(line()))),
        ("line", Record::Line(Box::new(place))),
        ("line", Record::Line(Box::new(place_behind))),
        ("line", Record::Line(Box::new(place_without_code))),
        ("line", Record::Line(Box::new(no_line()))),
        ("process", Record::Process(Box::new(process()))),
        (
            "capabilities",
            Record::Capabilities(Box::new(capabilities())),
        ),
        ("process-entry", Record::ProcessEntry(process_row())),
        ("process-entry", Record::ProcessEntry(process_memory_row())),
        ("thread", Record::Thread(thread())),
        ("thread", Record::Thread(running_thread())),
        ("target", Record::Target(target())),
        ("setting", Record::Setting(setting())),
        ("history", Record::History(history)),
        ("text", Record::Text(text)),
        ("help", Record::Help(help_group())),
        ("help", Record::Help(help_command())),
        ("help", Record::Help(help_subject())),
        ("note", Record::Note(note)),
        ("assertion", Record::Assertion(assertion())),
        (
            "assertions-summary",
            Record::AssertionsSummary(assertions()),
        ),
        ("error", Record::Error(error())),
        ("hello", Record::Hello(hello)),
        ("end", Record::End(end)),
    ]
}
