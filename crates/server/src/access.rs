//! Who sends a request, and whether they may.

use std::sync::Arc;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use cairn_api::error::{Error, Lack, Result};
use cairn_api::token::{self, Holder, Scope, TokenKind};
use cairn_engine::catalog::Identity;
use cairn_engine::flow::Roles;
use cairn_engine::record::Refusal;
use cairn_engine::record::changes::Changes;
use cairn_engine::rights::Limit;
use subtle::ConstantTimeEq as _;

use cairn_core::digest::Digest;
use cairn_core::event::{ActorKind, By, Door, Via};

use crate::answer::Failure;
use crate::clock::now_ms;
use crate::refused::{self, Denied};
use crate::routes::{Peer, Shared};
use crate::tokens::Tokens;

/// How long a token can be.
const TOKEN_MAX: usize = 256;

/// What it takes to call a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nothing: it gives nothing away.
    Public,
    /// The right to do this.
    Needs(Action),
}

/// What somebody may want to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// See sessions and what is in them.
    ReadSessions,
    /// Be led through workflows.
    RunWorkflows,
    /// See workflows and what is wrong with them.
    ReadWorkflows,
    /// See runs, what they asked and what came of them.
    ReadRuns,
    /// See everything that happens, of whatever workflow.
    WatchRuns,
    /// Have runs begun.
    StartRuns,
    /// End, pause, repeat and fork runs.
    SteerRuns,
    /// See what runs ask of people.
    ReadTasks,
    /// Answer what runs ask.
    AnswerTasks,
    /// Let sessions from elsewhere go on here.
    TrustSessions,
    /// Give settings of workflows their values.
    EditSettings,
    /// Give secrets of workflows their values.
    WriteSecrets,
    /// See the record of who changed what.
    ReadAudit,
    /// See tokens.
    ReadTokens,
    /// Make tokens, and revoke them.
    WriteTokens,
    /// See figures, and how the API looks.
    ReadServer,
}

impl Action {
    /// Every action there is.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 16] = [
        Self::ReadSessions,
        Self::RunWorkflows,
        Self::ReadWorkflows,
        Self::ReadRuns,
        Self::WatchRuns,
        Self::StartRuns,
        Self::SteerRuns,
        Self::ReadTasks,
        Self::AnswerTasks,
        Self::TrustSessions,
        Self::EditSettings,
        Self::WriteSecrets,
        Self::ReadAudit,
        Self::ReadTokens,
        Self::WriteTokens,
        Self::ReadServer,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ReadSessions => "sessions:read",
            Self::RunWorkflows => "workflows:run",
            Self::ReadWorkflows => "workflows:read",
            Self::ReadRuns => "runs:read",
            Self::WatchRuns => "runs:watch",
            Self::StartRuns => "runs:start",
            Self::SteerRuns => "runs:steer",
            Self::ReadTasks => "tasks:read",
            Self::AnswerTasks => "tasks:answer",
            Self::TrustSessions => "sessions:trust",
            Self::EditSettings => "settings:edit",
            Self::WriteSecrets => "secrets:write",
            Self::ReadAudit => "audit:read",
            Self::ReadTokens => "tokens:read",
            Self::WriteTokens => "tokens:write",
            Self::ReadServer => "server:read",
        }
    }

    /// The scope that allows it.
    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::ReadSessions
            | Self::ReadWorkflows
            | Self::ReadRuns
            | Self::ReadTasks
            | Self::WatchRuns
            | Self::ReadServer => Scope::Read,
            Self::RunWorkflows | Self::StartRuns | Self::SteerRuns => Scope::Run,
            Self::AnswerTasks | Self::TrustSessions => Scope::Approve,
            Self::EditSettings => Scope::Edit,
            Self::WriteSecrets => Scope::SecretsWrite,
            Self::ReadAudit | Self::ReadTokens | Self::WriteTokens => Scope::Admin,
        }
    }

    /// Whether a scope allows it: the one that it names, all of them, and to see what is asked the
    /// one that allows to answer.
    pub(crate) fn is_allowed_by(self, scope: Scope) -> bool {
        let answers = self == Self::ReadTasks && scope == Scope::Approve;
        scope == self.scope() || scope == Scope::Admin || answers
    }

    /// Whether it is about single workflows, so that a token for some of them allows it.
    const fn is_per_workflow(self) -> bool {
        matches!(
            self,
            Self::ReadWorkflows
                | Self::ReadRuns
                | Self::StartRuns
                | Self::SteerRuns
                | Self::ReadTasks
                | Self::AnswerTasks
                | Self::EditSettings
                | Self::WriteSecrets
        )
    }
}

