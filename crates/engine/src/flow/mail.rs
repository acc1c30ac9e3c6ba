//! What other processes say to the runs of a session that this one owns.
//!
//! A letter is one JSON object, and so is its answer. Whoever is told that a letter was not taken
//! knows that it is never acted on. Whoever is not told what came of one that was taken asks
//! again by its id: an owner that lives says what it did, and one that is stopped is not waited
//! for.

mod refusal;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cairn_core::event::engine::{InterruptDecision, ParentStep};
use cairn_core::event::guided::RunStarted;
use cairn_core::event::{By, Via};
use cairn_core::flow::{Answer, Change, Command, Verdict};
use cairn_core::id::{ChangeId, RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::text::Slug;
use cairn_store::port::Lease;
use cairn_store::port::mailbox::{Delivery, Inbox, Letter, Mailbox, Patience};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::Inner;
use super::desk::Desk;
use super::forks::{ForkPoint, Forker};
use super::holdings::started;
use super::intake::{Asked, Entry, Roles};
use super::lane::Lane;
use super::letters::{Envelope, Taken, heard};
use super::plans::{LoadedPlan, Plans};
use crate::catalog::Found;
use crate::error::{Error, Result};
use crate::host::{BoxFuture, Either, Host, Task, either};

/// How long the owner of a session may take to take a letter. One that is stopped never does.
/// What a sender waits for one that stops anywhere, these three together, is less than two
/// seconds.
const TO_TAKE: Duration = Duration::from_millis(1_000);
/// How long it may take to answer one that it took, before it is asked for a sign of life.
const TO_ANSWER: Duration = Duration::from_millis(300);
/// How long it may take to give that sign.
const TO_TAKE_AGAIN: Duration = Duration::from_millis(300);
/// How long an owner that gives signs of life is asked what came of a letter.
const TO_LEARN: Duration = Duration::from_secs(10);

/// What an owner says to a letter that came after its deadline.
const LATE: &str = "LETTER_LATE";
/// What it says when somebody asks for a letter that it knows nothing of.
const FORGOTTEN: &str = "LETTER_UNKNOWN";
/// How many letters to a session are acted on at once. The others wait in its inbox, which is
/// bounded, too.
const LETTERS_AT_ONCE: usize = 256;

/// Hears what other processes say to the runs of a lane, for as long as it is there. A lane that
/// ends closes its inbox, and with that tells those who follow it.
pub(super) async fn listen(inner: &Arc<Inner>, lane: Lane) {
    let Some(lease) = lane.lease() else { return };
    let Some(inbox) = inner.inbox(&*lease).await else { return };
    // The lane gives it back when it ends, whoever listens.
    drop(lease);
    lane.is_followed_by(inbox.followers());
    let until = lane.clone();
    let gone = async move { until.gone().await };
    inner.hear_all(inbox, gone, move |inner, letter| hear(inner, lane.clone(), letter));
}

/// Hears requests for runs of a workflow, for as long as this process admits them.
pub(super) async fn listen_at_desk(inner: &Arc<Inner>, desk: &Arc<Desk>) -> Option<Task> {
    let lease = Arc::clone(&*desk.lease());
    let (inbox, desk) = (inner.inbox(&*lease).await?, Arc::downgrade(desk));
    let hear = move |inner, letter| hear_at_desk(inner, desk.clone(), letter);
    Some(inner.hear_all(inbox, std::future::pending(), hear))
}

impl Inner {
    async fn inbox(&self, lease: &dyn Lease) -> Option<Inbox> {
        match self.store.mailbox.open(lease).await {
            Ok(inbox) => Some(inbox),
            Err(error) => {
                let trouble = format!("no other process can speak to this one: {error}");
                (self.options.trouble)(&trouble);
                None
            }
        }
    }

    fn hear_all(
        self: &Arc<Self>,
        mut inbox: Inbox,
        until: impl Future<Output = ()> + Send + 'static,
        hear: impl Fn(Arc<Self>, Letter) -> BoxFuture<()> + Send + Sync + 'static,
    ) -> Task {
        let (weak, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        let slots = Arc::new(Semaphore::new(LETTERS_AT_ONCE));
        self.host.spawn(Box::pin(async move {
            let mut until = pin!(until);
            while let Either::Second(Some(letter)) = either(&mut until, || inbox.next()).await {
                // It is never closed.
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                let Some(inner) = weak.upgrade() else { return };
                let hearing = inner.lanes.hearing();
                let heard = hear(inner, letter);
                host.spawn(Box::pin(async move {
                    heard.await;
                    drop((slot, hearing));
                }));
            }
        }))
    }
}

/// Does what a letter says to a run, and answers it.
fn hear(inner: Arc<Inner>, lane: Lane, letter: Letter) -> BoxFuture<()> {
    Box::pin(async move {
        let act = async |said: Value| {
            let done = match read(&said) {
                Some((run, command)) => lane.tell(run, command).await,
                None => Err(unknown()),
            };
            match done {
                Ok(()) => json!({"ok": true}),
                Err(error) => refusal::write(&error),
            }
        };
        answer(&inner, letter, act).await;
    })
}

/// Looks at a request for a run, and answers it.
fn hear_at_desk(inner: Arc<Inner>, desk: Weak<Desk>, letter: Letter) -> BoxFuture<()> {
    Box::pin(async move {
        let act = async |said: Value| {
            let asked = match (desk.upgrade(), serde_json::from_value::<Handed>(said)) {
                (None, _) => Err(Error::Stopping),
                (_, Err(_)) => Err(unknown()),
                (Some(desk), Ok(handed)) => match inner.desk(&desk.workflow).await {
                    Ok(desk) => inner.take_handed(&desk, handed).await,
                    Err(Error::AdmittedElsewhere { session, .. }) => {
                        Err(Error::LaneDown { session })
                    }
                    Err(error) => Err(error),
                },
            };
            match asked {
                Ok(asked) => json!({"run": asked.run, "replayed": asked.replayed}),
                Err(error) => refusal::write(&error),
            }
        };
        answer(&inner, letter, act).await;
    })
}

/// Acts on a letter, once and in time, and answers it. Whoever asks again gets the same answer.
async fn answer(inner: &Inner, mut letter: Letter, act: impl AsyncFnOnce(Value) -> Value) {
    letter.begin();
    let text = match serde_json::from_str::<Envelope>(&letter.text) {
        Err(_) => refusal::write(&unknown()).to_string(),
        Ok(envelope) => match inner.letters.take(envelope, inner.host.now_ms()) {
            Taken::New(answering, say) => {
                let text = act(say).await.to_string();
                answering.answer(&text);
                text
            }
            Taken::Late(answering) => {
                answering.answer(&notice(LATE));
                notice(LATE)
            }
            Taken::Known(answer) => heard(answer).await.unwrap_or_else(|| notice(FORGOTTEN)),
            Taken::Forgotten => notice(FORGOTTEN),
        },
    };
    letter.answer(text);
}

/// What an owner says of a letter itself, and not of what it asks for.
fn notice(code: &str) -> String {
    json!({"code": code, "message": ""}).to_string()
}

fn unknown() -> Error {
    let message = "the command is not one that this version knows".to_owned();
    Error::Told { code: "VALIDATION_ERROR".to_owned(), message, after_ms: None }
}

/// A request that is handed to whoever admits the runs of its workflow. The plan is in the store
/// by then, so whoever takes it need not have the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Handed {
    run: RunId,
    started: RunStarted,
    trigger: Option<Slug>,
    key: Option<String>,
    event: Value,
    parent: Option<ParentStep>,
    depth: u32,
    by: String,
    via: Option<Via>,
    roles: Option<BTreeSet<String>>,
    fork: Option<HandedFork>,
}

/// Where a run that is handed over goes on from.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HandedFork {
    run: RunId,
    step: StepInstanceKey,
    changes: Vec<(StepInstanceKey, Value)>,
    on_new_plan: bool,
    answers: bool,
}

