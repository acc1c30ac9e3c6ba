//! `cairn help`: pages without a network.

use crate::env::TestEnv;

#[test]
fn the_guide_errors_and_commands_are_explained_offline() {
    let env = TestEnv::new();
    let topics = env.run(&["help"]);
    for topic in ["graph ", "triggers ", "reference/filters "] {
        assert!(topics.stdout.contains(topic), "{topics}");
    }
    assert!(!topics.stdout.contains("RUN_BUSY"), "{topics}");
    for (words, told) in [
        (&["help", "graph"][..], "# Automation graphs"),
        (&["docs", "filters"], "# Filters"),
        (&["help", "run_busy"], "RUN_BUSY"),
        (&["help", "runs", "fork"], "cairn runs fork"),
        (&["help", "errors"], "# "),
    ] {
        let shown = env.run(words);
        assert_eq!(shown.code, 0, "{shown}");
        assert!(shown.stdout.contains(told), "{words:?}: {shown}");
    }
    insta::assert_snapshot!(env.run(&["help", "grpah"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: there is no topic `grpah`
      → did you mean `cairn help graph`?
    ");
}
