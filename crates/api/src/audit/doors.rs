//! Every call of every door, and what it is recorded as. A door that offers a call which is not
//! here fails its tests.

use cairn_engine::record::Action;

use Call::{Changes, Logged, Reads};

/// What a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// It changes nothing that Cairn keeps.
    Reads,
    /// It is recorded as one of these before it is carried out.
    Changes(&'static [Action]),
    /// The event log has it, with who did it.
    Logged,
}

/// The commands of the command line, in alphabetical order.
pub const CLI: &[(&str, Call)] = &[
    ("audit list", Reads),
    ("audit verify", Reads),
    ("completions", Reads),
    ("config show", Reads),
    // Only for tests of durability: it appends what no run ever did.
    ("dev append-loop", Logged),
    ("doctor", Reads),
    ("env check", Reads),
    ("env list", Reads),
    ("env set", Changes(&[Action::SetSetting])),
    ("env unset", Changes(&[Action::UnsetSetting])),
    ("guide", Changes(&[Action::ClaimRun, Action::ContinueRun, Action::ForkRun, Action::StartRun])),
    ("help", Reads),
    ("key rotate", Changes(&[Action::RotateKeys])),
    ("mcp", Reads),
    ("provider check", Reads),
    ("provider list", Reads),
    ("provider skills", Reads),
    ("reference", Reads),
    ("run", Changes(&[Action::StartRun])),
    ("runs answer", Changes(&[Action::AnswerTask])),
    ("runs cancel", Changes(&[Action::CancelRun])),
    ("runs events", Reads),
    ("runs export", Changes(&[Action::ExportRun])),
    ("runs fork", Changes(&[Action::ForkRun])),
    ("runs list", Reads),
    ("runs pause", Changes(&[Action::PauseRun])),
    ("runs release", Changes(&[Action::ReleaseRun])),
    ("runs replay", Changes(&[Action::ReplayRun])),
    ("runs resolve", Changes(&[Action::ResolveStep])),
    ("runs resume", Changes(&[Action::ResumeRun])),
    ("runs show", Reads),
    ("secret list", Reads),
    ("secret remove", Changes(&[Action::RemoveSecret])),
    ("secret rotate", Changes(&[Action::RotateSecrets])),
    ("secret set", Changes(&[Action::SetSecret])),
    // The first start makes the admin token.
    ("serve", Changes(&[Action::CreateToken])),
    ("session delete", Changes(&[Action::DeleteSession])),
    ("session export", Changes(&[Action::ExportSession])),
    ("session gc", Changes(&[Action::CollectSessions])),
    ("session import", Changes(&[Action::ImportSession, Action::TrustSession, Action::ResumeRun])),
    ("session keep", Changes(&[Action::KeepSession])),
    ("session list", Reads),
    ("session rebind", Changes(&[Action::RebindSession])),
    ("session resume", Reads),
    ("session show", Reads),
    ("session trust", Changes(&[Action::TrustSession])),
    ("session verify", Reads),
    ("token create", Changes(&[Action::CreateToken])),
    ("token list", Reads),
    ("token revoke", Changes(&[Action::RevokeToken])),
    ("trigger curl", Reads),
    ("trigger fire", Changes(&[Action::StartRun])),
    ("trigger list", Reads),
    ("trigger next", Reads),
    ("usage", Reads),
    ("workflow compile", Reads),
    ("workflow list", Reads),
    // It writes sources of the user's own, and nothing of the data directory.
    ("workflow new", Reads),
    ("workflow rebind", Changes(&[Action::RebindWorkflow])),
    ("workflow show", Reads),
    ("workflow validate", Reads),
];

/// The routes of the server, by method and path. What is only looked at is not listed.
pub const HTTP: &[(&str, Call)] = &[
    ("delete /api/v1/tokens/{id}", Changes(&[Action::RevokeToken])),
    ("delete /api/v1/workflows/{id}/env/{name}", Changes(&[Action::UnsetSetting])),
    ("delete /api/v1/workflows/{id}/secrets/{name}", Changes(&[Action::RemoveSecret])),
    ("post /api/v1/runs", Changes(&[Action::StartRun])),
    ("post /api/v1/runs/{id}/cancel", Changes(&[Action::CancelRun])),
    ("post /api/v1/runs/{id}/fork", Changes(&[Action::ForkRun])),
    ("post /api/v1/runs/{id}/pause", Changes(&[Action::PauseRun])),
    ("post /api/v1/runs/{id}/release", Changes(&[Action::ReleaseRun])),
    ("post /api/v1/runs/{id}/replay", Changes(&[Action::ReplayRun])),
    ("post /api/v1/runs/{id}/resolve", Changes(&[Action::ResolveStep])),
    ("post /api/v1/runs/{id}/resume", Changes(&[Action::ResumeRun])),
    ("post /api/v1/runs/{id}/tasks/{task}/answer", Changes(&[Action::AnswerTask])),
    ("post /api/v1/sessions/{id}/trust", Changes(&[Action::TrustSession])),
    ("post /api/v1/tokens", Changes(&[Action::CreateToken])),
    ("post /api/v1/workflows/validate", Reads),
    ("post /hooks/{*path}", Logged),
    // Its tools have a table of their own.
    ("post /mcp", Reads),
    ("put /api/v1/workflows/{id}/env/{name}", Changes(&[Action::SetSetting])),
    ("put /api/v1/workflows/{id}/secrets/{name}", Changes(&[Action::SetSecret])),
];

/// The tools for agents, in alphabetical order.
pub const MCP: &[(&str, Call)] = &[
    ("checkpoint_workflow", Changes(&[Action::ContinueRun])),
    ("continue_workflow", Changes(&[Action::ClaimRun, Action::ContinueRun, Action::ForkRun])),
    ("inspect_workflow", Reads),
    ("list_workflows", Reads),
    ("resume_session", Reads),
    ("start_session", Changes(&[Action::StartRun])),
    ("start_workflow", Changes(&[Action::StartRun])),
];

impl Call {
    /// What a call of a door is, if it is known.
    #[must_use]
    pub fn of(table: &[(&str, Self)], call: &str) -> Option<Self> {
        table.iter().find(|(known, _)| *known == call).map(|(_, what)| *what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order_and_name_nothing_twice() {
        for table in [CLI, HTTP, MCP] {
            let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        }
    }
}
