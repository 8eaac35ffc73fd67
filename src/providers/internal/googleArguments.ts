/**
 * The arguments of one Gemini call, which come whole or as pieces of single values, each with the path of its value:
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
 *
 * The values are what counts. The JSON text they make is also told while it grows, as far as it only grows at its end.
 */
import * as Json from "./json.ts"

/** A value that can still get members, or one that is as it is. */
type Tree = Map<string, Tree> | Array<Tree> | Json.Json

export class Arguments {
  /** The JSON text told so far: without the brackets, and the quote, that are still open. */
  shown = ""

  private readonly root = new Map<string, Tree>()
  /** The path of a string that goes on, and where it is. */
  private open: { readonly path: string; readonly slot: Slot; readonly isTold: boolean } | undefined =
    undefined
  /** Pieces since the text was written last, and how long it was then. */
  private untold = 0
  private written = 0

  /** The whole JSON text. */
  get json(): string {
    return write(this.root)
  }

  /** Adds members that came whole. */
  assign(members: Json.JsonObject): void {
    for (const [name, value] of Object.entries(members)) this.root.set(name, value)
  }

  /** Adds a piece: `{jsonPath, stringValue | numberValue | boolValue | nullValue, willContinue}`. */
  add(piece: Json.JsonObject): string {
    const path = Json.text(piece["jsonPath"]) ?? "$"
    const value = valueOf(piece)
    const more = piece["willContinue"] === true
    const { open } = this
    if (open?.path === path && typeof value === "string") return this.grow(open, value, more)

    const slot = slotAt(this.root, path)
    if (slot === undefined || value === undefined) return ""
    const known = slot.get()
    slot.set(typeof known === "string" && typeof value === "string" ? known + value : value)
    const goesOn = more && typeof value === "string"
    // The whole is written for each piece, unless there are many pieces of much: then for a part of them.
    const isTold = ++this.untold * piecesPerText >= this.written
    this.open = goesOn ? { path, slot, isTold } : undefined
    return isTold ? this.tell(write(this.root, goesOn)) : ""
  }

  /** What is to be told when nothing more comes. */
  finish(): string {
    return this.tell(this.json)
  }

  /** A string grows by far the most often: what is told of it needs no look at the rest. */
  private grow(
    { isTold, slot }: { readonly isTold: boolean; readonly slot: Slot },
    value: string,
    more: boolean
  ): string {
    slot.set(`${slot.get()}${value}`)
    if (!more) this.open = undefined
    if (!isTold) return ""
    const delta = JSON.stringify(value).slice(1, more ? -1 : undefined)
    this.shown += delta
    return delta
  }

  private tell(text: string): string {
    this.untold = 0
    this.written = text.length
    if (!text.startsWith(this.shown)) return ""
    const delta = text.slice(this.shown.length)
    this.shown = text
    return delta
  }
}

/** Characters of the whole for which it is written once: it is written four dozen times while it doubles, at most. */
const piecesPerText = 256

const valueOf = (piece: Json.JsonObject): string | number | boolean | null | undefined => {
  const { boolValue, numberValue, stringValue } = piece
  if (typeof stringValue === "string") return stringValue
  if (typeof numberValue === "number") return numberValue
  if (typeof boolValue === "boolean") return boolValue
  return "nullValue" in piece ? null : undefined
}

// ───────────────────────── Paths

interface Slot {
  readonly get: () => Tree | undefined
  readonly set: (value: Tree) => void
}

/** The place that a path names, made if need be; `undefined` for a path that leads nowhere. */
const slotAt = (root: Map<string, Tree>, path: string): Slot | undefined => {
  const steps = stepsOf(path)
  if (steps.length > maxDepth) return undefined
  let slot: Slot | undefined
  let node: Tree | undefined = root
  for (const [index, step] of steps.entries()) {
    slot = slotIn(node, step)
    if (slot === undefined) return undefined
    if (index < steps.length - 1) node = container(slot, steps[index + 1])
  }
  return slot
}

const maxDepth = 64

/** `$.files[0]['a name']`: names, and numbers for what is in an array. */
const stepsOf = (path: string): ReadonlyArray<string | number> =>
  [...path.matchAll(/\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/g)].map(
    ([, name, index, single, double]) =>
      index === undefined ? (name ?? (single ?? double ?? "").replace(/\\(.)/g, "$1")) : Number(index)
  )

const slotIn = (node: Tree | undefined, step: string | number): Slot | undefined => {
  if (node instanceof Map) {
    const key = String(step)
    return { get: () => node.get(key), set: (value) => void node.set(key, value) }
  }
  if (!isList(node) || typeof step === "string") return undefined
  // Never a hole: what comes too early comes next.
  const index = Math.min(step, node.length)
  return {
    get: () => node[index],
    set: (value) => {
      node[index] = value
    }
  }
}

/** What is in a slot as something that has members. */
const container = (slot: Slot, next: string | number | undefined): Tree => {
  const known = slot.get()
  if (known instanceof Map || isList(known)) return known
  const made: Tree = isMembers(known)
    ? new Map(Object.entries(known))
    : typeof next === "number"
      ? []
      : new Map()
  slot.set(made)
  return made
}

const isList = (tree: Tree | undefined): tree is Array<Tree> => Array.isArray(tree)

const isMembers = (tree: Tree | undefined): tree is Json.JsonObject =>
  typeof tree === "object" && tree !== null && !(tree instanceof Map) && !isList(tree)

// ───────────────────────── Text

/** Text that is no JSON, so that nobody takes it for arguments, when the values are nested too deep to be written. */
const write = (root: Tree, goesOn?: boolean): string => {
  try {
    return textOf(root, goesOn)
  } catch {
    return "…"
  }
}

/** JSON. With `goesOn` the brackets at its end stay open, and with `true` the quote of a string there as well. */
const textOf = (tree: Tree, goesOn?: boolean): string => {
  if (tree instanceof Map) {
    const last = tree.size - 1
    const members = [...tree].map(
      ([name, value], index) =>
        `${JSON.stringify(name)}:${textOf(value, index === last ? goesOn : undefined)}`
    )
    return `{${members.join(",")}${goesOn === undefined ? "}" : ""}`
  }
  if (isList(tree)) {
    const items = tree.map((item, index) => textOf(item, index === tree.length - 1 ? goesOn : undefined))
    return `[${items.join(",")}${goesOn === undefined ? "]" : ""}`
  }
  const text = JSON.stringify(tree)
  return goesOn === true && typeof tree === "string" ? text.slice(0, -1) : text
}
