//! Numbers as people read them: sizes, counts, durations, times of day.

use crate::kernel::Name;
use jiff::{Timestamp, tz::TimeZone};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// The text of a number, made without allocation because long tables have very many.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The text at the end, blanks before it.
    bytes: [u8; Self::MOST],
    first: usize,
}

impl Number {
    const MOST: usize = 32;

    /// An address as `{:#x}` writes it.
    pub fn hexadecimal(number: u64) -> Self {
        let mut text = Number::default();
        text.put_digits::<16>(number);
        text.put(b"0x");
        text
    }

    /// A count, with commas between thousands from 10,000 on.
    pub fn count(number: u64) -> Self {
        let mut text = Number::default();
        let mut rest = number;
        while number >= 10_000 && rest >= 1000 {
            for power in [1, 10, 100] {
                text.put_digits::<10>(rest / power % 10);
            }
            text.put(b",");
            rest /= 1000;
        }
        text.put_digits::<10>(rest);
        text
    }

    /// A number of bytes in at most eight columns: exact in the largest unit in which it is below 10,000, else rounded.
    pub fn size(bytes: u64) -> Self {
        let mut text = Number::default();
        // The largest unit of which it is a multiple gives the smallest number.
        let power = (bytes.trailing_zeros() as usize / 10).min(UNITS.len() - 1);
        match (bytes >> (10 * power), UNITS.get(power)) {
            _ if bytes == 0 => text.put(b"0"),
            (in_unit @ ..10_000, Some(unit)) => {
                text.put(unit.as_bytes());
                text.put(b" ");
                text.put_digits::<10>(in_unit);
            }
            _ => text.put(round(bytes).as_bytes()),
        }
        text
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(self.first..).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The terminal columns that it takes: one for each byte, as all are ASCII.
    pub fn columns(&self) -> usize {
        self.bytes.len() - self.first
    }

    /// The text as bytes, with so many blanks before it; `None` if they do not fit.
    pub fn with_blanks(&self, blanks: usize) -> Option<&[u8]> {
        self.bytes.get(self.first.checked_sub(blanks)?..)
    }

    /// Puts `text` before what is there, as far as there is room.
    fn put(&mut self, text: &[u8]) {
        for byte in text.iter().rev() {
            self.put_byte(*byte);
        }
    }

    /// Puts digits to a base of at most 16 before the text. The base is a constant because dividing by a variable is
    /// slow.
    fn put_digits<const BASE: u64>(&mut self, mut number: u64) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        loop {
            let digit = DIGITS.get((number % BASE) as usize);
            self.put_byte(digit.copied().unwrap_or(b'?'));
            number /= BASE;
            if number == 0 {
                return;
            }
        }
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        if let Some(before) = self.first.checked_sub(1)
            && let Some(place) = self.bytes.get_mut(before)
        {
            *place = byte;
            self.first = before;
        }
    }
}

impl Default for Number {
    fn default() -> Self {
        Number { bytes: [b' '; Self::MOST], first: Self::MOST }
    }
}

/// The units of several sizes, so that they can be compared: one for all, or as few as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    /// The smallest unit and the largest.
    powers: [usize; 2],
    /// The decimals of sizes in each unit.
    decimals: [usize; UNITS.len()],
}

impl Scale {
    /// The largest unit in which each of these sizes is at least 1, if one is needed and it makes no number long: with
    /// one decimal no size has fewer than two digits.
    pub(super) fn of(sizes: impl Iterator<Item = u64> + Clone) -> Option<Self> {
        let sizes = sizes.filter(|bytes| *bytes > 0);
        let [least, most] = [sizes.clone().min()?, sizes.clone().max()?];
        let power = unit_of(least);
        let is_rounded = sizes.clone().any(|bytes| is_rounded(bytes, power));
        (least != most && most >> (10 * power) < LONG)
            .then_some(Scale { powers: [power; 2], decimals: [usize::from(is_rounded); UNITS.len()] })
    }

