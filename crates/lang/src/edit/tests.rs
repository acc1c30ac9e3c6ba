use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const SOURCE: &str = r#"# A workflow, with comments everywhere.
name: Test   # its name
tags: [one, 'two']   # in brackets

env:
- { name: URL, widget: url }   # not indented

graph:
  # The steps.
  nodes:
    - id: fetch        # first
      type: http
      url: "https://example.org"
      headers:
        # Asked for by the other side.
        Accept: 'text/plain'

      next: say

    # Says it.
    - id: say
      type: log
      message: |
        Got {{ steps.fetch.status }} from
          {{ fetch.output.body | truncate 80 }}.

    - { id: done, type: end, result: "{{ steps[\"fetch\"].json }}", when: '{{.Node.fetch.status}} == 200' }
  edges:
    - {from: fetch, to: say}
    - from: say
      to: done
"#;

fn set(pointer: &str, value: Value) -> Edit {
    Edit::Set { pointer: pointer.to_owned(), value }
}

/// What an edit changes: lines that go and lines that come.
fn difference(edit: &Edit) -> String {
    let changed = match apply(SOURCE, edit) {
        Ok(changed) => changed,
        Err(refused) => return refused.to_string(),
    };
    let (before, after): (Vec<&str>, Vec<&str>) =
        (SOURCE.lines().collect(), changed.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - same;
    let tail =
        before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let gone = before[same..before.len() - tail].iter().map(|line| format!("-{line}"));
    let come = after[same..after.len() - tail].iter().map(|line| format!("+{line}"));
    gone.chain(come).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_value_is_set_and_its_comment_stays() {
    assert_snapshot!(difference(&set("/name", json!("Other"))), @"
    -name: Test   # its name
    +name: Other   # its name
    ");
    assert_snapshot!(difference(&set("/tags/1", json!("three: four"))), @r#"
    -tags: [one, 'two']   # in brackets
    +tags: [one, "three: four"]   # in brackets
    "#);
    assert_snapshot!(difference(&set("/graph/nodes/0/headers/Accept", json!("*/*"))), @r#"
    -        Accept: 'text/plain'
    +        Accept: "*/*"
    "#);
    assert_snapshot!(difference(&set("/graph/nodes/1/message", json!("one\ntwo\n"))), @"
    -        Got {{ steps.fetch.status }} from
    -          {{ fetch.output.body | truncate 80 }}.
    +        one
    +        two
    ");
    assert_snapshot!(difference(&set("/graph/nodes/0/headers", json!(null))), @"
    -      headers:
    -        # Asked for by the other side.
    -        Accept: 'text/plain'
    +      headers: null
    ");
    assert_snapshot!(difference(&set("/nothing/there", json!(1))), @"there is nothing at `/nothing`");
}

#[test]
fn keys_and_items_are_added() {
    assert_snapshot!(difference(&set("/graph/nodes/0/timeout_sec", json!(30))), @"
    +      timeout_sec: 30
    ");
    assert_snapshot!(difference(&set("/env/0/default", json!("x"))), @r#"
    -- { name: URL, widget: url }   # not indented
    +- { name: URL, widget: url, default: "x" }   # not indented
    "#);
    let value = json!({"id": "new", "type": "log", "message": "a\nb"});
    assert_snapshot!(difference(&Edit::Insert { pointer: "/graph/nodes".into(), place: 1, value }), @"
    +    - id: new
    +      message: |-
    +        a
    +        b
    +      type: log
    ");
    let value = json!({"name": "KEY", "widget": "secret"});
    assert_snapshot!(difference(&Edit::Insert { pointer: "/env".into(), place: 0, value }), @"
    +- name: KEY
    +  widget: secret
    ");
    assert_snapshot!(difference(&Edit::Insert { pointer: "/tags".into(), place: 9, value: json!("x") }), @r#"
    -tags: [one, 'two']   # in brackets
    +tags: [one, 'two', "x"]   # in brackets
    "#);
}

#[test]
fn keys_and_items_are_removed() {
    let remove = |pointer: &str| difference(&Edit::Remove { pointer: pointer.to_owned() });
    assert_snapshot!(remove("/graph/nodes/0/url"), @r#"
    -      url: "https://example.org"
    "#);
    assert_snapshot!(remove("/graph/nodes/0/id"), @"
    -    - id: fetch        # first
    -      type: http
    +    - type: http
    ");
    assert_snapshot!(remove("/graph/edges/0"), @"
    -    - {from: fetch, to: say}
    ");
    assert_snapshot!(remove("/tags/0"), @"
    -tags: [one, 'two']   # in brackets
    +tags: ['two']   # in brackets
    ");
    assert_snapshot!(remove("/env/0"), @"
    -env:
    -- { name: URL, widget: url }   # not indented
    +env: []   # not indented
    ");
    assert_snapshot!(remove("/graph/edges/7"), @"there is nothing at `/graph/edges/7`");
}

#[test]
fn a_step_is_renamed_wherever_it_is_named() {
    let edit = Edit::RenameStep { from: "fetch".into(), to: "get-it".into() };
    let changed = apply(SOURCE, &edit).unwrap();
    let lines: Vec<&str> =
        changed.lines().zip(SOURCE.lines()).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
    assert_snapshot!(lines.join("\n"), @r#"
        - id: get-it        # first
            Got {{ steps.get-it.status }} from
              {{ get-it.output.body | truncate 80 }}.
        - { id: done, type: end, result: "{{ steps[\"get-it\"].json }}", when: '{{.Node.get-it.status}} == 200' }
        - {from: get-it, to: say}
    "#);
    let back = Edit::RenameStep { from: "get-it".into(), to: "fetch".into() };
    assert_eq!(apply(&changed, &back).as_deref(), Ok(SOURCE));
    let refused = |from: &str, to: &str| {
        apply(SOURCE, &Edit::RenameStep { from: from.into(), to: to.into() })
            .unwrap_err()
            .to_string()
    };
    assert_snapshot!(refused("fetch", "say"), @"`say` names a step already");
    assert_snapshot!(refused("fetch", "A b"), @"`A b` cannot name a step");
    assert_snapshot!(refused("gone", "x"), @"there is nothing at `/graph/nodes/gone`");
    let text = rename_in_text("{{.Node.fetch.x}} fetch", "fetch", "got", &|name| name == "fetch");
    assert_eq!(text.as_deref(), Some("{{.Node.got.x}} fetch"));
}

/// Every place in a document.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut each = |name: &str, value: &Value| {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        pointers(value, &pointer, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| each(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, value)| each(&n.to_string(), value))
        }
        _ => {}
    }
}

fn comments(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| {
            line.find(" #").or(line.starts_with('#').then_some(0)).map(|at| line[at..].trim())
        })
        .collect()
}

const SOURCES: [&str; 2] = [SOURCE, include_str!("../graph/tests/everything.yaml")];

#[test]
fn a_value_that_is_set_to_itself_changes_nothing() {
    for source in SOURCES {
        let document = read(source).unwrap();
        let mut found = Vec::new();
        pointers(&document, "", &mut found);
        for pointer in found {
            let value = document.pointer(&pointer).unwrap().clone();
            assert_eq!(apply(source, &set(&pointer, value)).as_deref(), Ok(source), "{pointer}");
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-99i64..99).prop_map(Value::from),
        "[a-z0-9 :#'\"{}\\[\\]\\n-]{0,12}".prop_map(Value::from),
        proptest::sample::select(vec![
            "no", "1e3", "~", "- a", "a: b", "{{ x }}", "é", "\t", "a\n\nb\n", "x #y"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z #]{1,5}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// An edit is held to its meaning when it is made, so what counts here is that simple
    /// ones are not refused, and that comments outside of what goes are kept.
    #[test]
    fn any_value_can_be_set_anywhere(which in 0usize..2, place: prop::sample::Index, value in any_value()) {
        let source = SOURCES[which];
        let mut found = Vec::new();
        pointers(&read(source).unwrap(), "", &mut found);
        let pointer = place.get(&found);
        let changed = apply(source, &set(pointer, value.clone()));
        prop_assert!(changed.is_ok(), "{pointer} = {value}: {changed:?}");
        let document = read(source).unwrap();
        if let Some(Value::String(old)) = document.pointer(pointer)
            && !value.is_object() && !old.contains('\n') && !value.to_string().contains('#')
        {
            let changed = changed.unwrap();
            prop_assert_eq!(comments(&changed), comments(source), "{} = {}", pointer, value);
        }
    }

    #[test]
    fn whatever_is_put_in_can_be_taken_out(value in any_value(), place in 0usize..9) {
        for source in SOURCES {
            for pointer in ["/graph/nodes", "/tags"] {
                let Some(count) = read(source).unwrap().pointer(pointer).and_then(Value::as_array).map(Vec::len) else { continue };
                let edit = Edit::Insert { pointer: pointer.to_owned(), place, value: value.clone() };
                let changed = apply(source, &edit);
                prop_assert!(changed.is_ok(), "{pointer}: {value}: {changed:?}");
                let remove = Edit::Remove { pointer: format!("{pointer}/{}", place.min(count)) };
                let back = apply(&changed.unwrap(), &remove);
                prop_assert_eq!(back.as_deref(), Ok(source), "{}", value);
            }
        }
    }
}
