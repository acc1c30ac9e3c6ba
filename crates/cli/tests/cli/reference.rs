use crate::env::TestEnv;

#[test]
fn the_reference_names_what_workflows_may_use() {
    let outcome = TestEnv::new().run(&["reference", "builtins"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    for wanted in ["### `wr.contracts.loop_control`", "### `shell`", "| `wr.quick-task` |"] {
        assert!(outcome.stdout.contains(wanted), "{wanted}");
    }
}

#[test]
fn the_reference_names_every_command_and_exit_code() {
    let env = TestEnv::new();
    let outcome = env.run(&["reference"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    for wanted in [
        "## `cairn completions`",
        "## `cairn doctor`",
        "## `cairn key rotate`",
        "## `cairn mcp`",
        "## `cairn serve`",
        "## `cairn session delete`",
        "## `cairn session export`",
        "## `cairn session gc`",
        "## `cairn session import`",
        "## `cairn session keep`",
        "## `cairn session list`",
        "## `cairn session show`",
        "## `cairn session verify`",
        "## `cairn workflow compile`",
        "## `cairn workflow list`",
        "## `cairn workflow show`",
        "## `cairn workflow validate`",
        "| 130 |",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}");
    }
    assert!(!outcome.stdout.contains("append-loop"));
    assert!(!outcome.stdout.contains(env.home().to_str().unwrap()));
    assert!(env.is_unused());
}
