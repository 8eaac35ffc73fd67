/** A run with three calls in the background, whose process ends at each of its writes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Tool, Transcript } from "effect-agent"
import { Agents } from "effect-agent/server"
import { ScriptedProvider } from "effect-agent/testing"
import * as LogLine from "../../src/runs/internal/LogLine.ts"
import { live } from "./continuing.ts"
import { disk as makeDisk, type Disk, World } from "./killing.ts"

const endsIn = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "user" ? (message.backgroundEnds ?? []) : []))

/** Starts three calls, ends its turn until it has read all ends, and then the run. */
const turn: ScriptedProvider.Script[number] = ({ messages }) => {
  if (!messages.some(({ role }) => role === "assistant"))
    return ScriptedProvider.toolCalls(
      { name: "look", params: { n: 3 } },
      { name: "put", params: { n: 30 } },
      { name: "pay", params: { n: 60 } }
    )
  return ScriptedProvider.text(endsIn(messages).length === 3 ? "Done." : "I wait.")
}

const agents = (world: World) => {
  const tool = (name: string, effect: "pure" | "idempotent" | "once") =>
    Tool.make({
      name,
      description: name,
      effect,
      blocking: false,
      timeout: "Infinity",
      params: Schema.Struct({ n: Schema.Number }),
      execute: ({ n }) =>
        Effect.andThen(
          world.act(name),
          Effect.as(Effect.repeat(Effect.yieldNow, { times: n }), `${name} done`)
        )
    })
  return Agents.layer(({ session }) =>
    Agent.make({
      model: "any",
      tools: [tool("look", "pure"), tool("put", "idempotent"), tool("pay", "once")],
      session
    })
  ).pipe(Layer.provide(ScriptedProvider.layer(Array.from({ length: 20 }, () => turn))))
}

const play = Effect.fnUntraced(function* (kills: ReadonlyArray<number>, make = agents) {
  const disk: Disk = yield* makeDisk
  const world = new World(make)
  const label = `killed at ${kills.join(", ")}`
  const seen = { seen: [], sent: { steered: true } }
  for (const kill of kills) yield* live(world, disk, kill, seen)
  const { runId = "", writes } = yield* live(world, disk, Infinity, seen)
  const session = yield* Effect.scoped(disk.sessions.open("s"))
  const { background = [], messages } = session.restored
  const stored = LogLine.read(yield* disk.logs.read({ sessionId: "s", runId }))
  const events = stored.entries.flatMap(({ event }) => event ?? [])
  return { background, events, label, messages, world, writes }
})

const check = ({ background, events, label, messages, world }: Effect.Success<ReturnType<typeof play>>) => {
  assert.deepStrictEqual(background, [], label)
  assert.deepStrictEqual(Transcript.violations(messages), [], label)
  const last = events.at(-1)
  assert.strictEqual(last?._tag === "RunEnd" ? last.status : last?._tag, "completed", label)
  const ended = events.flatMap((event) => (event._tag === "ToolExecutionEnd" ? [event.toolName] : []))
  assert.deepStrictEqual(ended.toSorted(), ["look", "pay", "put"], `${label}: ends`)
  // An end that came before the result of its call is the result.
  const direct = messages.flatMap((message) =>
    message.role === "toolResult" && message.background === undefined ? [message.toolName] : []
  )
  const reported = endsIn(messages).map(({ toolName }) => toolName)
  assert.deepStrictEqual([...direct, ...reported].toSorted(), ["look", "pay", "put"], `${label}: reports`)
  const results = messages.filter((message) => message.role === "toolResult")
  assert.strictEqual(results.length, 3, label)
  const of = (name: string) => world.effects.filter(([tool]) => tool === name).map(([, key]) => key)
  assert.isAtMost(of("pay").length, 1, `${label}: pay`)
  assert.strictEqual(new Set(of("put")).size, 1, `${label}: put`)
  assert.isAtLeast(of("look").length, 1, `${label}: look`)
  for (const event of events)
    if (event._tag === "ToolExecutionEnd" && event.toolName !== "pay")
      assert.strictEqual(event.outcome, "success", `${label}: ${event.toolName}`)
}

