//! Workflow ids: `namespace.name`, who may define which, and what an old id becomes.

use cairn_core::digest::Digest;
use cairn_core::text::is_workflow_id;

/// The namespace that belongs to the program.
pub const RESERVED: &str = "wr";

/// How long a workflow id may be.
pub const LENGTH_MAX: usize = 64;

/// Where a workflow comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SourceKind {
    /// The program itself, or a directory that the operator declared as such.
    Bundled,
    /// The user's own directory.
    User,
    /// The project's directory.
    Project,
    /// A repository or another machine.
    Remote,
    /// A plugin.
    Plugin,
}

impl SourceKind {
    /// Its stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::User => "user",
            Self::Project => "project",
            Self::Remote => "remote",
            Self::Plugin => "plugin",
        }
    }

    /// The namespace of its workflows that have none.
    #[must_use]
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::Bundled => RESERVED,
            Self::User => "user",
            Self::Project => "project",
            Self::Remote | Self::Plugin => "repo",
        }
    }
}

/// Whether an id has a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdStatus {
    /// It has.
    Namespaced,
    /// It is of the old form, which still runs.
    Legacy,
}

impl IdStatus {
    /// Its stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespaced => "namespaced",
            Self::Legacy => "legacy",
        }
    }
}

/// Why an id cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidId {
    /// It has the wrong form.
    #[error(
        "a workflow id is `namespace.name`: lower-case letters, digits, `_` and `-`, each part beginning with a letter, at most {LENGTH_MAX} characters"
    )]
    Form,
    /// It belongs to the program.
    #[error("ids that begin with `wr.` are reserved for bundled workflows")]
    Reserved,
}

/// Whether a workflow from this kind of source may have this id, and of which form it is.
pub fn check(id: &str, kind: SourceKind) -> Result<IdStatus, InvalidId> {
    if id.len() > LENGTH_MAX || !is_workflow_id(id) {
        return Err(InvalidId::Form);
    }
    match namespace(id) {
        None => Ok(IdStatus::Legacy),
        Some(RESERVED) if kind != SourceKind::Bundled => Err(InvalidId::Reserved),
        Some(_) => Ok(IdStatus::Namespaced),
    }
}

/// The id that a workflow with an old or foreign id should get: the same on every machine.
///
/// `taken` says which ids are in use; a clash gets four digits of the source's digest.
#[must_use]
pub fn suggest(id: &str, kind: SourceKind, source: &[u8], taken: &[&str]) -> String {
    let name = id.rsplit('.').next().unwrap_or_default().to_lowercase();
    let mut name: String =
        name.chars().map(|c| if c.is_ascii() && is_safe(c as u8) { c } else { '_' }).collect();
    name = name.replace('-', "_");
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert(0, 'w');
    }
    let suggested = format!("{}.{name}", kind.namespace());
    if taken.contains(&suggested.as_str()) {
        let digest: String = Digest::of(source).hex().chars().take(4).collect();
        return format!("{suggested}_{digest}");
    }
    suggested
}

/// The namespace of an id, if it has one.
#[must_use]
pub fn namespace(id: &str) -> Option<&str> {
    id.split_once('.').map(|(namespace, _)| namespace)
}

/// Whether a text is a UUID, which programs give files and people never say.
#[must_use]
pub fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(is_hex)
}

/// Whether a text can name a step or a loop.
#[must_use]
pub fn is_step_id(text: &str) -> bool {
    (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_safe)
}

/// The step id that is nearest to a text.
#[must_use]
pub fn suggest_step_id(text: &str) -> String {
    let safe = |c: char| c.is_ascii() && is_safe(c as u8);
    let lower = text.trim().to_lowercase();
    let name: String = lower.chars().map(|c| if safe(c) { c } else { '-' }).collect();
    let name: String = name.trim_matches('-').chars().take(LENGTH_MAX).collect();
    if name.is_empty() { "step".to_owned() } else { name }
}

const fn is_safe(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_exactly_one_dot() {
        let check = |id| check(id, SourceKind::Project);
        assert_eq!(check("project.auth_review-2"), Ok(IdStatus::Namespaced));
        assert_eq!(check("simple-batch"), Ok(IdStatus::Legacy));
        for bad in ["", "a.b.c", ".a", "a.", "A.b", "a.1b", "a b", "ä.b", &"a".repeat(65)] {
            assert_eq!(check(bad), Err(InvalidId::Form), "{bad}");
        }
    }

    #[test]
    fn reserved_ids_are_for_bundled_sources() {
        assert_eq!(check("wr.review", SourceKind::Bundled), Ok(IdStatus::Namespaced));
        for kind in [SourceKind::User, SourceKind::Project, SourceKind::Remote, SourceKind::Plugin]
        {
            assert_eq!(check("wr.review", kind), Err(InvalidId::Reserved));
        }
    }

    #[test]
    fn a_uuid_is_told_from_a_name() {
        assert!(is_uuid("0193e2b4-6c20-7a5f-8000-0123456789ab"));
        assert!(is_uuid("A193E2B4-6C20-7A5F-8000-0123456789AB"));
        for name in ["support-triage", "0193e2b4", "g193e2b4-6c20-7a5f-8000-0123456789ab", ""] {
            assert!(!is_uuid(name), "{name}");
        }
    }

    #[test]
    fn suggestions_follow_from_the_source() {
        let suggest = |id, kind, taken: &[&str]| super::suggest(id, kind, b"source", taken);
        assert_eq!(suggest("My-Flow", SourceKind::User, &[]), "user.my_flow");
        assert_eq!(suggest("bug", SourceKind::Project, &[]), "project.bug");
        assert_eq!(suggest("bug", SourceKind::Plugin, &[]), "repo.bug");
        assert_eq!(suggest("wr.bug", SourceKind::Project, &[]), "project.bug");
        assert_eq!(suggest("2fa", SourceKind::Project, &[]), "project.w2fa");
        assert_eq!(suggest("bug", SourceKind::Project, &["project.bug"]), "project.bug_41cf");
        assert_eq!(suggest_step_id("Phase 1: Plan"), "phase-1--plan");
    }
}
