import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Agent, Provider, Tool } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"

const output = Schema.Struct({ city: Schema.String })
const search = Tool.make({ name: "search", description: "Searches.", execute: () => Effect.succeed("") })
const closed = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false
}

/** The body of the first request of a run with an output schema. The server refuses it. */
const bodyOf = Effect.fnUntraced(function* (
  make: Effect.Effect<Provider.Provider["Service"], never, HttpClient.HttpClient>,
  model: string,
  tools: ReadonlyArray<Tool.Runnable> = []
) {
  let body: unknown
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      if (request.body._tag === "Uint8Array") body = JSON.parse(new TextDecoder().decode(request.body.body))
      return HttpClientResponse.fromWeb(request, new Response("{}", { status: 400 }))
    })
  )
  const provider = yield* Effect.provideService(make, HttpClient.HttpClient, client)
  const agent = yield* Effect.provideService(
    Agent.make({ model, output, tools }),
    Provider.Provider,
    provider
  )
  yield* Effect.exit(agent.prompt("Where?"))
  return body
})

const compatible = (compat?: Partial<OpenAiCompatible.Compat>) =>
  OpenAiCompatible.make({ id: "local", baseUrl: "http://127.0.0.1/v1", ...(compat && { compat }) })
const toolNames = (body: unknown) => JSON.stringify(body).match(/"name":"(?:final_answer|search)"/g) ?? []
const byTool = ['"name":"final_answer"']

describe("requests for a typed output", () => {
  it.effect("Responses API: the format of the text", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(OpenAi.make({ apiKey: "k" }), "gpt-5-mini", [search])
      assert.deepInclude(body, {
        text: { format: { type: "json_schema", name: "output", schema: closed, strict: true } }
      })
      assert.deepStrictEqual(toolNames(body), ['"name":"search"'])
    })
  )

  it.effect("Messages API: the format of the output", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(Anthropic.make({ apiKey: "k" }), "claude-sonnet-4-5", [search])
      assert.deepInclude(body, { output_config: { format: { type: "json_schema", schema: closed } } })
      assert.deepStrictEqual(toolNames(body), ['"name":"search"'])
    })
  )

  it.effect("Gemini: the schema of the response, from Gemini 3 also with tools", () =>
    Effect.gen(function* () {
      const generationConfig = { responseMimeType: "application/json", responseJsonSchema: closed }
      const google = Google.make({ apiKey: "k" })
      assert.deepInclude(yield* bodyOf(google, "gemini-3-flash", [search]), { generationConfig })
      assert.deepInclude(yield* bodyOf(google, "gemini-2.5-flash"), { generationConfig })
      const both = yield* bodyOf(google, "gemini-2.5-flash", [search])
      assert.notProperty(both, "generationConfig")
      assert.deepStrictEqual(toolNames(both), ['"name":"search"', ...byTool])
    })
  )

  it.effect("Chat Completions: the response format, and a tool beside other tools", () =>
    Effect.gen(function* () {
      const json_schema = { name: "output", schema: closed, strict: true }
      assert.deepInclude(yield* bodyOf(compatible(), "m"), {
        response_format: { type: "json_schema", json_schema }
      })
      const both = yield* bodyOf(compatible(), "m", [search])
      assert.notProperty(both, "response_format")
      assert.deepStrictEqual(toolNames(both), ['"name":"search"', ...byTool])
    })
  )

  it.effect("a tool for servers and models without output schemas", () =>
    Effect.gen(function* () {
      const bodies = [
        yield* bodyOf(compatible({ output: "json_object" }), "m"),
        yield* bodyOf(Anthropic.make({ apiKey: "k" }), "claude-3-5-haiku-latest"),
        yield* bodyOf(OpenAi.make({ apiKey: "k" }), "gpt-4-turbo"),
        yield* bodyOf(Anthropic.make({ apiKey: "k", vendor: "moonshot" }), "kimi-k2")
      ]
      for (const body of bodies) {
        assert.deepStrictEqual(toolNames(body), byTool)
        assert.notMatch(JSON.stringify(body), /response_format|output_config|json_schema/)
      }
    })
  )
})