/// Writes to other processes.
pub(super) struct Post {
    pub(super) host: Arc<dyn Host>,
    pub(super) mailbox: Arc<dyn Mailbox>,
    pub(super) plans: Arc<Plans>,
}

impl Post {
    /// Says something to the owner of a session; none when it was not taken, and never will be.
    /// One that does not listen is about to begin or to end, and is asked again.
    async fn say(&self, session: SessionId, said: Value) -> Result<Option<Result<Value>>> {
        let id = format!("{:032x}", self.host.entropy()?);
        let in_time = u64::try_from((TO_TAKE + TO_ANSWER).as_millis()).unwrap_or(u64::MAX);
        let not_after_ms = self.host.now_ms().saturating_add(in_time);
        let letter = Envelope { id, not_after_ms, say: Some(said) };
        let answer = match self.deliver(session, &letter, (TO_TAKE, TO_ANSWER)).await? {
            Delivery::Nobody => return Ok(Some(Err(Error::Unheard { session }))),
            Delivery::Withdrawn => return Ok(None),
            Delivery::InDoubt => match self.learn(session, letter).await {
                Some(answer) => answer,
                None => return Ok(Some(Err(Error::InDoubt { session, owner: None }))),
            },
            Delivery::Answered(answer) => answer,
        };
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|error| Error::Broken(format!("an answer that is no JSON: {error}")))?;
        if answer.get("code").and_then(Value::as_str) == Some(LATE) {
            return Ok(None);
        }
        Ok(Some(refusal::read(&answer).map_or(Ok(answer), Err)))
    }

    async fn deliver(
        &self,
        session: SessionId,
        letter: &Envelope,
        (to_take, to_answer): (Duration, Duration),
    ) -> Result<Delivery> {
        let text =
            serde_json::to_string(letter).map_err(|error| Error::Broken(error.to_string()))?;
        let (to_take, to_answer) = (self.host.sleep(to_take), self.host.sleep(to_answer));
        Ok(self.mailbox.ask(session, text, Patience { to_take, to_answer }).await?)
    }

    /// Learns what came of a letter that was taken and not answered, for as long as whoever took
    /// it gives signs of life; none when that cannot be learnt.
    async fn learn(&self, session: SessionId, letter: Envelope) -> Option<String> {
        let until = self.host.uptime().saturating_add(TO_LEARN);
        let question = Envelope { say: None, ..letter };
        while self.host.uptime() < until {
            match self.deliver(session, &question, (TO_TAKE_AGAIN, TO_TAKE)).await {
                Ok(Delivery::Answered(answer)) if answer != notice(FORGOTTEN) => {
                    return Some(answer);
                }
                // It lives, and has not come to an end with it.
                Ok(Delivery::InDoubt) => {}
                // Whatever keeps us from asking, the letter was taken.
                _ => return None,
            }
        }
        None
    }

    /// Says something to a run of another process; none when it was not taken, and never will be.
    pub(super) async fn tell_owner(
        &self,
        session: SessionId,
        run: RunId,
        command: &Command,
    ) -> Result<Option<Result<()>>> {
        let Some(letter) = written(run, command) else { return Ok(None) };
        Ok(self.say(session, letter).await?.map(|told| told.map(drop)))
    }

    /// Hands a request to whoever admits the runs of its workflow; none when it was not taken,
    /// and never will be.
    pub(super) async fn hand_over(
        &self,
        desk: SessionId,
        found: &Found,
        entry: &Entry,
    ) -> Result<Option<Result<Asked>>> {
        let ready = self.plans.pin(found).await?;
        let handed = Handed::new(entry.clone(), started(found, &ready), None);
        self.hand(desk, &handed).await
    }

    /// Hands a fork to whoever admits the runs of its workflow, in the same way.
    pub(super) async fn hand_fork_over(
        &self,
        desk: SessionId,
        from: &ForkPoint,
        run: RunId,
        (started, asker): (RunStarted, Forker),
    ) -> Result<Option<Result<Asked>>> {
        let changes = from.changes.iter().map(|c| (c.instance.clone(), c.output.clone()));
        let fork = HandedFork {
            run: from.run,
            step: from.step.clone(),
            changes: changes.collect(),
            on_new_plan: from.on_new_plan,
            answers: asker.answers,
        };
        let Forker { by, roles, .. } = asker;
        let (trigger, key, event, parent, depth) = (None, None, Value::Null, None, 0);
        let entry = Entry { run, trigger, key, event, parent, depth, by, roles };
        self.hand(desk, &Handed::new(entry, started, Some(fork))).await
    }

    async fn hand(&self, desk: SessionId, handed: &Handed) -> Result<Option<Result<Asked>>> {
        let letter =
            serde_json::to_value(handed).map_err(|error| Error::Broken(error.to_string()))?;
        let Some(answer) = self.say(desk, letter).await? else { return Ok(None) };
        let run = handed.run;
        Ok(Some(answer.and_then(|answer| match answer.get("replayed").and_then(Value::as_bool) {
            Some(replayed) => Ok(Asked { run, replayed }),
            None => Err(Error::Broken(format!("an answer that does not say so: {answer}"))),
        })))
    }
}

