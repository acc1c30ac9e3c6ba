//! `/hooks/…`: requests of others that start runs.
//!
//! Anybody may send one, so whoever is refused learns next to nothing: a path that is not
//! there, one that takes other methods, one that is switched off and one of a workflow that
//! does not compile look the same.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use cairn_api::Error;
use cairn_api::call::Started;
use cairn_api::problem::CONTENT_TYPE;
use cairn_core::event::engine::EndStatus;
use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::id::RunId;
use cairn_engine as engine;
use cairn_engine::flow::trace::{self, TraceParent};
use cairn_engine::flow::{Call, Ended, Roles, RunRequest, TriggerEvent};
use cairn_engine::secrets::Scope;
use cairn_engine::trigger::{Firing, Hook, HookSecret, Refusal, Request as Asked, Respond, Watch};
use serde_json::{Value, json};
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::timeout;

use super::{Route, Shared};
use crate::access::Access;
use crate::answer::Failure;
use crate::body;
use crate::clock::now_ms;
use crate::guard::BODY_MAX;
use crate::watched::Place;

/// How long a sender waits for what a run answers.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// What keeps a browser from taking what a workflow made for a page of ours.
const SANDBOX: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";
/// Headers that a workflow may set, beside those of its own that begin with `x-`.
const HEADERS: [&str; 3] = ["content-language", "etag", "retry-after"];
/// Headers that begin with `x-` and mean something to browsers and proxies.
const NOT_ITS_OWN: [&str; 6] = [
    "x-accel-",
    "x-content-type-options",
    "x-forwarded-",
    "x-frame-options",
    "x-sendfile",
    "x-xss-protection",
];

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

pub(super) fn routes() -> Vec<Route> {
    let what = "Take a signed request that starts a run";
    vec![Route::post("/hooks/{*path}", Access::Public, what, any(take)).gives::<Started>()]
}

async fn take(
    State(shared): State<Shared>,
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
) -> Result<Response, Failure> {
    if !shared.phase.takes_work() {
        return Err(Failure(Error::Stopping));
    }
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().strip_prefix("/hooks").unwrap_or_default();
    let view = shared.watched.view();
    let takes = |hook: &dyn Hook| hook.methods().iter().any(|known| known == parts.method.as_str());
    let Some((place, hook)) = view.hook(path).and_then(|place| match &place.watch {
        Watch::Hook(hook) if takes(hook.as_ref()) => Some((place, hook)),
        _ => None,
    }) else {
        // A server that has just started does not know yet, and the sender is to come back.
        let is_known = view.is_known;
        return Err(Failure(if is_known { Error::PathUnknown } else { Error::NotReady }));
    };
    if parts.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Ok(refused(Refusal { status: 415, code: "WEBHOOK_BODY_ENCODED" }));
    }
    let Some(room) = room(&shared, &parts.headers, hook.as_ref()) else {
        body::pass(body, body_max(hook.as_ref())).await;
        return Ok(refused(Refusal { status: 503, code: "RUN_BUSY" }));
    };
    let bytes = match read(body, hook.as_ref()).await {
        Ok(bytes) => bytes,
        Err(Error::RequestTooLarge { .. }) => {
            return Ok(refused(Refusal { status: 413, code: "WEBHOOK_BODY_TOO_LARGE" }));
        }
        Err(error) => return Err(Failure(error)),
    };
    let secrets = match secrets(&shared, place, hook.as_ref()).await {
        Ok(secrets) => secrets,
        Err(error) => {
            let (workflow, trigger) = (&place.workflow, &place.trigger);
            let trouble = format!("a request to `{trigger}` of `{workflow}` is not taken: {error}");
            shared.automation.engine.tell_trouble(&trouble);
            return Ok(refused(Refusal { status: 503, code: error.code() }));
        }
    };
    let asked = Asked {
        method: parts.method.as_str(),
        path,
        query: parts.uri.query().unwrap_or_default(),
        headers: &seen(&parts.headers),
        body: &bytes,
        peer: peer.ip(),
    };
    match hook.verify(&asked, now_ms(), &secrets) {
        Err(refusal) => {
            let engine = &shared.automation.engine;
            engine.note_refusal(&place.identity, &place.trigger, refusal.code);
            Ok(refused(refusal))
        }
        Ok(firing) => start(&shared, place, hook.respond(), (firing, room), &parts.headers).await,
    }
}

fn body_max(hook: &dyn Hook) -> usize {
    hook.body_max().min(usize::try_from(BODY_MAX).unwrap_or(usize::MAX))
}

