use cairn_core::plan::{Action, StepSource};

use super::*;
use crate::guided;

/// The action that a `run` compiles to, or what is wrong with it.
fn run(run: &str) -> String {
    let step = format!("- {{id: try-it, title: Try it, run: {run}}}");
    match with_steps(&step).map(|plan| plan.steps[0].action.clone()) {
        Err(found) => found,
        Ok(Action::Prompt(_)) => panic!("a prompt"),
        Ok(Action::Typed { config, r#type }) => format!("{type} {}", config.0),
    }
}

fn told(runs: &[&str]) -> String {
    runs.iter().map(|text| run(text)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_step_that_the_engine_performs_carries_its_settings() {
    assert_snapshot!(told(&[
        "{type: shell, command: cargo test}",
        "{type: shell, command: [cargo, test, ''], cwd: web/app, env: {NAME: '{{branch}} '}, stdin: \"{{notes}}\\n\", saveAs: tests, timeoutSec: 3600}",
        "{type: transform, value: {sum: '{{a.b}}', list: [1, null, {deep: '{{c}}'}]}}",
        "{type: log, message: 'On {{branch}}.'}",
        "{type: end}",
        "{type: end, message: Nothing to do., saveAs: over}",
    ]), @r#"
    shell {"command":["sh","-c","cargo test"],"saveAs":"try_it","timeoutMs":60000}
    shell {"command":["cargo","test",""],"cwd":"web/app","env":{"NAME":"{{branch}} "},"saveAs":"tests","sent":{"stdin":true},"stdin":"{{notes}}\n","timeoutMs":3600000}
    transform {"saveAs":"try_it","value":{"list":[1,null,{"deep":"{{c}}"}],"sum":"{{a.b}}"}}
    log {"message":"On {{branch}}.","saveAs":"try_it"}
    end {"saveAs":"try_it"}
    end {"message":"Nothing to do.","saveAs":"over"}
    "#);
}

#[test]
fn mistakes_in_a_run_are_told() {
    assert_snapshot!(told(&[
        "make test",
        "{command: make}",
        "{type: shel, command: make}",
        "{type: shell}",
        "{type: shell, comand: make, command: make}",
        "{type: shell, command: ''}",
        "{type: shell, command: []}",
        "{type: shell, command: ['', a]}",
        "{type: shell, command: 'rm {{path}}'}",
        "{type: shell, command: [rm, '{{path}}']}",
        "{type: shell, command: make, cwd: ../other}",
        "{type: shell, command: make, cwd: '{{folder}}'}",
        "{type: shell, command: make, env: {2X: a}}",
        "{type: shell, command: make, env: {X: 1}}",
        "{type: shell, command: make, stdin: '{{wr.refs.notes}}'}",
        "{type: shell, command: make, timeoutSec: 0}",
        "{type: shell, command: make, saveAs: a.b}",
        "{type: shell, command: \"a\\0b\"}",
        "{type: log}",
        "{type: transform, value: {a: '{{wr.x}}'}}",
    ]), @r#"
    w.yaml:5:36: error[wrong_type] /steps/0/run: a map should stand here, not text
    w.yaml:5:36: error[missing_field] /steps/0/run: nothing says what kind of step this is; add `type`, one of `end`, `log`, `shell`, `transform`
    w.yaml:5:43: error[unknown_name] /steps/0/run/type: there is no type of step `shel`; did you mean `shell`?
    w.yaml:5:36: error[missing_field] /steps/0/run: the field `command` is missing
    w.yaml:5:50: error[unknown_field] /steps/0/run/comand: the field `comand` is not known here; did you mean `command`?
    w.yaml:5:59: error[invalid_value] /steps/0/run/command: this must not be empty
    w.yaml:5:59: error[invalid_value] /steps/0/run/command: the command is empty
    w.yaml:5:60: error[invalid_value] /steps/0/run/command/0: this must not be empty
    w.yaml:5:59: error[unsupported] /steps/0/run/command: `{{…}}` cannot stand in a command: what a run brings is data, not program text; hand the value over in `env` or `stdin`, and write `"$NAME"` here
    w.yaml:5:64: error[unsupported] /steps/0/run/command/1: `{{…}}` cannot stand in a command: what a run brings is data, not program text; hand the value over in `env` or `stdin`, and write `"$NAME"` here
    w.yaml:5:70: error[invalid_value] /steps/0/run/cwd: `../other` leads out of the working directory; name a directory inside it, such as `web`
    w.yaml:5:70: error[unsupported] /steps/0/run/cwd: `{{…}}` cannot stand in a path; write the path itself
    w.yaml:5:75: error[invalid_id] /steps/0/run/env/2X: `2X` cannot name an environment variable; use letters, digits and `_`
    w.yaml:5:74: error[wrong_type] /steps/0/run/env/X: text should stand here, not a number
    w.yaml:5:72: error[unsupported] /steps/0/run/stdin: `{{wr.refs.notes}}` cannot stand in a text; take texts in by `{kind: ref, refId: …}` in `promptBlocks`
    w.yaml:5:77: error[invalid_value] /steps/0/run/timeoutSec: a whole number from 1 to 3600 is needed
    w.yaml:5:73: error[invalid_value] /steps/0/run/saveAs: `a.b` leads into a value; the outcome has a key of its own; such as `a_b`
    w.yaml:5:59: error[invalid_value] /steps/0/run/command: a zero byte cannot be handed to a program
    w.yaml:5:36: error[missing_field] /steps/0/run: the field `message` is missing
    w.yaml:5:65: error[unsupported] /steps/0/run/value/a: `{{wr.x}}` cannot stand in a text; take texts in by `{kind: ref, refId: …}` in `promptBlocks`
    "#);
}

#[test]
fn what_is_for_agents_cannot_stand_beside_run() {
    let step = "- {id: a, title: A, run: {type: end}, prompt: B, requireConfirmation: true, validationCriteria: [{type: length, min: 1, message: M}], outputContract: {contractRef: wr.contracts.loop_control}, assessmentRefs: [x], promt: C}";
    assert_snapshot!(with_steps(step).unwrap_err(), @r"
    w.yaml:5:47: error[conflict] /steps/0/prompt: `prompt` cannot stand beside `run`; no agent sees this step: give it to a step with a prompt
    w.yaml:5:71: error[conflict] /steps/0/requireConfirmation: `requireConfirmation` cannot stand beside `run`; ask in a step with a prompt in front of it
    w.yaml:5:97: error[conflict] /steps/0/validationCriteria: `validationCriteria` cannot stand beside `run`; no agent sees this step: give it to a step with a prompt
    w.yaml:5:151: error[conflict] /steps/0/outputContract: `outputContract` cannot stand beside `run`; no agent sees this step: give it to a step with a prompt
    w.yaml:5:209: error[conflict] /steps/0/assessmentRefs: `assessmentRefs` cannot stand beside `run`; no agent sees this step: give it to a step with a prompt
    w.yaml:5:214: error[unknown_field] /steps/0/promt: the field `promt` is not known here; did you mean `prompt`?
    ");
    assert_snapshot!(with_steps("- {id: a, run: {type: ende}}").unwrap_err(), @r"
    w.yaml:5:3: error[missing_field] /steps/0: the field `title` is missing
    w.yaml:5:23: error[unknown_name] /steps/0/run/type: there is no type of step `ende`; did you mean `end`?
    ");
}

#[test]
fn a_step_in_a_routine_keeps_its_outcome_under_its_whole_name() {
    let routine = "id: project.routine-verify\nname: V\ndescription: V.\nsteps:\n- {id: run-all, title: All, run: {type: shell, command: 'echo \"$T\" {target}', env: {T: '{target}'}}}";
    let call = "id: project.a\nname: A\ndescription: A.\nsteps:\n- {id: a, title: A, templateCall: {templateId: wr.templates.routine.verify, args: {target: web}}}";
    let mut tree = tree(SourceKind::Project, call);
    tree.files.insert("verify.yaml".to_owned(), routine.as_bytes().to_vec());
    let plan = guided::compile(&tree, "w.yaml", &Builtins::standard()).unwrap().plan;
    let Action::Typed { config, .. } = &plan.steps[0].action else { panic!("no run") };
    assert_eq!(plan.steps[0].origin.source, StepSource::TemplateInjected);
    assert_snapshot!(config.0, @r#"{"command":["sh","-c","echo \"$T\" {target}"],"env":{"T":"web"},"saveAs":"a_run_all","timeoutMs":60000}"#);
}

#[test]
fn a_loop_may_look_at_what_its_own_steps_bring_about() {
    let looped = |variable: &str| {
        let text = format!(
            "id: project.a\nname: A\ndescription: A.\nsteps:\n- id: fix\n  type: loop\n  title: F\n  loop: {{type: until, maxIterations: 5, condition: {{var: {variable}, equals: 0}}}}\n  body:\n  - {{id: change, title: C, prompt: C}}\n  - {{id: run-tests, title: T, run: {{type: shell, command: make test}}}}\n"
        );
        lines(&compile(SourceKind::Project, &text).unwrap().warnings)
    };
    assert_eq!(looped("run_tests.exit_code"), "");
    assert_snapshot!(looped("failures"), @"w.yaml:8:52: warning[loop_context_controlled] /steps/0/loop/condition: the context decides whether this loop goes on, so a forgotten variable ends it; let a step decide under `wr.contracts.loop_control`, and name that in `conditionSource`; or look at the outcome of a `run` step of the loop");
}

#[test]
fn the_last_prompt_is_asked_for_the_outcome() {
    let text = "id: project.a\nname: A\ndescription: A.\nmetricsProfile: research\nsteps:\n- {id: a, title: A, prompt: A}\n- {id: b, title: B, run: {type: log, message: Done.}}\n";
    let plan = compile(SourceKind::Project, text).unwrap().plan;
    let Action::Prompt(prompt) = &plan.steps[0].action else { panic!("no prompt") };
    assert!(prompt.text.contains("metrics_outcome"));
}

#[test]
fn what_a_run_brings_is_read_as_data_only() {
    for run in [
        "{type: shell, command: [bash], stdin: '{{notes}}'}",
        "{type: shell, command: [sqlite3, a.db], stdin: '{{notes}}'}",
        "{type: shell, command: [xargs, rm], stdin: '{{notes}}'}",
        "{type: shell, command: [git, status], env: {HOME: '{{notes}}'}}",
        "{type: shell, command: 'cat | bash', stdin: '{{notes}}'}",
        "{type: shell, command: 'read l; eval \"$l\"', stdin: '{{notes}}'}",
        "{type: shell, command: [sh, -c, 'python3 -'], stdin: '{{notes}}'}",
        "{type: shell, command: 'eval \"$NAME\"', env: {NAME: '{{notes}}'}}",
        "{type: shell, command: 'ssh host \"ls $NAME\"', env: {NAME: '{{notes}}'}}",
    ] {
        let told = told(&[run]);
        assert!(told.contains("error[tainted_value]"), "{run}: {told}");
    }
}
