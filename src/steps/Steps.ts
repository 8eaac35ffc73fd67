/**
 * The agent loop by steps: a conversation that names its next step, and that takes the answer of the model and the results of
 * tools from elsewhere.
 *
 * **When to use**
 *
 * Use it where another system calls the model or the tools: a queue, a browser, a workflow. `Loop` and `Agent` take the steps themselves.
 *
 * **Details**
 *
 * A {@link State} is data. `Schema.toCodecJson(Steps.State)` writes it as JSON, and the steps continue from what it reads. The
 * transcript is that of `Loop.run`. Hooks, approvals, the context manager, events and the other limits of a run do not apply.
 *
 * @since 0.2.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { type RunStatus, ToolOutput } from "../AgentEvent.ts"
import * as Continuation from "../internal/continuation.ts"
import * as Input from "../internal/invalidInput.ts"
import { table } from "../internal/limitTable.ts"
import { TaggedError } from "../internal/errors.ts"
import * as ToolOutcome from "../internal/toolOutcome.ts"
import * as ToolRun from "../internal/toolRun.ts"
import * as Output from "../internal/toolOutput.ts"
import * as Message from "../Message.ts"
import { parseArguments } from "../ModelEvent.ts"
import type { ModelRequest, ToolDefinition } from "../Provider.ts"
import * as RunOptions from "../RunOptions.ts"
import { ToolRegistry } from "../ToolRegistry.ts"
import * as Transcript from "../Transcript.ts"

/**
 * The options of a loop by steps: those of a run that apply to it.
 *
 * @category options
 * @since 0.2.0
 */
export const Options = Schema.Struct({
  ...Struct.pick(RunOptions.RunOptions.fields, [
    "model",
    "system",
    "modelOptions",
    "toolTimeout",
    "caseInsensitiveTools",
    "invalidJsonArguments"
  ]),
  /** The most answers since the last prompt. Default 50. */
  maxTurns: RunOptions.Limits.fields.maxTurns
})
export interface Options extends Schema.Schema.Type<typeof Options> {}

/**
 * A conversation between two steps.
 *
 * **Example** (Keeping a state as text)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Steps } from "effect-agent/steps"
 *
 * const Stored = Schema.fromJsonString(Schema.toCodecJson(Steps.State))
 *
 * const program = Effect.gen(function* () {
 *   const state = yield* Steps.start("Hello", { model: "any" })
 *   const text = yield* Schema.encodeEffect(Stored)(state)
 *   return Steps.next(yield* Schema.decodeEffect(Stored)(text))
 * })
 *
 * console.log((await Effect.runPromise(program))._tag) // => CallModel
 * ```
 *
 * @category models
 * @since 0.2.0
 */
export const State = Schema.Struct({
  /** The id of the loop, which tools read as the id of their run. */
  id: Schema.String,
  /** The transcript, oldest message first. */
  messages: Schema.Array(Message.Message),
  /** The options. */
  options: Options,
  /** The answers since the last prompt, without those that failed. */
  turns: Schema.Int,
  /** Whether each result of the last answer so far requests the end of the loop. Default `false`. */
  terminate: Schema.optionalKey(Schema.Boolean)
})
export interface State extends Schema.Schema.Type<typeof State> {}

/**
 * The step that a state needs next.
 *
 * **Details**
 *
 * - `CallModel`: hand in the answer to `request` with {@link answer}.
 * - `CallTools`: hand in the results of `calls`, those without a result, with {@link results}.
 * - `Done`: `status` is that of a run that ends so. {@link prompt} continues; after `"failed"` and `"cancelled"`, {@link answer} does too.
 *
 * @category models
 * @since 0.2.0
 */
export type Next =
  | { readonly _tag: "CallModel"; readonly request: ModelRequest }
  | { readonly _tag: "CallTools"; readonly calls: ReadonlyArray<Message.ToolCall> }
  | {
      readonly _tag: "Done"
      readonly status: Extract<RunStatus, "completed" | "terminated" | "incomplete" | "cancelled" | "failed">
    }

/**
 * The result of a tool call.
 *
 * @category models
 * @since 0.2.0
 */
export interface CallResult extends ToolOutput {
  /** The id of the call. */
  readonly toolCallId: string
  /** The way in which the call ended. Default: `"error"` with `isError`, else `"success"`. */
  readonly outcome?: Message.ToolOutcome
}

