//! The ruler above a timeline.

/// The columns of a time on the ruler, with a blank.
const TIME: f64 = 7.0;

/// The times on a ruler, in seconds since the beginning, each with the column of the sample that is nearest.
pub(crate) fn seconds(times: &[f64], began: f64) -> Vec<(usize, String)> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Vec::new();
    };
    let between = (last - first) / (times.len() as f64 - 1.0).max(1.0);
    let room = if between > 0.0 { between * TIME } else { 1.0 };
    let steps = (-3..9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    let step = steps.into_iter().find(|step| *step >= room).unwrap_or(f64::MAX);
    let decimals = (-step.log10().floor()).clamp(0.0, 3.0) as usize;
    let mut ruler: Vec<(usize, String)> = Vec::new();
    let mut before = None;
    for (column, time) in times.iter().enumerate() {
        let number = ((time - began + between / 2.0) / step).floor();
        if before.replace(number) != Some(number) && (column > 0 || time - began <= number * step + between) {
            ruler.push((column, format!("{:.decimals$} s", number * step)));
        }
    }
    ruler
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn the_ruler_has_round_times_with_room() {
        let every = |interval: f64, first: u32, samples: u32| {
            let times: Vec<f64> = (first..first + samples).map(|sample| f64::from(sample) * interval).collect();
            seconds(&times, 0.0).into_iter().map(|(column, time)| format!("{column}: {time}")).collect::<Vec<_>>()
        };
        assert_eq!(every(0.1, 0, 25), ["0: 0 s", "10: 1 s", "20: 2 s"]);
        assert_eq!(every(0.01, 0, 25), ["0: 0.0 s", "10: 0.1 s", "20: 0.2 s"]);
        assert_eq!(every(60.0, 0, 20), ["0: 0 s", "8: 500 s", "17: 1000 s"]);
        // A later piece begins between two of them.
        assert_eq!(every(0.1, 24, 20), ["6: 3 s", "16: 4 s"]);
        assert_eq!(every(0.1, 30, 5), ["0: 3 s"]);
        assert_eq!(every(1.0, 0, 1), ["0: 0 s"]);
    }
}
