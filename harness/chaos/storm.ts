/**
 * Stops runs at each of their events and a moment later, in each way, while code of the application ignores interruption. The
 * laws of the events hold, and the run ends in time. `cancel` does this at random moments; here none is left out.
 */
import { Effect, Exit, Fiber, Logger, Schedule, Scope, Stream, Struct } from "effect"
import {
  Agent,
  type AgentEvent,
  Hook,
  type Message,
  ProviderError,
  type RunOptions,
  Tool
} from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as EventLaws from "../../test/laws/eventLaws.ts"
import { at, millis } from "./cancel.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { Random } from "./Random.ts"

export const storm: Chaos = {
  count: 10_000,
  unit: "stops",
  run: (options) => run(options).pipe(Effect.provide(Logger.layer([])))
}

/** Runs side by side: each disturbs the timing of the others. */
const concurrency = 16
/** Milliseconds from a stop to the end of the run, on a machine with much to do. On an idle one all are below 150. */
const slowest = 5_000

/** Takes a moment. Once it is interrupted it takes ten times as long as the engine waits for it. */
const busy = Effect.onInterrupt(Effect.sleep("5 millis"), () => Effect.sleep("1 second"))
/** Cannot be interrupted at all, for longer than the engine waits. */
const deaf = Effect.uninterruptible(Effect.sleep("250 millis"))

const tool = (name: string, work: Effect.Effect<unknown, never, Tool.ToolContext>) =>
  Tool.make({ name, description: "", execute: () => Effect.as(work, name) })

const tools = [
  tool("quick", Effect.void),
  tool(
    "progressing",
    Effect.flatMap(Tool.ToolContext, ({ progress }) => Effect.andThen(progress(Tool.output("half")), busy))
  ),
  tool("busy", busy),
  tool("deaf", deaf)
]

const busyHooks = [
  Hook.beforeExecution(() => busy),
  Hook.pauseCheck(() => busy),
  Hook.transformMessages(({ messages }) => Effect.as(busy, messages)),
  Hook.beforeModel(() => busy),
  Hook.afterModel(() => busy),
  Hook.beforeTool(() => busy),
  Hook.approveTool(() => Effect.as(busy, { approved: true })),
  Hook.afterTool(() => busy),
  Hook.prepareNextTurn(() => busy),
  Hook.shouldStopAfterTurn(() => Effect.as(busy, false)),
  Hook.steering(() => Effect.as(busy, [])),
  Hook.followUp(() => Effect.as(busy, []))
]

const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))
const done = ScriptedProvider.text(["It ", "is ", "done."])
const lost = new ProviderError.Transport({ kind: "reset", detail: "the connection was lost" })
const half = ScriptedProvider.turn(Step.text(["half "]), Step.sleep("1 millis"), Step.fail(lost))
const slow = ScriptedProvider.turn(Step.text(["It "]), Step.run(busy), Step.text("is done."))

interface Scenario {
  readonly script: ReadonlyArray<typeof done>
  readonly options?: Partial<RunOptions.RunOptions> & { readonly hooks?: ReadonlyArray<Hook.Runnable> }
  /** A second subscriber, beside the one that records. */
  readonly subscriber?: Effect.Effect<void>
  /** What happens besides at an event. */
  readonly also?: (agent: Agent.Agent, event: AgentEvent.AgentEvent) => Effect.Effect<unknown, unknown>
}

const scenarios: Readonly<Record<string, Scenario>> = {
  "an answer": { script: [done] },
  "tools side by side": { script: [calls("quick", "progressing", "busy"), calls("busy"), done] },
  "tools one by one": {
    script: [calls("quick", "progressing", "busy"), done],
    options: { toolExecution: "sequential" }
  },
  "a tool that ignores its interruption": { script: [calls("quick", "deaf"), done] },
  "a provider that ignores its interruption": { script: [slow, done] },
  "half an answer, asked again": { script: [half, calls("busy"), half, done] },
  "hooks at all points": { script: [calls("quick", "busy"), done], options: { hooks: busyHooks } },
  "a slow subscriber": {
    script: [calls("quick", "progressing"), done],
    subscriber: Effect.sleep("1 millis")
  },
  "a subscriber that ignores its interruption": {
    script: [calls("quick", "progressing"), done],
    subscriber: busy
  },
  "steering that skips tools": {
    script: [calls("quick", "progressing", "busy"), done, done],
    options: { toolExecution: "sequential", steeringPolicy: "skipRemaining" },
    also: (agent, { _tag }) => (_tag === "ToolInvoked" ? agent.steer("wait") : Effect.void)
  },
  "a pause": {
    script: [calls("quick"), done],
    also: (agent, { _tag }) => {
      if (_tag === "TurnStart") return agent.pause()
      return _tag === "RunPaused" ? Effect.forkDetach(Effect.delay(agent.resume(), "3 millis")) : Effect.void
    }
  },
  "a failing tool that ends the run": {
    script: [calls("quick", "unknown", "busy"), done],
    options: { toolFailureMode: "fail" }
  },
  "out of turns": {
    script: [calls("quick"), calls("quick"), done],
    options: { limits: { maxTurns: 2, onMaxTurns: "wrapUp" } }
  }
}

interface Running {
  readonly agent: Agent.Agent
  readonly caller: Fiber.Fiber<unknown, unknown>
  readonly close: Effect.Effect<void>
}

const beside = Effect.forkDetach({ startImmediately: true })

