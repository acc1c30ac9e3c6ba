//! Writes random automations that the compiler must take.
//!
//! A graph is put together from parts: steps, switches, parallel ways with their joins, loops,
//! fallbacks. A part has one step at which it begins, and the ways that are still open behind
//! it. What later steps may read is kept beside it, so that no template looks at a step that
//! may be under way at the same time.

use serde_json::{Map, Value, json};

use super::words;
use crate::random::Random;

/// A random automation, and what a run of it is given.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) text: String,
    pub(super) trigger: Option<String>,
    pub(super) payload: Value,
    pub(super) steps_max: u32,
}

/// Writes the automation of a seed.
pub(super) fn write(seed: u64) -> Written {
    let mut random = Random::new(seed);
    let left = 2 + random.below(14);
    let failures = random.percent(70);
    let (depth, single) = (0, false);
    let mut author = Author { random, nodes: Vec::new(), left, depth, failures, single };
    author.whole()
}

/// One node of the file.
struct Node {
    id: String,
    fields: Map<String, Value>,
    next: Vec<String>,
    cases: Vec<(String, String)>,
    /// How many loops stand around it.
    depth: usize,
}

/// A way that is open behind a part.
#[derive(Clone)]
struct Exit {
    from: String,
    case: Option<&'static str>,
}

/// A piece of a graph.
struct Part {
    entry: String,
    exits: Vec<Exit>,
    /// What the steps behind it may read.
    known: Vec<String>,
}

struct Author {
    random: Random,
    nodes: Vec<Node>,
    /// How many more steps there may be, about.
    left: usize,
    depth: usize,
    failures: bool,
    /// Whether only one thing may be under way: what is written stands in a cycle.
    single: bool,
}

impl Author {
    fn whole(&mut self) -> Written {
        let mut triggers = Vec::new();
        let mut graph = Map::new();
        let first = self.sequence(&[]);
        let entry = first.entry.clone();
        if self.random.percent(20) && !first.exits.is_empty() {
            let other = self.sequence(&[]);
            triggers = vec![first.entry.clone(), other.entry.clone()];
            let exits: Vec<Exit> = first.exits.into_iter().chain(other.exits).collect();
            let tail = self.sequence(&first.known);
            self.connect(&exits, &tail.entry);
            self.close(&tail.exits);
        } else {
            self.close(&first.exits);
            if self.random.percent(30) || self.is_led_to(&entry) {
                graph.insert("entry".to_owned(), json!(entry));
            }
        }
        if self.random.percent(25) {
            if triggers.is_empty() {
                graph.insert("entry".to_owned(), json!(entry));
            }
            let top: Vec<&Node> = self.nodes.iter().filter(|node| node.depth == 0).collect();
            let place = self.random.below(top.len());
            triggers.extend(top.get(place).map(|node| node.id.clone()));
        }
        let chosen = self.random.below(triggers.len() + 1).checked_sub(1);
        let chosen = if graph.contains_key("entry") { chosen } else { chosen.or(Some(0)) };
        let trigger = chosen.filter(|at| *at < triggers.len()).map(|at| format!("t{at}"));
        let payload = self.payload();
        let steps_max = if self.random.percent(4) { 1 + self.random.below(12) } else { 10_000 };
        let steps_max = u32::try_from(steps_max).unwrap_or(u32::MAX);
        Written { text: self.text(graph, &triggers), trigger, payload, steps_max }
    }

    fn text(&mut self, mut graph: Map<String, Value>, triggers: &[String]) -> String {
        let mut text = String::from("name: Random\n");
        if self.random.percent(5) {
            text.push_str("max_duration_sec: 30\n");
        }
        if !triggers.is_empty() {
            text.push_str("triggers:\n");
        }
        for (at, entry) in triggers.iter().enumerate() {
            text.push_str(&format!(
                "  - {}\n",
                json!({"type": "manual", "id": format!("t{at}"), "entry_node": entry})
            ));
        }
        text.push_str("graph:\n");
        if let Some(entry) = graph.remove("entry") {
            text.push_str(&format!("  entry: {entry}\n"));
        }
        let mut edges = Vec::new();
        text.push_str("  nodes:\n");
        for node in std::mem::take(&mut self.nodes) {
            let inside = self.random.percent(70);
            text.push_str(&format!("    - {}\n", node.value(inside, &mut edges)));
        }
        if !edges.is_empty() {
            text.push_str("  edges:\n");
        }
        for edge in edges {
            text.push_str(&format!("    - {edge}\n"));
        }
        text
    }

