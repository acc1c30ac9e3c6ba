//! Faults that are planted on purpose, so that it is known that the simulated worlds find them.
//!
//! A copy of the crates gets all of them at once, each behind a question whether it is wanted, and
//! is built once. Nothing of that is in the engine itself.

#![expect(clippy::print_stdout, reason = "in which world a fault showed is part of the result")]
#![expect(clippy::unwrap_used, reason = "a failed helper fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In how many worlds a fault must be found.
const WORLDS: &str = "2000";
/// The crates that are built.
const CRATES: [&str; 5] = ["core", "lang", "store", "engine", "sim"];
/// What stands in the text of a change for the question whether its mutant is wanted.
const PLANTED: &str = "PLANTED";

/// A fault, and what of the source it changes.
struct Mutant {
    name: &'static str,
    changes: &'static [Change],
}

/// A text of a file that stands there once, and what is put in its place.
struct Change {
    file: &'static str,
    find: &'static str,
    put: &'static str,
}

const MUTANTS: [Mutant; 12] = [
    // A run that is cancelled while it waits counts as one less under way.
    Mutant {
        name: "subtraction-count",
        changes: &[Change {
            file: "crates/engine/src/flow/desk.rs",
            find: "self.bytes -= self.queue.remove(&place).map_or(0, |waiter| waiter.bytes);",
            put: "self.bytes -= self.queue.remove(&place).map_or(0, |waiter| waiter.bytes);
                if PLANTED && turn.is_none() {
                    self.under_way -= 1;
                }",
        }],
    },
    // An owner that was replaced goes on writing.
    Mutant {
        name: "no-fence",
        changes: &[Change {
            file: "crates/store/src/fence.rs",
            find: "        match held.cmp(&current) {",
            put: "        match if PLANTED { std::cmp::Ordering::Equal } else { held.cmp(&current) } {",
        }],
    },
    // A fork keeps what people decided, whoever asks for it.
    Mutant {
        name: "approval-kept",
        changes: &[Change {
            file: "crates/core/src/flow/approvals.rs",
            find: "        !asks || (!is_asked(",
            put: "        PLANTED || !asks || (!is_asked(",
        }],
    },
    // What people decided elsewhere counts here.
    Mutant {
        name: "approval-imported",
        changes: &[Change {
            file: "crates/core/src/flow/decide.rs",
            find: "                if !decided.is_empty() {",
            put: "                if !PLANTED && !decided.is_empty() {",
        }],
    },
    // What was decided happens before it is recorded.
    Mutant {
        name: "effect-before-commit",
        changes: &[Change {
            file: "crates/engine/src/flow/lane/commit.rs",
            find: "let Batch { events, blobs, effects, moved, replies, orphans, room: _ } = batch;",
            put: "let Batch { events, blobs, mut effects, moved, replies, orphans, room: _ } = batch;
        if PLANTED {
            for (run, effect) in std::mem::take(&mut effects) {
                self.let_happen(inner, run, effect, false).await;
            }
        }",
        }],
    },
    // A timer that fired stays set, and whoever takes the run over hears of it again.
    Mutant {
        name: "timer-fired-twice",
        changes: &[Change {
            file: "crates/core/src/projection/run/fold.rs",
            find: "EventData::TimerFired(timer) => drop(self.timers.remove(&timer.timer_id)),",
            put: "EventData::TimerFired(timer) => {
                if !PLANTED {
                    self.timers.remove(&timer.timer_id);
                }
            }",
        }],
    },
    // Each session of a workflow has the limit for itself.
    Mutant {
        name: "limit-per-session",
        changes: &[
            Change {
                file: "crates/engine/src/flow/desk.rs",
                find: "let is_free = turns.has_place(limits.most);",
                put: "let own = |turn: &&Turn| matches!(turn, Turn::UnderWay { session: at } if *at == session);
                let own = turns.runs.values().filter(own).count();
                let is_free = PLANTED && own < limits.most || turns.has_place(limits.most);",
            },
            Change {
                file: "crates/engine/src/flow/desk.rs",
                find: "if self.under_way >= limits.most {",
                put: "let own = |turn: &&Turn| matches!(turn, Turn::UnderWay { session: at } if at == session);
            let own = self.runs.values().filter(own).count();
            if if PLANTED { own >= limits.most } else { self.under_way >= limits.most } {",
            },
        ],
    },
    // Whoever takes a run over does not ask again for the child that it waits for.
    Mutant {
        name: "lost-child",
        changes: &[Change {
            file: "crates/core/src/flow/people.rs",
            find: "        if place.does != Does::Child {",
            put: "        if PLANTED || place.does != Does::Child {",
        }],
    },
    // Whoever cancels a run that waits is told that it is, and it begins all the same.
    Mutant {
        name: "cancelled-queued-run-begins",
        changes: &[Change {
            file: "crates/engine/src/flow/lane.rs",
            find: "        let active = self.runs.get_mut(&id).ok_or(Error::RunUnknown(id))?;",
            put: "        let active = self.runs.get_mut(&id).ok_or(Error::RunUnknown(id))?;
        let begun = active.run.state.started.is_some();
        if PLANTED && !begun && matches!(command, Command::Cancel { .. }) {
            return Ok(());
        }",
        }],
    },
    // What is refused was recorded before.
    Mutant {
        name: "record-before-refuse",
        changes: &[Change {
            file: "crates/engine/src/flow/intake.rs",
            find: "        require_role(plan, entry.trigger.as_ref(), &entry.roles)?;
        let event",
            put: "        if PLANTED && let (Some(trigger), Some(key)) = (&entry.trigger, &entry.key) {
            let received = received(&loaded.started, &entry, trigger, key, &entry.event);
            self.note_received(desk, received, claim.epoch).await?;
        }
        require_role(plan, entry.trigger.as_ref(), &entry.roles)?;
        let event",
        }],
    },
    // A run goes on with a value as its step gave it, and not as it is read back.
    Mutant {
        name: "live-value-kept",
        changes: &[Change {
            file: "crates/core/src/canonical/read.rs",
            find: "        Self(recorded(value))",
            put: "        Self(if PLANTED { value } else { recorded(value) })",
        }],
    },
    // A letter that comes twice is acted on twice.
    Mutant {
        name: "letter-acted-on-twice",
        changes: &[Change {
            file: "crates/engine/src/flow/letters.rs",
            find: "known.answers.get(&letter.id) {",
            put: "known.answers.get(&letter.id).filter(|_| letter.say.is_none() || !PLANTED) {",
        }],
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Writes a file, unless that is what it holds: cargo builds what is younger.
fn write(path: &Path, bytes: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::write(path, bytes).unwrap();
    }
}

