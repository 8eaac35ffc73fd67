/**
 * The error text for a request without a recording.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { isObject } from "../../internal/json.ts"
import type { CassetteFailed, Files, Answer } from "./CassetteFile.ts"

/** Names the request, and its first difference to the nearest recording. */
export const describe = (
  files: Files,
  { number, tape: { answers, key, request } }: Slot
): Effect.Effect<string, CassetteFailed> => {
  const subject = summary(request)
  if (answers.length > 0) {
    const times = answers.length === 1 ? "once" : `${answers.length} times`
    return Effect.succeed(
      `${subject} was recorded ${times} (${files.pathOf(key)}), and this is call ${number + 1}`
    )
  }
  return Effect.map(files.requests, (recorded) => {
    const [nearest] = recorded
      .map(([other, candidate]) => ({ other, differences: all(candidate, request) }))
      .sort((a, b) => distance(a.differences) - distance(b.differences))
    const [first] = nearest?.differences ?? []
    const where =
      nearest === undefined || first === undefined
        ? "nothing is recorded there"
        : `the nearest recording is ${nearest.other}.json, and differs first at ${render(first)}`
    return `${subject} was not recorded: there is no ${files.pathOf(key)}; ${where}`
  })
}

/** Names a request by its model and its last message. */
const summary = (request: Schema.Json): string => {
  const { messages, model } = isObject(request) ? request : {}
  const all = Array.isArray(messages) ? messages : []
  const last = JSON.stringify(all.at(-1) ?? null)
  const shown = last.length <= maxShown ? last : `${last.slice(0, maxShown)}…`
  return `The request to ${JSON.stringify(model)} with ${all.length} ${all.length === 1 ? "message" : "messages"}, the last ${shown},`
}

const maxShown = 200

// ───────────────────────── Differences

/** One place where a recording and a request differ. A value is `undefined` where there is none at this place. */
interface Difference {
  /** The place, such as `messages[2].content[0].text`. */
  readonly path: string
  readonly recorded: Schema.Json | undefined
  readonly requested: Schema.Json | undefined
}

/** Returns every place where they differ, in the order of the request. */
const all = (
  recorded: Schema.Json | undefined,
  requested: Schema.Json | undefined,
  path = ""
): ReadonlyArray<Difference> => {
  if (Array.isArray(recorded) && Array.isArray(requested)) {
    const length = Math.max(recorded.length, requested.length)
    return Array.from({ length }, (_, at) => all(recorded[at], requested[at], `${path}[${at}]`)).flat()
  }
  if (isObject(recorded) && isObject(requested)) {
    const names = new Set([...Object.keys(requested), ...Object.keys(recorded)])
    return [...names].flatMap((name) => all(recorded[name], requested[name], member(path, name)))
  }
  return recorded === requested ? [] : [{ path, recorded, requested }]
}

/** Returns the number of values that only one of the two has. */
const distance = (differences: ReadonlyArray<Difference>): number =>
  differences.reduce((sum, { requested, recorded }) => sum + Math.max(size(recorded), size(requested)), 0)

/** Writes a difference as `messages[2].content[0].text: "a" recorded, "b" requested`, long texts from where they part. */
const render = ({ requested, path, recorded }: Difference): string => {
  const from =
    typeof recorded === "string" && typeof requested === "string" ? parting(recorded, requested) : 0
  return `${path}: ${show(recorded, from)} recorded, ${show(requested, from)} requested`
}

const member = (path: string, name: string): string => {
  if (!/^[\w$-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === "" ? name : `${path}.${name}`
}

const size = (json: Schema.Json | undefined): number => {
  if (json === undefined) return 0
  const inner = Array.isArray(json) ? json : isObject(json) ? Object.values(json) : []
  return inner.reduce<number>((sum, value) => sum + size(value), 1)
}

const parting = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}

const maxLines = 100
/** Characters before the place where two texts part. */
const before = 30

const show = (json: Schema.Json | undefined, from: number): string => {
  if (json === undefined) return "nothing"
  const text = typeof json === "string" ? json : JSON.stringify(json)
  const start = text.length <= maxLines ? 0 : Math.max(0, from - before)
  const shown = text.slice(start, start + maxLines)
  const quoted = typeof json === "string" ? JSON.stringify(shown) : shown
  return `${start > 0 ? "…" : ""}${quoted}${start + maxLines < text.length ? "…" : ""}`
}

// ───────────────────────── The deck

/** The answers to one request. */
interface Tape {
  readonly key: string
  readonly request: Schema.Json
  readonly answers: Array<Answer>
  /** Numbers of the answers that are played or recorded already, or at the moment. */
  readonly taken: Set<number>
}

/** One answer to a request, in use. */
export interface Slot {
  readonly tape: Tape
  /** From 0. */
  readonly number: number
  /** The recorded answer, or `undefined` if there is none. */
  readonly answer: Answer | undefined
}

interface Deck {
  /** Takes the next answer to a request. */
  readonly take: (key: string, request: Schema.Json) => Effect.Effect<Slot, CassetteFailed>
  /** Adds an answer, and writes all answers to the request. */
  readonly add: (slot: Slot, answer: Answer) => Effect.Effect<void, CassetteFailed>
}

/** Makes a deck. With `anew` it ignores and replaces the recordings. */
export const make = (files: Files, anew: boolean): Deck => {
  const tapes = new Map<string, Tape>()
  // One call at a time, so that a tape is read once and its file has the answers in the order in which they ended.
  const one = Semaphore.makeUnsafe(1)

  const tapeOf = Effect.fnUntraced(function* (key: string, request: Schema.Json) {
    const known = tapes.get(key)
    if (known !== undefined) return known
    const recording = anew ? undefined : yield* files.read(key)
    const tape: Tape = { key, request, answers: [...(recording?.answers ?? [])], taken: new Set() }
    tapes.set(key, tape)
    return tape
  })
  return {
    take: (key, request) =>
      one.withPermit(
        Effect.map(tapeOf(key, request), (tape) => {
          let number = 0
          while (tape.taken.has(number)) number++
          tape.taken.add(number)
          return { tape, number, answer: anew ? undefined : tape.answers[number] }
        })
      ),
    add: ({ tape: { answers, key, request } }, answer) =>
      one.withPermit(
        Effect.suspend(() => {
          answers.push(answer)
          return files.write(key, { request, answers })
        })
      )
  }
}

/** Makes this answer the next one again. */
export const giveBack = ({ number, tape }: Slot): Effect.Effect<void> =>
  Effect.sync(() => {
    tape.taken.delete(number)
  })
