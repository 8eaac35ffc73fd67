import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Message, type Provider, Tool, Transcript } from "effect-agent"
import { Compaction, Pruning } from "effect-agent/context"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "../behaviour/invariants.ts"
import { ofTag } from "../behaviour/play.ts"
import type { AgentEvent } from "effect-agent"

/** Tokens as a vendor would count them: not as the library estimates them. */
const tokensOf = (request: Provider.ModelRequest) => Math.ceil(JSON.stringify(request.messages).length / 3)

const fact = /FACT-\d+ is [a-z]+-\d+/g
const factsIn = (text: string) => [...new Set(text.match(fact) ?? [])]
const textOf = ({ messages }: Provider.ModelRequest) => JSON.stringify(messages)

const isSummary = ({ system = "" }: Provider.ModelRequest) => system.startsWith("You summarize")

/** Copies each fact of its request, and nothing else. */
const summary = (request: Provider.ModelRequest): ScriptedProvider.Turn =>
  answered(request, Step.text(`Facts:\n${factsIn(textOf(request)).join("\n")}`))

const answered = (request: Provider.ModelRequest, step: Step.Step, reason: Message.StopReason = "stop") =>
  ScriptedProvider.turn(
    Step.start,
    step,
    Step.finish(reason, { input: tokensOf(request), output: Math.ceil(JSON.stringify(step).length / 3) })
  )

const filler = (n: number) => `Row ${n}: ${"lorem ipsum dolor sit amet ".repeat(10)}`

/** Ten facts: five in results of tools, five in what the user says. */
const inResult = (turn: number) => (turn % 60 === 7 && turn < 300 ? ` FACT-${turn} is result-${turn} ` : "")
const inPrompt = (n: number) => (n < 5 ? `FACT-${900 + n} is prompt-${n}` : "")

/** Turns with tools, 10 to a prompt: 500 in all. */
const playLong = (layer: Layer.Layer<never>) =>
  Effect.gen(function* () {
    let turn = 0
    const look = Tool.make({
      name: "look",
      description: "Looks.",
      execute: () => Effect.sync(() => `${filler(turn)}${inResult(turn)}${filler(turn)}`)
    })
    const provider = yield* ScriptedProvider.make([], {
      exhausted: (request) => {
        if (isSummary(request)) return summary(request)
        turn++
        return turn % 10 === 0
          ? answered(request, Step.text(`Seen ${turn}.`))
          : answered(request, Step.toolCall("look", { turn }), "toolUse")
      }
    })
    const agent = yield* Agent.make({
      model: "m",
      tools: [look],
      limits: { maxIdenticalToolCalls: Infinity }
    }).pipe(Effect.provide([provider.layer, layer]))
    const events: Array<AgentEvent.AgentEvent> = []
    const runs: Array<ReadonlyArray<AgentEvent.AgentEvent>> = []
    yield* agent.subscribe((event) => Effect.sync(() => events.push(event)))
    for (let n = 0; n < 50; n++) {
      yield* agent.prompt(`Look on, part ${n}. ${inPrompt(n)}`)
      runs.push(events.splice(0))
    }
    return { requests: yield* provider.requests, runs, turns: turn, state: yield* agent.state.get }
  })

/** How many messages two requests begin with in common. */
const common = (left: Provider.ModelRequest, right: Provider.ModelRequest) => {
  const index = left.messages.findIndex((message, index) => message !== right.messages[index])
  return index === -1 ? left.messages.length : index
}

describe("a conversation of 500 turns in a small context window", () => {
  const window = 16_000
  const check = (layer: Layer.Layer<never>) =>
    Effect.gen(function* () {
      const { requests, runs, state, turns } = yield* playLong(layer)
      assert.strictEqual(turns, 500)
      const asked = requests.filter((request) => !isSummary(request))
      const ends = runs
        .flatMap((events) => ofTag(events, "Compaction"))
        .filter(({ status }) => status === "end")
      const compactions = ends.length
      for (const request of asked) {
        assert.deepStrictEqual(Transcript.violations(request.messages), [])
        assert.strictEqual(request.messages[0]?.role, "user")
        assert.isBelow(tokensOf(request), window)
      }
      assert.isAbove(compactions, 0)
      assert.isAtMost(compactions / requests.length, 0.03)
      const last = asked.at(-1)
      assert.strictEqual(last === undefined ? 0 : factsIn(textOf(last)).length, 10)
      for (const events of runs) assert.deepStrictEqual(Invariants.broken(events), [])
      assert.strictEqual(state.messages.length, 50 + 500 + 450)
      return { asked, ends, summaries: requests.length - asked.length }
    })

  it.live("ends with compaction, and the start of the requests changes only there", () =>
    Effect.gen(function* () {
      const { asked, ends, summaries } = yield* check(Compaction.layer({ contextWindow: window }))
      const changed = asked.filter((request, index) => {
        const before = asked[index - 1]
        return before !== undefined && common(before, request) < before.messages.length
      })
      assert.strictEqual(changed.length, ends.length)
      assert.strictEqual(summaries, ends.length)
      for (const { tokensAfter = 0, tokensBefore = 0 } of ends) {
        assert.isAtLeast(tokensBefore, window * (5 / 6))
        assert.isBelow(tokensAfter, tokensBefore / 2)
      }
    })
  )

  it.live("ends with pruning before compaction, with fewer compactions", () =>
    Effect.gen(function* () {
      const pruned = Compaction.layer({ contextWindow: window }).pipe(
        Layer.provide(Pruning.layer({ budget: 3_000, keepTurns: 2 }))
      )
      const alone = yield* check(Compaction.layer({ contextWindow: window }))
      // A summary is made from whole results, in several parts.
      const both = yield* check(pruned)
      assert.isBelow(both.ends.length, alone.ends.length)
    })
  )
})
