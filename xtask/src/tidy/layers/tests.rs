use serde_json::json;

use super::*;

/// Checks one crate with one dependency and returns what is reported.
fn check_one(from: &str, to: &str, kind: Option<&str>) -> Option<String> {
    let metadata = json!({
        "workspace_root": "/w",
        "packages": [{
            "name": format!("cairn-{from}"),
            "manifest_path": format!("/w/crates/{from}/Cargo.toml"),
            "dependencies": [{ "name": to, "kind": kind }],
        }],
    });
    let manifest = File {
        path: format!("crates/{from}/Cargo.toml"),
        text: format!("[dependencies]\n{to}-more = \"1\"\n{to}.workspace = true\n"),
    };
    let findings = check(&edges(&metadata), &[manifest]);
    findings.first().map(ToString::to_string)
}

#[test]
fn a_crate_may_use_what_stands_to_its_left() {
    for (from, to) in [("store", "core"), ("api", "store"), ("cli", "core"), ("cli", "server")] {
        assert_eq!(check_one(from, &format!("cairn-{to}"), None), None);
    }
}

#[test]
fn an_edge_to_the_right_is_reported_with_its_line() {
    assert_eq!(
        check_one("core", "cairn-store", None).as_deref(),
        Some(
            "crates/core/Cargo.toml:3: core depends on store, which is not to its left; \
             turn the edge round"
        )
    );
}

#[test]
fn neighbours_do_not_use_each_other() {
    assert!(check_one("store", "cairn-lang", None).is_some());
    assert!(check_one("steps", "cairn-triggers", None).is_some());
}

#[test]
fn build_dependencies_count_and_dev_dependencies_do_not() {
    assert!(check_one("store", "cairn-engine", Some("build")).is_some());
    assert_eq!(check_one("store", "cairn-engine", Some("dev")), None);
}

#[test]
fn tools_use_anything_and_are_used_by_tests_only() {
    assert_eq!(check_one("sim", "cairn-cli", None), None);
    assert_eq!(check_one("store", "cairn-sim", Some("dev")), None);
    assert!(check_one("cli", "cairn-sim", None).is_some());
    assert!(check_one("bench", "cairn-sim", None).is_some());
}

#[test]
fn a_crate_without_a_place_in_the_line_is_reported() {
    assert!(check_one("extra", "cairn-core", None).is_some_and(|what| what.contains("LAYERS")));
}

#[test]
fn the_core_takes_no_clock_chance_or_runtime() {
    for package in ["tokio", "tokio-util", "async-trait", "time", "rand", "rand_core", "getrandom"]
    {
        assert!(check_one("core", package, None).is_some(), "{package}");
        assert_eq!(check_one("core", package, Some("dev")), None);
        assert_eq!(check_one("store", package, None), None);
    }
    assert_eq!(check_one("core", "serde", None), None);
}