/// Who sends a request, known by what they may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Principal {
    /// Who, for people.
    pub(crate) name: String,
    /// The id of the token; none for the admin token.
    id: Option<String>,
    /// Who it is for.
    kind: TokenKind,
    scopes: Vec<Scope>,
    /// The workflows that it is about; all of them when there are none.
    workflows: Vec<Limit>,
}

impl Principal {
    /// The holder of the admin token.
    fn admin() -> Self {
        let (name, scopes) = ("admin".to_owned(), vec![Scope::Admin]);
        Self { name, id: None, kind: TokenKind::Person, scopes, workflows: Vec::new() }
    }

    /// Whether it may answer what runs ask of people.
    pub(crate) fn answers(&self) -> bool {
        self.scopes.iter().any(|has| Action::AnswerTasks.is_allowed_by(*has))
    }

    /// The roles that it has.
    pub(crate) fn roles(&self) -> Roles {
        token::roles(&self.scopes)
    }

    /// Who it is, as it is recorded.
    fn by(&self) -> By {
        let via = Via {
            actor: match self.kind {
                TokenKind::Person => ActorKind::Program,
                TokenKind::Agent => ActorKind::Agent,
            },
            door: Door::Http,
            line: None,
            token_id: self.id.clone(),
        };
        By { name: self.name.clone(), via: Some(via) }
    }
}

/// What an action is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object<'a> {
    /// Everything of the kind that the action names, as far as the principal may.
    All,
    /// One of them, by the id in the path, which may be no id at all.
    One(&'a str),
    /// A workflow, or something of it.
    Workflow(&'a Identity),
}

/// Says whether somebody may do something. The only place that does; what is not granted
/// is denied.
pub(crate) fn authorize(principal: &Principal, action: Action, object: Object<'_>) -> Result<()> {
    let scope = action.scope();
    let granted = principal.scopes.iter().any(|has| action.is_allowed_by(*has));
    let all = principal.workflows.is_empty();
    let covered = match object {
        // Whoever answers leaves out, or refuses by `Workflow`, what is not covered.
        Object::All | Object::One(_) => all || action.is_per_workflow(),
        Object::Workflow(of) => all || principal.workflows.iter().any(|known| known.is(of)),
    };
    let lacks = match (granted, covered) {
        (true, true) => return Ok(()),
        (false, _) => Lack::Scope(scope),
        (true, false) => Lack::Workflow,
    };
    Err(Error::Forbidden { action: action.name(), lacks })
}

/// Who calls a handler, and as what.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) principal: Arc<Principal>,
    action: Action,
}

impl Caller {
    /// Who the caller is, as it is recorded.
    pub(crate) fn by(&self) -> By {
        self.principal.by()
    }

    /// The changes that the caller asks for.
    pub(crate) fn changes(&self, shared: &Shared) -> Changes {
        Changes::new(&shared.record, &shared.store, self.by())
    }

    /// Refuses what is about a workflow that the caller's token is not for.
    pub(crate) fn covers(&self, workflow: &Identity) -> Result<()> {
        authorize(&self.principal, self.action, Object::Workflow(workflow))
    }

