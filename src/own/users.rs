//! The names of users, as `/etc/passwd` of this machine lists them.

use super::own_file::{self, Links};
use crate::kernel::Name;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Names of users by their numbers. The first line of a number counts, as for the C library.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserNames(BTreeMap<u32, Name>);

impl UserNames {
    /// Reads the file; no user has a name if it cannot be read. Users of a directory service are not in it.
    pub fn of_this_machine() -> Self {
        let mut text = Vec::new();
        if let Ok(Some((file, _))) = own_file::regular(Path::new("/etc/passwd"), Links::Followed)
            && File::from(file).read_to_end(&mut text).is_err()
        {
            text.clear();
        }
        Self::parse(&text)
    }

    /// Returns the name of a user.
    pub fn name(&self, user: u32) -> Option<&Name> {
        self.0.get(&user)
    }

    fn parse(text: &[u8]) -> Self {
        let mut names = BTreeMap::new();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(|&byte| byte == b':');
            if let (Some(name @ [_, ..]), Some(_), Some(number)) = (fields.next(), fields.next(), fields.next())
                && let Some(number) = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok())
            {
                names.entry(number).or_insert_with(|| Name::new(name));
            }
        }
        UserNames(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_number_counts_and_damaged_lines_do_not() {
        let names =
            UserNames::parse(b"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\n:x:7:\nbin\nb\x1bd:x:12:12\nx:x:-1:\n");
        assert_eq!(names.name(0), Some(&Name::from("root")));
        assert_eq!(names.name(12), Some(&Name::new(b"b\x1bd")));
        assert_eq!([names.name(7), names.name(1), names.name(u32::MAX)], [None; 3]);
    }
}
