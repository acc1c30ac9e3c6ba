//! The settings of steps that wait, read once and whole. What is there and cannot be read
//! fails the step: it never means that nothing was said.

use serde_json::Value;

use super::command::{Fault, Verdict};

/// What a `human` step asks, and of whom.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Question<'r> {
    /// Who may answer; anybody when it is left out.
    pub(super) who: Option<Vec<String>>,
    /// What an answer is held to.
    pub(super) form: Option<&'r Value>,
    /// How long the question stands.
    pub(super) expires_ms: Option<u64>,
    /// What counts when nobody answered; without it the step fails.
    pub(super) on_expire: Option<Verdict>,
}

impl<'r> Question<'r> {
    pub(super) fn read(settings: &'r Value) -> Result<Self, Fault> {
        Ok(Self {
            who: settings.get("who").map(who).transpose()?,
            form: settings.get("form").map(form).transpose()?,
            expires_ms: settings.get("expires_sec").map(expires).transpose()?,
            on_expire: expiry(settings)?,
        })
    }
}

fn who(setting: &Value) -> Result<Vec<String>, Fault> {
    let names = setting.as_array().filter(|names| !names.is_empty());
    let texts = names.and_then(|names| {
        let text = |name: &Value| name.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        names.iter().map(text).collect()
    });
    texts.ok_or_else(|| {
        let message = "`who` must be a list of names, and is not, so nobody may answer; \
                       leave it out if anybody may who may run the workflow";
        Fault::new("TASK_WHO", message)
    })
}

fn form(setting: &Value) -> Result<&Value, Fault> {
    let message = "`form` must be a JSON schema, and is no map";
    Some(setting).filter(|form| form.is_object()).ok_or_else(|| unfit(message))
}

fn expires(setting: &Value) -> Result<u64, Fault> {
    let seconds = setting.as_u64().filter(|seconds| *seconds > 0);
    let message = format!("`expires_sec` must be a whole number from 1 on, and is {setting}");
    seconds.map(|seconds| seconds.saturating_mul(1_000)).ok_or_else(|| unfit(message))
}

fn on_expire(setting: &Value) -> Result<Option<Verdict>, Fault> {
    match setting.as_str() {
        Some("approve") => Ok(Some(Verdict::Approved)),
        Some("reject") => Ok(Some(Verdict::Rejected)),
        Some("fail") => Ok(None),
        _ => Err(unfit(format!("`on_expire` is approve, reject or fail, and not {setting}"))),
    }
}

/// What counts when nobody answers. An approval by nobody has to be asked for twice.
fn expiry(settings: &Value) -> Result<Option<Verdict>, Fault> {
    let verdict = settings.get("on_expire").map_or(Ok(None), on_expire)?;
    let is_meant = settings.get("approves_unattended") == Some(&Value::Bool(true));
    match verdict {
        Some(Verdict::Approved) if !is_meant => Err(unfit(
            "`on_expire: approve` approves what nobody looked at, and needs \
             `approves_unattended: true` beside it",
        )),
        verdict => Ok(verdict),
    }
}

fn unfit(message: impl Into<String>) -> Fault {
    Fault::new("TASK_SETTINGS", message)
}

/// Which workflow a `workflow` step runs, and with what.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Child {
    pub(super) workflow: String,
    pub(super) input: Value,
}

impl Child {
    pub(super) fn read(settings: &Value) -> Result<Self, Fault> {
        let workflow = settings.get("workflow").and_then(Value::as_str);
        let workflow = workflow.filter(|workflow| !workflow.is_empty()).ok_or_else(|| {
            Fault::new("CHILD_WORKFLOW", "`workflow` must be the id of a workflow, and is no text")
        })?;
        let input = settings.get("input").cloned().unwrap_or_default();
        Ok(Self { workflow: workflow.to_owned(), input })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_there_and_cannot_be_read_is_no_default() {
        let code = |settings: Value| Question::read(&settings).map(drop).map_err(|f| f.error.code);
        for who in
            [json!("ada"), json!([]), json!([1]), json!(["ada", null]), json!([""]), json!(null)]
        {
            assert_eq!(code(json!({"who": who})), Err("TASK_WHO".to_owned()), "{who}");
        }
        for other in [
            json!({"form": "x"}),
            json!({"expires_sec": "60"}),
            json!({"expires_sec": 0}),
            json!({"expires_sec": -1}),
            json!({"on_expire": "Approve"}),
            json!({"on_expire": "approve"}),
            json!({"on_expire": "approve", "approves_unattended": "true"}),
        ] {
            assert_eq!(code(other.clone()), Err("TASK_SETTINGS".to_owned()), "{other}");
        }
        assert_eq!(
            code(json!({"who": ["ada"], "form": {}, "expires_sec": 1, "on_expire": "fail"})),
            Ok(())
        );
        let meant = json!({"on_expire": "approve", "approves_unattended": true});
        assert_eq!(code(meant), Ok(()));
        assert_eq!(code(json!({})), Ok(()));
        assert!(Child::read(&json!({"workflow": 3})).is_err());
        assert!(Child::read(&json!({})).is_err());
    }
}
