//! The identity of the target: threads, zombies, exec, exit, names and rights.

use super::answers::program;
use super::support::{self, at, skip};
use super::target::{self, Target, announce, wait};
use super::{Scenario, Test};
use pmdb::kernel::PageMapEntry;
use pmdb::process::{self, ResolvedBy, resolve};
use pmdb::process::{Error, Liveness};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("identity::exec_is_noticed", exec_is_noticed),
    ("identity::exit_is_noticed", exit_is_noticed),
    ("identity::killed_while_being_read", killed_while_being_read),
    ("identity::a_zombie_is_told", a_zombie_is_told),
    ("identity::a_kernel_thread_is_told", a_kernel_thread_is_told),
    ("identity::the_main_thread_may_have_ended", the_main_thread_may_have_ended),
    ("identity::a_thread_that_has_ended_has_no_registers", a_thread_that_has_ended_has_no_registers),
    ("identity::a_thread_stands_for_its_process", a_thread_stands_for_its_process),
    ("identity::stacks_of_threads_are_what_maps_and_page_map_say", stacks_of_threads_are_what_maps_and_page_map_say),
    ("identity::no_such_process", no_such_process),
    ("identity::a_list_brings_nothing_in", a_list_brings_nothing_in),
    ("identity::names_are_found_and_never_guessed", names_are_found_and_never_guessed),
    ("identity::who_may_not_look_is_told_why", who_may_not_look_is_told_why),
    ("identity::rights_are_raised_for_the_opens_only", rights_are_raised_for_the_opens_only),
    ("identity::status_is_what_the_kernel_says", status_is_what_the_kernel_says),
];

pub const SCENARIOS: &[Scenario] = &[
    ("forgetful", forgetful),
    ("exec", |_| {
        announce("ready");
        wait();
        let error = target::command("idle", &[]).exec();
        panic!("{error}");
    }),
    ("zombie", zombie),
    ("headless", headless),
    ("thread", thread),
    ("called", called),
    ("nobody", nobody),
    ("permitted", permitted),
];

/// Leaves a child unwaited for, and announces it.
#[allow(clippy::zombie_processes)]
fn zombie(_: &[String]) {
    let child = Command::new(std::env::current_exe().expect("this program"))
        .arg("--help")
        .stdout(std::process::Stdio::null())
        .env_remove("PMDB_LIVE_SCENARIO")
        .spawn()
        .expect("a child");
    let pid = Pid::from_raw(child.id() as i32).expect("its number");
    // Waits for its end, and leaves it as it is.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("its end");
    announce(child.id());
    wait();
}

