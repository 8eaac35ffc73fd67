/**
 * Parses a command line of a POSIX shell into the argument lists that the shell would run.
 *
 * The parser accepts simple commands joined by `&&`, `||`, `;`, `|` and line ends; plain words, quotes and
 * backslashes; and redirection of output to another descriptor or to `/dev/null`. It rejects everything else
 * (expansions, globs, redirection to files, background commands, groups, keywords, assignments, comments,
 * control characters), because the result in the shell depends on more than the text.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"

/**
 * The name of a program and its arguments, without quotes and backslashes.
 *
 * @since 0.1.0
 * @category models
 */
export type Words = readonly [command: string, ...args: ReadonlyArray<string>]

/** Maximum characters of a line, which bounds the time of parsing. */
const maxLength = 8_192

/**
 * Parses a command line into its simple commands, in order.
 *
 * **Details**
 *
 * Fails with a text that names the first construct the parser does not accept.
 *
 * **Example** (Parsing a command line)
 *
 * ```ts
 * import { Result } from "effect"
 * import { CommandLine } from "effect-agent/tools"
 *
 * console.log(Result.getOrThrow(CommandLine.parse("git add 'a b' && git status")))
 * // => [ [ 'git', 'add', 'a b' ], [ 'git', 'status' ] ]
 * console.log(Result.isFailure(CommandLine.parse("echo $HOME"))) // => true
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const parse = (line: string): Result.Result<ReadonlyArray<Words>, string> => {
  if (line.length > maxLength) return Result.fail(`more than ${maxLength} characters`)
  const tokens = tokenize(line)
  if (Result.isFailure(tokens)) return Result.fail(tokens.failure)
  return split(tokens.success)
}

/**
 * Parses a text without operators, such as a rule, into words.
 *
 * A `*` is part of a word.
 *
 * **Example** (Parsing a rule)
 *
 * ```ts
 * import { Result } from "effect"
 * import { CommandLine } from "effect-agent/tools"
 *
 * console.log(Result.getOrThrow(CommandLine.words("npm run *"))) // => [ 'npm', 'run', '*' ]
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const words = (text: string): Result.Result<ReadonlyArray<string>, string> =>
  Result.flatMap(tokenize(text, { globs: true }), (tokens) =>
    tokens.some((token) => token._tag === "Operator")
      ? Result.fail("an operator is not a word")
      : Result.succeed(tokens.map((token) => token.text))
  )

type Token = ({ readonly _tag: "Word" } & Word) | { readonly _tag: "Operator"; readonly text: string }

// The parser tries them in this order at each position.
const separators = /^(?:&&|\|\||;|\||\n)/
// Without `&>`, which only bash knows: other shells read a background command followed by a redirection.
const harmlessRedirection = /^(?:[12]?>&[12]|[12]?>>?\s*\/dev\/null|<\s*\/dev\/null)(?=[\s;&|]|$)/
const blank = /^(?:[ \t]+|\\\n)/
// A command needs no control characters but line ends and tabs. Others hide text from the person who approves
// it.
const hidden = /[^\P{Cc}\n\t]|[\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069]/u

const tokenize = (
  line: string,
  options?: { readonly globs: boolean }
): Result.Result<ReadonlyArray<Token>, string> => {
  if (hidden.test(line)) return Result.fail("a control character")
  const tokens: Array<Token> = []
  let rest = line
  while (rest !== "") {
    const skipped = blank.exec(rest) ?? harmlessRedirection.exec(rest)
    if (skipped !== null) {
      rest = rest.slice(skipped[0].length)
      continue
    }
    const separator = separators.exec(rest)
    if (separator !== null) {
      tokens.push({ _tag: "Operator", text: separator[0] })
      rest = rest.slice(separator[0].length)
      continue
    }
    const word = readWord(rest, options?.globs === true)
    if (Result.isFailure(word)) return Result.fail(word.failure)
    tokens.push({ _tag: "Word", ...word.success })
    rest = rest.slice(word.success.raw.length)
  }
  return Result.succeed(tokens)
}

interface Word {
  readonly text: string
  /** The word as written, with quotes and backslashes. */
  readonly raw: string
}

// The parts of a word, and the text that each one stands for.
const parts: ReadonlyArray<readonly [pattern: RegExp, meaning: (match: string) => string]> = [
  [/^[\p{L}\p{N}_\-./:=,+@%^]+/u, (text) => text],
  [/^'[^']*'/, (text) => text.slice(1, -1)],
  [/^"(?:[^"\\$`]|\\["\\$`\n])*"/, (text) => unescaped(text.slice(1, -1))],
  [/^\\[^\n]/u, (text) => text.slice(1)]
]

const unescaped = (text: string): string => text.replace(/\\\n|\\(.)/g, (_, char?: string) => char ?? "")

const readWord = (from: string, globs: boolean): Result.Result<Word, string> => {
  let [text, raw] = ["", ""]
  while (raw.length < from.length) {
    const rest = from.slice(raw.length)
    if (/^[\s;&|<>()]/.test(rest)) break
    const part = parts.find(([pattern]) => pattern.test(rest))
    const match = part?.[0].exec(rest)?.[0] ?? (globs && rest.startsWith("*") ? "*" : undefined)
    if (match === undefined) return Result.fail(reasonFor(rest))
    text += part === undefined ? match : part[1](match)
    raw += match
  }
  // `2>file`: digits before a redirection are its descriptor, not a word.
  return raw === "" || /^[<>]/.test(from.slice(raw.length))
    ? Result.fail(reasonFor(from.slice(raw.length)))
    : Result.succeed({ text, raw })
}

const reasons: ReadonlyArray<readonly [RegExp, string]> = [
  [/^[<>]/, "a redirection"],
  [/^&/, "a command in the background"],
  [/^[()]/, "a group"],
  [/^[$`]/, "an expansion"],
  [/^"/, "an expansion or an open quote"],
  [/^'/, "an open quote"],
  [/^[*?[\]{}~]/, "a file pattern or an expansion"],
  [/^#/, "a comment"],
  [/^!/, "a history expansion or a negation"]
]

const reasonFor = (text: string): string =>
  reasons.find(([pattern]) => pattern.test(text))?.[1] ??
  `the character ${JSON.stringify(Array.from(text)[0] ?? "")}`

const keywords: ReadonlySet<string> = new Set(
  "if then else elif fi for while until do done case esac in function select time coproc".split(" ")
)

const split = (tokens: ReadonlyArray<Token>): Result.Result<ReadonlyArray<Words>, string> => {
  const commands: Array<Words> = []
  let current: Array<string> = []
  let isOpen = false
  for (const token of [...tokens, { _tag: "Operator", text: "\n" } as const]) {
    if (token._tag === "Word") {
      if (current.length === 0 && keywords.has(token.raw)) return Result.fail(`the keyword ${token.raw}`)
      if (current.length === 0 && /^\w+\+?=/.test(token.raw)) return Result.fail("an assignment")
      current.push(token.text)
      continue
    }
    const [command, ...args] = current
    if (command === undefined) {
      if (token.text !== "\n") return Result.fail(`${token.text} without a command before it`)
      continue
    }
    commands.push([command, ...args])
    current = []
    isOpen = token.text !== "\n" && token.text !== ";"
  }
  return isOpen ? Result.fail("an operator without a command after it") : Result.succeed(commands)
}
