//! `cairn env`: what a workflow asks for, and what it gets.

use std::fs;

use insta::assert_snapshot;

use crate::env::TestEnv;

const WORKFLOW: &str = "
name: Triage
env:
  - { name: CHANNEL, desc: Where to post, default: '#support' }
  - { name: LIMIT, widget: number, required: true }
  - { name: AUTO, widget: checkbox, default: true }
  - { name: MODE, widget: dropdown, options: [pager, slack], default: slack }
  - { name: PAGER, widget: url, required: true, visible_when: 'MODE:pager' }
  - { name: TOKEN, widget: secret, required: true }
  - { name: SEED, hidden: true }
graph:
  nodes: [{ id: a, type: end }]
";

pub(crate) fn with_workflow() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("workflows/triage")).unwrap();
    fs::write(env.path("workflows/triage/workflow.yaml"), WORKFLOW).unwrap();
    env
}

#[test]
fn what_is_set_is_listed_with_where_it_is_from() {
    let env = with_workflow();
    assert_snapshot!(env.run(&["env", "list", "triage"]), @r"
    exit 0
    --- stdout
    NAME     KIND      VALUE     FROM
    AUTO     checkbox  true      default
    CHANNEL  text      #support  default
    LIMIT    number    missing   -
    MODE     dropdown  slack     default
    TOKEN    secret    missing   -
    ");
    assert_snapshot!(env.run(&["env", "set", "triage", "LIMIT", "500"]), @r"
    exit 0
    --- stdout
    set LIMIT in [tmp]/home/env/@[place].yaml
    ");
    assert_snapshot!(env.run(&["env", "set", "triage", "CHANNEL", "#ops", "--beside", "--json"]), @r##"
    exit 0
    --- stdout
    {"name":"CHANNEL","path":"[tmp]/workflows/triage/env.yaml","value":"#ops"}
    "##);
    env.run(&["env", "set", "triage", "MODE", "pager"]);
    env.run_with_input(&["secret", "set", "TOKEN", "--workflow", "triage"], b"CANARY-7f3a91c2d4\n");
    assert_snapshot!(env.run(&["env", "list", "triage", "--all"]), @r"
    exit 0
    --- stdout
    NAME     KIND      VALUE    FROM
    AUTO     checkbox  true     default
    CHANNEL  text      #ops     beside
    LIMIT    number    500      own
    MODE     dropdown  pager    own
    PAGER    url       missing  -
    SEED     text      -        -
    TOKEN    secret    ***      vault
    ");
    let listed = env.run(&["env", "list", "triage", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["items"][1]["value"], serde_json::json!("#ops"));
    assert_eq!(
        fs::read_to_string(env.path("workflows/triage/env.yaml")).unwrap(),
        "CHANNEL: \"#ops\"\n"
    );
    assert_snapshot!(env.run(&["env", "unset", "triage", "CHANNEL"]), @r"
    exit 0
    --- stdout
    CHANNEL had no value
    ");
    assert_snapshot!(env.run(&["env", "unset", "triage", "CHANNEL", "--beside"]), @r"
    exit 0
    --- stdout
    unset CHANNEL
    ");
}

#[test]
fn a_check_says_what_a_run_lacks() {
    let env = with_workflow();
    fs::write(env.path("workflows/triage/env.yaml"), "AUTO: 'yes'\nOLD: 1\nTOKEN: abc\n").unwrap();
    assert_snapshot!(env.run(&["env", "check", "triage"]), @r"
    exit 3
    --- stdout
    `AUTO` is not true or false
      → correct the value there with `cairn env set --beside`
    `TOKEN` is a secret, and stands in a file for all to read
      → take it out with `cairn env unset --beside`, and set it with `cairn secret set`
    `LIMIT` has no value, and a run needs it
      → cairn env set LIMIT VALUE --workflow triage
    `TOKEN` has no value, and a run needs it
      → cairn secret set TOKEN --workflow triage
    --- stderr
    `OLD` has a value, and the workflow does not ask for it
    ");
    assert_snapshot!(env.run(&["env", "check", "triage", "--json"]), @r#"
    exit 3
    --- stdout
    {"workflowId":"project.triage","ready":false,"missing":["LIMIT","TOKEN"],"faults":[{"name":"AUTO","message":"`AUTO` is not true or false","suggestion":"correct the value there with `cairn env set --beside`"},{"name":"TOKEN","message":"`TOKEN` is a secret, and stands in a file for all to read","suggestion":"take it out with `cairn env unset --beside`, and set it with `cairn secret set`"}],"unused":["OLD"]}
    "#);
    fs::remove_file(env.path("workflows/triage/env.yaml")).unwrap();
    env.run(&["env", "set", "triage", "LIMIT", "-1"]);
    env.run_with_input(&["secret", "set", "TOKEN"], b"CANARY-7f3a91c2d4");
    assert_snapshot!(env.run(&["env", "check", "triage"]), @r"
    exit 0
    --- stdout
    a run would find all that it needs
    ");
}

#[test]
fn what_does_not_fit_is_refused() {
    let env = with_workflow();
    assert_snapshot!(env.run(&["env", "set", "triage", "LIMIT", "many"]), @r"
    exit 3
    --- stderr
    error[SETTING_INVALID]: [tmp]/home/env/@[place].yaml: `LIMIT` is not a number
      → give a value of that kind
    ");
    assert_snapshot!(env.run(&["env", "set", "triage", "LIMITS", "5"]), @r"
    exit 4
    --- stderr
    error[SETTING_NOT_FOUND]: `project.triage` asks for no setting `LIMITS`; did you mean `LIMIT`?
      → list what the workflow asks for with `cairn env list`
    ");
    assert_snapshot!(env.run(&["env", "set", "triage", "TOKEN", "abc", "--json"]), @r#"
    exit 3
    --- stderr
    {"code":"SETTING_INVALID","details":{"faults":[{"message":"`TOKEN` is a secret","name":"TOKEN","suggestion":"set it with `cairn secret set`"}],"path":"[tmp]/home/env/@[place].yaml"},"message":"[tmp]/home/env/@[place].yaml: `TOKEN` is a secret","retry":{"kind":"not_retryable"},"suggestion":"set it with `cairn secret set`"}
    "#);
    fs::write(env.path("workflows/triage/env.yaml"), "A: [\n").unwrap();
    assert_snapshot!(env.run(&["env", "list", "triage"]), @r"
    exit 3
    --- stderr
    error[SETTING_INVALID]: [tmp]/workflows/triage/env.yaml: line 1: not YAML: unclosed bracket '['
      → write a name, a colon and a value on each line, such as `MODE: live`
    ");
    assert!(!env.home().join("env").exists());
}

#[test]
fn settings_and_secrets_are_named_in_either_order() {
    let env = with_workflow();
    for words in [&["LIMIT", "5", "--workflow", "triage"][..], &["triage", "LIMIT", "5"]] {
        let set = env.run(&[&["env", "set", "--json"][..], words].concat());
        assert_eq!(set.code, 0, "{set}");
        assert!(set.stdout.contains(r#""name":"LIMIT""#), "{set}");
        let back: Vec<&str> = words.iter().copied().filter(|word| *word != "5").collect();
        let unset = env.run(&[&["env", "unset"][..], &back].concat());
        assert_eq!(unset.stdout, "unset LIMIT\n", "{unset}");
    }
    for words in [&["TOKEN", "--workflow", "triage"][..], &["triage", "TOKEN"]] {
        let set = env.run_with_input(
            &[&["secret", "set", "--json"][..], words].concat(),
            b"CANARY-7f3a91c2d4\n",
        );
        assert!(set.stdout.contains("workflows/triage/workflow.yaml"), "{set}");
        let removed = env.run(&[&["secret", "remove", "--yes"][..], words].concat());
        assert_eq!(removed.stdout, "removed TOKEN\n", "{removed}");
    }
    assert_eq!(env.run(&["env", "list", "--workflow", "triage"]).code, 0);
    assert_snapshot!(env.run(&["env", "set", "LIMIT", "5"]), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: a setting belongs to a workflow, and none is named
      → name it with `--workflow WORKFLOW`
    ");
    assert_eq!(env.run(&["env", "set", "triage", "LIMIT", "5", "--workflow", "triage"]).code, 2);
}
