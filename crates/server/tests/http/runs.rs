use cairn_api::token::Scope;
use cairn_server::tokens::Wanted;
use serde_json::json;

use crate::client::World;

const GREET: &str = "name: Greet
triggers:
  - { id: ask, type: manual, input: { name: { type: string, required: true }, times: { type: integer, default: 2 } } }
graph:
  nodes:
    - { id: a, type: log, message: 'hi {{ event.payload.name }}', next: b }
    - { id: b, type: end, result: '{{ event.payload.times }}' }
";
const APPROVE: &str = "name: Approve
graph:
  nodes:
    - { id: ask, type: human, prompt: May it?, cases: { approved: good, rejected: bad } }
    - { id: good, type: end, result: done }
    - { id: bad, type: end, result: not done }
";

#[tokio::test]
async fn a_run_is_begun_shown_listed_and_told() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    let run = server.begin("greet", json!({"name": "Ada"})).await;
    let shown = server.until_status(&run, "succeeded").await;
    assert_eq!(shown["result"], 2, "the trigger fills in what has a default: {shown}");
    assert_eq!(shown["workflowId"], "project.greet");
    assert_eq!(shown["steps"]["a"]["status"], "succeeded");
    let events = server.get(&format!("/api/v1/runs/{run}/events?limit=2")).await.json();
    assert_eq!(events["items"][0]["kind"], "run_queued");
    let next = events["nextCursor"].as_u64().unwrap();
    let rest = server.get(&format!("/api/v1/runs/{run}/events?cursor={next}")).await.json();
    let last = rest["items"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["kind"], &rest["nextCursor"]), (&json!("run_completed"), &json!(null)));
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_not_begun() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    for (body, code) in [
        (json!({"workflow": "greet", "payload": {}}), "VALIDATION_ERROR"),
        (json!({"workflow": "greet", "payload": {"name": 7}}), "VALIDATION_ERROR"),
        (json!({"workflow": "gret"}), "WORKFLOW_NOT_FOUND"),
        (json!({"workflow": "greet", "trigger": "nightly"}), "TRIGGER_NOT_FOUND"),
        (json!({"workflow": "greet", "payloads": {}}), "REQUEST_INVALID"),
        (json!({}), "REQUEST_INVALID"),
        (json!(["greet"]), "REQUEST_INVALID"),
    ] {
        let answer = server.call("POST", "/api/v1/runs", Some(&body)).await;
        assert_eq!(answer.code(), code, "{body}");
    }
    let text = [("Content-Type", "text/plain"), ("Authorization", "Bearer cairn_adm_test")];
    let answer = server.send_body("POST", "/api/v1/runs", &text, "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (415, "REQUEST_MEDIA_TYPE"));
    let twice = r#"{"workflow":"greet","workflow":"greet"}"#;
    let json_type = [("Content-Type", "application/json"), text[1]];
    let answer = server.send_body("POST", "/api/v1/runs", &json_type, twice).await;
    assert_eq!(answer.code(), "REQUEST_INVALID", "a name that stands twice");
    let listed = server.get("/api/v1/runs").await.json();
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn one_key_begins_one_run() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    let body = json!({"workflow": "greet", "payload": {"name": "Ada"}});
    let key = [("Idempotency-Key", "k-1")];
    let first = server.call_with("POST", "/api/v1/runs", Some(&body), &key).await;
    let again = server.call_with("POST", "/api/v1/runs", Some(&body), &key).await;
    assert_eq!((first.status, again.status), (201, 200), "{} {}", first.body, again.body);
    assert_eq!(first.json()["runId"], again.json()["runId"]);
    assert_eq!(again.json()["replayed"], true);
    server.stop().await;

    let server = world.serve().await;
    let later = server.call_with("POST", "/api/v1/runs", Some(&body), &key).await;
    assert_eq!(later.json()["runId"], first.json()["runId"], "after a restart, too");
    let other = json!({"workflow": "greet", "payload": {"name": "Bob"}});
    let other = server.call_with("POST", "/api/v1/runs", Some(&other), &key).await;
    assert_eq!((other.status, other.code().as_str()), (422, "REQUEST_KEY_REUSED"));
    let listed = server.get("/api/v1/runs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_are_filtered_and_read_page_by_page() {
    let world = World::new(&[("greet", GREET), ("approve", APPROVE)]);
    let server = world.serve().await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(server.begin("greet", json!({"name": "Ada"})).await);
    }
    let waiting = server.begin("approve", json!({})).await;
    for run in &runs {
        server.until_status(run, "succeeded").await;
    }
    server.until_status(&waiting, "waiting").await;
    let open = server.until("/api/v1/runs?status=waiting,running", |page| {
        page["items"].as_array().is_some_and(|items| items.len() == 1)
    });
    assert_eq!(open.await["items"][0]["runId"], waiting.as_str());
    let mut seen = Vec::new();
    let mut path = "/api/v1/runs?workflow=project.greet&limit=2".to_owned();
    loop {
        let page = server.get(&path).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|run| run["runId"].clone()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/v1/runs?workflow=project.greet&limit=2&cursor={cursor}");
    }
    runs.reverse();
    assert_eq!(json!(seen), json!(runs));
    for query in ["limit=0", "limit=201", "cursor=x", "status=done", "color=red"] {
        let answer = server.get(&format!("/api/v1/runs?{query}")).await;
        assert_eq!(answer.code(), "REQUEST_INVALID", "{query}");
    }
}

