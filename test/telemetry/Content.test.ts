import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Message, Telemetry, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { inspect } from "node:util"
import { named, record } from "./recorder.ts"

const secret = "planted-secret"

const read = Tool.make({
  name: "read",
  description: "Reads a file.",
  params: Schema.Struct({ path: Schema.String }),
  execute: ({ path }) =>
    path === "a.txt" ? Effect.succeed(`${secret} text`) : Effect.fail(`${secret} cannot be read`)
})

const script = (path: string) => [
  ScriptedProvider.turn(
    Step.thinking(`${secret} thought`),
    Step.toolCall("read", { path, why: secret }, { id: "c1" }),
    Step.finish("toolUse")
  ),
  ScriptedProvider.text(`${secret} answer`)
]

const prompt = (path: string, options: Partial<Agent.AgentOptions<readonly [], readonly []>> = {}) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m", system: `${secret} system`, ...options, tools: [read] })
    return yield* agent.prompt([
      Message.text(`${secret} prompt`),
      Message.image("aGVsbG8=", "image/png"),
      { type: "image", source: { url: "https://example.com/a.png" } }
    ])
  }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer(script(path))))

describe("content", () => {
  it.effect("is in no span by default, nor in its status, also of a run that its tool failed", () =>
    Effect.gen(function* () {
      const runs = [
        yield* record(prompt("a.txt")),
        yield* record(prompt("b.txt")),
        yield* record(prompt("b.txt", { toolFailureMode: "fail" }))
      ]
      assert.notInclude(
        inspect(
          runs.map(({ spans }) => spans),
          { depth: 20 }
        ),
        secret
      )
      const [, , failed] = runs
      assert.deepStrictEqual(
        failed?.spans.map(({ name, status }) => [name, status]),
        [
          ["invoke_agent", "ToolFailed: A tool failed"],
          ["chat m", "ok"],
          ["execute_tool read", "error: Tool read failed: error"]
        ]
      )
    })
  )

  it.effect("is in the spans where the application captures it, without bytes", () =>
    Effect.gen(function* () {
      const { spans } = yield* record(Effect.provideService(prompt("a.txt"), Telemetry.CaptureContent, true))
      const json = (name: string, attribute: string): unknown =>
        JSON.parse(String(named(spans, name).attributes[attribute]))
      const system = [{ type: "text", content: `${secret} system` }]
      const prompted = {
        role: "user",
        parts: [
          { type: "text", content: `${secret} prompt` },
          { type: "blob", modality: "image", mime_type: "image/png", content: "" },
          { type: "uri", modality: "image", uri: "https://example.com/a.png" }
        ]
      }
      const called = {
        role: "assistant",
        parts: [
          { type: "reasoning", content: `${secret} thought` },
          { type: "tool_call", id: "c1", name: "read", arguments: { path: "a.txt", why: secret } }
        ]
      }
      const answer = { role: "assistant", parts: [{ type: "text", content: `${secret} answer` }] }

      assert.deepStrictEqual(json("invoke_agent", "gen_ai.system_instructions"), system)
      assert.deepStrictEqual(json("invoke_agent", "gen_ai.input.messages"), [prompted])
      assert.deepStrictEqual(json("invoke_agent", "gen_ai.output.messages"), [
        { ...answer, finish_reason: "stop" }
      ])
      assert.deepStrictEqual(json("chat m", "gen_ai.system_instructions"), system)
      assert.deepStrictEqual(json("chat m", "gen_ai.input.messages"), [prompted])
      assert.deepStrictEqual(json("chat m", "gen_ai.output.messages"), [
        { ...called, finish_reason: "tool_call" }
      ])
      assert.deepStrictEqual(json("chat m", "gen_ai.tool.definitions"), [
        { type: "function", name: "read", description: "Reads a file.", parameters: read.parameters }
      ])
      const last = spans.findLast(({ name }) => name === "chat m")
      assert.deepStrictEqual(JSON.parse(String(last?.attributes["gen_ai.input.messages"])), [
        prompted,
        called,
        { role: "tool", parts: [{ type: "tool_call_response", id: "c1", response: `${secret} text` }] }
      ])
      const { attributes } = named(spans, "execute_tool read")
      assert.deepStrictEqual(JSON.parse(String(attributes["gen_ai.tool.call.arguments"])), {
        path: "a.txt",
        why: secret
      })
      assert.strictEqual(attributes["gen_ai.tool.call.result"], `${secret} text`)
    })
  )

  it.effect("has the tools of the vendor, sources and media, without bytes", () =>
    Effect.gen(function* () {
      const turn = ScriptedProvider.turn(
        Step.start,
        Step.hostedTool({ id: "s", name: "web_search", params: { query: "Oslo" }, result: ["Rain"] }),
        Step.source({ sourceType: "url", url: "https://weather.test", opaque: { page: 1 } }),
        Step.media({ source: { data: "aGVsbG8=", mediaType: "audio/wav" } }),
        Step.finish()
      )
      const asked = Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m" })
        return yield* agent.prompt([{ type: "file", source: { url: "https://a.test/a.pdf" }, name: "a.pdf" }])
      }).pipe(Effect.scoped, Effect.provide(ScriptedProvider.layer([turn])))
      const { spans } = yield* record(Effect.provideService(asked, Telemetry.CaptureContent, true))
      const { attributes } = named(spans, "chat m")
      assert.deepStrictEqual(JSON.parse(String(attributes["gen_ai.input.messages"])), [
        { role: "user", parts: [{ type: "uri", modality: "document", uri: "https://a.test/a.pdf" }] }
      ])
      assert.deepStrictEqual(JSON.parse(String(attributes["gen_ai.output.messages"])), [
        {
          role: "assistant",
          parts: [
            {
              type: "server_tool_call",
              id: "s",
              name: "web_search",
              server_tool_call: { type: "web_search", arguments: { query: "Oslo" } }
            },
            {
              type: "server_tool_call_response",
              id: "s",
              server_tool_call_response: { type: "web_search", response: ["Rain"] }
            },
            { type: "source", sourceType: "url", url: "https://weather.test" },
            { type: "blob", modality: "audio", mime_type: "audio/wav", content: "" }
          ],
          finish_reason: "stop"
        }
      ])
    })
  )

  it.effect("tells the failure of a run's tool where it is captured", () =>
    Effect.gen(function* () {
      const { spans } = yield* record(
        Effect.provideService(prompt("b.txt", { toolFailureMode: "fail" }), Telemetry.CaptureContent, true)
      )
      assert.include(named(spans, "invoke_agent").status, `${secret} cannot be read`)
    })
  )
})