/**
 * A state does not take this step now.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidStep extends TaggedError<InvalidStep>()("InvalidStep", {
  /** The reason in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

const invalid = (detail: string) => Effect.fail(new InvalidStep({ detail }))

/**
 * Starts a loop with a prompt.
 *
 * **Details**
 *
 * `messages` is the transcript before the prompt. Default: empty.
 *
 * **Example** (Taking the steps of one answer)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message } from "effect-agent"
 * import { Steps } from "effect-agent/steps"
 *
 * const program = Effect.gen(function* () {
 *   const started = yield* Steps.start("Hello", { model: "any" })
 *   console.log(Steps.next(started)._tag)
 *   const answered = yield* Steps.answer(started, Message.assistant("Hi."))
 *   console.log(Steps.next(answered))
 * })
 *
 * await Effect.runPromise(program)
 * // => CallModel
 * // => { _tag: 'Done', status: 'completed' }
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const start = (
  input: Message.Input,
  options: Options,
  messages: ReadonlyArray<Message.Message> = []
): Effect.Effect<State, Input.InvalidInput> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const read = yield* Effect.fromResult(readOptions(options))
    const before = yield* Effect.fromResult(Input.messages(messages))
    const prompts = yield* Effect.fromResult(Input.prompt(input, now))
    return { id: Message.makeId(), messages: [...before, ...prompts], options: read, turns: 0 }
  })

const readOptions = Input.reader(Options)

/**
 * Returns the step that a state needs next.
 *
 * **Details**
 *
 * The function is pure. `tools` are the tools that the model may call, such as `definitions` of a registry. Default: none.
 *
 * **Example** (Reading the request)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message } from "effect-agent"
 * import { Steps } from "effect-agent/steps"
 *
 * const program = Effect.map(Steps.start("Hello", { model: "any" }), (state) => {
 *   const next = Steps.next(state)
 *   return next._tag === "CallModel" ? next.request.messages.map(Message.textOf) : []
 * })
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Hello' ]
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const next = (
  { messages, options, terminate = false, turns }: State,
  tools: ReadonlyArray<ToolDefinition> = []
): Next => {
  const calls = Transcript.openCalls(messages)
  if (calls.length > 0) return { _tag: "CallTools", calls }
  const last = messages.at(-1)
  if (last !== undefined && Transcript.isFailed(last))
    return { _tag: "Done", status: isCancelled(last) ? "cancelled" : "failed" }
  if (!Continuation.isUnanswered(messages)) return { _tag: "Done", status: "completed" }
  if (terminate) return { _tag: "Done", status: "terminated" }
  if (turns >= (options.maxTurns ?? table.maxTurns.initial)) return { _tag: "Done", status: "incomplete" }
  const { model, modelOptions = {}, system } = options
  const parts = { model, tools, options: modelOptions, ...(system === undefined ? {} : { system }) }
  const read = Transcript.forModel(Transcript.repair(messages).messages)
  return { _tag: "CallModel", request: { ...parts, ...read } }
}

const isCancelled = (message: Message.Message): boolean =>
  message.role === "assistant" && message.stopReason === "aborted"

/**
 * Hands in the answer of the model.
 *
 * **Details**
 *
 * A call whose id another call of the answer has gets an id of its own, and one without `params` gets those of `rawArguments`. The calls
 * of an answer that was cut get their results at once, since their arguments may be incomplete. Fails with `InvalidStep` unless the next step is `CallModel`, or the last answer failed or was cancelled.
 *
 * **Example** (Refusing an answer to nothing)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message } from "effect-agent"
 * import { Steps } from "effect-agent/steps"
 *
 * const program = Effect.gen(function* () {
 *   const started = yield* Steps.start("Hello", { model: "any" })
 *   const answered = yield* Steps.answer(started, Message.assistant("Hi."))
 *   return yield* Effect.flip(Steps.answer(answered, Message.assistant("Hi again.")))
 * })
 *
 * console.log((await Effect.runPromise(program)).message)
 * // => Cannot take an answer: the loop is done (completed)
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const answer = (
  state: State,
  message: Message.Assistant
): Effect.Effect<State, InvalidStep | Input.InvalidInput> =>
  Effect.gen(function* () {
    yield* Effect.fromResult(Input.messages([message]))
    const step = next(state)
    if (step._tag === "CallTools")
      return yield* invalid(`Cannot take an answer: ${named(step.calls)} no result`)
    if (step._tag === "Done" && step.status !== "failed" && step.status !== "cancelled")
      return yield* invalid(`Cannot take an answer: the loop is done (${step.status})`)
    if (state.messages.some(({ id }) => id === message.id))
      return yield* invalid(`Cannot take an answer: the transcript has the message ${message.id}`)
    const { terminate: _, ...kept } = state
    const whole = withWholeCalls(message)
    const cut = Transcript.isFailed(whole) ? undefined : ToolOutcome.cut(whole.stopReason)
    const now = yield* Clock.currentTimeMillis
    const ends =
      cut === undefined ? [] : Message.toolCalls(whole).map((call) => ToolOutcome.result(call, cut, now))
    const turns = state.turns + (Transcript.isFailed(whole) ? 0 : 1)
    return { ...kept, turns, messages: [...state.messages, whole, ...ends] }
  })

/** Gives each call an id of its own, and the value of its arguments. */
const withWholeCalls = (message: Message.Assistant): Message.Assistant => {
  const ids = new Map<string, number>()
  const content = message.content.map((block) =>
    block.type === "toolCall" ? Message.withUniqueId(ids, withParams(block)) : block
  )
  return content.every((block, index) => block === message.content[index]) ? message : { ...message, content }
}

