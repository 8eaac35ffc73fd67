/** Members of blocks, messages and tools that the application sets for one provider. */
import type { VendorMembers } from "../../Message.ts"
import * as Json from "./json.ts"
import { merge } from "./question.ts"

interface Having {
  readonly vendor?: VendorMembers
}

interface Part extends Having {
  readonly content?: unknown
}

/** The members for a provider, `undefined` if there are none. */
export const membersOf = (provider: string, { vendor }: Having): Json.JsonObject | undefined =>
  vendor?.[provider]

/** The object of the wire with the members of what it stands for. */
export const over = (provider: string, from: Having, wire: object): object =>
  membersOf(provider, from) === undefined
    ? wire
    : (Json.object(Json.parse(into(provider, from, JSON.stringify(wire)))) ?? wire)

/** As `over`, for an object that is JSON. */
export const into = (provider: string, from: Having, json: string): string => {
  const members = membersOf(provider, from)
  return members === undefined ? json : Json.encode(merge(Json.object(Json.parse(json)) ?? {}, members))
}

/** The members for a provider in all of the parts of a prompt as JSON, by which marks for its cache are counted. */
export const all = (provider: string, parts: ReadonlyArray<Part>): string => {
  let json = ""
  for (const part of parts) {
    if (part.vendor !== undefined) json += Json.encode(membersOf(provider, part) ?? null)
    if (isParts(part.content)) json += all(provider, part.content)
  }
  return json
}

const isParts = (content: unknown): content is ReadonlyArray<Part> => Array.isArray(content)

// ───────────────────────── Data of a vendor

// Data that a vendor requires back unchanged. It is stored in a message with the id of its provider, and
// returned to that provider only.

/** The data to store in a block. */
export const keep = (provider: string, fields: Json.JsonObject): Json.JsonObject => ({ provider, ...fields })

/** The data of this provider in a block, `undefined` if there is none. */
export const keptFor = (
  provider: string,
  block: { readonly opaque?: Json.Json | undefined }
): Json.JsonObject | undefined => {
  const kept = Json.object(block.opaque)
  return kept?.["provider"] === provider ? kept : undefined
}
