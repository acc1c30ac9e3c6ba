//! `cairn token create`: makes a token and shows it, once.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::token::{GoodFor, Scope, TokenKind};
use cairn_engine::rights::Limit;
use cairn_server::tokens::Wanted;
use serde_json::json;

use crate::config::Config;
use crate::{fresh, home, somebody, sources};

/// Make a token, and show it once
///
/// Scopes: read (look at workflows, runs and sessions), run (start and steer runs), edit (change workflows), approve (answer what runs ask), secrets:write (set secrets), admin (everything).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn token create --name ci --scope read --scope run\n  cairn token create --name board --scope read --workflow triage --expires 30d\n  cairn token create --name coder --agent --scope read --scope run"
)]
pub(crate) struct Args {
    /// Whose it is; runs and the audit record call its holder by this name
    #[arg(long, value_name = "NAME")]
    name: String,

    /// It is for an agent that a model drives: it can allow read, run and edit, and never what is for people
    #[arg(long)]
    agent: bool,

    /// What it allows; may be repeated
    #[arg(long, value_name = "SCOPE", required = true)]
    scope: Vec<Scope>,

    /// A workflow that it is for, and no other: its id, the name part of it, or its file; may be repeated
    #[arg(long, value_name = "ID|FILE")]
    workflow: Vec<String>,

    /// How long it is good: a number with s, m, h or d, or `never`
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = span_ms)]
    expires: Span,
}

/// How many days a token is good at most, unless it is for good.
const DAYS_MAX: u64 = GoodFor::MAX_SEC / 86_400;

/// How long a token is good; none is for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span(Option<u64>);

fn span_ms(text: &str) -> std::result::Result<Span, String> {
    if text == "never" {
        return Ok(Span(None));
    }
    let wrong = || "write a number with s, m, h or d, such as `90d`, or `never`".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let unit_ms: u64 = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(wrong()),
    };
    let number = text.strip_suffix(unit).and_then(|number| number.parse::<u64>().ok());
    let number = number.filter(|number| *number > 0).ok_or_else(wrong)?;
    let long = || format!("that is too long: {DAYS_MAX}d at most, or `never`");
    let span = number.checked_mul(unit_ms).filter(|ms| *ms <= DAYS_MAX * 86_400_000);
    span.map(|ms| Span(Some(ms))).ok_or_else(long)
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let workflows =
        args.workflow.iter().map(|given| Ok(Limit::to(sources::find(given, config)?.identity())));
    let workflows = workflows.collect::<Result<Vec<_>>>()?;
    let (now_ms, text) = (fresh::now_ms(), fresh::token()?);
    let expires_ms = args.expires.0.map(|span| now_ms.saturating_add(span));
    let kind = if args.agent { TokenKind::Agent } else { TokenKind::Person };
    let name = (args.name.clone(), kind);
    let wanted = Wanted::new(name, args.scope.clone(), workflows, expires_ms)?;
    let token = home::with_store(config, async |store| {
        super::tokens(store).create(&somebody::changes(store), &text, wanted, now_ms).await
    })?;
    if config.output.json {
        config.output.object(&json!({"token": text, "tokenId": token.token_id, "name": token.name, "kind": token.kind, "scopes": token.scopes, "workflows": token.workflows, "expiresAt": token.expires_at}))?;
        return Ok(Exit::Success);
    }
    config.output.line(&text)?;
    let until = token.expires_at.as_deref().unwrap_or("it is revoked");
    config.output.remark(&format!("{}: shown once; good until {until}", token.token_id));
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_a_unit() {
        assert_eq!(span_ms("90d"), Ok(Span(Some(90 * 86_400_000))));
        assert_eq!(span_ms("1s"), Ok(Span(Some(1_000))));
        assert_eq!(span_ms("never"), Ok(Span(None)));
        assert_eq!(span_ms("36500d"), Ok(Span(Some(DAYS_MAX * 86_400_000))));
        for text in ["36501d", "213503982335d", "18446744073709551615s", "99999999999999999999s"] {
            assert!(span_ms(text).is_err(), "{text}");
        }
        assert!(span_ms("213503982335d").unwrap_err().contains("too long"));
        for text in ["", "d", "0d", "-1d", "1w", "90", "1.5h", "99999999999999999999d", "5é"] {
            assert!(span_ms(text).is_err(), "{text}");
        }
    }
}
