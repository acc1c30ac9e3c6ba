//! Programs that run programs of their own language.

use super::super::interpreter::{First, Interpreter, Rest, SCRIPT};
use super::{Row, runs};

const SHELL: Interpreter = Interpreter {
    text: "cC",
    texts: &["command", "commands", "init-command"],
    valued: "oO",
    values: &["rcfile", "init-file"],
    input: "s",
    rest: Rest::Data,
    is_shell: true,
    ..SCRIPT
};

pub(super) const INTERPRETERS: &[Row] = &[
    runs(
        &[
            "sh", "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "osh",
            "pdksh", "rbash", "rksh", "rzsh", "tcsh", "xonsh", "yash", "ysh", "zsh", "bosh",
            "closh", "hush", "lksh", "loksh", "lshell", "msh", "murex", "ngs", "oksh", "pbosh",
            "posh", "psh", "rssh", "sash", "scsh", "smrsh", "xsh",
        ],
        SHELL,
    ),
    runs(
        &["python", "ipython", "jython", "micropython", "pypy"],
        Interpreter {
            text: "c",
            valued: "QWX",
            values: &["check-hash-based-pycs"],
            input: "i",
            module: "m",
            rest: Rest::Data,
            ..SCRIPT
        },
    ),
    runs(
        &["perl", "raku"],
        Interpreter {
            text: "eE",
            valued: "I",
            attached: "0CDFMVilmx",
            // The debugger reads commands.
            input: "d",
            opens_files: true,
            ..SCRIPT
        },
    ),
    runs(
        &["ruby", "jruby", "mruby", "truffleruby"],
        Interpreter { valued: "CEIXr", attached: "0FKTWix", opens_files: true, ..SCRIPT },
    ),
    runs(
        &["node", "bun", "deno", "electron", "nodejs", "qjs", "ts-node", "tsx"],
        Interpreter {
            text: "ep",
            valued: "Cr",
            values: &[
                "conditions",
                "config",
                "env-file",
                "experimental-loader",
                "import",
                "import-map",
                "input-type",
                "loader",
                "require",
                "title",
            ],
            input: "i",
            has_commands: true,
            ..SCRIPT
        },
    ),
    runs(
        &["php", "php-cgi"],
        Interpreter {
            text: "BERr",
            valued: "SZcdtz",
            script: "Ff",
            scripts: &["file", "process-file"],
            input: "a",
            ..SCRIPT
        },
    ),
    runs(&["lua", "luajit", "luau", "texlua"], Interpreter { valued: "l", input: "i", ..SCRIPT }),
    runs(
        &["tclsh", "expect", "wish"],
        Interpreter { text: "c", script: "bf", values: &["encoding"], input: "i", ..SCRIPT },
    ),
    runs(
        &["rscript", "r", "littler"],
        Interpreter { valued: "g", script: "f", scripts: &["file"], ..SCRIPT },
    ),
    runs(
        &["julia"],
        Interpreter { text: "eE", valued: "CHpt", script: "L", scripts: &["load"], ..SCRIPT },
    ),
    runs(
        &["java", "javaw", "kotlin"],
        Interpreter {
            text: "",
            texts: &[],
            values: &[
                "add-exports",
                "add-modules",
                "add-opens",
                "add-reads",
                "class-path",
                "classpath",
                "cp",
                "describe-module",
                "enable-native-access",
                "limit-modules",
                "module-path",
                "p",
                "patch-module",
                "source",
                "upgrade-module-path",
            ],
            scripts: &["jar", "m", "module"],
            ..SCRIPT
        },
    ),
    runs(&["osascript"], Interpreter { valued: "ls", ..SCRIPT }),
    runs(
        &[
            "guile",
            "chicken",
            "clisp",
            "clj",
            "clojure",
            "csi",
            "ecl",
            "elixir",
            "erl",
            "es",
            "escript",
            "ghc",
            "gosh",
            "groovy",
            "lli",
            "mit-scheme",
            "mono",
            "ocaml",
            "octave",
            "octave-cli",
            "oil",
            "pike",
            "racket",
            "rc",
            "runghc",
            "runhaskell",
            "sbcl",
            "scala",
            "scheme",
            "swift",
            "swipl",
        ],
        Interpreter { text: "cepr", input: "i", ..SCRIPT },
    ),
    // These read commands whatever their arguments.
    runs(
        &[
            "irb",
            "crash",
            "debugfs",
            "gforth",
            "ghci",
            "gp",
            "groovysh",
            "iex",
            "jshell",
            "maxima",
            "msfconsole",
            "pry",
            "r2",
            "radare2",
            "rizin",
            "sage",
            "utop",
        ],
        Interpreter { text: "Rcepx", script: "fir", reads: true, ..SCRIPT },
    ),
    runs(
        &["vim", "emacs", "ex", "gvim", "nvim", "rvim", "vi", "view", "vimdiff"],
        Interpreter {
            text: "ce",
            texts: &["cmd", "eval", "execute", "ex"],
            script: "SUsu",
            reads: true,
            ..SCRIPT
        },
    ),
    runs(
        &["gdb", "cgdb", "gdbserver", "lldb"],
        Interpreter {
            text: "ceko",
            texts: &[
                "eval-command",
                "ex",
                "iex",
                "init-eval-command",
                "one-line",
                "one-line-before-file",
            ],
            script: "sx",
            scripts: &["command", "init-command", "ix", "source"],
            reads: true,
            ..SCRIPT
        },
    ),
    runs(&["ed", "red"], Interpreter { text: "", texts: &[], valued: "p", reads: true, ..SCRIPT }),
    runs(
        &["bc", "dc"],
        Interpreter {
            text: "e",
            texts: &["expression"],
            script: "f",
            scripts: &["file"],
            reads: true,
            ..SCRIPT
        },
    ),
    runs(
        &["m4"],
        Interpreter { text: "D", texts: &["define"], valued: "I", reads: true, ..SCRIPT },
    ),
    runs(
        &["gs", "dvips", "ghostscript"],
        Interpreter { text: "c", script: "f", reads: true, ..SCRIPT },
    ),
    runs(
        &["groff", "nroff", "troff"],
        Interpreter { text: "dr", valued: "DFIKLMPTfmnow", reads: true, ..SCRIPT },
    ),
    runs(
        &[
            "tex",
            "amstex",
            "context",
            "csplain",
            "dvilualatex",
            "etex",
            "latex",
            "luahbtex",
            "lualatex",
            "luatex",
            "pdfetex",
            "pdflatex",
            "pdftex",
            "platex",
            "ptex",
            "uplatex",
            "xelatex",
            "xetex",
        ],
        Interpreter { text: "", first: First::Text, reads: true, ..SCRIPT },
    ),
    Row {
        begins: &["|"],
        ..runs(
            &["psql", "pgcli"],
            Interpreter {
                text: "c",
                texts: &["command"],
                script: "f",
                scripts: &["file"],
                reads: true,
                first: First::Data,
                rest: Rest::Data,
                ..SCRIPT
            },
        )
    },
    runs(
        &["mysql", "mariadb", "mysqlsh"],
        Interpreter {
            texts: &[
                "execute",
                "init-command",
                "pager",
                "plugin-dir",
                "default-auth",
                "defaults-file",
                "defaults-extra-file",
                "tee",
            ],
            reads: true,
            first: First::Data,
            rest: Rest::Data,
            ..SCRIPT
        },
    ),
    runs(
        &[
            "redis-cli",
            "beeline",
            "clickhouse",
            "clickhouse-client",
            "cqlsh",
            "hive",
            "impala-shell",
            "isql",
            "mongo",
            "mongosh",
            "mssql-cli",
            "osql",
            "pig",
            "presto",
            "spark-sql",
            "sqlcmd",
            "sqlplus",
            "trino",
            "tsql",
            "usql",
        ],
        Interpreter {
            text: "eqQ",
            texts: &["eval", "query", "execute", "command"],
            script: "fi",
            scripts: &["file", "queries-file"],
            reads: true,
            ..SCRIPT
        },
    ),
    runs(
        &["awk", "bwk", "gawk", "goawk", "mawk", "nawk", "original-awk"],
        Interpreter {
            texts: &["source"],
            valued: "Fv",
            values: &["assign", "field-separator"],
            script: "Efil",
            scripts: &["exec", "file", "include", "load"],
            spells: Some('W'),
            first: First::Text,
            rest: Rest::Data,
            ..SCRIPT
        },
    ),
    runs(
        &["sed", "gsed", "ssed"],
        Interpreter {
            texts: &["expression"],
            valued: "l",
            values: &["line-length"],
            attached: "i",
            script: "f",
            scripts: &["file"],
            first: First::Text,
            rest: Rest::OptionsAnywhere,
            ..SCRIPT
        },
    ),
    // A pattern can name a command that is run where it matches.
    runs(
        &["pcre2grep", "pcregrep"],
        Interpreter {
            texts: &["regexp"],
            valued: "ABCDdm",
            script: "f",
            scripts: &["file", "file-list"],
            first: First::Text,
            rest: Rest::OptionsAnywhere,
            ..SCRIPT
        },
    ),
    runs(
        &["rename", "file-rename", "perl-rename", "prename"],
        Interpreter {
            texts: &["expr"],
            script: "M",
            first: First::Text,
            rest: Rest::OptionsAnywhere,
            ..SCRIPT
        },
    ),
    runs(
        &["yq", "tomlq", "xq"],
        Interpreter {
            text: "",
            texts: &["expression"],
            values: &["indent"],
            script: "f",
            scripts: &["from-file"],
            first: First::Text,
            rest: Rest::Data,
            has_commands: true,
            ..SCRIPT
        },
    ),
    runs(
        &["jq", "gojq", "jaq"],
        Interpreter {
            text: "",
            texts: &[],
            valued: "L",
            values: &["indent"],
            script: "f",
            scripts: &["file", "from-file"],
            first: First::Text,
            rest: Rest::Data,
            ..SCRIPT
        },
    ),
];
