/**
 * What a scenario puts on the stage: its messages, model, tools and hooks as values of the library.
 */
import {
  Duration,
  Effect,
  Fiber,
  Layer,
  Option,
  Predicate,
  Redacted,
  Schedule,
  Schema,
  type Scope,
  Stream
} from "effect"
import {
  ContextManager,
  Credentials,
  Hook,
  Message,
  Provider,
  ProviderError,
  RunOptions,
  Tool
} from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import type { Recording, Words } from "./goldenProjection.ts"

export interface Stage {
  readonly input: Words
  readonly recording: Recording
  /** What the application calls its custom messages, by id. */
  readonly roles: Map<string, string>
  /** Issues the ops that are due at this place. */
  readonly fire: (place: object) => Effect.Effect<void>
  readonly stateMessages: () => number | undefined
}

const messageOf = (words: Words, { roles }: Pick<Stage, "roles">): Message.Message => {
  if (typeof words === "string") return Message.user(words)
  const { content, role, text, toolCallId: id, toolName: name, ...fields } = words
  if (role === "user") return Message.user(blocksOf(content))
  if (role === "assistant") return Message.assistant(blocksOf(content), fields)
  if (role === "toolResult") return Message.toolResult({ id, name }, blocksOf(content), fields)
  const message = Message.custom(role, { text })
  roles.set(message.id, role)
  return message
}

export const messagesOf = (words: Words, stage: Pick<Stage, "roles">): ReadonlyArray<Message.Message> =>
  (words ?? []).map((message: Words) => messageOf(message, stage))

/** What a prompt, a steering message or a follow-up says. */
export const promptOf = ({ images = [], message, messages, text }: Words, stage: Stage): Message.Input => {
  if (messages !== undefined) return messagesOf(messages, stage)
  if (message !== undefined) return messageOf(message, stage)
  const shown = images.map((image: Words) => Message.image(image.data, image.mimeType))
  return Message.user([Message.text(text), ...shown])
}

const blocksOf = (content: Words): Words =>
  typeof content === "string"
    ? [Message.text(content)]
    : content.map((block: Words) => {
        const { arguments: params = {}, signature: opaque, thinking, ...rest } = block
        if (block.type === "image") return Message.image(block.data, block.mimeType)
        if (block.type === "thinking") return defined({ ...rest, text: thinking, opaque })
        return block.type === "toolCall" ? { ...rest, params, rawArguments: JSON.stringify(params) } : block
      })

/** Without the fields that are undefined. */
const defined = (fields: object): Words => JSON.parse(JSON.stringify(fields))

export const optionsOf = ({ activeTools, config = {}, initial = {} }: Words): RunOptions.RunOptions => {
  const { hookOptions = {}, limits = {}, sessionId, thinkingBudgets, toolTimeoutMs } = config
  const { model = "scripted-model", systemPrompt, thinkingLevel = "off" } = initial
  return Schema.decodeUnknownSync(RunOptions.RunOptions)(
    defined({
      ...{ ...config, activeTools, model, system: systemPrompt, toolTimeout: toolTimeoutMs },
      modelOptions: { thinkingLevel, thinkingBudgets, sessionId },
      toolConcurrency: limits.toolConcurrency,
      limits: { ...limits, executionTime: limits.executionTimeMs },
      hookFailureMode: hookOptions.failureMode,
      hookTimeout: hookOptions.timeoutMs,
      approvalTimeout: hookOptions.approvalTimeoutMs
    })
  )
}

/** The provider, the keys and the window of a scenario. */
export const servicesOf = (stage: Stage) => {
  const { hooks = {}, config: { limits = {}, retry } = {} } = stage.input
  const maxMessages = limits.maxInputMessages
  const keys: ReadonlyArray<Ask> = (hooks.getApiKey ?? []).map((hook: Words) => asked(stage, "getApiKey", hook))
  const schedule = Schedule.exponential(retry?.baseDelayMs ?? 0).pipe(
    Schedule.setInputType<ProviderError.ProviderError>(),
    Schedule.while(({ input }) => input.isRetryable),
    Schedule.upTo({ times: (retry?.maxAttempts ?? 1) - 1 })
  )
  const provider = Layer.effect(Provider.Provider, providerOf(stage))
  return Layer.mergeAll(
    retry === undefined ? provider : Retry.layer({ schedule })(provider),
    maxMessages === undefined ? Layer.empty : ContextManager.slidingWindow({ maxMessages }),
    Credentials.layer((provider) =>
      Effect.forEach(keys, (ask) => ask({})).pipe(
        Effect.map((said) =>
          Option.map(Option.fromNullishOr(said.find(Predicate.isString)), (key) => Redacted.make(key))
        ),
        Effect.mapError(
          ({ message: detail }) =>
            new ProviderError.ProviderError({
              provider,
              reason: new ProviderError.Unauthenticated({ detail })
            })
        )
      )
    )
  )
}

