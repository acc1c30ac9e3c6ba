//! What a workflow needs of the place it runs in: settings, secrets and data tables.

use std::collections::BTreeMap;

use cairn_core::canonical::StrictValue;
use cairn_core::plan::{DataTable, EnvField, TableAccess, VisibleWhen};
use cairn_core::text::Slug;

use super::header;
use crate::diagnostic::Code;
use crate::read::{Fields, Spot};
use crate::source::Value;

const FIELDS: &[&str] = &[
    "columns",
    "default",
    "desc",
    "hidden",
    "hosts",
    "locked",
    "name",
    "options",
    "regen",
    "required",
    "source",
    "visible_when",
    "widget",
];

/// The ways in which a form asks for a value.
const WIDGETS: &[(&str, &str)] = &[
    ("checkbox", "checkbox"),
    ("color", "color"),
    ("date", "date"),
    ("datetime", "datetime"),
    ("dropdown", "dropdown"),
    ("email", "email"),
    ("kvlist", "kvlist"),
    ("number", "number"),
    ("picker", "picker"),
    ("secret", "secret"),
    ("text", "text"),
    ("textarea", "textarea"),
    ("url", "url"),
];

/// The settings, by name.
pub(super) fn settings(root: &Fields<'_>) -> BTreeMap<String, EnvField> {
    let mut settings: BTreeMap<String, EnvField> = BTreeMap::new();
    let items = root.get("env").map(|spot| spot.items()).unwrap_or_default();
    for item in &items {
        let Some(field) = setting(item) else { continue };
        if settings.contains_key(&field.name) {
            item.error(Code::DuplicateId, format!("`{}` names two settings", field.name));
        }
        settings.insert(field.name.clone(), field);
    }
    for item in &items {
        visible(item, &settings);
    }
    settings
}

fn setting(item: &Spot<'_>) -> Option<EnvField> {
    let fields = item.fields(FIELDS)?;
    let name = fields.need("name").and_then(|spot| setting_name(&spot));
    let widget = fields.get("widget").map_or(Some("text"), |spot| spot.choice(WIDGETS));
    let widget = widget.unwrap_or("text");
    let options = list_for(&fields, "options", widget == "dropdown", widget);
    let columns = list_for(&fields, "columns", widget == "kvlist", widget);
    let hosts = fields.get("hosts").map(|spot| header::hosts(&spot)).unwrap_or_default();
    if let Some(spot) = fields.get("hosts").filter(|_| widget != "secret") {
        spot.error(Code::Conflict, "only a secret is kept to `hosts`");
    }
    if widget == "picker" {
        fields.need("source");
    }
    let default = fields.get("default");
    let flag = |name: &str| fields.flag(name).unwrap_or_default();
    let field = EnvField {
        columns,
        default: default.as_ref().map(|spot| StrictValue::new(spot.node.to_json())),
        description: fields.text("desc").unwrap_or_default(),
        hidden: flag("hidden"),
        hosts,
        locked: flag("locked"),
        name: name?,
        options,
        regenerate: flag("regen"),
        required: flag("required"),
        secret: widget == "secret",
        source: fields.text("source"),
        r#type: widget.parse().ok()?,
        visible_when: fields.text("visible_when").and_then(|text| condition(&text)),
    };
    if default.is_none_or(|spot| is_of_kind(&spot, &field))
        && let (Some(spot), Some(value)) = (fields.get("default"), &field.default)
        && let Some(why) = field.misfit(&value.0)
    {
        spot.error(Code::InvalidValue, format!("the default of `{}` {why}", field.name));
    }
    Some(field)
}

fn setting_name(spot: &Spot<'_>) -> Option<String> {
    let name = spot.filled()?;
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.chars().all(safe) || name.starts_with(|c: char| c.is_ascii_digit()) || name.len() > 64
    {
        let message = format!("`{name}` cannot name a setting");
        spot.error_hint(Code::InvalidId, message, "use letters, digits and `_`, such as `API_URL`");
        return None;
    }
    Some(name.to_owned())
}

