use super::*;

const CONDITIONS: &str = "conditions:
- {conditionId: more, kind: loop_control}
- {conditionId: other, kind: artifact_contract, contractRef: wr.contracts.gate_verdict, loopId: gate}
- {conditionId: open, kind: context_variable, condition: {var: open, gt: 0}}
";

/// What keeps a loop going that is written with these fields, or what is wrong with it.
fn looped(fields: &str) -> String {
    let text = format!(
        "id: project.a\nname: A\ndescription: A.\n{CONDITIONS}steps:\n- type: loop\n  title: L\n  {fields}\n  body:\n  - {{id: b, title: B, prompt: B, outputContract: {{contractRef: wr.contracts.loop_control}}}}\n"
    );
    match compile(SourceKind::Project, &text) {
        Err(found) => lines(&found),
        Ok(Compiled { plan, warnings }) => {
            let found = &plan.loops[0];
            let repeat = serde_json::to_string(&found.repeat).unwrap();
            let conditions = serde_json::to_string(&plan.conditions).unwrap();
            let max = found.max_iterations;
            let told = format!("{} {max} {repeat} {conditions} {}", found.id, lines(&warnings));
            told.trim_end().to_owned()
        }
    }
}

fn told(list: &[&str]) -> String {
    list.iter().map(|fields| looped(fields)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_loop_can_refer_to_a_condition() {
    assert_snapshot!(told(&[
        "loopId: l\n  maxIterations: 3\n  while: {kind: condition_ref, conditionId: more}",
        "id: l\n  loopId: rounds\n  maxIterations: 3\n  while: {kind: condition_ref, conditionId: more}",
        "loopId: l\n  maxIterations: 3\n  while: {kind: condition_ref, conditionId: other}",
        "loopId: l\n  maxIterations: 3\n  while: {kind: condition_ref, conditionId: open}",
    ]), @r#"
    l 3 {"kind":"until_decision","contractRef":"wr.contracts.loop_control"} []
    l 3 {"kind":"until_decision","contractRef":"wr.contracts.loop_control","decisionId":"rounds"} []
    l 3 {"kind":"until_decision","contractRef":"wr.contracts.gate_verdict","decisionId":"gate"} [] w.yaml:9:3: warning[loop_without_decision] /steps/0: no step of this loop gives an output under `wr.contracts.gate_verdict`; add `outputContract` to the step that decides
    l 3 {"kind":"while","conditionId":"l.loop"} [{"config":{"gt":0,"var":"open"},"id":"l.loop","type":"context"}] w.yaml:7:58: warning[loop_context_controlled] /conditions/2/condition: the context decides whether this loop goes on, so a forgotten variable ends it; let a step decide under `wr.contracts.loop_control`, and name that in `conditionSource`; or look at the outcome of a `run` step of the loop
    "#);
}

#[test]
fn mistakes_in_a_reference_are_told() {
    assert_snapshot!(told(&[
        "loopId: l\n  while: {kind: condition_ref, conditionId: more}",
        "loopId: l\n  maxIterations: 3\n  while: {kind: condition_ref, conditionId: moore}",
        "loopId: l\n  maxIterations: 3\n  while: {kind: condition, conditionId: more}",
        "loopId: l\n  maxIterations: 3\n  while: {kind: condition_ref, conditionId: more}\n  loop: {type: for, count: 1, maxIterations: 1}",
        "id: l\n  loopId: m\n  maxIterations: 3\n  loop: {type: for, count: 1, maxIterations: 1}",
    ]), @r"
    w.yaml:9:3: error[missing_field] /steps/0: the field `maxIterations` is missing
    w.yaml:13:45: error[unknown_name] /steps/0/while/conditionId: there is no condition `moore`; did you mean `more`?
    w.yaml:13:17: error[unknown_value] /steps/0/while/kind: `condition` is not one of `condition_ref`; did you mean `condition_ref`?
    w.yaml:14:9: error[conflict] /steps/0/loop: the loop has both `loop` and `while`; keep one of them
    w.yaml:12:11: error[conflict] /steps/0/loopId: `loopId` stands beside `while`, and there is none; put it into `loop`, or add `while`
    w.yaml:13:18: error[conflict] /steps/0/maxIterations: `maxIterations` stands beside `while`, and there is none; put it into `loop`, or add `while`
    ");
    let head = "id: project.a\nname: A\ndescription: A.\n";
    let steps = "steps:\n- {id: a, title: A, prompt: A}\n";
    let defined = |list: &str| {
        let text = format!("{head}conditions: {list}\n{steps}");
        lines(&compile(SourceKind::Project, &text).unwrap_err())
    };
    assert_snapshot!([
        "[{kind: loop_control}]",
        "[{conditionId: a, kind: loop}]",
        "[{id: a, kind: loop_control}, {id: a, kind: loop_control, loopId: b}]",
        "[{id: a, kind: context_variable, condition: {gt: 1}}]",
    ].map(defined).join("\n"), @r"
    w.yaml:4:14: error[missing_field] /conditions/0: the field `conditionId` is missing
    w.yaml:4:37: error[unknown_value] /conditions/0/kind: `loop` is not one of `loop_control`, `artifact_contract`, `context_variable`; did you mean `loop_control`?
    w.yaml:4:48: error[duplicate_id] /conditions/1/id: `a` names two conditions
    w.yaml:4:62: error[missing_field] /conditions/0/condition/gt: `gt` compares a variable, and `var` names none
    ");
}
