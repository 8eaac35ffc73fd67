/**
 * The state of a run, as its events show it.
 */
import * as Struct from "effect/Struct"
import type { AgentEvent, OfTag } from "../../AgentEvent.ts"
import * as Payload from "../../api/Payload.ts"
import type * as Approval from "../../Approval.ts"
import * as Usage from "../../Usage.ts"
import * as Asking from "../../ui/Asking.ts"

/** The decision about an approval, and the hash that it is about. */
export interface Decision {
  readonly decision: Approval.Answer["decision"]
  readonly argumentsHash: string
}

export class RunState {
  private status: Payload.Run["status"] = "queued"
  private usage: Usage.Usage = Usage.zero
  private turns = 0
  private error: Payload.Run["error"]
  private standstill = new Standstill()
  private readonly asked = new Set<string>()
  private readonly hashes = new Map<string, string>()
  /** The approvals that have an answer. */
  readonly decisions = new Map<string, Decision>()
  /** The answers of questions. */
  readonly answers = new Map<string, Approval.QuestionAnswer>()
  /** The run whose open turn this one began with. */
  resumes: string | undefined

  get isOver(): boolean {
    return !Payload.isGoing({ status: this.status })
  }

  get isPaused(): boolean {
    return this.status === "paused"
  }

  get isSuspended(): boolean {
    return this.status === "suspended"
  }

  /** Whether the run has begun, and does nothing before a person answers or resumes it. */
  get isWaiting(): boolean {
    return !this.isOver && this.standstill.isWaiting
  }

  /** Whether it can do so without a process. */
  get canRest(): boolean {
    return !this.isOver && this.standstill.canRest
  }

  /** The run as the API shows it. */
  of(runId: string, sessionId: string, created: number): Payload.Run {
    const { error, status, turns, usage } = this
    const { approvals, questions } = this.standstill.asking
    const pending = {
      approvals: [...approvals.values()].map(requestOf),
      questions: [...questions.values()].map(questionOf)
    }
    const failure = error === undefined ? {} : { error }
    return { runId, sessionId, status, created, usage, turns, pending, ...failure }
  }

  /** Forgets the requests that another run has taken over. */
  handOver(): void {
    this.standstill = new Standstill()
  }

  readonly add = (event: AgentEvent): void => {
    this.standstill.add(event)
    this.addAnswer(event)
    if (event.path !== undefined) return
    switch (event._tag) {
      case "RunStart":
        this.resumes = event.resumes
        this.status = "running"
        break
      case "RunPaused":
        this.status = "paused"
        break
      case "RunResumed":
        this.status = "running"
        break
      case "TurnStart":
        this.turns = event.turn ?? this.turns + 1
        break
      case "TurnEnd":
        this.usage = Usage.add(this.usage, event.usage)
        break
      case "RunEnd":
        this.end(event)
    }
  }

  private end({ error, status, turns, usage }: OfTag<"RunEnd">): void {
    this.status = status
    this.usage = usage
    this.turns = turns
    this.error = error
    if (status !== "suspended") this.handOver()
  }

  /** Whether the run, or one inside of it, has made a request. */
  hasAsked(requestId: string): boolean {
    return this.asked.has(requestId)
  }

  private addAnswer(event: AgentEvent): void {
    switch (event._tag) {
      case "QuestionAsked":
        this.asked.add(event.questionId)
        break
      case "ApprovalRequested":
        this.asked.add(event.approvalId)
        this.hashes.set(event.approvalId, event.argumentsHash)
        break
      case "ApprovalAnswered": {
        const { approvalId, decision } = event
        this.decisions.set(approvalId, { decision, argumentsHash: this.hashes.get(approvalId) ?? "" })
        break
      }
      case "QuestionAnswered":
        this.answers.set(event.questionId, event)
    }
  }
}

const ofEvent = ["_tag", "parent", "seq", "timestamp", "turn"] as const
const requestOf = (event: OfTag<"ApprovalRequested">) => Struct.omit(event, ofEvent)
const questionOf = (event: OfTag<"QuestionAsked">) => Struct.omit(event, ofEvent)

// ───────────────────────── Standstill
//
// A run stands still until a person acts where all of its calls, and those of the runs inside, wait for an answer, or it is paused.

