//! Command lines with data in them: where it stays data, and where it would become a program.

use super::*;

/// What is wrong with a step that runs a command, of which `X` is something that was sent.
fn wrong(command: &str, more: &str) -> String {
    let command = command.replace('X', "{{ event.payload.x }}");
    let more = more.replace('X', "{{ event.payload.x }}");
    let node = format!("  nodes:\n    - {{ id: a, type: shell, command: {command}{more} }}\n");
    with_nodes(&node).err().unwrap_or_default()
}

#[test]
fn data_that_would_become_program_text_in_any_command() {
    for command in [
        r#"[bash, -c, "X"]"#,
        r#"[timeout, '5', bash, -c, "X"]"#,
        r#"[timeout, -k, '3', '5', "X"]"#,
        r#"[timeout, "X", df]"#,
        r#"[env, bash, -c, "X"]"#,
        r#"[env, -i, "A=X", bash, -c, "X"]"#,
        r#"[env, "LD_PRELOAD=X", df]"#,
        r#"[env, -S, "bash -c X"]"#,
        r#"[env, "--split-string=X"]"#,
        r#"[sudo, -u, root, node, --eval, "X"]"#,
        r#"[sudo, -u, root, "X"]"#,
        r#"[nice, -n, '5', sh, -c, "X"]"#,
        r#"[nice, "X"]"#,
        r#"[nohup, "X"]"#,
        r#"[nohup, sh, -c, "X"]"#,
        r#"[stdbuf, -oL, sh, -c, "X"]"#,
        r#"[stdbuf, -o, L, "X"]"#,
        r#"[sudo, timeout, '5', env, A=b, python3, -c, "X"]"#,
        r#"[xargs, '-0', sh, -c, "X"]"#,
        r#"[xargs, "X"]"#,
        r#"[flock, /tmp/lock, -c, "X"]"#,
        r#"[ssh, host, "df X"]"#,
        r#"[ssh, "X", df]"#,
        r#"[su, -c, "X"]"#,
        r#"[watch, "X"]"#,
        r#"[bash, -xc, "X"]"#,
        r#"[bash, -eo, pipefail, -c, "X"]"#,
        r#"[bash, -c, -x, "X"]"#,
        r#"[bash, -ceu, "X"]"#,
        r#"[bash, "-cX"]"#,
        r#"[bash, "X"]"#,
        r#"[bash, --, "X"]"#,
        r#"[bash, -x, "X"]"#,
        r#"[bash, +x, "X"]"#,
        r#"[bash, "X", "X"]"#,
        r#"[bash, "X", nodes/check.sh]"#,
        r#"[bash, --rcfile, "X", nodes/check.sh]"#,
        r#"[bash, "{{ '-c' }}", "X"]"#,
        r#"[bash, "{{ env.URL }}", "X"]"#,
        r#"["{{ 'bash' }}", -c, "X"]"#,
        r#"["{{ env.URL }}", -c, "X"]"#,
        r#"["{{ env.URL }}", "X", "X"]"#,
        r#"["{{ event.payload.y | one_of('ls', 'bash') }}", -c, "X"]"#,
        r#"[/usr/local/bin/bash5.2, -c, "X"]"#,
        r#"[BASH.exe, -c, "X"]"#,
        r#"[fish, -C, "X"]"#,
        r#"[python3.12, -c, "X"]"#,
        r#"[python3, -Sc, "X"]"#,
        r#"[python3, -W, ignore, "X"]"#,
        r#"[python3, -m, "X"]"#,
        r#"[perl, -ne, "X"]"#,
        r#"[perl, -Mfeature=say, -E, "X"]"#,
        r#"[perl, -e, "print 1", "X"]"#,
        r#"[perl, -ne, print, --, "X"]"#,
        r#"[perl, -I, lib, "X"]"#,
        r#"[ruby, -r, json, -e, "X"]"#,
        r#"[ruby, -r, json, "X"]"#,
        r#"[node, -p, "X"]"#,
        r#"[node, -pe, "X"]"#,
        r#"[node, "--eval=X"]"#,
        r#"[node, "--print=X"]"#,
        r#"[node, --require, ./a.js, "X"]"#,
        r#"[node, -e, "1", "X"]"#,
        r#"[deno, eval, "X"]"#,
        r#"[deno, run, "X"]"#,
        r#"[php, -r, "X"]"#,
        r#"[php, -f, "X"]"#,
        r#"[lua5.4, -e, "X"]"#,
        r#"[psql, -c, "SELECT X"]"#,
        r#"[psql, shop, "--command=SELECT X"]"#,
        r#"[mysql, shop, -e, "X"]"#,
        r#"[sqlite3, shop.db, "SELECT X"]"#,
        r#"[awk, "X"]"#,
        r#"[gawk, -F, ",", "{ print X }", data.csv]"#,
        r#"[gawk, -f, nodes/check.sh, "X"]"#,
        r#"[sed, "s/a/X/", file]"#,
        r#"[sed, -e, "s/a/X/", file]"#,
        r#"[sed, "s/a/b/", "X"]"#,
        r#"[jq, "X"]"#,
        r#"[find, ., -exec, "X", ;]"#,
        r#"[find, ., -exec, sh, -c, "X", ;]"#,
        r#"[find, ., -name, a, -ok, sh, -c, "X", ;]"#,
        r#"[find, "X", -name, a]"#,
        r#"[find, ., -name, a, "X"]"#,
        r#"[pwsh, -Command, "X"]"#,
        r#"[docker, exec, box, bash, -c, "X"]"#,
        r#"[kubectl, exec, pod, --, sh, -c, "X"]"#,
        r#"[docker, run, image, python3, -c, "X"]"#,
        r#"[mytool, /usr/bin/node, "X"]"#,
        r#"[kubectl, node, bash, -c, "X"]"#,
        r#"[own, "{{ event.payload.x | matches('.*') }}", bash, -c, "{{ env.URL }}"]"#,
        r#"["{{ event.payload.x | matches('.*') }}"]"#,
        r#"["{{ event.payload.x | matches('(?s).+') }}"]"#,
    ] {
        let wrong = wrong(command, "");
        assert!(wrong.contains("error[tainted_value]"), "{command}: {wrong}");
    }
}