async fn read(body: Body, hook: &dyn Hook) -> Result<Vec<u8>, Error> {
    body::bytes(body, body_max(hook)).await
}

/// Room for a body while it is looked at; none while those of others take all there is.
fn room<'s>(
    shared: &'s Shared,
    headers: &HeaderMap,
    hook: &dyn Hook,
) -> Option<SemaphorePermit<'s>> {
    let said =
        headers.get(header::CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
    let bytes = said.unwrap_or(usize::MAX).min(body_max(hook));
    shared.bodies.try_acquire_many(u32::try_from(bytes / 1024 + 1).ok()?).ok()
}

fn seen(headers: &HeaderMap) -> Vec<(Cow<'_, str>, Cow<'_, [u8]>)> {
    let pair = |(name, value)| {
        let (name, value): (&HeaderName, &HeaderValue) = (name, value);
        (Cow::Borrowed(name.as_str()), Cow::Borrowed(value.as_bytes()))
    };
    headers.iter().map(pair).collect()
}

/// What may have signed the request. Without any, no signature is good; a vault that cannot be
/// read says nothing of signatures, and the sender is to come back.
async fn secrets(
    shared: &Shared,
    place: &Place,
    hook: &dyn Hook,
) -> Result<Vec<HookSecret>, engine::Error> {
    let scope = Scope::Workflow(place.identity.clone());
    match shared.automation.vault.signing(&scope, hook.secret(), hook.grace_ms()).await {
        Err(engine::Error::SecretUnknown { .. }) => Ok(Vec::new()),
        signing => signing,
    }
}

/// Where a run stands in its chain, as far as whoever asks for it says.
pub(super) fn chain(headers: &HeaderMap) -> u32 {
    // What is no text is nothing that a step says.
    let said = headers.get(engine::flow::chain::HEADER).map(|said| said.to_str().unwrap_or("?"));
    engine::flow::chain::after(said)
}

/// What a run belongs to, as far as whoever asks for it says.
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut said = headers.get_all(trace::HEADER).iter();
    match (said.next(), said.next()) {
        (Some(said), None) => TraceParent::read(said.to_str().ok()?),
        _ => None,
    }
}

