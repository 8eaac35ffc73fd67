/**
 * Runs the call of a client by a tool of the registry.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import * as Base64 from "effect/encoding/Base64"
import type { Agent } from "../../Agent.ts"
import * as AgentEvent from "../../AgentEvent.ts"
import type * as Approval from "../../Approval.ts"
import * as Message from "../../Message.ts"
import * as Tool from "../../Tool.ts"
import type { PreparedCall, ToolRegistry } from "../../ToolRegistry.ts"
import { firstLine, of as failureText } from "../../internal/failureText.ts"
import * as Json from "../../internal/json.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"

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
    const made: Message.ToolCall = {
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
    Effect.map(resultOf)
  )

const failed = ({ message }: Error) => Effect.succeed(Tool.failure(message))

const prepared = ({ policy, registry }: Parts, call: Message.ToolCall) =>
  Effect.flatMap(registry.prepare(call), (prepared) => permitted(policy, registry, prepared))

const defaultTimeout = Duration.seconds(30)

/** Runs the tool, within its time. */
const execute = (
  { registry }: Parts,
  prepared: PreparedCall,
  progress: Progress
): Effect.Effect<AgentEvent.ToolOutput> => {
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

const textOf = ({ content }: AgentEvent.ToolOutput): string =>
  content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n")

// ───────────────────────── Permission

/** A call that may not run, and why. */
class Refused {
  readonly _tag = "Refused"
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** Succeeds with the call that may run. A policy or a person that fails refuses it. */
const permitted = (
  policy: Approval.Policy,
  registry: ToolRegistry["Service"],
  prepared: PreparedCall
): Effect.Effect<PreparedCall, Refused> =>
  Effect.exit(decided(policy, registry, prepared)).pipe(
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
      if (Cause.hasInterrupts(exit.cause)) return Effect.interrupt
      const failure = Cause.squash(exit.cause)
      if (failure instanceof Refused) return Effect.fail(failure)
      const refused = new Refused(`the approval failed: ${firstLine(failure)}`)
      return Effect.andThen(
        Effect.logError("The approval of a call failed", exit.cause),
        Effect.fail(refused)
      )
    })
  )

const decided = Effect.fnUntraced(function* (
  policy: Approval.Policy,
  registry: ToolRegistry["Service"],
  prepared: PreparedCall
) {
  const { call, input, tool } = prepared
  const ids = { runId: call.id, toolCallId: call.id, toolName: tool.name }
  // The policy gets params of its own, so that it cannot change those that the tool gets.
  const { params } = yield* registry.prepare(call, { input: structuredClone(input) })
  const decision = yield* policy.decide({ ...ids, params, input: structuredClone(input), tool })
  if (decision.decision === "allow") return prepared
  if (decision.decision === "deny") return yield* Effect.fail(new Refused(decision.reason))
  const { reason } = decision
  const { asked, expiresAfter = "Infinity" } = policy
  const why = reason === undefined ? "" : `, as ${reason}`
  if (typeof asked === "string")
    return yield* Effect.fail(new Refused(`it needs approval${why}, and no person can give it here`))
  const answer = yield* asked
    .approve({
      ...ids,
      approvalId: call.id,
      params: input,
      argumentsHash: yield* Json.hash(input),
      ...(reason === undefined ? {} : { reason })
    })
    .pipe(
      Effect.timeoutOrElse({
        duration: expiresAfter,
        orElse: () => Effect.fail(new Refused("no person answered in time"))
      })
    )
  if (answer.decision === "reject") return yield* Effect.fail(new Refused(answer.reason ?? "not approved"))
  return answer.params === undefined ? prepared : yield* registry.prepare(call, { input: answer.params })
})

// ───────────────────────── Content

type Block = AgentEvent.ToolOutput["content"][number]

/** The key of `details` that are not the text of a result. */
const detailsKey = "effect-agent/details"

/** A result. `details` that its text is the JSON of are structured content, as MCP wants it; others are metadata. */
const resultOf = ({ content, details, isError }: AgentEvent.ToolOutput): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({
    content: content.map(blockOf),
    ...(details === undefined
      ? {}
      : Predicate.isObject(details) && content.some((block) => isJsonOf(block, details))
        ? { structuredContent: details }
        : { _meta: { [detailsKey]: details } }),
    ...(isError === true ? { isError } : {})
  })

const decodeJson = Schema.decodeOption(Schema.fromJsonString(Schema.Json))

const isJsonOf = (block: Block, details: Schema.Json): boolean =>
  block.type === "text" && Option.exists(decodeJson(block.text), (json) => JsonSchema.same(json, details))

const blockOf = (block: Block): McpSchema.ContentBlock => {
  if (block.type === "text") return McpSchema.TextContent.make({ text: block.text })
  const { source } = block
  if ("url" in source) return McpSchema.TextContent.make({ text: `[image: ${source.url}]` })
  const bytes = Base64.decode(source.data)
  return Result.isSuccess(bytes)
    ? McpSchema.ImageContent.make({ data: bytes.success, mimeType: source.mediaType })
    : McpSchema.TextContent.make({ text: `[image: ${source.mediaType}, not base64]` })
}