/** An agent in the background, whose tools have effects of their own. */
const researching = (world: World) => {
  const research = Agent.asTool({
    name: "research",
    description: "research",
    blocking: false,
    agent: {
      model: "any",
      system: "inner",
      tools: [world.tool("put", "idempotent"), world.tool("pay", "once")]
    }
  })
  const turn: ScriptedProvider.Script[number] = ({ messages, system }) => {
    const at = messages.filter(({ role }) => role === "assistant").length
    if (system !== "inner" && at === 0) return ScriptedProvider.toolCall("research", { prompt: "Find" })
    if (system !== "inner") return ScriptedProvider.text(endsIn(messages).length === 1 ? "Done." : "I wait.")
    return at < 2
      ? ScriptedProvider.toolCall(at === 0 ? "put" : "pay", { n: at })
      : ScriptedProvider.text("Found.")
  }
  return Agents.layer(({ session }) => Agent.make({ model: "any", tools: [research], session })).pipe(
    Layer.provide(ScriptedProvider.layer(Array.from({ length: 30 }, () => turn)))
  )
}

/** The number of times that a tool of the world ran. */
const ran = ({ world }: Effect.Success<ReturnType<typeof play>>, name: string) =>
  world.effects.filter(([tool]) => tool === name).length

describe("a run with calls in the background (row 151)", () => {
  it.effect(
    "loses none and repeats no end, at whatever write its process ends",
    () =>
      Effect.gen(function* () {
        const whole = yield* play([])
        check(whole)
        assert.isAbove(whole.writes, 10)
        let [again, unknown] = [0, 0]
        for (let kill = 1; kill <= whole.writes; kill++) {
          for (const kills of [[kill], [kill, 1 + ((kill * 5) % 7)]]) {
            const played = yield* play(kills)
            check(played)
            again += ran(played, "put") - 1
            unknown += endsIn(played.messages).filter(({ outcome }) => outcome === "unknown").length
          }
        }
        assert.isAbove(again, 3)
        assert.isAbove(unknown, 3)
      }),
    180_000
  )

  it.effect(
    "continues an agent in the background from where it stopped",
    () =>
      Effect.gen(function* () {
        const { writes } = yield* play([], researching)
        for (let kill = 1; kill <= writes; kill++) {
          const { events, label, messages, world } = yield* play([kill], researching)
          const last = events.at(-1)
          assert.strictEqual(last?._tag === "RunEnd" ? last.status : last?._tag, "completed", label)
          const keysOf = (name: string) =>
            world.effects.filter(([tool]) => tool === name).map(([, key]) => key)
          assert.isAtMost(keysOf("pay").length, 1, `${label}: pay`)
          assert.isAtMost(new Set(keysOf("put")).size, 1, `${label}: put`)
          const direct = messages.filter(
            (message) => message.role === "toolResult" && message.background === undefined
          )
          const ends = [...endsIn(messages), ...direct]
          assert.strictEqual(ends.length, 1, label)
          assert.isTrue(
            ends.every((end) => "outcome" in end && end.outcome === "success"),
            label
          )
          const research = events.filter(
            (event) => event._tag === "ToolExecutionEnd" && event.toolName === "research"
          )
          assert.strictEqual(research.length, 1, label)
        }
      }),
    180_000
  )

  it.effect(
    "reports their ends before the prompt of another run, which continues none of them",
    () =>
      Effect.gen(function* () {
        const { writes } = yield* play([])
        const found = new Set<string>()
        for (let kill = 1; kill <= writes; kill++) {
          const disk = yield* makeDisk
          const world = new World(agents)
          yield* live(world, disk, kill, { seen: [], sent: { steered: true } })
          const before = world.effects.length
          const messages = yield* Effect.gen(function* () {
            const session = yield* disk.sessions.openOrCreate("s")
            const open = session.restored.background ?? []
            for (const { end } of open) found.add(end?.outcome ?? "unknown")
            const agent = yield* Agent.make({ model: "any", session }).pipe(
              Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("Well.")]))
            )
            const { newMessages } = yield* agent.prompt("What now?")
            assert.strictEqual(endsIn(newMessages).length, open.length, `killed at ${kill}`)
            return (yield* agent.state.get).messages
          }).pipe(Effect.scoped)
          assert.deepStrictEqual(Transcript.violations(messages), [])
          const handles = endsIn(messages).map(({ handle }) => handle)
          assert.strictEqual(new Set(handles).size, handles.length)
          assert.strictEqual(world.effects.length, before)
          const reopened = yield* Effect.scoped(disk.sessions.open("s"))
          assert.isUndefined(reopened.restored.background)
        }
        assert.deepStrictEqual([...found].toSorted(), ["success", "unknown"])
      }),
    180_000
  )
})
