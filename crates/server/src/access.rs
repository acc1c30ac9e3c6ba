//! Who sends a request, and whether they may.

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use cairn_api::error::{Error, Result};
use cairn_core::digest::Digest;
use subtle::ConstantTimeEq as _;

use crate::answer::Failure;
use crate::routes::Shared;

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
}

impl Action {
    /// Every action there is.
    pub(crate) const ALL: &[Self] = &[Self::ReadSessions, Self::RunWorkflows];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ReadSessions => "sessions:read",
            Self::RunWorkflows => "workflows:run",
        }
    }
}

/// Who sends a request, known by what they may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Principal {
    actions: &'static [Action],
}

impl Principal {
    /// The holder of the admin token.
    const ADMIN: Self = Self { actions: Action::ALL };
}

/// What an action is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object<'a> {
    /// Everything of the kind that the action names.
    All,
    /// One of them, by the id in the path, which may be no id at all.
    One(&'a str),
}

/// Says whether somebody may do something. The only place that does; what is not granted
/// is denied.
pub(crate) fn authorize(principal: Principal, action: Action, object: Object<'_>) -> Result<()> {
    match object {
        // No grant is narrower than an action yet.
        Object::All | Object::One(_) if principal.actions.contains(&action) => Ok(()),
        Object::All | Object::One(_) => Err(Error::Forbidden(action.name())),
    }
}

/// Lets a request through to a route when its sender may call it.
pub(crate) async fn check(
    State((shared, action)): State<(Shared, Action)>,
    params: std::result::Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> std::result::Result<Response, Failure> {
    let principal = authenticate(request.headers(), &shared.admin_token)?;
    let object = match &params {
        Ok(params) => params
            .iter()
            .find(|(name, _)| *name == "id")
            .map_or(Object::All, |(_, id)| Object::One(id)),
        Err(_) => Object::One(""),
    };
    authorize(principal, action, object)?;
    Ok(next.run(request).await)
}

/// Says who sends a request. Only the header counts; a token in the URL is not looked at.
fn authenticate(headers: &HeaderMap, admin_token: &Digest) -> Result<Principal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let value = given.next().ok_or(Error::TokenMissing)?;
    if given.next().is_some() {
        return Err(Error::TokenInvalid);
    }
    let token = bearer(value.as_bytes()).ok_or(Error::TokenMissing)?;
    // Digests are compared, so that neither the time nor the length tells how much was right.
    if bool::from(Digest::of(token).as_bytes().ct_eq(admin_token.as_bytes())) {
        Ok(Principal::ADMIN)
    } else {
        Err(Error::TokenInvalid)
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        match authenticate(&headers, &Digest::of(b"secret")) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code().to_owned(),
        }
    }

    #[test]
    fn only_the_exact_token_in_one_header_is_taken() {
        assert_eq!(check(&["Bearer secret"]), "ok");
        assert_eq!(check(&["bearer secret"]), "ok");
        for values in
            [&["Bearer secret "][..], &["Bearer Secret"], &["Bearer secre"], &["Bearer secrets"]]
        {
            assert_eq!(check(values), "AUTH_TOKEN_INVALID", "{values:?}");
        }
        assert_eq!(check(&["Bearer secret", "Bearer secret"]), "AUTH_TOKEN_INVALID");
        for values in [&[][..], &["secret"], &["Bearer "], &["Bearer"], &["Basic c2VjcmV0"], &[""]]
        {
            assert_eq!(check(values), "AUTH_TOKEN_MISSING", "{values:?}");
        }
    }
    #[test]
    fn what_is_not_granted_is_denied() {
        let nobody = Principal { actions: &[] };
        for action in Action::ALL {
            let denied = authorize(nobody, *action, Object::One("x")).unwrap_err();
            assert_eq!(denied.code(), "AUTH_FORBIDDEN");
            assert!(authorize(Principal::ADMIN, *action, Object::All).is_ok());
        }
    }
}
