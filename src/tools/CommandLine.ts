/**
 * Reads a command line of a POSIX shell as the argument lists it runs, as long as that is certain.
 *
 * Understood: simple commands joined by `&&`, `||`, `;`, `|` and line ends; plain words, quotes and backslashes; output
 * sent to another descriptor or to `/dev/null`. Everything else (expansions, globs, redirection to files, background,
 * groups, keywords, assignments, comments, control characters) is reported, not guessed: what the shell would make of
 * it depends on more than the text.
 */
import * as Result from "effect/Result"

/** The program's name and its arguments, with quotes resolved. */
export type Words = readonly [command: string, ...args: ReadonlyArray<string>]

/** A longer line is not read, as that could hold up the program. In characters. */
const maxLength = 8_192

/** The simple commands of a line, in order. Fails with what is not understood. */
export const parse = (line: string): Result.Result<ReadonlyArray<Words>, string> => {
  if (line.length > maxLength) return Result.fail(`more than ${maxLength} characters`)
  const tokens = tokenize(line)
  if (Result.isFailure(tokens)) return Result.fail(tokens.failure)
  return split(tokens.success)
}

/** The words of a text without operators, such as a rule. */
export const words = (text: string): Result.Result<ReadonlyArray<string>, string> =>
  Result.flatMap(tokenize(text, { globs: true }), (tokens) =>
    tokens.some((token) => token._tag === "Operator")
      ? Result.fail("an operator is not a word")
      : Result.succeed(tokens.map((token) => token.text))
  )

type Token = ({ readonly _tag: "Word" } & Word) | { readonly _tag: "Operator"; readonly text: string }

// In the order in which they are tried at each place.
const separators = /^(?:&&|\|\||;|\||\n)/
// Not `&>`, which only bash knows: to others it is a command in the background, and then another redirection.
const harmlessRedirection = /^(?:[12]?>&[12]|[12]?>>?\s*\/dev\/null|<\s*\/dev\/null)(?=[\s;&|]|$)/
const blank = /^(?:[ \t]+|\\\n)/
// Line ends and tabs are the only control characters a command needs; others are for hiding something.
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
  /** As it is written, with quotes and backslashes. */
  readonly raw: string
}

// The parts a word is made of, and what each stands for.
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
