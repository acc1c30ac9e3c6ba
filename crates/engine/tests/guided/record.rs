//! Guided runs are witnesses of the record, too.

use std::fs;

use cairn_engine::host::SystemHost;
use cairn_engine::record::Record;

use crate::world::{THREE, World};

async fn verdict(world: &World) -> String {
    let record = Record::new(&world.store, SystemHost::shared());
    match record.verify_with(&world.store).await {
        Ok(_) => "whole".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

// case: audit.chain
#[tokio::test]
async fn a_record_without_a_line_about_a_guided_run_is_not_whole() {
    let world = World::of(THREE);
    let files =
        ["audit/audit.jsonl", "audit.head"].map(|name| world.home.path().join("data").join(name));
    world.start("project.three").await;
    assert_eq!(verdict(&world).await, "whole");
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    world.start("project.three").await;
    assert_eq!(verdict(&world).await, "whole");
    for (file, bytes) in files.iter().zip(before) {
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(
        verdict(&world).await,
        "AUDIT_LINES_MISSING",
        "put back as it was before the second"
    );
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    assert_eq!(verdict(&world).await, "AUDIT_LINES_MISSING", "deleted");
}
