//! What a workflow says about itself.

use std::collections::BTreeMap;

use cairn_core::event::guided::{Autonomy, Capability, RiskPolicy};
use cairn_core::plan::{Guide, ModelTier, Need, Recommendations, Reference, ResolveFrom};

use crate::diagnostic::Code;
use crate::ids::{self, IdStatus, InvalidId, SourceKind};
use crate::read::{Fields, Spot};

/// The fields of a workflow.
pub(super) const FIELDS: &[&str] = &[
    "$schema",
    "about",
    "agentRole",
    "assessments",
    "capabilities",
    "clarificationPrompts",
    "conditions",
    "description",
    "examples",
    "extensionPoints",
    "features",
    "functionDefinitions",
    "id",
    "metaGuidance",
    "metricsProfile",
    "modelTier",
    "name",
    "preconditions",
    "recommendedPreferences",
    "references",
    "steps",
    "validatedAgainstSpecVersion",
    "version",
];

/// What a workflow says about itself.
pub(super) struct Header {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) version: Option<String>,
    pub(super) agent_role: Option<String>,
    pub(super) capabilities: BTreeMap<Capability, Need>,
    pub(super) recommendations: Recommendations,
    pub(super) metrics: Option<Metrics>,
    pub(super) guide: Guide,
}

/// What the agent is to report for statistics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Metrics {
    Coding,
    Review,
    Outcome,
}

pub(super) fn read(fields: &Fields<'_>, kind: SourceKind, bytes: &[u8]) -> Header {
    if let Some(version) = fields.get("validatedAgainstSpecVersion") {
        version.whole(1, 1_000_000);
    }
    let metrics = fields.get("metricsProfile").and_then(|spot| {
        let outcome = Some(Metrics::Outcome);
        spot.choice(&[
            ("coding", Some(Metrics::Coding)),
            ("review", Some(Metrics::Review)),
            ("research", outcome),
            ("design", outcome),
            ("ticket", outcome),
            ("none", None),
        ])
    });
    Header {
        id: fields.need("id").and_then(|spot| id(&spot, kind, bytes)).unwrap_or_default(),
        name: fields.need_text("name").unwrap_or_default(),
        description: fields.need_text("description").unwrap_or_default(),
        version: fields.text("version"),
        agent_role: fields.text("agentRole"),
        capabilities: fields.get("capabilities").map(|s| capabilities(&s)).unwrap_or_default(),
        recommendations: recommendations(fields).unwrap_or_default(),
        metrics: metrics.flatten(),
        guide: Guide {
            about: fields.text("about"),
            assessments: Vec::new(),
            clarifications: fields.texts("clarificationPrompts"),
            examples: fields.texts("examples"),
            model_tier: model_tier(fields),
            preconditions: fields.texts("preconditions"),
            references: references(fields),
            rules: fields.texts("metaGuidance"),
        },
    }
}

fn id(spot: &Spot<'_>, kind: SourceKind, bytes: &[u8]) -> Option<String> {
    let id = spot.filled()?;
    let suggested = ids::suggest(id, kind, bytes, &[]);
    match ids::check(id, kind) {
        Ok(IdStatus::Namespaced) => {}
        Ok(IdStatus::Legacy) => {
            let message = format!("the id `{id}` has no namespace");
            spot.warn(Code::LegacyId, message, format!("rename it, such as to `{suggested}`"));
        }
        Err(error @ InvalidId::Form) => {
            let hint = format!("such as `{suggested}`");
            spot.error_hint(Code::InvalidId, error.to_string(), hint);
        }
        Err(error @ InvalidId::Reserved) => {
            let hint = format!(
                "rename it to `{suggested}`, or declare its directory as bundled (CAIRN_BUNDLED)"
            );
            spot.error_hint(Code::ReservedId, error.to_string(), hint);
        }
    }
    Some(id.to_owned())
}

fn capabilities(spot: &Spot<'_>) -> BTreeMap<Capability, Need> {
    let mut capabilities = BTreeMap::new();
    let known = [("delegation", Capability::Delegation), ("web_browsing", Capability::WebBrowsing)];
    for (name, need) in spot.members() {
        let Some((_, capability)) = known.iter().find(|(known, _)| *known == name) else {
            need.unknown("capability", name, known.map(|(name, _)| name));
            continue;
        };
        let need = need.choice(&[
            ("required", Need::Required),
            ("preferred", Need::Preferred),
            ("disabled", Need::Disabled),
        ]);
        capabilities.extend(need.map(|need| (*capability, need)));
    }
    capabilities
}

fn recommendations(fields: &Fields<'_>) -> Option<Recommendations> {
    let fields = fields
        .get("recommendedPreferences")?
        .fields(&["recommendedAutonomy", "recommendedRiskPolicy"])?;
    let autonomy = fields.get("recommendedAutonomy").and_then(|spot| {
        spot.choice(&[
            ("guided", Autonomy::Guided),
            ("full_auto_stop_on_user_deps", Autonomy::FullAutoStopOnUserDeps),
            ("full_auto_never_stop", Autonomy::FullAutoNeverStop),
        ])
    });
    let risk_policy = fields.get("recommendedRiskPolicy").and_then(|spot| {
        spot.choice(&[
            ("conservative", RiskPolicy::Conservative),
            ("balanced", RiskPolicy::Balanced),
            ("aggressive", RiskPolicy::Aggressive),
        ])
    });
    Some(Recommendations { autonomy, risk_policy })
}

pub(super) fn model_tier(fields: &Fields<'_>) -> Option<ModelTier> {
    fields.get("modelTier")?.choice(&[
        ("lightweight", ModelTier::Lightweight),
        ("mid", ModelTier::Mid),
        ("heavy", ModelTier::Heavy),
    ])
}

fn references(fields: &Fields<'_>) -> Vec<Reference> {
    let items = fields.get("references").map(|spot| spot.items()).unwrap_or_default();
    let mut references: Vec<Reference> = Vec::new();
    for item in items {
        let Some(reference) = reference(&item) else { continue };
        if references.iter().any(|known| known.id == reference.id) {
            item.error(Code::DuplicateId, format!("`{}` names two references", reference.id));
        }
        references.push(reference);
    }
    references
}

fn reference(spot: &Spot<'_>) -> Option<Reference> {
    let known = ["id", "title", "source", "purpose", "authoritative", "resolveFrom"];
    let fields = spot.fields(&known)?;
    let resolve_from = fields.get("resolveFrom").and_then(|spot| {
        spot.choice(&[("workspace", ResolveFrom::Workspace), ("package", ResolveFrom::Package)])
    });
    // All are read before any is missed, so that one pass tells everything.
    let (id, purpose) = (fields.need_text("id"), fields.need_text("purpose"));
    let (source, title) = (fields.need_text("source"), fields.need_text("title"));
    let authoritative = fields.need("authoritative").and_then(|spot| spot.flag());
    Some(Reference {
        authoritative: authoritative?,
        id: id?,
        purpose: purpose?,
        resolve_from: resolve_from.unwrap_or(ResolveFrom::Workspace),
        source: source?,
        title: title?,
    })
}
