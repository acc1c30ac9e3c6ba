//! Traces: a span for each run and each try at a step, sent to a collector as OTLP over HTTP.
//!
//! Spans are made from what is recorded, so secrets are in none of them, and neither is
//! anything that a step was given or gave. Whoever records never waits: what does not fit
//! into the queue is counted and gone.

mod otlp;
mod span;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cairn_core::event::EventData;
use cairn_engine::flow::{Automations, Observer, Told};
use reqwest::Url;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::phase::Phases;
use otlp::Collector;
use span::{Span, Tracer};

/// How many commits may wait to be made into spans.
const QUEUE_MAX: usize = 8_192;
/// How many spans are sent together.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(500);
/// How long the last spans may take when the server stops.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Where traces go.
#[derive(Clone)]
pub struct Telemetry {
    endpoint: Url,
    /// They may hold keys, so nobody can print them.
    headers: Vec<(String, String)>,
    service: String,
}

impl Telemetry {
    /// Traces for the collector at an address, whose path for traces is `v1/traces` below it.
    /// None when it is no address of the web.
    #[must_use]
    pub fn at(base: &str) -> Option<Self> {
        let base = base.trim_end_matches('/');
        Self::exactly(&format!("{base}/v1/traces"))
    }

    /// Traces for the collector that takes them at this very address.
    #[must_use]
    pub fn exactly(endpoint: &str) -> Option<Self> {
        let endpoint = Url::parse(endpoint).ok()?;
        let good = matches!(endpoint.scheme(), "http" | "https") && endpoint.has_host();
        good.then(|| Self { endpoint, headers: Vec::new(), service: "cairn".to_owned() })
    }

    /// With a header that every request has.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With what this service is called.
    #[must_use]
    pub fn named(self, service: impl Into<String>) -> Self {
        Self { service: service.into(), ..self }
    }
}

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    pub(crate) sent: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// Takes in what is recorded.
struct Queue {
    commits: mpsc::Sender<Told>,
    fates: Arc<Fates>,
}

impl Observer for Queue {
    fn told(&self, told: &Told) {
        if self.commits.try_send(told.clone()).is_err() {
            let spans = told.events.iter().filter(|event| ends_a_span(&event.data)).count();
            self.fates.dropped.fetch_add(spans as u64, Ordering::Relaxed);
        }
    }
}

const fn ends_a_span(data: &EventData) -> bool {
    matches!(
        data,
        EventData::StepCompleted(_)
            | EventData::StepFailed(_)
            | EventData::StepInterrupted(_)
            | EventData::RunCompleted(_)
            | EventData::RunFailed(_)
            | EventData::RunCancelled(_)
    )
}

/// Sends spans until the server closes.
pub(crate) async fn keep(
    telemetry: Telemetry,
    engine: Automations,
    fates: Arc<Fates>,
    phase: Phases,
) {
    let Some(collector) = Collector::new(telemetry) else { return };
    let (commits, mut inbox) = mpsc::channel(QUEUE_MAX);
    engine.observe(Arc::new(Queue { commits, fates: Arc::clone(&fates) }));
    let mut tracer = Tracer::new(engine);
    let mut batch = Batch { collector, fates, spans: Vec::new(), due: Instant::now() };
    loop {
        tokio::select! {
            told = inbox.recv() => {
                let Some(told) = told else { return };
                batch.add(tracer.take(&told).await);
            }
            () = sleep_until(batch.due), if !batch.spans.is_empty() => batch.due = Instant::now(),
            () = phase.closing() => break,
        }
        if batch.is_due() {
            tokio::select! {
                () = batch.send() => {}
                () = phase.closing() => break,
            }
        }
    }
    while let Ok(told) = inbox.try_recv() {
        batch.add(tracer.take(&told).await);
    }
    let _ = timeout(LAST_WAIT, batch.send()).await;
}

/// Spans that are sent together.
struct Batch {
    collector: Collector,
    fates: Arc<Fates>,
    spans: Vec<Span>,
    due: Instant,
}

impl Batch {
    fn add(&mut self, spans: Vec<Span>) {
        if self.spans.is_empty() {
            self.due = Instant::now() + BATCH_WAIT;
        }
        self.spans.extend(spans);
    }

    fn is_due(&self) -> bool {
        !self.spans.is_empty() && (self.spans.len() >= BATCH_MAX || Instant::now() >= self.due)
    }

    /// Sends what there is. Spans that nobody takes are dropped, so that later ones have a
    /// place.
    async fn send(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let taken = self.collector.send(&self.spans).await;
        let fate = if taken { &self.fates.sent } else { &self.fates.dropped };
        fate.fetch_add(self.spans.len() as u64, Ordering::Relaxed);
        self.spans.clear();
    }
}
