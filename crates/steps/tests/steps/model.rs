//! A model endpoint that answers as it is told, in the formats of two vendors.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the endpoint does with a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Says this.
    Say(&'static str),
    /// Answers with this status and these headers.
    Status(u16, &'static str),
    /// Breaks off in the middle of the answer.
    Cut,
    /// Answers nothing, and holds the line.
    Stall,
    /// Answers with this body.
    Raw(Value),
}

/// A running endpoint. It does its acts in turn, and the last one again and again.
pub(crate) struct Model {
    pub(crate) url: String,
    /// The bodies of the requests so far, with their keys.
    pub(crate) asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Model {
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (line, _) = listener.accept().await.unwrap();
                let (acts, seen) = (acts.clone(), Arc::clone(&seen));
                tokio::spawn(async move { serve(line, &acts, &seen).await });
            }
        });
        Self { url, asked }
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(_, body)| body.to_string()).collect()
    }
}

async fn serve(mut line: TcpStream, acts: &[Act], seen: &Mutex<Vec<(String, Value)>>) {
    while let Some((head, body)) = request(&mut line).await {
        let nth = {
            let mut seen = seen.lock().unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            seen.push((head.clone(), body));
            seen.len() - 1
        };
        let act = acts.get(nth).or(acts.last()).unwrap();
        let chat = head.contains("/chat/completions");
        let (status, headers, answer) = match act {
            Act::Stall => {
                std::future::pending::<()>().await;
                return;
            }
            Act::Status(status, headers) => {
                let message = format!("scripted {status} for sk-secret-key-1234567");
                (*status, *headers, json!({"error": {"message": message}}))
            }
            Act::Say(text) => (200, "", said(text, chat)),
            Act::Raw(value) => (200, "", value.clone()),
            Act::Cut => (200, "", said("cut", chat)),
        };
        let text = answer.to_string();
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        line.write_all(head.as_bytes()).await.unwrap();
        let end = if matches!(act, Act::Cut) { length / 2 } else { length };
        line.write_all(&text.as_bytes()[..end]).await.unwrap();
        if end < length {
            return;
        }
    }
}

fn said(text: &str, chat: bool) -> Value {
    match chat {
        true => json!({
            "model": "local", "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }),
        false => json!({
            "model": "local", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }),
    }
}

/// The head and the body of the next request.
async fn request(line: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
            let length = head.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            if bytes.len() >= at + 4 + length {
                return Some((head, bytes[at + 4..at + 4 + length].to_vec()));
            }
        }
        match line.read(&mut buffer).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
}
