/**
 * Recovers a model call whose provider refuses a part of the conversation: the run asks again without that part, and leaves it out of later
 * requests to the model.
 *
 * If the refusal names thinking, images or files, the next request leaves these out. Otherwise the run guesses the part: each further
 * request leaves out another one.
 */
import { memoize } from "effect/Function"
import * as Message from "../Message.ts"
import type { Adjustment } from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import type { InvalidRequest, ProviderError, Reason } from "../ProviderError.ts"
import * as Transcript from "../Transcript.ts"

type Kind = Message.LeftOut["kind"]

/** The content that a request leaves out as a guess. */
interface Guess {
  readonly entries: ReadonlyArray<Message.LeftOut>
  /** Messages that are left out as a whole. */
  readonly messages: ReadonlyArray<Message.MessageId>
}

export class Recovery {
  /** The content that the last request left out, as the events report it. */
  adjusted: ReadonlyArray<Adjustment> = []
  /** The last request with all of its content; `undefined` before the first. */
  asked: ModelRequest | undefined
  /** Whether a compaction was tried or is not possible. Only then guesses may leave out content that the model needs, such as results. */
  isFinal = false
  private known: ReadonlyArray<Message.LeftOut> = []
  private guess: Guess = { entries: [], messages: [] }
  private readonly tried = new Set<unknown>()
  /** The first refusal that named no part. If no guess helps, the run fails with it. */
  private unexplained: ProviderError | undefined

  /** Makes the request without the content that its provider has refused, or that the current guess leaves out. */
  request(request: ModelRequest, transcript: ReadonlyArray<Message.Message>): ModelRequest {
    this.asked = request
    const hidden = new Set(this.guess.messages)
    const shown = hidden.size === 0 ? request.messages : request.messages.filter(({ id }) => !hidden.has(id))
    const { adjusted, messages } = without({ ...request, messages: shown }, transcript, [
      ...this.known,
      ...this.guess.entries
    ])
    this.adjusted = adjusted
    return messages === request.messages ? request : { ...request, messages }
  }

  /** Chooses the content that the next request leaves out after an error. Returns whether there is any, so that the run asks again. */
  after({ provider, reason }: ProviderError, transcript: ReadonlyArray<Message.Message>): boolean {
    const { asked } = this
    if (asked === undefined) return false
    const entry = ([kind, since]: Suspect): Message.LeftOut => ({
      kind,
      model: asked.model,
      ...(since === undefined ? {} : { since }),
      reason: `${provider} refused it, ${JSON.stringify(reason.detail.slice(0, 200))}`
    })
    const { messages } = without(asked, transcript, this.known)
    const conversation = new Conversation({ ...asked, messages }, transcript)
    const named = conversation.refused(reason)
    if (named.length > 0 && this.isFirst(named.includes("thinking") ? "thinking" : "media")) {
      const isWhole = reason._tag === "ContextOverflow"
      const suspects = named.map((kind) => [kind, isWhole ? undefined : conversation.since(kind)] as const)
      this.known = [...this.known, ...suspects.map(entry)]
      return true
    }
    for (const step of stepsAfter(reason, this.isFinal)) {
      const { kinds = [], messages = [] } = this.isFirst(step) ? step(conversation) : {}
      if (kinds.length + messages.length === 0) continue
      this.guess = { entries: kinds.map(entry), messages }
      return true
    }
    return false
  }

  private isFirst(step: unknown): boolean {
    return this.tried.size < this.tried.add(step).size
  }

  /** The error to fail with: the first one that led to guesses, since the later ones are about changed requests. */
  error(error: ProviderError): ProviderError {
    return stepsAfter(error.reason, true).length > 0 ? (this.unexplained ??= error) : error
  }

  /** The members of the answer by which later requests leave out the same content. A guess counts only if the provider then answered. */
  kept(isAnswered: boolean): Partial<Pick<Message.Assistant, "leftOut" | "refused">> {
    const leftOut = isAnswered ? [...this.known, ...this.guess.entries] : this.known
    const refused = isAnswered ? this.guess.messages : []
    return {
      ...(leftOut.length === 0 ? {} : { leftOut }),
      ...(refused.length === 0 ? {} : { refused })
    }
  }
}

