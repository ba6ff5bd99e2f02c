//! Rows that other programs print, and what is offered for them in a process that maps some memory.

use pmdb::command::LANGUAGE;
use pmdb::hint;
use pmdb::lang::Candidate;

/// The process maps user addresses of these forms, files of any name, and no number that is smaller.
fn means(candidate: &Candidate) -> Option<String> {
    let is_mapped = |address: u64| {
        [0x5500_0000_0000..0x5700_0000_0000, 0x7b00_0000_0000..0x8000_0000_0000, 0x40_1000..0x40_3000]
            .iter()
            .any(|range: &std::ops::Range<u64>| range.contains(&address))
    };
    match candidate {
        Candidate::Address(address) | Candidate::Range(address, _) if !is_mapped(*address) => None,
        Candidate::InFile { module: None, address } => {
            Some(Candidate::InFile { module: Some("app".to_owned()), address: *address }.to_string())
        }
        Candidate::Offset { offset, .. } => Some(format!("{:#x}", 0x7f00_0000_0000 + offset)),
        one => Some(one.to_string()),
    }
}

/// What is said about a line.
fn said(line: &str) -> String {
    match LANGUAGE.parse_line(line) {
        Ok(_) => "parses".to_owned(),
        Err(error) => error.pasted.map_or(error.hint.unwrap_or_default(), |pasted| hint::choose(&pasted, Some(&means))),
    }
}

/// What a row shows: in the hint for the row alone, and after `translate`.
#[test]
fn rows_of_other_programs_are_read_as_they_are_meant() {
    let mut wrong = Vec::new();
    for (row, shown) in [
        // perf, bpftrace, strace, ltrace
        ("            7f5c1a2b3c4d __GI___libc_write+0x4d (/usr/lib/libc.so.6)", "translate 0x7f5c1a2b3c4d"),
        ("                4c4d [unknown] (/opt/app/server)", "server!0x4c4d"),
        (" > /usr/lib/libc.so.6(write+0x17) [0x111367]", "translate 0x7f0000111367"),
        ("./server(handle+0x1d) [0x55d0c8a0b1d2]", "translate 0x55d0c8a0b1d2"),
        ("12:01:07 brk(0x55d0c8c4f000) = 0x55d0c8c4f000", "translate 0x55d0c8c4f000"),
        ("@[kfree+0x10, 0x7f5c1a2b3c4d]: 12", "translate 0x7f5c1a2b3c4d"),
        // The kernel's log and tracepoints
        ("mm_vmscan_write_folio: page=00000000a1b2c3d4 pfn=0x1f3a80 flags=RECLAIM_WB_ANON", "pfn:0x1f3a80"),
        ("page dumped: pfn 2047616 is bad", "pfn:2047616"),
        ("[ 88.1] BUG: Bad page state in process stress  pfn:1f3a8", "pfn:0x1f3a8"),
        ("Memory failure: 0x1f3a80: recovery action for huge page: Recovered", "pfn:0x1f3a80"),
        ("CR2: 00007f5c1a2b3c4d CR3: 0000000112233000 CR4: 0000000000350ef0", "phys:0x112233000"),
        ("100000000-47fffffff : System RAM", "phys:0x100000000"),
        ("arm-smmu: Unhandled context fault: iova=0xfff00000, fsynr=0x11", ""),
        ("nvme 0000:01:00.0: dma addr=0x1f3a80000", ""),
        ("Call Trace: entry_SYSCALL_64_after_hwframe+0x76/0x7e", ""),
        ("RDI: ffff9b2f41c80000 RSI: ffffffff82a0b1c0", ""),
        // crash, drgn
        (
            "      VMA           START       END     FLAGS FILE ffff9b2f41c80000 7f5c1a200000 7f5c1a400000 8000075",
            "0x7f5c1a200000",
        ),
        ("PHYSICAL: 1f3a80000", "phys:0x1f3a80000"),
        // valgrind, the sanitizers
        ("==99== Invalid write of size 8, Address 0x7f5c1a2b3c4d is 0 bytes after", "translate 0x7f5c1a2b3c4d"),
        ("    #2 0x4c4d in handle (/opt/app/server+0x4c4d)", "server!0x4c4d"),
        ("SUMMARY: ThreadSanitizer: data race (/opt/app/server+0x4c4d) in handle", "server!0x4c4d"),
        // gdb, lldb
        ("frame at 0x7ffd1c2b3c40: rip = 0x55d0c8a0b1d2 in main; saved", "translate 0x7ffd1c2b3c40"),
        ("    address = 0x00007f5c1a2b3c4d libc.so.6`read", "translate 0x7f5c1a2b3c4d"),
        ("[0x00007f5c1a200000-0x00007f5c1a400000) rw- ", "0x7f5c1a200000..0x7f5c1a400000"),
        // The JVM, Go, Python
        ("j  [libnet.so+0x1b2c3]  Java_read+0x2a", "libnet.so!0x1b2c3"),
        ("RAX=0x00007f5c1a2b3c4d points into unknown readable memory", "translate 0x7f5c1a2b3c4d"),
        ("Heap address: 0x00007f5c10000000, size: 3968 MB", "translate 0x7f5c10000000"),
        (
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x7f5c1a2b3c4d pc=0x401a2b]",
            "translate 0x7f5c1a2b3c4d",
        ),
        ("main.(*T).run(0x0, 0x10) /src/m.go:31 +0x2f", ""),
        ("SigBlk:\t0000000000010000", ""),
        // A sum of gdb's, and a range with a colon.
        ("head = 0x7f5c1a2b3c4d + 16", "translate 0x7f5c1a2b3c5d"),
        ("next = 0x55d0c8a0b1d2 - 0x10", "translate 0x55d0c8a0b1c2"),
        ("0x7f5c1a200000:0x7f5c1a400000", "translate 0x7f5c1a200000..0x7f5c1a400000"),
    ] {
        for line in [row.to_owned(), format!("translate {row}")] {
            let said = said(&line);
            let is_right = match shown {
                "" => !said.contains("0x") && !said.contains("fn:"),
                shown => said.contains(shown) || said == "parses",
            };
            if !is_right {
                wrong.push(format!("{line}: {said}"));
            }
        }
    }
    assert_eq!(wrong.join("\n"), "");
}

#[test]
fn without_a_process_only_what_needs_none_is_offered() {
    for (line, said) in [
        ("v 0x7f5c1a2b3c4d", "attach to a process: then its addresses in pasted text are known"),
        (
            "    (/opt/app/server+0x4c4d) pfn=77",
            "this is an address in a file: `translate server!0x4c4d`; this is the number of a page frame: `flags pfn:77`",
        ),
        ("paddr: 0x1f3a80000", "this is a physical address: `flags phys:0x1f3a80000`"),
    ] {
        let error = LANGUAGE.parse_line(line).expect_err(line);
        assert_eq!(error.pasted.map(|pasted| hint::choose(&pasted, None)).as_deref(), Some(said), "{line}");
    }
}

/// The value of a variable is no address: gdb has that of the variable. It has none for the name of a member alone.
#[test]
fn a_variable_without_an_address_has_one_in_gdb() {
    assert_eq!(said("explain count = 32767"), "this text has no address: gdb's `print &count` shows one");
    for line in ["explain   count = 0", "count = 32767", "explain count = 3, next = 0x0"] {
        assert_eq!(said(line), "this text has no address of the process", "{line}");
    }
}
