//! `/proc/PID/mountinfo`: which filesystem has which device number.

use super::Device;
use super::text::{self, BadLine};

/// One mount: its device number and the type of its filesystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// `st_dev` of the files on it (btrfs and overlayfs give others).
    pub device: Device,
    /// `ext4`, `tmpfs` …
    pub filesystem: String,
}

impl Mount {
    /// Whether its files are shared memory: pages that only swap backs. devtmpfs is tmpfs by another name.
    pub fn is_shared_memory(&self) -> bool {
        matches!(&*self.filesystem, "tmpfs" | "devtmpfs")
    }
}

/// Decodes the file: `id parent major:minor root point options [tags] - type source options`.
pub fn parse(bytes: &[u8]) -> Result<Vec<Mount>, BadLine> {
    let rows =
        text::lines(bytes).map(|line| mount(line.bytes).ok_or_else(|| line.bad("mountinfo")));
    rows.collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = text::fields(line).skip(2);
    let (major, minor) = text::split_once(fields.next()?, b':')?;
    // The tags before the dash are as many as they like.
    let mut rest = fields.skip(3).skip_while(|field| *field != b"-");
    let filesystem = rest.nth(1)?;
    Some(Mount {
        device: Device {
            major: text::decimal(major)?,
            minor: text::decimal(minor)?,
        },
        filesystem: String::from_utf8_lossy(filesystem).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows() {
        let text = b"24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw,size=12k\n\
            25 24 0:23 / /dev/shm rw shared:5 master:1 - tmpfs tmpfs rw\n\
            27 1 254:0 / /with\\040blank\\040-\\040dash rw - ext4 /dev/vda rw\n";
        let mounts = parse(text).expect("rows");
        let rows: Vec<_> = mounts
            .iter()
            .map(|m| {
                (
                    m.device.major,
                    m.device.minor,
                    &*m.filesystem,
                    m.is_shared_memory(),
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                (0, 6, "devtmpfs", true),
                (0, 23, "tmpfs", true),
                (254, 0, "ext4", false)
            ]
        );
        assert_eq!(
            parse(b"24 27 0:6 / /dev rw devtmpfs\n").map_err(|bad| bad.line),
            Err(1)
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = parse(&bytes);
        }
    }
}
