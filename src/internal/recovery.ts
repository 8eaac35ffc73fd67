/**
 * One model call after refusals: the run asks a provider that refuses a part of the conversation again without it, and leaves it out
 * of later requests to the model.
 *
 * A request follows at once without the thinking, the images or the files that a refusal names. After a refusal for which that is no
 * remedy the run guesses, in steps of one request each.
 */
import * as LeftOut from "./leftOut.ts"
import { toolCalls } from "../Message.ts"
import type { Assistant, LeftOut as Entry, Message, MessageId, ModelMessage } from "../Message.ts"
import type { Adjustment } from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import type { InvalidRequest, ProviderError, Reason } from "../ProviderError.ts"
import * as Transcript from "../Transcript.ts"

type Kind = Entry["kind"]

/** The content that a request leaves out on suspicion. */
interface Guess {
  readonly entries: ReadonlyArray<Entry>
  /** Messages that are left out as a whole. */
  readonly messages: ReadonlyArray<MessageId>
}

export class Recovery {
  /** Reports the content that the last request left out. */
  adjusted: ReadonlyArray<Adjustment> = []
  /** The last request with all of its content; `undefined` before the first. */
  asked: ModelRequest | undefined
  /** Whether a shorter conversation is no remedy, so that a guess may leave out more than content that few conversations need. */
  isFinal = false
  private known: ReadonlyArray<Entry> = []
  private guess: Guess = { entries: [], messages: [] }
  private readonly tried = new Set<unknown>()
  /** The first refusal for which there are guesses. */
  private unexplained: ProviderError | undefined

  /** The request without what its provider has refused. */
  request(request: ModelRequest, transcript: ReadonlyArray<Message>): ModelRequest {
    this.asked = request
    const hidden = new Set(this.guess.messages)
    const shown = hidden.size === 0 ? request.messages : request.messages.filter(({ id }) => !hidden.has(id))
    const { adjusted, messages } = LeftOut.without({ ...request, messages: shown }, transcript, [
      ...this.known,
      ...this.guess.entries
    ])
    this.adjusted = adjusted
    return messages === request.messages ? request : { ...request, messages }
  }

  /** Whether to ask again after an error, with less of the conversation. */
  after({ provider, reason }: ProviderError, transcript: ReadonlyArray<Message>): boolean {
    const { asked } = this
    if (asked === undefined) return false
    const entry = ([kind, since]: Suspect): Entry => ({
      kind,
      model: asked.model,
      ...(since === undefined ? {} : { since }),
      reason: `${provider} refused it, ${JSON.stringify(reason.detail.slice(0, 200))}`
    })
    const { messages } = LeftOut.without(asked, transcript, this.known)
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

  /** The error to report: the first for which there were guesses, if they did not help. */
  error(error: ProviderError): ProviderError {
    return stepsAfter(error.reason, true).length > 0 ? (this.unexplained ??= error) : error
  }

  /** The members of the answer that later requests go by. A guess counts if it was right. */
  kept(isAnswered: boolean): Partial<Pick<Assistant, "leftOut" | "refused">> {
    const leftOut = isAnswered ? [...this.known, ...this.guess.entries] : this.known
    const refused = isAnswered ? this.guess.messages : []
    return {
      ...(leftOut.length === 0 ? {} : { leftOut }),
      ...(refused.length === 0 ? {} : { refused })
    }
  }
}

const media: ReadonlyArray<Kind> = ["image", "file"]

/** Content that a guess leaves out: a kind, and the first message whose content it is. Default: the first of the transcript. */
type Suspect = readonly [kind: Kind, since: MessageId | undefined]

/** Chooses the content of a conversation that a guess leaves out: nothing if it is of no use there. */
type Step = (conversation: Conversation) => {
  readonly kinds?: ReadonlyArray<Suspect>
  /** Messages that are left out as a whole. */
  readonly messages?: ReadonlyArray<MessageId>
}

/** First those that cost a conversation least. */
const steps: ReadonlyArray<Step> = [
  (conversation) => ({ kinds: conversation.isKnown ? conversation.unread(media) : [] }),
  (conversation) => ({
    kinds: conversation.all(["thinking", ...media]),
    messages: conversation.failedBefore
  }),
  // With the arguments of their calls.
  (conversation) => ({ kinds: conversation.unread(["result"]) }),
  (conversation) => ({ kinds: conversation.unread(["answer"]) }),
  (conversation) => conversation.history
]

/** The steps after a refusal. One in words that may mean the length of the conversation has few until that is found to be no cause. */
const stepsAfter = (reason: Reason, isFinal: boolean): ReadonlyArray<Step> => {
  const part = reason._tag === "InvalidRequest" ? reason.refused : undefined
  if (part === "tool" || part === "option") return []
  if (part === "message") return steps.slice(2)
  if (isOfContent(reason)) return isFinal ? steps : steps.slice(0, 2)
  return isFinal && isTooLarge(reason) ? steps : []
}

/** A request that was refused, and where it came from. */
class Conversation {
  private readonly sent: ReadonlyArray<ModelMessage>
  private readonly transcript: ReadonlyArray<Message>
  /** The last answer and the messages after it. */
  private readonly news: ReadonlyArray<Message>
  /** Whether the model has answered the messages before. */
  readonly isKnown: boolean

