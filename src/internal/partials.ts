/**
 * Makes `PartialValue` events: parses the arguments of tool calls and the typed output while an answer streams.
 */
import type * as Schema from "effect/Schema"
import type { OfTag } from "../AgentEvent.ts"
import { type ValueChange, type Members, setMember } from "./growing.ts"
import { isObject, maxDepth } from "./json.ts"
import * as ModelEvent from "../ModelEvent.ts"
import type { Output } from "./output.ts"

/** A `PartialValue` event before it has the ids of its run and its message. */
export type Part = Pick<
  OfTag<"PartialValue">,
  "_tag" | "index" | "for" | "toolCallId" | "toolName" | "changes"
>
type Block = ModelEvent.Draft["content"][number]

export class Partials {
  private readonly output: Output<unknown> | undefined
  /** The parser of each block, by `contentIndex`. */
  private readonly parsers: Array<JsonPieces> = []

  constructor(output: Output<unknown> | undefined) {
    this.output = output
  }

  /** Adds an event to an answer, and returns the changes of its value; `undefined` if there are none. */
  add(reply: ModelEvent.Draft, event: ModelEvent.ModelEvent): Part | undefined {
    if (!("contentIndex" in event)) return void ModelEvent.add(reply, event)
    const before = reply.content[event.contentIndex]
    ModelEvent.add(reply, event)
    const block = reply.content[event.contentIndex]
    switch (event._tag) {
      case "ToolCallDelta":
        return this.ofCall(event.contentIndex, block, this.parser(event.contentIndex).add(event.delta))
      case "ToolCallEnd":
        return this.ofCall(event.contentIndex, block, this.rest(event, before, block))
      case "TextDelta":
        return this.output?.isText === true
          ? part(
              event.contentIndex,
              "output",
              this.ofOutput(this.parser(event.contentIndex).add(event.delta))
            )
          : undefined
    }
  }

  private parser(index: number): JsonPieces {
    return (this.parsers[index] ??= new JsonPieces())
  }

  /** The changes that the end of a call brings: where its whole text differs from the deltas, or goes further. */
  private rest(
    { contentIndex, rawArguments }: Extract<ModelEvent.ModelEvent, { readonly _tag: "ToolCallEnd" }>,
    before: Block | undefined,
    after: Block | undefined
  ): ReadonlyArray<ValueChange> {
    const isShown =
      this.parsers[contentIndex]?.isWhole === true &&
      before?.type === "toolCall" &&
      before.rawArguments === rawArguments
    if (isShown || after?.type !== "toolCall" || after.params === undefined) return []
    return [{ path: [], set: after.params }]
  }

  private ofCall(
    index: number,
    block: Block | undefined,
    changes: ReadonlyArray<ValueChange>
  ): Part | undefined {
    if (block?.type !== "toolCall") return undefined
    const call = { toolCallId: block.id, toolName: block.name }
    return this.output?.isCall(block) === true
      ? part(index, "output", this.ofOutput(changes), call)
      : part(index, "arguments", changes, call)
  }

  private ofOutput(changes: ReadonlyArray<ValueChange>): ReadonlyArray<ValueChange> {
    return this.output?.isWrapped === true ? changes.flatMap(unwrapped) : changes
  }
}

const part = (
  index: number,
  of: Part["for"],
  changes: ReadonlyArray<ValueChange>,
  call: Pick<Part, "toolCallId" | "toolName"> = {}
): Part | undefined =>
  changes.length === 0 ? undefined : { _tag: "PartialValue", index, for: of, ...call, changes }

/** Turns a change of the object around the output into a change of the output. */
const unwrapped = (change: ValueChange): ReadonlyArray<ValueChange> => {
  const [first, ...path] = change.path
  if (first === "output") return [{ ...change, path }]
  if (first !== undefined || !("set" in change) || !isObject(change.set)) return []
  const set = change.set["output"]
  return set === undefined ? [] : [{ path, set }]
}

// ───────────────────────── The parser

