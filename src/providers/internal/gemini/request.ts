/**
 * Encodes requests for Gemini's `generateContent`. https://ai.google.dev/api/generate-content, read in November
 * 2026.
 */
import { memoize } from "effect/Function"
import type * as Message from "../../../Message.ts"
import type { Reason } from "../../../ProviderError.ts"
import { declared, type Dialect, toHosted } from "./hosted.ts"
import { type Encoded, encodeMessage, encodeResult } from "./messages.ts"
import { declarations, instructions, isInFirstMessage, parameters } from "./parameters.ts"
import * as Json from "../json.ts"
import { isReason } from "../../Protocol.ts"
import type { Question } from "../question.ts"

type Encode = (question: Question) => string | Reason

/** Encodes bodies for one provider. Encodes each message once for each model, and each tool once. */
export const encoder = (provider: string, dialect: Dialect = {}): Encode => {
  const byModel = new Map<string, (message: Message.ModelMessage) => Encoded | Reason>()
  return (question) => {
    const { model, options, vendor } = question
    const messageOf =
      byModel.get(model) ?? memoize(encodeMessage(provider, model, dialect.isVertexAi === true))
    byModel.set(model, messageOf)
    const own = declared(question)
    const tools = [
      ...(own.length === 0 ? [] : [declarations(provider, own)]),
      ...toHosted(provider, options.hostedTools ?? []),
      ...Json.array(vendor["tools"]).map(Json.encode)
    ]
    const first = isInFirstMessage(question) ? instructions(question, tools.length > 0) : []
    const contents = encodeContents(provider, model, question.messages, messageOf, first)
    if (typeof contents !== "string") return contents
    const members = [
      "contents" in vendor ? "" : `"contents":${contents}`,
      tools.length === 0 ? "" : `"tools":[${tools.join(",")}]`,
      Json.encode(parameters(question, dialect, tools.length > 0)).slice(1, -1)
    ]
    return `{${members.filter((member) => member !== "").join(",")}}`
  }
}

/**
 * Encodes the requests that count tokens: https://ai.google.dev/api/tokens. That of Vertex AI has the members of a request for
 * an answer, without those that no token depends on.
 */
export const counter =
  (encode: Encode, { isVertexAi = false }: Dialect): Encode =>
  (question) => {
    const body = encode(question)
    if (isReason(body)) return body
    if (!isVertexAi) {
      const model = Json.encode(question.model.includes("/") ? question.model : `models/${question.model}`)
      return `{"generateContentRequest":{"model":${model},${body.slice(1)}}`
    }
    const { contents, generationConfig, systemInstruction, tools } = Json.object(Json.parse(body)) ?? {}
    return Json.encode({ contents, generationConfig, systemInstruction, tools })
  }

// ───────────────────────── Contents

const encodeContents = (
  provider: string,
  model: string,
  messages: ReadonlyArray<Message.ModelMessage>,
  messageOf: (message: Message.ModelMessage) => Encoded | Reason,
  first: ReadonlyArray<object>
): string | Reason => {
  const turns = new Turns()
  for (const part of first) turns.add("user", JSON.stringify(part))
  let attached: Array<string> = []
  let calls: Encoded["calls"] = new Map()
  for (const message of messages) {
    const call = message.role === "toolResult" ? calls.get(message.toolCallId) : undefined
    const isAction = message.role === "toolResult" && call?.name !== undefined
    const encoded = isAction ? encodeResult(provider, model, message, call) : messageOf(message)
    if (isReason(encoded)) return encoded
    if (message.role === "toolResult") {
      const id = call?.id === undefined ? "" : `"id":${Json.encode(call.id)},`
      turns.add("user", `{"functionResponse":{${id}${encoded.json}}}`)
      attached.push(encoded.attached)
    } else {
      for (const parts of attached) turns.add("user", parts)
      attached = []
      turns.add(message.role === "user" ? "user" : "model", encoded.json)
      if (message.role === "assistant") calls = encoded.calls
    }
  }
  for (const parts of attached) turns.add("user", parts)
  return turns.end()
}

/** Roles alternate, starting with the user, so consecutive messages of one role become one content. */
class Turns {
  private readonly contents: Array<string> = []
  private parts: Array<string> = []
  private role: "user" | "model" = "user"

  add(role: "user" | "model", parts: string): void {
    if (parts === "") return
    if (role !== this.role) this.close()
    this.role = role
    this.parts.push(parts)
  }

  end(): string {
    this.close()
    return `[${this.contents.join(",")}]`
  }

  private close(): void {
    if (this.parts.length > 0) this.contents.push(content(this.role, this.parts.join(",")))
    else if (this.contents.length === 0) this.contents.push(content("user", opening))
    this.parts = []
  }
}

const content = (role: string, parts: string): string => `{"role":"${role}","parts":[${parts}]}`
const opening = JSON.stringify({ text: "Continue." })
