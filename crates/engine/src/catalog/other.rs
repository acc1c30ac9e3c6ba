//! Files that are no workflows. What is in them is not told: it may be anything that somebody put
//! there, or a link led to.

use cairn_lang::diagnostic::{Code, Diagnostic, Severity, nearest};
use cairn_lang::source::{Node, Position, Value};

/// Fields that tell a workflow, right or wrong.
const FIELDS: [&str; 6] = ["graph", "id", "name", "nodes", "steps", "triggers"];

/// Whether a text is nothing that was meant to be a workflow: no field that it begins with is one
/// of a workflow, or much like one. The document is there when the text could be read.
pub(super) fn is(document: Option<&Node>, bytes: &[u8]) -> bool {
    let known = |name: &str| FIELDS.contains(&name) || nearest(name, FIELDS).is_some();
    match document.map(|document| &document.value) {
        Some(Value::Map(entries)) => !entries.iter().any(|entry| known(&entry.key)),
        Some(_) => true,
        None => {
            let text = String::from_utf8_lossy(bytes);
            let quotes = [' ', '{', '"', '\'', '\t'];
            let names = text.lines().take(LINES).filter_map(|line| line.split_once(':'));
            !names.map(|(name, _)| name.trim_matches(quotes)).any(|name| FIELDS.contains(&name))
        }
    }
}

/// How many lines of a text that cannot be read are looked at.
const LINES: usize = 1_000;

/// What is said of such a file, and where reading it ended.
pub(super) fn told(path: &str, at: Option<(u32, u32)>) -> Diagnostic {
    let (line, column) = at.unwrap_or((Position::START.line, Position::START.column));
    Diagnostic {
        path: path.to_owned(),
        line,
        column,
        severity: Severity::Error,
        code: if at.is_some() { Code::Malformed } else { Code::MissingField },
        pointer: String::new(),
        message: "this is no workflow: it has neither `steps` nor `graph`".to_owned(),
        suggestion: Some("name the file of a workflow".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use cairn_lang::source;

    use super::*;

    // case: path.not-quoted
    #[test]
    fn what_is_no_workflow_is_known_by_its_fields() {
        let check = |text: &str| {
            let document = source::parse("w.yaml", text.as_bytes()).ok();
            is(document.as_ref(), text.as_bytes())
        };
        for text in [
            "name: T\nsteps: []\n",
            "graph: {nodes: []}\n",
            "stps: []\n",
            "{\"id\": \"x\"}",
            "name: T\nsteps: [\n",
            "{\"steps\": [",
        ] {
            assert!(!check(text), "{text}");
        }
        for text in [
            "",
            "TOKEN=hidden\0PATH=/bin",
            "-----BEGIN KEY-----\nabc\n",
            "apiVersion: v1\nkind: Secret\ndata: {password: aHVudGVyMg==}\n",
            "root:x:0:0:root:/root:/bin/bash\n",
            "[1, 2]",
            "{\"password\": \"hunter2\"}",
            "{\"password\": \"hunter2\"",
        ] {
            assert!(check(text), "{text}");
        }
    }
}
