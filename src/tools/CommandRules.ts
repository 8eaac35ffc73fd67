/**
 * Rules on shell commands: which may run, which may not, and which a person is asked about.
 *
 * A rule is judged on the argument list the shell would make, never on the text. Whatever is not understood for
 * certain is asked about, and so is a program that runs others (`env`, `xargs`, `sh -c`, `find -exec`), unless the rule
 * spells that part out: a rule that lets one program run lets no other one run.
 */
import * as Result from "effect/Result"
import * as CommandLine from "./CommandLine.ts"
import * as Launchers from "./Launchers.ts"

/**
 * Rules by decision. Each is a command with its arguments: `git status`, `npm run *`. A rule without `*` is for exactly
 * these arguments: `rm` is `rm` alone, `rm *` is every call of it. A `*` of its own stands for one argument, or at the
 * end for any number of them, none included; within a word it stands for any characters.
 */
export interface Rules {
  /** The name of the program stands as it is called by, with its folder if it has one, and without a `*`. */
  readonly allow?: ReadonlyArray<string>
  /** Wins over the others. A name without a folder is that of the program wherever it lies. */
  readonly deny?: ReadonlyArray<string>
  /** Wins over `allow`. Names are read as in `deny`. */
  readonly ask?: ReadonlyArray<string>
}

/** What the rules say of a command line. */
export interface Verdict {
  readonly decision: "allow" | "deny" | "ask"
  /** Why, for the person who is asked or the model that is denied. */
  readonly reason: string
}

/** Judges a command line: denied if any command of it is, allowed if all of them are, asked about otherwise. */
export const judge = (rules: Rules, line: string): Verdict => {
  const unreadable = [...(rules.deny ?? []), ...(rules.ask ?? [])].find((rule) => wordsOf(rule) === undefined)
  if (unreadable !== undefined) return ask(`the rule "${unreadable}" cannot be read`)
  const commands = CommandLine.parse(line)
  if (Result.isFailure(commands)) return ask(`it holds ${commands.failure}, which no rule can judge`)
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
  if (asked !== undefined) return ask(`the rule "${asked}" says so`)
  if ((rules.allow ?? []).some((rule) => matches(rule, words, "allow")))
    return { decision: "allow", reason: "rules allow it" }
  return Launchers.hatches(words).length > 0
    ? ask(`${command} can run other programs or write files with these arguments`)
    : ask(`no rule is for ${command} with these arguments`)
}

/** A rule of care, to deny or to ask, matches by the last part of the program's path; one that allows, by all of it. */
const matches = (rule: string, words: CommandLine.Words, kind: "allow" | "care"): boolean => {
  const [command, ...patterns] = wordsOf(rule) ?? []
  if (command === undefined) return false
  const [program, ...args] = words
  const name = kind === "care" && !command.includes("/") ? (program.split("/").at(-1) ?? program) : program
  if (!matchesWord(command, name)) return false
  if (kind === "care") return matchesArgs(patterns, args)
  // What would let other programs run is allowed by its own letters only, not by a star.
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
