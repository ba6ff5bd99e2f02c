//! The table of results.

use super::Size;
use super::measure::Times;
use std::time::Duration;

/// A requirement for a ratio, a time or a size.
#[derive(Clone, Copy)]
pub enum Required {
    /// At most this many times what it is compared with.
    Ratio(f64),
    /// At most this long, whatever the other takes.
    Time(Duration),
    /// At most this much longer than what it is compared with.
    Longer(Duration),
    /// At most this many bytes.
    Bytes(u64),
    /// None: it is only shown.
    Nothing,
}

#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 6]>,
    missed: usize,
}

impl Table {
    /// A benchmark with the times of pmdb and those of `other`.
    pub fn row(&mut self, question: &str, ours: &Times, other: &str, theirs: &Times, required: Required) {
        let (median, ratio) = (ours.median(), ours.over(theirs));
        let (wanted, met) = match required {
            Required::Ratio(most) => (format!("≤ {most} ×"), ratio <= most),
            Required::Time(most) => (format!("≤ {}", time(most)), median <= most),
            Required::Longer(most) => (format!("≤ {} more", time(most)), ours.beyond(theirs) <= most),
            Required::Bytes(_) | Required::Nothing => (String::new(), true),
        };
        let ratio = match ratio {
            small if small < 0.1 => format!("{small:.4}"),
            ratio => format!("{ratio:.2}"),
        };
        let theirs = format!("{} {other}", time(theirs.median()));
        self.push(question, time(median), theirs, ratio, wanted, met);
    }

    /// A benchmark of memory.
    pub fn bytes(&mut self, question: &str, bytes: u64, required: Required) {
        let (wanted, met) = match required {
            Required::Bytes(most) => (format!("≤ {} MiB", most >> 20), bytes <= most),
            _ => (String::new(), true),
        };
        let ours = format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        self.push(question, ours, String::new(), String::new(), wanted, met);
    }

    /// A benchmark that cannot run here.
    pub fn without(&mut self, question: &str, why: &str) {
        let why = format!("({why})");
        self.push(question, String::new(), why, String::new(), String::new(), true);
    }

    fn push(&mut self, question: &str, ours: String, other: String, ratio: String, wanted: String, met: bool) {
        let mark = if met { "" } else { "missed" };
        self.missed += usize::from(!met);
        // A run takes minutes: each row is shown at once.
        eprintln!("{question}: {ours} · {other} · {ratio} {wanted} {mark}");
        self.rows.push([question.to_owned(), ours, other, ratio, wanted, mark.to_owned()]);
    }

    pub fn print(&self, size: &Size) {
        let heading = ["question", "pmdb", "compared with", "ratio", "required", ""];
        let heading = heading.map(str::to_owned);
        let all = || std::iter::once(&heading).chain(&self.rows);
        let width = |column: usize| {
            let widths = all().map(|row| row.get(column).map_or(0, |cell| cell.chars().count()));
            widths.max().unwrap_or(0)
        };
        let widths: [usize; 6] = std::array::from_fn(width);
        for (line, row) in all().enumerate() {
            println!("| {} |", cells(row, &widths).join(" | "));
            if line == 0 {
                println!("|{}|", widths.map(|width| "-".repeat(width + 2)).join("|"));
            }
        }
        let (rounds, percent) = (size.rounds, size.percent);
        println!("\nMedians of {rounds} rounds, sizes at {percent} %; {} missed.", self.missed);
    }
}

fn cells(row: &[String; 6], widths: &[usize; 6]) -> Vec<String> {
    let pad = |(cell, width): (&String, &usize)| format!("{cell:width$}");
    row.iter().zip(widths).map(pad).collect()
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        long if long >= 1.0 => format!("{long:.2} s"),
        middle if middle >= 1e-3 => format!("{:.2} ms", middle * 1e3),
        short if short >= 1e-6 => format!("{:.0} us", short * 1e6),
        shortest => format!("{:.1} ns", shortest * 1e9),
    }
}
