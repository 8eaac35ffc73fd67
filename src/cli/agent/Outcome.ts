/**
 * The outcome of a run, folded from its events, in words: the answer, the exit code, the remark, failures with advice on the next step, and the
 * commands that continue it.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type { AgentEvent, OfTag, RunStatus } from "../../AgentEvent.ts"
import { type Assistant, textOf } from "../../Message.ts"
import type { Refusal } from "../../ModelEvent.ts"
import type { EventError, LimitExceeded } from "../../internal/failureReason.ts"
import * as ExitCode from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"
import * as Inert from "../terminal/Inert.ts"
import type { Picks } from "../settings/SettingTable.ts"
import { flagOf, type From, type Picked } from "../settings/Setting.ts"
import * as Values from "../settings/Values.ts"
import type { ProviderError } from "../../ProviderError.ts"
import * as PlanTool from "./PlanTool.ts"
import { companies, servers, startOf } from "./Vendors.ts"

/** A tool call. */
export interface Call {
  readonly toolName: string
  readonly params: unknown
}

export interface Outcome {
  /** The last answer of the model. */
  readonly last: Assistant | undefined
  /** Why the model refused to answer, by its last call. */
  readonly refusal: Refusal | undefined
  /** The params of the calls that have started, by their ids. */
  readonly started: ReadonlyMap<string, unknown>
  /** The calls that were refused. */
  readonly refused: ReadonlyArray<Call>
  /** `undefined` while the run continues. */
  readonly status: RunStatus | undefined
  readonly error: EventError | undefined
  /** The typed output, if the run gave one. */
  readonly output: { readonly value: Schema.Json } | undefined
  /** The plan, if it is the answer. */
  readonly plan: string | undefined
  /** The questions of the model. */
  readonly questions: ReadonlyArray<Pick<OfTag<"QuestionAsked">, "question" | "questionId">>
  /** The ids of the calls that need an approval. */
  readonly approvals: ReadonlyArray<string>
  readonly end: OfTag<"RunEnd"> | undefined
  /** The run and the session that an answer continues, for a run that waits. */
  readonly resume: OfTag<"RunEnd">["resume"]
}

export const initial: Outcome = {
  last: undefined,
  refusal: undefined,
  started: new Map(),
  refused: [],
  status: undefined,
  error: undefined,
  output: undefined,
  plan: undefined,
  questions: [],
  approvals: [],
  end: undefined,
  resume: undefined
}

/** The outcome of a run that waits for a person at its server. */
export const waiting = (outcome: Outcome, runId: string, sessionId: string | undefined): Outcome => ({
  ...outcome,
  status: "suspended",
  resume: { runId, ...(sessionId === undefined ? {} : { sessionId }) }
})

export const fold = (outcome: Outcome, event: AgentEvent): Outcome =>
  event.path === undefined ? ofRun(outcome, event) : ofCalls(outcome, event)

/** Folds an event of the run itself. */
const ofRun = (outcome: Outcome, event: AgentEvent): Outcome => {
  switch (event._tag) {
    case "MessageEnd":
      return event.message.role === "assistant" ? { ...outcome, last: event.message } : outcome
    case "ModelCallEnd":
      return { ...outcome, refusal: event.refusal }
    case "Output":
      return { ...outcome, output: { value: event.value } }
    case "QuestionAsked":
      return { ...outcome, questions: [...outcome.questions, event] }
    case "ApprovalRequested":
      return { ...outcome, approvals: [...outcome.approvals, event.approvalId] }
    case "RunEnd":
      return { ...outcome, status: event.status, error: event.error, end: event, resume: event.resume }
    default:
      return ofCalls(outcome, event)
  }
}

/** Folds an event of a tool call, of the run or of a run that a tool started. */
const ofCalls = (outcome: Outcome, event: AgentEvent): Outcome => {
  switch (event._tag) {
    case "ToolExecutionStart":
      return { ...outcome, started: new Map(outcome.started).set(event.toolCallId, event.params) }
    case "ToolExecutionEnd":
      return event.outcome === "rejected" || event.outcome === "blocked"
        ? { ...outcome, refused: [...outcome.refused, callOf(outcome, event)] }
        : { ...outcome, plan: PlanTool.answerIn(event) ?? outcome.plan }
    default:
      return outcome
  }
}

