/**
 * Answers of OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses-streaming
 */
import { type Fixture, greeting, named, note, pieces, weather } from "./Fixture.ts"

interface Event {
  readonly type: string
}

const event = (type: string, fields: object): Event => ({ type, ...fields })

/** The events of one item, and the item as it ends. */
interface Told {
  readonly events: ReadonlyArray<Event>
  readonly item: object
}

const response = (rest: object) => ({
  id: "resp_1",
  object: "response",
  created_at: 1767225600,
  status: "in_progress",
  error: null,
  incomplete_details: null,
  model: "gpt-5-mini",
  output: [],
  usage: null,
  ...rest
})

const item = (index: number, began: object, ended: object, events: ReadonlyArray<Event>): Told => ({
  events: [
    event("response.output_item.added", { output_index: index, item: began }),
    ...events,
    event("response.output_item.done", { output_index: index, item: ended })
  ],
  item: ended
})

type Kind = "output_text" | "refusal"

export const message = (index: number, kind: Kind, texts: ReadonlyArray<string>): Told => {
  const shell = { id: `msg_${index}`, type: "message", role: "assistant" }
  const place = { item_id: shell.id, output_index: index, content_index: 0 }
  const member = kind === "refusal" ? "refusal" : "text"
  const rest = kind === "refusal" ? {} : { annotations: [] }
  const part = (text: string) => ({ type: kind, [member]: text, ...rest })
  const whole = part(texts.join(""))
  return item(
    index,
    { ...shell, status: "in_progress", content: [] },
    { ...shell, status: "completed", content: [whole] },
    [
      event("response.content_part.added", { ...place, part: part("") }),
      ...texts.map((delta) => event(`response.${kind}.delta`, { ...place, delta })),
      event(`response.${kind}.done`, { ...place, [member]: texts.join("") }),
      event("response.content_part.done", { ...place, part: whole })
    ]
  )
}

const thought = (index: number, texts: ReadonlyArray<string>): Told => {
  const shell = { id: `rs_${index}`, type: "reasoning", encrypted_content: "c2VhbGVk" }
  const place = { item_id: shell.id, output_index: index, summary_index: 0 }
  const part = (text: string) => ({ type: "summary_text", text })
  const whole = part(texts.join(""))
  return item(index, { ...shell, summary: [] }, { ...shell, summary: [whole] }, [
    event("response.reasoning_summary_part.added", { ...place, part: part("") }),
    ...texts.map((delta) => event("response.reasoning_summary_text.delta", { ...place, delta })),
    event("response.reasoning_summary_text.done", { ...place, text: whole.text }),
    event("response.reasoning_summary_part.done", { ...place, part: whole })
  ])
}

export const call = (index: number, callId: string, name: string, params: object): Told => {
  const shell = { id: `fc_${index}`, type: "function_call", call_id: callId, name }
  const place = { item_id: shell.id, output_index: index }
  const json = JSON.stringify(params)
  return item(
    index,
    { ...shell, status: "in_progress", arguments: "" },
    { ...shell, status: "completed", arguments: json },
    [
      ...pieces(json, 7).map((delta) => event("response.function_call_arguments.delta", { ...place, delta })),
      event("response.function_call_arguments.done", { ...place, name, arguments: json })
    ]
  )
}

export const tokens = (input: number, output: number, cached = 0, reasoning = 0) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output
})

/** A whole answer: events carry their number. */
export const answer = (items: ReadonlyArray<Told>, usage: object, cutBy?: string): string => {
  const ended = response({
    status: cutBy === undefined ? "completed" : "incomplete",
    incomplete_details: cutBy === undefined ? null : { reason: cutBy },
    output: items.map((told) => told.item),
    usage
  })
  const events = [
    event("response.created", { response: response({}) }),
    event("response.in_progress", { response: response({}) }),
    ...items.flatMap((told) => told.events),
    event(cutBy === undefined ? "response.completed" : "response.incomplete", { response: ended })
  ]
  return named(...events.map((one, index) => ({ ...one, sequence_number: index })))
}

export const fixtures: ReadonlyArray<Fixture> = [
  {
    name: "text",
    body: answer([message(0, "output_text", greeting)], tokens(12, 9)),
    said: {
      text: greeting.join(""),
      thinking: "",
      calls: [],
      stopReason: "stop",
      usage: { input: 12, output: 9, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "thought, text and three calls",
    body: answer(
      [
        thought(0, ["They want", " the weather."]),
        message(1, "output_text", ["Let me", " look."]),
        call(2, "call_w1", "weather", weather),
        call(3, "call_c2", "clock", {}),
        call(4, "call_n3", "note", note)
      ],
      tokens(230, 87, 128, 20)
    ),
    said: {
      text: "Let me look.",
      thinking: "They want the weather.",
      calls: [
        { id: "call_w1", name: "weather", params: weather },
        { id: "call_c2", name: "clock", params: {} },
        { id: "call_n3", name: "note", params: note }
      ],
      stopReason: "toolUse",
      usage: { input: 230, output: 87, cacheRead: 128, cacheWrite: 0 }
    }
  },
  {
    name: "one call",
    body: answer([call(0, "call_1", "note", note)], tokens(50, 40)),
    said: {
      text: "",
      thinking: "",
      calls: [{ id: "call_1", name: "note", params: note }],
      stopReason: "toolUse",
      usage: { input: 50, output: 40, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a text that a limit cut",
    body: answer([message(0, "output_text", ["Once upon", " a"])], tokens(8, 4), "max_output_tokens"),
    said: {
      text: "Once upon a",
      thinking: "",
      calls: [],
      stopReason: "length",
      usage: { input: 8, output: 4, cacheRead: 0, cacheWrite: 0 }
    }
  },
  {
    name: "a refusal",
    body: answer([message(0, "refusal", ["I cannot", " do that."])], tokens(30, 6)),
    said: {
      text: "I cannot do that.",
      thinking: "",
      calls: [],
      stopReason: "refusal",
      usage: { input: 30, output: 6, cacheRead: 0, cacheWrite: 0 }
    }
  }
]
