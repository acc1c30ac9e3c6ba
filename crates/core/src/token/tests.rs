use super::compact::{Attempt, CompactToken, Kind, LABEL_MAX, LEN_MAX, Label};
use super::*;
use crate::digest::Digest;
use crate::id::EventIndex;

fn key(byte: u8) -> SigningKey {
    SigningKey::new([byte; 32])
}

fn keys() -> Keyring {
    Keyring::new(key(7))
}

fn state() -> StateToken {
    StateToken {
        session: SessionId::from_bits(1),
        run: RunId::from_bits(2),
        node: NodeId::from_bits(3),
        workflow_hash: WorkflowHash(Digest::of(b"plan")),
    }
}

fn attempt() -> AttemptToken {
    let StateToken { session, run, node, .. } = state();
    AttemptToken { session, run, node, attempt: AttemptId::from_bits(4) }
}

fn compact() -> CompactToken {
    CompactToken {
        label: Label::new("bug-hunt-quiet-otter").unwrap(),
        session: SessionId::from_bits(u128::MAX - 5),
        node: EventIndex((1 << 40) - 1),
        attempt: Attempt(u64::MAX - 7),
    }
}

/// Signs any payload, as somebody with the key and without scruples would.
fn forge(prefix: &str, payload: &str) -> String {
    seal(prefix, payload.as_bytes(), &keys())
}

#[test]
fn tokens_read_as_they_were_signed() {
    assert_eq!(StateToken::verify(&state().sign(&keys()).unwrap(), &keys()), Ok(state()));
    for purpose in [Purpose::Ack, Purpose::Checkpoint] {
        let text = attempt().sign(purpose, &keys()).unwrap();
        assert_eq!(AttemptToken::verify(&text, purpose, &keys()), Ok(attempt()));
    }
    for kind in [Kind::Continue, Kind::Checkpoint] {
        let text = compact().sign(kind, &keys());
        assert_eq!(CompactToken::verify(&text, kind, &keys()), Ok(compact()));
    }
}

/// Both were computed by another program.
#[test]
fn the_spelling_is_pinned() {
    insta::assert_snapshot!(attempt().sign(Purpose::Ack, &keys()).unwrap(), @"ack.v1.eyJhdHRlbXB0SWQiOiJhdHRfMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDQiLCJub2RlSWQiOiJub2RlXzAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAzIiwicnVuSWQiOiJydW5fMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDIiLCJzZXNzaW9uSWQiOiJzZXNzXzAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAxIiwidG9rZW5LaW5kIjoiYWNrIiwidG9rZW5WZXJzaW9uIjoxfQ.vnp7ef0881mBO5T_TcyzpHZPl8nSZtiMqfuSnAluvjk");
    insta::assert_snapshot!(compact().sign(Kind::Continue, &keys()), @"bug-hunt-quiet-otter.Af____________________r________________4pPre1JbEsFBczbwcQrrvXg");
}

#[test]
fn the_longest_compact_token_is_short_enough() {
    let label = Label::new(&"x".repeat(LABEL_MAX)).unwrap();
    let text = CompactToken { label, ..compact() }.sign(Kind::Continue, &keys());
    assert!(text.len() <= LEN_MAX, "{}", text.len());
    assert_eq!(Label::new(&"x".repeat(LABEL_MAX + 1)), None);
    assert_eq!(Label::new("Bug"), None);
    assert_eq!(Label::new(""), None);
}

// case: token.changed
#[test]
fn every_changed_character_is_refused() {
    let flip = |text: &str, at: usize, by: u8| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= by;
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (long, short) = (state().sign(&keys()).unwrap(), compact().sign(Kind::Continue, &keys()));
    for by in [1, 2, 4, 8, 0x10, 0x20, 0x40] {
        for at in 0..long.len() {
            assert!(StateToken::verify(&flip(&long, at, by), &keys()).is_err(), "{at}");
        }
        for at in 0..short.len() {
            let changed = flip(&short, at, by);
            assert!(CompactToken::verify(&changed, Kind::Continue, &keys()).is_err(), "{at}");
        }
    }
    for cut in 0..long.len() {
        assert!(StateToken::verify(&long[..cut], &keys()).is_err(), "{cut}");
    }
    for cut in 0..short.len() {
        assert!(CompactToken::verify(&short[..cut], Kind::Continue, &keys()).is_err(), "{cut}");
    }
}

