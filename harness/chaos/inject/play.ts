/**
 * Plays the session with one call that goes wrong, and looks at what came of it.
 */
import { NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit, Layer, Metric, Redacted, Schedule, Schema, Scope } from "effect"
import { Agent, AgentEvent, Message, Run, Transcript, Usage } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { Retry } from "effect-agent/resilience"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as EventLaws from "../../../test/laws/eventLaws.ts"
import { memory } from "../../../test/laws/playLaws.ts"
import { Fibers } from "../soak/gauges.ts"
import { Injector, planned, type Point } from "./Injector.ts"
import * as Left from "./left.ts"
import * as Session from "./session.ts"
import * as Valid from "./valid.ts"
import * as World from "./world.ts"

/** How the session is run: what is retried, and whether calls run side by side. */
export interface Manner {
  readonly retryTurn: boolean
  readonly toolExecution: "parallel" | "sequential"
}

export interface Played {
  /** What the point turned out to be; nothing if there were not so many calls. */
  readonly fired: string | undefined
  /** Calls of each world. */
  readonly counts: Injector["counts"]
  /** How the run ended. */
  readonly status: string
  readonly violations: ReadonlyArray<string>
}

/** Milliseconds. No run may take longer, and no end of one. */
const patience = 20_000
const budget = 450

export const play = (manner: Manner, point: Point | undefined): Effect.Effect<Played> => {
  const fibers = new Fibers()
  const injector = new Injector(point)
  return Effect.scoped(
    Effect.gen(function* () {
      const root = yield* folder
      const bodies = { open: 0 }
      const invalid: Array<string> = []
      const answer = (body: string) => {
        invalid.push(...Valid.sent(body).map((violation) => `sent: ${violation}`))
        return Session.answer(body)
      }
      const played = yield* session(manner, injector, root).pipe(
        Effect.provideService(Metric.FiberRuntimeMetrics, fibers.service),
        Effect.provide(Layer.provideMerge(World.layer(injector, answer, bodies), NodeServices.layer))
      )
      const held = yield* Left.held(root, () => ({ fibers: fibers.alive, bodies: bodies.open }))
      return { ...played, violations: [...played.violations, ...invalid, ...held] }
    })
  )
}

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync(join(tmpdir(), "effect-agent-inject-"))
    writeFileSync(join(root, "seed.txt"), "one\ntwo\n")
    mkdirSync(join(root, "folder"))
    return root
  }),
  (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
)

const session = Effect.fnUntraced(function* (manner: Manner, injector: Injector, root: string) {
  const scope = yield* Scope.make()
  const agent = yield* agentOf(manner, root).pipe(Scope.provide(scope))
  const events: Array<AgentEvent.AgentEvent> = []
  const asked: Array<string> = [Session.prompts.first, Session.prompts.last]
  yield* agent
    .subscribe((event) => Effect.andThen(note(events, event), queue(agent, events, asked)))
    .pipe(Scope.provide(scope))
  const first = yield* inTime(agent.prompt(Session.prompts.first))
  const idle = yield* inTime(agent.waitForIdle)
  injector.calm = true
  yield* injector.over.open
  const second = yield* inTime(agent.prompt(Session.prompts.last))
  const state = agent.state.getUnsafe()
  const queued = yield* agent.queues.sizes
  const closed = yield* inTime(Scope.close(scope, Exit.void))
  const violations = [
    ...[first, idle, second, closed].flatMap((exit, index) =>
      exit === "hangs" ? [`step ${index} hangs`] : []
    ),
    ...unplanned(first),
    ...(statusOf(second) === "completed" ? [] : [`the next prompt: ${statusOf(second)} ${told(second)}`]),
    ...(queued.followUp + queued.steering === 0 ? [] : ["messages are still queued"]),
    ...EventLaws.byRun(events).flatMap(EventLaws.violations),
    ...memory({ events, state }),
    ...answered(asked, state.messages),
    ...spending(first),
    ...Valid.violations(state.messages),
    ...Left.behind(root, events)
  ]
  return { fired: injector.fired, counts: injector.counts, status: statusOf(first), violations }
})

