//! The catalog as a page for people, made from the definitions alone.

use std::fmt::Write as _;

use super::{ALIASES, Builtins, ContractPack, Field, RunType, Shape, Template, WORKFLOWS, bundled};
use crate::guided;

/// The whole page, as Markdown.
#[must_use]
pub fn page() -> String {
    let catalog = Builtins::standard();
    let mut page = String::from("# Builtins\n\n");
    page.push_str(
        "<!-- Written by `cargo xtask generate`; change the definitions instead. -->\n\n",
    );
    page.push_str("What every [guided workflow](../guide/guided.md) may use.\n");
    page.push_str("\n## Contracts\n\nWhat outputs can be held to: `outputContract: {contractRef: …}`. An artifact names its kind in `kind`.\n");
    catalog.contracts.iter().for_each(|pack| contract(&mut page, pack));
    page.push_str(
        "\n## Features\n\nWhat can be switched on for a whole workflow: `features: […]`.\n\n",
    );
    let features = catalog.features.iter().map(|f| [code(f.id), f.purpose.to_owned()]);
    table(&mut page, ["Feature", "Effect"], features);
    page.push_str(
        "\n## Refs\n\nTexts that `promptBlocks` can take in: `{kind: ref, refId: …}`.\n\n",
    );
    let refs = catalog.refs.iter().map(|text| [code(text.id), text.text.to_owned()]);
    table(&mut page, ["Ref", "Text"], refs);
    page.push_str("\n## Templates\n\nSteps that a call stands for: `templateCall: {templateId: …, args: {…}}`. `wr.templates.routine.<name>` stands for the steps of the workflow `<namespace>.routine-<name>`.\n\n");
    let templates = catalog.templates.iter().map(template);
    table(&mut page, ["Template", "Arguments", "Purpose", "Contract"], templates);
    page.push_str("\n## Step types\n\nWhat the engine performs itself: `run: {type: …}`. Each takes `saveAs` as well, the key of the context that its outcome is kept under.\n");
    catalog.runs.iter().for_each(|kind| run_type(&mut page, kind));
    page.push_str(
        "\n## Workflows\n\nWhat is built in, and can be shown with `cairn workflow show`.\n\n",
    );
    table(&mut page, ["Workflow", "Purpose", "Steps"], workflows(&catalog));
    page.push_str("\nOld ids that still lead to them, with a warning:\n\n");
    let aliases = ALIASES.iter().map(|alias| [code(alias.legacy), code(alias.canonical)]);
    table(&mut page, ["Old id", "Workflow"], aliases);
    page
}

fn contract(page: &mut String, pack: &ContractPack) {
    // Writing to a String cannot fail.
    let _ = write!(page, "\n### `{}`\n\nKind `{}`: {}.\n\n", pack.id, pack.kind, pack.purpose);
    let mut rows = Vec::new();
    fields(&mut rows, "", pack.fields);
    table(page, ["Field", "Holds", "Meaning"], rows);
}

/// A row for each field, with those of inner maps behind the list that holds them.
fn fields(rows: &mut Vec<[String; 3]>, outer: &str, list: &[Field]) {
    for field in list {
        let name = format!("{outer}{}", field.name);
        let holds = match field.shape {
            Shape::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| code(word)).collect();
                words.join(", ")
            }
            Shape::Maps(_) => "list of maps".to_owned(),
            shape => shape.name(),
        };
        rows.push([marked(&name, field.required), holds, field.about.to_owned()]);
        if let Shape::Maps(inner) = field.shape {
            fields(rows, &format!("{name}[]."), inner);
        }
    }
}

fn template(template: &Template) -> [String; 4] {
    let arguments: Vec<String> = template.arguments.iter().map(|name| code(name)).collect();
    let purpose = template.purpose.to_owned();
    [code(template.id), arguments.join(", "), purpose, code(template.contract)]
}

fn run_type(page: &mut String, kind: &RunType) {
    let _ = write!(page, "\n### `{}`\n\nIt {}.\n\n", kind.id, kind.purpose);
    let rows = kind.settings.iter().map(|setting| {
        let name = marked(setting.name, setting.required);
        [name, setting.holds.name(), setting.about.to_owned()]
    });
    table(page, ["Field", "Holds", "Meaning"], rows);
}

fn workflows(catalog: &Builtins) -> Vec<[String; 3]> {
    let tree = bundled();
    let compiled = WORKFLOWS.iter().filter_map(|file| {
        // That each of them compiles is tested.
        guided::compile(&tree, file.path, catalog).ok()
    });
    compiled
        .map(|found| found.plan)
        .map(|plan| [code(&plan.workflow_id), plan.description, plan.steps.len().to_string()])
        .collect()
}

fn table<const N: usize>(
    page: &mut String,
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let _ = writeln!(page, "| {} |", heading.join(" | "));
    let _ = writeln!(page, "| {} |", ["---"; N].join(" | "));
    for row in rows {
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn marked(name: &str, required: bool) -> String {
    if required { code(name) } else { format!("{}, optional", code(name)) }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