/// Its main thread ends, another goes on.
fn headless(_: &[String]) {
    std::thread::spawn(|| {
        let main = format!("/proc/self/task/{}/stat", std::process::id());
        while !std::fs::read_to_string(&main).is_ok_and(|stat| stat.contains(") Z ")) {
            std::thread::yield_now();
        }
        let word = std::hint::black_box(Box::new(0x5eed_u64));
        announce(format_args!("{:p}", &raw const *word));
        wait();
        std::process::exit(0);
    });
    // SAFETY: ends this thread alone; it holds no lock, and nobody joins it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

fn thread(_: &[String]) {
    std::thread::spawn(|| {
        announce(rustix::thread::gettid().as_raw_nonzero());
        wait();
        std::process::exit(0);
    });
    loop {
        std::thread::park();
    }
}

/// Gives a page of its arguments back to the kernel, and announces its address. The arguments are so long that nothing
/// else is in it.
fn forgetful(_: &[String]) {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("its stat");
    let (_, fields) = stat.rsplit_once(") ").expect("fields");
    let arguments = fields.split(' ').nth(48 - 3).expect("where they start");
    let arguments: u64 = arguments.parse().expect("a number");
    let page = arguments.next_multiple_of(support::page_bytes()) + support::page_bytes();
    let start = std::ptr::with_exposed_provenance_mut(page as usize);
    // SAFETY: text that nothing uses any more.
    unsafe { rustix::mm::madvise(start, support::page_bytes() as usize, rustix::mm::Advice::LinuxDontNeed) }
        .expect("to give it back");
    announce(page);
    wait();
}

/// The kernel reads command lines out of the processes themselves.
fn a_list_brings_nothing_in() {
    let long = "x".repeat(4 * support::page_bytes() as usize);
    let mut target = Target::start("forgetful", &[&long]);
    let page = target.numbers()[0];
    let machine = pmdb::process::machine();
    let list = machine.processes().expect("a list");
    let entry = list.iter().find(|entry| entry.pid == target.pid());
    assert_eq!(entry.expect("it is listed").command_line, None);
    resolve("a name that nothing has").expect_err("there is none");
    target.attach().process.status().expect("its status");
    assert!(support::is_hole(target.pid(), page));
    // The kernel may be moving that page, or have reclaimed it: reading this program's arguments faults it in again.
    let is_read = |_| {
        assert!(std::env::args_os().count() > 0);
        let list = machine.processes().expect("a list");
        let own = list.iter().find(|entry| entry.pid == std::process::id());
        own.expect("it is listed").command_line.is_some()
    };
    assert!((0..100).any(is_read));
}

/// Takes a name.
fn called(arguments: &[String]) {
    rustix::thread::set_name(&std::ffi::CString::new(&*arguments[0]).expect("a name")).expect("to be called so");
    announce("ready");
    wait();
}

/// Becomes nobody, tries to attach to the process that its argument names, and announces the result.
fn nobody(arguments: &[String]) {
    let pid: u32 = arguments[0].parse().expect("a number");
    become_nobody();
    announce(verdict(pid));
    let machine = pmdb::process::machine();
    let flags = machine.frame_flags(pmdb::kernel::FrameNumber::new(1), &mut [Default::default()]);
    announce(flags.err().map_or_else(|| "allowed".into(), |error| error.to_string()));
    wait();
}

/// Becomes nobody, with root's capabilities permitted, as after `setcap …=p`. Attaches, and announces whether it sees
/// frame numbers, which capabilities are effective afterwards, and whether it can open a file of root's.
fn permitted(arguments: &[String]) {
    let [pid, word] = arguments else { panic!("two numbers") };
    rustix::thread::set_keep_capabilities(true).expect("to keep its rights");
    become_nobody();
    let target = process::Target::attach(pid.parse().expect("a number")).expect("to attach");
    let entry = support::entries(&target.process, word.parse().expect("a number"), 1)[0];
    let mut bytes = [0; 8];
    target.process.memory(at(word.parse().expect("a number")), &mut bytes).expect("memory");
    target.machine.frame_flags(entry.frame().expect("a frame"), &mut [Default::default()]).expect("flags");
    let regions = target.process.regions().expect("regions");
    let file = regions.iter().find(|region| region.name.as_bytes().starts_with(b"/")).expect("a file");
    target.modules.open(file).unwrap_or_else(|error| panic!("{error}"));
    let held = rustix::thread::capabilities(None).expect("its rights").effective;
    let closed = std::fs::File::open("/proc/1/environ").is_err() && std::fs::File::open("/etc/shadow").is_err();
    announce(format_args!("{} {} {}", u64::from(!target.process.are_frames_hidden()), held.bits(), u64::from(closed)));
    wait();
}

fn become_nobody() {
    // SAFETY: this process has one thread, so that giving up its ids leaves none behind.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setresgid(65534, 65534, 65534), 0);
        assert_eq!(libc::setresuid(65534, 65534, 65534), 0);
    }
}

fn rights_are_raised_for_the_opens_only() {
    if !support::is_root() {
        return skip("identity::rights_are_raised_for_the_opens_only", "only root can give rights away");
    }
    let mut target = Target::start("headless", &[]);
    let word = target.numbers()[0].to_string();
    let mut observer = Target::start("permitted", &[&target.pid().to_string(), &word]);
    assert_eq!(observer.numbers(), [1, 0, 1]);
}

/// One line: the class of the error, its message, and its remedy.
fn verdict(pid: u32) -> String {
    match process::Target::attach(pid) {
        Ok(_) => "attached".into(),
        Err(Error::NotPermitted { what, remedy }) => format!("not permitted: {what}; {remedy}"),
        Err(error) => format!("{error:?}"),
    }
}

/// The liveness of the process once it is another than before.
fn next_liveness(process: &pmdb::process::Process) -> Liveness {
    loop {
        match process.liveness().expect("an answer") {
            Liveness::Alive => std::thread::yield_now(),
            liveness => return liveness,
        }
    }
}

