use std::fs;

use cairn_store::{Config, open};

use super::*;

#[tokio::test]
async fn the_newest_nodes_are_kept_and_the_rest_is_counted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sessions/rounding.json");
    let store = open(&Config::Memory).unwrap();
    let bundle = fs::read(path).unwrap();
    let session = cairn_store::bundle::import(&store, &bundle).await.unwrap().session;
    let store = store.papers.open().unwrap();
    let all = draw(&store, session, 0, NODES_DEFAULT).await.unwrap().graphs.remove(0);
    assert_eq!((all.nodes.len(), all.nodes_left_out), (7, 0));
    let few = draw(&store, session, 0, 3).await.unwrap().graphs.remove(0);
    assert_eq!((few.nodes.as_slice(), few.nodes_left_out), (&all.nodes[4..], 4));
    assert_eq!(few.status, all.status);
    let none = draw(&store, session, 0, 0).await.unwrap().graphs.remove(0);
    assert_eq!((none.nodes.len(), none.nodes_left_out), (0, 7));
}
