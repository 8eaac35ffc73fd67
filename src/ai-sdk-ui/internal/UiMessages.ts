/** A transcript as the messages of a page, and the parts of tool calls in them. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"
import * as ModelEvent from "../../ModelEvent.ts"
import * as Streamed from "../../ui/Streamed.ts"
import {
  initial,
  type Options,
  type Flags as AnswerFlags,
  type Chunk,
  type UserPart,
  partId,
  type State,
  type Step
} from "./ChatState.ts"
import type { AgentEvent, OfTag, ToolOutput } from "../../AgentEvent.ts"
import { from } from "../../internal/callSet.ts"

/**
 * The state of a tool part of a stored message.
 *
 * @since 0.2.0
 * @category models
 */
export type UiToolState =
  | { readonly state: "input-available" }
  | { readonly state: "output-available"; readonly output: Schema.Json }
  | { readonly state: "output-error"; readonly errorText: string }
  | {
      readonly state: "output-denied"
      readonly approval: { readonly id: string; readonly approved: false; readonly reason: string }
    }

/**
 * The tool part of a stored message.
 *
 * @since 0.2.0
 * @category models
 */
export type UiToolPart = UiToolState & {
  readonly toolCallId: string
  readonly input: Schema.Json
  readonly providerExecuted?: boolean
  readonly toolMetadata?: { [key: string]: Schema.Json }
} & ({ readonly type: `tool-${string}` } | { readonly type: "dynamic-tool"; readonly toolName: string })

/**
 * A part of a stored message.
 *
 * @since 0.2.0
 * @category models
 */
export type UiPart =
  | UserPart
  | { readonly type: "step-start" }
  | { readonly type: "reasoning"; readonly text: string; readonly state: "done" }
  | UiToolPart
  | Extract<Chunk, { readonly type: "source-url" | "source-document" }>
  | { readonly type: "data-message"; readonly id: string; readonly data: Schema.Json }

/**
 * A message of a page, as the type `UIMessage` of the AI SDK.
 *
 * @since 0.2.0
 * @category models
 */
export interface UiMessage {
  /** The id of the message. */
  readonly id: string
  /** The author of the message. */
  readonly role: "user" | "assistant"
  /** The parts of the message. */
  readonly parts: Array<UiPart>
}

/** The messages of a page for a transcript: an answer with its calls and their results, up to the next message of the user, is one. */
export const of = (transcript: ReadonlyArray<Message.Message>, options: Options): Array<UiMessage> => {
  const { flags } = initial(options)
  const all: Array<UiMessage> = []
  /** The whole messages that stand before the next answer: a page has those of the user in its list already. */
  let before: Array<UiPart> = []
  let answer: UiMessage | undefined
  transcript.forEach((message, at) => {
    const whole = { type: "data-message", id: message.id, data: { ...message } } as const
    const keep = () => void (answer === undefined ? before : answer.parts).push(whole)
    switch (message.role) {
      case "user":
        // The run wrote it, and no person.
        if (message.backgroundEnds !== undefined) return keep()
        all.push({ id: message.id, role: "user", parts: message.content.map(userPart) })
        answer = undefined
        before.push(whole)
        break
      case "assistant": {
        if (answer === undefined) {
          answer = { id: message.id, role: "assistant", parts: before }
          all.push(answer)
          before = []
        }
        const results = resultsOf(transcript, at)
        const parts = message.content.flatMap((block, index) =>
          partsOf(block, `${message.id}:${index}`, results, flags)
        )
        answer.parts.push({ type: "step-start" }, ...parts, whole)
        break
      }
      default:
        keep()
    }
  })
  return all
}

/** The results of the calls of an answer. */
const resultsOf = (
  transcript: ReadonlyArray<Message.Message>,
  at: number
): ReadonlyMap<string, Message.ToolResult> => {
  const results = new Map<string, Message.ToolResult>()
  for (const message of transcript.slice(at + 1)) {
    if (message.role === "assistant") break
    if (message.role === "toolResult") results.set(message.toolCallId, message)
  }
  return results
}

export const userPart = (block: Message.User["content"][number]): UserPart => {
  if (block.type === "text") return { type: "text", text: block.text }
  const name = block.type === "file" ? block.name : undefined
  return { type: "file", ...media(block.source), ...(name === undefined ? {} : { filename: name }) }
}

type Flags = ReturnType<typeof initial>["flags"]

