//! How facts and records are serialized, and descriptions of that.

mod description;
mod field;
mod vocabulary;
mod wire;

pub use description::{FieldDescription, Form, Shape, WHY};
#[cfg(feature = "cli")]
pub(super) use field::leaf;
pub use field::{Field, Hex};
pub use wire::{AsText, Bytes, EveryState, Numbers};
