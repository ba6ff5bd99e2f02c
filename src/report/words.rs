//! The words for derived facts: whose a page is, the effect of the next access, the classes of an account of memory
//! with their marks and what is beside their sum, and the events of a watch.

use crate::kernel::words::worded;

worded! {
    /// Whose page it is.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Owner, word {
        /// Of this mapping alone.
        Sole = "sole",
        /// Private, and shared since a fork: the first process to write gets a copy.
        CopyOnWrite = "copy_on_write",
        /// Private and shared by a fork before; nobody else maps it any more.
        LeftOver = "left_over",
        /// Merged by the kernel with equal pages.
        Merged = "merged",
        /// A file or shared memory: all processes that map it share its pages.
        Object = "object",
        /// The kernel's own: zero pages, vdso.
        Kernel = "kernel",
        /// A device's.
        Device = "device",
        /// Memory of the kernel, which a driver lends to the process.
        Driver = "driver",
    }
}

worded! {
    /// Whether the kernel may move a page to another frame.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Movable, word {
        /// The page is pinned, and keeps its frame.
        Pinned = "pinned",
        /// The page may be pinned.
        PossiblyPinned = "possibly_pinned",
        /// Not as long as references are held that nothing explains.
        Held = "held",
        /// The kernel never moves such pages.
        Never = "never",
        /// Yes, but it is never swapped out or reclaimed: locked memory, and pages of the hugetlb pool.
        Unreclaimable = "unreclaimable",
        /// Yes, unless the file system holds the buffers of the page, which no record shows.
        UnlessBuffersHeld = "unless_buffers_held",
        /// Yes.
        Freely = "freely",
    }
}

/// The outcome of an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessOutcome {
    /// The effects, of which one happens; the likeliest comes first.
    pub effects: Vec<Effect>,
    /// Whether the access makes a private copy, of the present page or of the one that is faulted in; `None` if that is
    /// unknown.
    pub copies: Option<bool>,
}

worded! {
    /// What an access does.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum Effect, word {
        /// Nothing beyond the access.
        Nothing = "nothing",
        /// Zeros are mapped: for a read of anonymous memory the shared zero page, otherwise a new page.
        Zeros = "zeros",
        /// The same for a whole huge page at once.
        HugeZeros = "huge_zeros",
        /// A copy of the page is made for this process.
        Copy = "copy",
        /// The page is made writable where it is.
        Reuse = "reuse",
        /// Maps the page of the page cache.
        MapCached = "map_cached",
        /// Reads the file.
        ReadFile = "read_file",
        /// Brings it back from swap.
        SwapIn = "swap_in",
        /// Brings it back from the memory of a device.
        FromDevice = "from_device",
        /// A driver or the kernel maps a page of its own.
        Map = "map",
        /// Removes a write protection of userfaultfd that only records writes.
        Unprotect = "unprotect",
        /// Stops the thread until the userfaultfd handler has resolved the fault.
        Notify = "notify",
        /// Waits until the page has moved.
        Wait = "wait",
        /// Waits until a process of the cgroup frees memory: the cgroup is at its limit, and its OOM killer is off.
        WaitForMemory = "wait_for_memory",
        /// SIGKILL: the cgroup is at its limit, and the OOM killer ends a process of it, mostly the largest.
        OutOfMemory = "out_of_memory",
        /// The stack grows to here.
        StackGrows = "stack_grows",
        /// SIGSEGV: nothing is mapped here.
        NoRegion = "no_region",
        /// SIGSEGV: the region does not permit it.
        Protection = "protection",
        /// SIGSEGV: the thread has no such right for the protection key of the region.
        ProtectionKey = "protection_key",
        /// SIGSEGV: a guard page.
        Guard = "guard",
        /// SIGBUS: the file ends before this page.
        PastEnd = "past_end",
        /// SIGBUS: the kernel has no page for this part of `[vvar]` on this machine.
        NoKernelPage = "no_kernel_page",
        /// SIGBUS: the driver has not inserted a page here, and brings none at a fault.
        NoDriverPage = "no_driver_page",
        /// SIGBUS: the driver refuses the access, as perf does with writes to its records.
        DriverRefuses = "driver_refuses",
        /// SIGBUS: no page is left in the hugetlb pool.
        PoolEmpty = "pool_empty",
        /// SIGBUS: the cgroup may use no more pages of the hugetlb pool.
        PoolLimit = "pool_limit",
        /// SIGBUS: the file system has no room left for the page.
        NoSpace = "no_space",
        /// SIGBUS: poisoned.
        Poisoned = "poisoned",
        /// SIGBUS: the memory is broken.
        Hwpoison = "hwpoison",
    }
}