#[test]
fn data_that_an_interpreter_would_read_as_its_program() {
    for command in [
        "[bash]",
        "[bash, -s, a]",
        "[bash, -x]",
        "[python3, '-']",
        "[env, A=b, python3]",
        "[node]",
        "[xargs, bash, -c]",
        "[xargs, '-I{}', sh, -c, 'echo {}']",
    ] {
        let wrong = wrong(command, ", stdin: 'X'");
        assert!(wrong.contains("/stdin: `{{…}}` cannot stand"), "{command}: {wrong}");
    }
    for command in ["[bash, nodes/check.sh]", "[python3, -c, 'print(1)']", "[cat]", "[jq, .a]"] {
        assert_eq!(wrong(command, ", stdin: 'X'"), "", "{command}");
    }
}

#[test]
fn data_that_stays_data_in_a_command() {
    for command in [
        r#"[df, "X"]"#,
        r#"[git, commit, -m, "X"]"#,
        r#"[git, log, "--author=X"]"#,
        r#"[curl, -d, "X", "https://example.org"]"#,
        r#"[grep, -e, "X", -r, .]"#,
        r#"[kubectl, describe, node, "X"]"#,
        r#"[echo, perl, "X"]"#,
        r#"[bash, nodes/check.sh, "X"]"#,
        r#"[bash, -x, nodes/check.sh, "X", -c, "X"]"#,
        r#"[bash, -eu, -o, pipefail, nodes/check.sh, "X"]"#,
        r#"[bash, -c, 'echo "$1"', _, "X"]"#,
        r#"[bash, --, nodes/check.sh, "X"]"#,
        r#"[bash, "{{ env.URL }}/check.sh", "X"]"#,
        r#"[bash, "{{ event.payload.x | slug }}"]"#,
        r#"[timeout, '5', df, "X"]"#,
        r#"[timeout, -k, '3', "{{ event.payload.x | int }}", df, "X"]"#,
        r#"[timeout, --signal=KILL, '5', bash, nodes/check.sh, "X"]"#,
        r#"[env, "NAME=X", df, "X"]"#,
        r#"[sudo, -u, root, df, "X"]"#,
        r#"[sudo, -nu, root, --, df, "X"]"#,
        r#"[nice, -n, '5', df, "X"]"#,
        r#"[nice, '-5', df, "X"]"#,
        r#"[stdbuf, -oL, df, "X"]"#,
        r#"[xargs, -n, '1', df, "X"]"#,
        r#"[python3, nodes/check.sh, "X"]"#,
        r#"[python3, -u, -W, ignore, nodes/check.sh, "X"]"#,
        r#"[python3, -m, json.tool, "X"]"#,
        r#"[python3, -c, "print(1)", "X"]"#,
        r#"[node, --no-warnings, nodes/check.sh, "X"]"#,
        r#"[node, -e, "1", --, "X"]"#,
        r#"[deno, run, nodes/check.sh, "X"]"#,
        r#"[perl, -e, "print 1", --, "X"]"#,
        r#"[ssh, "{{ env.URL }}", df, -h]"#,
        r#"[psql, -v, "id=X", -f, nodes/errors.sql]"#,
        r#"[awk, -v, "x=X", "{ print x }", data.csv]"#,
        r#"[awk, "{ print $1 }", "X"]"#,
        r#"[sed, -n, p, --, "X"]"#,
        r#"[jq, --arg, x, "X", ".[$x]"]"#,
        r#"[find, ., -name, "X"]"#,
        r#"[find, ., -name, a, -exec, grep, -e, "X", "{}", ;]"#,
        r#"[pwsh, -File, nodes/check.sh, "X"]"#,
        r#"["{{ event.payload.y | one_of('ls', 'df') }}", "X"]"#,
        r#"["{{ event.payload.y | matches('[a-z]+') }}", run, "X"]"#,
    ] {
        assert_eq!(wrong(command, ""), "", "{command}");
    }
}