fn exec_is_noticed() {
    let mut target = Target::start("exec", &[]);
    target.line();
    let attached = target.attach();
    let process = &attached.process;
    let before = process.identity();
    assert_eq!(process.liveness().expect("an answer"), Liveness::Alive);
    let heap = process.regions().expect("regions");
    target.send("go");
    assert_eq!(target.line(), "ready");
    for failure in [
        process.regions().map(drop),
        process.entries(0, &mut [PageMapEntry::default()]).map(drop),
        process.region_at(heap[0].range.start()).map(drop),
    ] {
        let error = failure.expect_err("the old program is gone");
        assert!(matches!(&error, Error::Gone { what, .. } if what.contains("executed another program")), "{error}");
    }
    assert_eq!(next_liveness(process), Liveness::Executed);
    assert_eq!(process.liveness().expect("an answer"), Liveness::Alive);
    assert_eq!((process.identity().pid, process.identity().start_time), (before.pid, before.start_time));
    assert!(!process.regions().expect("the regions of the new program").is_empty());
    assert_eq!(process.entries(0, &mut [PageMapEntry::default()]).expect("its page map"), 1);
}

fn exit_is_noticed() {
    let mut target = Target::start("idle", &[]);
    target.line();
    let attached = target.attach();
    let process = &attached.process;
    target.end();
    assert!(matches!(process.liveness().expect("an answer"), Liveness::Exited(_)));
    for failure in [
        process.regions().map(drop),
        process.entries(0, &mut [PageMapEntry::default()]).map(drop),
        process.region_at(at(0x1000)).map(drop),
        process.memory(at(0x1000), &mut [0]).map(drop),
        process.status().map(drop),
        process::Target::attach(target.pid()).map(drop),
    ] {
        let error = failure.expect_err("it is gone");
        assert!(matches!(error, Error::Gone { .. }), "{error:?}");
    }
    assert!(process.regions().expect_err("gone").to_string().contains("has exited"));
}

/// The target is killed at any moment of a long visit: the result is that error, or complete, and nothing else.
fn killed_while_being_read() {
    for round in 0..20 {
        let mut target = Target::start("idle", &[]);
        target.line();
        let attached = target.attach();
        let process = &attached.process;
        process.set_scan(round % 2 == 0);
        let everything = pmdb::kernel::AddressRange::new(at(0), at(u64::MAX)).expect("a range");
        for (number, stretch) in (1..).zip(process.populated(everything, process.categories())) {
            if let Err(error) = stretch {
                assert!(matches!(&error, Error::Gone { what, .. } if what.contains("has exited")), "{error:?}");
            }
            if number == round {
                let pid = Pid::from_raw(target.pid() as i32).expect("its number");
                kill_process(pid, Signal::KILL).expect("to kill it");
                let end = next_liveness(process);
                assert!(matches!(end, Liveness::Exited(None | Some(9))), "{end:?}");
            }
        }
    }
}

fn a_zombie_is_told() {
    let mut target = Target::start("zombie", &[]);
    let zombie = target.numbers()[0] as u32;
    let error = process::Target::attach(zombie).map(drop).expect_err("a zombie has no memory");
    assert!(matches!(&error, Error::Gone { what, .. } if what.contains("is a zombie")), "{error:?}");
}

fn a_kernel_thread_is_told() {
    let list = pmdb::process::machine().processes().expect("a list");
    let Some(thread) = list.iter().find(|entry| entry.name.as_bytes() == b"kthreadd") else {
        return skip("identity::a_kernel_thread_is_told", "none can be seen here");
    };
    assert_eq!(thread.resident, None);
    assert_eq!(thread.command_line, Some(pmdb::kernel::Name::default()));
    let error = process::Target::attach(thread.pid).map(drop).expect_err("it has no memory");
    assert!(matches!(&error, Error::NotAvailable { what } if what.contains("is a kernel thread")), "{error:?}");
}

