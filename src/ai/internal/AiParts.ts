/**
 * The parts of `effect/ai`: their metadata, which is `metadata` of a response part and `options` of a prompt part, their files, and the names of tools.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Message from "../../Message.ts"
import { Media, VendorMembers, type ModelMessage } from "../../Message.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"
import { acceptedName, isAcceptedName } from "../../internal/invalidTool.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { ModelRequest } from "../../Provider.ts"

/** A value as JSON; `null` for one that is not JSON. */
export const toJson = (value: unknown): Schema.Json => {
  const text = JSON.stringify(value)
  return text === undefined ? null : JSON.parse(text)
}

/** The members for vendors that an application set on a part or a message. */
export const toVendor = (options: PartMetadata.Metadata): { readonly vendor?: VendorMembers } => {
  const { [ownKey]: _, ...vendor } = options
  return PartMetadata.isNone(vendor) || !isVendor(vendor) ? {} : { vendor }
}

const isVendor = Schema.is(VendorMembers)

/** The key under which a prompt has the `opaque` of a block. */
export const ownKey = "effect-agent"

/** Returns the members of media that a part has no place for as its metadata. */
export const fromMedia = ({
  id,
  opaque,
  transcript
}: Media): { readonly metadata?: PartMetadata.Metadata } => {
  const rest = { id, opaque, transcript }
  return Object.values(rest).every((value) => value === undefined)
    ? {}
    : { metadata: { [ownKey]: toJson(rest) } }
}

const MediaRest = Schema.Struct(Struct.pick(Media.fields, ["id", "opaque", "transcript"]))
const isMediaRest = Schema.is(MediaRest)

/** Returns the members of media that the options of its part have. */
export const restOfMedia = (options: PartMetadata.Metadata): typeof MediaRest.Type => {
  const rest = options[ownKey]
  return isMediaRest(rest) ? Struct.pick(rest, ["id", "opaque", "transcript"]) : {}
}

/** Returns the `opaque` of a block as the metadata of a part. */
export const fromOpaque = ({
  opaque
}: {
  readonly opaque?: Schema.Json
}): { readonly metadata?: PartMetadata.Metadata } =>
  opaque === undefined ? {} : { metadata: { [ownKey]: opaque } }

// ───────────────────────── Files

/** Reads a file. A text is a data URL, base64, or else the id of a file at the vendor. */
export const fileOf = (part: Prompt.FilePart): Message.Image | Message.File => {
  const source = sourceOfFile(part)
  const isImage = ("mediaType" in source ? source.mediaType : part.mediaType).startsWith("image/")
  if (isImage && "url" in source) return { type: "image", source: { url: source.url } }
  if (isImage && "data" in source) return { type: "image", source }
  return { type: "file", source, ...(part.fileName === undefined ? {} : { name: part.fileName }) }
}

/** The bytes, the address or the id of a file. */
export const sourceOfFile = ({
  data,
  mediaType
}: Prompt.FilePart): Inline | Linked | { readonly fileId: string } => {
  if (data instanceof URL) return { url: data.href, mediaType }
  if (typeof data !== "string") return { data: Base64.encode(data), mediaType }
  const [, type = mediaType, base64 = data] = /^data:([^;,]+);base64,(.*)$/s.exec(data) ?? []
  return Result.isSuccess(Base64.decode(base64)) ? { data: base64, mediaType: type } : { fileId: data }
}

interface Inline {
  readonly data: string
  readonly mediaType: string
}

interface Linked {
  readonly url: string
  readonly mediaType: string
}

/** Reads a part of a tool result, which has texts and images. Another part becomes a text that names it. */
export const blockOfOutput = (part: Prompt.ToolModelOutputPart): Message.Text | Message.Image => {
  if (part.type === "text") return Message.text(part.text)
  const file = fileOf(part)
  return file.type === "image" && part.mediaType.startsWith("image/")
    ? file
    : Message.text(Prompt.toolModelOutputToText([part]))
}

// ───────────────────────── Names of tools
//
// Names that providers refuse are replaced in a request, and restored in the answer.

/**
 * Returns names that providers accept, in order and all different. A name that they accept stays. Of others that become the same
 * name, the second ends with `_2` and the third with `_3`.
 */
export const accepted = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taken = new Set(names.filter(isAcceptedName))
  return names.map((name) => {
    if (isAcceptedName(name)) return name
    const plain = acceptedName(name)
    let free = plain
    for (let count = 2; taken.has(free); count++) {
      const suffix = `_${count}`
      free = plain.slice(0, 64 - suffix.length) + suffix
    }
    taken.add(free)
    return free
  })
}

/** Calls a provider with names that it accepts. The answer has the names of the request. */
export const around =
  <E>(ask: (request: ModelRequest) => Stream.Stream<ModelEvent, E>) =>
  (request: ModelRequest): Stream.Stream<ModelEvent, E> => {
    const names = request.tools.map(({ name }) => name)
    const spelt = accepted(names)
    if (names.every((name, index) => name === spelt[index])) return ask(request)
    const there = new Map(names.map((name, index) => [name, spelt[index] ?? name]))
    const back = new Map(Array.from(there, ([name, spelt]) => [spelt, name]))
    return Stream.map(ask(spell(request, there)), (event) =>
      event._tag === "ToolCallStart" ? { ...event, name: back.get(event.name.trim()) ?? event.name } : event
    )
  }

type Names = ReadonlyMap<string, string>

const spell = (request: ModelRequest, names: Names): ModelRequest => {
  const of = (name: string) => names.get(name) ?? name
  const { options } = request
  const { toolChoice } = options
  return {
    ...request,
    messages: request.messages.map((message) => spellMessage(message, of)),
    tools: request.tools.map((tool) => ({ ...tool, name: of(tool.name) })),
    options:
      typeof toolChoice === "object" ? { ...options, toolChoice: { name: of(toolChoice.name) } } : options
  }
}

const spellMessage = (message: ModelMessage, of: (name: string) => string): ModelMessage => {
  switch (message.role) {
    case "assistant":
      return {
        ...message,
        content: message.content.map((block) =>
          block.type === "toolCall" ? { ...block, name: of(block.name) } : block
        )
      }
    case "toolResult":
      return { ...message, toolName: of(message.toolName) }
    default:
      return message
  }
}
