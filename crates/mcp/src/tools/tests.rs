use insta::assert_json_snapshot;
use serde_json::json;

use super::*;
use crate::handler::listing;

const EVERY: ToolSet = ToolSet { start_session: true };

/// How large the answer to `tools/list` may be, in bytes: agents carry it all the time.
const LISTING_MAX: usize = 12 << 10;

// case: mcp.tools-pinned
#[test]
fn the_list_of_tools_is_pinned() {
    assert_json_snapshot!("tools", listing(&table(EVERY)));
}

#[test]
fn the_list_of_tools_is_small_and_always_the_same() {
    let answer = |set| {
        let tools = listing(&table(set));
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string()
    };
    assert!(answer(EVERY).len() < LISTING_MAX, "{} bytes", answer(EVERY).len());
    assert_eq!(answer(EVERY), answer(EVERY));
}

#[test]
fn sessions_without_a_run_are_behind_a_flag() {
    let names = |set| table(set).iter().map(|tool| tool.name).collect::<Vec<_>>();
    let execute = [
        "list_workflows",
        "inspect_workflow",
        "start_workflow",
        "continue_workflow",
        "checkpoint_workflow",
        "resume_session",
    ];
    assert_eq!(names(ToolSet::default()), execute);
    assert_eq!(names(EVERY), [&execute[..], &["start_session"]].concat());
}

#[test]
fn every_tool_is_known_to_read_or_to_change() {
    use cairn_api::audit::{Call, MCP};
    let listed: Vec<&str> = table(EVERY).iter().map(|tool| tool.name).collect();
    for tool in table(EVERY) {
        let known =
            Call::of(MCP, tool.name).unwrap_or_else(|| panic!("{} is in no table", tool.name));
        assert_eq!(known == Call::Reads, tool.effect == Effect::Reads, "{}", tool.name);
    }
    assert!(MCP.iter().all(|(name, _)| listed.contains(name)), "a tool that is none");
}
