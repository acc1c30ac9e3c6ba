//! What only files do with documents and the audit record: modes, torn lines, older versions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cairn_store::port::documents::Name;
use cairn_store::port::locks::{Claim, Exclusive};
use cairn_store::{Config, Store, files, open};

use crate::given::Given;

static TOKENS: Name = Name::fixed("keys/tokens.json");

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files() -> (Given, PathBuf) {
    let given = Given::files();
    let home = given.home.as_ref().unwrap().path().to_owned();
    (given, home)
}

#[tokio::test]
async fn only_their_owner_can_read_documents_and_the_audit_record() {
    let (given, home) = files();
    given.store.documents.replace(&TOKENS, None, b"{}".to_vec()).await.unwrap();
    given.store.audit.append(Box::new(|_| Some(b"{}".to_vec()))).await.unwrap();
    for folder in ["keys", "audit"] {
        assert_eq!(mode(&home.join(folder)), 0o700);
        for file in fs::read_dir(home.join(folder)).unwrap() {
            assert_eq!(mode(&file.unwrap().path()), 0o600);
        }
    }
    let path = home.join("keys/tokens.json");
    assert_eq!(given.store.documents.place(&TOKENS), path.display().to_string());
    let before = given.store.documents.stamp(&TOKENS).await.unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_ne!(given.store.documents.stamp(&TOKENS).await.unwrap(), before);
    let told = given.store.documents.exposed(&TOKENS).await.unwrap().unwrap();
    let wanted = format!("others may read it (mode 640); run `chmod 600 {}`", path.display());
    assert_eq!(told, wanted);
    assert_eq!(files::document_mode(&home, &TOKENS), Some(0o640));
    // The next one is for its owner alone again.
    let version = given.store.documents.read(&TOKENS).await.unwrap().unwrap().version;
    given.store.documents.replace(&TOKENS, Some(&version), b"[]".to_vec()).await.unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn what_a_person_wrote_is_seen_and_not_written_over() {
    let (given, home) = files();
    let version = given.store.documents.replace(&TOKENS, None, b"{}".to_vec()).await.unwrap();
    fs::write(home.join("keys/tokens.json"), "by hand").unwrap();
    let late = given.store.documents.replace(&TOKENS, Some(&version), b"[]".to_vec()).await;
    assert_eq!(late.unwrap_err().code(), "STORE_CONFLICT");
    assert_eq!(given.store.documents.read(&TOKENS).await.unwrap().unwrap().bytes, b"by hand");
}

#[tokio::test]
async fn a_line_that_a_crash_cut_off_was_never_there() {
    let (given, home) = files();
    let add = async |store: &Store, line: &'static str, last: Option<&'static str>| {
        let next = move |found: Option<&[u8]>| {
            assert_eq!(found, last.map(str::as_bytes));
            Some(line.as_bytes().to_vec())
        };
        store.audit.append(Box::new(next)).await.unwrap();
    };
    add(&given.store, "one", None).await;
    let path = home.join("audit/audit.jsonl");
    fs::write(&path, "one\ntwo, which is cut o").unwrap();
    assert_eq!(given.store.audit.read(0, 9).await.unwrap(), [b"one"]);
    add(&given.again(), "three", Some("one")).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nthree\n");
    fs::write(&path, "cut o").unwrap();
    add(&given.store, "first", None).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "first\n");
    assert_eq!(given.store.audit.place(), path.display().to_string());
}

#[tokio::test]
async fn a_lock_of_an_older_version_counts() {
    let (given, home) = files();
    fs::write(home.join("server.lock"), "process 7 at http://127.0.0.1:1\n").unwrap();
    let older = fs::File::open(home.join("server.lock")).unwrap();
    older.lock().unwrap();
    let Claim::Held(holder) = given.store.locks.try_lock(Exclusive::Server).await.unwrap() else {
        panic!("two have it");
    };
    assert_eq!(holder.unwrap(), "process 7 at http://127.0.0.1:1");
}

#[tokio::test]
async fn what_cannot_be_written_is_told_with_its_path() {
    let (given, home) = files();
    drop(given);
    let home = home.with_file_name(format!("{}-file", home.file_name().unwrap().to_str().unwrap()));
    let store = open(&Config::files(&home)).unwrap();
    fs::write(home.join("keys"), "not a folder").unwrap();
    let failed = store.documents.replace(&TOKENS, None, Vec::new()).await.unwrap_err();
    let read = store.documents.read(&TOKENS).await.unwrap_err();
    fs::remove_dir_all(&home).unwrap();
    assert_eq!((failed.code(), read.code()), ("STORE_IO", "STORE_IO"));
    assert!(read.to_string().contains("keys/tokens.json"), "{read}");
}
