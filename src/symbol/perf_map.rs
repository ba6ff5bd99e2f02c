//! Perf maps (`/tmp/perf-PID.map`): the names that a program writes for its JIT-compiled code, in the format of perf.
//!
//! A line has the start of a function and its size in bytes, both in hexadecimal digits, and its name up to the end of
//! the line. Programs only append, so that of overlapping lines the last is valid. Other lines are skipped.

use super::elf::{BoundedFile, LONGEST_NAME};
use super::{NoSymbols, SymbolAt, SymbolKind};
use crate::budget::{Budget, OutOfBudget};
use crate::kernel::{Name, Region, VirtualAddress, text};
use crate::own::memory;
use crate::process::Target;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The most bytes that are read of a file, from its end, because the last lines are valid.
const LARGEST: u64 = 64 << 20;
/// The most lines that are used, the last ones.
const MOST_FUNCTIONS: usize = 1 << 20;

/// The identity of a process: its id and start time.
type ProcessLife = (u32, u64);

/// The functions in a perf map.
pub(super) struct PerfMap {
    owner: ProcessLife,
    file: BoundedFile,
    /// The path of the file in the target's root.
    path: Name,
    functions: JitFunctions,
    /// Whether the file has more before the part that was read.
    is_cut: bool,
}

/// A perf map that is not trusted, or could not be read.
pub(super) struct RefusedPerfMap {
    /// The path of the file in the target's root.
    pub(super) path: Name,
    pub(super) why: NoSymbols,
}

/// The perf map, if there is one and it is used. The outer error means that reading it was given up.
pub(super) type PerfMapRead = Result<Option<Result<Arc<PerfMap>, RefusedPerfMap>>, OutOfBudget>;

/// The functions of a perf map, with an index.
#[derive(Default)]
struct JitFunctions {
    listed: Vec<JitFunction>,
    /// The index of the function from each address to the next.
    stretches: Vec<(u64, Option<usize>)>,
}

/// A line of a perf map.
struct JitFunction {
    start: u64,
    size: u64,
    name: Box<[u8]>,
}

