/**
 * Makes the request of a turn from the transcript: hooks shape the messages, the context manager chooses among them, and faults of the
 * transcript are repaired. The transcript itself stays as it is.
 */
import * as Effect from "effect/Effect"
import * as BackgroundTool from "./backgroundTool.ts"
import type { Trigger } from "../ContextManager.ts"
import * as Compact from "./compact.ts"
import { type FailureReason, InvalidTranscript } from "./failureReason.ts"
import type * as Hook from "../Hook.ts"
import type * as Message from "../Message.ts"
import * as NearestName from "./nearestName.ts"
import type { ModelRequest } from "../Provider.ts"
import type { Run } from "./run.ts"
import type * as Tool from "../Tool.ts"
import { definitionOf } from "./toolRun.ts"
import { Selection } from "../ToolRegistry.ts"
import * as Transcript from "../Transcript.ts"

/** Makes the request that `beforeModel` hooks get. */
export const make = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<ModelRequest, FailureReason> {
  const offered = yield* offer(run)
  if (run.contextManager.compact !== undefined) yield* Compact.ifDue(run)
  return yield* of(run, offered)
})

const of = Effect.fnUntraced(function* (
  run: Run,
  { options, ...parts }: Effect.Success<ReturnType<typeof offer>>
): Effect.fn.Return<ModelRequest, FailureReason> {
  const viewed = yield* view(run)
  const hasNews = run.isContinued || !hasNoNews(run.conversation.messages)
  if (hasNews && !viewed.messages.every(saysNothing)) return { ...parts, ...viewed, options }
  const violation = hasNews && isHidden(run) ? hiddenFrom(run.team.active.name) : nothingToAnswer
  return yield* new InvalidTranscript({ violations: [violation] })
})

const nothingToAnswer =
  "there is nothing for the model to answer. Give a prompt that holds a text that is not empty, an image or a tool result"

const hiddenFrom = (agent: string) =>
  `\`history\` of the hand-off to ${agent} leaves it nothing to answer. Keep a message of the user that is not empty`

/** Whether the option `history` of a hand-off hides all messages from the agent. */
const isHidden = ({ conversation: { compaction, messages }, team }: Run): boolean => {
  const seen = team.view(Transcript.compacted(messages, compaction).messages)
  return team.active.history !== undefined && Transcript.repair(seen).messages.every(saysNothing)
}

/** Compacts the conversation and makes the request again; `undefined` if there is no compaction. */
export const shortened = Effect.fnUntraced(function* (run: Run, trigger: Trigger) {
  const isShorter = yield* Compact.afterOverflow(run, trigger)
  return isShorter ? yield* of(run, yield* offer(run)) : undefined
})

/** Applies the changes of a `beforeModel` hook to a request. */
export const modified = (
  request: ModelRequest,
  {
    messages = request.messages,
    model = request.model,
    system = request.system,
    tools = request.tools,
    ...options
  }: NonNullable<Hook.Output<"beforeModel">["modified"]>
): ModelRequest => ({
  model,
  messages,
  tools,
  ...(system === undefined ? {} : { system }),
  options: { ...request.options, ...options }
})

/** Limits the tools that the model may call to those that a hook left in the request. A tool that a hook added is unknown to the run. */
export const offerOnly = (run: Run, { model, system, tools }: ModelRequest, planned: ModelRequest): void => {
  const names = new Set(tools.map(({ name }) => name))
  const gone = new Set(planned.tools.flatMap(({ name }) => (names.has(name) ? [] : [name])))
  const offered = new Map([...run.offered].filter(([name]) => !gone.has(name)))
  run.offer(offered, { model, tools, ...(system === undefined ? {} : { system }) })
}

/** Whether the messages after the last complete answer are empty. */
const hasNoNews = (messages: ReadonlyArray<Message.Message>): boolean =>
  messages
    .slice(
      messages.findLastIndex((message) => message.role === "assistant" && !Transcript.isFailed(message)) + 1
    )
    .every(saysNothing)

/** Whether a message gives the model nothing to answer: it is empty, or an answer that failed or was cancelled. */
const saysNothing = (message: Message.Message): boolean =>
  Transcript.isFailed(message) ||
  (message.role === "user" &&
    message.content.every((block) => block.type === "text" && block.text.trim() === ""))

