use insta::assert_snapshot;

use super::*;

#[test]
fn lists_are_in_alphabetical_order() {
    assert!(ALIASES.is_sorted_by_key(|item| item.legacy));
    assert!(CONTRACTS.is_sorted_by_key(|item| item.id));
    assert!(FEATURES.is_sorted_by_key(|item| item.id));
    assert!(REFS.is_sorted_by_key(|item| item.id));
    assert!(RUN_TYPES.is_sorted_by_key(|item| item.id));
    assert!(TEMPLATES.is_sorted_by_key(|item| item.id));
}

#[test]
fn old_ids_stand_for_workflows_that_are_there() {
    let paths: Vec<&str> = WORKFLOWS.iter().map(|file| file.path).collect();
    for Alias { legacy, canonical: now } in ALIASES {
        assert!(paths.contains(&format!("{}.yaml", &now["wr.".len()..]).as_str()), "{now}");
        assert_eq!(canonical(legacy), Some(*now));
    }
    assert_eq!(canonical("wr.code-review"), None);
}

#[test]
fn the_page_names_everything_there_is() {
    let (page, catalog) = (page(), Builtins::standard());
    let ids = catalog.contracts.iter().map(|item| item.id);
    let ids = ids.chain(catalog.features.iter().map(|item| item.id));
    let ids = ids.chain(catalog.refs.iter().map(|item| item.id));
    let ids = ids.chain(catalog.runs.iter().map(|item| item.id));
    let ids = ids.chain(catalog.templates.iter().map(|item| item.id));
    let ids = ids.chain(ALIASES.iter().flat_map(|item| [item.legacy, item.canonical]));
    for id in ids {
        assert!(page.contains(&format!("`{id}`")), "{id}");
    }
    for file in WORKFLOWS {
        let id = file.path.trim_end_matches(".yaml");
        assert!(page.contains(&format!("| `wr.{id}` | ")), "{id}");
    }
}

#[test]
fn texts_stay_within_their_budget() {
    for text in REFS {
        assert!(text.text.len() <= 1_024, "{}", text.id);
    }
}

#[test]
fn templates_hold_to_contracts_that_are_there() {
    let builtins = Builtins::standard();
    for template in TEMPLATES {
        assert!(builtins.contract(template.contract).is_some(), "{}", template.id);
        for argument in template.arguments {
            assert!(template.prompt.contains(&format!("{{{argument}}}")), "{}", template.id);
        }
    }
}

#[test]
fn everything_about_a_contract_follows_from_its_fields() {
    let contract = Builtins::standard().contract("wr.contracts.loop_control").unwrap();
    assert_snapshot!(contract.schema(), @r#"{"properties":{"decision":{"description":"the answer","enum":["continue","stop"]},"kind":{"const":"wr.loop_control"},"loopId":{"description":"the loop that is meant","minLength":1,"type":"string"},"metadata":{"description":"figures behind the answer","type":"object"},"summary":{"description":"why","minLength":1,"type":"string"}},"required":["kind","decision"],"type":"object"}"#);
    assert_snapshot!(contract.example(), @r#"{"decision":"continue","kind":"wr.loop_control"}"#);
    assert_snapshot!(contract.guidance(true).join("\n"), @r#"
    Give an artifact of kind `wr.loop_control` (wr.contracts.loop_control): whether the loop goes round again.
    Its fields: `decision` (continue | stop) the answer; `loopId` (text, optional) the loop that is meant; `summary` (text, optional) why; `metadata` (map, optional) figures behind the answer.
    For example `{"decision":"continue","kind":"wr.loop_control"}`.
    "#);
}

#[test]
fn what_only_the_user_can_give_has_the_same_names_as_in_the_log() {
    use cairn_core::reason::{NonAssumableChoice, Reason, UserOnlyDependency};
    let words = |name: &str| match CONTRACTS
        .iter()
        .find(|contract| contract.id == USER_DEPENDENCY)
        .and_then(|contract| contract.fields.iter().find(|field| field.name == name))
        .map(|field| field.shape)
    {
        Some(Shape::OneOf(words)) => words,
        _ => panic!("{name} is no choice"),
    };
    let quoted = |word: &str| format!("\"{word}\"");
    let dependencies: Vec<UserOnlyDependency> =
        words("dependency").iter().map(|w| serde_json::from_str(&quoted(w)).unwrap()).collect();
    let all = Reason::ALL.iter().filter(|reason| matches!(reason, Reason::UserOnly(_)));
    assert_eq!(dependencies.len(), all.count());
    for word in words("choiceKind") {
        assert!(serde_json::from_str::<NonAssumableChoice>(&quoted(word)).is_ok(), "{word}");
    }
}

#[test]
fn examples_have_what_their_schemas_require() {
    for contract in CONTRACTS {
        let (schema, example) = (contract.schema(), contract.example());
        for field in schema["required"].as_array().unwrap() {
            assert!(example.get(field.as_str().unwrap()).is_some(), "{}: {field}", contract.id);
        }
        assert_eq!(schema["properties"]["kind"]["const"], example["kind"]);
    }
}
