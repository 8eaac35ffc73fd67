/**
 * The service that describes a call to the tool that runs it, and plain functions as the `execute` of a tool.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentEvent, ToolOutput } from "../AgentEvent.ts"
import { TaggedError } from "./errors.ts"
import * as FailureText from "./failureText.ts"
import type { File, Image } from "../Message.ts"

/**
 * The call that a tool runs for.
 *
 * **Details**
 *
 * Each call has one, so that it is never a requirement of the application.
 *
 * **Example** (Showing progress)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const copy = Tool.make({
 *   name: "copy",
 *   description: "Copies files.",
 *   execute: Effect.fnUntraced(function* () {
 *     const { progress, turn } = yield* Tool.ToolContext
 *     yield* progress(`half of turn ${turn}`)
 *     return "copied"
 *   })
 * })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [copy] })
 *   yield* agent.subscribe((event) => {
 *     if (event._tag === "ToolExecutionProgress") console.log(event.partial.content)
 *     return Effect.void
 *   })
 *   yield* agent.prompt("Copy the files")
 * }).pipe(Effect.scoped)
 *
 * const script = [ScriptedProvider.toolCall("copy", {}), ScriptedProvider.text("Done.")]
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script))))
 * // => [ { type: 'text', text: 'half of turn 1' } ]
 * ```
 *
 * **Example** (Sending a key with a payment)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-agent"
 * import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
 *
 * export const pay = Tool.make({
 *   name: "pay",
 *   description: "Pays an invoice.",
 *   effect: "idempotent",
 *   params: Schema.Struct({ invoice: Schema.String }),
 *   execute: Effect.fnUntraced(
 *     function* ({ invoice }) {
 *       const { idempotencyKey } = yield* Tool.ToolContext
 *       const client = yield* HttpClient.HttpClient
 *       yield* client.execute(
 *         HttpClientRequest.post(`https://bank.example/payments/${invoice}`).pipe(
 *           HttpClientRequest.setHeader("Idempotency-Key", idempotencyKey)
 *         )
 *       )
 *       return "paid"
 *     },
 *     Effect.provide(FetchHttpClient.layer)
 *   )
 * })
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export class ToolContext extends Context.Service<
  ToolContext,
  {
    /** Id of the call, as the provider made it. */
    readonly toolCallId: string
    /**
     * Key of the call for a service that does one key once, such as one that takes an `Idempotency-Key`. A call that runs again has the
     * same key: by a hook, or when its run continues after a restart. It is unique, and made of the characters of a part of a URL.
     */
    readonly idempotencyKey: string
    /** Id of the run. */
    readonly runId: string
    /** Tool calls that the run is inside of, outermost first. Default: none, since no tool started the run. */
    readonly path?: AgentEvent["path"]
    /** Number of the turn, from 1. */
    readonly turn: number
    /** The answer of a person, for a tool with a `question`. Default: none. */
    readonly answer?: Schema.Json
    /**
     * Asks a person in the middle of the call, and succeeds with the answer, which matches the schema. No time limit runs meanwhile.
     * Succeeds with `Option.none()` where the policy denies or defers questions, and where the person does not answer. Default: the
     * call has no person to ask.
     */
    readonly ask?: (question: {
      readonly question: string
      readonly schema: Schema.Json
    }) => Effect.Effect<Option.Option<Schema.Json>>
    /**
     * Returns why the model cannot take an image or a file, in words that end a sentence; `undefined` if it can. Default: it
     * is not known, and a note stands in its place where the model cannot.
     */
    readonly refuses?: (media: Image | File) => string | undefined
    /**
     * Has the call continue in the background: the model reads a handle and the note as its result, and the end in a later message. Does
     * nothing once the call is there. Default: `blocking` of the tool is `true`, and the turn waits for the call.
     */
    readonly background?: (note?: string) => Effect.Effect<void>
    /**
     * Emits a `ToolExecutionProgress` event with a text or a `Tool.output`. The model reads only the final result. Does nothing once the
     * call has ended.
     */
    readonly progress: (partial: string | ToolOutput) => Effect.Effect<void>
  }
>()("effect-agent/ToolContext") {}

// ───────────────────────── Plain functions

/**
 * The call that a plain function runs for.
 *
 * @since 0.1.0
 * @category models
 */
export interface PromiseContext {
  /** Id of the call, as the provider made it. */
  readonly toolCallId: string
  /** Id of the run. */
  readonly runId: string
  /** Number of the turn, from 1. */
  readonly turn: number
  /** Aborts when the call is cancelled or times out. */
  readonly signal: AbortSignal
  /**
   * Has the call continue in the background: the model reads a handle and the note as its result, and the end in a later message. Does
   * nothing if `blocking` of the tool is `true`, as by default.
   */
  readonly background: (note?: string) => void
  /** Emits a `ToolExecutionProgress` event. The model reads only the final result. Does nothing once the call has ended. */
  readonly progress: (partial: string | ToolOutput) => void
}

/**
 * The function of a tool threw, or its promise was rejected.
 *
 * @since 0.1.0
 * @category errors
 */
export class PromiseRejected extends TaggedError<PromiseRejected>()("PromiseRejected", {
  /** Text of what was thrown, for the model. */
  detail: Schema.String,
  /** The thrown value. */
  thrown: Schema.Defect()
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * Makes an `execute` that calls a plain function and waits for its promise. Partial results are shown in their order, and
 * all of them before the call ends. Interruption aborts the signal and does not wait for the promise. `name` is the name of
 * the tool.
 */
export const execution = <Params, Success>(
  name: string,
  execute: (params: Params, context: PromiseContext) => PromiseLike<Success> | Success
) =>
  Effect.fnUntraced(function* (params: Params): Effect.fn.Return<Success, PromiseRejected, ToolContext> {
    const context = yield* ToolContext
    const controller = new AbortController()
    const steps: Array<Effect.Effect<void>> = []
    let ended: Exit.Exit<Success, PromiseRejected> | undefined
    const news = Latch.makeUnsafe(false)
    const step = (taken: Effect.Effect<void>): void => {
      if (ended !== undefined || controller.signal.aborted) return
      steps.push(taken)
      news.openUnsafe()
    }
    const given: PromiseContext = {
      ...context,
      signal: controller.signal,
      progress: (partial) => step(context.progress(partial)),
      background: (note) => step(context.background?.(note) ?? Effect.void)
    }
    const call = async () => execute(params, given)
    void call()
      .then(Exit.succeed, (thrown) =>
        Exit.fail(new PromiseRejected({ detail: FailureText.of(thrown), thrown }))
      )
      .then((exit) => {
        ended = exit
        news.openUnsafe()
      })
    const next: Effect.Effect<Success, PromiseRejected> = Effect.suspend(() => {
      news.closeUnsafe()
      if (steps.length === 0) return ended ?? Effect.andThen(news.await, next)
      return Effect.andThen(Effect.all(steps.splice(0), { discard: true }), next)
    })
    return yield* Effect.onInterrupt(next, () => {
      controller.abort()
      return Effect.forkDetach(reportDeaf(name, () => ended !== undefined))
    })
  })

/** Logs a warning if the promise is still pending 100 ms after its signal was aborted. */
const reportDeaf = (name: string, isSettled: () => boolean): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() =>
      isSettled() ? Effect.void : Effect.logWarning(`Tool ${name} ignored its interruption`)
    ),
    "100 millis"
  )
