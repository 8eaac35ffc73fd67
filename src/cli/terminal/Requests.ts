/**
 * Approvals of tool calls, and questions of the model: tools that change something run if a person approves the call, or if the command line
 * permits them.
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Approval from "../../Approval.ts"
import * as CommandRules from "../../tools/CommandRules.ts"
import * as Inert from "./Inert.ts"
import { Keyboard } from "./StandardInput.ts"
import * as Mode from "../agent/Mode.ts"
import * as Outcome from "../agent/Outcome.ts"
import * as PlanTool from "../agent/PlanTool.ts"
import * as Preview from "./Preview.ts"
import { Screen } from "./Screen.ts"
import type { Settings } from "../settings/Settings.ts"
import * as Values from "../settings/Values.ts"
import * as JsonSchema from "../../internal/jsonSchema.ts"

export interface Policy {
  /** Tools and commands that run without an approval. */
  readonly allow: Values.Named
  /** Tools and commands that never run. Wins over `allow` and the mode. */
  readonly deny: Values.Named
  /** The mode of the session, which each call reads. */
  readonly mode: Mode.Cell
  /**
   * Where the answers come from: a person at the terminal, lines of stdin, or a client for which the run waits. With `"deny"` calls that
   * need an approval are refused, because a run must not wait for an answer that cannot come.
   */
  readonly asked: "terminal" | "lines" | "wait" | "deny" | "defer"
  /** The way to decide about a call that was running when its process died: by the model, or by a person. Default `"model"`. */
  readonly unknown?: Approval.Unknown
  /** Whether a person decides about calls that need an approval. If not, they are refused, and a person answers only questions. */
  readonly isAsked: boolean
  /** Whether the reason of a refused call says which flag permits it. Default `false`. */
  readonly advises?: boolean
  /** The folder at which relative paths start. */
  readonly root: string
  /** The scopes for which a person has answered "always". */
  readonly always: Set<string>
  /** The decisions of hooks about calls, by `callKey`. */
  readonly hooked: Map<string, Hooked>
}

/** The decision of a hook about a call. `allow` spares the question, and permits nothing that is denied. */
export interface Hooked {
  readonly decision: "allow" | "ask"
  readonly reason: string
}

/** The key of a call in `hooked`. */
export const callKey = (runId: string, toolCallId: string): string => `${runId} ${toolCallId}`

/** The policy of the settings. `asked` is where answers come from if the settings do not defer. */
export const policyOf = (
  { allow, approve, deny, plan, yes }: Settings,
  root: string,
  asked: Policy["asked"] = "wait"
): Policy => ({
  allow,
  deny,
  mode: Mode.make(Mode.initial({ approve, plan, yes })),
  asked: Option.contains(approve, "defer") ? "defer" : asked,
  isAsked: !Option.contains(approve, "deny"),
  root,
  always: new Set(),
  hooked: new Map()
})

/** Where the answers of a prompt come from. */
export const askedOf = (
  { approve, inputFormat, print }: Settings,
  isInteractive: boolean
): Policy["asked"] => {
  if (print) return "deny"
  if (inputFormat === "text") return isInteractive ? "terminal" : "deny"
  return Option.contains(approve, "ask") ? "lines" : "deny"
}

/** The advice on how to permit refused calls in the next run: a plain command by itself, else the tool. */
export const advice = (
  { asked, deny, isAsked, mode }: Pick<Policy, "asked" | "deny" | "isAsked" | "mode">,
  refused: ReadonlyArray<Outcome.Call>
): string => {
  if (refused.length > 0 && MutableRef.get(mode) === "plan") return Mode.refusal
  const rules = refused.filter(({ toolName }) => !deny.tools.has(toolName)).map(ruleFor)
  if (rules.length === 0) return "--deny forbids it."
  return asked === "terminal" && isAsked
    ? ""
    : `To let it run give ${[...new Set(rules)].join(" ")}, or --yes for every tool.`
}

const ruleFor = ({ params, toolName }: Outcome.Call): string => {
  const rule = `shell(${commandIn(toolName, params) ?? ""})`
  const isPlain = Option.exists(Values.named(rule), ({ commands }) => commands.length === 1)
  return `--allow ${isPlain ? Outcome.quoted(rule) : toolName}`
}

