//! The rows and samples of `as timeline`.

use crate::render::Record;
use crate::render::svg::Svg;
use crate::render::text::Text;
use crate::report::{TimelineRow, TimelineSample};

impl Record for TimelineRow {
    fn write(&self, text: &mut Text) {
        text.timeline().add_row(self);
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.add_row(self);
        true
    }

    fn begins_stream(&self) -> bool {
        true
    }
}

impl Record for TimelineSample {
    fn write(&self, text: &mut Text) {
        text.timeline().add_sample(self);
        text.draw_timeline();
    }

    fn draw(&self, picture: &mut Svg) -> bool {
        picture.add_sample(self);
        true
    }
}
