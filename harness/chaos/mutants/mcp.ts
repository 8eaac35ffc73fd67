/** The guards of the MCP server. */
import type { Mutant } from "./Mutant.ts"

const test = "test/mcp-server/AgentMcpServer.test.ts"
const permission = { file: "src/mcp/AgentMcpServer.ts", test }
const refusal = { ...permission, fault: "refuses calls that it denies" }

export const mutants: ReadonlyArray<Mutant> = [
  {
    ...refusal,
    without: "the denial",
    from: 'if (decision.decision === "deny") return yield* Effect.fail(new Refused(decision.reason))',
    to: 'if (decision.decision === "deny") return prepared'
  },
  {
    ...refusal,
    without: "the refusal where no person can approve",
    from: "return yield* Effect.fail(new Refused(`it needs approval${why}, and no person can give it here`))",
    to: "return prepared"
  },
  {
    ...refusal,
    without: "the refusal where the policy fails",
    from: "Effect.fail(refused)",
    to: "Effect.succeed(prepared)"
  },
  {
    ...permission,
    fault: "asks its person",
    without: "the rejection",
    from: 'if (answer.decision === "reject") return',
    to: "if (false) return"
  },
  {
    ...permission,
    fault: "cannot change the params of a call",
    without: "the copy for the policy",
    from: "const { params } = yield* registry.prepare(call, { input: structuredClone(input) })",
    to: "const { params } = prepared"
  },
  {
    file: "src/mcp/AgentMcpServer.ts",
    test,
    fault: "follows the registry",
    without: "the end of a tool that the registry has no more",
    from: "() => isOffered(name)",
    to: "() => true"
  }
]
