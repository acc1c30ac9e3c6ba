//! Messages between a pool and its processes: their length in four bytes, then JSON.

use std::io::{self, Read, Write};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// How many bytes a message may have.
pub(crate) const FRAME_MAX: usize = 16 << 20;

fn head(length: usize) -> io::Result<[u8; 4]> {
    let fits = u32::try_from(length).ok().filter(|_| length <= FRAME_MAX);
    fits.map(u32::to_be_bytes).ok_or_else(too_long)
}

fn length(head: [u8; 4]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_be_bytes(head)).map_err(|_| too_long())?;
    if length <= FRAME_MAX { Ok(length) } else { Err(too_long()) }
}

fn too_long() -> io::Error {
    let message = format!("a message has more than {FRAME_MAX} bytes");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Reads a message, if the other side has not gone.
pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Value>> {
    let mut head = [0; 4];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; length(head)?];
    input.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Writes a message.
pub(crate) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    output.write_all(&head(bytes.len())?)?;
    output.write_all(&bytes)?;
    output.flush()
}

/// Writes a message that is bytes already.
pub(crate) async fn send(output: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    output.write_all(&head(bytes.len())?).await?;
    output.write_all(bytes).await?;
    output.flush().await
}

/// Reads a message.
pub(crate) async fn receive(input: &mut (impl AsyncRead + Unpin)) -> io::Result<Value> {
    let mut head = [0; 4];
    input.read_exact(&mut head).await?;
    let mut bytes = vec![0; length(head)?];
    input.read_exact(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}
