//! What a workflow says about itself, and the limits on its runs.

use cairn_core::hosts::HostPattern;
use cairn_core::plan::{Policy, RateLimit, Retention};

use crate::diagnostic::Code;
use crate::ids::{self, IdStatus, InvalidId, SourceKind};
use crate::read::{Fields, Spot};
use crate::source::Value;

/// The fields of a workflow.
pub(super) const FIELDS: &[&str] = &[
    "concurrency",
    "data_tables",
    "description",
    "enabled",
    "env",
    "graph",
    "hosts",
    "id",
    "max_duration_sec",
    "name",
    "on_error",
    "rate_limit",
    "retention",
    "tags",
    "triggers",
    "version",
];

/// How long something may be asked to take, in seconds: a year.
pub(super) const SECONDS_MAX: u32 = 366 * 24 * 3600;

/// The workflow's id: as given, or after the folder or file that it stands in. A UUID is no name
/// that anybody could ask for it by.
pub(super) fn id(
    fields: &Fields<'_>,
    path: &str,
    kind: SourceKind,
    bytes: &[u8],
) -> Option<String> {
    let Some(spot) = fields.get("id") else {
        return Some(usual_id(path, kind, bytes));
    };
    let id = spot.filled()?;
    if ids::is_uuid(id) {
        return Some(usual_id(path, kind, bytes));
    }
    let suggested = ids::suggest(id, kind, bytes, &[]);
    match ids::check(id, kind) {
        Ok(IdStatus::Namespaced) => Some(id.to_owned()),
        Ok(IdStatus::Legacy) => {
            let full = format!("{}.{id}", kind.namespace());
            if ids::check(&full, kind).is_ok() {
                return Some(full);
            }
            let message = format!("the id `{id}` has no namespace");
            spot.warn(Code::LegacyId, message, format!("rename it, such as to `{suggested}`"));
            Some(suggested)
        }
        Err(error) => {
            let code = match error {
                InvalidId::Form => Code::InvalidId,
                InvalidId::Reserved => Code::ReservedId,
            };
            spot.error_hint(code, error.to_string(), format!("such as `{suggested}`"));
            None
        }
    }
}

/// The id of a workflow that says none.
pub(super) fn usual_id(path: &str, kind: SourceKind, bytes: &[u8]) -> String {
    ids::suggest(&place(path), kind, bytes, &[]).replace('_', "-")
}

/// What a workflow without an id is called after.
fn place(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or_default();
    let folder = folder.rsplit('/').next().unwrap_or_default();
    if stem == "workflow" && !folder.is_empty() { folder.to_owned() } else { stem.to_owned() }
}

pub(super) fn tags(fields: &Fields<'_>) -> Vec<String> {
    let mut tags = fields.texts("tags");
    tags.sort();
    tags.dedup();
    tags
}

/// The limits on runs.
pub(super) fn policy(fields: &Fields<'_>) -> Policy {
    let count = |name: &str, max| fields.get(name).and_then(|spot| spot.whole(1, max));
    if let Some(enabled) = fields.get("enabled") {
        enabled.flag();
    }
    Policy {
        concurrency_max: count("concurrency", 100_000),
        duration_max_ms: count("max_duration_sec", SECONDS_MAX).map(millis),
        hosts: fields.get("hosts").map(|spot| hosts(&spot)),
        error_workflow_id: fields.get("on_error").and_then(|spot| error_workflow(&spot)),
        rate_limit: fields.get("rate_limit").and_then(|spot| rate_limit(&spot)),
        retention: fields.get("retention").and_then(|spot| retention(&spot)),
    }
}

pub(super) fn millis(seconds: u32) -> u64 {
    u64::from(seconds) * 1_000
}

fn error_workflow(spot: &Spot<'_>) -> Option<String> {
    if let Some(name) = spot.node.as_text() {
        let hint = format!("write `on_error: {{ trigger_workflow: {name} }}`");
        spot.error_hint(Code::WrongType, "a map should stand here, not text", hint);
        return None;
    }
    let id = spot.fields(&["trigger_workflow"])?.need("trigger_workflow")?;
    let text = id.filled()?;
    if ids::check(text, SourceKind::Bundled).is_err() {
        id.error(Code::InvalidId, InvalidId::Form.to_string());
        return None;
    }
    Some(text.to_owned())
}

/// A list of hosts, each in the form in which hosts are compared.
pub(super) fn hosts(spot: &Spot<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for item in spot.items() {
        let Some(text) = item.filled() else { continue };
        match text.parse::<HostPattern>() {
            Ok(host) => hosts.push(host.to_string()),
            Err(error) => {
                let hint = "write `api.example.com`, or `*.example.com` for every host below it";
                item.error_hint(Code::InvalidValue, error.to_string(), hint);
            }
        }
    }
    hosts.sort();
    hosts.dedup();
    hosts
}

/// `60/min`, or `{max: 60, per_sec: 60}`.
fn rate_limit(spot: &Spot<'_>) -> Option<RateLimit> {
    let Some(text) = spot.node.as_text() else {
        if let Value::Number(number) = &spot.node.value {
            let message = format!("{number} is not a rate: it does not say in which time");
            let hint = format!("write `{number}/min`, or `{{max: {number}, per_sec: 60}}`");
            spot.error_hint(Code::InvalidValue, message, hint);
            return None;
        }
        let fields = spot.fields(&["max", "per_sec"])?;
        let runs_max = fields.need("max").and_then(|spot| spot.whole(1, 1_000_000));
        let seconds = fields.get("per_sec").map_or(Some(60), |spot| spot.whole(1, SECONDS_MAX));
        return Some(RateLimit { per_ms: millis(seconds?), runs_max: runs_max? });
    };
    let parts = text.split_once('/').and_then(|(runs, unit)| {
        let per_ms = match unit.trim() {
            "s" | "sec" | "second" => 1_000,
            "m" | "min" | "minute" => 60_000,
            "h" | "hour" => 3_600_000,
            "d" | "day" => 86_400_000,
            _ => return None,
        };
        let runs_max = runs.trim().parse().ok().filter(|runs| *runs > 0)?;
        Some(RateLimit { per_ms, runs_max })
    });
    if parts.is_none() {
        let message = format!("`{text}` is not a rate");
        spot.error_hint(Code::InvalidValue, message, "write `60/min`, or `{max: 60, per_sec: 60}`");
    }
    parts
}

fn retention(spot: &Spot<'_>) -> Option<Retention> {
    let fields = spot.fields(&["failure_days", "keep_max", "success_days"])?;
    let count = |name: &str, max, usual| match fields.get(name) {
        Some(spot) => spot.whole(1, max),
        None => Some(usual),
    };
    let (failed, kept) =
        (count("failure_days", 36_500, 90), count("keep_max", 100_000_000, 10_000));
    let succeeded = count("success_days", 36_500, 30);
    Some(Retention { failed_days: failed?, runs_max: kept?, succeeded_days: succeeded? })
}
