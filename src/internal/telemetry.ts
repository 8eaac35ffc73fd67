/**
 * The names of the telemetry: spans, attributes, metrics and log annotations. No other module has any.
 *
 * They are those of OpenTelemetry's conventions for generative AI, read in November 2026 from the repository
 * `semantic-conventions-genai`. The conventions are not stable yet. Names that begin with `effect_agent.` are additions.
 */
import * as Duration from "effect/Duration"
import type * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import type * as Tracer from "effect/Tracer"
import { type StopReason, textOf, type ToolCall } from "../Message.ts"
import type { ModelEvent, Reply } from "../ModelEvent.ts"
import type { ModelRequest, Provider } from "../Provider.ts"
import type { ModelOptions, RunOptions } from "../RunOptions.ts"
import * as Content from "./telemetryContent.ts"
import * as Verdict from "./telemetryVerdict.ts"
import type * as Tool from "../Tool.ts"
import type { Usage } from "../Usage.ts"

/** Those that are `undefined` are left out. */
export type Attributes = Readonly<Record<string, unknown>>

/** A span that begins. */
export interface Opening {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: Attributes
}

/** A span that ends, and the measurements of its work. */
export interface Closing {
  readonly attributes: Attributes
  readonly status: Exit.Exit<unknown, unknown>
  readonly measures: ReadonlyArray<Measure>
}

type Dimensions = Readonly<Record<string, string>>

/** One value of a metric, and the attributes of its series. */
export type Measure = readonly [metric: Metric.Histogram<number>, value: number, dimensions: Dimensions]

/** The parts of a run that all its spans name. */
export interface Source {
  readonly id: string
  readonly options: RunOptions
  readonly provider: Provider["Service"]
  /** Whether spans have messages, arguments and results. */
  readonly isCaptured: boolean
}

// ───────────────────────── Runs

/** Annotates the logs of a run. */
export const runLogs = (runId: string) => ({ "effect_agent.run.id": runId })

export const run = (source: Source, prompts: Content.Messages): Opening => {
  const { agent, model, modelOptions = {}, system } = source.options
  return {
    name: agent === undefined ? "invoke_agent" : `invoke_agent ${agent.name}`,
    kind: "internal",
    attributes: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.provider.name": providerName(source.provider.id),
      "gen_ai.request.model": model,
      "gen_ai.agent.description": agent?.description,
      ...sourceAttributes(source),
      ...requestAttributes(modelOptions),
      ...(source.isCaptured ? inputAttributes(system, prompts) : {})
    }
  }
}

export const runEnded = (
  { isCaptured, options, provider }: Source,
  exit: Verdict.RunExit,
  seconds: number,
  modelCalls: number
): Closing => {
  const { status, type } = Verdict.ofRun(exit, isCaptured)
  const { message, report, status: ended = "failed", turns, usage } = Verdict.resultOf(exit) ?? {}
  const dimensions = texts({
    "gen_ai.request.model": options.model,
    "gen_ai.agent.name": options.agent?.name
  })
  return {
    status,
    attributes: {
      // That of a router is known once it answered.
      "gen_ai.provider.name": providerName(message?.provider || provider.id),
      "error.type": type,
      "effect_agent.run.status": ended,
      "effect_agent.run.turns": turns,
      ...endAttributes(message?.stopReason, usage),
      "gen_ai.output.messages": isCaptured && message !== undefined ? Content.output(message) : undefined
    },
    measures: [
      [metrics.runTime, seconds, { ...dimensions, ...texts({ "error.type": type }) }],
      [metrics.modelCalls, modelCalls, dimensions],
      [metrics.toolCalls, report?.toolCalls ?? 0, dimensions]
    ]
  }
}

// ───────────────────────── Model calls

/** A model call of a run. */
export interface ModelCall {
  readonly source: Source
  readonly turn: number
  readonly request: ModelRequest
}

export const modelCall = ({ request, source, turn }: ModelCall): Opening => ({
  name: `chat ${request.model}`,
  kind: "client",
  attributes: {
    ...callAttributes(source, request.model, source.provider.id),
    "gen_ai.request.stream": true,
    "effect_agent.turn": turn,
    ...sourceAttributes(source),
    ...requestAttributes(request.options),
    ...(source.isCaptured ? inputAttributes(request.system, request.messages, request.tools) : {})
  }
})

/** `firstChunk`: the seconds until the first piece of the answer, `undefined` if none came. */
export const modelCallEnded = (
  { request, source }: ModelCall,
  exit: Exit.Exit<unknown, unknown>,
  seconds: number,
  { firstChunk, reply }: { readonly firstChunk: number | undefined; readonly reply: Reply }
): Closing => {
  const { content, finish, start } = reply
  const stopReason = finish?.stopReason
  const { provider, status, type } = Verdict.ofModelCall(exit, stopReason)
  const model = { "gen_ai.response.model": start?.responseModel ?? start?.model }
  const common = callAttributes(source, request.model, start?.provider ?? provider ?? source.provider.id)
  const dimensions = texts({ ...common, ...model })
  return {
    status,
    attributes: {
      ...common,
      ...model,
      "gen_ai.response.id": start?.responseId,
      "gen_ai.response.time_to_first_chunk": firstChunk,
      "error.type": type,
      ...endAttributes(stopReason, finish?.usage),
      "gen_ai.output.messages": source.isCaptured ? Content.output({ content, stopReason }) : undefined
    },
    measures: [
      [metrics.modelTime, seconds, { ...dimensions, ...texts({ "error.type": type }) }],
      ...optional(metrics.firstChunk, firstChunk, dimensions),
      ...optional(metrics.tokens, finish?.usage?.input, { ...dimensions, "gen_ai.token.type": "input" }),
      ...optional(metrics.tokens, finish?.usage?.output, { ...dimensions, "gen_ai.token.type": "output" })
    ]
  }
}

