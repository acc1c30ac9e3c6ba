//! What is new each time: the time, ids, secrets. The only clock and the only chance.

use std::time::{SystemTime, UNIX_EPOCH};

use cairn_api::error::{Error, Result};
use cairn_core::id::{BundleId, crockford};
use cairn_engine::secrets::Secret;
use cairn_server::tokens::TOKEN_PREFIX;

/// What the admin token starts with, so that it is known when it leaks.
pub(crate) const ADMIN_TOKEN_PREFIX: &str = "cairn_adm_";

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An id for an exported bundle.
pub(crate) fn bundle_id() -> Result<BundleId> {
    Ok(BundleId::mint(now_ms(), random()?))
}

/// A token of 256 random bits.
pub(crate) fn admin_token() -> Result<String> {
    Ok(format!("{ADMIN_TOKEN_PREFIX}{}{}", crockford(random()?), crockford(random()?)))
}

/// A token of 256 random bits, for somebody who may do less than everything.
pub(crate) fn token() -> Result<String> {
    Ok(format!("{TOKEN_PREFIX}{}{}", crockford(random()?), crockford(random()?)))
}

/// A secret of 256 random bits that webhooks of any kind can be signed with. Its letters and digits
/// are base64 as well, which Standard Webhooks wants behind the prefix.
pub(crate) fn webhook_secret() -> Result<Secret> {
    Ok(Secret::new(format!("whsec_{}{}", crockford(random()?), crockford(random()?))))
}

/// The id of a request to a webhook.
pub(crate) fn message_id() -> Result<String> {
    Ok(format!("msg_{}", crockford(random()?)))
}

fn random() -> Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(u128::from_le_bytes(bytes))
}