    /// Where no unit suits all: each size in the largest one in which it is at least 1, so that a larger size never
    /// has a smaller unit, and the sizes of each unit with the same decimals.
    pub(super) fn of_several_units(sizes: impl Iterator<Item = u64> + Clone) -> Option<Self> {
        let sizes = sizes.filter(|bytes| *bytes > 0);
        let [least, most] = [sizes.clone().min()?, sizes.clone().max()?];
        let exact = sizes.clone().map(|bytes| bytes.trailing_zeros() as usize / 10).min()?;
        let common = (exact..UNITS.len()).find(|power| most >> (10 * power) < LONG)?;
        let is_common = sizes.clone().filter(|bytes| bytes >> (10 * common) >= 1).count() > 1;
        let largest = if is_common { common } else { unit_of(most) };
        let mut scale = Scale { powers: [0, largest], decimals: [0; UNITS.len()] };
        for bytes in sizes {
            let power = scale.power(bytes);
            if is_rounded(bytes, power) {
                *scale.decimals.get_mut(power)? = 1;
            }
        }
        (least != most).then_some(scale)
    }

    fn power(self, bytes: u64) -> usize {
        let [least, most] = self.powers;
        unit_of(bytes).clamp(least, most)
    }

    /// A size in its unit.
    pub(super) fn size(self, bytes: u64) -> String {
        let power = self.power(bytes);
        let decimals = self.decimals.get(power).copied().unwrap_or_default();
        let in_unit = bytes as f64 / (1u64 << (10 * power)) as f64;
        let unit = UNITS.get(power).copied().unwrap_or_default();
        let digits = format!("{in_unit:.decimals$}");
        let whole = digits.split('.').next().unwrap_or_default();
        let separated = whole.parse().map_or_else(|_| whole.to_owned(), count);
        format!("{separated}{} {unit}", digits.get(whole.len()..).unwrap_or_default())
    }
}

/// The first number that is too long in a table.
const LONG: u64 = 10_000;

/// Whether a size is no multiple of this unit.
fn is_rounded(bytes: u64, power: usize) -> bool {
    (bytes.trailing_zeros() as usize) / 10 < power
}

/// The largest unit in which a size is at least 1.
fn unit_of(bytes: u64) -> usize {
    bytes.checked_ilog2().map_or(0, |log| log as usize / 10)
}

/// A number of bytes as [`Number::size`] writes it.
pub fn size(bytes: u64) -> String {
    Number::size(bytes).as_str().to_owned()
}

/// A number of bytes beside others that are not known yet, in eight columns: from 1 MiB on in MiB with three digits, as
/// long as that is no long number.
pub(super) fn sampled_size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        0..MIB => size(bytes),
        _ if bytes / MIB < LONG => in_unit(bytes, 2),
        _ => round(bytes),
    }
}

/// Three digits, or more of a large number.
fn in_unit(bytes: u64, power: usize) -> String {
    let in_unit = bytes as f64 / (1u64 << (10 * power)) as f64;
    let decimals = usize::from(in_unit < 99.95);
    let unit = UNITS.get(power).copied().unwrap_or("B");
    format!("{in_unit:.decimals$} {unit}")
}

fn round(bytes: u64) -> String {
    in_unit(bytes, unit_of(bytes))
}

/// A size, with its exact number of bytes if the size is rounded.
pub fn exact_size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{} bytes", count(bytes)),
        _ => format!("{} ({} bytes)", size(bytes), count(bytes)),
    }
}

/// A count as [`Number::count`] writes it.
pub fn count(number: u64) -> String {
    Number::count(number).as_str().to_owned()
}

/// `1 page`, `12,000 pages`: a count and its noun.
pub fn counted(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with("ch") || noun.ends_with("ss") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(number))
}

/// A share of a whole, as `80 %`; `None` of nothing.
pub fn percent(part: u64, whole: u64) -> Option<String> {
    if whole == 0 {
        return None;
    }
    let share = part as f64 * 100.0 / whole as f64;
    Some(match share {
        // Neither nothing nor everything may be rounded to.
        share if share > 0.0 && share < 0.1 => "<0.1 %".into(),
        share if share > 99.9 && share < 100.0 => ">99.9 %".into(),
        share if (99.5..100.0).contains(&share) || share > 0.0 && share < 10.0 => {
            format!("{share:.1} %")
        }
        share => format!("{share:.0} %"),
    })
}