const partsOf = (
  block: Message.Assistant["content"][number],
  id: string,
  results: ReadonlyMap<string, Message.ToolResult>,
  flags: Flags
): ReadonlyArray<UiPart> => {
  switch (block.type) {
    case "text":
      return block.text === "" ? [] : [{ type: "text", text: block.text }]
    case "thinking":
      return [{ type: "reasoning", text: block.text, state: "done" }]
    case "toolCall": {
      const input = ModelEvent.parseArguments(block.rawArguments) ?? block.rawArguments
      const result = results.get(block.id)
      const metadata = result === undefined ? {} : { toolMetadata: { outcome: result.outcome } }
      const call = { toolCallId: block.id, input, ...metadata, ...stateOf(block.id, result) }
      return [{ ...call, ...nameOf(block.name, flags) }]
    }
    case "hostedTool": {
      const { id: toolCallId, isError, name, params = {}, result } = block
      const call = { toolCallId, input: params, providerExecuted: true, ...nameOf(name, flags) }
      if (result === undefined) return [{ ...call, state: "input-available" }]
      return isError === true
        ? [{ ...call, state: "output-error", errorText: textOf(result) }]
        : [{ ...call, state: "output-available", output: result }]
    }
    case "source":
      return [source(id, block)]
    case "media":
      return [{ type: "file", ...media(block.source) }]
  }
}

const nameOf = (toolName: string, flags: Flags) =>
  flags(toolName).dynamic === true
    ? { type: "dynamic-tool" as const, toolName }
    : { type: `tool-${toolName}` as const }

const stateOf = (toolCallId: string, result: Message.ToolResult | undefined): UiToolState => {
  if (result === undefined) return { state: "input-available" }
  const text = Message.textOf(result)
  if (isRefused(result.outcome))
    return {
      state: "output-denied",
      approval: { id: automatic(toolCallId), approved: false, reason: text }
    }
  return result.isError
    ? { state: "output-error", errorText: text }
    : { state: "output-available", output: outputOf(result) }
}

// ───────────────────────── Answers

/** The chunks of a delta. `streamed` is the answer with it. */
export const chunks = (
  messageId: string,
  streamed: Streamed.Streamed,
  event: ModelEvent.ModelEvent,
  flags: AnswerFlags
): ReadonlyArray<Chunk> => {
  if (!("contentIndex" in event)) return []
  const { contentIndex } = event
  const id = blockId(messageId, contentIndex)
  const block = streamed.reply.content[contentIndex]
  switch (event._tag) {
    case "TextStart":
      return [{ type: "text-start", id }]
    case "TextDelta":
      return [{ type: "text-delta", id, delta: event.delta }]
    case "TextEnd":
      return [{ type: "text-end", id }]
    case "ThinkingStart":
      return [{ type: "reasoning-start", id }]
    case "ThinkingDelta":
      return [{ type: "reasoning-delta", id, delta: event.delta }]
    case "ThinkingEnd":
      return [{ type: "reasoning-end", id }]
    case "Source":
      return [source(id, event.source)]
    case "Media":
      return [{ type: "file", ...media(event.media.source) }]
    default:
      return block === undefined ? [] : toolChunks(streamed, block, event, flags)
  }
}

type ToolEvent = Extract<
  ModelEvent.ModelEvent,
  {
    readonly _tag: "ToolCallStart" | "ToolCallDelta" | "ToolCallEnd" | "HostedToolStart" | "HostedToolEnd"
  }
>

const toolChunks = (
  { reply: { content } }: Streamed.Streamed,
  block: Message.Assistant["content"][number],
  event: ToolEvent,
  flags: AnswerFlags
): ReadonlyArray<Chunk> => {
  if (block.type === "hostedTool") {
    if (event._tag !== "HostedToolEnd") return []
    const isFirst = content.find((other) => other?.type === "hostedTool" && other.id === block.id) === block
    return hostedTool(block, isFirst ? {} : undefined, flags)
  }
  if (block.type !== "toolCall") return []
  const { id: toolCallId, name: toolName, rawArguments } = block
  switch (event._tag) {
    case "ToolCallStart":
      return [{ type: "tool-input-start", toolCallId, toolName, ...flags(toolName) }]
    case "ToolCallDelta":
      return [{ type: "tool-input-delta", toolCallId, inputTextDelta: event.delta }]
    default: {
      // Arguments that are not JSON stay text: the result of the call is an error.
      const input = ModelEvent.parseArguments(rawArguments) ?? rawArguments
      return [{ type: "tool-input-available", toolCallId, toolName, input, ...flags(toolName) }]
    }
  }
}

