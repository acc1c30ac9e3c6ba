use super::*;

/// The steps of a workflow, a line each.
fn steps(text: &str) -> String {
    let plan = with_steps(text).unwrap_or_else(|found| panic!("{found}"));
    let line = |step: &Step| {
        let action = serde_json::to_string(&step.action).unwrap();
        let contracts: Vec<&str> =
            step.output_contracts.iter().map(|contract| contract.r#ref.as_str()).collect();
        let condition = step.condition.as_ref().map(Slug::as_str).unwrap_or("always");
        format!("{} ({}) {condition} {contracts:?}\n  {action}", step.id, step.title)
    };
    let order: Vec<String> = plan.edges.iter().map(|e| format!("{}>{}", e.from, e.to)).collect();
    let lines: Vec<String> = plan.steps.iter().map(line).collect();
    format!("{}\n{}", order.join(" "), lines.join("\n"))
}

#[test]
fn a_step_brings_its_verification_and_its_audit_along() {
    assert_snapshot!(steps("- {id: build-it, title: Build, prompt: Build., runCondition: {var: ready}, audit: {rubric: [It is small., It is tested.]}, verification: {command: make test}}\n- {id: next, title: Next, prompt: Next.}"), @r#"
    build-it>build-it.verification build-it.verification>build-it.audit build-it.audit>next
    build-it (Build) build-it.run []
      {"kind":"prompt","functions":[],"injected":[],"text":"Build."}
    build-it.verification (Verify: Build) build-it.run []
      {"kind":"typed","config":{"command":["sh","-c","make test"],"saveAs":"build_it_verification","timeoutMs":60000},"type":"shell"}
    build-it.audit (Audit: Build) build-it.run []
      {"kind":"prompt","functions":[],"injected":[],"text":"Audit what the step `build-it` produced, as somebody who did not make it. Look at the work itself and not at what was said about it, and try to show that it falls short. Report what you find with its evidence; fix only what the task covers.\n\nSay for each of these whether it holds, with the evidence:\n- It is small.\n- It is tested."}
    next (Next) always []
      {"kind":"prompt","functions":[],"injected":[],"text":"Next."}
    "#);
    assert_snapshot!(steps("- {id: a, title: A, prompt: A., audit: {prompt: 'Look at {{file}}.'}, verification: {prompt: Try it.}}"), @r#"
    a>a.verification a.verification>a.audit
    a (A) always []
      {"kind":"prompt","functions":[],"injected":[],"text":"A."}
    a.verification (Verify: A) always []
      {"kind":"prompt","functions":[],"injected":[],"text":"Try it."}
    a.audit (Audit: A) always []
      {"kind":"prompt","functions":[],"injected":[],"text":"Look at {{file}}."}
    "#);
    assert_snapshot!(steps("- {id: a, title: A, prompt: A., verification: {command: make, prompt: Read the log.}}"), @r#"
    a>a.verification a.verification>a.verification.review
    a (A) always []
      {"kind":"prompt","functions":[],"injected":[],"text":"A."}
    a.verification (Verify: A) always []
      {"kind":"typed","config":{"command":["sh","-c","make"],"saveAs":"a_verification","timeoutMs":60000},"type":"shell"}
    a.verification.review (Verify: A) always []
      {"kind":"prompt","functions":[],"injected":[],"text":"A command was run to verify it; what came of it is {{a_verification}}.\n\nRead the log."}
    "#);
}

#[test]
fn handed_out_work_is_put_together() {
    assert_snapshot!(steps("- {id: spread, type: parallel, title: Spread, parallelDelegations: [{workflowId: wr.code-review}], synthesis: {outputContract: {contractRef: wr.contracts.review_verdict}}}"), @r#"
    spread>spread.synthesis
    spread (Spread) always []
      {"kind":"prompt","fragments":[{"id":"piece-1","text":"- Workflow `wr.code-review`"}],"functions":[],"injected":[],"text":"Hand out each of the following pieces of work to a subagent of its own, all in one go, and wait for all of them. Start subagents with your own tool for that; do not start workflow runs in this conversation. If you cannot start subagents, do the pieces yourself, one after the other. Put the results together in your notes."}
    spread.synthesis (Put together: Spread) always ["wr.contracts.review_verdict"]
      {"kind":"prompt","functions":[],"injected":[],"requirements":["Give an artifact of kind `wr.review_verdict` (wr.contracts.review_verdict): the outcome of a review.","Its fields: `verdict` (clean | minor | blocking) the gravest finding decides: blocking when it is critical or major, minor when it is minor, clean when there are only nits or none; `confidence` (high | medium | low) how sure you are; `findings` (list of {`severity` (critical | major | minor | nit) how grave it is; `summary` (text) the finding in a line; `findingCategory` (text, optional) such as correctness, security or testing; `file` (text, optional) where it is; `startLine` (whole number, optional) its first line; `endLine` (whole number, optional) its last line; `causalLink` (text, optional) how the change brought it about; `remediation` (text, optional) the smallest fix}) what was found, or nothing; `summary` (text) the outcome in a sentence.","For example `{\"confidence\":\"high\",\"findings\":[{\"severity\":\"critical\",\"summary\":\"<the finding in a line>\"}],\"kind\":\"wr.review_verdict\",\"summary\":\"<the outcome in a sentence>\",\"verdict\":\"blocking\"}`."],"text":"Put together what the pieces of work brought that were handed out in the step before this one. Check each claim that you rely on against its source, say where the results contradict each other and which evidence decides, and draw the conclusion yourself."}
    "#);
}

#[test]
fn a_loop_by_name_takes_what_follows_along() {
    let plan = with_steps("- {id: l, type: loop, title: L, loop: {type: for, count: 2, maxIterations: 2}, body: a}\n- {id: a, title: A, prompt: A., audit: {}}").unwrap();
    assert_eq!(format!("{:?}", plan.loops[0].body), r#"["a", "a.audit"]"#);
}
