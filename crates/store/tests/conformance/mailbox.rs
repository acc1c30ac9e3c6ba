//! What the mailbox promises, on every backend.

use cairn_core::id::SessionId;
use cairn_store::port::Lease;
use cairn_store::port::mailbox::{Delivery, Inbox, Patience, Pause};

use crate::given::{Given, SESSION, acquire, conformance, start};

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

/// Somebody who owns the session and listens.
async fn opened(given: &Given) -> (Box<dyn Lease>, Inbox) {
    given.store.log.append(SESSION, start()).await.unwrap();
    let lease = acquire(&given.store).await;
    let inbox = given.store.mailbox.open(&*lease).await.unwrap();
    (lease, inbox)
}

conformance! {
    a_letter_is_taken_and_answered
    nobody_is_told_where_no_inbox_is_open
    a_letter_that_is_not_taken_is_withdrawn_and_never_read
    a_letter_that_is_begun_and_not_answered_is_in_doubt
    a_letter_that_nobody_begins_to_act_on_never_happens
    the_latest_inbox_of_a_session_gets_the_letters
    an_owner_that_was_replaced_takes_no_letters_from_the_one_that_replaced_it
    followers_are_woken_by_what_is_recorded_since
    inboxes_are_told_of_when_they_are_opened
}

async fn a_letter_is_taken_and_answered(given: &Given) {
    let (_lease, mut inbox) = opened(given).await;
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
    let (_lease, inbox) = opened(given).await;
    assert!(given.store.mailbox.is_open(SESSION).await);
    drop(inbox);
    // A socket is closed by a task, which needs its turn.
    while given.store.mailbox.is_open(SESSION).await {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask().await.unwrap(), Delivery::Nobody);
}

async fn a_letter_that_is_not_taken_is_withdrawn_and_never_read(given: &Given) {
    let (_lease, mut inbox) = opened(given).await;
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

async fn a_letter_that_is_begun_and_not_answered_is_in_doubt(given: &Given) {
    let (_lease, mut inbox) = opened(given).await;
    let (gone, other) = (tokio::sync::oneshot::channel::<()>(), given.again());
    let to_answer: Pause = Box::pin(async move { drop(gone.1.await) });
    let patience = Patience { to_take: long(), to_answer };
    let asked =
        tokio::spawn(async move { other.mailbox.ask(SESSION, "do".to_owned(), patience).await });
    let mut letter = inbox.next().await.unwrap();
    letter.begin();
    drop(gone.0);
    drop(letter);
    assert_eq!(asked.await.unwrap().unwrap(), Delivery::InDoubt);
}

async fn a_letter_that_nobody_begins_to_act_on_never_happens(given: &Given) {
    let (_lease, mut inbox) = opened(given).await;
    let ask = || {
        let other = given.again();
        tokio::spawn(async move { other.mailbox.ask(SESSION, "do".to_owned(), patient()).await })
    };
    // One is taken and let go of, and the other is still in the inbox when that is closed.
    let taken = ask();
    drop(inbox.next().await.unwrap());
    assert_eq!(taken.await.unwrap().unwrap(), Delivery::Nobody);
    let (one, other) = (ask(), ask());
    let letter = inbox.next().await.unwrap();
    drop(inbox);
    drop(letter);
    for asked in [one, other] {
        assert_eq!(asked.await.unwrap().unwrap(), Delivery::Nobody);
    }
}

async fn the_latest_inbox_of_a_session_gets_the_letters(given: &Given) {
    let (lease, _first) = opened(given).await;
    let mut second = given.store.mailbox.open(&*lease).await.unwrap();
    let other = given.again();
    let asked =
        tokio::spawn(async move { other.mailbox.ask(SESSION, "who".to_owned(), patient()).await });
    second.next().await.unwrap().answer("second".to_owned());
    assert_eq!(asked.await.unwrap().unwrap(), Delivery::Answered("second".to_owned()));
}

async fn an_owner_that_was_replaced_takes_no_letters_from_the_one_that_replaced_it(given: &Given) {
    let (old, _earlier) = opened(given).await;
    given.take_away();
    let store = given.again();
    let new = acquire(&store).await;
    // It may be late with its inbox, before the new owner has opened its own or behind it.
    for _ in 0..2 {
        let refused = given.store.mailbox.open(&*old).await.map(drop).unwrap_err();
        assert_eq!(refused.code(), "STORE_FENCED");
        let mut inbox = store.mailbox.open(&*new).await.unwrap();
        let refused = given.store.mailbox.open(&*old).await.map(drop).unwrap_err();
        assert_eq!(refused.code(), "STORE_FENCED");
        let other = given.again();
        let asked =
            tokio::spawn(
                async move { other.mailbox.ask(SESSION, "who".to_owned(), patient()).await },
            );
        inbox.next().await.unwrap().answer("the new one".to_owned());
        assert_eq!(asked.await.unwrap().unwrap(), Delivery::Answered("the new one".to_owned()));
    }
    assert!(old.is_lost());
    if let Some(home) = &given.home {
        let sockets = std::fs::read_dir(home.path().join("sockets")).unwrap();
        let names: Vec<_> = sockets.map(|socket| socket.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "nothing is left of those that were refused: {names:?}");
    }
}

async fn followers_are_woken_by_what_is_recorded_since(given: &Given) {
    let (_lease, inbox) = opened(given).await;
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
    let (_lease, first) = opened(given).await;
    given.store.log.append(later, start()).await.unwrap();
    let lease = given.store.leases.acquire(later, "test").await.unwrap();
    let mut openings = given.again().mailbox.openings().await.unwrap();
    assert_eq!(openings.next().await, Some(there));
    for _ in 0..3 {
        let inbox = given.store.mailbox.open(&*lease).await.unwrap();
        assert_eq!(openings.next().await, Some(later));
        // Whoever was told can follow at once.
        assert!(given.again().mailbox.follow(later).await.unwrap().is_some());
        drop(inbox);
    }
    drop(first);
}
