use std::fs;

use insta::assert_snapshot;

use crate::env::TestEnv;

/// A home whose configuration file says this.
fn with_file(text: &str) -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir_all(env.path(".config/cairn")).unwrap();
    fs::write(env.path(".config/cairn/config.toml"), text).unwrap();
    env
}

#[test]
fn each_value_is_shown_with_where_it_comes_from() {
    let env = with_file(
        "autonomy = \"full_auto_never_stop\"\nworkflows = [\"mine\"]\n\n[serve]\nlisten = \"127.0.0.1:12345\"\n",
    );
    assert_snapshot!(env.run(&["config", "show"]), @r#"
    exit 0
    --- stdout
    # [tmp]/.config/cairn/config.toml
    autonomy                full_auto_never_stop
    bundled                 []
    databases               []
    home                    [tmp]/home
    http.allow              []
    limits.events_per_run   50000
    limits.runs_at_once     256
    limits.runs_per_minute  60
    limits.steps_at_once    256
    limits.steps_per_run    10000
    processes.allow_env     []
    python.interpreter      python3
    retention.failure_days  90
    retention.guided_days   never
    retention.keep_max      10000
    retention.success_days  30
    risk_policy             conservative
    serve.drain_sec         25
    serve.listen            127.0.0.1:[port]
    workflows               ["[tmp]/.config/cairn/mine"]
    workspace.roots         []
    "#);
    // The columns are as wide as the folder's name is long.
    let shown = env.run(&["config", "show", "--origin", "--home", "there"]).stdout;
    let origin = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(key)).unwrap();
        line.rsplit("  ").next().unwrap().to_owned()
    };
    assert_eq!([origin("bundled"), origin("home")], ["default", "--home"]);
    assert!(origin("workflows").ends_with("/.config/cairn/config.toml:2"), "{shown}");
    assert_snapshot!(env.run(&["config", "show", "--json"]), @r#"
    exit 0
    --- stdout
    {"file":"[tmp]/.config/cairn/config.toml","values":[{"key":"autonomy","layer":"file","origin":"[tmp]/.config/cairn/config.toml:1","value":"full_auto_never_stop"},{"key":"bundled","layer":"default","origin":"default","value":[]},{"key":"databases","layer":"default","origin":"default","value":[]},{"key":"home","layer":"environment","origin":"CAIRN_HOME","value":"[tmp]/home"},{"key":"http.allow","layer":"default","origin":"default","value":[]},{"key":"limits.events_per_run","layer":"default","origin":"default","value":50000},{"key":"limits.runs_at_once","layer":"default","origin":"default","value":256},{"key":"limits.runs_per_minute","layer":"default","origin":"default","value":60},{"key":"limits.steps_at_once","layer":"default","origin":"default","value":256},{"key":"limits.steps_per_run","layer":"default","origin":"default","value":10000},{"key":"processes.allow_env","layer":"default","origin":"default","value":[]},{"key":"python.interpreter","layer":"default","origin":"default","value":"python3"},{"key":"retention.failure_days","layer":"default","origin":"default","value":90},{"key":"retention.guided_days","layer":"default","origin":"default","value":"never"},{"key":"retention.keep_max","layer":"default","origin":"default","value":10000},{"key":"retention.success_days","layer":"default","origin":"default","value":30},{"key":"risk_policy","layer":"default","origin":"default","value":"conservative"},{"key":"serve.drain_sec","layer":"default","origin":"default","value":25},{"key":"serve.listen","layer":"file","origin":"[tmp]/.config/cairn/config.toml:5","value":"127.0.0.1:[port]"},{"key":"workflows","layer":"file","origin":"[tmp]/.config/cairn/config.toml:2","value":["[tmp]/.config/cairn/mine"]},{"key":"workspace.roots","layer":"default","origin":"default","value":[]}]}
    "#);
}

#[test]
fn limits_of_the_file_hold_for_runs() {
    let env = with_file("[limits]\nsteps_per_run = 3\n");
    fs::create_dir_all(env.path("workflows")).unwrap();
    let text = "name: Loop\ngraph: { nodes: [{ id: l, type: loop, count: 9, body: [a] }, { id: a, type: log, message: x }] }\n";
    fs::write(env.path("workflows/loop.yaml"), text).unwrap();
    let ended = env.run(&["run", "loop", "--json"]);
    assert!(ended.stdout.contains("MAX_STEPS"), "{ended}");
    for (text, told) in [
        ("[limits]\nsteps_per_run = 0\n", "a whole number greater than 0"),
        ("[limits]\nsteps_per_runs = 9\n", "did you mean `limits.steps_per_run`"),
        ("[retention]\nkeep_max = \"all\"\n", "a whole number greater than 0"),
    ] {
        let refused = with_file(text).run(&["config", "show"]);
        assert!(refused.code != 0 && refused.stderr.contains(told), "{text}: {refused}");
    }
}