const withParams = (call: Message.ToolCall): Message.ToolCall => {
  const params = call.params ?? parseArguments(call.rawArguments)
  return params === undefined || params === call.params ? call : { ...call, params }
}

/**
 * Hands in results of tool calls, all at once or some of them.
 *
 * **Details**
 *
 * The transcript has them in the order of the calls. The loop is done with status `"terminated"` if each result of an answer has `terminate`.
 * Fails with `InvalidStep` for a result of a call that is not open, and for a value that is no result.
 *
 * **Example** (Handing in a result)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message } from "effect-agent"
 * import { Steps } from "effect-agent/steps"
 *
 * const call = { type: "toolCall", id: "call-1", name: "weather", rawArguments: "{}", params: {} } as const
 *
 * const program = Effect.gen(function* () {
 *   const started = yield* Steps.start("Do I need a coat?", { model: "any" })
 *   const called = yield* Steps.answer(started, Message.assistant([call]))
 *   const result = { toolCallId: "call-1", content: [Message.text("4 °C")] }
 *   const { messages } = yield* Steps.results(called, [result])
 *   return messages.map(({ role }) => role)
 * })
 *
 * console.log(await Effect.runPromise(program)) // => [ 'user', 'assistant', 'toolResult' ]
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const results = (state: State, ended: ReadonlyArray<CallResult>): Effect.Effect<State, InvalidStep> =>
  Effect.gen(function* () {
    if (ended.length === 0) return state
    const { messages, terminate: before = false, ...kept } = state
    const now = yield* Clock.currentTimeMillis
    const index = messages.findLastIndex(({ role }) => role === "assistant")
    const answer = messages[index]
    const calls = answer?.role === "assistant" ? Message.toolCalls(answer) : []
    const open = Transcript.openCalls(messages)
    const read = yield* Effect.mapError(
      Effect.fromResult(
        readResults(Array.isArray(ended) ? ended.map((one) => RunOptions.given(one, 1)) : ended)
      ),
      ({ message }) => new InvalidStep({ detail: `Cannot take a result: ${message}` })
    )
    const byCall = new Map(
      messages.slice(index + 1).flatMap((one) => (one.role === "toolResult" ? [[one.toolCallId, one]] : []))
    )
    for (const { outcome, toolCallId, ...output } of read) {
      const call = open.find(({ id }) => id === toolCallId)
      if (byCall.has(toolCallId))
        return yield* invalid(`Cannot take a result: the call ${toolCallId} has a result`)
      if (call === undefined) return yield* invalid(`Cannot take a result: no call ${toolCallId} is open`)
      const content = output.content.map(Output.bounded)
      const end = {
        outcome: outcome ?? (output.isError === true ? "error" : "success"),
        output: Output.plain(output)
      }
      byCall.set(toolCallId, ToolOutcome.result(call, end, now, content))
    }
    const isFirst = open.length === calls.length
    const terminate = (isFirst || before) && read.every((one) => one.terminate === true)
    return {
      ...kept,
      ...(terminate ? { terminate } : {}),
      messages: [...messages.slice(0, index + 1), ...calls.flatMap(({ id }) => byCall.get(id) ?? [])]
    }
  })

/** Results come from elsewhere: types do not guard them. */
const readResults = Schema.decodeUnknownResult(
  Schema.Array(
    Schema.Struct({
      ...ToolOutput.fields,
      toolCallId: Schema.String,
      outcome: Schema.optionalKey(Message.ToolOutcome)
    })
  )
)

