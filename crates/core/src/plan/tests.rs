use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::reason::NonAssumableChoice;

fn step(id: &str, action: Action) -> Step {
    Step {
        action,
        condition: None,
        id: id.parse().unwrap(),
        on_failure: OnFailure::Stop {},
        on_interrupt: OnInterrupt::Retry,
        origin: Origin { id: None, source: StepSource::Authored },
        output_contracts: Vec::new(),
        require_confirmation: None,
        retry: None,
        timeout_ms: None,
        visits_max: None,
        title: id.to_owned(),
    }
}

fn fetch() -> Action {
    let config = StrictValue::new(json!({"url": "https://example.org/issues"}));
    Action::Typed { config, r#type: "http".parse().unwrap() }
}

fn ask() -> Action {
    Action::Prompt(Box::new(Prompt {
        functions: vec!["grade()".into()],
        text: "Grade each issue.".into(),
        ..Prompt::default()
    }))
}

/// A plan with one of almost everything.
fn triage() -> Plan {
    let slug = |text: &str| text.parse::<Slug>().unwrap();
    let mut fetch = step("fetch", fetch());
    fetch.retry = Some(RetryPolicy {
        attempts_max: 3,
        backoff: Backoff::Exponential,
        delay_max_ms: 60_000,
        delay_ms: 1_000,
        errors: Vec::new(),
        jitter: false,
    });
    fetch.on_failure = OnFailure::Fallback { step_id: slug("grade") };
    let mut grade = step("grade", ask());
    grade.output_contracts =
        vec![OutputContract { r#ref: "cairn.contracts.loop_control".into(), required: true }];
    Plan {
        agent_role: None,
        assets: vec![Asset { path: "nodes/grade.md".into(), sha256: Digest::of(b"grade") }],
        based_on: None,
        capabilities: vec![CapabilityNeed {
            capability: Capability::WebBrowsing,
            need: Need::Preferred,
        }],
        conditions: vec![Condition {
            config: StrictValue::new(json!({"expression": "steps.fetch.json | length > 0"})),
            id: slug("any"),
            r#type: slug("expression"),
        }],
        contracts: vec![Contract {
            artifact_kind: None,
            example: None,
            r#ref: "cairn.contracts.loop_control".into(),
            schema: StrictValue::new(json!({"type": "object"})),
        }],
        data_tables: Vec::new(),
        description: "Grades new issues.".into(),
        dialect: Dialect::Graph,
        edges: vec![Edge {
            case: None,
            condition: Some(slug("any")),
            from: slug("fetch"),
            to: slug("each"),
        }],
        entry: vec![slug("fetch")],
        env: Vec::new(),
        features: Vec::new(),
        functions: vec![Function {
            definition: "From 1 to 5.".into(),
            name: "grade()".into(),
            scope: FunctionScope::Workflow {},
        }],
        guide: None,
        loops: vec![Loop {
            body: vec![slug("grade")],
            condition: None,
            id: slug("each"),
            max_iterations: 100,
            repeat: Repeat::Each { items: StrictValue::new(json!("{{ steps.fetch.json }}")) },
            require_confirmation: None,
            title: "each".into(),
            variables: LoopVariables::default(),
            visits_max: None,
        }],
        name: "Triage".into(),
        policy: Policy { concurrency_max: Some(1), ..Policy::default() },
        recommendations: Recommendations { autonomy: Some(Autonomy::Guided), risk_policy: None },
        schema_version: VERSION,
        steps: vec![fetch, grade],
        tags: vec!["issues".into(), "triage".into()],
        triggers: vec![Trigger {
            config: StrictValue::new(json!({"cron": "0 8 * * *"})),
            entry: None,
            id: slug("daily"),
            overflow: None,
            r#type: slug("cron"),
        }],
        version: Some("1.2.0".into()),
        warnings: Vec::new(),
        workflow_id: "project.triage".into(),
    }
}

/// What `check` says of a plan after a change, which `decode` says too.
fn check(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = triage();
    change(&mut plan);
    let error = plan.check().unwrap_err();
    if plan.schema_version == VERSION {
        assert_eq!(Plan::decode(&plan.encode().unwrap()), Err(DecodeError::Invalid(error.clone())));
    }
    error.to_string()
}

#[test]
fn a_plan_is_pinned() {
    let bytes = triage().encode().unwrap();
    assert_snapshot!(String::from_utf8_lossy(&bytes), @r#"{"assets":[{"path":"nodes/grade.md","sha256":"sha256:ffe97bba510b9f5cf1bb187bebb59cefa42a3f1654d2c993654382cd10468c2e"}],"capabilities":[{"capability":"web_browsing","need":"preferred"}],"conditions":[{"config":{"expression":"steps.fetch.json | length > 0"},"id":"any","type":"expression"}],"contracts":[{"ref":"cairn.contracts.loop_control","schema":{"type":"object"}}],"description":"Grades new issues.","dialect":"graph","edges":[{"condition":"any","from":"fetch","to":"each"}],"entry":["fetch"],"env":[],"features":[],"functions":[{"definition":"From 1 to 5.","name":"grade()","scope":{"kind":"workflow"}}],"loops":[{"body":["grade"],"id":"each","maxIterations":100,"repeat":{"items":"{{ steps.fetch.json }}","kind":"each"},"title":"each"}],"name":"Triage","policy":{"concurrencyMax":1},"recommendations":{"autonomy":"guided"},"schemaVersion":1,"steps":[{"action":{"config":{"url":"https://example.org/issues"},"kind":"typed","type":"http"},"id":"fetch","onFailure":{"kind":"fallback","stepId":"grade"},"onInterrupt":"retry","origin":{"source":"authored"},"outputContracts":[],"retry":{"attemptsMax":3,"backoff":"exponential","delayMaxMs":60000,"delayMs":1000},"title":"fetch"},{"action":{"functions":["grade()"],"injected":[],"kind":"prompt","text":"Grade each issue."},"id":"grade","onFailure":{"kind":"stop"},"onInterrupt":"retry","origin":{"source":"authored"},"outputContracts":[{"ref":"cairn.contracts.loop_control","required":true}],"title":"grade"}],"tags":["issues","triage"],"triggers":[{"config":{"cron":"0 8 * * *"},"id":"daily","type":"cron"}],"version":"1.2.0","warnings":[],"workflowId":"project.triage"}"#);
    assert_snapshot!(triage().hash().unwrap(), @"sha256:39cb05c173da66afd95bb3258d728e783994b9f166442d8cb8f8bbe6e4f83e39");
    assert_eq!(Plan::decode(&bytes), Ok(triage()));
    assert_eq!(Plan::from_value(&canonical::parse(&bytes).unwrap()), Ok(triage()));
}

#[test]
fn every_part_of_a_plan_is_in_its_hash() {
    let hash = |change: fn(&mut Plan)| {
        let mut plan = triage();
        change(&mut plan);
        plan.hash().unwrap()
    };
    let hashes = [
        hash(|_| {}),
        hash(|plan| plan.workflow_id.push('x')),
        hash(|plan| plan.steps.reverse()),
        hash(|plan| plan.assets[0].sha256 = Digest::of(b"other")),
        hash(|plan| plan.policy.duration_max_ms = Some(1)),
        hash(|plan| plan.contracts[0].schema = StrictValue::new(json!({"type": "array"}))),
        hash(|plan| plan.functions[0].definition.push('!')),
    ];
    let distinct: std::collections::BTreeSet<_> = hashes.into_iter().collect();
    assert_eq!(distinct.len(), hashes.len());
}

#[test]
fn lists_must_be_in_order() {
    assert_snapshot!(check(|plan| plan.tags.reverse()), @"`tags` must be in order without repetition, and item 1 is not");
    assert_snapshot!(check(|plan| plan.tags = vec!["a".into(), "a".into()]), @"`tags` must be in order without repetition, and item 1 is not");
    assert_snapshot!(check(|plan| plan.assets.push(plan.assets[0].clone())), @"`assets` must be in order without repetition, and item 1 is not");
    assert_snapshot!(check(|plan| plan.functions.push(plan.functions[0].clone())), @"`functions` must be in order without repetition, and item 1 is not");
    let choices = |plan: &mut Plan| {
        let Action::Prompt(prompt) = &mut plan.steps[1].action else { panic!("not a prompt") };
        prompt.non_assumable_choices =
            vec![NonAssumableChoice::ScopeBoundary, NonAssumableChoice::PreferenceTradeoff];
    };
    assert_snapshot!(check(choices), @"`nonAssumableChoices` must be in order without repetition, and item 1 is not");
}

#[test]
fn settings_tables_and_retries_are_read_back() {
    let slug = |text: &str| text.parse::<Slug>().unwrap();
    let mut plan = triage();
    plan.data_tables = vec![DataTable {
        access: TableAccess::ReadWrite,
        name: slug("events"),
        r#ref: slug("processed-events"),
    }];
    plan.env = vec![EnvField {
        columns: Vec::new(),
        default: None,
        description: "Where issues are read".into(),
        hidden: false,
        hosts: vec!["api.example.org".into()],
        locked: true,
        name: "TOKEN".into(),
        options: Vec::new(),
        regenerate: false,
        required: true,
        secret: true,
        source: None,
        r#type: slug("secret"),
        visible_when: Some(VisibleWhen { name: "MODE".into(), value: "live".into() }),
    }];
    let retry = plan.steps[0].retry.as_mut().unwrap();
    (retry.errors, retry.jitter) = (vec![FailureKind::Timeout], true);
    let bytes = plan.encode().unwrap();
    assert_eq!(Plan::decode(&bytes), Ok(plan));
    assert_snapshot!(check(|plan| plan.steps[0].retry.as_mut().unwrap().errors = vec![FailureKind::Timeout, FailureKind::Connection]), @"`errors` must be in order without repetition, and item 1 is not");
}

#[test]
fn names_and_references_must_meet() {
    let slug = |text: &str| text.parse::<Slug>().unwrap();
    assert_snapshot!(check(|plan| plan.steps[0].id = slug("each")), @"`each` is the name of two steps or loops");
    assert_snapshot!(check(|plan| plan.steps[0].id = slug("grade")), @"`grade` is the name of two steps or loops");
    assert_snapshot!(check(|plan| plan.edges[0].to = slug("nowhere")), @"an edge refers to `nowhere`, which the plan does not have");
    assert_snapshot!(check(|plan| plan.contracts.clear()), @"a step refers to `cairn.contracts.loop_control`, which the plan does not have");
    assert_snapshot!(check(|plan| plan.conditions.clear()), @"an edge refers to `any`, which the plan does not have");
    assert_snapshot!(check(|plan| plan.steps.clear()), @"steps must not be empty");
}

#[test]
fn what_a_prompt_refers_to_must_be_there() {
    let slug = |text: &str| text.parse::<Slug>().unwrap();
    let prompt = |change: fn(&mut Prompt)| {
        check(|plan| {
            let Action::Prompt(prompt) = &mut plan.steps[1].action else { panic!("not a prompt") };
            change(prompt);
        })
    };
    assert_snapshot!(prompt(|p| p.assessments.push("ready".into())), @"a step refers to `ready`, which the plan does not have");
    assert_snapshot!(prompt(|p| p.fragments.push(Fragment { condition: Some("quick".parse().unwrap()), id: "f".into(), text: "Be quick.".into() })), @"a fragment refers to `quick`, which the plan does not have");
    assert_snapshot!(prompt(|p| p.check = Some(Check::Not { check: Box::new(Check::Contains { condition: Some("quick".parse().unwrap()), message: "m".into(), value: "v".into() }) })), @"a check refers to `quick`, which the plan does not have");
    assert_snapshot!(check(|plan| plan.steps[0].require_confirmation = Some(Confirmation { by: ConfirmedBy::User, condition: Some(slug("risky")) })), @"a step refers to `risky`, which the plan does not have");
    assert_snapshot!(check(|plan| plan.loops[0].condition = Some(slug("risky"))), @"a loop refers to `risky`, which the plan does not have");
}

#[test]
fn loops_form_a_forest() {
    let slug = |text: &str| text.parse::<Slug>().unwrap();
    assert_snapshot!(check(|plan| plan.loops[0].body.push(slug("each"))), @"`each` stands in more than one loop, or in itself");
    assert_snapshot!(check(|plan| plan.loops[0].body.push(slug("grade"))), @"`grade` stands in more than one loop, or in itself");
    assert_snapshot!(check(|plan| plan.loops[0].max_iterations = 0), @"the loop `each` must be allowed at least one turn");
    let nest = |levels: u32| {
        move |plan: &mut Plan| {
            for level in 0..levels {
                let mut outer = plan.loops[0].clone();
                outer.id = slug(&format!("level-{level:02}"));
                let inner = level.checked_sub(1).map(|n| format!("level-{n:02}"));
                outer.body = vec![slug(inner.as_deref().unwrap_or("each"))];
                plan.loops.push(outer);
            }
        }
    };
    let mut deep = triage();
    nest(15)(&mut deep);
    assert_eq!(deep.check(), Ok(()));
    assert_snapshot!(check(nest(16)), @"loops nest deeper than 16 levels at `each`");
}

#[test]
fn other_versions_members_and_spellings_are_told_apart() {
    let text = String::from_utf8(triage().encode().unwrap()).unwrap();
    let decode = |text: String| Plan::decode(text.as_bytes()).unwrap_err().to_string();
    let newer = text.replace(r#""schemaVersion":1"#, r#""schemaVersion":2,"news":0"#);
    assert_snapshot!(decode(newer), @"the plan is of version 2; this program reads version 1");
    assert_snapshot!(decode(text.replace(r#""tags""#, r#""mood":1,"tags""#)), @"not a plan: unknown field `mood`, expected one of `agentRole`, `assets`, `basedOn`, `capabilities`, `conditions`, `contracts`, `dataTables`, `description`, `dialect`, `edges`, `entry`, `env`, `features`, `functions`, `guide`, `loops`, `name`, `policy`, `recommendations`, `schemaVersion`, `steps`, `tags`, `triggers`, `version`, `warnings`, `workflowId`");
    assert_snapshot!(decode(text.replace(r#""tags""#, r#""tags":[],"tags""#)), @"not a plan: the key `tags` stands twice in one object");
    assert_snapshot!(decode(text.replace(r#"{"agent"#, r#"{ "agent"#).replacen('{', "{ ", 1)), @"the plan is not in canonical form");
    assert_snapshot!(decode(text.replace(r#""assets""#, r#""agentRole":null,"assets""#)), @"the plan is not in canonical form");
    assert_snapshot!(decode("{}".into()), @"not a plan: it has no schemaVersion");
    assert_snapshot!(check(|plan| plan.schema_version = 2), @"schemaVersion is 2, and only 1 can be written");
}
