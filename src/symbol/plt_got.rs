//! What a file calls another file's function through, as gdb calls it: the stub `malloc@plt`, the slot `malloc@got.plt`.

/// Behind the name of the function: a stub of the procedure linkage table.
pub(super) const PLT: &str = "@plt";
/// Behind the name of the function: a slot of the global offset table.
pub(super) const GOT: &str = "@got.plt";

/// Which of them a name ends with.
pub(super) fn suffix_of(name: &[u8]) -> Option<&'static str> {
    [PLT, GOT]
        .into_iter()
        .find(|suffix| name.ends_with(suffix.as_bytes()))
}
