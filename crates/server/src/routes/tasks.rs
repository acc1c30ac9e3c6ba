//! `/api/v1/tasks`: what runs ask people. An answer is sent; looking at a path never is one.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use cairn_api::Error;
use cairn_api::call::{AnswerTask, Tasks, Verdict};
use cairn_api::page::LIMIT_MAX;
use cairn_api::run::{Run, Shown, TaskFor};
use cairn_core::flow;
use cairn_core::id::TaskId;
use cairn_engine as engine;
use cairn_engine::flow::Filter;
use serde_json::Value;

use super::runs::{run_id, seen};
use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::body;

pub(super) fn routes() -> Vec<Route> {
    let (read, answers) = (Access::Needs(Action::ReadTasks), Access::Needs(Action::AnswerTasks));
    vec![
        Route::get("/api/v1/tasks", read, "List the questions that wait for an answer", get(list))
            .gives::<Tasks>(),
        Route::post(
            "/api/v1/runs/{id}/tasks/{task}/answer",
            answers,
            "Answer a question of a run",
            post(answer),
        )
        .takes::<AnswerTask>()
        .gives::<Run>(),
    ]
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Tasks>, Failure> {
    let filter = Filter { is_over: Some(false), limit: Some(LIMIT_MAX), ..Filter::default() };
    let mut items = Vec::new();
    for summary in shared.automation.engine.list(&filter).await? {
        // What nobody trusts asks nobody here.
        if summary.is_paper || caller.covers(&summary.identity()).is_err() {
            continue;
        }
        // A run that is over by now asks nothing.
        let Ok(past) = shared.automation.engine.past(summary.run).await else { continue };
        let asked = Shown::from(&past).tasks.into_iter();
        items.extend(asked.filter(|task| task.waiting_for == TaskFor::Person));
    }
    Ok(Json(Tasks { items }))
}

async fn answer(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    ids: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Run>, Failure> {
    let (run, task) = match ids {
        Ok(Path((run, task))) => (run_id(Ok(Path(run)))?, task),
        Err(error) => (run_id(Err(error))?, String::new()),
    };
    let task: TaskId = task.parse().map_err(|_| no_task(run))?;
    let given: AnswerTask = body::json(&headers, body).await?;
    seen(&shared, &caller, run).await?;
    let verdict = match given.verdict {
        Verdict::Approved => flow::Verdict::Approved,
        Verdict::Rejected => flow::Verdict::Rejected,
    };
    let values = Value::Object(given.values.into_iter().collect());
    let engine = &shared.automation.engine;
    engine.answer(run, task, caller.by(), flow::Answer { verdict, values }).await?;
    Ok(Json(Run::from(&engine.past(run).await?.summary)))
}

fn no_task(run: cairn_core::id::RunId) -> Error {
    let refused = flow::Rejection::NoTask(TaskId::from_bits(0));
    Error::Engine(engine::Error::RunRefused { run, refused })
}
