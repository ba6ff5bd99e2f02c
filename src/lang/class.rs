//! What the parser takes the words of a line for; `highlight` finds it for every part.

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The name of a command.
    Command,
    /// A word of the language: `where`, `by`, `full`, `on`.
    Keyword,
    /// A field of a filter.
    Field,
    /// A function or the type of a number before its parenthesis.
    Function,
    /// A number, a size or a time, typed or pasted.
    Number,
    /// A symbol, module or region.
    Name,
    /// `$name`, `$`, `$1`.
    Variable,
    /// Text in quotes, raw text, a path.
    Text,
    /// An operator or punctuation mark.
    Operator,
    /// A comment.
    Comment,
    /// What goes to the shell.
    Shell,
    /// What cannot stand where it does. Never the last part of the line, which may be unfinished.
    Wrong,
}
