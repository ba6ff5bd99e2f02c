//! The account of a stopped process equals what smaps and `smaps_rollup` say of it, to the page, and each class is made
//! for real.

use super::Test;
use super::puppet::Puppet;
use super::support::{self, page_bytes, skip};
use super::target::Target;
use pmdb::inspect::account::{Account, Accounting, checks};
use pmdb::inspect::{AddressSpace, Evidence};
use pmdb::report::AccountClass::{self, *};
use pmdb::report::AccountMark::{self, *};
use std::collections::BTreeMap;
use std::process::Command;

pub mod charges;
mod classes;
pub mod command;
pub mod deleted;
pub mod device_files;
mod family;
pub mod filesystems;
mod fork_cost;
pub mod objects;
pub mod reserved;
mod rests;
pub mod rings;
pub mod segments;
mod swap;

pub const TESTS: &[Test] = &[
    ("account::a_shell_adds_up", a_shell_adds_up),
    ("account::python3_adds_up", python3_adds_up),
    ("account::everything_adds_up", classes::everything_adds_up),
    ("account::anonymous_memory", classes::anonymous_memory),
    ("account::a_fork_on_both_sides", classes::a_fork_on_both_sides),
    ("account::a_huge_page_copied_in_part", classes::a_huge_page_copied_in_part),
    ("account::a_memfd_mapped_twice", classes::a_memfd_mapped_twice),
    ("account::shared_memory_of_two_processes", classes::shared_memory_of_two_processes),
    ("account::pages_of_files", classes::pages_of_files),
    ("account::merged_pages", classes::merged_pages),
    ("account::lazily_freed_memory", classes::lazily_freed_memory),
    ("account::locked_memory", classes::locked_memory),
    ("account::zeros_in_huge_pages", classes::zeros_in_huge_pages),
    ("account::the_pool_is_beside", classes::the_pool_is_beside),
    ("account::swap_is_beside", classes::swap_is_beside),
    ("account::swap_is_compressed", swap::is_compressed),
    ("account::guards_and_zeros_are_beside", classes::guards_and_zeros_are_beside),
    ("account::rows_add_up_to_rss", command::rows_add_up_to_rss),
    ("account::amounts_of_matching_pages", command::amounts_of_matching_pages),
    ("account::by_region_as_smaps", command::by_region_as_smaps),
    ("account::it_fits_a_screen", command::it_fits_a_screen),
    ("account::a_core_has_pages_that_may_be_zeros", command::a_core_has_pages_that_may_be_zeros),
    ("account::a_range_is_not_compared", command::a_range_is_not_compared),
    ("account::a_family_is_counted_once", family::is_counted_once),
    ("account::a_family_by_region", family::by_region),
    ("account::one_address_space_is_one_member", family::one_address_space_is_one_member),
    ("account::by_name_and_without_a_target", family::by_name_and_without_a_target),
    ("account::copies_are_seen_as_they_come", fork_cost::copies_are_seen_as_they_come),
    ("account::siblings_copy_only_where_they_share", fork_cost::siblings_copy_only_where_they_share),
    ("account::a_copy_counts_once_for_all_children", fork_cost::a_copy_counts_once_for_all_children),
    ("account::pages_in_one_slot_are_still_to_copy", fork_cost::pages_in_one_slot_are_still_to_copy),
    ("account::pages_of_zeros_are_not_shared", fork_cost::pages_of_zeros_are_not_shared),
    ("account::sums_over_time_are_of_the_last_sample", fork_cost::sums_over_time_are_of_the_last_sample),
    ("account::what_mappings_do_not_show", objects::what_mappings_do_not_show),
    ("account::what_mappings_do_not_show_of_the_pool", objects::what_mappings_do_not_show_of_the_pool),
    ("account::segments_of_two_namespaces_are_two_groups", objects::segments_of_two_namespaces_are_two_groups),
    ("account::a_segment_that_a_child_has_filled", objects::a_segment_that_a_child_has_filled),
    ("account::a_ring_that_is_not_mapped", rings::a_ring_that_is_not_mapped),
    ("account::memory_of_a_virtual_machine", device_files::memory_of_a_virtual_machine),
    ("account::a_buffer_made_of_a_memfd", device_files::a_buffer_made_of_a_memfd),
    ("account::a_segment_that_nobody_has_attached", objects::a_segment_that_nobody_has_attached),
    ("account::a_file_with_two_names_is_one_object", objects::a_file_with_two_names_is_one_object),
    ("account::frames_add_up_beside_the_counters", objects::frames_add_up_beside_the_counters),
    ("account::what_deleted_files_have_in_the_page_cache", deleted::what_deleted_files_have_in_the_page_cache),
    ("account::a_huge_page_given_back_in_part", rests::a_huge_page_given_back_in_part),
    ("account::a_cgroup_with_page_cache", family::a_cgroup_with_page_cache),
    ("account::charges_add_up_to_the_group", charges::charges_add_up_to_the_group),
    ("account::files_of_a_tmpfs_have_its_path", filesystems::files_of_a_tmpfs_have_its_path),
    ("account::pages_that_are_reserved_are_nobodys", reserved::pages_that_are_reserved_are_nobodys),
    ("account::segments_have_their_number_and_remedy", segments::segments_have_their_number_and_remedy),
    ("account::a_cgroup_that_is_charged_less", family::a_cgroup_that_is_charged_less),
];

