use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;

use crate::env::{Outcome, TestEnv};

const GOOD: &str = "id: project.triage
name: Triage
description: Sorts new issues.
steps:
  - {id: fetch, title: Fetch, prompt: Fetch the issues.}
  - id: each
    type: loop
    title: Each issue
    loop:
      type: while
      maxIterations: 9
      conditionSource: {kind: artifact_contract, contractRef: wr.contracts.loop_control}
    body:
      - {id: grade, title: Grade, prompt: Grade it., runCondition: {var: open}}
      - id: decide
        title: Decide
        prompt: Are there more?
        requireConfirmation: true
        outputContract: {contractRef: wr.contracts.loop_control}
";
const BAD: &str = "id: project.bad
name: Bad
description: Has mistakes.
steps:
  - {id: one, title: One, promt: Do it.}
";

fn env() -> TestEnv {
    let env = TestEnv::new();
    write(&env, "workflows/triage.yaml", GOOD);
    env
}

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn validate_marks_the_place_of_each_mistake() {
    let env = env();
    write(&env, "workflows/deep/bad.yaml", BAD);
    write(&env, "workflows/settings.json", "{\"not\": \"a workflow\"}");
    assert_snapshot!(env.run(&["workflow", "validate"]), @r"
    exit 3
    --- stdout
    workflows/deep/bad.yaml:5:5: error[missing_field] /steps/0: the step says nothing to do
      5 |   - {id: one, title: One, promt: Do it.}
        |     ^
      = add `prompt`, `promptBlocks`, `run` or `templateCall`
    workflows/deep/bad.yaml:5:27: error[unknown_field] /steps/0/promt: the field `promt` is not known here
      5 |   - {id: one, title: One, promt: Do it.}
        |                           ^
      = did you mean `prompt`?
    2 workflows: 2 errors, 0 warnings
    ");
    assert_snapshot!(env.run(&["workflow", "validate", "workflows/triage.yaml"]), @r"
    exit 0
    --- stdout
    project.triage can
      prompts   3 handed to an agent: fetch, grade, decide
      person    decide: asks the user
    1 workflow: 0 errors, 0 warnings
    ");
    assert_snapshot!(env.run(&["workflow", "validate", "workflows/deep", "--json"]), @r#"
    exit 3
    --- stdout
    {"capabilities":[],"diagnostics":[{"code":"missing_field","column":5,"line":5,"message":"the step says nothing to do","path":"workflows/deep/bad.yaml","pointer":"/steps/0","severity":"error","suggestion":"add `prompt`, `promptBlocks`, `run` or `templateCall`"},{"code":"unknown_field","column":27,"line":5,"message":"the field `promt` is not known here","path":"workflows/deep/bad.yaml","pointer":"/steps/0/promt","severity":"error","suggestion":"did you mean `prompt`?"}],"errors":2,"warnings":0,"workflows":1}
    "#);
    assert_snapshot!(env.run(&["workflow", "validate", "nowhere.yaml"]), @r"
    exit 4
    --- stderr
    error[FILE_NOT_FOUND]: nowhere.yaml: No such file or directory (os error 2)
      → check the path; `-` stands for standard input or output
    ");
}

#[test]
fn compile_prints_a_plan_whose_digest_is_its_hash() {
    let env = env();
    let plan = env.run(&["workflow", "compile", "workflows/triage.yaml"]);
    let hash = env.run(&["workflow", "compile", "project.triage", "--hash"]);
    let digest = cairn_core::digest::Digest::of(plan.stdout.trim_end().as_bytes());
    assert_eq!(hash.stdout.trim_end(), digest.to_string());
    write(&env, "bad.yaml", BAD);
    assert_snapshot!(env.run(&["workflow", "compile", "bad.yaml"]), @r"
    exit 3
    --- stderr
    bad.yaml:5:5: error[missing_field] /steps/0: the step says nothing to do
      5 |   - {id: one, title: One, promt: Do it.}
        |     ^
      = add `prompt`, `promptBlocks`, `run` or `templateCall`
    bad.yaml:5:27: error[unknown_field] /steps/0/promt: the field `promt` is not known here
      5 |   - {id: one, title: One, promt: Do it.}
        |                           ^
      = did you mean `prompt`?
    error[WORKFLOW_INVALID]: bad.yaml has 2 errors, the first in line 5: the step says nothing to do
      → correct the file; `cairn workflow validate` shows each mistake with its line
    ");
    assert_snapshot!(env.run(&["workflow", "compile", "bad.yaml", "--json"]), @r#"
    exit 3
    --- stderr
    {"code":"WORKFLOW_INVALID","details":{"diagnostics":[{"code":"missing_field","column":5,"line":5,"message":"the step says nothing to do","path":"bad.yaml","pointer":"/steps/0","severity":"error","suggestion":"add `prompt`, `promptBlocks`, `run` or `templateCall`"},{"code":"unknown_field","column":27,"line":5,"message":"the field `promt` is not known here","path":"bad.yaml","pointer":"/steps/0/promt","severity":"error","suggestion":"did you mean `prompt`?"}],"path":"bad.yaml"},"message":"bad.yaml has 2 errors, the first in line 5: the step says nothing to do","retry":{"kind":"not_retryable"},"suggestion":"correct the file; `cairn workflow validate` shows each mistake with its line"}
    "#);
}

#[test]
fn list_names_each_workflow_once() {
    let env = env();
    write(&env, ".cairn/workflows/other.yaml", &GOOD.replace("name: Triage", "name: Other"));
    write(&env, ".config/cairn/workflows/mine.yaml", &GOOD.replace("project.triage", "mine"));
    write(&env, "extra/bad.yaml", BAD);
    write(&env, "ours/wr.yaml", &GOOD.replace("project.triage", "wr.triage"));
    write(&env, "workflows/wr.yaml", &GOOD.replace("project.triage", "wr.triage"));
    let run = |args: &[&str]| {
        let mut command = env.command(args);
        command.env("CAIRN_WORKFLOWS", env.path("extra")).env("CAIRN_BUNDLED", env.path("ours"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_snapshot!(run(&["workflow", "list"]), @r"
    WORKFLOW                   NAME                    SOURCE   STEPS
    mine                       Triage                  user     3
    project.bad                -                       user     2 errors
    project.triage             Triage                  project  3
    wr.bug-investigation       Bug investigation       bundled  8
    wr.code-review             Code review             bundled  7
    wr.documentation           Documentation           bundled  8
    wr.feature-implementation  Feature implementation  bundled  12
    wr.incident-review         Incident review         bundled  7
    wr.quick-task              Quick task              bundled  3
    wr.triage                  Triage                  bundled  3
    ");
    let listed = run(&["workflow", "list", "--json"]);
    assert!(listed.contains(r#""idStatus":"legacy""#), "{listed}");
    assert!(listed.contains(r#""suggestedId":"user.mine""#), "{listed}");
    assert_snapshot!(env.run(&["workflow", "show", "triage"]), @r"
    exit 2
    --- stderr
    error[WORKFLOW_ID_AMBIGUOUS]: 2 workflows go by the name `triage`: project.triage ([tmp]/workflows/triage.yaml), wr.triage ([tmp]/workflows/wr.yaml)
      → give the whole id, with its namespace; `cairn workflow list` shows them
    ");
}

#[test]
fn some_workflows_are_built_in() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["workflow", "list"]), @r"
    exit 0
    --- stdout
    WORKFLOW                   NAME                    SOURCE   STEPS
    wr.bug-investigation       Bug investigation       bundled  8
    wr.code-review             Code review             bundled  7
    wr.documentation           Documentation           bundled  8
    wr.feature-implementation  Feature implementation  bundled  12
    wr.incident-review         Incident review         bundled  7
    wr.quick-task              Quick task              bundled  3
    ");
    assert_snapshot!(env.run(&["workflow", "show", "quick-task"]), @r"
    exit 0
    --- stdout
    wr.quick-task  Quick task
    A small, clear task from its definition of done to the proof that it is done.
    bundled sha256:82de6563b2146e6abd92291229b39e7c440264814e15a0c16b65d54813e004c9

      frame  Say what done means
      work  Do it
      prove  Show that it is done

    contracts
      wr.contracts.user_dependency

    can
      prompts   3 handed to an agent: frame, work, prove
    ");
    assert_snapshot!(env.run(&["workflow", "validate"]), @r"
    exit 0
    --- stdout
    0 workflows: 0 errors, 0 warnings
    ");
}

#[test]
fn an_operator_can_replace_a_built_in_workflow_and_a_project_cannot() {
    let env = TestEnv::new();
    write(&env, "workflows/quick.yaml", &GOOD.replace("project.triage", "wr.quick-task"));
    let shown = |env: &TestEnv, bundled: &str| {
        let mut command = env.command(&["workflow", "show", "wr.quick-task"]);
        let output = command.env("CAIRN_BUNDLED", env.path(bundled)).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().next().unwrap().to_owned()
    };
    assert_eq!(shown(&env, "nothing"), "wr.quick-task  Quick task");
    write(&env, "ours/quick.yaml", &GOOD.replace("project.triage", "wr.quick-task"));
    assert_eq!(shown(&env, "ours"), "wr.quick-task  Triage");
}

#[test]
fn show_says_which_steps_the_engine_does() {
    let env = TestEnv::new();
    let text =
        GOOD.replace("prompt: Fetch the issues.", "run: {type: shell, command: make issues}");
    write(&env, "workflows/triage.yaml", &text);
    let shown = env.run(&["workflow", "show", "triage"]);
    assert!(shown.stdout.contains("fetch  Fetch  (the engine does it: shell)"), "{shown}");
}

#[test]
fn the_bindings_of_a_project_hold_for_every_source() {
    let env = TestEnv::new();
    let slot =
        "extensionPoints:\n  - {slotId: grader, purpose: Grades., default: wr.code-review}\nsteps:";
    let text = GOOD.replace("steps:", slot).replace("Grade it.", "'Ask {{wr.bindings.grader}}.'");
    write(&env, ".config/cairn/workflows/mine.yaml", &text.replace("project.", "user."));
    let plan = |env: &TestEnv| env.run(&["workflow", "compile", "user.triage"]).stdout;
    assert!(plan(&env).contains("Ask wr.code-review."));
    write(&env, ".cairn/bindings.json", r#"{"grader": "project.grade"}"#);
    assert!(plan(&env).contains("Ask project.grade."));
    write(&env, ".cairn/bindings.json", r#"{"grader": 1}"#);
    let told = env.run(&["workflow", "validate"]).stdout;
    assert!(told.starts_with(".cairn/bindings.json:1:12: error[wrong_type] /grader"), "{told}");
}

#[test]
fn an_old_id_leads_to_the_workflow_it_stands_for() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["workflow", "compile", "mr-review-workflow", "--hash"]), @"
    exit 0
    --- stdout
    sha256:3243ff8aca0d1243dcaf5d281f4a28221e597264536363eb45b9ea9761593c6b
    --- stderr
    (built in)/code-review.yaml:1:1: warning[legacy_alias] /id: `mr-review-workflow` is an old id of `wr.code-review`
      1 | id: wr.code-review
        | ^
      = use `wr.code-review`
    ");
    let shown = env.run(&["workflow", "show", "mr-review-workflow", "--json"]);
    assert!(shown.stdout.contains(r#""canonicalId":"wr.code-review""#), "{shown}");
    let shown = env.run(&["workflow", "show", "wr.code-review", "--json"]);
    assert!(!shown.stdout.contains("canonicalId"), "{shown}");
    write(&env, "workflows/own.yaml", &GOOD.replace("project.triage", "mr-review-workflow"));
    let own = env.run(&["workflow", "show", "mr-review-workflow"]);
    assert!(own.stdout.starts_with("mr-review-workflow  Triage"), "{own}");
}

#[test]
fn a_project_can_call_bundled_routines() {
    let env = TestEnv::new();
    write(&env, "ours/routine.yaml", &GOOD.replace("project.triage", "wr.routine-triage"));
    let call = "id: project.a\nname: A\ndescription: A.\nsteps:\n- {id: a, title: A, templateCall: {templateId: wr.templates.routine.triage}}\n";
    write(&env, "workflows/a.yaml", call);
    let mut command = env.command(&["workflow", "show", "a"]);
    let output = command.env("CAIRN_BUNDLED", env.path("ours")).output().unwrap();
    assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r"
    project.a  A
    A.
    project sha256:fac8d9f0599d9341d54bc1dd4d8f8cfb7df5cf5fb1d4146c74526954030836a9

      a.fetch  Fetch  (from wr.templates.routine.triage)
      a.each  Each issue  (loop until a step decides to stop, at most 9 turns)
        a.grade  Grade  (on a condition, from wr.templates.routine.triage)
        a.decide  Decide  (asks, from wr.templates.routine.triage, wr.contracts.loop_control)

    contracts
      wr.contracts.loop_control

    can
      prompts   3 handed to an agent: a.fetch, a.grade, a.decide
      person    a.decide: asks the user
    ");
}

#[test]
fn show_draws_the_steps_with_loops_indented() {
    let env = env();
    assert_snapshot!(env.run(&["workflow", "show", "triage"]), @r"
    exit 0
    --- stdout
    project.triage  Triage
    Sorts new issues.
    project sha256:0fea60e1a9f5f904bea15f252845bbfaa76125a5f29a087a384852e89bb62600

      fetch  Fetch
      each  Each issue  (loop until a step decides to stop, at most 9 turns)
        grade  Grade  (on a condition)
        decide  Decide  (asks, wr.contracts.loop_control)

    contracts
      wr.contracts.loop_control

    can
      prompts   3 handed to an agent: fetch, grade, decide
      person    decide: asks the user
    ");
    assert_snapshot!(env.run(&["workflow", "show", "project.triage", "--json"]), @r#"
    exit 0
    --- stdout
    {"capabilities":{"agents":[],"answers":[],"children":[],"commands":[],"databases":[],"files":[],"hosts":[],"people":[{"asks":"user","stepId":"decide"}],"prompts":["fetch","grade","decide"],"secrets":[],"tables":[],"unknown":[]},"contracts":["wr.contracts.loop_control"],"steps":[{"condition":null,"origin":{"source":"authored"},"outputContracts":[],"performs":null,"requireConfirmation":null,"stepId":"fetch","title":"Fetch"},{"body":[{"condition":"grade.run","origin":{"source":"authored"},"outputContracts":[],"performs":null,"requireConfirmation":null,"stepId":"grade","title":"Grade"},{"condition":null,"origin":{"source":"authored"},"outputContracts":[{"ref":"wr.contracts.loop_control","required":true}],"performs":null,"requireConfirmation":{"by":"user"},"stepId":"decide","title":"Decide"}],"loopId":"each","maxIterations":9,"repeat":{"contractRef":"wr.contracts.loop_control","kind":"until_decision"},"title":"Each issue"}],"triggers":[],"workflow":{"description":"Sorts new issues.","errors":0,"idStatus":"namespaced","name":"Triage","path":"workflows/triage.yaml","sourceKind":"project","steps":3,"workflowHash":"sha256:0fea60e1a9f5f904bea15f252845bbfaa76125a5f29a087a384852e89bb62600","workflowId":"project.triage"}}
    "#);
    assert_snapshot!(env.run(&["workflow", "show", "project.triagee"]), @r"
    exit 4
    --- stderr
    error[WORKFLOW_NOT_FOUND]: there is no workflow `project.triagee`; did you mean `project.triage`?
      → list the workflows there are with `cairn workflow list`, or give a file
    ");
}

const GRAPH: &str = r#"name: Uptime
env: [{name: SITE, widget: url, required: true}]
triggers: [{type: cron, cron: "*/5 * * * *", timezone: UTC}]
graph:
  nodes:
    - {id: check, type: http, url: "{{.Env.SITE}}/health", on_failure: fallback, fallback: alarm, next: judge}
    - {id: judge, type: branch, expr: "{{.Node.check.status}} == 200", cases: {"true": end, "false": alarm}}
    - {id: alarm, type: shell, command: [bash, nodes/alarm.sh], env: {SITE: "{{.Env.SITE}}"}}
"#;

#[test]
fn graphs_are_found_with_their_files() {
    let env = TestEnv::new();
    write(&env, "workflows/uptime/workflow.yaml", GRAPH);
    write(&env, "workflows/uptime/nodes/alarm.sh", "echo down\n");
    assert_snapshot!(env.run(&["workflow", "validate"]), @r#"
    exit 0
    --- stdout
    1 workflow: 0 errors, 0 warnings
    "#);
    assert_snapshot!(env.run(&["workflow", "show", "uptime"]), @r#"
    exit 0
    --- stdout
    project.uptime  Uptime

    project sha256:800fcabd59eff9ce22c5460e13d3fe52b5c369901f2889e8239a2159cf274338

      check  check  (the engine does it: http)  → judge, on failure: alarm
      judge  judge  (the engine does it: branch)  → false: alarm, true: end
      alarm  alarm  (the engine does it: shell)
      end  end  (the engine does it: end, from end)

    started by
      cron  cron, cron */5 * * * *, timezone UTC

    can
      command   alarm: bash nodes/alarm.sh
      host      check: GET a host that the run decides, {{ env.SITE }}/health
      file      nodes/alarm.sh
    "#);
    assert_snapshot!(env.run(&["workflow", "show", "workflows/uptime/workflow.yaml"]), @r#"
    exit 0
    --- stdout
    project.uptime  Uptime

    project sha256:800fcabd59eff9ce22c5460e13d3fe52b5c369901f2889e8239a2159cf274338

      check  check  (the engine does it: http)  → judge, on failure: alarm
      judge  judge  (the engine does it: branch)  → false: alarm, true: end
      alarm  alarm  (the engine does it: shell)
      end  end  (the engine does it: end, from end)

    started by
      cron  cron, cron */5 * * * *, timezone UTC

    can
      command   alarm: bash nodes/alarm.sh
      host      check: GET a host that the run decides, {{ env.SITE }}/health
      file      nodes/alarm.sh
    "#);
    let plan = || env.run(&["workflow", "compile", "project.uptime", "--json"]).stdout;
    let before = plan();
    assert!(before.contains("nodes/alarm.sh") && before.contains(r#""dialect":"graph""#));
    write(&env, "workflows/uptime/nodes/alarm.sh", "echo up\n");
    assert_ne!(plan(), before);
}

#[test]
fn what_a_step_gives_to_a_workflow_is_held_to_what_that_takes() {
    let env = TestEnv::new();
    let child = "name: Child
triggers: [{ id: ask, type: manual, input: { name: { type: string, required: true }, n: { type: integer } } }]
graph: { nodes: [{ id: a, type: end }] }
";
    write(&env, "workflows/child.yaml", child);
    for (input, wanted) in [
        (
            "{ nmae: Ada, n: 1 }",
            &["no field `nmae`", "did you mean `name`?", "`name` is missing"][..],
        ),
        ("{ name: Ada, n: seven }", &["`n` is not of the type `integer`"]),
        ("[1]", &["the input is not an object"]),
        ("{ name: '{{ run.id }}', n: '{{ run.attempt }}' }", &[]),
        ("{ name: Ada }", &[]),
        ("'{{ event.payload }}'", &[]),
    ] {
        let caller = format!(
            "name: Caller\ngraph:\n  nodes:\n    - {{ id: a, type: workflow, workflow: child, input: {input} }}\n"
        );
        write(&env, "workflows/caller.yaml", &caller);
        let found = env.run(&["workflow", "validate"]);
        assert!(wanted.iter().all(|told| found.stdout.contains(told)), "{input}: {found}");
        assert_eq!(wanted.is_empty(), found.stdout.contains("0 warnings"), "{input}: {found}");
    }
}

#[test]
fn a_graph_that_lacks_its_graph_is_told_so() {
    let nodes = "{ nodes: [{ id: a, type: end }] }";
    let env = TestEnv::new();
    for (text, told) in [
        (format!("name: A\ngraphs: {nodes}\n"), "did you mean `graph`?"),
        ("name: A\ntriggers: [{ type: manual }]\n".to_owned(), "`graph`"),
        ("name: A\ngraph: { edges: [] }\n".to_owned(), "`nodes`"),
    ] {
        fs::write(env.path("a.yaml"), &text).unwrap();
        let found = env.run(&["workflow", "validate", "a.yaml"]);
        let all = format!("{}{}", found.stdout, found.stderr);
        assert!(
            found.code != 0 && all.contains(told) && !all.contains("`steps`"),
            "{text}: {found}"
        );
    }
}

#[test]
fn mistakes_in_graphs_are_marked() {
    let env = TestEnv::new();
    write(&env, "workflows/uptime.yaml", &GRAPH.replace("check.status", "chek.status"));
    assert_snapshot!(env.run(&["workflow", "validate"]), @r#"
    exit 3
    --- stdout
    workflows/uptime.yaml:7:48: error[unknown_name] /graph/nodes/1/expr: there is no step `chek`
      7 |     - {id: judge, type: branch, expr: "{{.Node.chek.status}} == 200", cases: {"true": end, "false":
        |                                                ^
      = did you mean `check`?
    workflows/uptime.yaml:8:48: error[unknown_name] /graph/nodes/2/command/1: there is no file `nodes/alarm.sh`
      8 |     - {id: alarm, type: shell, command: [bash, nodes/alarm.sh], env: {SITE: "{{.Env.SITE}}"}}
        |                                                ^
    1 workflow: 2 errors, 0 warnings
    "#);
}

#[test]
fn validate_speaks_sarif_and_sums_up_a_tree() {
    let env = env();
    write(&env, "workflows/a b/bad.yaml", BAD);
    write(&env, "workflows/worse.yaml", &BAD.replace("project.bad", "project.worse"));
    let log = env.run(&["workflow", "validate", "workflows", "--format", "sarif"]);
    let log: serde_json::Value = serde_json::from_str(log.stdout.trim()).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
    let result = &run["results"][1];
    assert_eq!(
        (result["ruleId"].as_str(), result["level"].as_str()),
        (Some("unknown_field"), Some("error"))
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "workflows/a%20b/bad.yaml");
    assert_eq!(place["region"]["startColumn"], 27);
    let told = env.run(&["workflow", "validate", "workflows"]).stdout;
    let end = told.lines().rev().take(3).collect::<Vec<_>>();
    assert_eq!(end[0], "3 workflows: 4 errors, 0 warnings", "{told}");
    assert!(end[1].ends_with("worse.yaml: 2 errors, 0 warnings"), "{told}");
}

#[test]
fn validate_tells_what_workflows_expect_of_each_other() {
    let env = TestEnv::new();
    let caller = "name: Caller
env: [{ name: KEY, widget: secret }]
triggers: [{ id: hook, type: webhook, path: /hook, secret: KEY }]
on_error: { trigger_workflow: nobody-at-all }
graph:
  nodes:
    - { id: a, type: workflow, workflow: calld, next: b }
    - { id: b, type: workflow, workflow: called }
";
    let called = "name: Called
env: [{ name: KEY, widget: secret }]
triggers: [{ id: hook, type: webhook, path: /hook, secret: KEY }]
graph: { nodes: [{ id: a, type: end }] }
";
    write(&env, "workflows/called.yaml", called);
    write(&env, "workflows/caller.yaml", caller);
    assert_snapshot!(env.run(&["workflow", "validate"]), @r"
    exit 0
    --- stdout
    workflows/caller.yaml:3:45: warning[conflict] /triggers/0/path: `project.called` listens at `/hook` too; one of them gets nothing
      3 | triggers: [{ id: hook, type: webhook, path: /hook, secret: KEY }]
        |                                             ^
      = give each webhook a path of its own, or switch one off with `enabled: false`
    workflows/caller.yaml:4:31: warning[unknown_name] /on_error/trigger_workflow: there is no workflow `nobody-at-all` here
      4 | on_error: { trigger_workflow: nobody-at-all }
        |                               ^
      = it must be there when the run gets to it; `cairn workflow list` shows those there are
    workflows/caller.yaml:7:42: warning[unknown_name] /graph/nodes/0/workflow: there is no workflow `calld` here
      7 |     - { id: a, type: workflow, workflow: calld, next: b }
        |                                          ^
      = did you mean `project.called`?
    2 workflows: 0 errors, 3 warnings
    ");
    let alone = env.run(&["workflow", "validate", "workflows/caller.yaml"]);
    assert!(
        alone.stdout.ends_with("1 workflow: 0 errors, 2 warnings\n"),
        "`called` is known: {alone}"
    );
}

#[test]
fn validate_tells_of_files_that_are_not_the_workflows_own() {
    let env = TestEnv::new();
    write(
        &env,
        "workflows/one/workflow.yaml",
        "name: One\ngraph: { nodes: [{ id: a, type: shell, command: [bash, nodes/hard.sh] }] }\n",
    );
    write(&env, "workflows/one/nodes/deploy-all.py", "true");
    write(&env, "outside.sh", "true");
    fs::hard_link(env.path("outside.sh"), env.path("workflows/one/nodes/hard.sh")).unwrap();
    symlink(env.path("outside.sh"), env.path("workflows/one/nodes/soft.sh")).unwrap();
    let told = env.run(&["workflow", "validate"]);
    assert_snapshot!(told, @r"
    exit 3
    --- stdout
    workflows/one/workflow.yaml:2:56: error[unknown_name] /graph/nodes/0/command/1: there is no file `nodes/hard.sh`
      2 | graph: { nodes: [{ id: a, type: shell, command: [bash, nodes/hard.sh] }] }
        |                                                        ^
      = known are `nodes/deploy-all.py`, `workflow.yaml`
    workflows/one/nodes/hard.sh:1:1: warning[unreadable]: the file is left out: it has another name elsewhere, and would change with that
      = put a copy of it there
    workflows/one/nodes/soft.sh:1:1: warning[unreadable]: the file is left out: it is a link, and what a workflow uses must be in its own folder
      = put a copy of it there
    1 workflow: 1 error, 2 warnings
    ");
    let alone = env.run(&["workflow", "validate", "workflows/one/workflow.yaml"]);
    assert_eq!(alone.stdout, told.stdout);
}

#[test]
fn a_workflow_that_does_not_compile_is_found_by_its_name() {
    let env = env();
    let wrong = "name: W\ngraph:\n  nodes: [{ id: a, type: lgo, message: a }]\n";
    write(&env, "workflows/wrong/workflow.yaml", wrong);
    write(&env, "workflows/torn.yaml", "name: Torn\ngraph: [\n");
    write(&env, "workflows/named.yaml", &format!("id: other\n{wrong}"));
    for name in ["wrong", "project.wrong", "torn", "project.torn", "other", "project.other"] {
        for command in [&["workflow", "show", name][..], &["run", name]] {
            let told = env.run(command);
            assert_eq!(told.code, 3, "{command:?}: {told}");
            assert!(told.stderr.contains("WORKFLOW_INVALID"), "{command:?}: {told}");
        }
    }
    assert_eq!(env.run(&["run", "user.wrong"]).code, 4);
}

#[test]
fn a_folder_that_is_named_twice_is_looked_into_once() {
    let env = env();
    let wrong = "name: W\ngraph:\n  nodes: [{ id: a, type: lgo, message: a }]\n";
    write(&env, "workflows/wrong.yaml", wrong);
    let mut twice = env.command(&["workflow", "validate"]);
    twice.env("CAIRN_WORKFLOWS", std::env::join_paths(["workflows/", "./workflows"]).unwrap());
    let told = [
        env.run(&["workflow", "validate", "workflows", "./workflows/", "workflows/wrong.yaml"]),
        Outcome::of(twice.output().unwrap()),
    ];
    for told in told {
        assert!(told.stdout.ends_with("2 workflows: 1 error, 0 warnings\n"), "{told}");
    }
}
