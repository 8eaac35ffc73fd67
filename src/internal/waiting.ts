/**
 * The person that a run or an agent waits for: the policy of a run, the time that stands still meanwhile, the turn that stays open with
 * its requests, and how the calls of that turn end when no run resumes it. A call whose process ended while its tool ran has an end that is
 * not known: a question to a person says what it was.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Approval from "../Approval.ts"
import type { CannotAnswer } from "./errors.ts"
import type { Journal } from "./journal.ts"
import { Stopwatch } from "./limits.ts"
import * as Message from "../Message.ts"
import type {
  Answer,
  Interrupted,
  OpenCall,
  OpenTurn,
  Question,
  QuestionAnswer,
  QuestionReply,
  Reply,
  Suspended
} from "./openTurn.ts"
import { Requests } from "./requests.ts"
import type { RecordedEvent } from "../Session.ts"
import type { RunSpec } from "./runSpec.ts"
import * as Tool from "../Tool.ts"
import * as ToolOutcome from "./toolOutcome.ts"
import type { ToolRegistry } from "../ToolRegistry.ts"

/** The run around a run that starts in a tool or in a hook. */
interface OuterRun {
  readonly id: string
  readonly waiting: Waiting
}

export class Waiting {
  readonly policy: Approval.Policy
  /** Whether the run is inside of another one that could not resume it. */
  readonly isInner: boolean
  /** The open requests of the outermost agent; `undefined` without an agent. */
  readonly requests: Requests | undefined
  /** The time of the run that counts for the limit on it. */
  readonly stopwatch: Stopwatch
  /** The turn that an earlier run left open, and later the one that this run leaves open. */
  turn: OpenTurn | undefined
  /** The stopwatch of each tool call in flight, by the id of the call. */
  private readonly stopwatches = new Map<string, Stopwatch>()
  private readonly clock: Clock.Clock

  /** Whether an agent resumes the run, and with it those inside of its calls. */
  private readonly isResumable: boolean
  /** The agents inside of calls that wait for a person, by the ids of the calls. The next run of the agent has them too. */
  readonly inner: Map<string, Suspended>

  /** `parent`: the outer run, if this one belongs to a call of it that can wait. */
  constructor(
    spec: RunSpec,
    outer: OuterRun | undefined,
    context: Context.Context<never>,
    parent: OuterRun | undefined
  ) {
    const caller = Context.getOrUndefined(context, Tool.ToolContext)
    const call = caller?.runId === outer?.id ? caller?.toolCallId : undefined
    this.clock = Context.get(context, Clock.Clock)
    this.policy = Context.get(context, Approval.Approval)
    this.isInner = outer !== undefined && parent?.waiting.isResumable !== true
    this.isResumable = !this.isInner && spec.inner !== undefined
    this.inner = spec.inner ?? new Map()
    this.requests = outer === undefined ? spec.requests : outer.waiting.requests
    const { countedMs, durationMs } = spec.interrupted ?? {}
    this.stopwatch = new Stopwatch(this.clock, outer?.waiting.stopwatchOf(call), durationMs, countedMs)
    this.turn = spec.open
  }

  /** Whether a person can answer. A run that a tool started cannot defer if the run around it could not resume it. */
  get hasPerson(): boolean {
    const { asked } = this.policy
    return asked !== "deny" && !(asked === "defer" && this.isInner)
  }

  /** Whether calls wait for their answers beyond the end of the run. */
  get defers(): boolean {
    const { asked } = this.policy
    return asked === "defer" || (asked === "wait" && this.requests === undefined)
  }

  /** Begins to count the time of a tool call. */
  startCall(toolCallId: string): Stopwatch {
    const stopwatch = new Stopwatch(this.clock, this.stopwatch)
    this.stopwatches.set(toolCallId, stopwatch)
    return stopwatch
  }

  endCall(toolCallId: string): void {
    this.stopwatches.delete(toolCallId)
  }

  /** The stopwatch of a tool call in flight, else that of the run. */
  stopwatchOf(toolCallId = ""): Stopwatch {
    return this.stopwatches.get(toolCallId) ?? this.stopwatch
  }
}