// ───────────────────────── Progress

/** Sends progress, with a message or without one, and waits until it is on its way. */
type Progress = (message?: string) => Effect.Effect<void>

const none: Progress = () => Effect.void

/** The longest time without progress: clients give up a request after a minute of silence, some sooner. */
const heartbeat = "15 seconds"

/** Runs a call with the progress of the current request, which it sends also while the call says nothing. It sends none without a token. */
export const during = <A, E, R>(
  server: McpServer.McpServer["Service"],
  call: (progress: Progress) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | McpSchema.McpRequestContext> =>
  Effect.flatMap(make(server), (progress) =>
    progress === none
      ? call(none)
      : Effect.raceFirst(call(progress), Effect.forever(Effect.delay(progress(), heartbeat)))
  )

const make = (
  server: McpServer.McpServer["Service"]
): Effect.Effect<Progress, never, McpSchema.McpRequestContext> =>
  Effect.contextWith((context) => {
    const { requestMetadata } = Context.get(context, McpSchema.McpRequestContext)
    const token = tokenIn(requestMetadata)
    if (token === undefined) return Effect.succeed(none)
    let sent = 0
    const progress: Progress = (message) =>
      Effect.suspend(() =>
        server.notifications["notifications/progress"]({
          progressToken: token,
          progress: ++sent,
          ...(message === undefined ? {} : { message })
        })
      ).pipe(Effect.ignore, Effect.provideContext(context))
    return Effect.succeed(progress)
  })

const tokenIn = (metadata: unknown): string | number | undefined => {
  const token = Predicate.hasProperty(metadata, "progressToken") ? metadata.progressToken : undefined
  return typeof token === "string" || typeof token === "number" ? token : undefined
}

// ───────────────────────── Calls of agents

/** The JSON Schema of the params. */
export const parameters = {
  type: "object",
  properties: {
    prompt: {
      type: "string",
      description: "The task, with all that the agent must know: it sees nothing else of this conversation."
    }
  },
  required: ["prompt"],
  additionalProperties: false
} as const

/** The answer of a new agent, which is an error if its run did not end with one. */
export const callAgent = <E, R>(
  make: Effect.Effect<Agent, E, R | Scope.Scope>,
  params: unknown,
  progress: Progress
): Effect.Effect<McpSchema.CallToolResult, never, Exclude<R, Scope.Scope>> => {
  const prompt = Predicate.hasProperty(params, "prompt") ? params.prompt : undefined
  if (typeof prompt !== "string")
    return Effect.succeed(resultOf(Tool.failure("`prompt` is missing: expected a string")))
  return Effect.flatMap(make, (agent) => run(agent, prompt, progress)).pipe(
    Effect.scoped,
    Effect.catch((error) => Effect.succeed(Tool.failure(`The agent failed: ${failureText(error)}`))),
    Effect.catchDefect((defect) =>
      Effect.as(
        Effect.logError("The agent died", defect),
        Tool.failure(`The agent failed unexpectedly: ${firstLine(defect)}`)
      )
    ),
    Effect.map(resultOf)
  )
}

const run = Effect.fnUntraced(function* (agent: Agent, prompt: string, progress: Progress) {
  let text = ""
  let ended: AgentEvent.RunEnd | undefined
  let output: Schema.Json | undefined
  const see = (event: AgentEvent.AgentEvent) => {
    if (event._tag === "RunEnd") ended = event
    if (event._tag === "Output") output = event.value
    if (event._tag === "MessageEnd" && event.message.role === "assistant")
      text = Message.textOf(event.message)
  }
  const events = AgentEvent.outermost(agent.stream(prompt))
  yield* Stream.runForEachArray(events, (some) => {
    some.forEach(see)
    const said = some.map(wordsOf).join("")
    return said === "" ? progress() : progress(said)
  })
  return resultOfRun(text, ended, output)
})

/** What a client shows of an event while the agent works. */
const wordsOf = (event: AgentEvent.AgentEvent): string => {
  if (AgentEvent.isTextDelta(event)) return event.delta.delta
  return event._tag === "ToolExecutionStart" ? `\n→ ${event.label ?? event.toolName}\n` : ""
}

const resultOfRun = (text: string, ended: AgentEvent.RunEnd | undefined, output: Schema.Json | undefined) => {
  switch (ended?.status) {
    case "suspended":
      return Tool.failure("The agent did not finish: its run waits for a person.")
    case "cancelled":
      return Tool.failure("The agent was cancelled.")
    default:
      return output === undefined
        ? answer(text, ended)
        : Tool.output(JSON.stringify(output), { details: output })
  }
}

const answer = (text: string, ended: AgentEvent.RunEnd | undefined) => {
  const notes = [
    ...(text.trim() === "" ? ["[The agent gave no answer.]"] : [text]),
    ...(ended?.status === "incomplete"
      ? ["[The agent reached its limit of turns: its work is not complete.]"]
      : [])
  ]
  return Tool.output(notes.join("\n\n"))
}
