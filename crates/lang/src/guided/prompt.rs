//! Prompts: blocks, refs, features, fragments and placeholders.

use cairn_core::canonical::StrictValue;
use cairn_core::digest::Digest;
use cairn_core::plan::{Fragment, InjectedText, Prompt};
use serde_json::{Map, Value, json};

use super::{Build, Scope, condition};
use crate::diagnostic::Code;
use crate::ids;
use crate::read::{Fields, Spot};

/// How many bytes a step may take in from refs.
const REFS_MAX: u64 = 8 << 10;
/// How many bytes the text of a step may have.
const TEXT_MAX: usize = 64 << 10;

const BLOCKS: [&str; 5] = ["goal", "constraints", "procedure", "outputRequired", "verify"];

impl<'a> Build<'a> {
    /// Renders blocks into the text of a prompt, always in the same order.
    pub(super) fn blocks(&mut self, spot: &Spot<'a>, scope: &Scope, prompt: &mut Prompt) {
        let Some(fields) = spot.fields(&BLOCKS) else { return };
        let mut blocks = Map::new();
        let mut parts: Vec<String> = Vec::new();
        if let Some(goal) = fields.get("goal") {
            let goal = self.value(&goal, scope, prompt).unwrap_or_default();
            parts.push(format!("## Goal\n{goal}"));
            blocks.insert("goal".to_owned(), json!(goal));
        }
        for (name, heading) in
            [("constraints", "Constraints"), ("procedure", "Procedure"), ("verify", "Verify")]
        {
            let items = fields.get(name).map(|spot| spot.items()).unwrap_or_default();
            let mut lines: Vec<String> =
                items.iter().filter_map(|item| self.value(item, scope, prompt)).collect();
            lines.extend(self.featured(name, scope, prompt));
            if !lines.is_empty() {
                let mut part = format!("## {heading}");
                for (place, line) in lines.iter().enumerate() {
                    let mark = if name == "procedure" {
                        format!("{}.", place + 1)
                    } else {
                        "-".to_owned()
                    };
                    part.push_str(&format!("\n{mark} {line}"));
                }
                parts.push(part);
                blocks.insert(name.to_owned(), json!(lines));
            }
            if name == "procedure" {
                parts.extend(required(&fields, scope, &mut blocks));
            }
        }
        if fields.get("goal").is_none() && fields.get("procedure").is_none() {
            let hint = "add `goal` or `procedure`";
            spot.error_hint(Code::MissingField, "the blocks say nothing to do", hint);
        }
        prompt.text = parts.join("\n\n");
        prompt.blocks = Some(StrictValue::new(Value::Object(blocks)));
    }

    /// A line of a block: text, or parts of which some are refs.
    fn value(&self, spot: &Spot<'a>, scope: &Scope, prompt: &mut Prompt) -> Option<String> {
        if !spot.is_list() {
            return prose(spot, scope);
        }
        let parts = spot.items();
        let parts = parts.iter().filter_map(|part| self.part(part, scope, prompt));
        Some(parts.collect::<String>())
    }

    fn part(&self, spot: &Spot<'a>, scope: &Scope, prompt: &mut Prompt) -> Option<String> {
        let kind = spot.node.get("kind").and_then(|kind| kind.as_text());
        if kind == Some("text") {
            let text = spot.fields(&["kind", "text"])?.need("text")?;
            // Blanks between parts matter, so an empty part is no mistake.
            return text.text().map(|given| replaced(&text, given, scope));
        }
        let fields = spot.fields(&["kind", "refId"])?;
        fields.need("kind")?.choice(&[("text", ()), ("ref", ())])?;
        let id = fields.need("refId")?;
        let given = id.filled()?;
        let Some(found) = self.catalog.text(given) else {
            id.unknown("ref", given, self.catalog.refs.iter().map(|text| text.id));
            return None;
        };
        prompt.injected.push(injected(found.id, found.text));
        Some(found.text.to_owned())
    }

    /// What features add to a block.
    fn featured(&self, block: &str, scope: &Scope, prompt: &mut Prompt) -> Vec<String> {
        let mut added = Vec::new();
        for feature in &scope.features {
            let lines = match block {
                "constraints" => feature.constraints,
                "verify" => feature.verify,
                _ => &[],
            };
            for line in lines {
                prompt.injected.push(injected(feature.id, line));
                added.push((*line).to_owned());
            }
        }
        added
    }

    pub(super) fn fragments(
        &mut self,
        fields: &Fields<'a>,
        scope: &Scope,
        name: &str,
    ) -> Vec<Fragment> {
        let items = fields.get("promptFragments").map(|spot| spot.items()).unwrap_or_default();
        let mut fragments: Vec<Fragment> = Vec::new();
        for item in items {
            let Some(fields) = item.fields(&["id", "when", "text"]) else { continue };
            let id = fields.need_text("id");
            let text = fields.need("text").and_then(|spot| {
                if spot.node.as_text().is_some_and(|text| text.contains("{{wr.")) {
                    spot.error(Code::Unsupported, "a fragment cannot hold `{{wr.…}}`");
                }
                prose(&spot, scope)
            });
            let (Some(id), Some(text)) = (id, text) else { continue };
            if !ids::is_step_id(&id) {
                let hint = format!("such as `{}`", ids::suggest_step_id(&id));
                item.error_hint(Code::InvalidId, format!("`{id}` cannot name a fragment"), hint);
                continue;
            }
            if fragments.iter().any(|known| known.id == id) {
                item.error(Code::DuplicateId, format!("`{id}` names two fragments of the step"));
            }
            let named = format!("{name}.fragment.{id}");
            let condition = self.condition(fields.get("when").as_ref(), &named);
            fragments.push(Fragment { condition, id, text });
        }
        fragments
    }