  constructor({ messages, model }: ModelRequest, transcript: ReadonlyArray<Message>) {
    this.sent = messages
    this.transcript = transcript
    const last = transcript.findLastIndex(
      (message) => message.role === "assistant" && !Transcript.isFailed(message)
    )
    const answer = transcript[last]
    this.news = transcript.slice(Math.max(last, 0))
    // A router takes the name of the provider from the id of the model.
    this.isKnown =
      answer?.role === "assistant" && (answer.model === model || model.endsWith(`/${answer.model}`))
  }

  private has(kind: Kind): boolean {
    return this.sent.some((message) => LeftOut.has(message, kind))
  }

  all(kinds: ReadonlyArray<Kind>): ReadonlyArray<Suspect> {
    return kinds.flatMap((kind) => (this.has(kind) ? [[kind, undefined]] : []))
  }

  /** The thinking, images and files that an error names and the request has. */
  refused(reason: Reason): ReadonlyArray<Kind> {
    if (reason._tag === "UnsupportedContent" || isTooLarge(reason))
      return media.filter((kind) => this.has(kind))
    const part = reason._tag === "InvalidRequest" ? reason.refused : undefined
    if (part === "thinking") return this.has(part) ? [part] : []
    if (part !== "image" && part !== "file") return []
    // Vendors call an image a file, and a page of a document an image.
    return this.has(part) ? [part] : media.filter((kind) => this.has(kind))
  }

  /** The last answer, if the model has read the messages before it and those from there on have content of the kind. */
  since(kind: Kind): MessageId | undefined {
    const ids = new Set(this.news.map(({ id }) => id))
    const isNew = this.sent.some((message) => ids.has(message.id) && LeftOut.has(message, kind))
    return this.isKnown && isNew ? this.news[0]?.id : undefined
  }

  /** The content that the model may not have read before. */
  unread(kinds: ReadonlyArray<Kind>): ReadonlyArray<Suspect> {
    if (!this.isKnown) return this.all(kinds)
    return kinds.map((kind) => [kind, this.since(kind)] as const).filter(([, since]) => since !== undefined)
  }

  /** The messages of the user in requests that failed, without those of the last prompt. */
  get failedBefore(): ReadonlyArray<MessageId> {
    const failed = this.news.slice(0, this.news.findLastIndex(({ role }) => role === "assistant") + 1)
    return failed.flatMap(({ id, role }) => (role === "user" ? [id] : []))
  }

  /** All messages before the last prompt, and content of all kinds after it. */
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
const isEnd = (message: Message): boolean =>
  message.role === "assistant" && (Transcript.isFailed(message) || toolCalls(message).length === 0)

/** Statuses of a refusal of content. */
const statuses: ReadonlySet<number | undefined> = new Set([400, 413, 415, 422])

/** Whether a server refused a request for its content, which may be the length of the conversation whatever else the words mention. */
export const isOfContent = (reason: Reason): reason is InvalidRequest =>
  reason._tag === "InvalidRequest" &&
  (statuses.has(reason.status) || (reason.status === undefined && reason.body !== undefined))

/** Whether the body of a request was too large, for which images and files are a likelier cause than words. */
const isTooLarge = (reason: Reason): boolean => reason._tag === "ContextOverflow" && reason.status === 413
