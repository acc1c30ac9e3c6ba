//! Crashes of small programs.

use std::collections::BTreeSet;
use std::path::Path;

use cairn_store::files::fs::{Fs, Open};

use super::*;
use crate::fs::SimFs;

/// What `/a` can be after a crash of a small program: `-` when it is not there.
fn outcomes(program: impl FnOnce(&SimFs)) -> Vec<String> {
    let fs = Disk::default().process();
    program(&fs);
    let outcome = |image: Image| {
        let bytes = Disk::on(image).process().read(Path::new("/a"));
        let text = bytes.map(|bytes| String::from_utf8(bytes).unwrap().replace('\0', "."));
        text.unwrap_or_else(|_| "-".to_owned())
    };
    let states = States::of(fs.disk(), Depth::FULL);
    let found: BTreeSet<String> = states.iter().map(|(_, image)| outcome(image)).collect();
    found.into_iter().collect()
}

fn write(fs: &SimFs, path: &str, bytes: &[u8], sync: bool) {
    let file = fs.open(Path::new(path), Open::Create).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    if sync {
        file.sync().unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
    }
}

#[test]
fn a_write_can_be_cut_anywhere_and_leave_zeros() {
    let found = outcomes(|fs| write(fs, "/a", b"xyz", false));
    assert_eq!(found, ["", "-", "...", "x", "x..", "xy", "xy.", "xyz"]);
}

#[test]
fn an_overwritten_range_keeps_old_bytes_behind_the_cut() {
    let found = outcomes(|fs| {
        write(fs, "/a", b"old", true);
        write(fs, "/a", b"NEW", false);
    });
    assert_eq!(found, ["NEW", "NEd", "Nld", "old"]);
}

#[test]
fn a_later_sector_can_be_there_without_an_earlier_one() {
    let found = outcomes(|fs| write(fs, "/a", &[b'x'; 514], false));
    assert!(found.contains(&format!("{}xx", ".".repeat(512))));
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let found = outcomes(|fs| {
        write(fs, "/a", b"old", true);
        write(fs, "/b", b"new", true);
        fs.rename(Path::new("/b"), Path::new("/a")).unwrap();
    });
    assert_eq!(found, ["new", "old"]);
}

#[test]
fn a_rename_without_a_sync_can_lead_to_nothing() {
    let found = outcomes(|fs| {
        write(fs, "/b", b"n", false);
        fs.rename(Path::new("/b"), Path::new("/a")).unwrap();
    });
    assert_eq!(found, ["", "-", ".", "n"]);
}

#[test]
fn what_is_synced_leaves_one_disk() {
    let found = outcomes(|fs| write(fs, "/a", b"safe", true));
    assert_eq!(found, ["safe"]);
}

#[test]
fn too_many_effects_are_sampled_and_said_to_be() {
    let fs = Disk::default().process();
    for number in 0..Depth::QUICK.effects_max + 1 {
        fs.create_dir(Path::new(&format!("/{number}"))).unwrap();
    }
    let states = States::of(fs.disk(), Depth::QUICK);
    let images: BTreeSet<_> = states.iter().map(|(_, image)| image.digest()).collect();
    assert!(!states.exhaustive);
    assert!(images.len() > 100, "{}", images.len());
}
