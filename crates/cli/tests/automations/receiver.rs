//! A web server that counts what it is asked, for the steps that ask it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What was asked at one path, over all lives of the program that asks.
#[derive(Clone, Default, Debug)]
pub(crate) struct Asked {
    pub(crate) times: u32,
    pub(crate) keys: BTreeSet<String>,
}

/// A request, as it came in.
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// A server that lives as long as the test.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    asked: Arc<Mutex<BTreeMap<String, Asked>>>,
}

/// What to answer: a status and a body, or nothing at all.
type Answer = Option<(u16, Value)>;

impl Receiver {
    /// Answers with `answer`, which is given the request and how often its path was asked.
    pub(crate) fn start(answer: impl Fn(&Request, u32) -> Answer + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<BTreeMap<String, Asked>>> = Arc::default();
        let all = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, answer) = (Arc::clone(&all), answer.clone());
                std::thread::spawn(move || converse(stream, &all, &answer));
            }
        });
        Self { port, asked }
    }

    /// Everything that was asked so far, by path.
    pub(crate) fn asked(&self) -> BTreeMap<String, Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn converse(
    mut stream: TcpStream,
    all: &Mutex<BTreeMap<String, Asked>>,
    answer: &impl Fn(&Request, u32) -> Answer,
) {
    let _ = stream.set_nodelay(true);
    let Ok(read) = stream.try_clone() else { return };
    let mut read = BufReader::new(read);
    // Whoever asks may be killed in the middle of it.
    while let Some(request) = take(&mut read) {
        let times = {
            let mut all = all.lock().unwrap();
            let asked = all.entry(request.path.clone()).or_default();
            asked.times += 1;
            asked.keys.extend(request.headers.get("idempotency-key").cloned());
            asked.times
        };
        let Some((status, body)) = answer(&request, times) else { return };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

fn take(read: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    read.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        read.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    read.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body })
}

/// A number that a path always has.
pub(crate) fn weight(path: &str) -> u32 {
    path.bytes().fold(2_166_136_261, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(16_777_619))
}

impl Request {
    /// A number out of the body.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_slice::<Value>(&self.body).ok()?.get(name)?.as_u64()
    }
}

/// An answer that all is well.
pub(crate) fn well(value: &Value) -> Answer {
    Some((200, json!({"value": value})))
}
