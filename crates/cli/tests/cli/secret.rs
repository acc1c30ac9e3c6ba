//! `cairn secret`: values that are kept encrypted, and are nowhere else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use insta::assert_snapshot;

use crate::env::{Outcome, TestEnv};
use crate::settings::with_workflow;

const CANARY: &str = "CANARY-7f3a91c2d4";
/// The canary as it would look in base64 and hex.
const DISGUISES: [&str; 3] =
    [CANARY, "Q0FOQVJZLTdmM2E5MWMyZDQ", "43414e4152592d37663361393163326434"];

fn set(env: &TestEnv, args: &[&str], value: &str) -> Outcome {
    env.run_with_input(&[&["secret", "set"], args].concat(), value.as_bytes())
}

/// Fails when a canary is in any file below a folder.
fn scan(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scan(&path);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for canary in DISGUISES {
            let found = bytes
                .windows(canary.len())
                .any(|part| part.eq_ignore_ascii_case(canary.as_bytes()));
            assert!(!found, "{canary} is in {}", path.display());
        }
    }
}

#[test]
fn a_secret_is_in_no_file_and_no_answer() {
    let env = with_workflow();
    let outcomes = [
        set(&env, &["TOKEN", "--workflow", "triage"], &format!("{CANARY}\n")),
        set(&env, &["SHARED", "--json"], CANARY),
        set(&env, &["TOKEN", "--workflow", "triage"], CANARY),
        env.run(&["secret", "list"]),
        env.run(&["secret", "list", "--json"]),
        env.run(&["env", "list", "triage", "--all", "--json"]),
        env.run(&["env", "check", "triage", "--json"]),
        env.run(&["secret", "rotate"]),
        env.run(&["secret", "remove", "SHARED", "--yes"]),
        env.run(&["doctor", "--json"]),
    ];
    for outcome in &outcomes {
        for canary in DISGUISES {
            assert!(!outcome.to_string().contains(canary), "{outcome}");
        }
    }
    scan(&env.path("."));
    let key = env.path(".config/cairn/master.key");
    assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!env.home().join("master.key").exists());
}

