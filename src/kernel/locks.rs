//! The leases in `/proc/locks`: whoever holds one is sent a signal when another program opens the file.

use super::text;

/// A lease that opening the file for reading would break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The process that took it; 0 if the kernel does not name it.
    pub holder: u32,
    /// The inode number of the file.
    pub inode: u64,
}

impl Lease {
    /// Whether the lease may be on a file with this inode number. Device numbers are not compared: overlayfs and btrfs
    /// show different ones in different places. Only 32 bits are compared: a 32-bit kernel prints no more of the
    /// number.
    pub fn may_be_on(&self, inode: u64) -> bool {
        self.inode as u32 == inode as u32
    }
}

/// The leases that a reader breaks. A line that is not understood (a blocked lock, a kind that a later kernel adds) is
/// no lease.
///
/// A lease for reading (`F_RDLCK`) conflicts only with writers. One that is being broken (`BREAKING`) is listed under
/// the type that it will have, and its file cannot be opened yet.
pub fn leases(bytes: &[u8]) -> Vec<Lease> {
    text::lines(bytes).filter_map(|line| lease(line.fields())).collect()
}

/// `1: LEASE ACTIVE WRITE 812 08:01:1234 0 EOF` (`lock_get_status` in fs/locks.c); delegations have the same form.
fn lease<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> Option<Lease> {
    let (_number, kind) = (fields.next()?, fields.next()?);
    let (standing, access) = (fields.next()?, fields.next()?);
    let is_lease = matches!(kind, b"LEASE" | b"DELEG");
    if !is_lease || (standing, access) == (b"ACTIVE", b"READ") {
        return None;
    }
    // -1 stands for a holder on another machine.
    let holder = text::decimal(fields.next()?).unwrap_or(0);
    let inode = fields.next()?.rsplit(|&byte| byte == b':').next()?;
    Some(Lease { holder, inode: text::decimal(inode)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_a_reader_breaks_are_found() {
        let text = b"1: FLOCK  ADVISORY  WRITE 28948 fe:00:10625054 0 EOF\n\
            2: LEASE  ACTIVE    WRITE 812 08:01:1234 0 EOF\n\
            3: LEASE  ACTIVE    READ 813 08:01:1235 0 EOF\n\
            4: LEASE  BREAKING  READ 814 00:1f:1236 0 EOF\n\
            5: LEASE  BREAKING  UNLCK 815 00:1f:1237 0 EOF\n\
            6: DELEG  ACTIVE    WRITE -1 00:1f:1238 0 EOF\n\
            7: POSIX  ADVISORY  WRITE 816 00:1f:1239 0 EOF\n\
            7: -> POSIX  ADVISORY  WRITE 817 00:1f:1239 0 EOF\n\
            8: LEASE  ACTIVE    WRITE 818 <none>:0 0 EOF\n\
            9: LEASE  ACTIVE\n";
        let found: Vec<_> = leases(text).iter().map(|lease| (lease.holder, lease.inode)).collect();
        let expected = [(812, 1234), (814, 1236), (815, 1237), (0, 1238), (818, 0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_lease_is_matched_by_its_inode_number_alone() {
        let lease = Lease { holder: 812, inode: 7 };
        assert!(lease.may_be_on(7));
        assert!(lease.may_be_on(7 | 1 << 32), "as a 32-bit kernel prints it");
        assert!(!lease.may_be_on(8));
    }
}
