use std::fs;

use cairn_core::catalog::Catalog;
use cairn_lang::ids::SourceKind;
use cairn_lang::source::SourceTree;
use serde_json::json;
use tempfile::TempDir;

use super::*;

const ENV: &str = "
  - { name: CHANNEL, default: '#support' }
  - { name: TOKEN, widget: secret, required: true }
  - { name: LIMIT, widget: number, required: true }
  - { name: AUTO, widget: checkbox, default: true }
  - { name: MODE, widget: dropdown, options: [pager, slack], default: slack }
  - { name: PAGER, widget: url, required: true, visible_when: 'MODE:pager' }
  - { name: PAGER_KEY, required: true, visible_when: 'PAGER:https://p.example' }
  - { name: SEED, locked: true, hidden: true }
  - { name: PEOPLE, widget: picker, source: slack.users }
  - { name: NOTE, widget: textarea }
";

fn plan() -> Plan {
    let text = format!("name: T\nenv:{ENV}graph:\n  nodes: [{{ id: a, type: end }}]\n");
    let files = BTreeMap::from([("w/workflow.yaml".to_owned(), text.into_bytes())]);
    let tree = SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() };
    let types = Catalog::new(cairn_core::catalog::interpreted::all());
    cairn_lang::graph::compile(&tree, "w/workflow.yaml", &types).unwrap().plan
}

fn place() -> (TempDir, Files) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("w/workflow.yaml");
    fs::create_dir_all(folder.path().join("w")).unwrap();
    fs::write(&source, "").unwrap();
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    let files = Files::of(&store.documents, &Identity::of_place(&source)).unwrap();
    (folder, files)
}

async fn load(files: &Files) -> Settings {
    Settings::load(&plan(), files, |name| name == "TOKEN").await.unwrap()
}

fn told<T>(result: Result<T>) -> String {
    result.err().map(|error| format!("{}: {error}", error.code())).unwrap_or_default()
}

#[test]
fn files_are_named_after_the_workflow() {
    let folder = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(folder.path()).unwrap();
    let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
    let files = |name: &str| {
        let source = folder.join(name);
        fs::write(&source, "").unwrap();
        Files::of(&store.documents, &Identity::of_place(&source)).unwrap()
    };
    assert_eq!(files("workflow.yaml").beside, Some(folder.join("env.yaml")));
    assert_eq!(files("uptime.yaml").beside, Some(folder.join("uptime.env.yaml")));
    let own = files("uptime.yaml").own;
    assert!(own.as_str().starts_with("env/@"));
    assert_ne!(own, files("workflow.yaml").own, "each place has its own");
    fs::remove_file(folder.join("uptime.yaml")).unwrap();
    let gone = Identity::of_place(&folder.join("uptime.yaml"));
    let gone = Files::of(&store.documents, &gone).unwrap();
    assert_eq!((gone.beside, gone.own), (None, own), "what is gone keeps its values");
}

#[tokio::test]
async fn the_data_directory_wins_over_the_file_beside_and_that_over_the_default() {
    let (_folder, files) = place();
    let settings = load(&files).await;
    assert_eq!(settings.values["CHANNEL"], "#support");
    assert_eq!(settings.missing, ["LIMIT"]);
    set(&plan(), &files, "CHANNEL", &json!("#beside"), true).await.unwrap();
    set(&plan(), &files, "LIMIT", &json!(5), true).await.unwrap();
    set(&plan(), &files, "CHANNEL", &json!("#own"), false).await.unwrap();
    let settings = load(&files).await;
    assert_eq!(settings.values["CHANNEL"], "#own");
    assert_eq!(settings.origins["CHANNEL"], Origin::Own);
    assert_eq!(settings.origins["LIMIT"], Origin::Beside);
    assert_eq!(settings.origins["TOKEN"], Origin::Vault);
    assert!(!settings.values.contains_key("TOKEN"));
    assert!(settings.missing.is_empty() && settings.faults.is_empty());
    assert!(unset(&plan(), &files, "CHANNEL", false).await.unwrap());
    assert_eq!(load(&files).await.values["CHANNEL"], "#beside");
    assert!(!unset(&plan(), &files, "CHANNEL", false).await.unwrap());
}

#[tokio::test]
async fn a_setting_is_needed_only_where_it_is_shown() {
    let (_folder, files) = place();
    set(&plan(), &files, "LIMIT", &json!(5), false).await.unwrap();
    assert!(load(&files).await.missing.is_empty());
    set(&plan(), &files, "MODE", &json!("pager"), false).await.unwrap();
    assert_eq!(load(&files).await.missing, ["PAGER"]);
    set(&plan(), &files, "PAGER", &json!("https://p.example"), false).await.unwrap();
    assert_eq!(load(&files).await.missing, ["PAGER_KEY"]);
    set(&plan(), &files, "PAGER_KEY", &json!(" "), false).await.unwrap();
    assert_eq!(load(&files).await.missing, ["PAGER_KEY"], "blanks are no value");
    set(&plan(), &files, "MODE", &json!("slack"), false).await.unwrap();
    assert!(load(&files).await.missing.is_empty(), "what hangs on what is not shown is not shown");
    let told =
        told(Settings::load(&plan(), &files, |_| false).await.unwrap().ready(&plan(), &files));
    assert_eq!(told, "SETTING_INVALID: project.w: `TOKEN` has no value, and a run needs it");
    assert_eq!(
        remedy(&plan(), "w", "TOKEN"),
        "cairn secret set TOKEN --workflow w",
        "a secret stands in no file"
    );
    assert_eq!(remedy(&plan(), "w", "LIMIT"), "cairn env set LIMIT VALUE --workflow w");
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let (_folder, files) = place();
    let refused =
        async |name: &str, value: Value| told(set(&plan(), &files, name, &value, false).await);
    assert!(refused("LIMIT", json!("x")).await.ends_with("`LIMIT` is not a number"));
    assert!(refused("MODE", json!("mail")).await.ends_with("`MODE` is not one of pager, slack"));
    assert!(refused("TOKEN", json!("abc")).await.starts_with("SETTING_INVALID"));
    assert_eq!(
        refused("LIMITS", json!(1)).await,
        "SETTING_NOT_FOUND: `project.w` asks for no setting `LIMITS`; did you mean `LIMIT`?"
    );
    assert!(load(&files).await.values.get("LIMIT").is_none(), "nothing was written");
    assert_eq!(refused("SEED", json!("once")).await, "");
    assert!(refused("SEED", json!("twice")).await.contains("locked"));
    assert!(told(unset(&plan(), &files, "SEED", false).await).contains("locked"));
    assert_eq!(refused("SEED", json!("once")).await, "", "the same again is no change");
}