    /// Puts on record that the caller asked for something that its token is not for. It is told that
    /// there is no such thing: a token for some workflows says nothing of others.
    pub(crate) async fn turned_away(&self, shared: &Shared, object: String) {
        let (by, action) = (self.by(), self.action.name());
        shared.record.refuse(Refusal { by, action, object, code: "AUTH_FORBIDDEN" }).await;
    }

    /// The workflows that the caller's token is for; all of them when there are none.
    pub(crate) fn workflows(&self) -> &[Limit] {
        &self.principal.workflows
    }

    /// The token that the caller came with; none for the admin token.
    pub(crate) fn token(&self) -> Option<&str> {
        self.principal.id.as_deref()
    }

    /// Who it is, for the log of a run.
    pub(crate) fn name(&self) -> &str {
        &self.principal.name
    }
}

/// Lets a request through to a route when its sender may call it.
pub(crate) async fn check(
    State((shared, action)): State<(Shared, Action)>,
    params: std::result::Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> std::result::Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let principal = match authenticate(&parts.headers, &shared.admin_token, &shared.tokens).await {
        Ok(principal) => principal,
        Err(error) => {
            // Whoever brings no token tries nothing.
            if let Error::TokenInvalid = error {
                shared.record.refuse(refused::login(&parts, error.code())).await;
                let peer = parts.extensions.get::<Peer>().map(|Peer(peer)| peer.ip());
                if let Some(after_ms) = peer.and_then(|peer| shared.strikes.count(peer, now_ms())) {
                    return Err(Failure(Error::TokensTried { after_ms }));
                }
            }
            return Err(Failure(for_strangers(&shared, error)));
        }
    };
    let mut request = Request::from_parts(parts, body);
    note_use(&shared, &principal);
    let object = match &params {
        Ok(params) => params
            .iter()
            .find(|(name, _)| *name == "id")
            .map_or(Object::All, |(_, id)| Object::One(id)),
        Err(_) => Object::One(""),
    };
    let (by, object_path) = (principal.by(), request.uri().path().to_owned());
    let turned_away = |code: &'static str| {
        let refusal = Refusal { by, action: action.name(), object: object_path, code };
        shared.record.refuse(refusal)
    };
    if let Err(denied) = authorize(&principal, action, object) {
        turned_away(denied.code()).await;
        return Err(Failure(denied));
    }
    let holder = Holder {
        scopes: principal.scopes.clone(),
        by: token::agent(&principal.name, principal.id.clone()),
    };
    request.extensions_mut().insert(holder);
    request.extensions_mut().insert(Caller { principal: Arc::new(principal), action });
    let response = next.run(request).await;
    // What the token is not for shows when it is known which workflow is meant.
    if let Some(Denied(code)) = response.extensions().get() {
        turned_away(code).await;
    }
    Ok(response)
}

/// What somebody is told who may be anybody: what is wrong with the server is for its operator.
fn for_strangers(shared: &Shared, error: Error) -> Error {
    match error {
        Error::TokenInvalid | Error::TokenMissing => error,
        error => {
            shared.automation.engine.tell_trouble(&error.coded());
            Error::NotReady
        }
    }
}

/// Notes when a token was last used, without making anybody wait.
fn note_use(shared: &Shared, principal: &Principal) {
    let Some(id) = principal.id.clone() else { return };
    let now = now_ms();
    if !shared.used.is_due(&id, now) {
        return;
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        // It is for people; a disk that is full is told by what matters more.
        let _ = shared.tokens.note_use(&id, now).await;
    });
}

