/**
 * Plays a script through the loop or an agent, and keeps what was said, asked and left.
 */
import { Array as Arr, Cause, Effect, Exit, Latch, Layer, Option, Queue, Schema, Stream } from "effect"
import type { Provider, Run } from "effect-agent"
import {
  Agent,
  AgentEvent,
  Hook,
  HookManager,
  Loop,
  Message,
  RunOptions,
  Tool,
  ToolRegistry
} from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

export interface Setup {
  readonly tools?: ReadonlyArray<Tool.Runnable>
  readonly hooks?: ReadonlyArray<Hook.Runnable>
  readonly options?: Partial<RunOptions.RunOptions>
  readonly messages?: ReadonlyArray<Message.Message>
  readonly prompt?: Message.Input
  /** References the run should see, such as a context manager. */
  readonly layer?: Layer.Layer<never>
  /** A decorator around the scripted provider. */
  readonly around?: (inner: Layer.Layer<Provider.Provider>) => Layer.Layer<Provider.Provider>
}

/** Runs the stateless loop to its end. */
export const play = Effect.fnUntraced(function* (script: ScriptedProvider.Script, setup: Setup = {}) {
  const provider = yield* ScriptedProvider.make(script)
  const events: Array<AgentEvent.AgentEvent> = []
  const exit = yield* Loop.stream(
    setup.prompt ?? "hi",
    { messages: setup.messages ?? [] },
    { model: "m", ...setup.options }
  ).pipe(
    Stream.runForEach((event) => Effect.sync(() => events.push(event))),
    Effect.provide([
      (setup.around ?? ((inner) => inner))(provider.layer),
      ToolRegistry.layer(...(setup.tools ?? [])),
      HookManager.layer(...(setup.hooks ?? [])),
      setup.layer ?? Layer.empty
    ]),
    Effect.exit
  )
  return {
    events,
    exit,
    requests: yield* provider.requests,
    view: events.reduce(AgentEvent.fold, AgentEvent.initial(setup.messages ?? []))
  }
})

type Tools = ReadonlyArray<Tool.Runnable>
type Hooks = ReadonlyArray<Hook.Runnable>

/** An agent on a script, and every event of it, as a subscriber hears them. */
export const agent = Effect.fnUntraced(function* (
  script: ScriptedProvider.Script,
  options: Partial<Agent.AgentOptions<Tools, Hooks>> = {}
) {
  const provider = yield* ScriptedProvider.make(script)
  const events: Array<AgentEvent.AgentEvent> = []
  const made = yield* Agent.make({ model: "m", ...options }).pipe(Effect.provide(provider.layer))
  yield* made.subscribe((event) => Effect.sync(() => events.push(event)))
  return { agent: made, events, requests: provider.requests }
})

/** A hook of any point whose function returns this, whatever its types say. */
export const hookAt = (point: Hook.Point, run: () => unknown): Hook.Runnable =>
  Object.assign(
    Hook.beforeModel(() => Effect.void),
    { point, run }
  )

export const ofTag = <const T extends AgentEvent.AgentEvent["_tag"]>(
  events: ReadonlyArray<AgentEvent.AgentEvent>,
  tag: T
) => events.filter((event): event is AgentEvent.OfTag<T> => event._tag === tag)

export const tags = (events: ReadonlyArray<AgentEvent.AgentEvent>) => events.map(({ _tag }) => _tag)

export const outcomes = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  ofTag(events, "ToolExecutionEnd").map(({ outcome }) => outcome)

export const status = (events: ReadonlyArray<AgentEvent.AgentEvent>) => ofTag(events, "RunEnd")[0]?.status

export const texts = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.textOf)

export const toolResults = (messages: ReadonlyArray<Message.Message>) =>
  messages.filter((message) => message.role === "toolResult")

/** What the model was told its tools said. */
export const resultTexts = (messages: ReadonlyArray<Message.Message> = []) => texts(toolResults(messages))

/** The failure of a run that failed typed. */
export const failureOf = <A, E>(exit: Exit.Exit<A, E>): Extract<E, Run.RunFailed> | undefined =>
  Exit.isFailure(exit)
    ? Option.getOrUndefined(
        Option.filter(Cause.findErrorOption(exit.cause), (error): error is Extract<E, Run.RunFailed> =>
          isRunFailed(error)
        )
      )
    : undefined

const isRunFailed = (error: unknown) =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "RunFailed"

export const resultOf = <E>(exit: Exit.Exit<Run.RunResult, E>): Run.RunResult | undefined =>
  Exit.isSuccess(exit) ? exit.value : undefined

/** The first reason of a failed run. */
export const reasonOf = <A, E>(exit: Exit.Exit<A, E>) => failureOf(exit)?.reason

export const say = (name: string, result: unknown = name) =>
  Tool.make({ name, description: `Says ${name}.`, execute: () => Effect.succeed(result) })

/** Gives its params back. */
export const echo = Tool.make({
  name: "echo",
  description: "Gives back what it is told.",
  params: Schema.Struct({ n: Schema.Finite }),
  execute: ({ n }) => Effect.succeed(n)
})

export const failing = (name: string, failure: unknown = "not today") =>
  Tool.make({ name, description: "Fails.", execute: () => Effect.fail(failure) })

/** A tool that takes as long as its caller says. `begun` waits for the next call of it to begin. */
export const sleeper = Effect.fnUntraced(function* (
  options: Partial<Pick<Tool.Runnable, "name" | "timeout" | "executionMode">> = {}
) {
  const log: Array<string> = []
  const began = yield* Queue.unbounded<number>()
  const tool = Tool.make({
    name: "sleep",
    description: "Sleeps.",
    params: Schema.Struct({ ms: Schema.Finite }),
    ...options,
    execute: ({ ms }) =>
      Effect.gen(function* () {
        log.push(`start ${ms}`)
        yield* Queue.offer(began, ms)
        yield* Effect.sleep(ms)
        log.push(`end ${ms}`)
        return `slept ${ms}`
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => log.push(`interrupted ${ms}`))))
  })
  return { tool, log, begun: Queue.take(began) }
})

/** A tool that says when it began, and goes on when it is let go. */
export const gated = Effect.gen(function* () {
  const began = yield* Latch.make(false)
  const go = yield* Latch.make(false)
  const tool = Tool.make({
    name: "gated",
    description: "Waits to be let go.",
    execute: () => Effect.andThen(began.open, Effect.as(go.await, "went"))
  })
  return { began, go, tool }
})

/** A tool that ignores its interruption. */
export const deaf = Effect.gen(function* () {
  const began = yield* Latch.make(false)
  const tool = Tool.make({
    name: "deaf",
    description: "Never ends, and does not listen.",
    execute: () => Effect.andThen(began.open, Effect.uninterruptible(Effect.never))
  })
  return { began, tool }
})

/** Lets other fibers run for a while, by no clock. */
export const settle = (times = 50) => Effect.repeat(Effect.yieldNow, { times })

export const range = (length: number) => Arr.makeBy(length, (index) => index)
