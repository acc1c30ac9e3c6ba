//! Hands jobs to worker processes, and replaces those that die.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cairn_core::expression::{Prepared, Scope};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::error::{Code, Error};
use crate::job::Job;
use crate::process::Process;

/// How a pool works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program, which is a worker when it is started under the name `cairn-worker`.
    pub program: PathBuf,
    /// How many processes there are at most.
    pub workers_max: usize,
    /// How many jobs may wait for one.
    pub waiting_max: usize,
    /// How long a job may take, from when a process has it.
    pub time_max: Duration,
    /// How long a process without a job stays.
    pub idle: Duration,
}

impl Settings {
    /// Settings for the running program.
    #[must_use]
    pub fn of_this_program() -> Self {
        // This path leads to the program even after its file was replaced.
        let own = PathBuf::from("/proc/self/exe");
        let program = if own.exists() { own } else { std::env::current_exe().unwrap_or(own) };
        Self {
            program,
            workers_max: 4,
            waiting_max: 1024,
            time_max: Duration::from_secs(5),
            idle: Duration::from_secs(30),
        }
    }
}

/// Worker processes, none of which is started before there is a job for it.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    permits: Semaphore,
    waiting: AtomicUsize,
    idle: Mutex<Vec<Process>>,
    /// Whether somebody looks after those that are idle.
    is_kept: AtomicBool,
    started: AtomicUsize,
    shares_network: AtomicBool,
}

impl Pool {
    /// A pool without processes.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let permits = Semaphore::new(settings.workers_max.max(1));
        let inner = Inner {
            settings,
            permits,
            waiting: AtomicUsize::new(0),
            idle: Mutex::new(Vec::new()),
            is_kept: AtomicBool::new(false),
            started: AtomicUsize::new(0),
            shares_network: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The value of a step's settings: made here if that is safe, else by a worker.
    pub async fn evaluate(
        &self,
        prepared: &Prepared,
        scope: &(dyn Scope + Sync),
    ) -> Result<Value, Error> {
        if !prepared.needs_worker() {
            return Ok(prepared.evaluate(scope)?);
        }
        let job = Job::Settings {
            source: prepared.source().clone(),
            is_expression: prepared.is_expression(),
            context: prepared.context(scope),
        };
        self.run(&job).await
    }

    /// The value that a job gives.
    pub async fn run(&self, job: &Job) -> Result<Value, Error> {
        let bytes = serde_json::to_vec(&job.to_json())
            .map_err(|error| Error::new(Code::Failed, error.to_string()))?;
        if bytes.len() > crate::frame::FRAME_MAX {
            let message = "what is evaluated and what it looks at have more than 16 MiB";
            return Err(Error::new(Code::Memory, message));
        }
        let _permit = self.permit().await?;
        let mut process = match self.inner.take() {
            Some(process) => process,
            None => self.start().await?,
        };
        match tokio::time::timeout(self.inner.settings.time_max, process.ask(&bytes)).await {
            Ok(answer) => {
                self.give_back(process);
                answer
            }
            // Dropping the process kills it.
            Err(_) => {
                let seconds = self.inner.settings.time_max.as_secs_f32();
                Err(Error::new(Code::Timeout, format!("it takes more than {seconds} s")))
            }
        }
    }

    /// How many processes were started in all.
    #[must_use]
    pub fn started(&self) -> usize {
        self.inner.started.load(Ordering::Relaxed)
    }

    /// How many processes wait for a job.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.inner.lock().len()
    }

    /// Whether a process could not be cut off from the network, because the system does not
    /// allow it.
    #[must_use]
    pub fn shares_network(&self) -> bool {
        self.inner.shares_network.load(Ordering::Relaxed)
    }

    async fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        struct Waiting<'w>(&'w AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let before = self.inner.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.inner.waiting);
        if before >= self.inner.settings.waiting_max {
            let message = format!("{before} expressions wait for a worker already");
            return Err(Error::new(Code::Busy, message));
        }
        let gone = |_| Error::new(Code::Crash, "the workers are gone");
        self.inner.permits.acquire().await.map_err(gone)
    }

    async fn start(&self) -> Result<Process, Error> {
        let settings = &self.inner.settings;
        let start = Process::start(&settings.program);
        let process = tokio::time::timeout(settings.time_max, start)
            .await
            .map_err(|_| Error::new(Code::Crash, "a worker was started and does not answer"))??;
        self.inner.started.fetch_add(1, Ordering::Relaxed);
        self.inner.shares_network.fetch_or(!process.is_apart, Ordering::Relaxed);
        Ok(process)
    }

    fn give_back(&self, mut process: Process) {
        if !process.is_alive() {
            return;
        }
        process.since = std::time::Instant::now();
        self.inner.lock().push(process);
        if !self.inner.is_kept.swap(true, Ordering::AcqRel) {
            tokio::spawn(keep(Arc::downgrade(&self.inner)));
        }
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Process> {
        let mut idle = self.lock();
        std::iter::from_fn(|| idle.pop())
            .find_map(|mut process| process.is_alive().then_some(process))
    }
}

/// Stops processes that have had nothing to do for a while.
async fn keep(pool: Weak<Inner>) {
    loop {
        let Some(pause) = pool.upgrade().map(|pool| pool.settings.idle) else { return };
        tokio::time::sleep(pause).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.lock();
        idle.retain(|process| process.since.elapsed() < pause);
        if idle.is_empty() {
            // The next process that comes back finds nobody, under the same lock.
            pool.is_kept.store(false, Ordering::Release);
            return;
        }
    }
}
