//! What templates and programs may say.

use super::*;

fn told(text: &str) -> String {
    match compile(text) {
        Ok(compiled) => lines(&compiled.warnings),
        Err(found) => lines(&found),
    }
}

fn nodes(nodes: &str) -> String {
    told(&format!("name: Test\ngraph:\n  nodes:\n{nodes}"))
}

#[test]
fn tags_are_read_and_what_they_look_at_is_checked() {
    let plan = with_nodes(
        "  nodes:
    - { id: fetch, type: http, url: https://example.org, next: say }
    - id: say
      type: log
      message: |
        {%for one in .Node.fetch.json.items if one.ok%}{{loop.index}}: {{one.id}}{%endfor%}
        {% set n = fetch.output.status %}{% if n > 299 -%} {{ n }} {% endif %}
",
    )
    .unwrap();
    assert_snapshot!(setting(&plan, "say", "message").as_str().unwrap(), @r"
    {% for one in steps.fetch.json.items if one.ok %}{{ loop.index }}: {{ one.id }}{% endfor %}
    {% set n = steps.fetch.status %}{% if n > 299 -%} {{ n }} {% endif %}
    ");
    assert_snapshot!(nodes("    - { id: say, type: log, message: '{% for x in steps.gone.json %}{{ x }}{% endfor %}{{ x }}' }
    - { id: b, type: log, message: '{% if event.payload.x %}' }
    - { id: c, type: log, message: '{% inclde event.payload.x %}' }
"), @r"
    w/workflow.yaml:3:3: error[missing_field] /graph: `say`, `b`, `c` could all be the first step; say `entry: <step>` in `graph`, or `entry_node` in each trigger
    w/workflow.yaml:4:57: error[unknown_name] /graph/nodes/0/message: there is no step `gone`; known are `b`, `c`, `say`
    w/workflow.yaml:4:91: error[unknown_name] /graph/nodes/0/message: there is nothing that `x` stands for; did you mean `b`?
    w/workflow.yaml:5:37: error[malformed] /graph/nodes/1/message: `{% if %}` is not ended
    w/workflow.yaml:6:40: error[unknown_name] /graph/nodes/2/message: there is no tag `inclde`; known are `break`, `continue`, `elif`, `else`, `endfor`, `endif`, `for`, `if`, `set`
    ");
}

#[test]
fn names_of_a_template_stay_tainted() {
    assert_snapshot!(nodes("    - { id: a, type: shell, command: ['{% set p = event.payload.x %}{{ p }}', x], next: b }
    - { id: b, type: http, url: 'https://{% if event.payload.x %}a{% else %}b{% endif %}/x' }
"), @r"
    w/workflow.yaml:4:51: error[tainted_value] /graph/nodes/0/command/0: what `event` brings was sent by somebody, and cannot name a program; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:4:72: error[tainted_value] /graph/nodes/0/command/0: what `p` brings was sent by somebody, and cannot name a program; write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`
    w/workflow.yaml:5:33: error[unsupported] /graph/nodes/1/url: `{% %}` cannot stand before the path of an address; write the scheme and the host out
    ");
}

#[test]
fn programs_are_read_when_compiled() {
    assert_snapshot!(nodes("    - { id: a, type: transform, engine: jq, input: 1, expression: '.a | mpa(.b)', next: b }
    - { id: b, type: transform, engine: jq, input: 1, expression: '[.a | .b', next: c }
    - { id: c, type: transform, engine: jq, input: 1, expression: 'env.HOME', next: d }
    - { id: d, type: transform, engine: jsonpath, input: 1, expression: '$.a[', next: e }
    - { id: e, type: transform, engine: jq, input: 1, expression: 'include \"x\"; 1', next: f }
    - { id: f, type: transform, engine: jq, input: 1, expression: '[.[] | {id, n: (.n // 0)}] | group_by(.n)', next: g }
    - { id: g, type: transform, engine: jsonpath, input: 1, expression: '$.a[?@.b > 1].c' }
"), @r"
    w/workflow.yaml:4:73: error[unknown_name] /graph/nodes/0/expression: there is no filter `mpa` in jq; did you mean `map`?
    w/workflow.yaml:5:76: error[malformed] /graph/nodes/1/expression: this is no jq program: expected closing bracket
    w/workflow.yaml:6:68: error[unsupported] /graph/nodes/2/expression: `env` cannot be used: it reaches out of the program
    w/workflow.yaml:7:77: error[malformed] /graph/nodes/3/expression: this is no JSONPath: parser error
    w/workflow.yaml:8:68: error[unsupported] /graph/nodes/4/expression: a jq program cannot bring in others
    ");
}

#[test]
fn a_deep_program_does_not_end_the_compiler() {
    for program in ["[", "-", "(", ".|", "{a:", "if 1 then ", "def f: "] {
        for count in [190, 20_000] {
            let text = program.repeat(count);
            let text = format!(
                "    - {{ id: a, type: transform, engine: jq, input: 1, expression: '{text}' }}\n"
            );
            let small = std::thread::Builder::new().stack_size(1 << 20);
            small.spawn(move || nodes(&text)).unwrap().join().unwrap();
        }
    }
}

#[test]
fn a_step_of_some_ways_only_is_warned_of() {
    let graph = |last: &str| {
        nodes(&format!("    - {{ id: pick, type: branch, expr: event.payload.x, cases: {{ a: left, default: right }} }}
    - {{ id: left, type: http, url: https://example.org, next: both }}
    - {{ id: right, type: http, url: https://example.org, next: both }}
    - {{ id: both, type: log, message: '{last}' }}
"))
    };
    assert_snapshot!(graph("{{ steps.left.status }} {{ steps.pick.value }}"), @"w/workflow.yaml:7:49: warning[step_not_always] /graph/nodes/3/message: `left` has run on some of the ways to `both` only; put `| default(…)` behind it, or look with `is defined` whether it is there");
    assert_eq!(graph("{{ steps.left.status | default(0) }}"), "");
    assert_eq!(
        graph(
            "{{ steps.left.status if steps.left is defined else steps.right.status | default(1) }}"
        ),
        ""
    );
    let parallel = "    - { id: fan, type: parallel, branches: [left, right], next: m }
    - { id: left, type: http, url: https://example.org }
    - { id: right, type: http, url: https://example.org }
    - { id: m, type: merge, inputs: [left, right], next: both }
    - { id: both, type: log, message: '{{ steps.left.status }} {{ steps.right.status }} {{ steps.m }}' }
";
    assert_eq!(nodes(parallel), "");
    let cases = "    - { id: pick, type: branch, expr: event.payload.x, cases: { a: left, default: right } }
    - { id: left, type: http, url: https://example.org }
    - { id: right, type: http, url: https://example.org }
    - { id: m, type: merge, inputs: [left, right], next: both }
    - { id: both, type: log, message: '{{ steps.right.status }} {{ steps.m }}' }
";
    assert!(nodes(cases).contains("8:49: warning[step_not_always]"), "{}", nodes(cases));
}

#[test]
fn a_trigger_vouches_for_what_it_declares() {
    let graph = |triggers: &str, name: &str| {
        told(&format!(
            "name: Test\ntriggers:\n{triggers}\ngraph:\n  nodes:\n    - {{ id: a, type: shell, command: ['{{{{ event.payload.{name} }}}}'] }}\n"
        ))
    };
    let manual = "  - { type: manual, input: { tool: { type: string, enum: [ls, df], required: true }, n: { type: integer, required: true }, id: { type: string, pattern: '^[a-z]+$', required: true }, any: { type: string }, loose: { type: string, pattern: '^a|b$' } } }";
    for name in ["tool", "n", "id"] {
        assert_eq!(graph(manual, name), "", "{name}");
    }
    for name in ["any", "loose", "other", "tool.x"] {
        assert!(graph(manual, name).contains("tainted_value"), "{name}");
    }
    let two = format!("{manual}\n  - {{ id: other, type: cron, cron: '* * * * *' }}");
    assert!(graph(&two, "tool").contains("tainted_value"));
}

#[test]
fn a_transform_may_be_a_template_in_either_spelling() {
    for engine in ["gotemplate", "template"] {
        for text in ["{{.Event.Payload.who | upper}}", "{{ event.payload.who | upper }}"] {
            let node = format!(
                "  nodes: [{{ id: a, type: transform, engine: {engine}, expression: '{text}' }}]\n"
            );
            let plan = with_nodes(&node).unwrap();
            assert_eq!(setting(&plan, "a", "template"), "{{ event.payload.who | upper }}");
            assert_eq!(
                (setting(&plan, "a", "engine"), setting(&plan, "a", "expression")),
                (&Value::Null, &Value::Null)
            );
        }
    }
}

#[test]
fn what_keeps_a_loop_going_may_look_at_its_last_turn() {
    let polls = |held: &str| {
        nodes(&format!(
            "    - {{ id: poll, type: loop, {held}, body: [ask], next: z }}
    - {{ id: ask, type: http, url: 'http://localhost/' }}
    - {{ id: z, type: end }}
"
        ))
    };
    assert_snapshot!(polls("while: '{{ steps.ask.status | default(0) != 200 }}'"), @"");
    assert_snapshot!(polls("while: '{{ steps.ask.status != 200 and steps.z.result }}'"), @"
    w/workflow.yaml:4:48: warning[step_not_always] /graph/nodes/0/while: `ask` has not run before the first turn; put `| default(…)` behind it, or look with `is defined` whether it is there
    w/workflow.yaml:4:76: error[step_not_before] /graph/nodes/0/while: `z` cannot have run before `poll`; what has run is `ask`
    ");
    assert_snapshot!(polls("count: '{{ steps.ask.status }}'"), @"w/workflow.yaml:4:48: error[step_not_before] /graph/nodes/0/count: `ask` cannot have run before `poll`; nothing has run before this step");
}
