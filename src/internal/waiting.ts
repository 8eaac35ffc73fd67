/**
 * The requests of a run to a person: its policy, the open turn, and the time that stands still meanwhile.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Approval from "../Approval.ts"
import type { OpenTurn, Suspended } from "./openTurn.ts"
import type { Requests } from "./requests.ts"
import { Stopwatch } from "./limits.ts"
import type { Task } from "./task.ts"
import { ToolContext } from "./toolContext.ts"

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
    task: Task,
    outer: OuterRun | undefined,
    context: Context.Context<never>,
    parent: OuterRun | undefined
  ) {
    const caller = Context.getOrUndefined(context, ToolContext)
    const call = caller?.runId === outer?.id ? caller?.toolCallId : undefined
    this.clock = Context.get(context, Clock.Clock)
    this.policy = Context.get(context, Approval.Approval)
    this.isInner = outer !== undefined && parent?.waiting.isResumable !== true
    this.isResumable = !this.isInner && task.inner !== undefined
    this.inner = task.inner ?? new Map()
    this.requests = outer === undefined ? task.requests : outer.waiting.requests
    const { countedMs, durationMs } = task.interrupted ?? {}
    this.stopwatch = new Stopwatch(this.clock, outer?.waiting.stopwatchOf(call), durationMs, countedMs)
    this.turn = task.open
  }

  /** Whether a person can answer. A run that a tool started cannot defer if the run around it could not resume it. */
  get hasPerson(): boolean {
    const { asked } = this.policy
    return asked !== "deny" && !(asked === "defer" && this.isInner)
  }

  /** Keeps a turn that waits for a person, or forgets the one that has its results. */
  leaveOpen(turn: OpenTurn | undefined): void {
    this.turn = turn
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
