import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, type AgentEvent, type Message, Transcript } from "effect-agent"
import { Compaction } from "effect-agent/context"
import { Agents, type Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { Random } from "../../harness/chaos/Random.ts"
import { killed, shape } from "./continuing.ts"
import { disk, type World } from "./killing.ts"

const summarize = "Summarize."

/** The turns of the conversation, which is with `billing` from the fourth to the sixth. */
const plan = [
  ["look", "put"],
  ["pay", "put"],
  ["transfer_to_billing"],
  ["pay", "look"],
  ["research", "pay"],
  ["transfer_to_triage"],
  ["put", "look"]
]

/** The turns of the agent inside of `research`, which hands off to `deep` in the third. */
const inside = [["put"], ["look", "pay"], ["transfer_to_deep"], ["pay"]]

const paramsOf = (tool: string) =>
  tool === "research" ? { prompt: "Find." } : tool.startsWith("transfer") ? {} : { n: 1 }

/** The number of turns that a request tells of, in its messages or in their summary. */
const turnsIn = (messages: ReadonlyArray<Message.Message>): number =>
  Math.max(0, ...Array.from(JSON.stringify(messages).matchAll(/Turn (\d+)\./g), ([, turn]) => Number(turn)))

/** Agents that hand the conversation to each other, also inside of a call, and whose requests are compacted again and again. */
class Team {
  readonly faults: Array<string> = []
  summaries = 0

  readonly agents = (world: World): Layer.Layer<Agents.Agents> => {
    const own = [world.tool("look", "pure"), world.tool("put", "idempotent"), world.tool("pay", "once")]
    const deep = { model: "deep", system: "deep", tools: own }
    const research = Agent.asTool({
      name: "research",
      description: "research",
      agent: {
        model: "shallow",
        system: "shallow",
        agent: { name: "shallow" },
        tools: [...own, Agent.handOff({ to: "deep", description: "deep", agent: deep })]
      }
    })
    const back = Agent.handOff({ to: "triage", description: "triage" })
    const billing = Agent.handOff({
      to: "billing",
      description: "billing",
      agent: { model: "billing", system: "billing", tools: [...own, research, back] }
    })
    const compacting = { contextWindow: 7000, reserve: 1000, keepRecent: 1200, prompt: summarize }
    return Agents.layer(({ session }) =>
      Agent.make({
        model: "triage",
        system: "triage",
        agent: { name: "triage" },
        tools: [...own, billing],
        session
      })
    ).pipe(
      Layer.provide([
        ScriptedProvider.layer(
          Array.from({ length: 100 }, () => (request) => this.answer(world, request)),
          {}
        ),
        Compaction.layer(compacting)
      ])
    )
  }

  private answer(
    world: World,
    {
      messages,
      model,
      system
    }: Parameters<Exclude<ScriptedProvider.Script[number], ScriptedProvider.Turn>>[0]
  ): ScriptedProvider.Turn {
    const turn = turnsIn(messages)
    this.faults.push(...Transcript.violations(messages))
    if (system === summarize) {
      this.summaries++
      return said([`Turn ${turn}.`], 10)
    }
    world.modelCalls++
    const isInside = system === "shallow" || system === "deep"
    const [first, second] = isInside ? ["shallow", "deep"] : ["triage", "billing"]
    const isSecond = turn > 2 && (isInside || turn < 6)
    const expected = isSecond ? second : first
    if (system !== expected || model !== expected) this.faults.push(`turn ${turn} is that of ${system}`)
    const tools = (isInside ? inside : plan)[turn]
    const calls = tools?.map((tool, index) =>
      Step.toolCall(tool, paramsOf(tool), { id: `call_${turn}_${index}` })
    )
    return said(
      calls === undefined ? ["Done."] : ["x".repeat(2000), ` Turn ${turn + 1}.`],
      1000 * messages.length,
      calls
    )
  }
}

const said = (text: ReadonlyArray<string>, input: number, calls: ReadonlyArray<Step.Step> = []) =>
  ScriptedProvider.turn(
    Step.text(text),
    ...calls,
    Step.finish(calls.length > 0 ? "toolUse" : "stop", { input, output: 5, total: input + 5 })
  )

type Entries = ReadonlyArray<Runs.Positioned>

/** The compactions of a run that came to an end, by run; a law of their events. */
const compactions = (entries: Entries, label: string) => {
  const open = new Set<string>()
  return entries.flatMap(({ event }) => {
    if (event._tag !== "Compaction") return []
    assert.strictEqual(open.has(event.runId), event.status !== "start", `${label}: ${event.status}`)
    if (event.status === "start") open.add(event.runId)
    else open.delete(event.runId)
    return event.status === "end" ? [`${event.path?.length ?? 0} ${event.turn}`] : []
  })
}

const handOffs = (entries: Entries) =>
  entries.flatMap(({ event }) =>
    event._tag === "HandedOff" ? [`${event.turn} ${event.from} to ${event.to}`] : []
  )

const isCompaction = ({ event }: Runs.Positioned) => event._tag === "Compaction"

const endOf = (entries: Entries): AgentEvent.OfTag<"RunEnd"> => {
  const end = entries.at(-1)?.event
  return end?._tag === "RunEnd" ? end : assert.fail("the run has no end")
}

const play = Effect.fnUntraced(function* (kills: ReadonlyArray<number>) {
  const team = new Team()
  const played = yield* killed(kills, Effect.succeed(yield* disk), {
    agents: team.agents,
    // Where a message of a person is in a request depends on the time at which it comes.
    sent: { steered: true }
  })
  assert.deepStrictEqual(team.faults, [], played.label)
  return { ...played, summaries: team.summaries }
})

describe("a run of several agents that survives its process", () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31))

  it.effect(
    `is with the agent, and has the summary, that it had before, wherever it is killed, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const whole = yield* play([])
        const [count = 0] = whole.writes
        assert.deepStrictEqual(handOffs(whole.entries), [
          "3 triage to billing",
          "3 shallow to deep",
          "6 billing to triage"
        ])
        assert.deepStrictEqual(compactions(whole.entries, ""), ["0 4", "1 4", "0 6", "0 8"])
        const ofTurns = shape(whole.entries.filter((entry) => !isCompaction(entry)))
        for (let kill = 1; kill <= count; kill++) {
          // The process that continues is killed too, after one in three of the first kills.
          const again = random.once(3) ? [[kill, 1 + random.upTo(random.pick(8, count))]] : []
          for (const kills of [[kill], ...again]) {
            const { entries, label, summaries, world } = yield* play(kills)
            assert.isAtMost(world.modelCalls, whole.world.modelCalls + kills.length, label)
            assert.isAtMost(summaries, whole.summaries + kills.length, label)
            assert.deepStrictEqual(handOffs(entries), handOffs(whole.entries), label)
            // A call with an unknown end has another result, and so the requests have other sizes.
            const isUnknown = entries.some(
              ({ event }) => event._tag === "ToolExecutionEnd" && event.outcome === "unknown"
            )
            if (isUnknown) continue
            assert.deepStrictEqual(compactions(entries, label), compactions(whole.entries, ""), label)
            assert.deepStrictEqual(shape(entries.filter((entry) => !isCompaction(entry))), ofTurns, label)
            const [end, first] = [endOf(entries), endOf(whole.entries)]
            assert.deepStrictEqual(
              [end.turns, end.usage, end.childUsage],
              [first.turns, first.usage, first.childUsage],
              label
            )
          }
        }
      }),
    600_000
  )
})