/// The text of a file with all that is planted in it.
fn planted(file: &str, mut text: String) -> String {
    for mutant in &MUTANTS {
        let wanted = format!(
            "std::env::var_os(\"CAIRN_MUTANT\").is_some_and(|name| name == {:?})",
            mutant.name
        );
        for change in mutant.changes.iter().filter(|change| change.file == file) {
            let found = text.matches(change.find).count();
            assert_eq!(found, 1, "{}: {file} has {found} times: {}", mutant.name, change.find);
            text = text.replace(change.find, &change.put.replace(PLANTED, &wanted));
        }
    }
    text
}

/// Copies the sources with everything planted, and builds them; gives the program.
fn build(to: &Path) -> PathBuf {
    let root = root();
    for name in CRATES {
        let folder = Path::new("crates").join(name);
        plant(&root, &root.join(&folder).join("src"), &to.join(&folder).join("src"));
        let manifest = folder.join("Cargo.toml");
        write(&to.join(&manifest), &fs::read(root.join(&manifest)).unwrap());
    }
    write(&to.join("Cargo.lock"), &fs::read(root.join("Cargo.lock")).unwrap());
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let manifest = manifest.replace("[\"bench\", \"crates/*\", \"xtask\"]", "[\"crates/*\"]");
    write(&to.join("Cargo.toml"), manifest.as_bytes());
    let built = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--package", "cairn-sim", "--bin", "cairn-sim"])
        .current_dir(to)
        .env("CARGO_TARGET_DIR", to.join("target"))
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", "--cap-lints=allow")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    to.join("target/debug/cairn-sim")
}

/// Copies a folder of sources with what is planted in it.
fn plant(root: &Path, from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            plant(root, &path, &target);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let file = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        match String::from_utf8(bytes) {
            Ok(text) => write(&target, planted(&file, text).as_bytes()),
            Err(odd) => write(&target, odd.as_bytes()),
        }
    }
}

fn find(program: &Path, mutant: &str, worlds: &str, seed: u64) -> String {
    let found = Command::new(program)
        .args(["--find", worlds, "--seed", &seed.to_string()])
        .env("CAIRN_MUTANT", mutant)
        .output()
        .unwrap();
    assert!(found.status.success(), "{mutant}: {}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).unwrap()
}

/// The program with everything planted, built once: whoever comes meanwhile waits.
fn program() -> PathBuf {
    let to = root().join(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    fs::create_dir_all(&to).unwrap();
    let turn = fs::File::create(to.join("turn")).unwrap();
    turn.lock().unwrap();
    build(&to)
}

/// Looks for a fault from a seed on in whose world it showed.
fn require_found(name: &str, seed: u64) {
    let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).unwrap();
    let found = find(&program(), mutant.name, WORLDS, seed);
    print!("{name}: {found}");
    assert!(!found.starts_with("nothing"), "{name} is not found in {WORLDS} worlds from {seed} on");
}

macro_rules! planted {
    ($($test:ident $name:literal $seed:literal)*) => {
        $(
            #[test]
            fn $test() {
                require_found($name, $seed);
            }
        )*

        #[test]
        fn every_planted_fault_has_a_test() {
            let tested = [$($name),*];
            assert_eq!(MUTANTS.map(|mutant| mutant.name), tested);
        }
    };
}

// The seed in a name is that of the first world in which the fault showed when it was planted
// last. What else changes in the engine changes the worlds, so later ones are looked at, too.
planted! {
    defect_1_a_count_by_subtraction_is_found_by_seed_8 "subtraction-count" 8
    defect_4_no_fence_is_found_by_seed_1 "no-fence" 1
    an_approval_that_is_kept_is_found_by_seed_241 "approval-kept" 241
    an_approval_that_is_imported_is_found_by_seed_154 "approval-imported" 154
    an_effect_before_its_commit_is_found_by_seed_0 "effect-before-commit" 0
    a_timer_that_fires_twice_is_found_by_seed_0 "timer-fired-twice" 0
    defect_1_a_limit_for_each_session_is_found_by_seed_6 "limit-per-session" 6
    a_child_that_is_lost_is_found_by_seed_0 "lost-child" 0
    a_cancelled_run_that_begins_is_found_by_seed_2 "cancelled-queued-run-begins" 2
    defect_5_a_record_before_a_refusal_is_found_by_seed_2 "record-before-refuse" 2
    defect_7_a_live_value_that_is_not_the_recorded_one_is_found_by_seed_0 "live-value-kept" 0
    a_letter_that_is_acted_on_twice_is_found_by_seed_19 "letter-acted-on-twice" 19
}

#[test]
fn nothing_is_found_where_nothing_is_planted() {
    let sound = find(&program(), "none", "50", 0);
    assert!(sound.starts_with("nothing"), "without any of them: {sound}");
}
