use std::fs;

use insta::assert_snapshot;

use super::answers::ANSWERS;
use super::*;
use crate::exit::Exit;

#[test]
fn codes_are_listed_once_and_in_order() {
    assert!(ANSWERS.is_sorted_by(|a, b| a.code < b.code));
}

#[test]
fn every_code_has_an_answer_and_a_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
    let pages = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut pages: Vec<String> = pages
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".md")?.to_owned()))
        .filter(|name| name != "README")
        .collect();
    pages.sort();
    let codes: Vec<&str> = ANSWERS.iter().map(|answer| answer.code).collect();
    assert_eq!(codes, pages);
}

#[test]
fn every_page_names_its_exit_code_and_its_suggestion_is_a_sentence() {
    for answer in ANSWERS {
        let path = format!("{}/../../docs/errors/{}.md", env!("CARGO_MANIFEST_DIR"), answer.code);
        let page = fs::read_to_string(path).unwrap();
        let wanted = format!("HTTP status {}, exit code {}.", answer.status, answer.exit);
        assert!(page.contains(&wanted), "{} does not say `{wanted}`", answer.code);
        assert!(page.starts_with(&format!("# {}\n", answer.code)), "{}", answer.code);
        assert!(answer.suggestion.len() > 10 && !answer.suggestion.ends_with('.'));
    }
}

#[test]
fn an_envelope_says_what_to_do_and_carries_values() {
    let session = SessionId::mint(1_700_000_000_000, 7);
    let error = Error::from(store::Error::Locked { session, holder: Some("process 4711".into()) });
    assert_snapshot!(serde_json::to_string_pretty(&error.envelope()).unwrap(), @r#"
    {
      "code": "SESSION_LOCKED",
      "details": {
        "holder": "process 4711",
        "sessionId": "sess_01hf7yat000000000000000007"
      },
      "message": "session sess_01hf7yat000000000000000007 is locked by process 4711",
      "retry": {
        "kind": "retryable_after_ms",
        "afterMs": 1000
      },
      "suggestion": "wait for the other process to finish, then try again"
    }
    "#);
    assert_eq!((error.status(), error.exit()), (409, Exit::Conflict));
}

#[test]
fn a_refusal_by_the_system_is_told_apart_from_a_broken_disk() {
    let io = |kind: io::ErrorKind| {
        let source = io::Error::from(kind).into();
        Error::from(store::Error::Io { context: "reading x".into(), source })
    };
    assert_eq!(io(io::ErrorKind::PermissionDenied).code(), "STORE_DENIED");
    assert_eq!(io(io::ErrorKind::InvalidData).code(), "STORE_IO");
}

#[test]
fn a_wrong_command_line_brings_its_own_suggestion() {
    let error = Error::Usage { message: "no".into(), suggestion: "type yes".into() };
    assert_eq!(error.envelope().suggestion, "type yes");
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn no_suggestion_sends_in_a_circle() {
    let session = SessionId::mint(1_700_000_000_000, 7);
    let suggestion = |health| {
        let what = "x".into();
        Error::from(store::Error::Corrupt { session, health, what }).envelope().suggestion
    };
    assert!(suggestion(store::Health::CorruptTail).contains("cairn session export"));
    assert!(!suggestion(store::Health::CorruptHead).contains("cairn session export"));
}
