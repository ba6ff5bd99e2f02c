//! What changes did to memory and swap, added up.

use super::record::record;
use std::ops::AddAssign;

impl NetEffect {
    /// The part of it that `pages` of `all` pages have, which changed in the same way. All have the whole.
    #[must_use]
    pub fn part(self, pages: u64, all: u64) -> NetEffect {
        let part = |bytes: u64| {
            let bytes = u128::from(bytes) * u128::from(pages) / u128::from(all.max(1));
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let NetEffect { came, went, swap_came, swap_went } = self;
        NetEffect { came: part(came), went: part(went), swap_came: part(swap_came), swap_went: part(swap_went) }
    }
}

impl AddAssign for NetEffect {
    fn add_assign(&mut self, other: NetEffect) {
        self.came += other.came;
        self.went += other.went;
        self.swap_came += other.swap_came;
        self.swap_went += other.swap_went;
    }
}

record! {
    /// The net effect of changes on the memory of a process.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_effect_add_up() {
        // Of five pages that went with their region, three were present and two in swap.
        let effect = NetEffect { went: 3 << 12, swap_went: 2 << 12, ..NetEffect::default() };
        assert_eq!(effect.part(5, 5), effect);
        let came = NetEffect { came: 5 << 12, ..NetEffect::default() };
        assert_eq!(came.part(2, 5), NetEffect { came: 2 << 12, ..NetEffect::default() });
        assert_eq!(NetEffect::default().part(0, 0), NetEffect::default());
    }
}
