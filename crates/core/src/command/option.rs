//! How options are written: in full, shorter, or together behind one hyphen.

/// Whether an option is one that is known, by its name without its value.
///
/// Behind two hyphens most programs take the beginning of a name for the whole, some take `_`
/// for a hyphen, and those of MySQL take `loose-` before it.
pub(super) fn is_named(written: &str, known: &str) -> bool {
    let known = known.trim_start_matches('-').as_bytes();
    let long = written.trim_start_matches('-');
    let long = long.strip_prefix("loose-").unwrap_or(long).as_bytes();
    let same = |(one, other): (&u8, &u8)| one == other || (*one == b'_' && *other == b'-');
    let begins = long.len() <= known.len() && long.iter().zip(known).all(same);
    let is_whole = long.len() == known.len();
    known.len() > 1 && !long.is_empty() && begins && (is_whole || written.starts_with("--"))
}

/// Whether an option is one of these, whatever stands behind it: letters such as `-S`, which may
/// stand behind others that take no value, and names such as `--split-string`.
pub(super) fn is_one_of(written: &str, known: &[&str], valued: &str) -> bool {
    if written.starts_with("--") {
        let name = written.split_once('=').map_or(written, |(name, _)| name);
        return known.iter().any(|known| known.starts_with("--") && is_named(name, known));
    }
    let is_letter =
        |letter: char| known.iter().any(|known| known.len() == 2 && known.ends_with(letter));
    let letters = written.trim_start_matches('-').chars();
    let mut ends = letters.skip_while(|letter| !is_letter(*letter) && !valued.contains(*letter));
    ends.next().is_some_and(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_by_its_beginning() {
        for written in ["--file", "--fil", "--f", "-file"] {
            assert!(is_named(written, "file"), "{written}");
        }
        for written in ["--files", "--", "-fil", "-f", "-", "--xfile"] {
            assert!(!is_named(written, "file"), "{written}");
        }
        assert!(is_named("--init_comm", "init-command"));
        assert!(is_named("--loose-init-command", "init-command"));
    }

    #[test]
    fn letters_stand_together() {
        for written in ["-S", "-Sls", "-iS", "-viSls", "--split-string=ls", "--spl"] {
            assert!(is_one_of(written, &["-S", "--split-string"], "Cu"), "{written}");
        }
        for written in ["-i", "-uS", "-CS", "--ignore", "--", "-"] {
            assert!(!is_one_of(written, &["-S", "--split-string"], "Cu"), "{written}");
        }
    }
}
