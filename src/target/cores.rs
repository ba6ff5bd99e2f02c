//! How many cores there are.

use std::sync::OnceLock;
use std::thread::available_parallelism;

/// How many threads of this program can run at once, at least one. Asked once, as the answer is put together from files of cgroups.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}
