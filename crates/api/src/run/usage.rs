//! What runs used up of models, on the wire.

use cairn_core::event::{Event, EventData, engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was used up of models.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// What it cost, in millionths of a US dollar, as far as that is known.
    pub cost_usd_micros: Option<u64>,
    /// Whether some of it is computed, because a provider did not report it.
    pub estimated: bool,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// How many agents were started or models asked.
    pub launches: u32,
    /// The model; left out when there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Who was asked; left out when there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

impl From<&engine::Usage> for Usage {
    fn from(used: &engine::Usage) -> Self {
        Self {
            cost_usd_micros: used.cost_usd_micros,
            estimated: used.estimated,
            input_tokens: used.input_tokens,
            launches: used.launches,
            model: used.model.clone(),
            output_tokens: used.output_tokens,
            provider: used.provider.clone(),
        }
    }
}

impl Usage {
    /// What an event says was used up.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        match &event.data {
            EventData::StepCompleted(step) => step.usage.as_ref().map(Self::from),
            EventData::StepFailed(step) => step.usage.as_ref().map(Self::from),
            _ => None,
        }
    }

    /// What all these events say was used up.
    #[must_use]
    pub fn of_events(events: &[Event]) -> Option<Self> {
        events.iter().filter_map(Self::of).fold(None, |sum, used| Self::sum(sum, Some(used)))
    }

    /// Both together.
    #[must_use]
    pub fn sum(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.or(b),
        };
        let same = |a: Option<String>, b: Option<String>| if a == b { a } else { None };
        let cost = match (a.cost_usd_micros, b.cost_usd_micros) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Some(Self {
            cost_usd_micros: cost,
            estimated: a.estimated || b.estimated,
            input_tokens: a.input_tokens.saturating_add(b.input_tokens),
            launches: a.launches.saturating_add(b.launches),
            model: same(a.model, b.model),
            output_tokens: a.output_tokens.saturating_add(b.output_tokens),
            provider: same(a.provider, b.provider),
        })
    }

    /// What it cost, in words; `-` when that is not known.
    #[must_use]
    pub fn cost_in_words(&self) -> String {
        let cost = self.cost_usd_micros;
        let cost = cost.map(|cost| format!("${}.{:06}", cost / 1_000_000, cost % 1_000_000));
        let about = if self.estimated { " (estimated)" } else { "" };
        cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost}{about}"))
    }

    /// In a few words, such as `120 tokens, $0.0008 (estimated)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let tokens = self.input_tokens.saturating_add(self.output_tokens);
        match self.cost_usd_micros {
            Some(_) => format!("{tokens} tokens, {}", self.cost_in_words()),
            None if self.estimated => format!("{tokens} tokens (estimated)"),
            None => format!("{tokens} tokens"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_is_common() {
        let one = Usage {
            cost_usd_micros: Some(800),
            input_tokens: 100,
            output_tokens: 20,
            launches: 1,
            model: Some("m".into()),
            provider: Some("p".into()),
            estimated: false,
        };
        assert_eq!(one.in_words(), "120 tokens, $0.000800");
        let other = Usage {
            model: Some("n".into()),
            estimated: true,
            cost_usd_micros: None,
            ..one.clone()
        };
        let both = Usage::sum(Some(one.clone()), Some(other)).unwrap();
        assert_eq!((both.model.as_deref(), both.provider.as_deref()), (None, Some("p")));
        assert_eq!(both.in_words(), "240 tokens, $0.000800 (estimated)");
        assert_eq!(Usage::sum(None, Some(one.clone())), Some(one));
    }
}
