//! Hosts that a workflow limits itself to.

use super::*;

fn told(head: &str, nodes: &str) -> String {
    let env = "env: [{name: URL, widget: url}, {name: KEY, widget: secret}]";
    match compile(&format!("name: T\n{env}\n{head}graph:\n  nodes:\n{nodes}")) {
        Ok(compiled) => lines(&compiled.warnings),
        Err(found) => lines(&found),
    }
}

// case: request.hosts
#[test]
fn a_literal_host_is_one_of_those_that_the_workflow_names() {
    for (hosts, url, fine) in [
        ("", "https://any.example/", true),
        ("hosts: [api.example.com]\n", "https://api.example.com/x", true),
        ("hosts: [API.Example.com.]\n", "https://api.EXAMPLE.com:8443/x", true),
        ("hosts: ['*.example.com']\n", "https://a.b.example.com", true),
        ("hosts: [api.example.com]\n", "{{ env.URL }}/x", true),
        ("hosts: ['*.example.com']\n", "https://example.com/", false),
        ("hosts: [api.example.com]\n", "https://api.example.com.evil.example/", false),
        ("hosts: [api.example.com]\n", "https://evil.example/{{ env.URL }}", false),
        ("hosts: []\n", "https://api.example.com/", false),
    ] {
        let told = told(hosts, &format!("    - {{id: a, type: http, url: \"{url}\"}}\n"));
        assert_eq!(told.is_empty(), fine, "{hosts} {url}: {told}");
        assert!(fine || told.contains("host_denied"), "{hosts} {url}: {told}");
    }
}

#[test]
fn hosts_are_hosts() {
    let nodes = "    - {id: a, type: end}\n";
    for host in ["https://example.com", "example.com:443", "*.com", "a/b", "'{{ env.URL }}'"] {
        let told = told(&format!("hosts: [{host}]\n"), nodes);
        assert!(told.contains("invalid_value"), "{host}: {told}");
    }
    let text = |hosts: &str| format!("name: T\n{hosts}graph: {{nodes: [{{id: a, type: end}}]}}\n");
    let plan = |hosts: &str| compile(&text(hosts)).unwrap().plan;
    let given = plan("hosts: [b.example, A.example., b.example]\n").policy.hosts;
    assert_eq!(given.unwrap(), ["a.example", "b.example"]);
    assert_eq!(plan("hosts: []\n").policy.hosts, Some(Vec::new()));
    assert_eq!(plan("").policy.hosts, None);
}
