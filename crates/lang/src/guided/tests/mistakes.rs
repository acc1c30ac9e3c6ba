use super::*;

/// The diagnostics of a workflow in which one piece of `everything.yaml` is another.
fn changed(from: &str, to: &str) -> String {
    assert!(EVERYTHING.contains(from), "{from}");
    match compile(SourceKind::Bundled, &EVERYTHING.replacen(from, to, 1)) {
        Ok(_) => format!("{to} compiles"),
        Err(found) => {
            let errors: Vec<_> = found.into_iter().filter(|d| !is_warning(d)).collect();
            lines(&errors)
        }
    }
}

#[test]
fn each_mistake_is_told_with_its_line_and_the_right_name() {
    let told: Vec<String> = [
        ("name: Everything", "nam: Everything"),
        ("name: Everything", "name: 3"),
        ("id: wr.everything", "id: Wr.Everything"),
        ("recommendedAutonomy: guided", "recommendedAutonomy: guidet"),
        ("[wr.features.subagent_guidance", "[wr.features.subagents_guidance"),
        ("web_browsing: required", "web_browsin: required"),
        ("web_browsing: required", "web_browsing: must"),
        ("metricsProfile: coding", "metricsProfile: code"),
        ("authoritative: true", "authoritative: maybe"),
        ("id: gather", "id: Gather It"),
        ("id: gather", "id: plan"),
        ("    title: Gather\n", ""),
        ("prompt: |\n      Read", "promt: |\n      Read"),
        ("{{repository.path}}", "{{wr.refs.notes}}"),
        ("functionReferences: [grade()]", "functionReferences: [grad()]"),
        ("pattern: 'Finding \\d+'", "pattern: 'Finding (\\d+'"),
        ("flags: i", "flags: x"),
        ("{type: length, min: 20, max: 4000,", "{type: length, min: 20, max: 10,"),
        ("{type: length, min: 20, max: 4000,", "{type: length,"),
        ("{type: contains, value: 'because',", "{type: contain, value: 'because',"),
        ("{type: contains, value: 'because',", "{type: schema, schema: {},"),
        ("refId: wr.refs.notes_first_durability", "refId: wr.refs.note_first_durability"),
        ("{{wr.bindings.reviewer}}", "{{wr.bindings.reviewr}}"),
        ("{var: findings, gte: 1}", "{var: findings, gte: one}"),
        ("{var: findings, gte: 1}", "{gte: 1}"),
        ("{var: findings, gte: 1}", "{}"),
        ("{var: mode, in: [quick, rush]}", "{var: mode, in: quick}"),
        ("{var: mode, in: [quick, rush]}", "{var: mode, oneOf: [quick, rush]}"),
        ("{or: [{var: mode, equals: skip}, {var: tags, contains: trivial}]}", "{or: []}"),
        ("{id: quick, when", "{id: Quick, when"),
        ("contractRef: wr.contracts.discovery_handoff", "contractRef: wr.contracts.discovery"),
        ("templateId: wr.templates.gate,", "templateId: wr.templates.gates,"),
        ("args: {subject: the plan}", "args: {subjekt: the plan}"),
        ("wr.templates.routine.compare", "wr.templates.routine.compere"),
        ("      type: while\n", "      type: whilst\n"),
        ("      maxIterations: 5\n", ""),
        ("maxIterations: 20}", "maxIterations: 0}"),
        ("kind: artifact_contract,", "kind: artefact_contract,"),
        (
            "contractRef: wr.contracts.loop_control, loopId",
            "contractRef: wr.contracts.loop, loopId",
        ),
        ("items: changed.files,", ""),
        ("items: changed.files,", "items: changed files,"),
        ("count: 3,", "count: -1,"),
        ("count: 3,", "count: 4,"),
        ("body: attempt", "body: atempt"),
        ("{type: until, condition: {var: found, equals: true},", "{type: until,"),
        ("workflowId: wr.review", "workflow: wr.review"),
        ("assessmentRefs: [readiness]", "assessmentRefs: [rediness]"),
        ("anyEqualsLevel: low,", "anyEqualsLevel: lo,"),
        ("kind: require_followup", "kind: retry"),
        ("kind: human_approval", "kind: approval"),
        ("levels: [low, high]", "levels: [low]"),
        (
            "    prompt: Hand it over.",
            "    prompt: Hand it over.\n    promptBlocks: {goal: Twice.}",
        ),
        ("    prompt: Hand it over.", "    prompt: Hand it over.\n    audit: {rubrik: [a]}"),
        ("    prompt: Hand it over.", "    prompt: Hand it over.\n    verification: {}"),
        (
            "    prompt: Hand it over.",
            "    prompt: Hand it over.\n    verification: {command: 'test {{x}}'}",
        ),
        ("    prompt: Hand it over.", "    prompt: ''"),
        ("    prompt: Hand it over.", ""),
        ("    prompt: Hand it over.", "    prompt: Hand it over.\n    title: Again"),
    ]
    .into_iter()
    .map(|(from, to)| changed(from, to))
    .collect();
    assert_snapshot!(told.join("\n"), @r#"
    w.yaml:2:1: error[unknown_field] /nam: the field `nam` is not known here; did you mean `name`?
    w.yaml:2:7: error[wrong_type] /name: text should stand here, not a number
    w.yaml:1:5: error[invalid_id] /id: a workflow id is `namespace.name`: lower-case letters, digits, `_` and `-`, each part beginning with a letter, at most 64 characters; such as `wr.everything`
    w.yaml:13:24: error[unknown_value] /recommendedPreferences/recommendedAutonomy: `guidet` is not one of `guided`, `full_auto_stop_on_user_deps`, `full_auto_never_stop`; did you mean `guided`?
    w.yaml:15:12: error[unknown_name] /features/0: there is no feature `wr.features.subagents_guidance`; did you mean `wr.features.subagent_guidance`?
    w.yaml:17:16: error[unknown_name] /capabilities/web_browsin: there is no capability `web_browsin`; did you mean `web_browsing`?
    w.yaml:17:17: error[unknown_value] /capabilities/web_browsing: `must` is not one of `required`, `preferred`, `disabled`
    w.yaml:19:17: error[unknown_value] /metricsProfile: `code` is not one of `coding`, `review`, `research`, `design`, `ticket`, `none`
    w.yaml:24:91: error[wrong_type] /references/0/authoritative: true or false should stand here, not text
    w.yaml:38:9: error[invalid_id] /steps/0/id: `Gather It` cannot be the id of a step: use a-z, 0-9, `_` and `-`; such as `gather-it`
    w.yaml:55:9: error[duplicate_id] /steps/1/id: `plan` is already the id of the step in line 38; give each step an id of its own
    w.yaml:38:5: error[missing_field] /steps/0: the field `title` is missing
    w.yaml:38:5: error[missing_field] /steps/0: the step says nothing to do; add `prompt`, `promptBlocks`, `run` or `templateCall`
    w.yaml:40:5: error[unknown_field] /steps/0/promt: the field `promt` is not known here; did you mean `prompt`?
    w.yaml:41:7: error[unsupported] /steps/0/prompt: `{{wr.refs.notes}}` cannot stand in a text; take texts in by `{kind: ref, refId: …}` in `promptBlocks`
    w.yaml:46:26: error[unknown_name] /steps/0/functionReferences/0: there is no function `grad()`; did you mean `grade()`?
    w.yaml:50:34: error[invalid_value] /steps/0/validationCriteria/and/0/pattern: not a pattern: unclosed group; patterns have no look-around and no back-references
    w.yaml:50:56: error[unknown_value] /steps/0/validationCriteria/and/0/flags: `x` are not flags; there are `i`, `m`, `s` and `u`
    w.yaml:51:11: error[invalid_value] /steps/0/validationCriteria/and/1: `min` is more than `max`
    w.yaml:51:11: error[missing_field] /steps/0/validationCriteria/and/1: `length` needs `min`, `max` or both
    w.yaml:53:22: error[unknown_value] /steps/0/validationCriteria/and/2/or/0/type: `contain` is not one of `contains`, `regex`, `length`, `schema`; did you mean `contains`?
    w.yaml:53:38: error[invalid_value] /steps/0/validationCriteria/and/2/or/0/schema: the schema asks for nothing; say at least the `type`
    w.yaml:60:32: error[unknown_name] /steps/1/promptBlocks/constraints/0/0/refId: there is no ref `wr.refs.note_first_durability`; did you mean `wr.refs.notes_first_durability`?
    w.yaml:64:32: error[unknown_name] /steps/1/promptBlocks/procedure/1/0/text: there is no extension point `reviewr`; did you mean `reviewer`?
    w.yaml:73:32: error[wrong_type] /steps/1/runCondition/and/0/gte: `gte` compares with a number
    w.yaml:73:17: error[missing_field] /steps/1/runCondition/and/0/gte: `gte` compares a variable, and `var` names none
    w.yaml:73:11: error[invalid_value] /steps/1/runCondition/and/0: the condition says nothing; write `{"var": "name", "equals": true}`, or `and`, `or`, `not`
    w.yaml:69:43: error[wrong_type] /steps/1/promptFragments/0/when/in: `in` compares with a list
    w.yaml:69:39: error[unknown_field] /steps/1/promptFragments/0/when/oneOf: the field `oneOf` is not known here; known are `var`, `equals`, `not_equals`, `gt`, `gte`, `lt`, `lte`, `in`, `contains`, `and`, `or`, `not`
    w.yaml:74:21: error[invalid_value] /steps/1/runCondition/and/1/not/or: the list of conditions is empty
    w.yaml:69:9: error[invalid_id] /steps/1/promptFragments/0: `Quick` cannot name a fragment; such as `quick`
    w.yaml:76:27: error[unknown_name] /steps/1/output/contractRef: there is no contract `wr.contracts.discovery`; did you mean `wr.contracts.discovery_handoff`?
    w.yaml:79:32: error[unknown_name] /steps/2/templateCall/templateId: there is no template `wr.templates.gates`; did you mean `wr.templates.gate`?
    w.yaml:79:19: error[missing_field] /steps/2/templateCall: the template needs the argument `subject`; add it to `args`
    w.yaml:79:67: error[unknown_name] /steps/2/templateCall/args/subjekt: there is no argument `subjekt`; did you mean `subject`?
    w.yaml:84:19: error[unknown_name] /steps/3/templateCall/templateId: there is no routine `compere`; did you mean `compare`?
    w.yaml:90:13: error[unknown_value] /steps/4/loop/type: `whilst` is not one of `while`, `until`, `for`, `forEach`; did you mean `while`?
    w.yaml:90:7: error[missing_field] /steps/4/loop: the field `maxIterations` is missing
    w.yaml:106:100: error[invalid_value] /steps/4/body/1/loop/maxIterations: a whole number from 1 to 1000 is needed
    w.yaml:92:31: error[unknown_value] /steps/4/loop/conditionSource/kind: `artefact_contract` is not one of `artifact_contract`, `context_variable`; did you mean `artifact_contract`?
    w.yaml:92:63: error[unknown_name] /steps/4/loop/conditionSource/contractRef: there is no contract `wr.contracts.loop`; did you mean `wr.contracts.loop_control`?
    w.yaml:106:15: error[missing_field] /steps/4/body/1/loop: the field `items` is missing
    w.yaml:106:38: error[invalid_value] /steps/4/body/1/loop/items: `changed files` is not the name of a variable; a name is of letters, digits, `_` and `-`; dots lead into a value
    w.yaml:116:30: error[invalid_value] /steps/5/loop/count: a whole number from 0 to 1000 is needed
    w.yaml:116:30: error[conflict] /steps/5/loop/count: the loop has 4 turns, and `maxIterations` allows 3; make them agree: the higher of the two is meant
    w.yaml:117:11: error[unknown_name] /steps/5/body: there is no other step `atempt`; did you mean `attempt`?
    w.yaml:122:11: error[missing_field] /steps/7/loop: nothing says how long the loop goes on; add `conditionSource` with `kind: artifact_contract` and `contractRef: wr.contracts.loop_control`
    w.yaml:129:9: error[unknown_field] /steps/8/parallelDelegations/0/workflow: the field `workflow` is not known here; did you mean `workflowId`?
    w.yaml:140:22: error[unknown_name] /steps/9/assessmentRefs/0: there is no assessment `rediness`; did you mean `readiness`?
    w.yaml:142:52: error[unknown_name] /steps/9/assessmentConsequences/0/when/forAssessment: there is no assessment of this step `readiness`
    w.yaml:142:32: error[unknown_name] /steps/9/assessmentConsequences/0/when/anyEqualsLevel: there is no level `lo`; did you mean `low`?
    w.yaml:143:24: error[unknown_value] /steps/9/assessmentConsequences/0/effect/kind: `retry` is not one of `require_followup`
    w.yaml:145:13: error[unknown_value] /steps/9/requireConfirmation/kind: `approval` is not one of `human_approval`, `coordinator_eval`
    w.yaml:35:71: error[invalid_value] /assessments/0/dimensions/0/levels: a dimension has at least two levels, each once
    w.yaml:139:19: error[conflict] /steps/9/promptBlocks: the step has both `prompt` and `promptBlocks`; keep one of them
    w.yaml:139:13: error[unknown_field] /steps/9/audit/rubrik: the field `rubrik` is not known here; did you mean `rubric`?
    w.yaml:139:19: error[missing_field] /steps/9/verification: nothing says how to verify; add `command`, `prompt` or both
    w.yaml:139:29: error[unsupported] /steps/9/verification/command: `{{…}}` cannot stand in a command: what a run brings is data, not program text; hand the value over in `env` or `stdin`, and write `"$NAME"` here
    w.yaml:138:13: error[invalid_value] /steps/9/prompt: this must not be empty
    w.yaml:136:5: error[missing_field] /steps/9: the step says nothing to do; add `prompt`, `promptBlocks`, `run` or `templateCall`
    w.yaml:139:5: error[duplicate_key]: `title` stands twice in one map, first in line 137; keep one of the two
    "#);
}

#[test]
fn mistakes_are_told_together() {
    let text = "- {id: a, titel: A, prompt: A}\n- {id: a, title: B}\n- {id: c, title: C, prompt: C, outputContract: {contractRef: x}}";
    assert_snapshot!(with_steps(text).unwrap_err(), @r"
    w.yaml:5:11: error[unknown_field] /steps/0/titel: the field `titel` is not known here; did you mean `title`?
    w.yaml:6:3: error[missing_field] /steps/1: the step says nothing to do; add `prompt`, `promptBlocks`, `run` or `templateCall`
    w.yaml:6:8: error[duplicate_id] /steps/1/id: `a` is already the id of the step in line 5; give each step an id of its own
    w.yaml:7:62: error[unknown_name] /steps/2/outputContract/contractRef: there is no contract `x`; known are `wr.contracts.assessment`, `wr.contracts.capability_observation`, `wr.contracts.coding_handoff`, `wr.contracts.discovery_handoff`, `wr.contracts.gap_resolution`, `wr.contracts.gate_verdict`, `wr.contracts.loop_control`, `wr.contracts.review_verdict`, `wr.contracts.shaping_handoff`, `wr.contracts.user_dependency`, `wr.contracts.workflow_divergence`
    ");
}

#[test]
fn reserved_ids_need_a_bundled_source() {
    let found = compile(SourceKind::Project, EVERYTHING).unwrap_err();
    assert_snapshot!(lines(&found[..1]), @"w.yaml:1:5: error[reserved_id] /id: ids that begin with `wr.` are reserved for bundled workflows; rename it to `project.everything`, or declare its directory as bundled (CAIRN_BUNDLED)");
}

#[test]
fn a_step_is_the_body_of_one_loop_at_most() {
    let looped = |id: &str, body: &str| {
        format!(
            "- {{id: {id}, type: loop, title: L, loop: {{type: for, count: 2, maxIterations: 2}}, body: {body}}}\n"
        )
    };
    let step = "- {id: work, title: W, prompt: W}";
    let twice = format!("{}{}{step}", looped("a", "work"), looped("b", "work"));
    assert_snapshot!(with_steps(&twice).unwrap_err(), @"w.yaml:6:86: error[conflict] /steps/1/body: the step `work` is already the body of another loop; give each loop a step of its own");
    let itself = format!("{}{step}", looped("a", "a"));
    assert_snapshot!(with_steps(&itself).unwrap_err(), @"w.yaml:5:86: error[unknown_name] /steps/0/body: there is no other step `a`");
    let circle = format!("{}{}{step}", looped("a", "b"), looped("b", "a"));
    assert_snapshot!(with_steps(&circle).unwrap_err(), @"w.yaml:1:1: error[invalid_value]: `a` stands in more than one loop, or in itself");
}

#[test]
fn what_is_worth_a_look_is_a_warning() {
    let text = "id: old\nname: Old\ndescription: Old.\nfeatures: [wr.features.capabilities]\nsteps:\n- {id: a, title: A, prompt: 'Item {{n + 1}} of {{open', hasValidation: true, validationCriteria: [{type: contains, value: done, message: Say done}]}\n- id: b\n  type: loop\n  title: B\n  loop: {type: while, maxIterations: 2, conditionSource: {kind: artifact_contract, contractRef: wr.contracts.loop_control}}\n  body: [{id: c, title: C, prompt: C}]\n";
    let found = compile(SourceKind::User, text).unwrap().warnings;
    assert_snapshot!(lines(&found), @r"
    w.yaml:1:5: warning[legacy_id] /id: the id `old` has no namespace; rename it, such as to `user.old`
    w.yaml:4:12: warning[feature_without_effect] /features/0: `wr.features.capabilities` goes into `promptBlocks`, and no step has any; write steps with `promptBlocks`, or leave the feature out
    w.yaml:6:29: warning[placeholder_kept] /steps/0/prompt: `{{n + 1}}` stays as it is written, as it is no path into the context; write `{{name}}` or `{{name.part}}`
    w.yaml:6:29: warning[placeholder_kept] /steps/0/prompt: `{{open` stays as it is written, as it is no path into the context; write `{{name}}` or `{{name.part}}`
    w.yaml:6:72: warning[field_ignored] /steps/0/hasValidation: `hasValidation` has no effect; `validationCriteria` alone says what is checked
    w.yaml:6:98: warning[check_gameable] /steps/0/validationCriteria: these checks can be passed by writing a phrase; ask for evidence: a pattern of the result, a length, or an `outputContract`
    w.yaml:7:3: warning[loop_without_decision] /steps/1: no step of this loop gives an output under `wr.contracts.loop_control`; add `outputContract` to the step that decides
    ");
}

#[test]
fn a_mistake_in_the_only_item_is_told_once() {
    let step = "{id: Bad Id, title: A, prompt: A.}";
    assert_snapshot!(with_steps(&format!("- {step}")).unwrap_err(), @"w.yaml:5:8: error[invalid_id] /steps/0/id: `Bad Id` cannot be the id of a step: use a-z, 0-9, `_` and `-`; such as `bad-id`");
    let turn = "loop: {type: for, count: 1, maxIterations: 1}";
    let body = format!("- {{id: l, type: loop, title: L, {turn}, body: [{step}]}}");
    assert_snapshot!(with_steps(&body).unwrap_err(), @"w.yaml:5:92: error[invalid_id] /steps/0/body/0/id: `Bad Id` cannot be the id of a step: use a-z, 0-9, `_` and `-`; such as `bad-id`");
    let listed = changed(
        "    dimensions:\n      - {id: evidence, purpose: Each claim names its source., levels: [low, high]}\n      - {id: style, purpose: It reads well., levels: [low, medium, high], required: false}\n",
        "    dimensions: [evidence]\n",
    );
    let told: Vec<&str> = listed.lines().filter(|line| line.contains("/assessments/")).collect();
    assert_snapshot!(told.join("\n"), @"w.yaml:34:18: error[wrong_type] /assessments/0/dimensions/0: a map should stand here, not text");
}

#[test]
fn patterns_of_checks_are_limited() {
    let step = |patterns: usize| {
        let checks = "{ type: regex, pattern: a, message: x }, ".repeat(patterns);
        let head = "id: project.t\nname: T\ndescription: d\nversion: 1.0.0\nsteps:\n";
        let step = "  - id: s\n    title: t\n    prompt: x\n    validationCriteria: ";
        compile(SourceKind::Project, &format!("{head}{step}[{checks}]\n"))
    };
    assert!(step(100).is_ok());
    let found = lines(&step(101).err().unwrap());
    assert!(found.contains("there are more than 100 patterns"), "{found}");
}
