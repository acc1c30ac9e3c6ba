//! What is wrong with a workflow is told with its place and a remedy.

use super::*;

fn wrong(nodes: &str) -> String {
    with_nodes(&format!("  nodes:\n{nodes}")).map(|plan| drawn(&plan)).unwrap_err()
}

// case: source.unknown-field
#[test]
fn names_that_are_not_there() {
    assert_snapshot!(wrong("
    - { id: a, type: htpp, url: https://example.org }
    - { id: b, type: http, ulr: https://example.org, next: aa }
    - { id: a, type: end }
    - { id: Up, type: end }
    - { id: constructor, type: end }
"), @r#"
    w/workflow.yaml:6:22: error[unknown_name] /graph/nodes/0/type: there is no type of step `htpp`; did you mean `http`?
    w/workflow.yaml:7:28: error[unknown_field] /graph/nodes/1/ulr: the field `ulr` is not known here; did you mean `url`?
    w/workflow.yaml:7:60: error[unknown_name] /graph/nodes/1/next: there is no step `aa`; did you mean `a`?
    w/workflow.yaml:8:13: error[duplicate_id] /graph/nodes/2/id: `a` names two steps; rename one of them
    w/workflow.yaml:9:13: error[invalid_id] /graph/nodes/3/id: `Up` cannot name a step; use a-z, 0-9, `_` and `-`
    w/workflow.yaml:10:13: error[reserved_id] /graph/nodes/4/id: `constructor` cannot name a step
    "#);
    assert_snapshot!(wrong("
    - { id: a, type: log, message: '{{ env.URI }} {{ event.payloda.x }} {{ runn.id }}', next: fetch }
    - { id: fetch, type: http, url: https://example.org, next: c }
    - { id: c, type: log, message: '{{ steps.fetc.json }} {{ steps.fetch.jsn }} {{ steps.fetch.body | trucate(3) | upper(1) }}' }
"), @r#"
    w/workflow.yaml:6:44: error[unknown_name] /graph/nodes/0/message: there is no setting `URI`; did you mean `URL`?
    w/workflow.yaml:6:60: error[unknown_field] /graph/nodes/0/message: there is no field of the event `payloda`; did you mean `payload`?
    w/workflow.yaml:6:76: error[unknown_name] /graph/nodes/0/message: there is nothing that `runn` stands for; did you mean `run`?
    w/workflow.yaml:8:46: error[unknown_name] /graph/nodes/2/message: there is no step `fetc`; did you mean `fetch`?
    w/workflow.yaml:8:74: error[unknown_field] /graph/nodes/2/message: `http` steps have no `jsn` in their output; did you mean `json`?
    w/workflow.yaml:8:103: error[unknown_name] /graph/nodes/2/message: there is no filter `trucate`; did you mean `truncate`?
    w/workflow.yaml:8:116: error[invalid_value] /graph/nodes/2/message: the filter `upper` takes no argument
    "#);
}

#[test]
fn cases_without_an_edge() {
    assert_snapshot!(wrong("
    - { id: a, type: branch, expr: event.payload.x, cases: { x: b } }
    - { id: b, type: human, prompt: Well?, cases: { aproved: c, rejected: end } }
    - { id: c, type: log, message: c, cases: { x: end } }
"), @r#"
    w/workflow.yaml:6:60: error[missing_default] /graph/nodes/0/cases: `a` has no edge for `default`; add `default: <step>` to its cases; `default: end` ends there
    w/workflow.yaml:7:51: error[missing_default] /graph/nodes/1/cases: `b` has no edge for `approved`; add `approved: <step>` to its cases; `approved: end` ends there
    w/workflow.yaml:7:62: error[unknown_name] /graph/nodes/1/cases/aproved: there is no case `aproved`; did you mean `approved`?
    w/workflow.yaml:8:51: error[unknown_name] /graph/nodes/2/cases/x: `log` steps have one outcome, and no case `x`; use `next`, or an edge without `case`
    "#);
    assert_snapshot!(wrong("
    - { id: a, type: branch, expr: event.payload.x, next: b }
    - { id: b, type: end }
"), @"w/workflow.yaml:6:59: error[missing_default] /graph/nodes/0/next: an edge of `a` does not say on which case it is taken; give it a `case`, or `default` for all others");
    assert!(with_nodes("  nodes:\n    - { id: a, type: branch, expr: event.payload.x, cases: { 'true': end, 'false': end } }").is_ok());
}

// case: source.shapes
#[test]
fn steps_that_no_run_reaches() {
    assert_snapshot!(wrong("
    - { id: a, type: log, message: a, next: b }
    - { id: b, type: end }
    - { id: c, type: log, message: c, next: b }
"), @"w/workflow.yaml:4:3: error[missing_field] /graph: `a`, `c` could all be the first step; say `entry: <step>` in `graph`, or `entry_node` in each trigger");
    assert_snapshot!(with_nodes("  entry: a\n  nodes:
    - { id: a, type: log, message: a, next: b }
    - { id: b, type: end }
    - { id: c, type: log, message: c, next: b }
").unwrap_err(), @"w/workflow.yaml:8:13: error[unreachable] /graph/nodes/2/id: nothing leads to `c`; lead an edge to it, make it the `entry_node` of a trigger, or leave it out");
    assert_snapshot!(wrong("
    - { id: a, type: log, message: a, next: b }
    - { id: b, type: log, message: b, next: a }
    - { id: s, type: log, message: s, next: a }
"), @"w/workflow.yaml:6:13: error[cycle] /graph/nodes/0/id: the cycle of `a`, `b` has no way out; lead a case of one of them to another step, or to `end`");
}

#[test]
fn merges_that_never_fire() {
    assert_snapshot!(with_nodes("  entry: a\n  nodes:
    - { id: a, type: log, message: a, next: m }
    - { id: m, type: merge, inputs: [a, z], next: z }
    - { id: z, type: log, message: z }
    - { id: n, type: merge }
").unwrap_err(), @r#"
    w/workflow.yaml:7:13: error[cycle] /graph/nodes/1/id: `m` would wait for several inputs in the cycle of `m`, `z`, which has one at a time; put it into the body of a `loop`, or into a workflow of its own
    w/workflow.yaml:9:13: error[merge_never_fires] /graph/nodes/3/id: no input of `n` can arrive; name steps in `inputs` that lead to it
    w/workflow.yaml:9:13: error[unreachable] /graph/nodes/3/id: nothing leads to `n`; lead an edge to it, make it the `entry_node` of a trigger, or leave it out
    "#);
}

#[test]
fn steps_that_cannot_have_run_before() {
    assert_snapshot!(wrong("
    - { id: a, type: log, message: '{{ steps.b.status }} {{ a.output }}', next: b }
    - { id: b, type: http, url: https://example.org, next: each }
    - { id: each, type: loop, items: '{{ b.output.json }}', body: [in], next: c }
    - { id: in, type: log, message: '{{ item.x }} {{ steps.b.status }} {{ steps.each.results }}' }
    - { id: c, type: log, message: '{{ steps.in }} {{ item.x }} {{ steps.each.results }}' }
"), @r#"
    w/workflow.yaml:6:46: error[step_not_before] /graph/nodes/0/message: `b` cannot have run before `a`; nothing has run before this step
    w/workflow.yaml:6:61: error[step_not_before] /graph/nodes/0/message: `a` cannot read its own output; nothing has run before this step
    w/workflow.yaml:9:81: error[step_not_before] /graph/nodes/3/message: the loop `each` has no output before it ends; what has run is `a`, `b`
    w/workflow.yaml:10:46: error[step_not_before] /graph/nodes/4/message: `in` is inside the loop `each`; read `steps.each.results`; what has run is `a`, `b`, `each`
    w/workflow.yaml:10:55: error[unknown_name] /graph/nodes/4/message: there is nothing that `item` stands for; known are `env`, `event`, `run`, `secret`, `steps`
    "#);
}

// case: expr.secret-misplaced
#[test]
fn secrets_where_they_can_be_read() {
    assert_snapshot!(wrong("
    - id: a
      type: http
      url: https://example.org/{{.Secret.KEY}}
      headers: { A: '{{.Secret.KEY}}', B: '{{.Env.KEY}}', C: '{{ secret.URL }}' }
      next: b
    - { id: b, type: log, message: 'x {{ secret.KEY }}', next: c }
    - { id: c, type: shell, command: [echo, '{{ secret.KEY }}'], env: { K: '{{ secret.KEY }}' }, when: secret.KEY == 'x' }
"), @r#"
    w/workflow.yaml:8:42: error[secret_misplaced] /graph/nodes/0/url: the secret `KEY` would be part of an address, and may go to any host; bind it: `{ name: KEY, widget: secret, hosts: [api.example.com] }`, or put it into a header
    w/workflow.yaml:9:51: error[secret_misplaced] /graph/nodes/0/headers/B: `KEY` is a secret; write `secret.KEY`
    w/workflow.yaml:9:73: error[secret_misplaced] /graph/nodes/0/headers/C: `URL` is no secret; write `env.URL`, or make it `widget: secret`
    w/workflow.yaml:11:49: error[secret_misplaced] /graph/nodes/1/message: the secret `KEY` would get where it can be read; secrets go into headers, bodies, the environment or input of a process, and, when they are bound to `hosts`, into addresses
    w/workflow.yaml:12:56: error[secret_misplaced] /graph/nodes/2/command/1: the secret `KEY` would get where it can be read; secrets go into headers, bodies, the environment or input of a process, and, when they are bound to `hosts`, into addresses
    w/workflow.yaml:12:111: error[secret_misplaced] /graph/nodes/2/when: the secret `KEY` would get where it can be read; secrets go into headers, bodies, the environment or input of a process, and, when they are bound to `hosts`, into addresses
    "#);
}

// case: command.data
#[test]
fn data_that_would_become_program_text() {
    assert_snapshot!(wrong(r#"
    - { id: a, type: shell, command: 'echo {{.Event.Payload.text}}', next: b }
    - { id: b, type: shell, command: [bash, -c, 'echo {{ event.payload.text }}'], next: c }
    - { id: c, type: shell, command: ['{{ event.payload.text }}', '{{ event.payload.text }}'], next: d }
    - { id: d, type: db_query, database: main, query: 'SELECT {{ event.payload.id }}', next: e }
    - { id: e, type: http, url: 'https://{{ event.payload.host }}.example.org/{{ event.payload.id }}', next: f }
    - { id: f, type: http, url: '{{ event.payload.url }}', next: g }
    - { id: g, type: python, script: '{{ event.payload.script }}' }
"#), @r#"
    w/workflow.yaml:6:44: error[tainted_value] /graph/nodes/0/command: `{{…}}` cannot stand in a command line: what a run brings is data, not program text; hand the value over in `env` or `stdin`, and write `"$NAME"` here
    w/workflow.yaml:7:55: error[tainted_value] /graph/nodes/1/command/2: `{{…}}` cannot stand in a command line: what a run brings is data, not program text; hand the value over in `env` or `stdin`, and write `"$NAME"` here
    w/workflow.yaml:8:43: error[tainted_value] /graph/nodes/2/command/0: what `event` brings was sent by somebody, and cannot name a program; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:8:71: error[tainted_value] /graph/nodes/2/command/1: what `event` brings was sent by somebody, and cannot be a script or an option of an interpreter; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:9:63: error[tainted_value] /graph/nodes/3/query: `{{…}}` cannot stand here: what a run brings is data, not program text; hand the value over as an argument: in SQL as `$1` with `args`, in jq as `input`
    w/workflow.yaml:10:45: error[tainted_value] /graph/nodes/4/url: what `event` brings was sent by somebody, and cannot choose the host of an address; write the domain out, as in `https://{{ … | slug }}.example.com/`, take the host from `env`, or let it be one of a few: `| one_of("a.example.com", …)`
    w/workflow.yaml:11:37: error[tainted_value] /graph/nodes/5/url: what `event` brings was sent by somebody, and cannot choose the host of an address; write the domain out, as in `https://{{ … | slug }}.example.com/`, take the host from `env`, or let it be one of a few: `| one_of("a.example.com", …)`
    w/workflow.yaml:12:38: error[tainted_value] /graph/nodes/6/script: `{{…}}` cannot stand in a path; write the path itself
    "#);
    let fine = with_nodes(
        r#"  nodes:
    - { id: c, type: shell, command: ['{{ event.payload.tool | one_of("ls", "df") }}', '{{ event.payload.text }}'], next: e }
    - { id: e, type: http, url: '{{ env.URL }}/{{ event.payload.id }}', next: f }
    - { id: f, type: http, url: 'https://example.org:{{ steps.c.exit_code }}/x' }
"#,
    );
    assert!(fine.is_ok(), "{fine:?}");
}

#[test]
fn places_inside_long_texts_and_files() {
    assert_snapshot!(wrong("
    - id: a
      type: guide
      prompt: |
        First line.
        Then {{ steps.b.x }} and {{ event.nope }}.
      next: b
    - { id: b, type: guide, prompt_file: nodes/judge.md, next: c }
    - { id: c, type: python, script: nodes/chek.sh, next: d }
    - { id: d, type: python, script: ../secret.py }
"), @r#"
    w/nodes/judge.md:2:9: error[unknown_name]: there is no step `together`; known are `a`, `b`, `c`, `d`
    w/nodes/judge.md:3:19: error[unknown_name]: there is no step `disk`; known are `a`, `b`, `c`, `d`
    w/workflow.yaml:10:23: error[step_not_before] /graph/nodes/0/prompt: `b` cannot have run before `a`; nothing has run before this step
    w/workflow.yaml:10:43: error[unknown_field] /graph/nodes/0/prompt: there is no field of the event `nope`; known are `at`, `channel`, `id`, `key`, `payload`, `source`, `text`, `thread`, `trace`, `trigger`, `type`, `user`
    w/workflow.yaml:13:38: error[unknown_name] /graph/nodes/2/script: there is no file `nodes/chek.sh`; did you mean `nodes/check.sh`?
    w/workflow.yaml:14:38: error[invalid_value] /graph/nodes/3/script: `../secret.py` leads out of the workflow's folder; keep the file under `nodes/`
    "#);
}

#[test]
fn settings_of_all_kinds() {
    let text = "
name: Test
concurrency: 0
rate_limit: 60 per minute
on_error: { triger_workflow: x }
approved: true
triggers:
  - { type: webhok }
  - { type: webhook, path: /x, secret: KEYS, respond: later }
  - { type: cron, cron: '{{ env.X }}', entry_node: b }
  - { id: x, type: manual }
  - { id: x, type: manual }
env:
  - { name: A, widget: dropdown, default: x }
  - { name: A, widget: number, default: x, options: [a] }
  - { name: KEY, widget: secret, default: abc }
  - { name: B, widget: picker, visible_when: C:1 }
data_tables: [{ name: Events, mode: write }]
graph:
  nodes:
    - { id: a, type: log, message: a, level: loud, retry: { max: 0, on: [tiemout] }, on_failure: fallback, timeout_sec: x, fallback: c }
  edges: [{ from: a, to: b, cas: x }]
";
    assert_snapshot!(lines(&compile(text).unwrap_err()), @r#"
    w/workflow.yaml:3:14: error[invalid_value] /concurrency: a whole number from 1 to 100000 is needed
    w/workflow.yaml:4:13: error[invalid_value] /rate_limit: `60 per minute` is not a rate; write `60/min`, or `{max: 60, per_sec: 60}`
    w/workflow.yaml:5:13: error[unknown_field] /on_error/triger_workflow: the field `triger_workflow` is not known here; did you mean `trigger_workflow`?
    w/workflow.yaml:6:1: error[unknown_field] /approved: the field `approved` is not known here; known are `concurrency`, `data_tables`, `description`, `enabled`, `env`, `graph`, `hosts`, `id`, `max_duration_sec`, `name`, `on_error`, `rate_limit`, `retention`, `tags`, `triggers`, `version`
    w/workflow.yaml:8:13: error[unknown_name] /triggers/0/type: there is no type of trigger `webhok`; did you mean `webhook`?
    w/workflow.yaml:9:40: error[unknown_name] /triggers/1/secret: there is no secret `KEYS`; did you mean `KEY`?
    w/workflow.yaml:9:55: error[unknown_value] /triggers/1/respond: `later` is not one of `immediately`, `last_step`, `respond_step`
    w/workflow.yaml:10:25: error[unsupported] /triggers/2/cron: `{{…}}` cannot stand in a trigger: there is no run yet; write the value itself
    w/workflow.yaml:10:52: error[unknown_name] /triggers/2/entry_node: there is no step `b`; did you mean `a`?
    w/workflow.yaml:12:5: error[duplicate_id] /triggers/4: `x` names two triggers
    w/workflow.yaml:14:5: error[missing_field] /env/0: the field `options` is missing
    w/workflow.yaml:15:5: error[duplicate_id] /env/1: `A` names two settings
    w/workflow.yaml:15:41: error[wrong_type] /env/1/default: a number should stand here, not text
    w/workflow.yaml:15:53: error[conflict] /env/1/options: a `number` has no `options`
    w/workflow.yaml:16:43: error[secret_misplaced] /env/2/default: a secret has no default: the file can be read by others; leave it out, and set the value with `cairn secret set`
    w/workflow.yaml:17:5: error[missing_field] /env/3: the field `source` is missing
    w/workflow.yaml:17:46: error[unknown_name] /env/3/visible_when: there is no setting `C`; did you mean `A`?
    w/workflow.yaml:18:23: error[invalid_id] /data_tables/0/name: `Events` is not a name: use 1 to 128 of a-z, 0-9, `_` and `-`, with dots between
    w/workflow.yaml:18:37: error[unknown_value] /data_tables/0/mode: `write` is not one of `read`, `read_write`
    w/workflow.yaml:21:46: error[unknown_value] /graph/nodes/0/level: `loud` is not one of `debug`, `info`, `warning`, `error`
    w/workflow.yaml:21:66: error[invalid_value] /graph/nodes/0/retry/max: a whole number from 1 to 100 is needed
    w/workflow.yaml:21:74: error[unknown_value] /graph/nodes/0/retry/on/0: `tiemout` is not one of `connection`, `exit_code`, `invalid_output`, `rate_limited`, `server_error`, `timeout`; did you mean `timeout`?
    w/workflow.yaml:21:121: error[wrong_type] /graph/nodes/0/timeout_sec: a number should stand here, not text
    w/workflow.yaml:21:134: error[unknown_name] /graph/nodes/0/fallback: there is no step `c`; did you mean `a`?
    w/workflow.yaml:22:26: error[unknown_name] /graph/edges/0/to: there is no step `b`; did you mean `a`?
    w/workflow.yaml:22:29: error[unknown_field] /graph/edges/0/cas: the field `cas` is not known here; did you mean `case`?
    "#);
}

#[test]
fn loops_and_their_bounds() {
    assert_snapshot!(wrong("
    - { id: l, type: loop, items: '{{ event.payload.list }}', count: 3, body: [a, l], retry: { max: 1 }, next: b }
    - { id: a, type: log, message: a, next: b }
    - { id: b, type: log, message: b }
    - { id: m, type: loop, count: 2, body: [a] }
"), @r#"
    w/workflow.yaml:4:3: error[missing_field] /graph: `l`, `m` could all be the first step; say `entry: <step>` in `graph`, or `entry_node` in each trigger
    w/workflow.yaml:6:7: error[invalid_value] /graph/nodes/0: a loop has exactly one of `items`, `count` and `while`; `items: "{{ steps.fetch.json }}"` makes a turn for each item of a list
    w/workflow.yaml:6:83: error[conflict] /graph/nodes/0/body/1: a loop cannot stand in itself
    w/workflow.yaml:6:94: error[conflict] /graph/nodes/0/retry: a loop has no `retry`; give it to the steps of its body
    w/workflow.yaml:7:45: error[conflict] /graph/nodes/1/next: the way from `a` to `b` crosses the bounds of a loop; lead to the loop itself, and on from it
    w/workflow.yaml:9:45: error[conflict] /graph/nodes/3/body/0: `a` stands in two loops
    "#);
}

#[test]
fn too_many_nodes_are_told_at_once() {
    let nodes: String = (0..1_001).map(|n| format!("    - {{ id: s{n}, type: end }}\n")).collect();
    assert_snapshot!(wrong(&nodes), @"w/workflow.yaml:5:5: error[too_long] /graph/nodes: there are 1001 nodes; at most 1000 may be; move a part into a workflow of its own");
}

#[test]
fn many_ways_are_looked_at_in_good_time() {
    let next = |n: usize| (n + 1..(n + 5).min(1_000)).map(|n| format!("s{n}")).collect::<Vec<_>>();
    let node =
        |n: usize| format!("    - {{ id: s{n}, type: merge, next: [{}] }}\n", next(n).join(", "));
    let nodes: String = (1..1_000).map(node).collect();
    let first = "    - { id: s0, type: log, message: x, next: [s1, s2, s3, s4] }\n";
    assert!(with_nodes(&format!("  nodes:\n{first}{nodes}")).is_ok());
    let edges: String =
        (0..6_000).map(|n| format!("    - {{ from: a, case: c{n}, to: end }}\n")).collect();
    let branch = "    - { id: a, type: branch, expr: event.payload.x }\n  edges:\n";
    assert_snapshot!(wrong(&format!("{branch}{edges}")), @"w/workflow.yaml:4:3: error[too_long] /graph: there are more than 5000 edges; move a part into a workflow of its own");
}

#[test]
fn the_steps_of_a_turn_begin_together() {
    assert_snapshot!(wrong("
    - { id: l, type: loop, count: 2, body: [a, b, c] }
    - { id: a, type: log, message: a, next: c }
    - { id: b, type: log, message: b, next: c }
    - { id: c, type: log, message: c }
"), @"w/workflow.yaml:9:13: error[runs_twice] /graph/nodes/3/id: `c` would run more than once: `a`, `b` lead to it in one run; put a `merge` with `inputs: [a, b]` in front of it");
}

#[test]
fn what_validates_is_written_out() {
    assert_snapshot!(wrong(r#"
    - { id: a, type: shell, command: ['{{ event.payload.tool | one_of(event.payload.tools) }}'] }
"#), @r#"
    w/workflow.yaml:6:43: error[tainted_value] /graph/nodes/0/command/0: what `event` brings was sent by somebody, and cannot name a program; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:6:71: error[tainted_value] /graph/nodes/0/command/0: what `event` brings was sent by somebody, and cannot name a program; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    "#);
}

#[test]
fn a_template_for_a_whole_list_or_map_is_held_to_what_its_members_are() {
    assert_snapshot!(wrong(r#"
    - { id: a, type: human, prompt: Go?, who: '{{ event.payload.who }}', form: '{{ env.URL }}', cases: { default: b } }
    - { id: b, type: shell, command: [df], env: '{{ event.payload.env }}', next: c }
    - { id: c, type: http, url: 'https://example.org', headers: '{{ event.payload.headers }}', next: d }
    - { id: d, type: merge, inputs: '{{ event.payload.steps }}', next: e }
    - { id: e, type: parallel, branches: '{{ event.payload.steps }}' }
"#), @r#"
    w/workflow.yaml:6:47: error[tainted_value] /graph/nodes/0/who: `{{…}}` cannot stand here: a run does not change it; write the list or map out
    w/workflow.yaml:6:80: error[wrong_type] /graph/nodes/0/form: a map should stand here, not text
    w/workflow.yaml:7:53: error[tainted_value] /graph/nodes/1/env: what `event` brings was sent by somebody, and cannot name what is in `env`; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:8:69: error[tainted_value] /graph/nodes/2/headers: what `event` brings was sent by somebody, and cannot name what is in `headers`; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:9:37: error[tainted_value] /graph/nodes/3/inputs: `{{…}}` cannot stand here: a run does not change it; write the list or map out
    w/workflow.yaml:10:42: error[unknown_name] /graph/nodes/4/branches: there is no step `{{ event.payload.steps }}`; known are `a`, `b`, `c`, `d`, `e`
    "#);
    let fine = with_nodes(
        "  nodes:\n    - { id: c, type: http, url: 'https://example.org', query: '{{ event.payload.query }}', body: '{{ event.payload.body }}' }\n",
    );
    assert!(fine.is_ok(), "{fine:?}");
}

#[test]
fn data_in_an_address_stays_where_it_is_written() {
    for (url, wanted) in [
        (
            "{{ env.URL }}/order/{{ event.payload.id }}",
            "{{ env.URL }}/order/{{ event.payload.id | urlencode }}",
        ),
        (
            "https://x.org/{{ event.payload.a }}?q={{ event.payload.q | default('') }}",
            "https://x.org/{{ event.payload.a | urlencode }}?q={{ event.payload.q | default(\"\") | urlencode }}",
        ),
        (
            "https://x.org/{{ event.payload.a | urlencode }}",
            "https://x.org/{{ event.payload.a | urlencode }}",
        ),
        (
            "https://x.org/{{ event.payload.a | raw_path }}",
            "https://x.org/{{ event.payload.a | raw_path }}",
        ),
        (
            "https://x.org/{{ event.payload.a | int }}/{{ env.URL }}",
            "https://x.org/{{ event.payload.a | int }}/{{ env.URL }}",
        ),
        (
            "https://x.org/{{ event.payload.a | slug | upper }}",
            "https://x.org/{{ event.payload.a | slug | upper }}",
        ),
        (
            "https://x.org/{{ event.payload.a if event.payload.b else 'x' }}",
            "https://x.org/{{ (event.payload.a if event.payload.b else \"x\") | urlencode }}",
        ),
    ] {
        let nodes = format!(
            "  nodes:\n    - {{ id: a, type: http, url: \"{}\" }}\n",
            url.replace('"', "\\\"")
        );
        let plan = with_nodes(&nodes).unwrap_or_else(|found| panic!("{url}: {found}"));
        assert_eq!(setting(&plan, "a", "url"), wanted, "{url}");
    }
}

#[test]
fn a_form_is_read_in_both_spellings_and_its_fields_are_known() {
    let fields = "{ why: { type: string, required: true }, part: { type: number, minimum: 0 } }";
    let schema = "{ type: object, required: [why], properties: { why: { type: string }, part: { type: number, minimum: 0 } }, additionalProperties: false }";
    for form in [fields, schema] {
        let nodes = format!(
            "  nodes:\n    - {{ id: ask, type: human, prompt: Go?, form: {form}, cases: {{ default: b }} }}\n    - {{ id: b, type: log, message: '{{{{ steps.ask.answer.why }}}} {{{{ steps.ask.verdict }}}}' }}\n"
        );
        let plan = with_nodes(&nodes).unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(setting(&plan, "ask", "form")["required"], json!(["why"]));
        assert_eq!(
            setting(&plan, "ask", "form")["properties"]["part"],
            json!({"type": "number", "minimum": 0})
        );
    }
    assert_snapshot!(wrong("
    - { id: ask, type: human, prompt: Go?, form: { why: { typ: string }, x: text, y: { type: string, required: maybe } }, cases: { default: c } }
    - { id: c, type: human, prompt: Go?, form: { type: object, properties: { why: { type: string } } }, cases: { default: d } }
    - { id: d, type: guide, prompt: Go, output_contract: { type: object, propertys: {} }, next: e }
    - { id: e, type: log, message: '{{ steps.c.answer.whyy }} {{ steps.c.answr }}' }
"), @r#"
    w/workflow.yaml:6:59: error[unknown_field] /graph/nodes/0/form/why/typ: the field `typ` is not known here; did you mean `type`?
    w/workflow.yaml:6:77: error[wrong_type] /graph/nodes/0/form/x: a map should stand here, not text
    w/workflow.yaml:6:112: error[wrong_type] /graph/nodes/0/form/y/required: true or false should stand here, not text
    w/workflow.yaml:8:74: error[unknown_field] /graph/nodes/2/output_contract/propertys: the field `propertys` is not known here; did you mean `properties`?
    w/workflow.yaml:9:55: error[unknown_field] /graph/nodes/3/message: `human` steps have no `whyy` in their output; did you mean `why`?
    w/workflow.yaml:9:74: error[unknown_field] /graph/nodes/3/message: `human` steps have no `answr` in their output; did you mean `answer`?
    "#);
}

#[test]
fn settings_that_make_no_sense() {
    assert_snapshot!(wrong("
    - { id: a, type: wait, until: tomorrow, next: b }
    - { id: b, type: wait, next: c }
    - { id: c, type: wait, until: '{{ event.payload.at }}', duration_sec: 5, next: d }
    - { id: d, type: parallel, branches: [], next: l }
    - { id: l, type: loop, items: [1], body: [in], next: e }
    - { id: in, type: log, message: '{{ itm }}', when: index = 1 }
    - { id: e, type: end, next: f }
    - { id: f, type: fail, message: x, cases: { default: end } }
"), @r#"
    w/workflow.yaml:4:3: error[missing_field] /graph: `a`, `d.join` could all be the first step; say `entry: <step>` in `graph`, or `entry_node` in each trigger
    w/workflow.yaml:6:35: error[invalid_value] /graph/nodes/0/until: `tomorrow` is no point in time; say `duration_sec: 60`, or `until: 2027-01-01T09:00:00Z`
    w/workflow.yaml:7:7: error[missing_field] /graph/nodes/1: it does not say how long it waits; say `duration_sec: 60`, or `until: 2027-01-01T09:00:00Z`
    w/workflow.yaml:8:35: error[conflict] /graph/nodes/2/until: the step has both `duration_sec` and `until`; say `duration_sec: 60`, or `until: 2027-01-01T09:00:00Z`
    w/workflow.yaml:9:13: error[merge_never_fires] /graph/nodes/3/id: no input of `d.join` can arrive; name steps in `inputs` that lead to it
    w/workflow.yaml:9:42: error[invalid_value] /graph/nodes/3/branches: there are no branches; name their first steps
    w/workflow.yaml:11:41: error[unknown_name] /graph/nodes/5/message: there is nothing that `itm` stands for; did you mean `item`?
    w/workflow.yaml:11:62: error[malformed] /graph/nodes/5/when: this cannot follow here; write `==` to compare
    w/workflow.yaml:12:33: error[conflict] /graph/nodes/6/next: `e` ends the run, and nothing comes after it; leave the edge out
    w/workflow.yaml:13:58: error[conflict] /graph/nodes/7/cases/default: `f` ends the run, and nothing comes after it; leave the edge out
    "#);
    let passed_over = "
  nodes:
    - { id: a, type: fail, message: x, on_failure: skip, next: b }
    - { id: b, type: end, when: event.payload.n == 1, next: c }
    - { id: c, type: log, message: c }
";
    let plan = with_nodes(passed_over);
    assert!(plan.is_ok(), "{plan:?}");
}

// case: source.typing
#[test]
fn names_and_values_of_yaml_are_what_they_say() {
    for (id, wanted) in [
        ("__proto__", "reserved_id"),
        ("constructor", "reserved_id"),
        ("A", "invalid_id"),
        ("a b", "invalid_id"),
    ] {
        let found = wrong(&format!("    - {{ id: '{id}', type: end }}\n"));
        assert!(found.contains(wanted), "{id}: {found}");
    }
    let found = wrong("    - { id: a, type: log, message: a, next: a }\n");
    assert!(found.contains("error[cycle]"), "{found}");
    for (value, wanted) in
        [("1_000", "not text"), ("0o17", "not text"), ("1e400", ""), (".inf", ""), (".nan", "")]
    {
        let found = wrong(&format!("    - {{ id: a, type: wait, duration_sec: {value} }}\n"));
        assert!(found.contains("error[") && found.contains(wanted), "{value}: {found}");
    }
    let plan = with_nodes("  nodes:\n    - { id: a, type: wait, duration_sec: 1000 }\n").unwrap();
    assert_eq!(setting(&plan, "a", "duration_sec"), 1000);
    let deep = "[".repeat(100_000);
    let found = compile(&format!("name: Test\ngraph:\n  nodes: {deep}")).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    let secret =
        wrong("    - { id: a, type: branch, expr: secret.KEY == 'x', cases: { default: end } }\n");
    assert!(secret.contains("error[secret_misplaced]"), "{secret}");
}

#[test]
fn cases_of_what_can_only_be_true_or_false() {
    for (expr, cases, wanted) in [
        ("steps.a.status == 200", "{ yes: end, no: end, default: end }", "there is no case `yes`"),
        ("{{ steps.a.status == 200 }}", "{ true: end, flase: end }", "did you mean `false`?"),
        ("not event.payload.x", "{ True: end, default: end }", "there is no case `True`"),
        (
            "event.payload.x in [1, 2] and event.payload.y is defined",
            "{ true: end }",
            "no edge for `false`",
        ),
        ("event.payload.x | bool", "{ ok: end, default: end }", "there is no case `ok`"),
        ("event.payload.x and event.payload.y", "{ yes: end, default: end }", ""),
        ("event.payload.kind", "{ bug: end, default: end }", ""),
        ("event.payload.x > 3", "{ true: end, default: end }", ""),
        ("event.payload.x > 3", "{ true: end, false: end }", ""),
    ] {
        let nodes = format!(
            "  nodes:\n    - {{ id: a, type: http, url: 'https://example.org', next: b }}\n    - {{ id: b, type: branch, expr: '{expr}', cases: {cases} }}\n"
        );
        let found = with_nodes(&nodes).err().unwrap_or_default();
        assert!(found.contains(wanted) && found.is_empty() == wanted.is_empty(), "{expr}: {found}");
    }
}

#[test]
fn edges_are_spoken_about_where_they_are_written() {
    assert_snapshot!(wrong("
    - { id: a, type: log, message: a, cases: { ok: b } }
    - { id: b, type: human, prompt: Go?, cases: { approvd: c, rejected: c } }
    - { id: c, type: branch, expr: event.payload.x, next: d }
    - { id: d, type: parallel, branches: [e, f], next: g }
    - { id: e, type: log, message: e, next: g }
    - { id: f, type: log, message: f }
    - { id: g, type: merge, inputs: [f] }
  edges: [{ from: b, case: approved, to: end }, { from: b, case: rejcted, to: end }]
"), @r#"
    w/workflow.yaml:6:52: error[unknown_name] /graph/nodes/0/cases/ok: `log` steps have one outcome, and no case `ok`; use `next`, or an edge without `case`
    w/workflow.yaml:7:60: error[unknown_name] /graph/nodes/1/cases/approvd: there is no case `approvd`; did you mean `approved`?
    w/workflow.yaml:8:59: error[missing_default] /graph/nodes/2/next: an edge of `c` does not say on which case it is taken; give it a `case`, or `default` for all others
    w/workflow.yaml:10:45: error[conflict] /graph/nodes/4/next: `e` leads to `g` and is not among its `inputs`; add `e` to `inputs`
    w/workflow.yaml:13:66: error[unknown_name] /graph/edges/1/case: there is no case `rejcted`; did you mean `rejected`?
    "#);
}

#[test]
fn what_follows_from_a_step_that_is_not_there_is_not_told() {
    let cases: [(&str, &str); 5] = [
        (
            "a typo in `next`",
            "    - { id: a, type: log, message: a, next: bb }
    - { id: b, type: log, message: '{{ steps.a }}', next: c }
    - { id: c, type: log, message: '{{ steps.b }}' }
",
        ),
        (
            "a typo in a case",
            "    - { id: a, type: branch, expr: event.payload.n, cases: { x: b, default: cc } }
    - { id: b, type: log, message: b }
    - { id: c, type: log, message: '{{ steps.a }}' }
",
        ),
        (
            "a typo in `entry`",
            "    - { id: a, type: log, message: a, next: b }
    - { id: b, type: log, message: b }
  entry: aa
",
        ),
        (
            "a typo in a list of edges",
            "    - { id: a, type: branch, expr: event.payload.n }
    - { id: b, type: log, message: '{{ steps.a }}' }
  edges: [{ from: aa, case: default, to: b }]
",
        ),
        (
            "a typo in the inputs of a merge",
            "    - { id: a, type: log, message: a }
    - { id: m, type: merge, inputs: [aa] }
",
        ),
    ];
    let told = |(what, nodes): (&str, &str)| format!("{what}:\n{}", wrong(&format!("\n{nodes}")));
    let told = cases.map(told).join("\n");
    assert_snapshot!(told, @r"
    a typo in `next`:
    w/workflow.yaml:6:45: error[unknown_name] /graph/nodes/0/next: there is no step `bb`; did you mean `b`?
    a typo in a case:
    w/workflow.yaml:6:77: error[unknown_name] /graph/nodes/0/cases/default: there is no step `cc`; did you mean `c`?
    a typo in `entry`:
    w/workflow.yaml:8:10: error[unknown_name] /graph/entry: there is no step `aa`; did you mean `a`?
    a typo in a list of edges:
    w/workflow.yaml:8:19: error[unknown_name] /graph/edges/0/from: there is no step `aa`; did you mean `a`?
    a typo in the inputs of a merge:
    w/workflow.yaml:7:38: error[unknown_name] /graph/nodes/1/inputs/0: there is no step `aa`; did you mean `a`?
    ");
}

#[test]
fn a_mistake_that_many_make_is_told_with_what_to_write() {
    let node = |rest: &str| format!("name: T\ngraph: {{nodes: [{{id: a, {rest}}}]}}\n");
    let log = "type: log, message: x";
    for (text, wanted, count) in [
        (format!("rate_limit: 60\n{}", node(log)), "write `60/min`", 1),
        (node(&format!("{log}, retry: 3")), "write `retry: { max: 3 }`", 1),
        (
            format!("on_error: project.other\n{}", node(log)),
            "`on_error: { trigger_workflow: project.other }`",
            1,
        ),
        (
            "name: T\ngraph:\n  entry: a\n  nodes:\n    - {id: a, type: log, message: x}\n    - {id: b, type: log, message: y}\n".to_owned(),
            "did you forget `next: b` at `a`?",
            1,
        ),
        ("name: T\ngraph:\n\tnodes: []\n".to_owned(), "indent with blanks", 1),
        (node("type: log, message: Go: now"), "goes in quotes", 1),
        (format!("nodes: []\n{}", node(log)), "`nodes` belongs under `graph:`", 1),
        (node("type: log, message: '{{ event.text | xyzzyx }}'"), "`cairn help reference/filters` lists them", 1),
        (
            format!("triggers: [{{type: webhook, path: /x, secret: NOPE}}]\n{}", node(log)),
            "declare it: `env: [{ name: NOPE, widget: secret }]`",
            1,
        ),
        (node("type: human, prompt: Go?, cases: {approved: end}"), "add `rejected: <step>` to its cases; `rejected: end` ends there", 1),
        (node("type: http, ulr: 'https://x.example/'"), "did you mean `url`?", 1),
    ] {
        let found = compile(&text).unwrap_err();
        let told = lines(&found);
        assert!(told.contains(wanted), "{text}: {told}");
        assert_eq!(found.iter().filter(|d| d.severity == Severity::Error).count(), count, "{told}");
    }
}
