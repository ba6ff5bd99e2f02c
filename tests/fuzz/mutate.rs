//! Mutations of valid inputs. Each has a number, so that a finding can be reproduced.

/// Numbers that look random and are the same each time (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Numbers at the limits of integer types.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0xfff,
    0x1000,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX - 1,
    u64::MAX,
];

/// Input number `number`: one of `seeds`, mutated in a few places. Mutations may insert `words`.
pub fn input(seeds: &[Vec<u8>], words: &[&str], number: u64) -> Vec<u8> {
    let mut numbers = Numbers(number);
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(6) {
        change(&mut bytes, seeds, words, &mut numbers);
    }
    bytes.truncate(1 << 16);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str], numbers: &mut Numbers) {
    let at = numbers.below(bytes.len() + 1);
    let length = numbers.below(bytes.len() - at + 1).min(1 << numbers.below(10));
    match numbers.below(10) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << numbers.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = numbers.next() as u8;
            }
        }
        // A field of 1, 2, 4 or 8 bytes, in either byte order.
        2..=4 => {
            let edge = EDGES[numbers.below(EDGES.len())];
            let width = 1 << numbers.below(4);
            let field = match numbers.below(3) {
                0 => edge.to_be_bytes()[8 - width..].to_vec(),
                _ => edge.to_le_bytes()[..width].to_vec(),
            };
            for (byte, new) in bytes.iter_mut().skip(at).zip(field) {
                *byte = new;
            }
        }
        5 => _ = bytes.drain(at..at + length),
        6 => {
            let copy = bytes[at..at + length].to_vec();
            let to = numbers.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        7 => bytes.truncate(at),
        8 => {
            let other = &seeds[numbers.below(seeds.len())];
            let from = numbers.below(other.len() + 1);
            let piece = &other[from..(from + length.max(8)).min(other.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => {
            let word = if words.is_empty() { "\0" } else { numbers.one_of(words) };
            bytes.splice(at..at, word.bytes());
        }
    }
}
