/**
 * Karl's `agentLoop` over the promise agent: its signature, its tools, its events and its return value.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Message, Run, Tool } from "effect-agent"
import { Karl } from "effect-agent/compat"
import { createAgent, type HookFunctions } from "effect-agent/promise"
import { Anthropic, OpenAiCompatible } from "effect-agent/providers"
import { serve } from "../providers/server.ts"
import { longer, snippetsOf } from "./snippets.ts"

interface ToolResult {
  readonly content: ReadonlyArray<{ readonly type: "text"; readonly text: string }>
  readonly isError?: boolean
}

interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly type: "object"; readonly properties: {} }
  readonly execute: (params: any) => Promise<ToolResult>
}

interface AgentLoopConfig {
  readonly model: string
  readonly baseUrl: string
  readonly apiKey: string
  readonly apiFormat: "openai" | "anthropic"
  readonly maxTokens?: number
  readonly temperature?: number
  readonly signal?: AbortSignal
}

// Karl: 20 lines
async function* agentLoop(
  system: string,
  user: string,
  tools: ReadonlyArray<ToolDefinition>,
  { apiFormat, model, signal, apiKey, baseUrl, ...modelOptions }: AgentLoopConfig,
  hooks: HookFunctions = {}
): AsyncGenerator<Karl.Event, Karl.AssistantMessage> {
  const options = { toolExecution: "sequential", invalidJsonArguments: "emptyObject" } as const
  const provider =
    apiFormat === "anthropic"
      ? Anthropic.layer({ apiKey, baseUrl })
      : OpenAiCompatible.layer({ id: "karl", apiKey, baseUrl })
  const all = tools.map((tool) => Tool.fromPromise(tool))
  await using agent = createAgent({ ...options, provider, model, system, tools: all, hooks, modelOptions })
  const { lastAnswer } = yield* Karl.iterate(agent.stream(user, signal && { signal }))
  return lastAnswer
}
// end

const tools: ReadonlyArray<ToolDefinition> = [
  {
    name: "read",
    description: "Reads.",
    parameters: { type: "object", properties: {} },
    execute: async ({ path = "nothing" }) => ({ content: [{ type: "text", text: `text of ${path}` }] })
  },
  {
    name: "refuse",
    description: "Refuses.",
    parameters: { type: "object", properties: {} },
    execute: async () => ({ content: [{ type: "text", text: "not today" }], isError: true })
  },
  {
    name: "boom",
    description: "Fails.",
    parameters: { type: "object", properties: {} },
    execute: () => Promise.reject(new Error("disk full"))
  }
]

type Call = readonly [name: string, rawArguments: string]
interface Answer {
  readonly text?: string
  readonly calls?: ReadonlyArray<Call>
}

const openAi = ({ calls = [], text }: Answer) => [
  ...(text === undefined ? [] : [{ choices: [{ index: 0, delta: { content: text } }] }]),
  ...calls.map(([name, json], index) => ({
    choices: [
      { index: 0, delta: { tool_calls: [{ index, id: `c${index}`, function: { name, arguments: json } }] } }
    ]
  })),
  { choices: [{ index: 0, delta: {}, finish_reason: calls.length === 0 ? "stop" : "tool_calls" }] },
  { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }
]

const anthropic = ({ calls = [], text }: Answer) => {
  const blocks = [
    ...(text === undefined
      ? []
      : [
          [
            { type: "text", text: "" },
            { type: "text_delta", text }
          ] as const
        ]),
    ...calls.map(
      ([name, partial_json], index) =>
        [
          { type: "tool_use", id: `c${index}`, name, input: {} },
          { type: "input_json_delta", partial_json }
        ] as const
    )
  ]
  return [
    { type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } },
    ...blocks.flatMap(([content_block, delta], index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index }
    ]),
    {
      type: "message_delta",
      delta: { stop_reason: calls.length === 0 ? "end_turn" : "tool_use" },
      usage: { output_tokens: 5 }
    },
    { type: "message_stop" }
  ]
}

/** Runs the loop against a server that sends these answers. */
const play = (
  apiFormat: AgentLoopConfig["apiFormat"],
  answers: ReadonlyArray<Answer | number>,
  given: Partial<AgentLoopConfig> = {},
  hooks?: HookFunctions
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* serve((response, _, count) => {
        const answer = answers[count - 1] ?? 500
        if (typeof answer === "number") {
          response.writeHead(answer, { "content-type": "application/json" })
          response.end(JSON.stringify({ error: { message: "bad key" } }))
          return
        }
        response.writeHead(200, { "content-type": "text/event-stream" })
        const events = (apiFormat === "openai" ? openAi : anthropic)(answer)
        for (const event of events) {
          const name = "type" in event ? `event: ${event.type}\n` : ""
          response.write(`${name}data: ${JSON.stringify(event)}\n\n`)
        }
        response.end(apiFormat === "openai" ? "data: [DONE]\n\n" : "")
      })
      const config = {
        model: apiFormat === "openai" ? "gpt-4o" : "claude-sonnet-4-5",
        baseUrl: apiFormat === "openai" ? server.baseUrl : server.baseUrl.replace(/\/v1$/, ""),
        apiKey: "sk-test",
        apiFormat,
        ...given
      }
      const types: Array<string> = []
      const drive = async () => {
        const loop = agentLoop("You are Karl.", "Do it.", tools, config, hooks)
        let next = await loop.next()
        for (; next.done !== true; next = await loop.next()) {
          const failed = next.value.type === "tool_execution_end" && next.value.isError ? " failed" : ""
          types.push(`${next.value.type}${failed}`)
        }
        return next.value
      }
      const returned = yield* Effect.promise(() => drive().catch((error: unknown) => error))
      return { returned, types, requests: server.requests }
    })
  )

