//! What is read and need not be there.

use super::*;

/// What is said of a workflow with these triggers and nodes.
fn told(triggers: &str, nodes: &str) -> String {
    let text = format!("name: T\n{triggers}graph:\n  entry: a\n  nodes:\n{nodes}");
    match compile(&text) {
        Ok(compiled) => lines(&compiled.warnings),
        Err(found) => lines(&found),
    }
}

#[test]
fn a_step_behind_a_condition_is_read_with_a_default() {
    let a = "    - {id: a, type: http, url: 'https://x.example/', when: env.ON, next: b}\n";
    let a = a.replace("env.ON", "'{{ event.payload.on }}'");
    let log = |more: &str, message: &str| {
        format!("{a}    - {{id: b, type: log, message: \"{message}\"{more}}}\n")
    };
    for (nodes, warned) in [
        (log("", "{{ steps.a.status }}"), true),
        (log("", "{{ steps.a }}"), true),
        (log("", "{{ steps.a.status | default(0) }}"), false),
        (log("", "{{ steps.a is defined }}"), false),
        (log(", when: steps.a is defined", "{{ steps.a.status }}"), false),
        (log(", when: steps.a.status == 200", "x"), true),
        (log(", when: '{{ event.payload.on }}'", "{{ steps.a.status }}"), false),
        (log(", when: '{{ event.payload.off }}'", "{{ steps.a.status }}"), true),
    ] {
        let told = told("", &nodes);
        assert_eq!(told.contains("warning[may_be_missing]"), warned, "{nodes}: {told}");
        assert!(!told.contains("error["), "{nodes}: {told}");
    }
}

#[test]
fn a_step_whose_case_led_here_was_not_skipped() {
    let nodes = |case: &str| {
        format!(
            "    - {{id: a, type: branch, expr: event.payload.x, when: event.payload.on, cases: {{{case}}}}}\n    \
             - {{id: b, type: log, message: '{{{{ steps.a }}}}'}}\n"
        )
    };
    assert_eq!(told("", &nodes("y: b, default: end")), "");
    assert!(told("", &nodes("y: end, default: b")).contains("may_be_missing"));
}

#[test]
fn an_optional_field_is_read_with_a_default() {
    let triggers = "triggers:\n  - {type: manual, input: {must: {type: string, required: true}, may: {type: string}, \
                    fills: {type: integer, default: 1}, deep: {type: object, required: true, properties: {in: {type: string}, \
                    on: {type: string, required: true}}}}}\n";
    for (read, warned) in [
        ("event.payload.must", false),
        ("event.payload.fills", false),
        ("event.payload.deep.on", false),
        ("event.payload", false),
        ("event.payload.may", true),
        ("event.payload.deep.in", true),
        ("event.payload.may | default('x')", false),
        ("event.payload.may is defined", false),
        ("event.payload.may if event.payload.may is defined else 1", false),
    ] {
        let told =
            told(triggers, &format!("    - {{id: a, type: log, message: \"{{{{ {read} }}}}\"}}\n"));
        assert_eq!(told.contains("warning[may_be_missing]"), warned, "{read}: {told}");
        assert!(!told.contains("error["), "{read}: {told}");
    }
}

#[test]
fn an_optional_field_of_a_form_or_a_contract_is_read_with_a_default() {
    let form = "form: {why: {type: string, required: true}, more: {type: string}}";
    let contract = "output_contract: {type: object, required: [why], properties: {why: {type: string}, more: {type: string}}}";
    for (step, read, warned) in [
        (format!("human, prompt: x, {form}, cases: {{default: b}}"), "steps.a.answer.why", false),
        (format!("human, prompt: x, {form}, cases: {{default: b}}"), "steps.a.answer.more", true),
        (format!("guide, prompt: x, {contract}, next: b"), "steps.a.why", false),
        (format!("guide, prompt: x, {contract}, next: b"), "steps.a.more", true),
        (format!("guide, prompt: x, {contract}, next: b"), "steps.a.more | default('')", false),
    ] {
        let nodes = format!(
            "    - {{id: a, type: {step}}}\n    - {{id: b, type: log, message: \"{{{{ {read} }}}}\"}}\n"
        );
        let told = told("", &nodes);
        assert_eq!(told.contains("warning[may_be_missing]"), warned, "{nodes}: {told}");
        assert!(!told.contains("error["), "{nodes}: {told}");
    }
}

