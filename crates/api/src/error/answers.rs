//! For each code: the HTTP status, the exit code, whether to try again, and what to do.

use cairn_core::error::Retry;

use crate::exit::Exit;

/// How the doors answer to one code.
pub(super) struct Answer {
    pub(super) code: &'static str,
    pub(super) status: u16,
    pub(super) exit: Exit,
    pub(super) retry: Retry,
    pub(super) suggestion: &'static str,
}

/// The answer to a code. A code that is not listed is our mistake, and is answered as one.
pub(super) fn find(code: &str) -> &'static Answer {
    ANSWERS.iter().find(|answer| answer.code == code).unwrap_or(&UNLISTED)
}

const NEVER: Retry = Retry::NotRetryable;
const AT_ONCE: Retry = Retry::RetryableImmediate;

const fn after_ms(after_ms: u64) -> Retry {
    Retry::RetryableAfterMs { after_ms }
}

const fn answer(
    code: &'static str,
    status: u16,
    exit: Exit,
    retry: Retry,
    suggestion: &'static str,
) -> Answer {
    Answer { code, status, exit, retry, suggestion }
}

const UNLISTED: Answer = answer(
    "INTERNAL_ERROR",
    500,
    Exit::Failed,
    NEVER,
    "this is a fault of the program: report it with the command and this message",
);

