//! What other processes say to the runs of a session that this one owns.
//!
//! A letter is one JSON object, and so is its answer. Whoever is told that a letter was not taken
//! knows that it is never acted on.

use std::sync::Arc;
use std::time::Duration;

use cairn_core::event::By;
use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Answer, Command, Verdict};
use cairn_core::id::{ChangeId, RunId, SessionId};
use cairn_core::text::Slug;
use cairn_store::port::mailbox::{Delivery, Letter, Patience};
use serde_json::{Value, json};

use super::Inner;
use super::lane::Lane;
use crate::error::{Error, Result};
use crate::host::{BoxFuture, Task};

/// How long the owner of a session may take to take a letter. One that is stopped never does.
const TO_TAKE: Duration = Duration::from_millis(1_500);
/// How long it may take to answer one that it took.
const TO_ANSWER: Duration = Duration::from_secs(10);

/// Hears what other processes say, for as long as the lane is there; none when nobody can.
pub(super) async fn listen(inner: &Arc<Inner>, lane: Lane) -> Option<Task> {
    let mut inbox = match inner.store.mailbox.open(lane.session).await {
        Ok(inbox) => inbox,
        Err(error) => {
            (inner.options.trouble)(&format!("no other process can speak to this one: {error}"));
            return None;
        }
    };
    lane.is_followed_by(inbox.followers());
    let (weak, host) = (Arc::downgrade(inner), Arc::clone(&inner.host));
    Some(inner.host.spawn(Box::pin(async move {
        while let Some(letter) = inbox.next().await {
            let Some(inner) = weak.upgrade() else { return };
            host.spawn(hear(inner, lane.clone(), letter));
        }
    })))
}

/// Does what a letter says, and answers it.
fn hear(inner: Arc<Inner>, lane: Lane, letter: Letter) -> BoxFuture<()> {
    Box::pin(async move {
        let done = if let Some(asked) = Begin::read(&letter.text) {
            inner.begin_for(asked).await
        } else if let Some((run, command)) = read(&letter.text) {
            lane.tell(run, command).await
        } else {
            let message = "the command is not one that this version knows".to_owned();
            Err(Error::Told { code: "VALIDATION_ERROR".to_owned(), message })
        };
        let answer = match done {
            Ok(()) => json!({"ok": true}),
            Err(error) => json!({"code": error.code(), "message": error.to_string()}),
        };
        letter.answer(answer.to_string());
    })
}

impl Inner {
    /// Says something to the owner of a session; none when it was not taken, and never will be.
    async fn say(&self, session: SessionId, letter: &Value) -> Result<Option<Result<()>>> {
        let (to_take, to_answer) = (self.host.sleep(TO_TAKE), self.host.sleep(TO_ANSWER));
        let patience = Patience { to_take, to_answer };
        let delivery = self.store.mailbox.ask(session, letter.to_string(), patience).await?;
        let answer: Value = match delivery {
            Delivery::Nobody | Delivery::Withdrawn => return Ok(None),
            Delivery::InDoubt => return Ok(Some(Err(Error::InDoubt { session }))),
            Delivery::Answered(answer) => serde_json::from_str(&answer)
                .map_err(|error| Error::Broken(format!("an answer that is no JSON: {error}")))?,
        };
        let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
        if answer.get("ok").is_some() {
            return Ok(Some(Ok(())));
        }
        let (Some(code), Some(message)) = (text("code"), text("message")) else {
            return Err(Error::Broken(format!("an answer without a code: {answer}")));
        };
        Ok(Some(Err(Error::Told { code, message })))
    }

    /// Says something to a run of another process; none when it was not taken, and never will be.
    pub(super) async fn tell_owner(
        &self,
        session: SessionId,
        run: RunId,
        command: &Command,
    ) -> Result<Option<Result<()>>> {
        match written(run, command) {
            Some(letter) => self.say(session, &letter).await,
            None => Ok(None),
        }
    }

    /// Has a run begun by another process; says whether it was. None when nobody listens there.
    pub(super) async fn ask_to_begin(
        &self,
        session: SessionId,
        asked: &Begin,
    ) -> Result<Option<bool>> {
        Ok(self.say(session, &asked.written()).await?.map(|begun| begun.is_ok()))
    }
}

/// A run that another process asks for, of the workflow as it knows it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Begin {
    pub(super) run: RunId,
    pub(super) workflow: String,
    pub(super) hash: String,
    pub(super) trigger: Option<Slug>,
    /// What templates see as `event`.
    pub(super) event: Value,
}

impl Begin {
    fn written(&self) -> Value {
        json!({
            "do": "begin", "run": self.run.to_string(), "workflow": self.workflow,
            "hash": self.hash, "trigger": self.trigger, "event": self.event,
        })
    }

    fn read(line: &str) -> Option<Self> {
        let asked: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| asked.get(name).and_then(Value::as_str);
        Some(Self {
            run: text("do").filter(|what| *what == "begin").and(text("run"))?.parse().ok()?,
            workflow: text("workflow")?.to_owned(),
            hash: text("hash")?.to_owned(),
            trigger: text("trigger").map(str::parse).transpose().ok()?,
            event: asked.get("event")?.clone(),
        })
    }
}

