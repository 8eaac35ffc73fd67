/**
 * A fast path for consecutive events that differ in one value only, as most do: the next piece of a text or of
 * arguments. Parsing JSON is more than half of the cost of a delta, and most of it repeats.
 *
 * Replacing one value in JSON changes only that value. So if the bytes before and after a value equal those of
 * an earlier event, only the value has to be parsed.
 */
import { endOfValue } from "../../internal/jsonDepth.ts"
import * as Json from "./json.ts"

/**
 * A value in an event: the name of its member, the value, and a function that makes the event with another
 * value.
 */
export interface Hole<Wire, Value> {
  readonly member: string
  readonly value: Value
  readonly fill: (value: Value) => Wire
}

/** The values that a hole accepts. */
export interface Kind<Value extends Json.Json> {
  readonly fits: (json: Json.Json | undefined) => json is Value
  /** A value that no event contains. */
  readonly probe: Value
}

/** The next piece of a text. */
export const piece: Kind<string> = { fits: (json) => typeof json === "string", probe: "another" }

export class Repeat<Wire, Value extends Json.Json> {
  private readonly kind: Kind<Value>
  private before = ""
  private after = ""
  private fill: ((value: Value) => Wire) | undefined = undefined
  private misses = 0
  /** The miss from which the next event is learned. */
  private lesson = firstLesson
  /** Matches since the last miss. */
  private hits = 0

  constructor(kind: Kind<Value>) {
    this.kind = kind
  }

  /** The event, if it differs only in that value from the event that was learned last. */
  match(data: string): Wire | undefined {
    const { after, before, fill } = this
    const end = data.length - after.length
    if (fill === undefined || end < before.length + 2) return undefined
    // Compares memory. `startsWith` and `endsWith` compare characters, which takes eight times as long.
    if (data.slice(0, before.length) !== before || data.slice(end) !== after) return undefined
    const value = Json.parse(data.slice(before.length, end))
    if (!this.kind.fits(value)) return undefined
    this.hits++
    return fill(value)
  }

  /** Learns from an event that was parsed completely. `reread` reads the member from an event. */
  learn(
    data: string,
    holeOf: () => Hole<Wire, Value> | undefined,
    reread: (event: Json.Json | undefined) => Json.Json | undefined
  ): void {
    if (this.hits >= paid) {
      this.lesson = firstLesson
      this.misses = firstLesson - 1
    }
    this.hits = 0
    if (++this.misses < this.lesson) return
    const hole = holeOf()
    if (hole === undefined) return
    this.lesson = lessonAfter(this.misses)
    this.fill = undefined
    const literal = locate(data, hole)
    if (literal === undefined) return
    const before = data.slice(0, literal.start)
    const after = data.slice(literal.end)
    const { probe } = this.kind
    if (!same(reread(Json.parse(`${before}${JSON.stringify(probe)}${after}`)), probe)) return
    this.before = flat(before)
    this.after = flat(after)
    this.fill = hole.fill
  }
}

/** Copies a text. A slice keeps the complete event in memory and compares slowly. */
const flat = (text: string): string => {
  const copy = Json.parse(JSON.stringify(text))
  return typeof copy === "string" ? copy : text
}

/**
 * Learning does not pay off in a short answer, or if the events differ too much. It is then attempted ever more
 * rarely.
 */
const lessonAfter = (misses: number): number => (misses < lastInRow ? misses + 1 : 2 * misses)

const firstLesson = 8
const lastInRow = 12
/** Matches that pay for learning once. */
const paid = 4

/** The position of the value, if the name of its member occurs only once. */
const locate = <Wire, Value extends Json.Json>(
  data: string,
  { member, value }: Hole<Wire, Value>
): { readonly start: number; readonly end: number } | undefined => {
  const name = `"${member}":`
  const at = data.indexOf(name)
  if (at === -1 || data.lastIndexOf(name) !== at) return undefined
  const start = data.slice(at + name.length).search(/\S/) + at + name.length
  const end = endOfValue(data, start)
  return same(Json.parse(data.slice(start, end)), value) ? { start, end } : undefined
}

const same = (self: Json.Json | undefined, that: Json.Json): boolean =>
  JSON.stringify(self) === JSON.stringify(that)