#[tokio::test]
async fn a_question_is_answered_by_sending_and_never_by_looking() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    let run = server.begin("approve", json!({})).await;
    server.until_status(&run, "waiting").await;
    let tasks = server.get("/api/v1/tasks").await.json();
    assert_eq!(tasks["items"][0]["request"]["prompt"], "May it?");
    let task = tasks["items"][0]["taskId"].as_str().unwrap();
    let path = format!("/api/v1/runs/{run}/tasks/{task}/answer");
    assert_eq!(server.get(&path).await.status, 405);
    let wrong = server.call("POST", &path, Some(&json!({"verdict": "perhaps"}))).await;
    assert_eq!(wrong.code(), "REQUEST_INVALID");
    let nobody = path.replace(task, "task_01hf7yat000000000000000007");
    let approved = json!({"verdict": "approved"});
    assert_eq!(server.call("POST", &nobody, Some(&approved)).await.code(), "TASK_NOT_FOUND");
    let answer = server.call("POST", &path, Some(&approved)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let shown = server.until_status(&run, "succeeded").await;
    assert_eq!((&shown["result"], &shown["tasks"]), (&json!("done"), &json!([])));
    let again = server.call("POST", &path, Some(&approved)).await;
    assert_eq!(again.status, 409, "{}", again.body);
    let answered = server.get(&format!("/api/v1/runs/{run}/events")).await.body;
    assert!(answered.contains("answered by admin"), "{answered}");
}

#[tokio::test]
async fn a_run_is_paused_resumed_cancelled_replayed_and_forked() {
    let world = World::new(&[("greet", GREET), ("approve", APPROVE)]);
    let server = world.serve().await;
    let run = server.begin("approve", json!({})).await;
    server.until_status(&run, "waiting").await;
    let path = |what: &str| format!("/api/v1/runs/{run}/{what}");
    assert_eq!(server.call("POST", &path("resume"), None).await.code(), "RUN_STATE");
    assert_eq!(server.call("POST", &path("pause"), None).await.json()["status"], "paused");
    assert_eq!(server.call("POST", &path("resume"), None).await.json()["status"], "waiting");
    let reason = json!({"reason": "too late"});
    assert_eq!(server.call("POST", &path("cancel"), Some(&reason)).await.status, 200);
    server.until_status(&run, "cancelled").await;
    assert_eq!(server.call("POST", &path("cancel"), Some(&reason)).await.code(), "RUN_ENDED");
    let nobody = "/api/v1/runs/run_01hf7yat000000000000000007/cancel";
    assert_eq!(server.call("POST", nobody, None).await.code(), "RUN_NOT_FOUND");

    let run = server.begin("greet", json!({"name": "Ada"})).await;
    server.until_status(&run, "succeeded").await;
    let again = server.call("POST", &format!("/api/v1/runs/{run}/replay"), None).await;
    let again = again.json()["runId"].as_str().unwrap().to_owned();
    assert_ne!(again, run);
    assert_eq!(server.until_status(&again, "succeeded").await["input"]["payload"]["name"], "Ada");
    let fork = format!("/api/v1/runs/{run}/fork");
    let look = json!({"step": "b", "dryRun": true});
    let preview = server.call("POST", &fork, Some(&look)).await.json();
    assert_eq!((&preview["runId"], &preview["kept"]), (&json!(null), &json!(["a"])));
    assert_eq!(server.get("/api/v1/runs").await.json()["items"].as_array().unwrap().len(), 3);
    let forked = server.call("POST", &fork, Some(&json!({"step": "b"}))).await;
    assert_eq!(forked.status, 201, "{}", forked.body);
    let forked = forked.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(server.until_status(&forked, "succeeded").await["forkedFrom"], run.as_str());
    let nowhere = server.call("POST", &fork, Some(&json!({"step": "zzz"}))).await;
    assert_eq!(nowhere.code(), "RUN_FORK_POINT");
}