const media: ReadonlyArray<Kind> = ["image", "file"]

/** A kind of content to leave out, from a message on. Default: from the first message of the transcript. */
type Suspect = readonly [kind: Kind, since: Message.MessageId | undefined]

/** Chooses the content that one guess leaves out; nothing if the conversation has no such content. */
type Step = (conversation: Conversation) => {
  readonly kinds?: ReadonlyArray<Suspect>
  /** Messages that are left out as a whole. */
  readonly messages?: ReadonlyArray<Message.MessageId>
}

/** The guesses, in the order of how much content the conversation loses. */
const steps: ReadonlyArray<Step> = [
  (conversation) => ({ kinds: conversation.isKnown ? conversation.unread(media) : [] }),
  (conversation) => ({
    kinds: conversation.all(["thinking", ...media]),
    messages: conversation.failedBefore
  }),
  // A result is left out together with the arguments of its call.
  (conversation) => ({ kinds: conversation.unread(["result"]) }),
  (conversation) => ({ kinds: conversation.unread(["answer"]) }),
  (conversation) => conversation.history
]

/** The guesses for a refusal. Where the words may mean that the conversation is too long, only the first ones apply until `isFinal`. */
const stepsAfter = (reason: Reason, isFinal: boolean): ReadonlyArray<Step> => {
  const part = reason._tag === "InvalidRequest" ? reason.refused : undefined
  if (part === "tool" || part === "option") return []
  if (part === "message") return steps.slice(2)
  if (isOfContent(reason)) return isFinal ? steps : steps.slice(0, 2)
  return isFinal && isTooLarge(reason) ? steps : []
}

/** A refused request, and the transcript that it was made from. */
class Conversation {
  private readonly sent: ReadonlyArray<Message.ModelMessage>
  private readonly transcript: ReadonlyArray<Message.Message>
  /** The last answer and the messages after it. */
  private readonly news: ReadonlyArray<Message.Message>
  /** Whether the same model gave the last answer, so that it accepts the messages before it. */
  readonly isKnown: boolean

  constructor({ messages, model }: ModelRequest, transcript: ReadonlyArray<Message.Message>) {
    this.sent = messages
    this.transcript = transcript
    const last = transcript.findLastIndex(
      (message) => message.role === "assistant" && !Transcript.isFailed(message)
    )
    const answer = transcript[last]
    this.news = transcript.slice(Math.max(last, 0))
    // With a router the id in the request has the prefix of the provider, and the id in the answer does not.
    this.isKnown =
      answer?.role === "assistant" && (answer.model === model || model.endsWith(`/${answer.model}`))
  }

  private has(kind: Kind): boolean {
    return this.sent.some((message) => has(message, kind))
  }

  all(kinds: ReadonlyArray<Kind>): ReadonlyArray<Suspect> {
    return kinds.flatMap((kind) => (this.has(kind) ? [[kind, undefined]] : []))
  }

  /** The kinds of content that an error names and the request has. */
  refused(reason: Reason): ReadonlyArray<Kind> {
    if (reason._tag === "UnsupportedContent" || isTooLarge(reason))
      return media.filter((kind) => this.has(kind))
    const part = reason._tag === "InvalidRequest" ? reason.refused : undefined
    if (part === "thinking") return this.has(part) ? [part] : []
    if (part !== "image" && part !== "file") return []
    // Vendors mix up images and files: some name the page of a document an image.
    return this.has(part) ? [part] : media.filter((kind) => this.has(kind))
  }

  /** The id of the last answer, if the model has accepted the messages before it and later ones have content of the kind. */
  since(kind: Kind): Message.MessageId | undefined {
    const ids = new Set(this.news.map(({ id }) => id))
    const isNew = this.sent.some((message) => ids.has(message.id) && has(message, kind))
    return this.isKnown && isNew ? this.news[0]?.id : undefined
  }

