//! The value history: what `print` printed, as `$1`, `$2` …

use crate::eval::Value;
use crate::lang::HistoryReference;

/// Values in the order in which they were printed, numbered from 1.
#[derive(Clone, Debug, Default)]
pub struct ValueHistory {
    values: Vec<Value>,
}

impl ValueHistory {
    /// Adds a value, and returns its number.
    pub fn push(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }

    /// Every value with its number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.values.iter().enumerate().map(|(index, value)| (index + 1, value))
    }

    /// The value that `$`, `$N`, `$$` or `$$N` means, or why there is none.
    pub fn get(&self, reference: HistoryReference) -> Result<&Value, String> {
        let count = self.values.len() as u64;
        let number = match reference {
            HistoryReference::Number(number) => Some(number),
            HistoryReference::Last => Some(count),
            HistoryReference::Back(back) => count.checked_sub(back),
        };
        number
            .and_then(|number| number.checked_sub(1))
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.values.get(index))
            .ok_or_else(|| match (count, reference) {
                (0, _) => "the value history is empty: print fills it".to_owned(),
                (1, _) => "the value history has only $1".to_owned(),
                _ => format!("the value history goes from $1 to ${count}"),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Integer;

    #[test]
    fn references_count_as_in_gdb() {
        let mut history = ValueHistory::default();
        assert!(history.get(HistoryReference::Last).is_err());
        let value = |number: u64| Value::Integer(Integer::from(number));
        for number in 1..=3 {
            assert_eq!(history.push(value(number * 10)) as u64, number);
        }
        for (reference, expected) in [
            (HistoryReference::Last, 30),
            (HistoryReference::Back(0), 30),
            (HistoryReference::Back(1), 20),
            (HistoryReference::Back(2), 10),
            (HistoryReference::Number(1), 10),
        ] {
            assert_eq!(history.get(reference), Ok(&value(expected)));
        }
        for reference in [
            HistoryReference::Number(0),
            HistoryReference::Number(4),
            HistoryReference::Number(u64::MAX),
            HistoryReference::Back(3),
            HistoryReference::Back(u64::MAX),
        ] {
            assert!(history.get(reference).is_err(), "{reference:?}");
        }
    }
}
