//! How eyes see colours: what the tests of themes and pictures compute with.

fn linear(part: u8) -> f64 {
    match f64::from(part) / 255.0 {
        low if low <= 0.03928 => low / 12.92,
        high => ((high + 0.055) / 1.055).powf(2.4),
    }
}

/// The contrast of two colours, as WCAG has it.
pub fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let luminance = |colour: [u8; 3]| {
        let linear = colour.map(linear);
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Red, green and blue of a colour such as 0xff8000.
pub fn parts(colour: u32) -> [u8; 3] {
    let [_, parts @ ..] = colour.to_be_bytes();
    parts
}

/// What each kind of full colour blindness makes of linear light (Machado, Oliveira and Fernandes 2009).
const SEEN: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

fn times(matrix: &[[f64; 3]; 3], value: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * value[0] + row[1] * value[1] + row[2] * value[2])
}

/// A colour as an eye sees it, in a space where distances are those that people see (Ottosson's OKLab).
fn to_oklab(colour: [u8; 3], eye: &[[f64; 3]; 3]) -> [f64; 3] {
    let light = times(eye, colour.map(linear)).map(|part| part.clamp(0.0, 1.0));
    let cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ];
    let to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ];
    times(&to_lab, times(&cones, light).map(f64::cbrt))
}

/// How far apart two colours are for the eye that tells them apart worst. Side by side, people tell two colours apart
/// from about 0.02 on.
pub fn least_difference(one: [u8; 3], other: [u8; 3]) -> f64 {
    let far = SEEN.iter().map(|eye| {
        let (one, other) = (to_oklab(one, eye), to_oklab(other, eye));
        one.iter().zip(&other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    });
    far.fold(f64::MAX, f64::min)
}
