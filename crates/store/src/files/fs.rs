//! The file operations that the store performs, each a point at which a crash or a fault
//! can strike. The real disk is below; the simulator has another.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::regular;

/// A file system.
pub trait Fs: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>>;
    /// Gives a file's whole content.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Renames a file or directory, replacing a file that is in the way.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a file or directory; fails with `AlreadyExists` when something is in the way.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all it holds.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory; fails with `AlreadyExists` when it is there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Lists the names in a directory, in order.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Says what a path is.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// Says how many bytes are free, and how many there are.
    fn space(&self, path: &Path) -> io::Result<Space>;
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Open {
    /// To read; it must be there.
    Read,
    /// To read and write; it must be there.
    Write,
    /// To read and write; it is made when it is not there.
    Create,
    /// To read and write; it must not be there.
    CreateNew,
}

/// What a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stat {
    pub inode: u64,
    pub len: u64,
    pub is_dir: bool,
    pub modified_ms: u64,
    pub changed_ns: u128,
}

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Space {
    pub free: u64,
    pub total: u64,
}

/// An open file. Dropping it closes it.
pub trait File: Send + Sync {
    /// Reads from a place; gives how much was read, 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes to a place; gives how much was written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts the file or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&self) -> io::Result<()>;
    /// Says what the open file is.
    fn stat(&self) -> io::Result<Stat>;
    /// Takes the file's lock if it is free, for this open file alone.
    fn try_lock(&self) -> io::Result<bool>;
    /// Takes a share of the file's lock if nobody has it alone.
    fn try_lock_shared(&self) -> io::Result<bool>;
    /// Gives the lock back. Dropping is not enough: a child process may hold the file open.
    fn unlock(&self) -> io::Result<()>;
}

impl dyn File + '_ {
    /// Writes all bytes at a place, through interruptions and short writes.
    pub fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    // A file that took more than it was given is none to trust.
                    bytes = bytes.get(written..).ok_or(io::ErrorKind::InvalidData)?;
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads everything from a place to the end.
    pub fn read_to_end_at(&self, offset: u64) -> io::Result<Vec<u8>> {
        self.read_range(offset, self.stat()?.len)
    }

    /// Reads from one place to another, or to the end when that comes first.
    pub fn read_range(&self, offset: u64, end: u64) -> io::Result<Vec<u8>> {
        // Where the end comes first there is nothing to read.
        let len = end.saturating_sub(offset);
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// The machine's own file system.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Fs for Disk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(0o600);
        match how {
            Open::Read => &mut options,
            Open::Write => options.write(true),
            Open::Create => options.write(true).create(true),
            Open::CreateNew => options.write(true).create_new(true),
        };
        Ok(Box::new(DiskFile(regular::open(path, &mut options)?)))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        regular::read(path, u64::MAX)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            // A name that is not text is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(stat_of(&fs::metadata(path)?))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        let unit = stat.f_frsize;
        Ok(Space { free: stat.f_bavail * unit, total: stat.f_blocks * unit })
    }
}

struct DiskFile(fs::File);

impl File for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn stat(&self) -> io::Result<Stat> {
        Ok(stat_of(&self.0.metadata()?))
    }

    fn try_lock(&self) -> io::Result<bool> {
        taken(self.0.try_lock())
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        taken(self.0.try_lock_shared())
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

fn taken(result: Result<(), fs::TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(fs::TryLockError::WouldBlock) => Ok(false),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

fn stat_of(metadata: &fs::Metadata) -> Stat {
    let modified_ms =
        metadata.mtime().unsigned_abs() * 1000 + metadata.mtime_nsec().unsigned_abs() / 1_000_000;
    let changed_ns = u128::from(metadata.ctime().unsigned_abs()) * 1_000_000_000
        + u128::from(metadata.ctime_nsec().unsigned_abs());
    let (inode, len, is_dir) = (metadata.ino(), metadata.len(), metadata.is_dir());
    Stat { inode, len, is_dir, modified_ms, changed_ns }
}