fn the_main_thread_may_have_ended() {
    let mut target = Target::start("headless", &[]);
    let word = target.numbers()[0];
    let attached = target.attach();
    let process = &attached.process;
    assert_eq!(process.liveness().expect("an answer"), Liveness::Alive);
    let region = process.region_at(at(word)).expect("an answer").expect("a region");
    assert!(process.regions().expect("regions").contains(&region));
    assert!(support::entries(process, word, 1)[0].is_present());
    let mut bytes = [0; 8];
    assert_eq!(process.memory(at(word), &mut bytes).expect("memory"), 8);
    assert_eq!(u64::from_ne_bytes(bytes), 0x5eed);
    let status = process.status().expect("its status");
    assert!(status.memory.iter().any(|(field, bytes)| field == "VmRSS" && *bytes > 0));
    let program = process.regions().expect("regions");
    let program = program.iter().find(|region| region.name.as_bytes().starts_with(b"/")).expect("a file");
    attached.modules.open(program).unwrap_or_else(|error| panic!("{}: {error}", program.name));
    target.end();
    assert!(matches!(process.liveness().expect("an answer"), Liveness::Exited(_)));
}

/// The kernel shows them as zeros, or the thread as running.
fn a_thread_that_has_ended_has_no_registers() {
    let mut target = Target::start("headless", &[]);
    target.numbers();
    let process = target.attach().process;
    let threads = process.threads().expect("its threads");
    let ended: Vec<u32> = threads.iter().filter(|thread| thread.has_ended()).map(|thread| thread.id).collect();
    assert_eq!(ended, [target.pid()], "{threads:?}");
    match process.stack_pointers() {
        Ok(stacks) => assert!(stacks.iter().all(|(thread, _)| thread.id != target.pid()), "{stacks:?}"),
        Err(error) => assert!(matches!(error, Error::NotPermitted { .. }), "{error:?}"),
    }
    let told = program(&[], target.pid(), true, &["info threads".to_owned()]);
    let rows = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    let of_main = rows.filter(|row| row["id"] == target.pid()).collect::<Vec<_>>();
    let [row] = &*of_main else { panic!("{told}") };
    assert!(row["sp"].is_null() && row["pc"].is_null(), "{told}");
}

fn a_thread_stands_for_its_process() {
    let mut target = Target::start("thread", &[]);
    let thread = target.numbers()[0] as u32;
    assert_ne!(thread, target.pid());
    let found = resolve(&thread.to_string()).expect("its process");
    assert_eq!((found.pid, found.by), (target.pid(), ResolvedBy::Thread(thread)));
    let found = resolve(&target.pid().to_string()).expect("itself");
    assert_eq!((found.pid, found.by), (target.pid(), ResolvedBy::Process));
    assert_eq!(process::Target::attach(thread).expect("its process").process.identity().pid, target.pid());
}

fn stacks_of_threads_are_what_maps_and_page_map_say() {
    const NAME: &str = "identity::stacks_of_threads_are_what_maps_and_page_map_say";
    let mut target = Target::start("thread", &[]);
    target.numbers();
    target.stop();
    let told = program(&[], target.pid(), true, &["info threads".to_owned()]);
    let rows: Vec<serde_json::Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let (rows, sums) = (&rows[..rows.len() - 1], &rows[rows.len() - 1]);
    assert_eq!((rows.len(), &sums["type"]), (2, &"threads-summary".into()), "{told}");
    if rows.iter().all(|row| row["sp"].is_null()) {
        return skip(NAME, "this kernel, or Yama, hides registers");
    }
    let mut expected = [0; 2];
    for row in rows {
        let pointer = row["sp"].as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
        let pointer = u64::from_str_radix(pointer, 16).expect("digits");
        let maps = support::plain_maps(target.pid());
        let &(start, end, _) = maps.iter().find(|(start, end, _)| (*start..*end).contains(&pointer)).expect("a region");
        let present =
            support::plain_entries(target.pid(), start, end).iter().filter(|(_, word)| word >> 63 == 1).count();
        let amounts = [end - start, present as u64 * support::page_bytes()];
        assert_eq!([&row["stack"], &row["resident"]], amounts.map(serde_json::Value::from).each_ref(), "{told}");
        expected = [expected[0] + amounts[0], expected[1] + amounts[1]];
    }
    let sum = ["stacks", "stack", "resident", "unknown"].map(|field| sums[field].as_u64().expect("a number"));
    assert_eq!(sum, [2, expected[0], expected[1], 0], "{told}");
}

