//! `/api/v1/triggers`: what starts runs, and when next.

use axum::Json;
use axum::extract::{Extension, State};
use axum::routing::get;
use cairn_api::call::{Trigger, Triggers};
use cairn_api::time::rfc3339;
use cairn_engine::secrets::Vault;
use cairn_engine::trigger::Watch;

use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::clock::now_ms;
use crate::watched::Place;

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadWorkflows);
    vec![
        Route::get(
            "/api/v1/triggers",
            read,
            "List the triggers, and when each fires next",
            get(list),
        )
        .gives::<Triggers>(),
    ]
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Triggers>, Failure> {
    let view = shared.watched.view();
    let mut items = Vec::new();
    for place in view.places.iter().filter(|place| caller.covers(&place.identity).is_ok()) {
        let key = place.key();
        let shown = shown(place, &shared.automation.vault, now_ms()).await;
        let refused = shared.automation.engine.refused(&place.identity, &place.trigger).await;
        items.push(Trigger {
            seen_until: shared.schedule.seen_until(&key).and_then(rfc3339),
            refused: refused.ok().flatten().map(Into::into),
            last_error: shared.schedule.error(&key).or(shown.last_error.clone()),
            ..shown
        });
    }
    Ok(Json(Triggers { items }))
}

/// A trigger, as far as its own settings and its secret say.
pub(crate) async fn shown(place: &Place, vault: &Vault, now_ms: u64) -> Trigger {
    let (next_at, path) = match &place.watch {
        Watch::Times(times) if place.enabled => (times.next_after(now_ms).and_then(rfc3339), None),
        Watch::Hook(hook) => (None, Some(format!("/hooks{}", hook.path()))),
        _ => (None, None),
    };
    Trigger {
        workflow_id: place.workflow.clone(),
        trigger_id: place.trigger.to_string(),
        r#type: place.kind.clone(),
        enabled: place.enabled,
        next_at,
        path,
        seen_until: None,
        refused: None,
        last_error: place.obstacle(vault).await,
        stale: place.is_stale,
    }
}
