//! What the mailbox promises, on every backend.

use cairn_core::id::SessionId;
use cairn_store::port::mailbox::{Delivery, Patience, Pause};

use crate::given::{Given, SESSION, conformance, start};

/// Never over.
fn long() -> Pause {
    Box::pin(std::future::pending())
}

/// Over at once.
fn none() -> Pause {
    Box::pin(std::future::ready(()))
}

fn patient() -> Patience {
    Patience { to_take: long(), to_answer: long() }
}

conformance! {
    a_letter_is_taken_and_answered
    nobody_is_told_where_no_inbox_is_open
    a_letter_that_is_not_taken_is_withdrawn_and_never_read
    a_letter_that_is_taken_and_not_answered_is_in_doubt
    the_latest_inbox_of_a_session_gets_the_letters
    followers_are_woken_by_what_is_recorded_since
    inboxes_are_told_of_when_they_are_opened
}

async fn a_letter_is_taken_and_answered(given: &Given) {
    given.store.log.append(SESSION, start()).await.unwrap();
    let mut inbox = given.store.mailbox.open(SESSION).await.unwrap();
    let other = given.again();
    let text = "ä".repeat(100_000);
    let asked = tokio::spawn({
        let text = text.clone();
        async move { other.mailbox.ask(SESSION, text, patient()).await.unwrap() }
    });
    let letter = inbox.next().await.unwrap();
    assert_eq!(letter.text, text);
    letter.answer("yes".to_owned());
    assert_eq!(asked.await.unwrap(), Delivery::Answered("yes".to_owned()));
}

async fn nobody_is_told_where_no_inbox_is_open(given: &Given) {
    let ask = || given.store.mailbox.ask(SESSION, "hello".to_owned(), patient());
    assert_eq!(ask().await.unwrap(), Delivery::Nobody);
    assert!(!given.store.mailbox.is_open(SESSION).await);
    assert!(given.store.mailbox.follow(SESSION).await.unwrap().is_none());
    let inbox = given.store.mailbox.open(SESSION).await.unwrap();
    assert!(given.store.mailbox.is_open(SESSION).await);
    drop(inbox);
    // A socket is closed by a task, which needs its turn.
    while given.store.mailbox.is_open(SESSION).await {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask().await.unwrap(), Delivery::Nobody);
}

async fn a_letter_that_is_not_taken_is_withdrawn_and_never_read(given: &Given) {
    let mut inbox = given.store.mailbox.open(SESSION).await.unwrap();
    // On sockets the other side is quick to say that it is ready, so the sender gives up before.
    let hasty = Patience { to_take: none(), to_answer: long() };
    let told = given.again().mailbox.ask(SESSION, "late".to_owned(), hasty).await.unwrap();
    assert_eq!(told, Delivery::Withdrawn);
    let other = given.again();
    let asked =
        tokio::spawn(async move { other.mailbox.ask(SESSION, "next".to_owned(), patient()).await });
    let letter = inbox.next().await.unwrap();
    assert_eq!(letter.text, "next");
    letter.answer(String::new());
    asked.await.unwrap().unwrap();
}

async fn a_letter_that_is_taken_and_not_answered_is_in_doubt(given: &Given) {
    let mut inbox = given.store.mailbox.open(SESSION).await.unwrap();
    let (gone, other) = (tokio::sync::oneshot::channel::<()>(), given.again());
    let to_answer: Pause = Box::pin(async move { drop(gone.1.await) });
    let patience = Patience { to_take: long(), to_answer };
    let asked =
        tokio::spawn(async move { other.mailbox.ask(SESSION, "do".to_owned(), patience).await });
    let letter = inbox.next().await.unwrap();
    drop(gone.0);
    drop(letter);
    assert_eq!(asked.await.unwrap().unwrap(), Delivery::InDoubt);
}

async fn the_latest_inbox_of_a_session_gets_the_letters(given: &Given) {
    let _first = given.store.mailbox.open(SESSION).await.unwrap();
    let mut second = given.store.mailbox.open(SESSION).await.unwrap();
    let other = given.again();
    let asked =
        tokio::spawn(async move { other.mailbox.ask(SESSION, "who".to_owned(), patient()).await });
    second.next().await.unwrap().answer("second".to_owned());
    assert_eq!(asked.await.unwrap().unwrap(), Delivery::Answered("second".to_owned()));
}

async fn followers_are_woken_by_what_is_recorded_since(given: &Given) {
    let inbox = given.store.mailbox.open(SESSION).await.unwrap();
    inbox.followers().wake();
    let mut follower = given.again().mailbox.follow(SESSION).await.unwrap().unwrap();
    inbox.followers().wake();
    assert!(follower.next().await);
    drop(inbox);
    // Once nobody tells any more, that is told, too.
    while follower.next().await {}
}

async fn inboxes_are_told_of_when_they_are_opened(given: &Given) {
    let (there, later) = (SESSION, SessionId::from_bits(7));
    let first = given.store.mailbox.open(there).await.unwrap();
    let mut openings = given.again().mailbox.openings().await.unwrap();
    assert_eq!(openings.next().await, Some(there));
    for _ in 0..3 {
        let inbox = given.store.mailbox.open(later).await.unwrap();
        assert_eq!(openings.next().await, Some(later));
        // Whoever was told can follow at once.
        assert!(given.again().mailbox.follow(later).await.unwrap().is_some());
        drop(inbox);
    }
    drop(first);
}