worded! {
    /// The fault or signal of an effect.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Fault, word {
        /// No page fault.
        None = "none",
        /// A page fault without I/O.
        Minor = "minor",
        /// A page fault with I/O.
        Major = "major",
        /// A page fault that a userfaultfd handler resolves, at any time.
        Userfault = "userfault",
        /// The signal SIGSEGV.
        Segv = "SIGSEGV",
        /// The signal SIGBUS.
        Bus = "SIGBUS",
        /// The signal SIGKILL, to this process or to another in its cgroup.
        Kill = "SIGKILL",
    }
}

impl Effect {
    /// Returns the fault of the effect; the likeliest one if several are possible.
    pub const fn fault(self) -> Fault {
        match self {
            Effect::Nothing => Fault::None,
            Effect::Zeros
            | Effect::HugeZeros
            | Effect::Copy
            | Effect::Reuse
            | Effect::MapCached
            | Effect::Map
            | Effect::Unprotect
            | Effect::Wait
            | Effect::WaitForMemory
            | Effect::FromDevice
            | Effect::StackGrows => Fault::Minor,
            Effect::ReadFile | Effect::SwapIn => Fault::Major,
            Effect::Notify => Fault::Userfault,
            Effect::OutOfMemory => Fault::Kill,
            Effect::NoRegion | Effect::Protection | Effect::ProtectionKey | Effect::Guard => Fault::Segv,
            Effect::PastEnd
            | Effect::NoKernelPage
            | Effect::NoDriverPage
            | Effect::DriverRefuses
            | Effect::NoSpace
            | Effect::PoolEmpty
            | Effect::PoolLimit
            | Effect::Poisoned
            | Effect::Hwpoison => Fault::Bus,
        }
    }
}

impl Effect {
    /// Returns whether the access fails with a signal.
    pub const fn is_refusal(self) -> bool {
        matches!(self.fault(), Fault::Segv | Fault::Bus | Fault::Kill)
    }
}

impl AccessOutcome {
    /// Returns an outcome with one of `effects`, of which only [`Effect::Copy`] makes a copy.
    pub fn of(effects: &[Effect]) -> Self {
        let copy = |effect: &Effect| *effect == Effect::Copy;
        AccessOutcome {
            effects: effects.to_vec(),
            copies: match (effects.iter().any(copy), effects.iter().all(copy)) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            },
        }
    }

    /// Returns the fault; `None` if it is unknown.
    pub fn fault(&self) -> Option<Fault> {
        // If the page is still in the swap cache, no I/O is needed.
        if self.effects.contains(&Effect::SwapIn) {
            return None;
        }
        let mut faults = self.effects.iter().map(|effect| effect.fault());
        let first = faults.next()?;
        faults.all(|fault| fault == first).then_some(first)
    }
}

worded! {
    /// The class that a mapping of a page is counted in. Every mapping that Rss counts is in one of them.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum AccountClass, word {
        /// Anonymous memory that is mapped only here.
        Anonymous = "anonymous",
        /// The part of it in glibc's heaps in which a chunk is in use, if heaps were looked at.
        HeapInUse = "heap_in_use",
        /// The part of it in glibc's heaps in which no chunk is in use, if heaps were looked at.
        HeapFree = "heap_free",
        /// The part of it that may belong to a heap that was not walked to its end, if heaps were looked at.
        HeapUnclear = "heap_unclear",
        /// Private copies of file pages, mapped only here.
        PrivateCopies = "private_copies",
        /// Anonymous memory and private copies that are shared with other processes since a fork.
        Forked = "forked",
        /// Pages merged with equal pages (KSM).
        Merged = "merged",
        /// Anonymous memory and private copies; what shares them is unknown.
        PrivateUnclear = "private_unclear",
        /// Shared memory that is mapped only by this process.
        ShmemHere = "shmem_here",
        /// Shared memory that other processes map too.
        ShmemOthers = "shmem_others",
        /// Shared memory; whether other processes map it is unknown.
        ShmemUnclear = "shmem_unclear",
        /// Pages of files that are mapped only by this process.
        FileHere = "file_here",
        /// Pages of files that other processes map too.
        FileOthers = "file_others",
        /// Pages of files; whether other processes map them is unknown.
        FileUnclear = "file_unclear",
        /// Pages that the kernel provides, such as the vdso.
        Kernel = "kernel",
        /// Memory of the kernel that drivers lend to the process.
        Driver = "driver",
        /// Secret memory (memfd_secret).
        Secret = "secret",
        /// Entries without memory here: the page is moving to another frame, on a device, or failed.
        Elsewhere = "elsewhere",
        /// Pages of an unknown kind.
        Unclear = "unclear",
    }
}