#[tokio::test]
async fn what_a_person_wrote_wrong_is_told() {
    let (_folder, files) = place();
    let beside = files.beside.clone().unwrap();
    fs::write(&beside, "LIMIT: many\nTOKEN: abc\nOLD: 1\n").unwrap();
    let settings = load(&files).await;
    let faults: Vec<(Origin, &str)> =
        settings.faults.iter().map(|(origin, fault)| (*origin, fault.message.as_str())).collect();
    assert_eq!(
        faults,
        [
            (Origin::Beside, "`LIMIT` is not a number"),
            (Origin::Beside, "`TOKEN` is a secret, and stands in a file for all to read"),
        ]
    );
    let told_of = |settings: Settings| match settings.ready(&plan(), &files) {
        Err(Error::SettingsInvalid { path, faults }) => (path, faults[0].hint.clone()),
        other => panic!("{other:?}"),
    };
    let (path, hint) = told_of(settings.clone());
    assert_eq!(path, beside.display().to_string(), "the file that the value stands in");
    assert!(hint.contains("--beside"), "{hint}");
    // The same in the store: what is there is not beside.
    let own = |_: Option<&[u8]>| Ok::<_, Error>((Some(b"LIMIT: lots\n".to_vec()), ()));
    files.documents.update(&files.own, own).await.unwrap();
    assert_eq!(told_of(load(&files).await).0, files.own_place());
    let none = |_: Option<&[u8]>| Ok::<_, Error>((None, ()));
    files.documents.update(&files.own, none).await.unwrap();
    assert_eq!(settings.unused, ["OLD"]);
    for (text, what) in [
        ("- a\n", "there should be names with values"),
        ("A: [\n", "line 1"),
        ("A: 1\nA: 2\n", "line 2"),
        ("\u{0}", "line 1"),
    ] {
        fs::write(&beside, text).unwrap();
        let told = told(Settings::load(&plan(), &files, |_| true).await);
        assert!(told.starts_with("SETTING_INVALID") && told.contains(what), "{text:?}: {told}");
    }
}

#[tokio::test]
async fn remarks_and_order_stay() {
    let (_folder, files) = place();
    let beside = files.beside.clone().unwrap();
    let text = "\
# How we run it.

CHANNEL: '#old'   # ask Ann first
# Not more, or the bill explodes.
LIMIT: 500
NOTE: |
  one
  # two

PEOPLE:
  - { id: U1, name: Ann }
  - { id: U2 } # on leave
AUTO: false
";
    fs::write(&beside, text).unwrap();
    let p = plan();
    set(&p, &files, "CHANNEL", &json!("#new \"x\""), true).await.unwrap();
    set(&p, &files, "LIMIT", &json!(7), true).await.unwrap();
    set(&p, &files, "PEOPLE", &json!([{"id": "U9"}]), true).await.unwrap();
    set(&p, &files, "MODE", &json!("pager"), true).await.unwrap();
    assert!(unset(&p, &files, "AUTO", true).await.unwrap());
    insta::assert_snapshot!(fs::read_to_string(&beside).unwrap(), @r##"
    # How we run it.

    CHANNEL: "#new \"x\""   # ask Ann first
    # Not more, or the bill explodes.
    LIMIT: 7
    NOTE: |
      one
      # two

    PEOPLE: [{"id":"U9"}]
    MODE: "pager"
    "##);
    let settings = load(&files).await;
    assert_eq!(settings.values["NOTE"], "one\n# two\n");
    assert_eq!(settings.values["CHANNEL"], "#new \"x\"");
    fs::write(&beside, "{LIMIT: 1, AUTO: false}\n").unwrap();
    set(&p, &files, "LIMIT", &json!(2), true).await.unwrap();
    assert_eq!(fs::read_to_string(&beside).unwrap(), "LIMIT: 2\nAUTO: false\n");
}

proptest::proptest! {
    #[test]
    fn any_text_comes_back(value in "\\PC{0,40}|[ -~\\n\\t\u{85}\u{2028}]{0,40}") {
        let (_folder, files) = place();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let settings = runtime.block_on(async {
            set(&plan(), &files, "NOTE", &json!(value), false).await.unwrap();
            set(&plan(), &files, "LIMIT", &json!(1), false).await.unwrap();
            load(&files).await
        });
        proptest::prop_assert_eq!(&settings.values["NOTE"], &json!(value));
    }
}
