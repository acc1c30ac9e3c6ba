use insta::assert_snapshot;

use crate::env::{SESSION, TestEnv};

#[test]
fn it_goes_on_where_it_ended() {
    let env = TestEnv::new();
    let args = ["dev", "append-loop", "--session", SESSION, "--count", "4", "--blobs"];
    assert_snapshot!(env.run(&args), @r"
    exit 0
    --- stdout
    1
    2
    4
    7
    ");
    assert_snapshot!(env.run(&args), @r"
    exit 0
    --- stdout
    8
    10
    13
    14
    ");
    assert_eq!(env.run(&["session", "verify", SESSION]).code, 0);
}

#[test]
fn bad_arguments_are_refused() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["dev", "append-loop", "--session", "x", "--count", "1"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: invalid value 'x' for '--session <ID>': `x` is not a session id; one looks like `sess_[fresh]`
      → see `cairn dev append-loop --help`
    ");
    assert_snapshot!(env.run(&["dev", "append-loop", "--session", SESSION]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: the following required arguments were not provided: --count <N>
      → see `cairn dev append-loop --help`
    ");
}