/// A duration in the largest sensible units: `250 ms`, `12.3 s`, `3 min 20 s`, `2 h 5 min`, `4 d 1 h`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "?".into();
    }
    if seconds < 0.9995 {
        let milliseconds = seconds * 1000.0;
        let decimals = usize::from(milliseconds < 10.0 && milliseconds.fract() != 0.0);
        return format!("{milliseconds:.decimals$} ms");
    }
    if seconds < 59.95 {
        let decimals = usize::from(seconds.fract() != 0.0);
        return format!("{seconds:.decimals$} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86400, whole % 86400 / 3600),
    }
}

/// The zone of `TZ` or of the system.
pub(super) fn local_zone() -> TimeZone {
    if zone_fault().is_some() { TimeZone::UTC } else { TimeZone::system() }
}

/// Why times are not in the zone that the environment asks for: reading such a file could wait for ever.
pub fn zone_fault() -> Option<String> {
    /// Files of zones have a few KiB.
    const LARGEST: u64 = 1 << 20;
    let zone = std::env::var_os("TZ")?;
    let bytes = zone.as_encoded_bytes();
    let path = Path::new(OsStr::from_bytes(bytes.strip_prefix(b":").unwrap_or(bytes)));
    let found = path.is_absolute().then(|| path.metadata().ok()).flatten()?;
    let is_zone = found.is_file() && found.len() <= LARGEST;
    (!is_zone).then(|| format!("times are in UTC: TZ is {}, which is no file of a time zone", Name::new(bytes)))
}

/// The time of day in `zone`, to the millisecond; `seconds` since the epoch.
pub fn time_of_day(seconds: f64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond((seconds * 1000.0).round() as i64) {
        Ok(time) => time.to_zoned(zone.clone()).strftime("%H:%M:%S%.3f").to_string(),
        Err(_) => format!("{seconds:.3}"),
    }
}