/**
 * Adds a prompt, and continues a loop that is done.
 *
 * **Details**
 *
 * Fails with `InvalidStep` while calls have no result.
 *
 * **Example** (Continuing a conversation)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message } from "effect-agent"
 * import { Steps } from "effect-agent/steps"
 *
 * const program = Effect.gen(function* () {
 *   const started = yield* Steps.start("Hello", { model: "any" })
 *   const answered = yield* Steps.answer(started, Message.assistant("Hi."))
 *   return Steps.next(yield* Steps.prompt(answered, "How are you?"))
 * })
 *
 * console.log((await Effect.runPromise(program))._tag) // => CallModel
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const prompt = (
  state: State,
  input: Message.Input
): Effect.Effect<State, InvalidStep | Input.InvalidInput> =>
  Effect.gen(function* () {
    const prompts = yield* Effect.fromResult(Input.prompt(input, yield* Clock.currentTimeMillis))
    const step = next(state)
    if (step._tag === "CallTools")
      return yield* invalid(`Cannot take a prompt: ${named(step.calls)} no result`)
    const { terminate: _, ...kept } = state
    const turns = step._tag === "Done" ? 0 : state.turns
    return { ...kept, turns, messages: [...state.messages, ...prompts] }
  })

const named = (calls: ReadonlyArray<Message.ToolCall>): string =>
  `the ${calls.length === 1 ? "call" : "calls"} ${calls.map(({ id }) => id).join(", ")} ${calls.length === 1 ? "has" : "have"}`

/**
 * Runs one of the open calls with a tool of the registry, by the rules of a run.
 *
 * **Details**
 *
 * Never fails: a call of an unknown tool, with arguments that the tool does not take, or beyond its time limit has a result that
 * says so. A call that the vendor runs once it is approved counts as approved. The tool emits no progress.
 *
 * **Example** (Running a call)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Message, Tool, ToolRegistry } from "effect-agent"
 * import { Steps } from "effect-agent/steps"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 * const made = { type: "toolCall", id: "call-1", name: "ping", rawArguments: "{}", params: {} } as const
 *
 * const program = Effect.gen(function* () {
 *   const started = yield* Steps.start("Ping", { model: "any" })
 *   const called = yield* Steps.answer(started, Message.assistant([made]))
 *   const result = yield* Steps.call(called, made)
 *   return [result.outcome, Message.textOf(result)]
 * }).pipe(Effect.provide(ToolRegistry.layer(ping)))
 *
 * console.log(await Effect.runPromise(program)) // => [ 'success', 'pong' ]
 * ```
 *
 * @category running
 * @since 0.2.0
 */
export const call = Effect.fnUntraced(function* (
  { id, messages, options, turns }: State,
  call: Message.ToolCall
): Effect.fn.Return<CallResult, never, ToolRegistry> {
  const registry = yield* ToolRegistry
  const reading = {
    ...Struct.pick(options, ["caseInsensitiveTools", "invalidJsonArguments"]),
    ...(call.hosted === true ? { among: new Map([[call.name, ToolOutcome.hostedTool(call)]]) } : {})
  }
  const answered = messages.findLast(({ role }) => role === "assistant") ?? { id }
  const context = {
    toolCallId: call.id,
    idempotencyKey: ToolRun.idempotencyKey(answered, call),
    runId: id,
    turn: turns,
    progress: () => Effect.void
  }
  const outcome = yield* registry.prepare(call, reading).pipe(
    Effect.mapError(ToolOutcome.mistake),
    Effect.flatMap((prepared) => {
      const limit = prepared.tool.timeout ?? options.toolTimeout ?? ToolOutcome.defaultTimeout
      return registry.execute(prepared, context).pipe(
        Effect.map((done) => ToolOutcome.make(done.outcome, Output.plain(done, prepared.tool))),
        Effect.timeoutOrElse({
          duration: limit,
          orElse: () => Effect.succeed(ToolOutcome.timedOut(call, Duration.toMillis(limit), false))
        })
      )
    }),
    Effect.catch(Effect.succeed)
  )
  return { ...outcome.output, toolCallId: call.id, outcome: outcome.outcome }
})
