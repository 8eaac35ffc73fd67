import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp } from "effect/observability"
import { Agent, Tool } from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { events, refuse, type Seen, serve, stream } from "../providers/server.ts"

const Value = Schema.Struct({
  stringValue: Schema.optionalKey(Schema.NullOr(Schema.String)),
  intValue: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite]))),
  doubleValue: Schema.optionalKey(Schema.NullOr(Schema.Finite))
})
const Attributes = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))
const Span = Schema.Struct({
  name: Schema.String,
  kind: Schema.Finite,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  status: Schema.Struct({ code: Schema.Finite, message: Schema.optionalKey(Schema.String) }),
  attributes: Attributes
})
const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({ scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) })) })
  )
})
const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({
      scopeMetrics: Schema.Array(
        Schema.Struct({
          metrics: Schema.Array(
            Schema.Struct({
              name: Schema.String,
              unit: Schema.String,
              histogram: Schema.Struct({
                dataPoints: Schema.Array(
                  Schema.Struct({ count: Schema.Finite, explicitBounds: Schema.Array(Schema.Finite) })
                )
              })
            })
          )
        })
      )
    })
  )
})
const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({
      scopeLogs: Schema.Array(
        Schema.Struct({ logRecords: Schema.Array(Schema.Struct({ attributes: Attributes })) })
      )
    })
  )
})

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  model: "m-1-2026",
  choices: [{ index: 0, delta, finish_reason }]
})
const call = {
  tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "{}" } }]
}
const usage = { choices: [], usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 } }

const look = Tool.make({
  name: "look",
  description: "Fails.",
  execute: () => Effect.andThen(Effect.logInfo("looking"), Effect.fail("nothing to see"))
})

/** What the server was sent at this path, decoded. */
const sent = <A>(requests: ReadonlyArray<Seen>, path: string, schema: Schema.Codec<A, any>) =>
  Effect.forEach(
    requests.filter(({ url }) => url.endsWith(path)),
    ({ body }) => Schema.decodeEffect(Schema.fromJsonString(schema))(body)
  )

describe("Effect's OTLP exporter", () => {
  it.live("sends spans, metrics and logs of a run to a collector", () =>
    Effect.gen(function* () {
      let answers = 0
      const server = yield* serve((response, { url }) => {
        if (!url.endsWith("/chat/completions")) return refuse(response, 200, {})
        const [delta, end] = answers++ === 0 ? [call, "tool_calls"] : [{ content: "ok" }, "stop"]
        stream(response).end(events(chunk(delta), chunk({}, end), usage, "[DONE]"))
      })
      const origin = new URL(server.baseUrl).origin
      const provider = OpenAiCompatible.layer({ id: "mistral", baseUrl: server.baseUrl })
      const collector = Otlp.layerJson({
        baseUrl: `${origin}/collector`,
        resource: { serviceName: "test" },
        loggerMergeWithExisting: false
      })
      yield* Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m-1", agent: { name: "looker" }, tools: [look] })
        yield* agent.prompt("Look")
      }).pipe(
        Effect.scoped,
        Effect.provide(Layer.mergeAll(provider, collector).pipe(Layer.provide(FetchHttpClient.layer))),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )

      const traces = yield* sent(server.requests, "/v1/traces", Traces)
      const spans = traces.flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      )
      const nameOf = (id: string | undefined) => spans.find(({ spanId }) => spanId === id)?.name
      assert.deepStrictEqual(
        spans
          .map(({ name, kind, parentSpanId, status }) => [name, kind, nameOf(parentSpanId), status.code])
          .sort(),
        [
          ["POST", 3, "chat m-1", 1],
          ["POST", 3, "chat m-1", 1],
          ["chat m-1", 3, "invoke_agent looker", 1],
          ["chat m-1", 3, "invoke_agent looker", 1],
          ["execute_tool look", 1, "invoke_agent looker", 2],
          ["invoke_agent looker", 1, undefined, 1]
        ]
      )
      const chat = spans.find(({ name }) => name === "chat m-1")
      const attributes = Object.fromEntries(
        (chat?.attributes ?? []).map(({ key, value }) => [
          key,
          value.stringValue ?? value.intValue ?? value.doubleValue
        ])
      )
      assert.deepInclude(attributes, {
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1-2026",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "server.address": "127.0.0.1",
        "server.port": Number(new URL(server.baseUrl).port)
      })

      const [metrics] = (yield* sent(server.requests, "/v1/metrics", Metrics)).slice(-1)
      assert.deepStrictEqual(
        metrics?.resourceMetrics
          .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
          .map(({ histogram: { dataPoints }, name, unit }) => [
            name,
            unit,
            dataPoints.reduce((sum, { count }) => sum + count, 0),
            dataPoints[0]?.explicitBounds.at(-1)
          ])
          .sort(),
        [
          ["gen_ai.client.operation.duration", "s", 2, 81.92],
          ["gen_ai.client.operation.time_to_first_chunk", "s", 2, 81.92],
          ["gen_ai.client.token.usage", "{token}", 4, 67_108_864],
          ["gen_ai.execute_tool.duration", "s", 1, 81.92],
          ["gen_ai.invoke_agent.duration", "s", 1, 409.6],
          ["gen_ai.invoke_agent.inference_calls", "{inference_call}", 1, 128],
          ["gen_ai.invoke_agent.tool_calls", "{tool_call}", 1, 128]
        ]
      )

      const logs = yield* sent(server.requests, "/v1/logs", Logs)
      const records = logs.flatMap(({ resourceLogs }) =>
        resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
      )
      const keys = records.flatMap(({ attributes }) => attributes.map(({ key }) => key))
      assert.includeMembers(keys, ["effect_agent.run.id", "gen_ai.tool.call.id"])
    }).pipe(Effect.scoped)
  )
})
