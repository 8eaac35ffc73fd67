/**
 * Rules that allow or deny shell commands.
 *
 * A rule is a list of words: `["git", "status"]`. It covers a command that begins with exactly these words.
 * There are no patterns. The rules read only lines of plain words, and require an approval for every other line.
 *
 * The rules save approvals. They confine no command: use the option `sandbox` of `ShellTool` for that.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"

/**
 * A program and its arguments, without quotes.
 *
 * @since 0.2.0
 * @category models
 */
export type Words = readonly [program: string, ...args: ReadonlyArray<string>]

/**
 * Rules by decision.
 *
 * **Details**
 *
 * `deny` wins over `allow`. The rule `[]` covers every command that the rules can read.
 *
 * **Gotchas**
 *
 * A rule covers all arguments after its words, also those by which a program runs another program, writes a
 * file or reads another configuration: `["go", "test"]` allows `go test -exec ./other`. A rule for a program
 * that only starts others, such as `env`, `xargs` or `sh`, allows every program.
 *
 * @since 0.1.0
 * @category options
 */
export interface Rules {
  /** Commands that may run, with any further arguments (default: none). */
  readonly allow?: ReadonlyArray<ReadonlyArray<string>>
  /**
   * Commands that may not run (default: none).
   *
   * A program without a folder means the program in any folder. A command that contains the words of a rule in
   * other places, such as `git --no-pager push` for `["git", "push"]`, requires an approval, even if an `allow`
   * rule covers it. Options (`-x`) of the rule do not count there, because they have several spellings.
   */
  readonly deny?: ReadonlyArray<ReadonlyArray<string>>
}

/**
 * The decision of the rules on a command line.
 *
 * @since 0.1.0
 * @category models
 */
export interface Verdict {
  /** `ask`: the command requires an approval. */
  readonly decision: "allow" | "deny" | "ask"
  /** The reason, for the person who approves or the model that is denied. */
  readonly reason: string
}

/**
 * Applies rules to a command line.
 *
 * **Details**
 *
 * Denies the line if a `deny` rule covers one of its commands, allows it if `allow` rules cover all of them,
 * and otherwise requires an approval. A line that `parse` does not read requires an approval.
 *
 * **Example** (Judging command lines)
 *
 * ```ts
 * import { CommandRules } from "effect-agent/tools"
 *
 * const rules = { allow: [["git"], ["npm", "test"]], deny: [["git", "push"]] }
 * console.log(CommandRules.judge(rules, "git status && npm test").decision) // => allow
 * console.log(CommandRules.judge(rules, "git push origin main").decision) // => deny
 * console.log(CommandRules.judge(rules, "git --no-pager push").decision) // => ask
 * console.log(CommandRules.judge(rules, "git status > notes.txt").decision) // => ask
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const judge = ({ allow = [], deny = [] }: Rules, line: string): Verdict => {
  const commands = parse(line)
  if (Result.isFailure(commands)) return verdict("ask", `the rules cannot read ${commands.failure}`)
  const lists = (test: (rule: ReadonlyArray<string>, words: Words) => boolean) =>
    deny.find((rule) => commands.success.some((words) => test(rule, words)))
  const denied = lists((rule, words) => begins(rule, words) || begins(rule, withoutFolder(words)))
  if (denied !== undefined) return verdict("deny", `a rule denies "${denied.join(" ")}"`)
  const suspected = lists(mentions)
  if (suspected !== undefined)
    return verdict("ask", `it may be "${suspected.join(" ")}", which a rule denies`)
  const other = commands.success.find((words) => !allow.some((rule) => begins(rule, words)))
  return other === undefined
    ? verdict("allow", "rules allow it")
    : verdict("ask", `no rule allows "${other.join(" ")}"`)
}

const verdict = (decision: Verdict["decision"], reason: string): Verdict => ({ decision, reason })

const begins = (rule: ReadonlyArray<string>, words: ReadonlyArray<string>): boolean =>
  rule.every((word, index) => word === words[index])

const withoutFolder = ([program, ...args]: Words): Words => [program.replace(/^.*\//, ""), ...args]

/** Whether the command contains each word of the rule, in any order and in parts of its words too. */
const mentions = (rule: ReadonlyArray<string>, words: Words): boolean => {
  const present = new Set(partsOf(words))
  return partsOf(rule.filter((word) => !word.startsWith("-"))).every((part) => present.has(part))
}

