//! The fuzz targets and their seeds.

use crate::{Fuzzed, btf, capture, commands, core, elf, heaps, jit, names};
use pmdb::command::LANGUAGE;
use pmdb::kernel::status::ThreadState;
use pmdb::kernel::{PageFlags, PageMapEntry, maps, mounts, physical, smaps, status, swaps};
use std::time::Duration;

/// Numbers and parts of indexes of captures.
const INDEX_WORDS: &[&str] = &[
    "18446744073709551615",
    "4294967295",
    "-1",
    "0",
    "[",
    "]",
    "{",
    "}",
    "null",
    "\"failures\":{\"text stat\":{\"not-available\":\"\"}},",
    "[[0,1,65536]]",
    "\"runs\":{\"backing 08:01 4d 0-10000\":[[0,18446744073709551615,\"hole\"]]},",
    "[0,18446744073709551615,[512,9,8]],",
];
/// Parts of cores.
const CORE_WORDS: &[&str] = &["CORE\0\0\0\0", "PMDB\0\0\0\0", "\0\0\0\0", "\x7fELF", "-", " "];

pub const ALL: &[Fuzzed] = &[
    Fuzzed {
        name: "commands-on-captures",
        seeds: commands::capture_seeds,
        words: INDEX_WORDS,
        feed: commands::feed,
        longest: Duration::from_secs(1),
    },
    Fuzzed {
        name: "commands-on-cores",
        seeds: commands::core_seeds,
        words: CORE_WORDS,
        feed: commands::feed,
        longest: Duration::from_secs(1),
    },
    Fuzzed {
        name: "elf",
        seeds: elf::sound_seeds,
        words: &["\0\0\0\0", "\x7fELF", "ZLIB"],
        feed: elf::feed,
        longest: Duration::from_secs(1),
    },
    Fuzzed {
        name: "btf",
        seeds: btf::seeds,
        words: &["\0\0\0\0", "page\0", "flags\0", "\x02\0\0\x04"],
        feed: btf::feed,
        longest: Duration::from_millis(100),
    },
    Fuzzed {
        name: "perf-map",
        seeds: jit::seeds,
        words: &[" ", "\n", "0x", "7f0000000040 8 a\n", "ffffffffffffffff"],
        feed: jit::feed,
        longest: Duration::from_millis(100),
    },
    Fuzzed {
        name: "capture",
        seeds: capture::seeds,
        words: INDEX_WORDS,
        feed: capture::feed,
        longest: Duration::from_secs(1),
    },
    Fuzzed { name: "core", seeds: core::seeds, words: CORE_WORDS, feed: core::feed, longest: Duration::from_secs(1) },
    Fuzzed {
        name: "heap-memory",
        seeds: heaps::memory_seeds,
        words: &["\0\0\0\0\0\0\0\0", "\x11\0\0\0\0\0\0\0", "\x01\0\0\0\0\0\0\0", "\x21\0\0\0\0\0\0\0"],
        feed: heaps::feed_memory,
        longest: Duration::from_secs(1),
    },
    Fuzzed {
        name: "heap-words",
        seeds: heaps::word_seeds,
        words: &["\0\0\0\0\0\0\0\0", "\x01\0\0\0\0\0\0\0", "\x24\0\0\0\0\0\0\0"],
        feed: heaps::feed_words,
        longest: Duration::from_secs(1),
    },
    Fuzzed {
        name: "names",
        seeds: names::seeds,
        words: names::PIECES,
        feed: names::feed,
        longest: Duration::from_millis(50),
    },
    Fuzzed {
        name: "language",
        seeds: sentences,
        words: &[
            "(", ")", "'", "\"", "[", "]", "|", ">", "!", "#", "*", "..", ", +", ":", "::", "$1 = ", "0x", "4p",
            " where ", " by ", " not ", "--how ", "pfn:", "\u{301}", "\u{feff}", "é",
        ],
        feed: line,
        longest: Duration::from_millis(100),
    },
    Fuzzed {
        name: "kernel-text",
        seeds: kernel_texts,
        words: &[" ", "\n", ":", "-", "\t", " kB", "/SYSV", " (deleted)", "\\040", "18446744073709551616"],
        feed: kernel_text,
        longest: Duration::from_millis(100),
    },
    Fuzzed {
        name: "words",
        seeds: || vec![vec![0; 64], vec![0xff; 64], (0..=255).collect()],
        words: &[],
        feed: words,
        longest: Duration::from_millis(100),
    },
];