/** A vendor may give the call and its result in two blocks. */
const hostedTool = (
  { id, isError, name, params, result }: Message.HostedTool,
  unknownParams: Schema.Json | undefined,
  flags: AnswerFlags
): ReadonlyArray<Chunk> => {
  const given = params ?? unknownParams
  const part = { toolCallId: id, ...flags(name), providerExecuted: true } as const
  const input: ReadonlyArray<Chunk> =
    given === undefined ? [] : [{ type: "tool-input-available", ...part, toolName: name, input: given }]
  if (result === undefined) return input
  return [
    ...input,
    isError === true
      ? { type: "tool-output-error", ...part, errorText: textOf(result) }
      : { type: "tool-output-available", ...part, output: result }
  ]
}

const textOf = (json: Schema.Json): string => (typeof json === "string" ? json : JSON.stringify(json))

/** The ends of the blocks that the answer leaves open. */
export const ends = (messageId: string, streamed: Streamed.Streamed): ReadonlyArray<Chunk> =>
  Streamed.open(streamed).flatMap(([contentIndex, { type }]): ReadonlyArray<Chunk> => {
    const id = blockId(messageId, contentIndex)
    if (type === "text") return [{ type: "text-end", id }]
    return type === "thinking" ? [{ type: "reasoning-end", id }] : []
  })

const blockId = (messageId: string, contentIndex: number) => `${messageId}:${contentIndex}`

const source = (
  id: string,
  block: Message.Source
): Extract<Chunk, { readonly type: "source-url" | "source-document" }> => {
  const { citedText, fileName, mediaType = "text/plain", sourceType, title, url } = block
  const given = {
    sourceId: block.id ?? id,
    ...(citedText === undefined ? {} : { providerMetadata: { effectAgent: { citedText } } })
  }
  if (sourceType === "url" && url !== undefined) {
    return { type: "source-url", ...given, url, ...(title === undefined ? {} : { title }) }
  }
  return {
    type: "source-document",
    ...given,
    mediaType,
    title: title ?? fileName ?? url ?? "",
    ...(fileName === undefined ? {} : { filename: fileName })
  }
}

/** The address of a file, and its media type. */
const media = (
  source: Message.Media["source"] | Message.Image["source"] | Message.File["source"]
): { readonly url: string; readonly mediaType: string } => {
  if ("data" in source) {
    return { url: `data:${source.mediaType};base64,${source.data}`, mediaType: source.mediaType }
  }
  if ("fileId" in source) return { url: `file:${source.fileId}`, mediaType: "application/octet-stream" }
  const given = "mediaType" in source ? source.mediaType : undefined
  return { url: source.url, mediaType: given ?? "image" }
}

// ───────────────────────── The parts of tool calls

type CallEvent = AgentEvent & { readonly toolCallId: string }

/** Shows the call as a part, if the client has none of it. */
export const shown = (
  state: State,
  event: CallEvent & { readonly toolName: string; readonly params: Schema.Json }
): Step => {
  const toolCallId = partId(state.runId, event)
  if (state.shown.has(toolCallId)) return [state, []]
  const { params: input, toolName } = event
  return [
    { ...state, shown: from(state.shown).with(toolCallId) },
    [{ type: "tool-input-available", toolCallId, toolName, input, ...state.flags(toolName) }]
  ]
}

export const progressed = (state: State, event: OfTag<"ToolExecutionProgress">): Step => {
  const toolCallId = partId(state.runId, event)
  if (!state.shown.has(toolCallId)) return [state, []]
  return [
    state,
    [
      {
        type: "tool-output-available",
        toolCallId,
        output: outputOf(event.partial),
        preliminary: true,
        ...state.flags(event.toolName)
      }
    ]
  ]
}

/** The part of a call that a person refused, or that did not run for want of a yes, is denied. */
export const ended = (state: State, event: OfTag<"ToolExecutionEnd">): Step => {
  const toolCallId = partId(state.runId, event)
  if (!state.shown.has(toolCallId)) return [state, []]
  const approval = state.approvals.get(toolCallId)
  if (approval === undefined ? isRefused(event.outcome) : approval.approved !== true) {
    const [next, chunks] = denied(state, toolCallId, Message.textOf(event.result))
    return [next, [...chunks, { type: "tool-output-denied", toolCallId }]]
  }
  const { durationMs, isError, outcome, result, toolName } = event
  const flags = { toolCallId, ...state.flags(toolName), toolMetadata: { outcome, durationMs } }
  return [
    state,
    isError
      ? [{ type: "tool-output-error", ...flags, errorText: Message.textOf(result) }]
      : [{ type: "tool-output-available", ...flags, output: outputOf(result) }]
  ]
}