#[tokio::test]
async fn a_run_that_was_left_goes_on_when_the_next_server_starts() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    let run = server.begin("approve", json!({})).await;
    server.until_status(&run, "waiting").await;
    server.stop().await;

    let server = world.serve().await;
    assert_eq!(server.get("/healthz").await.status, 200, "ready whatever there is to recover");
    let tasks = server.until("/api/v1/tasks", |tasks| tasks["items"][0].is_object()).await;
    let task = tasks["items"][0]["taskId"].as_str().unwrap();
    let path = format!("/api/v1/runs/{run}/tasks/{task}/answer");
    let answer = server.call("POST", &path, Some(&json!({"verdict": "rejected"}))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(server.until_status(&run, "succeeded").await["result"], "not done");
}

#[tokio::test]
async fn workflows_are_listed_shown_and_checked() {
    let world = World::new(&[
        ("greet", GREET),
        ("bad", "name: Bad\ngraph: { nodes: [{ id: a, type: lgo }] }\n"),
    ]);
    let server = world.serve().await;
    let listed = server.get("/api/v1/workflows").await.json();
    let of_file = |name: &str| {
        let items = listed["items"].as_array().unwrap();
        let is_meant = |path: &str| path.ends_with(name);
        items.iter().find(|item| item["path"].as_str().is_some_and(is_meant)).unwrap()
    };
    assert_eq!(of_file("greet.yaml")["workflowId"], "project.greet");
    assert_eq!(
        (&of_file("greet.yaml")["errors"], &of_file("bad.yaml")["errors"]),
        (&json!(0), &json!(1))
    );
    let shown = server.get("/api/v1/workflows/greet").await.json();
    assert_eq!((&shown["enabled"], &shown["plan"]["name"]), (&json!(true), &json!("Greet")));
    let bad = of_file("bad.yaml")["workflowId"].as_str().unwrap();
    let bad = server.get(&format!("/api/v1/workflows/{bad}")).await.json();
    assert_eq!(bad["diagnostics"][0]["line"], 2, "{bad}");
    assert_eq!(server.get("/api/v1/workflows/nobody").await.code(), "WORKFLOW_NOT_FOUND");
    let check = |source: &str| json!({"source": source, "path": "mine.yaml"});
    let path = "/api/v1/workflows/validate";
    let good = server.call("POST", path, Some(&check(GREET))).await.json();
    assert_eq!((&good["valid"], &good["workflowId"]), (&json!(true), &json!("project.mine")));
    let wrong = server
        .call("POST", path, Some(&check("name: X\ngraph: { nodes: [{ id: a, type: lgo }] }")))
        .await
        .json();
    assert_eq!(wrong["valid"], false);
    assert!(wrong["diagnostics"][0]["message"].as_str().unwrap().contains("lgo"), "{wrong}");
    let outside = json!({"source": GREET, "path": "../x.yaml"});
    assert_eq!(server.call("POST", path, Some(&outside)).await.code(), "REQUEST_INVALID");
}

// case: metrics.labels
#[tokio::test]
async fn figures_are_counted_by_fixed_words() {
    let world = World::new(&[("greet", GREET)]);
    let server = world.serve().await;
    let run = server.begin("greet", json!({"name": "Ada"})).await;
    server.until_status(&run, "succeeded").await;
    let answer = server.get("/metrics").await;
    assert_eq!(answer.status, 200);
    for wanted in [
        "cairn_runs_started_total 1\n",
        "cairn_runs_ended_total{status=\"succeeded\"} 1\n",
        "cairn_steps_total{status=\"succeeded\"} 2\n",
        "cairn_runs_open{status=\"running\"} 0\n",
    ] {
        assert!(answer.body.contains(wanted), "{wanted} is not in\n{}", answer.body);
    }
}

