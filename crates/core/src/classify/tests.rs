//! Odd answers, and laws over all of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn rules(fuzzy: bool, threshold: f64) -> Rules {
    let cases = ["bug", "question", "feature_request", "other"].map(str::to_owned).to_vec();
    Rules { cases, fuzzy, threshold }
}

fn decided(text: &str, rules: &Rules) -> (String, &'static str) {
    let verdict = decide(&[read(text, None, rules)], rules);
    (verdict.case, verdict.layer.name())
}

// case: classify.declared
#[test]
fn odd_answers_are_read_as_they_always_were() {
    let mut told = String::new();
    for line in include_str!("tests/odd.jsonl").lines() {
        let answer: String = serde_json::from_str(line).unwrap();
        let (case, layer) = decided(&answer, &rules(true, 0.0));
        let (strict, _) = decided(&answer, &rules(false, 0.0));
        let shown: String = line.chars().take(90).collect();
        let apart = if strict == case { String::new() } else { format!(" (strict: {strict})") };
        told.push_str(&format!("{case} by {layer}{apart}: {shown}\n"));
    }
    for (told, golden) in told.lines().zip(include_str!("tests/odd.txt").lines()) {
        assert_eq!(told, golden);
    }
    assert_eq!(told.lines().count(), 239);
}

#[test]
fn the_examples_of_the_manual_hold() {
    let on = rules(true, 0.0);
    for (answer, case, layer) in [
        ("bug", "bug", "exact_match"),
        ("Bug.", "bug", "normalize"),
        ("bug_report", "bug", "fuzzy_match"),
        ("kestion", "question", "fuzzy_match"),
        ("I think this is bug", "bug", "fuzzy_match"),
        ("bug or question", "default", "none"),
        ("", "default", "none"),
        (r#"{"verdict":"bug","confidence":0.9}"#, "bug", "structured_output"),
        (r#"{"verdict":"bug"} {"verdict":"other"}"#, "default", "none"),
    ] {
        assert_eq!(decided(answer, &on), (case.to_owned(), layer), "{answer}");
    }
    assert_eq!(decided("bug_report", &rules(false, 0.0)), ("default".to_owned(), "none"));
}

#[test]
fn a_megabyte_is_read_in_no_time() {
    let long = "the bug is ".repeat(100_000);
    assert_eq!(decided(&long, &rules(true, 0.0)).0, "bug");
    assert_eq!(decided(&"{".repeat(1 << 20), &rules(true, 0.0)).0, "default");
    assert_eq!(decided(&r#"{"a":"#.repeat(1 << 17), &rules(true, 0.0)).0, "default");
}

#[test]
fn a_later_answer_decides_by_retry_and_confidence_counts() {
    let on = rules(true, 0.5);
    let sure = json!({"verdict": "bug", "confidence": 0.9});
    let unsure = json!({"verdict": "bug", "confidence": 0.2});
    let silent = json!({"verdict": "bug"});
    let no = read("hm", None, &on);
    let by = |answers: &[Reading]| {
        let verdict = decide(answers, &on);
        (verdict.case, verdict.layer.name())
    };
    let read = |value: &Value| read("", Some(value), &on);
    assert_eq!(by(&[read(&sure)]), ("bug".to_owned(), "structured_output"));
    assert_eq!(by(&[no, read(&sure)]), ("bug".to_owned(), "retry_on_mismatch"));
    assert_eq!(by(&[read(&unsure)]), ("default".to_owned(), "confidence_threshold"));
    assert_eq!(by(&[read(&silent)]), ("default".to_owned(), "confidence_threshold"));
    assert_eq!(by(&[]), ("default".to_owned(), "none"));
}

fn answer() -> impl Strategy<Value = String> {
    let words =
        ["bug", "question", "Feature_Request", "other", "default", "{", "}", "\"verdict\":"];
    let words = proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
    let part = prop_oneof![words, any::<String>(), "[a-z ]{0,12}"];
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn structured() -> impl Strategy<Value = Option<Value>> {
    let verdict = prop_oneof![
        answer().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        Just(Value::Null),
    ];
    proptest::option::of((verdict, any::<f64>()).prop_map(|(verdict, confidence)| {
        json!({"verdict": verdict, "confidence": confidence, "reasoning": "r"})
    }))
}

proptest! {
    /// Whatever a model answers, the run goes to a declared case or to `default`, and the layer
    /// that decided is known.
    #[test]
    fn whatever_is_answered_ends_in_a_case_or_the_default(
        answers in proptest::collection::vec((answer(), structured()), 0..4),
        fuzzy: bool,
        threshold in 0.0..1.5f64,
    ) {
        let rules = rules(fuzzy, threshold);
        let read: Vec<Reading> =
            answers.iter().map(|(text, value)| super::read(text, value.as_ref(), &rules)).collect();
        let verdict = decide(&read, &rules);
        let declared = rules.cases.contains(&verdict.case);
        prop_assert!(declared || verdict.case == DEFAULT);
        let by_default = matches!(verdict.layer, Layer::None | Layer::ConfidenceThreshold);
        prop_assert_eq!(declared, !by_default);
        prop_assert!(verdict.confidence.is_none_or(|share| (0.0..=1.0).contains(&share)));
        if declared && threshold > 0.0 {
            prop_assert!(verdict.confidence.is_some_and(|share| share >= threshold));
        }
        prop_assert!(fuzzy || verdict.layer != Layer::FuzzyMatch);
    }
}
