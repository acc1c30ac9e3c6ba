//! `classify`: a model picks one of the cases that the workflow declares.

mod cache;

use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::schema::{at_least, closed, flag, shown, text, texts, told, whole};
use cairn_core::catalog::{Cases, Class, StepType, Takes};
use cairn_core::classify::{self, DEFAULT, Reading, Rules, Verdict, decide, read};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agents::{Agents, Refusal, RefusalKind, Request, Resolved, Used, usage};
use crate::ask::{self, Who};
use crate::process::{Folder, STOP_MAX};
use crate::settings;
use cache::{Cache, Key};

/// How often a model is asked again at most.
const RETRIES_MAX: u32 = 5;
/// How much of an answer is recorded beside its verdict.
const SAID_MAX: usize = 2_000;

pub(crate) struct Classify {
    agents: Agents,
    cache: Cache,
}

impl Classify {
    pub(crate) fn new(agents: Agents) -> Self {
        Self { agents, cache: Cache::default() }
    }
}

#[derive(Deserialize)]
struct Input {
    #[serde(flatten)]
    who: Who,
    prompt: String,
    #[serde(default)]
    output_cases: Vec<Value>,
    #[serde(default)]
    examples: Vec<Example>,
    output_fields: Option<Vec<String>>,
    structured_output: Option<bool>,
    fuzzy_match: Option<bool>,
    retry_on_mismatch: Option<u32>,
    #[serde(default)]
    confidence_threshold: f64,
    #[serde(default)]
    cache_ttl_sec: u64,
}

#[derive(Deserialize)]
struct Example {
    input: Value,
    output: Value,
}

