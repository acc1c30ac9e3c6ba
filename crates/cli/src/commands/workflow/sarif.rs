//! Diagnostics as SARIF 2.1.0, the form in which other tools take them.

use std::collections::BTreeSet;

use cairn_api::workflow::Diagnostic;
use serde_json::{Value, json};

/// One log with one run in it.
pub(super) fn log<'d>(diagnostics: impl Iterator<Item = &'d Diagnostic>) -> Value {
    let diagnostics: Vec<&Diagnostic> = diagnostics.collect();
    let codes: BTreeSet<&str> = diagnostics.iter().map(|found| found.code).collect();
    let rules: Vec<Value> = codes.iter().map(|code| json!({"id": code})).collect();
    let results: Vec<Value> = diagnostics.into_iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "cairn", "version": env!("CARGO_PKG_VERSION"), "rules": rules,
            }},
            // Columns count characters, and not what a UTF-16 string has.
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(found: &Diagnostic) -> Value {
    let text = match &found.suggestion {
        Some(suggestion) => format!("{}; {suggestion}", found.message),
        None => found.message.clone(),
    };
    let mut location = json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&found.path)},
        "region": {"startLine": found.line, "startColumn": found.column},
    }});
    if let (false, Some(fields)) = (found.pointer.is_empty(), location.as_object_mut()) {
        let place = json!([{"fullyQualifiedName": found.pointer}]);
        fields.insert("logicalLocations".to_owned(), place);
    }
    json!({
        "ruleId": found.code,
        "level": found.severity,
        "message": {"text": text},
        "locations": [location],
    })
}

/// A path as it stands in an address.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() || b"/-._~".contains(&b) => uri.push(char::from(b)),
            b => uri.push_str(&format!("%{b:02X}")),
        }
    }
    uri
}