/// The fields of a text of smaps by region, its first address, decoded without pmdb. `smaps_rollup` has one region.
pub fn plain_fields(text: &str) -> BTreeMap<u64, BTreeMap<String, u64>> {
    let mut regions: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
    let mut start = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        match name.strip_suffix(':') {
            Some(name) if line.ends_with("kB") => {
                let kib: u64 = value.parse().expect("a number");
                regions.entry(start).or_default().insert(name.to_owned(), kib << 10);
            }
            Some(_) => {}
            None => start = u64::from_str_radix(name.split('-').next().expect("a range"), 16).expect("an address"),
        }
    }
    regions
}

pub fn rollup(pid: u32) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its rollup");
    plain_fields(&text).into_values().next().expect("one region")
}

/// Accounts for ranges, or for everything.
pub fn account(target: &pmdb::Target, ranges: Option<(u64, u64)>, content: bool) -> (Account, Accounting) {
    let space = AddressSpace::of(target).expect("a space");
    let ranges = match ranges {
        Some((start, pages)) => vec![support::range(start, pages * page_bytes())],
        None => space.spans(),
    };
    let mut accounting = space.account(&ranges, Evidence::empty(), content);
    let (mut all, mut by_page) = (Account::default(), Account::default());
    let mut classes = BTreeMap::new();
    while let Some(step) = accounting.next().expect("an account") {
        for (page, counted) in step.counted {
            by_page.add(counted, page.bytes(support::page()));
            let key = page.address;
            assert!(classes.insert(key, page.pages).is_none(), "{key} comes twice");
        }
        if let Some((_, region)) = step.region {
            all.merge(region);
        }
    }
    assert_eq!(by_page.total(), all.total(), "what is settled adds nothing here");
    (all, accounting)
}

/// The pages of a range in each class that has any.
pub fn classes(target: &pmdb::Target, start: u64, pages: u64) -> Vec<(AccountClass, u64)> {
    let (account, _) = account(target, Some((start, pages)), false);
    let all = AccountClass::ALL.iter().map(|&class| (class, account.of(class) / page_bytes()));
    all.filter(|&(_, pages)| pages > 0).collect()
}

/// The pages of a range that have a mark, whatever their class.
pub fn marked(target: &pmdb::Target, start: u64, pages: u64, mark: AccountMark) -> Option<u64> {
    let (account, _) = account(target, Some((start, pages)), false);
    account.all_marked(mark).map(|bytes| bytes / page_bytes())
}

/// A stopped process adds up: everything that smaps has equals it, and for root nothing is unknown. Other processes map
/// and unmap the same files meanwhile, so this has to hold once.
pub fn adds_up(process: &Target) {
    const TRIES: u32 = 300;
    process.stop();
    let target = process.attach();
    let machine = &target.machine;
    let mut differing = Vec::new();
    for _ in 0..TRIES {
        differing.clear();
        let before = rollup(process.pid());
        let (all, accounting) = account(&target, None, false);
        let kernel = machine.rollup_of(process.pid()).expect("its rollup");
        let zeros = AddressSpace::of(&target).expect("a space").counts_zeros_as_merged();
        let checks = checks(&all, &kernel, zeros);
        let fields: Vec<&str> = checks.iter().map(|check| check.field).collect();
        assert_eq!(fields[0], "Rss");
        for check in &checks {
            // Decoded in a second way.
            let plain: u64 = match check.field {
                "Private" => before["Private_Clean"] + before["Private_Dirty"],
                "Shared" => before["Shared_Clean"] + before["Shared_Dirty"],
                "Huge" => before["AnonHugePages"] + before["ShmemPmdMapped"] + before["FilePmdMapped"],
                "Hugetlb" => before["Private_Hugetlb"] + before["Shared_Hugetlb"],
                field => before[field],
            };
            if check.counted != plain || check.kernel != plain {
                differing.push(format!("{check:?}, before {plain}"));
            }
        }
        if support::is_root() {
            assert!(fields.starts_with(&["Rss", "Anonymous", "Private", "Shared"]), "{fields:?}");
            assert_eq!(all.of_all(&[Unclear, PrivateUnclear, ShmemUnclear, FileUnclear]), 0, "{all:?}");
            let flagged = all.all_marked(LazilyFreed).unwrap_or(u64::MAX);
            assert!(before.get("LazyFree").is_none_or(|&bytes| bytes <= flagged), "{before:?}");
            let distinct = accounting.distinct(&all).expect("frames");
            assert!(distinct <= all.total() && distinct > 0);
        }
        if differing.is_empty() {
            return;
        }
    }
    panic!("{}", differing.join("\n"));
}

fn ready(command: &mut Command) -> Target {
    let mut target = Target::spawn(command);
    assert_eq!(target.line(), "ready");
    target
}

fn a_shell_adds_up() {
    let shell = ready(Command::new("sh").args(["-c", "echo ready; read line"]));
    adds_up(&shell);
}

fn python3_adds_up() {
    const NAME: &str = "account::python3_adds_up";
    if Command::new("python3").arg("--version").output().is_err() {
        return skip(NAME, "no python3");
    }
    let program = "import json, re, threading; print('ready', flush=True); input()";
    let python = ready(Command::new("python3").args(["-c", program]));
    adds_up(&python);
}