/** An array or object that has not ended. `local` is its value if it began in the current piece, so that changes show it whole. */
type Frame =
  | { readonly type: "array"; key: number; local: Array<Schema.Json> | undefined }
  | { readonly type: "object"; key: string; local: Members | undefined }

/** The state of the parser: the part of JSON that it expects next. `"over"`: the text is no JSON, so that there are no further changes. */
type State =
  | "value"
  | "firstElement"
  | "firstKey"
  | "key"
  | "colon"
  | "afterValue"
  | "inString"
  | "inKey"
  | "inToken"
  | "whole"
  | "over"

const escapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"]
])
const literals: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["null", null]
])
/** The most characters of the names in a path, since each change repeats its path. Values at longer paths have no changes. */
const maxNameLength = 1024
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

export class JsonPieces {
  private readonly stack: Array<Frame> = []
  private state: State = "value"
  /** The characters of the current string, key or token that no change has yet. */
  private rest = ""
  /** The unfinished escape sequence, from its backslash. */
  private escape = ""
  /** Whether no change has any of the current string yet. */
  private isNewString = false
  /** The path of the current string, computed for its first change. */
  private stringPath: ValueChange["path"] | undefined
  private changes: Array<ValueChange> = []

  /** Whether the text so far is one object, array or string, and nothing else. */
  get isWhole(): boolean {
    return this.state === "whole"
  }

  /** Reads one more piece of text, and returns the changes. */
  add(piece: string): ReadonlyArray<ValueChange> {
    this.changes = []
    for (let at = 0; at < piece.length && this.state !== "over"; ) at = this.read(piece, at)
    if (this.state === "inString") this.showString(false)
    // Containers that changes have shown must not be mutated any more. They are at the top of the stack.
    for (let at = this.stack.length - 1; this.stack[at]?.local !== undefined; at--) {
      const frame = this.stack[at]
      if (frame !== undefined) frame.local = undefined
    }
    return this.changes
  }

  /** Reads one string, token or sign from an index on, and returns the index of the next character. */
  private read(piece: string, at: number): number {
    switch (this.state) {
      case "inString":
      case "inKey":
        return this.escape === "" ? this.readString(piece, at) : this.readEscape(piece, at)
      case "inToken":
        return this.readToken(piece, at)
      default:
        return at + this.readSign(piece.charCodeAt(at))
    }
  }

  private readString(piece: string, at: number): number {
    let end = at
    let char = piece.charCodeAt(end)
    while (end < piece.length && char !== 0x22 && char !== 0x5c && char >= 0x20)
      char = piece.charCodeAt(++end)
    this.rest += piece.slice(at, end)
    if (end === piece.length) return end
    if (char === 0x22) this.endString()
    else if (char === 0x5c) this.escape = "\\"
    else this.state = "over"
    return end + 1
  }

  private readEscape(piece: string, at: number): number {
    const char = piece.charAt(at)
    this.escape += char
    const { length } = this.escape
    if (length === 2 && char !== "u") {
      const meant = escapes.get(char)
      if (meant === undefined) this.giveUp()
      else this.endEscape(meant)
    } else if (length > 2 && !/[\da-fA-F]/.test(char)) this.giveUp()
    else if (length === 6) this.endEscape(String.fromCharCode(Number.parseInt(this.escape.slice(2), 16)))
    return at + 1
  }

  private endEscape(meant: string): void {
    this.rest += meant
    this.escape = ""
  }

  private giveUp(): void {
    this.state = "over"
  }

  private endString(): void {
    const top = this.stack.at(-1)
    if (this.state === "inKey" && top?.type === "object") {
      top.key = this.rest
      this.rest = ""
      this.state = "colon"
      if (this.nameLength > maxNameLength) this.giveUp()
      return
    }
    this.showString(true)
    this.endValue()
  }