/** The scripted provider: asks for a key, then counts the call and answers it. */
const providerOf = Effect.fnUntraced(function* ({ fire, input, recording }: Stage) {
  const turns = input.model.map((turn: Words, index: number) =>
    turnOf(turn, (step) => fire({ request: index + 1, step }))
  )
  const exhausted = () =>
    ScriptedProvider.fail(new ProviderError.InvalidRequest({ detail: "No turn is left" }))
  const { provider } = yield* ScriptedProvider.make(turns, { exhausted })
  const ask = Effect.fnUntraced(function* (request: Provider.ModelRequest) {
    const { apiKey } = yield* Credentials.Credentials
    const key = Option.map(yield* apiKey(provider.id), Redacted.value)
    const count = recording.requests.push({ request, apiKey: Option.getOrUndefined(key) })
    recording.order.push(`model:request:${count}`)
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

const reasonOf = ({ error, message = "", retryAfterMs, status }: Words): ProviderError.Reason => {
  const facts = { detail: message, ...(status === undefined ? {} : { status }) }
  const waiting = {
    ...facts,
    ...(retryAfterMs === undefined ? {} : { retryAfter: Duration.millis(retryAfterMs) })
  }
  if (error === "auth") return new ProviderError.Unauthenticated(facts)
  if (error === "rateLimit") return new ProviderError.RateLimited(waiting)
  if (error === "overflow") return new ProviderError.ContextOverflow(facts)
  if (error === "transport") return new ProviderError.Transport({ ...facts, kind: "reset" })
  if (error === "truncated") return new ProviderError.StreamTruncated(facts)
  if (error === "protocol") return new ProviderError.Protocol({ ...facts, kind: "badJson" })
  if (status === 429) return new ProviderError.Overloaded(waiting)
  return status < 500 ? new ProviderError.InvalidRequest(facts) : new ProviderError.ServerError(waiting)
}

type ScenarioTool = Tool.Tool<string, Schema.Json, unknown, unknown, Tool.ToolContext | Scope.Scope>
export const toolsOf = (stage: Stage): ReadonlyArray<ScenarioTool> =>
  (stage.input.tools ?? []).map((tool: Words) => {
    const { description = tool.name, executionMode, name, prepareArguments, timeoutMs: timeout } = tool
    const { parameters = { type: "object", properties: {} } } = tool
    const rounds = new Map<string, number>()
    return Tool.fromJsonSchema({
      ...defined({ name, description, parameters, executionMode, timeout }),
      ...(prepareArguments && { prepareArguments: (raw: Words) => prepared(raw, prepareArguments) }),
      execute: (params: Words) => execute(stage, tool, params, rounds)
    })
  })

const prepared = (raw: Words, { rename = {}, throws }: Words): Words => {
  if (throws !== undefined) throw new Error(throws)
  return renamed(raw, (key, value) => [rename[key] ?? key, value])
}

const renamed = (words: Words, rename: (key: string, value: Words) => readonly [string, Words]): Words =>
  Object.fromEntries(Object.entries<Words>(words).map(([key, value]) => rename(key, value)))

const execute = Effect.fnUntraced(function* (
  { fire, recording }: Stage,
  tool: Words,
  params: Words,
  rounds: Map<string, number>
) {
  const { progress, toolCallId } = yield* Tool.ToolContext
  const round = rounds.get(toolCallId) ?? 0
  rounds.set(toolCallId, round + 1)
  const given = { ...tool.behaviour, ...tool.perCall?.[toolCallId] }
  const act = { ...given, ...(given.attempts?.[round] ?? given.attempts?.at(-1)) }
  recording.executions.push({ toolCallId, toolName: tool.name, args: structuredClone(params) })
  recording.order.push(`tool:execute:${toolCallId}`)
  yield* Effect.acquireRelease(running(recording, 1), () => running(recording, -1))
  yield* fire({ tool: toolCallId })

  const show = ({ details, text }: Words) => progress(Tool.output(text, defined({ details })))
  for (const update of act.updates ?? []) {
    if (update.afterMs !== undefined) yield* Effect.sleep(update.afterMs)
    yield* show(update)
  }
  if (act.lateUpdateMs !== undefined) {
    yield* Effect.forkDetach(Effect.delay(show({ text: "late" }), act.lateUpdateMs))
  }
  const wait = act.never === true ? Effect.never : Effect.sleep(act.delayMs ?? 0)
  yield* act.ignoresAbort === true ? Effect.flatMap(Effect.forkDetach(wait), Fiber.join) : wait

  Object.assign(params, act.mutateArgs)
  if (act.throws !== undefined) return yield* Effect.fail(new Error(act.throws))
  if ("throwsValue" in act) return yield* Effect.fail(act.throwsValue)
  if (act.echoArgs === true) return Tool.output(JSON.stringify(params), { details: { args: params } })
  if ("returnsValue" in act) return act.returnsValue
  const { content, text = `${tool.name} ok`, ...rest } = { details: {}, ...act.result }
  return Tool.output(blocksOf(content ?? text), rest)
})

const running = (recording: Recording, change: number) =>
  Effect.sync(() => {
    recording.running.now += change
    recording.running.most = Math.max(recording.running.most, recording.running.now)
  })

/** The library's words for those of the scenarios, where they differ. */
const libraryWords: Readonly<Record<string, string>> = {
  beforeLlm: "beforeModel",
  afterLlm: "afterModel",
  transformContext: "transformMessages",
  convertToLlm: "toModelMessages",
  args: "params",
  mockResult: "result",
  systemPrompt: "system"
}
const translate = (word: string): string => libraryWords[word] ?? word
const constructors: Words = Hook

/** The hooks of a scenario, and the polls of the stateless loop. */
export const hooksOf = (stage: Stage): ReadonlyArray<Hook.Hook<Error, never>> => {
  const { convertToLlm, getApiKey: _, transformContext, ...listed } = stage.input.hooks ?? {}
  const single = (words: Words) =>
    words === undefined ? [] : [{ always: { throws: words.throws, return: words } }]
  const hooks = { ...listed, transformContext: single(transformContext), convertToLlm: single(convertToLlm) }
  const { followUp = [], steering = [] } = stage.input.queues ?? {}
  return [
    Hook.steering(pollOf(stage, "steering", [...steering])),
    Hook.followUp(pollOf(stage, "followUp", [...followUp])),
    ...Object.entries<Words>(hooks).flatMap(([point, all]) =>
      all.map((hook: Words) => constructors[translate(point)](hookOf(stage, point, hook)))
    )
  ]
}

const pollOf =
  ({ input, recording, roles }: Stage, point: string, batches: Array<Words>) =>
  () =>
    Effect.sync((): ReadonlyArray<Message.Message> => {
      if (input.api === "loop") recording.order.push(`poll:${point}`)
      return messagesOf(batches.shift(), { roles })
    })

const hookOf = (stage: Stage, point: string, hook: Words) => {
  const ask = asked(stage, point, hook)
  return (input: Words) => Effect.map(ask(input), (said) => opinionOf(point, said, input, stage))
}

/** Invokes one hook of the scenario; keys are asked for the same way. */
type Ask = ReturnType<typeof asked>
const asked = ({ fire, recording, stateMessages }: Stage, point: string, hook: Words) => {
  const actions = [...(hook.calls ?? [])]
  return Effect.fnUntraced(function* ({
    call,
    isError,
    message,
    messages,
    newMessages,
    params,
    toolResults
  }: Words) {
    const of = { toolCallId: call?.id, toolName: call?.name }
    const counts = {
      messages: messages?.length,
      toolResults: toolResults?.length,
      newMessages: newMessages?.length
    }
    const facts = { args: params, isError, stopReason: message?.stopReason, stateMessages: stateMessages() }
    recording.hooks.push({ point, id: hook.id, ...of, ...facts, ...counts })
    const label = `hook:${point}${hook.id === undefined ? "" : `.${hook.id}`}`
    recording.order.push(call === undefined ? label : `${label}:${call.id}`)
    const fits = ({ match = {} }: Words) =>
      Object.entries(match).every(([key, value]) => value === (key === "toolName" ? call?.name : call?.id))
    const action = actions.shift() ?? hook.rules?.find(fits) ?? hook.always ?? {}
    yield* fire({ hook: point })
    if (action.never === true) yield* Effect.never
    if (action.delayMs !== undefined) yield* Effect.sleep(action.delayMs)
    if (action.throws !== undefined) return yield* Effect.fail(new Error(action.throws))
    return action.return
  })
}

/** What a hook said, in the library's words. */
const opinionOf = (point: string, said: Words, { messages }: Words, stage: Stage): Words => {
  if (typeof said !== "object") return said
  if (point === "transformContext") {
    const kept = said.keepLast === undefined ? messages : messages.slice(messages.length - said.keepLast)
    return said.append === undefined ? kept : [...kept, messageOf(said.append, stage)]
  }
  if (point === "convertToLlm") return messages.flatMap((message: Words) => converted(message, said))
  return renamed(said, (key, value) => {
    if (key === "modified") return [key, opinionOf(point, value, { messages }, stage)]
    if (key === "messages") return [key, messagesOf(value, stage)]
    if (key === "contextKeepLast") return ["messages", messages.slice(messages.length - value)]
    return [translate(key), key === "content" ? blocksOf(value) : value]
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
