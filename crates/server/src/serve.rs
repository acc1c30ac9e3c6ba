//! Taking connections and, in the end, letting go of them.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cairn_api::error::{Error, Result};
use cairn_core::projection::run::RunStatus;
use cairn_engine::flow::Filter;
use cairn_store::Store;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::patience::Patient;
use crate::routes::{self, App, Peer};
use crate::{metrics, schedule};

/// How long a client may take for a request's head, or keep an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long answers under way may take once the server is told to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections there may be; more wait until one is closed.
const CONNECTIONS_MAX: usize = 8_192;
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// How long a request's head may be, in bytes.
const HEAD_MAX: usize = 32 << 10;

/// How long runs under way may take to finish.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// How long steps under way may take to be parked.
const PARK_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until `shutdown` is ready, then answers what it has taken, lets runs finish for a
/// moment, parks the steps that are under way still, and returns.
///
/// It answers from the first moment on; runs that were left go on beside.
pub async fn serve(
    listener: TcpListener,
    config: Config,
    store: Store,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let (close, closing) = watch::channel(false);
    let app = Arc::new(App::new(config, store, closing));
    let background = background(&app);
    let service = TowerToHyperService::new(routes::router(Arc::clone(&app)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_MAX);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, place) = tokio::select! {
            () = &mut shutdown => break,
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
    // Whoever has not read its answer by then will not.
    // Streams end, and nothing is started any more.
    let _ = close.send(true);
    let _ = timeout(DRAIN_TIMEOUT, connections.shutdown()).await;
    for task in background {
        let _ = task.await;
    }
    let _ = timeout(FINISH_TIMEOUT, finished(&app)).await;
    app.automation.engine.stop(PARK_TIMEOUT).await;
    Ok(())
}

/// Waits until no run has anything under way.
async fn finished(app: &Arc<App>) {
    let busy = Filter {
        statuses: vec![RunStatus::Running.name().to_owned()],
        limit: Some(1),
        ..Filter::default()
    };
    // What cannot be seen is not waited for.
    while app.automation.engine.list(&busy).await.is_ok_and(|runs| !runs.is_empty()) {
        sleep(Duration::from_millis(25)).await;
    }
}

/// What goes on beside the requests: runs that were left, the clock, the files, the figures.
fn background(app: &Arc<App>) -> Vec<JoinHandle<()>> {
    let recover = {
        let app = Arc::clone(app);
        async move {
            let mut closing = app.closing.clone();
            tokio::select! {
                // A run that cannot be gone on with stays as it is, for people to look at.
                _ = app.automation.engine.recover() => {}
                _ = closing.wait_for(|closing| *closing) => {}
            }
        }
    };
    vec![
        tokio::spawn(metrics::keep(Arc::clone(app))),
        tokio::spawn(schedule::look(Arc::clone(app))),
        tokio::spawn(schedule::keep(Arc::clone(app))),
        tokio::spawn(recover),
    ]
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