#[test]
fn secrets_are_set_listed_rotated_and_removed() {
    let env = with_workflow();
    assert_snapshot!(env.run(&["secret", "list"]), @r"
    exit 0
    --- stdout
    there are no secrets
    ");
    assert_snapshot!(set(&env, &["TOKEN", "--workflow", "triage"], CANARY), @r"
    exit 0
    --- stdout
    set TOKEN for project.triage ([tmp]/workflows/triage/workflow.yaml)
    ");
    assert_snapshot!(set(&env, &["SHARED", "--json"], CANARY), @r#"
    exit 0
    --- stdout
    {"name":"SHARED","path":null,"version":3}
    "#);
    assert_snapshot!(env.run(&["secret", "list"]), @r"
    exit 0
    --- stdout
    NAME    FOR             VERSION  FILE
    SHARED  every workflow  3        -
    TOKEN   project.triage  2        [tmp]/workflows/triage/workflow.yaml
    ");
    assert_snapshot!(env.run(&["secret", "rotate"]), @r"
    exit 0
    --- stdout
    2 secrets under a fresh master key
    ");
    assert_snapshot!(env.run(&["secret", "rotate", "--json"]), @r#"
    exit 0
    --- stdout
    {"keyFile":null,"secrets":2}
    "#);
    assert_snapshot!(env.run(&["secret", "remove", "SHARED"]), @r"
    exit 2
    --- stderr
    error[USAGE_UNCONFIRMED]: forgetting the secret `SHARED` cannot be undone, and nobody confirmed it
      → add --yes if you are sure
    ");
    assert_snapshot!(env.run(&["secret", "remove", "SHARED", "--yes"]), @r"
    exit 0
    --- stdout
    removed SHARED
    ");
    assert_snapshot!(env.run(&["secret", "remove", "SHARED", "--yes"]), @r"
    exit 4
    --- stderr
    error[SECRET_NOT_FOUND]: there is no secret `SHARED`
      → list the secrets there are with `cairn secret list`, or keep one with `cairn secret set`
    ");
}

#[test]
fn a_value_is_never_an_argument() {
    let env = with_workflow();
    let outcome = env.run(&["secret", "set", "TOKEN", CANARY]);
    assert_eq!(outcome.code, 2, "{outcome}");
    assert_snapshot!(set(&env, &["TOKEN", "--workflow", "triage"], ""), @r"
    exit 2
    --- stderr
    error[VALIDATION_ERROR]: the value of `TOKEN` is empty or longer than 65536 bytes
      → give a value of at least one character
    ");
    assert_snapshot!(set(&env, &["LIMIT", "--workflow", "triage"], "x"), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: `LIMIT` is no secret of `project.triage`
      → cairn env set LIMIT VALUE --workflow triage
    ");
    assert_snapshot!(set(&env, &["TOKN", "--workflow", "triage"], "x"), @r"
    exit 4
    --- stderr
    error[SETTING_NOT_FOUND]: `project.triage` asks for no setting `TOKN`; did you mean `TOKEN`?
      → list what the workflow asks for with `cairn env list`
    ");
    assert_snapshot!(set(&env, &["A-B"], "x"), @r"
    exit 2
    --- stderr
    error[USAGE_INVALID]: `A-B` cannot name a secret
      → use letters, digits and `_`, such as `GITHUB_PAT`
    ");
    assert!(!env.home().join("secrets/vault.json").exists());
}

#[test]
fn a_key_that_is_not_the_right_one_opens_nothing() {
    let env = with_workflow();
    set(&env, &["SHARED"], CANARY);
    let key = env.path(".config/cairn/master.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_snapshot!(set(&env, &["SHARED"], CANARY), @r"
    exit 8
    --- stderr
    error[SECRET_KEY_UNUSABLE]: the master key [tmp]/.config/cairn/master.key cannot be used: others may read it (mode 644); run `chmod 600 [tmp]/.config/cairn/master.key`
      → put the key right as the message says, then try again
    ");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let with_key = |name: &str, value: &str, args: &[&str]| {
        Outcome::of(env.command(args).env(name, value).output().unwrap())
    };
    let other: String = (0..32u8).map(|byte| format!("{:02x}", byte * 7)).collect();
    assert_snapshot!(with_key("CAIRN_MASTER_KEY", &other, &["secret", "remove", "SHARED", "--yes"]), @r"
    exit 8
    --- stderr
    error[SECRET_DECRYPT_FAILED]: the vault cannot be opened: [tmp]/home/secrets/vault.json is sealed under another master key
      → use the master key that the secrets were sealed under, or put a backup of the vault in its place
    ");
    assert_snapshot!(with_key("CAIRN_MASTER_KEY", "weak", &["secret", "rotate"]), @r"
    exit 8
    --- stderr
    error[SECRET_KEY_UNUSABLE]: the master key cannot be used: it is not 32 bytes in base64 or hex
      → put the key right as the message says, then try again
    ");
    let inside = env.home().join("key");
    let inside = inside.to_str().unwrap();
    assert_snapshot!(with_key("CAIRN_MASTER_KEY_FILE", inside, &["secret", "rotate"]), @r"
    exit 8
    --- stderr
    error[SECRET_KEY_UNUSABLE]: the master key [tmp]/home/key cannot be used: it lies in the data directory, which it protects; keep it elsewhere
      → put the key right as the message says, then try again
    ");
    // A key that is given can be moved to a file.
    let given = fs::read_to_string(&key).unwrap();
    let file = env.path("fresh.key");
    let args = ["secret", "rotate", "--key-file", file.to_str().unwrap()];
    assert_snapshot!(with_key("CAIRN_MASTER_KEY", &given, &args), @r"
    exit 0
    --- stdout
    1 secret under a fresh master key
    --- stderr
    set CAIRN_MASTER_KEY_FILE to [tmp]/fresh.key from now on
    ");
    let outcome = with_key("CAIRN_MASTER_KEY_FILE", file.to_str().unwrap(), &["secret", "rotate"]);
    assert_eq!(outcome.code, 0, "{outcome}");
}
