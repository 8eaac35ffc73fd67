/**
 * Whether a conversation can be sent in each of the five languages, and the body is one that its vendor takes: it begins
 * with a user, and every call is followed by its one result. For Converse, which rejects more, `faults` has its other rules.
 */
import { type Message, Transcript } from "effect-agent"
import { anthropicMessages } from "../../../src/providers/internal/anthropic/protocol.ts"
import { bedrockConverse } from "../../../src/providers/internal/bedrock/protocol.ts"
import { common } from "../../../src/providers/internal/openAiChat/compat.ts"
import { googleGenerate } from "../../../src/providers/internal/gemini/protocol.ts"
import { openAiChat } from "../../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../../src/providers/internal/openAiResponses/protocol.ts"
import { isReason, type Protocol } from "../../../src/providers/Protocol.ts"
import type { Words } from "../../conformance/words.ts"
import * as Converse from "./converse.ts"

/** One step of a conversation. A name stands for an id in the language that has none. */
type Step = readonly [kind: "user" | "assistant" | "call" | "result", id?: string]

interface Language {
  readonly name: string
  readonly encode: Protocol["encode"]
  readonly steps: (body: Words) => ReadonlyArray<Step>
  /** The faults of the body besides the order of its steps. Default: none. */
  readonly faults?: (body: Words) => ReadonlyArray<string>
}

const openAiChatSteps: Language["steps"] = ({ messages }) =>
  messages.flatMap(({ role, tool_call_id, tool_calls = [] }: Words) =>
    role === "tool"
      ? [["result", tool_call_id]]
      : [[role === "user" ? "user" : "assistant"], ...tool_calls.map(({ id }: Words) => ["call", id])]
  )

const languages: ReadonlyArray<Language> = [
  {
    name: "openai-chat",
    encode: openAiChat("vendor", common).encode,
    steps: openAiChatSteps
  },
  {
    name: "openai-responses",
    encode: openAiResponses("vendor").encode,
    steps: ({ input }) =>
      input.map(({ call_id, role, type }: Words) => {
        if (type === "function_call") return ["call", call_id]
        if (type === "function_call_output") return ["result", call_id]
        return [role === "user" ? "user" : "assistant"]
      })
  },
  {
    name: "anthropic-messages",
    encode: anthropicMessages("vendor").encode,
    steps: ({ messages }) =>
      messages.flatMap(({ content, role }: Words) =>
        (Array.isArray(content) ? content : [{ type: "text" }]).map(({ id, tool_use_id, type }: Words) => {
          if (type === "tool_use") return ["call", id]
          return type === "tool_result" ? ["result", tool_use_id] : [role]
        })
      )
  },
  {
    name: "google-generative",
    encode: googleGenerate("google").encode,
    steps: ({ contents }) =>
      contents.flatMap(({ parts, role }: Words) =>
        parts.map(({ functionCall, functionResponse }: Words) => {
          if (functionCall !== undefined) return ["call", functionCall.name]
          if (functionResponse !== undefined) return ["result", functionResponse.name]
          return [role === "user" ? "user" : "assistant"]
        })
      )
  },
  {
    name: "bedrock-converse",
    encode: bedrockConverse("vendor").encode,
    steps: ({ messages }) =>
      messages.flatMap(({ content, role }: Words) =>
        content.map(({ toolResult, toolUse }: Words) => {
          if (toolUse !== undefined) return ["call", toolUse.toolUseId]
          return toolResult === undefined ? [role] : ["result", toolResult.toolUseId]
        })
      ),
    faults: Converse.faults
  }
]

/** Converse takes calls and results only in a request with tools. */
const tool = { name: "work", description: "Works.", parameters: { type: "object", properties: {} } }

/** What is wrong with a request that would be made of these messages now, in any language. */
export const violations = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> => {
  const sent = Transcript.repair(messages).messages.flatMap((message) =>
    message.role === "custom" ? [] : [message]
  )
  return languages.flatMap(({ encode, faults = () => [], name, steps }) => {
    const body = encode({
      model: "m",
      messages: sent,
      tools: [tool],
      options: {},
      thinking: {},
      thinkingLevel: undefined,
      vendor: {},
      headers: {},
      rule: undefined,
      adjusted: []
    })
    if (isReason(body)) return [`${name}: ${body.detail}`]
    const words: Words = JSON.parse(body)
    return [...order(steps(words)), ...faults(words)].map((violation) => `${name}: ${violation}`)
  })
}

/** The same for a body that was sent in the language of Chat Completions. */
export const sent = (body: string): ReadonlyArray<string> => order(openAiChatSteps(JSON.parse(body)))

const order = (steps: ReadonlyArray<Step>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const owed: Array<string | undefined> = []
  let isAnswering = false
  for (const [kind, id] of steps) {
    if (kind === "result") {
      const at = owed.indexOf(id)
      if (at === -1) found.push(`${id} is the result of no call`)
      else owed.splice(at, 1)
      isAnswering = true
      continue
    }
    if (owed.length > 0 && (kind === "user" || isAnswering))
      found.push(`no result of ${owed.splice(0).join()}`)
    isAnswering = false
    if (kind === "call") owed.push(id)
  }
  if (owed.length > 0) found.push(`no result of ${owed.join()}`)
  if (steps[0]?.[0] !== "user") found.push(`begins with ${steps[0]?.join(" ")}`)
  return found
}
