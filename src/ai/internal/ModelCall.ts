/**
 * A call of a model of `effect/ai`: the request as a `Prompt`, and a failure as a reason of `ProviderError`.
 *
 * Each message is converted once: a `ResponseIdTracker` recognises by the same objects what a vendor has seen already.
 */
import * as Duration from "effect/Duration"
import * as Inspectable from "effect/Inspectable"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Message from "../../Message.ts"
import type { ModelRequest } from "../../Provider.ts"
import * as Reasons from "../../ProviderError.ts"
import * as PartMetadata from "../../reply/PartMetadata.ts"
import * as HttpConnection from "../../http/HttpConnection.ts"
import * as VendorFailure from "../../http/VendorFailure.ts"
import * as VendorText from "../../http/VendorText.ts"

type Encoded<A> = Result.Result<A, Reasons.UnsupportedContent>

/** Makes a function that converts requests for the provider of this name. It fails for content that no prompt can have. */
export const maker = (provider: string): ((request: ModelRequest) => Encoded<Prompt.Prompt>) => {
  const known = new WeakMap<Message.ModelMessage, Known>()
  let latest: Prompt.SystemMessage | undefined
  const systemMessage = (content: string): Prompt.SystemMessage =>
    latest?.content === content ? latest : (latest = Prompt.makeMessage("system", { content }))
  return (request) => {
    const messages: Array<Prompt.Message> = []
    if (request.system !== undefined) messages.push(systemMessage(request.system))
    for (const group of groupsOf(request.messages)) {
      const message = encoded(provider, known, group)
      if (message === undefined) continue
      if (Result.isFailure(message)) return Result.fail(message.failure)
      messages.push(message.success)
    }
    return Result.succeed(Prompt.fromMessages(messages))
  }
}

/** One message, or all the results of one answer. */
type Group = readonly [Message.ModelMessage, ...ReadonlyArray<Message.ModelMessage>]

interface Known {
  readonly group: Group
  readonly message: Encoded<Prompt.Message> | undefined
}

const groupsOf = (messages: ReadonlyArray<Message.ModelMessage>): ReadonlyArray<Group> => {
  const groups: Array<Group> = []
  for (const message of messages) {
    const last = groups.at(-1)
    if (last?.[0].role === "toolResult" && message.role === "toolResult") {
      groups[groups.length - 1] = [...last, message]
    } else groups.push([message])
  }
  return groups
}

const encoded = (
  provider: string,
  known: WeakMap<Message.ModelMessage, Known>,
  group: Group
): Encoded<Prompt.Message> | undefined => {
  const found = known.get(group[0])
  if (found?.group.length === group.length && found.group.every((message, at) => message === group[at])) {
    return found.message
  }
  const message = encode(provider, group)
  known.set(group[0], { group, message })
  return message
}

/** Converts a group, or returns `undefined` if nothing of it is to be sent. */
const encode = (provider: string, group: Group): Encoded<Prompt.Message> | undefined => {
  const [first] = group
  switch (first.role) {
    case "user":
      if (first.from === "developer")
        return Result.succeed(Prompt.makeMessage("system", { content: Message.textOf(first) }))
      return Result.map(all(first.content.map(userPart)), (content) =>
        Prompt.makeMessage("user", { content, options: first.vendor ?? PartMetadata.none })
      )
    case "assistant": {
      const content = first.content.flatMap((block) => answerPart(provider, block))
      return content.length === 0
        ? undefined
        : Result.succeed(
            Prompt.makeMessage("assistant", { content, options: first.vendor ?? PartMetadata.none })
          )
    }
    case "toolResult": {
      const results = group.flatMap((message) => (message.role === "toolResult" ? [resultPart(message)] : []))
      return Result.map(all(results), (content) => Prompt.makeMessage("tool", { content }))
    }
  }
}

const all = <A>(parts: ReadonlyArray<Encoded<A>>): Encoded<ReadonlyArray<A>> => {
  const failed = parts.find(Result.isFailure)
  return failed === undefined
    ? Result.succeed(parts.flatMap((part) => (Result.isSuccess(part) ? [part.success] : [])))
    : Result.fail(failed.failure)
}

const userPart = (part: Message.User["content"][number]): Encoded<Prompt.TextPart | Prompt.FilePart> =>
  part.type === "text"
    ? Result.succeed(Prompt.makePart("text", { text: part.text, options: part.vendor ?? PartMetadata.none }))
    : filePart(part)

