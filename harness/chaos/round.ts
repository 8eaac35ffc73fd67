/**
 * One agent, one run, stopped somewhere in one of the ways a run can be stopped; then what must hold after that.
 */
import { Duration, Effect, Exit, Fiber, Scope, Stream } from "effect"
import type { AgentEvent, RunOptions } from "effect-agent"
import { Agent, Message } from "effect-agent"
import * as EventLaws from "../../test/laws/eventLaws.ts"
import { memory } from "../../test/laws/playLaws.ts"
import { hooks, model, tools } from "./Cast.ts"
import { Ground } from "./Ground.ts"
import type { Random } from "./Random.ts"

const ways = [
  "cancel",
  "cancel twice",
  "cancel a started run",
  "interrupt a prompt",
  "interrupt a stream",
  "leave a stream",
  "time out a prompt",
  "close the scope",
  "executionTime",
  "nothing"
] as const
export type Way = (typeof ways)[number]

export interface Round {
  readonly way: Way
  /** How the run ended, by its last event. */
  readonly status: string
  /** It did not end by itself. */
  readonly stopped: boolean
  /** Milliseconds from the stop to the end, if it was stopped before it ended. */
  readonly latency: number | undefined
  readonly violations: ReadonlyArray<string>
}

/** No stop may take longer. Twenty times what an abandoned tool is given, on a busy machine. */
const patience = Duration.seconds(5)

interface Play {
  readonly ground: Ground
  readonly way: Way
  readonly agent: Agent.Agent
  readonly events: Array<AgentEvent.AgentEvent>
  readonly sent: Array<string>
  readonly closeScope: Effect.Effect<void>
  readonly wrong: Array<string>
}

export const round = (seed: number): Effect.Effect<Round> => Effect.scoped(played(seed))

const played = Effect.fnUntraced(function* (seed: number): Effect.fn.Return<Round, never, Scope.Scope> {
  const play = yield* setUp(new Ground(seed))
  const { agent, events, ground } = play
  const queued = yield* Effect.forkScoped(queueing(play))
  const run = yield* Effect.forkChild(Effect.exit(ask(play)))
  const stoppedAt = yield* stopSomewhere(play, run)
  const ended = yield* Effect.timeoutOption(Fiber.await(run), patience)
  const latency = stoppedAt === undefined ? undefined : performance.now() - stoppedAt
  yield* Fiber.join(queued)
  const idle = yield* Effect.timeoutOption(agent.waitForIdle, patience)
  yield* ground.over.open
  ground.calm = true
  const violations = [
    ...(ended._tag === "None" || idle._tag === "None" ? ["it hangs"] : []),
    ...(yield* again(play)),
    ...(yield* afterwards(play))
  ]
  const [first = []] = EventLaws.byRun(events)
  const last = first.at(-1)
  const status = last?._tag === "RunEnd" ? last.status : "never began"
  const stopped = status === "cancelled" || first.some(isOutOfTime)
  return {
    way: play.way,
    status,
    stopped,
    latency,
    violations: violations.map((found) => `seed ${seed}, ${play.way}: ${found}`)
  }
})

const isOutOfTime = (event: AgentEvent.AgentEvent): boolean =>
  event._tag === "LimitReached" && event.limit === "executionTime"

const setUp = Effect.fnUntraced(function* (ground: Ground): Effect.fn.Return<Play, never, Scope.Scope> {
  const { random } = ground
  const way = random.pick(...ways)
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
  const agent = yield* Agent.make({
    ...options(random, way),
    tools: tools(ground),
    hooks: hooks(ground),
    steeringMode: random.pick("one-at-a-time", "all"),
    followUpMode: random.pick("one-at-a-time", "all")
  }).pipe(Effect.orDie, Effect.provide(yield* model(ground)), Scope.provide(scope))
  const events: Array<AgentEvent.AgentEvent> = []
  const hear = (event: AgentEvent.AgentEvent) => Effect.sync(() => events.push(event))
  if (random.once(2)) {
    yield* agent.subscribe((event) => Effect.andThen(hear(event), ground.moment))
  } else {
    yield* Effect.forkScoped(Stream.runForEach(agent.events, hear), { startImmediately: true })
  }
  const wrong: Array<string> = []
  const closeScope = Effect.map(Scope.close(scope, Exit.void), () => {
    const { phase } = agent.state.getUnsafe()
    if (phase !== "idle") wrong.push(`the agent is closed, its run goes on: ${phase}`)
  })
  return { ground, way, agent, events, sent: [], closeScope, wrong }
})

