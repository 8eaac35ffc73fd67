/**
 * Whether a run stands still until a person acts: all of its calls, and those of the runs inside, wait for an answer, or it is paused.
 */
import type { AgentEvent } from "../AgentEvent.ts"
import * as Asking from "../ui/Asking.ts"

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
