//! Lines of the source.

use super::SymbolBrief;
use crate::kernel::{Name, VirtualAddress};
use crate::report::Why;
use crate::report::record::record;

record! {
    /// `info line`
    pub struct LineReport as "line" with why {
        /// The address; for a line, the first address of its code.
        address: VirtualAddress,
        /// The first address of the code of the same line.
        start: Option<VirtualAddress>,
        /// The address after that code; equal to `start` if the line has no code of its own there.
        end: Option<VirtualAddress>,
        /// File name of the module it belongs to.
        module: Option<Name>,
        /// The symbol it lies in.
        symbol: Option<SymbolBrief>,
        /// Source file, with the path that the compiler recorded.
        file: Option<Name>,
        /// Line, from 1.
        line: Option<u64>,
        /// Column, from 1.
        column: Option<u64>,
        /// For a line, whether a debugger stops here. That is at its first statement in the function or inlined copy,
        /// or at its first code without a statement.
        [optional] first: Option<bool>,
        /// The function and the functions that it was inlined into, the innermost first. The first one has the file and
        /// line above.
        frames: Vec<LineFrame>,
        /// Why fields are `null`, or why `frames` is not complete.
        [flat] why: Why,
    }

    /// A function around an address.
    #[derive(Eq)]
    pub struct LineFrame with why if noted {
        /// Demangled name.
        function: Option<Name>,
        /// Source file.
        file: Option<Name>,
        /// Line of the address, or of the call to the function before.
        line: Option<u64>,
        /// Column on that line.
        column: Option<u64>,
        /// Whether it was inlined into the next.
        inlined: bool,
        /// Why fields are `null`.
        [flat] why: Why,
    }
}
