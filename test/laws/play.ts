/**
 * Plays a plan with one agent, under a test clock, and says what laws were broken.
 */
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { AgentEvent, Provider, RunOptions } from "effect-agent"
import { Agent } from "effect-agent"
import { model, tools } from "./cast.ts"
import { hooks } from "./opinions.ts"
import type { Plan } from "./plan.ts"
import { Stage } from "./Stage.ts"

/** All that can be known of a plan that was played. */
export interface Played {
  readonly stage: Stage
  readonly events: ReadonlyArray<AgentEvent.AgentEvent>
  readonly exits: ReadonlyArray<Exit.Exit<unknown, unknown>>
  readonly state: Agent.AgentState
  readonly requests: ReadonlyArray<Provider.ModelRequest>
  readonly queued: number
  /** The last prompt, after which nothing may be left in a queue. */
  readonly last: Exit.Exit<unknown, unknown>
}

export const play = (plan: Plan): Effect.Effect<Played> => Effect.scoped(played(plan))

const played = Effect.fnUntraced(function* (plan: Plan): Effect.fn.Return<Played, never, Scope.Scope> {
  const stage = new Stage(plan)
  const events: Array<AgentEvent.AgentEvent> = []
  const { layer, requests } = yield* model(stage)
  const scope = yield* Scope.make()
  const agent = yield* Agent.make({
    ...optionsOf(plan),
    tools: tools(stage),
    hooks: hooks(stage),
    steeringMode: plan.steeringMode,
    followUpMode: plan.followUpMode
  }).pipe(Effect.orDie, Effect.provide(layer), Scope.provide(scope))
  stage.agent = agent
  yield* listen(stage, agent, events)
  yield* Effect.forkScoped(passTime)

  const exits: Array<Exit.Exit<unknown, unknown>> = []
  for (const [index, kind] of plan.runs.entries()) {
    exits.push(yield* runOnce(stage, agent, kind, `prompt ${index}`))
    yield* agent.waitForIdle
  }
  stage.calm = true
  const queued = yield* Effect.map(agent.queues.sizes, ({ followUp, steering }) => followUp + steering)
  const last = yield* Effect.exit(agent.prompt("again", unlimited))
  yield* untilHeard(events)
  yield* TestClock.adjust("3 hours")
  const state = agent.state.getUnsafe()
  yield* Scope.close(scope, Exit.void)
  return { stage, events, exits, state, requests: yield* requests, queued, last }
})

const optionsOf = ({ rules }: Plan): RunOptions.RunOptions => {
  const {
    executionTime,
    maxIdenticalToolCalls,
    maxToolCalls,
    maxTotalTokens,
    maxTurns,
    onMaxTurns,
    ...rest
  } = rules
  return {
    model: "m",
    ...rest,
    approvalTimeout: "1 minute",
    limits: {
      maxTurns,
      onMaxTurns,
      maxIdenticalToolCalls,
      ...(maxToolCalls === "none" ? {} : { maxToolCalls }),
      ...(maxTotalTokens === "none" ? {} : { maxTotalTokens }),
      ...(executionTime === "none" ? {} : { executionTime: `${executionTime} seconds` })
    }
  }
}

const unlimited: Partial<RunOptions.RunOptions> = {
  limits: { maxTurns: 100, maxToolCalls: Infinity, maxTotalTokens: Infinity, executionTime: "Infinity" }
}

/** Hears every event: as a subscriber, who is waited for, or as a reader, who is not. */
const listen = (stage: Stage, agent: Agent.Agent, events: Array<AgentEvent.AgentEvent>) =>
  stage.plan.subscribed
    ? agent.subscribe((event) =>
        Effect.andThen(
          Effect.sync(() => events.push(event)),
          stage.tick
        )
      )
    : Effect.forkScoped(
        Stream.runForEach(agent.events, (event) => Effect.sync(() => events.push(event))),
        { startImmediately: true }
      )

/** A second now and then, so that what waits for a time limit comes to it. */
const passTime = Effect.yieldNow.pipe(
  Effect.repeat({ times: 20 }),
  Effect.andThen(TestClock.adjust("1 second")),
  Effect.forever
)

const runOnce = Effect.fnUntraced(function* (
  stage: Stage,
  agent: Agent.Agent,
  kind: Plan["runs"][number],
  text: string
) {
  stage.caller = yield* Effect.forkChild(askFor(agent, kind, text))
  return yield* Fiber.await(stage.caller)
})

const askFor = (
  agent: Agent.Agent,
  kind: Plan["runs"][number],
  text: string
): Effect.Effect<unknown, unknown> => {
  switch (kind) {
    case "prompt":
      return agent.prompt(text)
    case "stream":
      return Stream.runDrain(agent.stream(text))
    case "leave":
      return agent.stream(text).pipe(Stream.take(7), Stream.runDrain)
    case "start":
      return Effect.flatMap(agent.start(text), ({ result }) => result)
    case "resume":
      return agent.continue
  }
}

const untilHeard = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  Effect.yieldNow.pipe(Effect.repeat({ while: () => events.at(-1)?._tag !== "RunEnd", times: 1000 }))
