/**
 * The four languages as a server here speaks them: answers event by event, and what a request holds. A request that no
 * vendor would take is told by its faults.
 */
import { type Layer, Redacted } from "effect"
import type { HttpClient } from "effect/http"
import type { Provider } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { named, unnamed } from "../../harness/differential/streams/Fixture.ts"

/** `id`: as it stands in the answer; without one there is no such member. */
export interface Call {
  readonly id?: string | null
  readonly name: string
  readonly args: string
}

export interface Said {
  readonly text?: ReadonlyArray<string>
  readonly calls?: ReadonlyArray<Call>
  /** Says that it stopped, though there are calls; or that it calls, though there are none. */
  readonly finish?: "stop" | "calls"
}

/** What a request holds of one side, one after the other. */
export interface Turn {
  readonly by: "user" | "model" | "tools"
  readonly texts: ReadonlyArray<string>
  /** Ids of calls, or of the calls that results are for. Google's need none: then their names. */
  readonly ids: ReadonlyArray<string>
}

export interface Wire {
  readonly name: string
  readonly layer: (baseUrl: string) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
  /** Each event of an answer, as it is sent. */
  readonly answer: (said: Said) => ReadonlyArray<string>
  /** What a request says, without its system prompt. */
  readonly turns: (body: any) => ReadonlyArray<Turn>
}

const apiKey = Redacted.make("a key of these tests")
const isCalling = ({ calls = [], finish }: Said): boolean =>
  finish === undefined ? calls.length > 0 : finish === "calls"
const withId = ({ id }: Call, member: string) => (id === undefined ? {} : { [member]: id })
/** Of calls so far: no two have one id. */
let items = 0
const halves = (text: string) => [text.slice(0, text.length / 2), text.slice(text.length / 2)]

const openAiChat: Wire = {
  name: "openai-chat",
  layer: (baseUrl) => OpenAiCompatible.layer({ ...OpenAiCompatible.presets.openAi, baseUrl, apiKey }),
  answer: (said) => {
    const { calls = [], text = [] } = said
    const chunk = (delta: object, finish: string | null = null) =>
      unnamed({ id: "c-1", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })
    return [
      chunk({ role: "assistant" }),
      ...text.map((content) => chunk({ content })),
      ...calls.flatMap((call, index) => {
        const [first, second] = halves(call.args)
        const begun = { name: call.name, arguments: first }
        return [
          chunk({ tool_calls: [{ index, ...withId(call, "id"), type: "function", function: begun }] }),
          chunk({ tool_calls: [{ index, function: { arguments: second } }] })
        ]
      }),
      chunk({}, isCalling(said) ? "tool_calls" : "stop"),
      unnamed("[DONE]")
    ]
  },
  turns: ({ messages }) =>
    messages
      .filter(({ role }: any) => role === "user" || role === "assistant" || role === "tool")
      .map(({ content, role, tool_call_id, tool_calls = [] }: any): Turn => {
        if (role === "tool") return { by: "tools", texts: textsOf(content), ids: [tool_call_id] }
        const ids = tool_calls.map(({ id }: any) => id)
        return { by: role === "user" ? "user" : "model", texts: textsOf(content), ids }
      })
}

const openAiResponses: Wire = {
  name: "openai-responses",
  layer: (baseUrl) => OpenAi.layer({ baseUrl, apiKey }),
  answer: ({ calls = [], text = [] }) => {
    const response = (rest: object) => ({ id: "r-1", model: "m", status: "completed", output: [], ...rest })
    const begun = text.length === 0 ? 0 : 1
    const shell = { id: "m-1", type: "message", role: "assistant" }
    const place = { item_id: "m-1", output_index: 0, content_index: 0 }
    const whole = { type: "output_text", text: text.join(""), annotations: [] }
    const message = [
      { type: "response.output_item.added", output_index: 0, item: { ...shell, content: [] } },
      ...text.map((delta) => ({ type: "response.output_text.delta", ...place, delta })),
      { type: "response.output_item.done", output_index: 0, item: { ...shell, content: [whole] } }
    ]
    const events = [
      { type: "response.created", response: response({ status: "in_progress" }) },
      ...(begun === 0 ? [] : message),
      ...calls.flatMap((call, index) => {
        const output_index = index + begun
        const item = {
          id: `f-${++items}`,
          type: "function_call",
          ...withId(call, "call_id"),
          name: call.name
        }
        const place = { item_id: item.id, output_index }
        return [
          { type: "response.output_item.added", output_index, item: { ...item, arguments: "" } },
          ...halves(call.args).map((delta) => ({
            type: "response.function_call_arguments.delta",
            ...place,
            delta
          })),
          { type: "response.output_item.done", output_index, item: { ...item, arguments: call.args } }
        ]
      }),
      { type: "response.completed", response: response({}) }
    ]
    return events.map((event) => named(event))
  },
  turns: ({ input }) =>
    input.flatMap(({ call_id, content, output, role, type }: any): ReadonlyArray<Turn> => {
      if (type === "function_call") return [{ by: "model", texts: [], ids: [call_id] }]
      if (type === "function_call_output") return [{ by: "tools", texts: textsOf(output), ids: [call_id] }]
      if (role !== "user" && role !== "assistant") return []
      return [{ by: role === "user" ? "user" : "model", texts: textsOf(content), ids: [] }]
    })
}

