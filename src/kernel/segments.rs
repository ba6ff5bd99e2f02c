//! `/proc/sysvipc/shm`: the System V segments of an IPC namespace.

use super::text::{self, BadLine};

/// A System V segment of shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Segment {
    /// The key of the segment; 0 (IPC_PRIVATE) for one that cannot be found by a key.
    pub key: u32,
    /// The number of the segment (`shmid`), for `ipcrm -m`.
    pub number: u64,
    /// Whether the segment is marked for removal (`SHM_DEST`): it ends when its last process detaches.
    pub is_removed: bool,
    /// The process that created the segment; `None` if it is in another PID namespace.
    pub creator: Option<u32>,
    /// When the segment was created or last changed (`ctime`), in seconds since 1970.
    pub changed: u64,
    /// The number of its attachments (`nattch`).
    pub attached: u64,
    /// Bytes of its pages, resident or swapped.
    pub bytes: u64,
}

/// Decodes the file line by line, without the column titles (`sysvipc_shm_proc_show` in ipc/shm.c).
pub fn segments(bytes: &[u8]) -> impl Iterator<Item = Result<Segment, BadLine>> {
    text::lines(bytes).skip(1).map(|line| segment(line.bytes).ok_or_else(|| line.bad("sysvipc/shm")))
}

fn segment(line: &[u8]) -> Option<Segment> {
    /// include/linux/shm.h
    const SHM_DEST: u32 = 0o1000;
    let mut fields = text::fields(line);
    // The kernel prints the key with a sign.
    let key = std::str::from_utf8(fields.next()?).ok()?.parse::<i32>().ok()?.cast_unsigned();
    let number = text::decimal(fields.next()?)?;
    let mode = u32::from_str_radix(std::str::from_utf8(fields.next()?).ok()?, 8).ok()?;
    // `pid_nr_ns` returns 0 for a process that has no number in the reader's PID namespace.
    let creator = text::decimal(fields.nth(1)?).map(|pid: u32| Some(pid).filter(|&pid| pid > 0))?;
    let attached = text::decimal(fields.nth(1)?)?;
    let changed = text::decimal(fields.nth(6)?)?;
    let (resident, swapped): (u64, u64) = (text::decimal(fields.next()?)?, text::decimal(fields.next()?)?);
    let bytes = resident.saturating_add(swapped);
    Some(Segment { key, number, is_removed: mode & SHM_DEST != 0, creator, changed, attached, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_decoded() {
        let text = b"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
            atime      dtime      ctime                   rss                  swap\n         0          3  1600       \
            24576   812   813      2     0     0     0     0 1795954409          0 1795954409                 20480       \
            4096\n-559038737          7   600                  4096     0   812      0     0     0     0     0          0 \
            0 1795954409                  4096                     0\n";
        let found: Result<Vec<_>, _> = segments(text).collect();
        let made =
            Segment { key: 0, number: 3, is_removed: true, creator: Some(812), attached: 2, bytes: 24_576, changed: 0 };
        let marked = Segment { changed: 1_795_954_409, ..made };
        let lone = Segment {
            key: 0xdead_beef,
            number: 7,
            is_removed: false,
            creator: None,
            attached: 0,
            bytes: 4096,
            ..marked
        };
        assert_eq!(found.expect("lines"), [marked, lone]);
        assert!(segments(b"key\n0 1\n").all(|line| line.is_err()));
    }
}
