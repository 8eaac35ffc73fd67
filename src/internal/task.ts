/**
 * The task of a run.
 */
import type { ByHand, Compactions } from "./compactions.ts"
import type { Interrupted, OpenCall, OpenTurn, Suspended } from "./openTurn.ts"
import type { Message } from "../Message.ts"
import type { Output } from "./output.ts"
import type { Patience } from "./attempts.ts"
import type { QueueName, Queues } from "./queues.ts"
import type { Requests } from "./requests.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { Team } from "./team.ts"

/** The start of a run, and the changes to it between turns. */
export interface Task {
  /** The id of the run. Default: a new one. */
  readonly runId?: string | undefined
  readonly prompts: ReadonlyArray<Message>
  /** The transcript so far. Never changed. */
  readonly messages: ReadonlyArray<Message>
  /** The compactions of the transcript so far. The run adds its own. */
  readonly compactions: Compactions
  /** The compaction by hand that is the whole run. Default: it takes turns. */
  readonly byHand?: ByHand
  readonly options: RunOptions
  readonly continued: boolean
  /** Whether steering is polled after the prompts. */
  readonly pollFirst: boolean
  readonly queues: Queues
  /** The agents that the run may continue with. Default: one, with the tools and hooks of its services. */
  readonly team?: Team
  /** The output that the model must give. Default: the run ends with any answer. */
  readonly output?: Output<unknown> | undefined
  /** The retries of turns that fail. Default: the first failure fails the run. */
  readonly retry?: Patience | undefined
  /** The turn that an earlier run left open, which is the first of this run. Default: the run asks the model first. */
  readonly open?: OpenTurn | undefined
  /** The calls that earlier runs, or this one before its process ended, left in the background. Default: none. */
  readonly background?: ReadonlyArray<OpenCall>
  /** The run that this one continues, under its id. Default: the run begins. */
  readonly interrupted?: Interrupted | undefined
  /** The agents inside of calls that wait for a person. Default: none. */
  readonly inner?: Map<string, Suspended> | undefined
  /** The open requests of the agent. Default: no agent can answer them. */
  readonly requests?: Requests | undefined
  /** The queue the prompts were taken from, if they were. */
  readonly promptsFrom?: QueueName
  /** Called before each turn: the application's changes since the last one. */
  readonly nextTurn: () =>
    | {
        readonly options?: Partial<RunOptions>
        /** The names of options that are unset, before `options` count. */
        readonly unset?: ReadonlyArray<string>
        readonly messages?: ReadonlyArray<Message>
      }
    | undefined
}
