//! `cron`: fires at the times that a line of five or six fields names, in a time zone.
//!
//! Where clocks are put forward, a line that names one time of day fires once, at the end of
//! the gap; where they are put back, it fires once, the first time. A line of many times
//! (`*`, a range, a list or a step) goes by what the clock shows: nothing in the gap,
//! and both hours of an overlap.

use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_engine::trigger::{Firing, Times, Trigger, Watch};
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings::{self, closed, one_of, text};

/// How many missed firings are replayed at most.
pub const MISSED_MAX: usize = 10;
/// How late an instant may be and still be fired on time, as against missed.
const LATE_MS: u64 = 60_000;

/// The type.
pub struct Cron;

#[derive(Deserialize)]
struct Input {
    cron: String,
    #[serde(default)]
    missed: Missed,
    timezone: Option<String>,
}

/// What becomes of instants that passed while nobody was there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nothing.
    Skip,
    /// The last of them is fired.
    #[default]
    Once,
    /// The last [`MISSED_MAX`] of them are fired.
    All,
}

/// The times of one trigger.
pub struct Schedule {
    line: croner::Cron,
    zone: TimeZone,
    missed: Missed,
}

impl Trigger for Cron {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "cron": text("When: minute, hour, day of the month, month and day of the week, with a field for seconds before them if wanted; or @hourly, @daily, @weekly, @monthly, @yearly."),
            "missed": one_of(&["skip", "once", "all"], "What becomes of the times that passed while the server was down: nothing, the last of them, or the last ten."),
            "timezone": text("The zone whose clock counts, such as Europe/Berlin; UTC when it is left out."),
        });
        let example =
            json!({"type": "cron", "cron": "0 8 * * MON-FRI", "timezone": "Asia/Jakarta"});
        TriggerType {
            name: "cron".to_owned(),
            input: closed(properties, &["cron"], "Fires at times of the clock.", example),
            payload: Some(payload()),
            check: |config| settings::faults(config, Schedule::read),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        Ok(Watch::Times(Arc::new(Schedule::new(config)?)))
    }
}

impl Schedule {
    /// The times that the settings of a trigger name.
    pub fn new(config: &Value) -> Result<Self, Vec<SettingFault>> {
        Self::read(settings::read(config)?)
    }

    fn read(Input { cron, missed, timezone }: Input) -> Result<Self, Vec<SettingFault>> {
        let (line, zone) = (line(&cron), zone(timezone.as_deref().unwrap_or("UTC")));
        match (line, zone) {
            (Ok(line), Ok(zone)) => Ok(Self { line, zone, missed }),
            (line, zone) => Err(line.err().into_iter().chain(zone.err()).collect()),
        }
    }

    fn zoned(&self, ms: u64) -> Option<Zoned> {
        let at = Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
        Some(at.to_zoned(self.zone.clone()))
    }

    /// Whether the line means an instant: its time fits, or clocks jump there over one that does.
    /// The search also stops where clocks jump over midnight, whatever the line says.
    fn is_meant(&self, at: &Zoned) -> bool {
        if self.line.is_time_matching(at).unwrap_or_default() {
            return true;
        }
        let Ok(before) = at.checked_sub(SignedDuration::from_secs(1)) else { return false };
        let jumped = i64::from(at.offset().seconds() - before.offset().seconds());
        let unjumped = before.with_time_zone(TimeZone::fixed(before.offset()));
        let fits = self.line.find_next_occurrence(&unjumped, false);
        fits.is_ok_and(|fits| fits.timestamp().as_second() < at.timestamp().as_second() + jumped)
    }

    /// The last instants after one, up to another, without a look at each one between.
    fn last_between(&self, after_ms: u64, to_ms: u64, count: usize) -> Vec<u64> {
        let mut found = Vec::new();
        // Instants are whole seconds, and the search leaves out the one that it starts from.
        let mut before = self.zoned((to_ms / 1000).saturating_add(1).saturating_mul(1000));
        while let Some(at) = before.filter(|_| found.len() < count) {
            before = self.line.find_previous_occurrence(&at, false).ok();
            let Some(at) = &before else { break };
            let ms = u64::try_from(at.timestamp().as_millisecond()).ok();
            match ms.filter(|ms| *ms > after_ms) {
                Some(ms) if self.is_meant(at) => found.push(ms),
                Some(_) => {}
                None => break,
            }
        }
        found.reverse();
        found
    }
}

impl Times for Schedule {
    fn next_after(&self, ms: u64) -> Option<u64> {
        let mut at = self.zoned(ms)?;
        loop {
            let next = self.line.find_next_occurrence(&at, false).ok()?;
            // An instant that is not later would be fired for ever.
            if next.timestamp() <= at.timestamp() {
                return None;
            }
            if self.is_meant(&next) {
                return u64::try_from(next.timestamp().as_millisecond()).ok();
            }
            at = next;
        }
    }

