//! `/proc/PID/auxv`: the auxiliary vector that the kernel passed to a program.

/// Bytes in a pointer of the program. The entries are pairs of its words, in the byte order of this machine. The size
/// of a program header (`AT_PHENT`, 4, of include/uapi/linux/auxvec.h) is 56 in a 64-bit program and 32 in a 32-bit
/// one.
pub fn pointer_bytes(bytes: &[u8]) -> Option<u8> {
    let wide = [4u64, 56].map(u64::to_ne_bytes).concat();
    let narrow = [4u32, 32].map(u32::to_ne_bytes).concat();
    let has = |entry: &[u8]| bytes.chunks_exact(entry.len()).any(|pair| pair == entry);
    match (has(&wide), has(&narrow)) {
        (true, _) => Some(8),
        (_, true) => Some(4),
        _ => None,
    }
}

/// Where the program's vdso is (`AT_SYSINFO_EHDR`, 33), in a program with pointers of so many bytes.
pub fn vdso(bytes: &[u8], pointer_bytes: u8) -> Option<u64> {
    const VDSO: u64 = 33;
    let word = |bytes: &[u8]| match pointer_bytes {
        8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
    };
    let size = usize::from(pointer_bytes);
    let mut entries = bytes.chunks_exact(2 * size).filter_map(|pair| pair.split_at_checked(size));
    entries.find_map(|(name, value)| if word(name)? == VDSO { word(value) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_program_header_tells_the_width() {
        let wide = [33, 0x7fff_f7fc_1000, 16, 4, 6, 4096, 4, 56, 0, 0];
        let narrow = [33, 0xf7fc_1000, 16, 4, 6, 4096, 4, 32, 0, 0];
        let wide: Vec<u8> = wide.iter().copied().flat_map(u64::to_ne_bytes).collect();
        let narrow: Vec<u8> = narrow.iter().copied().flat_map(u32::to_ne_bytes).collect();
        assert_eq!(vdso(&wide, 8), Some(0x7fff_f7fc_1000));
        assert_eq!(vdso(&narrow, 4), Some(0xf7fc_1000));
        assert_eq!(vdso(&wide[16..], 8), None);
        assert_eq!(vdso(&wide[..12], 8), None);
        assert_eq!(pointer_bytes(&wide), Some(8));
        assert_eq!(pointer_bytes(&narrow), Some(4));
        assert_eq!(pointer_bytes(&narrow[..narrow.len() - 12]), None);
        assert_eq!(pointer_bytes(&[]), None);
    }
}
