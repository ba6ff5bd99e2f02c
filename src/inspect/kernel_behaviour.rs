//! What classification has to know of the kernel.

use crate::kernel::swaps::SwapMeaning;

/// Facts about the whole kernel. They are rarely needed, so an implementation may find them out on demand.
pub trait KernelBehaviour {
    /// What a swap type is on this kernel.
    fn swap_meaning(&self, kind: u8) -> SwapMeaning;
    /// Whether any swap area is in use: without one, no entry is a swap slot.
    fn swap_in_use(&self) -> bool;
    /// Whether KPF_KSM is set on merged pages alone: some kernels set it on every anonymous page.
    fn ksm_is_marked(&self) -> bool;
    /// Whether the entries of all guard pages have bit 58, which came two releases after the first guard pages, with
    /// Linux 6.15.
    fn guards_are_marked(&self) -> bool;
    /// Whether bit 61 is set for pages of files and of shared memory, and for the huge page of zeros, where one PMD
    /// maps them: since Linux 6.11 (and in some stable releases before it).
    fn huge_files_are_marked(&self) -> bool;
}
