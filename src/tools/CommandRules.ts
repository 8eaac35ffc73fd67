/**
 * Rules that allow or deny shell commands, or require an approval.
 *
 * The rules apply to the argument lists that the shell would run, not to the text. A command line that
 * `CommandLine` does not accept requires an approval. So does a program that runs other programs (`env`,
 * `xargs`, `sh -c`, `find -exec`), unless the rule contains that part literally: a rule that allows one program
 * never allows another one.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as CommandLine from "./CommandLine.ts"
import * as Launchers from "./Launchers.ts"

/**
 * Rules by decision.
 *
 * `deny` wins over `ask`, `ask` wins over `allow`.
 *
 * **Details**
 *
 * A rule is a command with its arguments: `git status`, `npm run *`. A rule without `*` matches exactly these
 * arguments: `rm` matches `rm` without arguments, `rm *` matches every call. A `*` as a word matches one
 * argument, or as the last word any number of arguments, including none. Within a word it matches any
 * characters.
 *
 * @since 0.1.0
 * @category options
 */
export interface Rules {
  /**
   * Commands that may run (default: none).
   *
   * The program must be spelled as in the call, including its folder, and without `*`.
   */
  readonly allow?: ReadonlyArray<string>
  /**
   * Commands that may not run (default: none).
   *
   * A name without a folder matches the program in any folder.
   */
  readonly deny?: ReadonlyArray<string>
  /**
   * Commands that require an approval (default: none).
   *
   * Names match as in `deny`.
   */
  readonly ask?: ReadonlyArray<string>
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
 * Denies the line if the rules deny any of its commands, allows it if they allow all of them, and otherwise
 * requires an approval. An empty line, a line that `CommandLine` does not accept, and a `deny` or `ask` rule
 * that cannot be parsed require an approval.
 *
 * **Example** (Judging command lines)
 *
 * ```ts
 * import { CommandRules } from "effect-agent/tools"
 *
 * const rules = { allow: ["git status", "npm run *"], deny: ["rm *"] }
 * console.log(CommandRules.judge(rules, "git status && npm run check").decision) // => allow
 * console.log(CommandRules.judge(rules, "git status; rm -rf .").decision) // => deny
 * console.log(CommandRules.judge(rules, "curl https://example.com").decision) // => ask
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const judge = (rules: Rules, line: string): Verdict => {
  const unreadable = [...(rules.deny ?? []), ...(rules.ask ?? [])].find((rule) => wordsOf(rule) === undefined)
  if (unreadable !== undefined) return ask(`the rule "${unreadable}" cannot be read`)
  const commands = CommandLine.parse(line)
  if (Result.isFailure(commands)) return ask(`it contains ${commands.failure}, which rules cannot judge`)
  if (commands.success.length === 0) return ask("it is empty")
  const verdicts = commands.success.map((words) => judgeCommand(rules, words))
  return (
    verdicts.find((verdict) => verdict.decision === "deny") ??
    verdicts.find((verdict) => verdict.decision === "ask") ?? { decision: "allow", reason: "rules allow it" }
  )
}

const ask = (reason: string): Verdict => ({ decision: "ask", reason })

const judgeCommand = (rules: Rules, words: CommandLine.Words): Verdict => {
  const [command] = words
  const denied = (rules.deny ?? []).find((rule) => matches(rule, words, "care"))
  if (denied !== undefined) return { decision: "deny", reason: `the rule "${denied}" denies it` }
  const asked = (rules.ask ?? []).find((rule) => matches(rule, words, "care"))
  if (asked !== undefined) return ask(`the rule "${asked}" requires approval`)
  if ((rules.allow ?? []).some((rule) => matches(rule, words, "allow")))
    return { decision: "allow", reason: "rules allow it" }
  return Launchers.hatches(words).length > 0
    ? ask(`${command} can run other programs or write files with these arguments`)
    : ask(`no rule covers ${command} with these arguments`)
}

/**
 * `care` rules (`deny` and `ask`) compare the last part of the program's path, `allow` rules compare all of it.
 */
const matches = (rule: string, words: CommandLine.Words, kind: "allow" | "care"): boolean => {
  const [command, ...patterns] = wordsOf(rule) ?? []
  if (command === undefined) return false
  const [program, ...args] = words
  const name = kind === "care" && !command.includes("/") ? (program.split("/").at(-1) ?? program) : program
  if (!matchesWord(command, name)) return false
  if (kind === "care") return matchesArgs(patterns, args)
  // A `*` never matches an argument by which a program could run another one.
  const hatches = new Set(Launchers.hatches(words))
  return !command.includes("*") && matchesArgs(patterns, args, (index) => hatches.has(index))
}

const wordsOf = (rule: string): ReadonlyArray<string> | undefined => {
  const words = Result.getOrElse(CommandLine.words(rule), () => [])
  return words.length === 0 ? undefined : words
}

const matchesArgs = (
  patterns: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
  mustBeSpelled: (index: number) => boolean = () => false
): boolean => {
  const isOpen = patterns.at(-1) === "*"
  const fixed = isOpen ? patterns.slice(0, -1) : patterns
  if (isOpen ? args.length < fixed.length : args.length !== fixed.length) return false
  return args.every((arg, index) => {
    const pattern = fixed[index] ?? "*"
    return mustBeSpelled(index) ? pattern === arg : matchesWord(pattern, arg)
  })
}

const matchesWord = (pattern: string, word: string): boolean => {
  if (!pattern.includes("*")) return pattern === word
  const [first = "", ...rest] = pattern.split("*")
  if (!word.startsWith(first)) return false
  let at = first.length
  for (const [index, part] of rest.entries()) {
    const isLast = index === rest.length - 1
    const found = isLast ? word.length - part.length : word.indexOf(part, at)
    if (found < at || !word.startsWith(part, found)) return false
    at = found + part.length
  }
  return true
}