impl Inner {
    /// Admits what another process handed over.
    async fn take_handed(self: &Arc<Self>, desk: &Arc<Desk>, handed: Handed) -> Result<Asked> {
        let Handed { run, started, trigger, key, event, parent, depth, by, via, roles, fork } =
            handed;
        let by = By { name: by, via };
        let roles = roles.map_or(Roles::Any, Roles::Of);
        if let Some(HandedFork { run: of, step, changes, on_new_plan, answers }) = fork {
            let change = |(instance, output)| Change { instance, output };
            let changes = changes.into_iter().map(change).collect();
            let from = ForkPoint { run: of, step, changes, on_new_plan };
            self.admit_fork(desk, &from, run, &Forker { by, roles, answers }).await?;
            return Ok(Asked { run, replayed: false });
        }
        let ready = self.plans.get(started.workflow_hash).await?;
        let entry = Entry { run, trigger, key, event, parent, depth, by, roles };
        self.admit(desk, &LoadedPlan { ready, started }, entry).await
    }
}

impl Handed {
    fn new(entry: Entry, started: RunStarted, fork: Option<HandedFork>) -> Self {
        let Entry { run, trigger, key, event, parent, depth, by, roles } = entry;
        let By { name: by, via } = by;
        let roles = match roles {
            Roles::Any => None,
            Roles::Of(roles) => Some(roles),
        };
        Self { run, started, trigger, key, event, parent, depth, by, via, roles, fork }
    }
}