/** Whether the person at the terminal decides about a call. */
export const isAsked = (policy: Policy, { params, toolName }: Outcome.Call): boolean =>
  policy.asked === "terminal" &&
  policy.isAsked &&
  verdictOn(policy, toolName, params, false).decision === "ask"

/** The policy of the runs of an agent. Calls that a person has approved always run without another question. */
export const approvalPolicy = (policy: Policy): Approval.Policy => ({
  decide: ({ params, runId, tool, toolCallId, toolName }) =>
    Effect.sync(() => {
      const judged = verdictOn(policy, toolName, params, tool.effect === "pure")
      const hooked = policy.hooked.get(callKey(runId, toolCallId))
      const { decision, reason } = judged.decision === "deny" ? judged : (hooked ?? judged)
      if (decision === "allow") return { decision }
      if (decision === "deny") return { decision, reason }
      return policy.asked === "deny" || !policy.isAsked
        ? { decision: "deny", reason: unasked(policy, toolName, reason) }
        : { decision: "ask", reason }
    }),
  asked: policy.asked === "deny" || policy.asked === "defer" ? policy.asked : "wait",
  ...(policy.unknown === undefined ? {} : { unknown: policy.unknown })
})

/** Whether a person is to decide about a call, by the rules alone. */
export const needsApproval = (policy: Policy, name: string, params: unknown, isPure: boolean): boolean =>
  verdictOn(policy, name, params, isPure).decision === "ask"

const unasked = (policy: Policy, toolName: string, reason: string): string => {
  const text = `it needs approval, as ${reason}, and the program cannot ask for it`
  return policy.advises === true ? `${text}. ${advice(policy, [{ toolName, params: undefined }])}` : text
}

/** The services of the questions at the terminal. */
export type Services = FileSystem.FileSystem | Keyboard | Path.Path | Screen

/** The answer to a request for an approval: that of the policy, else that of the person at the terminal, else that of `others`. */
export const answerApproval = Effect.fnUntraced(function* <E, R>(
  policy: Policy,
  {
    params,
    runId,
    toolCallId,
    toolName
  }: Pick<Approval.Request, "params" | "runId" | "toolCallId" | "toolName">,
  others: Effect.Effect<Approval.Answer, E, R>
) {
  const judged = verdictOn(policy, toolName, params, false)
  // The rules may allow what a hook wants a person to decide.
  const { decision, reason } =
    judged.decision === "allow" ? (policy.hooked.get(callKey(runId, toolCallId)) ?? judged) : judged
  if (decision === "allow") return approved
  if (decision === "deny") return rejected(reason)
  if (policy.asked === "deny" || !policy.isAsked) return rejected(unasked(policy, toolName, reason))
  if (policy.asked !== "terminal") return yield* others
  const scope = scopeOf(toolName, params)
  const answer = yield* ask(yield* Preview.of(toolName, params, policy.root), scope)
  if (answer === "always") policy.always.add(scope.key)
  return answer === "no" ? rejected("the user answered no") : approved
})

const approved: Approval.Answer = { decision: "approve", by: "user" }
const rejected = (reason: string): Approval.Answer => ({ decision: "reject", reason, by: "user" })

const verdictOn = (
  { allow, always, deny, mode: cell }: Policy,
  name: string,
  params: unknown,
  isPure: boolean
): CommandRules.Verdict => {
  if (deny.tools.has(name)) return { decision: "deny", reason: "--deny forbids it" }
  const mode = MutableRef.get(cell)
  const isHarmless = Mode.changesNothing(name, isPure)
  if (mode === "plan" && !isHarmless) return { decision: "deny", reason: Mode.refusal }
  const isAllowed = Mode.allows(mode, name) || allow.tools.has(name)
  const command = commandIn(name, params)
  const isApproved = always.size > 0 && always.has(scopeOf(name, params).key)
  const areRules = deny.commands.length > 0 || (!isAllowed && allow.commands.length > 0)
  // The rule without words covers every command.
  if (command !== undefined && areRules) {
    const judged = CommandRules.judge(
      { allow: isAllowed ? [[]] : allow.commands, deny: deny.commands },
      command
    )
    if (judged.decision !== "ask" || !isApproved) return judged
  }
  return isAllowed || isApproved || isHarmless
    ? { decision: "allow", reason: "it is allowed" }
    : { decision: "ask", reason: "no option allows it" }
}