// ───────────────────────── The open turn of an agent

export class OpenTurns {
  /** The open requests of the agent, and of the runs inside its runs. */
  readonly requests = new Requests()
  /** The agents inside of its calls. */
  readonly inner = new Map<string, Suspended>()
  /** The turn that waits for a person, or that the last process left open. */
  current: OpenTurn | undefined
  /** The calls in the background whose ends the next run reports. */
  background: ReadonlyArray<OpenCall> = []
  /** The run that the next one continues, unless it begins with a prompt. */
  interrupted: Interrupted | undefined
  private readonly registry: () => ToolRegistry["Service"]
  private readonly record: (event: RecordedEvent) => Effect.Effect<void>

  /** `record` writes an event to the session. */
  constructor(
    registry: () => ToolRegistry["Service"],
    record: (event: RecordedEvent) => Effect.Effect<void>
  ) {
    this.registry = registry
    this.record = record
  }

  /** Gives an answer, and writes the first one: a crash after that does not lose it. */
  answer(id: string, reply: Reply | QuestionReply): Effect.Effect<Answer | QuestionAnswer, CannotAnswer> {
    return this.requests.answer(id, reply, (event, { runId }) =>
      Effect.clockWith((clock) =>
        this.record({ ...event, runId, seq: 0, timestamp: clock.currentTimeMillisUnsafe() })
      )
    )
  }

  /** Takes the interrupted run, which is lost if the run that begins is another one. */
  take(continued: Interrupted | undefined, journal: Journal | undefined): Effect.Effect<void> {
    const { interrupted } = this
    this.interrupted = undefined
    return (continued === undefined && journal?.lose(interrupted?.runId)) || Effect.void
  }

  /** Keeps a turn for the run that resumes it, in place of the one before. */
  keep(turn: OpenTurn | undefined): void {
    if (turn === undefined && this.current !== undefined)
      this.withdraw({ open: this.current, inner: this.inner })
    if (turn === undefined) this.inner.clear()
    if (turn === undefined) this.background = []
    if (turn !== undefined) this.requests.restore(turn, this.registry())
    this.current = turn
  }

  /** The agent as `reopen` of another one takes it, if its last run ended suspended. */
  suspended(messages: ReadonlyArray<Message.Message>): Suspended | undefined {
    const { current: open, inner } = this
    return open && { messages, open, inner }
  }

  /** Takes the turn of an agent whose last run ended suspended. */
  reopen({ inner, open }: Suspended): void {
    for (const [toolCallId, suspended] of inner) this.inner.set(toolCallId, suspended)
    this.keep(open)
  }

  private withdraw({ inner, open }: Omit<Suspended, "messages">): void {
    for (const { request } of [...open.approvals, ...open.questions]) this.requests.withdraw(request)
    for (const suspended of inner.values()) this.withdraw(suspended)
  }

  /** Forgets the turn, which no run resumes. Returns the results of its calls. */
  close(messages: ReadonlyArray<Message.Message>, now: number): ReadonlyArray<Message.ToolResult> {
    if (this.current === undefined) return []
    const results = closing(this.requests.restore(this.current, this.registry()), messages, now)
    this.keep(undefined)
    return results
  }
}

// ───────────────────────── How a turn ends that no run resumes

/** The results of an answer that are in the transcript. */
export const answered = (
  { id }: Message.Assistant,
  messages: ReadonlyArray<Message.Message>
): ReadonlyArray<Message.ToolResult> =>
  messages
    .slice(messages.findLastIndex((message) => message.id === id) + 1)
    .filter((message) => message.role === "toolResult")

/** The calls of an open turn that have no result in the transcript. */
export const unanswered = (
  { message }: OpenTurn,
  messages: ReadonlyArray<Message.Message>
): ReadonlyArray<Message.ToolCall> => {
  const ids = new Set(answered(message, messages).map(({ toolCallId }) => toolCallId))
  return Message.toolCalls(message).filter(({ id }) => !ids.has(id))
}