/// A command as one line.
fn written(run: RunId, command: &Command) -> Option<Value> {
    let asked = match command {
        Command::Cancel { by, reason } => said(json!({"do": "cancel", "reason": reason}), by),
        Command::Pause { change, by } => {
            said(json!({"do": "pause", "change": change.to_string()}), by)
        }
        Command::Resume { change, by, input } => {
            said(json!({"do": "resume", "change": change.to_string(), "input": input}), by)
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

fn read(asked: &Value) -> Option<(RunId, Command)> {
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
        "resume" => {
            let input = Some(value("input")).filter(|input| !input.is_null());
            Command::Resume { change: change()?, by: by()?, input }
        }
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
        _ => return None,
    };
    Some((text("run")?.parse().ok()?, command))
}

#[cfg(test)]
mod tests {
    use cairn_core::event::{ActorKind, Door, Via};

    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        let via = Via {
            actor: ActorKind::Person,
            door: Door::Http,
            line: None,
            token_id: Some("t1".into()),
        };
        let (run, by) = (RunId::from_bits(3), By { name: "ada".into(), via: Some(via) });
        let change = ChangeId::from_bits(4);
        let instance = || "each@2::fetch".parse().unwrap();
        let answer = Answer { verdict: Verdict::Rejected, values: json!({"why": "no"}) };
        for command in [
            Command::Cancel { by: by.clone(), reason: "enough".into() },
            Command::Pause { change, by: by.clone() },
            Command::Resume { change, by: by.clone(), input: None },
            Command::Resume { change, by: by.clone(), input: Some(json!({"env": {"a": 1}})) },
            Command::Answer { task: cairn_core::id::TaskId::from_bits(5), by: by.clone(), answer },
            Command::Acknowledge { instance: instance(), by: "agent".into(), output: json!([1]) },
            Command::Resolve { instance: instance(), by, decision: InterruptDecision::Skip },
        ] {
            let line = written(run, &command).unwrap();
            assert_eq!(read(&line), Some((run, command)), "{line}");
        }
        assert_eq!(written(run, &Command::Recover), None, "that is nobody else's to say");
        for line in [
            json!(null),
            json!({}),
            json!({"do": "cancel"}),
            json!({"do": "recover", "run": "run_x"}),
        ] {
            assert_eq!(read(&line), None, "{line}");
        }
    }
}
