//! JSON values as PostgreSQL takes them: as text, of whatever type the statement wants.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, private::BytesMut, to_sql_checked};

type Error = Box<dyn std::error::Error + Sync + Send>;

/// A value that is bound to a placeholder.
#[derive(Debug)]
pub(super) struct Arg<'a>(pub(super) &'a Value);

impl ToSql for Arg<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Error> {
        let Some(text) = text(ty, self.0)? else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// A value as the database reads it; none for null.
fn text(ty: &Type, value: &Value) -> Result<Option<String>, Error> {
    if let Kind::Domain(inner) = ty.kind() {
        return text(inner, value);
    }
    let written = match (ty.kind(), value) {
        (_, Value::Null) => return Ok(None),
        (Kind::Array(inner), Value::Array(items)) => list(inner, items)?,
        _ if *ty == Type::JSON || *ty == Type::JSONB => value.to_string(),
        (_, Value::String(text)) if *ty == Type::BYTEA => {
            let bytes = STANDARD.decode(text).map_err(|_| "bytes are written in base64")?;
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\\x{hex}")
        }
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    };
    if written.contains('\0') {
        return Err("a text holds a NUL character, which PostgreSQL cannot keep".into());
    }
    Ok(Some(written))
}

fn list(inner: &Type, items: &[Value]) -> Result<String, Error> {
    let item = |item: &Value| match item {
        Value::Array(items) if !matches!(*inner, Type::JSON | Type::JSONB) => list(inner, items),
        item => Ok(match text(inner, item)? {
            None => "NULL".to_owned(),
            Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        }),
    };
    let items: Result<Vec<String>, Error> = items.iter().map(item).collect();
    Ok(format!("{{{}}}", items?.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_their_type_is_read() {
        for (ty, value, wanted) in [
            (Type::INT8, json!(7), "7"),
            (Type::NUMERIC, json!("1.10"), "1.10"),
            (Type::BOOL, json!(true), "true"),
            (Type::TEXT, json!("a'b"), "a'b"),
            (Type::JSONB, json!("a"), "\"a\""),
            (Type::JSONB, json!({"a": [1]}), "{\"a\":[1]}"),
            (Type::TEXT, json!({"a": 1}), "{\"a\":1}"),
            (Type::BYTEA, json!("AP8="), "\\x00ff"),
            (
                Type::TEXT_ARRAY,
                json!(["a\"b", "c\\d", null, "NULL", ""]),
                r#"{"a\"b","c\\d",NULL,"NULL",""}"#,
            ),
            (Type::INT4_ARRAY, json!([[1, 2], [3, 4]]), r#"{{"1","2"},{"3","4"}}"#),
        ] {
            assert_eq!(text(&ty, &value).unwrap().as_deref(), Some(wanted), "{value}");
        }
        assert_eq!(text(&Type::TEXT, &Value::Null).unwrap(), None);
        assert!(text(&Type::BYTEA, &json!("no base64!")).is_err());
        assert!(text(&Type::TEXT, &json!("a\0b")).is_err());
    }
}