/** The calls that the answer "always" permits. */
interface Scope {
  /** Equal for calls that one answer permits. */
  readonly key: string
  /** The text in the question. */
  readonly words: string
}

/** `shell`: the exact command. `write` and `edit`: the tool and the exact path. Other tools: all params. */
export const scopeOf = (name: string, params: unknown): Scope => {
  const scope = (words: string, of: unknown): Scope => ({ key: JSON.stringify([name, of]), words })
  const command = commandIn(name, params)
  if (command !== undefined) return scope("for this command", command)
  const path = name === "write" || name === "edit" ? textIn(params, "path") : undefined
  return path === undefined
    ? scope(`for ${Inert.name(name)} with these params`, { params })
    : scope(`${name} this path`, path)
}

const commandIn = (name: string, params: unknown): string | undefined =>
  name === "shell" ? textIn(params, "command") : undefined

const textIn = (params: unknown, name: string): string | undefined =>
  Predicate.hasProperty(params, name) && typeof params[name] === "string" ? params[name] : undefined

/**
 * Shows the preview of a call and waits for the answer. Every answer except yes, always and view means no, and
 * so does the end of input.
 */
const ask = Effect.fnUntraced(function* (preview: Preview.Preview, scope: Scope) {
  const { err, paint } = yield* Screen
  const lines = Preview.brief(preview, paint).map((line) => `  ${line}`)
  yield* err([paint.bold(preview.title), ...lines, ""].join("\n"))
  const view = Preview.isCut(preview) ? ", [v]iew all" : ""
  while (true) {
    const typed = yield* lineBehind(`Allow this? [y]es, [N]o, [a]lways ${scope.words}${view}: `)
    const answer = meaningOf(typed?.trim().toLowerCase() ?? "")
    if (answer === "help") yield* err(paint.dim(helpOn(scope)))
    else if (answer === "view") yield* showAll(preview)
    else return answer
  }
})

/** Shows all lines, one screen at a time. */
const showAll = Effect.fnUntraced(function* (preview: Preview.Preview) {
  const { err, paint, rows } = yield* Screen
  yield* err(`${paint.bold(preview.title)}\n`)
  const lines = Preview.whole(preview, paint)
  // The last line of the screen holds the question.
  const page = Math.max(rows() - 1, 1)
  for (let from = 0; from < lines.length; from += page) {
    const shown = lines.slice(from, from + page).map((line) => `  ${line}\n`)
    yield* err(shown.join(""))
    const left = lines.length - from - page
    if (left <= 0) return
    const typed = yield* lineBehind(
      `${left} more ${left === 1 ? "line" : "lines"}. [Enter] shows more, [q] returns to the question: `
    )
    if (typed === undefined || typed.trim() !== "") return
  }
})

const helpOn = ({ words }: Scope): string =>
  [
    "  y  run the call this time",
    "  n  do not run it, as for each other answer; the model reads that you refused",
    `  a  run it, and ask no more ${words} until the program ends`,
    "  v  show all of the call, if a part is hidden"
  ]
    .map((line) => `${line}\n`)
    .join("")

type Meaning = "yes" | "no" | "always" | "view" | "help"

const answers: ReadonlyMap<string, Meaning> = new Map([
  ["y", "yes"],
  ["yes", "yes"],
  ["a", "always"],
  ["always", "always"],
  ["v", "view"],
  ["view", "view"],
  ["?", "help"],
  ["h", "help"],
  ["help", "help"]
])

const meaningOf = (word: string): Meaning => answers.get(word) ?? "no"

// ───────────────────────── Questions of the model to the person

