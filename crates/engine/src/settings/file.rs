//! A text of values, one for each line or lines below a name. What a person wrote around
//! them stays.

use std::ops::Range;

use cairn_core::catalog::SettingFault;
use cairn_lang::source::{self, Node};
use serde_json::Value;

use crate::catalog::Identity;
use crate::error::{Error, Result};

/// The text, and what is in it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Written {
    lines: Vec<String>,
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Debug)]
struct Entry {
    name: String,
    value: Value,
    /// The lines that it takes.
    lines: Range<usize>,
}

impl Written {
    /// Reads what is kept in a place.
    pub(super) fn parse(place: &str, bytes: &[u8]) -> Result<Self> {
        let refuse = |message: String| {
            let hint = "write a name, a colon and a value on each line, such as `MODE: live`";
            let path = place.to_owned();
            Err(Error::SettingsInvalid { path, faults: vec![SettingFault::new("", message, hint)] })
        };
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let blank = |line: &String| line.trim().is_empty() || line.trim_start().starts_with('#');
        if lines.iter().all(blank) {
            return Ok(Self { lines, entries: Vec::new() });
        }
        match source::parse(place, bytes) {
            Err(fault) => refuse(format!("line {}: {}", fault.line, fault.message)),
            Ok(Node { value: source::Value::Map(members), .. }) => {
                Ok(Self { entries: entries(&lines, &members), lines })
            }
            Ok(_) => refuse("there should be names with values".to_owned()),
        }
    }

    /// Says at its head which workflow the values are for: the name of the file does not tell.
    pub(super) fn head(&mut self, workflow: &Identity) {
        const HEAD: &str = "# settings of ";
        // A path can hold line breaks.
        let line = format!("{HEAD}{}", workflow.to_string().replace(char::is_control, " "));
        match self.lines.first_mut() {
            Some(first) if first.starts_with(HEAD) => *first = line,
            Some(_) => {}
            None => self.lines.push(line),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.value)
    }

    /// Puts a value in the place of the one before it, or at the end.
    pub(super) fn set(&mut self, name: &str, value: &Value) {
        let line = format!("{name}: {value}");
        let known = self.entries.iter().find(|entry| entry.name == name);
        let (lines, line) = match known {
            Some(entry) => {
                let remark = self.lines.get(entry.lines.start).filter(|_| entry.lines.len() == 1);
                let remark = remark.and_then(|line| remark_of(line)).unwrap_or_default();
                (entry.lines.clone(), format!("{line}{remark}"))
            }
            None => (self.lines.len()..self.lines.len(), line),
        };
        let mut wanted = self.values();
        match wanted.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value.clone(),
            None => wanted.push((name.to_owned(), value.clone())),
        }
        self.lines.splice(lines, [line]);
        self.settle(&wanted);
    }

    pub(super) fn remove(&mut self, name: &str) {
        let mut wanted = self.values();
        wanted.retain(|(known, _)| known != name);
        if let Some(entry) = self.entries.iter().find(|entry| entry.name == name) {
            self.lines.drain(entry.lines.clone());
            self.settle(&wanted);
        }
    }

    fn values(&self) -> Vec<(String, Value)> {
        self.entries.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect()
    }

    /// Finds the entries in the changed lines. Where the lines do not say what they should,
    /// because the file was written in some other style, they are written anew.
    fn settle(&mut self, wanted: &[(String, Value)]) {
        for _ in 0..2 {
            let text = self.text();
            self.entries = match source::parse("env.yaml", text.as_bytes()) {
                Ok(Node { value: source::Value::Map(members), .. }) => {
                    entries(&self.lines, &members)
                }
                _ => Vec::new(),
            };
            if self.values() == wanted {
                return;
            }
            let line = |(name, value): &(String, Value)| format!("{name}: {value}");
            self.lines = wanted.iter().map(line).collect();
        }
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn entries(lines: &[String], members: &[source::Entry]) -> Vec<Entry> {
    let starts: Vec<usize> =
        members.iter().map(|member| member.key_at.line.saturating_sub(1) as usize).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let range = |(start, end): (usize, usize)| {
        // What stands before the next name belongs to that name.
        let outside = |line: &String| line.trim().is_empty() || line.starts_with('#');
        let own = lines.get(start..end).unwrap_or_default();
        let outside = own.iter().rev().take_while(|line| outside(line)).count();
        start..(end - outside.min(end - start)).max(start + 1)
    };
    let ranges = starts.iter().copied().zip(ends).map(range);
    members
        .iter()
        .zip(ranges)
        .map(|(member, lines)| Entry {
            name: member.key.clone(),
            value: member.node.to_json(),
            lines,
        })
        .collect()
}

/// The remark behind a value on its line, with the blanks before it.
fn remark_of(line: &str) -> Option<&str> {
    let value = line.split_once(':')?.1;
    let quote = value.trim_start().chars().next().filter(|c| *c == '"' || *c == '\'');
    let from = match quote {
        // The closing quote is the last one that a remark can follow.
        Some(quote) => line.rfind(quote)?,
        None => line.len() - value.len(),
    };
    let rest = line.get(from..)?;
    let at = from + rest.find(" #")?;
    let blanks = line.get(..at)?.trim_end().len();
    line.get(blanks..)
}
