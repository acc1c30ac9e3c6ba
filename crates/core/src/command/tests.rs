//! What programs make of their arguments, their input and their variables.

use super::*;

/// A command in which `§` was sent, as a compiler sees it.
fn reading(command: &str) -> (Vec<Word<'_>>, Reading) {
    let word = |text| match str::split_once(text, '§') {
        Some((lead, _)) => {
            Word { lead, says_something: !lead.is_empty(), is_sent: true, ..Word::default() }
        }
        None => Word::literal(text),
    };
    let words: Vec<Word<'_>> = command.split(' ').map(word).collect();
    let reading = read(&words, &Called);
    (words, reading)
}

/// The strictest rule that refuses what was sent.
fn rule(command: &str) -> Option<Rule> {
    let (words, reading) = reading(command);
    reading.refused(&words, false).map(|(_, why)| why.rule).max()
}

#[test]
fn a_module_takes_data_if_it_is_known_to() {
    for (command, wanted) in [
        ("python3 -m json.tool §", None),
        ("python3 -mgzip §", None),
        ("python3 -m own §", Some(Rule::Script)),
        ("python3 -Im own.cli a §", Some(Rule::Script)),
        ("python3 -m §", Some(Rule::Script)),
        ("python3 -m timeit §", Some(Rule::Text)),
        ("python3 -bmidlelib.idle §", Some(Rule::Text)),
    ] {
        assert_eq!(rule(command), wanted, "{command}");
    }
    let input = |command| reading(command).1.input;
    assert_eq!(input("python3 -m json.tool"), Input::Data);
    assert_eq!(input("python3 -m own"), Input::Arguments, "an author can vouch for it");
    assert_eq!(input("python3 -m code"), Input::Program);
}

#[test]
fn a_wrapper_without_a_command_may_start_a_shell() {
    for command in ["chroot /", "unshare", "nsenter -t 1", "sudo -s", "su root"] {
        assert_eq!(reading(command).1.input, Input::Program, "{command}");
    }
    for command in ["systemd-cat -t own", "xargs", "unshare cat", "chroot / cat"] {
        assert_eq!(reading(command).1.input, Input::Data, "{command}");
    }
}

#[test]
fn make_expands_its_variables_wherever_it_is_run() {
    for command in ["make", "timeout 5 gmake -j", "xargs make", "find . -execdir make ;"] {
        assert!(reading(command).1.expands, "{command}");
    }
    for line in ["make", "cd a && make all", "if x; then A=1 make; fi", "(nice make)", "a\nmake"] {
        let words = ["sh", "-c", line].map(Word::literal);
        assert!(read(&words, &Called).expands, "{line}");
    }
    for command in ["echo make", "sh make.sh", "cmake a", "printf make"] {
        assert!(!reading(command).1.expands, "{command}");
    }
    let long = "echo a; ".repeat(1000);
    let words = ["sh", "-c", &long].map(Word::literal);
    assert!(!read(&words, &Called).expands, "long lines are fine");
    assert_eq!(rule("env NAME=§ make"), Some(Rule::Value));
    assert_eq!(rule("env NAME=§ printf make"), None);
}

#[test]
fn letters_of_options_need_no_hyphen() {
    assert_eq!(rule("tar § a b"), Some(Rule::Value));
    assert_eq!(rule("tar c§ a b"), Some(Rule::Value));
    assert_eq!(rule("tar cf a §"), None);
}

#[test]
fn what_a_tool_runs_elsewhere_may_read() {
    for (command, wanted) in [
        ("docker exec -i box psql", Input::Program),
        ("docker exec -i box python3", Input::Program),
        ("docker exec -i box python3 own.py", Input::Data),
        ("kubectl exec -i pod -- cat", Input::Data),
        ("terraform console", Input::Program),
        ("split --filter=sh", Input::Program),
        ("split --filter=gzip", Input::Data),
        ("git -C /srv/node commit -F -", Input::Data),
        ("cargo run -- -", Input::Data),
        ("go run -", Input::Program),
        ("systemd-cat", Input::Data),
    ] {
        assert_eq!(reading(command).1.input, wanted, "{command}");
    }
}

/// Scripts, by what their first lines say.
struct Scripts;