/** Shows a question, and waits for an answer that matches its schema. The end of the input declines it. */
export const answerQuestion = Effect.fnUntraced(function* ({
  question,
  schema
}: Pick<Approval.Question, "question" | "schema">): Effect.fn.Return<
  Approval.QuestionReply,
  never,
  Keyboard | Screen
> {
  const { err, paint } = yield* Screen
  if (PlanTool.isPlan({ schema })) return yield* decideAboutPlan(question)
  yield* err(`${paint.bold("The model asks")}\n${linesOf(question)}${choicesIn(schema)}`)
  while (true) {
    const typed = yield* lineBehind("Answer: ")
    if (typed === undefined) return { declined: true, reason: "the user gave no answer", by: "user" }
    const answer = typedAnswer(typed.trim(), schema)
    if (Result.isSuccess(answer)) return { answer: answer.success, by: "user" }
    yield* err(`${paint.red(Inert.line(answer.failure))}\n`)
  }
})

/** Shows a plan, and waits for the decision about it. The end of the input means not now. */
const decideAboutPlan = Effect.fnUntraced(function* (plan: string) {
  const { err, paint } = yield* Screen
  const choices = PlanTool.decisions.map((words, index) => `${index + 1} ${words}`).join(" · ")
  yield* err(`${paint.bold("The plan")}\n${linesOf(plan)}`)
  while (true) {
    const number = (yield* lineBehind(`${choices}: `))?.trim() ?? "4"
    if (number === "1") return { answer: PlanTool.answers.ask, by: "user" }
    if (number === "2") return { answer: PlanTool.answers.edits, by: "user" }
    const words = number === "3" ? yield* lineBehind("What to change: ") : undefined
    if (words !== undefined) return { answer: PlanTool.answers.change(words), by: "user" }
    if (number === "3" || number === "4") return { answer: PlanTool.answers.notNow, by: "user" }
  }
})

/** The line that is typed behind some words. Input from before the words is no answer to them; `undefined` at the end of the input. */
const lineBehind = Effect.fnUntraced(function* (words: string) {
  const { err } = yield* Screen
  const keyboard = yield* Keyboard
  yield* keyboard.forget
  yield* err(words)
  const typed = yield* Effect.onInterrupt(keyboard.line, () => err("\n"))
  if (typed === undefined) yield* err("\n")
  return typed
})

const linesOf = (text: string): string =>
  text
    .split("\n")
    .map((line) => `  ${Inert.exact(line)}\n`)
    .join("")

const choicesIn = (schema: Schema.Json): string => {
  const choices = Predicate.hasProperty(schema, "enum") && Array.isArray(schema.enum) ? schema.enum : []
  return choices.length === 0
    ? ""
    : linesOf(
        `One of: ${choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice))).join(", ")}`
      )
}

/** The answer that a person types: as text, else as JSON, else as the only member that an object needs. */
const typedAnswer = (typed: string, schema: Schema.Json): Result.Result<Schema.Json, string> =>
  firstOf([typed, ...Option.toArray(decodeJson(typed)), ...wordOf(typed), ...memberOf(typed, schema)], schema)

/** The answer of a command line: as JSON, else as text, else as the only member that an object needs. */
export const givenAnswer = (text: string, schema: Schema.Json): Result.Result<Schema.Json, string> =>
  firstOf([...Option.toArray(decodeJson(text)), text, ...wordOf(text), ...memberOf(text, schema)], schema)

const memberOf = (text: string, schema: Schema.Json): ReadonlyArray<Schema.Json> => {
  const required = Predicate.hasProperty(schema, "required") ? schema.required : undefined
  const [name, ...others] = Array.isArray(required) ? required.filter(Predicate.isString) : []
  return name === undefined || others.length > 0 ? [] : [{ [name]: text }]
}

const wordOf = (typed: string): ReadonlyArray<Schema.Json> => {
  const words = new Map<string, Schema.Json>([
    ["y", true],
    ["yes", true],
    ["n", false],
    ["no", false]
  ])
  return Option.toArray(Option.fromUndefinedOr(words.get(typed.toLowerCase())))
}

/** The first candidate that matches the schema. */
const firstOf = (
  candidates: ReadonlyArray<Schema.Json>,
  schema: Schema.Json
): Result.Result<Schema.Json, string> => {
  const decoded = candidates.map((candidate) => JsonSchema.decode(schema, candidate))
  const [first = Result.fail([])] = decoded
  return Result.mapError(decoded.find(Result.isSuccess) ?? first, (faults) => faults.join("; "))
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))
