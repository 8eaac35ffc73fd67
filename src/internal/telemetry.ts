/**
 * All names of the telemetry, of spans, attributes, metrics and log annotations, and the values that they get.
 *
 * The names are those of OpenTelemetry's conventions for generative AI, read in November 2026 from the repository
 * `semantic-conventions-genai`. The conventions are not stable yet. Names that begin with `effect_agent.` are additions.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import type * as Tracer from "effect/Tracer"
import type { Phase } from "../AgentEvent.ts"
import * as Errors from "./errors.ts"
import * as JsonText from "./jsonText.ts"
import * as Message from "../Message.ts"
import type { ModelEvent, Reply } from "../ModelEvent.ts"
import type { ModelRequest, ToolDefinition } from "../Provider.ts"
import { ProviderError } from "../ProviderError.ts"
import type { Run } from "./run.ts"
import type { RunFailed, RunResult } from "../Run.ts"
import type { ModelOptions } from "../RunOptions.ts"
import type * as Tool from "../Tool.ts"
import type { Outcome } from "./toolOutcome.ts"
import type { Usage } from "../Usage.ts"

/** Attributes of a span or a metric. Members that are `undefined` are left out. */
export type Attributes = Readonly<Record<string, unknown>>

/** A value for a metric, `undefined` for none, and further attributes of its series. */
export type Measure = readonly [metric: Instrument, value: number | undefined, attributes?: Attributes]

/** The telemetry of one kind of work: its span and its metrics. */
export interface Work<in A, in E> {
  readonly span: string
  readonly kind: Tracer.SpanKind
  /** Attributes of the span and of all metrics. `exit` is `undefined` at the start. */
  readonly dimensions: (exit?: Exit.Exit<A, E>) => Attributes
  /** The verdict on work that did not fail. */
  readonly verdict: (value: A) => Verdict
  /** The other attributes of the span. `isCaptured`: with messages, arguments and results. */
  readonly attributes: (exit: Exit.Exit<A, E>, isCaptured: boolean) => Attributes
  /** The metric of its seconds. */
  readonly time: Instrument
  readonly measures?: (exit: Exit.Exit<A, E>) => ReadonlyArray<Measure>
}

/** Annotates the logs of a run. */
export const runLogs = (runId: string) => ({ "effect_agent.run.id": runId })

/** Annotates the logs of a tool call. */
export const toolLogs = ({ id }: Message.ToolCall) => ({ "gen_ai.tool.call.id": id })

export const ofRun = (run: Run, prompts: ReadonlyArray<Message.Message>): Work<RunResult, RunFailed> => {
  const { agent, model, modelOptions = {}, system } = run.options
  return {
    span: agent === undefined ? "invoke_agent" : `invoke_agent ${agent.name}`,
    kind: "internal",
    dimensions: () => ({ "gen_ai.request.model": model, "gen_ai.agent.name": agent?.name }),
    verdict: ({ status }) => (status === "cancelled" ? cancelled : good),
    attributes: (exit, isCaptured) => {
      const { message, status = "failed", turns, usage } = resultOf(exit)
      return {
        "gen_ai.operation.name": "invoke_agent",
        // The provider that a router chose is known only when it answers.
        "gen_ai.provider.name": providerName(message?.provider || run.provider.id),
        "gen_ai.agent.description": agent?.description,
        "effect_agent.run.status": status,
        "effect_agent.run.turns": turns,
        ...runAttributes(run),
        ...requestAttributes(modelOptions),
        ...answerAttributes(message?.stopReason, usage),
        ...(isCaptured && attributes({ system, messages: prompts, answer: message }))
      }
    },
    time: metrics.runTime,
    measures: (exit) => [
      [metrics.modelCalls, run.modelCalls],
      [metrics.toolCalls, resultOf(exit).report?.toolCalls ?? 0]
    ]
  }
}

/** The result of a run that succeeded or failed; nothing for a defect. */
const resultOf = (exit: Exit.Exit<RunResult, RunFailed>): Partial<RunResult> =>
  Exit.isSuccess(exit) ? exit.value : (Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.result ?? {})

/** The parts of an answer that the span of its model call reads. */
export interface Answer {
  readonly reply: Reply
  /** The seconds until its first piece. */
  readonly firstChunk: number | undefined
  /** Its usage, estimated where it was broken off. */
  readonly usageOf: (exit: Exit.Exit<unknown, unknown>) => Usage | undefined
}

