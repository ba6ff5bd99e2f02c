//! What pmdb takes of the machine that it runs on, for itself: memory, rights, the files that it reads and writes, and
//! what it does before a signal ends it.

#[cfg(feature = "cli")]
pub mod ending;
pub mod memory;
#[cfg(feature = "cli")]
pub mod new_file;
#[cfg(feature = "cli")]
pub mod outlet;
#[cfg(feature = "cli")]
pub mod own_file;
pub mod rights;