  /** The content that the model has not accepted in an earlier request. */
  unread(kinds: ReadonlyArray<Kind>): ReadonlyArray<Suspect> {
    if (!this.isKnown) return this.all(kinds)
    return kinds.map((kind) => [kind, this.since(kind)] as const).filter(([, since]) => since !== undefined)
  }

  /** The messages of the user whose requests failed, without those of the last prompt. */
  get failedBefore(): ReadonlyArray<Message.MessageId> {
    const failed = this.news.slice(0, this.news.findLastIndex(({ role }) => role === "assistant") + 1)
    return failed.flatMap(({ id, role }) => (role === "user" ? [id] : []))
  }

  /** The last guess: leaves out all messages before the last prompt, and all kinds of content after it. */
  get history(): ReturnType<Step> {
    const start = this.transcript.findLastIndex(isEnd) + 1
    const kept = new Set(
      this.transcript.flatMap(({ id, role }, place) => (place >= start || role === "custom" ? [id] : []))
    )
    const hasPrompt = this.sent.some(({ id, role }) => role === "user" && kept.has(id))
    const gone = [...this.transcript, ...this.sent].flatMap(({ id }) => (kept.has(id) ? [] : [id]))
    return hasPrompt
      ? { kinds: this.all(["thinking", ...media, "result", "answer"]), messages: [...new Set(gone)] }
      : {}
  }
}

/** Whether a message ended a run. */
const isEnd = (message: Message.Message): boolean =>
  message.role === "assistant" && (Transcript.isFailed(message) || Message.toolCalls(message).length === 0)

/** The HTTP statuses with which servers refuse the content of a request. */
const statuses: ReadonlySet<number | undefined> = new Set([400, 413, 415, 422])

/** Whether a server refused a request for its content. The cause may be its length, although the words name another one. */
export const isOfContent = (reason: Reason): reason is InvalidRequest =>
  reason._tag === "InvalidRequest" &&
  (statuses.has(reason.status) || (reason.status === undefined && reason.body !== undefined))

/** Whether the body of a request was too large. Images and files are then the likely cause, and not text. */
const isTooLarge = (reason: Reason): boolean => reason._tag === "ContextOverflow" && reason.status === 413

// ───────────────────────── Parts that are left out

export type Media = Message.Image | Message.File
type PartKind = Message.LeftOut["kind"]

/** A message after content was left out, and the content. Itself if nothing was. */
export interface Replaced {
  readonly message: Message.ModelMessage
  readonly left: ReadonlyArray<{ readonly kind: PartKind; readonly reason: string }>
}

type Replace = (message: Message.ModelMessage) => Replaced

/** The images and files of a message for the model. */
export const mediaIn = (message: Message.ModelMessage): ReadonlyArray<Media> =>
  message.role === "assistant"
    ? []
    : message.content.flatMap((block): ReadonlyArray<Media> => (block.type === "text" ? [] : [block]))

/** The media type; `undefined` for a source that does not name it. */
export const mediaType = ({ source }: Media): string | undefined =>
  "mediaType" in source
    ? source.mediaType
    : "url" in source
      ? /^data:([^;,]+)/.exec(source.url)?.[1]
      : undefined

const noteOn = (media: Media, reason: string): string => {
  const name = media.type === "file" && media.name !== undefined ? ` ${JSON.stringify(media.name)}` : ""
  const type = mediaType(media)
  const what = `${media.type === "image" ? "An image" : "A file"}${name}${type === undefined ? "" : ` (${type})`}`
  return `[${what} is left out here: ${reason}.]`
}

/**
 * Makes a function that replaces images and files by a note where `refusal` returns a reason. The function returns the same object each
 * time for a message, so that providers can cache its encoding.
 */
