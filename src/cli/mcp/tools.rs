//! The tools, by the Model Context Protocol.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};

use super::questions::{Asked, DiagnoseQuestion, DryRunQuestion, EstimateQuestion, MaxQuestion};
use super::{Rights, child, result};

/// What an agent should know before it calls a tool.
const INSTRUCTIONS: &str = "VRAMscope simulates the GPU memory of training vision-language and language models, without a GPU. \
     Bytes are integers. `grade` says what a figure is of the run: exact; at_most or between (the run needs no more); at_least; \
     dry_run (nothing bounds it: call dry_run). `target.verdict` is fits, tight (less than 5% of the card stays free) or oom. \
     Only what lowers the peak phase saves memory. Estimate first; dry_run takes a minute and runs the real tool; diagnose reads \
     errors and logs.";

/// The tools of this program.
#[derive(Debug, Clone)]
pub struct Tools {
    rights: Rights,
    tool_router: ToolRouter<Self>,
}

impl Tools {
    /// The tools that an agent has with these rights.
    pub fn new(rights: Rights) -> Self {
        let mut tool_router = Self::tool_router();
        if !rights.dry_runs {
            tool_router.remove_route("dry_run");
        }
        Self { rights, tool_router }
    }

    /// Runs the command that answers, beside the other messages of the protocol.
    async fn answer(
        &self,
        asked: Result<Asked, String>,
        detail: bool,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let asked = match asked {
            Ok(asked) => asked,
            Err(wrong) => return CallToolResult::error(vec![ContentBlock::text(wrong)]),
        };
        let network = self.rights.network;
        let run = tokio::task::spawn_blocking(move || child::run(&asked, network, || context.ct.is_cancelled()));
        let said = run.await.unwrap_or_else(|error| Err(error.to_string()));
        match said {
            Ok(said) => result::result(&said, detail),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        }
    }
}

#[tool_router]
impl Tools {
    /// Predict the GPU memory and the time of one training step, and whether it fits a card: of a model with settings, or of
    /// the file or command that starts a run. Takes milliseconds to seconds, exact to the byte for most setups.
    #[tool(annotations(title = "Estimate a training step", read_only_hint = true, idempotent_hint = true))]
    async fn estimate(
        &self,
        Parameters(question): Parameters<EstimateQuestion>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let detail = question.detail;
        self.answer(question.asked(), detail, context).await
    }

    /// Find the largest micro-batch that trains on a card, for a model with settings.
    #[tool(annotations(title = "Largest micro-batch", read_only_hint = true, idempotent_hint = true))]
    async fn max(
        &self,
        Parameters(question): Parameters<MaxQuestion>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.answer(question.asked(), false, context).await
    }

    /// Say why a run is out of memory or slow, and what to change: from its error, logs, memory snapshots or profiles.
    #[tool(annotations(title = "Diagnose a run", read_only_hint = true, idempotent_hint = true))]
    async fn diagnose(
        &self,
        Parameters(question): Parameters<DiagnoseQuestion>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        self.answer(question.asked(), false, context).await
    }

    /// Run the command that trains without a GPU, on an emulated card, and say what its steps take: exact for any tool and
    /// model. It runs that command's own code, for about a minute; nothing is trained, written or sent.
    #[tool(annotations(
        title = "Dry run of a training command",
        read_only_hint = false,
        destructive_hint = false,
        open_world_hint = true
    ))]
    async fn dry_run(
        &self,
        Parameters(question): Parameters<DryRunQuestion>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let detail = question.detail;
        self.answer(question.asked(self.rights.network), detail, context).await
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("vramscope", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}
