/**
 * The rules of a transcript, and views of a transcript that keep them.
 *
 * **Details**
 *
 * Every tool call of an answer has exactly one result. The results follow their answer at once, in the order of the calls. All
 * functions are pure. They return the messages that they get, as the same objects, so that a provider can cache an encoding by
 * identity.
 *
 * @since 0.1.0
 */
import { memoize } from "effect/Function"
import * as Schema from "effect/Schema"
import {
  type Assistant,
  type Custom,
  developerText,
  type Message,
  MessageId,
  type ModelMessage,
  text,
  textOf,
  type ToolCall,
  toolCalls,
  type ToolResult,
  toolResult,
  type User
} from "./Message.ts"

/**
 * A view of a transcript.
 *
 * @category models
 * @since 0.1.0
 */
export interface Trimmed {
  /** The messages of the view. */
  readonly messages: ReadonlyArray<Message>
  /** The number of messages that the view leaves out. */
  readonly dropped: number
}

/**
 * A summary in place of the older messages of a transcript.
 *
 * @category models
 * @since 0.2.0
 */
export const Compaction = Schema.Struct({
  /** The text of the summary. */
  summary: Schema.String,
  /** The id of the oldest message that requests hold after the summary. */
  firstKept: MessageId,
  /** Whether the summary stands in place of the first user message too, which else stays (default: `false`). */
  summarizesFirst: Schema.optionalKey(Schema.Boolean),
  /**
   * The id of the newest message when the summary was made: the usage of answers behind it measures requests with the summary.
   * Default: the newest message of the transcript.
   */
  madeAfter: Schema.optionalKey(MessageId)
})
export interface Compaction extends Schema.Schema.Type<typeof Compaction> {}

/**
 * Returns whether `messages` begins with all messages of `start`, as the same objects.
 *
 * **Example** (Recognising a conversation that grew)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const before = [Message.user("Hello")]
 * const now = [...before, Message.assistant("Hi")]
 *
 * console.log(Transcript.goesOnFrom(now, before)) // => true
 * ```
 *
 * @category predicates
 * @since 0.2.0
 */
export const goesOnFrom = (messages: ReadonlyArray<unknown>, start: ReadonlyArray<unknown>): boolean => {
  if (messages.length < start.length) return false
  for (let index = 0; index < start.length; index++) if (messages[index] !== start[index]) return false
  return true
}

/**
 * Returns whether a message is an answer that failed or was cut, which providers must not get again as it is.
 *
 * **Example** (Recognising a cut answer)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * console.log(Transcript.isFailed(Message.assistant("Let me", { stopReason: "aborted" }))) // => true
 * ```
 *
 * @category predicates
 * @since 0.1.0
 */
export const isFailed = (message: Message): boolean =>
  message.role === "assistant" && (message.stopReason === "error" || message.stopReason === "aborted")

/**
 * Returns the faults for which a provider would refuse a transcript, one sentence for each.
 *
 * **Details**
 *
 * Returns an empty array for a valid transcript.
 *
 * **Example** (Checking an imported transcript)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const orphan = Message.toolResult({ id: "call-1", name: "weather" }, "4 °C")
 *
 * console.log(Transcript.violations([Message.user("Hello"), orphan])) // => [ 'result call-1 answers no call' ]
 * ```
 *
 * @category validation
 * @since 0.1.0
 */
export const violations = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  exchanges(messages).flatMap(({ answer, following }) => {
    const calls = answer === undefined || isFailed(answer) ? [] : toolCalls(answer)
    const ids = calls.flatMap(({ id }) => (isBlank(id) ? [] : [id]))
    const known = new Set(ids)
    const order = resultIds(following).filter((id) => known.has(id))
    const counts = ids.map((id) => order.filter((other) => other === id).length)
    const isInOrder = order.length !== ids.length || order.every((id, index) => id === ids[index])
    const wait = following.findIndex(({ role }) => role === "user")
    const late = wait === -1 ? [] : resultIds(following.slice(wait)).filter((id) => known.has(id))
    return [
      ...calls.flatMap(({ id, name }) => (isBlank(id) ? [`a call of ${name} has a blank id`] : [])),
      ...following.flatMap((message) =>
        hasBlankId(message) ? [`a result of ${message.toolName} has a blank id`] : []
      ),
      ...resultIds(following).flatMap((id) => (known.has(id) ? [] : [`result ${id} answers no call`])),
      ...duplicates(ids).map((id) => `call id ${id} is used twice in one answer`),
      ...ids.flatMap((id, index) => (counts[index] === 1 ? [] : [`call ${id} has ${counts[index]} results`])),
      ...(isInOrder ? [] : [`results ${order.join(", ")} are not in the order of the calls`]),
      ...late.map((id) => `result ${id} does not follow its answer at once`)
    ]
  })

