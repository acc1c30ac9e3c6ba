//! Taking connections and, in the end, letting go of them.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cairn_api::error::{Error, Result};
use cairn_core::event::EventData;
use cairn_engine::flow::Left;
use cairn_store::Store;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::patience::Patient;
use crate::phase::{Phase, Phases, Stopping};
use crate::refused::Firings;
use crate::routes::{self, App, Peer};
use crate::telemetry::{self, Telemetry};

/// How long a client may take for a request's head, or keep an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long answers under way may take once the server is told to stop.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections there may be; more wait until one is closed.
const CONNECTIONS_MAX: u64 = 8_192;
/// How many files a request may need open for each connection.
const FILES_PER_CONNECTION: u64 = 3;
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// How long a request's head may be, in bytes.
const HEAD_MAX: usize = 32 << 10;

/// How often refusals that were only counted are written.
const SETTLE_EVERY: Duration = Duration::from_secs(60);

/// How long steps under way may take to be parked.
const PARK_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until it is told to stop; gives what came of the steps that were under way then.
///
/// It answers from the first moment on; runs that were left go on beside. When it is to stop,
/// it takes no more work and begins no more steps, and answers on while those under way end.
/// What takes longer than it may is parked: the next start goes on with it.
pub async fn serve(
    listener: TcpListener,
    config: Config,
    store: Store,
    stopping: watch::Receiver<Stopping>,
) -> Result<Left> {
    let (to, phase) = Phases::new();
    let (drain, telemetry) = (config.drain, config.telemetry.clone());
    let app = Arc::new(App::new(config, store, phase).await);
    app.automation.engine.observe(Arc::clone(&app.metrics) as _);
    app.automation.engine.observe(Arc::new(Firings(app.record.clone())));
    let background = background(&app, telemetry);
    let service = TowerToHyperService::new(routes::router(Arc::clone(&app)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_MAX);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(connections_max()));
    let mut drained = pin!(drained(&app, &to, drain, stopping.clone()));
    loop {
        let (stream, peer, place) = tokio::select! {
            () = &mut drained => break,
            accepted = accept(&listener, &places) => accepted?,
        };
        let service = service.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            service.call(request)
        });
        let connection = http.serve_connection(TokioIo::new(Patient::new(stream)), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // A connection that fails is the client's loss; the server has nothing to add.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    // Streams end, and whoever waits for a run is told that it goes on.
    let _ = to.send(Phase::Closing);
    tokio::select! {
        // Whoever has not read its answer by then will not.
        _ = timeout(ANSWER_TIMEOUT, connections.shutdown()) => {}
        () = told(stopping, Stopping::AtOnce) => {}
    }
    for task in background {
        let _ = task.await;
    }
    app.record.settle(true).await;
    Ok(app.automation.engine.stop(PARK_TIMEOUT).await)
}

/// How many connections there may be with the files that this process may have open.
fn connections_max() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = (files / (1 + FILES_PER_CONNECTION)).clamp(1, CONNECTIONS_MAX);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Waits until the server is told to stop, and then until no step is under way, as long as
/// that may take.
async fn drained(
    app: &Arc<App>,
    to: &watch::Sender<Phase>,
    patience: Duration,
    stopping: watch::Receiver<Stopping>,
) {
    told(stopping.clone(), Stopping::Gently).await;
    let _ = to.send(Phase::Draining);
    tokio::select! {
        _ = timeout(patience, app.automation.engine.drain()) => {}
        () = told(stopping, Stopping::AtOnce) => {}
    }
}

/// Waits until the server is told to stop, so urgently at least.
async fn told(mut stopping: watch::Receiver<Stopping>, wanted: Stopping) {
    if stopping.wait_for(|stopping| *stopping >= wanted).await.is_err() {
        // Nobody can tell it any more.
        std::future::pending().await
    }
}

/// What goes on beside the requests: runs that were left, those of other processes, the
/// clock, the files, the traces.
fn background(app: &Arc<App>, telemetry: Option<Telemetry>) -> Vec<JoinHandle<()>> {
    let recover = {
        let app = Arc::clone(app);
        async move {
            tokio::select! {
                () = app.automation.engine.look_after_all() => {}
                () = app.phase.draining() => {}
            }
        }
    };
    let tidy = {
        let app = Arc::clone(app);
        async move {
            tokio::select! {
                () = app.automation.engine.keep_tidy() => {}
                () = app.phase.draining() => {}
            }
        }
    };
    let others = {
        let app = Arc::clone(app);
        async move {
            tokio::select! {
                // Without it whoever watches sees the runs of this process alone.
                _ = app.automation.engine.follow_others() => {}
                () = app.phase.closing() => {}
            }
        }
    };
    let refusals = {
        let app = Arc::clone(app);
        async move {
            loop {
                tokio::select! {
                    () = sleep(SETTLE_EVERY) => app.record.settle(false).await,
                    () = app.phase.closing() => return,
                }
            }
        }
    };
    let failures = {
        let app = Arc::clone(app);
        async move {
            tokio::select! {
                () = tell_failures(&app) => {}
                () = app.phase.closing() => {}
            }
        }
    };
    let clock = {
        let app = Arc::clone(app);
        async move { app.schedule.keep(app.watched.timetable(), app.phase.draining()).await }
    };
    let traces = telemetry.map(|telemetry| {
        let (engine, spans) = (app.automation.engine.clone(), Arc::clone(&app.metrics.spans));
        tokio::spawn(telemetry::keep(telemetry, engine, spans, app.phase.clone()))
    });
    let mut tasks: Vec<JoinHandle<()>> = traces.into_iter().collect();
    tasks.extend([
        tokio::spawn(refusals),
        tokio::spawn(others),
        tokio::spawn(failures),
        tokio::spawn(crate::watched::look(Arc::clone(app))),
        tokio::spawn(clock),
        tokio::spawn(recover),
        tokio::spawn(tidy),
    ]);
    tasks
}

/// Has the log say which runs fail.
async fn tell_failures(app: &App) {
    let mut watch = app.automation.engine.watch();
    while let Some(told) = watch.next().await {
        for event in told.events.iter() {
            let (EventData::RunFailed(failed), Some(run)) = (&event.data, event.scope.run()) else {
                continue;
            };
            let at = failed.instance.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
            let (code, message) = (&failed.error.code, &failed.error.message);
            app.automation.engine.tell_news(&format!("{run} failed{at}: {code}: {message}"));
        }
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(|error| Error::Internal(error.to_string()))?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Ok((stream, peer, place)),
            // Out of file descriptors, or the client has gone already: others may have better luck.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}
