//! The store beside the raw limit.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::EventIndex;
use cairn_store::{Config, Store, open};
use tokio::runtime::Runtime;

use crate::{Bound, Figure, median, plans, raw};

const WRITERS: usize = 64;
const ROUNDS: usize = 5;

/// Measures every figure whose group's name contains `wanted`.
pub(crate) fn figures(dir: &Path, wanted: &str) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let bench = Bench { dir, runtime };
    type Group<'a> = (&'static str, fn(&Bench<'a>) -> Result<Vec<Figure>>);
    let groups: [Group<'_>; 4] = [
        ("one-writer", Bench::one_writer),
        ("one-session", Bench::writers_of_one_session),
        ("many-sessions", Bench::writers_of_many_sessions),
        ("history", Bench::long_history),
    ];
    let mut figures = Vec::new();
    for (_, measure) in groups.iter().filter(|(name, _)| name.contains(wanted)) {
        figures.extend(measure(&bench)?);
    }
    Ok(figures)
}

struct Bench<'a> {
    dir: &'a Path,
    runtime: Runtime,
}

impl Bench<'_> {
    fn store(&self, name: &str) -> Result<Store> {
        Ok(open(&Config::files(self.dir.join(name)))?)
    }

    /// The bytes that one commit of one step writes.
    fn commit_bytes(&self) -> Result<Vec<u8>> {
        let store = self.store("sample")?;
        let session = plans::session(0);
        self.runtime.block_on(store.log.append(session, plans::create()))?;
        let journal = self.dir.join("sample").join("sessions").join(session.to_string());
        let journal = journal.join("journal.jsonl");
        self.runtime.block_on(store.log.append(session, plans::step(0)))?;
        let bytes = std::fs::read(&journal)?;
        let frames = cairn_core::journal::scan(&bytes).frames;
        let last = frames.last().and_then(|frame| bytes.get(frame.start..frame.end));
        Ok(last.context("the journal has no commit")?.to_vec())
    }

    fn one_writer(&self) -> Result<Vec<Figure>> {
        let bytes = self.commit_bytes()?;
        let store = self.store("one")?;
        let session = plans::session(1);
        self.runtime.block_on(store.log.append(session, plans::create()))?;
        let file = std::fs::File::create(self.dir.join("raw-one"))?;
        let (mut offset, mut number) = (0, 0);
        let (mut raw_times, mut store_times) = (Vec::new(), Vec::new());
        // In turns, so that both meet the same weather.
        for _ in 0..10 * ROUNDS {
            raw_times.extend(raw::one_writer(&file, &mut offset, &bytes, 40)?);
            store_times.extend(self.appends(&store, session, &mut number, 40)?);
        }
        let (raw, ours) = (median(raw_times), median(store_times));
        Ok(vec![Figure {
            name: "one writer / raw write and fdatasync",
            value: raw.as_secs_f64() / ours.as_secs_f64(),
            bound: Bound::AtLeast(0.8),
            detail: format!("{ours:?} beside {raw:?} a commit of {} bytes", bytes.len()),
        }])
    }

    fn appends(
        &self,
        store: &Store,
        session: cairn_core::id::SessionId,
        number: &mut u64,
        count: usize,
    ) -> Result<Vec<Duration>> {
        self.runtime.block_on(async {
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                let plan = plans::step(*number);
                *number += 1;
                let start = Instant::now();
                store.log.append(session, plan).await?;
                times.push(start.elapsed());
            }
            Ok(times)
        })
    }

    fn writers_of_one_session(&self) -> Result<Vec<Figure>> {
        let bytes = self.commit_bytes()?;
        let each = 200;
        let (mut raws, mut ours) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let path = self.dir.join(format!("raw-group-{round}"));
            raws.push(raw::group_commit(&path, &bytes, WRITERS, each)?);
            let store = self.store(&format!("group-{round}"))?;
            ours.push(self.concurrently(&store, each, |_| plans::session(1))?);
        }
        Ok(vec![ratio("64 writers, one session / raw group commit", raws, ours, each)])
    }

    fn writers_of_many_sessions(&self) -> Result<Vec<Figure>> {
        let bytes = self.commit_bytes()?;
        let each = 50;
        let (mut raws, mut ours) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            raws.push(raw::many_files(self.dir, &bytes, WRITERS, each)?);
            let store = self.store(&format!("many-{round}"))?;
            ours.push(self.concurrently(&store, each, plans::session)?);
        }
        Ok(vec![ratio("64 sessions / raw loop over 64 files", raws, ours, each)])
    }

    fn concurrently(
        &self,
        store: &Store,
        each: usize,
        session: impl Fn(u64) -> cairn_core::id::SessionId,
    ) -> Result<Duration> {
        let store = Arc::new(store.clone());
        self.runtime.block_on(async {
            for writer in 0..WRITERS as u64 {
                store.log.append(session(writer), plans::create()).await?;
            }
            let start = Instant::now();
            let writers: Vec<_> = (0..WRITERS as u64)
                .map(|writer| {
                    let (store, session) = (store.clone(), session(writer));
                    tokio::spawn(async move {
                        for number in 0..each as u64 {
                            let plan = plans::step(writer * 1_000_000 + number);
                            store.log.append(session, plan).await?;
                        }
                        Ok::<_, cairn_store::Error>(())
                    })
                })
                .collect();
            for writer in writers {
                writer.await??;
            }
            Ok(start.elapsed())
        })
    }

    /// A session of 100,000 events: what a commit costs early and late, and what opening costs.
    fn long_history(&self) -> Result<Vec<Figure>> {
        let store = self.store("long")?;
        let session = plans::session(1);
        let mut number = 0;
        self.runtime.block_on(store.log.append(session, plans::create()))?;
        self.fill(&store, session, &mut number, 100)?;
        let early = median(self.appends(&store, session, &mut number, 500)?);
        self.fill(&store, session, &mut number, 10_000)?;
        let mut figures = self.opening(session, "long", number)?;
        self.fill(&store, session, &mut number, 100_000)?;
        let late = median(self.appends(&store, session, &mut number, 500)?);
        figures.push(Figure {
            name: "commit at event 100,000 / at event 100",
            value: late.as_secs_f64() / early.as_secs_f64(),
            bound: Bound::AtMost(1.2),
            detail: format!("{late:?} beside {early:?}"),
        });
        Ok(figures)
    }

    fn fill(
        &self,
        store: &Store,
        session: cairn_core::id::SessionId,
        number: &mut u64,
        to: u64,
    ) -> Result<()> {
        while *number < to {
            let count = (to - *number).min(500);
            self.runtime.block_on(store.log.append(session, plans::steps(*number, count)))?;
            *number += count;
        }
        Ok(())
    }

    /// Opens the session as a fresh process would, sealed.
    fn opening(
        &self,
        session: cairn_core::id::SessionId,
        name: &str,
        events: u64,
    ) -> Result<Vec<Figure>> {
        let root = self.dir.join(name);
        self.runtime.block_on(self.store(name)?.log.seal(session))?;
        let segments = root.join("sessions").join(session.to_string()).join("events");
        let files: Vec<_> =
            std::fs::read_dir(&segments)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        let (mut raws, mut opens, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        let mut canonical = 0;
        for _ in 0..9 {
            let start = Instant::now();
            for file in &files {
                std::hint::black_box(Digest::of(&std::fs::read(file)?));
            }
            raws.push(start.elapsed());
            let store = self.store(name)?;
            let start = Instant::now();
            canonical = self.runtime.block_on(store.log.status(session))?.bytes;
            opens.push(start.elapsed());
            let start = Instant::now();
            let read: Vec<Event> = self.runtime.block_on(store.log.read(session, EventIndex(0)))?;
            reads.push(opens.last().copied().unwrap_or_default() + start.elapsed());
            anyhow::ensure!(read.len() as u64 == events + 1, "{} events", read.len());
        }
        let (raw, open, read) = (median(raws), median(opens), median(reads));
        let on_disk = disk_bytes(&root.join("sessions"))?;
        Ok(vec![
            Figure {
                name: "cold open, 10,000 events / read and hash",
                value: open.as_secs_f64() / raw.as_secs_f64(),
                bound: Bound::AtMost(10.0),
                detail: format!("{open:?} beside {raw:?}"),
            },
            Figure {
                name: "cold open and decode all / read and hash",
                value: read.as_secs_f64() / raw.as_secs_f64(),
                bound: Bound::AtMost(25.0),
                detail: format!("{read:?} beside {raw:?}; every event as a typed value"),
            },
            Figure {
                name: "sealed bytes on disk / canonical bytes",
                value: on_disk as f64 / canonical as f64,
                bound: Bound::AtMost(1.1),
                detail: format!("{on_disk} bytes for {} events", events + 1),
            },
        ])
    }
}

fn disk_bytes(dir: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        total += if entry.file_type()?.is_dir() {
            disk_bytes(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(total)
}

fn ratio(name: &'static str, raws: Vec<Duration>, ours: Vec<Duration>, each: usize) -> Figure {
    let (raw, ours) = (median(raws), median(ours));
    let rate = |time: Duration| (WRITERS * each) as f64 / time.as_secs_f64();
    Figure {
        name,
        value: raw.as_secs_f64() / ours.as_secs_f64(),
        bound: Bound::AtLeast(0.5),
        detail: format!("{:.0}/s beside {:.0}/s", rate(ours), rate(raw)),
    }
}
