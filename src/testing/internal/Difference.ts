/**
 * The differences of two JSON values, in words.
 */
import type * as Schema from "effect/Schema"
import { isObject } from "../../internal/json.ts"

/** One place where a recording and a request differ. A value is `undefined` where there is none at this place. */
export interface Difference {
  /** The place, such as `messages[2].content[0].text`. */
  readonly path: string
  readonly recorded: Schema.Json | undefined
  readonly requested: Schema.Json | undefined
}

/** Returns every place where they differ, in the order of the request. */
export const all = (
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
export const distance = (differences: ReadonlyArray<Difference>): number =>
  differences.reduce((sum, { requested, recorded }) => sum + Math.max(size(recorded), size(requested)), 0)

/** Writes a difference as `messages[2].content[0].text: "a" recorded, "b" requested`, long texts from where they part. */
export const render = ({ requested, path, recorded }: Difference): string => {
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

const maxShown = 100
/** Characters before the place where two texts part. */
const before = 30

const show = (json: Schema.Json | undefined, from: number): string => {
  if (json === undefined) return "nothing"
  const text = typeof json === "string" ? json : JSON.stringify(json)
  const start = text.length <= maxShown ? 0 : Math.max(0, from - before)
  const shown = text.slice(start, start + maxShown)
  const quoted = typeof json === "string" ? JSON.stringify(shown) : shown
  return `${start > 0 ? "…" : ""}${quoted}${start + maxShown < text.length ? "…" : ""}`
}
