import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Karl, OneRingEmitter } from "effect-agent/compat"
import { play } from "./recording.ts"
import { context, scenarios } from "./scenarios.ts"

const golden = (system: string): Readonly<Record<string, unknown>> =>
  JSON.parse(readFileSync(new URL(`golden/${system}.json`, import.meta.url), "utf8"))

/** Errors as their messages, dates as text, and ids by their order. */
const readable = (events: ReadonlyArray<object>): unknown => {
  const names = new Map<string, string>()
  const text = JSON.stringify(events, function (this: object, key, value: unknown) {
    if (key === "executionId") return "run"
    // Before its `toJSON`.
    const error: unknown = key === "error" ? Reflect.get(this, key) : undefined
    if (error instanceof Error) return error.message
    if (key === "id" && typeof value === "string" && value.startsWith("msg")) {
      if (!names.has(value)) names.set(value, `message ${names.size + 1}`)
      return names.get(value)
    }
    return value
  })
  return JSON.parse(text)
}

describe("events as other systems send them", () => {
  for (const [name, run] of Object.entries(scenarios)) {
    it.effect(`Karl: ${name} (row 96)`, () =>
      Effect.map(run, (events) =>
        assert.deepStrictEqual(readable(play(Karl.initial, Karl.step, events)), golden("karl")[name])
      )
    )
    it.effect(`oneringai: ${name} (row 98)`, () =>
      Effect.map(run, (events) =>
        assert.deepStrictEqual(
          readable(play(OneRingEmitter.from(context), OneRingEmitter.step, events)),
          golden("oneringai")[name]
        )
      )
    )
  }

  it.effect(
    "another run may succeed where one was out of time, and the error names the limit (row 252)",
    () =>
      Effect.gen(function* () {
        const error = (yield* scenarios["a run out of time"]).find(({ _tag }) => _tag === "RunError")
        assert.isTrue(error?._tag === "RunError" && error.retryable)
        assert.include(error?._tag === "RunError" ? error.error.message : "", "executionTime")
      })
  )
})
