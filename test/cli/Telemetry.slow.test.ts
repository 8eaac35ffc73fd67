import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "./program.ts"

Program.bundled()

/** Runs the program with a collector on loopback; returns its end and the requests of the collector, by path. */
const collected = (env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const requests: Array<readonly [path: string, body: string]> = []
    const url = yield* Program.server(({ url = "" }, body, response) => {
      requests.push([url, body])
      response.end("{}")
    })
    const cwd = Program.folder({ "a.txt": "planted text" })
    const ended = yield* Program.run(["read a.txt"], {
      cwd,
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env }
    })
    return { ...ended, requests }
  }).pipe(Effect.scoped)

describe.concurrent("the program's telemetry", { timeout: 90_000 }, () => {
  it.effect("goes to the collector of the environment, without content", () =>
    Effect.gen(function* () {
      const { code, requests } = yield* collected({})
      assert.strictEqual(code, 0)
      const bodies = (path: string) => requests.filter(([to]) => to === path).map(([, body]) => body)
      const traces = bodies("/v1/traces").join()
      for (const name of [
        "invoke_agent effect-agent",
        "chat local/rules",
        "execute_tool read",
        "service.name"
      ]) {
        assert.include(traces, name)
      }
      assert.notInclude(traces, `"router"`)
      assert.include(bodies("/v1/metrics").join(), "gen_ai.invoke_agent.duration")
      assert.notInclude(JSON.stringify(requests), "planted text")
    })
  )

  it.effect("has the content where the environment captures it", () =>
    Effect.gen(function* () {
      const { requests } = yield* collected({
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
        OTEL_METRICS_EXPORTER: "none"
      })
      assert.include(JSON.stringify(requests), "planted text")
      assert.isFalse(requests.some(([path]) => path === "/v1/metrics"))
    })
  )

  it.effect("is left out, with a note, where the address is none", () =>
    Effect.gen(function* () {
      const { code, stderr, requests } = yield* collected({ OTEL_EXPORTER_OTLP_ENDPOINT: "not an address" })
      assert.strictEqual(code, 0)
      assert.match(stderr, /the telemetry is not exported: .*OTEL_EXPORTER_OTLP/)
      assert.deepStrictEqual(requests, [])
    })
  )
})