#[async_trait]
impl Performer for Classify {
    fn kind(&self) -> StepType {
        let example = closed(
            &json!({"input": told(text(), "What is sent."), "output": told(text(), "The case that it is.")}),
            &["input", "output"],
        );
        let share = json!({"type": "number", "minimum": 0, "maximum": 1});
        let retries = json!({"type": "integer", "minimum": 0, "maximum": RETRIES_MAX});
        let own = json!({
            "cache_ttl_sec": told(at_least(0), "How many seconds the verdict on the same prompt counts again, without asking."),
            "confidence_threshold": told(share, "How sure the model has to be; below it the case is `default`. 0 when it is left out."),
            "examples": told(json!({"type": "array", "items": example}), "Texts and the case each of them is, which the model is shown."),
            "fuzzy_match": told(flag(), "Whether an answer counts that is less than 3 letters away from one case, or has one case as a word in it and no other. When it is left out: for providers that hold no answer to a schema."),
            "output_cases": told(texts(), "The cases; those of the edges when it is left out."),
            "output_fields": told(texts(), "Which of `verdict`, `confidence` and `reasoning` come out; all when it is left out."),
            "prompt": told(text(), "What is to be classified, and how. What somebody sent is marked as such."),
            "prompt_file": told(text(), "A file beside the workflow that holds the prompt."),
            "retry_on_mismatch": told(retries, "How often it is asked again, more strictly, when an answer is no case. When it is left out: once for providers that hold no answer to a schema, else never."),
            "structured_output": told(flag(), "Whether the answer is asked for as JSON with verdict, confidence and reasoning; yes when it is left out."),
        });
        let input = closed(&ask::settings(own), &[]);
        let what = "A model picks one of the cases that the workflow declares. Whatever it answers, the run goes on with one of them or with `default`, and the layer that decided is recorded.";
        let example = json!({
            "provider": "claude", "prompt": "What is this about?\n{{ event.payload.text }}",
            "examples": [{"input": "the page is blank", "output": "bug"}],
            "cases": {"bug": "fix", "question": "reply", "default": "reply"},
        });
        let output = closed(
            &json!({
                "attempts": told(whole(), "How often the model was asked."),
                "cached": told(flag(), "Whether it was not asked at all."),
                "confidence": told(json!({"type": "number"}), "How sure the model says it is, from 0 to 1."),
                "layer": told(text(), "What decided: `structured_output`, `normalize`, `exact_match`, `fuzzy_match`, `retry_on_mismatch`, `confidence_threshold`, or `none` for the default."),
                "model": told(text(), "The model."),
                "provider": told(text(), "Who was asked."),
                "reasoning": told(text(), "Why, in the model's words."),
                "said": told(text(), "What the model answered last, cut short."),
                "verdict": told(text(), "The case."),
            }),
            &[],
        );
        StepType {
            cases: Cases::Listed("output_cases"),
            ..StepType::new(
                "classify",
                Class::Effectful,
                shown(told(input, what), &example),
                output,
            )
        }
        .taking(&ask::sinks(&[
            ("examples.**", Takes::Prompt),
            ("prompt", Takes::Prompt),
            ("prompt_file", Takes::AssetFor("prompt")),
        ]))
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let cases: Vec<String> = input.output_cases.iter().map(crate::shell::plain).collect();
        let cases: Vec<String> = cases.into_iter().filter(|case| case != DEFAULT).collect();
        if cases.is_empty() {
            let message =
                "there are no cases; list them in `output_cases`, or add edges with a `case`";
            return Err(Failed::new("CLASSIFY_CASES", message));
        }
        let who = match input.who.resolve(&self.agents) {
            Ok(who) => who,
            Err(refusal) => return Ok(ask::refused(&refusal, None, Used::default())),
        };
        let prompt = question(&input, &cases);
        let key = (input.cache_ttl_sec > 0).then(|| Key::new(&prompt, &cases, &who));
        if let Some(found) = key.as_ref().and_then(|key| self.cache.find(key)) {
            return Ok(outcome(&input, &found, &Asked::default(), &who, true));
        }
        let has_schema = who.capabilities().schema && input.structured_output.unwrap_or(true);
        let rules = Rules {
            fuzzy: input.fuzzy_match.unwrap_or(!has_schema),
            threshold: input.confidence_threshold,
            cases,
        };
        // A program works in the folder of the run, or in one of its own; an endpoint in none.
        let folder = match who.capabilities().program {
            true => Some(Folder::open(ctx).await?),
            false => None,
        };
        let place = folder.as_ref().map_or(std::path::Path::new(""), Folder::path);
        let mut request = input.who.request(&who, &self.agents, ctx, &prompt, place)?;
        request.schema =
            input.structured_output.unwrap_or(true).then(|| classify::schema(&rules.cases));
        request.takes_denials = true;
        let usual = u32::from(!has_schema);
        let retries = input.retry_on_mismatch.unwrap_or(usual).min(RETRIES_MAX);
        let asked = self.asked(&who, request, &rules, retries).await;
        if let Some(refusal) = &asked.refusal {
            return Ok(ask::refused(refusal, Some(&who), asked.used));
        }
        let verdict = decide(&asked.answers, &rules);
        if let (Some(key), true) = (key, verdict.case != DEFAULT) {
            self.cache.keep(key, verdict.clone(), Duration::from_secs(input.cache_ttl_sec));
        }
        Ok(outcome(&input, &verdict, &asked, &who, false))
    }

    fn needs_workspace(&self, config: &Value) -> bool {
        ask::is_kept(config)
    }

    fn grace(&self) -> Duration {
        STOP_MAX
    }
}

/// What came of asking.
#[derive(Default)]
struct Asked {
    answers: Vec<Reading>,
    said: String,
    used: Used,
    /// Why no answer was to be had.
    refusal: Option<Refusal>,
}

