/**
 * An application as users build it, for a soak: four providers over one HTTP client, agents that live long and agents
 * that live for a conversation, as effects and as promises, prompts that are waited for, left, interrupted and aborted.
 */
import { NodeServices } from "@effect/platform-node"
import { Cause, Context, Effect, Exit, Layer, Redacted, Schedule, Schema, Stream } from "effect"
import type { HttpClient } from "effect/http"
import { Agent, Provider, Run, Tool } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Retry } from "effect-agent/resilience"
import { Tools } from "effect-agent/tools"
import type { Random } from "../Random.ts"

/** Short, as the server stalls on purpose. */
const timeouts = { firstByte: "250 millis", idle: "250 millis" } as const
const schedule = Schedule.exponential("10 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 2 }))
const apiKey = Redacted.make("the key of a soak")

type Vendor = Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>

const vendorsAt = (origin: string): readonly [Vendor, ...ReadonlyArray<Vendor>] => [
  Retry.layer({ schedule })(
    OpenAiCompatible.layer({ id: "chat", baseUrl: `${origin}/v1`, apiKey, timeouts })
  ),
  Retry.layer({ schedule, retryTurn: true })(OpenAi.layer({ baseUrl: `${origin}/v1`, apiKey, timeouts })),
  Retry.layer({ schedule, retryTurn: true })(Anthropic.layer({ baseUrl: origin, apiKey, timeouts })),
  Retry.layer({ schedule })(Google.layer({ baseUrl: origin, apiKey, timeouts }))
]

export interface Settings {
  readonly origin: string
  /** The folder of the file tools. */
  readonly root: string
  /** Given to every promise: it lives as long as the application. */
  readonly signal: AbortSignal
  readonly random: Random
}

const look = Tool.make({
  name: "look",
  description: "Looks somewhere.",
  params: Schema.Struct({ where: Schema.String }),
  execute: ({ where }) =>
    where === "here" ? Effect.as(Effect.sleep("3 millis"), "a mess") : Effect.fail("nothing to be seen")
})

const limits = { maxTurns: 8, onMaxTurns: "stop", executionTime: "8 seconds" } as const

/** `use` does something a user does, and says in a word how it ended; `forget` is for when nobody does anything. */
export const make = Effect.fnUntraced(function* (settings: Settings) {
  const { origin, random, root } = settings
  const tools = [look, ...Tools.make({ root, shell: { timeout: "2 seconds" } })] as const
  const services = yield* Layer.build(NodeServices.layer)
  const vendors = vendorsAt(origin)
  const agent = (vendor: Vendor) =>
    Agent.make({ model: "m", limits, tools }).pipe(
      Effect.orDie,
      Effect.provide(vendor),
      Effect.provide(services)
    )
  const lasting = yield* Effect.forEach(vendors, agent)
  const forget = (one: Agent.Agent) => Effect.ignore(Effect.andThen(one.waitForIdle, one.reset))

  /** A conversation of up to three prompts with an agent of its own. */
  const conversation = Effect.gen(function* () {
    const own = yield* agent(random.pick(...vendors))
    yield* own.subscribe(() => Effect.void)
    yield* Effect.forkScoped(Stream.runDrain(own.events))
    let ended = ""
    for (let prompt = random.upTo(2); prompt >= 0; prompt--) ended = yield* ask(own, random)
    return ended
  }).pipe(Effect.scoped)

  /** A prompt to an agent that is there all the time, and forgets now and then. */
  const lastingOne = Effect.suspend(() => {
    const one = lasting[random.upTo(lasting.length - 1)]
    if (one === undefined) return Effect.succeed("nobody")
    return Effect.tap(ask(one, random), () => (random.once(5) ? forget(one) : Effect.void))
  })

  /** The same with promises. */
  const promised = Effect.promise(() => promise(settings, random.pick(...vendors), services))

  const use = Effect.suspend((): Effect.Effect<string, never, HttpClient.HttpClient> => {
    if (random.once(5)) return promised
    return random.once(2) ? conversation : lastingOne
  })
  return { use, forget: Effect.forEach(lasting, forget, { discard: true }) }
})

/** One prompt, which is not always waited for. */
const ask = (agent: Agent.Agent, random: Random): Effect.Effect<string> => {
  switch (random.upTo(7)) {
    case 0:
      return Effect.map(
        Effect.exit(agent.stream("go on").pipe(Stream.take(1 + random.upTo(20)), Stream.runDrain)),
        outcome
      )
    case 1:
      return Effect.map(Effect.exit(Effect.timeoutOption(agent.prompt("go on"), random.upTo(60))), outcome)
    case 2:
      return Effect.map(Effect.exit(Stream.runDrain(agent.stream("go on"))), outcome)
    default:
      return Effect.map(Effect.exit(agent.prompt("go on")), outcome)
  }
}

const promise = async (
  { random, root, signal }: Settings,
  provider: Vendor,
  services: Context.Context<NodeServices.NodeServices>
): Promise<string> => {
  await using agent = createAgent({
    provider,
    model: "m",
    limits,
    tools: [look, ...Tools.make({ root })],
    layer: Layer.succeedContext(services)
  })
  try {
    if (random.once(3)) {
      let events = random.upTo(15)
      for await (const _ of agent.stream("go on", { signal })) if (--events < 0) break
      return "left"
    }
    const short = random.once(4) ? AbortSignal.any([signal, AbortSignal.timeout(random.upTo(40))]) : signal
    return (await agent.prompt("go on", { signal: short })).status
  } catch (thrown) {
    return Schema.is(Run.RunFailed)(thrown) ? outcome(Exit.fail(thrown)) : nameOf(thrown)
  }
}

const nameOf = (thrown: unknown): string =>
  thrown instanceof DOMException ? thrown.name : `defect ${String(thrown)}`

const outcome = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit)) return Schema.is(Run.RunResult)(exit.value) ? exit.value.status : "left"
  if (Cause.hasDies(exit.cause)) return `defect ${Cause.pretty(exit.cause)}`
  const failure = Cause.squash(exit.cause)
  if (!Schema.is(Run.RunFailed)(failure)) return failure instanceof Agent.AgentBusy ? "busy" : String(failure)
  const { reason } = failure
  return reason._tag === "ProviderError" ? reason.reason._tag : reason._tag
}
