//! Gathers the pages that `cairn help` shows, so that they are there without a network.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The folders with pages, and what stands before their names.
const FOLDERS: [(&str, &str); 3] = [("guide", ""), ("reference", "reference/"), ("errors", "")];

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../docs").canonicalize()?;
    let mut list = String::from("&[\n");
    for (folder, prefix) in FOLDERS {
        let folder = docs.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut pages: Vec<_> = fs::read_dir(&folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
        pages.sort();
        for page in pages {
            let name = page.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let name = if name == "README" { "errors" } else { name };
            writeln!(
                list,
                "    (\"{prefix}{name}\", include_str!({:?})),",
                page.display().to_string()
            )?;
        }
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("pages.rs"), list)?;
    Ok(())
}