const options = (random: Random, way: Way): RunOptions.RunOptions => ({
  model: "m",
  toolExecution: random.pick("parallel", "parallel", "sequential"),
  toolFailureMode: random.once(8) ? "fail" : "continue",
  steeringPolicy: random.pick("afterTurn", "skipRemaining"),
  hookFailureMode: random.pick("warn", "warn", "ignore", "fail"),
  // A tool or a model that never ends is ended by the stop; where there is none, by time.
  limits: { maxTurns: 8, executionTime: way === "executionTime" ? random.upTo(6) : 60 + random.upTo(40) }
})

const ask = ({ agent, ground, way }: Play): Effect.Effect<unknown, unknown> => {
  switch (way) {
    case "leave a stream":
      return agent.stream("hi").pipe(Stream.take(1 + ground.random.upTo(40)), Stream.runDrain)
    case "interrupt a stream":
      return Stream.runForEach(agent.stream("hi"), () => ground.moment)
    case "cancel a started run":
      return Effect.flatMap(agent.start("hi"), ({ result }) => result)
    case "time out a prompt":
      return Effect.timeoutOption(agent.prompt("hi"), 1 + ground.random.upTo(6))
    default:
      return agent.prompt("hi")
  }
}

/** Messages come in while it runs. */
const queueing = ({ agent, ground, sent }: Play) =>
  Effect.forEach(
    ground.random.some(4, () => ground.random.pick("steer", "followUp")),
    (queue) =>
      Effect.andThen(
        Effect.repeat(Effect.yieldNow, { times: ground.random.upTo(60) }),
        Effect.suspend(() => {
          const text = `queued ${sent.length}`
          sent.push(text)
          return agent[queue](text)
        })
      )
  )

/** Stops the run, if it has not ended by then. Gives the time of the stop. */
const stopSomewhere = Effect.fnUntraced(function* (play: Play, run: Fiber.Fiber<unknown>) {
  const stop = stopBy(play, run)
  if (stop === undefined) return undefined
  const reached = yield* Effect.raceFirst(
    Effect.as(play.ground.somewhere, true),
    Effect.as(Fiber.await(run), false)
  )
  if (!reached) return undefined
  const now = performance.now()
  yield* stop
  return now
})

const stopBy = (
  { agent, closeScope, way }: Play,
  run: Fiber.Fiber<unknown>
): Effect.Effect<unknown> | undefined => {
  switch (way) {
    case "cancel":
    case "cancel a started run":
      return agent.cancel("enough")
    case "cancel twice":
      return Effect.andThen(agent.cancel("enough"), Effect.andThen(Effect.yieldNow, agent.cancel("really")))
    case "interrupt a prompt":
    case "interrupt a stream":
      return Fiber.interrupt(run)
    case "close the scope":
      return closeScope
    default:
      return undefined
  }
}

/** The next prompt works, and takes up what waits in the queues. */
const again = Effect.fnUntraced(function* ({ agent, closeScope, way }: Play) {
  if (way === "close the scope") yield* closeScope
  const exit = yield* Effect.exit(
    Effect.timeout(agent.prompt("again", { limits: { executionTime: "1 minute", maxTurns: 20 } }), patience)
  )
  if (way === "close the scope") return Exit.isFailure(exit) ? [] : ["a closed agent took a prompt"]
  const status = Exit.isSuccess(exit) ? exit.value.status : "failed"
  return status === "completed" ? [] : [`the next prompt: ${status} ${JSON.stringify(exit)}`]
})

/** What was sent is there once, what was acquired is released, and all the laws of events hold. */
const afterwards = Effect.fnUntraced(function* ({ agent, events, ground, sent, way, wrong }: Play) {
  yield* settle(() => events.at(-1)?._tag === "RunEnd" && ground.acquired === ground.released)
  const state = agent.state.getUnsafe()
  const { followUp, steering } = yield* agent.queues.sizes
  const texts = state.messages.map(Message.textOf)
  const arrived = sent.filter((text) => texts.includes(text))
  const twice = sent.filter((text) => texts.indexOf(text) !== texts.lastIndexOf(text))
  const lost = sent.length - arrived.length - followUp - steering
  const heard = (yield* agent.droppedEvents) === 0
  return [
    ...wrong,
    ...(heard ? EventLaws.byRun(events).flatMap(EventLaws.violations) : []),
    ...(heard ? memory({ events, state }) : []),
    ...(lost === 0 ? [] : [`${lost} queued messages are lost`]),
    ...(twice.length === 0 ? [] : [`delivered twice: ${twice.join()}`]),
    ...(way === "close the scope" || followUp + steering === 0 ? [] : ["messages are still queued"]),
    ...(ground.acquired === ground.released
      ? []
      : [`${ground.acquired} acquired, ${ground.released} released`])
  ]
})

/** Waits a second at most. */
const settle = (isSettled: () => boolean) =>
  Effect.suspend(() => (isSettled() ? Effect.void : Effect.sleep(1))).pipe(
    Effect.repeat({ while: () => !isSettled(), times: 1000 })
  )
