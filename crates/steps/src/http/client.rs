//! Sending requests to addresses that were looked at, and to no others.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cairn_engine::performer::{Failed, FailureKind};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, Response, redirect};
use rustls_platform_verifier::ConfigVerifierExt as _;

use super::denied;
use super::request::Request;
use crate::guard::{Denied, Guard, Target, classify};

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How many hosts are remembered.
const CLIENTS_MAX: usize = 64;

/// A client for every host, each bound to the addresses that were looked at.
pub(super) struct Clients {
    pub(super) guard: Guard,
    tls: OnceLock<rustls::ClientConfig>,
    known: Mutex<BTreeMap<Key, Client>>,
}

type Key = (String, u16, Vec<SocketAddr>);

impl Clients {
    pub(super) const fn new(guard: Guard) -> Self {
        Self { guard, tls: OnceLock::new(), known: Mutex::new(BTreeMap::new()) }
    }

    pub(super) async fn send(&self, request: &Request) -> Result<Response, Failed> {
        let target = &request.target;
        let mut addresses = match target.literal {
            Some(_) => Vec::new(),
            None => {
                let found = if request.written {
                    self.guard.addresses(&target.host, target.port).await
                } else {
                    self.guard.without_permissions().addresses(&target.host, target.port).await
                };
                found.map_err(|error| match error {
                    Denied::NoAddress(_) => {
                        let message = format!("{error}; check the name, and the network");
                        Failed::of(FailureKind::Connection, "HTTP_NAME", message)
                    }
                    error => denied(&error),
                })?
            }
        };
        addresses.sort();
        if request.secret && target.url.scheme() == "http" {
            only_inside(target, &addresses)?;
        }
        let client = self.client((target.host.clone(), target.port, addresses))?;
        let sent = request.build(&client)?;
        client.execute(sent).await.map_err(|error| unsent(&error))
    }

    fn client(&self, key: Key) -> Result<Client, Failed> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = known.get(&key) {
            return Ok(client.clone());
        }
        let (host, _, addresses) = &key;
        let client = Client::builder()
            .tls_backend_preconfigured(self.tls()?)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_MAX)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Nobody))
            // A name with a dot at its end is the same name.
            .resolve_to_addrs(host, addresses)
            .resolve_to_addrs(&format!("{host}."), addresses)
            .build()
            .map_err(|error| Failed::new("HTTP_CLIENT", in_words(&error)))?;
        if known.len() >= CLIENTS_MAX {
            known.clear();
        }
        known.insert(key, client.clone());
        Ok(client)
    }

    fn tls(&self) -> Result<rustls::ClientConfig, Failed> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let tls = config()?;
        Ok(self.tls.get_or_init(|| tls).clone())
    }
}

/// Refuses to send a secret through the public network in the clear. Inside, where only what the
/// operator allows is reached, development goes without certificates.
fn only_inside(target: &Target, addresses: &[SocketAddr]) -> Result<(), Failed> {
    let mut all = addresses.iter().map(SocketAddr::ip).chain(target.literal);
    if all.all(|address| classify(address).is_some()) {
        return Ok(());
    }
    let message = format!(
        "the request to `{}` has a secret in it, and `http` sends it in the clear; use `https`",
        target.host
    );
    Err(Failed::new("SECRET_NEEDS_HTTPS", message))
}

/// What is believed of servers: what the system believes.
pub(crate) fn config() -> Result<rustls::ClientConfig, Failed> {
    // A second one changes nothing.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    rustls::ClientConfig::with_platform_verifier().map_err(|error| {
        Failed::new("TLS_ROOTS", format!("the certificates of the system cannot be read: {error}"))
    })
}

/// Knows no name: whatever was not looked at is not resolved.
struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, name: Name) -> Resolving {
        let error = Denied::NoAddress(name.as_str().to_owned());
        Box::pin(std::future::ready(Err(error.into())))
    }
}

/// Why a request got no answer, as far as the error tells.
fn unsent(error: &reqwest::Error) -> Failed {
    let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
    let io = || causes().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let is_refused = io().any(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    let is_tls = causes().any(is_tls);
    let why = in_words(error);
    let (kind, code, message) = match () {
        () if error.is_timeout() => {
            let message = format!("connecting took longer than {} s", CONNECT_MAX.as_secs());
            (FailureKind::Timeout, "HTTP_TIMEOUT", message)
        }
        () if is_refused => {
            let message = "the server refused the connection: nothing listens there".to_owned();
            (FailureKind::Connection, "HTTP_REFUSED", message)
        }
        () if is_tls => {
            let message = format!("the server's certificate or TLS was not accepted: {why}");
            (FailureKind::Permanent, "HTTP_TLS", message)
        }
        () if error.is_connect() => {
            (FailureKind::Connection, "HTTP_CONNECT", format!("the server was not reached: {why}"))
        }
        () => {
            let message = format!("the connection broke before an answer came: {why}");
            (FailureKind::Connection, "HTTP_CONNECT", message)
        }
    };
    Failed::of(kind, code, message)
}

/// Whether an error is one of TLS, however deep in errors of input and output it is wrapped: what
/// these hold is no source of theirs.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<rustls::Error>() || held.is_some_and(|held| is_tls(held))
}

/// What went wrong, without the address, which may hold more than should be told.
pub(crate) fn in_words(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut last = None;
    while let Some(error) = cause {
        last = Some(error.to_string());
        cause = error.source();
    }
    last.unwrap_or_else(|| if error.is_timeout() { "timed out" } else { "it went away" }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_tls_is_known_by_its_type() {
        let tls = || rustls::Error::General("InvalidData".to_owned());
        let held = io::Error::new(io::ErrorKind::InvalidData, tls());
        assert!(is_tls(&tls()) && is_tls(&held) && is_tls(&io::Error::other(held)));
        let text = io::Error::new(io::ErrorKind::InvalidData, "kind: InvalidData");
        assert!(!is_tls(&text) && !is_tls(&io::Error::other(text)));
        assert!(!is_tls(&io::Error::from(io::ErrorKind::InvalidData)));
    }
}
