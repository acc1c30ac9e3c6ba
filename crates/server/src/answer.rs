//! Failures as HTTP answers.

use crate::refused::Denied;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cairn_api::Error;
use cairn_api::problem::{CONTENT_TYPE, Problem};

/// A failure on its way out.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Error);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let problem = Problem::from(&error);
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after_ms) = error.retry_after_ms() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after_ms.div_ceil(1_000)));
        }
        if let Error::Forbidden { .. } = &error {
            response.extensions_mut().insert(Denied(error.code()));
        }
        response
    }
}
