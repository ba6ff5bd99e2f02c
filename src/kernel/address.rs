//! Addresses, page frame numbers and ranges, each with a type of its unit.
//!
//! No type assumes the page size of the machine on which pmdb runs: callers pass a [`PageSize`].

use std::fmt;
use std::num::ParseIntError;
use std::ops::Range;
use std::str::FromStr;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a raw number.
            pub const fn new(raw: u64) -> Self {
                Self(raw)
            }
            /// Returns the raw number.
            pub const fn get(self) -> u64 {
                self.0
            }
            /// The number plus `distance`, or `None` past the last representable one.
            pub fn checked_add(self, distance: u64) -> Option<Self> {
                self.0.checked_add(distance).map(Self)
            }
            /// The number minus `distance`, or `None` below zero.
            pub fn checked_sub(self, distance: u64) -> Option<Self> {
                self.0.checked_sub(distance).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(", $format, ")"), self.0)
            }
        }
    };
}

number!(
    /// An address in the target's own address space, in bytes.
    VirtualAddress, "{:#x}"
);
number!(
    /// A physical (bus) address, in bytes.
    PhysicalAddress, "{:#x}"
);
number!(
    /// A page frame number (PFN): physical address divided by the page size.
    FrameNumber, "{:#x}"
);

/// The base page size of a target: a power of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageSize {
    shift: u8,
}

impl PageSize {
    /// 4 KiB, the most usual one.
    pub const FOUR_KIB: PageSize = PageSize { shift: 12 };

    /// Converts a number of bytes; `None` unless it is a power of two between 512 bytes and 1 GiB.
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        (bytes.is_power_of_two() && (512..=1 << 30).contains(&bytes))
            .then(|| PageSize { shift: bytes.trailing_zeros() as u8 })
    }

    /// Converts the size of a base page; `None` unless Linux has pages of this size on some architecture.
    pub fn of_base(bytes: u64) -> Option<Self> {
        PageSize::from_bytes(bytes).filter(|_| (4 << 10..=256 << 10).contains(&bytes))
    }

    /// Bytes in a page.
    pub const fn bytes(self) -> u64 {
        1 << self.shift
    }
    /// log2 of the bytes in a page.
    pub const fn shift(self) -> u32 {
        self.shift as u32
    }
    /// Pages needed to hold `bytes`.
    pub const fn pages_in(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes())
    }
    /// The first byte of the page that holds `address`.
    pub const fn floor(self, address: VirtualAddress) -> VirtualAddress {
        VirtualAddress(address.0 & !(self.bytes() - 1))
    }
    /// Returns the offset of `address` in its page.
    pub const fn offset(self, address: VirtualAddress) -> u64 {
        address.0 & (self.bytes() - 1)
    }
    /// The index of the page that holds `address`: its index in `/proc/PID/pagemap`.
    pub const fn index(self, address: VirtualAddress) -> u64 {
        address.0 >> self.shift
    }
}

impl VirtualAddress {
    /// Returns the address of a value in this program.
    pub fn of<T: ?Sized>(value: &T) -> Self {
        Self((&raw const *value).addr() as u64)
    }
}

/// Parses hexadecimal digits, with or without `0x`, as debuggers and the kernel print them.
impl FromStr for VirtualAddress {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).map(Self)
    }
}

impl FrameNumber {
    /// Returns the physical address at which the frame begins; `None` if it does not fit into 64 bits.
    pub fn physical(self, page: PageSize) -> Option<PhysicalAddress> {
        (self.0 <= u64::MAX >> page.shift).then(|| PhysicalAddress(self.0 << page.shift))
    }
}

impl PhysicalAddress {
    /// Returns the frame that contains this address.
    pub const fn frame(self, page: PageSize) -> FrameNumber {
        FrameNumber(self.0 >> page.shift)
    }
    /// Returns the offset of this address in its frame.
    pub const fn offset(self, page: PageSize) -> u64 {
        self.0 & (page.bytes() - 1)
    }
}

/// Sorts ranges, and joins those that overlap or touch.
pub(crate) fn joined<T: Copy + Ord>(mut ranges: Vec<Range<T>>) -> Vec<Range<T>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    ranges
}

