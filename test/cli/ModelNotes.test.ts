import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { AgentEvent } from "../../src/AgentEvent.ts"
import { explain } from "../../src/cli/agent/Outcome.ts"
import * as ModelTable from "../../src/cli/agent/ModelTable.ts"
import * as Screen from "../../src/cli/terminal/Screen.ts"
import { NotFound, ProviderError } from "../../src/ProviderError.ts"

const notesOf = Effect.fnUntraced(function* (...events: ReadonlyArray<AgentEvent>) {
  const lines: Array<string> = []
  const note = ModelTable.noting(
    {
      out: () => Effect.void,
      err: (text) => Effect.sync(() => void lines.push(text)),
      paint: Screen.paintOf(false),
      isInteractive: false,
      rows: () => 24,
      width: () => 0
    },
    false
  )
  for (const event of events) yield* note([event])
  return lines.join("")
})

const base = { runId: "r", seq: 1, timestamp: 0, turn: 1 }
const start = (model: string): AgentEvent => ({
  ...base,
  _tag: "ModelCallStart",
  model,
  messageCount: 1,
  options: {}
})

describe("notes on a model", () => {
  it.effect("name the day on which its vendor turns it off, from sixty days before, once", () =>
    Effect.gen(function* () {
      const asked = [start("anthropic/claude-sonnet-4-5"), start("anthropic/claude-sonnet-4-5")]
      yield* TestClock.setTime(Date.parse("2026-09-01"))
      assert.strictEqual(yield* notesOf(...asked), "")
      yield* TestClock.setTime(Date.parse("2026-11-26"))
      assert.strictEqual(
        yield* notesOf(...asked, start("anthropic/claude-opus-5"), start("local/rules")),
        'anthropic/claude-sonnet-4-5 will be turned off on 2026-11-30: "effect-agent models anthropic" lists others.\n'
      )
    })
  )

  it.effect("say that an option goes out as it is, over what the model takes elsewhere", () =>
    Effect.gen(function* () {
      const adjusted = [{ option: "maxTokens", asked: 9, sent: 9, reason: "Elsewhere it is 8." }]
      const end: AgentEvent = { ...base, _tag: "ModelCallEnd", messageId: "m", durationMs: 1, adjusted }
      assert.strictEqual(yield* notesOf(end), "maxTokens is sent as 9: Elsewhere it is 8.\n")
    })
  )
})

describe("a model that a vendor does not have", () => {
  it("is answered with the way to those that it has", () => {
    const error = (provider: string) =>
      explain(new ProviderError({ provider, reason: new NotFound({ detail: "No such model" }) }))
    assert.match(
      error("together"),
      /"effect-agent models together" lists those that are known.*--model provider\/id/
    )
    assert.notMatch(error("acme"), /effect-agent models/)
  })
})
