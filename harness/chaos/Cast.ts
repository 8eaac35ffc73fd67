/**
 * A model, tools and hooks that do all a program may do: take their time, hold things, fail, die, not listen.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Hook, Message, Provider, ProviderError, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import type { Ground } from "./Ground.ts"

/** Says random answers, as long as it is not calm. Each answer holds a resource while it is said. */
export const model = Effect.fnUntraced(function* (ground: Ground) {
  const script = yield* ScriptedProvider.make([], { exhausted: (_, call) => turn(ground, call) })
  const provider = Provider.Provider.of({
    id: script.provider.id,
    stream: (request) => Stream.unwrap(Effect.as(ground.resource, script.provider.stream(request)))
  })
  return Layer.succeed(Provider.Provider, provider)
})

const turn = (ground: Ground, call: number): ScriptedProvider.Turn => {
  const { random } = ground
  if (ground.calm || (call > 2 && random.once(4))) return ScriptedProvider.text("done")
  const calls = random.some(4, () =>
    Step.toolCall(random.pick("nobody", ...toolNames), { n: random.upTo(9) })
  )
  const bad = random.once(30)
    ? [random.pick(Step.eof, Step.fail(overloaded), Step.die(new Error("planned")))]
    : []
  const said = ScriptedProvider.turn(
    Step.start,
    Step.run(ground.moment),
    ...random.some(6, () => Step.thinking(["hm"])),
    ...random.some(12, () => [Step.text(["a ", "b "]), Step.run(ground.moment)]).flat(),
    ...calls.flatMap((call) => [call, Step.run(ground.moment)]),
    ...bad,
    Step.finish(calls.length > 0 ? "toolUse" : "stop", { input: 2, output: 1 })
  )
  if (random.once(10)) return ScriptedProvider.ignoringAbort(said)
  return random.once(12) ? ScriptedProvider.turn(...said.steps.slice(0, 4), Step.never) : said
}

const overloaded = new ProviderError.Overloaded({ detail: "planned" })

/** What each tool does, once it holds its resource. */
const behaviours: Readonly<
  Record<string, (ground: Ground) => Effect.Effect<unknown, string, Tool.ToolContext>>
> = {
  quick: () => Effect.succeed("quick"),
  slow: (ground) => Effect.repeat(ground.moment, { times: 12 }),
  single: (ground) => Effect.repeat(ground.moment, { times: 4 }),
  talking: (ground) =>
    Effect.flatMap(Tool.ToolContext, ({ progress }) =>
      Effect.repeat(Effect.andThen(ground.moment, progress(Tool.output("well"))), { times: 4 })
    ),
  failing: (ground) => Effect.andThen(ground.moment, Effect.fail("not today")),
  dying: (ground) => Effect.andThen(ground.moment, Effect.die(new Error("boom"))),
  endless: () => Effect.never,
  stubborn: (ground) => Effect.uninterruptible(Effect.sleep(ground.random.upTo(4))),
  deaf: (ground) => (ground.random.once(10) ? Effect.uninterruptible(ground.over.await) : Effect.void),
  delegating: (ground) => Effect.scoped(delegate(ground))
}
const toolNames = Object.keys(behaviours)

/** An agent inside a tool. */
const delegate = Effect.fnUntraced(function* (ground: Ground) {
  const helper = yield* Agent.make({ model: "m" }).pipe(
    Effect.orDie,
    Effect.provide(
      ScriptedProvider.layer([ScriptedProvider.turn(Step.run(ground.moment), Step.text("ok"), Step.finish())])
    )
  )
  return yield* Effect.match(helper.prompt("help"), {
    onSuccess: ({ status }) => status,
    onFailure: ({ message }) => message
  })
})

export const tools = (ground: Ground): ReadonlyArray<Tool.Runnable> =>
  Object.entries(behaviours).map(([name, behave]) =>
    Tool.make({
      name,
      description: name,
      params: Schema.Struct({ n: Schema.Int }),
      ...(name === "single" ? { executionMode: "sequential" } : {}),
      execute: () => Effect.andThen(ground.resource, Effect.andThen(ground.moment, behave(ground)))
    })
  )

/** Hooks that take a moment, fail now and then, and sometimes have an opinion. */
export const hooks = (ground: Ground): ReadonlyArray<Hook.Runnable> => {
  const { random } = ground
  const seldom = <A>(opinion: A): Effect.Effect<A | void, string> =>
    Effect.andThen(
      ground.moment,
      Effect.suspend(() => {
        if (ground.calm || !random.once(12)) return Effect.void
        return random.once(3) ? Effect.fail("planned") : Effect.succeed(opinion)
      })
    )
  const all: ReadonlyArray<Hook.Runnable> = [
    Hook.beforeExecution(() => seldom({ modified: { toolConcurrency: 2 } })),
    Hook.afterExecution(() => seldom({ modified: Message.assistant("changed") })),
    Hook.onError(() => seldom(undefined)),
    Hook.beforeModel(() => seldom({ skip: true, response: "instead" })),
    Hook.afterModel(() => seldom(undefined)),
    Hook.beforeTool(() => seldom({ block: true })),
    Hook.approveTool(() => seldom({ approved: false })),
    Hook.afterTool(() => seldom({ retry: true })),
    Hook.transformMessages(({ messages }) => seldom(messages.slice(-3))),
    Hook.prepareNextTurn(() => seldom({ model: "other" })),
    Hook.shouldStopAfterTurn(() => seldom(true)),
    Hook.steering(() => seldom([])),
    Hook.followUp(() => seldom([]))
  ]
  return all.filter(() => random.once(3))
}
