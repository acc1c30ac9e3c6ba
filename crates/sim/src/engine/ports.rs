//! Documents, the audit record and the mailbox as a simulated process sees them: failing now and
//! then, and with letters that are lost, or come twice.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::id::SessionId;
use cairn_store::port::Lease;
use cairn_store::port::audit::{AuditLog, Head, NextLine};
use cairn_store::port::documents::{Document, Documents, Name, Stamp, Version};
use cairn_store::port::mailbox::{Delivery, Follower, Inbox, Mailbox, Openings, Patience};
use cairn_store::{Result, Store};

use super::executor::Machine;
use super::weather::{Fault, Weather};

/// The small ports of a store, in this weather.
pub(super) fn in_weather(store: Store, machine: &Machine, weather: &Weather) -> Store {
    let ports = Ports { machine: machine.clone(), weather: weather.clone(), store: store.clone() };
    let ports = Arc::new(ports);
    Store {
        documents: Arc::clone(&ports) as _,
        audit: Arc::clone(&ports) as _,
        mailbox: ports,
        ..store
    }
}

struct Ports {
    machine: Machine,
    weather: Weather,
    store: Store,
}

#[async_trait]
impl Documents for Ports {
    async fn read(&self, name: &Name) -> Result<Option<Document>> {
        self.store.documents.read(name).await
    }

    async fn replace(
        &self,
        name: &Name,
        seen: Option<&Version>,
        bytes: Vec<u8>,
    ) -> Result<Version> {
        self.weather.pass(Fault::Document)?;
        self.store.documents.replace(name, seen, bytes).await
    }

    async fn remove(&self, name: &Name, seen: &Version) -> Result<()> {
        self.weather.pass(Fault::Document)?;
        self.store.documents.remove(name, seen).await
    }

    async fn list(&self, folder: &Name) -> Result<Vec<Name>> {
        self.store.documents.list(folder).await
    }

    async fn stamp(&self, name: &Name) -> Result<Option<Stamp>> {
        self.store.documents.stamp(name).await
    }

    async fn exposed(&self, name: &Name) -> Result<Option<String>> {
        self.store.documents.exposed(name).await
    }

    fn place(&self, name: &Name) -> String {
        self.store.documents.place(name)
    }
}

#[async_trait]
impl AuditLog for Ports {
    async fn append(&self, next: NextLine<'_>) -> Result<bool> {
        self.weather.pass(Fault::Audit)?;
        self.store.audit.append(next).await
    }

    async fn read(&self, from: u64, limit: usize) -> Result<Vec<Vec<u8>>> {
        self.store.audit.read(from, limit).await
    }

    async fn head(&self) -> Result<Head> {
        self.store.audit.head().await
    }

    fn place(&self) -> String {
        self.store.audit.place()
    }
}

impl Ports {
    /// Sends the same letter once more, as somebody does who did not hear the answer.
    async fn send_again(&self, session: SessionId, text: String) -> Result<Delivery> {
        let pause = || Box::pin(self.machine.sleep(Duration::from_millis(300)));
        let patience = Patience { to_take: pause(), to_answer: pause() };
        self.store.mailbox.ask(session, text, patience).await
    }
}

#[async_trait]
impl Mailbox for Ports {
    async fn open(&self, lease: &dyn Lease) -> Result<Inbox> {
        self.store.mailbox.open(lease).await
    }

    async fn ask(&self, session: SessionId, text: String, patience: Patience) -> Result<Delivery> {
        if self.machine.percent(10) {
            let told = self.store.mailbox.ask(session, text.clone(), patience).await?;
            if let Delivery::Answered(_) | Delivery::InDoubt = told {
                self.weather.hit("letter doubled");
                let again = self.send_again(session, text).await?;
                // Whoever was gone meanwhile has not heard the second one.
                return Ok(if let Delivery::Answered(_) = again { again } else { told });
            }
            return Ok(told);
        }
        if self.weather.strikes(Fault::Mail) {
            if self.machine.percent(40) {
                return Err(super::weather::failed("writing a letter"));
            }
            // It may arrive, and what is said to it does not.
            return Ok(match self.store.mailbox.ask(session, text, patience).await? {
                Delivery::Answered(_) => Delivery::InDoubt,
                told => told,
            });
        }
        self.store.mailbox.ask(session, text, patience).await
    }

    async fn follow(&self, session: SessionId) -> Result<Option<Follower>> {
        self.store.mailbox.follow(session).await
    }

    async fn openings(&self) -> Result<Openings> {
        self.store.mailbox.openings().await
    }

    async fn is_open(&self, session: SessionId) -> bool {
        self.store.mailbox.is_open(session).await
    }
}