worded! {
    /// Of what `map by KEY` shows how full cells are.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum MapKey, word {
        /// In memory.
        Resident = "resident",
        /// Mapped elsewhere too, by this process or another one.
        Sharing = "sharing",
        /// Freed with MADV_FREE. The mark stays if the page is written again.
        LazyFree = "lazy_free",
    }
}

worded! {
    /// A property of pages in a class.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum AccountMark, word {
        /// Mapped as huge pages, by one PMD each.
        Huge = "huge",
        /// Copied by the next write of this process.
        ToCopy = "to_copy",
        /// Freed with MADV_FREE. The mark stays if the page is written again.
        LazilyFreed = "lazily_freed",
        /// Locked into memory by this process. A fork does not inherit locks, though the frames stay locked.
        Locked = "locked",
        /// Pages of files with changes that are not on disk yet: the kernel cannot drop them.
        Dirty = "dirty",
        /// Mapped several times in this process.
        Several = "several",
        /// Mapped by no other process but pmdb itself.
        WithPmdb = "with_pmdb",
        /// All-zero pieces of huge pages.
        Zeros = "zeros",
        /// Droppable memory (MAP_DROPPABLE), which the kernel may discard at any time, written or not.
        Droppable = "droppable",
    }
}

worded! {
    /// Memory of the process that Rss does not count.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum BesideRss, word {
        /// Pages of the hugetlb pool.
        Hugetlb = "hugetlb",
        /// Pages in swap.
        Swapped = "swapped",
        /// Mappings of the zero page, which take no memory.
        ZeroPages = "zero_pages",
        /// Memory of devices and of the kernel, mapped by drivers.
        Drivers = "drivers",
        /// Data that the kernel maps into every process (`[vvar]`).
        KernelData = "kernel_data",
        /// Guard pages, which take no memory.
        Guards = "guards",
    }
}

worded! {
    /// The class that a frame of the machine is counted in, by its flags.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum FrameClass, word {
        /// Anonymous memory and private copies of file pages.
        Anonymous = "anonymous",
        /// Pages merged with equal pages (KSM).
        Merged = "merged",
        /// Memfds, tmpfs, System V segments, shared anonymous memory.
        SharedMemory = "shared_memory",
        /// Pages of files and of block devices.
        PageCache = "page_cache",
        /// Pages of the hugetlb pools, free ones too.
        Hugetlb = "hugetlb",
        /// Memory that drivers map into processes.
        Driver = "driver",
        /// Small objects of the kernel.
        Slab = "slab",
        /// Page tables.
        PageTables = "page_tables",
        /// The zero page, and the huge one.
        Zero = "zero",
        /// Free blocks.
        Free = "free",
        /// Memory that was taken away: balloons, offline blocks.
        Offline = "offline",
        /// Memory with hardware errors.
        Poisoned = "poisoned",
        /// What the kernel reserved when it started.
        Reserved = "reserved",
        /// No flag marks them: other memory of the kernel.
        NoMark = "no_mark",
    }
}

worded! {
    /// What memory is that is charged to a cgroup.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum ChargeClass, word {
        /// Mapped by processes of the group.
        Mapped = "mapped",
        /// Mapped, but by no process of the group.
        MappedOutside = "mapped_outside",
        /// Memfds, tmpfs, System V segments, shared anonymous memory that no process maps.
        SharedMemory = "shared_memory",
        /// Pages of files that no process maps.
        PageCache = "page_cache",
        /// Anonymous memory that no process maps: the rest of large folios, and the swap cache.
        Anonymous = "anonymous",
        /// Pages of the hugetlb pools.
        Hugetlb = "hugetlb",
        /// Memory of the kernel: stacks, page tables, slabs.
        Kernel = "kernel",
        /// Buffers of sockets.
        Sockets = "sockets",
        /// Not mapped by the group, and perhaps by others: map counts are averages over large folios.
        Unclear = "unclear",
    }
}

worded! {
    /// An object in memory that may have more pages than any mapping shows.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum ObjectKind, word {
        /// Of memfd_create(2).
        Memfd = "memfd",
        /// A file of tmpfs.
        Tmpfs = "tmpfs",
        /// Memory that was mapped shared and anonymous.
        SharedAnonymous = "shared_anonymous",
        /// A System V segment.
        SystemV = "system_v",
        /// A file of a hugetlb pool, or a memfd of one.
        Hugetlb = "hugetlb",
        /// Of memfd_secret(2).
        Secret = "secret",
        /// A buffer that drivers share.
        DmaBuffer = "dma_buffer",
        /// Memory of a virtual machine (guest_memfd).
        GuestMemory = "guest_memory",
        /// A deleted file on a disk: what of it is in the page cache.
        DeletedFile = "deleted_file",
        /// An io_uring that nobody maps.
        IoUring = "io_uring",
        /// Buffers of a client of a driver of a graphics card or an accelerator (drm), in memory or on the device.
        Graphics = "graphics",
    }
}