const callOf = ({ started }: Outcome, { toolCallId, toolName }: OfTag<"ToolExecutionEnd">): Call => ({
  toolName,
  params: started.get(toolCallId)
})

/** The typed output as JSON, else the plan, else the text of the last answer; `undefined` if it is empty. */
export const answerOf = ({ last, output, plan }: Outcome): string | undefined => {
  if (output !== undefined) return JSON.stringify(output.value)
  if (plan !== undefined) return plan
  const text = last === undefined ? "" : textOf(last).trim()
  return text === "" ? undefined : text
}

export interface Verdict {
  readonly code: number
  /** The explanation of a run without an answer. */
  readonly remark?: string
  /** The commands that answer and continue a suspended run. */
  readonly lines?: ReadonlyArray<string>
}

/** The advice of a verdict. */
export interface Advice {
  /** How to permit refused tools. Default: no advice. */
  readonly advise?: (refused: ReadonlyArray<Call>) => string
  /** The commands that answer and continue a suspended run. Default: none are named. */
  readonly commands?: Pasted
}

/** The exit code and the remark of a run. */
export const verdict = (outcome: Outcome, advice: Advice): Verdict => {
  switch (outcome.status) {
    case "completed":
    case "stopped":
    case "terminated":
      return ofAnswer(outcome, advice)
    case "incomplete":
      return { code: ExitCode.limit, remark: "Stopped at a limit. The answer may be incomplete." }
    case "suspended":
      return { code: ExitCode.suspended, ...ofResume(outcome, advice) }
    case "cancelled":
    case undefined:
      return { code: ExitCode.failed, remark: "Cancelled." }
    case "failed":
      return ofError(outcome.error)
  }
}

const ofResume = ({ approvals, questions, resume }: Outcome, { commands }: Advice): Omit<Verdict, "code"> => {
  const { runId, sessionId } = resume ?? {}
  if (runId === undefined || sessionId === undefined)
    return { remark: "Suspended: the run waits for a person, and no session keeps it." }
  const asked = questions
    .map(({ question }) => ` The model asks: ${JSON.stringify(Inert.line(question, 160))}`)
    .join("")
  const remark = `Suspended: session ${sessionId}, run ${runId}.${asked}`
  if (commands === undefined) return { remark }
  const { approve } = commands
  if (approve === undefined)
    return { remark: `${remark} Answer and continue:`, lines: [commands.resume(sessionId)] }
  const isOne = approvals.length + questions.length < 2
  const idOf = (id: string) => (isOne ? [] : [id])
  const approving = (id: string) => approve(runId, ...idOf(id), "--yes")
  const lines = [
    ...(approvals.length === 0 && questions.length === 0 ? [""] : approvals).map(approving),
    ...questions.map(({ questionId }) => approve(runId, ...idOf(questionId), "--answer", "TEXT"))
  ]
  const no = approvals.length === 0 && questions.length > 0 ? "" : ", with --yes or --no,"
  return { remark: `${remark} Answer${no} and continue:`, lines: [...lines, commands.resume(sessionId)] }
}

const ofAnswer = (outcome: Outcome, { advise = () => "" }: Advice): Verdict => {
  const { last, refused, status } = outcome
  if (last?.stopReason === "length") {
    return {
      code: ExitCode.failed,
      remark: "The answer was cut: the model reached its limit of output tokens."
    }
  }
  if (last?.stopReason === "contentFilter") {
    return { code: ExitCode.failed, remark: "The answer was cut by the provider's content filter." }
  }
  if (last?.stopReason === "refusal") return { code: ExitCode.refused, ...ofRefusal(outcome.refusal) }
  if (answerOf(outcome) !== undefined || status === "terminated") return { code: ExitCode.answered }
  const names = new Set(refused.map(({ toolName }) => toolName))
  return refused.length > 0
    ? { code: ExitCode.refused, remark: `Refused: ${[...names].join(", ")}. ${advise(refused)}` }
    : { code: ExitCode.failed, remark: "The model gave no answer. Ask again, or change the prompt." }
}

const ofRefusal = ({ category, explanation, recommendedModel }: Refusal = {}): Pick<Verdict, "remark"> => {
  const details = [
    ...(category === undefined ? [] : [`Its policy: ${category}.`]),
    ...(explanation === undefined ? [] : [explanation]),
    ...(recommendedModel === undefined ? [] : [`Its vendor recommends the model ${recommendedModel}.`])
  ]
  return details.length === 0
    ? {}
    : { remark: Inert.line(["The model refused to answer.", ...details].join(" ")) }
}

