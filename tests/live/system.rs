//! System-wide settings that a test changes for a while: swap, huge pages in the pool, merging, a cgroup.
//!
//! A shell changes them, says so, and restores them when its input ends: when the test is done with them, and also when
//! the test is killed. One test at a time changes a setting, and none while another needs it as it is.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What locks swap for other runs of the tests.
pub const SWAP_LOCK: &str = "/proc/swaps";

/// What a test changes. Those that change it write, and those that depend on it read.
#[derive(Clone, Copy, Debug)]
enum Setting {
    Swap,
    Pool,
    Transparent,
    Merging,
    Yama,
    Groups,
}

impl Setting {
    const ALL: [Setting; 6] =
        [Setting::Swap, Setting::Pool, Setting::Transparent, Setting::Merging, Setting::Yama, Setting::Groups];

    /// A file that other runs of the tests lock too.
    fn path(self) -> &'static str {
        match self {
            Setting::Swap => SWAP_LOCK,
            Setting::Pool => "/proc/sys/vm/nr_hugepages",
            Setting::Transparent => "/sys/kernel/mm/transparent_hugepage",
            Setting::Merging => "/sys/kernel/mm/ksm",
            Setting::Yama => "/proc/sys/kernel/yama",
            Setting::Groups => "/sys/fs/cgroup",
        }
    }

    fn lock(self) -> &'static RwLock<()> {
        static LOCKS: [RwLock<()>; Setting::ALL.len()] = [const { RwLock::new(()) }; Setting::ALL.len()];
        &LOCKS[self as usize]
    }

    fn write(self) -> RwLockWriteGuard<'static, ()> {
        self.lock().write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(self) -> RwLockReadGuard<'static, ()> {
        self.lock().read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restores the settings when it is dropped.
pub struct Changed {
    guard: Option<Child>,
    _lock: RwLockWriteGuard<'static, ()>,
}

/// Settings that no other test changes until this is dropped.
pub struct Unchanged {
    _locks: Vec<RwLockReadGuard<'static, ()>>,
}

/// Only SIGKILL keeps it from restoring, and a lock keeps other runs of the tests out.
const BEFORE: &str = r#"
set -e
trap '' INT HUP TERM PIPE
refuse() { echo "$1"; exit; }
lock=$1
shift
test -r "$lock" || lock=/
exec 9<"$lock"
flock 9 2>/dev/null || true
"#;

const AFTER: &str = r#"
echo ready
cat >/dev/null
"#;

/// Turns on a zram device of its own.
const SWAP: &str = r#"
number=$(cat /sys/class/zram-control/hot_add 2>/dev/null || echo 0)
device=/dev/zram$number
setting=/sys/block/zram$number
test -e $setting || refuse "no zram"
test "$(cat $setting/disksize)" = 0 || refuse "zram$number is in use"
off() {
    swapoff $device 2>/dev/null || true
    echo 1 > $setting/reset 2>/dev/null || true
    test $number = 0 || echo $number > /sys/class/zram-control/hot_remove 2>/dev/null || true
}
trap off EXIT
test -b $device || refuse "no device node $device"
echo 64M > $setting/disksize
mkswap $device >/dev/null 2>&1 || refuse "mkswap fails"
swapon -p 32000 $device 2>/dev/null || refuse "swapon fails"
"#;

/// Turns on a swap file, in a folder of its own below the one in its argument.
const SWAP_FILE: &str = r#"
folder=$(mktemp -d "$1/swap-XXXXXX") || refuse "no folder may be made"
file=$folder/swap
off() {
    swapoff "$file" 2>/dev/null || true
    rm -f "$file"
    rmdir "$folder"
}
trap off EXIT
dd if=/dev/zero of="$file" bs=1M count=16 2>/dev/null || refuse "no room for a swap file"
chmod 600 "$file"
mkswap "$file" >/dev/null 2>&1 || refuse "mkswap fails"
swapon -p 32000 "$file" 2>/dev/null || refuse "swapon fails on this filesystem"
"#;

/// Adds huge pages to the pool of a setting.
const HUGE_PAGES: &str = r#"
setting=$1
test -w $setting || refuse "no huge page pool $setting"
before=$(cat $setting)
off() { echo $before > $setting; }
trap off EXIT
echo $((before + $2)) > $setting
test $(cat $setting) = $((before + $2)) || refuse "no memory for huge pages"
"#;

