//! Following what a command prints while it runs.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout};

use super::{Over, Stream};

/// Follows what a command prints, line by line.
pub(crate) struct Watch<'a> {
    /// Is given each line without its end, and says whether all is said that is waited for.
    /// Of a line that is too long the beginning is given.
    pub(crate) line: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    /// How long it may print nothing.
    pub(crate) idle: Duration,
    /// How long it may take to end once all is said.
    pub(crate) linger: Duration,
    /// How long a line may be; the rest of a longer one is left out.
    pub(crate) line_max: usize,
    /// How much it may print.
    pub(crate) bytes_max: u64,
}

impl Watch<'_> {
    /// Reads on until the stream ends, or until there is nothing to wait for.
    pub(super) async fn follow(
        &mut self,
        stream: Option<impl AsyncRead + Unpin>,
        kept: &mut Stream,
    ) -> Result<(), Over> {
        let Some(mut stream) = stream else { return Ok(()) };
        let (mut line, mut all) = (Vec::new(), 0);
        let mut over_at = None;
        let mut buffer = vec![0; 16 << 10];
        loop {
            let wait = match over_at {
                Some(at) => Instant::saturating_duration_since(&at, Instant::now()),
                None => self.idle,
            };
            let read = match timeout(wait, stream.read(&mut buffer)).await {
                Err(_) if over_at.is_some() => return Err(Over::Lingered),
                Err(_) => return Err(Over::Stalled),
                Ok(Ok(read @ 1..)) => buffer.get(..read).unwrap_or_default(),
                Ok(_) => break,
            };
            kept.take(read)?;
            all += read.len() as u64;
            if all > self.bytes_max {
                return Err(Over::TooMuch);
            }
            for byte in read {
                if *byte == b'\n' {
                    if (self.line)(&line) {
                        over_at.get_or_insert_with(|| Instant::now() + self.linger);
                    }
                    line.clear();
                } else if line.len() < self.line_max {
                    line.push(*byte);
                }
            }
        }
        if !line.is_empty() {
            (self.line)(&line);
        }
        Ok(())
    }
}