/// A command as one line.
fn written(run: RunId, command: &Command) -> Option<Value> {
    let asked = match command {
        Command::Cancel { by, reason } => said(json!({"do": "cancel", "reason": reason}), by),
        Command::Pause { change, by } => {
            said(json!({"do": "pause", "change": change.to_string()}), by)
        }
        Command::Resume { change, by } => {
            said(json!({"do": "resume", "change": change.to_string()}), by)
        }
        Command::Answer { task, by, answer } => {
            let told = json!({
                "do": "answer", "task": task.to_string(),
                "approved": answer.verdict == Verdict::Approved, "values": answer.values,
            });
            said(told, by)
        }
        Command::Acknowledge { instance, by, output } => {
            said(json!({"do": "acknowledge", "instance": instance, "output": output}), by)
        }
        Command::Resolve { instance, by, decision } => {
            said(json!({"do": "resolve", "instance": instance, "decision": decision}), by)
        }
        Command::ChildFinished { child, status, output } => json!({
            "do": "child_finished", "child": child.to_string(), "status": status, "output": output,
        }),
        _ => return None,
    };
    let mut asked = asked;
    asked.as_object_mut()?.insert("run".to_owned(), json!(run.to_string()));
    Some(asked)
}

/// What is said, and by whom.
fn said(mut told: Value, by: &By) -> Value {
    if let Some(members) = told.as_object_mut() {
        members.insert("by".to_owned(), json!(by.name));
        members.insert("via".to_owned(), json!(by.via));
    }
    told
}

fn read(line: &str) -> Option<(RunId, Command)> {
    let asked: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| asked.get(name).and_then(Value::as_str);
    let value = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let by = || {
        let via = serde_json::from_value(value("via")).ok()?;
        Some(By { name: text("by")?.to_owned(), via })
    };
    let change = || text("change")?.parse::<ChangeId>().ok();
    let instance = || text("instance")?.parse().ok();
    let command = match text("do")? {
        "cancel" => Command::Cancel { by: by()?, reason: text("reason")?.to_owned() },
        "pause" => Command::Pause { change: change()?, by: by()? },
        "resume" => Command::Resume { change: change()?, by: by()? },
        "answer" => {
            let approved = asked.get("approved").and_then(Value::as_bool)?;
            let verdict = if approved { Verdict::Approved } else { Verdict::Rejected };
            let answer = Answer { verdict, values: value("values") };
            Command::Answer { task: text("task")?.parse().ok()?, by: by()?, answer }
        }
        "acknowledge" => {
            Command::Acknowledge { instance: instance()?, by: by()?, output: value("output") }
        }
        "resolve" => {
            let decision: InterruptDecision = serde_json::from_value(value("decision")).ok()?;
            Command::Resolve { instance: instance()?, by: by()?, decision }
        }
        "child_finished" => Command::ChildFinished {
            child: text("child")?.parse().ok()?,
            status: serde_json::from_value(value("status")).ok()?,
            output: value("output"),
        },
        _ => return None,
    };
    Some((text("run")?.parse().ok()?, command))
}

#[cfg(test)]
mod tests {
    use cairn_core::event::{ActorKind, Door, Via};

    use super::*;

    #[test]
    fn a_run_is_asked_for_in_one_line() {
        let mut asked = Begin {
            run: RunId::from_bits(3),
            workflow: "project.review".to_owned(),
            hash: "sha256:x".to_owned(),
            trigger: Some("manual".parse().unwrap()),
            event: json!({"payload": {"n": 1}}),
        };
        assert_eq!(Begin::read(&asked.written().to_string()).as_ref(), Some(&asked));
        asked.trigger = None;
        let line = asked.written().to_string();
        assert_eq!(Begin::read(&line).as_ref(), Some(&asked));
        assert_eq!(read(&line), None);
        assert_eq!(Begin::read(&line.replace("run_", "x_")), None);
    }

    #[test]
    fn what_is_said_is_heard() {
        let via = Via { actor: ActorKind::Person, door: Door::Http, token_id: Some("t1".into()) };
        let (run, by) = (RunId::from_bits(3), By { name: "ada".into(), via: Some(via) });
        let change = ChangeId::from_bits(4);
        let instance = || "each@2::fetch".parse().unwrap();
        let answer = Answer { verdict: Verdict::Rejected, values: json!({"why": "no"}) };
        for command in [
            Command::Cancel { by: by.clone(), reason: "enough".into() },
            Command::Pause { change, by: by.clone() },
            Command::Resume { change, by: by.clone() },
            Command::Answer { task: cairn_core::id::TaskId::from_bits(5), by: by.clone(), answer },
            Command::Acknowledge { instance: instance(), by: "agent".into(), output: json!([1]) },
            Command::Resolve { instance: instance(), by, decision: InterruptDecision::Skip },
            Command::ChildFinished {
                child: run,
                status: cairn_core::event::engine::EndStatus::Failed,
                output: json!(null),
            },
        ] {
            let line = written(run, &command).unwrap().to_string();
            assert_eq!(read(&line), Some((run, command)), "{line}");
        }
        assert_eq!(written(run, &Command::Recover), None, "that is nobody else's to say");
        for line in ["", "{}", r#"{"do":"cancel"}"#, r#"{"do":"recover","run":"run_x"}"#] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
