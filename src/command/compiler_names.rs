//! Names of symbols that are in each program.

/// Whether compiler or linker make a symbol of this name for each program.
pub(super) fn is_made(name: &str) -> bool {
    const MADE: [&str; 24] = [
        "_DYNAMIC",
        "_GLOBAL_OFFSET_TABLE_",
        "_IO_stdin_used",
        "__FRAME_END__",
        "__GNU_EH_FRAME_HDR",
        "__TMC_END__",
        "__abi_tag",
        "__bss_start",
        "__data_start",
        "__do_global_dtors_aux",
        "__do_global_dtors_aux_fini_array_entry",
        "__dso_handle",
        "__frame_dummy_init_array_entry",
        "_dl_relocate_static_pie",
        "_edata",
        "_end",
        "_etext",
        "_fini",
        "_init",
        "_start",
        "data_start",
        "deregister_tm_clones",
        "frame_dummy",
        "register_tm_clones",
    ];
    MADE.contains(&name) || name.contains("@plt") || name.contains(".plt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers_are_known() {
        let made = ["_start", "frame_dummy", "__do_global_dtors_aux", "deregister_tm_clones", "_init", "puts@plt"];
        assert!(made.into_iter().all(is_made));
        assert!(!["main", "frames", "_private", "start", "init"].into_iter().any(is_made));
    }
}
