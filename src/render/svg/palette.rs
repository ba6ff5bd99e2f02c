//! The colours of pictures: those of Okabe and Ito, and lighter and darker steps of them. Nobody confuses two, however
//! the eyes work. Only the background, text and untouched memory differ between the light and the dark scheme.

use crate::report::Mark;

/// A colour: red, green and blue.
pub(super) type Rgb = u32;

/// The colour of a mark; `None` for [`FAINT`].
pub(super) const fn fill(mark: Mark) -> Option<Rgb> {
    Some(match mark {
        Mark::Poisoned => 0x503800,
        Mark::Guard => 0xd55e00,
        Mark::Swapped => 0xf0e442,
        Mark::Huge => 0x0072b2,
        // `compare` draws copies and what is shared, and no other marks.
        Mark::PrivateCopy | Mark::Copied => 0xe69f00,
        Mark::Anonymous => 0x009e73,
        Mark::Ksm => 0x1f4e66,
        Mark::Shmem => 0xcc79a7,
        Mark::File | Mark::Shared => 0x56b4e9,
        Mark::Device => 0x5a5a5a,
        Mark::Vdso => 0xaa4b00,
        Mark::Zero => 0xa3d6f3,
        Mark::Unknown => 0xb4b4b4,
        Mark::Untouched | Mark::Nothing => return None,
    })
}

/// Of the part of a cell that has what is counted.
pub(super) const SHARE: Rgb = 0x0072b2;

/// A colour in both schemes, with the class by which the style of the picture changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheme {
    pub class: &'static str,
    pub light: Rgb,
    pub dark: Rgb,
}

/// The background.
pub(super) const GROUND: Scheme = Scheme { class: "ground", light: 0xffffff, dark: 0x0d1117 };
/// Text.
pub(super) const INK: Scheme = Scheme { class: "ink", light: 0x1f2328, dark: 0xe6edf3 };
/// Less important text.
pub(super) const DIM: Scheme = Scheme { class: "dim", light: 0x59636e, dark: 0x9198a1 };
/// Untouched memory, and the empty part of a cell.
pub(super) const FAINT: Scheme = Scheme { class: "faint", light: 0xeceef0, dark: 0x262c34 };

/// The rules for the dark scheme. Without them a picture is light.
pub(super) fn style() -> String {
    let rules = [GROUND, INK, DIM, FAINT].map(|scheme| format!(".{}{{fill:{}}}", scheme.class, hex(scheme.dark)));
    format!("<style>@media (prefers-color-scheme:dark){{{}}}</style>", rules.concat())
}

/// As SVG has it.
pub(super) fn hex(colour: Rgb) -> String {
    format!("#{colour:06x}")
}

/// The colour of a letter on it, which can be read.
pub(super) fn ink_on(colour: Rgb) -> Rgb {
    let [_, red, green, blue] = colour.to_be_bytes().map(u32::from);
    // The weights are those of luminance, and the limit lies where black and white are read equally well.
    let luma = 299 * red + 587 * green + 114 * blue;
    if luma < 100_000 { 0xffffff } else { 0x000000 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::vision::{contrast, least_difference, parts};

    /// The marks of `map`, and those of `compare`: no picture has both.
    fn pictures() -> [Vec<Mark>; 2] {
        let (of_forks, of_maps) =
            Mark::ALL.iter().partition(|mark| matches!(mark, Mark::Copied | Mark::Shared | Mark::Nothing));
        [of_maps, of_forks]
    }

    #[test]
    fn no_two_marks_of_a_picture_look_alike_to_anybody() {
        for faint in [FAINT.light, FAINT.dark] {
            for marks in pictures() {
                for (number, one) in marks.iter().enumerate() {
                    for other in &marks[number + 1..] {
                        let colour = |mark: &Mark| parts(fill(*mark).unwrap_or(faint));
                        let least = least_difference(colour(one), colour(other));
                        assert!(least >= 0.06, "{one:?} and {other:?}: {least}");
                    }
                }
            }
        }
    }

    #[test]
    fn everything_can_be_seen_and_read_in_both_schemes() {
        for (ground, ink, dim, faint) in
            [(GROUND.light, INK.light, DIM.light, FAINT.light), (GROUND.dark, INK.dark, DIM.dark, FAINT.dark)]
        {
            let [ground, ink, dim, faint] = [ground, ink, dim, faint].map(parts);
            assert!(contrast(ink, ground) >= 7.0 && contrast(dim, ground) >= 4.5);
            assert!(contrast(faint, ground) >= 1.15, "{}", contrast(faint, ground));
            for colour in Mark::ALL.iter().copied().filter_map(fill).chain([SHARE]) {
                let seen = contrast(parts(colour), ground);
                assert!(seen >= 1.3, "{} on the background: {seen}", hex(colour));
                let read = contrast(parts(ink_on(colour)), parts(colour));
                assert!(read >= 4.5, "the letter on {}: {read}", hex(colour));
            }
            assert!(contrast(parts(SHARE), faint) >= 2.0);
        }
    }
}
