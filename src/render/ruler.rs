//! The rulers above a timeline: times, and processes that came and went.

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

/// What the marks of processes mean.
pub(crate) const PROCESSES: &str = "+ forked, - ended";

/// The marks of processes that came and that went in samples, each with the column of its sample. They have process ids
/// where the next mark leaves room.
pub(crate) fn processes<'a>(samples: impl Iterator<Item = &'a [Vec<u32>; 2]>, columns: usize) -> Vec<(usize, String)> {
    let changed = samples.enumerate().filter(|(_, changed)| changed.iter().any(|pids| !pids.is_empty()));
    let changed: Vec<_> = changed.collect();
    let ends = changed.iter().skip(1).map(|(column, _)| *column).chain([columns + 1]);
    let marks = changed.iter().zip(ends).map(|((column, [came, went]), end)| {
        let came_and_went = [(went, '-'), (came, '+')];
        let all = came_and_went.iter().flat_map(|(pids, sign)| pids.iter().map(move |pid| format!("{sign}{pid}")));
        let all = all.collect::<Vec<_>>().join(" ");
        let signs: String = came_and_went.iter().filter(|(pids, _)| !pids.is_empty()).map(|(_, sign)| sign).collect();
        let room = end - column;
        // A blank stands before the next mark.
        let whole = Some(all).filter(|all| all.len() < room);
        let last = |signs: String| if signs.len() < room { signs } else { signs.chars().last().into_iter().collect() };
        (*column, whole.unwrap_or_else(|| last(signs)))
    });
    marks.collect()
}

#[cfg(test)]
mod tests {
    use super::{processes, seconds};

    #[test]
    fn processes_have_their_ids_where_there_is_room() {
        let sample = |came: &[u32], went: &[u32]| [came.to_vec(), went.to_vec()];
        let none = || sample(&[], &[]);
        let marks = |samples: &[[Vec<u32>; 2]], columns| {
            let marks = processes(samples.iter(), columns).into_iter();
            marks.map(|(column, mark)| format!("{column}{mark}")).collect::<Vec<_>>()
        };
        let samples = [none(), sample(&[812], &[]), none(), none(), none(), none(), none(), sample(&[], &[812])];
        assert_eq!(marks(&samples, 20), ["1+812", "7-812"]);
        assert_eq!(marks(&samples, 10), ["1+812", "7-"]);
        let samples = [sample(&[812], &[]), none(), sample(&[813], &[812]), none(), none(), sample(&[814], &[813])];
        assert_eq!(marks(&samples, 6), ["0+", "2-+", "5+"]);
        assert_eq!(marks(&samples, 40), ["0+", "2-+", "5-813 +814"]);
        assert!(marks(&[none(), none()], 40).is_empty());
    }

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
