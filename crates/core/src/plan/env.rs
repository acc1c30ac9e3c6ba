//! What a workflow needs of the place it runs in: settings, secrets and data tables.

use serde::{Deserialize, Serialize};

use crate::canonical::StrictValue;
use crate::text::Slug;

/// A setting that the workflow asks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvField {
    /// The columns of a table of values, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Its value when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<StrictValue>,
    /// What it is for.
    pub description: String,
    /// Whether forms leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The hosts that a secret may be sent to; without any, to all that a step may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Whether it stays as it was first set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// Its name.
    pub name: String,
    /// The values to choose from, when there are some.
    pub options: Vec<String>,
    /// Whether a new value can be made at the press of a button.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regenerate: bool,
    /// Whether a run needs it.
    pub required: bool,
    /// Whether it must never be shown.
    pub secret: bool,
    /// Where the values to pick from come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The kind of value, as a form shows it.
    pub r#type: Slug,
    /// When a form shows it; without one it always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible_when: Option<VisibleWhen>,
}

/// A setting and the value that it must have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct VisibleWhen {
    pub name: String,
    pub value: String,
}

/// A data table that steps use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataTable {
    /// What steps may do with it.
    pub access: TableAccess,
    /// What steps call it.
    pub name: Slug,
    /// Which table it is.
    pub r#ref: Slug,
}

/// What steps may do with a data table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TableAccess {
    Read,
    ReadWrite,
}