impl JitFunction {
    fn parse(line: &[u8]) -> Option<JitFunction> {
        let (start, rest) = number(line)?;
        let (size, name) = number(rest)?;
        let is_sound = size > 0 && start.checked_add(size).is_some() && !name.is_empty() && name.len() < LONGEST_NAME;
        is_sound.then(|| JitFunction { start, size, name: name.into() })
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// Parses a number in hexadecimal digits, and returns it with the text after the space that ends it.
fn number(line: &[u8]) -> Option<(u64, &[u8])> {
    let end = line.iter().position(|&byte| byte == b' ')?;
    let (digits, rest) = line.split_at(end);
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    Some((text::hexadecimal(digits)?, rest.trim_ascii()))
}

impl JitFunctions {
    /// Parses the last `most` lines, and returns whether there are more. As for perf, the last line needs no end: if it
    /// is only half written, the file is read again once it is longer.
    fn parse(bytes: &[u8], most: usize, budget: &mut Budget) -> Result<(JitFunctions, bool), OutOfBudget> {
        let mut listed = Vec::new();
        for line in bytes.rsplit(|&byte| byte == b'\n') {
            budget.go_on()?;
            listed.extend(JitFunction::parse(line));
            if listed.len() > most {
                break;
            }
        }
        let is_cut = listed.len() > most;
        listed.truncate(most);
        listed.reverse();
        Ok((JitFunctions { stretches: sweep(&listed, budget)?, listed }, is_cut))
    }

    fn at(&self, address: u64) -> Option<&JitFunction> {
        let after = self.stretches.partition_point(|&(start, _)| start <= address);
        let &(_, position) = self.stretches.get(after.checked_sub(1)?)?;
        self.listed.get(position?)
    }

    /// Returns how many bytes are between `address` and the next function; 0 inside a function.
    fn bytes_before_next(&self, address: u64) -> u64 {
        let after = self.stretches.partition_point(|&(start, _)| start <= address);
        let is_within = after.checked_sub(1).and_then(|at| self.stretches.get(at)?.1).is_some();
        match self.stretches.get(after) {
            _ if is_within => 0,
            Some(&(next, _)) => next - address,
            None => u64::MAX,
        }
    }

    /// Returns the functions whose first byte was not overwritten, in the order of the file.
    fn not_overwritten(&self) -> impl Iterator<Item = &JitFunction> {
        let is_there =
            |one: &&JitFunction| self.at(one.start).is_some_and(|last_listed| std::ptr::eq(last_listed, *one));
        self.listed.iter().filter(is_there)
    }
}

/// Assigns each place to the last listed function that covers it.
fn sweep(listed: &[JitFunction], budget: &mut Budget) -> Result<Vec<(u64, Option<usize>)>, OutOfBudget> {
    let mut places: Vec<u64> = listed.iter().flat_map(|one| [one.start, one.end()]).collect();
    places.sort_unstable();
    places.dedup();
    let mut coming: Vec<(u64, usize)> = (0..).zip(listed).map(|(at, one)| (one.start, at)).collect();
    coming.sort_unstable();
    let mut coming = coming.into_iter().peekable();
    let mut covering: BinaryHeap<(usize, u64)> = BinaryHeap::new();
    let mut stretches: Vec<(u64, Option<usize>)> = Vec::new();
    for place in places {
        budget.go_on()?;
        while let Some((_, at)) = coming.next_if(|&(start, _)| start <= place) {
            covering.extend(listed.get(at).map(|one| (at, one.end())));
        }
        while covering.peek().is_some_and(|&(_, end)| end <= place) {
            covering.pop();
        }
        let last_listed = covering.peek().map(|&(at, _)| at);
        if stretches.last().is_none_or(|&(_, before)| before != last_listed) {
            stretches.push((place, last_listed));
        }
    }
    Ok(stretches)
}

impl PerfMap {
    /// Reads the perf map of the target; `None` if there is none.
    pub(super) fn read(
        target: &Target,
        budget: &mut Budget,
    ) -> Result<Option<Result<PerfMap, RefusedPerfMap>>, OutOfBudget> {
        let owner = owner(target);
        let Ok(Some((path, opened))) = target.modules.perf_map() else {
            return Ok(None);
        };
        let read = opened.map_err(NoSymbols::from).and_then(|bytes| {
            let file = BoundedFile::new(bytes);
            let begin = file.length().saturating_sub(LARGEST);
            let size = file.length() - begin;
            let mut bytes = memory::zeroed(size)?;
            let read = file.read_up_to_within(begin, &mut bytes, budget)?;
            bytes.truncate(read);
            Ok((file, begin, bytes))
        });
        let (file, begin, bytes) = match read {
            Ok(read) => read,
            Err(why) => return why.out_of_budget().map_or(Ok(Some(Err(RefusedPerfMap { path, why }))), Err),
        };
        // The first line may be incomplete, and is skipped.
        let first = match begin {
            0 => 0,
            _ => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1),
        };
        let whole = bytes.get(first..).unwrap_or_default();
        let (functions, is_cut) = JitFunctions::parse(whole, MOST_FUNCTIONS, budget)?;
        Ok(Some(Ok(PerfMap { owner, file, path, functions, is_cut: is_cut || begin > 0 })))
    }

    /// Returns whether this is the target's perf map, and complete.
    pub(super) fn is_of(&self, target: &Target) -> bool {
        self.owner == owner(target) && self.file.is_unchanged()
    }

    /// Returns whether `name` selects it: its path or its file name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let name = name.as_bytes();
        self.path.as_bytes() == name || self.path.file_name().as_bytes() == name
    }

    /// Returns whether only the end of a very large file was read.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the function at `address`.
    pub(super) fn at(&self, address: VirtualAddress) -> Option<SymbolAt> {
        let function = self.functions.at(address.get())?;
        let offset = address.get().checked_sub(function.start)?;
        Some(self.symbol(function, offset))
    }

