//! Figures about runs, counted as they are recorded. Labels are fixed words, never something
//! that somebody sent.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_core::event::{Event, EventData};
use cairn_engine::flow::{Observer, Told};

use crate::telemetry::Fates;

/// The upper bounds of durations that are told apart, in milliseconds.
const BOUNDS_MS: [u64; 10] = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 30_000, 300_000];

/// How the tasks are that decide for runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lanes {
    /// How many fell.
    pub(crate) falls: u64,
    /// How many are not back yet.
    pub(crate) down: u64,
}

/// What was counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    runs_started: AtomicU64,
    runs_succeeded: AtomicU64,
    runs_failed: AtomicU64,
    runs_cancelled: AtomicU64,
    steps_completed: AtomicU64,
    steps_failed: AtomicU64,
    steps_skipped: AtomicU64,
    /// How many steps took no longer than each bound, and all of them.
    durations: [AtomicU64; BOUNDS_MS.len() + 1],
    duration_sum_ms: AtomicU64,
    /// What became of spans.
    pub(crate) spans: Arc<Fates>,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Metrics {
    pub(crate) fn count(&self, event: &Event) {
        match &event.data {
            EventData::RunQueued(_) => add(&self.runs_started, 1),
            EventData::RunCompleted(_) => add(&self.runs_succeeded, 1),
            EventData::RunFailed(_) => add(&self.runs_failed, 1),
            EventData::RunCancelled(_) => add(&self.runs_cancelled, 1),
            EventData::StepCompleted(step) => {
                add(&self.steps_completed, 1);
                self.took(step.duration_ms);
            }
            EventData::StepFailed(step) => {
                add(&self.steps_failed, 1);
                self.took(step.duration_ms);
            }
            EventData::StepSkipped(_) => add(&self.steps_skipped, 1),
            _ => {}
        }
    }

    fn took(&self, ms: u64) {
        add(&self.duration_sum_ms, ms);
        let bounds = BOUNDS_MS.iter().copied().chain([u64::MAX]);
        for (bucket, bound) in self.durations.iter().zip(bounds) {
            if ms <= bound {
                add(bucket, 1);
            }
        }
    }

    /// The figures as Prometheus reads them. `open` says how many runs stand where.
    pub(crate) fn text(&self, open: &[(&str, usize)], lanes: Lanes) -> String {
        let mut text = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        head(&mut text, "cairn_runs_started_total", "counter", "Runs that were asked for.");
        line(&mut text, "cairn_runs_started_total", "", get(&self.runs_started));
        head(&mut text, "cairn_runs_ended_total", "counter", "Runs that are over, by how.");
        for (status, counter) in [
            ("succeeded", &self.runs_succeeded),
            ("failed", &self.runs_failed),
            ("cancelled", &self.runs_cancelled),
        ] {
            let label = format!("{{status=\"{status}\"}}");
            line(&mut text, "cairn_runs_ended_total", &label, get(counter));
        }
        head(&mut text, "cairn_steps_total", "counter", "Tries of steps that are over, by how.");
        for (status, counter) in [
            ("succeeded", &self.steps_completed),
            ("failed", &self.steps_failed),
            ("skipped", &self.steps_skipped),
        ] {
            line(&mut text, "cairn_steps_total", &format!("{{status=\"{status}\"}}"), get(counter));
        }
        self.histogram(&mut text);
        head(
            &mut text,
            "cairn_spans_total",
            "counter",
            "Spans for the collector of traces, by what became of them.",
        );
        for (fate, counter) in [("sent", &self.spans.sent), ("dropped", &self.spans.dropped)] {
            line(&mut text, "cairn_spans_total", &format!("{{fate=\"{fate}\"}}"), get(counter));
        }
        head(&mut text, "cairn_runs_open", "gauge", "Runs that are not over, by where they stand.");
        for (status, count) in open {
            let count = u64::try_from(*count).unwrap_or(u64::MAX);
            line(&mut text, "cairn_runs_open", &format!("{{status=\"{status}\"}}"), count);
        }
        let Lanes { falls, down } = lanes;
        let what = "Times that the runs of a session had to be loaded again after a failure.";
        head(&mut text, "cairn_lane_falls_total", "counter", what);
        line(&mut text, "cairn_lane_falls_total", "", falls);
        let what = "Sessions whose runs are being loaded again and take nothing until they are.";
        head(&mut text, "cairn_lanes_down", "gauge", what);
        line(&mut text, "cairn_lanes_down", "", down);
        text
    }

    fn histogram(&self, text: &mut String) {
        let name = "cairn_step_duration_seconds";
        head(text, name, "histogram", "How long tries of steps took.");
        let bounds = BOUNDS_MS.iter().map(|ms| seconds(*ms)).chain(["+Inf".to_owned()]);
        for (bucket, bound) in self.durations.iter().zip(bounds) {
            let count = bucket.load(Ordering::Relaxed);
            line(text, &format!("{name}_bucket"), &format!("{{le=\"{bound}\"}}"), count);
        }
        let sum = seconds(self.duration_sum_ms.load(Ordering::Relaxed));
        let _ = writeln!(text, "{name}_sum {sum}");
        let count = self.durations.last().map_or(0, |all| all.load(Ordering::Relaxed));
        line(text, &format!("{name}_count"), "", count);
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, label: &str, value: u64) {
    let _ = writeln!(text, "{name}{label} {value}");
}

impl Observer for Metrics {
    fn told(&self, told: &Told) {
        told.events.iter().for_each(|event| self.count(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_into_every_bound_that_holds_them() {
        let metrics = Metrics::default();
        for ms in [0, 7, 700, 600_000] {
            metrics.took(ms);
        }
        let text = metrics.text(&[("running", 2)], Lanes { falls: 3, down: 1 });
        for wanted in [
            "cairn_step_duration_seconds_bucket{le=\"0.001\"} 1\n",
            "cairn_step_duration_seconds_bucket{le=\"0.010\"} 2\n",
            "cairn_step_duration_seconds_bucket{le=\"300.000\"} 3\n",
            "cairn_step_duration_seconds_bucket{le=\"+Inf\"} 4\n",
            "cairn_step_duration_seconds_sum 600.707\n",
            "cairn_step_duration_seconds_count 4\n",
            "cairn_runs_open{status=\"running\"} 2\n",
            "cairn_lane_falls_total 3\n",
            "cairn_lanes_down 1\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
    }
}
