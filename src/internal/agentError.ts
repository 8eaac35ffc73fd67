/**
 * The errors of an agent that is busy, closed or not paused.
 */
import { TaggedError } from "./taggedError.ts"

/**
 * The agent has a run already, and an agent has one run at a time.
 *
 * **When to use**
 *
 * Catch it to add a message to the current run with `steer` or `followUp`, or wait until the agent is idle.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentBusy extends TaggedError<AgentBusy>()("AgentBusy", {}) {
  override get message(): string {
    return "The agent is already processing a prompt. Use steer or followUp, or wait until it is idle."
  }
}

/**
 * The scope of the agent is closed, so that it takes no run.
 *
 * @category errors
 * @since 0.2.0
 */
export class AgentClosed extends TaggedError<AgentClosed>()("AgentClosed", {}) {
  override get message(): string {
    return "The agent is closed. Await its runs before you close it or its scope, or make a new agent."
  }
}

/**
 * `resume` found no paused run.
 *
 * @category errors
 * @since 0.2.0
 */
export class NotPaused extends TaggedError<NotPaused>()("NotPaused", {}) {
  override get message(): string {
    return "No run is paused. To start a new run without a prompt, use continue."
  }
}
