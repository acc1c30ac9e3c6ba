//! Binding runs to a project that was moved, or that came from another machine.

use std::path::Path;

use cairn_core::event::{By, limits};
use cairn_core::guided::decide;
use cairn_core::id::{RunId, SessionId};
use cairn_store as store;
use serde_json::json;

use super::position::Position;
use super::session::Session;
use super::{Inner, TRIES_MAX, input, minter, rejected, workspace};
use crate::error::{Error, Result};
use crate::record::{Action, Deed, Object};

/// What the checkpoint says. The place itself is an observation, which bundles leave behind.
const NOTES: &str = "The project of this run was moved, and the run was bound to its new place.";

impl Inner {
    /// Binds the runs of a session to the place where their project is now; gives those that
    /// were bound elsewhere.
    pub(super) async fn rebind(&self, id: SessionId, project: &Path, by: By) -> Result<Vec<RunId>> {
        let project = workspace::recorded(project);
        if !project.is_dir() || project.display().to_string().len() > limits::PATH {
            return Err(input::invalid(
                format!("{} is not a directory with a path of this length", project.display()),
                "give the path of the directory that the project is in now, at most 512 bytes",
                json!({"field": "workspace"}),
            ));
        }
        let known = self.known.get(id);
        let mut session = known.lock().await;
        match session.sync(&*self.store.log).await {
            Err(Error::Store(store::Error::NotFound(id))) => return Err(self.not_here(id).await?),
            other => other?,
        }
        let guided = session.view.runs.iter().filter(|(_, view)| view.dag().is_some());
        let guided = guided.map(|(run, _)| *run).filter(|run| !session.is_notes(*run));
        let is_elsewhere =
            |run: &RunId| workspace::of_run(&session.view, *run).as_deref() != Some(&*project);
        let runs: Vec<RunId> = guided.filter(is_elsewhere).collect();
        let object = Object { session: Some(id), ..Object::default() };
        let deed = Deed { by, action: Action::RebindSession, object, arguments: None };
        let deed = deed.with(&json!({"workspace": project}));
        let bind_all = async {
            for run in &runs {
                self.bind(&mut session, *run, &project).await?;
            }
            Ok(runs.clone())
        };
        self.record.change(deed, bind_all).await
    }

    /// Binds a run: a checkpoint at its tip, where the new place is recorded. A place is a fact
    /// of one node, so that a run can be bound back to where it was.
    async fn bind(&self, session: &mut Session, run: RunId, project: &Path) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let tip = session.dag(run)?.preferred_tip().map(|tip| tip.id);
            let tip = tip.ok_or_else(|| session.broken("a run has no node"))?;
            let position = Position::load(self, session, run, tip).await?;
            let (attempt, mut mint) = (self.fresh()?.id(tip), minter(&*self.host)?);
            let note = decide::Note { attempt, notes: Some(NOTES), artifacts: &[] };
            let decided = decide::checkpoint(position.here(session), note, &mut mint);
            let mut decided = decided.map_err(|rejection| rejected(rejection, ""))?;
            let at = (run, decide::spot(attempt));
            decided.events.extend(workspace::belongs(Some(project), at, &mut mint));
            decided.events.extend(workspace::observe(Some(project), &session.view, &mut mint));
            self.append_or_look(session, run, decided).await?;
            if workspace::of_run(&session.view, run).as_deref() == Some(project) {
                return Ok(());
            }
        }
        Err(store::Error::Busy { session: session.id, waiting: TRIES_MAX }.into())
    }
}
