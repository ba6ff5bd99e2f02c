//! Samples of loops that would take long, chosen by the day, so that the days together reach everything.
//!
//! PMDB_EXHAUSTIVE=1 takes everything. PMDB_SAMPLE=N repeats the sample of a test that has failed and printed N.

use std::time::{SystemTime, UNIX_EPOCH};

/// Whether everything is tested.
pub fn is_exhaustive() -> bool {
    std::env::var_os("PMDB_EXHAUSTIVE").is_some()
}

/// The number that chooses the samples: that of the day. A test that fails prints it.
pub fn number() -> u64 {
    const DAY: u64 = 24 * 60 * 60;
    let given = std::env::var("PMDB_SAMPLE").ok().and_then(|text| text.parse().ok());
    let today = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / DAY);
    let number = given.unwrap_or_else(today);
    println!("PMDB_SAMPLE={number}");
    number
}

/// One of each `group` items in a row, or all.
pub fn sample<T>(items: impl IntoIterator<Item = T>, group: usize) -> impl Iterator<Item = T> {
    let group = if is_exhaustive() { 1 } else { group as u64 };
    let number = number();
    (0..).zip(items).filter(move |(index, _)| is_chosen(number, group, *index)).map(|(_, item)| item)
}

/// Whether the item of this index is the one of its group that the sample has.
fn is_chosen(number: u64, group: u64, index: u64) -> bool {
    // Neighbouring groups and days choose differently: the multiplier is that of Knuth's hash, and a prime.
    (number + index / group).wrapping_mul(2_654_435_761) % group == index % group
}

#[test]
fn each_item_is_in_the_sample_of_one_day_of_a_group() {
    for group in 1..100 {
        for index in (0..3 * group).chain([1_000_000]) {
            let days = (20_000..20_000 + group).filter(|day| is_chosen(*day, group, index));
            assert_eq!(days.count(), 1, "item {index} of groups of {group}");
        }
    }
}
