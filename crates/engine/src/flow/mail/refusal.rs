//! A refusal as one process writes it and another reads it.
//!
//! Whoever asks acts on what it is told: it waits, comes back, drops a firing or shows which field
//! is wrong. So a refusal means the same in every process, and a table below holds it to that.

use cairn_core::catalog::SettingFault;
use serde_json::{Value, json};

use crate::error::Error;

/// An error as the members of a letter.
pub(super) fn write(error: &Error) -> Value {
    // Whoever asks again is answered by whoever decides by then.
    let code = if error.is_passing() { "RUN_LANE_DOWN" } else { error.code() };
    let mut letter = json!({"code": code, "message": error.to_string()});
    let more = match error {
        Error::RateLimited { workflow, runs_max, per_ms, after_ms } => json!({
            "workflow": workflow, "runsMax": runs_max, "perMs": per_ms, "afterMs": after_ms,
        }),
        Error::Busy { workflow, after_ms } => json!({"workflow": workflow, "afterMs": after_ms}),
        Error::Overflow { workflow, most, after_ms } => {
            json!({"workflow": workflow, "most": most, "afterMs": after_ms})
        }
        Error::Dropped { workflow } => json!({"workflow": workflow}),
        Error::Invalid { fix, details, .. } => json!({"fix": fix, "details": details}),
        Error::SettingsInvalid { path, faults } => {
            let fault = |fault: &SettingFault| json!([fault.field, fault.message, fault.hint]);
            json!({"path": path, "faults": faults.iter().map(fault).collect::<Vec<_>>()})
        }
        Error::Told { after_ms, .. } => json!({"afterMs": after_ms}),
        _ => Value::Null,
    };
    if let (Value::Object(letter), Value::Object(more)) = (&mut letter, more) {
        letter.extend(more);
    }
    letter
}

/// The error that an answer holds, if it is one.
pub(super) fn read(answer: &Value) -> Option<Error> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| answer.get(name).and_then(Value::as_u64);
    let (code, message) = (text("code")?, text("message")?);
    let native = match code.as_str() {
        "RUN_RATE_LIMITED" => (|| {
            let runs_max = u32::try_from(number("runsMax")?).ok()?;
            let (per_ms, after_ms) = (number("perMs")?, number("afterMs")?);
            Some(Error::RateLimited { workflow: text("workflow")?, runs_max, per_ms, after_ms })
        })(),
        "RUN_BUSY" => {
            (|| Some(Error::Busy { workflow: text("workflow")?, after_ms: number("afterMs")? }))()
        }
        "TRIGGER_OVERFLOW" => (|| {
            let most = usize::try_from(number("most")?).ok()?;
            let after_ms = number("afterMs")?;
            Some(Error::Overflow { workflow: text("workflow")?, most, after_ms })
        })(),
        "TRIGGER_DROPPED" => text("workflow").map(|workflow| Error::Dropped { workflow }),
        "VALIDATION_ERROR" => text("fix").map(|fix| {
            let details = answer.get("details").cloned().unwrap_or_default();
            Error::Invalid { message: message.clone(), fix, details }
        }),
        "SETTING_INVALID" => (|| {
            let faults = answer.get("faults")?.as_array()?.iter().map(fault);
            Some(Error::SettingsInvalid {
                path: text("path")?,
                faults: faults.collect::<Option<_>>()?,
            })
        })(),
        _ => None,
    };
    // Another version may say it otherwise, and what it says is still a refusal.
    Some(native.unwrap_or(Error::Told { code, message, after_ms: number("afterMs") }))
}

fn fault(letter: &Value) -> Option<SettingFault> {
    let text = |at: usize| letter.get(at).and_then(Value::as_str).map(str::to_owned);
    Some(SettingFault { field: text(0)?, message: text(1)?, hint: text(2)? })
}

#[cfg(test)]
mod tests {
    use cairn_core::flow::Rejection;
    use cairn_core::id::{RunId, SessionId};

    use super::*;

    #[test]
    fn a_refusal_means_the_same_in_every_process() {
        let (run, session) = (RunId::from_bits(1), SessionId::from_bits(2));
        let workflow = || "project.w".to_owned();
        let fault = SettingFault {
            field: "SITE".to_owned(),
            message: "it has no value".to_owned(),
            hint: "give it one".to_owned(),
        };
        let invalid = Error::Invalid {
            message: "payload.n is missing".to_owned(),
            fix: "send it".to_owned(),
            details: json!({"field": "payload.n"}),
        };
        let all = [
            Error::RateLimited { workflow: workflow(), runs_max: 3, per_ms: 1_000, after_ms: 250 },
            Error::Busy { workflow: workflow(), after_ms: 1_000 },
            Error::Overflow { workflow: workflow(), most: 1, after_ms: 900 },
            Error::Dropped { workflow: workflow() },
            invalid,
            Error::SettingsInvalid { path: "env".to_owned(), faults: vec![fault] },
            Error::LaneDown { session },
            Error::InDoubt { session, owner: None },
            Error::RunUnknown(run),
            Error::RunRefused { run, refused: Rejection::Ended },
            Error::Store(cairn_store::Error::Full { context: "x".to_owned() }),
            Error::Broken("a bug".to_owned()),
        ];
        for error in all {
            let there = read(&write(&error)).unwrap();
            assert_eq!(there.code(), error.code(), "{error}");
            assert_eq!(there.to_string(), error.to_string());
            assert_eq!(there.after_ms(), error.after_ms(), "{error}");
            assert_eq!(there.is_passing(), error.is_passing(), "{error}");
            assert_eq!(there.fix(), error.fix(), "{error}");
            // What callers match on is what it was.
            let is_told = matches!(there, Error::Told { .. });
            let has_members = write(&error).as_object().unwrap().len() > 2;
            assert!(!(is_told && has_members), "{there:?}");
            // And so is what is handed on once more.
            assert_eq!(read(&write(&there)).unwrap().code(), error.code());
        }
    }

    #[test]
    fn one_that_is_about_to_end_is_asked_again_somewhere_else() {
        assert!(!Error::Stopping.is_passing());
        assert!(read(&write(&Error::Stopping)).unwrap().is_passing());
    }

    #[test]
    fn what_is_no_refusal_is_none_and_a_new_one_is_kept_as_it_is() {
        assert!(read(&json!({"run": "x", "replayed": false})).is_none());
        let new = read(&json!({"code": "RUN_BUSY", "message": "later", "afterMs": 7})).unwrap();
        assert!(matches!(new, Error::Told { after_ms: Some(7), .. }), "{new:?}");
    }
}