/** The part needs a media type, and most files without one are PDFs. */
const filePart = (block: Message.Image | Message.File | Message.Media): Encoded<Prompt.FilePart> => {
  const { source, type } = block
  const usual = type === "image" ? "image/*" : "application/pdf"
  const mediaType = "mediaType" in source ? (source.mediaType ?? usual) : usual
  const name = "name" in block ? { fileName: block.name } : {}
  const unsupported = (detail: string) => new Reasons.UnsupportedContent({ detail })
  return Result.map(dataOf(source), (data) =>
    Prompt.makePart("file", { mediaType, data, ...name, options: block.vendor ?? PartMetadata.none })
  ).pipe(
    Result.mapError((fault) =>
      unsupported(
        fault === "base64"
          ? `The data of the ${type} (${mediaType}) is not base64`
          : `The address of the ${type} is no URL: ${fault.slice(0, 200)}`
      )
    )
  )
}

/** Vendors read a text as the id of a file. Fails with `"base64"`, or with an address that is no URL. */
const dataOf = (
  source: (Message.Image | Message.File)["source"]
): Result.Result<string | Uint8Array | URL, string> => {
  if ("fileId" in source) return Result.succeed(source.fileId)
  if ("data" in source) return Result.mapError(Base64.decode(source.data), () => "base64")
  return URL.canParse(source.url) ? Result.succeed(new URL(source.url)) : Result.fail(source.url)
}

/** Converts a block. Thinking, media and tools of the vendor go back only to the provider that made it. */
const answerPart = (
  provider: string,
  block: Message.Assistant["content"][number]
): ReadonlyArray<Prompt.AssistantMessagePart> => {
  const own = PartMetadata.ofBlock(provider, block)
  const vendor = block.type === "source" ? undefined : block.vendor
  const options = PartMetadata.merge(vendor ?? PartMetadata.none, own ?? PartMetadata.none)
  switch (block.type) {
    case "text":
      return block.text === "" && own === undefined
        ? []
        : [Prompt.makePart("text", { text: block.text, options })]
    case "thinking":
      return own === undefined ? [] : [Prompt.makePart("reasoning", { text: block.text, options })]
    case "toolCall": {
      const { id, name, params = {} } = block
      return [Prompt.makePart("tool-call", { id, name, params, providerExecuted: false, options })]
    }
    case "media": {
      const part = own && Result.getOrUndefined(filePart(block))
      return part === undefined ? [] : [{ ...part, options }]
    }
    case "hostedTool":
      return own === undefined ? [] : hostedParts(block, options)
    // A prompt has no part for it.
    case "source":
      return []
  }
}

const hostedParts = (
  { id, isError = false, name, params, result }: Message.HostedTool,
  options: PartMetadata.Metadata
): ReadonlyArray<Prompt.AssistantMessagePart> => [
  ...(params === undefined
    ? []
    : [Prompt.makePart("tool-call", { id, name, params, providerExecuted: true, options })]),
  ...(result === undefined
    ? []
    : [
        Prompt.makePart("tool-result", {
          id,
          name,
          isFailure: isError,
          result,
          providerExecuted: true,
          options
        })
      ])
]

/** Converts a result. `modelOutput` has the images; vendors that do not know it read the text of `result`. */
const resultPart = (message: Message.ToolResult): Encoded<Prompt.ToolResultPart> =>
  Result.map(all(message.content.map(userPart)), (modelOutput) =>
    Prompt.makePart("tool-result", {
      id: message.toolCallId,
      name: message.toolName,
      isFailure: message.isError,
      result: Prompt.toolModelOutputToText(modelOutput),
      ...(modelOutput.some((part) => part.type === "file") ? { modelOutput } : {}),
      providerExecuted: false,
      options: message.vendor ?? PartMetadata.none
    })
  )

// ───────────────────────── Failures

