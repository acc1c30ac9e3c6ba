use cairn_core::plan::{Action, Prompt};

use super::*;

fn prompt(plan: &Plan, id: &str) -> Prompt {
    let step = plan.steps.iter().find(|step| step.id.as_str() == id).unwrap();
    match &step.action {
        Action::Prompt(prompt) => (**prompt).clone(),
        Action::Typed { .. } => panic!("{id} is no prompt"),
    }
}

fn json<T: serde::Serialize>(value: &T) -> String {
    String::from_utf8(cairn_core::canonical::to_vec(value).unwrap()).unwrap()
}

#[test]
fn blocks_are_rendered_in_one_order_with_what_is_taken_in() {
    let plan = prompt(&everything().plan, "plan");
    assert_snapshot!(plan.text, @r"
    ## Goal
    Decide what to change first.

    ## Constraints
    - Your notes for this step are what lasts. Write them so that somebody who sees nothing else of this conversation can go on: what was found, what was decided and why, what is still open. Files you create are companions to the notes, not a substitute.
    - Small steps.
    - With tools for long-term memory, look up earlier decisions first, and keep what a later run needs.
    - Hand out work with your own tool for subagents, never by starting a run; what is independent, in one go.
    - A subagent sees nothing of this run: its instructions hold all it needs.
    - What a subagent reports is evidence; check it, and conclude yourself.

    ## Procedure
    1. Order the findings.
    2. Hand the order to wr.review. Every claim names what it rests on: a file and line, a command and its output, or a quoted passage. A claim without that is marked as an assumption.

    ## Output required, in your notes
    - order: The findings in order.

    ## Verify
    - Nothing is left out.
    - Each claim of a subagent's that you rely on was checked at its source.

    For the statistics:
    - Keep the commits you make in the context key `metrics_commit_shas`, a list that grows.
    ");
    let injected: Vec<&str> =
        plan.injected.iter().map(|injected| injected.r#ref.as_str()).collect();
    assert_snapshot!(injected.join(" "), @"wr.refs.notes_first_durability wr.features.memory_context wr.features.subagent_guidance wr.features.subagent_guidance wr.features.subagent_guidance wr.refs.evidence_before_claims wr.features.subagent_guidance wr.metrics");
    assert_snapshot!(json(&plan.fragments), @r#"[{"condition":"plan.fragment.quick","id":"quick","text":"Keep it short."},{"id":"always","text":"Write in full sentences."}]"#);
    assert_snapshot!(plan.requirements.join("\n"), @r#"
    Give an artifact of kind `wr.discovery_handoff` (wr.contracts.discovery_handoff): what was found out, for whoever goes on from here.
    Its fields: `selectedDirection` (text) the direction that was chosen; `designDocPath` (text) where it is written down; `confidenceBand` (high | medium | low) how sure you are; `keyInvariants` (list of texts) something that must stay true; `rejectedDirections` (list of {`direction` (text) a direction; `reason` (text) why not}, optional) what was not chosen; `implementationConstraints` (list of texts, optional) something the builder must respect; `keyCodebaseLocations` (list of {`path` (text) a path; `relevance` (text) why it matters}, optional) where to look; `selectionTier` (text, optional) how the direction was chosen; `version` (whole number, optional) the version of this shape: 1.
    For example `{"confidenceBand":"high","designDocPath":"<where it is written down>","keyInvariants":["<something that must stay true>"],"kind":"wr.discovery_handoff","selectedDirection":"<the direction that was chosen>"}`.
    At most ten lines.
    "#);
}

#[test]
fn a_plain_prompt_carries_its_guidance_and_its_checks() {
    let gather = prompt(&everything().plan, "gather");
    assert_snapshot!(gather.text, @r"
    Read {{repository.path}} and list what must change.

    Guidance:
    - Begin with {{entry}}.
    - Ask the user for the files you need.

    For the statistics:
    - Keep the commits you make in the context key `metrics_commit_shas`, a list that grows.
    ");
    assert_snapshot!(gather.requirements.join("\n"), @r"
    Number the findings (your notes match the pattern `Finding \d+`, in upper or lower case)
    Be thorough (your notes have 20 to 4000 characters)
    At least one of: Give reasons (your notes contain `because`) / Not: Leave nothing open (your notes contain `TODO`)
    ");
    assert_snapshot!(json(&gather.check), @r#"{"checks":[{"flags":"i","kind":"regex","message":"Number the findings","pattern":"Finding \\d+"},{"kind":"length","max":4000,"message":"Be thorough","min":20},{"checks":[{"kind":"contains","message":"Give reasons","value":"because"},{"check":{"condition":"gather.check.4","kind":"contains","message":"Leave nothing open","value":"TODO"},"kind":"not"}],"kind":"any"}],"kind":"all"}"#);
    assert_eq!(gather.functions, ["grade()"]);
}

#[test]
fn notes_can_be_held_to_a_schema() {
    let checked = |schema: &str| {
        let rule = format!("{{type: schema, schema: {schema}, message: Answer in JSON}}");
        with_steps(&format!("- {{id: a, title: A, prompt: A, validationCriteria: [{rule}]}}"))
    };
    let plan = checked("{type: object, required: [b, a], properties: {a: {type: [string, 'null']}, b: {type: array, items: {type: integer, minimum: 0}, maxItems: 3}, c: {}}, additionalProperties: false}").unwrap();
    let a = prompt(&plan, "a");
    assert_snapshot!(json(&a.check), @r#"{"checks":[{"kind":"schema","message":"Answer in JSON","schema":{"additionalProperties":false,"properties":{"a":{"type":["null","string"]},"b":{"items":{"minimum":0,"type":"integer"},"maxItems":3,"type":"array"},"c":{}},"required":["a","b"],"type":"object"}}],"kind":"all"}"#);
    assert_snapshot!(a.requirements.join("\n"), @r#"Answer in JSON (your notes are JSON of the schema `{"additionalProperties":false,"properties":{"a":{"type":["null","string"]},"b":{"items":{"minimum":0,"type":"integer"},"maxItems":3,"type":"array"},"c":{}},"required":["a","b"],"type":"object"}`)"#);
    let told = [
        "{}",
        "[]",
        "{typ: object}",
        "{type: text}",
        "{type: []}",
        "{type: object, properties: [a]}",
        "{type: object, properties: {a: {pattern: '('}}}",
        "{enum: []}",
        "{minimum: low}",
        "{$ref: '#'}",
    ];
    let told: Vec<String> = told.into_iter().map(|one| checked(one).unwrap_err()).collect();
    assert_snapshot!(told.join("\n"), @r"
    w.yaml:5:76: error[invalid_value] /steps/0/validationCriteria/0/schema: the schema asks for nothing; say at least the `type`
    w.yaml:5:76: error[wrong_type] /steps/0/validationCriteria/0/schema: a map should stand here, not a list
    w.yaml:5:77: error[unknown_field] /steps/0/validationCriteria/0/schema/typ: the field `typ` is not known here; did you mean `type`?
    w.yaml:5:83: error[unknown_value] /steps/0/validationCriteria/0/schema/type: `text` is not one of `array`, `boolean`, `integer`, `null`, `number`, `object`, `string`
    w.yaml:5:83: error[invalid_value] /steps/0/validationCriteria/0/schema/type: the list of types is empty
    w.yaml:5:103: error[wrong_type] /steps/0/validationCriteria/0/schema/properties: a map should stand here, not a list
    w.yaml:5:117: error[invalid_value] /steps/0/validationCriteria/0/schema/properties/a/pattern: this is not a pattern; patterns have no look-around and no back-references
    w.yaml:5:83: error[invalid_value] /steps/0/validationCriteria/0/schema/enum: the list of values is empty
    w.yaml:5:86: error[wrong_type] /steps/0/validationCriteria/0/schema/minimum: a number should stand here
    w.yaml:5:77: error[unknown_field] /steps/0/validationCriteria/0/schema/$ref: the field `$ref` is not known here; known are `additionalProperties`, `const`, `description`, `enum`, `items`, `maxItems`, `maxLength`, `maximum`, `minItems`, `minLength`, `minimum`, `pattern`, `properties`, `required`, `title`, `type`
    ");
}

#[test]
fn functions_are_found_from_the_step_outwards() {
    let plan = everything().plan;
    assert_snapshot!(json(&plan.functions), @r#"[{"definition":"Run the whole suite.","name":"test()","scope":{"kind":"loop","loopId":"build"}},{"definition":"Give a grade from 1 to 5.\n- what (string): What is graded\n- scale (number, optional); one of [5,10]; 5 by default","name":"grade()","scope":{"kind":"workflow"}}]"#);
    assert_eq!(prompt(&plan, "change").functions, ["test()", "grade()"]);
    assert_snapshot!(prompt(&plan, "change").text, @r#"
    Make the next change.

    Guidance:
    - Apply `grade(what = "the change")`.

    For the statistics:
    - Keep the commits you make in the context key `metrics_commit_shas`, a list that grows.
    "#);
}

#[test]
fn assessments_say_what_is_asked_and_what_follows() {
    let finish = prompt(&everything().plan, "finish");
    assert_snapshot!(finish.requirements.join("\n"), @r#"
    You may give an artifact of kind `wr.coding_handoff` (wr.contracts.coding_handoff): what was built, for whoever goes on from here.
    Its fields: `keyDecisions` (list of texts) a decision and its reason; `knownLimitations` (list of texts) something left undone; `testsAdded` (list of texts) a test; `filesChanged` (list of texts) a path; `branchName` (text, optional) the branch it is on; `correctedAssumptions` (list of {`assumed` (text) what was assumed; `actual` (text) what turned out to be so}, optional) what turned out to be otherwise; `version` (whole number, optional) the version of this shape: 1.
    For example `{"filesChanged":["<a path>"],"keyDecisions":["<a decision and its reason>"],"kind":"wr.coding_handoff","knownLimitations":["<something left undone>"],"testsAdded":["<a test>"]}`.
    Give an artifact of kind `wr.assessment` with assessmentId `readiness` (Whether it can be handed over.) and in `dimensions` a level for each of: `evidence` (low | high) Each claim names its source.; `style` (low | medium | high, optional) It reads well.; for example `{"assessmentId":"readiness","dimensions":{"evidence":"low","style":"low"},"kind":"wr.assessment"}`.
    "#);
    assert_snapshot!(json(&finish.consequences), @r#"[{"assessment":"readiness","guidance":"Name the sources.","level":"low"}]"#);
}

#[test]
fn some_choices_are_the_users() {
    let step = |list: &str| {
        with_steps(&format!("- {{id: a, title: A, prompt: A, nonAssumableChoices: {list}}}"))
    };
    let plan = step("[scope_boundary, preference_tradeoff]").unwrap();
    assert_eq!(plan.contracts[0].r#ref, "wr.contracts.user_dependency");
    assert_snapshot!(json(&plan.steps[0].action), @r#"{"functions":[],"injected":[],"kind":"prompt","nonAssumableChoices":["preference_tradeoff","scope_boundary"],"requirements":["Some choices in this step are the user's and not yours to assume: which of several good things matters more (`preference_tradeoff`); what belongs to the task and what not (`scope_boundary`). When you come to one, ask; if you cannot, give an artifact of kind `wr.user_dependency` with dependency `needs_user_choice`, the choiceKind, and in `summary` the options with what speaks for each."],"text":"A"}"#);
    let told = ["[]", "[scope]", "[scope_boundary, scope_boundary]", "scope_boundary"];
    let told: Vec<String> = told.into_iter().map(|list| step(list).unwrap_err()).collect();
    assert_snapshot!(told.join("\n"), @r"
    w.yaml:5:53: error[invalid_value] /steps/0/nonAssumableChoices: the list of choices is empty; leave it out
    w.yaml:5:54: error[unknown_value] /steps/0/nonAssumableChoices/0: `scope` is not one of `preference_tradeoff`, `scope_boundary`, `irreversible_action`, `external_side_effect`, `policy_or_compliance`; did you mean `scope_boundary`?
    w.yaml:5:70: error[duplicate_id] /steps/0/nonAssumableChoices/1: `scope_boundary` stands in the list twice
    w.yaml:5:53: error[wrong_type] /steps/0/nonAssumableChoices: a list should stand here, not text
    ");
}

#[test]
fn a_required_capability_is_probed_first() {
    let plan = everything().plan;
    assert_eq!(plan.entry, ["wr_probe_web_browsing".parse().unwrap()]);
    let probe = &plan.steps[0];
    assert_snapshot!(json(&probe.origin), @r#"{"id":"wr.templates.capability_probe","source":"feature_injected"}"#);
    assert_snapshot!(json(&probe.output_contracts), @r#"[{"ref":"wr.contracts.capability_observation","required":true}]"#);
    assert_snapshot!(prompt(&plan, "wr_probe_web_browsing").text, @"Find out whether you can use the capability `web_browsing` here, by the smallest real use of it: for web_browsing fetch one short page, for delegation start one subagent that answers with a word. Report what came of it; do nothing else in this step.");
}

#[test]
fn a_routine_takes_the_place_of_its_call() {
    let plan = everything().plan;
    let write = plan.steps.iter().find(|step| step.id.as_str() == "design.write").unwrap();
    assert_snapshot!(json(write), @r#"{"action":{"agentRole":"You are a designer.","functions":[],"injected":[{"byteLength":86,"ref":"wr.metrics","sha256":"sha256:11915a5487c570e6bacb06ef19dbb0d45b218ba13dee05da00de946549661d88"}],"kind":"prompt","text":"Write `design.md`, not {other}.\n\nFor the statistics:\n- Keep the commits you make in the context key `metrics_commit_shas`, a list that grows."},"condition":"design.write.run","id":"design.write","onFailure":{"kind":"stop"},"onInterrupt":"retry","origin":{"id":"wr.templates.routine.compare","source":"template_injected"},"outputContracts":[],"title":"Write design.md"}"#);
    assert_snapshot!(prompt(&plan, "design.list").text, @r"
    List the candidates.

    In this part of the work:
    - The simplest thing that works is a candidate.

    For the statistics:
    - Keep the commits you make in the context key `metrics_commit_shas`, a list that grows.
    ");
}

#[test]
fn loops_say_what_keeps_them_going() {
    let plan = everything().plan;
    let repeats: Vec<String> = plan
        .loops
        .iter()
        .map(|l| format!("{} {:?} {} {}", l.id, l.body, json(&l.repeat), json(&l.variables)))
        .collect();
    assert_snapshot!(repeats.join("\n"), @r#"
    build ["change", "each-file", "decide"] {"contractRef":"wr.contracts.loop_control","decisionId":"build_loop","kind":"until_decision"} {}
    each-file ["look"] {"items":{"var":"changed.files"},"kind":"each"} {"index":"place","item":"file"}
    search ["look-around"] {"conditionId":"search.loop","kind":"while"} {}
    tries ["attempt"] {"count":3,"kind":"count"} {"iteration":"attempt"}
    "#);
}

#[test]
fn conditions_have_one_operator_at_each_level() {
    let normal = |condition: &str| {
        let step = format!("- {{id: a, title: A, prompt: A, runCondition: {condition}}}");
        with_steps(&step).map(|plan| json(&plan.conditions[0].config)).unwrap_or_else(|e| e)
    };
    let told: Vec<String> = [
        "{var: a}",
        "{var: a.b, equals: null}",
        "{var: a, not_equals: [1, 2]}",
        "{var: a, gt: 1, lte: 5.5}",
        "{var: a, in: [x, y]}",
        "{var: a, contains: x}",
        "{or: [{var: a}, {not: {and: [{var: b}, {var: c}]}}]}",
        "{var: a, equals: 1, not: {var: b}}",
    ]
    .into_iter()
    .map(normal)
    .collect();
    assert_snapshot!(told.join("\n"), @r#"
    {"var":"a"}
    {"equals":null,"var":"a.b"}
    {"not_equals":[1,2],"var":"a"}
    {"and":[{"gt":1,"var":"a"},{"lte":5.5,"var":"a"}]}
    {"in":["x","y"],"var":"a"}
    {"contains":"x","var":"a"}
    {"or":[{"var":"a"},{"not":{"and":[{"var":"b"},{"var":"c"}]}}]}
    {"and":[{"equals":1,"var":"a"},{"not":{"var":"b"}}]}
    "#);
}

#[test]
fn who_must_agree() {
    let asked = |rule: &str| {
        let step = format!("- {{id: a, title: A, prompt: A, requireConfirmation: {rule}}}");
        let plan = with_steps(&step).unwrap();
        format!(
            "{} {}",
            json(&plan.steps[0].require_confirmation),
            json(&plan.conditions.first().map(|c| &c.config))
        )
    };
    let told: Vec<String> = [
        "false",
        "true",
        "{var: risk, equals: high}",
        "{kind: human_approval}",
        "{kind: coordinator_eval, condition: {var: a}}",
    ]
    .into_iter()
    .map(asked)
    .collect();
    assert_snapshot!(told.join("\n"), @r#"
    null null
    {"by":"user"} null
    {"by":"user","condition":"a.confirm"} {"equals":"high","var":"risk"}
    {"by":"human_approval"} null
    {"by":"coordinator_eval","condition":"a.confirm"} {"var":"a"}
    "#);
}

#[test]
fn pieces_of_work_are_fragments() {
    let spread = prompt(&everything().plan, "spread");
    assert_snapshot!(json(&spread.fragments), @r#"[{"condition":"spread.fragment.piece-1","id":"piece-1","text":"- Workflow `wr.review`: Review {{change}}.\n  - with: depth = full\n  - from your context: diff = change\n  - model: heavy\n  - tools: read"}]"#);
}

#[test]
fn what_stands_beside_a_template_call_is_handed_down() {
    let call = "- {id: a, title: A, templateCall: {templateId: wr.templates.gate, args: {subject: it}}, requireConfirmation: true, notesOptional: true, agentRole: A judge., guidance: [Be strict.], audit: {}}";
    let plan = with_steps(call).unwrap();
    let [gate, audit] = plan.steps.as_slice() else { panic!("{:?}", plan.steps) };
    assert!(gate.require_confirmation.is_some());
    let found = prompt(&plan, "a");
    assert!(found.notes_optional && found.agent_role.as_deref() == Some("A judge."));
    assert!(found.text.ends_with("Guidance:\n- Be strict."), "{}", found.text);
    assert_eq!(audit.id.as_str(), "a.audit");
    let wrong = "- {id: a, title: A, prompt: B, templateCall: {templateId: wr.templates.gate, args: {subject: it}}}";
    let told = with_steps(wrong).unwrap_err();
    assert!(told.contains("both `templateCall` and `prompt`"), "{told}");
}

#[test]
fn a_probe_shows_the_capability_that_it_asks_about() {
    let call = "- {id: a, title: A, templateCall: {templateId: wr.templates.capability_probe, args: {capability: web_browsing}}}";
    let found = prompt(&with_steps(call).unwrap(), "a");
    let example = found.requirements.last().unwrap();
    assert!(example.contains("\"capability\":\"web_browsing\""), "{example}");
}

#[test]
fn a_step_declares_the_context_keys_that_it_sets() {
    let step =
        |keys: &str| with_steps(&format!("- {{id: a, title: A, prompt: A, contextKeys: {keys}}}"));
    let plan =
        step("{size: [small, large], trusted: [true, false], ticket: text, x: any}").unwrap();
    let cairn_core::plan::Action::Prompt(prompt) = &plan.steps[0].action else { panic!() };
    let told: Vec<String> =
        prompt.context_keys.iter().map(|key| format!("{} {}", key.name, key.schema.0)).collect();
    assert_eq!(
        told,
        [
            r#"size {"enum":["small","large"]}"#,
            r#"trusted {"enum":[true,false]}"#,
            r#"ticket {"type":"string"}"#,
            "x {}",
        ]
    );
    for wrong in ["{}", "[size]", "{size: []}", "{size: [[a]]}", "{size: words}", "{'a b': text}"] {
        assert!(step(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_pattern_cannot_be_mistaken_for_what_stands_around_it() {
    let told = |pattern: &str, flags: &str| {
        let check = cairn_core::plan::Check::Regex {
            condition: None,
            flags: flags.into(),
            message: "Quote it".into(),
            pattern: pattern.into(),
        };
        check.told()
    };
    assert_eq!(told(r"Finding \d+", ""), r"Quote it (your notes match the pattern `Finding \d+`)");
    assert_eq!(
        told("`[^`]{2,}`", ""),
        "Quote it (your notes match the pattern between the double brackets ⟪`[^`]{2,}`⟫)"
    );
    assert_eq!(told("(?m)done", ""), "Quote it (your notes match the pattern `done`)");
    assert_eq!(
        told("(?sm)^a.*b$", "i"),
        "Quote it (your notes match the pattern `^a.*b$`, in upper or lower case, where `.` is also the end of a line, where `^` and `$` are the ends of any line)"
    );
    assert_eq!(told("(?:a|b)", ""), "Quote it (your notes match the pattern `(?:a|b)`)");
}