const anthropicMessages: Wire = {
  name: "anthropic-messages",
  layer: (baseUrl) => Anthropic.layer({ baseUrl, apiKey }),
  answer: (said) => {
    const { calls = [], text = [] } = said
    const begun = text.length === 0 ? 0 : 1
    const block = (index: number, content_block: object, deltas: ReadonlyArray<object>) => [
      { type: "content_block_start", index, content_block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index }
    ]
    const texts = text.map((text) => ({ type: "text_delta", text }))
    const events = [
      { type: "message_start", message: { id: "msg-1", model: "m", role: "assistant", content: [] } },
      ...(begun === 0 ? [] : block(0, { type: "text", text: "" }, texts)),
      ...calls.flatMap((call, index) => {
        const deltas = halves(call.args).map((partial_json) => ({ type: "input_json_delta", partial_json }))
        const content = { type: "tool_use", ...withId(call, "id"), name: call.name, input: {} }
        return block(index + begun, content, deltas)
      }),
      { type: "message_delta", delta: { stop_reason: isCalling(said) ? "tool_use" : "end_turn" } },
      { type: "message_stop" }
    ]
    return events.map((event) => named(event))
  },
  turns: ({ messages }) =>
    messages.flatMap(({ content, role }: any): ReadonlyArray<Turn> => {
      if (typeof content === "string" || content.length === 0)
        return [{ by: role === "user" ? "user" : "model", texts: textsOf(content), ids: [] }]
      return content.map((part: any): Turn => {
        if (part.type === "tool_result")
          return { by: "tools", texts: textsOf(part.content), ids: [part.tool_use_id] }
        const ids = part.type === "tool_use" ? [part.id] : []
        return { by: role === "user" ? "user" : "model", texts: textsOf([part]), ids }
      })
    })
}

const googleGenerate: Wire = {
  name: "google-generative",
  layer: (baseUrl) => Google.layer({ baseUrl: baseUrl.replace(/\/v1$/, ""), apiKey }),
  answer: ({ calls = [], text = [] }) => {
    const chunk = (parts: ReadonlyArray<object>, rest: object = {}) =>
      unnamed({ candidates: [{ content: { role: "model", parts }, index: 0, ...rest }], modelVersion: "m" })
    return [
      ...text.map((text) => chunk([{ text }])),
      ...calls.map((call) =>
        chunk([{ functionCall: { ...withId(call, "id"), name: call.name, args: JSON.parse(call.args) } }])
      ),
      chunk([], { finishReason: "STOP" })
    ]
  },
  turns: ({ contents }) =>
    contents.flatMap(({ parts, role }: any): ReadonlyArray<Turn> => {
      const by = role === "user" ? "user" : "model"
      if (parts.length === 0) return [{ by, texts: [], ids: [] }]
      return parts.map(({ functionCall, functionResponse, text }: any): Turn => {
        const { id, name, response } = functionCall ?? functionResponse ?? {}
        if (functionResponse !== undefined)
          return { by: "tools", texts: [JSON.stringify(response)], ids: [id ?? name] }
        return functionCall === undefined
          ? { by, texts: textsOf(text), ids: [] }
          : { by, texts: [], ids: [id ?? name] }
      })
    })
}

export const wires: ReadonlyArray<Wire> = [openAiChat, openAiResponses, anthropicMessages, googleGenerate]

const textsOf = (content: any): ReadonlyArray<string> =>
  [content ?? []].flat().flatMap((part: any) => {
    const text = typeof part === "string" ? part : (part.text ?? "")
    return text === "" ? [] : [text]
  })

/** Why no vendor would take a request; nothing when all is well. */
export const faults = (wire: Wire, body: string): ReadonlyArray<string> => {
  const turns = wire.turns(JSON.parse(body))
  const joined = turns.reduce<ReadonlyArray<Turn>>(join, [])
  return [
    ...(turns[0]?.by === "user" ? [] : ["it does not begin with the user"]),
    ...turns.flatMap(({ by, ids, texts }, index) =>
      by !== "tools" && texts.length + ids.length === 0 ? [`turn ${index}, of the ${by}, is empty`] : []
    ),
    ...joined.flatMap(({ by, ids }, index) => {
      const answered = by === "model" ? joined[index + 1] : undefined
      const results = answered?.by === "tools" ? answered.ids : []
      if (by === "tools" && joined[index - 1]?.by !== "model") return ["results follow no call"]
      return by !== "model" || same(ids, results) ? [] : [`calls ${ids.join()}, results ${results.join()}`]
    }),
    ...(joined.at(-1)?.by === "model" ? ["it ends with the model"] : [])
  ]
}

const join = (turns: ReadonlyArray<Turn>, turn: Turn): ReadonlyArray<Turn> => {
  const last = turns.at(-1)
  if (last?.by !== turn.by) return [...turns, turn]
  const both = { by: turn.by, texts: [...last.texts, ...turn.texts], ids: [...last.ids, ...turn.ids] }
  return [...turns.slice(0, -1), both]
}

const same = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  left.toSorted().join() === right.toSorted().join()
