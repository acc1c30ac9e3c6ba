//! Where traces go, by the names that every program has for it in the environment.

use cairn_api::error::{Error, Result};
use cairn_server::Telemetry;

use super::{Origin, Setting, text};

/// The collector in general, below which there is a path for traces.
pub(super) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The collector of traces.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// Where traces go: where the environment says, or else the file.
pub(super) fn read(endpoint: Option<&Setting<String>>) -> Result<Option<Telemetry>> {
    let off = text("OTEL_SDK_DISABLED").is_some_and(|off| off.eq_ignore_ascii_case("true"))
        || text("OTEL_TRACES_EXPORTER").is_some_and(|name| name == "none");
    if off {
        return Ok(None);
    }
    let (telemetry, name, given) = match (text(TRACES_ENDPOINT), endpoint) {
        (Some(given), _) => (Telemetry::exactly(&given), TRACES_ENDPOINT.to_owned(), given),
        (None, Some(Setting { value, origin })) => {
            let name = match origin {
                Origin::Environment(name) => (*name).to_owned(),
                origin => format!("`telemetry.endpoint` in {origin}"),
            };
            (Telemetry::at(value), name, value.clone())
        }
        (None, None) => return Ok(None),
    };
    let telemetry = telemetry.ok_or_else(|| Error::Usage {
        message: format!("{name} is `{given}`, and should be an address of the web"),
        suggestion: "give an address such as http://127.0.0.1:4318".to_owned(),
    })?;
    speaks()?;
    let telemetry =
        headers()?.into_iter().fold(telemetry, |to, (name, value)| to.with_header(name, value));
    Ok(Some(match text("OTEL_SERVICE_NAME") {
        Some(name) => telemetry.named(name),
        None => telemetry,
    }))
}

/// Refuses a way to speak that is not known.
fn speaks() -> Result<()> {
    let names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
    let asked = names.into_iter().find_map(|name| Some((name, text(name)?)));
    match asked {
        Some((name, protocol)) if !protocol.starts_with("http/") => Err(Error::Usage {
            message: format!("{name} is `{protocol}`, and traces are sent over HTTP only"),
            suggestion: format!("set {name} to http/json, and the endpoint to the port for it"),
        }),
        _ => Ok(()),
    }
}

/// The headers that a list of `name=value` with commas between says.
fn headers() -> Result<Vec<(String, String)>> {
    let names = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
    let Some((variable, list)) = names.into_iter().find_map(|name| Some((name, text(name)?)))
    else {
        return Ok(Vec::new());
    };
    let header = |pair: &str| {
        // The value may be a key, so it is not repeated.
        let unread = || Error::Usage {
            message: format!("{variable} has a part that is no `name=value`"),
            suggestion: format!("set {variable} to name=value, with commas between"),
        };
        let (name, value) = pair.split_once('=').ok_or_else(unread)?;
        let value = unescaped(value.trim()).ok_or_else(unread)?;
        Ok((name.trim().to_ascii_lowercase(), value))
    };
    list.split(',').filter(|pair| !pair.trim().is_empty()).map(header).collect()
}

/// A value whose special characters are escaped as in an address.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unescaped_or_refused() {
        assert_eq!(unescaped("Bearer%20a%3Db").as_deref(), Some("Bearer a=b"));
        assert_eq!(unescaped("plain").as_deref(), Some("plain"));
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(unescaped(bad), None, "{bad}");
        }
    }
}