fn no_such_process() {
    for number in ["4294967295", "99999999999999999999", "0"] {
        let error = resolve(number).expect_err("no such process");
        assert!(matches!(&error, Error::Gone { what, .. } if what.contains(number)), "{error:?}");
    }
    assert!(matches!(process::Target::attach(u32::MAX).map(drop), Err(Error::Gone { .. })));
    assert!(matches!(resolve(""), Err(Error::Gone { .. })));
    assert!(matches!(resolve("no such\x1b[31m name"), Err(Error::Gone { what, .. }) if !what.contains('\x1b')));
    let own = resolve("self").expect("this program");
    assert_eq!((own.pid, own.by), (std::process::id(), ResolvedBy::Itself));
}

fn names_are_found_and_never_guessed() {
    // No other process has this name: it contains the number of this one.
    let name = format!("pmdb{}", std::process::id());
    let mut first = Target::start("called", &[&name]);
    first.line();
    let found = resolve(&name).expect("the only one");
    assert_eq!((found.pid, found.by), (first.pid(), ResolvedBy::Name));
    let mut second = Target::start("called", &[&name]);
    second.line();
    match resolve(&name) {
        Err(Error::Ambiguous { candidates, .. }) => {
            let mut pids: Vec<u32> = candidates.iter().map(|entry| entry.pid).collect();
            pids.sort_unstable();
            let mut expected = [first.pid(), second.pid()];
            expected.sort_unstable();
            assert_eq!(pids, expected);
            assert!(candidates.iter().all(|entry| entry.name.as_bytes() == name.as_bytes()));
        }
        other => panic!("{other:?}"),
    }
    second.end();
    assert_eq!(resolve(&name).expect("the only one again").pid, first.pid());
}

fn who_may_not_look_is_told_why() {
    let name = "identity::who_may_not_look_is_told_why";
    if !support::is_root() {
        let said = verdict(1);
        if said == "attached" {
            return skip(name, "this user may look at process 1");
        }
        assert!(said.starts_with("not permitted: ") && said.contains("CAP_SYS_PTRACE"), "{said}");
        return skip(name, "only root can become nobody; asked as this user instead");
    }
    let mut target = Target::start("idle", &[]);
    target.line();
    let mut observer = Target::start("nobody", &[&target.pid().to_string()]);
    let said = observer.line();
    assert!(said.starts_with("not permitted: may not open /proc/"), "{said}");
    assert!(said.contains("it runs as user 0, pmdb as user 65534"), "{said}");
    assert!(said.contains("CAP_SYS_PTRACE"), "{said}");
    let said = observer.line();
    assert!(said.starts_with("cannot open /proc/kpageflags: permission denied"), "{said}");
    // A process that changed its ids is not dumpable, but root may still inspect it.
    process::Target::attach(observer.pid()).expect("root may");
    std::io::stdout().flush().expect("output");
}

fn status_is_what_the_kernel_says() {
    let mut target = Target::start("called", &["a) b (c"]);
    target.line();
    let attached = target.attach();
    let status = attached.process.status().expect("its status");
    assert_eq!(status.pid, target.pid());
    assert_eq!(status.parent, std::process::id());
    assert_eq!(status.name.as_bytes(), b"a) b (c");
    assert_eq!((status.threads, status.tracer), (1, 0));
    assert_eq!(status.user, rustix::process::getuid().as_raw());
    let program = std::env::current_exe().expect("this program");
    let program = std::os::unix::ffi::OsStrExt::as_bytes(program.as_os_str());
    assert_eq!(status.executable.expect("its program").as_bytes(), program);
    let line = status.command_line.expect("its arguments");
    assert_eq!(line.as_bytes(), [program, b" a) b (c"].concat());
    let resident = status.memory.iter().find(|(field, _)| field == "VmRSS").expect("VmRSS");
    assert!(resident.1 >= 4096);
    let listed = attached.machine.processes().expect("a list");
    let entry = listed.iter().find(|entry| entry.pid == target.pid()).expect("itself");
    assert_eq!((&entry.name, entry.command_line.as_ref()), (&status.name, Some(&line)));
    assert!(listed.windows(2).all(|pair| pair[0].pid < pair[1].pid));
}
