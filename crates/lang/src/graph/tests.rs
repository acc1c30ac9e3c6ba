mod commands;
mod cycles;
mod edits;
mod hostile;
mod hosts;
mod missing;
mod mistakes;
mod named;
mod templates;
mod triggers;
mod types;

use insta::assert_snapshot;
use proptest::prelude::*;

use self::types::standard;
use super::*;
use crate::ids::SourceKind;

const EVERYTHING: &str = include_str!("tests/everything.yaml");

const FILES: [(&str, &str); 3] = [
    ("w/nodes/check.sh", "df -h\n"),
    ("w/nodes/errors.sql", "SELECT * FROM errors WHERE at > $1"),
    (
        "w/nodes/judge.md",
        "Judge this:\n{{.Node.together}}\nIn line: {{ steps.disk.stdout | truncate 500 }}\n",
    ),
];

fn tree(text: &str) -> SourceTree {
    let files = FILES.iter().copied().chain([("w/workflow.yaml", text)]);
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    SourceTree { kind: SourceKind::Project, files: files.collect(), library: BTreeMap::new() }
}

/// The step types of the program, and triggers of a few settings.
fn catalog() -> Catalog {
    standard().with_triggers(triggers::all())
}

fn compile(text: &str) -> Result<Compiled, Vec<Diagnostic>> {
    super::compile(&tree(text), "w/workflow.yaml", &catalog())
}

/// A workflow with these nodes compiled, or everything that is wrong with it.
fn with_nodes(nodes: &str) -> Result<Plan, String> {
    let head = "name: Test\nenv: [{name: URL, widget: url}, {name: KEY, widget: secret}]\ngraph:\n";
    match compile(&format!("{head}{nodes}")) {
        Ok(compiled) => Ok(compiled.plan),
        Err(found) => Err(lines(&found)),
    }
}

fn lines(found: &[Diagnostic]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn everything() -> Plan {
    compile(EVERYTHING)
        .map(|compiled| compiled.plan)
        .unwrap_or_else(|found| panic!("{}", lines(&found)))
}

/// The edges of a plan, a line each.
fn drawn(plan: &Plan) -> String {
    let line = |edge: &Edge| match &edge.case {
        Some(case) => format!("{} -{case}-> {}", edge.from, edge.to),
        None => format!("{} -> {}", edge.from, edge.to),
    };
    plan.edges.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn setting<'p>(plan: &'p Plan, step: &str, name: &str) -> &'p Value {
    let step = plan.step(&step.parse().unwrap()).unwrap();
    let plan::Action::Typed { config, .. } = &step.action else { panic!("not typed") };
    &config.0[name]
}

#[test]
fn a_workflow_with_everything_is_pinned() {
    let plan = everything();
    assert_snapshot!(plan.hash().unwrap(), @"sha256:ddbe6147e00399c2c9755314132728c42d3925e64f37fe3f734a49b31d529b52");
    assert_eq!(Plan::decode(&plan.encode().unwrap()), Ok(plan));
}

