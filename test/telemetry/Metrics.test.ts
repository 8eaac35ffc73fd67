import { assert, describe, it } from "@effect/vitest"
import { Effect, type Metric } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hook, ProviderError, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { record } from "./recorder.ts"

const slow = Tool.make({
  name: "slow",
  description: "Takes a second.",
  execute: () => Effect.as(Effect.sleep("1 second"), "done")
})
const refusal = Hook.beforeTool(({ call }) => Effect.succeed(call.id === "no" ? { block: true } : {}))

const prompt = (script: ScriptedProvider.Script, name?: string) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({
      model: "m",
      tools: [slow],
      hooks: [refusal],
      ...(name === undefined ? {} : { agent: { name, id: "1" } })
    })
    return yield* agent.prompt("Hi")
  }).pipe(
    Effect.scoped,
    Effect.provide(ScriptedProvider.layer(script, { id: "mistral" })),
    Effect.raceFirst(Effect.forever(Effect.andThen(TestClock.adjust("500 millis"), Effect.yieldNow)))
  )

/** The histograms by name and attributes: how many values there are, and their sum. */
const read = (metrics: ReadonlyArray<Metric.Metric.Snapshot>) =>
  Object.fromEntries(
    metrics.map(({ attributes: { unit, ...attributes } = {}, id, state, type }) => {
      assert(type === "Histogram")
      const series = Object.entries(attributes).map(([key, value]) => `${key}=${value}`)
      return [[id, ...series.sort()].join(" "), `${state.count} × ${unit}, ${state.sum}`] as const
    })
  )

describe("metrics", () => {
  it.effect("of a run with two model calls and two tool calls, of which one runs", () =>
    Effect.gen(function* () {
      const { metrics } = yield* record(
        prompt(
          [
            ScriptedProvider.turn(
              Step.sleep("1500 millis"),
              Step.start,
              Step.toolCall("slow", {}, { id: "yes" }),
              Step.toolCall("slow", {}, { id: "no" }),
              Step.finish("toolUse", { input: 100, output: 20 })
            ),
            ScriptedProvider.turn(Step.start, Step.text("ok"), Step.finish("stop", { input: 130, output: 5 }))
          ],
          "tester"
        )
      )
      const model = "gen_ai.operation.name=chat gen_ai.provider.name=mistral_ai gen_ai.request.model=m"
      const answered = `${model} gen_ai.response.model=m`
      const run = "gen_ai.agent.name=tester gen_ai.request.model=m"
      assert.deepStrictEqual(read(metrics), {
        [`gen_ai.client.operation.duration ${answered}`]: "2 × s, 1.5",
        [`gen_ai.client.operation.time_to_first_chunk ${answered}`]: "2 × s, 1.5",
        [`gen_ai.client.token.usage ${answered} gen_ai.token.type=input`]: "2 × {token}, 230",
        [`gen_ai.client.token.usage ${answered} gen_ai.token.type=output`]: "2 × {token}, 25",
        [`gen_ai.execute_tool.duration gen_ai.agent.name=tester gen_ai.tool.name=slow gen_ai.tool.type=function`]:
          "1 × s, 1",
        [`gen_ai.invoke_agent.duration ${run}`]: "1 × s, 2.5",
        [`gen_ai.invoke_agent.inference_calls ${run}`]: "1 × {inference_call}, 2",
        [`gen_ai.invoke_agent.tool_calls ${run}`]: "1 × {tool_call}, 2"
      })
    })
  )

  it.effect("of a failure have its type", () =>
    Effect.gen(function* () {
      const failed = ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" }))
      const { metrics } = yield* record(prompt([failed]))
      const model = "gen_ai.operation.name=chat gen_ai.provider.name=mistral_ai gen_ai.request.model=m"
      assert.deepStrictEqual(read(metrics), {
        [`gen_ai.client.operation.duration error.type=Overloaded ${model}`]: "1 × s, 0",
        "gen_ai.invoke_agent.duration error.type=Overloaded gen_ai.request.model=m": "1 × s, 0",
        "gen_ai.invoke_agent.inference_calls gen_ai.request.model=m": "1 × {inference_call}, 1",
        "gen_ai.invoke_agent.tool_calls gen_ai.request.model=m": "1 × {tool_call}, 0"
      })
    })
  )

  it.effect("have the buckets of the conventions", () =>
    Effect.gen(function* () {
      const { metrics } = yield* record(
        prompt([
          ScriptedProvider.toolCall("slow", {}),
          ScriptedProvider.turn(Step.start, Step.text("ok"), Step.finish("stop", { input: 1, output: 1 }))
        ])
      )
      const buckets = Object.fromEntries(
        metrics.map(({ id, state, type }) => {
          assert(type === "Histogram")
          const bounds = state.buckets.map(([bound]) => bound)
          return [id, `${bounds.length}: ${bounds[0]}, ${bounds[1]} … ${bounds.at(-1)}`] as const
        })
      )
      assert.deepStrictEqual(buckets, {
        "gen_ai.client.operation.duration": "14: 0.01, 0.02 … 81.92",
        "gen_ai.client.operation.time_to_first_chunk": "14: 0.01, 0.02 … 81.92",
        "gen_ai.client.token.usage": "14: 1, 4 … 67108864",
        "gen_ai.execute_tool.duration": "14: 0.01, 0.02 … 81.92",
        "gen_ai.invoke_agent.duration": "13: 0.1, 0.2 … 409.6",
        "gen_ai.invoke_agent.inference_calls": "8: 1, 2 … 128",
        "gen_ai.invoke_agent.tool_calls": "8: 1, 2 … 128"
      })
    })
  )
})
