//! A record of `info threads`.

use super::SymbolBrief;
use crate::kernel::{Name, VirtualAddress};
use crate::report::Fact;
use crate::report::record::record;

record! {
    /// A row of `info threads`.
    pub struct ThreadRow as "thread" with why if any {
        /// Thread id.
        id: u32,
        /// Its short name.
        name: Name,
        /// One letter, as `ps` shows it: `R` running, `S` sleeping, `D` waiting for a device, `T` stopped.
        state: String,
        /// Its stack pointer; unknown while it runs.
        sp: Fact<VirtualAddress>,
        /// Its program counter; unknown while it runs.
        pc: Fact<VirtualAddress>,
        /// The symbol at the program counter.
        symbol: Option<SymbolBrief>,
    }
}
