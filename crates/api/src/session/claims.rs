//! What a session from elsewhere claims, on the wire.

use cairn_core::digest::{Digest, WorkflowHash};
use cairn_core::id::{RunId, SessionId};
use cairn_engine::flow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a session from elsewhere claims, and what it would do here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// The session.
    pub session_id: SessionId,
    /// The digest of everything in its bundle, which trust is given to.
    pub root_hash: Digest,
    /// Whether somebody said that it may go on here.
    pub trusted: bool,
    /// How many events it brings along.
    pub events: u64,
    /// Its runs.
    pub runs: Vec<ClaimedRun>,
    /// Its plans.
    pub plans: Vec<ClaimedPlan>,
    /// The folders that it says its runs work in.
    pub workspaces: Vec<String>,
}

/// Lets a session from elsewhere go on here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustSession {
    /// The digest of everything in its bundle, as it was shown.
    #[schemars(with = "String")]
    pub root_hash: Digest,
}

/// A run of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedRun {
    /// The run.
    pub run_id: RunId,
    /// What it says it is a run of, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Where it says it stands; left out of a run that an agent is led through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What it says people decided, which counts for nothing here.
    pub decided: Vec<Decision>,
}

/// What a run says that somebody decided.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// At which step.
    pub step: String,
    /// Who.
    pub by: String,
}

/// A plan of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedPlan {
    /// Its digest.
    pub workflow_hash: WorkflowHash,
    /// What it calls itself.
    pub workflow_id: String,
    /// The file here that has the same plan, whose settings and secrets it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// What it can do, a line each.
    pub can: Vec<String>,
}

impl From<&flow::Claims> for Claims {
    fn from(claims: &flow::Claims) -> Self {
        let run = |run: &flow::ClaimedRun| ClaimedRun {
            run_id: run.run,
            workflow_id: run.workflow.clone(),
            status: run.status.map(|status| status.name().to_owned()),
            decided: run.decided.iter().cloned().map(|(step, by)| Decision { step, by }).collect(),
        };
        let plan = |plan: &flow::ClaimedPlan| ClaimedPlan {
            workflow_hash: plan.hash,
            workflow_id: plan.workflow.clone(),
            same_as: plan.same_as.clone(),
            can: plan.can.lines(),
        };
        Self {
            session_id: claims.session,
            root_hash: claims.origin.root,
            trusted: claims.origin.trusted.is_some(),
            events: claims.events,
            runs: claims.runs.iter().map(run).collect(),
            plans: claims.plans.iter().map(plan).collect(),
            workspaces: claims.workspaces.clone(),
        }
    }
}
