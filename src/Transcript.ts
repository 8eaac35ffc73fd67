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
import type { Assistant, Message, ToolCall } from "./Message.ts"
import * as Msg from "./Message.ts"
import { once } from "./internal/once.ts"

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
 * Returns whether a message is an answer that failed or was cut, which providers must not get again.
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
export const violations = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const { answer, late, results } of exchanges(messages, (orphan) =>
    found.push(`result ${orphan.toolCallId} answers no call`)
  )) {
    const calls = callsOf(answer)
    const ids = calls.map((call) => call.id)
    for (const id of duplicates(ids)) found.push(`call id ${id} is used twice in one answer`)
    for (const id of ids) {
      const count = results.filter((result) => result.toolCallId === id).length
      if (count !== 1) found.push(`call ${id} has ${count} results`)
    }
    const order = results.map((result) => result.toolCallId)
    if (order.length === ids.length && order.some((id, index) => id !== ids[index])) {
      found.push(`results ${order.join(", ")} are not in the order of the calls`)
    }
    for (const result of late) found.push(`result ${result.toolCallId} does not follow its answer at once`)
  }
  return found
}

/**
 * Returns the nearest transcript that a provider accepts.
 *
 * **Details**
 *
 * - It leaves out failed answers, and results without a call.
 * - A call without a result gets one that says that no result was recorded.
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
export const repair = (messages: ReadonlyArray<Message>): Trimmed => {
  if (isPlainlySound(messages)) return { messages, dropped: 0 }
  if (!messages.some(isFailed) && violations(messages).length === 0) return { messages, dropped: 0 }
  const repaired: Array<Message> = []
  const kept = new Set<Message>()
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    if (message === undefined || message.role === "toolResult" || isFailed(message)) continue
    kept.add(message)
    if (message.role !== "assistant") {
      repaired.push(message)
      continue
    }
    const answer = withoutDoubles(message)
    const results = resultsFor(answer, messages, index + 1)
    for (const result of results) kept.add(result)
    repaired.push(answer, ...results)
  }
  return { messages: repaired, dropped: messages.filter((message) => !kept.has(message)).length }
}

/**
 * Returns the newest messages of a transcript, without separating a call from its result.
 *
 * **Details**
 *
 * The view begins at the first place from `max` messages before the end on where no result loses its call. If there is none, it
 * begins at the last such place before, and then has more than `max` messages. A custom message of the kind `"developer"` at the
 * start always stays. `keepFirstUser`, default `false`, keeps the first user message too.
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
  const kept = [...head, ...messages.slice(start)]
  return kept.length === messages.length
    ? { messages, dropped: 0 }
    : { messages: kept, dropped: messages.length - kept.length }
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
  const answered = new Set(
    messages
      .slice(index + 1)
      .flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []))
  )
  return callsOf(tail).filter((call) => !answered.has(call.id))
}

// By the first message: the check of each turn looks only at the messages that are new.
const plainlySound = new WeakMap<Message, ReadonlyArray<Message>>()

/**
 * Whether each answer is followed at once by the results of its calls, in order: a cheap check that nearly every transcript passes.
 */
const isPlainlySound = (messages: ReadonlyArray<Message>): boolean => {
  const [first] = messages
  if (first === undefined) return true
  const known = plainlySound.get(first) ?? []
  const start = goesOnFrom(messages, known) ? known.length : 0
  if (!isPlainlySoundFrom(messages, start)) return false
  if (start < messages.length) plainlySound.set(first, messages.slice())
  return true
}

const isPlainlySoundFrom = (messages: ReadonlyArray<Message>, start: number): boolean => {
  let owed: ReadonlyArray<ToolCall> = []
  let answered = 0
  for (let index = start; index < messages.length; index++) {
    const message = messages[index]
    if (message === undefined) return false
    if (message.role === "toolResult") {
      if (owed[answered++]?.id !== message.toolCallId) return false
    } else {
      if (answered !== owed.length || isFailed(message)) return false
      owed = message.role === "assistant" ? callsOf(message) : []
      answered = 0
      if (owed.length > 1 && new Set(owed.map((call) => call.id)).size !== owed.length) return false
    }
  }
  return answered === owed.length
}

/** An answer and its results. */
interface Exchange {
  readonly answer: Assistant
  readonly results: Array<Msg.ToolResult>
  /** The results that follow a user message. */
  readonly late: Array<Msg.ToolResult>
}

/** Returns each answer with the results up to the next one. A failed answer needs no results. */
const exchanges = (
  messages: ReadonlyArray<Message>,
  onOrphan: (result: Msg.ToolResult) => void
): ReadonlyArray<Exchange> => {
  const all: Array<Exchange> = []
  let current: Exchange | undefined
  let isLate = false
  for (const message of messages) {
    if (message.role === "user") isLate = true
    if (message.role === "assistant") {
      isLate = false
      current = { answer: message, results: [], late: [] }
      if (!isFailed(message)) all.push(current)
    } else if (message.role === "toolResult") {
      const known =
        current !== undefined && callsOf(current.answer).some((call) => call.id === message.toolCallId)
      if (known && current !== undefined && !isFailed(current.answer)) {
        current.results.push(message)
        if (isLate) current.late.push(message)
      } else onOrphan(message)
    }
  }
  return all
}

const callsOf = Msg.toolCalls

/** Returns one result for each call, from the messages up to the next answer; makes a result where none is there. */
const resultsFor = (
  answer: Assistant,
  messages: ReadonlyArray<Message>,
  from: number
): ReadonlyArray<Message> => {
  const next = messages.findIndex((message, index) => index >= from && message.role === "assistant")
  const following = messages.slice(from, next === -1 ? messages.length : next)
  return callsOf(answer).map(
    (call) =>
      following.find((message) => message.role === "toolResult" && message.toolCallId === call.id) ??
      missingResult(call, answer)
  )
}

/** The answer without the calls whose id an earlier one has. Returns the same object each time, so that its encoding can be cached. */
const withoutDoubles = once((answer: Assistant): Assistant => {
  const ids = new Set<string>()
  const isFirst = ({ id }: ToolCall) => ids.size < ids.add(id).size
  const content = answer.content.filter((block) => block.type !== "toolCall" || isFirst(block))
  return content.length === answer.content.length ? answer : { ...answer, content }
})

// By the call, so that a repaired view has the same object each time and its encoding can be cached.
const missing = new WeakMap<ToolCall, Msg.ToolResult>()

const missingResult = (call: ToolCall, answer: Assistant): Msg.ToolResult => {
  const known = missing.get(call)
  if (known !== undefined) return known
  const made = Msg.toolResult(call, `No result of ${call.name} was recorded.`, {
    isError: true,
    outcome: "aborted",
    timestamp: answer.timestamp
  })
  missing.set(call, made)
  return made
}

const safeStart = (messages: ReadonlyArray<Message>, target: number): number => {
  const isSafe = (message: Message) => message.role !== "toolResult"
  const ahead = messages.findIndex((message, index) => index >= target && isSafe(message))
  if (ahead !== -1) return ahead
  return Math.max(0, messages.slice(0, target).findLastIndex(isSafe))
}

const isKept =
  (messages: ReadonlyArray<Message>, keepFirstUser: boolean) =>
  (message: Message): boolean =>
    (message.role === "custom" && message.kind === "developer" && messages[0] === message) ||
    (keepFirstUser && message === messages.find((candidate) => candidate.role === "user"))

const duplicates = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))
]