/// A list that one kind of setting needs, and no other takes.
fn list_for(fields: &Fields<'_>, name: &str, wanted: bool, widget: &str) -> Vec<String> {
    match fields.get(name) {
        Some(spot) if !wanted => {
            spot.error(Code::Conflict, format!("a `{widget}` has no `{name}`"));
            Vec::new()
        }
        None if wanted => {
            fields.need(name);
            Vec::new()
        }
        _ => fields.texts(name),
    }
}

/// Whether a default is of the kind that its setting has; says so when it is not.
fn is_of_kind(spot: &Spot<'_>, field: &EnvField) -> bool {
    match (field.r#type.as_str(), &spot.node.value) {
        ("number", Value::Number(_))
        | ("checkbox", Value::Flag(_))
        | ("kvlist" | "picker", Value::List(_)) => return true,
        ("secret", _) => spot.error_hint(
            Code::SecretMisplaced,
            "a secret has no default: the file can be read by others",
            "leave it out, and set the value with `cairn secret set`",
        ),
        ("number", _) => spot.wrong_type("a number"),
        ("checkbox", _) => spot.wrong_type("true or false"),
        ("kvlist" | "picker", _) => spot.wrong_type("a list"),
        // What it could be is told elsewhere to be missing.
        ("dropdown", _) if field.options.is_empty() => {}
        ("dropdown", _) => {
            let words: Vec<(&str, ())> =
                field.options.iter().map(|word| (word.as_str(), ())).collect();
            spot.choice(&words);
        }
        _ => return spot.text().is_some(),
    }
    false
}

fn condition(text: &str) -> Option<VisibleWhen> {
    let (name, value) = text.split_once(':')?;
    Some(VisibleWhen { name: name.trim().to_owned(), value: value.trim().to_owned() })
}

/// Says when a form would look at a setting that is not there.
fn visible(item: &Spot<'_>, settings: &BTreeMap<String, EnvField>) {
    let Some(node) = item.node.get("visible_when") else { return };
    let spot = item.child("visible_when", node);
    let Some(text) = spot.filled() else { return };
    match condition(text) {
        None => spot.error_hint(
            Code::InvalidValue,
            "a setting and its value should stand here",
            "such as `MODE:live`",
        ),
        Some(when) if !settings.contains_key(&when.name) => {
            spot.unknown("setting", &when.name, settings.keys().map(String::as_str));
        }
        Some(_) => {}
    }
}

/// The data tables, by name.
pub(super) fn tables(root: &Fields<'_>) -> Vec<DataTable> {
    let mut tables: BTreeMap<Slug, DataTable> = BTreeMap::new();
    for item in root.get("data_tables").map(|spot| spot.items()).unwrap_or_default() {
        let Some(fields) = item.fields(&["mode", "name", "ref"]) else { continue };
        let name = fields.need("name").and_then(|spot| slug(&spot));
        let target = match fields.get("ref") {
            Some(spot) => slug(&spot),
            None => name.clone(),
        };
        let access = fields.get("mode").map_or(Some(TableAccess::Read), |spot| {
            spot.choice(&[("read", TableAccess::Read), ("read_write", TableAccess::ReadWrite)])
        });
        let (Some(name), Some(target), Some(access)) = (name, target, access) else { continue };
        let table = DataTable { access, name: name.clone(), r#ref: target };
        if tables.insert(name.clone(), table).is_some() {
            item.error(Code::DuplicateId, format!("`{name}` names two tables"));
        }
    }
    tables.into_values().collect()
}

pub(super) fn slug(spot: &Spot<'_>) -> Option<Slug> {
    let slug = spot.filled()?.parse::<Slug>();
    slug.map_err(|error| spot.error(Code::InvalidId, error.to_string())).ok()
}