#[test]
fn the_error_of_a_step_is_read_where_it_may_have_failed() {
    let nodes = |then: &str, read: &str| {
        format!(
            "    - {{id: a, type: http, url: 'https://x.example/', next: b{then}}}\n    \
             - {{id: b, type: log, message: \"{{{{ {read} }}}}\"}}\n    \
             - {{id: c, type: log, message: \"{{{{ {read} }}}}\"}}\n"
        )
    };
    let skip = nodes(", on_failure: skip", "steps.a.error.code | default('')");
    let skip = skip.replace("    - {id: c", "    - {id: d").replace(
        "message: \"{{ steps.a.error.code | default('') }}\"}\n    - {id: d",
        "message: x, next: d}\n    - {id: d",
    );
    assert_eq!(told("", &skip), "");
    let unguarded = skip.replace(" | default('')", "");
    assert!(told("", &unguarded).contains("may_be_missing"), "{}", told("", &unguarded));
    let instead = "    - {id: a, type: http, url: 'https://x.example/', on_failure: fallback, fallback: c}\n    \
                   - {id: c, type: log, message: '{{ steps.a.error.code }} {{ steps.a.error.message }}'}\n";
    assert_eq!(told("", instead), "");
    assert!(
        told("", &instead.replace("error.code", "error.kind")).contains("an error has no `kind`")
    );
    let stops = "    - {id: a, type: http, url: 'https://x.example/', next: b}\n    - {id: b, type: log, message: '{{ steps.a.error.code }}'}\n";
    assert!(
        told("", stops).contains("a run goes no further when `a` fails"),
        "{}",
        told("", stops)
    );
}

#[test]
fn what_the_type_of_a_trigger_gives_is_known() {
    let cron = "triggers: [{type: cron, cron: '@daily'}]\n";
    let log = |read: &str| format!("    - {{id: a, type: log, message: '{{{{ {read} }}}}'}}\n");
    assert_eq!(told(cron, &log("event.payload.scheduled_at")), "");
    let wrong = told(cron, &log("event.payload.schedule_at"));
    assert!(wrong.contains("did you mean `scheduled_at`?"), "{wrong}");
    let both = "triggers: [{type: cron, cron: '@daily'}, {type: manual, input: {days: {type: integer, default: 1}}}]\n";
    assert_eq!(told(both, &log("event.payload.days | default(7)")), "");
    // Whoever starts it otherwise may bring anything, so nothing vouches for what it is.
    let shell = "    - {id: a, type: shell, command: ['{{ event.payload.scheduled_at }}']}\n";
    assert!(told(cron, shell).contains("tainted"), "{}", told(cron, shell));
}

#[test]
fn what_a_step_that_may_fail_gives_is_read_with_a_default() {
    let http = "{id: a, type: http, url: 'https://x.example/'";
    let log = |message: &str| format!("    - {{id: b, type: log, message: \"{message}\"}}\n");
    for (on_failure, message, warned) in [
        ("on_failure: skip", "{{ steps.a.status }}", true),
        ("on_failure: skip", "{{ steps.a.body | trim }}", true),
        ("on_failure: skip", "{{ steps.a.status | default(0) }}", false),
        (
            "on_failure: skip",
            "{% if steps.a.status is defined %}{{ steps.a.status }}{% endif %}",
            false,
        ),
        ("on_failure: stop", "{{ steps.a.status }}", false),
        ("timeout_sec: 3", "{{ steps.a.status }}", false),
    ] {
        let nodes = format!("    - {http}, {on_failure}, next: b}}\n{}", log(message));
        let told = told("", &nodes);
        assert_eq!(told.contains("warning[may_be_missing]"), warned, "{nodes}: {told}");
        assert!(!told.contains("error["), "{nodes}: {told}");
    }
    // Behind what stands in for it, it has failed on one of the ways.
    let nodes = |message: &str| {
        format!(
            "    - {http}, on_failure: fallback, fallback: f, next: b}}\n    \
             - {{id: f, type: log, message: x, next: b}}\n{}",
            log(message)
        )
    };
    assert!(told("", &nodes("{{ steps.a.status }}")).contains("may_be_missing"));
    assert!(!told("", &nodes("{{ steps.a.status | default(0) }}")).contains("may_be_missing"));
}