const agentOf = ({ retryTurn, toolExecution }: Manner, root: string) =>
  Agent.make({
    model: "m",
    tools: Session.tools(root),
    toolExecution,
    toolTimeout: "800 millis",
    limits: { executionTime: "8 seconds", maxTotalTokens: budget }
  }).pipe(
    Effect.orDie,
    Effect.provide(
      Retry.layer({ retryTurn, schedule: Schedule.spaced("2 millis").pipe(Schedule.upTo({ times: 2 })) })(
        OpenAiCompatible.layer({
          id: "vendor",
          baseUrl: "http://127.0.0.1:9/v1",
          apiKey: Redacted.make("a key"),
          timeouts: { firstByte: "500 millis", idle: "500 millis" }
        })
      )
    )
  )

const note = (events: Array<AgentEvent.AgentEvent>, event: AgentEvent.AgentEvent) =>
  Effect.sync(() => events.push(event))

/** In the first run a message is put in while the third turn goes on, and one follows. */
const queue = (
  agent: Agent.Agent,
  events: ReadonlyArray<AgentEvent.AgentEvent>,
  asked: Array<string>
): Effect.Effect<void> => {
  const event = events.at(-1)
  if (event?._tag !== "TurnStart" || event.runId !== events[0]?.runId) return Effect.void
  const { followUp, steered } = Session.prompts
  if (event.turn === 3) return Effect.map(agent.steer(steered), () => void asked.push(steered))
  return event.turn === 5
    ? Effect.map(agent.followUp(followUp), () => void asked.push(followUp))
    : Effect.void
}

// ───────────────────────── How it ended

type Ended<A, E> = Exit.Exit<A, E> | "hangs"

/** By a clock with which nothing is wrong. */
const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Ended<A, E>, never, R> =>
  Effect.raceFirst(
    Effect.exit(effect),
    Effect.callback<"hangs">((resume) => {
      const timer = setTimeout(() => resume(Effect.succeed("hangs")), patience)
      return Effect.sync(() => clearTimeout(timer))
    })
  )

const resultOf = (ended: Ended<unknown, unknown>): Run.RunResult | undefined => {
  if (ended === "hangs") return undefined
  if (Exit.isSuccess(ended)) return Schema.is(Run.RunResult)(ended.value) ? ended.value : undefined
  const failure = Cause.squash(ended.cause)
  return Schema.is(Run.RunFailed)(failure) ? failure.result : undefined
}

const statusOf = (ended: Ended<unknown, unknown>): string => {
  if (ended === "hangs") return ended
  return resultOf(ended)?.status ?? "defect"
}

const told = (ended: Ended<unknown, unknown>): string =>
  ended === "hangs" || Exit.isSuccess(ended) ? "" : Cause.pretty(ended.cause)

/** The only defect that a run may die of is the planned one. */
const unplanned = (ended: Ended<unknown, unknown>): ReadonlyArray<string> =>
  statusOf(ended) === "defect" && !told(ended).includes(planned) ? [`died: ${told(ended)}`] : []

const spending = (ended: Ended<unknown, unknown>): ReadonlyArray<string> => {
  const { estimated = 0, total } = resultOf(ended)?.usage ?? Usage.zero
  // An estimate counts the texts, whose tokens the server does not count here.
  return total - estimated <= budget + Session.tokensOfAnswer
    ? []
    : [`spent ${total - estimated} of ${budget}`]
}

/** Each message of the user that was taken is in the transcript once, with a good answer after it. */
const answered = (
  asked: ReadonlyArray<string>,
  messages: ReadonlyArray<Message.Message>
): ReadonlyArray<string> => {
  const lastAnswer = messages.findLastIndex(
    (message) => message.role === "assistant" && !Transcript.isFailed(message)
  )
  return asked.flatMap((text) => {
    const [at, ...others] = messages.flatMap((message, index) =>
      message.role === "user" && Message.textOf(message) === text ? [index] : []
    )
    if (at === undefined) return [`"${text}" is lost`]
    if (others.length > 0) return [`"${text}" is there twice`]
    return at < lastAnswer ? [] : [`"${text}" was not answered`]
  })
}