#[test]
fn a_workflow_with_everything_is_all_there() {
    let plan = everything();
    assert_snapshot!(drawn(&plan), @r#"
    gather -> dashboard
    gather -> disk
    gather -> recent-errors
    dashboard -> together
    disk -> together
    recent-errors -> together
    together -> judge
    judge -> route
    route -heal-> each-host
    route -human-> ask
    route -default-> end
    each-host -> done
    restart -> note
    ask -approved-> done
    ask -default-> end
    "#);
    assert_snapshot!(setting(&plan, "dashboard", "url"), @r#""{{ env.GRAFANA }}/api/{{ event.payload.service | urlencode }}""#);
    assert_snapshot!(setting(&plan, "dashboard", "headers"), @r#"{"Authorization":"Bearer {{ secret.TOKEN }}"}"#);
    assert_snapshot!(setting(&plan, "disk", "command"), @r#"["bash","nodes/check.sh","{{ event.payload.host }}"]"#);
    assert_snapshot!(setting(&plan, "recent-errors", "query"), @r#""SELECT * FROM errors WHERE at > $1""#);
    assert_snapshot!(setting(&plan, "judge", "prompt"), @r#""Judge this:\n{{ steps.together | untrusted }}\nIn line: {{ steps.disk.stdout | truncate(500) | untrusted }}\n""#);
    assert_snapshot!(setting(&plan, "route", "expr"), @r#""steps.judge.verdict""#);
    let assets: Vec<&str> = plan.assets.iter().map(|asset| asset.path.as_str()).collect();
    assert_eq!(assets, ["nodes/check.sh", "nodes/errors.sql", "nodes/judge.md"]);
    let triggers: Vec<String> =
        plan.triggers.iter().map(|t| format!("{} {:?}", t.id, t.entry)).collect();
    assert_eq!(
        triggers,
        [r#"cron Some("gather")"#, r#"manual Some("ask")"#, r#"pager Some("gather")"#]
    );
    let named =
        |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Slug>>();
    assert_eq!(plan.entry, named(&["gather"]));
    assert_eq!(plan.loops[0].body, named(&["restart", "give-up", "note"]));
    assert_snapshot!(serde_json::to_string(&plan.conditions).unwrap(), @r#"[{"config":{"expression":"index < env.LIMIT"},"id":"restart.when","type":"expression"}]"#);
    assert_snapshot!(serde_json::to_string(&plan.policy).unwrap(), @r#"{"concurrencyMax":4,"durationMaxMs":600000,"errorWorkflowId":"project.escalate","rateLimit":{"perMs":60000,"runsMax":60},"retention":{"failedDays":90,"runsMax":10000,"succeededDays":7}}"#);
    assert_snapshot!(serde_json::to_string(&plan.steps[1].retry).unwrap(), @r#"{"attemptsMax":4,"backoff":"exponential","delayMaxMs":60000,"delayMs":1000,"errors":["server_error","timeout"],"jitter":true}"#);
    assert_snapshot!(serde_json::to_string(&plan.data_tables).unwrap(), @r#"[{"access":"read_write","name":"events","ref":"processed-events"}]"#);
}

#[test]
fn both_spellings_of_edges_are_one_plan() {
    let inside = "
  nodes:
    - { id: a, type: branch, expr: event.payload.n, cases: { x: b, default: [c, end] } }
    - { id: b, type: log, message: b, next: c }
    - { id: c, type: log, message: c }
";
    let listed = "
  nodes:
    - { id: a, type: branch, expr: '{{.Event.Payload.n}}' }
    - { id: b, type: log, message: b }
    - { id: c, type: log, message: c }
  edges:
    - { from: b, to: c }
    - { from: a, case: default, to: end }
    - { from: a, case: default, to: c }
    - { from: a, case: x, to: b }
";
    let (inside, listed) = (with_nodes(inside).unwrap(), with_nodes(listed).unwrap());
    assert_eq!(inside.hash().unwrap(), listed.hash().unwrap());
    assert_snapshot!(drawn(&inside), @r#"
    a -x-> b
    a -default-> c
    a -default-> end
    b -> c
    "#);
}

#[test]
fn a_file_of_the_workflow_is_in_its_hash() {
    let mut changed = tree(EVERYTHING);
    changed.files.insert("w/nodes/other.sh".to_owned(), b"true\n".to_vec());
    let changed = super::compile(&changed, "w/workflow.yaml", &catalog()).unwrap().plan;
    assert_ne!(changed.hash().unwrap(), everything().hash().unwrap());
    let mut long = tree(EVERYTHING);
    long.files.insert("w/nodes/other.sh".to_owned(), vec![b'x'; source::BYTES_MAX + 1]);
    let mut long = super::compile(&long, "w/workflow.yaml", &catalog()).unwrap_err();
    long.retain(|found| found.severity == crate::diagnostic::Severity::Error);
    assert_snapshot!(lines(&long), @"w/workflow.yaml:40:3: error[too_long] /graph: `nodes/other.sh` has more than 1048576 bytes; keep it elsewhere, and let a step fetch it");
    let mut moved = tree(EVERYTHING);
    moved.files.insert("other/nodes/x.sh".to_owned(), b"true\n".to_vec());
    let moved = super::compile(&moved, "w/workflow.yaml", &catalog()).unwrap().plan;
    assert_eq!(moved.hash().unwrap(), everything().hash().unwrap());
}

#[test]
fn a_workflow_is_known_by_its_graph() {
    let document = |text: &str| source::parse("w.yaml", text.as_bytes()).unwrap();
    assert!(is_workflow(&document(EVERYTHING)) && is_enabled(&document(EVERYTHING)));
    assert!(!is_workflow(&document("id: x\nsteps: []")));
    assert!(!is_enabled(&document("enabled: false")));
}

#[test]
fn an_id_comes_from_the_file_or_the_folder() {
    let id = |text: &str| {
        with_nodes(&format!("  nodes: [{{id: a, type: end}}]\n{text}")).unwrap().workflow_id
    };
    assert_eq!(id(""), "project.w");
    assert_eq!(id("id: support-triage"), "project.support-triage");
    assert_eq!(id("id: user.triage"), "user.triage");
    assert_eq!(id("id: 0193e2b4-6c20"), "project.w0193e2b4_6c20");
}

proptest! {
    #[test]
    fn a_broken_workflow_is_told_and_never_panics(line in 0usize..110, with in r#"[ -~é]{0,30}"#) {
        let broken: Vec<&str> = EVERYTHING
            .lines()
            .enumerate()
            .map(|(place, text)| if place == line { with.as_str() } else { text })
            .collect();
        if let Ok(compiled) = compile(&broken.join("\n")) {
            prop_assert!(compiled.plan.check().is_ok());
        }
    }
}

#[test]
fn a_branch_on_what_is_never_true_or_false_needs_a_default() {
    let with = |expr: &str| {
        with_nodes(&format!(
            "  nodes:\n    - {{ id: a, type: shell, command: [df], next: b }}\n    - {{ id: b, type: branch, expr: {expr}, cases: {{ 'true': c, 'false': end }} }}\n    - {{ id: c, type: log, message: x }}\n"
        ))
    };
    for expr in ["steps.a.stdout", "steps.a.exit_code", "\"'true'\""] {
        let found = with(expr).err().unwrap_or_default();
        assert!(found.contains("`b` has no edge for `default`"), "{expr}: {found}");
    }
    for expr in ["event.payload.x", "steps.a.json", "steps.a.exit_code == 0"] {
        assert!(with(expr).is_ok(), "{expr}");
    }
}