const partsOf = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words.flatMap((word) => word.toLowerCase().split(/\W+/)).filter((part) => part !== "")

/**
 * Parses a rule, such as `git status`.
 *
 * **Details**
 *
 * Fails with a text that names the part that is no plain word.
 *
 * **Example** (Parsing a rule)
 *
 * ```ts
 * import { Result } from "effect"
 * import { CommandRules } from "effect-agent/tools"
 *
 * console.log(Result.getOrThrow(CommandRules.parseRule("git log 'my file'"))) // => [ 'git', 'log', 'my file' ]
 * console.log(Result.isFailure(CommandRules.parseRule("git *"))) // => true
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const parseRule = (text: string): Result.Result<Words, string> =>
  Result.flatMap(parse(text), ([first, ...others]) =>
    first === undefined || others.length > 0 ? Result.fail("more than one command") : Result.succeed(first)
  )

/**
 * Parses a command line into the commands that a POSIX shell runs, in order.
 *
 * **Details**
 *
 * The function reads words of ASCII letters, digits and `_ - . / : , + @ % =`, text in single or double quotes
 * without backslashes and expansions, and the operators `&&`, `||`, `;`, `|` and line ends. It fails with a
 * text that names the first other part: an expansion, a pattern, a redirection, a group, a keyword, an
 * assignment, a comment, a tab, a character beyond ASCII, an empty line, or more than 8,192 characters.
 *
 * **Example** (Parsing a command line)
 *
 * ```ts
 * import { Result } from "effect"
 * import { CommandRules } from "effect-agent/tools"
 *
 * console.log(Result.getOrThrow(CommandRules.parse("git add 'a b' && git status")))
 * // => [ [ 'git', 'add', 'a b' ], [ 'git', 'status' ] ]
 * console.log(Result.isFailure(CommandRules.parse("echo $HOME"))) // => true
 * ```
 *
 * @since 0.2.0
 * @category decoding
 */
export const parse = (line: string): Result.Result<ReadonlyArray<Words>, string> => {
  if (line.length > maxLength) return Result.fail(`more than ${maxLength} characters`)
  const commands: Array<Words> = []
  let words: Array<string> = []
  let rest = line.replace(/^[ \n]+|[ \n]+$/g, "")
  while (true) {
    const word = wordAt.exec(rest)?.[0]
    if (word !== undefined) {
      words.push(word.trimStart().replace(quoted, unquoted))
      rest = rest.slice(word.length)
      continue
    }
    const operator = operatorAt.exec(rest)?.[0] ?? ""
    if (operator === "" && rest !== "") return Result.fail(JSON.stringify(Array.from(rest.trimStart())[0]))
    const [program, ...args] = words
    if (program === undefined) return Result.fail("an empty command")
    if (program.includes("=") || keywords.has(program)) return Result.fail(JSON.stringify(program))
    commands.push([program, ...args])
    if (rest === "") return Result.succeed(commands)
    words = []
    rest = rest.slice(operator.length)
  }
}

/** Maximum characters of a line, which bounds the time of parsing. */
const maxLength = 8_192

// Every shell reads printable ASCII characters alike: some take other blanks for the end of a word. A word ends at
// a blank or an operator, because another character stops the parser.
const wordAt = /^ *(?:[\w\-./:,+@%=]|'[ -&(-~]*'|"[ #%-[\]-_a-~]*")+/
const operatorAt = /^ *(?:&&|\|\||[;|]|\n+)[ \n]*/
const quoted = /'([^']*)'|"([^"]*)"/g
const unquoted = (_: string, single?: string, double?: string): string => single ?? double ?? ""

const keywords: ReadonlySet<string> = new Set(
  "if then else elif fi for while until do done case esac in function select time coproc".split(" ")
)
