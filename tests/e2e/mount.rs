//! A small disk of a test's own: an ext4 file system in a file. It can be filled, and its power can
//! be cut.
//!
//! Mounting needs root and loop devices. Where they are missing the tests that ask for a disk say
//! so on standard error and show what can be shown with fail points alone; with
//! `ONCUE_NEED_MOUNT=1`, as in CI, they fail instead.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `EXT4_IOC_SHUTDOWN`: from now on nothing reaches the disk.
const SHUTDOWN: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<u32>(b'X', 125);

/// Its argument: not even what the journal of the file system has gathered.
const WITHOUT_FLUSHING: u32 = 2;

/// A mounted disk.
pub struct Disk {
    directory: tempfile::TempDir,
}

impl Disk {
    /// Makes and mounts one. `None`, loudly: this machine lets us mount nothing.
    pub fn mount(mebibytes: u64) -> Option<Self> {
        let disk = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        std::fs::create_dir(disk.path()).expect("the mount point");
        let image = std::fs::File::create(disk.image()).expect("the image");
        image.set_len(mebibytes << 20).expect("the image's length");
        let made = run(Command::new("mkfs.ext4")
            .args(["-q", "-m", "0"])
            .arg(disk.image()));
        match made.and_then(|()| disk.attach()) {
            Ok(()) => Some(disk),
            Err(why) => {
                let sentence = format!("no disk of its own for this test: {why}");
                assert!(std::env::var_os("ONCUE_NEED_MOUNT").is_none(), "{sentence}");
                eprintln!("\nWARNING: {sentence}; only fail points are tried\n");
                None
            }
        }
    }

    fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("disk")
    }

    fn attach(&self) -> Result<(), String> {
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(self.image())
            .arg(self.path()))
    }

    fn detach(&self) -> Result<(), String> {
        run(Command::new("umount").arg(self.path()))
    }

    /// All that was written until now is on the disk.
    pub fn sync(&self) {
        run(Command::new("sync").arg("-f").arg(self.path())).expect("sync");
    }

    /// The power goes: what was not synced is gone, and every write and sync from now on fails.
    ///
    /// Freeze the host first: a sync that is under way during the cut may return as if it were
    /// done, though it is not (seen with Linux 6.18). After a real cut nobody hears of it.
    ///
    /// What had been handed to the loop device stays, flushed or not: a drive that loses its own
    /// cache is not simulated.
    pub fn cut_power(&self) {
        let root = std::fs::File::open(self.path()).expect("the root of the disk");
        #[expect(unsafe_code, reason = "an ioctl; rustix has none that is safe for it")]
        // SAFETY: the call reads one u32, which the setter passes by its address.
        let cut = unsafe {
            let argument = rustix::ioctl::Setter::<SHUTDOWN, u32>::new(WITHOUT_FLUSHING);
            rustix::ioctl::ioctl(&root, argument)
        };
        cut.expect("the file system is shut down");
    }

    /// The power is back. Nobody may have a file open.
    pub fn restore_power(&self) {
        self.detach().expect("unmounted");
        self.attach().expect("mounted again");
    }

    /// From now on it can only be read; false when it is in use by a writer.
    pub fn make_read_only(&self) {
        let options = ["-o", "remount,ro"];
        run(Command::new("mount").args(options).arg(self.path())).expect("read-only");
    }

    /// It can be written again.
    pub fn make_writable(&self) {
        let options = ["-o", "remount,rw"];
        run(Command::new("mount").args(options).arg(self.path())).expect("writable");
    }

    /// Bytes free.
    pub fn free(&self) -> u64 {
        let found = rustix::fs::statvfs(self.path()).expect("statvfs");
        found.f_bavail.saturating_mul(found.f_frsize)
    }

    /// A file that leaves only so many bytes free.
    pub fn fill_but(&self, left: u64) -> PathBuf {
        let path = self.path().join("filler");
        let file = std::fs::File::create(&path).expect("the filler");
        let length = self.free().saturating_sub(left);
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&file, flags, 0, length).expect("the disk is filled");
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that is just ending may still have it.
        let _ = run(Command::new("umount").arg("-l").arg(self.path()));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

/// All files under a directory with their bytes.
pub fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("a file");
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}
