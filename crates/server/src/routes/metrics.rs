//! `/metrics`: figures for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use cairn_core::projection::run::RunStatus;
use cairn_engine::flow::Filter;

use super::{Route, Shared};
use crate::access::{Access, Action};
use crate::answer::Failure;
use crate::metrics::Lanes;

/// Where a run that is not over can stand.
const OPEN: [RunStatus; 4] =
    [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting, RunStatus::Paused];

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadServer);
    vec![Route::get("/metrics", read, "Give figures, as Prometheus reads them", get(show))]
}

async fn show(State(shared): State<Shared>) -> Result<Response, Failure> {
    let filter = Filter { is_over: Some(false), ..Filter::default() };
    let open = shared.automation.engine.list(&filter).await?;
    let count = |status: RunStatus| open.iter().filter(|run| run.status == status).count();
    let counts: Vec<(&str, usize)> = OPEN.map(|status| (status.name(), count(status))).to_vec();
    let engine = &shared.automation.engine;
    let down = u64::try_from(engine.fallen().len()).unwrap_or(u64::MAX);
    let text = shared.metrics.text(&counts, Lanes { falls: engine.falls(), down });
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
