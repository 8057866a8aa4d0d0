//! `vramscope mcp`: answers agents over standard input and output.

use clap::Args;

use crate::commands::examples;
use crate::failure::Failure;
use crate::mcp;
use crate::output;

/// Answer agents over standard input and output, by the Model Context Protocol
///
/// Tools: `estimate`, `max`, `diagnose` and `dry_run`, which take and give what the commands of these names do. It opens no
/// port, and asks nothing of the network unless it may.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Mcp {
    /// Lets estimates ask a hub for the configuration of a model that is not known, and dry runs for what they need
    #[arg(long)]
    allow_network: bool,
    /// Leaves out `dry_run`, which runs commands that an agent gives
    #[arg(long)]
    no_dry_run: bool,
    /// Prints a skill file for agents, which says when to ask what, and ends
    #[arg(long)]
    skill: bool,
}

/// What an agent should know of this program.
const SKILL: &str = include_str!("../../../docs/agents/SKILL.md");

const EXAMPLES: &str = "  vramscope mcp
      for the configuration of an agent: command vramscope, arguments [\"mcp\"]
  vramscope mcp --skill > skills/vramscope/SKILL.md
      a skill file, for agents that read such files";

impl Mcp {
    /// Answers until the agent closes standard input.
    ///
    /// # Errors
    /// If the protocol's first messages are not exchanged.
    pub fn run(self) -> Result<(), Failure> {
        if self.skill {
            return output::print_exactly(SKILL);
        }
        mcp::serve(mcp::Rights {
            network: self.allow_network,
            dry_runs: !self.no_dry_run,
        })
    }
}
