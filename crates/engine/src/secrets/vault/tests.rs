use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

/// A data directory, and the place of a key beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("config/master.key")
    }

    fn vault(&self) -> Vault {
        self.with_key(KeySource::File(self.key()))
    }

    fn with_key(&self, key: KeySource) -> Vault {
        let home = self.folder.path().join("home");
        let store = cairn_store::open(&cairn_store::Config::files(&home)).unwrap();
        Vault::new(&store, home, key)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("home/secrets/vault.json")
    }

    fn anchor(&self) -> PathBuf {
        self.folder.path().join("home/keys/vault.anchor.json")
    }

    fn content(&self) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    fn put(&self, content: &serde_json::Value) {
        fs::write(self.file(), canonical::to_vec(content).unwrap()).unwrap();
    }
}

fn workflow(id: &str) -> Scope {
    Scope::Workflow(identity(id))
}

fn identity(id: &str) -> Identity {
    Identity::kept(id, id, id)
}

fn code<T>(result: Result<T>) -> &'static str {
    result.err().map_or("ok", |error| error.code())
}

#[tokio::test]
async fn a_secret_comes_back_and_its_file_does_not_hold_it() {
    let place = Place::new();
    let (vault, a) = (place.vault(), workflow("project.a"));
    vault.set(&a, "KEY", &Secret::new("hush-hush"), 5).await.unwrap();
    vault.set(&Scope::Global, "SHARED", &Secret::new("for all"), 6).await.unwrap();
    assert_eq!(vault.reveal(&a, "KEY").await.unwrap().expose(), "hush-hush");
    assert_eq!(vault.reveal(&a, "SHARED").await.unwrap().expose(), "for all");
    assert_eq!(code(vault.reveal(&workflow("project.b"), "KEY").await), "SECRET_NOT_FOUND");
    assert_eq!(format!("{:?}", vault.reveal(&a, "KEY").await.unwrap()), "***");
    let text = fs::read_to_string(place.file()).unwrap();
    assert!(!text.contains("hush") && !text.contains("for all"), "{text}");
    let held = vault.list().await.unwrap();
    let names: Vec<(String, &str)> =
        held.iter().map(|held| (held.scope.to_string(), held.name.as_str())).collect();
    assert_eq!(names, [("global".into(), "SHARED"), ("workflow:project.a".into(), "KEY")]);
    for file in [place.file(), place.key()] {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(vault.remove(&a, "KEY").await.unwrap() && !vault.remove(&a, "KEY").await.unwrap());
    assert_eq!(code(vault.reveal(&a, "KEY").await), "SECRET_NOT_FOUND");
}

#[tokio::test]
async fn a_replaced_secret_signs_for_a_while() {
    let place = Place::new();
    let vault = place.vault();
    let signing = async || {
        let secrets = vault.signing(&Scope::Global, "KEY", 1000).await.unwrap();
        let show = |held: &HookSecret| (held.secret.expose().to_owned(), held.until_ms);
        secrets.iter().map(show).collect::<Vec<_>>()
    };
    vault.set(&Scope::Global, "KEY", &Secret::new("first"), 5).await.unwrap();
    assert_eq!(signing().await, [("first".to_owned(), None)]);
    vault.set(&Scope::Global, "KEY", &Secret::new("second"), 7).await.unwrap();
    assert_eq!(signing().await, [("second".to_owned(), None), ("first".to_owned(), Some(1007))]);
    vault.rotate(None).await.unwrap();
    assert_eq!(signing().await, [("second".to_owned(), None), ("first".to_owned(), Some(1007))]);
}

#[tokio::test]
async fn what_was_changed_by_something_else_opens_nothing() {
    let place = Place::new();
    let vault = place.vault();
    vault.set(&Scope::Global, "A", &Secret::new("value of a"), 1).await.unwrap();
    let old = place.content();
    vault.set(&Scope::Global, "A", &Secret::new("newer value"), 2).await.unwrap();
    vault.set(&Scope::Global, "B", &Secret::new("value of b"), 3).await.unwrap();
    let good = place.content();
    let tampered = async |change: &dyn Fn(&mut serde_json::Value)| {
        let mut content = good.clone();
        change(&mut content);
        place.put(&content);
        let found = (
            code(vault.reveal(&Scope::Global, "A").await),
            code(vault.reveal(&Scope::Global, "B").await),
        );
        place.put(&good);
        found
    };
    let refused = ("SECRET_DECRYPT_FAILED", "SECRET_DECRYPT_FAILED");
    let sealed = |place: usize| good["records"][place]["sealed"].clone();
    assert_eq!(tampered(&|_| {}).await, ("ok", "ok"));
    let swapped = tampered(&|content| {
        content["records"][0]["sealed"] = sealed(1);
        content["records"][1]["sealed"] = sealed(0);
    })
    .await;
    assert_eq!(swapped, refused, "swapped");
    assert_eq!(
        tampered(&|content| content["records"][0] = old["records"][0].clone()).await,
        refused,
        "an older version"
    );
    let left_out =
        tampered(&|content| drop(content["records"].as_array_mut().unwrap().remove(1))).await;
    assert_eq!(left_out.0, "SECRET_DECRYPT_FAILED", "a record less");
    let cut = sealed(0).as_str().unwrap()[..20].to_owned();
    assert_eq!(
        tampered(&|content| content["records"][0]["sealed"] = cut.clone().into()).await,
        refused,
        "truncated"
    );
    assert_eq!(
        tampered(&|content| content["records"][0]["name"] = "C".into()).await.0,
        "SECRET_DECRYPT_FAILED",
        "another name"
    );
    let bytes = fs::read(place.file()).unwrap();
    for at in (0..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        fs::write(place.file(), &flipped).unwrap();
        assert_ne!(code(vault.reveal(&Scope::Global, "A").await), "ok", "byte {at}");
    }
    fs::write(place.file(), &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(
        code(vault.reveal(&Scope::Global, "A").await),
        "SECRET_DECRYPT_FAILED",
        "half a file"
    );
    assert_eq!(
        code(vault.set(&Scope::Global, "A", &Secret::new("x"), 9).await),
        "SECRET_DECRYPT_FAILED"
    );
}

// case: secret.sealed
#[tokio::test]
async fn another_key_opens_nothing() {
    let place = Place::new();
    place.vault().set(&Scope::Global, "A", &Secret::new("value"), 1).await.unwrap();
    let other = Secret::new("0123456789abcdef".repeat(4));
    let vault = place.with_key(KeySource::Given(other));
    assert_eq!(code(vault.reveal(&Scope::Global, "A").await), "SECRET_DECRYPT_FAILED");
    assert_eq!(
        code(vault.set(&Scope::Global, "A", &Secret::new("x"), 1).await),
        "SECRET_DECRYPT_FAILED"
    );
    let vault = place.with_key(KeySource::Given(Secret::new("weak")));
    assert_eq!(code(vault.reveal(&Scope::Global, "A").await), "SECRET_KEY_UNUSABLE");
}

#[tokio::test]
async fn a_key_that_others_can_read_is_refused() {
    let place = Place::new();
    let vault = place.vault();
    vault.set(&Scope::Global, "A", &Secret::new("value"), 1).await.unwrap();
    fs::set_permissions(place.key(), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(code(vault.reveal(&Scope::Global, "A").await), "SECRET_KEY_UNUSABLE");
    fs::set_permissions(place.key(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(code(vault.reveal(&Scope::Global, "A").await), "ok");
    fs::remove_file(place.key()).unwrap();
    assert_eq!(code(vault.reveal(&Scope::Global, "A").await), "SECRET_KEY_UNUSABLE");
    assert_eq!(
        code(vault.set(&Scope::Global, "B", &Secret::new("x"), 1).await),
        "SECRET_KEY_UNUSABLE"
    );
    assert!(!place.key().exists(), "a key that is lost is not replaced by another");
    let home = place.folder.path().join("home");
    let inside = place.with_key(KeySource::File(home.join("keys/master.key")));
    assert_eq!(code(inside.reveal(&Scope::Global, "A").await), "SECRET_KEY_UNUSABLE");
}

#[tokio::test]
async fn a_rotation_keeps_every_value_and_ends_the_old_key() {
    let place = Place::new();
    let vault = place.vault();
    vault.set(&Scope::Global, "A", &Secret::new("value"), 1).await.unwrap();
    let old = fs::read(place.key()).unwrap();
    assert_eq!(vault.rotate(None).await.unwrap(), 1);
    assert_ne!(fs::read(place.key()).unwrap(), old);
    assert!(!next(&place.key()).exists());
    assert_eq!(vault.reveal(&Scope::Global, "A").await.unwrap().expose(), "value");
    fs::write(place.key(), &old).unwrap();
    assert_eq!(code(vault.reveal(&Scope::Global, "A").await), "SECRET_DECRYPT_FAILED");
}

#[tokio::test]
async fn a_crash_in_a_rotation_loses_nothing() {
    let place = Place::new();
    let vault = place.vault();
    vault.set(&Scope::Global, "A", &Secret::new("value"), 1).await.unwrap();
    let (old_key, old_vault) = (fs::read(place.key()).unwrap(), fs::read(place.file()).unwrap());
    vault.rotate(None).await.unwrap();
    let (new_key, new_vault) = (fs::read(place.key()).unwrap(), fs::read(place.file()).unwrap());
    // Before the vault was written: the next key waits, and nobody needs it.
    let put = |key: &[u8], waiting: &[u8], content: &[u8]| {
        fs::write(place.key(), key).unwrap();
        fs::write(next(&place.key()), waiting).unwrap();
        fs::set_permissions(next(&place.key()), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(place.file(), content).unwrap();
        // The crash came before the anchor, which knows nothing of it.
        let _ = fs::remove_file(place.anchor());
    };
    put(&old_key, &new_key, &old_vault);
    assert_eq!(vault.reveal(&Scope::Global, "A").await.unwrap().expose(), "value");
    assert_eq!(vault.rotate(None).await.unwrap(), 1);
    assert_eq!(vault.reveal(&Scope::Global, "A").await.unwrap().expose(), "value");
    // After it: the next key is the one.
    put(&old_key, &new_key, &new_vault);
    assert_eq!(vault.reveal(&Scope::Global, "A").await.unwrap().expose(), "value");
    assert_eq!(fs::read(place.key()).unwrap(), new_key);
    assert!(!next(&place.key()).exists());
}

#[tokio::test]
async fn a_given_key_is_rotated_into_a_file() {
    let place = Place::new();
    let given = place.with_key(KeySource::Given(Secret::new("0123456789abcdef".repeat(4))));
    given.set(&Scope::Global, "A", &Secret::new("value"), 1).await.unwrap();
    assert_eq!(code(given.rotate(None).await), "SECRET_KEY_UNUSABLE");
    assert_eq!(given.rotate(Some(&place.key())).await.unwrap(), 1);
    assert_eq!(code(given.reveal(&Scope::Global, "A").await), "SECRET_DECRYPT_FAILED");
    assert_eq!(place.vault().reveal(&Scope::Global, "A").await.unwrap().expose(), "value");
    assert_eq!(code(given.rotate(Some(&place.key())).await), "SECRET_KEY_UNUSABLE", "it is taken");
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let place = Place::new();
    place.vault().set(&Scope::Global, "S", &Secret::new("x"), 1).await.unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let vault = place.vault();
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
                let (name, value) = (format!("S{n}"), Secret::new("x"));
                runtime.unwrap().block_on(vault.set(&Scope::Global, &name, &value, 1)).unwrap();
            });
        }
    });
    assert_eq!(place.vault().list().await.unwrap().len(), 9);
}

#[tokio::test]
async fn secrets_follow_a_workflow_that_was_moved() {
    let place = Place::new();
    let (vault, a, b) = (place.vault(), workflow("a"), workflow("b"));
    vault.set(&a, "KEY", &Secret::new("first"), 1).await.unwrap();
    vault.set(&a, "KEY", &Secret::new("second"), 2).await.unwrap();
    vault.set(&b, "OTHER", &Secret::new("own"), 3).await.unwrap();
    vault.set(&Scope::Global, "KEY", &Secret::new("shared"), 4).await.unwrap();
    assert_eq!(vault.rebind(&identity("a"), &identity("a")).await.unwrap(), 0);
    assert_eq!(vault.rebind(&identity("c"), &identity("b")).await.unwrap(), 0);
    assert_eq!(vault.rebind(&identity("a"), &identity("b")).await.unwrap(), 1);
    assert_eq!(vault.reveal(&b, "KEY").await.unwrap().expose(), "second");
    assert_eq!(vault.reveal(&b, "OTHER").await.unwrap().expose(), "own");
    assert_eq!(vault.reveal(&a, "KEY").await.unwrap().expose(), "shared", "it has none of its own");
    let signing = vault.signing(&b, "KEY", 10).await.unwrap();
    let signing: Vec<&str> = signing.iter().map(|one| one.secret.expose()).collect();
    assert_eq!(signing, ["second", "first"], "the one before came along");
    // What is there already is not written over.
    vault.set(&a, "OTHER", &Secret::new("another"), 5).await.unwrap();
    assert_eq!(code(vault.rebind(&identity("a"), &identity("b")).await), "VALIDATION_ERROR");
    assert_eq!(vault.reveal(&b, "OTHER").await.unwrap().expose(), "own");
}

// case: vault.put-back
#[tokio::test]
async fn an_older_vault_that_is_put_back_is_noticed() {
    let place = Place::new();
    let vault = place.vault();
    let set = async |value: &str| vault.set(&Scope::Global, "KEY", &Secret::new(value), 1).await;
    set("first-value").await.unwrap();
    let (first, anchor) = (fs::read(place.file()).unwrap(), place.anchor());
    let first_anchor = fs::read(&anchor).unwrap();
    set("second-value").await.unwrap();
    let second = fs::read(place.file()).unwrap();
    let revealed =
        async || vault.reveal(&Scope::Global, "KEY").await.map(|s| s.expose().to_owned());
    assert_eq!(revealed().await.unwrap(), "second-value");
    // The older copy is sealed under the same key, and refused for all that.
    fs::write(place.file(), &first).unwrap();
    for told in [revealed().await.map(drop), vault.list().await.map(drop), set("x").await.map(drop)]
    {
        let error = told.unwrap_err();
        assert_eq!(error.code(), "SECRET_DECRYPT_FAILED");
        assert!(error.to_string().contains("older copy"), "{error}");
    }
    fs::remove_file(place.file()).unwrap();
    assert!(vault.list().await.unwrap_err().to_string().contains("is gone"));
    fs::write(place.file(), &second).unwrap();
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(revealed().await.unwrap(), "second-value");
    // A crash came before the anchor.
    fs::write(&anchor, &first_anchor).unwrap();
    assert_eq!(revealed().await.unwrap(), "second-value");
    vault.rotate(None).await.unwrap();
    assert_eq!(revealed().await.unwrap(), "second-value");
    fs::write(place.file(), &second).unwrap();
    assert_eq!(code(vault.list().await), "SECRET_DECRYPT_FAILED");
    // Without an anchor, as earlier versions left it, there is nothing to compare with.
    fs::remove_file(&anchor).unwrap();
    assert_eq!(code(vault.list().await), "ok");
}

// case: vault.key-outside
#[tokio::test]
async fn a_link_does_not_bring_the_key_outside() {
    let place = Place::new();
    let home = place.folder.path().join("home");
    fs::create_dir_all(home.join("inner")).unwrap();
    let link = place.folder.path().join("outside");
    std::os::unix::fs::symlink(home.join("inner"), &link).unwrap();
    let file = place.folder.path().join("key-link");
    fs::write(home.join("inner/real.key"), "").unwrap();
    std::os::unix::fs::symlink(home.join("inner/real.key"), &file).unwrap();
    for key in [link.join("master.key"), link.join("deep/../master.key"), file] {
        let vault = place.with_key(KeySource::File(key.clone()));
        let told = vault.set(&Scope::Global, "KEY", &Secret::new("a-value"), 1).await;
        let told = told.unwrap_err().to_string();
        assert!(told.contains("data directory"), "{}: {told}", key.display());
    }
}

// case: keyring.guessable
#[tokio::test]
async fn a_key_that_anybody_could_guess_is_not_used() {
    let place = Place::new();
    for bytes in ["00", "ff", "07", "0102"] {
        let text = bytes.repeat(64 / bytes.len());
        let vault = place.with_key(KeySource::Given(Secret::new(&text)));
        let told = vault.set(&Scope::Global, "KEY", &Secret::new("a-value"), 1).await;
        assert_eq!(code(told), "SECRET_KEY_UNUSABLE", "{bytes}");
        fs::create_dir_all(place.key().parent().unwrap()).unwrap();
        fs::write(place.key(), &text).unwrap();
        fs::set_permissions(place.key(), fs::Permissions::from_mode(0o600)).unwrap();
        let told = place.vault().set(&Scope::Global, "KEY", &Secret::new("a-value"), 1).await;
        assert_eq!(code(told), "SECRET_KEY_UNUSABLE", "{bytes}");
    }
}