/**
 * Returns the nearest transcript that a provider accepts.
 *
 * **Details**
 *
 * - It leaves out failed answers, and results without a call.
 * - Of an answer that was cancelled it keeps the text, which the user has read, and adds a note as a user message, where a message of the
 *   user follows. Its calls, its thinking and their results are left out.
 * - A call without a result gets one that says that no result was recorded.
 * - A call with a blank id gets an id. The results with blank ids behind its answer belong to such calls, in their order.
 * - A call whose id an earlier call of the same answer has is left out.
 * - Results follow their answer in the order of its calls.
 *
 * A valid transcript comes back as the same array.
 *
 * **Example** (Repairing an imported transcript)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const call: Message.ToolCall = { type: "toolCall", id: "call-1", name: "weather", rawArguments: "{}", params: {} }
 * const { messages } = Transcript.repair([Message.user("Do I need a coat?"), Message.assistant([call])])
 *
 * console.log(messages.map(({ role }) => role)) // => [ 'user', 'assistant', 'toolResult' ]
 * ```
 *
 * @category transforming
 * @since 0.1.0
 */
export const repair = (original: ReadonlyArray<Message>): Trimmed => {
  if (isSound(original)) return { messages: original, dropped: 0 }
  const messages = identified(original)
  const kept = new Set(messages.filter((message) => message.role !== "toolResult" && !isFailed(message)))
  const repaired = exchanges(messages).flatMap(({ answer, following }) => {
    const others = following.filter(({ role }) => role !== "toolResult")
    if (answer === undefined) return others
    if (isFailed(answer)) {
      const read = others.some(({ role }) => role === "user") ? readOf(answer) : []
      if (read.length > 0) kept.add(answer)
      return [...read, ...others]
    }
    const whole = withoutDoubles(answer)
    const results = toolCalls(whole).map(
      (call) =>
        following.find((message) => message.role === "toolResult" && message.toolCallId === call.id) ??
        missingResults(whole)(call)
    )
    for (const result of results) kept.add(result)
    return [whole, ...results, ...others]
  })
  return { messages: repaired, dropped: messages.filter((message) => !kept.has(message)).length }
}

/**
 * Returns the newest messages of a transcript, without separating a call from its result.
 *
 * **Details**
 *
 * The view has at most `max` of the newest messages. It begins before an answer or a message of the user, never at a result whose call it
 * would leave out. Where the newest messages are one long turn, so that only an earlier message can begin the view, it has more than `max`.
 * A custom message of the kind `"developer"` at the start always stays. `keepFirstUser`, default `false`, keeps the first user message too.
 *
 * **Example** (Keeping the newest messages)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const transcript = [Message.user("1"), Message.assistant("2"), Message.user("3"), Message.assistant("4")]
 * const { dropped, messages } = Transcript.window(transcript, 2)
 *
 * console.log(messages.map(Message.textOf), dropped) // => [ '3', '4' ] 2
 * ```
 *
 * @category transforming
 * @since 0.1.0
 */
export const window = (
  messages: ReadonlyArray<Message>,
  max: number,
  options?: { readonly keepFirstUser?: boolean }
): Trimmed => {
  if (messages.length <= max) return { messages, dropped: 0 }
  const start = safeStart(messages, Math.max(0, messages.length - max))
  const head = messages.slice(0, start).filter(isKept(messages, options?.keepFirstUser === true))
  const dropped = start - head.length
  return { messages: dropped === 0 ? messages : [...head, ...messages.slice(start)], dropped }
}

/**
 * Returns a transcript with a summary in place of its older messages.
 *
 * **Details**
 *
 * The view has the first user message, unless it is summarized too, a user message with the summary, and the messages from `firstKept` on. A custom message of the
 * kind `"developer"` at the start always stays. The message of the summary is the same object each time, and has the same id and text
 * in another process. Without a compaction, and if no message has the id `firstKept`, the view is the whole transcript.
 *
 * **Example** (Starting from a summary)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const transcript = [Message.user("1"), Message.assistant("2"), Message.user("3"), Message.assistant("4")]
 * const firstKept = transcript[2]?.id ?? ""
 * const { dropped, messages } = Transcript.compacted(transcript, { summary: "They count.", firstKept })
 *
 * console.log(messages.map(({ role }) => role), dropped) // => [ 'user', 'user', 'user', 'assistant' ] 1
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const compacted = (messages: ReadonlyArray<Message>, compaction: Compaction | undefined): Trimmed => {
  const start = compaction === undefined ? -1 : messages.findIndex(({ id }) => id === compaction.firstKept)
  const kept = messages[start]
  if (compaction === undefined || kept === undefined || start === 0) return { messages, dropped: 0 }
  const head = messages.slice(0, start).filter(isKept(messages, compaction.summarizesFirst !== true))
  return {
    messages: [...head, summaryOf(compaction)(kept), ...messages.slice(start)],
    dropped: start - head.length
  }
}

/**
 * The bounds of a transcript that {@link truncate} cuts.
 *
 * @category options
 * @since 0.2.0
 */