/// Sentences that the grammar accepts and rejects, with lines of gdb and the kernel.
fn sentences() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for folder in ["accept", "reject"] {
        let folder = format!("{}/grammar/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).expect("the grammar") {
            let path = entry.expect("a file").path();
            let text = std::fs::read_to_string(path).expect("text");
            let sentences = text.lines().filter(|line| !line.starts_with(' ') && !line.is_empty());
            all.extend(sentences.map(|line| line.as_bytes().to_vec()));
        }
    }
    all.sort();
    all
}

fn line(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match LANGUAGE.parse_line(&text) {
        Ok(tree) => {
            // The printed form means the same, and prints the same again.
            let line = tree.to_string();
            let again = LANGUAGE.parse_line(&line);
            let again = again.unwrap_or_else(|error| panic!("{text:?}: {}", error.draw(&line)));
            assert_eq!(again.to_string(), line, "{text:?}");
        }
        Err(error) => {
            assert!(!error.draw(&text).is_empty());
        }
    }
    let cursor = bytes.iter().fold(7usize, |sum, &byte| sum.wrapping_mul(31) + usize::from(byte));
    LANGUAGE.expectation(&text, cursor % (text.len() + 1));
    for class in LANGUAGE.classes(&text) {
        assert!(text.get(class.at.start..class.at.end).is_some(), "{text:?}: {class:?}");
    }
}

fn kernel_texts() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 10] = [
        b"55d0c0a00000-55d0c0a01000 r-xp 00001000 08:01 77  /usr/bin/server\n\
          7ffd1c000000-7ffd1c021000 rw-p 00000000 00:00 0 [stack]\n\
          7f0000000000-7f0000001000 rw-s 00000000 00:01 5 /SYSV00000000 (deleted)\n",
        b"55d0c0a00000-55d0c0a01000 r-xp 00001000 08:01 77  /usr/bin/server\nSize: 4 kB\nRss: 4 kB\n\
          VmFlags: rd ex mr mw me\n",
        b"Name:\tserver\nState:\tS (sleeping)\nTgid:\t8\nPid:\t8\nPPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n\
          VmPeak:\t    8 kB\nVmRSS:\t    4 kB\nThreads:\t1\n",
        b"8 (a) (b) S 1 8 8 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 12345 1000000 100 18446744073709551615 1 1 0 0 0\n",
        b"00000000-00000fff : Reserved\n00001000-0009ffff : System RAM\n  00002000-00002fff : Kernel code\n",
        b"Node 0, zone      DMA\n  pages free     3\n        min      1\n        spanned  4095\n        present  3998\n\
          \n  start_pfn:           1\nNode 0, zone   Normal\n  spanned  1000\n  start_pfn:           4096\n",
        b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0                              partition\t1048572\t0\t-2\n\
          /swap\\040file                            file\t1024\t0\t-3\n",
        b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
          30 22 0:25 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=1024k,huge=always\n",
        b"0 0x7 0x7ffd1c000000 0x400 0x0 0x0 0x0 0x7ffd1c0000a8 0x7f0000001234\n",
        b"Limit                     Soft Limit           Hard Limit           Units\n\
          Max stack size            8388608              unlimited            bytes\n",
    ];
    texts.iter().map(|text| text.to_vec()).collect()
}

fn kernel_text(bytes: &[u8]) {
    if let Ok(regions) = maps::parse(bytes) {
        for region in regions {
            _ = region.name.to_string();
            _ = region.names().count();
        }
    }
    for one in smaps::regions(bytes).map_while(Result::ok) {
        _ = one.field("Rss");
    }
    _ = status::Status::parse(bytes);
    _ = status::Stat::parse(bytes);
    for limit in status::ResourceLimit::ALL {
        _ = limit.find(bytes);
    }
    _ = physical::Resources::parse(bytes);
    if let Ok(zones) = physical::Zones::parse(bytes) {
        for zone in zones.iter() {
            _ = zone.end();
        }
    }
    _ = swaps::SwapAreas::parse(bytes);
    _ = (mounts::mounts(bytes).count(), mounts::leases(bytes).count());
    _ = ThreadState::parse(bytes);
}

/// Page-map entries and flags: any number is possible.
fn words(bytes: &[u8]) {
    for bytes in bytes.as_chunks::<8>().0 {
        let raw = u64::from_ne_bytes(*bytes);
        let entry = PageMapEntry::new(raw);
        _ = (entry.frame(), entry.swap(), entry.is_present(), entry.set_bits().count());
        let flags = PageFlags::from_bits_retain(raw);
        assert!(flags.names().len() <= 64);
        _ = (flags.each().count(), flags.is_in_large_folio());
    }
}
