//! For each code: the HTTP status, the exit code, whether to try again, and what to do.

use cairn_core::error::Retry;

use crate::exit::Exit;

/// How the doors answer to one code.
pub(super) struct Answer {
    pub(super) code: &'static str,
    pub(super) status: u16,
    pub(super) exit: Exit,
    pub(super) retry: Retry,
    /// Who can do what is suggested.
    pub(super) who: Who,
    pub(super) suggestion: &'static str,
}

/// Who can do what is suggested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// Whoever made the call, by another call.
    Caller,
    /// A person, at a terminal.
    Person,
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
    Answer { code, status, exit, retry, who: Who::Caller, suggestion }
}

/// An answer that only a person can act on.
const fn person(
    code: &'static str,
    status: u16,
    exit: Exit,
    retry: Retry,
    suggestion: &'static str,
) -> Answer {
    Answer { who: Who::Person, ..answer(code, status, exit, retry, suggestion) }
}

const UNLISTED: Answer = person(
    "INTERNAL_ERROR",
    500,
    Exit::Failed,
    NEVER,
    "this is a fault of the program: report it with the command and this message",
);

/// Every code, in alphabetical order.
#[rustfmt::skip]
pub(super) const ANSWERS: &[Answer] = &[
    person("ACCESS_TOKENS_UNUSABLE", 500, Exit::Denied, NEVER,
        "give the file mode 0600, or put a backup in its place; the admin token works meanwhile"),
    answer("ACCESS_TOKEN_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the tokens there are with `cairn token list`"),
    person("ADMIN_TOKEN_UNUSABLE", 500, Exit::Denied, NEVER,
        "give the file mode 0600, or delete it: the next `cairn serve` makes a new token"),
    person("AUDIT_BROKEN", 500, Exit::Failed, NEVER,
        "find out who changed the file; what stands before that line can be trusted"),
    person("AUTH_FORBIDDEN", 403, Exit::Denied, NEVER,
        "use a token whose scopes cover this"),
    person("AUTH_TOKEN_INVALID", 401, Exit::Denied, NEVER,
        "send the token that `cairn serve` printed; it is kept in keys/admin.token of the data directory"),
    person("AUTH_TOKEN_MISSING", 401, Exit::Denied, NEVER,
        "send the header `Authorization: Bearer <token>`; a token in the URL is not read"),
    answer("BUNDLE_EVENT_ORDER_INVALID", 422, Exit::Invalid, NEVER,
        "export the session again; do not edit bundles by hand"),
    answer("BUNDLE_INTEGRITY_FAILED", 422, Exit::Invalid, NEVER,
        "copy or download the bundle again; if it stays the same, export the session again"),
    person("BUNDLE_INVALID_FORMAT", 422, Exit::Invalid, NEVER,
        "check that this is a file written by `cairn session export`"),
    answer("BUNDLE_MANIFEST_ORDER_INVALID", 422, Exit::Invalid, NEVER,
        "export the session again; do not edit bundles by hand"),
    answer("BUNDLE_MISSING_PINNED_WORKFLOW", 422, Exit::Invalid, NEVER,
        "export the session again where its plans are still stored"),
    answer("BUNDLE_MISSING_SNAPSHOT", 422, Exit::Invalid, NEVER,
        "export the session again where its snapshots are still stored"),
    person("BUNDLE_TOO_LARGE", 413, Exit::Invalid, NEVER,
        "keep the session and copy the data directory instead; start new sessions for further work"),
    answer("BUNDLE_UNSUPPORTED_VERSION", 422, Exit::Invalid, NEVER,
        "import it with the version of cairn that wrote it, or a later one"),
    person("CONFIG_INVALID", 500, Exit::Usage, NEVER,
        "correct the file, or name another one with --config; `cairn config show --help` says what it may hold"),
    person("FILE_DENIED", 500, Exit::Denied, NEVER,
        "give yourself access to the file, or name another one"),
    person("FILE_EXISTS", 500, Exit::Conflict, NEVER,
        "choose another name, or move away what is there"),
    person("FILE_IO", 500, Exit::Failed, NEVER,
        "check the path and the disk it is on, then try again"),
    person("FILE_NOT_FOUND", 500, Exit::NotFound, NEVER,
        "check the path; `-` stands for standard input or output"),
    person("HOME_NOT_A_DIRECTORY", 500, Exit::Usage, NEVER,
        "name a directory with --home or CAIRN_HOME"),
    person("HOME_UNKNOWN", 500, Exit::Usage, NEVER,
        "name the data directory with --home or CAIRN_HOME"),
    UNLISTED,
    person("INVARIANT_VIOLATION", 500, Exit::Invalid, NEVER,
        "read the session again and decide again; if it stays, report it with `cairn session export`"),
    answer("KEYRING_BUSY", 409, Exit::Conflict, after_ms(1_000),
        "wait for the other process to finish, then try again"),
    person("KEYRING_UNUSABLE", 500, Exit::Denied, NEVER,
        "put the file right as the message says, then try again"),
    person("OUTPUT_FAILED", 500, Exit::Failed, NEVER,
        "check where the output goes: a full disk or a closed terminal"),
    person("REQUEST_HOST_DENIED", 421, Exit::Denied, NEVER,
        "use a loopback address, or start the server with `--public-host NAME`"),
    answer("REQUEST_INVALID", 400, Exit::Usage, NEVER,
        "correct the parameter that the message names"),
    answer("REQUEST_KEY_REUSED", 422, Exit::Invalid, NEVER,
        "send a fresh `Idempotency-Key` with each request that is a new one"),
    answer("REQUEST_METHOD_NOT_ALLOWED", 405, Exit::Usage, NEVER,
        "use a method that the `Allow` header lists"),
    answer("REQUEST_ORIGIN_DENIED", 403, Exit::Denied, NEVER,
        "call the API from a program or from the server's own pages, not from another site"),
    answer("REQUEST_PATH_UNKNOWN", 404, Exit::NotFound, NEVER,
        "check the path; the API is below /api/v1"),
    answer("REQUEST_TOO_LARGE", 413, Exit::Usage, NEVER,
        "send less in one request"),
    answer("RUN_COMPLETE", 409, Exit::Conflict, NEVER,
        "stop here; to go another way, come back to an earlier step with its token, or start a new run"),
    person("RUN_ELSEWHERE", 409, Exit::Conflict, after_ms(1_000),
        "send it to the process that performs the run, such as the running `cairn serve`"),
    person("RUN_ENDED", 409, Exit::Conflict, NEVER,
        "see how it ended with `cairn runs show`; to do it again, replay or fork it"),
    person("RUN_FORK_POINT", 422, Exit::Invalid, NEVER,
        "name a step that the run reached; `cairn runs show` lists them"),
    person("RUN_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the runs there are with `cairn runs list`"),
    answer("RUN_RATE_LIMITED", 429, Exit::Conflict, after_ms(60_000),
        "wait as long as `Retry-After` says, or raise `rate_limit` in the workflow"),
    person("RUN_STATE", 409, Exit::Conflict, NEVER,
        "see where the run stands with `cairn runs show`"),
    answer("SECRET_DECRYPT_FAILED", 500, Exit::Denied, NEVER,
        "use the master key that the secrets were sealed under, or put a backup of the vault in its place"),
    answer("SECRET_KEY_UNUSABLE", 500, Exit::Denied, NEVER,
        "put the key right as the message says, then try again"),
    answer("SECRET_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the secrets there are with `cairn secret list`, or keep one with `cairn secret set`"),
    person("SERVER_ADDRESS_EXPOSED", 500, Exit::Denied, NEVER,
        "listen on 127.0.0.1, or put a proxy with TLS in front and add --behind-proxy"),
    person("SERVER_BIND_FAILED", 500, Exit::Failed, NEVER,
        "choose an address of this machine with --listen"),
    person("SERVER_NOT_READY", 503, Exit::Failed, after_ms(1_000),
        "look at the server's data directory with `cairn doctor`"),
    person("SERVER_PORT_TAKEN", 500, Exit::Conflict, NEVER,
        "stop the other program, or choose a port with --listen 127.0.0.1:0"),
    answer("SERVER_STOPPING", 503, Exit::Failed, after_ms(5_000),
        "send it again in a moment, when the server is back"),
    person("SESSION_CORRUPT", 500, Exit::Invalid, NEVER,
        "see what is damaged with `cairn session verify`, save the valid part with `cairn session export --partial`"),
    person("SESSION_EXISTS", 409, Exit::Conflict, NEVER,
        "import it under a fresh id, as `cairn session import` does by itself"),
    person("SESSION_ID_AMBIGUOUS", 400, Exit::Usage, NEVER,
        "give more characters of the id; `cairn session list` shows them"),
    person("SESSION_ID_INVALID", 400, Exit::Usage, NEVER,
        "copy an id from `cairn session list`, such as sess_01hf7yat…"),
    answer("SESSION_LOCKED", 409, Exit::Conflict, after_ms(1_000),
        "wait for the other process to finish, then try again"),
    person("SESSION_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the sessions there are with `cairn session list`"),
    person("SESSION_OWNED", 409, Exit::Conflict, after_ms(5_000),
        "ask the process that owns the session, or stop it first"),
    person("SESSION_UNKNOWN_VERSION", 500, Exit::Invalid, NEVER,
        "use the version of cairn that wrote the session, or a later one"),
    answer("SETTING_INVALID", 422, Exit::Invalid, NEVER,
        "correct the value that the message names; `cairn env check` tells all of them"),
    answer("SETTING_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list what the workflow asks for with `cairn env list`"),
    person("STORE_BLOB_CORRUPT", 500, Exit::Invalid, NEVER,
        "restore the blob from a backup, or import a bundle that holds it"),
    person("STORE_BLOB_MISSING", 500, Exit::Invalid, NEVER,
        "restore the blob from a backup, or import a bundle that holds it"),
    answer("STORE_BUSY", 503, Exit::Conflict, after_ms(100),
        "wait a moment and send the same append again; nothing of it was written"),
    answer("STORE_CONFLICT", 409, Exit::Conflict, AT_ONCE,
        "read the run again and decide again"),
    person("STORE_DENIED", 500, Exit::Denied, NEVER,
        "give yourself access to the data directory, or name another one with --home"),
    person("STORE_DURABILITY_LOST", 500, Exit::Failed, NEVER,
        "check the disk, then start the program again: it reads back what is safe"),
    person("STORE_FILESYSTEM", 500, Exit::Denied, NEVER,
        "move the data directory to a local disk, or name another one with --home"),
    person("STORE_FULL", 507, Exit::Failed, after_ms(60_000),
        "free space on the disk: `cairn session gc` removes what nobody needs"),
    answer("STORE_INVALID_PLAN", 422, Exit::Invalid, NEVER,
        "correct what the message names; nothing was written"),
    person("STORE_IO", 500, Exit::Failed, NEVER,
        "look at the data directory and its disk with `cairn doctor`"),
    person("TASK_FORBIDDEN", 403, Exit::Denied, NEVER,
        "let one of those answer whom the step names in `who`"),
    person("TASK_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the open questions with `cairn runs show`"),
    answer("TOKEN_BAD_SIGNATURE", 400, Exit::Usage, NEVER,
        "send the token exactly as the last answer gave it, or resume the session for a fresh one"),
    answer("TOKEN_INVALID_FORMAT", 400, Exit::Usage, NEVER,
        "send the token exactly as the last answer gave it, or resume the session for a fresh one"),
    answer("TOKEN_SCOPE_MISMATCH", 400, Exit::Usage, NEVER,
        "send the tokens that came together in one answer, or resume the session for a fresh pair"),
    answer("TOKEN_SESSION_LOCKED", 409, Exit::Conflict, after_ms(1_000),
        "send the same call again in a moment; nothing of it was recorded"),
    answer("TOKEN_UNKNOWN_NODE", 404, Exit::NotFound, NEVER,
        "resume the session for a fresh token; after an import the tokens of the old place are void"),
    answer("TOKEN_UNSUPPORTED_VERSION", 400, Exit::Usage, NEVER,
        "resume the session for a fresh token, or use the version of cairn that gave this one out"),
    answer("TOKEN_WORKFLOW_HASH_MISMATCH", 409, Exit::Conflict, NEVER,
        "resume the session for a fresh token of this run"),
    person("TRIGGER_LOOP", 409, Exit::Conflict, NEVER,
        "look with `cairn runs list` which step starts the next run, and end the chain there"),
    answer("TRIGGER_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the triggers there are with `cairn trigger list`"),
    person("USAGE_INVALID", 400, Exit::Usage, NEVER,
        "add --help to the command to see how it is used"),
    person("USAGE_UNCONFIRMED", 400, Exit::Usage, NEVER,
        "add --yes if you are sure"),
    answer("VALIDATION_ERROR", 400, Exit::Usage, NEVER,
        "correct the field that the message names and send the call again; nothing was recorded"),
    person("WORKFLOW_ID_AMBIGUOUS", 400, Exit::Usage, NEVER,
        "give the whole id, with its namespace; `cairn workflow list` shows them"),
    person("WORKFLOW_INVALID", 422, Exit::Invalid, NEVER,
        "correct the file; `cairn workflow validate` shows each mistake with its line"),
    person("WORKFLOW_NOT_FOUND", 404, Exit::NotFound, NEVER,
        "list the workflows there are with `cairn workflow list`, or give a file"),
];
