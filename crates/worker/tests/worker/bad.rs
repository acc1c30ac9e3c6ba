//! Expressions that take a process down, or never end. Each is told by its name, and the
//! next job is answered.

use serde_json::json;

use super::*;

/// Runs a job that must fail with one of these codes, and one that must not behind it.
async fn survives(pool: &Pool, what: &str, job: Job, codes: &[&str]) {
    let answer = pool.run(&job).await;
    let code = answer.as_ref().err().map(|error| error.code.name());
    assert!(code.is_some_and(|code| codes.contains(&code)), "{what}: {answer:?}");
    assert_eq!(pool.run(&jq(". + 1", json!(1))).await, Ok(json!(2)), "behind {what}");
}

// case: expr.jq
#[tokio::test]
async fn programs_that_never_end_or_eat_all_memory() {
    let pool = Pool::new(settings());
    let ends = ["EXPR_TIMEOUT", "EXPR_MEMORY", "EXPR_CRASH"];
    let deep = "[".repeat(20_000);
    for program in [
        "def f: f; f",
        "[repeat(1)]",
        "[range(1e12)]",
        "\"A\" * 4000000000",
        "def f: 1 + f; f",
        "reduce range(60) as $i (\"ab\"; . + .)",
        "[limit(1e12; repeat(1))] | length",
        "last(range(1e15))",
    ] {
        survives(&pool, program, jq(program, json!(null)), &ends).await;
    }
    survives(&pool, "a part of a text", jq("\"A\" * 4e9", json!(null)), &["EXPR_FAILED"]).await;
    let codes = ["EXPR_SYNTAX", "EXPR_CRASH", "EXPR_MEMORY"];
    survives(&pool, "20,000 brackets", jq(&deep, json!(null)), &codes).await;
}

#[tokio::test]
async fn programs_that_reach_out() {
    let pool = Pool::new(settings());
    for program in [
        "env",
        "$ENV",
        "halt",
        "halt_error",
        "input",
        "[inputs]",
        "debug",
        "stderr",
        "now",
        "input_filename",
        "include \"x\"; 1",
        "import \"x\" as x; 1",
        "repl",
        "localtime",
    ] {
        survives(&pool, program, jq(program, json!(null)), &["EXPR_SYNTAX"]).await;
    }
}

// case: expr.endless
#[tokio::test]
async fn templates_that_never_end_or_eat_all_memory() {
    let pool = Pool::new(settings());
    let loops = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
    survives(&pool, loops, template(loops, json!({})), &["EXPR_TIMEOUT"]).await;
    let doubles: String = (0..40).map(|_| "{% set s = s ~ s %}").collect();
    let doubles = format!("{{% set s = 'abcdefgh' %}}{doubles}{{{{ s | length }}}}");
    survives(&pool, "doubling", template(&doubles, json!({})), &["EXPR_MEMORY", "EXPR_TOO_LARGE"])
        .await;
    let grows: String = (0..9).map(|_| "{% set s = s | replace('a', s) %}").collect();
    let grows = format!("{{% set s = 'aaaaaaaaaa' %}}{grows}{{{{ s }}}}");
    survives(&pool, "replace", template(&grows, json!({})), &["EXPR_MEMORY", "EXPR_TOO_LARGE"])
        .await;
    let large = "{% for a in range(100000) %}{{ a }} and then some text behind it{% endfor %}";
    survives(&pool, large, template(large, json!({})), &["EXPR_TOO_LARGE"]).await;
    let deep = format!(
        "{{{{ {}1{} }}}}{{% if true %}}{{% endif %}}",
        "(".repeat(20_000),
        ")".repeat(20_000)
    );
    survives(&pool, "parentheses", template(&deep, json!({})), &["EXPR_SYNTAX"]).await;
    let range = "{{ range(1000000000) }}";
    survives(&pool, range, template(range, json!({})), &["EXPR_FAILED", "EXPR_MEMORY"]).await;
}

// case: expr.pattern
#[tokio::test]
async fn patterns_that_take_their_time() {
    let pool = Pool::new(settings());
    let find = |pattern: &str, text: String| Job::Regex { pattern: pattern.to_owned(), text };
    survives(
        &pool,
        "nested repetitions",
        find("((a{1000}){1000}){1000}", "a".into()),
        &["EXPR_SYNTAX"],
    )
    .await;
    survives(&pool, "a long text", find("a", "a".repeat(70_000)), &["EXPR_FAILED"]).await;
    let answer = pool.run(&find("(a*)*b", "a".repeat(50_000))).await;
    assert_eq!(answer, Ok(json!(null)));
    // To find all of these takes the square of the text's length; the first one does not.
    let square = ".*[^A-Z]|[A-Z]";
    let first = pool.run(&find(square, "A".repeat(60_000))).await;
    assert!(first.as_ref().is_ok_and(|found| !found.is_null()), "{first:?}");
    let all = jq(&format!("[scan({square:?})] | length"), json!("A".repeat(1_000_000)));
    survives(&pool, "all of a long text", all, &["EXPR_TIMEOUT"]).await;
    let text = "{{ 'aaaa' | matches(event.pattern) }}";
    let context = json!({"event": {"pattern": "((a{1000}){1000}){1000}"}});
    survives(&pool, "a pattern of an event", template(text, context), &["EXPR_INVALID"]).await;
}

// case: expr.deep
#[tokio::test]
async fn paths_that_nest() {
    let pool = Pool::new(settings());
    let path = format!("$[?{}@.a{}]", "(".repeat(20_000), ")".repeat(20_000));
    survives(&pool, "parentheses", Job::JsonPath { path, input: json!([1]) }, &["EXPR_SYNTAX"])
        .await;
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_cut_off() {
    let pool = Pool::new(Settings { time_max: Duration::from_millis(200), ..settings() });
    let answer = pool.run(&jq("def f: f; f", json!(null))).await;
    assert_eq!(shown(answer), "EXPR_TIMEOUT: it takes more than 0.2 s");
    assert_eq!(pool.idle(), 0);
}

// case: expr.rendered-once
#[tokio::test]
async fn data_is_not_read_as_a_template() {
    let pool = Pool::new(settings());
    let text = "{% if true %}{{ event.text }}{% endif %}";
    let answer = pool.run(&template(text, json!({"event": {"text": "{{ 1 + 1 }}{% x %}"}}))).await;
    assert_eq!(answer, Ok(json!("{{ 1 + 1 }}{% x %}")));
}
