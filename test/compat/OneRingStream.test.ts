import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { AgentEvent } from "effect-agent"
import { OneRingStream } from "effect-agent/compat"
import { failed, play, twoTurns } from "./recording.ts"

const project = (events: ReadonlyArray<AgentEvent.AgentEvent>, names?: OneRingStream.Names) =>
  play(OneRingStream.initial(names), OneRingStream.step, events)

const ofType = <const T extends OneRingStream.Event["type"]>(
  events: ReadonlyArray<OneRingStream.Event>,
  type: T
) =>
  events.filter((event): event is Extract<OneRingStream.Event, { readonly type: T }> => event.type === type)

/** The types in order, those that repeat in a row once. */
const types = (events: ReadonlyArray<OneRingStream.Event>) =>
  events.map(({ type }) => type).filter((type, index, all) => all[index - 1] !== type)

describe("OneRingStream", () => {
  it.effect("sends what oneringai sends, in its order (rows 99, 265)", () =>
    Effect.gen(function* () {
      const call = [
        "response.tool_call.start",
        "response.tool_call_arguments.delta",
        "response.tool_call_arguments.done"
      ]
      const execution = ["response.tool_execution.start", "response.tool_execution.done"]
      const five = <A>(events: ReadonlyArray<A>) => Array.from({ length: 5 }, () => events).flat()
      assert.deepStrictEqual<ReadonlyArray<string>>(
        types(project(yield* twoTurns)),
        [
          ["response.created", "response.reasoning.delta", "response.output_text.delta"],
          [...five(call), "response.reasoning.done", ...five(execution), "response.iteration.complete"],
          ["response.created", "response.output_text.delta", "response.iteration.complete"],
          ["response.complete"]
        ].flat()
      )
    })
  )

  it.effect("carries names, arguments, results and errors of calls", () =>
    Effect.gen(function* () {
      const events = project(yield* twoTurns)
      assert.deepInclude(ofType(events, "response.tool_call_arguments.delta")[1], {
        tool_call_id: "good",
        tool_name: "add",
        delta: '"b":3}'
      })
      const done = ofType(events, "response.tool_execution.done")
      assert.deepStrictEqual([done[0]?.result, done[0]?.error], ["5", undefined])
      assert.deepStrictEqual([done[3]?.result, done[3]?.error], [null, "not today"])
    })
  )

  it.effect("counts iterations, and sums up at the end", () =>
    Effect.gen(function* () {
      const events = project(yield* twoTurns)
      assert.deepStrictEqual(
        ofType(events, "response.iteration.complete").map((event) => [
          event.iteration,
          event.tool_calls_count,
          event.has_more_iterations
        ]),
        [
          [1, 5, true],
          [2, 0, false]
        ]
      )
      assert.deepInclude(ofType(events, "response.complete")[0], {
        status: "completed",
        iterations: 2,
        usage: { input_tokens: 30, output_tokens: 5, total_tokens: 35 }
      })
    })
  )

  it.effect("numbers the pieces strictly upwards, under one response", () =>
    Effect.gen(function* () {
      const events = project(yield* twoTurns)
      const numbers = events.flatMap((event) => ("sequence_number" in event ? [event.sequence_number] : []))
      assert.isTrue(numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0)))
      assert.strictEqual(new Set(events.map((event) => event.response_id)).size, 1)
    })
  )

  it.effect("writes the names as the documentation does, if asked to (row 99)", () =>
    Effect.gen(function* () {
      const found = new Set<string>(types(project(yield* twoTurns, "documentation")))
      assert.isTrue(found.has("response.tool_call.arguments.delta"))
      assert.isTrue(found.has("response.tool_call.arguments.done"))
      assert.isFalse(found.has("response.tool_call_arguments.delta"))
      assert.strictEqual(ofType(project(yield* failed, "documentation"), "error").length, 1)
    })
  )

  it.effect("a failed run says why, and whether it can be tried again (row 246)", () =>
    Effect.gen(function* () {
      const events = project(yield* failed)
      assert.deepInclude(ofType(events, "response.error")[0], { recoverable: true })
      assert.strictEqual(ofType(events, "response.error")[0]?.error.code, "Overloaded")
      assert.strictEqual(ofType(events, "response.complete")[0]?.status, "failed")
    })
  )

  it.effect("projects a stream as it projects its events", () =>
    Effect.gen(function* () {
      const events = yield* twoTurns
      const streamed = yield* Stream.fromIterable(events).pipe(OneRingStream.project(), Stream.runCollect)
      assert.deepStrictEqual(streamed, project(events))
    })
  )
})
