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
            ..TOOL
        }),
    ),
    row(
        &["scp"],
        Kind::Takes(Tool {
            programs: &["-D", "-F", "-J", "-S", "-o"],
            writes: Writes::Last,
            ..TOOL
        }),
    ),
    row(
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
    ),
];
