/**
 * What a scenario's input stands for: messages, model, tools and hooks as values of the library.
 */
import { Duration, Effect, Layer, Option, Redacted, Schedule, Schema, type Scope, Stream } from "effect"
import { ContextManager, Hook, Message, Provider, ProviderError } from "effect-agent"
import { Credentials } from "effect-agent/providers"
import { RunOptions, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import type { Stage } from "./stage.ts"
import { defined, failures, renamed, toLibrary, type Words } from "./words.ts"

const messageOf = (words: Words, { roles }: Stage): Message.Message => {
  if (typeof words === "string") return Message.user(words)
  const { content, role, text, toolCallId: id, toolName: name, ...fields } = words
  if (role === "user") return Message.user(blocksOf(content))
  if (role === "assistant") return Message.assistant(blocksOf(content), fields)
  if (role === "toolResult") return Message.toolResult({ id, name }, blocksOf(content), fields)
  const message = Message.custom(role, { text })
  roles.set(message.id, role)
  return message
}

export const messagesOf = (words: Words, stage: Stage): ReadonlyArray<Message.Message> =>
  (words ?? []).map((message: Words) => messageOf(message, stage))

/** What a prompt, a steering message or a follow-up says. */
export const promptOf = ({ images = [], message, messages, text }: Words, stage: Stage): Message.Input => {
  if (text === undefined) return messagesOf(messages ?? [message], stage)
  const shown = images.map((image: Words) => Message.image(image.data, image.mimeType))
  return shown.length === 0 ? text : Message.user([Message.text(text), ...shown])
}

const blocksOf = (content: Words): Words => {
  if (typeof content === "string") return [Message.text(content)]
  return content.map(
    ({ arguments: params = {}, data, mimeType, signature: opaque, thinking, ...block }: Words) => {
      if (block.type === "image") return Message.image(data, mimeType)
      if (block.type === "thinking") return defined({ ...block, text: thinking, opaque })
      return block.type === "toolCall" ? { ...block, params, rawArguments: JSON.stringify(params) } : block
    }
  )
}

export const optionsOf = ({ activeTools, config = {}, initial = {} }: Words): RunOptions.RunOptions => {
  const named = (words: Words) => renamed(words, (key, value) => [toLibrary(key), value])
  const { hookOptions, limits = {} } = config
  const options = { model: "scripted-model", activeTools, ...initial, ...config, ...limits, ...hookOptions }
  const modelOptions = { thinkingLevel: "off", ...initial, ...config }
  const read = Schema.decodeUnknownSync(RunOptions.RunOptions)
  return read(defined(named({ ...options, modelOptions, limits: named(limits) })))
}

/** The provider, the keys and the window. */
export const servicesOf = (stage: Stage) => {
  const { limits: { maxInputMessages: maxMessages } = {}, retry }: Words = stage.input.config ?? {}
  const provider = Layer.effect(Provider.Provider, providerOf(stage))
  return Layer.mergeAll(
    retry === undefined ? provider : Retry.layer({ schedule: scheduleOf(retry) })(provider),
    maxMessages === undefined ? Layer.empty : ContextManager.slidingWindow({ maxMessages }),
    Credentials.layer(() => keyOf(stage))
  )
}

const scheduleOf = ({ baseDelayMs, maxAttempts }: Words) =>
  Schedule.exponential(baseDelayMs).pipe(
    Schedule.setInputType<ProviderError.ProviderError>(),
    Schedule.while(({ input }) => input.isRetryable),
    Schedule.upTo({ times: maxAttempts - 1 })
  )

const keyOf = Effect.fnUntraced(function* (stage: Stage) {
  for (const hook of stage.input.hooks?.getApiKey ?? []) {
    const key = yield* stage.ask("getApiKey", hook, undefined, {}).pipe(
      Effect.mapError(({ message }) => reasonOf({ error: "auth", message })),
      Effect.mapError((reason) => new ProviderError.ProviderError({ provider: "scripted", reason }))
    )
    if (key !== undefined) return Option.some(Redacted.make(key))
  }
  return Option.none()
})

/** The scripted provider: asks for a key, then counts the call and answers it. */
const providerOf = Effect.fnUntraced(function* ({ fire, input, order, requests }: Stage) {
  const turns = input.model.map((turn: Words, index: number) =>
    turnOf(turn, (step) => fire({ request: index + 1, step }))
  )
  const exhausted = () => ScriptedProvider.fail(reasonOf({ status: 400, message: "No turn is left" }))
  const { provider } = yield* ScriptedProvider.make(turns, { exhausted })
  const ask = Effect.fnUntraced(function* (request: Provider.ModelRequest) {
    const { apiKey } = yield* Credentials.Credentials
    const key = Option.map(yield* apiKey(provider.id), Redacted.value)
    order.push(`model:request:${requests.push({ request, apiKey: Option.getOrUndefined(key) })}`)
    return provider.stream(request)
  })
  return Provider.Provider.of({ ...provider, stream: (request) => Stream.unwrap(ask(request)) })
})

const turnOf = (words: Words, before: (step: number) => Effect.Effect<void>): ScriptedProvider.Turn => {
  if (words.failOnCall !== undefined) return ScriptedProvider.fail(reasonOf(words.failOnCall))
  if (words.defectOnCall !== undefined) return ScriptedProvider.die(new Error(words.defectOnCall))
  const steps = words.steps.flatMap((step: Words, index: number) => [Step.run(before(index)), stepOf(step)])
  const turn = ScriptedProvider.turn(...steps)
  return words.ignoresAbort === true ? ScriptedProvider.ignoringAbort(turn) : turn
}

const stepOf = (words: Words): Step.Step => {
  const opaque = words.signature === undefined ? {} : { opaque: words.signature }
  if ("start" in words) return Step.start
  if ("text" in words) return Step.text(words.text, opaque)
  if ("thinking" in words) return Step.thinking(words.thinking, opaque)
  if ("toolCall" in words) return Step.rawToolCall(words.toolCall.name, words.toolCall.deltas, words.toolCall)
  if ("done" in words) return Step.finish(words.done, words.usage)
  if ("fail" in words) return Step.fail(reasonOf(words.fail))
  if ("defect" in words) return Step.die(new Error(words.defect))
  if ("sleepMs" in words) return Step.sleep(words.sleepMs)
  return "never" in words ? Step.never : Step.eof
}

const reasonOf = ({ error, message: detail = "", retryAfterMs, status }: Words): ProviderError.Reason => {
  const http = { _tag: status === 429 ? "Overloaded" : status < 500 ? "InvalidRequest" : "ServerError" }
  const facts = defined({ ...(failures[error] ?? http), detail, status })
  const waiting = retryAfterMs === undefined ? {} : { retryAfter: Duration.millis(retryAfterMs) }
  return Schema.decodeUnknownSync(ProviderError.Reason)({ ...facts, ...waiting })
}

/** The tools of a scenario. */
export const toolsOf = (stage: Stage): ReadonlyArray<ScriptedTool> =>
  (stage.input.tools ?? []).map((tool: Words) => {
    const { description = tool.name, executionMode, name, prepareArguments, timeoutMs: timeout } = tool
    const { parameters = { type: "object", properties: {} } } = tool
    return Tool.fromJsonSchema({
      ...defined({ name, description, parameters, executionMode, timeout }),
      ...(prepareArguments && { prepareArguments: (raw: Words) => stage.prepare(prepareArguments, raw) }),
      execute: (params: Words) => execute(stage, tool, params)
    })
  })
type ScriptedTool = Tool.Tool<string, Schema.Json, unknown, unknown, Tool.ToolContext | Scope.Scope>

const execute = Effect.fnUntraced(function* (stage: Stage, tool: Words, params: Words) {
  const { progress, toolCallId } = yield* Tool.ToolContext
  const show = ({ details, text }: Words) => progress(Tool.output(text, defined({ details })))
  const act = yield* stage.execute(tool, toolCallId, params, show)
  if (act.echoArgs === true) return Tool.output(JSON.stringify(params), { details: { args: params } })
  if ("returnsValue" in act) return act.returnsValue
  const { content, text = `${tool.name} ok`, ...rest } = { details: {}, ...act.result }
  return Tool.output(blocksOf(content ?? text), rest)
})

const constructors: Words = Hook

/** The hooks of a scenario, and the polls of the stateless loop. */
export const hooksOf = (stage: Stage): ReadonlyArray<Hook.Hook<Error, never>> => {
  const poll = (point: string) => () => Effect.map(stage.poll(point), (words) => messagesOf(words, stage))
  const polls = [Hook.steering(poll("steering")), Hook.followUp(poll("followUp"))]
  return [
    ...(stage.input.api === "loop" ? polls : []),
    ...stage.hooksAt().map(([point, hook]) => constructors[toLibrary(point)](hookOf(stage, point, hook)))
  ]
}

const hookOf = (stage: Stage, point: string, hook: Words) => (input: Words) => {
  const counts = renamed(input, (key, value) => [key, Array.isArray(value) ? value.length : undefined])
  const facts = { args: input.params, isError: input.isError, stopReason: input.message?.stopReason }
  const stateMessages = stage.session.snapshot().messages
  const asked = stage.ask(point, hook, input.call, { ...counts, ...facts, stateMessages })
  return Effect.map(asked, (said) => opinionOf(point, said, input, stage))
}

/** What a hook said, in the library's words. */
const opinionOf = (point: string, said: Words, { messages }: Words, stage: Stage): Words => {
  if (typeof said !== "object") return said
  const last = (count: number = messages.length) => messages.slice(messages.length - count)
  if (point === "transformContext")
    return [...last(said.keepLast), ...messagesOf(said.append && [said.append], stage)]
  if (point === "convertToLlm") return messages.flatMap((message: Words) => converted(message, said))
  return renamed(said, (key, value) => {
    if (key === "modified") return [key, opinionOf(point, value, { messages }, stage)]
    if (key === "messages") return [key, messagesOf(value, stage)]
    if (key === "contextKeepLast") return ["messages", last(value)]
    return [toLibrary(key), key === "content" ? blocksOf(value) : value]
  })
}

const converted = (
  message: Words,
  { dropRoles = [], mapRole = {} }: Words
): ReadonlyArray<Message.Message> => {
  if (dropRoles.includes(message.kind ?? message.role)) return []
  if (message.role !== "custom") return [message]
  return mapRole[message.kind] === "user" ? [Message.user(message.data.text)] : []
}
