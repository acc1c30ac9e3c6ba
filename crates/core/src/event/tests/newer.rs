//! Lines of a later format, and lines that pretend not to be.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::super::*;
use super::golden::example;
use crate::canonical;

/// An example's line after a change, written canonically.
fn line(kind: Kind, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(&example(kind).encode().unwrap()).unwrap();
    change(&mut value);
    canonical::to_vec(&value).unwrap()
}

#[test]
fn every_known_event_of_a_later_format_is_read_and_carried_as_it_stands() {
    for kind in Kind::ALL {
        let line = line(*kind, |value| {
            value["needs"] = json!(2);
            value["weather"] = json!("fine");
            value["data"]["weather"] = json!({"sun": [1, 2.5]});
        });
        let event = Event::decode(&line).unwrap();
        let known = example(*kind);
        assert_eq!((&event.data, event.scope, event.id), (&known.data, known.scope, known.id));
        assert_eq!((event.needs(), event.encode().unwrap()), (2, line.clone()));
        assert_eq!(event.dedupe_key(), known.dedupe_key());
        let header = Header::decode(&line).unwrap();
        assert_eq!((header.needs, header.kind.as_ref()), (2, kind.name()));
    }
}

#[test]
fn what_is_not_known_is_carried_and_not_guessed_at() {
    let unknown = line(Kind::StepWaiting, |value| {
        value["needs"] = json!(3);
        value["kind"] = json!("step_dreaming");
        value["dedupeKey"] = json!("step_dreaming:1");
        value["data"] = json!({"of": "sheep"});
    });
    let event = Event::decode(&unknown).unwrap();
    assert_eq!(event.data, EventData::Unknown("step_dreaming".into()));
    assert_eq!((event.needs(), event.encode().unwrap()), (3, unknown));
    assert_eq!(event.dedupe_key().as_str(), "step_dreaming:1");
    // A word that is not known makes the whole event one that is not.
    let other = line(Kind::StepWaiting, |value| {
        value["needs"] = json!(2);
        value["data"]["waitingFor"] = json!("godot");
    });
    assert_eq!(Event::decode(&other).unwrap().data, EventData::Unknown("step_waiting".into()));
}

#[test]
fn an_event_of_an_unknown_kind_cannot_be_recorded() {
    let (id, scope) = (EventId::from_bits(1), Scope::Session);
    let event = NewEvent { id, scope, data: EventData::Unknown("step_dreaming".into()) };
    assert_snapshot!(event.check().unwrap_err(), @"an event whose kind this program does not know cannot be recorded");
}

#[test]
fn what_is_newer_and_does_not_say_so_is_refused() {
    let refused = |change: &dyn Fn(&mut Value)| {
        Event::decode(&line(Kind::RunCancelled, change)).unwrap_err().to_string()
    };
    assert_snapshot!(refused(&|value| value["weather"] = json!(1)), @"not an event: unknown field `weather`, expected one of `data`, `dedupeKey`, `eventId`, `eventIndex`, `kind`, `needs`, `scope`, `sessionId`, `v` at line 1 column 295");
    assert_snapshot!(refused(&|value| value["data"]["weather"] = json!(1)), @"not an event: data of run_cancelled: unknown field `weather`, there are no fields at line 1 column 10");
    assert_snapshot!(refused(&|value| value["kind"] = json!("run_forgotten")), @"`run_forgotten` is not a kind of event that this program knows");
    assert_snapshot!(refused(&|value| value["needs"] = json!(1)), @"the event says that it needs format 1, which is not said of any event");
    assert_snapshot!(refused(&|value| value["needs"] = json!("2")), @r#"not an event: invalid type: string "2", expected u32 at line 1 column 194"#);
    assert_snapshot!(refused(&|value| { value["needs"] = json!(1); value["weather"] = json!(1); }), @"not an event: unknown field `weather`, expected one of `data`, `dedupeKey`, `eventId`, `eventIndex`, `kind`, `needs`, `scope`, `sessionId`, `v` at line 1 column 305");
    assert_snapshot!(refused(&|value| { value["needs"] = json!(2); value["v"] = json!(2); }), @"the event is of version 2; this program reads version 1");
}
