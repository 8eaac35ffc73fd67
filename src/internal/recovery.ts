/**
 * One model call after refusals: the run asks a provider that refuses thinking, an image or a file of the conversation once more
 * without it, and leaves it out of later requests to the model.
 */
import * as LeftOut from "./leftOut.ts"
import type { Assistant, LeftOut as Entry, Message, MessageId, ModelMessage } from "../Message.ts"
import type { Adjustment } from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import type { InvalidRequest, ProviderError, Reason } from "../ProviderError.ts"
import * as Transcript from "../Transcript.ts"

type Kind = Entry["kind"]

/** The content that a request leaves out on suspicion, after a refusal in unknown words. */
interface Guess {
  readonly entries: ReadonlyArray<Entry>
  /** Messages of prompts that failed before. */
  readonly messages: ReadonlyArray<MessageId>
}

const noGuess: Guess = { entries: [], messages: [] }

export class Recovery {
  /** Reports the content that the last request left out. */
  adjusted: ReadonlyArray<Adjustment> = []
  private known: ReadonlyArray<Entry> = []
  private guess = noGuess
  private readonly tried = new Set<string>()
  /** The error that a guess was made for. */
  private unexplained: ProviderError | undefined

  /** The request without what its provider has refused. */
  request(request: ModelRequest, transcript: ReadonlyArray<Message>): ModelRequest {
    const { entries, messages: hidden } = this.guess
    const shown =
      hidden.length === 0 ? request.messages : request.messages.filter(({ id }) => !hidden.includes(id))
    const { adjusted, messages } = LeftOut.without({ ...request, messages: shown }, transcript, [
      ...this.known,
      ...entries
    ])
    this.adjusted = adjusted
    return messages === request.messages ? request : { ...request, messages }
  }

  /** Whether to ask again after an error, with less of the conversation. `sent` is the request that was refused. */
  after(
    { provider, reason }: ProviderError,
    sent: ModelRequest,
    transcript: ReadonlyArray<Message>
  ): boolean {
    const entry = (kind: Kind, since: MessageId | undefined): Entry => ({
      kind,
      model: sent.model,
      ...(since === undefined ? {} : { since }),
      reason: `${provider} refused it, ${JSON.stringify(reason.detail.slice(0, 200))}`
    })
    const conversation = new Conversation(sent, transcript)
    const kinds = conversation.refused(reason)
    const key = kinds.includes("thinking") ? "thinking" : "media"
    if (kinds.length > 0 && !this.tried.has(key)) {
      this.tried.add(key)
      const isWhole = reason._tag === "ContextOverflow"
      this.known = [
        ...this.known,
        ...kinds.map((kind) => entry(kind, isWhole ? undefined : conversation.since(kind)))
      ]
      return true
    }
    return kinds.length === 0 && isUnexplained(reason) && this.guesses(conversation, entry)
  }

  private guesses(
    conversation: Conversation,
    entry: (kind: Kind, since: MessageId | undefined) => Entry
  ): boolean {
    const news = media.filter((kind) => conversation.since(kind) !== undefined)
    const all = every.filter((kind) => conversation.has(kind))
    const failed = conversation.failedBefore
    if (news.length > 0 && !this.tried.has("news")) {
      this.tried.add("news")
      this.guess = { entries: news.map((kind) => entry(kind, conversation.since(kind))), messages: [] }
      return true
    }
    if (this.tried.has("all") || all.length + failed.length === 0) return false
    this.tried.add("all")
    this.guess = { entries: all.map((kind) => entry(kind, undefined)), messages: failed }
    return true
  }

  /** The error to report: that for which guesses were made, if they did not help. */
  error(error: ProviderError): ProviderError {
    return isUnexplained(error.reason) ? (this.unexplained ??= error) : error
  }

  /** The members of the answer that later requests go by. A guess counts if it was right. */
  kept(isAnswered: boolean): Partial<Pick<Assistant, "leftOut" | "refused">> {
    const { entries, messages } = isAnswered ? this.guess : noGuess
    const leftOut = [...this.known, ...entries]
    return {
      ...(leftOut.length === 0 ? {} : { leftOut }),
      ...(messages.length === 0 ? {} : { refused: messages })
    }
  }
}

const media: ReadonlyArray<Kind> = ["image", "file"]
const every: ReadonlyArray<Kind> = ["thinking", ...media]

/** A request that was refused, and where it came from. */
class Conversation {
  private readonly sent: ReadonlyArray<ModelMessage>
  /** The messages after the last answer. */
  private readonly news: ReadonlyArray<Message>
  /** Whether the model has answered the messages before. */
  private readonly isKnown: boolean

  constructor({ messages, model }: ModelRequest, transcript: ReadonlyArray<Message>) {
    this.sent = messages
    const last = transcript.findLastIndex(
      (message) => message.role === "assistant" && !Transcript.isFailed(message)
    )
    const answer = transcript[last]
    this.news = transcript.slice(last + 1)
    // A router takes the name of the provider from the id of the model.
    this.isKnown =
      answer?.role === "assistant" && (answer.model === model || model.endsWith(`/${answer.model}`))
  }

  has(kind: Kind): boolean {
    return this.sent.some((message) => LeftOut.has(message, kind))
  }

  /** The kinds that an error names and the request has. */
  refused(reason: Reason): ReadonlyArray<Kind> {
    const isTooLarge = reason._tag === "ContextOverflow" && reason.status === 413
    if (reason._tag === "UnsupportedContent" || isTooLarge) return media.filter((kind) => this.has(kind))
    const part = reason._tag === "InvalidRequest" ? reason.refused : undefined
    if (part === "thinking") return this.has(part) ? [part] : []
    if (part !== "image" && part !== "file") return []
    // Vendors call an image a file, and a page of a document an image.
    return this.has(part) ? [part] : media.filter((kind) => this.has(kind))
  }

  /** The first of the new messages, if the model has read those before and the new ones have content of the kind. */
  since(kind: Kind): MessageId | undefined {
    const ids = new Set(this.news.map(({ id }) => id))
    const isNew = this.sent.some((message) => ids.has(message.id) && LeftOut.has(message, kind))
    return this.isKnown && isNew ? this.news[0]?.id : undefined
  }

  /** The messages of the user in requests that failed, without those of the last prompt. */
  get failedBefore(): ReadonlyArray<MessageId> {
    const failed = this.news.slice(0, this.news.findLastIndex(({ role }) => role === "assistant") + 1)
    return failed.flatMap(({ id, role }) => (role === "user" ? [id] : []))
  }
}

/** Statuses of a refusal of content. */
const statuses: ReadonlySet<number | undefined> = new Set([400, 413, 415, 422])

/** Whether a server refused a request for its content, which may be the length of the conversation whatever else the words mention. */
export const isOfContent = (reason: Reason): reason is InvalidRequest =>
  reason._tag === "InvalidRequest" &&
  (statuses.has(reason.status) || (reason.status === undefined && reason.body !== undefined))

/** Whether a server refused a request in words that name no part of it. */
const isUnexplained = (reason: Reason): boolean => isOfContent(reason) && reason.refused === undefined