    /// Returns how many bytes are between `address` and the next function; 0 inside a function.
    pub(super) fn bytes_before_next(&self, address: VirtualAddress) -> u64 {
        self.functions.bytes_before_next(address.get())
    }

    /// Returns all functions that were not overwritten.
    pub(super) fn symbols(&self) -> impl Iterator<Item = SymbolAt> {
        let functions = self.functions.not_overwritten();
        functions.map(|function| self.symbol(function, 0))
    }

    fn symbol(&self, function: &JitFunction, offset: u64) -> SymbolAt {
        SymbolAt {
            mangled: Name::new(&*function.name),
            start: VirtualAddress::new(function.start),
            size: function.size,
            offset,
            kind: SymbolKind::Function,
            is_local: true,
            section: None,
            module: self.path.clone(),
            file_address: VirtualAddress::new(function.start),
        }
    }
}

fn owner(target: &Target) -> ProcessLife {
    let identity = target.process.identity();
    (identity.pid, identity.start_time)
}

/// Returns whether a region may contain JIT-compiled code: it is anonymous and executable.
pub(super) fn is_jit_region(region: &Region) -> bool {
    let name = region.name.as_bytes();
    region.inode == 0
        && region.permissions.execute
        && (name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8], most: usize) -> (JitFunctions, bool) {
        JitFunctions::parse(text, most, &mut Budget::unlimited()).expect("no limit")
    }

    fn names(functions: &JitFunctions, addresses: &[u64]) -> Vec<String> {
        let name = |&address: &u64| {
            let function = functions.at(address);
            function.map_or("-".to_owned(), |one| Name::new(&*one.name).to_string())
        };
        addresses.iter().map(name).collect()
    }

    #[test]
    fn of_overlapping_lines_the_last_is_valid() {
        let text = b"1000 100 outer\n1040 10 py::inner:/a b.py\n1080 100 newer\n10f0 8 short\n";
        let functions = parse(text, 100).0;
        let asked = [0xfff, 0x1000, 0x103f, 0x1040, 0x104f, 0x1050, 0x107f, 0x1080, 0x10f0, 0x10f8, 0x117f, 0x1180];
        let inner = "py::inner:/a b.py";
        assert_eq!(
            names(&functions, &asked),
            ["-", "outer", "outer", inner, inner, "outer", "outer", "newer", "short", "newer", "newer", "-"]
        );
        // A function whose start was overwritten is not there any more.
        let functions = parse(b"1000 10 old\n1000 10 new\n", 100).0;
        let there: Vec<&[u8]> = functions.not_overwritten().map(|one| &*one.name).collect();
        assert_eq!(there, [b"new"]);
    }

    #[test]
    fn malformed_lines_are_skipped() {
        let mut text = b"\n \nzz 10 a\n1000\n1000 10\n1000 10 \n1000 0 empty\nffffffffffffffff 2 beyond\n\
            11111111111111111 1 wide\n-1 1 sign\n0x2000 0x10 good\n\xff\xfe\x00 1\n3000 8 \x1b[31m\xff\n"
            .to_vec();
        text.extend_from_slice(b"4000 8 ");
        text.extend(std::iter::repeat_n(b'x', LONGEST_NAME));
        text.extend_from_slice(b"\n5000 8");
        let functions = parse(&text, 100).0;
        let listed: Vec<&[u8]> = functions.listed.iter().map(|one| &*one.name).collect();
        assert_eq!(listed, [&b"good"[..], b"\x1b[31m\xff"]);
        assert_eq!(names(&functions, &[0x2000, 0x3000]), ["good", "\\x1b[31m\\xff"]);
        let (last, is_cut) = parse(b"1000 10 old\n2000 10 newer\n3000 10 last\n", 2);
        let there: Vec<&[u8]> = last.not_overwritten().map(|one| &*one.name).collect();
        assert_eq!((there, is_cut), (vec![&b"newer"[..], b"last"], true));
        assert_eq!(parse(b"", 100).0.listed.len(), 0);
        assert_eq!(names(&parse(b"1000 10 a\n2000 10 no end", 100).0, &[0x1000, 0x2000]), ["a", "no end"]);
    }
}