impl Classify {
    /// Asks until an answer is a case, or often enough.
    async fn asked(
        &self,
        who: &Resolved,
        mut request: Request,
        rules: &Rules,
        retries: u32,
    ) -> Asked {
        let mut asked = Asked::default();
        let first = request.prompt.clone();
        for _ in 0..=retries {
            let (said, structured) = match self.agents.ask(who, &request).await {
                Ok(reply) => {
                    asked.used = asked.used.and(reply.used);
                    (reply.text, reply.structured)
                }
                // Whatever a model says is an answer, also that it says none.
                Err(refusal) if is_answer(refusal.kind) => {
                    asked.used = asked.used.and(*refusal.used);
                    (refusal.said, None)
                }
                Err(refusal) => {
                    asked.refusal = Some(refusal);
                    return asked;
                }
            };
            let reading = read(&said, structured.as_ref(), rules);
            let found = reading.case.is_some();
            asked.answers.push(reading);
            request.prompt = stricter(&first, &said, &rules.cases);
            asked.said = cairn_core::text::truncate(&said, SAID_MAX);
            if found {
                break;
            }
        }
        asked
    }
}

/// Whether a model was asked and said something that is no answer.
const fn is_answer(kind: RefusalKind) -> bool {
    matches!(kind, RefusalKind::NoResult | RefusalKind::InvalidResult | RefusalKind::Refused)
}

/// The prompt with its examples and the cases to choose from.
fn question(input: &Input, cases: &[String]) -> String {
    let mut prompt = input.prompt.trim_end().to_owned();
    if !input.examples.is_empty() {
        prompt.push_str("\n\nExamples:");
        for Example { input, output } in &input.examples {
            let (text, case) = (crate::shell::plain(input), crate::shell::plain(output));
            prompt.push_str(&format!("\nInput: {text}\nVerdict: {case}"));
        }
    }
    prompt.push_str(&format!("\n\nChoose exactly one verdict of: {}.", listed(cases)));
    if input.structured_output.unwrap_or(true) {
        prompt.push_str(
            " Give how sure you are as `confidence` from 0 to 1, and why in one sentence as \
             `reasoning`.",
        );
    } else {
        prompt.push_str(" Answer with the verdict alone.");
    }
    prompt
}

fn stricter(prompt: &str, said: &str, cases: &[String]) -> String {
    let said = cairn_core::text::truncate(said.trim(), 200);
    format!(
        "{prompt}\n\nAn earlier answer was {}, which is none of them. The verdict must be one of \
         exactly these words: {}.",
        json!(said),
        listed(cases)
    )
}

fn listed(cases: &[String]) -> String {
    cases.iter().map(|case| format!("`{case}`")).collect::<Vec<_>>().join(", ")
}

fn outcome(
    input: &Input,
    verdict: &Verdict,
    asked: &Asked,
    who: &Resolved,
    cached: bool,
) -> Outcome {
    let wanted = |name: &str| {
        input.output_fields.as_ref().is_none_or(|fields| fields.iter().any(|field| field == name))
    };
    let mut output = json!({
        "attempts": asked.answers.len(), "cached": cached, "layer": verdict.layer.name(),
        "provider": who.name, "verdict": verdict.case,
    });
    let mut add = |name: &str, value: Value| {
        drop(output.as_object_mut().map(|o| o.insert(name.to_owned(), value)))
    };
    if let Some(model) = asked.used.model.as_ref().or(who.model.as_ref()) {
        add("model", json!(model));
    }
    if let Some(confidence) = verdict.confidence.filter(|_| wanted("confidence")) {
        add("confidence", json!(confidence));
    }
    if let Some(reasoning) = verdict.reasoning.as_ref().filter(|_| wanted("reasoning")) {
        add("reasoning", json!(reasoning));
    }
    if !cached && verdict.case == DEFAULT {
        add("said", json!(asked.said));
    }
    let sure = verdict.confidence.map(|share| format!(", confidence {share:.2}"));
    let why = verdict.reasoning.as_deref().map(|why| format!("\n\n{}", ask::shown(why)));
    let notes = format!(
        "verdict `{}` by {}{}{}",
        verdict.case,
        verdict.layer.name(),
        sure.unwrap_or_default(),
        why.unwrap_or_default()
    );
    let usage = (asked.used.launches > 0).then(|| usage(&asked.used));
    Outcome { case: Some(verdict.case.clone()), usage, ..Outcome::new(output, notes) }
}
