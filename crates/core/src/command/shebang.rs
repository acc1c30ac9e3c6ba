//! Scripts: the first line of a file that says what runs it.

/// How much of a first line counts, as for Linux.
const LINE_MAX: usize = 256;

/// The words that a script is started with, before its own path: the interpreter, and what stands
/// behind it. A file that is no script has none.
#[must_use]
pub fn interpreter_of(bytes: &[u8]) -> Option<Vec<String>> {
    let line = bytes.get(..bytes.len().min(LINE_MAX))?.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let (program, rest) = match line.trim().split_once([' ', '\t']) {
        Some((program, rest)) => (program, rest.trim()),
        None => (line.trim(), ""),
    };
    if program.is_empty() {
        return None;
    }
    let mut words = vec![program.to_owned()];
    // What stands there is one word, which `env -S` takes apart.
    let splits = program.rsplit('/').next() == Some("env");
    let taken_apart = ["-S", "-vS", "--split-string="].iter().find_map(|o| rest.strip_prefix(o));
    match taken_apart.filter(|_| splits) {
        Some(rest) => words.extend(rest.split_whitespace().map(str::to_owned)),
        None if rest.is_empty() => {}
        None => words.push(rest.to_owned()),
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_an_interpreter_and_at_most_one_word() {
        for (file, words) in [
            ("#!/bin/sh\necho", Some(&["/bin/sh"][..])),
            ("#! /usr/bin/make -f \nall:", Some(&["/usr/bin/make", "-f"])),
            ("#!/usr/bin/awk -f -v", Some(&["/usr/bin/awk", "-f -v"])),
            ("#!/usr/bin/env python3\r\n", Some(&["/usr/bin/env", "python3"])),
            ("#!/usr/bin/env -S make -f\n", Some(&["/usr/bin/env", "make", "-f"])),
            ("#!\n", None),
            ("echo #!/bin/sh", None),
            ("", None),
        ] {
            let wanted = words.map(|words| words.iter().map(|w| (*w).to_owned()).collect());
            assert_eq!(interpreter_of(file.as_bytes()), wanted, "{file:?}");
        }
        assert!(interpreter_of(&[b"#!/".as_slice(), &[b'a'; 1_000]].concat()).is_some());
    }
}
