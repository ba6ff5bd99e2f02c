//! What pmdb takes of the machine that it runs on: memory, rights, the files that it reads and writes; and its cleanup
//! before a signal ends it.

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
#[cfg(feature = "cli")]
pub mod users;
