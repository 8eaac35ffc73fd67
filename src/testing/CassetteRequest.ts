/**
 * A request as a cassette knows it: what is asked, without what only tells one run from another.
 */
import * as WebCrypto from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"
import type * as Schema from "effect/Schema"
import { isObject } from "../internal/jsonCoercion.ts"
import type { ModelMessage, ToolCall } from "../Message.ts"
import type { ModelRequest } from "../Provider.ts"

/**
 * The request as plain JSON, without ids of messages and sessions, timestamps, and what became of earlier calls (usage,
 * who answered). Ids of tool calls are numbered in the order they appear: some vendors give none, and others count anew.
 */
export const canonical = ({ messages, model, options, system, tools }: ModelRequest): Schema.Json => {
  const { sessionId: _, ...asked } = options
  const ids = new Map<string, string>()
  const idOf = (id: string): string => {
    const known = ids.get(id) ?? `call-${ids.size + 1}`
    ids.set(id, known)
    return known
  }
  return toJson({
    model,
    system,
    messages: messages.map((message) => said(message, idOf)),
    tools,
    options: asked
  })
}

/** SHA-256 of the request, in hexadecimal. The order of members does not matter. */
export const keyOf = (request: Schema.Json): Effect.Effect<string> =>
  Effect.gen(function* () {
    const crypto = yield* WebCrypto.WebCrypto
    const bytes = new TextEncoder().encode(JSON.stringify(sorted(request)))
    const digest = yield* Effect.promise(() => crypto.subtle.digest("SHA-256", bytes))
    return Hex.encode(new Uint8Array(digest))
  })

const toJson = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value))

const said = (message: ModelMessage, idOf: (id: string) => string): object => {
  const { content, role } = message
  switch (role) {
    case "user":
      return { role, content }
    case "assistant":
      return {
        role,
        content: message.content.map((block) => (block.type === "toolCall" ? called(block, idOf) : block))
      }
    case "toolResult":
      return {
        role,
        toolCallId: idOf(message.toolCallId),
        toolName: message.toolName,
        isError: message.isError,
        content
      }
  }
}

/** The params are in the raw arguments. */
const called = (
  { id, name, opaque, rawArguments, type }: ToolCall,
  idOf: (id: string) => string
): Omit<ToolCall, "params"> => ({
  type,
  id: idOf(id),
  name,
  rawArguments,
  ...(opaque === undefined ? {} : { opaque })
})

const sorted = (json: Schema.Json): Schema.Json => {
  if (Array.isArray(json)) return json.map(sorted)
  if (!isObject(json)) return json
  return Object.fromEntries(
    Object.entries(json)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, sorted(value)])
  )
}
