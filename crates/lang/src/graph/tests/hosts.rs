//! Hosts that a workflow limits itself to, and what it is warned of without.

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
    for host in ["https://example.com", "example.com:443", "'*.com'", "a/b", "'{{ env.URL }}'"] {
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

// case: secret.exposure
#[test]
fn what_was_sent_a_secret_and_a_way_out_are_too_much_for_one_workflow() {
    let auth = "headers: {X: '{{ secret.KEY }}'}";
    let fetch = "    - {id: fetch, type: http, url: 'https://x.example/', next: out}\n";
    let post = |more: &str| {
        format!("    - {{id: out, type: http, method: POST, url: 'https://x.example/', {more}}}\n")
    };
    let input = "triggers: [{type: manual, input: {n: {type: integer}}}]\n";
    let limit = "hosts: [x.example]\n";
    let payload = "body: '{{ event.payload.n }}'";
    for (head, nodes, out) in [
        ("", post(&format!("{auth}, {payload}")), "`out` writes outside (http POST)"),
        (
            "",
            format!("{fetch}{}", post(&format!("{auth}, body: '{{{{ steps.fetch.body }}}}'"))),
            "`out`",
        ),
        (
            "",
            String::from(
                "    - {id: out, type: shell, command: [x], env: {K: '{{ secret.KEY }}', T: '{{ event.text }}'}}\n",
            ),
            "(shell)",
        ),
        (
            "",
            format!(
                "{fetch}    - {{id: out, type: shell, command: [x], env: {{K: '{{{{ secret.KEY }}}}'}}}}\n"
            ),
            "",
        ),
        ("", post(auth), ""),
        ("", post(payload), ""),
        (
            "",
            post(&format!("{auth}, {payload}"))
                .replace("POST", "GET")
                .replace(payload, "query: {n: '{{ event.payload.n }}'}"),
            "`out` writes outside (http GET)",
        ),
        (
            "",
            format!(
                "    - {{id: out, type: http, url: 'https://x.example/{{{{ event.text }}}}', {auth}}}\n"
            ),
            "(http GET)",
        ),
        (
            limit,
            format!(
                "    - {{id: out, type: http, url: 'https://x.example/{{{{ event.text }}}}', {auth}}}\n"
            ),
            "",
        ),
        ("", format!("{fetch}    - {{id: out, type: log, message: '{{{{ event.text }}}}'}}\n"), ""),
        (
            "",
            format!(
                "    - {{id: ask, type: guide, prompt: Judge., next: out}}\n{}",
                post(&format!("{auth}, body: '{{{{ steps.ask }}}}'"))
            ),
            "`out`",
        ),
        (
            "",
            format!(
                "    - {{id: rows, type: db_query, database: d, query: SELECT 1, next: out}}\n{}",
                post(&format!("{auth}, body: '{{{{ steps.rows.rows }}}}'"))
            ),
            "`rows` writes outside (db_query without `read_only`)",
        ),
        (
            "",
            format!(
                "    - {{id: child, type: workflow, workflow: project.c, input: {{t: '{{{{ event.text }}}}'}}, next: in}}\n    - {{id: in, type: http, url: 'https://x.example/', {auth}}}\n"
            ),
            "`child` writes outside (workflow, which may do so)",
        ),
        (limit, post(&format!("{auth}, {payload}")), ""),
        (input, post(&format!("{auth}, {payload}")), ""),
        ("", post(&format!("{auth}, body: '{{{{ event.id }}}}'")), ""),
    ] {
        let told = told(head, &nodes);
        assert_eq!(
            told.matches("untrusted_with_secret").count(),
            usize::from(!out.is_empty()),
            "{head}{nodes}: {told}"
        );
        assert!(told.contains(out), "{head}{nodes}: {told}");
        assert!(!told.contains("error["), "{head}{nodes}: {told}");
    }
}

#[test]
fn a_pattern_that_any_host_fits_vouches_for_none() {
    let input = |rule: &str| {
        format!("triggers: [{{type: manual, input: {{h: {{{rule}, required: true}}}}}}]\n")
    };
    let text = input("type: string");
    let pattern = |pattern: &str| input(&format!("type: string, pattern: '{pattern}'"));
    for (head, url, fine) in [
        (&text, "https://{{ event.payload.h | matches('[a-z.-]+') }}/", false),
        (&text, "https://{{ event.payload.h | matches('[a-z]+[.]example[.]com') }}/x", true),
        (&text, "https://{{ event.payload.h | matches('[a-z.-]+') }}.example.com/", true),
        (&text, "https://{{ event.payload.h | matches('[a-z./]+') }}.example.com/", false),
        (&text, "https://{{ event.payload.h | matches('[a-z]+') }}.com/", false),
        (&text, "https://{{ event.payload.h | one_of('a.example', 'b.example') }}/", true),
        (&text, "https://{{ event.payload.h | slug }}.example.com/", true),
        (&text, "https://{{ event.payload.h | int }}/", false),
        (&text, "https://{{ event.payload.h | int }}.shard.example.com/", true),
        (&text, "https://a.example/{{ event.payload.h | matches('[a-z.-]+') }}", true),
        (&pattern("^[a-z.]+$"), "https://{{ event.payload.h }}/", false),
        (&pattern("^[a-z]+[.]example[.]com$"), "https://{{ event.payload.h }}/", true),
        (&input("type: string, enum: [a.example]"), "https://{{ event.payload.h }}/", true),
        (&input("type: integer"), "https://{{ event.payload.h }}/", false),
    ] {
        let told = told(head, &format!("    - {{id: a, type: http, url: \"{url}\"}}\n"));
        assert_eq!(told.is_empty(), fine, "{head} {url}: {told}");
        assert!(fine || told.contains("tainted"), "{head} {url}: {told}");
    }
}

// case: secret.address
#[test]
fn a_secret_in_an_address_is_bound_to_hosts() {
    let told = |url: &str, more: &str| {
        let env = "env: [{name: FREE, widget: secret}, {name: BOUND, widget: secret, hosts: [api.example.com]}]";
        let node = format!("    - {{id: a, type: http, url: \"{url}\"{more}}}\n");
        match compile(&format!("name: T\n{env}\ngraph:\n  nodes:\n{node}")) {
            Ok(compiled) => lines(&compiled.warnings),
            Err(found) => lines(&found),
        }
    };
    let bound = "https://api.example.com/bot{{ secret.BOUND }}/send";
    assert_eq!(told(bound, ""), "");
    assert_eq!(told("https://api.example.com/", ", query: {key: '{{ secret.BOUND }}'}"), "");
    for (url, more) in [
        ("https://api.example.com/?key={{ secret.FREE }}", ""),
        ("https://api.example.com/", ", query: {key: '{{ secret.FREE }}'}"),
    ] {
        let told = told(url, more);
        assert!(told.contains("secret_misplaced") && told.contains("hosts: ["), "{url}: {told}");
    }
    for url in ["https://{{ secret.BOUND }}/x", "https://{{ secret.BOUND }}.example.com/"] {
        assert!(told(url, "").contains("cannot be the host"), "{url}: {}", told(url, ""));
    }
}

#[test]
fn what_was_sent_and_chooses_the_host_is_told_once_with_a_way_out() {
    let head = "triggers: [{type: manual, input: {host: {type: string}, id: {type: integer}, shop: {type: string, pattern: '^[a-z]+$'}}}]\n";
    for (url, wrong) in [
        ("https://{{ event.payload.host }}/x", 1),
        ("https://{{ event.payload.host | upper }}/x", 1),
        ("https://{{ event.payload.host | slug }}.example.com/x", 0),
        ("https://{{ event.payload.host | one_of('a.example.com') }}/x", 0),
        ("https://{{ event.payload.id }}/x", 1),
        ("https://{{ event.payload.shop }}.example.com/x", 0),
    ] {
        let told = told(head, &format!("    - {{id: a, type: http, url: \"{url}\"}}\n"));
        assert_eq!(told.matches("tainted_value").count(), wrong, "{url}: {told}");
    }
    let url = "https://{{ event.payload.host }}/x";
    let told = told(head, &format!("    - {{id: a, type: http, url: \"{url}\"}}\n"));
    assert!(told.contains("slug }}.example.com") && told.contains("one_of("), "{told}");
    assert!(!told.contains("a number"), "{told}");
}

#[test]
fn an_address_says_how_its_host_is_asked() {
    for (url, instead) in [
        ("example.org/x", Some("write `https://example.org/x`")),
        ("example.org/{{ env.URL }}", Some("write `https://example.org/{{ env.URL }}`")),
        ("/x", Some("write `https://HOST/x`")),
        ("ftp://example.org/x", Some("only `http` and `https`")),
        ("https://example.org/x", None),
        ("HTTP://example.org/x", None),
        ("{{ env.URL }}/x", None),
        ("http{{ 's' if env.URL else '' }}://example.org/x", None),
    ] {
        for hosts in ["", "hosts: [example.org]\n"] {
            let told = told(hosts, &format!("    - {{id: a, type: http, url: \"{url}\"}}\n"));
            assert_eq!(told.contains("error["), instead.is_some(), "{url}: {told}");
            assert!(told.contains(instead.unwrap_or_default()), "{url}: {told}");
        }
    }
}
