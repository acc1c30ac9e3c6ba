//! Programs that have something run elsewhere, or with something in hand: containers, clusters,
//! services, clouds, and what gives secrets to a command.

use super::super::tool::{COMMANDS, Tool};
use super::{Kind, Row, row};

pub(super) const ELSEWHERE: &[Row] = &[
    row(
        &[
            "docker",
            "buildah",
            "crictl",
            "crun",
            "ctr",
            "docker-compose",
            "helm",
            "kubectl",
            "lxc",
            "machinectl",
            "multipass",
            "nerdctl",
            "nomad",
            "oc",
            "packer",
            "podman",
            "runc",
            "singularity",
            "skopeo",
            "systemd-nspawn",
            "terraform",
            "tofu",
            "vagrant",
            "youki",
        ],
        Kind::Takes(Tool {
            programs: &["-H", "-f", "--as", "--config", "--host", "--kubeconfig", "--filename"],
            words: &[
                "apply",
                "attach",
                "build",
                "commit",
                "compose",
                "config",
                "container",
                "cp",
                "create",
                "debug",
                "edit",
                "exec",
                "import",
                "install",
                "load",
                "patch",
                "plugin",
                "proxy",
                "replace",
                "run",
                "service",
                "set",
                "shell",
                "ssh",
                "stack",
                "start",
                "template",
                "up",
                "update",
                "upgrade",
            ],
            readers: &["build -", "console", "deploy -"],
            ..COMMANDS
        }),
    ),
    row(
        &["systemctl", "initctl", "launchctl", "loginctl"],
        Kind::Takes(Tool {
            programs: &["-H", "-M", "-p", "--property", "--host", "--machine", "--root"],
            words: &[
                "edit",
                "enable",
                "import-environment",
                "link",
                "load",
                "set-environment",
                "set-property",
            ],
            ..COMMANDS
        }),
    ),
    row(
        &["consul", "etcdctl", "gh", "glab", "op"],
        Kind::Takes(Tool {
            programs: &["--config", "-config-file"],
            words: &[
                "alias",
                "codespace",
                "config",
                "connect",
                "cs",
                "exec",
                "ext",
                "extension",
                "extensions",
                "lock",
                "plugin",
                "run",
                "watch",
            ],
            ..COMMANDS
        }),
    ),
    Row {
        begins: &["file://", "fileb://"],
        ..row(
            &[
                "aws", "az", "doctl", "eksctl", "firebase", "fly", "gcloud", "gsutil", "heroku",
                "minikube", "netlify", "railway", "supabase", "vercel", "wrangler",
            ],
            Kind::Takes(Tool {
                programs: &["--cli-input-json", "--cli-input-yaml", "--command", "--config"],
                words: &[
                    "alias",
                    "config",
                    "configure",
                    "exec",
                    "execute-command",
                    "invoke",
                    "run",
                    "run-command",
                    "send-command",
                    "ssh",
                    "ssm",
                ],
                ..COMMANDS
            }),
        )
    },
    row(
        &[
            "aws-vault",
            "berglas",
            "chamber",
            "doppler",
            "dotenvx",
            "infisical",
            "pass",
            "sops",
            "vault",
        ],
        Kind::Takes(Tool {
            programs: &["--config", "--command", "-c", "-f"],
            words: &["edit", "exec", "exec-env", "exec-file", "git", "run", "shell", "ssh"],
            ..COMMANDS
        }),
    ),
];