/// A span of virtual addresses, `end` not included. Never empty, never reversed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct AddressRange {
    start: VirtualAddress,
    end: VirtualAddress,
}

impl AddressRange {
    /// From `start` up to and without `end`; `None` if that is empty or reversed.
    pub fn new(start: VirtualAddress, end: VirtualAddress) -> Option<Self> {
        (start < end).then_some(AddressRange { start, end })
    }
    /// Returns the range of `bytes` bytes from `start` on; `None` if it is empty or passes the last address.
    pub fn of_length(start: VirtualAddress, bytes: u64) -> Option<Self> {
        Self::new(start, start.checked_add(bytes)?)
    }
    /// Returns the addresses of a value in this program; `None` if it has no bytes.
    pub fn of<T: ?Sized>(value: &T) -> Option<Self> {
        Self::of_length(VirtualAddress::of(value), size_of_val(value) as u64)
    }
    /// The first address.
    pub const fn start(self) -> VirtualAddress {
        self.start
    }
    /// The address after the last one.
    pub const fn end(self) -> VirtualAddress {
        self.end
    }
    /// The number of bytes.
    pub const fn len(self) -> u64 {
        self.end.0 - self.start.0
    }
    /// Always `false`: no range is empty. Types with `len` have this method by convention.
    pub const fn is_empty(self) -> bool {
        false
    }
    /// Returns whether `address` is in the range.
    pub fn contains(self, address: VirtualAddress) -> bool {
        self.start <= address && address < self.end
    }
    /// Returns the addresses that are in both ranges.
    pub fn intersection(self, other: AddressRange) -> Option<AddressRange> {
        AddressRange::new(self.start.max(other.start), self.end.min(other.end))
    }
    /// Sorts ranges, and joins those that overlap or touch.
    pub fn joined(ranges: &[AddressRange]) -> Vec<AddressRange> {
        let joined = joined(ranges.iter().map(|range| range.start..range.end).collect());
        joined.into_iter().map(|Range { start, end }| AddressRange { start, end }).collect()
    }
    /// Returns the parts of this range that are in `sorted`, which is in order and without overlaps.
    pub fn within(self, sorted: &[AddressRange]) -> impl Iterator<Item = AddressRange> + '_ {
        let first = sorted.partition_point(|one| one.end <= self.start);
        let touched = sorted.iter().skip(first);
        touched.map_while(move |one| self.intersection(*one))
    }
    /// Returns the parts of this range that are in none of `sorted`, which is in order and without overlaps.
    pub fn outside(self, sorted: &[AddressRange]) -> impl Iterator<Item = AddressRange> + '_ {
        let behind_all = (self.end, self.end);
        let taken = self.within(sorted).map(|one| (one.start, one.end));
        let mut from = self.start;
        taken
            .chain(std::iter::once(behind_all))
            .filter_map(move |(start, end)| AddressRange::new(std::mem::replace(&mut from, end), start))
    }
    /// Extends the range to whole pages. A range in the last page of the address space keeps its end.
    #[must_use]
    pub fn to_pages(self, page: PageSize) -> AddressRange {
        let end = self.end.0.checked_add(page.bytes() - 1).map_or(self.end, |end| page.floor(VirtualAddress(end)));
        AddressRange { start: page.floor(self.start), end }
    }
    /// Returns the number of pages that the range touches.
    pub fn pages(self, page: PageSize) -> u64 {
        page.index(VirtualAddress(self.end.0 - 1)) - page.index(self.start) + 1
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A span of page frames, `end` not included. Never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct FrameRange {
    start: FrameNumber,
    end: FrameNumber,
}

impl FrameRange {
    /// From `start` up to and without `end`; `None` if that is empty or reversed.
    pub fn new(start: FrameNumber, end: FrameNumber) -> Option<Self> {
        (start < end).then_some(FrameRange { start, end })
    }
    /// The first frame.
    pub const fn start(self) -> FrameNumber {
        self.start
    }
    /// The frame after the last one.
    pub const fn end(self) -> FrameNumber {
        self.end
    }
    /// The number of frames.
    pub const fn frames(self) -> u64 {
        self.end.0 - self.start.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: VirtualAddress = VirtualAddress::new(u64::MAX);

    fn range(start: u64, end: u64) -> AddressRange {
        AddressRange::new(VirtualAddress::new(start), VirtualAddress::new(end)).expect("a range")
    }

    #[test]
    fn addresses_are_read_as_they_are_printed() {
        for text in ["0x7f0000001000", "7f0000001000"] {
            assert_eq!(text.parse().map(VirtualAddress::get), Ok(0x7f00_0000_1000));
        }
        assert_eq!(LAST.to_string().parse(), Ok(LAST));
        for bad in ["", "0x", "0x10000000000000000", "main", "-1", "0x0x1"] {
            assert!(bad.parse::<VirtualAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn page_sizes() {
        for bad in [0, 1, 511, 4095, 4097, 1 << 31] {
            assert_eq!(PageSize::from_bytes(bad), None, "{bad}");
        }
        let page = PageSize::from_bytes(65536).expect("a page size");
        assert_eq!((page.bytes(), page.shift()), (65536, 16));
        assert_eq!((page.pages_in(0), page.pages_in(1), page.pages_in(65537)), (0, 1, 2));
        assert_eq!(page.floor(LAST).get(), u64::MAX - 65535);
        assert_eq!((page.offset(LAST), page.index(LAST)), (65535, u64::MAX >> 16));
    }

    #[test]
    fn parts_of_a_range_lie_in_other_ranges_or_outside() {
        let others = [range(10, 20), range(20, 30), range(40, 50)];
        let parts = |start, end| {
            let whole = range(start, end);
            let inside: Vec<_> = whole.within(&others).collect();
            let outside: Vec<_> = whole.outside(&others).collect();
            (inside, outside)
        };
        assert_eq!(parts(0, 10), (vec![], vec![range(0, 10)]));
        assert_eq!(
            parts(5, 45),
            (vec![range(10, 20), range(20, 30), range(40, 45)], vec![range(5, 10), range(30, 40)])
        );
        assert_eq!(parts(15, 25), (vec![range(15, 20), range(20, 25)], vec![]));
        assert_eq!(parts(60, 70), (vec![], vec![range(60, 70)]));
    }

    #[test]
    fn ranges_are_never_empty_or_reversed() {
        let (low, high) = (VirtualAddress::new(1), VirtualAddress::new(2));
        assert_eq!(AddressRange::new(high, low), None);
        assert_eq!(AddressRange::new(low, low), None);
        assert_eq!(range(1, 5).intersection(range(5, 9)), None);
        assert_eq!(range(1, 5).intersection(range(2, 9)), Some(range(2, 5)));
        assert!(range(1, 5).contains(VirtualAddress::new(4)));
        assert!(!range(1, 5).contains(VirtualAddress::new(5)));
    }

    #[test]
    fn whole_pages_up_to_the_last() {
        let page = PageSize::FOUR_KIB;
        assert_eq!(range(0x1001, 0x1002).to_pages(page), range(0x1000, 0x2000));
        assert_eq!(range(0x1000, 0x2000).to_pages(page), range(0x1000, 0x2000));
        assert_eq!((range(0xfff, 0x1001).pages(page), range(0, 0x1000).pages(page)), (2, 1));
        let top = range(u64::MAX - 1, u64::MAX);
        assert_eq!(top.to_pages(page), range(u64::MAX - 4095, u64::MAX));
        assert_eq!(top.to_pages(page).pages(page), 1);
    }

    #[test]
    fn frames_and_physical_addresses() {
        let page = PageSize::FOUR_KIB;
        let frame = FrameNumber::new(0x1a_4eac);
        let physical = frame.physical(page).expect("it fits");
        assert_eq!((physical.get(), physical.frame(page), physical.offset(page)), (0x1_a4ea_c000, frame, 0));
        assert_eq!(FrameNumber::new(1 << 52).physical(page), None);
        assert_eq!(LAST.checked_add(1), None);
        assert_eq!(VirtualAddress::new(0).checked_sub(1), None);
    }
}
