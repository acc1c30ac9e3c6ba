//! Programs that write files: where they write is data only if nothing there is run later.

use super::super::target::Writes;
use super::super::tool::{TOOL, Tool};
use super::{Kind, Row, row};

pub(super) const WRITERS: &[Row] = &[
    row(
        &["install", "cp", "ln", "mv"],
        Kind::Takes(Tool {
            programs: &["--strip-program"],
            valued: "Sgmot",
            values: &["group", "mode", "owner", "suffix", "target-directory"],
            writes: Writes::Last,
            targets: &["-t", "--target-directory"],
            ..TOOL
        }),
    ),
    row(
        &["touch", "fallocate", "mkdir", "mkfifo", "mknod", "truncate"],
        Kind::Takes(Tool {
            valued: "Zdlmorst",
            values: &["context", "date", "length", "mode", "offset", "reference", "size", "time"],
            writes: Writes::Every,
            ..TOOL
        }),
    ),
    row(
        &["uniq"],
        Kind::Takes(Tool {
            valued: "fsw",
            values: &["skip-fields", "skip-chars", "check-chars"],
            writes: Writes::From(1),
            ..TOOL
        }),
    ),
    row(
        &["shuf"],
        Kind::Takes(Tool {
            valued: "ino",
            values: &["head-count", "input-range", "output", "random-source"],
            targets: &["-o", "--output"],
            ..TOOL
        }),
    ),
    row(
        &[
            "iconv",
            "dot",
            "genisoimage",
            "mkisofs",
            "msgcat",
            "msgfmt",
            "msgmerge",
            "nasm",
            "xgettext",
            "xorriso",
        ],
        Kind::Takes(Tool {
            valued: "fot",
            values: &["from-code", "output", "output-file", "to-code"],
            targets: &["-o", "--output", "--output-file"],
            ..TOOL
        }),
    ),
    // Without another name they change the file that they are given.
    row(
        &["objcopy", "strip"],
        Kind::Takes(Tool {
            programs: &["--plugin"],
            valued: "FIKNOoR",
            targets: &["-o"],
            writes: Writes::Every,
            ..TOOL
        }),
    ),
    row(&["ar"], Kind::Takes(Tool { programs: &["--plugin"], writes: Writes::From(1), ..TOOL })),
    row(
        &["zip"],
        Kind::Takes(Tool {
            programs: &["-TT", "--unzip-command", "-@"],
            valued: "bintPx",
            targets: &["-O", "--out"],
            writes: Writes::First,
            ..TOOL
        }),
    ),
    row(
        &["pg_dump", "pg_dumpall"],
        Kind::Takes(Tool { valued: "EFUdhfjnNptTZ", targets: &["-f", "--file"], ..TOOL }),
    ),
    // They write files that their input names.
    row(
        &["uudecode", "unshar", "ripmime", "munpack"],
        Kind::Takes(Tool {
            reads: true,
            targets: &["-o", "-C", "-d"],
            writes: Writes::Every,
            ..TOOL
        }),
    ),
    row(
        &["cpio", "pax"],
        Kind::Takes(Tool { programs: &["--rsh-command", "-M"], reads: true, ..TOOL }),
    ),
    row(&["tee", "sponge"], Kind::Takes(Tool { writes: Writes::Every, ..TOOL })),
    row(&["dd"], Kind::Takes(Tool { writes: Writes::Named("of="), ..TOOL })),
    row(
        &["split", "csplit", "gsplit"],
        Kind::Takes(Tool {
            programs: &["--filter"],
            valued: "abClnft",
            targets: &["-f", "--prefix"],
            writes: Writes::Last,
            ..TOOL
        }),
    ),
    row(&["xxd"], Kind::Takes(Tool { valued: "cglnosR", writes: Writes::Last, ..TOOL })),
    row(&["unzip", "bsdcpio"], Kind::Takes(Tool { valued: "d", targets: &["-d"], ..TOOL })),
    row(
        &["patch"],
        Kind::Takes(Tool {
            programs: &["-e", "--ed"],
            valued: "BDFYdgioprz",
            targets: &["-d", "-o", "--directory", "--output"],
            writes: Writes::Every,
            // A patch names the files that it changes.
            reads: true,
            ..TOOL
        }),
    ),
    Row {
        // The shell of another host may read the names there.
        holds: REMOTE,
        ..row(
            &["scp"],
            Kind::Takes(Tool {
                programs: &["-D", "-F", "-J", "-S", "-o"],
                writes: Writes::Last,
                ..TOOL
            }),
        )
    },
    Row {
        holds: REMOTE,
        ..row(
            &["rsync", "unison"],
            Kind::Takes(Tool {
                programs: &[
                    "-M",
                    "-e",
                    "--config",
                    "--remote-option",
                    "--rsh",
                    "--rsync-path",
                    "-sshcmd",
                    "-servercmd",
                    "--dparam",
                ],
                writes: Writes::Last,
                ..TOOL
            }),
        )
    },
];

/// Signs that mean something to a shell.
const REMOTE: &[&str] = &["`", "$", ";", "|", "&", "<", ">", "(", "\n"];
