//! `/api/v1/runs`: runs that the engine performs, begun and steered.

use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, response::IntoResponse as _, response::Response};
use cairn_api::Error;
use cairn_api::call::{Cancel, Decision, ForkFrom, Moments, Resolve, Runs, Start, Started};
use cairn_api::page::{LIMIT_DEFAULT, LIMIT_MAX};
use cairn_api::run::{Forked, Run, Shown, moment};
use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::Change;
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::RunStatus;
use cairn_core::text::Slug;
use cairn_engine as engine;
use cairn_engine::catalog::Found;
use cairn_engine::flow::{
    Decider, Filter, ForkPoint, Forker, Past, RunRequest, Summary, TriggerEvent,
};
use cairn_engine::trigger::input;
use serde::Deserialize;
use serde_json::{Value, json};

use super::hooks;
use super::workflows::find_for;
use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::body;

/// How long somebody who asks for a run waits for its turn.
const TURN_MAX: Duration = Duration::from_secs(10);
/// How long an idempotency key may be.
const KEY_MAX: usize = 255;

pub(super) fn routes() -> Vec<Route> {
    let (read, start) = (Access::Needs(Action::ReadRuns), Access::Needs(Action::StartRuns));
    let steer = Access::Needs(Action::SteerRuns);
    vec![
        Route::get("/api/v1/runs", read, "List the runs, latest first", get(list)).gives::<Runs>(),
        Route::post("/api/v1/runs", start, "Begin a run", post(begin))
            .takes::<Start>()
            .gives::<Started>(),
        Route::get("/api/v1/runs/{id}", read, "Show a run", get(show)).gives::<Shown>(),
        Route::get("/api/v1/runs/{id}/events", read, "Tell what happened to a run", get(events))
            .gives::<Moments>(),
        Route::post("/api/v1/runs/{id}/cancel", steer, "End a run", post(cancel))
            .takes::<Cancel>()
            .gives::<Run>(),
        Route::post("/api/v1/runs/{id}/pause", steer, "Let a run begin no more steps", post(pause))
            .gives::<Run>(),
        Route::post("/api/v1/runs/{id}/resume", steer, "Let a paused run go on", post(resume))
            .gives::<Run>(),
        Route::post(
            "/api/v1/runs/{id}/release",
            steer,
            "Free a run that an agent has claimed, so that another can join",
            post(release),
        )
        .gives::<Run>(),
        Route::post("/api/v1/runs/{id}/replay", steer, "Do a run again", post(replay))
            .gives::<Started>(),
        Route::post(
            "/api/v1/runs/{id}/fork",
            steer,
            "Go on from a step of a run, in a new run",
            post(fork),
        )
        .takes::<ForkFrom>()
        .gives::<Forked>(),
        Route::post(
            "/api/v1/runs/{id}/resolve",
            steer,
            "Say what became of a step that a crash cut off",
            post(resolve),
        )
        .takes::<Resolve>()
        .gives::<Run>(),
    ]
}

/// What part of the list is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    cursor: Option<String>,
    limit: Option<String>,
    /// One or several, with commas between.
    status: Option<String>,
    workflow: Option<String>,
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    params: Result<Query<Params>, QueryRejection>,
) -> Result<Json<Runs>, Failure> {
    let Query(params) = params.map_err(|error| unreadable(&error))?;
    let limit = limit(params.limit.as_deref())?;
    let filter = Filter {
        statuses: statuses(params.status.as_deref())?,
        before: params.cursor.as_deref().map(cursor).transpose()?,
        limit: Some(limit + 1),
        ..Filter::default()
    };
    let wanted: Vec<Option<String>> = match (params.workflow, caller.workflows()) {
        (Some(workflow), _) => {
            // Runs of a workflow that is gone are there by its id.
            match find_for(&shared, &caller, &workflow).await {
                Ok(found) => vec![Some(found.id.clone())],
                Err(_) => vec![Some(workflow)],
            }
        }
        (None, []) => vec![None],
        (None, several) => several.iter().map(|limit| Some(limit.id.clone())).collect(),
    };
    let mut found: Vec<Summary> = Vec::new();
    for workflow in wanted {
        let filter = Filter { workflow, ..filter.clone() };
        let listed = shared.automation.engine.list(&filter).await?;
        found.extend(listed.into_iter().filter(|run| caller.covers(&run.identity()).is_ok()));
    }
    found.sort_by_key(|run| std::cmp::Reverse((run.queued_ms, run.run)));
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|run| format!("{}.{}", run.queued_ms, run.run));
    let hidden = shared.automation.engine.hidden().iter().map(ToString::to_string).collect();
    Ok(Json(Runs {
        items: found.iter().map(Run::from).collect(),
        next_cursor: next,
        unreadable_sessions: if caller.workflows().is_empty() { hidden } else { Vec::new() },
    }))
}

