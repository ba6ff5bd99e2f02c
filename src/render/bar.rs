//! Bars beside shares, for people who compare rows.

use super::columns::{Cell, CellText, Column};
use super::theme::Role;

/// A bar beside a share, where there is room for one.
pub const BAR: Column = Column { is_drawing: true, ..Column::word("", BAR_CELLS, Role::Size).rank(9).repeats() };
const BAR_CELLS: usize = 10;

/// A bar for a part of a whole, to an eighth of a cell.
pub fn bar<'a>(part: u64, whole: u64) -> Cell<'a> {
    Cell::new(blocks(part, whole))
}

/// A bar for a part of the largest one in its column.
pub fn bar_of_largest<'a>(part: u64) -> Cell<'a> {
    Cell::new(CellText::Bar(part))
}

/// Cells that are full for a part of a whole.
pub(super) fn blocks(part: u64, whole: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let all = BAR_CELLS * EIGHTHS.len();
    let share = part as f64 / whole.max(1) as f64;
    let eighths = ((share * all as f64).round() as usize).min(all);
    let last = EIGHTHS.get(eighths % EIGHTHS.len()).copied().unwrap_or_default();
    "█".repeat(eighths / EIGHTHS.len()) + last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::TableLayout;
    use crate::render::theme::Theme;

    #[test]
    fn a_bar_is_drawn_to_an_eighth_for_people_only() {
        let drawn = [blocks(0, 8), blocks(1, 80), blocks(5, 16), blocks(8, 8)];
        assert_eq!(drawn, ["", "▏", "███▏", "██████████"]);
        let table = |width| {
            let columns = vec![Column::number("share", 5, Role::Plain), BAR, Column::word("name", 4, Role::Plain)];
            let mut layout = TableLayout::new(Theme::PLAIN, columns, width);
            let mut out = Vec::new();
            layout.row(&[Cell::new("50 %"), bar(1, 2), Cell::new("one")], &mut out);
            assert_eq!(layout.left_out(), [""; 0]);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(table(Some(40)), " 50 %  █████      one\n");
        assert_eq!([table(Some(20)), table(None)], [" 50 %  one\n", " 50 %  one\n"]);
    }
}
