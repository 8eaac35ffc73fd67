/**
 * Where two JSON values differ, as a person would say it.
 */
import type * as Schema from "effect/Schema"
import { isObject } from "../internal/jsonCoercion.ts"

/** One place where they differ. `undefined`: there is nothing at this place. */
export interface Difference {
  /** `messages[2].content[0].text` */
  readonly path: string
  readonly recorded: Schema.Json | undefined
  readonly asked: Schema.Json | undefined
}

/** Every place where they differ, in the order of what is asked. */
export const all = (
  recorded: Schema.Json | undefined,
  asked: Schema.Json | undefined,
  path = ""
): ReadonlyArray<Difference> => {
  if (Array.isArray(recorded) && Array.isArray(asked)) {
    const length = Math.max(recorded.length, asked.length)
    return Array.from({ length }, (_, at) => all(recorded[at], asked[at], `${path}[${at}]`)).flat()
  }
  if (isObject(recorded) && isObject(asked)) {
    const names = new Set([...Object.keys(asked), ...Object.keys(recorded)])
    return [...names].flatMap((name) => all(recorded[name], asked[name], member(path, name)))
  }
  return recorded === asked ? [] : [{ path, recorded, asked }]
}

/** How far apart they are: the number of values that one has, and the other has not. */
export const distance = (differences: ReadonlyArray<Difference>): number =>
  differences.reduce((sum, { asked, recorded }) => sum + Math.max(size(recorded), size(asked)), 0)

/** `messages[2].content[0].text: "a" recorded, "b" asked`. Long texts are cut to where they part. */
export const render = ({ asked, path, recorded }: Difference): string => {
  const from = typeof recorded === "string" && typeof asked === "string" ? parting(recorded, asked) : 0
  return `${path}: ${show(recorded, from)} recorded, ${show(asked, from)} asked`
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