    /// Warns of features that found no blocks to go into.
    pub(super) fn unused_features(&self, fields: &Fields<'_>) {
        let used = |id: &str| {
            self.steps.iter().any(|step| match &step.action {
                cairn_core::plan::Action::Prompt(p) => p.injected.iter().any(|i| i.r#ref == id),
                cairn_core::plan::Action::Typed { .. } => false,
            })
        };
        for spot in fields.get("features").map(|spot| spot.items()).unwrap_or_default() {
            let id = spot.node.as_text().unwrap_or_default();
            if self.features.contains_key(id) && !used(id) {
                let message = format!("`{id}` goes into `promptBlocks`, and no step has any");
                let hint = "write steps with `promptBlocks`, or leave the feature out";
                spot.warn(Code::FeatureWithoutEffect, message, hint);
            }
        }
    }
}

fn required(fields: &Fields<'_>, scope: &Scope, blocks: &mut Map<String, Value>) -> Option<String> {
    let members = fields.get("outputRequired")?.members();
    let mut part = "## Output required, in your notes".to_owned();
    let mut kept = Map::new();
    for (name, spot) in members {
        let Some(text) = prose(&spot, scope) else { continue };
        part.push_str(&format!("\n- {name}: {text}"));
        kept.insert(name.to_owned(), json!(text));
    }
    blocks.insert("outputRequired".to_owned(), Value::Object(kept));
    Some(part)
}

/// Text for an agent, with its arguments and slots filled in.
pub(super) fn prose(spot: &Spot<'_>, scope: &Scope) -> Option<String> {
    spot.filled().map(|text| replaced(spot, text.trim(), scope))
}

/// Adds lines under a heading.
pub(super) fn add_lines(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("\n\n{heading}"));
    for line in lines {
        text.push_str(&format!("\n- {line}"));
    }
}

pub(super) fn within_budget(spot: &Spot<'_>, prompt: &Prompt) {
    let taken: u64 = prompt.injected.iter().map(|injected| injected.byte_length).sum();
    if taken > REFS_MAX {
        let message = format!("refs and features bring {taken} bytes; at most {REFS_MAX} may be");
        spot.error_hint(Code::TooLong, message, "use fewer refs in this step");
    }
    if prompt.text.len() > TEXT_MAX {
        let message =
            format!("the text has {} bytes; at most {TEXT_MAX} may be", prompt.text.len());
        spot.error_hint(Code::TooLong, message, "make two steps of it");
    }
}

pub(super) fn injected(id: &str, text: &str) -> InjectedText {
    InjectedText {
        byte_length: u64::try_from(text.len()).unwrap_or(u64::MAX),
        r#ref: id.to_owned(),
        sha256: Digest::of(text.as_bytes()),
    }
}

/// Fills in `{argument}` and `{{wr.bindings.slot}}`, and looks at what other braces hold.
pub(super) fn replaced(spot: &Spot<'_>, text: &str, scope: &Scope) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        if let Some(inner) = after.strip_prefix('{') {
            let (inside, behind) = inner.split_once("}}").unwrap_or((inner, ""));
            let closed = inner.contains("}}");
            match placeholder(spot, inside.trim(), closed, scope) {
                Some(value) => filled.push_str(&value),
                None => filled.push_str(&format!("{{{{{inside}{}", if closed { "}}" } else { "" })),
            }
            rest = behind;
            continue;
        }
        let argument = after.split_once('}');
        match argument.and_then(|(name, behind)| Some((scope.arguments.get(name)?, behind))) {
            Some((value, behind)) => {
                filled.push_str(value);
                rest = behind;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// What a placeholder becomes when compiled. One for the context stays for the run to fill.
fn placeholder(spot: &Spot<'_>, name: &str, closed: bool, scope: &Scope) -> Option<String> {
    if let Some(slot) = name.strip_prefix("wr.bindings.") {
        let found = scope.slots.get(slot);
        if found.is_none() {
            spot.unknown("extension point", slot, scope.slots.keys().map(String::as_str));
        }
        return found.cloned();
    }
    if name.starts_with("wr.") {
        spot.error_hint(
            Code::Unsupported,
            format!("`{{{{{name}}}}}` cannot stand in a text"),
            "take texts in by `{kind: ref, refId: …}` in `promptBlocks`",
        );
    } else if !closed || !condition::is_path(name) {
        let short: String = name.chars().take(40).collect();
        let end = if closed { "}}" } else { "" };
        spot.warn(
            Code::PlaceholderKept,
            format!("`{{{{{short}{end}` stays as it is written, as it is no path into the context"),
            "write `{{name}}` or `{{name.part}}`",
        );
    }
    None
}
