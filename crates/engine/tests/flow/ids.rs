//! A bundle names workflows as they are called here, or it is not taken in.

use cairn_core::id::{RunId, SessionId};
use serde_json::Value;

use crate::forged::{Known, forged};
use crate::recovery::left;
use crate::world::World;

/// Ids that look like another one, or lead somewhere.
const BAD: &[&str] = &[
    "",
    ".",
    "..",
    "../w",
    "project./w",
    "project.../w",
    "project..w",
    "project.w.",
    "project.a.b",
    ".w",
    "project.",
    "WR.quick-task",
    "wr.Quick-Task",
    "Wr.quick-task",
    "wr.quick\u{ad}-task",
    "wr.quick-task\u{200b}",
    "\u{feff}wr.quick-task",
    "\u{ff57}r.quick-task",
    "wr\u{2024}quick-task",
    "wr.qu\u{456}ck-task",
    "wr.quick\u{2010}task",
    "wr.quick-task\0",
    "wr.quick-task\n",
    "wr.quick-\u{1b}[2Jtask",
    "wr.\u{202e}ksat-kciuq",
    " wr.quick-task",
    "wr.quick-task ",
    "wr/quick-task",
    "wr\\quick-task",
    "wr.quick%2dtask",
    "/etc/passwd",
    "C:w",
];

fn known(run: RunId) -> Known {
    let session = SessionId::from_bits(1);
    Known { session, desk: session, run, over: run, file: String::new() }
}

// case: bundle.names
#[tokio::test]
async fn a_bundle_that_names_a_workflow_otherwise_is_refused() {
    let nodes = "{ id: a, type: log, message: hold }";
    let (liar, there) = (World::new(&[("w", nodes)]), World::new(&[("w", nodes)]));
    let run = left(&liar, "w").await;
    let engine = there.engine();
    for id in BAD {
        for kind in ["run_queued", "run_started"] {
            let lie = |events: &mut Vec<Value>, _: &Known| {
                let named = events.iter_mut().filter(|event| event["kind"] == kind);
                named.for_each(|event| event["data"]["workflowId"] = (*id).into());
            };
            // An empty id is no event to begin with.
            let Some(bytes) = forged(&liar, run, &known(run), lie).await else {
                assert!(id.is_empty(), "{id:?} in {kind} cannot be told");
                continue;
            };
            let refused = engine.import(&bytes, "ada").await.unwrap_err();
            assert_eq!(refused.code(), "BUNDLE_INVALID_FORMAT", "{id:?} in {kind}: {refused}");
            let told = refused.to_string();
            assert!(!told.chars().any(cairn_core::text::acts), "{id:?}: {told:?}");
        }
    }
    for id in ["project.w", "wr.quick-task", "w-2_x", "repo.a-b_c9"] {
        let lie = |events: &mut Vec<Value>, _: &Known| {
            let named = events.iter_mut().filter(|event| event["data"]["workflowId"].is_string());
            named.for_each(|event| event["data"]["workflowId"] = id.into());
        };
        let bytes = forged(&liar, run, &known(run), lie).await.unwrap();
        engine.import(&bytes, "ada").await.unwrap();
    }
}
