/**
 * An answer as a vendor streams it, written by hand, and what anybody must make of it.
 */
import type { Message } from "effect-agent"

/** What everybody has to agree on. */
export interface Said {
  readonly text: string
  readonly thinking: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly params: unknown }>
  readonly stopReason: Message.StopReason
  /** Tokens. `input` includes what was read from a cache or written to it, `output` what was thought. */
  readonly usage: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
  }
}

export interface Fixture {
  readonly name: string
  /** The body of the response. */
  readonly body: string
  readonly said: Said
}

/** Server-sent events of these data, without names. */
export const unnamed = (...data: ReadonlyArray<unknown>): string =>
  data.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("")

/** Server-sent events, each named by the `type` in its data. */
export const named = (...data: ReadonlyArray<{ readonly type: string }>): string =>
  data.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join("")

/** Text that is more than ASCII: a cut may fall inside of a character. */
export const greeting = ["Grüße", " aus", " Köln", ": 日本", "語 👋"]

/** The calls of every fixture that has some: with arguments, with none, and with arguments that have to be escaped. */
export const weather = { city: "Zürich", days: 3 }
export const note = {
  path: "a/b.txt",
  text: 'say "hi"\n\tand go',
  tags: ["x", "y"],
  deep: { ok: true, no: null }
}

/** A text in pieces of `size` characters. */
export const pieces = (text: string, size: number): ReadonlyArray<string> =>
  text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? []
