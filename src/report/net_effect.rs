//! What changes did to memory and swap, added up.

use super::record::record;
use std::ops::AddAssign;

impl AddAssign for NetEffect {
    fn add_assign(&mut self, other: NetEffect) {
        self.came += other.came;
        self.went += other.went;
        self.swap_came += other.swap_came;
        self.swap_went += other.swap_went;
    }
}

record! {
    /// What changes did to the memory of a process.
    #[derive(Copy, Default, Eq)]
    pub struct NetEffect {
        /// Bytes that are present now and were not before.
        came: u64,
        /// Bytes that were present before and are not now.
        went: u64,
        /// Bytes that are in swap now and were not before.
        swap_came: u64,
        /// Bytes that were in swap before and are not now.
        swap_went: u64,
    }
}