/** Results for the calls of a turn that no run resumes, in their order. Those that had ended keep their own. */
export const closing = (
  open: OpenTurn,
  messages: ReadonlyArray<Message.Message>,
  timestamp: number
): ReadonlyArray<Message.ToolResult> =>
  unanswered(open, messages).map((call) => ToolOutcome.result(call, endOf(open, call), timestamp))

const endOf = (open: OpenTurn, call: Message.ToolCall) => {
  const isOfCall = ({ request }: { readonly request: { readonly toolCallId: string } }) =>
    request.toolCallId === call.id
  const ended = open.ended.find(({ toolCallId }) => toolCallId === call.id)
  if (ended !== undefined) return ended
  const lost = open.questions.find((open) => isOfCall(open) && open.request.about !== undefined)
  if (lost !== undefined) return (lost.answer && endBy(call, lost.answer)) ?? ToolOutcome.unknown(call)
  if (open.begun.includes(call.id)) return open.isSuspended ? stopped(call) : ToolOutcome.unknown(call)
  const [approval] = open.approvals.filter(isOfCall)
  const [question] = open.questions.filter(isOfCall)
  const refused = refusalOf(approval, noApproval) ?? refusalOf(question, noAnswer)
  if (refused !== undefined) return refused
  return open.isSuspended
    ? ToolOutcome.error("aborted", "Not run: the user wrote a message first.")
    : ToolOutcome.notBegun
}

/** The outcome of a call by the answer to a request about it; `undefined` if there is no request, or the answer lets the call run. */
const refusalOf = (
  asked: { readonly answer?: Answer | QuestionAnswer } | undefined,
  withoutAnswer: string
): ToolOutcome.Outcome | undefined => {
  if (asked === undefined) return undefined
  return asked.answer === undefined ? ToolOutcome.rejected(withoutAnswer) : ToolOutcome.refused(asked.answer)
}

/** The outcome of a call whose agent inside waited for a person. */
const stopped = ({ name }: Message.ToolCall) =>
  ToolOutcome.error(
    "aborted",
    `Tool ${name} waited for a person, and the user wrote a message first. It may have had effects: check before you call it again.`
  )

/** The reasons for the model where a person wrote a message in place of an answer. */
export const noApproval = "the user wrote a message and did not approve this call"
export const noAnswer = "the user wrote a message and did not answer this question"

// ───────────────────────── Calls whose end is not known

/** The most characters of the params that the question shows. */
const maxParams = 300

/** The question about a call with these params. */
export const questionOf = (
  { name }: Message.ToolCall,
  params: Schema.Json
): Pick<Question, "about" | "question" | "schema"> => {
  const text = JSON.stringify(params)
  const shown = text.length > maxParams ? `${text.slice(0, maxParams)}…` : text
  const question = `The process ended while tool ${name} ran with ${shown}, and its end is not known. Did the call happen?`
  return { about: "unknownEnd", question, schema: unknownEndSchema }
}

const unknownEndSchema: Schema.Json = {
  type: "object",
  properties: {
    decision: {
      type: "string",
      enum: ["again", "done", "unknown"],
      description:
        "again: run the call again, with its idempotency key. done: it happened. unknown: tell the model that its end is not known"
    },
    result: { type: "string", description: "For done: the result that the model reads" }
  },
  required: ["decision"],
  additionalProperties: false
}

const decodeDecision = Schema.decodeUnknownOption(
  Schema.Struct({ decision: Schema.String, result: Schema.optionalKey(Schema.String) })
)

const noDecision: { readonly decision: string; readonly result?: string } = { decision: "unknown" }

/** The outcome of a call by the answer; `undefined` if it is to run again. */
export const endBy = (
  call: Message.ToolCall,
  { answer, declined }: QuestionAnswer
): ToolOutcome.Outcome | undefined => {
  const { decision, result = "Done: a person says that the call happened." } = Option.getOrElse(
    decodeDecision(declined === true ? undefined : answer),
    () => noDecision
  )
  if (decision === "again") return undefined
  return decision === "done" ? ToolOutcome.make("success", Tool.render(result)) : ToolOutcome.unknown(call)
}
