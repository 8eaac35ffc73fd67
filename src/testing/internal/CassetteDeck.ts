/**
 * The answers of a cassette, and which answer to a request is the next one.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { Answer, CassetteFailed, Files } from "./CassetteFile.ts"

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

export interface Deck {
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
