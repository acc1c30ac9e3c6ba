//! What an agent can do about a failure. What only a person can do, it is to pass on.

use cairn_api::Error;
use cairn_api::error::Who;
use cairn_core::error::Envelope;
use cairn_engine as engine;

/// The envelope of a failure, with a suggestion in terms of the tools.
pub(crate) fn envelope(error: &Error) -> Envelope {
    let mut envelope = error.envelope();
    envelope.suggestion = suggestion(error, &envelope);
    envelope
}

fn suggestion(error: &Error, envelope: &Envelope) -> String {
    if let Error::Engine(engine::Error::WorkflowUnknown { nearest: Some(near), .. }) = error {
        return format!("send `{near}` if that is meant, or choose from list_workflows");
    }
    let said = &envelope.suggestion;
    match envelope.code.as_str() {
        "SESSION_NOT_FOUND" => {
            "leave out sessionId to begin a new session, or find one with resume_session".to_owned()
        }
        "WORKFLOW_ID_AMBIGUOUS" => "send one of the ids in `details.matches`".to_owned(),
        "WORKFLOW_INVALID" => "tell the user what `details.diagnostics` say about the file; until \
             it is corrected, choose another from list_workflows"
            .to_owned(),
        "WORKFLOW_NOT_FOUND" => "choose a workflowId from list_workflows".to_owned(),
        _ => match error.who() {
            Who::Person => format!("tell the user: {said}"),
            Who::Caller => said.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: impl Into<Error>) -> String {
        envelope(&error.into()).suggestion
    }

    #[test]
    fn an_agent_is_sent_to_its_tools() {
        let unknown = |nearest: Option<&str>| engine::Error::WorkflowUnknown {
            given: "wr.cod-review".into(),
            nearest: nearest.map(str::to_owned),
        };
        assert_eq!(
            told(unknown(Some("wr.code-review"))),
            "send `wr.code-review` if that is meant, or choose from list_workflows"
        );
        assert_eq!(told(unknown(None)), "choose a workflowId from list_workflows");
    }

    #[test]
    fn what_only_a_person_can_do_is_passed_on() {
        assert!(told(Error::NotReady).starts_with("tell the user: "));
        let invalid = engine::Error::Invalid {
            message: "x".into(),
            fix: "send `output`".into(),
            details: serde_json::Value::Null,
        };
        assert_eq!(told(invalid), "send `output`");
    }
}
