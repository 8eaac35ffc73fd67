/**
 * The request that a cassette stores, without the parts that change from run to run.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as WebCrypto from "effect/crypto/WebCrypto"
import * as Hex from "effect/encoding/Hex"
import { isObject } from "../../internal/json.ts"
import type { ModelMessage, ToolCall } from "../../Message.ts"
import type { ModelRequest } from "../../Provider.ts"

/**
 * Converts a request to plain JSON, without headers, ids of messages and sessions, timestamps, usage, and the provider and model of
 * earlier answers. Ids of tool calls become numbers in the order of the calls, since some vendors send none and others start
 * again.
 */
export const canonical = ({ messages, model, options, system, tools }: ModelRequest): Schema.Json => {
  const { headers: _, sessionId: __, ...stored } = options
  const ids = new Map<string, string>()
  const idOf = (id: string): string => {
    const known = ids.get(id) ?? `call-${ids.size + 1}`
    ids.set(id, known)
    return known
  }
  return toJson({
    model,
    system,
    messages: messages.map((message) => toStored(message, idOf)),
    tools,
    options: stored
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

const toStored = (message: ModelMessage, idOf: (id: string) => string): object => {
  const { content, role } = message
  switch (role) {
    case "user":
      return { role, content, ...vendorOf(message) }
    case "assistant":
      return {
        role,
        ...vendorOf(message),
        content: message.content.map((block) =>
          block.type === "toolCall" ? toStoredCall(block, idOf) : block
        )
      }
    case "toolResult":
      return {
        role,
        toolCallId: idOf(message.toolCallId),
        toolName: message.toolName,
        isError: message.isError,
        content,
        ...vendorOf(message)
      }
  }
}

/** Leaves out `params`, which `rawArguments` has too. */
const toStoredCall = (
  { id, name, opaque, rawArguments, type, ...call }: ToolCall,
  idOf: (id: string) => string
): Omit<ToolCall, "params"> => ({
  type,
  id: idOf(id),
  name,
  rawArguments,
  ...(opaque === undefined ? {} : { opaque }),
  ...vendorOf(call)
})

const vendorOf = ({ vendor }: Pick<ToolCall, "vendor">): Pick<ToolCall, "vendor"> =>
  vendor === undefined ? {} : { vendor }

const sorted = (json: Schema.Json): Schema.Json => {
  if (Array.isArray(json)) return json.map(sorted)
  if (!isObject(json)) return json
  return Object.fromEntries(
    Object.entries(json)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, sorted(value)])
  )
}