export interface TruncateOptions {
  /** The most messages. Default 100. */
  readonly maxMessages?: number
  /** The most characters of the content of all messages as JSON. Default 500,000. */
  readonly maxCharacters?: number
  /** The part that stays: both ends, the first with up to half of the bounds, or the end alone. Default `"bothEnds"`. */
  readonly keep?: "bothEnds" | "end"
}

/**
 * A transcript in two parts.
 *
 * @category models
 * @since 0.2.0
 */
export interface Truncated {
  /** The messages that stay, in their order. */
  readonly kept: ReadonlyArray<Message>
  /** The messages that are left out, in their order. */
  readonly dropped: ReadonlyArray<Message>
}

/**
 * Divides a transcript that is too long into the messages of its two ends, and those between, which are left out.
 *
 * **Details**
 *
 * An answer stays or goes together with the results of its calls. The newest of these parts always stays, also where it alone exceeds the
 * bounds, and so does a message of the kind `"developer"` at the start.
 *
 * **Example** (Keeping the beginning and the end)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const transcript = ["1", "2", "3", "4", "5", "6"].map((text) => Message.user(text))
 * const { dropped, kept } = Transcript.truncate(transcript, { maxMessages: 4 })
 *
 * console.log(kept.map(Message.textOf), dropped.map(Message.textOf)) // => [ '1', '2', '5', '6' ] [ '3', '4' ]
 * ```
 *
 * @category transforming
 * @since 0.2.0
 */
export const truncate = (messages: ReadonlyArray<Message>, options: TruncateOptions = {}): Truncated => {
  const { keep = "bothEnds", maxCharacters = 500_000, maxMessages = 100 } = options
  const starts = [...new Set([0, ...cuts(messages)])]
  const parts = starts.map((start, index) => messages.slice(start, starts[index + 1]))
  const sizes = parts.map((part) => ({ messages: part.length, characters: charactersOf(part) }))
  const room = { messages: maxMessages, characters: maxCharacters }
  const firstHalf = { messages: Math.floor(maxMessages / 2), characters: maxCharacters / 2 }
  /** Takes an exchange into the view if there is room, and returns whether there was. */
  const take = (index: number, ...from: ReadonlyArray<typeof room>): boolean => {
    const { characters = 0, messages = 0 } = sizes[index] ?? {}
    if (from.some((left) => left.messages < messages || left.characters < characters)) return false
    for (const left of from) {
      left.messages -= messages
      left.characters -= characters
    }
    return true
  }
  const isLed = messages[0] !== undefined && isLeading(messages, messages[0])
  let end = parts.length - 1
  room.messages -= sizes[end]?.messages ?? 0
  room.characters -= sizes[end]?.characters ?? 0
  let start = 0
  if (isLed && start < end) {
    room.messages -= 1
    room.characters -= sizes[start++]?.characters ?? 0
  }
  if (keep === "bothEnds") while (start < end && take(start, room, firstHalf)) start++
  while (end > start && take(end - 1, room)) end--
  const kept = end <= start ? messages : [...parts.slice(0, start), ...parts.slice(end)].flat()
  return { kept, dropped: parts.slice(start, Math.max(start, end)).flat() }
}

/**
 * Returns the places at which a transcript can be cut: where a turn begins.
 *
 * **Details**
 *
 * A turn is the messages that came in, an answer, and the results of its calls. A place is the index of the first message of a turn:
 * no result after it belongs to a call before it. The places are in ascending order.
 *
 * **Example** (Finding the turns of a conversation)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const transcript = [Message.user("1"), Message.assistant("2"), Message.user("3"), Message.assistant("4")]
 *
 * console.log(Transcript.turnStarts(transcript)) // => [ 0, 2 ]
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const turnStarts = (messages: ReadonlyArray<Message>): ReadonlyArray<number> =>
  cuts(messages).filter((index) => {
    const before = messages[index - 1]?.role
    return before === undefined || before === "assistant" || before === "toolResult"
  })

/** The indexes at which a cut separates no call from its result, in ascending order. */
const cuts = (messages: ReadonlyArray<Message>): ReadonlyArray<number> => {
  const places: Array<number> = []
  // Whether a result follows before the next answer: a cut here would separate it from its call.
  let isOpen = false
  for (let index = messages.length - 1; index >= 0; index--) {
    const role = messages[index]?.role
    if (role === "assistant") isOpen = false
    if (role === "toolResult") isOpen = true
    if (!isOpen) places.push(index)
  }
  return places.reverse()
}

