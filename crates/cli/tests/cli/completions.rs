use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn every_shell_gets_a_script() {
    let env = TestEnv::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let outcome = env.run(&["completions", shell]);
        assert_eq!(outcome.code, 0, "{shell}");
        assert!(outcome.stdout.contains("cairn"), "{shell}");
    }
    assert!(env.is_unused());
}

#[test]
fn other_shells_are_refused() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["completions"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: <SHELL>
      → see `cairn completions --help`
    ");
    assert_snapshot!(env.run(&["completions", "command.com"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: invalid value 'command.com' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh]
      → see `cairn completions --help`
    ");
}
