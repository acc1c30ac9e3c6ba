//! The triggers of all workflows, as their files are now.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cairn_api::call::Trigger;
use cairn_api::error::Result;
use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::text::Slug;
use cairn_engine::catalog::{Catalog, Found, Identity};
use cairn_engine::flow::Refused;
use cairn_engine::flow::schedule::{Timed, Timetable};
use cairn_engine::secrets::{Held, Scope, Vault};
use cairn_engine::trigger::{Triggers, Watch};
use cairn_lang::diagnostic::Diagnostic;
use cairn_store::Store;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::routes::Shared;

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A trigger of a workflow.
pub struct Place {
    /// The id of the workflow.
    pub workflow: String,
    /// Which workflow it is.
    pub identity: Identity,
    /// Its own id.
    pub trigger: Slug,
    /// Its type.
    pub kind: String,
    /// Whether it fires.
    pub enabled: bool,
    /// What fires it.
    pub watch: Watch,
    /// Whether the file does not compile, so that the trigger stays as it was.
    pub is_stale: bool,
    /// What tells its settings from others.
    pub(crate) settings: Digest,
}

impl Place {
    /// Its name among all triggers; another when its settings are others.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}/{}", self.identity.key(), self.trigger, self.settings)
    }

    /// It, if the clock fires it.
    fn timed(&self) -> Option<Timed> {
        let Watch::Times(times) = &self.watch else { return None };
        Some(Timed {
            key: self.key(),
            workflow: self.workflow.clone(),
            trigger: self.trigger.clone(),
            kind: self.kind.clone(),
            is_enabled: self.enabled,
            times: Arc::clone(times),
        })
    }

    /// What keeps it from firing, as far as the secrets say.
    pub(crate) async fn obstacle(&self, vault: &Vault) -> Option<String> {
        let hook = match &self.watch {
            Watch::Hook(hook) => hook,
            Watch::Unconnected(why) => return Some(why.clone()),
            _ => return None,
        };
        let (name, scope) = (hook.secret(), Scope::Workflow(self.identity.clone()));
        let is_meant =
            |held: &Held| held.name == name && (held.scope == Scope::Global || held.scope == scope);
        // Which secrets there are takes no key; what is in them does, and is not said without.
        let fault = match vault.list().await.ok()?.iter().any(is_meant) {
            false => "has no value",
            true => hook.fault(&vault.signing(&scope, name, 0).await.ok()?.first()?.secret)?,
        };
        Some(format!(
            "the secret `{name}` {fault}, so every request is refused; set it with \
             `cairn secret set {name} --workflow {}`, which makes one with --generate",
            self.identity.name()
        ))
    }
}

/// The triggers of some workflows, by workflow and id. Those of a workflow that does not compile
/// are those of the version that compiled last, as far as this process has seen one.
#[must_use]
pub fn places(found: &[Arc<Found>], triggers: &Triggers) -> Vec<Place> {
    found.iter().flat_map(|found| of_one(found, triggers)).collect()
}

fn of_one(file: &Arc<Found>, triggers: &Triggers) -> Vec<Place> {
    let found = file.in_force();
    let Ok(compiled) = &found.outcome else { return Vec::new() };
    let plan = &compiled.plan;
    if plan.triggers.is_empty() {
        return Vec::new();
    }
    let enabled = file.is_enabled();
    let place = |trigger: &cairn_core::plan::Trigger| {
        let kind = trigger.r#type.to_string();
        // Settings that the compiler let through and the trigger does not take fire nothing.
        let watch = triggers.get(&kind)?.watch(&trigger.config.0).ok()?;
        let settings = canonical::to_vec(&trigger.config).unwrap_or_default();
        Some(Place {
            workflow: found.id.clone(),
            identity: found.identity().clone(),
            trigger: trigger.id.clone(),
            kind,
            enabled,
            watch,
            is_stale: file.last_good().is_some(),
            settings: Digest::of(&settings),
        })
    };
    plan.triggers.iter().filter_map(place).collect()
}

/// The triggers of some workflows, for people.
pub async fn list(
    found: &[Arc<Found>],
    triggers: &Triggers,
    (store, vault): (&Store, &Vault),
    now_ms: u64,
) -> Vec<Trigger> {
    let mut items = Vec::new();
    for place in &places(found, triggers) {
        let shown = crate::routes::shown_trigger(place, vault, now_ms).await;
        let refused = Refused::of(store, &place.identity, &place.trigger).await.ok().flatten();
        items.push(Trigger { refused: refused.map(Into::into), ..shown });
    }
    items
}

/// The triggers at one time.
#[derive(Default)]
pub(crate) struct View {
    found: Vec<Arc<Found>>,
    pub(crate) places: Vec<Arc<Place>>,
    hooks: HashMap<String, Arc<Place>>,
    /// Whether the files were looked at.
    pub(crate) is_known: bool,
}

