//! An array, a slice and a vector.

static mut TABLE: [u8; 8 * 4096] = [0; 8 * 4096];

#[inline(never)]
fn stop(slice: &[u8], length: usize) -> u8 {
    slice[length - 1]
}

fn main() {
    let vector = vec![1u8; 8 * 4096];
    let table = &raw mut TABLE;
    // SAFETY: nobody else uses it.
    unsafe { (*table).fill(7) };
    let length = vector.len();
    assert_eq!(stop(&vector, length), 1);
}
