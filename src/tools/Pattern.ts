/**
 * Parses regular expressions for `LineSearch` into a syntax tree.
 *
 * The syntax is the common part of JavaScript and ripgrep, without look-around and back references, which
 * cannot be matched in time linear to the line. Single characters (classes, escapes, `.`) have the meaning of
 * JavaScript, because the parser compiles each of them to a `RegExp`.
 */
import * as Result from "effect/Result"

export type Node =
  | { readonly _tag: "Char"; readonly accepts: (char: string) => boolean }
  | { readonly _tag: "Assert"; readonly at: "start" | "end" | "word" | "notWord" }
  | { readonly _tag: "Sequence"; readonly items: ReadonlyArray<Node> }
  | { readonly _tag: "Choice"; readonly items: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly item: Node; readonly min: number; readonly max: number }

/**
 * Parses a pattern. Fails with a description of the syntax error. A leading `(?i)` ignores case, as
 * `ignoreCase` does.
 */
export const parse = (
  source: string,
  options?: { readonly ignoreCase?: boolean }
): Result.Result<Node, string> => {
  if (source.length > 1_000) return Result.fail("the pattern is longer than 1000 characters")
  const inline = source.startsWith("(?i)")
  const reader: Reader = {
    chars: Array.from(inline ? source.slice(4) : source),
    at: 0,
    ignoreCase: inline || options?.ignoreCase === true,
    fault: undefined
  }
  const node = choice(reader)
  if (reader.fault === undefined && reader.at < reader.chars.length) fail(reader, "unmatched )")
  return reader.fault === undefined ? Result.succeed(node) : Result.fail(reader.fault)
}

/** A cursor over the pattern. Keeps the first error, which ends parsing. */
interface Reader {
  readonly chars: ReadonlyArray<string>
  readonly ignoreCase: boolean
  at: number
  fault: string | undefined
}

const nothing: Node = { _tag: "Sequence", items: [] }

const fail = (reader: Reader, problem: string): Node => {
  reader.fault ??= `${problem} at position ${Math.min(reader.at, reader.chars.length) + 1}`
  reader.at = reader.chars.length
  return nothing
}

const peek = (reader: Reader, offset = 0): string => reader.chars[reader.at + offset] ?? ""

const startsWith = (reader: Reader, text: string): boolean =>
  reader.chars.slice(reader.at, reader.at + text.length).join("") === text

const choice = (reader: Reader): Node => {
  const items = [sequence(reader)]
  while (peek(reader) === "|") {
    reader.at++
    items.push(sequence(reader))
  }
  return { _tag: "Choice", items }
}

const sequence = (reader: Reader): Node => {
  const items: Array<Node> = []
  while (reader.at < reader.chars.length && peek(reader) !== "|" && peek(reader) !== ")") {
    items.push(quantified(reader, atom(reader)))
  }
  return { _tag: "Sequence", items }
}

const quantified = (reader: Reader, item: Node): Node => {
  const bounds = quantifier(reader)
  if (bounds === undefined) return item
  const [min, max] = bounds
  if (item._tag === "Assert") return fail(reader, "nothing to repeat")
  if (max < min) return fail(reader, "repeat counts out of order")
  // Lazy repeats match the same lines as greedy ones.
  if (peek(reader) === "?") reader.at++
  if (quantifier({ ...reader }) !== undefined) return fail(reader, "nothing to repeat")
  return { _tag: "Repeat", item, min, max }
}

const quantifier = (reader: Reader): readonly [min: number, max: number] | undefined => {
  const simple = simpleQuantifiers[peek(reader)]
  if (simple !== undefined) {
    reader.at++
    return simple
  }
  const counted = /^\{(\d+)(,?)(\d*)\}/.exec(reader.chars.slice(reader.at, reader.at + 20).join(""))
  if (counted === null) return undefined
  const [text, min = "", comma, max] = counted
  reader.at += text.length
  return [Number(min), comma === "" ? Number(min) : max === "" ? Infinity : Number(max)]
}

const simpleQuantifiers: Readonly<Record<string, readonly [number, number]>> = {
  "*": [0, Infinity],
  "+": [1, Infinity],
  "?": [0, 1]
}

const atom = (reader: Reader): Node => {
  const char = peek(reader)
  switch (char) {
    case "(":
      return group(reader)
    case "[":
      return charClass(reader)
    case "\\":
      return escape(reader)
    case "^":
    case "$":
      reader.at++
      return { _tag: "Assert", at: char === "^" ? "start" : "end" }
    case "*":
    case "+":
    case "?":
      return fail(reader, "nothing to repeat")
    case ".":
      reader.at++
      return { _tag: "Char", accepts: () => true }
    default:
      reader.at++
      return literal(reader, char)
  }
}

