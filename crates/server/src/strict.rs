//! Requests that everybody reads alike: what two readers could take for two different things
//! gets no further.
//!
//! A proxy in front may end a request elsewhere than this server does, and what it takes for
//! the rest of one is then another's request. So a request says its length once, in one way,
//! and its lines end as they should. In a head, all from the first byte that breaks this on are
//! turned into zeros, which no head has: whoever reads them answers 400 and closes. A body
//! that breaks it ends there.

/// How much is kept of a line, to see what it says.
const LINE_MAX: usize = 128;

/// What has been seen of a connection's requests.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    at: At,
    line: Line,
    /// How long the body is, as the head says.
    length: Option<u64>,
    chunked: bool,
    /// Whether it is a body that broke the rules.
    in_body: bool,
}

/// Where in a request the next byte belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum At {
    /// Before its first line.
    #[default]
    Start,
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
    Broken,
}

/// A line that is being read.
#[derive(Debug, Default)]
struct Line {
    start: Vec<u8>,
    length: usize,
    /// Whether the last byte was a carriage return, which only the end of a line has.
    returned: bool,
}

/// What became of a line with one more byte.
enum Read {
    More,
    Whole,
    Odd,
}

impl Strict {
    /// Looks at what was read next, and spoils it where it breaks the rules. Says how much of
    /// it may be read on: all, unless it is a body that breaks them.
    pub(crate) fn look(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            if self.in_body {
                break;
            }
            if let At::Body(left) | At::Chunk(left) = self.at {
                let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                self.skip(skipped as u64);
                at += skipped;
                continue;
            }
            if let Some(first) = rest.first_mut()
                && !self.take(*first)
            {
                self.in_body = !matches!(self.at, At::Start | At::Head | At::Broken);
                self.at = At::Broken;
                *first = 0;
            }
            at += usize::from(!self.in_body);
        }
        at
    }

    /// Whether a body broke the rules, so that nothing more is read.
    pub(crate) const fn is_over(&self) -> bool {
        self.in_body
    }

    /// Passes over a part of a body.
    fn skip(&mut self, count: u64) {
        self.at = match self.at {
            At::Body(left) if left == count => At::Start,
            At::Body(left) => At::Body(left - count),
            At::Chunk(left) if left == count => At::ChunkEnd,
            At::Chunk(left) => At::Chunk(left - count),
            other => other,
        };
    }

    /// Takes one byte of a line; says whether it may stand there.
    fn take(&mut self, byte: u8) -> bool {
        if self.at == At::Broken {
            return false;
        }
        match self.line.push(byte) {
            Read::More => true,
            Read::Odd => false,
            Read::Whole => {
                let line = std::mem::take(&mut self.line);
                self.end(&line).map(|at| self.at = at).is_some()
            }
        }
    }

    /// Where the next byte belongs when a line has ended; nowhere when it is a bad line.
    fn end(&mut self, line: &Line) -> Option<At> {
        let is_empty = line.length == 0;
        match self.at {
            // Empty lines between requests mean nothing.
            At::Start if is_empty => Some(At::Start),
            At::Start => {
                (self.length, self.chunked) = (None, false);
                Some(At::Head)
            }
            At::Head if is_empty => Some(match (self.chunked, self.length) {
                (true, _) => At::ChunkSize,
                (false, None | Some(0)) => At::Start,
                (false, Some(length)) => At::Body(length),
            }),
            At::Head => self.header(line).map(|()| At::Head),
            At::ChunkSize => Some(match line.chunk_size()? {
                0 => At::Trailer,
                size => At::Chunk(size),
            }),
            At::ChunkEnd => is_empty.then_some(At::ChunkSize),
            At::Trailer if is_empty => Some(At::Start),
            At::Trailer => Some(At::Trailer),
            At::Body(_) | At::Chunk(_) | At::Broken => None,
        }
    }

    /// Takes in what a header says of the body's length.
    fn header(&mut self, line: &Line) -> Option<()> {
        if line.start.first().is_none_or(u8::is_ascii_whitespace) {
            return None;
        }
        let colon = line.start.iter().position(|byte| *byte == b':');
        let (name, value) = line.start.split_at(colon.unwrap_or(line.start.len()));
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let is_said = self.chunked || self.length.is_some();
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10).filter(|_| line.is_kept() && !is_said)?;
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if is_said || !line.is_kept() || !value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            self.chunked = true;
        }
        Some(())
    }
}

impl Line {
    fn push(&mut self, byte: u8) -> Read {
        match (byte, self.returned) {
            (b'\n', true) => return Read::Whole,
            (b'\n', false) | (_, true) => return Read::Odd,
            (b'\r', false) => self.returned = true,
            (other, false) => {
                self.length = self.length.saturating_add(1);
                if self.start.len() < LINE_MAX {
                    self.start.push(other);
                }
            }
        }
        Read::More
    }

    /// Whether all of it was kept.
    const fn is_kept(&self) -> bool {
        self.start.len() == self.length
    }

    /// How long the chunk is that it begins.
    fn chunk_size(&self) -> Option<u64> {
        let size = self.start.split(|byte| *byte == b';').next().unwrap_or_default();
        number(size.trim_ascii_end(), 16).filter(|_| self.is_kept())
    }
}

/// A number of digits alone.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, radix).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How much of what is sent gets through, in pieces of this size.
    fn through(sent: &str, piece: usize) -> usize {
        let (mut strict, mut bytes) = (Strict::default(), sent.as_bytes().to_vec());
        for piece in bytes.chunks_mut(piece) {
            let good = strict.look(piece);
            piece[good..].fill(0);
        }
        let good = bytes.iter().take_while(|byte| **byte != 0).count();
        assert!(bytes[good..].iter().all(|byte| *byte == 0), "{sent:?}");
        assert_eq!(&bytes[..good], &sent.as_bytes()[..good]);
        good
    }

    const GOOD: [&str; 6] = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\na\nb\n\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length:0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\n\n\n\n\r\nA;x=y\r\n0123456789\r\n0\r\nX: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
    ];

    #[test]
    fn plain_requests_pass_however_they_are_cut() {
        for good in GOOD {
            for piece in [1, 2, 7, 4096] {
                assert_eq!(through(good, piece), good.len(), "{good:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_spoilt() {
        let long = format!("Content-Length:{}5", " ".repeat(200));
        for lines in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            "Content-Length: 5\r\nContent-Length: 5",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: xchunked",
            "Content-Length: +5",
            "Content-Length: 5, 5",
            "Content-Length: 0x5",
            "Content-Length: a",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            long.as_str(),
            "X: 1\r\n folded",
            "X: 1\nY: 2",
            "X: 1\rY: 2",
            "X: 1\r\r",
        ] {
            let sent = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\nhello");
            let body = sent.len() - "\r\n\r\nhello".len();
            for piece in [1, 3, 4096] {
                assert!(through(&sent, piece) <= body + 1, "{lines:?} in pieces of {piece}");
            }
        }
        for body in
            ["3\nabc\r\n", "3\r\nabcd\r\n", "x\r\n", "3\r\nabc\n", "\r\n", "0\r\nX: 1\n\r\n"]
        {
            let sent = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            assert!(through(&sent, 1) < sent.len(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn how_it_is_cut_makes_no_difference(
            sent in "((GET|POST) / HTTP/1\\.1\r\n|Content-Length: [0-9]\r\n|Transfer-Encoding: chunked\r\n|\r\n|\n|[0-9a;]{1,3}\r\n|x){0,20}",
            piece in 1usize..40,
        ) {
            prop_assert_eq!(through(&sent, piece), through(&sent, 1));
        }
    }
}