/// Starts the run of a request that is genuine, and answers as its trigger says.
async fn start(
    shared: &Shared,
    place: &Arc<Place>,
    respond: Respond,
    (firing, room): (Firing, SemaphorePermit<'_>),
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let Firing { key, earlier, payload, event } = firing;
    let key = match earlier {
        Some(earlier) if is_known(shared, place, &earlier).await? => earlier,
        _ => key,
    };
    let request = RunRequest {
        workflow: place.workflow.clone(),
        trigger: Some(place.trigger.clone()),
        key: Some(key),
        event: TriggerEvent { payload, kind: place.kind.clone(), more: event }
            .within(trace(headers)),
        depth: chain(headers),
        by: By {
            name: "webhook".to_owned(),
            via: Some(Via {
                actor: ActorKind::Program,
                door: Door::Webhook,
                line: None,
                token_id: None,
            }),
        },
        roles: Roles::Any,
    };
    let call = match shared.automation.engine.call(request).await {
        Ok(call) => call,
        Err(
            error @ (engine::Error::RateLimited { .. }
            | engine::Error::TriggerLoop { .. }
            | engine::Error::Busy { .. }
            | engine::Error::Overflow { .. }
            | engine::Error::LaneDown { .. }
            | engine::Error::Stopping),
        ) => {
            return Err(Failure(error.into()));
        }
        // It may have been received, and sent again it is so once.
        Err(engine::Error::InDoubt { .. }) => {
            return Ok(refused(Refusal { status: 503, code: "RUN_IN_DOUBT" }));
        }
        // Whoever sends it is to send it no more.
        Err(engine::Error::Dropped { .. }) => return Ok(dropped()),
        // The sender has proved itself, so that it may know what is wrong with what it sent.
        Err(engine::Error::Invalid { message, fix, details }) => {
            return Ok(unfit(&message, &fix, &details));
        }
        // What is wrong is for those who may see the workflow.
        Err(error) => {
            let (workflow, trigger) = (&place.workflow, &place.trigger);
            let trouble =
                format!("a request to `{trigger}` of `{workflow}` starts nothing: {error}");
            shared.automation.engine.tell_trouble(&trouble);
            return Ok(refused(match &error {
                engine::Error::SettingsInvalid { .. } => {
                    Refusal { status: 503, code: "WEBHOOK_NOT_READY" }
                }
                error => Refusal { status: 503, code: error.code() },
            }));
        }
    };
    drop(room);
    let Call { asked, response, ended } = call;
    let started = Started { run_id: asked.run, replayed: asked.replayed };
    if asked.replayed {
        // What came of it is told again; what it answered on its way is not kept.
        return Ok(match over(shared, asked.run).await.filter(|_| respond == Respond::LastStep) {
            Some(ended) => last(&started, ended),
            None => (StatusCode::OK, Json(started)).into_response(),
        });
    }
    let accepted = || Ok((StatusCode::ACCEPTED, Json(&started)).into_response());
    match respond {
        Respond::Immediately => accepted(),
        Respond::RespondStep => match waited(shared, response).await {
            Some(response) => Ok(made(&response)),
            // It ended without an answer, or takes its time.
            None => accepted(),
        },
        Respond::LastStep => match waited(shared, ended).await {
            Some(ended) => Ok(last(&started, ended)),
            None => accepted(),
        },
    }
}

/// The answer to what a trigger drops.
fn dropped() -> Response {
    (StatusCode::ACCEPTED, Json(json!({"dropped": true}))).into_response()
}

/// Whether something with this key started a run. Whoever cannot be told is to send it again:
/// taken for new it might start a second one.
async fn is_known(shared: &Shared, place: &Place, key: &str) -> Result<bool, Failure> {
    let engine = &shared.automation.engine;
    let known = engine.asked_before(&place.workflow, &place.trigger, key).await;
    known.map(|run| run.is_some()).map_err(|_| Failure(Error::NotReady))
}

/// What came of a run, if it is over.
async fn over(shared: &Shared, run: RunId) -> Option<Ended> {
    let engine = &shared.automation.engine;
    let is_over = engine.state(run).await.is_ok_and(|(summary, _)| summary.is_over());
    if is_over { engine.ended(run).await.ok() } else { None }
}

/// What somebody is told who waits for it, unless it takes too long or the server closes.
async fn waited<T>(shared: &Shared, told: oneshot::Receiver<T>) -> Option<T> {
    tokio::select! {
        told = timeout(ANSWER_MAX, told) => told.ok()?.ok(),
        () = shared.phase.closing() => None,
    }
}

/// The answer of a run that is over.
fn last(started: &Started, ended: Ended) -> Response {
    if ended.status == EndStatus::Succeeded {
        return made(&json!({"body": ended.result}));
    }
    // Why it did not go well is for those who may see the run.
    let answer = json!({"runId": started.run_id, "status": "failed"});
    (StatusCode::INTERNAL_SERVER_ERROR, Json(answer)).into_response()
}

/// What a workflow made, as plain text or JSON and nothing that a browser would run.
fn made(response: &Value) -> Response {
    let status = response.get("status").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let mut answer = match response.get("body") {
        None | Some(Value::Null) => StatusCode::OK.into_response(),
        Some(Value::String(text)) => text.clone().into_response(),
        Some(value) => Json(value).into_response(),
    };
    *answer.status_mut() = status.unwrap_or(StatusCode::OK);
    let headers = answer.headers_mut();
    let given = response.get("headers").and_then(Value::as_object).into_iter().flatten();
    for (name, value) in given.filter(|(name, _)| may_set(name)) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value.as_str().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.insert(name, value);
        }
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    answer
}

fn may_set(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let own = name.starts_with("x-") && !NOT_ITS_OWN.iter().any(|taken| name.starts_with(taken));
    own || HEADERS.contains(&name.as_str())
}

/// A refusal of a genuine request, which says what is wrong with its body.
fn unfit(message: &str, fix: &str, details: &Value) -> Response {
    let status = StatusCode::BAD_REQUEST;
    let body = json!({
        "type": "about:blank",
        "title": "the request starts nothing",
        "status": status.as_u16(),
        "code": "WEBHOOK_BODY_INVALID",
        "detail": message,
        "suggestion": fix,
        "details": details,
    });
    (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body.to_string()).into_response()
}

/// A refusal, which says its code and nothing of what was sent. Who is to come back is told so.
fn refused(Refusal { status, code }: Refusal) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let title = "the request starts nothing";
    let body =
        json!({"type": "about:blank", "title": title, "status": status.as_u16(), "code": code});
    let kind = [(header::CONTENT_TYPE, CONTENT_TYPE)];
    let mut answer = (status, kind, body.to_string()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}
