//! Standard input and output: one client, one message on each line.

use cairn_api::error::{Error, Result};
use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::handler::Handler;
use crate::{Door, ToolSet};

/// Serves the client at standard input and output until it closes them.
pub async fn serve_stdio(door: Door, set: ToolSet) -> Result<()> {
    let (input, output) = stdio_pipes();
    serve_streams(door, set, input, output).await
}

/// Serves the client at a pair of streams until it closes them. What it has asked for by
/// then is answered.
pub async fn serve_streams(
    door: Door,
    set: ToolSet,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let service = Handler::new(door, set).serve((input, output)).await;
    // A client that leaves before it has said anything wants nothing.
    let Ok(service) = service else { return Ok(()) };
    let ended = service.waiting().await;
    ended.map(|_| ()).map_err(|error| Error::Internal(error.to_string()))
}