/** Whether a call did not run for want of a yes. */
const isRefused = (outcome: Message.ToolOutcome): boolean =>
  outcome === "rejected" || outcome === "blocked" || outcome === "expired"

/** A denied part has an approval: that of a call that no person decided about is automatic. */
const denied = (state: State, toolCallId: string, reason: string): Step => {
  const approval = state.approvals.get(toolCallId)
  if (approval?.approved === false) return [state, []]
  const approvalId = approval?.approvalId ?? automatic(toolCallId)
  const requested: ReadonlyArray<Chunk> =
    approval === undefined
      ? [{ type: "tool-approval-request", approvalId, toolCallId, isAutomatic: true }]
      : []
  return [
    decided(state, toolCallId, { approvalId, approved: false }),
    [...requested, { type: "tool-approval-response", approvalId, approved: false, reason }]
  ]
}

const automatic = (toolCallId: string) => `auto_${toolCallId}`

const decided = (
  state: State,
  toolCallId: string,
  approval: { readonly approvalId: string; readonly approved: boolean | undefined }
): State => ({ ...state, approvals: new Map(state.approvals).set(toolCallId, approval) })

export const requested = (before: State, event: OfTag<"ApprovalRequested">): Step => {
  const [state, input] = shown(before, event)
  const { approvalId, argumentsHash, expiresAt, params, path, reason, toolName } = event
  const toolCallId = partId(state.runId, event)
  const descriptor = {
    toolName,
    params,
    argumentsHash,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(path === undefined ? {} : { path: path.map((caller) => ({ ...caller })) })
  }
  const request: Chunk = {
    type: "tool-approval-request",
    approvalId,
    toolCallId,
    approvalDescriptor: descriptor,
    ...(reason === undefined ? {} : { reason })
  }
  const [next, around] = surrounding(state, event)
  return [decided(next, toolCallId, { approvalId, approved: undefined }), [...input, ...around, request]]
}

export const answered = (state: State, event: OfTag<"ApprovalAnswered">): Step => {
  const toolCallId = partId(state.runId, event)
  if (!state.approvals.has(toolCallId)) return [state, []]
  const { approvalId, decision, reason } = event
  const approved = decision === "approve"
  return [
    decided(state, toolCallId, { approvalId, approved }),
    [
      {
        type: "tool-approval-response",
        approvalId,
        approved,
        ...(reason === undefined ? {} : { reason })
      }
    ]
  ]
}

export const asked = (before: State, event: OfTag<"QuestionAsked">): Step => {
  const { question, schema } = event
  const call = { ...event, toolName: "ask_user", params: { question, schema } }
  const [state, input] = shown(before, call)
  const [next, around] = surrounding(state, event)
  return [next, [...input, ...around]]
}

/**
 * The call of this run that a request of a run inside waits in, as approved: clients continue by themselves once every part has an
 * output or an answer.
 */
const surrounding = (state: State, event: CallEvent): Step => {
  const caller = event.path?.find(({ runId }) => runId === state.runId)
  if (caller === undefined || !state.shown.has(caller.toolCallId)) return [state, []]
  const { toolCallId } = caller
  const approvalId = state.approvals.get(toolCallId)?.approvalId ?? automatic(toolCallId)
  const requested: ReadonlyArray<Chunk> = state.approvals.has(toolCallId)
    ? []
    : [{ type: "tool-approval-request", approvalId, toolCallId, isAutomatic: true }]
  return [
    decided(state, toolCallId, { approvalId, approved: true }),
    [...requested, { type: "tool-approval-response", approvalId, approved: true }]
  ]
}

/** The value that a tool returned, as JSON. Content that the tool chose itself stands beside its details. */
const outputOf = ({
  content,
  details,
  isJson
}: Pick<ToolOutput, "content" | "details" | "isJson">): Schema.Json => {
  const isText = content.every(({ type }) => type === "text")
  const text = isText ? Message.textOf({ content }) : undefined
  if (text !== undefined && isJson === true) return Option.getOrElse(decodeJson(text), () => text)
  if (text !== undefined && (details === undefined || details === text)) return text
  return { content: content.map((block) => ({ ...block })), ...(details === undefined ? {} : { details }) }
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
