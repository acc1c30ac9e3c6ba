//! What a run brings stays data in every command: no program, no option, no program text.
//!
//! Each vector is compiled as a workflow. What compiles is performed for real with what an
//! attacker would send, and must be refused before anything is started.

mod inputs;
mod lines;
mod options;
mod seldom;
mod shapes;

use std::collections::BTreeMap;
use std::path::Path;

use cairn_core::plan::{Action, Plan};
use cairn_engine::performer::{Failed, Outcome};
use cairn_lang::diagnostic::Diagnostic;
use cairn_lang::graph;
use cairn_lang::ids::SourceKind;
use cairn_lang::source::SourceTree;
use cairn_steps::catalog;
use serde_json::Value;

use crate::world::{perform, settings, with_files};
use inputs::{EXPANDED, INPUTS, VARIABLES};
use options::ARGUMENTS;

/// What stands for something that was sent, in a workflow and in a plan.
const SENT: &str = "{{ event.payload.x }}";

const FILES: [(&str, &str); 9] = [
    ("nodes/own.sh", "#!/bin/sh\nprintf '%s\\n' \"$@\"; cat; echo \"$DATA\"\n"),
    ("nodes/pack.sh", "#!/bin/sh\n"),
    ("nodes/own.py", "import sys\nprint(sys.argv[1:], sys.stdin.read())\n"),
    ("nodes/own.mk", "#!/usr/bin/make -f\nall:\n\t@echo all\n"),
    ("nodes/split.mk", "#!/usr/bin/env -S make -f\nall:\n\t@echo all\n"),
    ("nodes/each.pl", "#!/usr/bin/perl -n\nprint\n"),
    ("nodes/calc.bc", "#!/usr/bin/bc -q\n1\n"),
    ("nodes/print.awk", "#!/usr/bin/awk -f\n{ print $1 }\n"),
    ("nodes/env.py", "#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:])\n"),
];

/// A workflow of one step; `§` is something that was sent.
fn compile(kind: &str, fields: &str) -> Result<Plan, Vec<Diagnostic>> {
    let node = format!("{{ id: a, type: {kind}, {fields} }}").replace('§', SENT);
    compiled(&format!("name: Test\ngraph:\n  nodes:\n    - {node}\n"))
}

fn compiled(text: &str) -> Result<Plan, Vec<Diagnostic>> {
    let files = FILES.iter().map(|(path, text)| (format!("w/{path}"), (*text).to_owned()));
    let files: BTreeMap<String, Vec<u8>> = files
        .chain([("w/workflow.yaml".to_owned(), text.to_owned())])
        .map(|(path, text)| (path, text.into_bytes()))
        .collect();
    let tree = SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() };
    graph::compile(&tree, "w/workflow.yaml", &catalog::types()).map(|compiled| compiled.plan)
}

/// The settings of the step with what was sent in them.
fn filled(value: &Value, sent: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(SENT, sent)),
        Value::Array(items) => items.iter().map(|item| filled(item, sent)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(k, v)| (k.clone(), filled(v, sent))).collect())
        }
        other => other.clone(),
    }
}

async fn performed(kind: &str, plan: &Plan, sent: &str) -> Result<Outcome, Failed> {
    let Action::Typed { config, .. } = &plan.steps.first().unwrap().action else { panic!() };
    let folder = tempfile::tempdir().unwrap();
    let ctx = with_files(&FILES);
    perform(&settings(folder.path()), kind, filled(&config.0, sent), &ctx).await
}

/// How a step with this value in it is refused, if it is.
async fn refusal(kind: &str, fields: &str, sent: &str) -> Result<String, String> {
    let plan = match compile(kind, fields) {
        Ok(plan) => plan,
        Err(found) => {
            let codes: Vec<&str> = found.iter().map(|found| found.code.name()).collect();
            let is_refused = codes.contains(&"tainted_value");
            return if is_refused { Ok("compiler".into()) } else { Err(format!("{found:?}")) };
        }
    };
    match performed(kind, &plan, sent).await {
        Err(failed) if ["SHELL_ARGUMENT", "SHELL_ENV"].contains(&failed.code) => {
            assert!(
                failed.code != "SHELL_ARGUMENT"
                    || failed.message.starts_with("nothing of `fetch` was started")
            );
            Ok(failed.code.into())
        }
        other => Err(format!("{other:?}")),
    }
}

fn canary(text: &str, folder: &Path) -> String {
    text.replace("CANARY", &folder.join("canary").to_string_lossy())
}