  /** Adds a change with the new characters of the string, without an unpaired half of a surrogate pair. */
  private showString(isEnd: boolean): void {
    const { rest } = this
    const last = rest.charCodeAt(rest.length - 1)
    const isHalf = !isEnd && last >= 0xd800 && last <= 0xdbff
    const text = isHalf ? rest.slice(0, -1) : rest
    this.rest = isHalf ? rest.slice(-1) : ""
    if (this.isNewString) this.place(text)
    else if (text !== "") this.changes.push({ path: (this.stringPath ??= this.path), append: text })
    this.isNewString = false
  }

  private readToken(piece: string, at: number): number {
    let end = at
    while (end < piece.length && isInToken(piece.charCodeAt(end))) end++
    this.rest += piece.slice(at, end)
    if (end < piece.length || literals.has(this.rest)) this.endToken(this.rest)
    return end
  }

  private endToken(token: string): void {
    const literal = literals.get(token)
    const value = literal === undefined && number.test(token) ? Number(token) : literal
    this.rest = ""
    // A token without brackets around it, such as `12`, may continue with the next piece: it has no changes.
    if (value === undefined || this.stack.length === 0) return this.giveUp()
    this.place(value)
    this.endValue()
  }

  /** Reads a character outside of strings and tokens. Returns the number of characters that it consumed: 0 for the start of a token. */
  private readSign(char: number): 0 | 1 {
    if (isSpace(char)) return 1
    const { state } = this
    const top = this.stack.at(-1)
    if (char === 0x22 && (state === "key" || state === "firstKey")) this.state = "inKey"
    else if (state === "value" || state === "firstElement") {
      if (char !== 0x5d || state === "value") return this.beginValue(char)
      this.close()
    } else if (state === "colon" && char === 0x3a) this.state = "value"
    else if (state === "afterValue" && char === 0x2c) this.state = top?.type === "array" ? "value" : "key"
    else if (state === "afterValue" && char === (top?.type === "array" ? 0x5d : 0x7d)) this.close()
    else if (state === "firstKey" && char === 0x7d) this.close()
    else this.giveUp()
    return 1
  }

  private beginValue(char: number): 0 | 1 {
    const top = this.stack.at(-1)
    if (top?.type === "array") top.key++
    if (char === 0x7b) this.open("object")
    else if (char === 0x5b) this.open("array")
    else if (char === 0x22) {
      this.state = "inString"
      this.isNewString = true
      this.stringPath = undefined
    } else if (isInToken(char)) {
      this.state = "inToken"
      return 0
    } else this.giveUp()
    return 1
  }

  private open(type: Frame["type"]): void {
    if (this.stack.length === maxDepth) return this.giveUp()
    if (type === "array") {
      const local: Array<Schema.Json> = []
      this.place(local)
      this.stack.push({ type, key: -1, local })
      this.state = "firstElement"
    } else {
      const local: Members = {}
      this.place(local)
      this.stack.push({ type, key: "", local })
      this.state = "firstKey"
    }
  }

  private close(): void {
    this.stack.pop()
    this.endValue()
  }

  private endValue(): void {
    this.state = this.stack.length === 0 ? "whole" : "afterValue"
  }

  /** Puts a value into a container that began in this piece, or adds a change with it. */
  private place(value: Schema.Json): void {
    const top = this.stack.at(-1)
    if (top?.local === undefined) this.changes.push({ path: this.path, set: value })
    else if (top.type === "array") top.local.push(value)
    else setMember(top.local, top.key, value)
  }

  /** The characters of the names in the path. */
  private get nameLength(): number {
    return this.stack.reduce((sum, frame) => sum + (frame.type === "object" ? frame.key.length : 0), 0)
  }

  private get path(): ValueChange["path"] {
    return this.stack.map(({ key }) => key)
  }
}

const isSpace = (char: number): boolean => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09

/** Whether a character may stand in a number, or in `true`, `false` or `null`. */
const isInToken = (char: number): boolean =>
  (char >= 0x30 && char <= 0x39) ||
  (char >= 0x61 && char <= 0x7a) ||
  char === 0x2d ||
  char === 0x2e ||
  char === 0x2b ||
  char === 0x45