/// The same, and the pool mounted as a filesystem, at the folder that is named last.
const HUGE_FILES: &str = r#"
setting=$1
test -w $setting || refuse "no huge page pool $setting"
before=$(cat $setting)
mkdir "$3" || refuse "no folder may be made"
off() {
    umount "$3" 2>/dev/null || umount -l "$3" 2>/dev/null || true
    rmdir "$3"
    echo $before > $setting
}
trap 'off "$@"' EXIT
echo $((before + $2)) > $setting
test $(cat $setting) = $((before + $2)) || refuse "no memory for huge pages"
mount -t hugetlbfs none "$3" 2>/dev/null || refuse "hugetlbfs cannot be mounted"
"#;

/// Has memory that wants huge pages filled with those of one size alone, which is named to it in KiB.
const FOLIOS: &str = r#"
cd /sys/kernel/mm/transparent_hugepage 2>/dev/null || refuse "no transparent huge pages"
test -w hugepages-$1kB/enabled || refuse "no transparent huge pages of $1 KiB"
before=
for setting in hugepages-*kB/enabled; do
    test -w $setting || continue
    was=$(sed 's/.*\[\(.*\)\].*/\1/' $setting)
    before="$before $setting=$was"
done
off() { for one in $before; do echo ${one#*=} > ${one%=*}; done; }
trap off EXIT
for one in $before; do echo never > ${one%=*}; done
echo madvise > hugepages-$1kB/enabled
"#;

/// Changes settings of transparent huge pages, each `SETTING=VALUE`, and has khugepaged wait. Those that this kernel
/// lacks are left out.
const TRANSPARENT: &str = r#"
cd /sys/kernel/mm/transparent_hugepage 2>/dev/null || refuse "no transparent huge pages"
before=
off() { for one in $before; do echo ${one#*=} > ${one%%=*}; done; }
trap off EXIT
for one in khugepaged/scan_sleep_millisecs=3600000 "$@"; do
    setting=${one%%=*}
    test -w $setting || continue
    before="$before $setting=$(sed 's/.*\[\(.*\)\].*/\1/' $setting)"
    echo ${one#*=} > $setting
done
"#;

/// Has equal pages merged, soon.
const MERGING: &str = r#"
cd /sys/kernel/mm/ksm 2>/dev/null || refuse "no samepage merging"
test -w run || refuse "samepage merging may not be turned on"
test $(cat run) = 0 || refuse "samepage merging is on already"
pages=$(cat pages_to_scan) pause=$(cat sleep_millisecs)
off() { echo 2 > run; echo 0 > run; echo $pages > pages_to_scan; echo $pause > sleep_millisecs; }
trap off EXIT
echo 2000 > pages_to_scan
echo 1 > sleep_millisecs
echo 1 > run
"#;

/// Has Yama restrict who may trace a process, at the scope that is named to it.
const YAMA: &str = r#"
setting=/proc/sys/kernel/yama/ptrace_scope
test -w $setting || refuse "this kernel has no Yama"
before=$(cat $setting)
test $before -lt 3 || refuse "the scope of Yama can no longer be changed"
off() { echo $before > $setting; }
trap off EXIT
echo $1 > $setting
"#;

/// Makes the cgroup that is named to it; at the end, groups in it go too, and what still runs in it goes to its parent.
const CGROUP: &str = r#"
off() {
    tries=0
    while test -d "$1" && ! rmdir "$1" 2>/dev/null && test $tries -lt 100000; do
        tries=$((tries + 1))
        rmdir "$1"/*/ 2>/dev/null || true
        for process in $(cat "$1/cgroup.procs"); do
            echo $process > "${1%/*}/cgroup.procs"
        done 2>/dev/null || true
    done
}
mkdir "$1" 2>/dev/null || refuse "no cgroup may be made"
trap 'off "$1"' EXIT
"#;

/// Makes the cgroup that is named second, below the first. Its processes read so many bytes in a second from the device
/// that is named third. At the end it goes, as do the limit and what still runs in it.
const SLOW_READS: &str = r#"
test -w "$1/cgroup.subtree_control" || refuse "no cgroups of version 2"
case " $(cat "$1/cgroup.controllers") " in
*" io "*) ;;
*) refuse "cgroups here do not control reads" ;;
esac
case " $(cat "$1/cgroup.subtree_control") " in
*" io "*) had=yes ;;
*) had= ;;
esac
off() {
    echo "$3 rbps=max" > "$2/io.max" 2>/dev/null || true
    tries=0
    while test -d "$2" && ! rmdir "$2" 2>/dev/null && test $tries -lt 100000; do
        tries=$((tries + 1))
        for process in $(cat "$2/cgroup.procs"); do
            echo $process > "$1/cgroup.procs"
        done 2>/dev/null || true
    done
    test -n "$had" || echo -io > "$1/cgroup.subtree_control"
}
echo +io > "$1/cgroup.subtree_control" 2>/dev/null || refuse "cgroups here may not control reads"
mkdir "$2" 2>/dev/null || { test -n "$had" || echo -io > "$1/cgroup.subtree_control"; refuse "no cgroup may be made"; }
trap 'off "$@"' EXIT
echo "$3 rbps=$4" > "$2/io.max" 2>/dev/null || refuse "reads of this device cannot be limited"
"#;

/// Makes the cgroup that is named second, below the first, and limits its pages of the pool: the third is the file, the
/// fourth the bytes. At the end what still runs in it goes to the first.
const POOL_GROUP: &str = r#"
control=$1/cgroup.subtree_control
had=yes
if test -w "$control"; then
    case " $(cat "$1/cgroup.controllers") " in
    *" hugetlb "*) ;;
    *) refuse "cgroups here do not limit the pool" ;;
    esac
    case " $(cat "$control") " in
    *" hugetlb "*) ;;
    *) had= ;;
    esac
fi
off() {
    tries=0
    while test -d "$2" && ! rmdir "$2" 2>/dev/null && test $tries -lt 100000; do
        tries=$((tries + 1))
        for process in $(cat "$2/cgroup.procs"); do
            echo $process > "$1/cgroup.procs"
        done 2>/dev/null || true
    done
    test -n "$had" || echo -hugetlb > "$control"
}
test -n "$had" || echo +hugetlb > "$control" 2>/dev/null || refuse "cgroups here may not limit the pool"
mkdir "$2" 2>/dev/null || { test -n "$had" || echo -hugetlb > "$control"; refuse "no cgroup may be made"; }
trap 'off "$@"' EXIT
echo $4 > "$2/$3" 2>/dev/null || refuse "the pool cannot be limited"
"#;

/// A swap area, or the reason why there is none.
pub fn swap() -> Result<Changed, String> {
    let is_on = || {
        let areas = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        areas.lines().count() > 1
    };
    change(Setting::Swap, is_on, SWAP, &[])
}

/// A zram device, used before all other areas of swap.
pub fn swap_on_zram() -> Result<Changed, String> {
    change(Setting::Swap, || false, SWAP, &[])
}

/// A swap file on the disk that this program was built on, used before all else.
pub fn swap_file() -> Result<Changed, String> {
    change(Setting::Swap, || false, SWAP_FILE, &[swap_files_below().as_os_str()])
}

/// Where the folders of swap files are made.
pub fn swap_files_below() -> PathBuf {
    let mut path = std::env::current_exe().expect("this program");
    path.pop();
    path
}

/// Two free huge pages in the pool.
pub fn huge_pages() -> Result<Changed, String> {
    let setting = "/proc/sys/vm/nr_hugepages";
    change(Setting::Pool, || false, HUGE_PAGES, &[setting.as_ref(), "2".as_ref()])
}

/// Two free huge pages in the pool, and the pool mounted below this folder, which is made for it.
pub fn huge_files(folder: &Path) -> Result<Changed, String> {
    let setting = "/proc/sys/vm/nr_hugepages";
    let arguments = [setting.as_ref(), "2".as_ref(), folder.as_os_str()];
    change(Setting::Pool, || false, HUGE_FILES, &arguments)
}

/// A free page in the pool of that size.
pub fn pool_page(bytes: u64) -> Result<Changed, String> {
    let kib = bytes >> 10;
    let setting = format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages");
    change(Setting::Pool, || false, HUGE_PAGES, &[setting.as_ref(), "1".as_ref()])
}

/// Transparent huge pages of this many KiB, and no others.
pub fn folios(kib: u64) -> Result<Changed, String> {
    change(Setting::Transparent, || false, FOLIOS, &[OsStr::new(&kib.to_string())])
}

/// These settings of transparent huge pages, each `SETTING=VALUE`, and a khugepaged that does nothing.
pub fn transparent(settings: &[&str]) -> Result<Changed, String> {
    let settings: Vec<&OsStr> = settings.iter().map(OsStr::new).collect();
    change(Setting::Transparent, || false, TRANSPARENT, &settings)
}

/// Samepage merging.
pub fn merging() -> Result<Changed, String> {
    change(Setting::Merging, || false, MERGING, &[])
}

/// This scope of Yama. The last one, 3, would stay until the next start.
pub fn yama(scope: u32) -> Result<Changed, String> {
    assert!(scope < 3);
    change(Setting::Yama, || false, YAMA, &[scope.to_string().as_ref()])
}

/// A cgroup, at this path.
pub fn cgroup(path: &Path) -> Result<Changed, String> {
    change(Setting::Groups, || false, CGROUP, &[path.as_os_str()])
}

/// A cgroup of this name, whose processes read so many bytes in a second from the device; and where it is.
pub fn slow_reads(name: &str, device: &str, bytes: u64) -> Result<(PathBuf, Changed), String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    let root = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let root = root.and_then(|line| line.split(' ').nth(1)).ok_or("no cgroups of version 2")?;
    let path = Path::new(root).join(name);
    let rate = bytes.to_string();
    let arguments = [root.as_ref(), path.as_os_str(), device.as_ref(), rate.as_ref()];
    change(Setting::Groups, || false, SLOW_READS, &arguments).map(|changed| (path, changed))
}

/// A cgroup of this name, whose processes may use so many bytes of the pool with pages of `page` bytes; and where it
/// is.
pub fn pool_group(name: &str, page: u64, bytes: u64) -> Result<(PathBuf, Changed), String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    let find = |filesystem: &str, option: &str| {
        let mut rows = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let is_it = |row: &Vec<&str>| {
            row.get(2) == Some(&filesystem) && (option.is_empty() || row[3].split(',').any(|one| one == option))
        };
        rows.find(is_it).map(|row| row[1].to_owned())
    };
    let (root, file) = match find("cgroup", "hugetlb") {
        Some(root) => (root, "limit_in_bytes"),
        None => (find("cgroup2", "").ok_or("no cgroups limit the pool")?, "max"),
    };
    let path = Path::new(&root).join(name);
    let size = if page >= 1 << 30 { format!("{}GB", page >> 30) } else { format!("{}MB", page >> 20) };
    let (file, bytes) = (format!("hugetlb.{size}.{file}"), bytes.to_string());
    let arguments = [root.as_ref(), path.as_os_str(), file.as_ref(), bytes.as_ref()];
    change(Setting::Groups, || false, POOL_GROUP, &arguments).map(|changed| (path, changed))
}

/// The machine as it is: no other test changes it meanwhile.
pub fn as_it_is() -> Unchanged {
    Unchanged { _locks: Setting::ALL.map(Setting::read).into() }
}

fn change(setting: Setting, is_so: impl Fn() -> bool, script: &str, arguments: &[&OsStr]) -> Result<Changed, String> {
    let mut changed = Changed { guard: None, _lock: setting.write() };
    if is_so() {
        return Ok(changed);
    }
    if !rustix::process::geteuid().is_root() {
        return Err("only root may change the machine for it".into());
    }
    let script = [BEFORE, script, AFTER].concat();
    let guard = Command::new("sh")
        .args(["-c", &script, "sh", setting.path()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A process group of its own: killing the group of the tests must not kill the restoring shell.
        .process_group(0)
        .spawn();
    let guard = changed.guard.insert(guard.map_err(|error| error.to_string())?);
    let mut said = String::new();
    let output = guard.stdout.take().ok_or("a shell without output")?;
    let read = BufReader::new(output).read_line(&mut said);
    read.map_err(|error| error.to_string())?;
    match said.trim() {
        "ready" => Ok(changed),
        "" => Err("the machine could not be changed for it".into()),
        reason => Err(reason.to_owned()),
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Some(guard) = &mut self.guard {
            drop(guard.stdin.take());
            _ = guard.wait();
        }
    }
}