/** Converts an `AiError`, without keys that a server or a proxy repeats. `now` is milliseconds since the epoch. */
export const fromAiError = ({ reason }: AiError.AiError, now?: number): Reasons.Reason => {
  const facts = factsOf(reason)
  switch (reason._tag) {
    case "QuotaExhaustedError":
      return new Reasons.QuotaExceeded(facts)
    case "ContentPolicyError":
      return new Reasons.ContentPolicy(facts)
    case "NetworkError":
      return reason.reason === "TransportError"
        ? new Reasons.Transport({
            ...facts,
            ...(HttpConnection.kindIn(reason.cause, reason.description) ?? { kind: "reset" })
          })
        : new Reasons.InvalidRequest(facts)
    case "ToolParameterValidationError":
      return new Reasons.Protocol({ ...facts, kind: "badJson" })
    case "InvalidResponseError":
    case "InvalidOutputError":
    case "StructuredOutputError":
      return new Reasons.Protocol({ ...facts, kind: "badShape" })
    case "InvalidUserInputError":
      return new Reasons.UnsupportedContent(facts)
    default:
      return ofStatus(reason, facts, now)
  }
}

/** Converts the failure in a part of a stream, which may be any value. */
export const fromUnknown = (error: unknown): Reasons.Reason => {
  if (AiError.isAiError(error)) return fromAiError(error)
  const event = eventOf(error)
  const reason = event === undefined ? undefined : VendorFailure.ofErrorEvent(VendorText.cutOut(event))
  const isKnown = reason !== undefined && reason._tag !== "ServerError"
  // The runtime has codes of its own.
  return isKnown && !(error instanceof Error && reason._tag === "InvalidRequest")
    ? reason
    : VendorFailure.ofWords(VendorText.cutOut(textOf(error)))
}

/** The event of the vendor that an error stands for, `undefined` for words. An `Error` may have its codes, beside other members. */
const eventOf = (error: unknown): string | undefined => {
  if (!(error instanceof Error))
    return typeof error === "object" ? Inspectable.toStringUnknown(error, 0) : undefined
  const codes = ["code", "type", "status"].flatMap((name) =>
    Predicate.hasProperty(error, name) ? [[name, error[name]]] : []
  )
  const { message } = error
  return codes.length === 0
    ? undefined
    : Inspectable.toStringUnknown({ ...Object.fromEntries(codes), message }, 0)
}

const textOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "message") && typeof error.message === "string") return error.message
  return typeof error === "string" ? error : Inspectable.toStringUnknown(error, 0)
}

type Facts = Pick<Reasons.Reason, "detail" | "status" | "requestId" | "body">
type Failure = AiError.AiErrorReason

const factsOf = (reason: Failure): Facts => {
  const { body, response } = httpOf(reason) ?? {}
  const headers = response?.headers ?? {}
  const requestId = headers["x-request-id"] ?? headers["request-id"]
  return {
    detail: VendorText.cutOut(detailOf(reason)).slice(0, maxDetail),
    ...(response === undefined ? {} : { status: response.status }),
    ...(typeof requestId === "string" ? { requestId } : {}),
    ...(body === undefined ? {} : { body: VendorText.excerpt(VendorText.cutOut(body)) })
  }
}

const maxDetail = 1600

const detailOf = (reason: Failure): string => {
  const { description } = "description" in reason ? reason : { description: undefined }
  return description === undefined || description === "" ? reason.message : description
}

const httpOf = (reason: Failure) => ("http" in reason ? reason.http : undefined)

/** `effect/ai` has one class for most statuses, and none for a conversation that is too long. */
const ofStatus = (reason: Failure, facts: Facts, now: number | undefined): Reasons.Reason => {
  const status = facts.status ?? statuses.get(reason._tag)
  if (status === undefined) {
    return reason._tag === "UnknownError"
      ? new Reasons.Protocol({ ...facts, kind: "badShape" })
      : new Reasons.InvalidRequest(facts)
  }
  const { body, response } = httpOf(reason) ?? {}
  const wait = "retryAfter" in reason ? reason.retryAfter : undefined
  const named = wait === undefined ? {} : { "retry-after-ms": String(Duration.toMillis(wait)) }
  const refusal = {
    headers: { ...named, ...response?.headers },
    body: VendorText.cutOut(body ?? ""),
    words: facts.detail,
    now
  }
  const isForbidden = reason._tag === "AuthenticationError" && reason.kind === "InsufficientPermissions"
  return VendorFailure.ofResponse({ ...refusal, status: isForbidden ? 403 : status })
}

/** The statuses that errors without a response stand for. */
const statuses: ReadonlyMap<string, number> = new Map([
  ["RateLimitError", 429],
  ["AuthenticationError", 401],
  ["InvalidRequestError", 400],
  ["InternalProviderError", 500]
])
