//! An open file of a simulated process.

use std::io;
use std::path::PathBuf;

use cairn_store::files::fs::{File, Stat};

use crate::disk::Share;
use crate::effect::Change;
use crate::fault::{Call, Fault};
use crate::fs::{self, SimFs};
use crate::image::Inode;

/// An open file.
pub(crate) struct SimFile {
    pub(crate) fs: SimFs,
    pub(crate) path: PathBuf,
    pub(crate) inode: Inode,
    pub(crate) handle: u64,
    pub(crate) writable: bool,
}

impl SimFile {
    fn writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.fs.disk().lock().unlock(self.inode, self.handle);
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.fs.call(Call::ReadAt, &self.path, |state| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = state.live.bytes(self.inode)?.get(start..).unwrap_or_default();
            let mut filled = 0;
            for (to, from) in buffer.iter_mut().zip(rest) {
                *to = *from;
                filled += 1;
            }
            Ok(filled)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.writable()?;
        let fault = self.fs.enter(Call::Write, &self.path)?;
        let bytes = match fault {
            Some(Fault::Short(len)) => bytes.get(..len).unwrap_or(bytes),
            Some(fault) => return Err(fault.error()),
            None => bytes,
        };
        let change = Change::Write { file: self.inode, offset, bytes: bytes.into() };
        self.fs.disk().lock().change(&self.path, change);
        Ok(bytes.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.writable()?;
        self.fs.call(Call::SetLen, &self.path, |state| {
            state.change(&self.path, Change::SetLen { file: self.inode, len });
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let fault = self.fs.enter(Call::Sync, &self.path)?;
        let mut state = self.fs.disk().lock();
        match fault {
            None => state.sync(self.inode),
            Some(Fault::LostPages) => {
                state.lose(self.inode);
                return Err(Fault::LostPages.error());
            }
            Some(fault) => return Err(fault.error()),
        }
        Ok(())
    }

    fn stat(&self) -> io::Result<Stat> {
        self.fs.call(Call::Look, &self.path, |state| fs::stat(&state.live, self.inode))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.fs.call(Call::Lock, &self.path, |state| {
            Ok(state.try_lock(self.inode, self.handle, Share::Alone))
        })
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.fs.call(Call::Lock, &self.path, |state| {
            Ok(state.try_lock(self.inode, self.handle, Share::Shared))
        })
    }

    fn unlock(&self) -> io::Result<()> {
        self.fs.call(Call::Unlock, &self.path, |state| {
            state.unlock(self.inode, self.handle);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cairn_store::files::fs::{File, Fs, Open};

    use crate::disk::Disk;
    use crate::fault::{Call, Fault};
    use crate::fs::SimFs;

    fn process() -> SimFs {
        Disk::default().process()
    }

    fn create(fs: &SimFs, path: &str) -> Box<dyn File> {
        fs.open(Path::new(path), Open::Create).unwrap()
    }

    fn survives(fs: &SimFs, path: &str) -> Option<Vec<u8>> {
        Disk::on(fs.disk().durable()).process().read(Path::new(path)).ok()
    }

    #[test]
    fn a_file_survives_when_it_and_its_name_are_synced() {
        let fs = process();
        let file = create(&fs, "/a");
        file.write_all_at(b"one", 0).unwrap();
        file.sync().unwrap();
        assert_eq!(survives(&fs, "/a"), None);
        fs.sync_dir(Path::new("/")).unwrap();
        assert_eq!(survives(&fs, "/a"), Some(b"one".to_vec()));
        file.write_all_at(b"two", 3).unwrap();
        assert_eq!(fs.read(Path::new("/a")).unwrap(), b"onetwo");
        assert_eq!(survives(&fs, "/a"), Some(b"one".to_vec()));
    }

    #[test]
    fn a_directory_survives_when_its_parent_is_synced() {
        let fs = process();
        fs.create_dir(Path::new("/d")).unwrap();
        create(&fs, "/d/a");
        fs.sync_dir(Path::new("/d")).unwrap();
        assert_eq!(survives(&fs, "/d/a"), None);
        fs.sync_dir(Path::new("/")).unwrap();
        assert_eq!(survives(&fs, "/d/a"), Some(Vec::new()));
        fs.remove_dir_all(Path::new("/d")).unwrap();
        assert!(fs.stat(Path::new("/d")).is_err());
        assert_eq!(survives(&fs, "/d/a"), Some(Vec::new()));
    }

    #[test]
    fn a_rename_replaces_only_when_it_may() {
        let fs = process();
        create(&fs, "/a").write_all_at(b"a", 0).unwrap();
        create(&fs, "/b").write_all_at(b"b", 0).unwrap();
        assert!(fs.rename_new(Path::new("/a"), Path::new("/b")).is_err());
        fs.rename(Path::new("/a"), Path::new("/b")).unwrap();
        assert_eq!(fs.read(Path::new("/b")).unwrap(), b"a");
        assert_eq!(fs.read_dir(Path::new("/")).unwrap(), ["b"]);
    }

    #[test]
    fn an_open_file_outlives_its_name() {
        let fs = process();
        let file = create(&fs, "/a");
        fs.remove_file(Path::new("/a")).unwrap();
        file.write_all_at(b"still", 0).unwrap();
        assert_eq!(file.read_to_end_at(1).unwrap(), b"till");
        assert_ne!(create(&fs, "/a").stat().unwrap().inode, file.stat().unwrap().inode);
    }

    #[test]
    fn a_lock_belongs_to_one_open_file_and_goes_with_it() {
        let fs = process();
        let (first, second) = (create(&fs, "/lock"), create(&fs, "/lock"));
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        assert!(!second.try_lock_shared().unwrap());
        drop(first);
        assert!(second.try_lock_shared().unwrap());
        let third = create(&fs, "/lock");
        assert!(third.try_lock_shared().unwrap());
        assert!(!third.try_lock().unwrap());
        second.unlock().unwrap();
        assert!(third.try_lock().unwrap());
        assert!(!fs.disk().fork().process().lock_is_free("/lock"));
        assert!(fs.disk().killed().process().lock_is_free("/lock"));
    }

    impl SimFs {
        fn lock_is_free(&self, path: &str) -> bool {
            create(self, path).try_lock().unwrap()
        }
    }

    #[test]
    fn interruptions_and_short_writes_are_gone_through() {
        let fs = process();
        let file = create(&fs, "/a");
        fs.fault(2, Fault::Eintr);
        fs.fault(3, Fault::Short(2));
        file.write_all_at(b"whole", 0).unwrap();
        assert_eq!((fs.struck(), fs.count()), (2, 4));
        assert_eq!(fs.read(Path::new("/a")).unwrap(), b"whole");
    }

    #[test]
    fn lost_pages_can_be_read_until_the_power_goes() {
        let fs = process();
        let file = create(&fs, "/a");
        fs.sync_dir(Path::new("/")).unwrap();
        file.write_all_at(b"lost", 0).unwrap();
        fs.fault(fs.count() + 1, Fault::LostPages);
        assert!(file.sync().is_err());
        file.sync().unwrap();
        assert_eq!(fs.read(Path::new("/a")).unwrap(), b"lost");
        assert_eq!(survives(&fs, "/a"), Some(Vec::new()));
    }

    #[test]
    fn a_process_that_has_ended_changes_nothing() {
        let fs = process();
        fs.stop_after(1);
        let file = create(&fs, "/a");
        assert!(file.write_at(b"x", 0).is_err());
        assert!(fs.read(Path::new("/a")).is_err());
        assert_eq!(fs.ops().last().unwrap().call, Call::Open);
        assert_eq!(fs.disk().pending().len(), 1);
    }
}