/// Every code, in alphabetical order.
#[rustfmt::skip]
pub(super) const ANSWERS: &[Answer] = &[
    answer("ADMIN_TOKEN_UNUSABLE", 500, Exit::Denied, NEVER,
        "give the file mode 0600, or delete it: the next `cairn serve` makes a new token"),
    answer("AUTH_FORBIDDEN", 403, Exit::Denied, NEVER,
        "use a token whose scopes cover this"),
    answer("AUTH_TOKEN_INVALID", 401, Exit::Denied, NEVER,
        "send the token that `cairn serve` printed; it is kept in keys/admin.token of the data directory"),
    answer("AUTH_TOKEN_MISSING", 401, Exit::Denied, NEVER,
        "send the header `Authorization: Bearer <token>`; a token in the URL is not read"),
    answer("BUNDLE_EVENT_ORDER_INVALID", 422, Exit::Invalid, NEVER,
        "export the session again; do not edit bundles by hand"),
    answer("BUNDLE_INTEGRITY_FAILED", 422, Exit::Invalid, NEVER,
        "copy or download the bundle again; if it stays the same, export the session again"),
    answer("BUNDLE_INVALID_FORMAT", 422, Exit::Invalid, NEVER,
        "check that this is a file written by `cairn session export`"),
    answer("BUNDLE_MANIFEST_ORDER_INVALID", 422, Exit::Invalid, NEVER,
        "export the session again; do not edit bundles by hand"),
    answer("BUNDLE_MISSING_PINNED_WORKFLOW", 422, Exit::Invalid, NEVER,
        "export the session again where its plans are still stored"),
    answer("BUNDLE_MISSING_SNAPSHOT", 422, Exit::Invalid, NEVER,
        "export the session again where its snapshots are still stored"),
    answer("BUNDLE_TOO_LARGE", 413, Exit::Invalid, NEVER,
        "keep the session and copy the data directory instead; start new sessions for further work"),
    answer("BUNDLE_UNSUPPORTED_VERSION", 422, Exit::Invalid, NEVER,
        "import it with the version of cairn that wrote it, or a later one"),
    answer("FILE_DENIED", 500, Exit::Denied, NEVER,
        "give yourself access to the file, or name another one"),
    answer("FILE_IO", 500, Exit::Failed, NEVER,
        "check the path and the disk it is on, then try again"),
    answer("FILE_NOT_FOUND", 500, Exit::NotFound, NEVER,
        "check the path; `-` stands for standard input or output"),
    answer("HOME_NOT_A_DIRECTORY", 500, Exit::Usage, NEVER,
        "name a directory with --home or CAIRN_HOME"),
    answer("HOME_UNKNOWN", 500, Exit::Usage, NEVER,
        "name the data directory with --home or CAIRN_HOME"),
    UNLISTED,
    answer("INVARIANT_VIOLATION", 500, Exit::Invalid, NEVER,
        "read the session again and decide again; if it stays, report it with `cairn session export`"),
    answer("KEYRING_BUSY", 409, Exit::Conflict, after_ms(1_000),
        "wait for the other process to finish, then try again"),
    answer("KEYRING_UNUSABLE", 500, Exit::Denied, NEVER,
        "put the file right as the message says, then try again"),
    answer("OUTPUT_FAILED", 500, Exit::Failed, NEVER,
        "check where the output goes: a full disk or a closed terminal"),
    answer("REQUEST_HOST_DENIED", 421, Exit::Denied, NEVER,
        "use a loopback address, or start the server with `--public-host NAME`"),
    answer("REQUEST_INVALID", 400, Exit::Usage, NEVER,
        "correct the parameter that the message names"),
    answer("REQUEST_METHOD_NOT_ALLOWED", 405, Exit::Usage, NEVER,
        "use a method that the `Allow` header lists"),
    answer("REQUEST_ORIGIN_DENIED", 403, Exit::Denied, NEVER,
        "call the API from a program or from the server's own pages, not from another site"),
    answer("REQUEST_PATH_UNKNOWN", 404, Exit::NotFound, NEVER,
        "check the path; the API is below /api/v1"),
    answer("REQUEST_TOO_LARGE", 413, Exit::Usage, NEVER,
        "send less in one request"),
    answer("SERVER_ADDRESS_EXPOSED", 500, Exit::Denied, NEVER,
        "listen on 127.0.0.1, or put a proxy with TLS in front and add --behind-proxy"),
    answer("SERVER_BIND_FAILED", 500, Exit::Failed, NEVER,
        "choose an address of this machine with --listen"),
    answer("SERVER_NOT_READY", 503, Exit::Failed, after_ms(1_000),
        "look at the server's data directory with `cairn doctor`"),
    answer("SERVER_PORT_TAKEN", 500, Exit::Conflict, NEVER,
        "stop the other program, or choose a port with --listen 127.0.0.1:0"),
    answer("SESSION_CORRUPT", 500, Exit::Invalid, NEVER,
        "see what is damaged with `cairn session verify`, save the valid part with `cairn session export`"),
    answer("SESSION_EXISTS", 409, Exit::Conflict, NEVER,
        "import it under a fresh id, as `cairn session import` does by itself"),
    answer("SESSION_ID_AMBIGUOUS", 400, Exit::Usage, NEVER,
        "give more characters of the id; `cairn session list` shows them"),
    answer("SESSION_ID_INVALID", 400, Exit::Usage, NEVER,
        "copy an id from `cairn session list`, such as sess_01hf7yat…"),
    answer("SESSION_LOCKED", 409, Exit::Conflict, after_ms(1_000),
        "wait for the other process to finish, then try again"),
    answer("SESSION_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the sessions there are with `cairn session list`"),
    answer("SESSION_OWNED", 409, Exit::Conflict, after_ms(5_000),
        "ask the process that owns the session, or stop it first"),
    answer("SESSION_UNKNOWN_VERSION", 500, Exit::Invalid, NEVER,
        "use the version of cairn that wrote the session, or a later one"),
    answer("STORE_BLOB_CORRUPT", 500, Exit::Invalid, NEVER,
        "restore the blob from a backup, or import a bundle that holds it"),
    answer("STORE_BLOB_MISSING", 500, Exit::Invalid, NEVER,
        "restore the blob from a backup, or import a bundle that holds it"),
    answer("STORE_BUSY", 503, Exit::Conflict, after_ms(100),
        "wait a moment and send the same append again; nothing of it was written"),
    answer("STORE_CONFLICT", 409, Exit::Conflict, AT_ONCE,
        "read the run again and decide again"),
    answer("STORE_DENIED", 500, Exit::Denied, NEVER,
        "give yourself access to the data directory, or name another one with --home"),
    answer("STORE_DURABILITY_LOST", 500, Exit::Failed, NEVER,
        "check the disk, then start the program again: it reads back what is safe"),
    answer("STORE_FILESYSTEM", 500, Exit::Denied, NEVER,
        "move the data directory to a local disk, or name another one with --home"),
    answer("STORE_FULL", 507, Exit::Failed, after_ms(60_000),
        "free space on the disk: `cairn session gc` removes what nobody needs"),
    answer("STORE_INVALID_PLAN", 422, Exit::Invalid, NEVER,
        "correct what the message names; nothing was written"),
    answer("STORE_IO", 500, Exit::Failed, NEVER,
        "look at the data directory and its disk with `cairn doctor`"),
    answer("TOKEN_BAD_SIGNATURE", 400, Exit::Usage, NEVER,
        "send the token exactly as the last answer gave it, or resume the session for a fresh one"),
    answer("TOKEN_INVALID_FORMAT", 400, Exit::Usage, NEVER,
        "send the token exactly as the last answer gave it, or resume the session for a fresh one"),
    answer("TOKEN_SCOPE_MISMATCH", 400, Exit::Usage, NEVER,
        "send the tokens that came together in one answer, or resume the session for a fresh pair"),
    answer("TOKEN_UNSUPPORTED_VERSION", 400, Exit::Usage, NEVER,
        "resume the session for a fresh token, or use the version of cairn that gave this one out"),
    answer("USAGE_INVALID", 400, Exit::Usage, NEVER,
        "add --help to the command to see how it is used"),
    answer("USAGE_UNCONFIRMED", 400, Exit::Usage, NEVER,
        "add --yes if you are sure"),
    answer("WORKFLOW_ID_AMBIGUOUS", 400, Exit::Usage, NEVER,
        "give the whole id, with its namespace; `cairn workflow list` shows them"),
    answer("WORKFLOW_INVALID", 422, Exit::Invalid, NEVER,
        "correct the file; `cairn workflow validate` shows each mistake with its line"),
    answer("WORKFLOW_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the workflows there are with `cairn workflow list`, or give a file"),
];
