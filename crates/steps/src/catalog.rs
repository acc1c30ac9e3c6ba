//! Every step type there is.

use std::sync::Arc;

use cairn_engine::performer::Performers;

use crate::end::End;
use crate::log::Log;
use crate::shell::Shell;
use crate::transform::Transform;

/// Every step type, in alphabetical order.
#[must_use]
pub fn all() -> Performers {
    Performers::new(vec![Arc::new(End), Arc::new(Log), Arc::new(Shell), Arc::new(Transform)])
}