export class Standstill {
  /** The open requests and runs. */
  asking = Asking.nothing
  /** The calls whose tool has begun and not ended. */
  private readonly begun = new Set<string>()
  /** The runs that are paused. */
  private readonly paused = new Set<string>()

  add(event: AgentEvent): void {
    this.asking = Asking.step(this.asking, event)
    switch (event._tag) {
      case "ToolInvoked":
        this.begun.add(keyOf(event.runId, event.toolCallId))
        break
      case "ToolExecutionEnd":
        this.begun.delete(keyOf(event.runId, event.toolCallId))
        break
      case "RunPaused":
        this.paused.add(event.runId)
        break
      case "RunResumed":
      case "RunEnd":
        this.paused.delete(event.runId)
    }
  }

  /** Whether the run can wait without a process: no tool has begun whose call waits for an answer, and no request expires. */
  get canRest(): boolean {
    const stays = ({ expiresAt, runId, toolCallId }: ReturnType<typeof Asking.requests>[number]) =>
      expiresAt === undefined && !this.begun.has(keyOf(runId, toolCallId))
    return this.isWaiting && Asking.requests(this.asking).every(stays)
  }

  get isWaiting(): boolean {
    const { asking, begun, paused } = this
    const requests = Asking.requests(asking)
    if (requests.length + paused.size === 0) return false
    const waiting = new Set(requests.map(({ runId, toolCallId }) => keyOf(runId, toolCallId)))
    for (const { parent } of asking.runs.values())
      if (parent !== undefined) waiting.add(keyOf(parent.runId, parent.toolCallId))
    return [...asking.runs].every(([runId, run]) => {
      const others = Asking.callsOf(run)
        .map((id) => keyOf(runId, id))
        .filter((key) => !waiting.has(key))
      return paused.has(runId)
        ? !others.some((key) => begun.has(key))
        : Asking.isHeld(run) && others.length === 0
    })
  }
}

const keyOf = (runId: string, toolCallId: string): string => `${runId} ${toolCallId}`

// ───────────────────────── Starts
//
// The starts of a run by processes that drive it, and the run that they bring no further.

/** The starts of a run since its last progress. */
export interface Starts {
  readonly attempts: number
  /** The reason for which no process starts the run, in words. */
  readonly parked: string | undefined
  /** Whether the run waits for a person, and its process has let go of it. */
  readonly isResting: boolean
}

/** A run that was not started, or that has made progress. */
export const noStarts: Starts = { attempts: 0, parked: undefined, isResting: false }

/** The starts that bring a run no further, after which it is parked. */
export const mostStarts = 5

export const parkedCause = `The run was started ${mostStarts} times without completing a turn: each time its process ended or lost the run.`

/** The starts with one more. A run that has had the most of them is parked. */
export const nextStarts = ({ attempts, parked }: Starts): Starts => {
  const isResting = false
  if (parked !== undefined) return { attempts, parked, isResting }
  return attempts < mostStarts
    ? { attempts: attempts + 1, parked, isResting }
    : { attempts, parked: parkedCause, isResting }
}

/** The starts of a run that has come to a rest. */
export const restingStarts = (starts: Starts): Starts => ({ ...starts, attempts: 0, isResting: true })

// ───────────────────────── The order of a list of runs
//
// The newest runs of a store that keeps them in memory.

/** The place of a run in the list. */
interface Place {
  readonly runId: string
  readonly created: number
}

/** A page of runs, the newest first. */
export const newestPage = <Run extends Place & { readonly ended: number | undefined }>(
  runs: ReadonlyArray<Run>,
  {
    before,
    isUnended = false,
    limit
  }: { readonly before?: Place; readonly isUnended?: boolean; readonly limit: number }
): ReadonlyArray<Run> =>
  runs
    .filter(
      (run) => !(isUnended && run.ended !== undefined) && (before === undefined || byAge(before, run) < 0)
    )
    .toSorted(byAge)
    .slice(0, limit)

const byAge = (one: Place, other: Place): number =>
  other.created - one.created || (one.runId < other.runId ? 1 : one.runId > other.runId ? -1 : 0)