    fn payload(&mut self) -> Value {
        let list: Vec<usize> = (0..self.random.below(4)).collect();
        let deep: Vec<Vec<usize>> =
            (0..self.random.below(3)).map(|_| (0..self.random.below(3)).collect()).collect();
        let text = words::CASES.get(self.random.below(4)).copied().unwrap_or("other");
        json!({
            "n": self.random.below(4), "list": list, "deep": deep, "text": text,
            "yes": self.random.percent(60),
        })
    }

    fn node(&mut self, kind: &str) -> String {
        let id = format!("{}{}", kind.get(..1).unwrap_or("s"), self.nodes.len());
        self.left = self.left.saturating_sub(1);
        let mut fields = Map::new();
        fields.insert("type".to_owned(), json!(kind));
        let (next, cases) = (Vec::new(), Vec::new());
        self.nodes.push(Node { id: id.clone(), fields, next, cases, depth: self.depth });
        id
    }

    fn set(&mut self, id: &str, field: &str, value: Value) {
        if let Some(node) = self.nodes.iter_mut().find(|node| node.id == id) {
            node.fields.insert(field.to_owned(), value);
        }
    }

    fn connect(&mut self, exits: &[Exit], to: &str) {
        for exit in exits {
            let Some(node) = self.nodes.iter_mut().find(|node| node.id == exit.from) else {
                continue;
            };
            match exit.case {
                None => node.next.push(to.to_owned()),
                Some(case) => node.cases.push((case.to_owned(), to.to_owned())),
            }
        }
    }

    /// Ends what is open: outcomes with a name must lead somewhere.
    fn close(&mut self, exits: &[Exit]) {
        let cases: Vec<Exit> = exits.iter().filter(|exit| exit.case.is_some()).cloned().collect();
        if !cases.is_empty() {
            let end = self.node("end");
            self.connect(&cases, &end);
        }
    }

    /// Leads named outcomes to a step, so that what is open has none.
    fn unnamed(&mut self, exits: Vec<Exit>) -> Vec<Exit> {
        let (cases, mut plain): (Vec<Exit>, Vec<Exit>) =
            exits.into_iter().partition(|exit| exit.case.is_some());
        if !cases.is_empty() {
            let step = self.node("log");
            self.set(&step, "message", json!("case"));
            self.connect(&cases, &step);
            plain.push(Exit { from: step, case: None });
        }
        plain
    }

    fn sequence(&mut self, known: &[String]) -> Part {
        let mut known = known.to_vec();
        let mut whole = self.part(&known);
        known.extend(whole.known.iter().cloned());
        while self.left > 0 && !whole.exits.is_empty() && self.random.percent(60) {
            let next = self.part(&known);
            self.connect(&whole.exits, &next.entry);
            whole.exits = next.exits;
            known.extend(next.known.iter().cloned());
            whole.known.extend(next.known);
        }
        if whole.exits.is_empty() {
            whole.known.clear();
        }
        whole
    }

    fn part(&mut self, known: &[String]) -> Part {
        let many = if self.left > 2 { 115 } else { 60 };
        match self.random.below(many) {
            0..54 => self.step(known),
            54..57 => self.last(known),
            57..70 => self.switch(known),
            70..86 if !self.single => self.parallel(known),
            86..94 if self.depth < 2 => self.looped(known),
            100..115 => self.cycle(known),
            _ => self.replaced(known),
        }
    }

    fn step(&mut self, known: &[String]) -> Part {
        let kinds = [
            "http",
            "http",
            "http",
            "log",
            "shell",
            "transform",
            "transform",
            "wait",
            "human",
            "workflow",
            "guide",
            "webhook_respond",
        ];
        let kind = kinds.get(self.random.below(kinds.len())).copied().unwrap_or("log");
        let id = self.node(kind);
        self.fill(&id, kind, known);
        self.common(&id, known);
        if self.failures && self.random.percent(15) {
            self.set(&id, "on_failure", json!("skip"));
        }
        let case = |case| Exit { from: id.clone(), case: Some(case) };
        let exits = match (kind, self.random.below(3)) {
            ("human", 0) => vec![case("approved"), case("default")],
            ("human", 1) => vec![case("default")],
            ("human", _) => vec![case("approved"), case("rejected")],
            _ => vec![Exit { from: id.clone(), case: None }],
        };
        Part { known: readable(&id, kind), entry: id, exits }
    }

