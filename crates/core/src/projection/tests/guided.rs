use insta::assert_snapshot;
use serde_json::Value;

use super::play;
use crate::event::guided::{Capability, OutputChannel};
use crate::id::{EventIndex, NodeId, RunId, SessionId};
use crate::projection::capabilities::Capabilities;
use crate::projection::context::Contexts;
use crate::projection::dag::RunDag;
use crate::projection::gaps::Gaps;
use crate::projection::outputs::Outputs;
use crate::projection::preferences::PreferencesSet;
use crate::projection::recap::recap;
use crate::projection::resume::{Candidate, Query, rank, tokens};
use crate::projection::session::SessionView;
use crate::projection::timeline::Timeline;

const RUN: RunId = RunId::from_bits(1);
const FORK: &str = "node 1; node 2 of 1; node 3 of 1; node 4 of 2";

fn node(number: u128) -> NodeId {
    NodeId::from_bits(number)
}

mod outputs {
    use super::*;

    fn check(script: &str) -> String {
        let outputs = Outputs::fold(&play(script));
        let standing = outputs.standing(node(1)).count();
        format!("{:?}, {standing} of {}", outputs.notes(node(1)), outputs.history(node(1)).len())
    }

    #[test]
    fn the_latest_that_stands_is_current() {
        assert_snapshot!(check("note 1 a"), @r#"Some("a"), 1 of 1"#);
        assert_snapshot!(check("note 1 a; note 1 b"), @r#"Some("b"), 2 of 2"#);
        assert_snapshot!(check("note 1 a; correct 1 0 b"), @r#"Some("b"), 1 of 2"#);
        assert_snapshot!(check("note 1 a; note 1 b; correct 1 0 c; correct 1 2 d"), @r#"Some("d"), 2 of 4"#);
    }

    #[test]
    fn a_correction_stays_in_its_node_and_channel() {
        assert_snapshot!(check("note 1 a; correct 2 0 b"), @r#"Some("a"), 1 of 1"#);
        let script = "artifact 1; correct 1 0 b";
        assert_snapshot!(check(script), @r#"Some("b"), 2 of 2"#);
        let outputs = Outputs::fold(&play(script));
        assert!(outputs.current(node(1), OutputChannel::Artifact).is_some());
    }
}

mod gaps {
    use super::*;

    fn check(script: &str) -> Vec<u128> {
        Gaps::fold(&play(script)).of_run(RUN).map(|gap| gap.id.bits()).collect()
    }

    #[test]
    fn a_later_record_closes_a_gap() {
        assert_eq!(check("gap 1 5; gap 2 6"), [5, 6]);
        assert_eq!(check("gap 1 5; gap 2 6; close 2 5"), [6]);
        assert_eq!(check("close 2 5; gap 1 5"), [5]);
    }
}

mod status {
    use super::*;

    fn check(script: &str, complete: bool) -> &'static str {
        let session = SessionView::fold(&play(script));
        session.status(RUN, |_| complete).unwrap().name()
    }

    #[test]
    fn the_tip_decides() {
        assert_eq!(check("node 1", false), "in_progress");
        assert_eq!(check("node 1", true), "complete");
        assert_eq!(check("node 1; gap 1 5", true), "complete_with_gaps");
        assert_eq!(check("node 1; gap 1 5; node 2 of 1", true), "complete_with_gaps");
        assert_eq!(check("node 1; gap 1 5; close 1 5", true), "complete");
        assert_eq!(check("node 1; gap 1 5", false), "blocked");
        assert_eq!(check("node 1; gap 1 5; node 2 of 1", false), "in_progress");
        assert_eq!(check("node 1; oddity 1 5", false), "in_progress");
        assert_eq!(check("node 1; oddity 1 5", true), "complete_with_gaps");
    }

    #[test]
    fn a_run_that_never_stops_is_never_blocked() {
        assert_eq!(
            check("node 1; never-stop 1; node 2 of 1; gap 2 5; blocked 2", false),
            "in_progress"
        );
        assert_eq!(check("node 1; never-stop 1; guided 1; gap 1 5", false), "blocked");
    }

    #[test]
    fn a_blocked_attempt_blocks_until_the_node_is_left() {
        assert_eq!(check("node 1; blocked 1", false), "blocked");
        assert_eq!(check("node 1; blocked 1; node 2 of 1; advanced 1 2", false), "in_progress");
    }
}

mod preferences {
    use super::*;

    fn check(script: &str, at: u128) -> String {
        let events = play(script);
        let dag = RunDag::fold(RUN, &events);
        format!("{:?}", PreferencesSet::fold(&events).at(&dag, node(at)).autonomy)
    }

    #[test]
    fn the_nearest_on_the_path_holds() {
        assert_eq!(check(FORK, 4), "Guided");
        assert_eq!(check(&format!("{FORK}; never-stop 1"), 4), "FullAutoNeverStop");
        assert_eq!(check(&format!("{FORK}; guided 2; never-stop 1"), 4), "Guided");
        assert_eq!(check(&format!("{FORK}; never-stop 3"), 4), "Guided");
        assert_eq!(check(&format!("{FORK}; never-stop 3"), 3), "FullAutoNeverStop");
    }
}

mod context {
    use super::*;

    fn check(script: &str, at: u128) -> String {
        let events = play(script);
        let dag = RunDag::fold(RUN, &events);
        Value::Object(Contexts::fold(&events).at(&dag, node(at))).to_string()
    }

    #[test]
    fn a_path_sees_its_own_changes_only() {
        let script = format!("initial a=1 b=1; {FORK}; context 2 b=2 c=2; context 3 b=3 d=3");
        assert_snapshot!(check(&script, 1), @r#"{"a":"1","b":"1"}"#);
        assert_snapshot!(check(&script, 4), @r#"{"a":"1","b":"2","c":"2"}"#);
        assert_snapshot!(check(&script, 3), @r#"{"a":"1","b":"3","d":"3"}"#);
    }

    #[test]
    fn null_removes() {
        assert_snapshot!(check("initial a=1 b=1; node 1; context 1 a= b=2; context 1 a=3 c=", 1), @r#"{"a":"3","b":"2"}"#);
    }
}

mod capabilities {
    use super::*;

    #[test]
    fn the_latest_at_the_node_holds() {
        let seen = Capabilities::fold(&play("available 1; unavailable 1; available 2"));
        let check = |at| format!("{:?}", seen.at(node(at), Capability::Delegation));
        assert_snapshot!(check(1), @"Some(Observed { status: Unavailable, grade: Weak, index: EventIndex(1) })");
        assert_snapshot!(check(2), @"Some(Observed { status: Available, grade: Weak, index: EventIndex(2) })");
        assert_snapshot!(check(3), @"None");
    }
}

mod recaps {
    use super::*;

    const WORK: &str = "node 1; note 1 one; node 2 of 1; note 2 two; node 3 of 1; note 3 aside; node 4 of 2; node 5 of 4; note 5 three";

    fn check(budget: usize) -> String {
        let events = play(WORK);
        let dag = RunDag::fold(RUN, &events);
        let recap = recap(&dag, &Outputs::fold(&events), node(5), budget);
        assert!(recap.text.len() <= budget);
        assert_eq!(recap.is_truncated(), recap.omitted > 0);
        format!("{} omitted: {}", recap.omitted, recap.text.replace('\n', "|"))
    }

    #[test]
    fn the_latest_entries_that_fit_are_kept_in_order() {
        assert_snapshot!(check(15), @"0 omitted: one||two||three");
        assert_snapshot!(check(14), @"2 omitted: [||[TRUNCATED]");
        assert_snapshot!(check(70), @"0 omitted: one||two||three");
    }

    #[test]
    fn a_small_budget_still_says_that_it_is_truncated() {
        let long = "a".repeat(90);
        let events = play(&format!("node 1; note 1 {long}; node 2 of 1; note 2 {long}"));
        let dag = RunDag::fold(RUN, &events);
        let check =
            |budget| recap(&dag, &Outputs::fold(&events), node(2), budget).text.replace('\n', "|");
        assert_snapshot!(check(182), @"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa||aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_snapshot!(check(150), @"[TRUNCATED] 1 earlier entry left out, the latest kept||aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_snapshot!(check(100), @"[TRUNCATED] 1 earlier entry left out, the latest kept||aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa||[TRUNCATED]");
        assert_snapshot!(check(20), @"[TRUNCA||[TRUNCATED]");
    }
}

mod resuming {
    use super::*;

    fn candidate(number: u128, last_activity: u64) -> Candidate {
        Candidate {
            session: SessionId::from_bits(number),
            run: RUN,
            tip: node(1),
            branch: false,
            finished: false,
            last_ms: 0,
            last_activity: EventIndex(last_activity),
            git_head_sha: None,
            git_branch: None,
            goal: None,
            notes: None,
            texts: Vec::new(),
            context: Vec::new(),
            workflow_id: "project.triage".into(),
            workflow_name: Some("Issue Triage".into()),
        }
    }

    fn check(query: &Query, candidates: Vec<Candidate>) -> String {
        let line = |offer: crate::projection::resume::Offer| {
            let why: Vec<&str> = offer.why.iter().map(|why| why.name()).collect();
            format!("{} {}\n", offer.candidate.session.bits(), why.join(" "))
        };
        rank(query, candidates).offers.into_iter().map(line).collect()
    }

    fn asked(sha: &str, branch: &str, text: &str) -> Query {
        let given = |text: &str| Some(text.to_owned());
        Query { git_head_sha: given(sha), git_branch: given(branch), text: given(text) }
    }

    #[test]
    fn a_better_layer_beats_any_recency() {
        let some = |text: &str| Some(text.to_owned());
        let candidates = vec![
            candidate(1, 99),
            Candidate {
                notes: some("fixed the login bug"),
                workflow_id: "x.y".into(),
                workflow_name: None,
                ..candidate(2, 50)
            },
            Candidate { git_branch: some("feature/login-2"), ..candidate(3, 40) },
            Candidate { git_head_sha: some("abc"), ..candidate(4, 1) },
            Candidate { git_head_sha: some("abcd"), git_branch: some("main"), ..candidate(5, 30) },
        ];
        assert_snapshot!(check(&asked("abc", "feature/login", "login bug"), candidates.clone()), @r"
        4 matched_head_sha
        3 matched_branch
        2 matched_notes
        ");
        assert_snapshot!(check(&asked("", "", "TRIAGE issue"), candidates.clone()), @r"
        1 matched_workflow_id
        3 matched_workflow_id
        5 matched_workflow_id
        4 matched_workflow_id
        ");
        assert_snapshot!(check(&asked("", "", " ?! "), candidates), @r"
        1 recency_fallback
        2 recency_fallback
        3 recency_fallback
        5 recency_fallback
        4 recency_fallback
        ");
    }

    #[test]
    fn within_a_layer_what_goes_on_comes_first_and_then_what_moved_last() {
        let moved = |number, last_ms, finished| Candidate {
            last_ms,
            finished,
            // The older the run, the longer its log.
            ..candidate(number, 1000 - last_ms)
        };
        let candidates = vec![
            moved(1, 10, false),
            moved(2, 30, true),
            moved(3, 20, false),
            Candidate { last_activity: EventIndex(999), ..moved(4, 20, false) },
            Candidate { git_head_sha: Some("abc".into()), ..moved(5, 1, true) },
        ];
        assert_snapshot!(check(&asked("abc", "", ""), candidates), @r"
        5 matched_head_sha
        4 recency_fallback
        3 recency_fallback
        1 recency_fallback
        2 recency_fallback
        ");
    }

    #[test]
    fn earlier_notes_are_the_last_layer_of_words() {
        use crate::projection::resume::{WORDS_MAX, searchable};
        let earlier = |number, notes: &[&str]| Candidate {
            texts: searchable(notes.iter().copied()),
            ..candidate(number, 1)
        };
        let notes = Some("The empty cart is done.".into());
        let candidates = vec![
            earlier(1, &["Fixed it.", "An EMPTY\ncart cannot be paid for."]),
            earlier(2, &["The cart"]),
            Candidate { notes, ..earlier(3, &["The empty cart is done."]) },
            Candidate { workflow_name: Some("Empty cart".into()), ..candidate(4, 1) },
        ];
        assert_snapshot!(check(&asked("", "", "empty cart"), candidates), @r"
        3 matched_notes
        1 matched_earlier_notes
        4 matched_workflow_id
        ");
        let many: Vec<String> = (0..9000).map(|number| format!("w{number}")).collect();
        let texts = searchable(["b a b", &many.join(" "), "never"]);
        let bytes: usize = texts.iter().map(String::len).sum();
        assert!(texts[0] == " b a b " && texts.len() == 2 && bytes <= WORDS_MAX, "{bytes}");
        assert_eq!(searchable([format!("x{}", crate::text::TRUNCATED).as_str(), "?"]), [" x "]);
    }

    #[test]
    fn words_that_stand_together_beat_any_recency() {
        use crate::projection::resume::searchable;
        let noted = |number, last, notes: &[&str]| Candidate {
            notes: notes.first().map(|text| (*text).to_owned()),
            texts: searchable(notes.iter().copied()),
            ..candidate(number, last)
        };
        let candidates = vec![
            noted(1, 1, &["Built it.", "Version: 1.3.1, from the tag."]),
            noted(2, 9, &["Version: 2.0.0. 1 of 3 checks failed."]),
            noted(3, 8, &["The version is out.", "Ran 3 checks.", "Fixed 1 bug."]),
            noted(4, 99, &["Nothing."]),
        ];
        assert_snapshot!(check(&asked("", "", "Version: 1.3.1"), candidates), @r"
        1 matched_earlier_notes
        2 matched_notes
        3 matched_earlier_notes
        ");
    }

    #[test]
    fn a_goal_is_searched_and_a_branch_is_offered_for_its_words_alone() {
        use crate::projection::resume::searchable;
        let goal = Some("Make the checkout faster".to_owned());
        let branch = Candidate {
            branch: true,
            tip: node(2),
            texts: searchable(["Tried a cache."]),
            ..candidate(2, 50)
        };
        let candidates = vec![Candidate { goal, ..candidate(1, 1) }, branch, candidate(3, 9)];
        assert_snapshot!(check(&asked("", "", "faster checkout"), candidates.clone()), @"1 matched_goal");
        assert_snapshot!(check(&asked("", "", "cache"), candidates), @"2 matched_earlier_notes");
    }

    #[test]
    fn ties_go_to_the_first_session_and_five_are_offered() {
        let candidates = (1..=7).rev().map(|number| candidate(number, 8)).collect();
        assert_snapshot!(check(&Query::default(), candidates), @r"
        1 recency_fallback
        2 recency_fallback
        3 recency_fallback
        4 recency_fallback
        5 recency_fallback
        ");
    }

    #[test]
    fn words_of_several_fields_together_count_below_those_of_one() {
        let some = |text: &str| Some(text.to_owned());
        let goal = |text: &str, number| Candidate {
            goal: some(text),
            workflow_id: "x.release".into(),
            workflow_name: None,
            ..candidate(number, u64::try_from(number).unwrap())
        };
        let context = Candidate {
            context: vec![" version tiny-stats release ".into()],
            workflow_id: "x.y".into(),
            workflow_name: None,
            ..candidate(3, 1)
        };
        let found = vec![
            goal("Ship tiny-stats", 1),
            goal("The release of tiny-stats", 2),
            context,
            goal("Nothing of it", 4),
        ];
        assert_snapshot!(check(&asked("", "", "release tiny-stats"), found.clone()), @r"
        2 matched_goal
        3 matched_context
        1 matched_together
        ");
        // Whatever is found is found by the words that the index is asked with.
        for candidate in &found {
            let all = candidate.words().join(" ");
            let has = |word: &str| all.contains(&format!(" {word} "));
            let offered = candidate.session.bits() != 4;
            assert_eq!(["release", "tiny-stats"].iter().all(|word| has(word)), offered);
        }
    }

    #[test]
    fn a_branch_that_is_not_over_is_offered_when_the_newest_is() {
        let branch =
            |finished| Candidate { tip: node(2), branch: true, finished, ..candidate(1, 1) };
        let whole = |finished| Candidate { finished, ..candidate(1, 9) };
        let offered = |all: Vec<Candidate>| rank(&Query::default(), all).offers.len();
        assert_eq!(offered(vec![whole(true), branch(false)]), 2);
        assert_eq!(offered(vec![whole(true), branch(true)]), 1);
        assert_eq!(offered(vec![whole(false), branch(false)]), 1);
    }

    #[test]
    fn how_many_more_there_are_is_told() {
        let many = (0..11).map(|number| candidate(number, 1)).collect::<Vec<_>>();
        let found = rank(&Query::default(), many);
        assert_eq!((found.offers.len(), found.more), (5, 6));
    }

    #[test]
    fn words_are_normalised() {
        let words = |text| tokens(text).into_iter().collect::<Vec<_>>().join(" ");
        assert_snapshot!(words("Ｆix the LOGIN-bug_2 (ﬁnally)!"), @"finally fix login-bug_2 the");
        assert_snapshot!(words("naïve Kelvin: \u{212a}"), @"k kelvin na ve");
        assert_snapshot!(words(""), @"");
    }

    #[test]
    fn the_truncation_marker_is_not_searched() {
        let notes = |text: String| Candidate { notes: Some(text), ..candidate(1, 1) };
        let cut = notes(format!("alpha{}", crate::text::TRUNCATED));
        assert_snapshot!(check(&asked("", "", "alpha"), vec![cut.clone()]), @"1 matched_notes");
        assert_snapshot!(check(&asked("", "", "truncated"), vec![cut]), @"1 recency_fallback");
        let long = rank(&Query::default(), vec![notes("ä".repeat(2000))]).offers;
        assert_eq!(long[0].snippet.len(), 2047);
        assert!(long[0].snippet.ends_with(crate::text::TRUNCATED));
    }
}

mod overview {
    use super::*;

    const WORK: &str = "branch main; started project.triage; node 1; note 1 done; branch dev";

    #[test]
    fn a_session_tells_of_its_runs() {
        let session = SessionView::fold(&play(WORK));
        let run = &session.runs[&RUN];
        let told = format!(
            "{} {:?} {} nodes, {} events, last {}, {:?}; {:?}",
            run.kind(),
            run.workflow_id,
            run.nodes,
            run.events,
            run.last_index,
            run.times,
            session.observations,
        );
        assert_snapshot!(told, @r#"guided Some("project.triage") 1 nodes, 3 events, last 3, Times { first_ms: 1700000000001, last_ms: 1700000000003 }; {GitBranch: Observation { value: ShortString("dev"), confidence: High, index: EventIndex(4) }}"#);
        let candidate = session.candidates().next().unwrap();
        assert_eq!(candidate.git_branch.as_deref(), Some("dev"));
        assert_eq!(candidate.notes.as_deref(), Some("done"));
        assert_eq!(candidate.last_activity, EventIndex(3));
    }

    #[test]
    fn a_timeline_reads_as_sentences() {
        let script = format!(
            "{WORK}; blocked 1; context 1 a=1; gap 1 5; close 1 5; never-stop 1; node 2 of 1; edge 1 2; available 2"
        );
        let timeline = Timeline::fold(&play(&script));
        let line = |entry: &crate::projection::timeline::Entry| {
            format!("{} {} {}\n", entry.index, entry.at_ms, entry.text)
        };
        assert_snapshot!(timeline.entries().iter().map(line).collect::<String>(), @r"
        0 1700000000000 observed git_branch `main`
        1 1700000000001 run of `project.triage` started
        2 1700000000002 reached a step
        3 1700000000003 noted `done`
        4 1700000000004 observed git_branch `dev`
        5 1700000000005 blocked: `ask the user`
        6 1700000000006 context given: 1 key
        7 1700000000007 disclosed a gap: `missing`
        8 1700000000008 closed gap_00000000000000000000000005
        9 1700000000009 changed autonomy
        10 1700000000010 reached a step
        11 1700000000011 went on to node_00000000000000000000000002
        12 1700000000012 found delegation available
        ");
        assert_eq!(timeline.of_run(RUN).count(), timeline.entries().len() - 2);
    }
}
