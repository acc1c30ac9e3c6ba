//! A run goes on with the values that its log holds, not with those that came.

use cairn_core::canonical;
use cairn_core::flow::{Command, Outcome};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::play::{NoSecrets, Play, graph};

const NODES: &str = "
    { id: a, type: transform, template: hi, next: b }
    { id: b, type: log, message: 'got {{ steps.a.n }} and {{ event.payload }}' }
";

/// What the second step is given when the first gives `n`: live, and after a crash.
fn seen(n: &Value) -> (Value, Value) {
    let mut play = Play::new(graph(NODES), json!([n]));
    play.start();
    let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
    let result = Ok(Outcome { output: json!({"n": n}), case: None, usage: None });
    play.tell(Command::Complete { instance: a, result, duration_ms: 1 }).unwrap();
    let live = play.run.settings(&play.graph, &b, &NoSecrets).unwrap();
    play.crash();
    let replayed = play.run.settings(&play.graph, &b, &NoSecrets).unwrap();
    (live, replayed)
}

#[test]
fn an_integral_double_reads_the_same_before_and_after_a_crash() {
    for (n, wanted) in [
        (json!(600.0), "got 600 and [600]"),
        (json!(-0.0), "got 0 and [0]"),
        (json!(0.5), "got 0.5 and [0.5]"),
        (json!(7), "got 7 and [7]"),
    ] {
        let (live, replayed) = seen(&n);
        assert_eq!(live, json!({"message": wanted}), "{n}");
        assert_eq!(replayed, live, "{n}");
    }
}

proptest! {
    #[test]
    fn whatever_number_comes_live_equals_replay(n in any::<f64>()) {
        let n = json!(n);
        prop_assume!(canonical::check(&n, 1).is_ok());
        let (live, replayed) = seen(&n);
        prop_assert_eq!(live, replayed);
    }
}
