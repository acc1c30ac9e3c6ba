//! What a compiler knows of the types of triggers that there are.

use serde_json::Value;

/// A kind of trigger.
#[derive(Clone, Debug)]
pub struct TriggerType {
    /// What workflows call it.
    pub name: String,
    /// The JSON schema of its settings, an object that takes no other fields than it lists.
    /// Text with the format [`SECRET_NAME`] names a secret of the workflow.
    pub input: Value,
    /// The JSON schema of `event.payload` in the runs that it starts, where the type fixes it and
    /// the settings do not.
    pub payload: Option<Value>,
    /// Says what is wrong with settings that fit the schema.
    pub check: fn(&Value) -> Vec<SettingFault>,
}

/// The format of text that names a secret.
pub const SECRET_NAME: &str = "secret-name";

/// Something wrong with a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingFault {
    /// Which one: names and places with dots between, such as `allow.2`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl SettingFault {
    /// Something wrong with a setting.
    #[must_use]
    pub fn new(
        field: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), message: message.into(), hint: hint.into() }
    }
}

/// Two descriptions are the same when they tell a reader the same.
impl PartialEq for TriggerType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.input == other.input && self.payload == other.payload
    }
}