// case: command.data
#[tokio::test]
async fn what_was_sent_is_no_program_and_no_option() {
    let folder = tempfile::tempdir().unwrap();
    let (mut failures, mut by_engine) = (Vec::new(), 0);
    for (command, sent) in ARGUMENTS.iter().chain(seldom::ARGUMENTS).chain(lines::ARGUMENTS) {
        let fields = format!("command: {}", canary(command, folder.path()));
        let fields = quoted(&fields);
        match refusal("shell", &fields, &canary(sent, folder.path())).await {
            Ok(by) => by_engine += usize::from(by != "compiler"),
            Err(what) => failures.push(format!("{command} with {sent:?}: {what}")),
        }
    }
    let seldom = seldom::INPUTS.iter().map(|command| (*command, "touch CANARY"));
    for (command, sent) in INPUTS.iter().chain(lines::INPUTS).copied().chain(seldom) {
        let fields = format!("command: {command}, stdin: §");
        let fields = quoted(&fields);
        if let Err(what) = refusal("shell", &fields, &canary(sent, folder.path())).await {
            failures.push(format!("{command} reading {sent:?}: {what}"));
        }
    }
    for name in VARIABLES.iter().chain(seldom::VARIABLES).chain(lines::NAMES) {
        let fields = quoted(&format!("command: [df], env: {{ {name}: § }}"));
        if let Err(what) = refusal("shell", &fields, "x").await {
            failures.push(format!("{name}: {what}"));
        }
    }
    for command in EXPANDED.iter().chain(&["[nodes/own.mk]", "[nice, nodes/split.mk]"]) {
        let fields = quoted(&format!("command: {command}, env: {{ NAME: § }}"));
        let sent = canary("$(shell touch CANARY)", folder.path());
        let refused = refusal("shell", &fields, &sent);
        if let Err(what) = refused.await {
            failures.push(format!("{command} with a variable: {what}"));
        }
    }
    for command in lines::VARIABLES {
        let fields = quoted(&format!("command: {command}, env: {{ DATA: § }}"));
        let sent = canary("touch CANARY", folder.path());
        if let Err(what) = refusal("shell", &fields, &sent).await {
            failures.push(format!("{command} with a variable: {what}"));
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(failures.is_empty(), "{} got through:\n{}", failures.len(), failures.join("\n"));
    assert!(left.is_empty(), "something ran: {left:?}");
    assert!(by_engine > 20, "what only a run can say is refused when it is known: {by_engine}");
}

// case: command.data
#[tokio::test]
async fn what_was_sent_is_run_in_no_line_for_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let sent = canary("touch CANARY", folder.path());
    let mut failures = Vec::new();
    for line in shapes::LINES {
        let line = serde_json::to_string(line).unwrap();
        for command in [line.clone(), format!("[bash, -c, {line}]")] {
            let fields = format!("command: {command}, env: {{ X: '§' }}");
            if let Err(what) = refusal("shell", &fields, &sent).await {
                failures.push(format!("{command}: {what}"));
            }
        }
    }
    for line in shapes::ARGUMENTS {
        let line = serde_json::to_string(line).unwrap();
        for shell in ["sh", "bash"] {
            let fields = format!("command: [{shell}, -c, {line}, _, '§']");
            if let Err(what) = refusal("shell", &fields, &sent).await {
                failures.push(format!("{shell} {line}: {what}"));
            }
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(failures.is_empty(), "{} got through:\n{}", failures.len(), failures.join("\n"));
    assert!(left.is_empty(), "something ran: {left:?}");
}

/// Words that are templates in quotes, as YAML wants them.
fn quoted(fields: &str) -> String {
    let mut quoted = String::new();
    let mut is_quoted = false;
    for c in fields.chars() {
        is_quoted ^= c == '\'';
        match c {
            '§' if !is_quoted => quoted.push_str("'§'"),
            other => quoted.push(other),
        }
    }
    quoted
}

/// Commands that work, with what is sent in them.
const FINE: &[(&str, &str)] = &[
    ("[df, §]", "/"),
    ("[echo, §]", "a b; touch /nowhere $(id)"),
    ("[grep, -c, --, §, /etc/passwd]", "-root"),
    ("[grep, -e, §, /etc/passwd]", "root"),
    ("[printf, --, §]", "-5"),
    ("[seq, --, §, '1']", "-5"),
    ("[cat, --, §]", "-none"),
    ("[git, log, --oneline, --, §]", "-x"),
    ("[git, log, '--author=§']", "-x"),
    ("[git, commit, -m, §]", "a message"),
    ("[git, clone, -q, --, §, /nowhere/x]", "-x"),
    ("[curl, --version, §]", "https://example.invalid"),
    ("[tar, -cf, /dev/null, --, §]", "-x"),
    ("[sort, --, §]", "-x"),
    ("[sed, -n, p, --, §]", "-x"),
    ("[awk, -v, 'x=§', 'BEGIN { print x }']", "-x"),
    ("[awk, '{ print $1 }', §]", "/etc/hostname"),
    ("[find, ., -maxdepth, '0', -name, §]", "x"),
    ("[bash, nodes/own.sh, §, '--name=§']", "x $(id)"),
    ("[bash, -c, 'echo \"$1\"', _, §]", "`id`"),
    ("[python3, nodes/own.py, §]", "import os"),
    ("[python3, -c, 'print(1)', §]", "x"),
    ("[perl, -e, 'print 1', --, §]", "-x"),
    ("[timeout, '5', df, §]", "/"),
    ("[timeout, '5', grep, --, §, /etc/passwd]", "-x"),
    ("[env, 'DATA=§', sh, nodes/own.sh]", "-x"),
    ("[df, '{{ event.payload.y | default(5) | int }}']", "x"),
    ("[head, '-n{{ event.payload.y | default(5) | int }}', §]", "/etc/hostname"),
    ("[xargs, grep, -c, --]", "x"),
    ("[python3, -m, base64, -t, §]", "x"),
    ("[python3, -m, calendar, §]", "2026"),
    ("[choom, -n, '1', --, df, §]", "/"),
    ("[gh, issue, --help, --title, §]", "a title"),
    ("[rename, s/a/b/, --, §]", "none"),
    ("[env, 'DATA=§', printf, make]", "$(id)"),
    ("[git, clone, -q, §]", "/nowhere/.x"),
    ("[tee, §]", "out.txt"),
    ("[tee, 'out-§.txt']", "a"),
    ("[cp, §, out.txt]", "/etc/hostname"),
    ("[dd, if=/etc/hostname, 'of=§', status=none]", "out.txt"),
    ("[perl, -e, 'print @ARGV', --, §]", "a | b"),
    ("[sh, -c, 'grep -c -e \"$1\" /etc/hostname', _, §]", "x"),
    ("[timeout, --sig, KILL, '5', df, §]", "/"),
];

#[tokio::test]
async fn what_stays_data_works_as_before() {
    let mut failures = Vec::new();
    for (command, sent) in FINE.iter().chain(seldom::FINE) {
        let fields = quoted(&format!("command: {command}"));
        let plan = match compile("shell", &fields) {
            Ok(plan) => plan,
            Err(found) => {
                failures.push(format!("{command}: {found:?}"));
                continue;
            }
        };
        let done = performed("shell", &plan, sent).await;
        // Some of them are not installed everywhere, or fail by themselves.
        if done.as_ref().is_err_and(|failed| failed.code != "SHELL_START") {
            failures.push(format!("{command} with {sent:?}: {done:?}"));
        }
    }
    for (command, stdin) in [
        ("[cat]", "-x\ntouch x"),
        ("[sh, nodes/own.sh]", "-x"),
        ("[xargs, printf, --]", "-x"),
        ("[tar, -tf, '-']", "x"),
        ("[jq, .a]", "{}"),
        ("[sh, -c, 'cat']", "touch x"),
        ("[ssh, host, cat]", "x"),
        ("[python3, -m, json.tool]", "{}"),
        ("[docker, exec, -i, box, cat]", "x"),
        ("[split, '--filter=gzip > /dev/null']", "x"),
    ] {
        let plan = compile("shell", &quoted(&format!("command: {command}, stdin: §")));
        let plan = plan.unwrap_or_else(|found| panic!("{command}: {found:?}"));
        let done = performed("shell", &plan, stdin).await;
        if done.as_ref().is_err_and(|failed| failed.code != "SHELL_START") {
            failures.push(format!("{command} reading {stdin:?}: {done:?}"));
        }
    }
    for command in lines::FINE {
        let plan = compile("shell", &quoted(&format!("command: {command}, stdin: §")));
        let plan = plan.unwrap_or_else(|found| panic!("{command}: {found:?}"));
        let done = performed("shell", &plan, "touch x").await;
        if done.as_ref().is_err_and(|failed| failed.code != "SHELL_START") {
            failures.push(format!("{command}: {done:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Lines are performed here as they are, without us: what they are refused for really happens.
#[test]
fn the_lines_are_no_false_alarm() {
    let mut ran = Vec::new();
    for (command, sent) in lines::INPUTS.iter().filter(|(line, _)| line.starts_with('\'')) {
        let line = command.trim_matches('\'');
        if ["ssh", "psql", "nodes"].iter().any(|other| line.starts_with(other)) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sh")
            .args(["-c", line])
            .current_dir(folder.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let sent = canary(sent, folder.path()) + "\n";
        // Some end before they have read it.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), sent.as_bytes());
        child.wait().unwrap();
        if folder.path().join("canary").exists() {
            ran.push(line);
        }
    }
    assert!(ran.len() >= 15, "{ran:?}");
}

#[tokio::test]
async fn an_author_can_vouch_for_arguments_and_not_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let trusting = |command: &str| format!("command: {command}, trusts_arguments: true");
    let evil = canary("--checkpoint-action=exec=touch CANARY", folder.path());
    let fields = quoted(&trusting("[tar, -cf, /dev/null, --checkpoint=1, §, /etc/hostname]"));
    let plan = compile("shell", &fields).unwrap();
    let warned: Vec<&str> = plan.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(warned, ["arguments_trusted"]);
    performed("shell", &plan, &evil).await.unwrap();
    assert!(folder.path().join("canary").exists(), "the vectors are no false alarm");
    for command in ["[bash, -c, §]", "[§]", "[env, §]", "[bash]"] {
        let fields = format!("{}, stdin: §", trusting(command));
        assert_eq!(refusal("shell", &quoted(&fields), "id").await, Ok("compiler".into()));
    }
    let fields = quoted(&trusting("[df, §]")).replace("true", "'{{ event.payload.y }}'");
    assert!(compile("shell", &fields).is_err(), "nobody else can vouch");
}

#[tokio::test]
async fn a_program_is_known_by_every_name_that_leads_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let link = |name: &str, target: &Path| {
        let path = folder.path().join(name);
        std::os::unix::fs::symlink(target, &path).unwrap();
        path.to_string_lossy().into_owned()
    };
    let shell = link("mytool", Path::new("/bin/sh"));
    let twice = link("other", Path::new("mytool"));
    let tar = link("zipup", Path::new("/usr/bin/tar"));
    let touch = canary("touch CANARY", folder.path());
    for (fields, sent) in [
        (format!("command: [{shell}, -c, §]"), touch.as_str()),
        (format!("command: [{twice}, -c, §]"), &touch),
        (format!("command: [{twice}, §]"), "/nowhere"),
        (format!("command: [timeout, '5', {twice}, -c, §]"), &touch),
        (format!("command: [{shell}], stdin: §"), &touch),
        (format!("command: [env, {twice}], stdin: §"), &touch),
        (format!("command: [{tar}, -cf, /dev/null, --to-command, §]"), &touch),
    ] {
        let refused = refusal("shell", &quoted(&fields), sent).await;
        assert_eq!(refused, Ok("SHELL_ARGUMENT".into()), "{fields}");
    }
    assert!(!folder.path().join("canary").exists());
}

#[tokio::test]
async fn the_arguments_of_a_python_script_are_no_options() {
    for (fields, sent) in [
        ("script: nodes/own.py, args: [§]", "-x"),
        ("script: nodes/own.py, args: [--, §]", "--x"),
        ("script: nodes/own.py, args: [a, '-§']", "x"),
    ] {
        assert!(refusal("python", &quoted(fields), sent).await.is_ok(), "{fields}");
    }
    for (fields, sent) in [
        ("script: nodes/own.py, args: [§, '--name=§']", "x"),
        ("script: nodes/own.py, args: [§], trusts_arguments: true", "-x"),
        ("script: nodes/own.py, stdin: §", "-x"),
    ] {
        let plan = compile("python", &quoted(fields)).unwrap();
        let done = performed("python", &plan, sent).await.unwrap();
        assert_eq!(done.fault, None, "{fields}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_where_and_what_to_do() {
    let plan = compile("shell", &quoted("command: [df, -h, §]")).unwrap();
    let failed = performed("shell", &plan, "--x").await.unwrap_err();
    assert_eq!(
        failed.message,
        "nothing of `fetch` was started: item 3 of `command` was sent by somebody, and cannot be an option, \
         which begins with `-` or `+`; put `--` before it where the program honours that, hand \
         the value over in `env` or `stdin`, pass it through `one_of(…)`, `slug` or `int`, or \
         say `trusts_arguments: true`"
    );
}

#[test]
fn the_guide_shows_a_workflow_that_compiles() {
    let guide = include_str!("../../../../docs/guide/steps.md");
    let example = guide.split("```yaml\n").find(|text| text.contains("trusts_arguments")).unwrap();
    let plan = compiled(example.split("```").next().unwrap()).unwrap();
    assert_eq!(plan.warnings.len(), 1);
}
