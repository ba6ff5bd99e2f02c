//! How many cells fit, and what a cell shows, in words.

use super::canvas::CELL_WIDTH;
use crate::render::marks::{PageShare, PictureCell};
use crate::render::units::count;

/// The cells that fit, a multiple of `together`.
pub(super) fn cells_that_fit(width: usize, together: usize) -> usize {
    let cells = width / CELL_WIDTH;
    (cells - cells % together).max(together)
}

/// What a cell shows, in words.
pub(super) fn meaning(cell: Option<&PictureCell>) -> String {
    let Some(PictureCell { mark, is_mixed, is_repeated, share }) = cell else {
        return String::new();
    };
    if let Some(share @ PageShare { of: 1.., .. }) = share {
        return meaning_of_share(*share);
    }
    let others = if *is_mixed { ", and others" } else { "" };
    let changed = if *is_repeated { ", changed" } else { "" };
    format!("{}{others}{changed}", mark.word())
}

/// `12 of 40 pages were copied since the fork`
pub(super) fn meaning_of_share(share: PageShare) -> String {
    format!("{} of {} {}", count(share.pages), count(share.of), share.what.words())
}
