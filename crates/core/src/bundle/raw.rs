//! A bundle as text: its parts are told apart, and read one by one, so that no more of it is in
//! memory than one of them at a time.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Error, Integrity, Producer, Salvage, invalid};
use crate::id::{BundleId, SessionId};

/// How many items a list may have: more than fit when each is an event.
const ITEMS_MAX: usize = 1_000_000;
/// How many blobs of one kind there may be.
const MEMBERS_MAX: usize = 100_000;

/// A bundle whose contents are not read yet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawBundle<'t> {
    pub(super) bundle_id: BundleId,
    #[serde(rename = "bundleSchemaVersion")]
    _bundle_schema_version: u64,
    #[serde(rename = "exportedAt")]
    _exported_at: String,
    pub(super) integrity: Integrity,
    #[serde(rename = "producer")]
    _producer: Producer,
    #[serde(default)]
    pub(super) salvage: Option<Salvage>,
    #[serde(borrow)]
    pub(super) session: RawContents<'t>,
}

/// Contents that are not read yet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawContents<'t> {
    #[serde(borrow, default)]
    pub(super) blobs: Option<&'t RawValue>,
    #[serde(borrow)]
    pub(super) events: &'t RawValue,
    #[serde(borrow)]
    pub(super) manifest: &'t RawValue,
    #[serde(borrow)]
    pub(super) pinned_workflows: &'t RawValue,
    pub(super) session_id: SessionId,
    #[serde(borrow)]
    pub(super) snapshots: &'t RawValue,
}

/// The version that a text says it is of, and nothing else of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Versioned {
    #[serde(default, deserialize_with = "said")]
    pub(super) bundle_schema_version: Option<Box<RawValue>>,
}

/// What stands there, `null` included.
fn said<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(input).map(Some)
}

/// Hands every item of a list over, as text and in order.
pub(super) fn items<'t>(
    list: &'t RawValue,
    take: &mut dyn FnMut(&'t str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut count = 0;
    let mut take = |_: &str, item| {
        count += 1;
        if count > ITEMS_MAX {
            return Err(invalid(format_args!("a list has more than {ITEMS_MAX} items")));
        }
        take(item)
    };
    parts(list, &mut take, false)
}

/// Hands every member of an object over, as text and in order. A name stands once.
pub(super) fn members<'t>(
    object: &'t RawValue,
    take: &mut dyn FnMut(&str, &'t str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    parts(
        object,
        &mut |name, member| {
            if names.len() >= MEMBERS_MAX {
                return Err(invalid(format_args!("there are more than {MEMBERS_MAX} blobs")));
            }
            if !names.insert(name.to_owned()) {
                return Err(invalid(format_args!("the key `{name}` stands twice")));
            }
            take(name, member)
        },
        true,
    )
}

fn parts<'t>(of: &'t RawValue, take: Take<'_, 't>, object: bool) -> Result<(), Error> {
    let mut refused = None;
    let mut input = serde_json::Deserializer::from_str(of.get());
    let parts = Parts { take, refused: &mut refused };
    let read = if object { input.deserialize_map(parts) } else { input.deserialize_seq(parts) };
    match refused {
        Some(error) => Err(error),
        None => read.map_err(invalid),
    }
}

/// What is done with a part.
type Take<'f, 't> = &'f mut dyn FnMut(&str, &'t str) -> Result<(), Error>;

/// Goes through the parts of a value.
struct Parts<'f, 't> {
    take: Take<'f, 't>,
    /// Why it stopped; serde carries only text.
    refused: &'f mut Option<Error>,
}

impl<'t> Parts<'_, 't> {
    fn part<E: serde::de::Error>(&mut self, name: &str, part: &'t RawValue) -> Result<(), E> {
        (self.take)(name, part.get()).map_err(|error| {
            let told = E::custom(&error);
            *self.refused = Some(error);
            told
        })
    }
}

impl<'t> Visitor<'t> for Parts<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'t RawValue>()? {
            self.part("", item)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some((name, member)) = members.next_entry::<String, &'t RawValue>()? {
            self.part(&name, member)?;
        }
        Ok(())
    }
}
