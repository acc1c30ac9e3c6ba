//! What the configuration file says about how much runs may do, and how long they are kept.

use std::collections::BTreeMap;

use cairn_engine::flow::Options;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{Fault, wrong};

/// The keys there are.
pub(super) const KEYS: [&str; 9] = [
    "limits.events_per_run",
    "limits.runs_at_once",
    "limits.runs_per_minute",
    "limits.steps_at_once",
    "limits.steps_per_run",
    "retention.failure_days",
    "retention.guided_days",
    "retention.keep_max",
    "retention.success_days",
];

/// What the file says, each with its line.
#[derive(Default)]
pub(crate) struct Limits(BTreeMap<&'static str, (u32, usize)>);

impl Limits {
    pub(super) fn take(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        line: usize,
    ) -> Result<(), Fault> {
        let number = value.get_ref().as_integer().and_then(|text| text.as_str().parse().ok());
        let number: Option<u32> = number.filter(|number| *number > 0);
        let number =
            number.ok_or_else(|| wrong(key, "a whole number greater than 0", value, line))?;
        let known = KEYS.into_iter().find(|known| *known == key);
        self.0.extend(known.map(|key| (key, (number, line))));
        Ok(())
    }

    /// The options that this makes of those of somebody who says nothing.
    pub(crate) fn options(&self, mut options: Options) -> Options {
        for (key, (number, _)) in &self.0 {
            set(&mut options, key, *number);
        }
        options
    }

    /// Each key, and its line when its value is from the file.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, Value, Option<usize>)> {
        let options = self.options(Options::default());
        let line = |key| self.0.get(key).map(|(_, line)| *line);
        KEYS.into_iter().map(move |key| (key, get(&options, key), line(key)))
    }
}

fn set(options: &mut Options, key: &str, number: u32) {
    let size = usize::try_from(number).unwrap_or(usize::MAX);
    match key {
        "limits.events_per_run" => options.limits.events_max = number,
        "limits.runs_at_once" => options.runs_at_once = size,
        "limits.runs_per_minute" => options.runs_per_minute = number,
        "limits.steps_at_once" => options.steps_at_once = size,
        "limits.steps_per_run" => options.limits.steps_max = number,
        "retention.failure_days" => options.retention.failed_days = number,
        "retention.guided_days" => options.guided_days = Some(number),
        "retention.keep_max" => options.retention.runs_max = number,
        "retention.success_days" => options.retention.succeeded_days = number,
        _ => {}
    }
}

fn get(options: &Options, key: &str) -> Value {
    match key {
        "limits.events_per_run" => json!(options.limits.events_max),
        "limits.runs_at_once" => json!(options.runs_at_once),
        "limits.runs_per_minute" => json!(options.runs_per_minute),
        "limits.steps_at_once" => json!(options.steps_at_once),
        "limits.steps_per_run" => json!(options.limits.steps_max),
        "retention.failure_days" => json!(options.retention.failed_days),
        "retention.guided_days" => options.guided_days.map_or(json!("never"), |days| json!(days)),
        "retention.keep_max" => json!(options.retention.runs_max),
        "retention.success_days" => json!(options.retention.succeeded_days),
        _ => Value::Null,
    }
}