#[test]
fn a_later_layer_wins() {
    let env = with_file("home = \"of-the-file\"\nrisk_policy = \"balanced\"\n");
    let shown = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = env.command(&["config", "show", "--origin"]);
        command.env_remove("CAIRN_HOME").envs(variables.iter().copied()).args(args);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(shown(&[], &[]).contains("/.config/cairn/of-the-file "), "{}", shown(&[], &[]));
    assert!(shown(&[("CAIRN_HOME", "/there")], &[]).contains(" /there  "));
    assert!(shown(&[("CAIRN_HOME", "/there")], &["--home", "/here"]).contains(" /here  "));
    assert!(shown(&[], &[]).contains(" balanced  "));
    assert!(shown(&[("CAIRN_RISK_POLICY", "aggressive")], &[]).contains(" aggressive  "));
    fs::write(env.path("other.toml"), "risk_policy = \"aggressive\"\n").unwrap();
    assert!(shown(&[("CAIRN_CONFIG", "other.toml")], &[]).contains(" other.toml:1"));
    assert!(
        shown(&[("CAIRN_CONFIG", "none")], &["--config", "other.toml"]).contains(" other.toml:1")
    );
}

#[test]
fn what_the_file_says_is_what_commands_work_with() {
    let env = with_file("home = \"data\"\nworkflows = [\"mine\"]\n");
    fs::create_dir(env.path(".config/cairn/mine")).unwrap();
    let workflow = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/guided/bug-hunt.yaml");
    let own = fs::read_to_string(workflow).unwrap().replace("project.bug-hunt", "user.bug-hunt");
    fs::write(env.path(".config/cairn/mine/bug-hunt.yaml"), own).unwrap();
    let listed = env.run(&["workflow", "list"]);
    assert!(listed.stdout.contains("user.bug-hunt"), "{listed}");
    let mut rotate = env.command(&["key", "rotate"]);
    assert!(rotate.env_remove("CAIRN_HOME").status().unwrap().success());
    assert!(env.path(".config/cairn/data/keys").is_dir());
    assert!(env.is_unused());
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line() {
    let env = with_file("# mine\nhoem = \"data\"\n");
    assert_snapshot!(env.run(&["session", "list"]), @r"
    exit 2
    --- stderr
    error[CONFIG_INVALID]: [tmp]/.config/cairn/config.toml:2: there is no key `hoem`; did you mean `home`?
      → correct the file, or name another one with --config; `cairn config show --help` says what it may hold
    ");
    assert_snapshot!(env.run(&["session", "list", "--json"]), @r#"
    exit 2
    --- stderr
    {"code":"CONFIG_INVALID","details":{"line":2,"nearest":"home","path":"[tmp]/.config/cairn/config.toml"},"message":"[tmp]/.config/cairn/config.toml:2: there is no key `hoem`; did you mean `home`?","retry":{"kind":"not_retryable"},"suggestion":"correct the file, or name another one with --config; `cairn config show --help` says what it may hold"}
    "#);
    assert_eq!(env.run(&["session", "list", "--config", "/dev/null"]).code, 0);
    assert_snapshot!(env.run(&["session", "list", "--config", "none.toml"]), @r"
    exit 4
    --- stderr
    error[CONFIG_NOT_FOUND]: there is no configuration file none.toml, which --config names
      → correct the path, or leave the name out: then the usual file is read, if it is there
    ");
    let mut command = env.command(&["session", "list"]);
    let told = command.env("CAIRN_CONFIG", "none.toml").output().unwrap();
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("none.toml, which CAIRN_CONFIG names"), "{told}");
    let mut command = env.command(&["config", "show", "--config", "/dev/null"]);
    let refused = command.env("CAIRN_AUTONOMY", "gided").output().unwrap();
    assert_snapshot!(String::from_utf8(refused.stderr).unwrap(), @r"
    error[USAGE_INVALID]: the variable CAIRN_AUTONOMY is `gided`, and should be one of guided, full_auto_stop_on_user_deps, full_auto_never_stop
      → set CAIRN_AUTONOMY to one of guided, full_auto_stop_on_user_deps, full_auto_never_stop, or unset it
    ");
}

#[test]
fn a_home_that_nobody_names_is_asked_for() {
    let env = TestEnv::new();
    let mut command = env.command(&["session", "list"]);
    command.env_clear();
    let outcome = crate::env::Outcome::of(command.output().unwrap());
    assert_eq!(outcome.code, 2, "{outcome}");
    assert!(outcome.stderr.contains("HOME_UNKNOWN"), "{outcome}");
    assert!(outcome.stderr.contains("--home"), "{outcome}");
}
