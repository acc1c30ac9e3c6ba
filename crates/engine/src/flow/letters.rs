//! What became of letters, for senders that did not hear it.
//!
//! A letter has an id and a deadline. Its owner acts on it once, not after the deadline, and
//! remembers what it answered: a sender that was cut off asks again by the id and gets the same
//! answer, and nothing happens twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

/// How many letters are remembered.
const REMEMBERED_MAX: usize = 1_024;

/// A letter as it is written.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Envelope {
    /// What tells it from all others.
    pub(super) id: String,
    /// The last moment at which it may be acted on, in milliseconds since 1970.
    pub(super) not_after_ms: u64,
    /// What is said; nothing when somebody asks what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) say: Option<Value>,
}

/// What a letter is to whoever takes it.
pub(super) enum Taken {
    /// It says something, and nobody has acted on it.
    New(Answering, Value),
    /// It says something, and its deadline has passed: nobody acts on it, now or later.
    Late(Answering),
    /// It was taken before, or asks what became of one: this tells, once it is known.
    Known(watch::Receiver<Option<String>>),
    /// It asks what became of a letter of which nothing is known here.
    Forgotten,
}

/// The answer to a letter, on its way.
pub(super) struct Answering(watch::Sender<Option<String>>);

impl Answering {
    /// Remembers the answer, and tells those who have asked again.
    pub(super) fn answer(self, text: &str) {
        self.0.send_replace(Some(text.to_owned()));
    }
}

/// The letters that this process has taken.
#[derive(Default)]
pub(super) struct Letters(Mutex<Known>);

#[derive(Default)]
struct Known {
    answers: BTreeMap<String, watch::Receiver<Option<String>>>,
    oldest: VecDeque<String>,
}

impl Letters {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a letter in at this time.
    pub(super) fn take(&self, letter: Envelope, now_ms: u64) -> Taken {
        let mut known = self.known();
        if let Some(answer) = known.answers.get(&letter.id) {
            return Taken::Known(answer.clone());
        }
        let Some(say) = letter.say else { return Taken::Forgotten };
        let (tell, answer) = watch::channel(None);
        if known.oldest.len() == REMEMBERED_MAX
            && let Some(oldest) = known.oldest.pop_front()
        {
            known.answers.remove(&oldest);
        }
        known.oldest.push_back(letter.id.clone());
        known.answers.insert(letter.id, answer);
        match now_ms > letter.not_after_ms {
            true => Taken::Late(Answering(tell)),
            false => Taken::New(Answering(tell), say),
        }
    }
}

/// Waits for an answer; none when whoever was about to give it is gone.
pub(super) async fn heard(mut answer: watch::Receiver<Option<String>>) -> Option<String> {
    answer.wait_for(Option::is_some).await.ok()?.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn letter(id: &str, say: Option<Value>) -> Envelope {
        Envelope { id: id.to_owned(), not_after_ms: 10, say }
    }

    #[tokio::test]
    async fn a_letter_is_acted_on_once_and_whoever_asks_again_hears_its_answer() {
        let letters = Letters::default();
        let says = || letter("a", Some(json!("cancel")));
        let Taken::New(answering, say) = letters.take(says(), 10) else { panic!() };
        assert_eq!(say, json!("cancel"));
        // The same again, and the question what became of it, whatever the time is by now.
        for again in [says(), letter("a", None)] {
            assert!(matches!(letters.take(again, 99), Taken::Known(_)));
        }
        let Taken::Known(waiting) = letters.take(letter("a", None), 0) else { panic!() };
        answering.answer("done");
        assert_eq!(heard(waiting).await.as_deref(), Some("done"));
        let Taken::Known(later) = letters.take(letter("a", None), 0) else { panic!() };
        assert_eq!(heard(later).await.as_deref(), Some("done"));
    }

    #[tokio::test]
    async fn what_comes_after_its_deadline_is_refused_for_good() {
        let letters = Letters::default();
        let says = || letter("a", Some(json!(1)));
        let Taken::Late(answering) = letters.take(says(), 11) else { panic!() };
        answering.answer("late");
        // The clock may go back: it stays refused.
        let Taken::Known(answer) = letters.take(says(), 1) else { panic!() };
        assert_eq!(heard(answer).await.as_deref(), Some("late"));
    }

    #[tokio::test]
    async fn nothing_is_said_of_what_is_not_known() {
        let letters = Letters::default();
        assert!(matches!(letters.take(letter("a", None), 0), Taken::Forgotten));
        let Taken::New(answering, _) = letters.take(letter("b", Some(json!(1))), 0) else {
            panic!()
        };
        let Taken::Known(answer) = letters.take(letter("b", None), 0) else { panic!() };
        drop(answering);
        assert_eq!(heard(answer).await, None, "whoever acted on it is gone");
        for number in 0..REMEMBERED_MAX {
            let taken = letters.take(letter(&number.to_string(), Some(json!(1))), 0);
            assert!(matches!(taken, Taken::New(..)));
        }
        assert!(matches!(letters.take(letter("b", None), 0), Taken::Forgotten));
        assert_eq!(letters.known().answers.len(), REMEMBERED_MAX);
    }

    #[test]
    fn an_envelope_reads_back_and_nothing_else_is_one() {
        for say in [None, Some(json!({"do": "cancel"}))] {
            let written = serde_json::to_string(&letter("x", say.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Envelope>(&written).unwrap(), letter("x", say));
        }
        for line in ["", "{}", r#"{"id":"x"}"#, r#"{"id":"x","notAfterMs":1,"more":1}"#] {
            assert!(serde_json::from_str::<Envelope>(line).is_err(), "{line}");
        }
    }
}