export const ofModelCall = (run: Run, request: ModelRequest, answer: Answer): Work<unknown, unknown> => ({
  span: `chat ${request.model}`,
  kind: "client",
  dimensions: (exit) => callDimensions(run, request, answer.reply, exit),
  verdict: () => ofStop(answer.reply.finish?.stopReason),
  attributes: (exit, isCaptured) => {
    const { content, finish, start } = answer.reply
    return {
      "gen_ai.request.stream": true,
      "gen_ai.response.id": start?.responseId,
      "gen_ai.response.time_to_first_chunk": answer.firstChunk,
      "effect_agent.turn": run.turn,
      ...runAttributes(run),
      ...requestAttributes(request.options),
      ...answerAttributes(finish?.stopReason, answer.usageOf(exit)),
      ...(isCaptured && attributes({ ...request, answer: { content, stopReason: finish?.stopReason } }))
    }
  },
  time: metrics.modelTime,
  measures: (exit) => {
    const { input, output } = answer.usageOf(exit) ?? {}
    return [
      [metrics.firstChunk, answer.firstChunk],
      [metrics.tokens, input, { "gen_ai.token.type": "input" }],
      [metrics.tokens, output, { "gen_ai.token.type": "output" }]
    ]
  }
})

const callDimensions = (
  { provider }: Run,
  { model }: ModelRequest,
  { finish, start }: Reply,
  exit: Exit.Exit<unknown, unknown> | undefined
): Attributes => {
  const error = exit && Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  const failed = error instanceof ProviderError ? error.provider : undefined
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": providerName(start?.provider ?? failed ?? provider.id),
    "gen_ai.request.model": model,
    "server.address": provider.server?.address,
    "server.port": provider.server?.port,
    "gen_ai.response.model": finish?.responseModel ?? start?.responseModel ?? start?.model
  }
}

/** The verdict for a stop reason, since providers may report a failure as that. */
const ofStop = (stopReason: Message.StopReason | undefined): Verdict =>
  stopReason === "error" || stopReason === "aborted"
    ? failed("ServerError", "The provider ended its answer with an error")
    : good

/** An attempt that failed, and that another one follows. */
export type Attempt = Omit<Extract<ModelEvent, { readonly _tag: "Attempt" }>, "_tag">

/** The event of the span of a model call for an attempt. */
export const retry = ({ attempt, delay, error }: Attempt) => ({
  name: "effect_agent.retry",
  attributes: {
    "effect_agent.retry.attempt": attempt,
    "effect_agent.retry.delay": Duration.toSeconds(delay),
    "error.type": typeOf(error)
  }
})

/** The event of the span of a run for a phase that begins. */
export const phase = (phase: Phase, turn: number | undefined) => ({
  name: "effect_agent.phase",
  attributes: {
    "effect_agent.run.phase": phase,
    ...(turn === undefined ? {} : { "effect_agent.turn": turn })
  }
})

/** The telemetry of a tool call. `tool` is `undefined` if no tool has the name. */
export const ofToolCall = (
  run: Run,
  call: Message.ToolCall,
  tool: Tool.Any | undefined,
  input: unknown
): Work<Outcome, never> => {
  // The name of an unknown tool comes from the model, and may be long.
  const name = tool?.name ?? call.name.slice(0, 64)
  return {
    span: `execute_tool ${name}`,
    kind: "internal",
    dimensions: () => ({
      "gen_ai.tool.name": name,
      "gen_ai.tool.type": "function",
      "gen_ai.agent.name": run.options.agent?.name
    }),
    verdict: ({ outcome }) => {
      if (outcome === "aborted") return cancelled
      // A skipped call has not failed: a hook or a message of the user came first.
      const isGood = outcome === "success" || outcome === "skipped"
      return isGood ? good : failed(outcome, `Tool ${name} failed: ${outcome}`)
    },
    attributes: (exit, isCaptured) => ({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.description": tool?.description,
      "gen_ai.tool.call.id": call.id,
      "effect_agent.turn": run.turn,
      "effect_agent.tool.outcome": Exit.isSuccess(exit) ? exit.value.outcome : "error",
      "effect_agent.tool.trust": Exit.isSuccess(exit) ? exit.value.output.trust : undefined,
      ...runAttributes(run),
      ...(isCaptured && {
        "gen_ai.tool.call.arguments": json(input),
        "gen_ai.tool.call.result": Exit.isSuccess(exit) ? Message.textOf(exit.value.output) : undefined
      })
    }),
    time: metrics.toolTime
  }
}

