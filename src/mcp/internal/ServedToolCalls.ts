/**
 * Runs the call of a client by a tool of the registry.
 */
import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ToolOutput } from "../../AgentEvent.ts"
import type * as Approval from "../../Approval.ts"
import type { ToolCall } from "../../Message.ts"
import * as Tool from "../../Tool.ts"
import type { PreparedCall, ToolRegistry } from "../../ToolRegistry.ts"
import * as Content from "./ServedContent.ts"
import * as Permission from "./ServedPermission.ts"
import type { Progress } from "./ServedProgress.ts"

interface Parts {
  readonly registry: ToolRegistry["Service"]
  readonly policy: Approval.Policy
}

const isJson = Schema.is(Schema.Json)

/** The result of a call, which is an error if the tool, its params or the policy are the reason that there is no other. */
export const call = (
  parts: Parts,
  name: string,
  params: unknown,
  progress: Progress
): Effect.Effect<McpSchema.CallToolResult> =>
  Effect.suspend(() => {
    const id = crypto.randomUUID()
    const made: ToolCall = {
      type: "toolCall",
      id,
      name,
      rawArguments: JSON.stringify(params ?? {}),
      params: isJson(params) ? params : {}
    }
    return prepared(parts, made)
  }).pipe(
    Effect.flatMap((prepared) => execute(parts, prepared, progress)),
    Effect.catchTags({
      Refused: ({ reason }) => Effect.succeed(Tool.failure(`Tool execution was rejected: ${reason}`)),
      ToolNotFound: failed,
      InvalidArguments: failed
    }),
    Effect.map(Content.resultOf)
  )

const failed = ({ message }: Error) => Effect.succeed(Tool.failure(message))

const prepared = ({ policy, registry }: Parts, call: ToolCall) =>
  Effect.flatMap(registry.prepare(call), (prepared) => Permission.permitted(policy, registry, prepared))

const defaultTimeout = Duration.seconds(30)

/** Runs the tool, within its time. */
const execute = (
  { registry }: Parts,
  prepared: PreparedCall,
  progress: Progress
): Effect.Effect<ToolOutput> => {
  const { call, tool } = prepared
  const { timeout = defaultTimeout } = tool
  let isRunning = true
  const context: Tool.ToolContext["Service"] = {
    toolCallId: call.id,
    idempotencyKey: call.id,
    runId: call.id,
    turn: 1,
    progress: (partial) =>
      Effect.suspend(() => (isRunning ? progress(textOf(Tool.render(partial))) : Effect.void))
  }
  return Effect.timeoutOrElse(registry.execute(prepared, context), {
    duration: timeout,
    orElse: () => {
      const limit = Duration.format(Duration.fromInputUnsafe(timeout))
      return Effect.succeed(Tool.failure(`Tool ${tool.name} timed out after ${limit}.`))
    }
  }).pipe(Effect.ensuring(Effect.sync(() => (isRunning = false))))
}

const textOf = ({ content }: ToolOutput): string =>
  content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n")
