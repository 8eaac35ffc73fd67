/**
 * Servers of Anthropic and OpenAI as their documentation and recordings show them: they search for deferred tools, and refuse
 * the requests that the vendors refuse.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Provider } from "effect-agent"
import { Anthropic, OpenAi } from "effect-agent/providers"
import { events } from "../providers/server.ts"

export type Body = Record<string, any>

/** What a model does with a body: it calls the tool `wanted`, which it searches for if it does not know it, and then answers. */
interface Wish {
  readonly wanted: string
}

const referencesIn = (body: Body): ReadonlyArray<string> =>
  body["messages"]
    .flatMap((message: Body) => message["content"])
    .filter(({ type }: Body) => type === "tool_search_tool_result")
    .flatMap(({ content }: Body) => (content.tool_references ?? []).map((one: Body) => one["tool_name"]))

/** Refuses what Anthropic refuses. */
export const checkAnthropic = (body: Body): void => {
  const tools: ReadonlyArray<Body> = body["tools"] ?? []
  const names = tools.map(({ name }) => name)
  assert.strictEqual(new Set(names).size, names.length, "tool names must be unique")
  const deferred = tools.filter((tool) => tool["defer_loading"] === true)
  const search = tools.filter(({ type }) => String(type).startsWith("tool_search_tool_"))
  assert.isTrue(deferred.length === 0 || deferred.length < tools.length, "all tools have defer_loading set")
  assert.strictEqual(deferred.length > 0, search.length === 1, "deferred tools need the search")
  for (const tool of deferred) assert.notProperty(tool, "cache_control", "deferred tools have no mark")
  for (const name of referencesIn(body)) assert.include(names, name, "a reference without a definition")
  const blocks: ReadonlyArray<Body> = body["messages"].flatMap((message: Body) => message["content"])
  const uses = blocks.filter(({ type }) => type === "server_tool_use").map(({ id }) => id)
  const results = blocks
    .filter(({ type }) => type === "tool_search_tool_result")
    .map((one) => one["tool_use_id"])
  assert.deepStrictEqual(results, uses, "each search has one result, in order")
  assert.isTrue(search.length === 1 || uses.length === 0, "searches need the tool that searches")
}

/** Refuses what OpenAI refuses. */
export const checkOpenAi = (body: Body): void => {
  const tools: ReadonlyArray<Body> = body["tools"] ?? []
  const deferred = new Set(tools.filter((tool) => tool["defer_loading"] === true).map(({ name }) => name))
  const searches = tools.filter(({ type }) => type === "tool_search").length
  assert.strictEqual(searches, deferred.size > 0 ? 1 : 0, "deferred functions need one search")
  const loaded = new Set<string>()
  for (const item of body["input"]) {
    if (item.type === "tool_search_output") for (const { name } of item.tools) loaded.add(name)
    if (item.type !== "function_call") continue
    if (item.namespace === undefined)
      assert.isFalse(deferred.has(item.name), `Missing namespace for function_call '${item.name}'`)
    else assert.isTrue(loaded.has(item.namespace), `no namespace ${item.namespace}`)
  }
}

const messageOf = (blocks: ReadonlyArray<Body>, stop: string) =>
  events(
    { type: "message_start", message: { id: `msg_${++made}`, role: "assistant", content: [] } },
    ...blocks.flatMap((block, index) => {
      const { input, ...start } = block
      const begun = input === undefined ? start : { ...start, input: {} }
      const piece = { type: "input_json_delta", partial_json: JSON.stringify(input ?? {}) }
      return [
        { type: "content_block_start", index, content_block: begun },
        ...(input === undefined ? [] : [{ type: "content_block_delta", index, delta: piece }]),
        { type: "content_block_stop", index }
      ]
    }),
    { type: "message_delta", delta: { stop_reason: stop }, usage: { output_tokens: 1 } },
    { type: "message_stop" }
  )

let made = 0

const use = (name: string, input: object) => ({ type: "tool_use", id: `toolu_${++made}`, name, input })

