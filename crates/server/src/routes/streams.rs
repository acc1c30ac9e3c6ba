//! Streams of what happens to runs, as server-sent events.
//!
//! The id of an event is its place in the log, so a client that comes back with
//! `Last-Event-ID` misses nothing. Whoever takes nothing for a while is let go.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use cairn_api::Error;
use cairn_api::call::Happened;
use cairn_api::run::moment;
use cairn_core::event::{Event, EventData};
use cairn_core::id::RunId;
use cairn_engine::flow::{Past, Watch};
use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::runs::{run_id, seen};
use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;

/// How many events wait for a client.
const BEHIND_MAX: usize = 256;
/// How long a client may take none of them.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a quiet stream shows that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How many streams there may be at once.
const STREAMS_MAX: usize = 1_024;
/// How many of them one token may have. Whoever reads nothing of a quiet stream cannot be told
/// from one who does, and holds a place of its own token alone.
const STREAMS_PER_TOKEN: usize = 64;

/// The streams that there are, by token.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<BTreeMap<Option<String>, usize>>);

/// A place among the streams.
struct Place {
    of: Arc<Streams>,
    token: Option<String>,
}

impl Streams {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Option<String>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a token, if there is one; the admin token may have all.
    fn take(self: &Arc<Self>, token: Option<&str>) -> Option<Place> {
        let token = token.map(str::to_owned);
        let mut held = self.held();
        let (all, own) = (held.values().sum::<usize>(), held.get(&token).copied().unwrap_or(0));
        if all >= STREAMS_MAX || (token.is_some() && own >= STREAMS_PER_TOKEN) {
            return None;
        }
        held.insert(token.clone(), own + 1);
        Some(Place { of: Arc::clone(self), token })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.of.held();
        match held.get_mut(&self.token) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(held.remove(&self.token)),
        }
    }
}

pub(super) fn routes() -> Vec<Route> {
    let (one, all) = (Access::Needs(Action::ReadRuns), Access::Needs(Action::WatchRuns));
    vec![
        Route::get(
            "/api/v1/runs/{id}/events/stream",
            one,
            "Follow a run: server-sent events, from `Last-Event-ID` on",
            get(of_run),
        ),
        Route::get(
            "/api/v1/events",
            all,
            "Follow all runs from now on: server-sent events",
            get(of_all),
        ),
    ]
}

async fn of_run(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let run = run_id(id)?;
    let from = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let from = from.map_or(0, |last: u64| last.saturating_add(1));
    // Before the log is read, so that nothing is recorded in between.
    let watch = shared.automation.engine.watch();
    let past = seen(&shared, &caller, run).await?;
    let over = past.state.end.is_some();
    if over && past.events.iter().all(|event| event.index.0 < from) {
        // There is nothing to come back for.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (send, events) = mpsc::channel(BEHIND_MAX);
    let follower = Follower { shared: Shared::clone(&shared), run, next: from, send };
    tokio::spawn(follower.follow(past, watch));
    stream(&shared, &caller, events)
}

async fn of_all(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Failure> {
    let mut watch = shared.automation.engine.watch();
    let phase = shared.phase.clone();
    let (send, events) = mpsc::channel(BEHIND_MAX);
    tokio::spawn(async move {
        loop {
            let told = tokio::select! {
                told = watch.next() => told,
                () = send.closed() => return,
                () = phase.closing() => return,
            };
            let Some(told) = told else { return };
            for event in told.events.iter() {
                let Some(run) = event.scope.run() else { continue };
                let id = format!("{}:{}", told.session, event.index.0);
                if !give(&send, shown(event, run, &id)).await {
                    return;
                }
            }
        }
    });
    stream(&shared, &caller, events)
}

/// Tells one client of one run.
struct Follower {
    shared: Shared,
    run: RunId,
    /// The first place that the client has not seen.
    next: u64,
    send: mpsc::Sender<sse::Event>,
}

impl Follower {
    async fn follow(mut self, past: Past, mut watch: Watch) {
        let session = past.summary.session;
        let mut expected = past.events.last().map_or(0, |event| event.index.0 + 1);
        if !self.tell(&past.events).await {
            return;
        }
        let phase = self.shared.phase.clone();
        loop {
            let told = tokio::select! {
                told = watch.next() => told,
                () = self.send.closed() => return,
                () = phase.closing() => return,
            };
            let Some(told) = told else { return };
            if told.session != session {
                continue;
            }
            let (Some(first), Some(last)) = (told.events.first(), told.events.last()) else {
                continue;
            };
            // What was told may not be all: whoever is too slow misses some.
            let whole = first.index.0 <= expected;
            expected = last.index.0 + 1;
            let more = if whole { self.tell(&told.events).await } else { self.catch_up().await };
            if !more {
                return;
            }
        }
    }

    /// Tells what the log has that the client has not seen.
    async fn catch_up(&mut self) -> bool {
        match self.shared.automation.engine.past(self.run).await {
            Ok(past) => self.tell(&past.events).await,
            Err(_) => false,
        }
    }

    /// Tells what is of the run and new; says whether there is more to come.
    async fn tell(&mut self, events: &[Event]) -> bool {
        for event in events {
            if event.scope.run() != Some(self.run) || event.index.0 < self.next {
                continue;
            }
            self.next = event.index.0 + 1;
            let id = event.index.0.to_string();
            if !give(&self.send, shown(event, self.run, &id)).await || is_end(&event.data) {
                return false;
            }
        }
        true
    }
}

/// Gives an event to a client; says whether it is still there.
async fn give(send: &mpsc::Sender<sse::Event>, event: sse::Event) -> bool {
    matches!(timeout(PATIENCE, send.send(event)).await, Ok(Ok(())))
}

fn shown(event: &Event, run_id: RunId, id: &str) -> sse::Event {
    let happened = Happened { run_id, moment: moment(event) };
    let data = serde_json::to_string(&happened).unwrap_or_default();
    sse::Event::default().id(id).event(&happened.moment.kind).data(data)
}

const fn is_end(data: &EventData) -> bool {
    matches!(
        data,
        EventData::RunCompleted(_) | EventData::RunFailed(_) | EventData::RunCancelled(_)
    )
}

/// An answer that goes on for as long as there is something to tell.
fn stream(
    shared: &Shared,
    caller: &Caller,
    events: mpsc::Receiver<sse::Event>,
) -> Result<Response, Failure> {
    let place = shared.streams.take(caller.token()).ok_or(Failure(Error::TooManyStreams))?;
    let stream = Sse::new(Events { events, _place: place });
    Ok(stream.keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

struct Events {
    events: mpsc::Receiver<sse::Event>,
    _place: Place,
}

impl Stream for Events {
    type Item = Result<sse::Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(cx).map(|event| event.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_leaves_places_to_others_and_gives_its_own_back() {
        let streams = Arc::<Streams>::default();
        let mut own: Vec<Place> = (0..64).filter_map(|_| streams.take(Some("a"))).collect();
        assert_eq!(own.len(), 64);
        assert!(streams.take(Some("a")).is_none());
        assert!(streams.take(Some("b")).is_some(), "another token");
        own.pop();
        own.extend(streams.take(Some("a")));
        let all: Vec<Place> = (0..2_000).map_while(|_| streams.take(None)).collect();
        assert_eq!(own.len() + all.len(), STREAMS_MAX);
        assert!(streams.take(Some("b")).is_none(), "there are no more");
        drop((own, all));
        assert!(streams.held().is_empty());
    }
}
