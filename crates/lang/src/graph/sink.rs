//! Places where data must not become something else.

use cairn_core::capabilities::{self, Host};
use cairn_core::command::Unfollowed;
use cairn_core::expression::{Call, Expr, Piece, Template, untrusted};
use cairn_core::hosts;
use serde_json::Value;

use super::Build;
use super::reference::Written;
use crate::diagnostic::Code;

/// How a whole address begins.
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// A form that a value is held to; without a pattern it is a number.
struct Form {
    at: usize,
    pattern: Option<String>,
}

/// Whether an address goes on with a domain of somebody.
fn is_domain(text: &str) -> bool {
    let host = text.split(['/', '?', '#', ':']).next().unwrap_or_default();
    host.starts_with('.') && host.matches('.').count() >= 2
}

impl Build<'_> {
    /// An address: data is refused as its host, and encoded behind it.
    pub(super) fn address(
        &self,
        here: usize,
        written: &Written<'_, '_>,
        template: Template,
    ) -> Template {
        self.whole_address(written, &template);
        self.host(here, written, &template);
        self.within_hosts(written, &template);
        let piece = |(place, piece): (usize, Piece)| match piece {
            // What comes first is or begins the host.
            Piece::Value { value, trims } if place > 0 => {
                Piece::Value { value: self.encoded(here, value), trims }
            }
            piece => piece,
        };
        Template { pieces: template.pieces.into_iter().enumerate().map(piece).collect() }
    }

    /// What a model is told: what somebody sent stands between marks, so that the step can tell
    /// it apart from what the workflow says.
    pub(super) fn prompt(&self, here: usize, template: Template) -> Template {
        let piece = |piece: Piece| match piece {
            Piece::Value { value, trims } => {
                Piece::Value { value: self.marked(here, value), trims }
            }
            piece => piece,
        };
        Template { pieces: template.pieces.into_iter().map(piece).collect() }
    }

    fn marked(&self, here: usize, value: Expr) -> Expr {
        if let Expr::Filter { call, .. } = &value
            && call.name == untrusted::FILTER
        {
            return value;
        }
        let flows = value.flows();
        match flows.iter().find(|flow| self.is_tainted(here, flow)).map(|flow| flow.at) {
            Some(at) => {
                let (name, arguments, named) =
                    (untrusted::FILTER.to_owned(), Vec::new(), Vec::new());
                Expr::Filter { of: Box::new(value), call: Call { name, at, arguments, named } }
            }
            None => value,
        }
    }

    /// Data so that it stays within the segment or the parameter that it is written in, unless
    /// the workflow says how it is written.
    fn encoded(&self, here: usize, value: Expr) -> Expr {
        if let Expr::Filter { call, .. } = &value
            && ["raw_path", "urlencode"].contains(&call.name.as_str())
        {
            return value;
        }
        let flows = value.flows();
        let Some(at) = flows.iter().find(|flow| self.is_tainted(here, flow)).map(|flow| flow.at)
        else {
            return value;
        };
        let (name, arguments, named) = ("urlencode".to_owned(), Vec::new(), Vec::new());
        Expr::Filter { of: Box::new(value), call: Call { name, at, arguments, named } }
    }

    /// Refuses an address that is written out and does not say how its host is asked.
    fn whole_address(&self, written: &Written<'_, '_>, template: &Template) {
        let Some(Piece::Text(lead)) = template.pieces.first() else { return };
        let lead = lead.trim_start();
        let lower = lead.to_ascii_lowercase();
        let begins = |scheme: &str| {
            lower.starts_with(scheme) || template.pieces.len() > 1 && scheme.starts_with(&lower)
        };
        if SCHEMES.into_iter().any(begins) {
            return;
        }
        if let Some((scheme, _)) = lead.split_once("://") {
            let message = format!("`{scheme}` addresses are not used, only `http` and `https`");
            let hint = "write `https://` and the host in front of the path";
            return written.spot.error_hint(Code::InvalidValue, message, hint);
        }
        let whole = match lead.starts_with('/') {
            true => format!("https://HOST/{}", written.text.trim().trim_start_matches('/')),
            false => format!("https://{}", written.text.trim()),
        };
        let message = "the address does not say how its host is asked";
        written.spot.error_hint(Code::InvalidValue, message, format!("write `{whole}`"));
    }

    /// Refuses what somebody sent as the host of an address; says whether it did.
    fn refuse_host(&self, here: usize, written: &Written<'_, '_>, value: &Expr) -> bool {
        let flows = value.flows();
        let Some(sent) = flows.iter().find(|reference| self.is_tainted(here, reference)) else {
            return false;
        };
        let message = format!(
            "what `{}` brings was sent by somebody, and cannot choose the host of an address",
            sent.root
        );
        let hint = "write the domain out, as in `https://{{ … | slug }}.example.com/`, take the host \
                    from `env`, or let it be one of a few: `| one_of(\"a.example.com\", …)`";
        let at = self.position(written, sent.at);
        written.spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
        true
    }

    /// Refuses data as the host of an address.
    fn host(&self, here: usize, written: &Written<'_, '_>, template: &Template) {
        // The host ends at the first `/`, `?` or `#` behind the scheme. When a setting gives
        // the beginning, it gives the scheme too.
        let mut scheme = false;
        for (place, piece) in template.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => {
                    let rest = text.split_once("://").map(|(_, rest)| rest);
                    let behind = rest.unwrap_or(text);
                    scheme |= rest.is_some();
                    if scheme && behind.contains(['/', '?', '#']) {
                        return;
                    }
                }
                // Of which branch the host comes, nobody knows here.
                Piece::Tag { .. } => {
                    let message = "`{% %}` cannot stand before the path of an address";
                    let hint = "write the scheme and the host out";
                    written.spot.error_hint(Code::Unsupported, message, hint);
                    return;
                }
                Piece::Value { value, .. } => {
                    let follows = match template.pieces.get(place + 1) {
                        Some(Piece::Text(text)) => is_domain(text),
                        _ => false,
                    };
                    // One mistake is told once: a form that is too wide matters for values that
                    // are held to one.
                    if !self.refuse_host(here, written, value) {
                        self.any_host(written, value, follows);
                    }
                    for secret in value.flows().iter().filter(|flow| flow.root == "secret") {
                        let message = "a secret cannot be the host of an address: names are looked up in the open";
                        let hint = "write the host out, or take it from `env`".to_owned();
                        let at = self.position(written, secret.at);
                        written.spot.error_at(at, Code::SecretMisplaced, message, Some(hint));
                    }
                    scheme = true;
                }
            }
        }
    }

    /// Refuses what is held to a form that hosts of any domain have.
    fn any_host(&self, written: &Written<'_, '_>, value: &Expr, domain_follows: bool) {
        for Form { at, pattern } in self.forms(value) {
            let keeps = match &pattern {
                Some(pattern) => hosts::keeps_to_domains(pattern, domain_follows),
                // A number is an address, too.
                None => domain_follows,
            };
            if !keeps {
                let what = pattern.map_or("a number".to_owned(), |pattern| format!("`{pattern}`"));
                let message = format!("{what} lets the host of an address be any");
                let hint = "write the domain out, in the address or in the pattern, as in \
                            `^[a-z]+\\.example\\.com$`, or use `one_of(…)`";
                let at = self.position(written, at);
                written.spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
            }
        }
    }

    /// The patterns and numbers that what somebody sent is held to in an expression.
    fn forms(&self, value: &Expr) -> Vec<Form> {
        let literal = |call: &Call| match call.arguments.first() {
            Some(Expr::Literal(Value::String(pattern))) => Some(pattern.clone()),
            _ => None,
        };
        match value {
            Expr::Filter { call, .. } => match call.name.as_str() {
                "matches" => vec![Form { at: call.at, pattern: literal(call) }],
                "float" | "int" | "length" => vec![Form { at: call.at, pattern: None }],
                "bool" | "one_of" | "slug" => Vec::new(),
                _ => self.declared_forms(value),
            },
            _ => self.declared_forms(value),
        }
    }

    /// The same of what triggers declare.
    fn declared_forms(&self, value: &Expr) -> Vec<Form> {
        let events = value.flows().into_iter().filter(|reference| reference.root == "event");
        let forms = events.flat_map(|reference| {
            let of = |schema: &Value| {
                let is_listed = schema.get("enum").or(schema.get("const")).is_some();
                let pattern = schema.get("pattern").and_then(Value::as_str).map(str::to_owned);
                (!is_listed).then_some(Form { at: reference.at, pattern })
            };
            self.declared(&reference).into_iter().filter_map(of).collect::<Vec<_>>()
        });
        forms.collect()
    }

    /// Refuses a host that is written out and is none of those the workflow limits itself to.
    fn within_hosts(&self, written: &Written<'_, '_>, template: &Template) {
        let Some(hosts) = &self.hosts else { return };
        let Host::Literal(authority) = capabilities::host(&template.to_string()) else { return };
        let name = capabilities::without_port(&authority);
        if hosts::any_fits(hosts, name) {
            return;
        }
        let message = format!("`{name}` is none of the `hosts` that the workflow may ask");
        let hint = format!("add `{name}` to `hosts`, or ask one of those there");
        written.spot.error_hint(Code::HostDenied, message, hint);
    }

    /// Refuses what somebody sent where a line for a shell does what it is not followed through.
    pub(super) fn refuse_unfollowed(
        &self,
        here: usize,
        written: &Written<'_, '_>,
        expr: &Expr,
        found: &Unfollowed,
    ) {
        let near = match found.near.as_str() {
            "" => String::new(),
            near => format!(" (`{near}`)"),
        };
        for reference in expr.flows().iter().filter(|reference| self.is_tainted(here, reference)) {
            let at = self.position(written, reference.at);
            let message = format!(
                "this line {}{near}, and what `{}` brings, which was sent by somebody, cannot be \
                 followed through it",
                found.what, reference.root
            );
            let hint = "put the line into a script file of the workflow and pass the value as an \
                        argument, use the list form, or say `trusts_arguments: true`";
            written.spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
        }
    }

    /// Refuses what somebody sent, unless the expression validates it.
    pub(super) fn refuse(&self, here: usize, written: &Written<'_, '_>, expr: &Expr, what: &str) {
        for reference in expr.flows().iter().filter(|reference| self.is_tainted(here, reference)) {
            let at = self.position(written, reference.at);
            let message =
                format!("what `{}` brings was sent by somebody, and cannot {what}", reference.root);
            let hint =
                "write it out, take it from `env`, or pass it through `one_of(…)`, `slug` or `int`";
            written.spot.error_at(at, Code::TaintedValue, message, Some(hint.to_owned()));
        }
    }
}