export const replacing = (refusal: (media: Media) => string | undefined): Replace =>
  memoize((message) => {
    const left: Array<Replaced["left"][number]> = []
    const noted = <Block extends Message.Text | Media>(
      content: ReadonlyArray<Block>
    ): ReadonlyArray<Block | Message.Text> => {
      const blocks: Array<Block | Message.Text> = []
      for (const block of content) {
        const reason = block.type === "text" ? undefined : refusal(block)
        if (block.type === "text" || reason === undefined) blocks.push(block)
        else {
          left.push({ kind: block.type, reason })
          const last = blocks.at(-1)
          const text = last?.type === "text" ? [last.text, noteOn(block, reason)] : [noteOn(block, reason)]
          blocks.splice(last?.type === "text" ? -1 : blocks.length, 1, {
            type: "text",
            text: text.join("\n\n")
          })
        }
      }
      return blocks
    }
    const replaced = (): Message.ModelMessage => {
      switch (message.role) {
        case "user":
          return { ...message, content: noted(message.content) }
        case "toolResult":
          return { ...message, content: noted(message.content) }
        case "assistant":
          return message
      }
    }
    const made = replaced()
    return { message: left.length === 0 ? message : made, left }
  })

/** Applies a further replacement to a message. */
export const again = (replaced: Replaced, replace: Replace): Replaced => {
  const { left, message } = replace(replaced.message)
  return message === replaced.message ? replaced : { message, left: [...replaced.left, ...left] }
}

