mod evaluate;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn is_step(name: &str) -> bool {
    ["fetch", "classify-intent", "t"].contains(&name)
}

/// A template in the one spelling, or why it is none.
fn spelled(text: &str) -> String {
    match template(text, &is_step) {
        Ok(template) => template.to_string(),
        Err(fault) => format!(
            "{}: {}{}",
            fault.at,
            fault.message,
            match fault.kind {
                FaultKind::Unknown { known, .. } => format!("; there are {}", known.join(", ")),
                _ => String::new(),
            }
        ),
    }
}

fn condition(text: &str) -> String {
    match expression(text, &is_step) {
        Ok(expr) => expr.to_string(),
        Err(fault) => format!("{}: {}", fault.at, fault.message),
    }
}

#[test]
fn three_spellings_become_one() {
    assert_snapshot!(spelled("{{ steps.fetch.json.items | length }}"), @"{{ steps.fetch.json.items | length }}");
    assert_snapshot!(spelled("{{.Node.fetch.json.items | length}}"), @"{{ steps.fetch.json.items | length }}");
    assert_snapshot!(spelled("{{ fetch.output.json.items | count }}"), @"{{ steps.fetch.json.items | length }}");
    assert_snapshot!(spelled("T: {{.Event.Payload.text | truncate 80}}!"), @"T: {{ event.payload.text | truncate(80) }}!");
    assert_snapshot!(spelled("{{ trigger.payload.x }}{{.Env.A}}{{.Secret.B}}"), @"{{ event.payload.x }}{{ env.A }}{{ secret.B }}");
    assert_snapshot!(spelled("{{.Run.StartedAt}} {{.Event.At}}"), @"{{ run.started_at }} {{ event.at }}");
    assert_snapshot!(spelled("{{.Item.id}} {{ item.id }}"), @"{{ item.id }} {{ item.id }}");
}

#[test]
fn steps_with_hyphens_are_found_in_every_spelling() {
    let one = r#"{{ steps["classify-intent"].verdict }}"#;
    assert_eq!(spelled("{{ steps.classify-intent.verdict }}"), one);
    assert_eq!(spelled("{{.Node.classify-intent.verdict}}"), one);
    assert_eq!(spelled("{{ classify-intent.output.verdict }}"), one);
    assert_eq!(spelled("{{ steps['classify-intent']['verdict'] }}"), one);
    assert_snapshot!(spelled("{{ steps.t.a-1 }}"), @"{{ steps.t.a - 1 }}");
}

#[test]
fn braces_in_a_condition_are_parentheses() {
    assert_snapshot!(condition(r#"{{.Node.t.priority}} == "p0""#), @r#"steps.t.priority == "p0""#);
    assert_snapshot!(condition("{{ fetch.output.n + 1 }} * 2 > 3 && !{{.Env.OFF}}"), @"(steps.fetch.n + 1) * 2 > 3 and not env.OFF");
    assert_snapshot!(condition("a.b is not none and c not in [1, 'x', none]"), @r#"a.b is not none and c not in [1, "x", none]"#);
    assert_snapshot!(condition("'yes' if event.payload.n else {'a': [1]}"), @r#""yes" if event.payload.n else {"a": [1] }"#);
    assert_snapshot!(condition("-1 | abs - -2"), @"-1 | abs - -2");
}

#[test]
fn what_is_no_template_is_told_with_its_place() {
    assert_snapshot!(spelled("a {{ steps.fetch "), @"2: `{{` is not closed");
    assert_snapshot!(spelled("{{ steps.fetch steps }}"), @"15: this cannot follow here");
    assert_snapshot!(spelled("{{ }}"), @"3: a value should stand here");
    assert_snapshot!(spelled("{{ .Nod.x }}"), @"4: there is nothing that `.Nod` stands for; there are .Env, .Event, .Index, .Item, .Node, .Run, .Secret, .Trigger");
    assert_snapshot!(spelled("{% if x %}"), @"0: `{% if %}` is not ended");
    assert_snapshot!(spelled("{% if x %}{% endfor %}"), @"13: `endfor` belongs to no open tag");
    assert_snapshot!(spelled("{% macro x %}"), @"3: there is no tag `macro`; there are break, continue, elif, else, endfor, endif, for, if, set");
    assert_snapshot!(spelled("{% for steps in x %}"), @"7: `steps` has a meaning already");
    assert_snapshot!(spelled("{{ x is defind }}"), @"8: there is no test `defind`; there are boolean, defined, false, mapping, none, number, sequence, string, true, undefined");
    assert_snapshot!(spelled("{{ rnge(3) }}"), @"3: there is no function `rnge`; there are range");
    assert_snapshot!(spelled(&format!("{{{{ {}1", "(".repeat(100_000))), @"35: the expression nests deeper than 32 levels");
    assert_snapshot!(spelled("a { b }} c {"), @"a { b }} c {");
}

#[test]
fn tags_are_read_and_written() {
    let text = "{% for a, b in x.y if a -%}{% if not b %}{{ a ~ b }}{% elif a %}{% break %}{% else %}{% set c = 1 %}{% endif %}{%- endfor %}";
    assert_eq!(spelled(text), text);
    assert_snapshot!(spelled("{%for x in fetch.output.json.items%}{{.Node.t.x}}{%endfor%}"), @"{% for x in steps.fetch.json.items %}{{ steps.t.x }}{% endfor %}");
}

#[test]
fn references_and_flows_are_told_apart() {
    let names = |list: Vec<Reference>| {
        let name = |r: Reference| {
            let members = r.members.into_iter().map(|(name, _)| name.unwrap_or("*".into()));
            std::iter::once(r.root).chain(members).collect::<Vec<_>>().join(".")
        };
        list.into_iter().map(name).collect::<Vec<_>>().join(" ")
    };
    let expr = |text: &str| expression(text, &is_step).unwrap();
    let all = expr("steps.t.rows[run.n].id ~ event.payload.x | int if env.A == 'x' else item");
    assert_snapshot!(names(all.references()), @"steps.t.rows.*.id run.n event.payload.x env.A item");
    assert_snapshot!(names(all.flows()), @"steps.t.rows.*.id item");
    let filters: Vec<_> = all.filters().iter().map(|call| (call.name.as_str(), call.at)).collect();
    assert_eq!(filters, [("int", 43)]);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in r#"[{}a-z.|"'()\[\]0-9 +~é-]{0,40}"#) {
        let _ = template(&text, &is_step);
        let _ = expression(&text, &is_step);
    }

    #[test]
    fn the_one_spelling_is_read_as_itself(text in r#"(steps\.fetch|env\.A|not |-|\(|\)| (\+|-|~|\*|==|and|or|in|if|else) |\[0\]| \| (int|first)|1|"x"){1,9}"#) {
        if let Ok(expr) = expression(&text, &is_step) {
            let once = expr.to_string();
            let again = expression(&once, &is_step).map(|expr| expr.to_string());
            prop_assert_eq!(again, Ok(once));
        }
    }
}
