/**
 * An agent at a server, by the names of `Agent`: its prompts run there, and its state is folded from their events here.
 *
 * **Details**
 *
 * The interface leaves out what lies in the process of the server: tools, hooks, options of later turns and the queues.
 *
 * @since 0.2.0
 */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { NotPaused, SteerOptions, Subscribable } from "../Agent.ts"
import type { AgentEvent, View } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"
import type * as Problem from "../api/Problem.ts"
import type * as Approval from "../Approval.ts"
import type { InvalidContinuation } from "../internal/continuation.ts"
import type * as Message from "../Message.ts"
import type { RunResult } from "../Run.ts"
import type { CannotBegin, NoRun, Refused, RunError } from "./ClientError.ts"

/**
 * The options of one prompt.
 *
 * @category options
 * @since 0.2.0
 */
export interface PromptOptions extends Payload.Options {
  /** The treatment of the prompt while the session has a run. Default: it fails with `RunGoesOn`. */
  readonly when?: Payload.When
  /**
   * The id of a message that the prompt replaces: the conversation continues before it, and the server keeps that message and those behind
   * it. Fails with `MessageNotFound` if the conversation does not have it, and with `RunGoesOn` while the session has a run. Default: none,
   * the prompt is the next message.
   */
  readonly replaces?: Message.MessageId
  /**
   * The idempotency key, with which the server starts the run at most once in 24 hours. Default: a new one, so that a request that got no
   * response is sent again.
   */
  readonly key?: string
  /** Whether interrupting `prompt`, or leaving `stream`, cancels the run that it began. Default `true`. */
  readonly cancelOnInterrupt?: boolean
}

/**
 * A run that a client started.
 *
 * @category models
 * @since 0.2.0
 */
export interface RemoteRun {
  /** The id of the run. */
  readonly runId: string
  /** The start of the run: it has begun, waits for the run before it, or the prompt joined one. */
  readonly status: "started" | "queued" | "joined"
  /** The result of the run, or its failure. Interrupting it does not cancel the run. */
  readonly result: Effect.Effect<RunResult, RunError>
  /** Cancels the run, and does not wait for its end. Does nothing if the run is over. */
  readonly cancel: (reason?: string) => Effect.Effect<void, Refused | Problem.RunNotFound>
}

/**
 * The errors of an answer.
 *
 * @category errors
 * @since 0.2.0
 */
export type CannotAnswer =
  | Refused
  | Problem.RunNotFound
  | Problem.RunNotReady
  | Problem.CannotAnswer
  | Problem.SessionLocked
  | Problem.SessionNotFound
  | Problem.Draining

/**
 * The errors of a request about a session.
 *
 * @category errors
 * @since 0.2.0
 */
export type ToSession = Refused | Problem.SessionNotFound
/**
 * The errors of a request to the run of a session.
 *
 * @category errors
 * @since 0.2.0
 */
export type ToRun = ToSession | Problem.RunNotFound | Problem.RunOver | Problem.RunNotReady

/**
 * An agent at a server.
 *
 * **Details**
 *
 * A result is made of the events of its run. It has no `compaction`, and its `undelivered` is empty: both stay with the session.
 *
 * @category models
 * @since 0.2.0
 */
export interface RemoteAgent {
  /** The id of the session. */
  readonly sessionId: string
  /**
   * Runs until the model has answered, and succeeds with the result of the run. A failed run fails with `RunFailed`, one that met a
   * defect with `RunDied`.
   *
   * Interrupting the effect cancels the run at the server, and waits at most 5 seconds for its end. A prompt that joined a run leaves it.
   */
  readonly prompt: (
    input: Payload.Prompt,
    options?: PromptOptions
  ) => Effect.Effect<RunResult, RunError | CannotBegin>
  /**
   * Runs as a stream of events, as `prompt` runs. The stream fails after the events of a run that failed. Leaving it early cancels the run.
   * A slow reader holds up neither the run nor the server.
   */
  readonly stream: (
    input: Payload.Prompt,
    options?: PromptOptions
  ) => Stream.Stream<AgentEvent, RunError | CannotBegin>
  /** `stream` without failures: `RunError` and `RunEnd` end what failed. */
  readonly streamEvents: (input: Payload.Prompt, options?: PromptOptions) => Stream.Stream<AgentEvent>
  /** Starts a run, and returns its handle. The run goes on when the client is gone. */
  readonly start: (input: Payload.Prompt, options?: PromptOptions) => Effect.Effect<RemoteRun, CannotBegin>
  /**
   * Waits for the result of the run that continues a suspended one, which the answer to its request starts. Fails with
   * `InvalidContinuation` if the last run of the session continues none.
   */
  readonly continue: Effect.Effect<RunResult, RunError | ToSession | InvalidContinuation>
  /** Sends a message to the run of the session for the time after its turn, which `interrupt` ends at once. Fails with `NoRun` if there is none. */
  readonly steer: (message: Payload.Prompt, options?: SteerOptions) => Effect.Effect<void, ToRun | NoRun>
  /** Sends a message to the run of the session for the time when it would end. Fails with `NoRun` if there is none. */
  readonly followUp: (message: Payload.Prompt) => Effect.Effect<void, ToRun | NoRun>
  /** Holds the run before its next turn or tool call. Does nothing while the session has no run. */
  readonly pause: (reason?: string) => Effect.Effect<void, ToRun>
  /** Releases a paused run. Fails with `NotPaused` if none is paused. */
  readonly resume: (reason?: string) => Effect.Effect<void, ToRun | NotPaused>
  /** Cancels the run of the session, and does not wait for its end. Does nothing while the session has no run. */
  readonly cancel: (reason?: string) => Effect.Effect<void, ToRun>
  /** Waits until the session has no run, also none of other clients, and `state` has their events. */
  readonly waitForIdle: Effect.Effect<void, ToSession | Problem.RunNotFound>
  /** The approvals and questions that wait for a person, oldest first. */
  readonly requests: Effect.Effect<Approval.OpenRequests, ToSession>
  /**
   * Answers a request by its `approvalId` or `questionId`, and succeeds with the answer. Fails with `AnswerConflict` where a person has
   * answered otherwise. `runId` is the run that continues: a new one, which {@link RemoteAgent.continue} awaits, if the run was suspended.
   */
  readonly answer: {
    (id: string, reply: Payload.AnswerApproval): Effect.Effect<Payload.Decided, CannotAnswer>
    (id: string, reply: Payload.AnswerQuestion): Effect.Effect<Payload.Answered, CannotAnswer>
  }
  /**
   * The state of the session, folded from the events of the runs that it had when it was opened and of those of this client. It changes
   * at each delta; a reader of `changes` that is slow skips states.
   */
  readonly state: Subscribable<View>
  /** The answer that streams at the moment, as far as it came. */
  readonly partial: Effect.Effect<Option.Option<Message.Assistant>>
  /** Reads the messages and the runs that other clients have added, and follows the run that goes on. */
  readonly refresh: Effect.Effect<void, ToSession>
  /** The runs of the session, oldest first. */
  readonly runs: Effect.Effect<ReadonlyArray<Payload.Run>, ToSession>
}
