/**
 * The arguments of one Gemini call, which arrive complete or as pieces of values, each with a path:
 * https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
 *
 * The values count. Their JSON text is also streamed while it only grows at its end.
 */
import * as Json from "../json.ts"

/** A value that can get members, or a final one. */
type Tree = Map<string, Tree> | Array<Tree> | Json.Json

export class Arguments {
  /** The JSON text streamed so far, without the closing brackets and the closing quote. */
  shown = ""

  private readonly root = new Map<string, Tree>()
  /** The incomplete string, with its path and position. */
  private open: { readonly path: string; readonly slot: Slot; readonly isShown: boolean } | undefined =
    undefined
  /** Number of pieces since the text was last written, and its length then. */
  private unwritten = 0
  private written = 0

  /** The complete JSON text. */
  get json(): string {
    return write(this.root)
  }

  /** Adds complete members. */
  assign(members: Json.JsonObject): void {
    for (const [name, value] of Object.entries(members)) this.root.set(name, value)
  }

  /**
   * Adds a piece: `{jsonPath, stringValue | numberValue | boolValue | nullValue, willContinue}`. Returns the
   * new text.
   */
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
    const isOpen = more && typeof value === "string"
    // Each piece writes the complete text. With many pieces and a long text, only some of them do.
    const isShown = ++this.unwritten * piecesPerText >= this.written
    this.open = isOpen ? { path, slot, isShown } : undefined
    return isShown ? this.emit(write(this.root, isOpen)) : ""
  }

  /** Returns the rest of the text. */
  finish(): string {
    return this.emit(this.json)
  }

  /** Appends to a string, the most frequent case, without writing the rest. */
  private grow(
    { isShown, slot }: { readonly isShown: boolean; readonly slot: Slot },
    value: string,
    more: boolean
  ): string {
    slot.set(`${slot.get()}${value}`)
    if (!more) this.open = undefined
    if (!isShown) return ""
    const delta = JSON.stringify(value).slice(1, more ? -1 : undefined)
    this.shown += delta
    return delta
  }

  private emit(text: string): string {
    this.unwritten = 0
    this.written = text.length
    if (!text.startsWith(this.shown)) return ""
    const delta = text.slice(this.shown.length)
    this.shown = text
    return delta
  }
}

/** Characters of text for each piece that writes it: at most about 50 times while the text doubles. */
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

/** The position of a path, created if it is missing. `undefined` if the path leads nowhere. */
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

/** `$.files[0]['a name']`: names, and numbers for array indices. */
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
  // Arrays have no holes: a higher index means the next one.
  const index = Math.min(step, node.length)
  return {
    get: () => node[index],
    set: (value) => {
      node[index] = value
    }
  }
}

/** The value in a slot, as one that has members. */
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

/** Invalid JSON if the values are nested too deep to be written, so that it is not taken for arguments. */
const write = (root: Tree, isOpen?: boolean): string => {
  try {
    return textOf(root, isOpen)
  } catch {
    return "…"
  }
}

/**
 * The JSON text. With `isOpen` the brackets at the end stay open, and with `true` also the quote of a string at
 * the end.
 */
const textOf = (tree: Tree, isOpen?: boolean): string => {
  if (tree instanceof Map) {
    const last = tree.size - 1
    const members = [...tree].map(
      ([name, value], index) =>
        `${JSON.stringify(name)}:${textOf(value, index === last ? isOpen : undefined)}`
    )
    return `{${members.join(",")}${isOpen === undefined ? "}" : ""}`
  }
  if (isList(tree)) {
    const items = tree.map((item, index) => textOf(item, index === tree.length - 1 ? isOpen : undefined))
    return `[${items.join(",")}${isOpen === undefined ? "]" : ""}`
  }
  const text = JSON.stringify(tree)
  return isOpen === true && typeof tree === "string" ? text.slice(0, -1) : text
}