/// Says who sends a request. Only the header counts; a token in the URL is not looked at.
async fn authenticate(
    headers: &HeaderMap,
    admin_token: &Digest,
    tokens: &Tokens,
) -> Result<Principal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let value = given.next().ok_or(Error::TokenMissing)?;
    if given.next().is_some() {
        return Err(Error::TokenInvalid);
    }
    let token = bearer(value.as_bytes()).ok_or(Error::TokenMissing)?;
    if !is_token_sized(token) {
        return Err(Error::TokenInvalid);
    }
    // Digests are compared, so that neither the time nor the length tells how much was right.
    if bool::from(Digest::of(token).as_bytes().ct_eq(admin_token.as_bytes())) {
        return Ok(Principal::admin());
    }
    let found = tokens.find(token, now_ms()).await?.ok_or(Error::TokenInvalid)?;
    let workflows = found.limits();
    let (scopes, kind) = (found.scopes(), found.kind);
    let (name, id) = (found.name, Some(found.id));
    Ok(Principal { name, id, kind, scopes, workflows })
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

/// Whether a token is short enough to be one; nothing longer is looked at.
const fn is_token_sized(token: &[u8]) -> bool {
    token.len() <= TOKEN_MAX
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    async fn check(values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
        let tokens = Tokens::new(store.documents);
        match authenticate(&headers, &Digest::of(b"secret"), &tokens).await {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code().to_owned(),
        }
    }

    #[tokio::test]
    async fn only_the_exact_token_in_one_header_is_taken() {
        assert_eq!(check(&["Bearer secret"]).await, "ok");
        assert_eq!(check(&["bearer secret"]).await, "ok");
        for values in
            [&["Bearer secret "][..], &["Bearer Secret"], &["Bearer secre"], &["Bearer secrets"]]
        {
            assert_eq!(check(values).await, "AUTH_TOKEN_INVALID", "{values:?}");
        }
        assert_eq!(check(&["Bearer secret", "Bearer secret"]).await, "AUTH_TOKEN_INVALID");
        assert_eq!(check(&[&format!("Bearer {}", "x".repeat(20_000))]).await, "AUTH_TOKEN_INVALID");
        for values in [&[][..], &["secret"], &["Bearer "], &["Bearer"], &["Basic c2VjcmV0"], &[""]]
        {
            assert_eq!(check(values).await, "AUTH_TOKEN_MISSING", "{values:?}");
        }
    }

    fn somebody(scopes: &[Scope], workflows: &[&str]) -> Principal {
        let workflows = workflows.iter().map(|id| Limit::from(*id)).collect();
        Principal {
            name: "x".to_owned(),
            id: None,
            kind: TokenKind::Person,
            scopes: scopes.to_vec(),
            workflows,
        }
    }

    #[test]
    fn what_is_not_granted_is_denied() {
        for action in Action::ALL {
            let denied = authorize(&somebody(&[], &[]), action, Object::One("x")).unwrap_err();
            assert_eq!(denied.code(), "AUTH_FORBIDDEN");
            assert!(authorize(&Principal::admin(), action, Object::All).is_ok());
            for scope in Scope::ALL {
                // Whoever answers sees what is asked; nothing else has two scopes.
                let answers = (action, scope) == (Action::ReadTasks, Scope::Approve);
                let wanted = scope == action.scope() || scope == Scope::Admin || answers;
                let granted = authorize(&somebody(&[scope], &[]), action, Object::All).is_ok();
                assert_eq!(granted, wanted, "{action:?} with {scope}");
            }
        }
    }

    // case: auth.one-workflow
    #[test]
    fn a_token_for_one_workflow_reaches_nothing_else() {
        let one = somebody(&[Scope::Admin], &["project.a"]);
        for action in Action::ALL {
            let of = |id: &str| Identity::recorded(id, Some(&format!("/w/{id}.yaml")));
            assert!(authorize(&one, action, Object::Workflow(&of("project.a"))).is_ok());
            assert!(authorize(&one, action, Object::Workflow(&of("project.ab"))).is_err());
            let everything = authorize(&one, action, Object::All).is_ok();
            assert_eq!(everything, action.is_per_workflow(), "{action:?}");
        }
    }
}
