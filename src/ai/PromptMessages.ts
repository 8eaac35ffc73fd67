/**
 * The conversion of a request to a `Prompt` of `effect/ai`.
 *
 * Each message is converted once: a `ResponseIdTracker` recognises by the same objects what a vendor has seen already.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type * as Message from "../Message.ts"
import type { ModelRequest } from "../Provider.ts"
import { UnsupportedContent } from "../ProviderError.ts"
import * as Metadata from "./Metadata.ts"

type Encoded<A> = Result.Result<A, UnsupportedContent>

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
      return Result.map(all(first.content.map(userPart)), (content) =>
        Prompt.makeMessage("user", { content })
      )
    case "assistant": {
      const content = first.content.flatMap((block) => answerPart(provider, block))
      return content.length === 0 ? undefined : Result.succeed(Prompt.makeMessage("assistant", { content }))
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
  part.type === "text" ? Result.succeed(Prompt.makePart("text", { text: part.text })) : filePart(part)

const filePart = ({ source, type }: Message.Image | Message.File): Encoded<Prompt.FilePart> => {
  if ("url" in source) return ofUrl(source.url)
  // Vendors read a text as the id of a file. The part needs a media type, and most uploaded files are PDFs.
  if ("fileId" in source) {
    return Result.succeed(Prompt.makePart("file", { mediaType: "application/pdf", data: source.fileId }))
  }
  const { data, mediaType } = source
  return Result.mapBoth(Base64.decode(data), {
    onSuccess: (bytes) => Prompt.makePart("file", { mediaType, data: bytes }),
    onFailure: () =>
      new UnsupportedContent({ detail: `The data of the ${type} (${mediaType}) is not base64` })
  })
}

const ofUrl = (url: string): Encoded<Prompt.FilePart> =>
  URL.canParse(url)
    ? Result.succeed(Prompt.makePart("file", { mediaType: "image/*", data: new URL(url) }))
    : Result.fail(
        new UnsupportedContent({ detail: `The address of the image is no URL: ${url.slice(0, 200)}` })
      )

/** Converts a block. Thinking goes back only to the provider that made it. */
const answerPart = (
  provider: string,
  block: Message.Assistant["content"][number]
): ReadonlyArray<Prompt.AssistantMessagePart> => {
  const own = Metadata.ofBlock(provider, block)
  const options = own ?? Metadata.none
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
    case "source":
    case "media":
    case "hostedTool":
      return []
  }
}

/** Converts a result. `modelOutput` has the images; vendors that do not know it read the text of `result`. */
const resultPart = (message: Message.ToolResult): Encoded<Prompt.ToolResultPart> =>
  Result.map(all(message.content.map(userPart)), (modelOutput) =>
    Prompt.makePart("tool-result", {
      id: message.toolCallId,
      name: message.toolName,
      isFailure: message.isError,
      result: Prompt.toolModelOutputToText(modelOutput),
      ...(modelOutput.some((part) => part.type === "file") ? { modelOutput } : {}),
      providerExecuted: false
    })
  )
