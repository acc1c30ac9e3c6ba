use insta::assert_snapshot;

use super::*;
use crate::digest::Digest;
use crate::id::RunId;

fn plan() -> WorkflowHash {
    WorkflowHash(Digest::of(b"plan"))
}

fn frame(loop_id: &str, iteration: u32) -> LoopFrame {
    LoopFrame { body_index: 0, iteration, loop_id: loop_id.parse().unwrap() }
}

fn done(keys: &[&str]) -> Completed {
    keys.iter().map(|key| key.parse().unwrap()).collect()
}

fn running(
    keys: &[&str],
    stack: &[LoopFrame],
    pending: Option<&str>,
) -> Result<EngineState, Invalid> {
    let pending = pending.map(|step| step.parse().unwrap());
    Running::new(done(keys), stack.to_vec(), pending).map(EngineState::Running)
}

/// The bytes of a snapshot and its name, after a way there and back.
fn check(state: EngineState) -> String {
    let snapshot = ExecutionSnapshot { state, workflow_hash: plan() };
    let bytes = snapshot.encode().unwrap();
    assert_eq!(ExecutionSnapshot::decode(&bytes).as_ref(), Ok(&snapshot));
    format!("{}\n{}", String::from_utf8_lossy(&bytes), snapshot.reference().unwrap())
}

fn refused(from: &str, to: &str) -> String {
    let stack = [frame("outer", 0), frame("inner", 2)];
    let state = running(&["intake", "outer@0::plan"], &stack, Some("triage")).unwrap();
    let text = check(state).replace(from, to);
    let bytes = text.lines().next().unwrap().as_bytes();
    Snapshot::decode(bytes).unwrap_err().to_string()
}

#[test]
fn the_three_states_are_pinned() {
    assert_snapshot!(check(EngineState::Init), @r#"
    {"enginePayload":{"engineState":{"kind":"init"},"v":1},"kind":"execution_snapshot","v":1,"workflowHash":"sha256:64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525"}
    sha256:150793855fee6303632146ec3378dd1734139e6599fc09aae2c67aafb9a47fac
    "#);
    let stack = [frame("outer", 0), frame("inner", 2)];
    let under_way = running(&["outer@0::plan", "intake"], &stack, Some("triage")).unwrap();
    assert_snapshot!(check(under_way), @r#"
    {"enginePayload":{"engineState":{"completed":{"kind":"set","values":["intake","outer@0::plan"]},"kind":"running","loopStack":[{"bodyIndex":0,"iteration":0,"loopId":"outer"},{"bodyIndex":0,"iteration":2,"loopId":"inner"}],"pending":{"kind":"some","step":{"loopPath":[{"iteration":0,"loopId":"outer"},{"iteration":2,"loopId":"inner"}],"stepId":"triage"}}},"v":1},"kind":"execution_snapshot","v":1,"workflowHash":"sha256:64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525"}
    sha256:30d664b1f31ee2a5d8e4aba101901f9a28e88f5be73337e14ac9c734b5bd3bd5
    "#);
    assert_snapshot!(check(running(&["a"], &[], None).unwrap()), @r#"
    {"enginePayload":{"engineState":{"completed":{"kind":"set","values":["a"]},"kind":"running","loopStack":[],"pending":{"kind":"none"}},"v":1},"kind":"execution_snapshot","v":1,"workflowHash":"sha256:64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525"}
    sha256:3ca16d91085e7f2c70ec7194daee81711c7dcb1f054bdafa502a24be8e354252
    "#);
    assert_snapshot!(check(EngineState::Complete { completed: done(&["b", "a", "a"]) }), @r#"
    {"enginePayload":{"engineState":{"completed":{"kind":"set","values":["a","b"]},"kind":"complete"},"v":1},"kind":"execution_snapshot","v":1,"workflowHash":"sha256:64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525"}
    sha256:1d3f65b957307e07d04eb72ae68d39eac8ed70e446f43650f08e710e571f22e6
    "#);
}

#[test]
fn impossible_states_are_refused() {
    let twice = running(&[], &[frame("a", 0), frame("b", 0), frame("a", 1)], None);
    assert_snapshot!(twice.unwrap_err(), @"the loop `a` stands twice in the loop stack");
    let again = running(&["a@1::step"], &[frame("a", 1)], Some("step"));
    assert_snapshot!(again.unwrap_err(), @"the pending step `a@1::step` is already completed");
    assert!(running(&["a@0::step"], &[frame("a", 1)], Some("step")).is_ok());
}

#[test]
fn a_file_with_an_impossible_state_is_refused() {
    let elsewhere = r#""loopPath":[{"iteration":0,"loopId":"outer"}]"#;
    let path = r#""loopPath":[{"iteration":0,"loopId":"outer"},{"iteration":2,"loopId":"inner"}]"#;
    assert_snapshot!(refused(path, elsewhere), @"the snapshot's state is impossible: the loop path of the pending step `triage` is not the loop stack");
    let (sorted, unsorted) = (r#"["intake","outer@0::plan"]"#, r#"["outer@0::plan","intake"]"#);
    assert_snapshot!(refused(sorted, unsorted), @"the snapshot's state is impossible: completed steps must stand in order, each once");
    assert_snapshot!(refused(sorted, r#"["intake","intake"]"#), @"the snapshot's state is impossible: completed steps must stand in order, each once");
}

#[test]
fn unknown_versions_kinds_and_members_are_told_apart() {
    assert_snapshot!(refused(r#""v":1,"workflowHash""#, r#""v":2,"workflowHash""#), @"the snapshot is of version 2; this program reads version 1");
    assert_snapshot!(refused(r#""v":1},"kind""#, r#""v":7},"kind""#), @"the snapshot is of version 7; this program reads version 1");
    assert_snapshot!(refused("execution_snapshot", "photograph"), @"`photograph` is not a kind of snapshot that this program knows");
    assert_snapshot!(refused(r#""kind":"running""#, r#""kind":"running","mood":"good""#), @"not a snapshot: unknown field `mood`, expected one of `completed`, `decisions`, `loopStack`, `pending`");
    assert_snapshot!(refused(r#""stepId":"triage""#, r#""stepId":"triage","stepId":"a""#), @"not a snapshot: the key `stepId` stands twice in one object");
    assert_snapshot!(refused(r#""v":1,"workflowHash""#, r#""workflowHash""#), @"not a snapshot: it has no version");
}

#[test]
fn a_run_snapshot_is_pinned() {
    let state = RunState::new(RunId::from_bits(1));
    let (base, through) = (None, EventIndex(41));
    let snapshot = RunSnapshot { base, state, through, workflow_hash: plan() };
    let bytes = snapshot.encode().unwrap();
    assert_snapshot!(String::from_utf8_lossy(&bytes), @r#"{"kind":"run_snapshot","state":{"cancelRequested":false,"children":{},"events":0,"loops":{},"paused":false,"reached":0,"retired":false,"runId":"run_00000000000000000000000001","steps":{},"tasks":{},"timers":{}},"through":41,"v":1,"workflowHash":"sha256:64879f7d6b960a01909762d911a32d4582c20010c5641ee90278b644a9e3b525"}"#);
    assert_snapshot!(snapshot.reference().unwrap(), @"sha256:751c7b7ff3330d358a0a30e913d9f8cfa88bb164d2179e48b61777ff62964db9");
    assert_eq!(Snapshot::decode(&bytes), Ok(Snapshot::Run(Box::new(snapshot))));
    assert!(ExecutionSnapshot::decode(&bytes).is_err());
}
