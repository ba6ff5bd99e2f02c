//! What the project has written down is true: the grammar, the layers of the code, the public interface, the texts.

mod english;
mod grammar;
mod layers;
mod sample;
