//! Variables of the environment that make a program run something else.

/// Names that say which code runs, which options a program has or where it connects. They are
/// in capitals here, and count in any spelling.
const NAMES: &[&str] = &[
    "ACKRC",
    "APT_CONFIG",
    "AR",
    "AS",
    "AWKLIBPATH",
    "AWKPATH",
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BROWSER",
    "BZIP",
    "BZIP2",
    "BZR_SSH",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "COMPILER_PATH",
    "COVERAGE_PROCESS_START",
    "CPP",
    "CUDA_INJECTION64_PATH",
    "CURL_HOME",
    "CXX",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_SHARED_STORE",
    "DOTNET_STARTUP_HOOKS",
    "EMACSLOADPATH",
    "ENV",
    "EXINIT",
    "FC",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "GCC_EXEC_PREFIX",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GETCONF_DIR",
    "GHCRTS",
    "GIO_EXTRA_MODULES",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GOENV",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "GTK_MODULES",
    "GTK_PATH",
    "GUILE_LOAD_COMPILED_PATH",
    "GUILE_LOAD_PATH",
    "GVIMINIT",
    "GZIP",
    "HGMERGE",
    "HGRCPATH",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "KUBECONFIG",
    "LADSPA_PATH",
    "LD",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "LIBGL_DRIVERS_PATH",
    "LIBMYSQL_PLUGINS",
    "LIBVA_DRIVERS_PATH",
    "LOCALDOMAIN",
    "LOCPATH",
    "LUAINPUTS",
    "M4PATH",
    "MAGICK_CODER_FILTER_PATH",
    "MAGICK_CODER_MODULE_PATH",
    "MAGICK_CONFIGURE_PATH",
    "MAGICK_HOME",
    "MAILCAPS",
    "MAILPATH",
    "MAILRC",
    "MAKE",
    "MAKEFILES",
    "MAKEOVERRIDES",
    "MAKESHELL",
    "MANOPT",
    "MANPATH",
    "MANROFFSEQ",
    "MORE",
    "MYSQL_HOME",
    "MYSQL_TEST_LOGIN_FILE",
    "NETRC",
    "NLSPATH",
    "OCL_ICD_VENDORS",
    "OMP_TOOL_LIBRARIES",
    "OPENIN_ANY",
    "OPENOUT_ANY",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PATH",
    "PATHEXT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PSQLRC",
    "QEMU_SET_ENV",
    "QT_PLUGIN_PATH",
    "RESOLV_HOST_CONF",
    "RIPGREP_CONFIG_PATH",
    "RSYNC_CONNECT_PROG",
    "RUBYLIB",
    "RUBYSHELL",
    "RUSTC",
    "RUSTDOC",
    "R_HOME",
    "SCREENRC",
    "SENDMAIL",
    "SHELL",
    "SHELLOPTS",
    "SHELL_ESCAPE",
    "SHELL_ESCAPE_COMMANDS",
    "SSH_AUTH_SOCK",
    "SSH_PKCS11_HELPER",
    "SSLKEYLOGFILE",
    "SVN_SSH",
    "SYSTEMD_LESS",
    "SYSTEM_WGETRC",
    "TAPE",
    "TCLLIBPATH",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TEXINPUTS",
    "UNZIP",
    "UNZIPOPT",
    "VIM",
    "VIMINIT",
    "VIMRUNTIME",
    "VISUAL",
    "WGETRC",
    "XAUTHORITY",
    "XXD_OPT",
    "XZ_OPT",
    "ZDOTDIR",
    "ZIP",
    "ZIPINFO",
    "ZIPOPT",
];

/// Beginnings of such names.
const PREFIXES: &[&str] = &[
    "ANSIBLE_",
    "BASH_FUNC_",
    "BORG_",
    "BUNDLE_",
    "CAIRN_",
    "CARGO_",
    "CCACHE_",
    "CLOUDSDK_PYTHON",
    "COMPLUS_",
    "CORECLR_",
    "COR_",
    "DOCKER_TLS",
    "DYLD_",
    "ELIXIR_",
    "ERL_",
    "GIT_",
    "GST_PLUGIN",
    "JULIA_",
    "LD_",
    "LESSKEY",
    "LUA_",
    "MAVEN_",
    "NIX_",
    "NODE_",
    "NPM_",
    "PERL",
    "PGSERVICE",
    "PGSYSCONFDIR",
    "PG_CONFIG",
    "PIP_",
    "PKG_CONFIG",
    "POETRY_",
    "PYENV_",
    "PYTEST_",
    "PYTHON",
    "RBENV_",
    "RCLONE_",
    "RESTIC_",
    "RUBYOPT",
    "R_ENVIRON",
    "R_LIBS",
    "R_PROFILE",
    "SSH_SK_",
    "TEXMF",
    "TF_CLI_ARGS",
    "UV_",
    "YARN_",
];

/// Endings of such names.
const SUFFIXES: &[&str] = &[
    "EDITOR",
    "FLAGS",
    "PAGER",
    "_ARGS",
    "_ASKPASS",
    "_COMMAND",
    "_COMPILER",
    "_COMPILER_LAUNCHER",
    "_EXEC_PATH",
    "_HOOK_PATH",
    "_INIT",
    "_LINKER",
    "_OPTIONS",
    "_OPTS",
    "_PRELOAD",
    "_PROXY",
    "_RSH",
    "_SHELL",
    "_WRAPPER",
];

/// Names that are among those above, and are data all the same.
const HARMLESS: &[&str] = &[
    "ANSIBLE_FORCE_COLOR",
    "ANSIBLE_NOCOLOR",
    "BORG_PASSPHRASE",
    "BORG_REPO",
    "CARGO_TERM_COLOR",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_TERMINAL_PROMPT",
    "RCLONE_CONFIG_PASS",
    "RESTIC_PASSWORD",
    "RESTIC_REPOSITORY",
];

/// Names of places in which programs look for their configuration, or for what they work on.
const PLACES: &[&str] = &[
    "AWS_CONFIG_FILE",
    "BORG_REPO",
    "GNUPGHOME",
    "HOME",
    "JAVA_HOME",
    "RESTIC_REPOSITORY",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// Whether a variable of this name makes a program run something else.
#[must_use]
pub fn loads(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let name = name.as_str();
    let loads = NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    loads && !HARMLESS.contains(&name)
}

/// Whether a variable of this name says where a program looks for its configuration. An author
/// may set it, and nobody else.
#[must_use]
pub fn configures(name: &str) -> bool {
    PLACES.contains(&name.to_ascii_uppercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_and_say_nothing_twice() {
        for list in [NAMES, PREFIXES, SUFFIXES, HARMLESS, PLACES] {
            assert!(list.is_sorted_by(|a, b| a < b), "{list:?}");
        }
        for name in NAMES {
            let begins = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            let ends = SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
            assert!(!begins && !ends, "{name}");
        }
    }

    #[test]
    fn names_of_a_workflow_are_its_own() {
        for name in ["HOST", "DATA", "GIT_AUTHOR_NAME", "_x", "API_PATH", "TARGET", "REGION"] {
            assert!(!loads(name) && !configures(name), "{name}");
        }
        assert!(configures("HOME") && !loads("HOME"));
    }
}
