//! Taking connections and, in the end, letting go of them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cairn_api::error::{Error, Result};
use cairn_store::Store;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::patience::Patient;
use crate::routes::{self, App};

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

/// Serves until `shutdown` is ready, then answers what it has taken and returns.
pub async fn serve(
    listener: TcpListener,
    config: Config,
    store: Store,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let app = App {
        store,
        admin_token: config.admin_token,
        public_hosts: config.public_hosts,
        mcp: config.mcp,
    };
    let service = TowerToHyperService::new(routes::router(Arc::new(app)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_MAX);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, place) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted?,
        };
        let connection = http.serve_connection(TokioIo::new(Patient::new(stream)), service.clone());
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // A connection that fails is the client's loss; the server has nothing to add.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    // Whoever has not read its answer by then will not.
    let _ = timeout(DRAIN_TIMEOUT, connections.shutdown()).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(|error| Error::Internal(error.to_string()))?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return Ok((stream, place)),
            // Out of file descriptors, or the client has gone already: others may have better luck.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}
