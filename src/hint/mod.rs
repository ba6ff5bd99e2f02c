//! Hints for lines that do not parse: commands of other programs, common mistakes, and pasted output of other programs.
//!
//! `lang` finds the place of a failure and what it expected there. `of` returns the first hint of [`all`] that
//! recognizes the mistake. Each hint has an example, which the tests check.

mod commands;
pub mod habits;
mod names;
mod numbers;
mod of_c;
mod operands;
mod options;
mod pasted;
mod slips;
mod words;

use crate::lang::{Advice, Failure, Language, OtherWords, SyntaxError};

pub use numbers::{UNKNOWN_TYPE, as_value, suffixes};
pub use of_c::{member_of, pointer_to};
pub use operands::names_sorting;
#[cfg(test)]
pub(crate) use options::OF_COMMANDS;
pub use pasted::{Means, also_in_row, choose, comment};

/// A mistake, with the function that recognizes it.
pub struct Hint {
    /// The name of the mistake.
    pub name: &'static str,
    /// A line with the mistake.
    pub typed: &'static str,
    /// The hint for that line.
    pub offered: &'static str,
    /// Returns the hint for any line, if it has the mistake.
    find: fn(&Failure<'_>) -> Option<String>,
}

const fn hint(
    name: &'static str,
    find: fn(&Failure<'_>) -> Option<String>,
    typed: &'static str,
    offered: &'static str,
) -> Hint {
    Hint { name, typed, offered, find }
}

/// The hints for errors with a fault of the parser.
#[rustfmt::skip]
const FOR_FAULTS: &[Hint] = &[
    hint("a function that there is not", numbers::unknown_function, "print sizeof(int)", "`size(NAME)` is the size of a variable; types are only in gdb"),
    hint("a type that is unknown", numbers::unknown_type, "print (struct s)buf", "use `gdb -p PID` for the types of the program, or `x/8xg ADDRESS` for its memory"),
    hint("the format of instructions", numbers::instructions, "x/2i 0x555555555224", "use `x/i` in `gdb -p PID`. Here `x/xb` shows the bytes"),
    hint("a line that is too deep", numbers::too_much, "print (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1", "give a part of it a name: `set $part = …`"),
];

/// The hints for lines that end too early.
#[rustfmt::skip]
const FOR_ENDS: &[Hint] = &[
    hint("a name at the end that needs quotes", names::quotes_around, "walk std::vector<int>", "put a name with such characters in 'single quotes': `'std::vector<int>'`"),
    hint("a search without a value", commands::find_without_value, "find secret", "add a value, as in `find secret, VALUE`; to search for a text: `find all, \"secret\"`"),
    hint("a command without its argument", commands::alone, "telescope", "for the stack: `telescope $sp`"),
    hint("a number of regions alone as a condition", commands::field_without_comparison, "regions where rss", "`rss` is a number: `rss > 0`, `rss == 0`"),
];

/// The hints for a word or sign that cannot stand at its place.
#[rustfmt::skip]
const FOR_WORDS: &[Hint] = &[
    hint("a command that is called", commands::called, "exit()", "write it without parentheses: `exit`"),
    hint("an arena of several processes", commands::arena_of_several, "heap children 0", "several processes have no common arena: `heap 0` is of the attached one"),
    hint("a function without parentheses", operands::function_without_parentheses, "huge region matrix", "did you mean `huge region(matrix)`?"),
    hint("a prompt", slips::pasted_prompt, "(gdb) p &x", "leave the prompt out: `p &x`"),
    hint("a misspelt option", options::misspelt, "x --falt $sp", "did you mean `x --fault $sp`?"),
    hint("a unit after a space", numbers::size_with_unit, "walk buf, +8 MiB", "leave the space out: `8M`"),
    hint("a name with a colon", names::name_with_colon, "walk memfd:ring", "put a name with a colon in 'single quotes': `'memfd:ring'`"),
    hint("a range of maps", slips::maps_range, "walk 7ffff7dc0000-7ffff7de8000", "write a range as A..B: `walk 0x7ffff7dc0000..0x7ffff7de8000`"),
    hint("a type or an index of C", of_c::of_c, "print table->size", "the member is at `*table + OFFSET`; an int there is `u32(*table + OFFSET)`, and what a pointer there points to is at `*(*table + OFFSET)` (gdb's `ptype /o` shows the offset)"),
    hint("a match of Perl", slips::of_perl, "regions where name =~ \"lib\"", "write ~ before a regular expression, in a filter: `regions where name ~ \"^lib\"`"),
    hint("a range for one address", commands::range_for_address, "who 0x7f0000001000, +64K", "`who` is for one address; for a range `walk 0x7f0000001000, +64K by mapcount` counts the mappings of its pages"),
    hint("a condition of regions", commands::condition_on_regions, "regions (anonymous)", "as a condition: `regions where anonymous`"),
    hint("a word of filters in a value", commands::filter_word_in_value, "print all where dirty", "to count pages: `print count(all where FILTER)`"),
    hint("a number of regions as a condition", commands::field_without_comparison, "regions where rss and exec", "`rss` is a number: `rss > 0`, `rss == 0`"),
    hint("a word without its keyword", own, "watch heap mapcount", "put `with` before it: `with mapcount`"),
    hint("a variable without $", commands::variable_of_foreach, "foreach i in 1, 2", "a variable begins with $: `foreach $i in …`"),
    hint("values without commas", commands::values_of_foreach, "foreach $i in 1 2 3", "put commas between the values: `foreach $i in 1, 2, 3`"),
    hint("a process to compare", commands::process_of_compare, "compare child", "`compare children` compares with each child"),
    hint("an operator with =", commands::compound_assignment, "set $i += 1", "write it out: `set $i = $i + 1`"),
    hint("a variable of pmdb", commands::fixed_variable, "set $_ = 5", "pmdb sets `$_` itself: choose another name, as in `set $x = 5`"),
    hint("a limit of find", commands::limit_of_find, "find all, \"x\" limit 5", "the count follows a slash: `find/5 all, \"x\"`"),
    hint("print in display", commands::print_in_display, "display print 1", "leave `print` out: `display 1`"),
    hint("one register", commands::one_register, "info registers pc", "for one register: `print $pc`"),
    hint("the size of what is searched", commands::unit_as_option, "find all, -8 5", "the size is a letter after a slash: `find/g all, 5`"),
    hint("a clause without the range", commands::range_first, "walk where dirty", "put the range first: `walk all where …`"),
    hint("an option at another place", options::elsewhere, "capture --overwrite demo.capture heap", "move the option: `capture demo.capture --overwrite heap`"),
    hint("an option of other commands", options::of_others, "walk heap --overwrite", "commands with this option: `capture FILE --overwrite`, `export core FILE --overwrite`, `snapshot NAME to FILE --overwrite`"),
    hint("a part of a snapshot", commands::missing_in, "snapshot before heap", "to limit a snapshot to a range: `snapshot NAME in heap`"),
    hint("a time without its word", commands::time_of_watch, "watch heap 5s", "`watch RANGE every 5s` sets the time between samples, and `watch RANGE for 5s` the whole time"),
    hint("a name that needs quotes", names::quotes_around, "info address <A as B<u8>>::make", "put a name with such characters in 'single quotes': `'<A as B<u8>>::make'`"),
    hint("a path without quotes", names::path_without_quotes, "walk /usr/lib/libc.so.6", "put a path in 'single quotes': `'/usr/lib/libc.so.6'`"),
    hint("else if", words::else_if, "else if 1", "write `else` on its own line, and then an `if` with its own `end`"),
    hint("a file without its folder", words::file_without_folder, "map > x.svg", "the path of a file begins with / ./ ../ ~/ or a quote: `> ./x.svg`"),
    hint("a format that is none", numbers::format, "x/-", "for bytes before an address: `x/-3xb ADDRESS`"),
    hint("a time without a unit", numbers::time_without_unit, "watch heap every 100", "write `100ms` or `100s`"),
    hint("a number that is none", numbers::number, "translate 00400000", "write hexadecimal as `0x400000`"),
    hint("an operator that begins a pipe", words::operator_of_output, "walk heap |", "as an operator it needs parentheses: `(a | b)`"),
    hint("a lone !", words::lone_shell, "!", "as in `!ls`"),
    hint("a unit that there is not", words::unit_behind_number, "walk buf, +8 bytes", "write sizes with K M G T, or p for pages; times with ms s m h"),
    hint("an operator as a name", words::operator_as_name, "print and", "`and` is an operator; put a symbol of that name in 'single quotes'"),
    hint("a process as a key", words::process_as_key, "account by pid", "`account children`, `account of A, B` and `account \"NAME\"` have a row for each process"),
    hint("a second key", words::second_key, "account by region, node", "`account` has one key: `walk all by region, state` has two"),
    hint("a fact as a key", words::fact_as_key, "walk heap by pfn", "`pfn` is another one for each page: `by run` shows consecutive frames"),
    hint("a word in a filter of pages", words::word_in_page_filter, "walk heap where resident", "did you mean `present`?"),
    hint("a word in a filter of regions", words::word_in_region_filter, "regions where dirty", "`dirty` is a field of pages: `walk all where dirty by region`"),
    hint("a text without quotes", words::text_without_quotes, "printf hello", "put the text in quotes: `\"hello\"`"),
    hint("a word with a typing error", words::near_word, "wlak heap", "did you mean `walk`?"),
    hint("a symbol in a filter", words::symbol_in_filter, "walk heap where main", "in a filter, bare words are fields (`help filters`); a symbol of this name is `&main`"),
    hint("a sum to wait for", words::sum_until, "watch heap until present > 1G", "`until rss(RANGE) > 1G` compares bytes"),
    hint("= for ==", words::single_equals, "walk heap where pfn = 1", "write a test for equality as `==`"),
    hint("a number for a command", words::number_as_command, "812", "`attach 812` attaches to a process, and `translate 812` translates an address"),
    hint("a sign between conditions", words::sign_in_filter, "walk heap where dirty & present", "join conditions with `and`, `or`"),
    hint("a format after a space", words::late_format, "print / x", "write the format directly after the command: `print/x`"),
    hint("a condition for a command", words::condition_as_command, "present > 3", "`present` is a condition on pages: `walk all where present`, `print count(all where present)`"),
    hint("a frame without its address", words::frame_of_gdb, "print #0 main ()", "this frame has no address: `print $pc` in gdb shows it"),
    hint("a name that may need quotes", names::quotes_near, "info address ns::Box<int", "put a name with `<`, `(` or spaces in 'single quotes', as in 'shapes::area(int)'"),
    hint("a command in assert", commands::command_in_assert, "assert walk heap", "it tests an expression, as in `assert count(RANGE where swapped) == 0`"),
    hint("two ranges", operands::two_ranges, "walk heap stack", "one range at a time: `walk heap`"),
    hint("something too few between two operands", operands::second_operand, "walk 0x7f0000001000 0x7f0000002000", "write a range as A..B: `0x7f0000001000..0x7f0000002000`"),
];

/// Returns all hints in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Hint> {
    [FOR_FAULTS, FOR_ENDS, FOR_WORDS].into_iter().flatten()
}

/// Returns the first hint that recognizes the mistake, and its text for this line.
pub(crate) fn of(failed: &Failure<'_>) -> Option<(&'static Hint, String)> {
    let hints = match (&failed.fault, failed.is_incomplete()) {
        (Some(_), _) => FOR_FAULTS,
        (None, true) => FOR_ENDS,
        (None, false) => FOR_WORDS,
    };
    let offered = |hint: &'static Hint| Some((hint, (hint.find)(failed)?));
    hints.iter().filter_map(offered).find(|(_, text)| !offers_refused(failed, text))
}

/// Returns whether a hint offers a line with the typed command that is refused as well. A line with a placeholder, such
/// as `RANGE` or `…`, is only a form.
fn offers_refused(failed: &Failure<'_>, hint: &str) -> bool {
    let command = failed.line.split_whitespace().next();
    let is_placeholder = |word: &str| {
        word.contains('…') || (word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || ",.:".contains(c)))
    };
    let is_line = |line: &&str| line.contains(' ') && line.split_whitespace().next() == command;
    let mut lines = hint.split('`').skip(1).step_by(2).filter(is_line);
    lines.any(|line| !line.split([' ', '(', ')']).any(is_placeholder) && !failed.language.accepts(line))
}

/// Returns the hint of the parser of the command.
fn own(failed: &Failure<'_>) -> Option<String> {
    failed.hint.clone()
}

/// The hints of this module, as the parser asks for them.
pub struct Hints;

impl Advice for Hints {
    fn other_words(&self, line: &str) -> Option<OtherWords> {
        let found = habits::of(line)?;
        found.for_parser(pasted::is_pasted(line))
    }

    fn hint(&self, failed: &Failure<'_>, error: &mut SyntaxError) {
        error.hint = of(failed).map(|(_, hint)| hint).or(error.hint.take());
        error.pasted = pasted::shown(failed, error).map(Box::new);
        error.hint.take_if(|_| error.pasted.is_some());
    }
}

/// Returns the note about a typed line that parses and was meant for gdb: `f 1`.
pub fn meant_for_gdb(language: Language, line: &str) -> Option<String> {
    commands::letter_with_number(language, line.trim())
}
