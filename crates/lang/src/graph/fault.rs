//! What is wrong with a text that should be a template.

use cairn_core::expression::{Fault, FaultKind};

use super::schema;
use crate::diagnostic::Code;
use crate::read::meant;

/// How many names are listed where none is near.
const LISTED_MAX: usize = 12;

/// What is wrong with a part of a text: where, what, and what to do.
pub(super) type Wrong = (usize, Code, String, Option<String>);

/// A fault as it is told to people.
pub(super) fn told(fault: Fault) -> Wrong {
    let Fault { at, kind, message, hint } = fault;
    match kind {
        FaultKind::Arguments => (at, Code::InvalidValue, message, hint),
        FaultKind::Malformed => (at, Code::Malformed, message, hint),
        FaultKind::TooDeep => (at, Code::TooDeep, message, hint),
        FaultKind::Unsupported => (at, Code::Unsupported, message, hint),
        FaultKind::Unknown { given, known } => {
            // A long list says less than the page that explains what is in it.
            let listed = || match known.len() <= LISTED_MAX {
                true => schema::known_are(&known),
                false => Some("`cairn help reference/filters` lists them".to_owned()),
            };
            let hint = meant(&given, &known).or_else(listed);
            (at, Code::UnknownName, message, hint)
        }
    }
}
