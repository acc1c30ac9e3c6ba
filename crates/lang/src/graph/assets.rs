//! Files that belong to a workflow: prompts, queries and scripts beside it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cairn_core::catalog::Takes;
use cairn_core::digest::Digest;
use cairn_core::plan::Asset;

use super::Build;
use super::flow::Flow;
use super::reference::Written;
use crate::diagnostic::Code;
use crate::read::Spot;
use crate::source::BYTES_MAX;

/// The folder whose files all belong to the workflow, since a script may use another.
const FOLDER: &str = "nodes/";

/// The files of a workflow, by their path from its folder.
#[derive(Default)]
pub(super) struct Assets {
    found: RefCell<BTreeMap<String, Digest>>,
}

impl Assets {
    pub(super) fn into_list(self) -> Vec<Asset> {
        let files = self.found.into_inner().into_iter();
        files.map(|(path, sha256)| Asset { path, sha256 }).collect()
    }
}

impl Build<'_> {
    /// Takes in every file of the workflow's `nodes` folder.
    pub(super) fn folder_assets(&self, spot: &Spot<'_>) {
        let folder = format!("{}{FOLDER}", self.folder);
        let below = self
            .tree
            .files
            .range(folder.clone()..)
            .take_while(|(path, _)| path.starts_with(&folder));
        for (path, bytes) in below {
            let inner = path.get(self.folder.len()..).unwrap_or_default();
            within_limit(spot, inner, bytes);
            self.assets.found.borrow_mut().insert(inner.to_owned(), Digest::of(bytes));
        }
    }

    /// The path of a file that is there.
    pub(super) fn asset(&self, spot: &Spot<'_>) -> Option<String> {
        let path = spot.filled()?;
        let bytes = self.file(spot, path)?.1;
        self.assets.found.borrow_mut().insert(path.to_owned(), Digest::of(bytes));
        Some(path.to_owned())
    }

    /// The bytes of a file, if it is there.
    pub(super) fn bytes_of(&self, path: &str) -> Option<&[u8]> {
        self.tree.files.get(&format!("{}{path}", self.folder)).map(Vec::as_slice)
    }

    fn file<'s>(&'s self, spot: &Spot<'_>, path: &str) -> Option<(&'s str, &'s [u8])> {
        let odd = |part: &str| part.is_empty() || part == "." || part == "..";
        if path.contains("{{") {
            spot.error_hint(
                Code::TaintedValue,
                "`{{…}}` cannot stand in a path",
                "write the path itself",
            );
            return None;
        }
        if path.contains(['\\', '\0']) || path.starts_with('~') || path.split('/').any(odd) {
            let message = format!("`{path}` leads out of the workflow's folder");
            spot.error_hint(Code::InvalidValue, message, "keep the file under `nodes/`");
            return None;
        }
        let whole = format!("{}{path}", self.folder);
        let found = self.tree.files.get_key_value(&whole);
        found.iter().for_each(|(_, bytes)| within_limit(spot, path, bytes));
        if found.is_none() {
            let inside = |other: &'s String| other.strip_prefix(self.folder);
            spot.unknown("file", path, self.tree.files.keys().filter_map(inside));
        }
        found.map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The text of a file, which stands for a setting. It is kept as a setting, and its
    /// expressions are checked where they are written.
    pub(super) fn asset_text(
        &self,
        here: usize,
        flow: &Flow,
        spot: &Spot<'_>,
        takes: Takes,
    ) -> Option<String> {
        let path = spot.filled()?;
        let (file, bytes) = self.file(spot, path)?;
        let Ok(text) = std::str::from_utf8(bytes) else {
            spot.error(Code::Malformed, format!("`{path}` is not UTF-8"));
            return None;
        };
        self.assets.found.borrow_mut().insert(path.to_owned(), Digest::of(bytes));
        if !self.is_within_limits(spot, text) {
            return None;
        }
        let there = spot.elsewhere(file, spot.node);
        self.text(here, flow, &Written { spot: &there, text, is_file: true }, takes)
    }
}

/// Whoever loads files stops at the limit, so a longer one would not be known whole.
fn within_limit(spot: &Spot<'_>, path: &str, bytes: &[u8]) {
    if bytes.len() > BYTES_MAX {
        let message = format!("`{path}` has more than {BYTES_MAX} bytes");
        spot.error_hint(Code::TooLong, message, "keep it elsewhere, and let a step fetch it");
    }
}