const ofError = (error: EventError | undefined): Verdict => ({
  code: error?._tag === "LimitExceeded" ? ExitCode.limit : ExitCode.failed,
  remark: error === undefined ? "The run failed." : explain(error)
})

// ───────────────────────── The last lines on stderr

/** The tokens, the cost and the session of a run, `undefined` if it has none of them. */
export const summary = ({ end }: Outcome, sessionId: string | undefined): string | undefined => {
  const usage = end?.usage
  const parts = [
    ...(usage === undefined || usage.total === 0
      ? []
      : [`${countOf(usage.input)} tokens read, ${countOf(usage.output)} written`]),
    ...(usage?.cost === undefined || usage.cost === 0 ? [] : [costOf(usage.cost)]),
    ...(sessionId === undefined ? [] : [`session ${sessionId.slice(0, 8)}`])
  ]
  return parts.length === 0 ? undefined : parts.join(" · ")
}

/** A sentence for each bound that the last model call of a run has passed: a bound only stops the next one. */
export const passedBounds = (
  { end }: Outcome,
  { maxCost, maxTokensTotal }: Pick<Settings, "maxCost" | "maxTokensTotal">
): ReadonlyArray<string> => {
  const { cost = 0, total = 0 } = end?.usage ?? {}
  const over = (bound: Option.Option<number>, value: number, text: string) =>
    Option.exists(bound, (most) => value > most)
      ? [`The run ${text}: the bound is checked before each model call, and the last one has passed it.`]
      : []
  return [
    ...over(maxCost, cost, `cost ${costOf(cost)}, more than --max-cost`),
    ...over(maxTokensTotal, total, `took ${total} tokens, more than --max-tokens-total`)
  ]
}

/** The number of calls that were refused, with the advice on them; `undefined` if none were, or there is no advice. */
export const refusedCalls = ({ refused }: Outcome, advice: string): string | undefined => {
  const count = refused.length
  return count === 0 || advice === ""
    ? undefined
    : `${count} ${count === 1 ? "call was" : "calls were"} refused. ${advice}`
}

/** `950`, `12.3k`, `1.2M`. */
const countOf = (tokens: number): string => {
  if (tokens < 1_000) return String(tokens)
  return tokens < 1_000_000
    ? `${Number((tokens / 1e3).toFixed(1))}k`
    : `${Number((tokens / 1e6).toFixed(1))}M`
}

const costOf = (usd: number): string => `$${usd.toFixed(usd < 1 ? 4 : 2)}`

// ───────────────────────── The commands that continue a run
//
// A person pastes them into the shell in which the program ran. They have the flags that they need there.

export interface Pasted {
  /** The command that records an answer; `undefined` where a run waits at a server, and the next command answers it. */
  readonly approve?: (...words: ReadonlyArray<string>) => string
  /** The command that continues a session. */
  readonly resume: (sessionId: string) => string
}

/** The settings that are about one prompt, those that the session knows, and those of the place of the sessions. */
const left: ReadonlySet<string> = new Set([
  "file",
  "inputFormat",
  "print",
  "outputFormat",
  "json",
  "output",
  "continue",
  "resume",
  "fork",
  "noSession",
  "name",
  "cwd",
  "store",
  "sessionDir"
])

/** The commands for a session of a place. The flags of a run apply to the run that continues it too. */
export const pasted = (place: Picked<unknown>, picks: Partial<Picks> = {}): Pasted => {
  // The configuration of the user counts in each folder.
  const placed = typed(place, ({ kind }) => kind !== "user").map(Values.withoutPassword)
  const flags = Object.values(picks).flatMap((pick) =>
    left.has(pick.key) ? [] : typed(pick, ({ kind }) => kind === "flag")
  )
  return {
    approve: (...words) => commandLine(["approve", ...words, ...placed]),
    resume: (sessionId) => commandLine(["--resume", sessionId, ...placed, ...flags])
  }
}

/** The command for a session of a server. */
export const pastedOfServer = (url: string): Pasted => ({
  resume: (sessionId) => commandLine(["--url", url, "--resume", sessionId])
})

