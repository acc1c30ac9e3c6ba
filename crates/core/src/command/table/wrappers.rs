//! Programs that run the command behind their options, or one text made of their arguments.

use super::super::wrapper::{WRAPPER, Wrapper};
use super::{JOINER, Joiner, Kind, Row, row, wraps};

pub(super) const WRAPPERS: &[Row] = &[
    wraps(&["busybox", "coreutils", "toybox"], "", &[], 0),
    wraps(&["bwrap", "firejail"], "", &[], 0),
    wraps(&["ccache", "distcc", "sccache"], "FMcdkosx", &["config-path", "dir", "set-config"], 0),
    wraps(&["cgexec"], "g", &[], 0),
    wraps(&["choom"], "np", &["adjust", "pid"], 0),
    wraps(&["chpst"], "/bcdefglmnopru", &[], 0),
    wraps(&["chroot"], "", &["groups", "userspec"], 1),
    wraps(&["chrt"], "DPT", &[], 1),
    wraps(
        &[
            "command",
            "builtin",
            "catatonit",
            "catchsegv",
            "chronic",
            "dbus-run-session",
            "dumb-init",
            "eatmydata",
            "fakechroot",
            "ifne",
            "nohup",
            "rlwrap",
            "setsid",
            "torify",
            "torsocks",
            "tsocks",
            "unbuffer",
            "valgrind",
            "wine",
            "xvfb-run",
        ],
        "",
        &[],
        0,
    ),
    wraps(&["cpulimit"], "Pelp", &["exe", "limit", "path", "pid"], 0),
    wraps(&["doas"], "Cu", &[], 0),
    row(
        &["env"],
        Kind::Wraps(Wrapper {
            valued: "Cu",
            values: &["chdir", "unset"],
            lines: &["-S", "-iS", "-vS", "--split-string"],
            sets_variables: true,
            ..WRAPPER
        }),
    ),
    wraps(&["exec"], "a", &[], 0),
    wraps(&["fakeroot"], "bfils", &[], 0),
    wraps(&["faketime"], "", &[], 1),
    row(
        &["flock"],
        Kind::Wraps(Wrapper {
            valued: "Ew",
            values: &["conflict-exit-code", "timeout", "wait"],
            own: 1,
            lines: &["-c", "--command"],
            ..WRAPPER
        }),
    ),
    wraps(
        &["gosu", "envdir", "envuidgid", "setarch", "setlock", "setuidgid", "su-exec"],
        "",
        &[],
        1,
    ),
    wraps(&["ionice"], "cn", &["class", "classdata"], 0),
    wraps(
        &["ld.so"],
        "",
        &[
            "argv0",
            "audit",
            "glibc-hwcaps-mask",
            "glibc-hwcaps-prepend",
            "inhibit-rpath",
            "library-path",
            "preload",
        ],
        0,
    ),
    wraps(&["ltrace"], "Denopsu", &[], 0),
    wraps(&["nice"], "n", &["adjustment"], 0),
    row(
        &["npx", "bunx", "pnpx"],
        Kind::Wraps(Wrapper {
            valued: "p",
            values: &["package"],
            lines: &["-c", "--call"],
            ..WRAPPER
        }),
    ),
    wraps(&["nsenter"], "GSt", &["setgid", "setuid", "target"], 0),
    wraps(&["numactl", "prlimit", "setpriv"], "CNilmp", &[], 0),
    wraps(&["pkexec"], "", &["user"], 0),
    wraps(&["proot"], "0bkqrRSvw", &["bind", "cwd", "kernel-release", "qemu", "rootfs"], 0),
    wraps(&["proxychains"], "f", &[], 0),
    wraps(&["softlimit"], "acdfhmoprst", &[], 0),
    wraps(&["ssh-agent"], "EPat", &[], 0),
    wraps(&["start-stop-daemon"], "CIKNPRSabcdgknprstux", &[], 0),
    wraps(&["stdbuf"], "eio", &["error", "input", "output"], 0),
    wraps(&["strace"], "EIOPSUXabeopsu", &[], 0),
    row(
        &["sudo"],
        Kind::Wraps(Wrapper {
            valued: "CDRTUghprtu",
            values: &[
                "chdir",
                "chroot",
                "close-from",
                "command-timeout",
                "group",
                "host",
                "other-user",
                "prompt",
                "role",
                "type",
                "user",
            ],
            sets_variables: true,
            ..WRAPPER
        }),
    ),
    wraps(
        &["systemd-run", "systemd-inhibit"],
        "EHMpu",
        &[
            "description",
            "gid",
            "host",
            "machine",
            "nice",
            "property",
            "setenv",
            "slice",
            "uid",
            "unit",
            "what",
            "who",
            "why",
            "working-directory",
        ],
        0,
    ),
    row(
        &["systemd-cat"],
        Kind::Wraps(Wrapper {
            valued: "pt",
            values: &["identifier", "priority", "stderr-priority", "level-prefix"],
            is_plain_alone: true,
            ..WRAPPER
        }),
    ),
    wraps(&["taskset"], "", &[], 1),
    wraps(&["time"], "fo", &["format", "output"], 0),
    wraps(&["timeout"], "ks", &["kill-after", "signal"], 1),
    wraps(&["tini"], "egp", &[], 0),
    wraps(&["unshare"], "GRSw", &["root", "setgid", "setuid", "wd"], 0),
    row(
        &["xargs"],
        Kind::Wraps(Wrapper {
            valued: "EILPadns",
            values: &["arg-file", "delimiter", "max-args", "max-chars", "max-lines", "max-procs"],
            fills_in: Some(&["-I", "-i", "--replace"]),
            is_plain_alone: true,
            ..WRAPPER
        }),
    ),
];

pub(super) const JOINERS: &[Row] = &[
    row(
        &["ssh", "autossh", "dbclient", "mosh", "plink", "rsh", "sshpass"],
        Kind::Joins(Joiner { valued: "BDEFIJLOPQRSWbceilmopw", own: 1, ..JOINER }),
    ),
    row(
        &["sqlite", "duckdb", "spatialite", "sqlcipher"],
        Kind::Joins(Joiner { reads: true, ..JOINER }),
    ),
    row(
        &["parallel", "entr", "pexec", "rush", "sem"],
        Kind::Joins(Joiner { reads: true, ..JOINER }),
    ),
    // They start a shell unless they are given a command.
    row(
        &["su", "cmd", "newgrp", "runuser", "screen", "script", "sg", "tmux"],
        Kind::Joins(Joiner { reads: true, ..JOINER }),
    ),
    row(&["powershell", "pwsh"], Kind::Joins(Joiner { has_scripts: true, ..JOINER })),
    row(
        &["eval", "hyperfine", "mispipe", "pee", "scriptreplay", "sudoedit", "watch"],
        Kind::Joins(JOINER),
    ),
    row(
        &[
            "xterm",
            "alacritty",
            "foot",
            "gnome-terminal",
            "kitty",
            "konsole",
            "lxterminal",
            "rxvt",
            "startx",
            "urxvt",
            "x-terminal-emulator",
            "xfce4-terminal",
            "xinit",
        ],
        Kind::Joins(JOINER),
    ),
];
