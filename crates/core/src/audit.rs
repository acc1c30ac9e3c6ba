//! One line of the record of who changed what. Each line vouches for the one before it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::digest::Digest;
use crate::event::Door;
use crate::id::{RunId, SessionId};

/// A line of the record. Lines of earlier versions have no more than the members that are always
/// there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// What was asked for, such as `runs:start`.
    pub action: String,
    /// Whether it was let through.
    pub allowed: bool,
    /// The digest of what was asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Digest>,
    /// When it was written.
    pub at: String,
    /// Who asked.
    pub by: String,
    /// The digest of this line, with this member empty.
    pub digest: String,
    /// Through which door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<Door>,
    /// Its place; the first is 0.
    pub index: u64,
    /// What it was about, when no id says it: a name, a path.
    pub object: String,
    /// The line that let it through, when this one says that nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// The error code, if it was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The digest of the line before it; of nothing for the first.
    pub previous: String,
    /// The run that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The session that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// How often it was refused since the last line that said so, this time included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The token that whoever asked came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    /// The workflow that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
}

impl Line {
    /// The `previous` of the first line.
    #[must_use]
    pub fn nothing() -> String {
        Digest::of(b"").to_string()
    }

    /// The bytes of the line, with its digest. None when it cannot be written.
    #[must_use]
    pub fn seal(mut self) -> Option<Vec<u8>> {
        self.digest = String::new();
        let mut value = serde_json::to_value(&self).ok()?;
        let digest = digest(&mut value)?;
        *value.get_mut("digest")? = Value::String(digest);
        canonical::to_vec(&value).ok()
    }

    /// Reads a line; none when it is not one, or not as it was written.
    ///
    /// Members that a later version added are covered by the digest and otherwise left alone.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut value: Value = canonical::parse(bytes).ok()?;
        let line: Self = serde_json::from_value(value.clone()).ok()?;
        let is_canonical = canonical::to_vec(&value).is_ok_and(|written| written == bytes);
        (is_canonical && digest(&mut value)? == line.digest).then_some(line)
    }
}

/// The digest of a line without its own.
fn digest(line: &mut Value) -> Option<String> {
    *line.get_mut("digest")? = Value::String(String::new());
    canonical::to_vec(line).ok().map(|bytes| Digest::of(&bytes).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line {
            action: "runs:start".to_owned(),
            allowed: true,
            arguments: None,
            at: "2026-01-01T00:00:00.000Z".to_owned(),
            by: "ci".to_owned(),
            digest: String::new(),
            door: None,
            index: 0,
            object: "x\n{\"forged\":1}".to_owned(),
            of: None,
            outcome: None,
            previous: Line::nothing(),
            run_id: None,
            session_id: None,
            times: None,
            token_id: None,
            workflow_id: None,
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written_and_not_otherwise() {
        let bytes = line().seal().unwrap();
        assert!(!bytes.contains(&b'\n'));
        let read = Line::read(&bytes).unwrap();
        assert_eq!(Line { digest: String::new(), ..read }, line());
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in
            [("ci", "me"), ("true", "false"), ("\"index\":0", "\"index\":1"), (":", ": ")]
        {
            assert_eq!(Line::read(text.replacen(from, to, 1).as_bytes()), None, "{from}");
        }
    }

    #[test]
    fn lines_of_the_first_version_are_read_still() {
        let text = r#"{"action":"runs:start","allowed":true,"at":"2026-01-01T00:00:00.000Z","by":"admin","digest":"","index":0,"object":"/api/v1/runs","previous":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#;
        let digest = Digest::of(text.as_bytes()).to_string();
        let text = text.replacen("\"digest\":\"\"", &format!("\"digest\":\"{digest}\""), 1);
        assert_eq!(Line::read(text.as_bytes()).unwrap().object, "/api/v1/runs");
    }
}
