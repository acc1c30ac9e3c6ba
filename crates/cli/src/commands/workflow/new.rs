//! `cairn workflow new`: a workflow to begin with.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_lang::diagnostic::nearest;
use cairn_lang::edit::{self, Edit};
use cairn_lang::ids::{self, IdStatus, SourceKind};
use serde_json::{Value, json};

use crate::config::Config;
use crate::output::{Output, Style};
use crate::render::{self, Cell};
use crate::sources;
use crate::templates::{self, Kind, Template};

/// Begin a workflow from a template
///
/// Writes a folder with the workflow and all it needs, which is right as it is: run it, then make it yours. Nothing that is there is overwritten.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn workflow new --list\n  cairn workflow new triage --template support-triage\n  cairn workflow new nightly --template daily-digest --into .cairn/workflows"
)]
pub(crate) struct Args {
    /// What to call it: small letters, digits, `-` and `_`
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,

    /// What to begin with, as --list names it
    #[arg(long, value_name = "TEMPLATE", required_unless_present = "list")]
    template: Option<String>,

    /// List the templates
    #[arg(long, conflicts_with_all = ["name", "template", "into"])]
    list: bool,

    /// Directory of workflows to put it into
    #[arg(long, value_name = "DIR", default_value = "workflows")]
    into: PathBuf,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let (Some(name), Some(template)) = (&args.name, &args.template) else {
        return list(&config.output);
    };
    let template = find(template)?;
    let id = id(name)?;
    let known = sources::catalog(config).list()?;
    if let Some(known) = known.iter().find(|known| known.id == id) {
        return Err(Error::Usage {
            message: format!("there is a workflow `{id}` already, in {}", known.path.display()),
            suggestion: "choose another name".to_owned(),
        });
    }
    let folder = args.into.join(name);
    let files = write(template, &id, name, &folder)?;
    tell(&config.output, template, &id, &folder, &files)?;
    Ok(Exit::Success)
}

fn find(name: &str) -> Result<&'static Template> {
    templates::find(name).ok_or_else(|| {
        let names: Vec<&str> = templates::ALL.iter().map(|template| template.name).collect();
        // A part of a name is enough to be understood.
        let part = |whole: &&str| {
            whole.split('-').any(|part| nearest(name, [part]).is_some() && name.len() > 2)
        };
        let near = nearest(name, names.iter().copied());
        let near = near.or_else(|| names.iter().copied().find(part));
        let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Error::Usage {
            message: format!("there is no template `{name}`{meant}"),
            suggestion: "list the templates with `cairn workflow new --list`".to_owned(),
        }
    })
}

/// The id that a workflow of the project gets by its name.
fn id(name: &str) -> Result<String> {
    let id = format!("project.{name}");
    match ids::check(&id, SourceKind::Project) {
        Ok(IdStatus::Namespaced) if !name.contains('.') => Ok(id),
        _ => Err(Error::Usage {
            message: format!("`{name}` cannot name a workflow"),
            suggestion: "use small letters, digits, `-` and `_`, such as `triage`".to_owned(),
        }),
    }
}

/// Writes the files beside their place first, so that there is all of them or nothing.
fn write(template: &Template, id: &str, name: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    if folder.symlink_metadata().is_ok() {
        return Err(failed(folder)(io::ErrorKind::AlreadyExists.into()));
    }
    let part = folder.with_file_name(format!(".{name}.part"));
    // What is there of it, an earlier try has left.
    let _ = fs::remove_dir_all(&part);
    let mut written = Vec::new();
    for (at, (path, text)) in template.files.iter().enumerate() {
        let text = if at == 0 { named(text, id, name)? } else { (*text).to_owned() };
        let file = part.join(path);
        let parent = file.parent().unwrap_or(&part);
        fs::create_dir_all(parent).map_err(failed(parent))?;
        fs::write(&file, text).map_err(failed(&file))?;
        if path.ends_with(".sh") {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&file, mode).map_err(failed(&file))?;
        }
        written.push(folder.join(path));
    }
    fs::rename(&part, folder).map_err(failed(folder))?;
    Ok(written)
}

/// A template's workflow under a name of its own.
fn named(text: &str, id: &str, name: &str) -> Result<String> {
    let words = name.replace(['-', '_'], " ");
    let (first, rest) = words.split_at_checked(1).unwrap_or_default();
    let title = format!("{}{rest}", first.to_uppercase());
    let set = |text: String, pointer: &str, value: String| {
        let edit = Edit::Set { pointer: pointer.to_owned(), value: Value::from(value) };
        edit::apply(&text, &edit).map_err(|error| Error::Internal(error.to_string()))
    };
    set(set(text.to_owned(), "/id", id.to_owned())?, "/name", title)
}

/// Says what is there now, and what to do with it.
fn tell(
    output: &Output,
    template: &Template,
    id: &str,
    folder: &Path,
    files: &[PathBuf],
) -> Result<()> {
    if output.json {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        return output
            .object(&json!({"workflowId": id, "template": template.name, "files": files}));
    }
    for file in files {
        output.line(&file.display().to_string())?;
    }
    let with = |option: &str, name: &str| {
        let file = files.iter().find(|file| file.ends_with(name));
        file.map(|file| format!(" {option} {}", file.display())).unwrap_or_default()
    };
    let next = match template.kind {
        Kind::Graph => format!("cairn run {id}{}", with("--event", "event.json")),
        Kind::Triggered(trigger) => {
            format!("cairn run {id} --trigger {trigger}{}", with("--event", "event.json"))
        }
        Kind::Handed(set) => {
            format!("cairn guide {id} --set {set}{}", with("--answers", "answers.jsonl"))
        }
        Kind::Guided => format!("cairn guide {id}"),
    };
    output.remark(&format!("try it: {next}"));
    output
        .remark(&format!("check it after a change: cairn workflow validate {}", folder.display()));
    Ok(())
}

fn list(output: &Output) -> Result<Exit> {
    if output.json {
        let item = |template: &Template| json!({"name": template.name, "kind": template.kind.name(), "description": template.what});
        let items: Vec<Value> = templates::ALL.iter().map(item).collect();
        output.object(&json!({"items": items}))?;
        return Ok(Exit::Success);
    }
    let heading = ["TEMPLATE", "KIND", "SHOWS"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(templates::ALL.iter().map(|template| {
        let name = Cell::styled(Style::Strong, template.name);
        vec![name, Cell::new(template.kind.name()), Cell::new(template.what)]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}
