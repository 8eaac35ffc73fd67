/** The body of the POST of an AI SDK client. */
import * as Base64 from "effect/encoding/Base64"
import * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"

const Approval = Schema.Struct({
  id: Schema.String,
  approved: Schema.optional(Schema.Boolean),
  reason: Schema.optional(Schema.String),
  isAutomatic: Schema.optional(Schema.Boolean)
})

const Part = Schema.Struct({
  type: Schema.String,
  id: Schema.optional(Schema.String),
  text: Schema.optional(Schema.String),
  url: Schema.optional(Schema.String),
  mediaType: Schema.optional(Schema.String),
  filename: Schema.optional(Schema.String),
  toolCallId: Schema.optional(Schema.String),
  state: Schema.optional(Schema.String),
  approval: Schema.optional(Approval),
  output: Schema.optional(Schema.Json),
  preliminary: Schema.optional(Schema.Boolean),
  errorText: Schema.optional(Schema.String)
}).check(
  Schema.makeFilter(({ mediaType, type, url = "" }) =>
    type !== "file" || (mediaType !== undefined && /^(https?:\/\/|data:[^,]*,)/.test(url))
      ? undefined
      : "A file has a media type, and a URL with the scheme http, https or data"
  )
)
type Part = typeof Part.Type

const UiMessage = Schema.Struct({
  id: Schema.String,
  role: Schema.Literals(["system", "user", "assistant"]),
  parts: Schema.Array(Part),
  metadata: Schema.optional(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
})

type UiMessage = typeof UiMessage.Type

export const ChatRequest = Schema.Struct({
  id: Schema.String,
  trigger: Schema.Literals(["submit-message", "regenerate-message"]),
  messageId: Schema.optional(Schema.String),
  messages: Schema.Array(UiMessage)
})
export interface ChatRequest extends Schema.Schema.Type<typeof ChatRequest> {}

/** The message whose parts have the answers of a person: the one that the client names, else the last one. */
export const answered = ({ messageId, messages, trigger }: ChatRequest): UiMessage | undefined => {
  const named = messages.find(({ id }) => id === messageId)
  const message = trigger === "submit-message" && named?.role === "assistant" ? named : messages.at(-1)
  return message?.role === "assistant" ? message : undefined
}

export const prompt = (request: ChatRequest, timestamp = Date.now()): ReadonlyArray<Message.User> => {
  if (answered(request) !== undefined) return []
  const { messages } = request
  const last = messages.findLastIndex(({ role }) => role !== "user")
  return messages.slice(last + 1).flatMap(({ id, parts }) => {
    const content = parts.flatMap((part) => blockOf(part))
    return content.length === 0 ? [] : [{ ...Message.user(content, timestamp), id }]
  })
}

const blockOf = (part: Part): Message.User["content"] => {
  if (part.type === "text" && part.text !== undefined) return [Message.text(part.text)]
  if (part.type !== "file" || part.url === undefined || part.mediaType === undefined) return []
  const source = sourceOf(part.url, part.mediaType)
  if (/^image(\/|$)/.test(part.mediaType)) {
    return [{ type: "image", source: "url" in source ? { url: source.url } : source }]
  }
  return [{ type: "file", source, ...(part.filename === undefined ? {} : { name: part.filename }) }]
}

const sourceOf = (url: string, mediaType: string) => {
  const [, given = mediaType, base64, data = ""] = /^data:([^;,]*)[^,]*?(;base64)?,([^]*)$/.exec(url) ?? []
  if (!url.startsWith("data:")) return { url, mediaType }
  return {
    data: base64 === undefined ? Base64.encode(percentDecoded(data)) : data,
    mediaType: given === "" ? mediaType : given
  }
}

const percentDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * The answers of a person in a request.
 *
 * @since 0.2.0
 * @category models
 */
export interface Answers {
  /** The decisions about tool calls. */
  readonly approvals: ReadonlyArray<{
    readonly approvalId: string
    readonly decision: "approve" | "reject"
    readonly reason?: string
  }>
  /** The answers of the tool parts, by the id of the part: the output, or that the person declines, of a part with an error. */
  readonly outputs: ReadonlyArray<{
    readonly toolCallId: string
    readonly answer: { readonly answer: Schema.Json } | { readonly declined: true; readonly reason?: string }
  }>
}

const answerOf = ({
  errorText,
  output,
  preliminary,
  state
}: Part): Answers["outputs"][number]["answer"] | undefined => {
  // The progress of the call.
  if (preliminary === true) return undefined
  if (state === "output-available" && output !== undefined) return { answer: output }
  if (state !== "output-error") return undefined
  return { declined: true, ...(errorText === undefined || errorText === "" ? {} : { reason: errorText }) }
}

export const answers = (request: ChatRequest): Answers => {
  const { parts = [] } = answered(request) ?? {}
  return {
    approvals: parts.flatMap(({ approval }) => {
      if (approval?.approved === undefined || approval.isAutomatic === true) return []
      const { approved, id: approvalId, reason } = approval
      const decision = approved ? "approve" : "reject"
      return [{ approvalId, decision, ...(reason === undefined ? {} : { reason }) }]
    }),
    outputs: parts.flatMap((part) => {
      const { toolCallId } = part
      const answer = answerOf(part)
      return toolCallId === undefined || answer === undefined ? [] : [{ toolCallId, answer }]
    })
  }
}