pub(super) fn limit(given: Option<&str>) -> Result<usize, Error> {
    match given.map(str::parse) {
        None => Ok(LIMIT_DEFAULT),
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => {
            let message = format!("`limit` is a whole number from 1 to {LIMIT_MAX}");
            Err(Error::RequestInvalid(message))
        }
    }
}

fn statuses(given: Option<&str>) -> Result<Vec<RunStatus>, Error> {
    let status = |name: &str| {
        let message = "`status` is one or more of queued, running, waiting, paused, succeeded, failed and cancelled, with commas between";
        RunStatus::parse(name).ok_or_else(|| Error::RequestInvalid(message.to_owned()))
    };
    given.into_iter().flat_map(|given| given.split(',')).map(status).collect()
}

fn cursor(text: &str) -> Result<(u64, RunId), Error> {
    let parts =
        text.split_once('.').and_then(|(ms, run)| Some((ms.parse().ok()?, run.parse().ok()?)));
    let message = "`cursor` is not one that this list gave out";
    parts.ok_or_else(|| Error::RequestInvalid(message.to_owned()))
}

pub(super) fn unreadable(error: &QueryRejection) -> Error {
    let text = error.body_text();
    let what = text.rsplit("query string: ").next().unwrap_or(&text);
    Error::RequestInvalid(format!("the query cannot be read: {what}"))
}

async fn begin(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    takes_work(&shared)?;
    let key = idempotency_key(&headers, &caller)?;
    let start: Start = body::json(&headers, body).await?;
    let found = find_for(&shared, &caller, &start.workflow).await?;
    let (trigger, payload) = chosen(&shared, &found, start)?;
    let chosen = trigger.clone();
    let trigger = match (trigger, &key) {
        // What is done once needs a name to be remembered by.
        (None, Some(_)) => "api".parse().ok(),
        (trigger, _) => trigger,
    };
    let kind = "manual".to_owned();
    let event = TriggerEvent { payload: payload.clone(), kind, ..TriggerEvent::default() };
    let event = event.within(hooks::trace(&headers));
    let workflow = found.id.clone();
    let (depth, roles) = (hooks::chain(&headers), caller.principal.roles());
    let by = caller.by();
    let request = RunRequest { workflow, trigger, key, event, depth, by, roles };
    let asked = shared.automation.engine.submit_within(request, TURN_MAX).await?;
    if asked.replayed {
        let before = Shown::from(&shared.automation.engine.past(asked.run).await?).input;
        let payload = input::of_run(&found.compiled()?.plan, chosen.as_ref(), payload)?;
        if before.get("payload") != Some(&payload) {
            return Err(Failure(Error::KeyReused));
        }
    }
    let status = if asked.replayed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(Started { run_id: asked.run, replayed: asked.replayed })).into_response())
}

/// Refuses to have anything begun when the server is about to stop.
fn takes_work(shared: &Shared) -> Result<(), Error> {
    if shared.phase.takes_work() { Ok(()) } else { Err(Error::Stopping) }
}

/// The key of a request; two callers that have the same one do not mean the same.
fn idempotency_key(headers: &HeaderMap, caller: &Caller) -> Result<Option<String>, Error> {
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(first) = given.next() else { return Ok(None) };
    let text = first.to_str().ok().filter(|text| !text.is_empty() && text.len() <= KEY_MAX);
    match (text, given.next()) {
        (Some(text), None) => Ok(Some(format!("{}:{text}", caller.name()))),
        _ => {
            let message = format!("`Idempotency-Key` is one text of at most {KEY_MAX} characters");
            Err(Error::RequestInvalid(message))
        }
    }
}

/// The trigger where a run begins, and its payload.
fn chosen(shared: &Shared, found: &Found, start: Start) -> Result<(Option<Slug>, Value), Error> {
    let plan = &found.compiled()?.plan;
    let payload = if start.payload.is_null() { json!({}) } else { start.payload };
    let trigger = match &start.trigger {
        Some(given) => {
            let named = plan.triggers.iter().find(|trigger| trigger.id.as_str() == given);
            let known = plan.triggers.iter().map(|trigger| trigger.id.as_str());
            let unknown = || Error::trigger_unknown(&found.id, given, known);
            Some(named.ok_or_else(unknown)?.id.clone())
        }
        None => shared.automation.triggers.call(plan).map(|(trigger, _)| trigger),
    };
    Ok((trigger, payload))
}

/// The id of a run. What is no id cannot be there, either: the answer is the same.
pub(super) fn run_id(id: Result<Path<String>, PathRejection>) -> Result<RunId, Error> {
    let id = id.ok().and_then(|Path(id)| id.parse().ok());
    Ok(id.ok_or(engine::Error::RunUnknown(RunId::from_bits(0)))?)
}

