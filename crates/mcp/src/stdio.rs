//! Standard input and output: one client, one message on each line.

use cairn_api::error::{Error, Result};
use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, duplex,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::handler::Handler;
use crate::{Door, ToolSet, message};

/// How many bytes are under way between the client and the protocol's library.
const PIPE: usize = 64 << 10;
/// How long a line may be. The largest call that tools take is well below it.
const LINE_MAX: usize = 16 << 20;
/// How many lines that are no messages may wait to be answered.
const FAULTS: usize = 64;

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
    // A pipe of this kind ends when its other side is dropped.
    let (messages, to_messages) = duplex(PIPE);
    let (answers, to_answers) = duplex(PIPE);
    let (to_faults, faults) = channel(FAULTS);
    let reading = tokio::spawn(read(input, to_messages, to_faults));
    let writing = tokio::spawn(write(answers, faults, output));
    let ended = match Handler::new(door, set).serve((messages, to_answers)).await {
        Ok(service) => service.waiting().await.map(|_| ()),
        // A client that leaves before it has said anything wants nothing.
        Err(_) => Ok(()),
    };
    reading.abort();
    let written = writing.await;
    ended.and(written).map_err(|error| Error::Internal(error.to_string()))
}

/// Hands messages on, and answers what is none.
async fn read(
    input: impl AsyncRead + Unpin,
    mut messages: impl AsyncWrite + Unpin,
    faults: Sender<String>,
) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    // A client that is gone has said all that it will.
    while matches!(read_line(&mut input, &mut line).await, Ok(read) if read > 0) {
        let passed_on = match message::fault(&line) {
            _ if line.trim_ascii().is_empty() => true,
            _ if line.len() > LINE_MAX => {
                let fault = message::too_long(&line, LINE_MAX);
                faults.send(fault.to_string()).await.is_ok()
            }
            Some(fault) => faults.send(fault.to_string()).await.is_ok(),
            None => messages.write_all(&line).await.is_ok(),
        };
        if !passed_on {
            break;
        }
        line.clear();
    }
    let _ = messages.shutdown().await;
}

/// Reads a line, or the beginning of one that is too long; the rest of that is passed over.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<usize> {
    let most = u64::try_from(LINE_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let read = (&mut *input).take(most).read_until(b'\n', line).await?;
    let mut ended = line.ends_with(b"\n") || line.len() <= LINE_MAX;
    while !ended {
        let bytes = input.fill_buf().await?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let passed = end.map_or(bytes.len(), |end| end + 1);
        ended = end.is_some() || bytes.is_empty();
        input.consume(passed);
    }
    Ok(read)
}

/// Writes answers and faults, a line each, until there are no more of either.
async fn write(
    answers: impl AsyncRead + Unpin,
    mut faults: Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
) {
    let mut answers = BufReader::new(answers).lines();
    let (mut answering, mut faulting) = (true, true);
    while answering || faulting {
        let line = tokio::select! {
            line = answers.next_line(), if answering => {
                let line = line.ok().flatten();
                answering = line.is_some();
                line
            }
            line = faults.recv(), if faulting => {
                faulting = line.is_some();
                line
            }
        };
        let Some(line) = line else { continue };
        let written = output.write_all(format!("{line}\n").as_bytes()).await;
        if written.is_err() || output.flush().await.is_err() {
            return;
        }
    }
    let _ = output.shutdown().await;
}