// ───────────────────────── Attributes

/** The names in the conventions of providers that have another id here. */
const providerNames: ReadonlyMap<string, string> = new Map([
  ["openai-chat", "openai"],
  ["google", "gcp.gemini"],
  ["gemini", "gcp.gemini"],
  ["vertex", "gcp.vertex_ai"],
  ["bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["mistral", "mistral_ai"],
  ["kimi", "moonshot_ai"],
  ["moonshot", "moonshot_ai"],
  ["xai", "x_ai"],
  ["watsonx", "ibm.watsonx.ai"]
])

export const providerName = (id: string): string => providerNames.get(id) ?? id

const runAttributes = ({ id, journal, options: { agent, modelOptions } }: Run): Attributes => ({
  "gen_ai.agent.id": agent?.id,
  "gen_ai.agent.name": agent?.name,
  "gen_ai.conversation.id": modelOptions?.sessionId ?? journal?.session.id,
  "effect_agent.run.id": id
})

const requestAttributes = ({ maxTokens, output, stop, temperature, topP }: ModelOptions): Attributes => ({
  "gen_ai.request.max_tokens": maxTokens,
  "gen_ai.request.temperature": temperature,
  "gen_ai.request.top_p": topP,
  "gen_ai.request.stop_sequences": stop,
  "gen_ai.output.type": output && "json"
})

const answerAttributes = (
  stopReason: Message.StopReason | undefined,
  usage: Usage | undefined
): Attributes => ({
  "gen_ai.response.finish_reasons": stopReason && [finishReason(stopReason)],
  "gen_ai.usage.input_tokens": usage?.input,
  "gen_ai.usage.output_tokens": usage?.output,
  "gen_ai.usage.cache_read.input_tokens": usage?.cacheRead,
  "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWrite,
  "gen_ai.usage.reasoning.output_tokens": usage?.reasoning,
  "effect_agent.usage.cost": usage?.cost
})

// ───────────────────────── Verdicts

export interface Verdict {
  /** The `error.type`; `undefined` for work that ended well. */
  readonly type: string | undefined
  /** The status of the span. Cancelled work has a type, but its span is no error: it ends with an interruption. */
  readonly status: Exit.Exit<unknown, unknown>
}

const good: Verdict = { type: undefined, status: Exit.void }
const cancelled: Verdict = { type: "cancelled", status: Exit.interrupt() }

/** Makes an error whose name is the type, since exporters show the name. */
const failed = (type: string, message: string): Verdict => {
  const error = new Error(message)
  error.name = type
  Errors.strip(error)
  return { type, status: Exit.fail(error) }
}

/** The verdict on work that ended. */
export const ofExit = <A, E>(work: Work<A, E>, exit: Exit.Exit<A, E>, isCaptured = false): Verdict => {
  if (Exit.isSuccess(exit)) return work.verdict(exit.value)
  if (Cause.hasInterruptsOnly(exit.cause)) return cancelled
  const type = typeOf(Cause.squash(exit.cause))
  // The message contains the result of the tool, which a span may have only with `CaptureContent`.
  return type === "ToolFailed" && !isCaptured ? failed(type, "A tool failed") : { type, status: exit }
}

/** The tag of the reason of an error, else its own tag, else its name. */
const typeOf = (error: unknown): string => {
  if (error instanceof ProviderError) return error.reason._tag
  if (Predicate.isTagged(error, "RunFailed") && "reason" in error) return typeOf(error.reason)
  if (Predicate.hasProperty(error, "_tag") && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "Defect"
}

// ───────────────────────── Metrics

/** A metric: a histogram for each set of attributes. */
export type Instrument = ReturnType<typeof histogram>

const histogram = (name: string, description: string, unit: string, boundaries: ReadonlyArray<number>) => ({
  name,
  description,
  unit,
  boundaries
})

const powers = (start: number, factor: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, n) => start * factor ** n)

const short = powers(0.01, 2, 14)
const counts = powers(1, 2, 8)

const metrics = {
  tokens: histogram("gen_ai.client.token.usage", "Tokens of model calls", "{token}", powers(1, 4, 14)),
  modelTime: histogram("gen_ai.client.operation.duration", "Time of model calls", "s", short),
  firstChunk: histogram("gen_ai.client.operation.time_to_first_chunk", "Time to first chunk", "s", short),
  runTime: histogram("gen_ai.invoke_agent.duration", "Time of runs", "s", powers(0.1, 2, 13)),
  modelCalls: histogram("gen_ai.invoke_agent.inference_calls", "Model calls", "{inference_call}", counts),
  toolCalls: histogram("gen_ai.invoke_agent.tool_calls", "Tool calls", "{tool_call}", counts),
  toolTime: histogram("gen_ai.execute_tool.duration", "Time of tool calls", "s", short)
}

// ───────────────────────── Content

/** A request, and its answer as far as it came. */
interface Exchange {
  readonly system?: string | undefined
  readonly messages: ReadonlyArray<Message.Message>
  readonly tools?: ReadonlyArray<ToolDefinition>
  readonly answer:
    | (Pick<Message.Assistant, "content"> & { readonly stopReason: Message.StopReason | undefined })
    | undefined
}

export const attributes = ({ answer, messages, system, tools = [] }: Exchange) => ({
  "gen_ai.system_instructions": system && json([{ type: "text", content: system }]),
  "gen_ai.input.messages": json(messages.filter((message) => message.role !== "custom").map(messageOf)),
  "gen_ai.tool.definitions":
    tools.length > 0 ? json(tools.map((tool) => ({ type: "function", ...tool }))) : undefined,
  "gen_ai.output.messages":
    answer &&
    json([
      { ...answerOf(answer.content), finish_reason: answer.stopReason && finishReason(answer.stopReason) }
    ])
})

/** A value as JSON; `undefined` for one that is not JSON. */
export const json = (value: unknown): string | undefined => Result.getOrUndefined(JsonText.of(value))

export const finishReason = (stopReason: Message.StopReason): string =>
  finishReasons[stopReason] ?? stopReason

const finishReasons: Partial<Record<Message.StopReason, string>> = {
  toolUse: "tool_call",
  contentFilter: "content_filter"
}

const messageOf = (message: Message.ModelMessage) => {
  switch (message.role) {
    case "user":
      return { role: message.from ?? "user", parts: message.content.flatMap(partsOf) }
    case "assistant":
      return answerOf(message.content)
    case "toolResult":
      return {
        role: "tool",
        parts: [{ type: "tool_call_response", id: message.toolCallId, response: Message.textOf(message) }]
      }
  }
}

// An answer that streams may have no block yet at an index.
const answerOf = (content: Message.Assistant["content"]) => ({
  role: "assistant",
  parts: content.filter((block) => block !== undefined).flatMap(partsOf)
})

type Block = (Message.User | Message.Assistant)["content"][number]

const partsOf = (block: Block): ReadonlyArray<object> =>
  block.type === "hostedTool" ? hostedOf(block) : [partOf(block)]

const partOf = (block: Exclude<Block, Message.HostedTool>): object => {
  switch (block.type) {
    case "text":
      return { type: "text", content: block.text }
    case "thinking":
      return { type: "reasoning", content: block.text }
    case "toolCall":
      return {
        type: "tool_call",
        id: block.id,
        name: block.name,
        arguments: block.params ?? block.rawArguments
      }
    case "image":
    case "file":
    case "media":
      return mediaOf(block)
    case "source":
      return Struct.omit(block, ["opaque"])
  }
}

/** Makes the two parts that the conventions have for a tool call of the vendor and for its result. */
const hostedOf = ({ id, name, params, result }: Message.HostedTool): ReadonlyArray<object> => [
  ...(params === undefined && result !== undefined
    ? []
    : [{ type: "server_tool_call", id, name, server_tool_call: { type: name, arguments: params } }]),
  ...(result === undefined
    ? []
    : [
        { type: "server_tool_call_response", id, server_tool_call_response: { type: name, response: result } }
      ])
]

const mediaOf = ({ source, type }: Message.Image | Message.File | Message.Media): object => {
  const mime_type = "mediaType" in source ? source.mediaType : undefined
  const modality = type === "image" ? "image" : modalityOf(mime_type)
  if ("fileId" in source) return { type: "file", modality, file_id: source.fileId }
  return "data" in source || source.url.startsWith("data:")
    ? { type: "blob", modality, mime_type, content: "" }
    : { type: "uri", modality, mime_type, uri: source.url }
}

const modalityOf = (mediaType = ""): string => /^(image|audio|video)(?=\/)/.exec(mediaType)?.[0] ?? "document"
