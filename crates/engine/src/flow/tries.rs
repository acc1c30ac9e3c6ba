//! Asking again, and not saying no to what may have been taken.

use std::time::Duration;

use cairn_core::id::SessionId;

use crate::error::{Error, Result};

/// How often to ask.
const TRIES: usize = 8;
/// How often to look whether the owner that is in doubt is gone.
const DOUBTED_TRIES: usize = 4;
/// How long to wait before asking again.
pub(super) const PAUSE: Duration = Duration::from_millis(150);

/// The tries of one request.
pub(super) struct Tries {
    /// The desk that is asked.
    desk: SessionId,
    left: usize,
    /// Whether an earlier try may have recorded something.
    may_have_happened: bool,
    /// Whether an owner took it and did not say what came of it. It is not asked a second time:
    /// either it is gone by the next try, or it is stopped.
    pub(super) is_in_doubt: bool,
    /// Who was asked last, when that is another process.
    pub(super) elsewhere: Option<Error>,
}

impl Tries {
    pub(super) const fn at(desk: SessionId) -> Self {
        Self { desk, left: TRIES, may_have_happened: false, is_in_doubt: false, elsewhere: None }
    }

    /// What to say of what came of a try; nothing when it is to be tried again.
    ///
    /// Whoever is refused may take it that nothing comes of the request. A later try knows that
    /// of itself alone: what an earlier one recorded goes on.
    pub(super) fn settle<T>(&mut self, asked: Result<T>) -> Option<Result<T>> {
        self.left = self.left.saturating_sub(1);
        let owner = match &self.elsewhere {
            Some(Error::AdmittedElsewhere { owner, .. }) => owner.clone(),
            _ => None,
        };
        match asked.map_err(|error| error.of_owner(owner.as_deref())) {
            // The run is the same at each try: whoever decides by then knows what came of it.
            Err(error @ Error::InDoubt { .. }) => {
                (self.may_have_happened, self.is_in_doubt) = (true, true);
                self.left = self.left.min(DOUBTED_TRIES);
                (self.left == 0).then_some(Err(error))
            }
            Err(error) if error.is_passing() => {
                self.may_have_happened |= !matches!(error, Error::Unheard { .. });
                let who = self.elsewhere.take().filter(|_| !self.may_have_happened);
                // An earlier try may have recorded something, whatever this one came to.
                let doubt = || Error::InDoubt { session: self.desk, owner };
                let told = if self.is_in_doubt { doubt() } else { who.unwrap_or(error) };
                (self.left == 0).then_some(Err(told))
            }
            Err(_) if self.may_have_happened => {
                Some(Err(Error::InDoubt { session: self.desk, owner }))
            }
            asked => Some(asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESK: SessionId = SessionId::from_bits(1);

    fn down() -> Result<()> {
        Err(Error::LaneDown { session: DESK })
    }

    fn no() -> Result<()> {
        Err(Error::Dropped { workflow: "w".to_owned() })
    }

    fn code(said: Option<Result<()>>) -> Option<&'static str> {
        said.map(|said| said.map_or_else(|error| error.code(), |()| "OK"))
    }

    #[test]
    fn who_may_have_been_taken_is_not_refused() {
        let unheard = || Err(Error::Unheard { session: DESK });
        let full = || Err(Error::Store(cairn_store::Error::Full { context: "x".to_owned() }));
        let doubt = || Err(Error::InDoubt { session: DESK, owner: None });
        let cases: [(Vec<Result<()>>, &str); 10] = [
            (vec![doubt(), Ok(())], "OK"),
            (vec![doubt(), no()], "RUN_IN_DOUBT"),
            (vec![no()], "TRIGGER_DROPPED"),
            (vec![unheard(), no()], "TRIGGER_DROPPED"),
            (vec![down(), no()], "RUN_IN_DOUBT"),
            (vec![down(), unheard(), no()], "RUN_IN_DOUBT"),
            (vec![full()], "STORE_FULL"),
            (vec![down(), full()], "RUN_IN_DOUBT"),
            (vec![down(), Ok(())], "OK"),
            (vec![doubt(), down(), down(), down(), down()], "RUN_IN_DOUBT"),
        ];
        for (tries, said) in cases {
            let mut asked = Tries::at(DESK);
            let told: Vec<_> = tries.into_iter().map(|one| code(asked.settle(one))).collect();
            let (last, before) = told.split_last().unwrap();
            assert_eq!(*last, Some(said));
            assert!(before.iter().all(Option::is_none), "{before:?}");
        }
    }

    #[test]
    fn who_was_never_heard_is_told_whom_it_asked() {
        let mut asked = Tries::at(DESK);
        for _ in 0..TRIES {
            let (workflow, owner) = ("w".to_owned(), None);
            asked.elsewhere = Some(Error::AdmittedElsewhere { workflow, session: DESK, owner });
            let said = code(asked.settle(Err(Error::Unheard { session: DESK })));
            assert!(said.is_none_or(|code| code == "WORKFLOW_ELSEWHERE"), "{said:?}");
        }
        assert_eq!(code(asked.settle(down())), Some("RUN_LANE_DOWN"));
    }

    #[test]
    fn nobody_asks_for_ever() {
        let mut asked = Tries::at(DESK);
        let told: Vec<_> = (0..TRIES).map(|_| code(asked.settle(down()))).collect();
        assert_eq!(told.iter().position(Option::is_some), Some(TRIES - 1));
    }
}
