//! Steps that ask models, in whole runs: their folder, what they used, and who is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::env::TestEnv;

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(env: &TestEnv, workflow: &str, text: &str) -> Value {
    let given = format!("text={text}");
    let ran = env.run(&["run", workflow, "--set", &given, "--json"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

const TRIAGE: &str = "name: Triage
graph:
  nodes:
    - id: kind
      type: classify
      provider: scripted
      model: small
      prompt: 'What is this? {{ event.payload.text }}'
      cases: { bug: note, default: end }
    - { id: note, type: shell, command: 'echo hi > f', next: more }
    - { id: more, type: shell, command: 'cat f', next: done }
    - { id: done, type: end, result: '{{ steps.more.stdout | trim }}' }
";

const ANSWERS: &str = r#"[{"when": ["broken", "<untrusted-"], "answer": {"verdict": "bug", "confidence": 0.9}, "usage": [1000, 100]}]"#;

#[test]
fn a_run_has_one_folder_and_tells_what_it_used() {
    let env = TestEnv::new();
    write(&env, "workflows/triage/workflow.yaml", TRIAGE);
    write(&env, "workflows/triage/nodes/answers.json", ANSWERS);
    let prices = "[models.small]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 5.0\n";
    write(&env, ".config/cairn/config.toml", prices);
    let shown = run(&env, "workflows/triage/workflow.yaml", "it is broken");
    assert_eq!(shown["result"], "hi", "{shown:#}");
    let kind = &shown["steps"]["kind"];
    assert_eq!(kind["case"], "bug");
    assert_eq!(kind["output"]["layer"], "structured_output");
    assert_eq!(kind["usage"]["costUsdMicros"], 1_500);
    assert_eq!(shown["usage"]["inputTokens"], 1_000);
    let id = shown["runId"].as_str().unwrap();
    assert!(env.home().join("workspaces").join(id).join("f").exists());

    let lines = env.run(&["runs", "show", id]);
    assert!(lines.stdout.contains("used: 1100 tokens, $0.001500 (estimated)"), "{lines}");
    let used = env.run(&["usage", "--by", "workflow", "--by", "model", "--json"]);
    let used: Value = serde_json::from_str(&used.stdout).unwrap();
    assert_eq!(used["items"][0]["model"], "small");
    assert_eq!(used["items"][0]["usage"]["launches"], 1);
    let table = env.run(&["usage"]);
    assert!(table.stdout.contains("project.triage") && table.stdout.contains("$0.0015"), "{table}");
}

#[test]
fn a_fork_begins_with_a_copy_of_the_folder() {
    let env = TestEnv::new();
    write(&env, "workflows/triage/workflow.yaml", TRIAGE);
    write(&env, "workflows/triage/nodes/answers.json", ANSWERS);
    let shown = run(&env, "workflows/triage/workflow.yaml", "it is broken");
    let id = shown["runId"].as_str().unwrap();
    let forked = env.run(&["runs", "fork", id, "--from", "more", "--json"]);
    assert_eq!(forked.code, 0, "{forked}");
    let forked: Value = serde_json::from_str(forked.stdout.lines().last().unwrap()).unwrap();
    let fork = forked["runId"].as_str().unwrap();
    let again = env.run(&["runs", "show", fork, "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["steps"]["more"]["output"]["stdout"], "hi\n", "{again:#}");
}

#[test]
fn a_model_that_is_no_case_ends_in_the_default_which_must_be_there() {
    let env = TestEnv::new();
    write(&env, "workflows/triage/workflow.yaml", TRIAGE);
    write(&env, "workflows/triage/nodes/answers.json", r#"[{"answer": "no idea"}]"#);
    let shown = run(&env, "workflows/triage/workflow.yaml", "x");
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["steps"]["kind"]["case"], "default");
    assert_eq!(shown["steps"]["kind"]["output"]["layer"], "none");
    let without = TRIAGE.replace(", default: end", "");
    write(&env, "workflows/triage/workflow.yaml", &without);
    let checked = env.run(&["workflow", "validate", "workflows/triage/workflow.yaml"]);
    assert_eq!(checked.code, 3, "{checked}");
    assert!(format!("{checked}").contains("`kind` has no edge for `default`"), "{checked}");
}

#[test]
fn a_refusal_fails_the_step_by_its_name_and_is_paid_for() {
    let env = TestEnv::new();
    write(&env, "workflows/triage/workflow.yaml", TRIAGE);
    let refused = r#"[{"refusal": "not_logged_in", "usage": [5, 0]}]"#;
    write(&env, "workflows/triage/nodes/answers.json", refused);
    let shown = run(&env, "workflows/triage/workflow.yaml", "x");
    assert_eq!(shown["error"]["code"], "AGENT_NOT_LOGGED_IN", "{shown:#}");
    assert_eq!(shown["usage"]["inputTokens"], 5);
}

const LEAK: &str = "name: Leak
graph:
  nodes:
    - { id: work, type: agent, provider: own, prompt: Work., next: read }
    - { id: read, type: shell, command: 'cat key; base64 key; echo error: $(cat key) >&2; exit 1' }
";

// case: agent.key-later
#[test]
fn a_key_that_an_agent_left_is_redacted_in_the_steps_that_follow() {
    const KEY: &str = "sk-own-key-0123456789";
    let env = TestEnv::new();
    write(&env, "workflows/leak/workflow.yaml", LEAK);
    write(&env, "agent.sh", "#!/bin/sh\nprintf %s \"$OWN_KEY\" > key\necho done\n");
    let program = env.path("agent.sh");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "[providers.own]\nkind = \"command\"\ncommand = {program:?}\napi_key = \"OWN_KEY\"\n"
    );
    write(&env, ".config/cairn/config.toml", &config);
    let mut command = env.command(&["run", "workflows/leak/workflow.yaml", "--json"]);
    let output = command.env("OWN_KEY", KEY).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let shown: Value = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    let id = shown["runId"].as_str().unwrap();
    let left = env.home().join("workspaces").join(id).join("key");
    assert_eq!(fs::read_to_string(left).unwrap(), KEY, "the agent had it");
    assert!(stdout.contains("[secret:OWN_KEY]"), "{stdout}");
    let shown = env.run(&["runs", "show", id, "--json"]).stdout;
    for told in [&*stdout, &*stderr, &shown] {
        assert!(!told.contains(KEY) && !told.contains("c2stb3duLWtleS0"), "{told}");
    }
    // Nor is it in anything that was recorded.
    let mut folders = vec![env.home().join("sessions")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = fs::read(entry.path()).unwrap();
                    let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
                    assert!(!found, "{}", entry.path().display());
                }
            }
        }
    }
}

#[test]
fn providers_are_listed_and_checked() {
    let env = TestEnv::new();
    let config = "[agents]\ndefault_provider = \"mine\"\n[providers.mine]\nkind = \"command\"\n\
                  command = \"/bin/cat\"\n[presets.cheap]\nprovider = \"mine\"\n";
    write(&env, ".config/cairn/config.toml", config);
    let listed = env.run(&["provider", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["defaultProvider"], "mine");
    assert_eq!(listed["presets"][0]["name"], "cheap");
    let names: Vec<&Value> =
        listed["providers"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    let all = ["anthropic", "claude", "codex", "gemini", "mine", "openai", "scripted"];
    assert_eq!(json!(names), json!(all));
    assert_eq!(env.run(&["provider", "check", "mine"]).code, 0);
    let missing = env.run(&["provider", "check", "anthropic"]);
    assert_eq!(missing.code, 3, "{missing}");
    assert!(missing.stdout.contains("cairn secret set ANTHROPIC_API_KEY"), "{missing}");
    let wrong = env.run(&["provider", "skills", "cluade"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("did you mean `claude`?"), "{wrong}");
    write(&env, ".claude/skills/docs/SKILL.md", "---\nname: docs\ndescription: Finds pages\n---\n");
    let skills = env.run(&["provider", "skills", "claude"]);
    assert!(skills.stdout.contains("Finds pages"), "{skills}");
    for (text, what) in [
        ("[providers.x]\nmodel = \"m\"", "`providers.x` needs a `kind`"),
        ("[providers.claude]\nmodle = \"m\"", "there is no key `providers.claude.modle`"),
        ("[models.m]\ninput_usd_per_mtok = -1", "a price in US dollars"),
        (
            "[providers.openai]\nbase_url = \"http://api.example.com\"\napi_key = \"K\"",
            "would send the key without TLS",
        ),
        ("[providers.openai]\nbase_url = \"api.example.com\"", "is not an address"),
        ("[agents]\nstall_sec = 0", "a whole number greater than 0"),
    ] {
        write(&env, ".config/cairn/config.toml", text);
        let told = env.run(&["provider", "list"]);
        assert!(told.stderr.contains(what), "{text}: {told}");
    }
}