impl Programs for Scripts {
    fn names(&self, name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    fn script(&self, name: &str) -> Option<Vec<String>> {
        let line = match name {
            "own.mk" => "#!/usr/bin/make -f",
            "own.awk" => "#!/usr/bin/awk -f",
            "own.sh" => "#!/bin/sh",
            "own.py" => "#!/usr/bin/env -S uv run --script",
            "loop" => "#!loop",
            _ => return None,
        };
        interpreter_of(line.as_bytes())
    }
}

#[test]
fn a_script_is_read_by_what_its_first_line_names() {
    for (program, wanted, input) in [
        ("own.mk", Some(Rule::Value), Input::Data),
        ("own.awk", None, Input::Data),
        ("own.sh", None, Input::Data),
        ("own.py", None, Input::Data),
        ("none", None, Input::Data),
        // What never ends is no program that anybody knows.
        ("loop", Some(Rule::Name), Input::Program),
    ] {
        let words = [Word::literal(program), Word::sent("x=y", 0)];
        let reading = read(&words, &Scripts);
        let refused = reading.refused(&words, false).map(|(_, why)| why.rule).max();
        assert_eq!((refused, reading.input), (wanted, input), "{program}");
        assert_eq!(reading.expands, program == "own.mk", "{program}");
    }
}

/// What becomes of the input and the variables of a line.
fn line(text: &str) -> (Input, Vec<String>) {
    let words = ["sh", "-c", text].map(Word::literal);
    let reading = read(&words, &Called);
    (reading.input, reading.variables.into_keys().collect())
}

#[test]
fn a_line_reads_what_its_commands_do() {
    for text in [
        "bash",
        "cat | bash",
        "sqlite3 :memory:",
        "python3 -",
        "cd a && exec python3",
        "xargs sh -c",
        "xargs -I{} sh -c 'echo {}'",
        "tee log | sudo -u ada sh",
        "{ cat; } | sh",
        "(cat) | sh",
        "while read l; do sh; done",
        "cat | while true; do sh; done",
        "sh < /dev/stdin",
        "sh <&0",
        ". /dev/stdin",
        "source /dev/fd/0",
        "sh <(cat)",
        "tee >(bash)",
        "eval \"$(cat)\"",
        "bash -c \"$(cat)\"",
        "sh -c \"`cat`\"",
        "x=$(cat); eval $x",
        "while read -r l; do eval \"$l\"; done",
        "read a b; bash -c \"$b\"",
        "for l in $(cat); do $l; done",
        "sh -c 'sh -c bash'",
        "trap bash EXIT; true",
        "if true; then bash; fi",
        "A=b timeout 5 sh",
        "f() { sh; }; f",
        "cat <<EOF | sh\n$(cat)\nEOF",
        "flock /x -c bash",
        "ssh host 'cd a;bash'",
        "mapfile lines; eval \"${lines[0]}\"",
    ] {
        assert_ne!(line(text).0, Input::Data, "{text}");
    }
    for text in [
        "cat",
        "cat > out; echo bash",
        "jq .a | sort",
        "grep -c bash",
        "wc -l < in; bash nodes/own.sh",
        "echo 'a; bash' | cat",
        "bash < nodes/own.sh",
        "bash <<'EOF'\nls\nEOF",
        "echo 'select 1' | sqlite3 a.db",
        "while read -r l; do echo \"$l\"; done",
        "case $x in bash) ls;; sh|zsh) cat;; esac",
        "[ \"$x\" = bash ] && cat",
        "for x in bash sh; do echo $x; done",
        "awk '{ print $1 | \"sort\" }'",
        "bash \"$HOME/own.sh\"",
        "$HOME/bin/own a",
        "# bash",
    ] {
        assert_eq!(line(text).0, Input::Data, "{text}");
    }
}

#[test]
fn a_line_says_which_variables_become_programs() {
    for (text, wanted) in [
        ("eval \"$X\"", &["X"][..]),
        ("bash -c \"$X\"", &["X"]),
        ("\"$X\" a", &["X"]),
        ("ssh host \"ls $X\"", &["X"]),
        ("echo \"$X\" | sh", &["X"]),
        ("printf %s \"${X:-$Y}\" | python3 -", &["X", "Y"]),
        ("sh <<< \"$X\"", &["X"]),
        ("sqlite3 a.db <<EOF\nselect $X\nEOF", &["X"]),
        ("y=$X; eval $y", &["X", "y"]),
        ("tar -I \"$X\" -xf a", &["X"]),
        ("LD_PRELOAD=$X ls", &["X"]),
        ("sh -c 'eval $X'", &["X"]),
        ("{ echo $X; } | sh", &["X"]),
        ("sed -n \"$X\" a", &["X"]),
        ("head -n$X a", &["X"]),
        ("echo \"$X\"; grep -e \"$X\" a; own \"$X\" --x=$X", &[]),
        ("psql -v id=\"$X\" -f a.sql", &[]),
        ("bash nodes/own.sh \"$X\"", &[]),
        ("echo \"$X\" | cat", &[]),
        ("echo '$X' | sh", &[]),
    ] {
        assert_eq!(line(text).1, wanted, "{text}");
    }
    for (text, wanted) in [
        ("eval \"$1\"", Some(Rule::Joined)),
        ("\"$@\"", Some(Rule::Name)),
        ("bash -c \"$0\"", Some(Rule::Text)),
        ("echo \"$1\"", None),
    ] {
        let words = [Word::literal("sh"), Word::literal("-c"), Word::literal(text)];
        let words = [words.as_slice(), &[Word::sent("x", 0)]].concat();
        let refused = read(&words, &Called);
        let refused = refused.refused(&words, false).map(|(_, why)| why.rule).max();
        assert_eq!(refused, wanted, "{text}");
    }
}
