//! What a file calls another file's function through, as gdb calls it: the stub `malloc@plt`, the slot `malloc@got.plt`.

/// Behind the name of the function: a stub of the procedure linkage table.
pub(super) const STUB: &str = "@plt";
/// Behind the name of the function: a slot of the global offset table.
pub(super) const SLOT: &str = "@got.plt";

/// Which of them a name ends with.
pub(super) fn suffix_of(name: &[u8]) -> Option<&'static str> {
    [STUB, SLOT]
        .into_iter()
        .find(|suffix| name.ends_with(suffix.as_bytes()))
}
