//! The configuration that a kernel was built with (`/proc/config.gz`, unpacked).

use super::swaps::SwapOptions;
use super::text;

/// The options of a kernel, as bytes of its configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config(Vec<u8>);

impl Config {
    /// From the text of the file; `None` if it has no option.
    pub fn new(text: Vec<u8>) -> Option<Self> {
        let is_one = text::lines(&text).any(|line| line.bytes.starts_with(b"CONFIG_"));
        is_one.then_some(Config(text))
    }

    /// Whether `option`, as `CONFIG_MIGRATION`, is built in: `=y`.
    pub fn is_set(&self, option: &str) -> bool {
        text::lines(&self.0)
            .any(|line| line.bytes.strip_prefix(option.as_bytes()).map(<[u8]>::trim_ascii_end) == Some(b"=y"))
    }

    /// Whether the kernel counts the mappings of each page, as all did before Linux 6.15, and not only those of a large
    /// folio as a whole.
    pub fn counts_each_page(&self) -> bool {
        self.is_set("CONFIG_PAGE_MAPCOUNT")
    }

    /// The options that decide the layout of the swap types.
    pub fn swap_options(&self) -> SwapOptions {
        SwapOptions {
            memory_failure: self.is_set("CONFIG_MEMORY_FAILURE"),
            migration: self.is_set("CONFIG_MIGRATION"),
            device_private: self.is_set("CONFIG_DEVICE_PRIVATE"),
            pte_marker: self.is_set("CONFIG_PTE_MARKER"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options() {
        let text = b"#\n# Linux/x86 6.12\n#\nCONFIG_MIGRATION=y\n# CONFIG_MEMORY_FAILURE is not set\nCONFIG_ZRAM=m\nCONFIG_HZ=250\nCONFIG_DEVICE_PRIVATE=y\n";
        let config = Config::new(text.to_vec()).expect("options");
        assert_eq!(
            config.swap_options(),
            SwapOptions { memory_failure: false, migration: true, device_private: true, pte_marker: false }
        );
        for absent in ["CONFIG_ZRAM", "CONFIG_HZ", "CONFIG_MIGRATIO", "CONFIG", "MIGRATION"] {
            assert!(!config.is_set(absent), "{absent}");
        }
        assert!(!config.counts_each_page());
        let exact = Config::new(b"# CONFIG_NO_PAGE_MAPCOUNT is not set\nCONFIG_PAGE_MAPCOUNT=y\n".to_vec());
        assert!(exact.expect("options").counts_each_page());
        let average = Config::new(b"CONFIG_NO_PAGE_MAPCOUNT=y\n# CONFIG_PAGE_MAPCOUNT is not set\n".to_vec());
        assert!(!average.expect("options").counts_each_page());
        assert_eq!(Config::new(b"# nothing\n".to_vec()), None);
        assert_eq!(Config::new(Vec::new()), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            _ = Config::new(bytes).map(|config| config.swap_options());
        }
    }
}
