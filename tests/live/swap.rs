//! Somewhere to swap to, for as long as a test wants it.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Swap is on while this lives. What this turned on is turned off by a process that watches over it, so also when the test is killed.
pub struct Swap {
    guard: Option<std::process::Child>,
    _lock: MutexGuard<'static, ()>,
}

/// A shell that turns on a zram device of its own, says so, and turns it off when its input ends, in whatever way.
const GUARD: &str = r#"
set -e
number=$(cat /sys/class/zram-control/hot_add 2>/dev/null || echo 0)
device=/dev/zram$number
setting=/sys/block/zram$number
test -e $setting || { echo "no zram"; exit 0; }
test "$(cat $setting/disksize)" = 0 || { echo "zram$number is in use"; exit 0; }
off() {
    swapoff $device 2>/dev/null || true
    echo 1 > $setting/reset 2>/dev/null || true
    test $number = 0 || echo $number > /sys/class/zram-control/hot_remove 2>/dev/null || true
}
trap off EXIT
trap '' INT HUP TERM
test -b $device || { echo "no device node $device"; exit 0; }
echo 64M > $setting/disksize
mkswap $device >/dev/null 2>&1 || { echo "mkswap fails"; exit 0; }
swapon $device 2>/dev/null || { echo "swapon fails"; exit 0; }
echo on
cat >/dev/null
"#;

impl Swap {
    /// Turns swap on, unless some is on already. Fails with the reason why not.
    pub fn on() -> Result<Swap, String> {
        let lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let areas = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        if areas.lines().count() > 1 {
            return Ok(Swap {
                guard: None,
                _lock: lock,
            });
        }
        if !super::support::is_root() {
            return Err("no swap, and turning it on is for root".into());
        }
        use std::io::{BufRead, BufReader};
        use std::process::Stdio;
        let mut guard = Command::new("sh")
            .args(["-c", GUARD])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut said = String::new();
        let output = guard.stdout.take().ok_or("no output")?;
        BufReader::new(output)
            .read_line(&mut said)
            .map_err(|error| error.to_string())?;
        let mut swap = Swap {
            guard: Some(guard),
            _lock: lock,
        };
        match said.trim() {
            "on" => Ok(swap),
            reason => {
                swap.off();
                Err(format!("no swap: {reason}"))
            }
        }
    }

    fn off(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            _ = guard.wait();
        }
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        self.off();
    }
}