/**
 * Returns the tool calls of the last answer that have no result yet.
 *
 * **Details**
 *
 * Returns an empty array if the last answer failed, or if a message other than a tool result follows it.
 *
 * **Example** (Finding calls to run again)
 *
 * ```ts
 * import { Message, Transcript } from "effect-agent"
 *
 * const call: Message.ToolCall = { type: "toolCall", id: "call-1", name: "weather", rawArguments: "{}", params: {} }
 *
 * console.log(Transcript.openCalls([Message.assistant([call])]).map(({ id }) => id)) // => [ 'call-1' ]
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const openCalls = (messages: ReadonlyArray<Message>): ReadonlyArray<ToolCall> => {
  const index = messages.findLastIndex((message) => message.role !== "toolResult")
  const tail = messages[index]
  if (tail?.role !== "assistant" || isFailed(tail)) return []
  const answered = new Set(resultIds(messages.slice(index + 1)))
  return toolCalls(tail).filter((call) => !answered.has(call.id))
}

/**
 * The parts of a request by its messages: those that a model reads. A leading message of the developer stands for the system prompt.
 * @internal
 */
export const forModel = (
  messages: ReadonlyArray<Message>
): { readonly messages: ReadonlyArray<ModelMessage>; readonly system?: string } => {
  const read: Array<ModelMessage> = []
  for (const message of messages) {
    if (message.role === "custom") read.push(...ofDeveloper(message))
    else read.push(message)
  }
  const [first] = read
  return first?.role === "user" && first.from === "developer"
    ? { messages: read.slice(1), system: textOf(first) }
    : { messages: read }
}

/** Returns the same object each time, so that its encoding can be cached. */
const ofDeveloper = memoize((message: Custom): ReadonlyArray<User> => {
  const { id, timestamp } = message
  const words = developerText(message)
  return words === undefined
    ? []
    : [{ role: "user", id, from: "developer", content: [text(words)], timestamp }]
})

// The transcripts that were found sound, by their first message, so that the check of each turn reads only the new messages.
const sound = new WeakMap<Message, ReadonlyArray<Message>>()

/** Whether a provider accepts the transcript, and no answer in it failed. */
const isSound = (messages: ReadonlyArray<Message>): boolean => {
  const [first] = messages
  if (first === undefined) return true
  const known = sound.get(first) ?? []
  const added = goesOnFrom(messages, known) ? messages.slice(known.length) : messages
  if (!areSound(added)) return false
  if (added.length > 0) sound.set(first, messages.slice())
  return true
}

/** Whether a provider accepts these messages after sound ones, and no answer in them failed. */
const areSound = (messages: ReadonlyArray<Message>): boolean => {
  /** The ids of the calls without a result so far. */
  const open: Array<string> = []
  for (const message of messages) {
    if (message.role === "custom") continue
    if (message.role === "toolResult") {
      if (open.shift() !== message.toolCallId) return false
      continue
    }
    if (open.length > 0) return false
    if (message.role === "user") continue
    if (message.stopReason === "error" || message.stopReason === "aborted") return false
    for (const block of message.content) {
      if (block.type !== "toolCall") continue
      if (block.id.trim() === "" || open.includes(block.id)) return false
      open.push(block.id)
    }
  }
  return open.length === 0
}

/** An answer and the messages up to the next one. The messages before the first answer follow none. */
interface Exchange {
  readonly answer: Assistant | undefined
  readonly following: ReadonlyArray<Message>
}

const exchanges = (messages: ReadonlyArray<Message>): ReadonlyArray<Exchange> => {
  const answers = messages.flatMap((message, index) =>
    message.role === "assistant" ? [{ answer: message, index }] : []
  )
  return [{ answer: undefined, index: -1 }, ...answers].map(({ answer, index }, n) => ({
    answer,
    following: messages.slice(index + 1, answers[n]?.index)
  }))
}

/** The ids of the calls that messages answer, without blank ones. */
const resultIds = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.flatMap((message) =>
    message.role === "toolResult" && !isBlank(message.toolCallId) ? [message.toolCallId] : []
  )

const isBlank = (id: string): boolean => id.trim() === ""

