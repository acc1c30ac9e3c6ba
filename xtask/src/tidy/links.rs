//! Relative links in Markdown pages lead somewhere.

use super::{File, Finding};

/// Reports the links that do not resolve. `exists` is asked with paths from the root.
pub(super) fn check(pages: &[File], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in pages {
        for (line, target) in links(&page.text) {
            let what = match resolve(&page.path, target) {
                Some(path) if path.is_empty() || exists(&path) => {
                    let Some(anchor) = dead_anchor(pages, page, &path, target) else { continue };
                    format!("the link leads to #{anchor}, and no heading there is called so")
                }
                Some(path) => format!("the link leads to {path}, which is not there; correct it"),
                None => format!("the link {target} leaves the repository; correct it"),
            };
            findings.push(Finding::new(&page.path, line, what));
        }
    }
    findings
}

/// The anchor of a link to a heading that its page does not have.
fn dead_anchor<'t>(pages: &[File], page: &File, path: &str, target: &'t str) -> Option<&'t str> {
    let (file, anchor) = target.split_once('#')?;
    let to = match file {
        "" => Some(page),
        _ => pages.iter().find(|page| page.path == path),
    };
    let is_there = to.is_none_or(|to| headings(&to.text).any(|heading| heading == anchor));
    (!is_there).then_some(anchor)
}

/// What the headings of a page are called in links: in lower case, with hyphens for blanks and
/// without other signs.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// The relative links of a page, each with its line. Code blocks and code spans hold none.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, None) => return true,
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        false
    });
    prose
        .flat_map(|(index, line)| targets(line).into_iter().map(move |target| (index + 1, target)))
        .filter(|(_, target)| is_relative(target))
}

/// The targets of `[text](target)` and `[name]: target` in one line.
fn targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    // Splitting at backticks leaves code spans at the odd places. A link whose text is a code
    // span keeps its target: the part after the span starts with the mark.
    for prose in line.split('`').step_by(2) {
        let starts = prose.match_indices("](").map(|(at, mark)| at + mark.len());
        targets.extend(starts.filter_map(|start| {
            let rest = prose.get(start..)?;
            let end = if rest.starts_with('<') { rest.find('>')? } else { rest.find(')')? };
            rest.get(..end)
        }));
    }
    if let Some((name, target)) = line.trim_start().split_once("]: ")
        && name.starts_with('[')
    {
        targets.push(target);
    }
    // A title may follow the target, and angle brackets may surround it.
    targets
        .into_iter()
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_start_matches('<').trim_end_matches('>'))
        .collect()
}

/// Whether a target names a file of this repository, or a part of the page: no scheme, no host.
fn is_relative(target: &str) -> bool {
    let scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !scheme && !target.starts_with("//")
}

/// The path from the root that a link in `page` names, or none when it leaves the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks one page in a repository that has `docs/a.md` and `README.md`.
    fn broken(path: &str, text: &str) -> Vec<String> {
        let page = File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&[page], |path| ["docs/a.md", "docs", "README.md"].contains(&path));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_resolve_are_fine() {
        for link in ["a.md", "./a.md#part", "../README.md", "/docs/a.md", "../docs/", ".."] {
            assert_eq!(broken("docs/b.md", &format!("See [it]({link}).")), [""; 0], "{link}");
        }
        assert_eq!(broken("b.md", "[`code`](docs/a.md) [t](<docs/a.md> \"title\")"), [""; 0]);
    }

    #[test]
    fn broken_links_are_reported_with_their_line() {
        assert_eq!(
            broken("docs/b.md", "One.\n\nSee [it](c.md) and ![pic](x.png)."),
            [
                "docs/b.md:3: the link leads to docs/c.md, which is not there; correct it",
                "docs/b.md:3: the link leads to docs/x.png, which is not there; correct it",
            ]
        );
        assert_eq!(broken("b.md", "[`code`](c.md)").len(), 1);
        assert_eq!(broken("b.md", "[name]: c.md \"Title\"").len(), 1);
    }

    #[test]
    fn a_link_out_of_the_repository_is_reported() {
        assert!(broken("docs/b.md", "[x](../../y.md)")[0].contains("leaves the repository"));
    }

    #[test]
    fn an_anchor_is_a_heading_of_its_page() {
        let text = "# A page\n## What `it` may do, now\n[x](#what-it-may-do-now) [y](#a-page)\n";
        assert_eq!(broken("b.md", text), [""; 0]);
        let dead = broken("b.md", "# A\n[x](#b)");
        assert!(dead[0].contains("b.md:2: the link leads to #b"), "{dead:?}");
    }

    #[test]
    fn addresses_and_code_are_left_alone() {
        for text in [
            "[x](https://example.org/y) [x](mailto:a@example.org)",
            "`[x](y.md)`",
            "```\n[x](y.md)\n```",
            "~~~md\n```\n[x](y.md)\n~~~",
        ] {
            assert_eq!(broken("b.md", text), [""; 0], "{text}");
        }
    }
}