const ways = {
  cancel: ({ agent }) => agent.cancel("stop"),
  "cancel twice": ({ agent }) => Effect.andThen(agent.cancel("stop"), agent.cancel("again")),
  "interrupt the caller": ({ caller }) => beside(Fiber.interrupt(caller)),
  "leave the stream": ({ caller }) => beside(Fiber.interrupt(caller)),
  "close the agent": ({ close }) => beside(close)
} satisfies Record<string, (running: Running) => Effect.Effect<unknown>>

/** Where a run is stopped: while its event number `at`, from 1, is received, or milliseconds later. */
interface Stop {
  readonly way: keyof typeof ways
  readonly at: number
  readonly later: number
}

interface Played {
  readonly events: ReadonlyArray<AgentEvent.AgentEvent>
  readonly messages: ReadonlyArray<Message.Message>
  readonly stoppedAt: AgentEvent.AgentEvent | undefined
  /** Milliseconds from the stop to the end. `undefined` if the end came first. */
  readonly took: number | undefined
}

const play = (scenario: Scenario, stop: Stop): Effect.Effect<Played> => Effect.scoped(played(scenario, stop))

const played = Effect.fnUntraced(function* (
  { also, options, script, subscriber }: Scenario,
  { at, later, way }: Stop
) {
  const scope = yield* Scope.make()
  const agent = yield* Agent.make({ model: "any", tools, ...options }).pipe(
    Scope.provide(scope),
    Effect.provide(
      Retry.layer({ schedule: Schedule.recurs(2), retryTurn: true })(ScriptedProvider.layer(script))
    ),
    Effect.orDie
  )
  const events: Array<AgentEvent.AgentEvent> = []
  let stoppedAt: AgentEvent.AgentEvent | undefined
  let since: number | undefined
  let stop: Effect.Effect<unknown> = Effect.void
  const stopped = Effect.suspend(() => {
    since = performance.now()
    return stop
  })
  yield* agent.subscribe((event) =>
    Effect.suspend(() => {
      events.push(event)
      const others = also === undefined ? Effect.void : Effect.ignore(also(agent, event))
      if (events.length !== at) return others
      stoppedAt = event
      return Effect.andThen(others, later === 0 ? stopped : Effect.forkDetach(Effect.delay(stopped, later)))
    })
  )
  if (subscriber !== undefined) yield* agent.subscribe(() => subscriber)
  const work = way === "leave the stream" ? Stream.runDrain(agent.stream("begin")) : agent.prompt("begin")
  const caller = yield* Effect.forkDetach(work)
  stop = ways[way]({ agent, caller, close: Scope.close(scope, Exit.void) })
  yield* Fiber.await(caller)
  yield* agent.waitForIdle
  const took = since === undefined ? undefined : performance.now() - since
  const { messages } = yield* agent.state.get
  yield* Scope.close(scope, Exit.void)
  return { events, messages, stoppedAt, took }
})

const faultsOf = ({ events, messages, stoppedAt, took }: Played, { later }: Stop): ReadonlyArray<string> => {
  const ended = events.flatMap((event) => (event._tag === "MessageEnd" ? [event.message.id] : []))
  const last = events.at(-1)
  // The end of a run cannot be stopped.
  const isInTime = later === 0 && stoppedAt !== undefined && stoppedAt._tag !== "RunEnd"
  return [
    ...EventLaws.violations(events),
    ...(String(ended) === String(messages.map(({ id }) => id))
      ? []
      : ["the messages are not those of the events"]),
    ...(last?._tag === "RunEnd" ? [] : ["RunEnd is not the last event"]),
    ...(isInTime && last?._tag === "RunEnd" && last.status === "completed"
      ? [`completed although stopped at ${stoppedAt._tag}`]
      : []),
    ...(took !== undefined && took > slowest ? [`a stop took ${millis(took)}`] : [])
  ]
}

/** Each stop of each scenario; of many, `count` at random. */
const run = Effect.fnUntraced(function* ({ count, say, seed }: Options): Effect.fn.Return<Outcome> {
  const all: Array<readonly [name: string, scenario: Scenario, stop: Stop]> = []
  for (const [name, scenario] of Object.entries(scenarios)) {
    const { events } = yield* play(scenario, { way: "cancel", at: 0, later: 0 })
    say(`${name}: ${events.length} events`)
    for (let at = 1; at <= events.length; at++)
      for (const later of [0, 1, 3])
        for (const way of Struct.keys(ways)) all.push([name, scenario, { way, at, later }])
  }
  const random = new Random(seed)
  const chosen = all.length <= count ? all : all.filter(() => random.next() < count / all.length)
  const latencies: Array<number> = []
  const violations: Array<string> = []
  const one = ([name, scenario, stop]: (typeof all)[number]) =>
    Effect.map(play(scenario, stop), (played) => {
      if (played.took !== undefined) latencies.push(played.took)
      const where = `${name}, ${stop.way} at event ${stop.at} (${played.stoppedAt?._tag}), ${stop.later} ms later`
      violations.push(...faultsOf(played, stop).map((fault) => `${where}: ${fault}`))
    })
  yield* Effect.forEach(chosen, one, { concurrency, discard: true })
  latencies.sort((left, right) => left - right)
  return {
    figures: {
      stops: `${chosen.length} of ${all.length}`,
      "stop to end": `p50 ${millis(at(latencies, 0.5))}, p99 ${millis(at(latencies, 0.99))}, max ${millis(latencies.at(-1) ?? 0)}`
    },
    violations
  }
})