/** The answer of a model at Anthropic. */
export const answerOfAnthropic = (body: Body, { wanted }: Wish): string => {
  const last = body["messages"].at(-1).content
  const ran = last.some(
    (block: Body) => block["type"] === "tool_result" && JSON.stringify(block).includes("ran")
  )
  if (ran) return messageOf([{ type: "text", text: "Done." }], "end_turn")
  const tool = body["tools"].find(({ name }: Body) => name === wanted)
  if (tool === undefined) return messageOf([use("tool_search", { query: wanted })], "tool_use")
  if (tool.defer_loading !== true || referencesIn(body).includes(wanted))
    return messageOf([use(wanted, {})], "tool_use")
  const id = `srvtoolu_${++made}`
  const found = {
    type: "tool_search_tool_search_result",
    tool_references: [{ type: "tool_reference", tool_name: wanted }]
  }
  return messageOf(
    [
      { type: "text", text: "I search." },
      { type: "server_tool_use", id, name: "tool_search_tool_bm25", input: { query: wanted } },
      { type: "tool_search_tool_result", tool_use_id: id, content: found },
      use(wanted, {})
    ],
    "tool_use"
  )
}

const responseOf = (items: ReadonlyArray<Body>) =>
  events(
    { type: "response.created", response: { id: `resp_${++made}` } },
    ...items.flatMap((item, output_index) => [
      { type: "response.output_item.added", output_index, item },
      { type: "response.output_item.done", output_index, item }
    ]),
    { type: "response.completed", response: { id: `resp_${made}`, status: "completed", output: items } }
  )

const functionCall = (name: string, args: object, namespace?: string) => ({
  type: "function_call",
  id: `fc_${++made}`,
  call_id: `call_${made}`,
  name,
  arguments: JSON.stringify(args),
  status: "completed",
  ...(namespace === undefined ? {} : { namespace })
})

/** The answer of a model at OpenAI. */
export const answerOfOpenAi = (body: Body, { wanted }: Wish): string => {
  const last = body["input"].at(-1)
  if (last.type === "function_call_output" && last.output.includes("ran")) {
    const content = [{ type: "output_text", text: "Done.", annotations: [] }]
    return responseOf([
      { type: "message", id: `msg_${++made}`, role: "assistant", status: "completed", content }
    ])
  }
  const tool = body["tools"].find(({ name }: Body) => name === wanted)
  if (tool === undefined) return responseOf([functionCall("tool_search", { query: wanted })])
  if (tool.defer_loading !== true) return responseOf([functionCall(wanted, {})])
  const isLoaded = body["input"].some(
    ({ tools = [], type }: Body) =>
      type === "tool_search_output" && tools.some(({ name }: Body) => name === wanted)
  )
  if (isLoaded) return responseOf([functionCall(wanted, {}, wanted)])
  const common = { status: "completed", call_id: null, execution: "server" }
  return responseOf([
    { type: "tool_search_call", id: `tsc_${++made}`, ...common, arguments: { paths: [wanted] } },
    { type: "tool_search_output", id: `tso_${++made}`, ...common, tools: [tool] },
    functionCall(wanted, {}, wanted)
  ])
}

/** Both vendors behind one provider, whose models call the tool `wanted`, and the bodies that they get. */
export const vendors = Effect.fnUntraced(function* (wanted: string) {
  const bodies: Array<Body> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      assert(request.body._tag === "Uint8Array")
      const body = JSON.parse(new TextDecoder().decode(request.body.body))
      bodies.push(body)
      const isAnthropic = "messages" in body
      if (isAnthropic) checkAnthropic(body)
      else checkOpenAi(body)
      const answer = isAnthropic ? answerOfAnthropic(body, { wanted }) : answerOfOpenAi(body, { wanted })
      const headers = { "content-type": "text/event-stream" }
      return HttpClientResponse.fromWeb(request, new Response(answer, { headers }))
    })
  )
  const both = Effect.all({
    anthropic: Anthropic.make({ apiKey: "k" }),
    openai: OpenAi.make({ apiKey: "k" })
  })
  const made = yield* Effect.provideService(both, HttpClient.HttpClient, client)
  return { bodies, layer: Layer.succeed(Provider.Provider, Provider.router(made)) }
})