/** The flag of a value as a person types it. */
const typed = ({ found, key }: Picked<unknown>, isWanted: (from: From) => boolean): ReadonlyArray<string> =>
  Option.match(
    Option.filter(found, ({ from }) => isWanted(from)),
    {
      onNone: () => [],
      onSome: ({ texts, value }) => {
        if (typeof value === "boolean") return [value ? flagOf(key) : `${flagOf(key)}=false`]
        return texts.flatMap((text) => [flagOf(key), text])
      }
    }
  )

const commandLine = (words: ReadonlyArray<string>): string => ["effect-agent", ...words.map(quoted)].join(" ")

/** A word that the shell reads as it is. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

// ───────────────────────── Failures

/** One line, unless the message of a provider has more. The caller joins the lines. */
export const explain = (error: EventError): string => {
  switch (error._tag) {
    case "ProviderError":
      return ofProvider(error)
    case "LimitExceeded":
      return ofLimit(error)
    case "Defect":
      return `This is a bug: ${error.message}. --verbose shows where.`
    default:
      return error.message
  }
}

/** The failure of a try that another one follows. The next one needs no advice, unless it goes to another model. */
export const beforeRetry = (error: EventError): string =>
  error._tag === "ProviderError" && error.isRetryable ? withoutStop(inShort(error)) : explain(error)

const inShort = ({ provider, reason }: ProviderError): string =>
  `${provider}: ${reason._tag}${reason.detail === "" ? "" : `: ${reason.detail}`}`

/** The message, with the advice of the program in place of that for developers. */
const ofProvider = (error: ProviderError): string => {
  const { earlier, message } = error
  const advice = adviceOn(error)
  if (advice === "") return `${withoutStop(message)}.`
  const before = earlier === undefined ? [] : [`Before: ${earlier.join(" | ")}`]
  return [`${withoutStop(inShort(error))}.`, advice, ...before].join(" ")
}

/**
 * Removes full stops and white space at the end. A regular expression for that takes quadratic time on a long
 * run of spaces.
 */
const withoutStop = (message: string): string => {
  let trimmed = message.trimEnd()
  while (trimmed.endsWith(".")) trimmed = trimmed.slice(0, -1).trimEnd()
  return trimmed
}

const adviceOn = ({ isRetryable, provider, reason, retryAfter }: ProviderError): string => {
  // The message says it.
  if (retryAfter !== undefined && Duration.toMillis(retryAfter) >= 60_000) return ""
  switch (reason._tag) {
    case "Unauthenticated":
      return `Check ${keyNameOf(provider)}.`
    case "Forbidden":
      return "The key may not use this model."
    case "QuotaExceeded":
      return "Check the account's credit."
    case "NotFound":
      return `${listing(provider)}${
        provider === "openai"
          ? "Name another model, or openai-chat/ID for a server that speaks only Chat Completions."
          : "Name another model with --model provider/id."
      }`
    case "ModelNotSupported":
      return "Name another model with --model provider/id."
    case "ContextOverflow":
      return "Send less text at once, or name a model with a larger context."
    case "StreamStalled":
      return "Try again, or name another model."
    case "Transport":
      if (reason.kind !== "refused" && reason.kind !== "dns") return "Try again."
      return servers.some(({ id }) => id === provider)
        ? `${capitalized(startOf(provider))}, or give its address with --base-url.`
        : "Check the address and the network."
    default:
      return isRetryable ? "Try again in a while." : ""
  }
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A vendor may have turned off a model that the program knows, even the one that it chose. */
const listing = (provider: string): string =>
  companies.some(({ id }) => id === provider)
    ? `"effect-agent models ${provider}" lists those that are known, the site of ${provider} those that it has. `
    : ""

const keyNameOf = (provider: string): string =>
  companies.find(({ id }) => id === provider)?.keyNames.join(" or ") ?? "the key"

const ofLimit = (error: LimitExceeded): string => {
  switch (error.limit) {
    case "maxTurns":
      return `Stopped after ${error.max} ${error.max === 1 ? "turn" : "turns"}. To go further give a higher --max-turns.`
    case "executionTime":
      return `Stopped after ${error.max / 1000} ${error.max === 1000 ? "second" : "seconds"}, by --timeout.`
    case "maxIdenticalToolCalls":
      return `Stopped: the model made the same tool calls ${error.value} times, with the same results.`
    default:
      return `${error.message}.`
  }
}
