/**
 * One call of a plain function: told what it needs to know, and left when it is stopped.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { type Begin, goOn } from "./begin.ts"
import * as FailureText from "./failureText.ts"
import { ToolContext } from "./toolContext.ts"
import type { ToolOutput } from "../AgentEvent.ts"
import { output } from "./toolOutput.ts"

/** What a plain function is told of its call. */
export interface PromiseContext {
  readonly toolCallId: string
  readonly runId: string
  readonly turn: number
  /** Aborts when the call is cancelled or times out. */
  readonly signal: AbortSignal
  readonly progress: (partial: string | ToolOutput) => void
}

/** A plain function threw, or its promise was rejected. */
export class PromiseRejected extends Schema.TaggedError<PromiseRejected>()("PromiseRejected", {
  detail: Schema.String,
  thrown: Schema.Defect()
}) {
  override get message(): string {
    return this.detail
  }
}

const way = Symbol.for("effect-agent/PromiseCall")

type Way = (params: unknown, services: Context.Context<ToolContext>) => Begin<unknown, PromiseRejected>

/** The function as one that returns an Effect, and that can also be begun without a fiber. `name` is that of its tool. */
export const execution = <Params>(
  name: string,
  execute: (params: Params, context: PromiseContext) => PromiseLike<unknown> | unknown
): ((params: Params) => Effect.Effect<unknown, PromiseRejected, ToolContext>) => {
  const called = begin(name, execute)
  return Object.assign(
    (params: Params): Effect.Effect<unknown, PromiseRejected, ToolContext> =>
      Effect.contextWith((services: Context.Context<ToolContext>) =>
        Effect.callback((resume) => Effect.sync(called(params, services)(resume)))
      ),
    { [way]: called }
  )
}

/** How to begin what `execution` made, without a fiber; undefined for any other function. */
export const wayOf = (execute: object): Way | undefined => (hasWay(execute) ? execute[way] : undefined)

const hasWay = (execute: object): execute is { readonly [way]: Way } => way in execute

const begin =
  <Params>(
    name: string,
    execute: (params: Params, context: PromiseContext) => PromiseLike<unknown> | unknown
  ) =>
  (params: Params, services: Context.Context<ToolContext>): Begin<unknown, PromiseRejected> =>
  (tell) => {
    const context = Context.get(services, ToolContext)
    const aborting = new Aborting()
    const shown: Array<Fiber.Fiber<void>> = []
    let isSettled = false
    let isTold = false
    const end = (exit: Exit.Exit<unknown, PromiseRejected>) => {
      if (isTold) return
      isTold = true
      tell(exit)
    }
    const resolved = (value: unknown) => {
      isSettled = true
      if (shown.length === 0) end(Exit.succeed(value))
      else goOn(services, () => Effect.as(Fiber.awaitAll(shown), value), end)
    }
    const rejected = (thrown: unknown) => {
      isSettled = true
      const failure = () => new PromiseRejected({ detail: FailureText.of(thrown), thrown })
      goOn(services, () => Effect.fail(failure()), end)
    }
    const told: PromiseContext = {
      ...context,
      progress: (partial) => {
        const partly = context.progress(typeof partial === "string" ? output(partial) : partial)
        shown.push(Effect.runForkWith(services)(partly))
      },
      get signal() {
        return aborting.signal
      }
    }
    try {
      Promise.resolve(execute(params, told)).then(resolved, rejected)
    } catch (thrown) {
      rejected(thrown)
    }
    return () => {
      if (isTold) return
      aborting.abort()
      Effect.runForkWith(services)(reportDeaf(name, () => isSettled))
      end(Exit.interrupt())
    }
  }

/** An `AbortController`, made when somebody looks at its signal, as few functions do. */
class Aborting {
  private controller: AbortController | undefined
  private isAborted = false

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController()
      if (this.isAborted) this.controller.abort()
    }
    return this.controller.signal
  }

  abort(): void {
    this.isAborted = true
    this.controller?.abort()
  }
}

/** A promise cannot be stopped, only left: says so of one that goes on although its signal was aborted. */
const reportDeaf = (name: string, isSettled: () => boolean): Effect.Effect<void> =>
  Effect.delay(
    Effect.suspend(() =>
      isSettled() ? Effect.void : Effect.logWarning(`Tool ${name} ignored its interruption`)
    ),
    "100 millis"
  )