/** Makes the messages of the request, in a form that providers accept. */
const view = Effect.fnUntraced(function* (run: Run) {
  const { compaction, messages } = run.conversation
  const compacted = Transcript.compacted(messages, compaction)
  announceView(run, compacted, "compaction")
  const { active } = run.team
  let transcript = active.history === undefined ? compacted.messages : run.team.view(compacted.messages)
  yield* run.ask(
    "transformMessages",
    () => ({ ...run.turnInput, messages: transcript }),
    (transformed) => {
      transcript = transformed
    }
  )
  const trimmed = yield* run.attempt(run.contextManager.view(transcript, run.options))
  announceView(run, trimmed, trimmed.reason)
  const violations = run.options.transcript === "strict" ? Transcript.violations(trimmed.messages) : []
  if (violations.length > 0) return yield* new InvalidTranscript({ violations })
  const repaired = Transcript.repair(trimmed.messages)
  const refused = run.messages.length - messages.length
  announceView(run, { ...repaired, dropped: repaired.dropped + refused }, "repair")
  let converted: ReadonlyArray<Message.ModelMessage> | undefined
  yield* run.ask(
    "toModelMessages",
    () => ({ ...run.turnInput, messages: converted ?? repaired.messages }),
    (output) => {
      converted = output
    }
  )
  return Transcript.forModel(converted ?? repaired.messages)
})

/** Emits `ContextTransformed` if a request leaves out messages. */
export const announceView = (
  run: Run,
  { dropped, messages }: Transcript.Trimmed,
  reason: "window" | "compaction" | "repair"
): void => {
  if (dropped > 0) run.emit({ _tag: "ContextTransformed", dropped, kept: messages.length, reason })
}

/** Chooses the tools of this turn. Later changes of the registry count from the next turn. */
export const offer = Effect.fnUntraced(function* (run: Run) {
  const registered = yield* run.registry.definitions
  if (run.turn === 1) yield* warnOfUnknown(run, registered)
  const chosen = active(run, registered)
  const offered = new Map<string, Tool.Any>()
  let mayContinue = false
  for (const { name } of chosen) {
    const tool = yield* run.registry.get(name)
    if (tool === undefined) continue
    offered.set(name, tool)
    mayContinue ||= tool.blocking === false || tool.blocking === "optional"
  }
  const select = yield* Selection
  const { model, modelOptions = {} } = run.options
  const toolSearch = run.provider.toolSearch?.({ model }) ?? false
  const selected = select({ definitions: chosen, messages: run.messages, options: run.options, toolSearch })
  for (const tool of selected?.tools ?? []) offered.set(tool.name, tool)
  let described =
    selected === undefined ? chosen : [...selected.tools.map(definitionOf), ...selected.definitions]
  if (mayContinue || (run.background !== undefined && chosen.length > 0)) {
    const backgroundTool = BackgroundTool.toolFor(offered)
    offered.set(backgroundTool.name, backgroundTool)
    described = [...described, definitionOf(backgroundTool)]
  }
  const plain = { model, tools: described, options: modelOptions }
  const { options, tool } = run.output?.ask(run.provider, plain) ?? { options: modelOptions, tool: undefined }
  if (tool !== undefined) offered.set(tool.name, tool)
  const parts = {
    ...run.requestParts,
    tools: tool === undefined ? described : [...described, definitionOf(tool)]
  }
  run.offer(offered, parts)
  return { ...parts, options }
})

const active = (run: Run, definitions: ModelRequest["tools"]): ModelRequest["tools"] => {
  const { activeTools } = run.options
  if (activeTools === undefined) return definitions
  const names = activeTools.length === 0 ? [] : [...activeTools, ...addedTo(run.messages)]
  return [...new Set(names)].flatMap((name) => definitions.find((known) => known.name === name) ?? [])
}

/** The names of the tools that results in the conversation have added to `activeTools`. */
const addedTo = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  messages.flatMap((message) => (message.role === "toolResult" && message.addedTools) || [])

/** Logs a warning for a name in the options that no tool has. It is no error, since the tool may be registered later. */
const warnOfUnknown = ({ options }: Run, registered: ModelRequest["tools"]): Effect.Effect<void> => {
  const { activeTools = [], modelOptions } = options
  const choice = modelOptions?.toolChoice
  const chosen = typeof choice === "object" ? [choice.name] : []
  const known = registered.map(({ name }) => name)
  const warn = (option: string, names: ReadonlyArray<string>) => {
    const [name, ...others] = names.filter((name) => !known.includes(name))
    if (name === undefined) return Effect.void
    const all = `${JSON.stringify(name)}${others.length === 0 ? "" : ` and ${others.length} more`}`
    return Effect.logWarning(`${option} names ${all}: ${notRegistered(name, known)}`)
  }
  return activeTools.length + chosen.length === 0
    ? Effect.void
    : Effect.andThen(warn("activeTools", activeTools), warn("modelOptions.toolChoice", chosen))
}

const notRegistered = (name: string, known: ReadonlyArray<string>): string => {
  const nearest = NearestName.of(name, known)
  const advice =
    nearest === undefined ? `Register it, or name one of: ${known.join(", ")}` : `Did you mean ${nearest}?`
  return `no tool of that name is registered. ${advice}`
}
