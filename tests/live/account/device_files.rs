//! Memory that the files /dev/kvm and /dev/udmabuf give.

use super::command::{bytes, of_type, records};
use super::*;
use crate::Scenario;
use crate::puppet::{each_page, mapped};
use crate::target::{announce, wait};
use serde_json::Value;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

pub const SCENARIOS: &[Scenario] = &[("guest-memory", |_| guest_memory()), ("lent-memfd", |_| lent_memfd())];

const PAGES: usize = 24;
/// The pages of guest memory that are mapped and touched.
const TOUCHED: usize = 7;

/// `_IO(KVMIO, 1)` and `_IOWR(KVMIO, 0xd4, struct kvm_create_guest_memfd)` (include/uapi/linux/kvm.h)
const KVM_CREATE_VM: libc::c_ulong = 0xae01;
const KVM_CREATE_GUEST_MEMFD: libc::c_ulong = 0xc040_aed4;
/// `GUEST_MEMFD_FLAG_MMAP | GUEST_MEMFD_FLAG_INIT_SHARED` (since Linux 6.18)
const MAY_BE_MAPPED: u64 = 3;

/// `_IOW('u', 0x42, struct udmabuf_create)` (include/uapi/linux/udmabuf.h)
const UDMABUF_CREATE: libc::c_ulong = 0x4018_7542;

#[repr(C)]
struct CreateGuestMemfd {
    size: u64,
    flags: u64,
    reserved: [u64; 6],
}

#[repr(C)]
struct CreateBuffer {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// A guest_memfd, of which some pages are mapped and touched where the kernel lets a process do that. Announces its
/// descriptor and how many pages; nothing where the kernel gives none.
fn guest_memory() {
    let size = PAGES as u64 * page_bytes();
    let Ok(kvm) = File::options().read(true).write(true).open("/dev/kvm") else {
        return announce("");
    };
    // SAFETY: a new machine of the default type; the kernel reads 64 bytes of each structure.
    let (machine, made) = unsafe {
        let machine = libc::ioctl(kvm.as_raw_fd(), KVM_CREATE_VM as _, 0);
        let made = [MAY_BE_MAPPED, 0].map(|flags| {
            let create = CreateGuestMemfd { size, flags, reserved: [0; 6] };
            libc::ioctl(machine, KVM_CREATE_GUEST_MEMFD as _, &create)
        });
        (machine, made)
    };
    let [shared, private] = made;
    if machine < 0 || private < 0 {
        return announce("");
    }
    if shared < 0 {
        announce(format!("{private} 0"));
    } else {
        // SAFETY: new memory of that file.
        let start = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap64(std::ptr::null_mut(), size as usize, rights, libc::MAP_SHARED, shared, 0)
        };
        // SAFETY: memory of our own that nobody refers to.
        each_page(mapped(start) as usize, TOUCHED, |byte| unsafe { byte.write_volatile(2) });
        announce(format!("{shared} {TOUCHED}"));
    }
    wait();
}

/// A memfd that is filled and not mapped, and a buffer of udmabuf with the same pages; nothing where the kernel gives
/// no such buffer.
fn lent_memfd() {
    let size = PAGES * page_bytes() as usize;
    // SAFETY: a name that ends in zero.
    let number = unsafe { libc::memfd_create(c"pmdb-lent".as_ptr(), libc::MFD_ALLOW_SEALING) };
    assert!(number >= 0, "no memfd");
    // SAFETY: the number is ours.
    let memfd = File::from(unsafe { OwnedFd::from_raw_fd(number) });
    memfd.write_all_at(&vec![1; size], 0).expect("room in memory");
    // SAFETY: a seal on a file of our own.
    assert_eq!(unsafe { libc::fcntl(number, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }, 0);
    let Ok(device) = File::options().read(true).write(true).open("/dev/udmabuf") else {
        return announce("");
    };
    let create = CreateBuffer { memfd: number as u32, flags: 0, offset: 0, size: size as u64 };
    // SAFETY: the kernel reads 24 bytes.
    let buffer = unsafe { libc::ioctl(device.as_raw_fd(), UDMABUF_CREATE as _, &create) };
    if buffer < 0 {
        return announce("");
    }
    announce(format!("{number} {buffer}"));
    wait();
}

/// The row of what this descriptor leads to.
fn row_of(records: &[Value], descriptor: u64) -> &Value {
    let holds = |row: &&Value| {
        row["holders"].as_array().is_some_and(|all| all.iter().any(|one| one["descriptor"] == descriptor))
    };
    of_type(records, "account-object").into_iter().find(holds).expect("its row")
}

pub fn memory_of_a_virtual_machine() {
    let mut target = Target::start("guest-memory", &[]);
    let &[descriptor, touched] = &target.numbers()[..] else {
        return skip("account::memory_of_a_virtual_machine", "the kernel gives no guest_memfd");
    };
    let found = records(target.pid(), "account");
    let row = row_of(&found, descriptor);
    let page = page_bytes();
    assert_eq!((&row["kind"], &row["at_most"]), (&Value::from("guest_memory"), &Value::from(true)), "{row}");
    assert_eq!((bytes(row), &row["mapped"]), (PAGES as u64 * page, &Value::from(touched * page)), "{row}");
}

/// The pages of the buffer are those of the memfd: they are not certainly more.
pub fn a_buffer_made_of_a_memfd() {
    let mut target = Target::start("lent-memfd", &[]);
    let &[memfd, buffer] = &target.numbers()[..] else {
        return skip("account::a_buffer_made_of_a_memfd", "the kernel gives no udmabuf");
    };
    let found = records(target.pid(), "account");
    let all = PAGES as u64 * page_bytes();
    for (descriptor, kind, at_most) in [(memfd, "memfd", false), (buffer, "dma_buffer", true)] {
        let row = row_of(&found, descriptor);
        assert_eq!(
            (&row["kind"], bytes(row), &row["at_most"]),
            (&Value::from(kind), all, &Value::from(at_most)),
            "{row}"
        );
    }
    assert_eq!(of_type(&found, "account-summary")[0]["unmapped_bound"], "at most");
}
