use cairn_engine::catalog::Directory;
use cairn_lang::ids::SourceKind;
use insta::{assert_json_snapshot, assert_snapshot};
use tempfile::TempDir;

use super::*;

/// A project with these workflows, and what is built in.
fn project(ids: &[&str]) -> (TempDir, Catalog) {
    let folder = tempfile::tempdir().unwrap();
    for id in ids {
        let text = format!(
            "id: {id}\nname: Some name\ndescription: For {id}.\nversion: 1.0.0\n\
             steps:\n  - {{id: one, title: One, prompt: Do one.}}\n"
        );
        std::fs::write(folder.path().join(format!("{id}.yaml")), text).unwrap();
    }
    let catalog = catalog(&folder);
    (folder, catalog)
}

fn catalog(folder: &TempDir) -> Catalog {
    let root = folder.path().to_owned();
    Catalog::new(vec![Directory { kind: SourceKind::Project, root }])
}

fn page(catalog: &Catalog, query: Option<&str>, cursor: Option<&str>) -> Result<Workflows> {
    let asked =
        ListWorkflows { query: query.map(str::to_owned), cursor: cursor.map(str::to_owned) };
    list(catalog, &asked)
}

fn ids(page: &Workflows) -> Vec<&str> {
    page.workflows.iter().map(|entry| entry.workflow_id.as_str()).collect()
}

#[test]
fn workflows_stand_by_namespace_then_kind_then_id() {
    let (_folder, catalog) =
        project(&["team.zeta", "old-one", "project.routine-a", "project.b", "project.a"]);
    let all = page(&catalog, None, None).unwrap();
    let own: Vec<&str> = ids(&all).into_iter().filter(|id| !id.starts_with("wr.")).collect();
    assert_eq!(own, ["old-one", "project.a", "project.b", "project.routine-a", "team.zeta"]);
    assert!(ids(&all).is_sorted_by_key(|id| ids::namespace(id)));
}

#[test]
fn an_entry_says_what_an_agent_needs_to_choose() {
    let (_folder, catalog) = project(&["old-one", "project.routine-a"]);
    let found = page(&catalog, Some("FOR old-one"), None).unwrap();
    assert_json_snapshot!(found.workflows, @r#"
    [
      {
        "workflowId": "old-one",
        "name": "Some name",
        "description": "For old-one.",
        "kind": "workflow",
        "idStatus": "legacy",
        "suggestedId": "project.old_one",
        "sourceKind": "project"
      }
    ]
    "#);
    let found = page(&catalog, Some("routine-a"), None).unwrap();
    assert_eq!(found.workflows[0].kind, Kind::Routine);
    assert_eq!(page(&catalog, Some("no such thing"), None).unwrap().workflows, []);
}

#[test]
fn a_long_list_is_read_page_by_page() {
    let names: Vec<String> = (0..PAGE * 2).map(|n| format!("project.w{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_folder, catalog) = project(&names);
    let mut read = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let found = page(&catalog, Some("project.w"), cursor.as_deref()).unwrap();
        assert_eq!(found.workflows.len(), PAGE);
        read.extend(ids(&found).into_iter().map(str::to_owned));
        cursor = found.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(read, names);
    let wrong = page(&catalog, None, Some("project.gone")).unwrap_err();
    assert_eq!(wrong.code(), "VALIDATION_ERROR");
}

#[test]
fn what_does_not_compile_is_listed_with_the_reason() {
    let (folder, _) = project(&[]);
    std::fs::write(folder.path().join("x.yaml"), "id: project.x\nsteps: []\n").unwrap();
    let catalog = catalog(&folder);
    let found = page(&catalog, Some("project.x"), None).unwrap();
    assert!(found.workflows[0].problem.is_some());
    let asked = InspectWorkflow { workflow_id: "project.x".into(), detail: None };
    assert_eq!(inspect(&catalog, &asked).unwrap_err().code(), "WORKFLOW_INVALID");
}

#[test]
fn a_description_is_cut_between_characters() {
    assert_eq!(cut(" two\n  lines "), "two lines");
    let long = cut(&"ä".repeat(DESCRIPTION_MAX));
    assert!(long.len() <= DESCRIPTION_MAX + '…'.len_utf8() && long.ends_with('…'));
}

#[test]
fn a_look_inside_shows_no_prompt() {
    let (_folder, catalog) = project(&[]);
    let look = |detail| {
        let workflow_id = "wr.feature-implementation".to_owned();
        let found = inspect(&catalog, &InspectWorkflow { workflow_id, detail }).unwrap();
        let text = serde_json::to_string(&found).unwrap();
        assert!(!text.contains("promptBlocks") && !text.contains("\"prompt\""));
        (found.steps.len(), found.loops.len(), found.contracts.len())
    };
    let (steps, loops, contracts) = look(Some(Detail::Full));
    assert!(steps > 0 && loops > 0 && contracts > 0);
    assert_eq!(look(Some(Detail::Brief)), (steps, 0, 0));
    assert_eq!(look(None), (steps, 0, 0));
}

#[test]
fn an_old_id_leads_to_the_workflow_that_took_its_place() {
    let (_folder, catalog) = project(&[]);
    let workflow_id = "mr-review-workflow".to_owned();
    let found = inspect(&catalog, &InspectWorkflow { workflow_id, detail: None }).unwrap();
    assert_snapshot!(found.entry.canonical_id.unwrap(), @"wr.code-review");
}
