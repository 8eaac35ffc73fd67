/**
 * Damage to the body of an answer: to bytes, as a bad line or a bad gateway does it, and to whole events, as a bad server
 * does it.
 */
import type { Random } from "../Random.ts"

/** A body with one to four damages, mostly one. `others`: bodies of the same language, from which events stray in. */
export const mutate = (
  body: Uint8Array,
  others: readonly [Uint8Array, ...ReadonlyArray<Uint8Array>],
  random: Random
): Uint8Array => {
  let damaged = body
  const count = random.once(2) ? 1 : 1 + random.upTo(3)
  for (let done = 0; done < count; done++) {
    damaged = random.once(2)
      ? damageBytes(damaged, random)
      : damageEvents(damaged, random.pick(...others), random)
  }
  return damaged
}

// ───────────────────────── Bytes

const damageBytes = (body: Uint8Array, random: Random): Uint8Array => {
  const at = random.upTo(Math.max(0, body.length - 1))
  const size = 1 + (random.once(3) ? random.upTo(40) : 0)
  const [before, piece, after] = [
    body.subarray(0, at),
    body.subarray(at, at + size),
    body.subarray(at + size)
  ]
  switch (random.upTo(6)) {
    case 0:
      return joined(before, piece.map(flipped(random)), after)
    case 1:
      return joined(before, piece.map(replaced(random)), after)
    case 2:
      return before
    case 3:
      return joined(before, after)
    case 4:
      return joined(before, piece, piece, after)
    case 5:
      return joined(before, after.subarray(0, size), piece, after.subarray(size))
    default:
      return joined(before, stray(random), piece, after)
  }
}

const flipped = (random: Random) => (byte: number) => byte ^ (1 << random.upTo(7))

/** Most often by a byte that means something. */
const replaced = (random: Random) => () => (random.once(3) ? random.upTo(255) : random.pick(...meaningful))

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

const meaningful: readonly [number, ...ReadonlyArray<number>] = [
  0x0a,
  ...encode('\r"{}[]:,\\ 0123456789-.eud')
]

const stray = (random: Random): Uint8Array => encode(random.pick(...strays))

const strays: readonly [string, ...ReadonlyArray<string>] = [
  "\n",
  "\r\n\r\n",
  "\r",
  "\u0000",
  "\ufeff",
  "👋",
  "data: ",
  "data: {}\n\n",
  "data: null\n\n",
  "data: 7\n\n",
  "data: []\n\n",
  'data: "text"\n\n',
  "data: [DONE]\n\n",
  ": a comment\n\n",
  "event: error\n",
  "retry: 1\n",
  "id: 1\n",
  '{"error":{"message":"planned"}}\n',
  "<html>"
]

// ───────────────────────── Events

/** An event begins after a blank line. */
const events = (body: Uint8Array): ReadonlyArray<Uint8Array> => {
  const found: Array<Uint8Array> = []
  let from = 0
  for (let at = 1; at < body.length; at++) {
    if (body[at] !== 0x0a || body[at - 1] !== 0x0a) continue
    found.push(body.subarray(from, at + 1))
    from = at + 1
  }
  if (from < body.length) found.push(body.subarray(from))
  return found
}

const damageEvents = (body: Uint8Array, other: Uint8Array, random: Random): Uint8Array => {
  const all = events(body)
  const at = random.upTo(Math.max(0, all.length - 1))
  const [before, after] = [all.slice(0, at), all.slice(at + 1)]
  const event = all.slice(at, at + 1)
  switch (random.upTo(5)) {
    case 0:
      return joined(...before, ...after)
    case 1:
      return joined(...before, ...event, ...event, ...after)
    case 2:
      return joined(...before, ...after.slice(0, 1), ...event, ...after.slice(1))
    case 3:
      return joined(...before)
    case 4: {
      const strangers = events(other)
      return joined(
        ...before,
        ...event,
        ...strangers.slice(random.upTo(strangers.length)).slice(0, 1),
        ...after
      )
    }
    default: {
      const to = random.upTo(after.length)
      return joined(...before, ...after.slice(0, to), ...event, ...after.slice(to))
    }
  }
}

const joined = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** A body in pieces, as a network brings it. */
export const pieces = (body: Uint8Array, random: Random): ReadonlyArray<Uint8Array> => {
  const most = random.pick(16, 128, 1024, 16_384)
  const cut: Array<Uint8Array> = []
  for (let from = 0; from < body.length; ) {
    const to = from + 1 + random.upTo(most)
    cut.push(body.subarray(from, to))
    from = to
  }
  return cut
}