/// A run that the caller may see. To whom it is not covered, it is not there.
pub(super) async fn seen(shared: &Shared, caller: &Caller, run: RunId) -> Result<Past, Error> {
    let past = shared.automation.engine.past(run).await?;
    if caller.covers(&past.summary.identity()).is_err() {
        caller.turned_away(shared, run.to_string()).await;
        return Err(engine::Error::RunUnknown(run).into());
    }
    Ok(past)
}

async fn show(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Shown>, Failure> {
    Ok(Json(Shown::from(&seen(&shared, &caller, run_id(id)?).await?)))
}

/// What part of a timeline is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventParams {
    cursor: Option<u64>,
    limit: Option<String>,
}

async fn events(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    params: Result<Query<EventParams>, QueryRejection>,
) -> Result<Json<Moments>, Failure> {
    let Query(params) = params.map_err(|error| unreadable(&error))?;
    let limit = limit(params.limit.as_deref())?;
    let past = seen(&shared, &caller, run_id(id)?).await?;
    let from = params.cursor.unwrap_or_default();
    let mut rest = past.events.iter().filter(|event| event.index.0 >= from);
    let items = rest.by_ref().take(limit).map(moment).collect();
    Ok(Json(Moments { items, next_cursor: rest.next().map(|event| event.index.0) }))
}

/// A run after something was said to it.
async fn steered(shared: &Shared, run: RunId) -> Result<Json<Run>, Failure> {
    Ok(Json(Run::from(&shared.automation.engine.past(run).await?.summary)))
}

async fn cancel(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Run>, Failure> {
    let run = run_id(id)?;
    let Cancel { reason } = body::json(&headers, body).await?;
    seen(&shared, &caller, run).await?;
    shared.automation.engine.cancel(run, caller.by(), &reason).await?;
    steered(&shared, run).await
}

async fn pause(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Run>, Failure> {
    let run = run_id(id)?;
    seen(&shared, &caller, run).await?;
    shared.automation.engine.pause(run, caller.by()).await?;
    steered(&shared, run).await
}

async fn resume(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Run>, Failure> {
    let run = run_id(id)?;
    seen(&shared, &caller, run).await?;
    shared.automation.engine.resume(run, caller.by()).await?;
    steered(&shared, run).await
}

async fn release(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Run>, Failure> {
    let run = run_id(id)?;
    seen(&shared, &caller, run).await?;
    shared.automation.engine.release(run, caller.by()).await?;
    steered(&shared, run).await
}

async fn replay(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    takes_work(&shared)?;
    let run = run_id(id)?;
    seen(&shared, &caller, run).await?;
    let asked = shared.automation.engine.replay(run, caller.by(), caller.principal.roles()).await?;
    let started = Started { run_id: asked.run, replayed: asked.replayed };
    Ok((StatusCode::CREATED, Json(started)).into_response())
}

fn step(text: &str) -> Result<StepInstanceKey, Error> {
    text.parse().map_err(|_| {
        let text: String = text.chars().take(64).collect();
        Error::RequestInvalid(format!(
            "`{text}` is not a step, such as `notify` or `each@2::fetch`"
        ))
    })
}

async fn fork(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let run = run_id(id)?;
    let wanted: ForkFrom = body::json(&headers, body).await?;
    seen(&shared, &caller, run).await?;
    let changes = wanted.outputs.into_iter().map(|(of, output)| {
        let instance = step(&of)?;
        Ok(Change { instance, output })
    });
    let changes = changes.collect::<Result<Vec<_>, Error>>()?;
    let (step, on_new_plan) = (step(&wanted.step)?, wanted.on_new_plan);
    let from = ForkPoint { run, step, changes, on_new_plan };
    let (by, roles) = (caller.by(), caller.principal.roles());
    let answers = caller.principal.answers();
    let asker = Forker { by, roles, answers };
    if wanted.dry_run {
        let preview = shared.automation.engine.preview(&from, &asker).await?;
        return Ok(Json(Forked::new(None, &preview)).into_response());
    }
    takes_work(&shared)?;
    let forked = shared.automation.engine.fork(&from, &asker).await?;
    let answer = Forked::new(Some(forked.run), &forked.fork);
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

async fn resolve(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Run>, Failure> {
    let run = run_id(id)?;
    let wanted: Resolve = body::json(&headers, body).await?;
    seen(&shared, &caller, run).await?;
    let decision = match wanted.decision {
        Decision::Retry => InterruptDecision::Retry,
        Decision::Fail => InterruptDecision::Fail,
        Decision::Skip => InterruptDecision::Skip,
    };
    let step = step(&wanted.step)?;
    let decider = Decider { by: caller.by(), answers: caller.principal.answers() };
    shared.automation.engine.resolve(run, step, decider, decision).await?;
    steered(&shared, run).await
}