impl View {
    /// The trigger that takes the requests of a path.
    pub(crate) fn hook(&self, path: &str) -> Option<&Arc<Place>> {
        self.hooks.get(path)
    }
}

/// Keeps the triggers as the files say.
pub(crate) struct Watched {
    catalog: Arc<Catalog>,
    triggers: Triggers,
    view: RwLock<Arc<View>>,
    /// Those that the clock fires.
    timetable: watch::Sender<Timetable>,
}

impl Watched {
    pub(crate) fn new(catalog: Arc<Catalog>, triggers: Triggers) -> Self {
        let timetable = watch::Sender::default();
        Self { catalog, triggers, view: RwLock::default(), timetable }
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The triggers that the clock fires, as they are at each time.
    pub(crate) fn timetable(&self) -> watch::Receiver<Timetable> {
        self.timetable.subscribe()
    }

    /// Looks at the files; gives what does not compile any more and what does again, for people. It
    /// waits for disks.
    pub(crate) fn look(&self) -> Result<Vec<News>> {
        let found = self.catalog.list()?;
        let before = self.view();
        let same = before.is_known
            && before.found.len() == found.len()
            && before.found.iter().zip(&found).all(|(a, b)| Arc::ptr_eq(a, b));
        if same {
            return Ok(Vec::new());
        }
        let news = news(&before.found, &found);
        let places: Vec<Arc<Place>> =
            places(&found, &self.triggers).into_iter().map(Arc::new).collect();
        let mut hooks = HashMap::new();
        for place in places.iter().filter(|place| place.enabled) {
            if let Watch::Hook(hook) = &place.watch {
                // Of two with one path the first keeps it, so that none takes another's requests.
                hooks.entry(hook.path().to_owned()).or_insert_with(|| Arc::clone(place));
            }
        }
        let timetable = places.iter().filter_map(|place| place.timed()).collect();
        let view = Arc::new(View { found, places, hooks, is_known: true });
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        self.timetable.send_replace(Arc::new(timetable));
        Ok(news)
    }
}

/// Looks at the files of workflows from time to time, until the server closes.
pub(crate) async fn look(shared: Shared) {
    let documents = Arc::clone(&shared.store.documents);
    let mut kept: Option<Arc<View>> = None;
    // What keeps a trigger from firing is told once.
    let mut obstacles = BTreeSet::new();
    loop {
        let watched = Arc::clone(&shared.watched);
        // What cannot be read now may be read the next time; until then nothing changes.
        let looked = tokio::task::spawn_blocking(move || watched.look()).await;
        let view = shared.watched.view();
        if view.is_known && !kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &view)) {
            for place in view.places.iter().filter(|place| place.enabled) {
                let why = place.obstacle(&shared.automation.vault).await;
                if let Some(why) = why.filter(|why| obstacles.insert(why.clone())) {
                    let what = format!("`{}` of {}: {why}", place.trigger, place.workflow);
                    shared.automation.engine.tell_trouble(&what);
                }
            }
            match shared.watched.catalog.keep(&*documents, &view.found).await {
                Ok(()) => kept = Some(view),
                // It is tried again; until then a restart has the plans of before.
                Err(error) => {
                    let what = format!("the plans that compiled now are not kept: {error}");
                    shared.automation.engine.tell_trouble(&what);
                    kept = Some(view);
                }
            }
        }
        for News { what, is_good } in looked.ok().and_then(Result::ok).unwrap_or_default() {
            match is_good {
                true => shared.automation.engine.tell_news(&what),
                false => shared.automation.engine.tell_trouble(&what),
            }
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = shared.phase.closing() => return,
        }
    }
}

/// A word on a file, for people.
pub(crate) struct News {
    what: String,
    is_good: bool,
}

/// A word on each file that does not compile and was not known not to, and on each that compiles
/// again.
fn news(before: &[Arc<Found>], now: &[Arc<Found>]) -> Vec<News> {
    let was_broken = |found: &Found| {
        before.iter().any(|before| before.path == found.path && before.outcome.is_err())
    };
    let told = |found: &Arc<Found>| {
        let path = found.path.display();
        let why = match (found.outcome.is_ok(), was_broken(found)) {
            (false, false) => found.diagnostics().first().map(first_line)?,
            (true, true) => {
                let what = format!("{path} compiles again; its triggers follow it");
                return Some(News { what, is_good: true });
            }
            _ => return None,
        };
        let so = match found.last_good() {
            Some(_) => "its triggers stay on the version that compiled last",
            None => "nothing starts it until it does",
        };
        let what = format!("{path} does not compile, and {so}: {why}");
        Some(News { what, is_good: false })
    };
    now.iter().filter_map(told).collect()
}

fn first_line(found: &Diagnostic) -> String {
    format!("line {}: {}", found.line, found.message)
}
