//! `info capabilities`

use crate::report::record::record;

record! {
    /// `info capabilities`
    #[derive(Eq)]
    pub struct Capabilities as "capabilities" {
        /// Kernel release.
        kernel: String,
        /// The target, on which the features of a process were tested; `null` without one.
        pid: Option<u32>,
        /// The user that pmdb runs as.
        user: Option<u32>,
        /// The capabilities that pmdb uses, and holds or may raise.
        rights: Option<Vec<&'static str>>,
        /// Whether pmdb runs in the initial user namespace.
        first_user_namespace: Option<bool>,
        /// The features, one by one.
        capabilities: Vec<Capability>,
    }

    /// A feature of the kernel, or a right, that pmdb uses where it is available.
    #[derive(Eq)]
    pub struct Capability {
        /// The name of the feature.
        name: &'static str,
        /// Whether it is available; `null` if pmdb could not find out.
        available: Option<bool>,
        /// The evidence.
        found: String,
        /// The facts that pmdb cannot show without it.
        without: &'static str,
        /// The remedy, if there is one.
        remedy: Option<String>,
    }
}