/** Reports the content that is left out: one adjustment for each kind and reason. */
export const report = (replaced: ReadonlyArray<Replaced>): ReadonlyArray<Adjustment> => {
  const counts = new Map<string, { readonly kind: string; readonly reason: string; count: number }>()
  for (const { kind, reason } of replaced.flatMap(({ left }) => left)) {
    const key = `${kind} ${reason}`
    const known = counts.get(key) ?? { kind, reason, count: 0 }
    known.count++
    counts.set(key, known)
  }
  return [...counts.values()].map(({ count, kind, reason }) => ({
    option: kind,
    asked: kind === "thinking" ? `of ${plural(count, "answer")}` : plural(count, kind),
    sent: null,
    reason: `${reason}.`
  }))
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

// ───────────────────────── What a provider has refused

/** Whether a message has something of a kind that requests can leave out. */
export const has = (message: Message.ModelMessage, kind: PartKind): boolean =>
  kind === "image" || kind === "file"
    ? mediaIn(message).some(({ type }) => type === kind)
    : kind === "result"
      ? message.role === "toolResult"
      : message.role === "assistant" && (kind === "answer" || message.content.some(isVendors))

/** Whether a block is thinking, or has data that only its vendor reads, such as a signature. */
const isVendors = (block: Message.Assistant["content"][number]): boolean =>
  block.type === "thinking" || block.opaque !== undefined

/** Makes the function that leaves out the content of an entry. */
const replacerOf = /* @__PURE__ */ memoize(({ kind, reason }: Message.LeftOut): Replace => {
  if (kind === "image" || kind === "file")
    return replacing(({ type }) => (type === kind ? reason : undefined))
  return memoize((message) => ({
    message: message.role === "user" ? message : changes[kind](message),
    left: has(message, kind) ? [{ kind, reason }] : []
  }))
})

type Change = (message: Message.Assistant | Message.ToolResult) => Message.ModelMessage

/** The notes do not quote the vendor: its words may contain the content that it refused. */
const changes: Readonly<Record<Exclude<PartKind, Media["type"]>, Change>> = {
  thinking: (message) =>
    message.role === "assistant" && has(message, "thinking") ? withoutThinking(message) : message,
  result: (message) =>
    message.role === "assistant"
      ? { ...message, content: message.content.map(withoutArguments) }
      : { ...message, content: [note("The result of this call is left out, and so are its arguments")] },
  answer: (message) =>
    message.role === "assistant"
      ? { ...message, content: [note("This answer is left out")], vendor: {} }
      : asUser(message)
}

/** Makes a message of the user from a result whose call is left out. */
const asUser = ({ content, id, timestamp }: Message.ToolResult): Message.User => ({
  role: "user",
  id,
  content: [Message.text("[The result of a call:]"), ...content],
  timestamp
})

const note = (what: string): Message.Text => Message.text(`[${what}: the provider refused it.]`)

const withoutArguments = (block: Message.Assistant["content"][number]) =>
  block.type === "toolCall" ? { ...block, rawArguments: "{}", params: {} } : block

/** Removes the thinking, and the opaque data of all blocks, since any of them may have a signature. */
const withoutThinking = (message: Message.Assistant): Message.Assistant => ({
  ...message,
  content: message.content.flatMap((block) => {
    if (block.type === "thinking") return []
    const { opaque: _, ...rest } = block
    return [rest]
  })
})

/**
 * The messages of a request without the content that the provider of its model has refused. The answers of the transcript record that;
 * `entries` are those of the current call.
 */
export const without = (
  { messages, model }: { readonly messages: ReadonlyArray<Message.ModelMessage>; readonly model: string },
  transcript: ReadonlyArray<Message.Message>,
  entries: ReadonlyArray<Message.LeftOut>
): {
  readonly messages: ReadonlyArray<Message.ModelMessage>
  readonly adjusted: ReadonlyArray<Adjustment>
} => {
  const all: Array<{ readonly entry: Message.LeftOut; readonly end: number }> = []
  for (const [end, message] of transcript.entries())
    if (message.role === "assistant" && message.leftOut !== undefined)
      // An entry counts for messages up to its answer. One about thinking counts for later answers too: the server would refuse theirs as
      // well.
      for (const entry of message.leftOut)
        if (entry.model === model) all.push({ entry, end: entry.kind === "thinking" ? Infinity : end })
  for (const entry of entries) if (entry.model === model) all.push({ entry, end: transcript.length })
  if (all.length === 0) return { messages, adjusted: [] }
  const places = new Map(transcript.map(({ id }, place) => [id, place]))
  // A message that a hook or a compaction made is not in the transcript: it counts as older than all answers.
  const placeOf = (id: Message.MessageId | undefined) => (id === undefined ? -1 : (places.get(id) ?? -1))
  const replaced = messages.map((message) =>
    all
      .filter(({ end, entry }) => placeOf(message.id) >= placeOf(entry.since) && placeOf(message.id) < end)
      .reduce<Replaced>((each, { entry }) => again(each, replacerOf(entry)), { message, left: [] })
  )
  return { messages: replaced.map(({ message }) => message), adjusted: report(replaced) }
}

// ───────────────────────── Refused messages

/** A conversation: the transcript, and the compaction that requests start from. */
interface Accepted {
  readonly messages: ReadonlyArray<Message.Message>
  readonly compaction: Transcript.Compaction | undefined
}

/** The ids of the messages after the last answer: those that a guard refuses with a request. */
export const news = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Message.MessageId> =>
  messages
    .slice(
      messages.findLastIndex((message) => message.role === "assistant" && !Transcript.isFailed(message)) + 1
    )
    .flatMap((message) => (isNews(message) ? [message.id] : []))

const isNews = (message: Message.Message): boolean =>
  message.role === "custom" ? message.kind !== "developer" : message.role !== "assistant"

/**
 * The conversation without refused messages. If `firstKept` of the compaction is refused, the next message takes its place. A summary of
 * only refused messages is dropped.
 */
export const withoutRefused = ({ compaction, messages }: Accepted): Accepted => {
  const refused = new Set<Message.MessageId>()
  for (const message of messages)
    if (message.role === "assistant" && message.refused !== undefined)
      for (const id of message.refused) refused.add(id)
  if (refused.size === 0) return { messages, compaction }
  const accepted = messages.filter(({ id }) => !refused.has(id))
  const start = messages.findIndex(({ id }) => id === compaction?.firstKept)
  const isRefused = ({ id, role }: Message.Message) => role === "custom" || refused.has(id)
  if (compaction === undefined || messages.slice(0, Math.max(start, 0)).every(isRefused))
    return { messages: accepted, compaction: undefined }
  if (!refused.has(compaction.firstKept)) return { messages: accepted, compaction }
  const next = messages.find(({ id }, index) => index > start && !refused.has(id))
  return {
    messages: accepted,
    compaction: next === undefined ? compaction : { ...compaction, firstKept: next.id }
  }
}
