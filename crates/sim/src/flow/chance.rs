//! What the world does, decided by the seed and by what it is asked: the same question has
//! the same answer, however often a crash lets it be asked again.

use cairn_core::event::engine::{EndStatus, Failure};
use cairn_core::expression::Prepared;
use cairn_core::flow::{Answer, Ask, Fault, Outcome, Verdict};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::FailureKind;
use serde_json::{Map, Value, json};

use super::words::{self, Wanted};
use crate::random::Random;

/// The chance in everything that a world is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    pub(super) seed: u64,
    /// How often a try fails, in a hundred.
    pub(super) failing: usize,
}

impl Chance {
    /// The numbers that belong to a question.
    fn about(self, question: &str) -> Random {
        // FNV-1a: short, and no two questions of one world are likely to meet.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = question.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        Random::new(self.seed ^ hash)
    }

    /// What comes of a try at a step.
    pub(super) fn perform(
        self,
        key: &StepInstanceKey,
        attempt: u32,
        settings: &Value,
        wraps: bool,
    ) -> Result<Outcome, Fault> {
        let mut random = self.about(&format!("perform {key} {attempt}"));
        if random.percent(self.failing) {
            return Err(fault(&mut random));
        }
        let value = self.value(&format!("output {key} {settings}"));
        let output = if wraps { json!({"json": value, "status": 200}) } else { value };
        Ok(Outcome { output, case: None, usage: None })
    }

    fn value(self, question: &str) -> Value {
        let mut random = self.about(question);
        let list: Vec<usize> = (0..random.below(3)).collect();
        let text = words::CASES.get(random.below(4)).copied().unwrap_or_default();
        let mark = random.next() % 1000;
        // Half of these are whole numbers, which a log does not tell from integers.
        let half = f64::from(u8::try_from(random.below(9)).unwrap_or_default()) / 2.0;
        json!({
            "n": random.below(5), "list": list, "text": text, "yes": random.percent(50),
            "mark": mark, "share": half,
        })
    }

    /// What a worker says. It is asked again after each failed try.
    pub(super) fn evaluate(
        self,
        key: &StepInstanceKey,
        asked: (Ask, u32),
        prepared: &Prepared,
        context: &Map<String, Value>,
    ) -> Result<Value, Fault> {
        let (ask, number) = asked;
        let mut random = self.about(&format!("worker {key} {ask:?} {number}"));
        if random.percent(self.failing / 2) {
            return Err(fault(&mut random));
        }
        let turn = if ask == Ask::Again { number } else { 0 };
        let seen = Value::Object(context.clone());
        let value = prepared.evaluate_with(context, &mut |text, _| {
            let mut random = self.about(&format!("value {text} {seen} {turn}"));
            Ok(wanted(&mut random, Wanted::of(text)))
        });
        value.map_err(|error| Fault::new(error.code(), error.message))
    }

    /// What a person answers.
    pub(super) fn answer(self, key: &StepInstanceKey) -> Answer {
        let mut random = self.about(&format!("answer {key}"));
        let verdict = if random.percent(60) { Verdict::Approved } else { Verdict::Rejected };
        Answer { verdict, values: json!({"n": random.below(3)}) }
    }

    /// What an agent brings.
    pub(super) fn guide(self, key: &StepInstanceKey) -> Value {
        json!({"seen": self.about(&format!("guide {key}")).below(5)})
    }

    /// What comes of a child.
    pub(super) fn child(self, key: &StepInstanceKey, input: &Value) -> (EndStatus, Value) {
        let mut random = self.about(&format!("child {key}"));
        let value = self.value(&format!("child {key} {input}"));
        match random.percent(self.failing) {
            true if random.percent(50) => (EndStatus::Cancelled, Value::Null),
            true => (EndStatus::Failed, json!({"message": "no"})),
            false => (EndStatus::Succeeded, value),
        }
    }
}

fn wanted(random: &mut Random, wanted: Wanted) -> Value {
    match wanted {
        Wanted::Case => json!(words::CASES.get(random.below(4)).copied()),
        Wanted::Flag if random.percent(4) => json!("neither"),
        Wanted::Flag => json!(random.percent(50)),
        Wanted::List if random.percent(4) => json!({"no": "list"}),
        Wanted::List => json!((0..random.below(3)).collect::<Vec<_>>()),
        Wanted::Text => json!(format!("text {}", random.next() % 1000)),
    }
}

fn fault(random: &mut Random) -> Fault {
    let kinds = [
        FailureKind::Connection,
        FailureKind::ExitCode,
        FailureKind::InvalidOutput,
        FailureKind::RateLimited,
        FailureKind::ServerError,
        FailureKind::Timeout,
        FailureKind::Permanent,
    ];
    let kind = kinds.get(random.below(kinds.len())).copied().unwrap_or(FailureKind::Permanent);
    let after_ms = random.percent(20).then_some(7_000);
    let error = Failure { code: "TEST".to_owned(), message: "as the seed says".to_owned() };
    Fault { error, kind, after_ms, output: None, usage: None }
}
