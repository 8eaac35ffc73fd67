/**
 * The input of a run: its messages, options and queues, and the data by which it continues an earlier run.
 */
import type { ByHand, Compactions } from "./compactions.ts"
import type { Interrupted, OpenCall, OpenTurn, Suspended } from "./openTurn.ts"
import type { Message } from "../Message.ts"
import type { Output } from "./output.ts"
import type { Retries } from "./attempts.ts"
import type { QueueName, Queues } from "./queues.ts"
import type { Requests } from "./requests.ts"
import type { RunOptions } from "../RunOptions.ts"
import type { Team } from "./team.ts"

/** The start of a run, and the changes to it between turns. */
export interface RunSpec {
  /** The id of the run. Default: a new one. */
  readonly runId?: string | undefined
  readonly prompts: ReadonlyArray<Message>
  /** The transcript so far, an immutable list. */
  readonly messages: ReadonlyArray<Message>
  /** The compactions of the transcript so far. The run adds its own. */
  readonly compactions: Compactions
  /** The call of `agent.compact` that the run carries out in place of turns. Default: the run takes turns. */
  readonly byHand?: ByHand
  readonly options: RunOptions
  readonly continued: boolean
  /** Whether the run polls for steering before its first request. */
  readonly pollFirst: boolean
  readonly queues: Queues
  /** The agents that the conversation may be handed off to. Default: one agent, with the tools and hooks of the run's services. */
  readonly team?: Team
  /** The output that the model must give. Default: the run ends with any answer. */
  readonly output?: Output<unknown> | undefined
  /** The retries of turns that fail. Default: the first failure fails the run. */
  readonly retry?: Retries | undefined
  /** The turn that an earlier run left open, which is the first of this run. Default: the run asks the model first. */
  readonly open?: OpenTurn | undefined
  /** The calls that were left in the background by earlier runs, or by this run before its process ended. Default: none. */
  readonly background?: ReadonlyArray<OpenCall>
  /** The run that this one continues under the same id after a crash. Default: the run is new. */
  readonly interrupted?: Interrupted | undefined
  /** The sub-agents that ended suspended because they wait for a person, by the ids of their calls. Default: none. */
  readonly inner?: Map<string, Suspended> | undefined
  /** The open requests of the agent. Default: no agent can answer them. */
  readonly requests?: Requests | undefined
  /** The queue that the prompts came from; absent for prompts of the application. */
  readonly promptsFrom?: QueueName
  /** Returns the changes that the application made since the last turn. The run calls it before each turn. */
  readonly nextTurn: () =>
    | {
        readonly options?: Partial<RunOptions>
        /** The names of the options to unset before `options` are applied. */
        readonly unset?: ReadonlyArray<string>
        readonly messages?: ReadonlyArray<Message>
      }
    | undefined
}