/** The event of a span for an attempt that failed and is followed by another one. */
export const retry = ({ attempt, delay, error }: Extract<ModelEvent, { readonly _tag: "Attempt" }>) => ({
  name: "effect_agent.retry",
  attributes: {
    "effect_agent.retry.attempt": attempt,
    "effect_agent.retry.delay": Duration.toSeconds(delay),
    "error.type": Verdict.typeOf(error)
  }
})

// ───────────────────────── Tool calls

/** A tool call of a run. */
export interface ToolRun {
  readonly source: Source
  readonly turn: number
  readonly call: ToolCall
  /** `undefined` if the run has no tool of that name. */
  readonly tool: Tool.Any | undefined
  /** The arguments. */
  readonly input: unknown
}

/** Annotates the logs of a tool call. */
export const toolLogs = ({ id }: ToolCall) => ({ "gen_ai.tool.call.id": id })

export const toolCall = (run: ToolRun): Opening => ({
  name: `execute_tool ${nameOf(run)}`,
  kind: "internal",
  attributes: {
    "gen_ai.operation.name": "execute_tool",
    ...toolAttributes(run),
    "gen_ai.tool.description": run.tool?.description,
    "gen_ai.tool.call.id": run.call.id,
    "effect_agent.turn": run.turn,
    ...sourceAttributes(run.source),
    "gen_ai.tool.call.arguments": run.source.isCaptured ? Content.json(run.input) : undefined
  }
})

/** `seconds` is `undefined` for a call that did not run. */
export const toolCallEnded = (run: ToolRun, exit: Verdict.ToolExit, seconds: number | undefined): Closing => {
  const { isCaptured, options } = run.source
  const { outcome, output, status, type } = Verdict.ofToolCall(exit, nameOf(run))
  const dimensions = { ...toolAttributes(run), "gen_ai.agent.name": options.agent?.name, "error.type": type }
  return {
    status,
    attributes: {
      "effect_agent.tool.outcome": outcome,
      "error.type": type,
      "gen_ai.tool.call.result": isCaptured && output !== undefined ? textOf(output) : undefined
    },
    measures: optional(metrics.toolTime, seconds, texts(dimensions))
  }
}

/** The name of the tool. That of an unknown one comes from the model, and may be long. */
const nameOf = ({ call, tool }: ToolRun): string => tool?.name ?? call.name.slice(0, 64)

const toolAttributes = (run: ToolRun) => ({ "gen_ai.tool.name": nameOf(run), "gen_ai.tool.type": "function" })

// ───────────────────────── Attributes

/** Providers that the conventions name otherwise than their id here. */
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

const sourceAttributes = ({ id, options: { agent, modelOptions } }: Source): Attributes => ({
  "gen_ai.agent.id": agent?.id,
  "gen_ai.agent.name": agent?.name,
  "gen_ai.conversation.id": modelOptions?.sessionId,
  "effect_agent.run.id": id
})

const requestAttributes = ({ maxTokens, output, stop, temperature, topP }: ModelOptions): Attributes => ({
  "gen_ai.request.max_tokens": maxTokens,
  "gen_ai.request.temperature": temperature,
  "gen_ai.request.top_p": topP,
  "gen_ai.request.stop_sequences": stop,
  "gen_ai.output.type": output === undefined ? undefined : "json"
})

const callAttributes = ({ provider: { server } }: Source, model: string, provider: string): Attributes => ({
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": providerName(provider),
  "gen_ai.request.model": model,
  "server.address": server?.address,
  "server.port": server?.port
})

const endAttributes = (stopReason: StopReason | undefined, usage: Usage | undefined): Attributes => ({
  "gen_ai.response.finish_reasons": stopReason === undefined ? undefined : [Content.finishReason(stopReason)],
  "gen_ai.usage.input_tokens": usage?.input,
  "gen_ai.usage.output_tokens": usage?.output,
  "gen_ai.usage.cache_read.input_tokens": usage?.cacheRead,
  "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWrite,
  "gen_ai.usage.reasoning.output_tokens": usage?.reasoning
})

const inputAttributes = (
  system: string | undefined,
  messages: Content.Messages,
  tools: ModelRequest["tools"] = []
): Attributes => ({
  "gen_ai.system_instructions": system === undefined ? undefined : Content.instructions(system),
  "gen_ai.input.messages": Content.input(messages),
  "gen_ai.tool.definitions": tools.length === 0 ? undefined : Content.definitions(tools)
})

/** Attributes of a metric are texts. */
const texts = (attributes: Attributes): Dimensions => {
  const texts: Record<string, string> = {}
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) texts[key] = String(value)
  }
  return texts
}

// ───────────────────────── Metrics

const optional = (
  metric: Measure[0],
  value: number | undefined,
  dimensions: Dimensions
): ReadonlyArray<Measure> => (value === undefined ? [] : [[metric, value, dimensions]])

const histogram = (name: string, description: string, unit: string, boundaries: ReadonlyArray<number>) =>
  Metric.histogram(name, { description, attributes: { unit }, boundaries })

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
