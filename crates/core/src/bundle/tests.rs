use super::*;

/// A bundle of which one part is this text.
fn bundle(part: &str, text: &str) -> String {
    let session = SessionId::from_bits(1);
    let parts = ["events", "manifest", "pinnedWorkflows", "snapshots", "blobs"];
    let usual = |name: &str| if name == "events" || name == "manifest" { "[]" } else { "{}" };
    let parts =
        parts.map(|name| format!("\"{name}\":{}", if name == part { text } else { usual(name) }));
    format!(
        "{{\"bundleId\":\"{}\",\"bundleSchemaVersion\":1,\"exportedAt\":\"\",\"integrity\":{{\"entries\":[],\"kind\":\"{INTEGRITY}\"}},\"producer\":{{\"appVersion\":\"0\"}},\"session\":{{{},\"sessionId\":\"{session}\"}}}}",
        BundleId::from_bits(1),
        parts.join(",")
    )
}

fn told(part: &str, text: &str) -> String {
    match unpack(bundle(part, text).as_bytes()) {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

// case: bundle.shape
#[test]
fn a_bundle_of_countless_small_values_is_refused_at_once() {
    let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
    let members = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!("\"{at}\":0")).collect();
        format!("{{{}}}", all.join(","))
    };
    for (part, text, why) in [
        ("events", list("{\"a\":1}", 300_000), "event 0"),
        ("events", list("0", 1_200_000), "event 0"),
        ("events", format!("[{}]", list("{\"a\":1}", 200_000)), "small values"),
        ("manifest", list("0", 1_000_001), "items"),
        ("manifest", format!("[{}]", list("[[]]", 700_000)), "small values"),
        ("snapshots", members(100_001), "blobs"),
        ("snapshots", format!("{{\"a\":{}}}", list("{\"a\":1}", 200_000)), "small values"),
        ("pinnedWorkflows", members(100_001), "blobs"),
        ("blobs", members(10), "invalid type"),
        ("events", "[".repeat(100_000) + &"]".repeat(100_000), "deep"),
        ("snapshots", "{\"a\":0,\"b\":0,\"a\":0}".to_owned(), "twice"),
        ("snapshots", "{\"a\":{\"b\":0,\"b\":0}}".to_owned(), "twice"),
        ("events", "[{\"a\":99999999999999999999}]".to_owned(), "2^53"),
        ("events", "{}".to_owned(), ""),
        ("snapshots", "[]".to_owned(), ""),
    ] {
        let told = told(part, &text);
        let text: String = text.chars().take(30).collect();
        let fine = told.starts_with("BUNDLE_INVALID_FORMAT");
        assert!(fine && told.contains(why), "{part} {text}: {told}");
    }
    assert!(told("", "").starts_with("BUNDLE_INTEGRITY_FAILED"), "{}", told("", ""));
}

#[test]
fn a_blob_is_attested_as_it_is_written() {
    let of = |text: &str| blob(text).unwrap();
    let plain = of("\"aGVsbG8=\"");
    assert_eq!((plain.0.as_slice(), plain.2), (&b"hello"[..], 10));
    // The same text in another spelling has the same canonical form.
    assert_eq!(of("\"aGVsbG8\\u003d\""), plain);
    assert!(blob("\"no base64!\"").is_err() && blob("7").is_err());
}
