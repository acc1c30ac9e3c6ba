use serde_json::json;

use super::*;

const SESSION: SessionId = SessionId::from_bits(1);

/// A segment's record and one of its pin, with every field there is.
fn records() -> Vec<Record> {
    let pin = Pin {
        blob_kind: BlobKind::Artifact,
        created_by_event_id: EventId::from_bits(1),
        event_index: EventIndex(0),
        snapshot_ref: Digest::of(b"blob"),
    };
    let (first, last, commit) = (EventIndex(0), EventIndex(0), Some((Digest::of(b"commit"), 1)));
    let segment = Sealed { first, last, lines: b"{}\n", pins: &[pin], commit };
    let mut before = Some(Digest::of(b"before"));
    let chained = Record::of(&segment, SESSION).zip(0..).map(|(record, index)| {
        let (record, rec) = record.placed(index).chained(before).unwrap();
        before = Some(rec);
        record
    });
    chained.collect()
}

/// A record's line with these members besides its own.
fn with(record: &Record, members: &Value) -> Vec<u8> {
    let mut value = serde_json::to_value(record).unwrap();
    value.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    value.as_object_mut().unwrap().remove("rec");
    value["rec"] = serde_json::to_value(canonical::digest(&value).unwrap()).unwrap();
    canonical::to_vec(&value).unwrap()
}

#[test]
fn the_members_that_are_known_are_those_that_are_written() {
    for (record, known) in records().iter().zip([SEGMENT_CLOSED, SNAPSHOT_PINNED]) {
        let value = serde_json::to_value(record).unwrap();
        let members: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, known);
    }
}

#[test]
fn a_record_of_a_later_format_is_read_as_far_as_it_is_known() {
    for record in records() {
        let line = with(&record, &json!({"needs": 2, "weather": "fine"}));
        let (read, needs) = Record::decode_newer(&line).unwrap();
        assert_eq!(
            (read.index(), read.prev(), read.pin(), needs),
            (record.index(), record.prev(), record.pin(), 2)
        );
        let unknown = with(&record, &json!({"needs": 3, "kind": "segment_moved"}));
        let (read, needs) = Record::decode_newer(&unknown).unwrap();
        assert!(matches!(read, Record::Unknown { .. }));
        assert_eq!((read.index(), read.session(), needs), (record.index(), SESSION, 3));
        for at in 0..line.len() {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert!(Record::decode(&changed).is_err(), "byte {at}");
        }
    }
}

#[test]
fn what_is_unknown_and_not_marked_is_neither_read_nor_cut_off() {
    for record in records() {
        for members in [
            json!({"weather": 1}),
            json!({"needs": 1}),
            json!({"needs": "2"}),
            json!({"kind": "x"}),
        ] {
            let line = with(&record, &members);
            assert_eq!(Record::decode(&line), Err(Error::Unmarked), "{members}");
            assert_eq!(scan(&[&line[..], b"\n"].concat()).tail, Tail::UnknownVersion, "{members}");
        }
    }
}
