//! `/api/v1/tokens`: the tokens there are. The text of one is given to whoever makes it, once.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post};
use cairn_api::Error;
use cairn_api::token::{MakeToken, Token, TokenMade, Tokens};

use cairn_engine::rights::Limit;

use super::workflows::find;
use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::body;
use crate::clock::now_ms;
use crate::tokens::Wanted;

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadTokens);
    let write = Access::Needs(Action::WriteTokens);
    let (all, one) = ("/api/v1/tokens", "/api/v1/tokens/{id}");
    vec![
        Route::get(all, read, "List the tokens", get(list)).gives::<Tokens>(),
        Route::post(all, write, "Make a token, whose text is told once", post(make))
            .takes::<MakeToken>()
            .gives::<TokenMade>(),
        Route::delete(one, write, "Revoke a token by its id or its name", delete(revoke))
            .gives::<Token>(),
    ]
}

async fn list(State(shared): State<Shared>) -> Result<Json<Tokens>, Failure> {
    Ok(Json(Tokens { items: shared.tokens.list().await? }))
}

async fn make(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<TokenMade>), Failure> {
    let asked: MakeToken = body::json(&headers, body).await?;
    let mut workflows = Vec::new();
    for given in &asked.workflows {
        workflows.push(Limit::to(find(&shared, given).await?.identity()));
    }
    let now_ms = now_ms();
    let expires_ms = asked.expires_in_sec.span_ms()?.map(|span| now_ms.saturating_add(span));
    let wanted = Wanted::new((asked.name, asked.kind), asked.scopes, workflows, expires_ms)?;
    let text = (shared.new_token)()?;
    let token = shared.tokens.create(&caller.changes(&shared), &text, wanted, now_ms).await?;
    Ok((StatusCode::CREATED, Json(TokenMade { token: text, about: token })))
}

async fn revoke(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Token>, Failure> {
    let Path(id) = id.map_err(|_| Error::PathUnknown)?;
    Ok(Json(shared.tokens.revoke(&caller.changes(&shared), &id, now_ms()).await?))
}
