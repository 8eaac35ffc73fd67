/**
 * An entry of a log that another process sent.
 */
import type { AgentEvent } from "../../AgentEvent.ts"
import * as EventText from "../../runs/EventText.ts"
import type { Entry } from "../../runs/LogEntry.ts"

/** The part of an entry that processes send. */
export interface Sent {
  readonly position: number
  readonly tag: string
  readonly frame: string
}

export class WireEntry implements Entry {
  readonly position: number
  readonly tag: string
  readonly frame: string

  constructor({ frame, position, tag }: Sent) {
    this.position = position
    this.tag = tag
    this.frame = frame
  }

  get event(): AgentEvent | undefined {
    return EventText.ofFrame(this.frame)
  }
}
