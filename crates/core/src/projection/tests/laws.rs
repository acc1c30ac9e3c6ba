//! Laws that hold of every projection, for any log.

use proptest::prelude::*;

use crate::canonical;
use crate::digest::{Digest, WorkflowHash};
use crate::event::Event;
use crate::event::tests::arbitrary;
use crate::id::{EventIndex, NodeId, RunId};
use crate::projection::dag::RunDag;
use crate::projection::recap::recap;
use crate::projection::resume::{Query, rank};
use crate::projection::run::{Held, RunState};
use crate::projection::session::SessionView;
use crate::projection::timeline::Timeline;
use crate::snapshot::{RunSnapshot, Snapshot};

const RUN: RunId = RunId::from_bits(1);

proptest! {
    #[test]
    fn live_equals_replay(log in arbitrary::log(0..80)) {
        let mut live = (RunState::new(RUN), SessionView::default(), Timeline::default());
        for (place, event) in log.iter().enumerate() {
            live.0.apply(event);
            live.1.apply(event);
            live.2.apply(event);
            if place % 7 == 0 {
                // Asking in between changes nothing.
                let _ = (live.0.status(), live.1.status(RUN, |_| true));
            }
        }
        prop_assert_eq!(live.0, RunState::fold(RUN, &log));
        prop_assert_eq!(live.1, SessionView::fold(&log));
        prop_assert_eq!(live.2, Timeline::fold(&log));
    }

    #[test]
    fn live_equals_what_is_read_back(log in arbitrary::log(0..40)) {
        let lines = log.iter().map(|event| event.encode().unwrap());
        let read: Vec<Event> = lines.map(|line| Event::decode(&line).unwrap()).collect();
        prop_assert_eq!(RunState::fold(RUN, &read), RunState::fold(RUN, &log));
        prop_assert_eq!(SessionView::fold(&read), SessionView::fold(&log));
    }

    #[test]
    fn snapshot_plus_tail_equals_full_replay(
        log in arbitrary::log(0..80),
        cut in any::<prop::sample::Index>(),
    ) {
        let (head, tail) = log.split_at(cut.index(log.len() + 1));
        let snapshot = RunSnapshot {
            base: None,
            state: RunState::fold(RUN, head),
            through: EventIndex(head.len() as u64),
            workflow_hash: WorkflowHash(Digest::of(b"plan")),
        };
        let bytes = snapshot.encode().unwrap();
        let Snapshot::Run(read) = Snapshot::decode(&bytes).unwrap() else { panic!("a run's") };
        prop_assert_eq!(&*read, &snapshot);
        prop_assert_eq!(read.encode().unwrap(), bytes);
        let mut state = read.state;
        tail.iter().for_each(|event| state.apply(event));
        prop_assert_eq!(state, RunState::fold(RUN, &log));
    }

    #[test]
    fn a_chain_of_snapshots_plus_tail_equals_full_replay(
        log in arbitrary::log(0..120),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        // A log holds a fact once; what an earlier snapshot says of a loop relies on it.
        let mut facts = std::collections::HashSet::new();
        let log: Vec<Event> =
            log.into_iter().filter(|event| facts.insert(event.dedupe_key().to_string())).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(log.len() + 1)).collect();
        cuts.sort_unstable();
        let (mut live, mut held, mut at) = (RunState::new(RUN), Held::default(), 0);
        let mut read: Option<RunState> = None;
        for cut in cuts {
            log[at..cut].iter().for_each(|event| live.apply(event));
            let part = RunSnapshot {
                base: None,
                state: live.since(&held),
                through: EventIndex(cut as u64),
                workflow_hash: WorkflowHash(Digest::of(b"plan")),
            };
            let part = RunSnapshot::decode(&part.encode().unwrap()).unwrap().state;
            let whole = match read.take() {
                Some(base) => part.onto(base),
                None => part,
            };
            prop_assert_eq!(&whole, &live);
            (read, held, at) = (Some(whole), live.held(), cut);
        }
        let mut state = read.unwrap();
        log[at..].iter().for_each(|event| state.apply(event));
        prop_assert_eq!(state, RunState::fold(RUN, &log));
    }

    #[test]
    fn any_order_of_events_is_taken(log in arbitrary::log(0..40).prop_shuffle()) {
        let session = SessionView::fold(&log);
        let state = RunState::fold(RUN, &log);
        prop_assert!(canonical::to_vec(&state).is_ok());
        let _ = state.status();
        for run in [0, 1].map(RunId::from_bits) {
            let _ = session.status(run, |_| false);
        }
        let dag = RunDag::fold(RUN, &log);
        for node in (0..6).map(NodeId::from_bits) {
            let _ = session.preferences.at(&dag, node);
            let _ = session.contexts.at(&dag, node);
            for budget in [0, 1, 20, 80] {
                prop_assert!(recap(&dag, &session.outputs, node, budget).text.len() <= budget);
            }
        }
        prop_assert!(rank(&Query::default(), session.candidates()).offers.len() <= 5);
    }

    #[test]
    fn events_of_other_runs_change_nothing(log in arbitrary::log(0..60)) {
        let own: Vec<Event> =
            log.iter().filter(|event| event.scope.run() == Some(RUN)).cloned().collect();
        prop_assert_eq!(RunState::fold(RUN, &own), RunState::fold(RUN, &log));
        prop_assert_eq!(RunDag::fold(RUN, &own), RunDag::fold(RUN, &log));
    }

    #[test]
    fn an_ended_run_owes_nothing(log in arbitrary::log(0..60)) {
        let mut state = RunState::new(RUN);
        for event in &log {
            let ended = state.end.clone();
            state.apply(event);
            prop_assert!(ended.is_none() || state.end == ended, "an end is final");
            if state.end.is_none() {
                continue;
            }
            prop_assert!(state.steps.values().all(|step| step.status.is_final()));
            prop_assert!(state.loops.keys().all(|key| state.steps.contains_key(key)));
            prop_assert!(state.children.is_empty() && state.tasks.is_empty());
            prop_assert!(state.timers.is_empty());
        }
    }
}
