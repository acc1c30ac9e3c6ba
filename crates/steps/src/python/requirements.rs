//! What a workflow may ask for: packages of one version, each file with its digest.

use cairn_engine::performer::Failed;

/// Says what is wrong with a file of requirements, before anything is installed.
pub(super) fn check(path: &str, bytes: &[u8]) -> Result<(), Failed> {
    let wrong = |line: usize, what: &str| {
        Failed::new("PYTHON_REQUIREMENTS", format!("`{path}`, line {line}: {what}"))
    };
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(1, "this is not text"))?;
    for (line, entry) in entries(text) {
        check_entry(&entry).map_err(|what| wrong(line, &what))?;
    }
    Ok(())
}

/// The entries with their lines: a backslash at the end of a line joins it with the next.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let (start, mut entry) = open.take().unwrap_or((number + 1, String::new()));
        let comment = line.find('#').filter(|at| {
            *at == 0 || line.get(..*at).is_some_and(|before| before.ends_with([' ', '\t']))
        });
        let line = comment.map_or(line, |at| line.get(..at).unwrap_or_default()).trim_end();
        match line.strip_suffix('\\') {
            Some(part) => {
                entry.push_str(part);
                open = Some((start, entry));
            }
            None => {
                entry.push_str(line);
                found.push((start, entry));
            }
        }
    }
    found.extend(open);
    found.retain(|(_, entry)| !entry.trim().is_empty());
    found
}

fn check_entry(entry: &str) -> Result<(), String> {
    let entry = entry.trim();
    let first = entry.split_ascii_whitespace().next().unwrap_or_default();
    if entry.starts_with('-') {
        return Err(format!("`{first}` is an option; only packages may stand here"));
    }
    if entry.contains("://") || entry.contains('@') || first.starts_with(['.', '/']) {
        return Err(format!("`{first}` is from elsewhere; only packages of the index may be used"));
    }
    let (package, hashes) = entry.split_once("--hash").unwrap_or((entry, ""));
    let (name, version) = package.split_once("==").ok_or_else(|| {
        format!("`{first}` needs one version, as in `{first}==1.2.3 --hash=sha256:…`")
    })?;
    let name = name.trim();
    let version = version.split(';').next().unwrap_or_default().trim();
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    if !plain(name, "-_.[],") || !plain(version, ".-_+!") {
        return Err(format!("`{}` is no package with one version", package.trim()));
    }
    if hashes.is_empty() {
        return Err(format!("`{name}` has no digest; add `--hash=sha256:…` for each of its files"));
    }
    for hash in hashes.split("--hash") {
        let hex = hash.trim().strip_prefix("=sha256:").or(hash.trim().strip_prefix("sha256:"));
        let fine =
            hex.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if !fine {
            return Err(format!(
                "`{name}`: `--hash{}` is not `--hash=sha256:` and 64 digits",
                hash.trim_end()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        check("r.txt", text.as_bytes()).map_or_else(|failed| failed.message, |()| "fine".to_owned())
    }

    #[test]
    fn packages_with_a_version_and_digests_are_fine() {
        let digest = "a".repeat(64);
        for text in [
            String::new(),
            "# nothing\n\n".to_owned(),
            format!("idna==3.10 --hash=sha256:{digest}\n"),
            format!(
                "idna==3.10 \\\n    --hash=sha256:{digest} \\\n    --hash=sha256:{digest}  # two\n"
            ),
            format!("requests[socks]==2.32.0 ; python_version > '3.8' --hash=sha256:{digest}"),
        ] {
            assert_eq!(fault(&text), "fine", "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_line() {
        let digest = "a".repeat(64);
        for (text, said) in [
            ("idna==3.10", "line 1: `idna` has no digest"),
            ("\nidna", "line 2: `idna` needs one version"),
            ("idna>=3 --hash=sha256:x", "needs one version"),
            ("git+https://example.com/x.git", "is from elsewhere"),
            ("x @ https://example.com/x.whl", "is from elsewhere"),
            ("./local", "is from elsewhere"),
            ("--index-url https://example.com", "is an option"),
            ("-i https://example.com", "is an option"),
            ("-r other.txt", "is an option"),
            ("-e .", "is an option"),
            ("idna==3.10 --hash=sha256:abc", "64 digits"),
            ("idna==3.10 --hash=md5:abc", "64 digits"),
            ("idna==* --hash=sha256:x", "is no package"),
            ("idna==3 \\\n --index-url x", "is no package"),
        ] {
            assert!(fault(text).contains(said), "{text}: {}", fault(text));
        }
        let hidden = format!("idna==3 --hash=sha256:{digest} --index-url=x");
        assert!(fault(&hidden).contains("64 digits"), "{}", fault(&hidden));
        let joined = format!("idna==3 --hash=sha256:{digest} \\\n--trusted-host x\n");
        assert!(fault(&joined).contains("line 1"), "{}", fault(&joined));
        assert!(check("r.txt", b"\xff").is_err());
    }
}
