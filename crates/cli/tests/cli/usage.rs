use std::fs::OpenOptions;
use std::io;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::env::{SESSION, TestEnv};

#[test]
fn the_version_is_one_line() {
    let outcome = TestEnv::new().run(&["--version"]);
    assert_eq!(outcome.stdout, concat!("cairn ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn help_shows_the_commands() {
    assert_snapshot!(TestEnv::new().run(&["--help"]), @"
    exit 0
    --- stdout
    Durable workflows for AI agents: every step is recorded, and nothing is lost

    Usage: cairn [OPTIONS] <COMMAND>

    Commands:
      audit        See and check the record of who changed what
      completions  Print a script that lets a shell complete commands
      config       See the configuration
      doctor       Check the data directory: file system, sync latency, permissions, free space,
                   versions
      env          Look after the settings that a workflow asks for
      guide        Go through a workflow in the terminal, step by step
      help         Read the guide, the reference, or what an error means [alias: docs]
      key          Look after the keys that sign tokens
      mcp          Lead an agent through workflows, over MCP on standard input and output
      provider     Look at the providers that `agent`, `classify` and `skill` steps ask
      run          Run an automation, and show how it goes
      runs         See, stop, carry on and repeat runs of automations
      secret       Look after secrets, which are kept encrypted
      serve        Start the server, which runs automations
      session      See, check, move and remove sessions
      token        Look after the tokens that open the server
      trigger      See what starts runs, and fire it by hand
      usage        Tell what runs used up of models: by day, workflow, provider and model
      workflow     Begin, see, check and compile workflows

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --home <DIR>          Data directory [default: `cairn` in the XDG data directory] [env:
                                CAIRN_HOME]
          --config <FILE>       Configuration file [default: `cairn/config.toml` in the XDG
                                configuration directory] [env: CAIRN_CONFIG]
          --json                Answer in JSON, errors too
      -q, --quiet               Leave out remarks on standard error
          --no-color            Use no colors; the variable NO_COLOR does the same
          --durability <LEVEL>  Syncs for each commit: one, or with `strict` one more for its witness
                                [env: CAIRN_DURABILITY] [default: normal] [possible values: normal,
                                strict]
          --unsafe-filesystem   Take a data directory on a file system that may lose what it said was
                                safe [env: CAIRN_UNSAFE_FILESYSTEM]

    Examples:
      cairn mcp
      cairn serve
      cairn session list
      cairn doctor
      cairn help graph
    ");
}

#[test]
fn no_command_is_a_question_for_help() {
    let env = TestEnv::new();
    for (args, usage) in [
        (&[][..], "Usage: cairn [OPTIONS] <COMMAND>"),
        (&["session"], "Usage: cairn session [OPTIONS] <COMMAND>"),
        (&["--quiet", "key"], "Usage: cairn key [OPTIONS] <COMMAND>"),
    ] {
        let outcome = env.run(args);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
        assert!(outcome.stderr.contains(usage), "{outcome}");
        assert!(!outcome.stderr.contains("  dev "), "{outcome}");
        // Variables change nothing about it.
        let output = env.command(args).env_remove("CAIRN_HOME").output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), outcome.stderr);
    }
    assert_snapshot!(env.run(&["session", "--json"]), @r#"
    exit 2
    --- stderr
    {"code":"USAGE_INVALID","message":"`cairn session` needs a command: delete, export, gc, import, keep, list, rebind, resume, show, trust, verify","retry":{"kind":"not_retryable"},"suggestion":"see `cairn session --help`"}
    "#);
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let env = TestEnv::new();
    for args in [["--help"], ["--version"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = env.command(&args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("error[OUTPUT_FAILED]"), "{told}");
    }
}

#[test]
fn without_a_word_the_data_is_in_the_xdg_data_directory() {
    let env = TestEnv::new();
    let rotate = |name: &str, value: &str| {
        let mut command = env.command(&["key", "rotate"]);
        let output = command.env_remove("CAIRN_HOME").env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
    };
    rotate("XDG_DATA_HOME", env.path("data").to_str().unwrap());
    assert!(env.path("data/cairn/keys").is_dir());
    rotate("HOME", env.path("user").to_str().unwrap());
    assert!(env.path("user/.local/share/cairn/keys").is_dir());
}

#[test]
fn wrong_command_lines_are_told_in_words_and_in_json() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["sesion", "list"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: unrecognized subcommand 'sesion'
      → a similar subcommand exists: 'session'
    ");
    assert_snapshot!(env.run(&["session", "list", "--jsn"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: unexpected argument '--jsn' found
      → a similar argument exists: '--json'
    ");
    assert_snapshot!(env.run(&["session", "list", "extra", "--json"]), @r#"
    exit 2
    --- stderr
    {"code":"USAGE_INVALID","message":"unexpected argument 'extra' found","retry":{"kind":"not_retryable"},"suggestion":"see `cairn session list --help`"}
    "#);
    assert_snapshot!(env.run(&["--home"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: a value is required for '--home <DIR>' but none was supplied
      → see `cairn --help`
    ");
}

#[test]
fn whoever_closes_the_pipe_has_read_enough() {
    let env = TestEnv::with_session();
    for args in [
        &["session", "list"][..],
        &["session", "show", SESSION],
        &["session", "export", SESSION],
        &["completions", "bash"],
        &["--help"],
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = env.command(args).stdout(Stdio::from(writer)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{args:?}");
    }
}

#[test]
fn colors_come_only_where_they_are_wanted() {
    let env = TestEnv::with_session();
    let forced = |args: &[&str]| {
        let output = env.command(args).env("CLICOLOR_FORCE", "1").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(forced(&["session", "list"]).contains("\x1b["));
    assert!(!forced(&["session", "list", "--no-color"]).contains("\x1b["));
    assert!(!env.run(&["session", "list"]).stdout.contains("\x1b["));
}
