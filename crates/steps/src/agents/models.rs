//! What models cost, as far as somebody says.

use std::collections::BTreeMap;

/// What a model costs, in millionths of a US dollar for a million tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Model {
    pub input_usd_micros: u64,
    pub output_usd_micros: u64,
}

impl Model {
    /// What so many tokens cost, in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn cost(&self, input: u64, output: u64) -> u64 {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let (read, written) = (self.input_usd_micros, self.output_usd_micros);
        let all = part(input, read).saturating_add(part(output, written));
        u64::try_from(all.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Models, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Models(pub BTreeMap<String, Model>);

impl Models {
    /// The model of this name, or else the one whose name this begins with, the longest first:
    /// vendors put a date behind the names of their models.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Model> {
        let fits = self.0.iter().filter(|(known, _)| name.starts_with(known.as_str()));
        fits.max_by_key(|(known, _)| known.len()).map(|(_, model)| model)
    }
}

/// About how many tokens a text of so many bytes has.
pub(super) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_found_by_the_longest_name() {
        let price =
            |input| Model { input_usd_micros: input, output_usd_micros: input.saturating_mul(5) };
        let models = Models(BTreeMap::from([
            ("haiku".to_owned(), price(1_000_000)),
            ("haiku-4".to_owned(), price(2_000_000)),
        ]));
        let found = models.find("haiku-4-20270101").unwrap();
        assert_eq!(found.cost(1_000, 100), 2_000 + 1_000);
        assert_eq!(found.cost(1, 0), 2);
        assert_eq!(models.find("haiku").unwrap().cost(0, 0), 0);
        assert!(models.find("opus").is_none());
        assert_eq!(price(u64::MAX).cost(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(tokens(9), 3);
    }
}