    fn due(&self, last_ms: u64, now_ms: u64) -> Vec<u64> {
        if now_ms <= last_ms {
            return Vec::new();
        }
        match self.missed {
            Missed::Skip => {
                let since = last_ms.max(now_ms.saturating_sub(LATE_MS));
                self.last_between(since, now_ms, MISSED_MAX)
            }
            Missed::Once => self.last_between(last_ms, now_ms, 1),
            Missed::All => self.last_between(last_ms, now_ms, MISSED_MAX),
        }
    }

    fn local(&self, at_ms: u64) -> Option<String> {
        Some(self.zoned(at_ms)?.to_string()).filter(|_| self.zone != TimeZone::UTC)
    }

    fn firing(&self, at_ms: u64) -> Firing {
        firing(at_ms)
    }
}

/// What the runs of an instant are given.
pub(crate) fn payload() -> Value {
    let at = text("The instant, such as 2027-03-01T02:00:00Z.");
    json!({
        "type": "object", "properties": {"scheduled_at": at}, "required": ["scheduled_at"],
        "additionalProperties": false,
    })
}

/// The firing of an instant.
pub(crate) fn firing(at_ms: u64) -> Firing {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let at = at.unwrap_or_default().to_string();
    Firing::new(at.clone(), json!({"scheduled_at": at}))
}

fn line(text: &str) -> Result<croner::Cron, SettingFault> {
    let fault = |why: &str| {
        let hint = "write minute, hour, day, month and weekday, such as `0 8 * * MON-FRI`";
        SettingFault::new("cron", format!("`{text}` is not a schedule: {why}"), hint)
    };
    if text.trim().eq_ignore_ascii_case("@reboot") {
        return Err(fault("a start of the machine is no time"));
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let line = parser.parse(text).map_err(|error| fault(&why(text, &error)))?;
    // A fixed day to look from: the same line is right or wrong for good.
    let from = jiff::civil::date(2024, 1, 1).to_zoned(TimeZone::UTC);
    match from.map(|from| line.find_next_occurrence(&from, false)) {
        Ok(Ok(_)) => Ok(line),
        _ => Err(fault("there is no such day")),
    }
}

/// The parts of a line, the last five of six: what each is called, and its numbers.
const PARTS: [(&str, u32, u32); 6] = [
    ("second", 0, 59),
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
];

/// A number of a line that its part cannot have.
fn outside(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let first = PARTS.len().checked_sub(fields.len()).filter(|first| *first < 2)?;
    fields.iter().zip(PARTS.get(first..)?).find_map(|(field, (name, min, max))| {
        // What stands behind `/` is a step, and no number of the part.
        let ranges = field.split(',').filter_map(|part| part.split('/').next());
        let numbers =
            ranges.flat_map(|range| range.split('-')).filter_map(|n| n.parse::<u32>().ok());
        let number = numbers.into_iter().find(|number| !(*min..=*max).contains(number))?;
        Some(format!("{number} is no {name}, which is a number from {min} to {max}"))
    })
}

/// What the parser says, in words that name what stands in the line.
fn why(text: &str, error: &croner::errors::CronError) -> String {
    use croner::errors::CronError as E;
    if let Some(outside) = outside(text) {
        return outside;
    }
    match error {
        E::EmptyPattern => "it is empty".to_owned(),
        E::InvalidPattern(_) if text.starts_with('@') => "no such name is known".to_owned(),
        E::InvalidPattern(_) => {
            format!("it has {} fields, not 5 or 6", text.split_whitespace().count())
        }
        E::IllegalCharacters(_) => "a character in it means nothing".to_owned(),
        E::ComponentError(what) if what.contains("llegal character") => {
            "a character in it means nothing".to_owned()
        }
        E::ComponentError(what) => what.trim_end_matches('.').to_lowercase(),
        other => other.to_string(),
    }
}

fn zone(name: &str) -> Result<TimeZone, SettingFault> {
    // The zones are in the program, so that every machine fires at the same instants.
    jiff::tz::db().get(name).map_err(|_| {
        let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        let near = names.iter().map(|known| (strsim::jaro_winkler(known, name), known));
        let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(near, _)| *near > 0.8);
        let hint = near.map_or_else(
            || "write a name such as `Europe/Berlin`, or leave it out for UTC".to_owned(),
            |(_, known)| format!("did you mean `{known}`?"),
        );
        SettingFault::new("timezone", format!("there is no time zone `{name}`"), hint)
    })
}

#[cfg(test)]
mod tests;
