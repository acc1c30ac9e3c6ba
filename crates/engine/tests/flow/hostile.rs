//! Bundles of every wrong shape: each member of a sound one in turn is something else, is missing,
//! or is there twice. They are refused by name or are paper, and leave nothing behind.

use std::collections::BTreeMap;

use cairn_core::id::BundleId;
use cairn_store::bundle::{self, ExportInfo};
use serde_json::{Value, json};

use crate::recovery::left;
use crate::world::World;

const OPEN: &str = "
    { id: a, type: log, message: first, next: hold }
    { id: hold, type: log, message: hold }
";

/// Members that are looked at: those of the bundle, and those of what is in it.
const DEPTH: usize = 3;

/// The paths of all members, the outermost first. Of a list the first item stands for all.
fn paths(value: &Value, path: &str, depth: usize, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => {
            items.first().map(|item| ("0".to_owned(), item)).into_iter().collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in inner {
        let path = format!("{path}/{name}");
        found.push(path.clone());
        if depth > 1 {
            paths(value, &path, depth - 1, found);
        }
    }
}

/// What stands in the place of a member.
fn hostile() -> BTreeMap<&'static str, Value> {
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    BTreeMap::from([
        ("nothing", Value::Null),
        ("a number", json!(-1)),
        ("a large number", json!(u64::MAX)),
        ("a text", json!("x")),
        ("a path", json!("../../keys/keyring.json")),
        ("a long text", json!("x".repeat(1 << 20))),
        ("an empty list", json!([])),
        ("an empty map", json!({})),
        ("a deep value", deep),
        ("a map with odd names", json!({"__proto__": {"trusted": true}, "trusted": true})),
    ])
}

/// A bundle as text, with a member there twice.
fn twice(bundle: &Value, name: &str) -> String {
    let text = bundle.to_string();
    let member = format!("{}:{}", json!(name), bundle[name]);
    text.replacen('{', &format!("{{{member},"), 1)
}

// case: bundle.shape
#[tokio::test]
async fn a_bundle_of_a_wrong_shape_is_refused_or_paper() {
    let (there, here) = (World::new(&[("w", OPEN)]), World::new(&[("w", OPEN)]));
    let run = left(&there, "w").await;
    let session = there.engine().past(run).await.unwrap().summary.session;
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    let bytes = bundle::export(&there.store(), session, info).await.unwrap();
    let sound: Value = serde_json::from_slice(&bytes).unwrap();
    let mut found = Vec::new();
    paths(&sound, "", DEPTH, &mut found);
    let mut bundles: Vec<(String, String)> = Vec::new();
    for path in &found {
        for (what, value) in hostile() {
            let mut changed = sound.clone();
            *changed.pointer_mut(path).unwrap() = value;
            bundles.push((format!("{path} is {what}"), changed.to_string()));
        }
        let (above, name) = path.rsplit_once('/').unwrap();
        let mut changed = sound.clone();
        if let Some(members) = changed.pointer_mut(above).and_then(Value::as_object_mut) {
            members.remove(&name.replace("~1", "/").replace("~0", "~"));
            bundles.push((format!("{path} is missing"), changed.to_string()));
        }
    }
    for name in sound.as_object().unwrap().keys() {
        bundles.push((format!("{name} is there twice"), twice(&sound, name)));
    }
    for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let text = String::from_utf8_lossy(&bytes).chars().take(cut).collect();
        bundles.push((format!("it ends after {cut}"), text));
    }
    assert!(bundles.len() >= 50, "{} bundles", bundles.len());
    let engine = here.engine();
    let mut refused = 0;
    for (name, text) in &bundles {
        match engine.import(text.as_bytes(), "eve").await {
            Ok(imported) => {
                let claims = engine.claims(imported.session).await.unwrap();
                assert!(claims.origin.trusted.is_none(), "{name}");
            }
            Err(error) => {
                assert!(error.code().starts_with("BUNDLE_"), "{name}: {} {error}", error.code());
                refused += 1;
            }
        }
    }
    assert!(refused >= 50, "most are refused: {refused} of {}", bundles.len());
    engine.recover().await.unwrap();
    assert_eq!(here.store().sessions.list().await.unwrap(), [], "all of it is paper or nothing");
    assert_eq!(here.tries(), Vec::<u32>::new());
}
