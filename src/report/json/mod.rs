//! How facts and records are serialized, and descriptions of that.

mod description;
mod field;
mod vocabulary;
mod wire;

pub use description::{FieldDescription, Form, Shape, WHY, Words};
#[cfg(feature = "cli")]
pub(crate) use field::leaf;
pub use field::{Declared, Field, Hex};
pub use wire::{AsText, Bytes, EveryState, Numbers};
