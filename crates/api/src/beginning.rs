//! Which id somebody means by the beginning of one. Runs and sessions are named the same way.

use std::fmt::Display;

/// How many characters it takes behind the prefix that every id of a kind has.
pub const LEN_MIN: usize = 6;

/// What a beginning stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meant<T> {
    /// No id begins like this.
    None,
    /// One does.
    One(T),
    /// Several do.
    Several(Vec<T>),
}

/// Whether a text can be the beginning of an id like this one.
#[must_use]
pub fn is_beginning(text: &str, prefix: &str, whole: impl Display) -> bool {
    let rest = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
    text.len() < whole.to_string().len()
        && rest.is_some_and(|rest| {
            rest.len() >= LEN_MIN
                && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// Those of some ids that begin with a text.
pub fn meant<T: Display>(text: &str, all: impl IntoIterator<Item = T>) -> Meant<T> {
    let begins = |id: &T| id.to_string().starts_with(text);
    let mut found: Vec<T> = all.into_iter().filter(begins).collect();
    match found.len() {
        0 | 1 => found.pop().map_or(Meant::None, Meant::One),
        _ => Meant::Several(found),
    }
}

#[cfg(test)]
mod tests {
    use cairn_core::id::{RunId, SessionId};

    use super::*;

    #[test]
    fn a_beginning_is_long_enough_and_shorter_than_an_id() {
        let is_session = |text| is_beginning(text, SessionId::PREFIX, SessionId::from_bits(0));
        let is_run = |text| is_beginning(text, RunId::PREFIX, RunId::from_bits(0));
        assert!(is_session("sess_01hf7y") && is_run("run_01hf7y"));
        for text in ["", "sess_", "sess_01hf7", "01hf7yat00", "sess_01HF7Y", "sess_../../x"] {
            assert!(!is_session(text) && !is_run(text), "{text}");
        }
        assert!(!is_session("run_01hf7yat") && !is_run("sess_01hf7yat"));
        assert!(!is_session("sess_01hf7yat000000000000000007"));
    }

    #[test]
    fn one_is_meant_when_no_other_begins_so() {
        let ids = ["run_aaaaaa1", "run_aaaaaa2", "run_bbbbbb1"];
        assert_eq!(meant("run_bbbbbb", ids), Meant::One("run_bbbbbb1"));
        assert_eq!(meant("run_aaaaaa", ids), Meant::Several(ids[..2].to_vec()));
        assert_eq!(meant("run_cccccc", ids), Meant::None);
    }
}
