//! The raw limit: what the disk does when nothing stands between it and the bytes.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Writes `bytes` at the end of a file and makes them durable, `count` times; gives the times.
pub(crate) fn one_writer(
    file: &File,
    offset: &mut u64,
    bytes: &[u8],
    count: usize,
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        file.write_all_at(bytes, *offset)?;
        file.sync_data()?;
        *offset += bytes.len() as u64;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Many writers of one file, whose bytes are written together and synced once.
pub(crate) fn group_commit(
    path: &Path,
    bytes: &[u8],
    writers: usize,
    each: usize,
) -> Result<Duration> {
    let group = Arc::new(Group {
        file: File::create(path)?,
        state: Mutex::default(),
        turn: Condvar::new(),
    });
    let start = Instant::now();
    let threads: Vec<_> = (0..writers)
        .map(|_| {
            let (group, bytes) = (group.clone(), bytes.to_vec());
            std::thread::spawn(move || (0..each).try_for_each(|_| group.append(&bytes)))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
    }
    Ok(start.elapsed())
}

struct Group {
    file: File,
    state: Mutex<State>,
    turn: Condvar,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    end: u64,
    /// The round that is being gathered, and the last one that is durable.
    round: u64,
    durable: u64,
    leading: bool,
}

impl Group {
    fn append(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.buffer.extend_from_slice(bytes);
        let mine = state.round;
        loop {
            if state.durable > mine {
                return Ok(());
            }
            if state.leading {
                state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.leading = true;
            let (batch, at) = (std::mem::take(&mut state.buffer), state.end);
            state.end += batch.len() as u64;
            state.round += 1;
            drop(state);
            self.file.write_all_at(&batch, at)?;
            self.file.sync_data()?;
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.leading = false;
            state.durable = mine + 1;
            self.turn.notify_all();
        }
    }
}

/// Many writers, each with a file of its own.
pub(crate) fn many_files(
    dir: &Path,
    bytes: &[u8],
    writers: usize,
    each: usize,
) -> Result<Duration> {
    let files: Vec<File> = (0..writers)
        .map(|number| File::create(dir.join(format!("raw-{number}"))))
        .collect::<std::io::Result<_>>()?;
    let start = Instant::now();
    let threads: Vec<_> = files
        .into_iter()
        .map(|file| {
            let bytes = bytes.to_vec();
            std::thread::spawn(move || one_writer(&file, &mut 0, &bytes, each).map(drop))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
    }
    Ok(start.elapsed())
}
