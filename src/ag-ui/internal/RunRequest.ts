/** The body of the POST of an AG-UI client. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Message from "../../Message.ts"

const AgUiMessage = Schema.StructWithRest(Schema.Struct({ id: Schema.String, role: Schema.String }), [
  Schema.Record(Schema.String, Schema.Json)
])

const Resume = Schema.Struct({
  interruptId: Schema.String,
  status: Schema.Literals(["resolved", "cancelled"]),
  payload: Schema.optional(Schema.Json)
})

export const RunAgentInput = Schema.Struct({
  threadId: Schema.String,
  runId: Schema.String,
  messages: Schema.Array(AgUiMessage).check(
    Schema.makeFilter((messages) => {
      const unread = messages.find((message) => message.role === "user" && Option.isNone(contentOf(message)))
      return unread === undefined
        ? undefined
        : `Message ${JSON.stringify(unread.id)} has content that AG-UI does not describe, or no http or https address`
    })
  ),
  resume: Schema.optional(Schema.NullOr(Schema.Array(Resume)))
})
export interface RunAgentInput extends Schema.Schema.Type<typeof RunAgentInput> {}

const HttpUrl = Schema.String.check(Schema.isPattern(/^https?:\/\//))
const Source = Schema.Union([
  Schema.Struct({ type: Schema.Literal("data"), value: Schema.String, mimeType: Schema.String }),
  Schema.Struct({ type: Schema.Literal("url"), value: HttpUrl, mimeType: Schema.optional(Schema.String) }),
  Schema.Struct({ type: Schema.Literal("file"), value: Schema.String })
])
const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literals(["image", "audio", "video", "document"]), source: Source })
])
const Content = Schema.Union([Schema.String, Schema.Array(Part)])
const decodeContent = Schema.decodeUnknownOption(Content)

const contentOf = (message: { readonly [key: string]: Schema.Json }) => decodeContent(message["content"])

export const prompt = ({ messages }: RunAgentInput, timestamp = Date.now()): ReadonlyArray<Message.User> => {
  const last = messages.findLastIndex(({ role }) => role !== "user")
  return messages.slice(last + 1).flatMap((message) =>
    Option.match(contentOf(message), {
      onNone: () => [],
      onSome: (content) => [
        {
          ...Message.user(typeof content === "string" ? content : content.map(blockOf), timestamp),
          id: message.id
        }
      ]
    })
  )
}

const blockOf = (part: typeof Part.Type): Message.User["content"][number] => {
  if (part.type === "text") return Message.text(part.text)
  const { source, type } = part
  switch (source.type) {
    case "data": {
      const inline = { data: source.value, mediaType: source.mimeType }
      return type === "image" ? { type, source: inline } : { type: "file", source: inline }
    }
    case "url": {
      const { mimeType, value: url } = source
      if (type === "image") return { type, source: { url } }
      return { type: "file", source: { url, ...(mimeType === undefined ? {} : { mediaType: mimeType }) } }
    }
    case "file":
      return { type: "file", source: { fileId: source.value } }
  }
}

const Decision = Schema.Struct({
  approved: Schema.Boolean,
  reason: Schema.optional(Schema.NullOr(Schema.String))
})
const decodeDecision = Schema.decodeUnknownOption(Decision)

/**
 * The answer of a person to an interrupt.
 *
 * @since 0.2.0
 * @category models
 */
export interface Reply {
  /** The id of the approval or of the question. */
  readonly id: string
  /** Whether the person gave no answer. */
  readonly isCancelled: boolean
  /** The decision about a tool call, absent if the payload is none. A cancelled one rejects. */
  readonly decision?: { readonly decision: "approve" | "reject"; readonly reason?: string }
  /** The answer to a question. Default none. */
  readonly answer?: Schema.Json
}

export const replies = ({ resume }: RunAgentInput): ReadonlyArray<Reply> =>
  (resume ?? []).map(({ interruptId: id, payload, status }): Reply => {
    if (status === "cancelled") return { id, isCancelled: true, decision: { decision: "reject" } }
    const decision = Option.match(decodeDecision(payload), {
      onNone: () => ({}),
      onSome: ({ approved, reason }) => ({
        decision: {
          decision: approved ? ("approve" as const) : ("reject" as const),
          ...(reason === undefined || reason === null ? {} : { reason })
        }
      })
    })
    return { id, isCancelled: false, ...decision, ...(payload === undefined ? {} : { answer: payload }) }
  })
