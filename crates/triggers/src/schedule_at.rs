//! `schedule_at`: fires once, at one instant.

use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_engine::trigger::{Firing, Times, Trigger, Watch};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cron;
use crate::settings::{self, closed, one_of, text};

/// No trigger can have been meant for a time before this one: 2026-01-01.
///
/// Whether an instant is over depends on the clock, and what a file compiles to does not.
/// So a workflow whose instant has passed still compiles, and what is plainly wrong does not.
const EARLIEST_MS: u64 = 1_767_225_600_000;
/// How late an instant may be and still be fired on time, as against missed.
const LATE_MS: u64 = 60_000;

/// The type.
pub struct ScheduleAt;

#[derive(Deserialize)]
struct Input {
    at: String,
    #[serde(default)]
    missed: Missed,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Missed {
    Skip,
    #[default]
    Once,
}

/// The one instant of a trigger.
pub struct Instant {
    at_ms: u64,
    missed: Missed,
}

impl Trigger for ScheduleAt {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "at": text("The instant, with its offset from UTC."),
            "missed": one_of(&["skip", "once"], "What becomes of it when the server was down: nothing, or it is fired when the server is back."),
        });
        let example = json!({"type": "schedule_at", "at": "2027-03-01T09:00:00+07:00"});
        TriggerType {
            name: "schedule_at".to_owned(),
            input: closed(properties, &["at"], "Fires once, at one instant.", example),
            payload: Some(cron::payload()),
            check: |config| settings::faults(config, Instant::read),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        Ok(Watch::Times(Arc::new(Instant::new(config)?)))
    }
}

impl Instant {
    /// The instant that the settings of a trigger name.
    pub fn new(config: &Value) -> Result<Self, Vec<SettingFault>> {
        Self::read(settings::read(config)?)
    }

    fn read(Input { at, missed }: Input) -> Result<Self, Vec<SettingFault>> {
        let fault = |why: &str| {
            let hint = "write a date and a time with its offset, such as `2027-03-01T09:00:00Z`";
            vec![SettingFault::new("at", format!("`{at}` {why}"), hint)]
        };
        let parsed: Timestamp =
            at.parse().map_err(|_| fault("is not an instant: a date, a time and an offset"))?;
        let at_ms = u64::try_from(parsed.as_millisecond()).unwrap_or_default();
        if at_ms < EARLIEST_MS {
            return Err(fault("lies in the past"));
        }
        Ok(Self { at_ms, missed })
    }
}

impl Times for Instant {
    fn next_after(&self, ms: u64) -> Option<u64> {
        Some(self.at_ms).filter(|at| *at > ms)
    }

    fn due(&self, last_ms: u64, now_ms: u64) -> Vec<u64> {
        let seen = match self.missed {
            Missed::Skip => last_ms.max(now_ms.saturating_sub(LATE_MS)),
            Missed::Once => last_ms,
        };
        self.next_after(seen).filter(|at| *at <= now_ms).into_iter().collect()
    }

    fn firing(&self, at_ms: u64) -> Firing {
        cron::firing(at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(config: Value) -> Result<Instant, String> {
        Instant::new(&config).map_err(|faults| faults[0].message.clone())
    }

    // case: time.instant-once
    #[test]
    fn an_instant_is_fired_once() {
        let at = instant(json!({"at": "2027-03-01T09:00:00+07:00"})).unwrap();
        let ms = 1_803_866_400_000;
        assert_eq!(at.next_after(0), Some(ms));
        assert_eq!(at.next_after(ms), None);
        assert_eq!(at.due(0, ms - 1), [0u64; 0]);
        assert_eq!(at.due(ms - 1, ms), [ms]);
        assert_eq!(at.due(0, ms + 86_400_000), [ms], "it was missed, and is replayed");
        assert_eq!(at.due(ms, ms + 1), [0u64; 0]);
        assert_eq!(at.due(ms + 5, ms - 5), [0u64; 0], "the clock went back");
        assert_eq!(at.firing(ms).key, "2027-03-01T02:00:00Z");
    }

    #[test]
    fn a_missed_instant_can_be_let_go() {
        let at = instant(json!({"at": "2027-03-01T02:00:00Z", "missed": "skip"})).unwrap();
        let ms = 1_803_866_400_000;
        assert_eq!(at.due(0, ms + 30_000), [ms]);
        assert_eq!(at.due(0, ms + 61_000), [0u64; 0]);
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for (at, why) in [
            ("tomorrow", "is not an instant"),
            ("2027-03-01", "is not an instant"),
            ("2027-03-01T09:00:00", "is not an instant"),
            ("2027-02-30T09:00:00Z", "is not an instant"),
            ("2019-03-01T09:00:00Z", "lies in the past"),
            ("1960-03-01T09:00:00Z", "lies in the past"),
        ] {
            let told = instant(json!({"at": at})).err().unwrap_or_default();
            assert!(told.contains(why), "{at}: {told}");
        }
    }
}
