//! One access to memory, and its effect: page faults counted by the kernel, or a signal.

use std::sync::Mutex;

/// What the kernel counted around an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Felt {
    /// Page faults.
    Faults { minor: u32, major: u32 },
    /// A signal, and the end of the process.
    Signal(i32),
}

impl Felt {
    /// From the number that [`felt`] returns.
    pub fn from_answer(answer: i64) -> Felt {
        match answer {
            signal @ ..0 => Felt::Signal(-signal as i32),
            faults => Felt::Faults { minor: faults as u32, major: (faults >> 32) as u32 },
        }
    }
}

/// Reads or writes one byte. The result has the minor faults in its low half, and the major ones in its high half.
/// After a signal, the process announces its negative number and ends.
pub fn felt(address: usize, write: bool) -> i64 {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the handler calls nothing but system calls.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = say_and_end as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    // Once before, for the pages that the counting itself touches.
    let ready = 0u8;
    _ = count(&raw const ready as usize, false);
    count(address, write)
}

fn count(address: usize, write: bool) -> i64 {
    let before = faults();
    let byte = address as *mut u8;
    // SAFETY: the test says that this is to be accessed; what that may do is what it wants to know.
    unsafe { if write { byte.write_volatile(9) } else { _ = byte.read_volatile() } }
    let after = faults();
    ((after.0 - before.0) | (after.1 - before.1) << 32) as i64
}

fn faults() -> (u64, u64) {
    // SAFETY: plain numbers, and a structure for them.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        (usage.ru_minflt as u64, usage.ru_majflt as u64)
    }
}

extern "C" fn say_and_end(signal: libc::c_int) {
    let text: &[u8] = match signal {
        libc::SIGSEGV => b"-11\n",
        _ => b"-7\n",
    };
    // SAFETY: system calls that a handler may make.
    unsafe {
        libc::write(1, text.as_ptr().cast(), text.len());
        libc::_exit(0);
    }
}

/// To the child, and from it.
static CHILD: Mutex<Option<[i32; 2]>> = Mutex::new(None);

/// Starts a child that makes accesses when it is told to, and ends with this process. Returns its process id.
pub fn branch() -> i64 {
    let mut there = [0; 2];
    let mut back = [0; 2];
    // SAFETY: room for two numbers each.
    unsafe {
        assert_eq!(libc::pipe(there.as_mut_ptr()), 0);
        assert_eq!(libc::pipe(back.as_mut_ptr()), 0);
    }
    // SAFETY: this program has one thread here; the child allocates nothing.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let mut asked = [0u64; 2];
        // SAFETY: two words of our own, and pipes; the test says what may be accessed.
        unsafe {
            while libc::read(there[0], asked.as_mut_ptr().cast(), 16) == 16 {
                let answer = felt(asked[0] as usize, asked[1] != 0);
                libc::write(back[1], (&raw const answer).cast(), 8);
            }
            libc::_exit(0);
        }
    }
    *CHILD.lock().expect("a lock") = Some([there[1], back[0]]);
    child.into()
}

/// Has the child make an access.
pub fn of_child(address: usize, write: bool) -> i64 {
    let [there, back] = CHILD.lock().expect("a lock").expect("a child");
    let asked = [address as u64, write.into()];
    let mut answer = 0i64;
    // SAFETY: two words out, one in.
    unsafe {
        assert_eq!(libc::write(there, asked.as_ptr().cast(), 16), 16);
        assert_eq!(libc::read(back, (&raw mut answer).cast(), 8), 8);
    }
    answer
}
