//! The settings of workflows: what they ask for, and what they get.

use std::collections::BTreeMap;

use cairn_core::plan::{EnvField, Plan};
use cairn_engine::settings::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Env {
    /// The workflow.
    pub workflow_id: String,
    /// What it asks for, in its own order.
    pub items: Vec<Setting>,
}

/// A setting: what is asked for, and what there is. A secret is shown without its value.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// The kind of value, as a form shows it.
    pub widget: String,
    /// What it is for.
    pub description: String,
    /// Whether a run needs it.
    pub required: bool,
    /// Whether it is a secret, whose value is never shown.
    pub secret: bool,
    /// Whether it stays as it was first set.
    pub locked: bool,
    /// Whether forms leave it out.
    pub hidden: bool,
    /// Whether the settings that it depends on ask for it.
    pub shown: bool,
    /// The values to choose from, when there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The columns of a table of values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Where the values to pick from come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The setting that it depends on, and the value that this must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub visible_when: BTreeMap<String, String>,
    /// Its value when none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Its value; null for a secret, and when there is none.
    pub value: Option<Value>,
    /// Whether it has a value.
    pub is_set: bool,
    /// Where the value comes from: `default`, `beside`, `own` or `vault`.
    pub origin: Option<&'static str>,
    /// Whether a run needs it and nobody has given it.
    pub missing: bool,
}

impl Setting {
    /// A setting of a workflow, given what it gets.
    #[must_use]
    pub fn of(field: &EnvField, settings: &Settings, all: &[EnvField]) -> Self {
        let origin = settings.origins.get(&field.name);
        let when = field.visible_when.iter().map(|when| (when.name.clone(), when.value.clone()));
        // What is not supposed to be there must not be shown, wherever it comes from.
        let open = |value: &Value| (!field.secret).then(|| value.clone());
        Self {
            name: field.name.clone(),
            widget: field.r#type.to_string(),
            description: field.description.clone(),
            required: field.required,
            secret: field.secret,
            locked: field.locked,
            hidden: field.hidden,
            shown: settings.shows(field, all),
            options: field.options.clone(),
            columns: field.columns.clone(),
            source: field.source.clone(),
            visible_when: when.collect(),
            default: field.default.as_ref().and_then(|value| open(&value.0)),
            value: settings.values.get(&field.name).and_then(open),
            is_set: origin.is_some(),
            origin: origin.map(|origin| origin.name()),
            missing: settings.missing.contains(&field.name),
        }
    }
}

impl Env {
    /// What a workflow asks for, and what it gets.
    #[must_use]
    pub fn of(plan: &Plan, settings: &Settings) -> Self {
        let setting = |field| Setting::of(field, settings, &plan.env);
        let items = plan.env.iter().map(setting).collect();
        Self { workflow_id: plan.workflow_id.clone(), items }
    }
}

/// Whether a run would find all that it needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// The workflow.
    pub workflow_id: String,
    /// Whether it would.
    pub ready: bool,
    /// What a run needs and nobody has given, secrets too.
    pub missing: Vec<String>,
    /// Values that do not fit.
    pub faults: Vec<Fault>,
    /// Values that nobody asks for.
    pub unused: Vec<String>,
}

/// A value that does not fit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// The setting.
    pub name: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub suggestion: String,
}

impl Checked {
    /// What is to be said about the settings of a workflow.
    #[must_use]
    pub fn of(plan: &Plan, settings: &Settings) -> Self {
        let fault = |(_, fault): &(_, cairn_core::catalog::SettingFault)| Fault {
            name: fault.field.clone(),
            message: fault.message.clone(),
            suggestion: fault.hint.clone(),
        };
        Self {
            workflow_id: plan.workflow_id.clone(),
            ready: settings.missing.is_empty() && settings.faults.is_empty(),
            missing: settings.missing.clone(),
            faults: settings.faults.iter().map(fault).collect(),
            unused: settings.unused.clone(),
        }
    }
}

/// Gives a setting a value.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetValue {
    /// The value, of the kind that the setting asks for.
    pub value: Value,
}

/// Gives a secret a value, which is never shown again.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetSecret {
    /// The value.
    pub value: String,
}

/// A value that was taken away, or was not there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unset {
    /// The setting.
    pub name: String,
    /// Whether there was one.
    pub removed: bool,
}

/// A secret that was set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretSet {
    /// Its name.
    pub name: String,
    /// How often it was set.
    pub version: u64,
}