#[test]
fn a_form_that_takes_any_text_vouches_for_nothing() {
    let with = |pattern: &str| {
        let head = "name: Test\ntriggers:\n  - type: manual\n    input:";
        let input = format!("{{ x: {{ type: string, pattern: '{pattern}' }} }}");
        compile(&format!(
            "{head} {input}\ngraph:\n  nodes:\n    - {{ id: a, type: shell, command: ['{{{{ event.payload.x }}}}'] }}\n"
        ))
    };
    for pattern in ["^.*$", "^.+$", "^[^ ]*|x$", "^(?m)[a-z]+$", r"^[\s\S]*$", "[a-z]+"] {
        let found = lines(&with(pattern).unwrap_err());
        assert!(found.contains("cannot name a program"), "{pattern}: {found}");
    }
    let fine = with("^[a-z]+$").map_err(|wrong| lines(&wrong));
    assert!(fine.is_ok(), "{fine:?}");
}

#[test]
fn a_plan_says_what_was_sent() {
    let plan = with_nodes(
        "  nodes:\n    - { id: a, type: shell, command: [df, -h, '{{ event.payload.x }}', '--a={{ event.payload.y }}', '{{ env.URL }}', '{{ event.payload.n | int }}'], stdin: '{{ event.payload.z }}' }\n",
    )
    .unwrap();
    assert_eq!(
        setting(&plan, "a", "sent"),
        &json!({"arguments": [{"at": 2, "lead": 0}, {"at": 3, "lead": 4}], "stdin": true})
    );
    let plan = with_nodes(
        "  nodes:\n    - { id: a, type: shell, command: [df, '{{ env.URL }}'], stdin: x }\n",
    );
    assert_eq!(setting(&plan.unwrap(), "a", "sent"), &json!(null));
    let own = with_nodes("  nodes:\n    - { id: a, type: shell, command: [df], sent: {} }\n");
    assert!(own.unwrap_err().contains("the field `sent` is not known here"));
}

#[test]
fn only_what_a_program_honours_keeps_an_option_away() {
    for command in
        [r#"[df, "-X"]"#, r#"[df, "--X"]"#, r#"[df, "-vX"]"#, r#"[df, "+X"]"#, r#"[own, --, "-X"]"#]
    {
        let wrong = wrong(command, "");
        assert!(wrong.contains("cannot be an option"), "{command}: {wrong}");
    }
    for command in [r#"[df, "--x=X"]"#, r#"[df, --, "-X"]"#, r#"[df, "a-X"]"#] {
        assert_eq!(wrong(command, ""), "", "{command}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn a_command_of_commands_is_read_in_bounded_time() {
    for (first, word) in [
        ("xargs", "xargs"),
        ("env", "env"),
        ("own", "node"),
        ("find", "'-exec', find"),
        ("sudo", "timeout, '5'"),
    ] {
        let words = format!("{first}, {}", vec![word; 500].join(", "));
        let begun = std::time::Instant::now();
        let found = wrong(&format!("[{words}, 'X']"), ", stdin: 'X'");
        assert!(found.contains("tainted_value"), "{word}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{word}");
    }
}

#[test]
fn a_step_that_trusts_its_arguments_is_reported() {
    let text = "name: Test\ngraph:\n  nodes:\n    - { id: a, type: shell, command: [tar, '{{ event.payload.x }}', -I, '{{ event.payload.x }}'], trusts_arguments: true }\n";
    let warnings = lines(&compile(text).unwrap().warnings);
    assert!(warnings.contains("warning[arguments_trusted]"), "{warnings}");
    assert!(warnings.contains("the step `a` takes whatever a run brings"), "{warnings}");
    let untrusting = compile(&text.replace("true", "false")).unwrap_err();
    assert!(lines(&untrusting).contains("error[tainted_value]"));
}

#[test]
fn a_variable_has_a_name_that_variables_can_have() {
    for (name, fine) in
        [("HOST", true), ("_x1", true), ("1A", false), ("'A B'", false), ("'A=B'", false)]
    {
        let nodes =
            format!("  nodes:\n    - {{id: a, type: shell, command: [x], env: {{{name}: y}}}}\n");
        let told = with_nodes(&nodes).err().unwrap_or_default();
        assert_eq!(told.is_empty(), fine, "{name}: {told}");
        assert!(fine || told.contains("invalid_id"), "{name}: {told}");
    }
}