const hasBlankId = (message: Message): message is ToolResult =>
  message.role === "toolResult" && isBlank(message.toolCallId)

/** The messages with an id for each call that has a blank one, and its results, as the same objects each time. */
const identified = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  exchanges(messages).flatMap(({ answer, following }) => {
    if (answer === undefined) return following
    const whole = withIds(answer)
    const made = toolCalls(whole).filter((_, index) => isBlank(toolCalls(answer)[index]?.id ?? ""))
    const results = new Map(
      following.filter(hasBlankId).flatMap((result, index) => {
        const call = made[index]
        return call === undefined ? [] : [[result, resultFor(call)(result)] as const]
      })
    )
    return [whole, ...following.map((message) => (hasBlankId(message) && results.get(message)) || message)]
  })

const withIds = memoize((answer: Assistant): Assistant => {
  if (!toolCalls(answer).some(({ id }) => isBlank(id))) return answer
  const content = answer.content.map((block, index) =>
    block.type === "toolCall" && isBlank(block.id) ? { ...block, id: `call_${answer.id}_${index}` } : block
  )
  return { ...answer, content }
})

const resultFor = memoize((call: ToolCall) =>
  memoize((result: ToolResult): ToolResult => ({ ...result, toolCallId: call.id }))
)

/** The answer without calls that repeat the id of an earlier one. Returns the same object each time, so that its encoding can be cached. */
const withoutDoubles = memoize((answer: Assistant): Assistant => {
  const ids = new Set<string>()
  const isFirst = ({ id }: ToolCall) => ids.size < ids.add(id).size
  const content = answer.content.filter((block) => block.type !== "toolCall" || isFirst(block))
  return content.length === answer.content.length ? answer : { ...answer, content }
})

/**
 * The text of a cancelled answer, which the user has read, and a note for the model on the interruption. Nothing for an answer without
 * usage: no run has shown it. Returns the same objects each time, so that encodings can be cached.
 */
const readOf = memoize((answer: Assistant): ReadonlyArray<Message> => {
  const { id, model, protocol, provider, role, timestamp } = answer
  const texts = answer.content.flatMap((block) => (block.type === "text" ? [block.text.trimEnd()] : []))
  // The vendor's ids and opaque data are left out: they belong to its copy of the whole answer.
  const content = texts.filter((part) => part !== "").map((part) => text(part))
  if (answer.stopReason !== "aborted" || answer.usage === undefined || content.length === 0) return []
  const note: User = { role: "user", id: `cancelled_${id}`, content: [text(cancelled)], timestamp }
  return [{ role, id, content, stopReason: "stop", provider, model, protocol, timestamp }, note]
})

const cancelled = "[The answer above was interrupted before its end. The user has read this much of it.]"

/** Makes the result of a call that has none. Returns the same object each time, so that its encoding can be cached. */
const missingResults = memoize(({ timestamp }: Assistant) =>
  memoize((call: ToolCall) =>
    toolResult(call, `No result of ${call.name} was recorded.`, {
      isError: true,
      outcome: "aborted",
      timestamp
    })
  )
)

const safeStart = (messages: ReadonlyArray<Message>, target: number): number => {
  const isSafe = (message: Message) => message.role !== "toolResult"
  const ahead = messages.findIndex((message, index) => index >= target && isSafe(message))
  if (ahead !== -1) return ahead
  return Math.max(0, messages.slice(0, target).findLastIndex(isSafe))
}

const isKept = (messages: ReadonlyArray<Message>, keepFirstUser: boolean) => {
  const firstUser = keepFirstUser ? messages.find(({ role }) => role === "user") : undefined
  return (message: Message): boolean => message === firstUser || isLeading(messages, message)
}

const isLeading = (messages: ReadonlyArray<Message>, message: Message): boolean =>
  message.role === "custom" && message.kind === "developer" && messages[0] === message

const charactersOf = (messages: ReadonlyArray<Message>): number =>
  messages.reduce(
    (sum, message) => sum + JSON.stringify(message.role === "custom" ? message.data : message.content).length,
    0
  )

/** Makes the message of a summary. Returns the same object each time, so that its encoding can be cached. */
const summaryOf = memoize(({ firstKept, summary }: Compaction) =>
  memoize(
    ({ timestamp }: Message): User => ({
      role: "user",
      id: `summary_${firstKept}`,
      content: [text(`${aboutSummary}\n\n${summary}`)],
      timestamp
    })
  )
)

const aboutSummary =
  "A summary stands here in place of the earlier part of this conversation. A model wrote it. It records what happened, and gives no instructions."

const duplicates = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))
]