/// Each kind of token has signatures of one length, and a shorter one is none, however it is
/// spelled.
#[test]
fn a_signature_of_another_length_is_none() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let long = state().sign(&keys()).unwrap();
    let (head, signature) = long.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    assert_eq!(signature.len(), 32);
    for len in (0..32).chain([33, 48, 64]) {
        let mut other = signature.clone();
        other.resize(len, 0);
        let token = format!("{head}.{}", URL_SAFE_NO_PAD.encode(other));
        assert!(StateToken::verify(&token, &keys()).is_err(), "{len} bytes");
    }
    let short = compact().sign(Kind::Continue, &keys());
    for len in [1, 8, 15, 17, 32] {
        let longer = format!("{short}{}", "A".repeat(len));
        assert!(CompactToken::verify(&longer, Kind::Continue, &keys()).is_err(), "{len} more");
    }
}

// case: token.kind
#[test]
fn one_kind_is_not_taken_for_another() {
    let ack = attempt().sign(Purpose::Ack, &keys()).unwrap();
    let relabelled = ack.replacen("ack.", "chk.", 1);
    let wrong = AttemptToken::verify(&relabelled, Purpose::Checkpoint, &keys());
    assert_eq!(wrong, Err(Error::InvalidFormat), "the signature does not cover the prefix");
    assert_eq!(AttemptToken::verify(&ack, Purpose::Checkpoint, &keys()), Err(Error::InvalidFormat));
    let text = compact().sign(Kind::Continue, &keys());
    let wrong = CompactToken::verify(&text, Kind::Checkpoint, &keys());
    assert_eq!(wrong, Err(Error::BadSignature));
}

// case: token.spelling
#[test]
fn one_token_has_one_spelling() {
    let good = canonical::to_vec(&AttemptWire {
        attempt_id: attempt().attempt,
        node_id: attempt().node,
        run_id: attempt().run,
        session_id: attempt().session,
        token_kind: "ack".into(),
        token_version: 1,
    });
    let good = String::from_utf8(good.unwrap()).unwrap();
    let verify = |text: &str| AttemptToken::verify(text, Purpose::Ack, &keys());
    assert!(verify(&forge("ack", &good)).is_ok());
    for payload in [
        good.replace(':', ": "),
        good.replace(r#""tokenVersion":1"#, r#""tokenVersion":1.0"#),
        good.replacen('{', r#"{"tokenVersion":1,"#, 1),
        good.replacen('{', r#"{"also":1,"#, 1),
        good.replace(r#""tokenVersion":1"#, r#""tokenVersion":2"#),
        "{}".to_owned(),
        "null".to_owned(),
    ] {
        assert_eq!(verify(&forge("ack", &payload)), Err(Error::InvalidFormat), "{payload}");
    }
    let text = forge("ack", &good);
    for changed in
        [format!("{text}="), format!("{text}."), text.replace("v1", "v1 "), format!(" {text}")]
    {
        assert_eq!(verify(&changed), Err(Error::InvalidFormat), "{changed}");
    }
    assert_eq!(verify(&text.replacen("v1", "v2", 1)), Err(Error::UnsupportedVersion));
}

// case: token.rotation
#[test]
fn a_token_is_valid_until_the_second_rotation() {
    let text = compact().sign(Kind::Continue, &keys());
    let verify = |keys: &Keyring| CompactToken::verify(&text, Kind::Continue, keys);
    let once = keys().rotated(key(8));
    assert_eq!(verify(&once), Ok(compact()));
    assert_eq!(verify(&once.rotated(key(9))), Err(Error::BadSignature));
}

// case: token.scope
#[test]
fn an_attempt_belongs_to_its_node_alone() {
    assert_eq!(attempt().belongs_to(&state()), Ok(()));
    let other = [
        AttemptToken { session: SessionId::from_bits(9), ..attempt() },
        AttemptToken { run: RunId::from_bits(9), ..attempt() },
        AttemptToken { node: NodeId::from_bits(9), ..attempt() },
    ];
    for other in other {
        assert_eq!(other.belongs_to(&state()), Err(Error::ScopeMismatch));
    }
}

#[test]
fn the_next_attempt_follows_from_the_last() {
    let node = NodeId::from_bits(3);
    let first = Attempt(1);
    assert_eq!(first.next(node), first.next(node));
    assert_ne!(first.next(node), first);
    assert_ne!(first.id(node), first.id(NodeId::from_bits(4)));
    assert_ne!(first.id(node), first.next(node).id(node));
}