const begun = ["stream_start", "tool_call_start", "tool_call_end"]
const last = ["stream_start", "text_delta", "text_end", "message_end", "turn_end"]

describe("Karl's agentLoop", () => {
  for (const apiFormat of ["openai", "anthropic"] as const) {
    it.effect(`runs tools over the wire of ${apiFormat}, and returns the last answer (rows 23, 264)`, () =>
      Effect.gen(function* () {
        const calls: ReadonlyArray<Call> = [["read", '{"path":"a"}']]
        const { requests, returned, types } = yield* play(apiFormat, [{ calls }, { text: "Done." }], {
          maxTokens: 100
        })
        assert.deepStrictEqual(returned, { role: "assistant", content: "Done." })
        const executed = ["message_end", "tool_execution_start", "tool_execution_end"]
        assert.deepStrictEqual(types, [...begun, ...executed, ...last])
        assert.include(requests[1]?.body, "text of a")
        assert.match(requests[0]?.body ?? "", /"max_(completion_)?tokens":100/)
      })
    )

    it.effect(
      `tells the model of tools that fail, and of one that is not there, on ${apiFormat} (row 251)`,
      () =>
        Effect.gen(function* () {
          const calls: ReadonlyArray<Call> = [
            ["boom", "{}"],
            ["refuse", "{}"],
            ["nope", "{}"]
          ]
          const { requests, types } = yield* play(apiFormat, [{ calls }, { text: "Done." }])
          assert.strictEqual(types.filter((type) => type === "tool_execution_end failed").length, 2)
          for (const said of ["disk full", "not today", "nope"]) assert.include(requests[1]?.body, said)
        })
    )

    it.effect(`ends with an error, and throws it, where ${apiFormat} refuses the key (row 247)`, () =>
      Effect.gen(function* () {
        const { returned, types } = yield* play(apiFormat, [401])
        assert.instanceOf(returned, Run.RunFailed)
        assert.include(returned.message, "bad key")
        assert.strictEqual(types.at(-1), "error")
      })
    )
  }

  it.effect("runs a tool with {} where the arguments are no JSON (row 158)", () =>
    Effect.gen(function* () {
      const calls: ReadonlyArray<Call> = [["read", '{"path":']]
      const { requests } = yield* play("openai", [{ calls }, { text: "Done." }])
      assert.include(requests[1]?.body, "text of nothing")
    })
  )

  it.effect("throws the reason of a signal that aborted", () =>
    Effect.gen(function* () {
      const { returned, types } = yield* play("openai", [], { signal: AbortSignal.abort("enough") })
      assert.deepStrictEqual([returned, types], ["enough", []])
    })
  )

  it.effect("calls the hooks of Karl's names (row 110)", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const hooks: HookFunctions = {
        "pre-task": ({ prompts }) => void seen.push(`pre-task ${prompts.map(Message.textOf).join()}`),
        "post-task": ({ status }) => void seen.push(`post-task ${status}`),
        "pre-tool": ({ call }) => void seen.push(`pre-tool ${call.name}`),
        "post-tool": ({ call, isError }) => void seen.push(`post-tool ${call.name} ${isError}`),
        "on-error": ({ scope }) => void seen.push(`on-error ${scope}`)
      }
      yield* play("openai", [{ calls: [["boom", "{}"]] }, { text: "Done." }], {}, hooks)
      assert.deepStrictEqual(seen, [
        "pre-task Do it.",
        "pre-tool boom",
        "post-tool boom true",
        "on-error tool",
        "post-task completed"
      ])
    })
  )

  it("is at most 20 lines", () => {
    const snippets = snippetsOf(import.meta.filename)
    assert.strictEqual(snippets.length, 1)
    assert.deepStrictEqual(longer(snippets), [])
  })
})
