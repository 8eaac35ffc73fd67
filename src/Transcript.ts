/**
 * Laws of a transcript, and views that keep them. Every tool call of an answer has exactly one result, after it and
 * before what is said next, in the order of the calls. All functions are pure and return the messages they are given, so
 * that encodings may be cached by identity.
 */
import type { Assistant, Message, ToolCall } from "./Message.ts"
import * as Msg from "./Message.ts"
import { once } from "./internal/once.ts"

/** A view of a transcript, and how many of its messages the view leaves out. */
export interface Trimmed {
  readonly messages: ReadonlyArray<Message>
  readonly dropped: number
}

/** Whether messages go on from others: the very same ones, and perhaps more. */
export const goesOnFrom = (messages: ReadonlyArray<unknown>, start: ReadonlyArray<unknown>): boolean => {
  if (messages.length < start.length) return false
  for (let index = 0; index < start.length; index++) if (messages[index] !== start[index]) return false
  return true
}

/** An answer that must not be sent again: it failed, or was cut off by a cancel. */
export const isFailed = (message: Message): boolean =>
  message.role === "assistant" && (message.stopReason === "error" || message.stopReason === "aborted")

/** What a provider would refuse, in words. Empty for a valid transcript. */
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
 * The nearest transcript a provider accepts: failed answers and results without a call are left out, a call without a
 * result gets an honest one, a call whose id is taken goes, results follow their answer in the order of its calls. The
 * same array when all is well.
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
 * The newest `max` messages, cut where no call loses its result: forward from there to the next safe place, else back to
 * the last one, even if that keeps more than `max`. A leading developer message stays, with `keepFirstUser` the
 * first user message too.
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

/** The calls of the last answer that have no result yet, if nothing but results came after it. */
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

// Keyed by their first message: each turn asks again, and only what is new has to be looked at.
const plainlySound = new WeakMap<Message, ReadonlyArray<Message>>()

/** Each answer followed at once by the results of its calls, in order: what nearly every transcript is, told cheaply. */
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

interface Exchange {
  readonly answer: Assistant
  readonly results: Array<Msg.ToolResult>
  /** Those of them that something was said before. */
  readonly late: Array<Msg.ToolResult>
}

/** Each answer with the results up to the next one. A failed answer owes no results. */
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

/** One result per call, taken from what follows up to the next answer; a missing one is made. */
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

// Once, for the reason given below.
/** The answer without the calls whose id another one of it had before. */
const withoutDoubles = once((answer: Assistant): Assistant => {
  const ids = new Set<string>()
  const isFirst = ({ id }: ToolCall) => ids.size < ids.add(id).size
  const content = answer.content.filter((block) => block.type !== "toolCall" || isFirst(block))
  return content.length === answer.content.length ? answer : { ...answer, content }
})

// Keyed by the call, so that a repaired view gives the same object each time and its encoding can be cached.
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
