//! Puts on record who was turned away.

use axum::http::request::Parts;
use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_engine::flow::{Observer, Refusal as Refused, Told};
use cairn_engine::record::{Record, Refusal};

use crate::routes::Peer;

/// Says on an answer that its sender was turned away, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Denied(pub(crate) &'static str);

/// Records the firings that are refused.
pub(crate) struct Firings(pub(crate) Record);

impl Observer for Firings {
    fn told(&self, _: &Told) {}

    fn refused(&self, refused: &Refused<'_>) {
        let via = Via { actor: ActorKind::Engine, door: Door::Engine, line: None, token_id: None };
        let by = By { name: format!("trigger {}", refused.trigger), via: Some(via) };
        let (object, code) = (refused.workflow.to_owned(), refused.why.code());
        let refusal = Refusal { by, action: "runs:start", object, code };
        let record = self.0.clone();
        // Nobody waits for it, and what cannot be recorded is still in the list of triggers.
        tokio::spawn(async move { record.refuse(refusal).await });
    }
}

/// Somebody who came with a token that is none.
pub(crate) fn login(parts: &Parts, code: &'static str) -> Refusal {
    let peer = parts.extensions.get::<Peer>().map(|Peer(peer)| peer.ip().to_string());
    Refusal::login(peer.as_deref().unwrap_or("unknown"), code)
}