const group = (reader: Reader): Node => {
  for (const opening of ["(?=", "(?!", "(?<=", "(?<!"]) {
    if (startsWith(reader, opening)) return fail(reader, `look-around ${opening} is not supported`)
  }
  reader.at++
  const named = /^\?(?::|P?<\w+>)/.exec(reader.chars.slice(reader.at, reader.at + 80).join(""))
  if (named !== null) reader.at += named[0].length
  else if (peek(reader) === "?") return fail(reader, "unknown group")
  const node = choice(reader)
  if (reader.fault !== undefined) return node
  if (peek(reader) !== ")") return fail(reader, "missing )")
  reader.at++
  return node
}

const charClass = (reader: Reader): Node => {
  const opening = peek(reader, 1) === "^" ? "[^" : "["
  reader.at += opening.length
  // JavaScript reads an empty class, other engines a class that starts with `]`.
  if (peek(reader) === "]") return fail(reader, "a class that begins with ], which is to be written \\],")
  let members = ""
  while (reader.at < reader.chars.length && peek(reader) !== "]") members += member(reader)
  if (peek(reader) !== "]") return fail(reader, "missing ]")
  reader.at++
  return matching(reader, `${opening}${members}]`)
}

/** A character, a range or a set, in the syntax of JavaScript. */
const member = (reader: Reader): string => {
  const first = memberPart(reader)
  if (peek(reader) !== "-" || peek(reader, 1) === "]") return first.source
  reader.at++
  // After a set, as in `[\w-.]`, the `-` is a character.
  if (first.isSet) return `${first.source}\\-`
  const last = memberPart(reader)
  if (last.isSet) fail(reader, "a range that ends with a set")
  return `${first.source}-${last.source}`
}

const memberPart = (reader: Reader): { readonly source: string; readonly isSet: boolean } => {
  const text = reader.chars.slice(reader.at, reader.at + 40).join("")
  const [posix, name = ""] = /^\[:(\^?\w*):\]/.exec(text) ?? []
  if (posix !== undefined) {
    const source = posixClasses.get(name)
    if (source === undefined) fail(reader, `unknown class ${posix}`)
    else reader.at += posix.length
    return { source: source ?? "", isSet: true }
  }
  const escape = /^\\b/.exec(text)?.[0] ?? knownEscape.exec(text)?.[0]
  if (escape !== undefined) {
    reader.at += escape.length
    return { source: escape, isSet: /^\\[dswp]/i.test(escape) }
  }
  const char = peek(reader) === "\\" ? peek(reader, 1) : peek(reader)
  if (peek(reader) === "\\" && /\w/.test(char)) fail(reader, `unknown escape \\${char}`)
  reader.at += peek(reader) === "\\" ? 2 : 1
  return { source: quoted(char), isSet: false }
}

const posixClasses: ReadonlyMap<string, string> = new Map([
  ["alpha", "a-zA-Z"],
  ["digit", "0-9"],
  ["alnum", "a-zA-Z0-9"],
  ["upper", "A-Z"],
  ["lower", "a-z"],
  ["space", "\\s"],
  ["blank", " \\t"],
  ["cntrl", "\\x00-\\x1f\\x7f"],
  ["graph", "!-~"],
  ["print", " -~"],
  ["punct", "!-\\/:-@\\[-`{-~"],
  ["word", "\\w"],
  ["xdigit", "0-9a-fA-F"],
  ["ascii", "\\x00-\\x7f"]
])

const escape = (reader: Reader): Node => {
  const text = reader.chars.slice(reader.at, reader.at + 40).join("")
  const assertion = /^\\[bB]/.exec(text)
  if (assertion !== null) {
    reader.at += 2
    return { _tag: "Assert", at: assertion[0] === "\\b" ? "word" : "notWord" }
  }
  if (/^\\[1-9k]/.test(text)) return fail(reader, "back references are not supported")
  const known = knownEscape.exec(text)
  if (known !== null) {
    reader.at += known[0].length
    return matching(reader, known[0])
  }
  const escaped = peek(reader, 1)
  if (escaped === "") return fail(reader, "nothing after \\")
  if (/\w/.test(escaped)) return fail(reader, `unknown escape \\${escaped}`)
  reader.at += 2
  return literal(reader, escaped)
}

const knownEscape = /^\\(?:[dDwWsStnrfv0]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]+\}|[pP]\{[\w=]+\})/

const literal = (reader: Reader, char: string): Node =>
  reader.ignoreCase
    ? matching(reader, `[${quoted(char)}]`)
    : { _tag: "Char", accepts: (other) => other === char }

/** The character in the syntax of a class. */
const quoted = (char: string): string => char.replace(/[\\^$.*+?()[\]{}|/-]/, "\\$&")

/** A node that matches one character with a `RegExp`. The time on one character is bounded. */
const matching = (reader: Reader, source: string): Node => {
  // With the flag `u` unknown syntax fails. Without it, it would have another meaning.
  const found = Result.try(() => new RegExp(`^(?:${source})$`, reader.ignoreCase ? "sui" : "su"))
  if (Result.isFailure(found)) return fail(reader, `invalid ${source}`)
  const expression = found.success
  return { _tag: "Char", accepts: (char) => expression.test(char) }
}
