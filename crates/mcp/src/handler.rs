//! What the protocol asks for.

use std::sync::Arc;

use cairn_api::arguments::Problem;
use cairn_api::token::Holder;
use cairn_api::{Error, schema};
use cairn_lang::diagnostic::nearest;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};

use crate::tools::{self, Effect, Entry, Reply};
use crate::{Door, ToolSet, render};

/// How long a client may take it that the tools are the same; they are, until a new version.
const FRESH_MS: u64 = 300_000;

const INSTRUCTIONS: &str = "Cairn leads you through workflows, one step at a time, and keeps what \
    you did. Choose one with list_workflows and begin it with start_workflow; do each step for \
    real, then call continue_workflow. Only its answers say what comes next. When you have lost \
    the thread, send the last continueToken alone; in a new chat, call resume_session.";

/// Answers a client. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handler(Arc<Inner>);

struct Inner {
    door: Door,
    tools: Vec<Entry>,
    listed: Vec<Tool>,
}

impl Handler {
    pub(crate) fn new(door: Door, set: ToolSet) -> Self {
        let tools = tools::table(set);
        let listed = listing(&tools);
        Self(Arc::new(Inner { door, tools, listed }))
    }

    /// Calls a tool to its end, whatever becomes of the client in the meantime.
    async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        holder: Option<Holder>,
    ) -> Option<CallToolResult> {
        let entry = self.0.tools.iter().find(|entry| entry.name == name)?;
        let holder = holder.unwrap_or_else(|| self.0.door.holder.clone());
        let door = Door { holder, ..self.0.door.clone() };
        let called = tokio::spawn(entry.call(&door, arguments)).await;
        let outcome = called.unwrap_or_else(|error| Err(Error::Internal(error.to_string())));
        Some(match outcome {
            Ok(reply) => result(reply, false),
            Err(error) => result(render::failure(&error), true),
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("cairn", env!("CARGO_PKG_VERSION")).with_title("Cairn");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let result = ListToolsResult { tools: self.0.listed.clone(), ..ListToolsResult::default() };
        let version = context.protocol_version();
        // Older clients know nothing of freshness.
        if version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            return Ok(result.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Public));
        }
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.listed.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        // What came over HTTP brings along who sent it; without that it may nothing more.
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let holder = parts.map(|parts| parts.extensions.get::<Holder>().cloned());
        let holder = holder.map(Option::unwrap_or_default);
        match self.call(&request.name, arguments, holder).await {
            Some(result) => Ok(result.into()),
            None => Err(unknown(&request.name, &self.0.tools)),
        }
    }

    // What is not declared is not answered, not even with an empty list.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    /// What is asked for and cannot be read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        match request.params.as_ref().and_then(malformed) {
            Some(told) => Ok(CustomResult(told)),
            None => Err(ErrorData::invalid_params("a call needs the `name` of a tool", None)),
        }
    }
}

/// A call whose arguments are no object at all: it is told so like any other wrong argument.
fn malformed(params: &Value) -> Option<Value> {
    params.get("name").filter(|name| name.is_string())?;
    let problem = "`arguments` is not an object";
    let fix = "send the arguments as one JSON object, not as a string that holds it";
    let given = params.get("arguments").filter(|given| !given.is_null())?;
    let error = Error::from(Problem::new("arguments", problem, fix));
    (!given.is_object()).then(|| refused(&error))
}

/// The result of a call that no tool was asked to answer.
pub(crate) fn refused(error: &Error) -> Value {
    serde_json::to_value(result(render::failure(error), true)).unwrap_or_default()
}

fn unknown(name: &str, tools: &[Entry]) -> ErrorData {
    let name: String = name.chars().take(64).collect();
    let near = nearest(&name, tools.iter().map(|entry| entry.name));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    ErrorData::invalid_params(format!("there is no tool `{name}`{near}"), None)
}

/// The tools as clients see them.
pub(crate) fn listing(tools: &[Entry]) -> Vec<Tool> {
    tools.iter().map(listed).collect()
}

fn listed(entry: &Entry) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(entry.effect == Effect::Reads)
        .destructive(entry.performs)
        .idempotent(entry.effect != Effect::Writes)
        .open_world(entry.performs);
    Tool::new(entry.name, entry.description, Arc::clone(&entry.input))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new(schema::outline(&entry.output)))
        .with_annotations(annotations)
}

fn result(reply: Reply<Value>, is_error: bool) -> CallToolResult {
    let content = reply.texts.into_iter().map(ContentBlock::text).collect();
    let mut result = CallToolResult::success(content);
    result.is_error = Some(is_error);
    result.structured_content = Some(reply.data);
    result
}
