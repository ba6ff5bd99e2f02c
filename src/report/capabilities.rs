//! `info capabilities`

use serde::Serialize;

/// What this kernel and these rights give.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Capabilities {
    /// Kernel release.
    pub kernel: String,
    /// The process that some of it is about; `None` without a target.
    pub pid: Option<u32>,
    /// The user that pmdb runs as.
    pub user: Option<u32>,
    /// The rights that it holds or may take up, of those it has a use for.
    pub rights: Option<Vec<&'static str>>,
    /// Whether it runs in the first user namespace.
    pub first_user_namespace: Option<bool>,
    /// One by one.
    pub capabilities: Vec<Capability>,
}

/// Something that pmdb makes use of where it is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Capability {
    /// A word for it.
    pub name: &'static str,
    /// Whether it is there; `None`: that could not be found out.
    pub available: Option<bool>,
    /// How that was found out.
    pub found: String,
    /// What is missing where it is not there.
    pub without: &'static str,
    /// What would help, where something would.
    pub remedy: Option<String>,
}