    /// `end` or `fail`.
    fn last(&mut self, known: &[String]) -> Part {
        let kind = if self.random.percent(70) { "end" } else { "fail" };
        let id = self.node(kind);
        match kind {
            "end" if self.random.percent(50) => {
                let result = self.template(known);
                self.set(&id, "result", result);
            }
            "end" => {}
            _ => self.set(&id, "message", json!("so be it")),
        }
        let mut exits = Vec::new();
        if kind == "fail" && self.random.percent(30) {
            self.set(&id, "on_failure", json!("skip"));
            // A join does not wait for a `fail`, so that something must stand behind it.
            let behind = self.node("log");
            self.set(&behind, "message", json!("on"));
            self.connect(&[Exit { from: id.clone(), case: None }], &behind);
            exits.push(Exit { from: behind, case: None });
        }
        self.condition(&id, known);
        Part { entry: id, exits, known: Vec::new() }
    }

    fn switch(&mut self, known: &[String]) -> Part {
        let id = self.node("branch");
        let two = self.random.percent(35);
        let expr = match two {
            true => words::condition(&mut self.random, known),
            false => words::choice(&mut self.random, known),
        };
        self.set(&id, "expr", json!(expr));
        self.condition(&id, known);
        let cases: &[&'static str] =
            if two { &["true", "false"] } else { &["a", "b", "c", "default"] };
        let mut part = Part { entry: id.clone(), exits: Vec::new(), known: Vec::new() };
        for case in cases {
            if *case != "default" && !two && self.random.percent(25) {
                continue;
            }
            let exit = Exit { from: id.clone(), case: Some(case) };
            if self.left == 0 || self.random.percent(30) {
                part.exits.push(exit);
                continue;
            }
            let arm = self.sequence(known);
            self.connect(&[exit], &arm.entry);
            part.exits.extend(arm.exits);
            part.known.extend(arm.known);
        }
        part
    }

    fn parallel(&mut self, known: &[String]) -> Part {
        let kind = if self.random.percent(70) { "parallel" } else { "log" };
        let id = self.node(kind);
        if kind == "log" {
            self.fill(&id, kind, known);
        }
        self.condition(&id, known);
        let arms: Vec<Part> = (0..2 + self.random.below(2)).map(|_| self.sequence(known)).collect();
        let entries: Vec<String> = arms.iter().map(|arm| arm.entry.clone()).collect();
        match self.random.below(8) {
            0..3 if kind == "parallel" && arms.iter().any(|arm| !arm.exits.is_empty()) => {
                self.joined(id, entries, arms, known)
            }
            7 => {
                let out = Exit { from: id.clone(), case: None };
                entries.iter().for_each(|entry| self.connect(std::slice::from_ref(&out), entry));
                arms.iter().for_each(|arm| self.close(&arm.exits));
                Part { entry: id, exits: Vec::new(), known: Vec::new() }
            }
            _ => self.merged(id, &entries, arms, known),
        }
    }

    /// What comes after waits for all, without a merge that is written out.
    fn joined(
        &mut self,
        id: String,
        entries: Vec<String>,
        arms: Vec<Part>,
        known: &[String],
    ) -> Part {
        self.set(&id, "branches", json!(entries));
        let mut readable = Vec::new();
        for arm in arms {
            self.unnamed(arm.exits);
            readable.extend(arm.known);
        }
        let mut behind = known.to_vec();
        behind.extend(readable.iter().cloned());
        let mut after = self.step(&behind);
        self.connect(&[Exit { from: id.clone(), case: None }], &after.entry);
        after.known.extend(readable);
        Part { entry: id, ..after }
    }

    fn merged(
        &mut self,
        id: String,
        entries: &[String],
        arms: Vec<Part>,
        known: &[String],
    ) -> Part {
        let out = Exit { from: id.clone(), case: None };
        entries.iter().for_each(|entry| self.connect(std::slice::from_ref(&out), entry));
        let exits: Vec<Exit> = arms.iter().flat_map(|arm| arm.exits.iter().cloned()).collect();
        if exits.is_empty() {
            return Part { entry: id, exits, known: Vec::new() };
        }
        let merge = self.node("merge");
        let strategy =
            ["object", "list", "first"].get(self.random.below(3)).copied().unwrap_or("object");
        self.set(&merge, "strategy", json!(strategy));
        if exits.iter().all(|exit| exit.case.is_none()) && self.random.percent(50) {
            let mut inputs: Vec<&String> = exits.iter().map(|exit| &exit.from).collect();
            inputs.dedup();
            if self.random.percent(30) {
                inputs.reverse();
            }
            self.set(&merge, "inputs", json!(inputs));
        } else {
            self.connect(&exits, &merge);
        }
        self.condition(&merge, known);
        // What a merge that takes the first does not wait for may still be under way behind it.
        let mut readable: Vec<String> = match strategy {
            "first" => Vec::new(),
            _ => arms.into_iter().flat_map(|arm| arm.known).collect(),
        };
        readable.push(format!("steps.{merge}"));
        let exits = vec![Exit { from: merge, case: None }];
        Part { entry: id, exits, known: readable }
    }

    fn looped(&mut self, known: &[String]) -> Part {
        let id = self.node("loop");
        let (field, value) = words::repeat(&mut self.random, known, self.depth);
        self.set(&id, field, value);
        if self.random.percent(if field == "while" { 90 } else { 20 }) {
            let most = 1 + self.random.below(4);
            self.set(&id, "max_iterations", json!(most));
        }
        self.condition(&id, known);
        if self.depth > 0 {
            self.set(&id, "as", json!("inner"));
            self.set(&id, "index_as", json!("place"));
        }
        let begin = self.nodes.len();
        self.depth += 1;
        let single = std::mem::replace(&mut self.single, false);
        let mut inside = known.to_vec();
        inside.extend(match self.depth {
            1 => ["item".to_owned(), "index".to_owned()],
            _ => ["inner".to_owned(), "place".to_owned()],
        });
        for _ in 0..1 + usize::from(self.random.percent(20)) {
            let part = self.sequence(&inside);
            self.close(&part.exits);
        }
        let depth = self.depth;
        let body: Vec<&String> =
            self.nodes.iter().skip(begin).filter(|n| n.depth == depth).map(|n| &n.id).collect();
        let body = json!(body);
        self.set(&id, "body", body);
        self.depth -= 1;
        self.single = single;
        let known = vec![format!("steps.{id}.iterations"), format!("steps.{id}.results")];
        Part { exits: vec![Exit { from: id.clone(), case: None }], entry: id, known }
    }

    /// Steps that are done again as long as a switch behind them leads back.
    fn cycle(&mut self, known: &[String]) -> Part {
        let begin = self.nodes.len();
        let single = std::mem::replace(&mut self.single, true);
        let mut part = self.sequence(known);
        self.single = single;
        if part.exits.is_empty() {
            return part;
        }
        let mut seen = known.to_vec();
        seen.extend(part.known.iter().cloned());
        let depth = self.depth;
        let members: Vec<(String, Value)> = self
            .nodes
            .iter()
            .skip(begin)
            .filter(|node| node.depth == depth)
            .filter_map(|node| Some((node.id.clone(), node.fields.get("type")?.clone())))
            .collect();
        // Steps may look at what they and later ones gave the last time.
        for (id, kind) in &members {
            if self.random.percent(40) && ["http", "log", "transform"].iter().any(|k| *kind == *k) {
                self.fill(id, kind.as_str().unwrap_or("log"), &seen);
            }
        }
        let id = self.node("branch");
        let expr = words::choice(&mut self.random, &seen);
        self.set(&id, "expr", json!(expr));
        let most = 1 + self.random.below(5);
        self.set(&id, "max_visits", json!(most));
        self.condition(&id, &seen);
        self.connect(&part.exits, &id);
        part.exits.clear();
        // One leads back to the beginning, one leads out, and the others anywhere.
        let out = self.random.below(4);
        for (place, case) in ["default", "a", "b", "c"].into_iter().enumerate() {
            let exit = Exit { from: id.clone(), case: Some(case) };
            let back = members.get(self.random.below(members.len() + 1)).map(|(id, _)| id.clone());
            match place {
                _ if place == out => part.exits.push(exit),
                _ if place == (out + 1) % 4 => self.connect(&[exit], &part.entry.clone()),
                _ if self.random.percent(25) => part.exits.push(exit),
                _ => self.connect(&[exit], &back.unwrap_or_else(|| id.clone())),
            }
        }
        part
    }

    /// Whether an edge leads to a node.
    fn is_led_to(&self, id: &str) -> bool {
        self.nodes.iter().any(|node| {
            let cases = node.cases.iter().map(|(_, to)| to);
            node.next.iter().chain(cases).any(|to| to == id)
        })
    }

    /// A step, and what takes its place when it fails.
    fn replaced(&mut self, known: &[String]) -> Part {
        let mut part = self.step(known);
        let fallback = self.sequence(known);
        self.set(&part.entry.clone(), "on_failure", json!("fallback"));
        self.set(&part.entry.clone(), "fallback", json!(fallback.entry));
        if fallback.exits.is_empty() {
            return part;
        }
        part.exits.extend(fallback.exits);
        part.known.extend(fallback.known);
        part
    }

    fn condition(&mut self, id: &str, known: &[String]) {
        if self.random.percent(15) {
            let when = words::condition(&mut self.random, known);
            self.set(id, "when", json!(when));
        }
    }

    fn template(&mut self, known: &[String]) -> Value {
        json!(words::template(&mut self.random, known))
    }

    /// What every step can say.
    fn common(&mut self, id: &str, known: &[String]) {
        self.condition(id, known);
        if self.random.percent(40) {
            let interrupt = ["retry", "fail", "ask"].get(self.random.below(3)).copied();
            self.set(id, "on_interrupt", json!(interrupt.unwrap_or("retry")));
        }
        if self.failures && self.random.percent(35) {
            let mut retry =
                json!({"max": 1 + self.random.below(3), "delay_sec": self.random.below(3)});
            if let Some(fields) = retry.as_object_mut() {
                if self.random.percent(30) {
                    fields.insert("on".to_owned(), json!(["timeout", "connection"]));
                }
                if self.random.percent(50) {
                    fields.insert("jitter".to_owned(), json!(false));
                }
                if self.random.percent(30) {
                    fields.insert("backoff".to_owned(), json!("fixed"));
                }
            }
            self.set(id, "retry", retry);
        }
    }

    /// The settings of a step of this type.
    fn fill(&mut self, id: &str, kind: &str, known: &[String]) {
        let value = self.template(known);
        match kind {
            "http" => {
                self.set(id, "url", json!("https://example.org/"));
                self.set(id, "body", json!({"v": value}));
            }
            "log" => self.set(id, "message", value),
            "shell" => self.set(id, "command", json!(["echo", value])),
            "transform" => {
                self.set(id, "engine", json!("jq"));
                self.set(id, "expression", json!("."));
                self.set(id, "input", value);
            }
            "wait" if self.random.percent(20) => {
                self.set(id, "duration_sec", json!("{{ event.payload.n }}"));
            }
            "wait" => {
                let seconds = 1 + self.random.below(20);
                self.set(id, "duration_sec", json!(seconds));
            }
            "human" => {
                self.set(id, "prompt", value);
                if self.random.percent(50) {
                    let seconds = 1 + self.random.below(20);
                    self.set(id, "expires_sec", json!(seconds));
                    let then = ["approve", "reject", "fail"].get(self.random.below(3)).copied();
                    self.set(id, "on_expire", json!(then.unwrap_or("fail")));
                    self.set(id, "approves_unattended", json!(true));
                }
            }
            "guide" => {
                self.set(id, "prompt", value);
                if self.random.percent(30) {
                    let contract = json!({"type": "object", "required": ["seen"]});
                    self.set(id, "output_contract", contract);
                }
            }
            "workflow" => {
                self.set(id, "workflow", json!("project.other"));
                self.set(id, "input", json!({"v": value}));
            }
            _ => self.set(id, "body", value),
        }
    }
}

impl Node {
    /// The node as it is written, with its edges inside or in the list.
    fn value(self, inside: bool, edges: &mut Vec<Value>) -> Value {
        let Self { id, mut fields, next, cases, .. } = self;
        fields.insert("id".to_owned(), json!(id));
        if inside {
            match next.as_slice() {
                [] => {}
                [one] => drop(fields.insert("next".to_owned(), json!(one))),
                several => drop(fields.insert("next".to_owned(), json!(several))),
            }
            if !cases.is_empty() {
                let cases: Map<String, Value> =
                    cases.into_iter().map(|(case, to)| (case, json!(to))).collect();
                fields.insert("cases".to_owned(), Value::Object(cases));
            }
        } else {
            edges.extend(next.into_iter().map(|to| json!({"from": id, "to": to})));
            let named = cases.into_iter();
            edges.extend(named.map(|(case, to)| json!({"from": id, "case": case, "to": to})));
        }
        Value::Object(fields)
    }
}

/// What can be read of a step's output.
fn readable(id: &str, kind: &str) -> Vec<String> {
    let paths: &[&str] = match kind {
        "http" | "shell" => &[".json.n", ".json.list", ".json.text", ".json.yes"],
        "transform" => &[".n", ".list", ".text", ".yes", ""],
        "human" => &[".by", ".answer.n"],
        "workflow" => &[".result.n", ".status"],
        "guide" => &[".seen", ""],
        "wait" => &[".until"],
        _ => &[],
    };
    paths.iter().map(|path| format!("steps.{id}{path}")).collect()
}