// case: auth.approver
// case: approval.agent
#[tokio::test]
async fn only_who_is_asked_may_answer() {
    let text = APPROVE.replace("prompt: May it?", "prompt: May it?, who: [boss]");
    let world = World::new(&[("approve", &text)]);
    let server = world.serve().await;
    let wanted = Wanted {
        kind: Default::default(),
        name: "boss".to_owned(),
        scopes: vec![Scope::Approve],
        workflows: Vec::new(),
        expires_ms: None,
    };
    world.token("cairn_tok_boss", wanted).await;
    let run = server.begin("approve", json!({})).await;
    let shown = server.until_status(&run, "waiting").await;
    let task = shown["tasks"][0]["taskId"].as_str().unwrap();
    let path = format!("/api/v1/runs/{run}/tasks/{task}/answer");
    let approved = json!({"verdict": "approved"});
    let refused = server.call("POST", &path, Some(&approved)).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "TASK_FORBIDDEN"));
    // Whoever may start and steer everything, as agents may, is not who may approve it.
    let agent = Wanted {
        kind: Default::default(),
        name: "boss-2".to_owned(),
        scopes: vec![Scope::Read, Scope::Run, Scope::Edit],
        workflows: Vec::new(),
        expires_ms: None,
    };
    world.token("cairn_tok_agent", agent).await;
    let agent = [("Authorization", "Bearer cairn_tok_agent")];
    let refused = server.call_with("POST", &path, Some(&approved), &agent).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "AUTH_FORBIDDEN"));
    // Whoever answers can see what is asked, and no more of the run.
    let boss = [("Authorization", "Bearer cairn_tok_boss")];
    let asked = server.call_with("GET", "/api/v1/tasks", None, &boss).await;
    assert_eq!((asked.status, asked.body.contains(task)), (200, true), "{}", asked.body);
    let run_of = format!("/api/v1/runs/{run}");
    assert_eq!(server.call_with("GET", &run_of, None, &boss).await.status, 403);
    let answer = server.call_with("POST", &path, Some(&approved), &boss).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    server.until_status(&run, "succeeded").await;
}

const FORM: &str = "name: Form
triggers: [{ type: manual, input: { tool: { type: string, enum: [ls, df], required: true } } }]
graph: { nodes: [{ id: a, type: end, result: '{{ event.payload.tool }}' }] }
";
const CALLER: &str = "name: Caller
graph:
  nodes:
    - { id: a, type: workflow, workflow: project.form, input: { tool: '{{ event.payload.tool }}' }, next: b }
    - { id: b, type: end, result: '{{ steps.a }}' }
";

#[tokio::test]
async fn no_run_begins_with_what_its_trigger_does_not_take_whoever_asks() {
    let world = World::new(&[("form", FORM), ("caller", CALLER)]);
    let server = world.serve().await;
    for body in [
        json!({"workflow": "form", "payload": {"tool": "rm"}}),
        json!({"workflow": "form", "payload": {}}),
        json!({"workflow": "form", "trigger": "manual", "payload": {"tool": "rm"}}),
    ] {
        let refused = server.call("POST", "/api/v1/runs", Some(&body)).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.body);
        let key = [("Idempotency-Key", "k")];
        let refused = server.call_with("POST", "/api/v1/runs", Some(&body), &key).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.body);
    }
    // Another workflow.
    let caller = server.begin("caller", json!({"tool": "rm"})).await;
    let failed = server.until_status(&caller, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("not one of"), "{failed}");
    let listed = server.get("/api/v1/runs?workflow=project.form").await.json();
    assert_eq!(listed["items"], json!([]), "no run of it was begun");
    let caller = server.begin("caller", json!({"tool": "ls"})).await;
    server.until_status(&caller, "succeeded").await;

    // What was allowed once is not when the rules are others.
    let run = server.begin("form", json!({"tool": "df"})).await;
    server.until_status(&run, "succeeded").await;
    world.write("form", &FORM.replace("[ls, df]", "[ls]"));
    let again = server.call("POST", &format!("/api/v1/runs/{run}/replay"), None).await;
    assert_eq!(again.status, 400, "{}", again.body);
    let fork = json!({"step": "a", "onNewPlan": true});
    let forked = server.call("POST", &format!("/api/v1/runs/{run}/fork"), Some(&fork)).await;
    assert_eq!(forked.status, 400, "{}", forked.body);
    let fork = json!({"step": "a"});
    let forked = server.call("POST", &format!("/api/v1/runs/{run}/fork"), Some(&fork)).await;
    assert_eq!(forked.status, 201, "on the old plan it is: {}", forked.body);
}
