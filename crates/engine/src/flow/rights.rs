//! With whose rights a run starts others, and goes on.

use cairn_core::event::engine::{ParentStep, RunQueued};
use cairn_core::event::{By, Door};
use cairn_core::id::RunId;

use super::Inner;
use super::index::Summary;
use super::intake::{Roles, require_role};
use crate::catalog::Found;
use crate::error::{Error, Result};

/// How many runs lead to another at most; no chain of children is longer.
const PARENTS_MAX: usize = 64;

impl Inner {
    /// The token with which a run was asked for, or the run that it is a child of, and so on.
    pub(super) async fn caller_of(&self, run: RunId) -> Result<Option<String>> {
        let mut run = run;
        for _ in 0..PARENTS_MAX {
            let Some(queued) = self.reading.state(run).await?.1.queued else { return Ok(None) };
            let RunQueued { via, parent, .. } = queued;
            match (via, parent) {
                (Some(via), _) if via.token_id.is_some() => return Ok(via.token_id),
                (Some(via), Some(parent)) if via.door == Door::Child => run = parent.run_id,
                _ => return Ok(None),
            }
        }
        Err(Error::Broken(format!("{run} has no beginning")))
    }

    /// The roles with which a run starts a child for the holder of a token. Who may not start it is
    /// named, with what is missing.
    pub(super) async fn child_roles(&self, found: &Found, token: Option<&str>) -> Result<Roles> {
        let Some(token) = token else { return Ok(Roles::Any) };
        let grant = self.rights.of(token).await?;
        let forbidden = |lacks: String| Error::ChildForbidden {
            workflow: found.id.clone(),
            who: grant.who.clone(),
            lacks,
        };
        if let Some(lacks) = grant.obstacle(found.identity()) {
            return Err(forbidden(lacks));
        }
        match require_role(&found.compiled()?.plan, None, &grant.roles) {
            Err(Error::RoleMissing { role }) => Err(forbidden(format!("lacks the role `{role}`"))),
            checked => checked.map(|()| grant.roles),
        }
    }

    /// Whether somebody may let a run go on: that takes the role that starting it does.
    pub(super) async fn require_start_role(&self, run: RunId, by: &By) -> Result<()> {
        let token = by.via.as_ref().and_then(|via| via.token_id.as_deref());
        let Some(token) = token else { return Ok(()) };
        let roles = self.rights.of(token).await?.roles;
        self.require_roles(run, &roles).await
    }

    /// Whether somebody has the role that starting a run takes, whichever way they came in.
    pub(super) async fn require_roles(&self, run: RunId, roles: &Roles) -> Result<()> {
        let state = self.reading.state(run).await?.1;
        let Some(started) = &state.started else { return Ok(()) };
        let plan = self.plans.get(started.workflow_hash).await?;
        let trigger = state.queued.as_ref().and_then(|queued| queued.trigger_id.as_ref());
        require_role(&plan.graph.plan, trigger, roles)
    }
}

/// The roles of a child that was begun before. Its id follows from its parent's, so that a run
/// from elsewhere may have it; what that one came to is not what the parent asked for.
pub(super) fn require_own_child(known: &Summary, parent: &ParentStep) -> Result<Roles> {
    if known.parent == Some(parent.run_id) {
        return Ok(Roles::Any);
    }
    let (run, session) = (known.run, known.session);
    Err(Error::ChildForbidden {
        workflow: known.workflow.clone(),
        who: format!("{run}, which was not begun by {},", parent.run_id),
        lacks: format!("has the id that its run would get; delete session {session}"),
    })
}