worded! {
    /// The class that a frame is counted in which some of several processes map.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum FamilyClass, word {
        /// Private memory that one of the processes maps.
        PrivateOne = "private_one",
        /// Private memory that several of them map, since a fork.
        PrivateSeveral = "private_several",
        /// Pages of glibc's heaps that hold a chunk in use in one of them (only where heaps are asked for).
        HeapInUse = "heap_in_use",
        /// Pages of glibc's heaps without a chunk in use (only where heaps are asked for).
        HeapFree = "heap_free",
        /// Private memory that may belong to a heap that was not walked to its end (only where heaps are asked for).
        HeapUnclear = "heap_unclear",
        /// Pages merged with equal pages (KSM).
        Merged = "merged",
        /// Shared memory that one of them maps.
        ShmemOne = "shmem_one",
        /// Shared memory that several of them map.
        ShmemSeveral = "shmem_several",
        /// Pages of files that one of them maps.
        FileOne = "file_one",
        /// Pages of files that several of them map.
        FileSeveral = "file_several",
        /// Pages that the kernel provides, such as the vdso.
        Kernel = "kernel",
        /// Memory of the kernel that drivers lend to processes.
        Driver = "driver",
        /// Secret memory (memfd_secret).
        Secret = "secret",
        /// Entries without memory here: the page is moving to another frame, on a device, or failed.
        Elsewhere = "elsewhere",
        /// Pages of an unknown kind.
        Unclear = "unclear",
    }
}

worded! {
    /// What happened to a page, a region or the target.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
    #[non_exhaustive]
    pub enum EventKind, words {
        /// A page became present.
        Came = "came",
        /// A page is no longer present.
        Went = "went",
        /// A page has another frame: it was moved, or freed and written again.
        Moved = "moved",
        /// The frame of a page is on another NUMA node: it was moved there, for example to slower memory and back.
        ChangedNode = "changed node",
        /// A page was swapped out.
        SwappedOut = "swapped out",
        /// A page was swapped in.
        SwappedIn = "swapped in",
        /// A private copy replaced a shared page or a page of a file.
        CopiedOnWrite = "copied on write",
        /// A page was merged with equal pages (KSM), or others were merged into it.
        Merged = "merged",
        /// A merged page got a frame of its own again: it was written, or merging was ended there.
        Unmerged = "unmerged",
        /// A huge page is now mapped by small entries.
        Split = "split",
        /// Small pages are now mapped as one huge page.
        Collapsed = "collapsed",
        /// The contents of a page changed (only in `diff`, with `content`).
        Written = "written",
        /// A guard page was installed.
        GuardInstalled = "guard installed",
        /// A guard page was removed.
        GuardRemoved = "guard removed",
        /// The flags of a frame changed.
        FlagsChanged = "flags changed",
        /// The map count of a frame changed.
        MapCountChanged = "map count changed",
        /// A page was written: its soft-dirty bit was set.
        SoftDirty = "soft-dirty",
        /// A region appeared.
        RegionAppeared = "region appeared",
        /// A region grew.
        RegionGrew = "region grew",
        /// A region shrank.
        RegionShrank = "region shrank",
        /// A region was removed.
        RegionWent = "region went",
        /// The permissions of a region changed.
        RegionChanged = "region changed",
        /// The process executed another program.
        Executed = "executed",
        /// The process exited.
        Exited = "exited",
    }
}

impl EventKind {
    /// Returns whether neighbouring pages of such events share a row, whatever their frames: they came, went, were
    /// swapped, merged or copied, or became guard pages.
    pub const fn has_scattered_frames(self) -> bool {
        matches!(
            self,
            EventKind::Came
                | EventKind::Went
                | EventKind::SwappedOut
                | EventKind::SwappedIn
                | EventKind::CopiedOnWrite
                | EventKind::Merged
                | EventKind::Unmerged
                | EventKind::GuardInstalled
                | EventKind::GuardRemoved
        )
    }

    /// Returns whether neighbouring pages share a row whatever their frames were before. Those that became a huge page
    /// had frames anywhere.
    pub const fn had_scattered_frames(self) -> bool {
        matches!(self, EventKind::Collapsed) || self.has_scattered_frames()
    }

    /// Returns whether the event is of pages, and not of a region or the process.
    pub const fn is_of_pages(self) -> bool {
        !self.is_of_regions() && !matches!(self, EventKind::Executed | EventKind::Exited)
    }

    /// Returns whether the event is of a region.
    pub const fn is_of_regions(self) -> bool {
        matches!(
            self,
            EventKind::RegionAppeared
                | EventKind::RegionGrew
                | EventKind::RegionShrank
                | EventKind::RegionWent
                | EventKind::RegionChanged
        )
    }
}