/// `+12 KiB`: from one number of bytes to another.
pub fn difference(before: u64, now: u64) -> String {
    let sign = if now > before { "+" } else { "-" };
    format!("{sign}{}", size(now.abs_diff(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_column_have_one_unit_if_it_suits_all() {
        let texts = |sizes: &[u64]| {
            let scale = Scale::of(sizes.iter().copied());
            scale.map_or_else(String::new, |scale| {
                sizes.iter().map(|bytes| scale.size(*bytes)).collect::<Vec<_>>().join(", ")
            })
        };
        let (kib, mib, gib) = (1 << 10, 1 << 20, 1 << 30);
        assert_eq!(texts(&[9196 * kib, 8 * kib]), "9196 KiB, 8 KiB");
        assert_eq!(texts(&[48 * mib, 32 * mib + 100 * kib]), "48.0 MiB, 32.1 MiB");
        assert_eq!(texts(&[gib + 300 * mib, 71 * mib + 788 * kib]), "1324.0 MiB, 71.8 MiB");
        // No byte more or less changes the unit.
        assert_eq!(texts(&[4_514_508, 4_301_112]), "4.3 MiB, 4.1 MiB");
        assert_eq!(texts(&[4944 * kib, 11_060 * kib]), "4.8 MiB, 10.8 MiB");
        assert_eq!(texts(&[2 * mib, 3 * mib]), "2 MiB, 3 MiB");
        // Too far apart, the same, or none.
        for sizes in [&[100 * gib, 4 * kib][..], &[21_196 * kib, 8 * kib], &[4 * kib, 4 * kib], &[0, 0], &[]] {
            assert_eq!(texts(sizes), "", "{sizes:?}");
        }
    }

    #[test]
    fn samples_have_one_unit_from_a_mebibyte_on() {
        for (kib, text) in [
            (0, "0"),
            (644, "644 KiB"),
            (4944, "4.8 MiB"),
            (11_060, "10.8 MiB"),
            (300 << 10, "300 MiB"),
            (2 << 20, "2048 MiB"),
            (16 << 20, "16.0 GiB"),
        ] {
            assert_eq!(sampled_size(kib << 10), text);
        }
    }

    #[test]
    fn no_size_has_a_smaller_unit_than_a_smaller_size() {
        let texts = |sizes: &[u64]| {
            let scale = Scale::of_several_units(sizes.iter().copied()).expect("sizes that differ");
            sizes.iter().map(|bytes| scale.size(*bytes)).collect::<Vec<_>>().join(", ")
        };
        let (kib, mib, gib) = (1u64 << 10, 1u64 << 20, 1u64 << 30);
        assert_eq!(texts(&[56 * mib, 8188 * kib, 464 * kib, 4 * kib]), "56.0 MiB, 8.0 MiB, 464 KiB, 4 KiB");
        assert_eq!(texts(&[56 * mib, 8 * mib, 4 * kib]), "56 MiB, 8 MiB, 4 KiB");
        assert_eq!(texts(&[30 * gib, 8188 * kib, 300 * mib]), "30 GiB, 8.0 MiB, 300.0 MiB");
        assert_eq!(texts(&[gib + 300 * mib, 64 * mib, 4 * kib]), "1324 MiB, 64 MiB, 4 KiB");
        assert_eq!(texts(&[gib, 4 * kib]), "1 GiB, 4 KiB");
        assert_eq!(texts(&[2 * mib + 12, 12, 0]), "2.0 MiB, 12 B, 0 B");
    }

    #[test]
    fn sizes_are_exact_where_that_fits() {
        for (bytes, text) in [
            (0, "0"),
            (1, "1 B"),
            (4095, "4095 B"),
            (4096, "4 KiB"),
            (1020 << 10, "1020 KiB"),
            (1228 << 10, "1228 KiB"),
            (2 << 20, "2 MiB"),
            (12_345, "12.1 KiB"),
            (12_345 << 10, "12.1 MiB"),
            (100_000 << 20 | 4096, "97.7 GiB"),
            (1 << 47, "128 TiB"),
            (1 << 63, "8 EiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
            assert!(size(bytes).len() <= 8, "{bytes}");
        }
        assert_eq!(exact_size(4096), "4096 bytes");
        assert_eq!(exact_size(2 << 20), "2 MiB (2,097,152 bytes)");
    }

    #[test]
    fn addresses_are_as_the_library_writes_them() {
        for number in [0, 1, 0xf, 0x10, 0x7fff_0123_4000, u64::MAX] {
            let text = Number::hexadecimal(number);
            assert_eq!(text.as_str(), format!("{number:#x}"));
        }
    }

    #[test]
    fn counts_have_commas_from_ten_thousand_on() {
        assert_eq!(count(9999), "9999");
        assert_eq!(count(10_000), "10,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "page"), "1 page");
        assert_eq!(counted(0, "page"), "0 pages");
    }

    #[test]
    fn shares_never_round_to_nothing_or_everything() {
        assert_eq!(percent(0, 0), None);
        assert_eq!(percent(0, 7).as_deref(), Some("0 %"));
        assert_eq!(percent(1, 1 << 30).as_deref(), Some("<0.1 %"));
        assert_eq!(percent((1 << 30) - 1, 1 << 30).as_deref(), Some(">99.9 %"));
        assert_eq!(percent(511, 512).as_deref(), Some("99.8 %"));
        assert_eq!(percent(995, 1000).as_deref(), Some("99.5 %"));
        assert_eq!(percent(994, 1000).as_deref(), Some("99 %"));
        assert_eq!(percent(1, 3).as_deref(), Some("33 %"));
        assert_eq!(percent(1, 12).as_deref(), Some("8.3 %"));
        assert_eq!(percent(5, 5).as_deref(), Some("100 %"));
    }

    #[test]
    fn durations_read_well() {
        for (seconds, text) in [
            (0.25, "250 ms"),
            (0.0015, "1.5 ms"),
            (1.0, "1 s"),
            (12.34, "12.3 s"),
            (200.0, "3 min 20 s"),
            (7500.0, "2 h 5 min"),
            (349_200.0, "4 d 1 h"),
            (f64::NAN, "?"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn a_time_of_day_is_local() {
        let berlin = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(time_of_day(1_700_000_000.125, &TimeZone::UTC), "22:13:20.125");
        assert_eq!(time_of_day(1_700_000_000.125, &berlin), "00:13:20.125");
        assert_eq!(time_of_day(f64::INFINITY, &TimeZone::UTC), "inf");
    }
}
