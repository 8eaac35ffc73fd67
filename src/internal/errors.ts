/**
 * The base class of our errors, helpers for the way Node prints errors, and the errors of agents, of answers to requests, and of sessions.
 */
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Schema from "effect/Schema"

/** Makes `console.error` print the message and the stack, then the fields. Errors of Effect print their fields alone. */
const printed = <Class>(made: Class): Class => {
  if (typeof made === "function")
    Reflect.defineProperty(made.prototype, NodeInspectSymbol, { value: undefined })
  return made
}

/** `Schema.TaggedError`, whose errors Node prints with message and stack. */
export const TaggedError =
  <Self>() =>
  <Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
    printed(Schema.TaggedError<Self>()(tag, fields))

// ───────────────────────── Inspection

/** Removes the frames from the stack of an error that the engine makes: none of them is code of the application. */
export const strip = (error: Error): void => setStack(error, [])

/** Makes fields not enumerable, so that printing the error does not print them. Code reads them as before. */
export const hide = <E extends Error>(error: E, ...fields: ReadonlyArray<keyof E>): void => {
  for (const field of fields) Reflect.defineProperty(error, field, { enumerable: false })
}

/** Replaces the frames of the stack of an error. */
export const setStack = (error: Error, frames: ReadonlyArray<string>): void => {
  const head = error.message === "" ? error.name : `${error.name}: ${error.message}`
  Reflect.defineProperty(error, "stack", {
    value: [head, ...frames].join("\n"),
    configurable: true,
    enumerable: false,
    writable: true
  })
}

// ───────────────────────── Errors of an agent

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

// ───────────────────────── Errors of an answer to a request

/** The id that was given, and the run that got the answer, where a server gave it: an agent has one run. */
const ofRequest = { id: Schema.String, runId: Schema.optionalKey(Schema.String) }

/**
 * No approval and no question with the id waits for an answer, or has one.
 *
 * @category errors
 * @since 0.2.0
 */
export class RequestNotFound extends TaggedError<RequestNotFound>()("RequestNotFound", {
  ...ofRequest,
  /** The place of the request in words. Default: not known. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return `No approval or question ${JSON.stringify(this.id)} waits for an answer. ${this.detail ?? "Read agent.requests."}`
  }
}

/**
 * The answer contradicts the request or the first answer.
 *
 * **Details**
 *
 * The agent has recorded nothing.
 *
 * @category errors
 * @since 0.2.0
 */
export class AnswerConflict extends TaggedError<AnswerConflict>()("AnswerConflict", {
  ...ofRequest,
  /** The contradiction in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The answer is not valid: the tool does not take its params, or it does not match the schema of the question.
 *
 * **Details**
 *
 * The request stays open.
 *
 * @category errors
 * @since 0.2.0
 */
export class InvalidAnswer extends TaggedError<InvalidAnswer>()("InvalidAnswer", {
  ...ofRequest,
  /** The faults in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `The answer is not valid: ${this.detail}`
  }
}

/**
 * The errors of an answer to an approval or a question.
 *
 * @category errors
 * @since 0.2.0
 */
export type CannotAnswer = RequestNotFound | AnswerConflict | InvalidAnswer

// ───────────────────────── Errors of a session

/**
 * No session has the id.
 *
 * @category errors
 * @since 0.2.0
 */
export class Missing extends TaggedError<Missing>()("Missing", {}) {
  override get message(): string {
    return "there is no such session"
  }
}

/**
 * Another session has the id already.
 *
 * @category errors
 * @since 0.2.0
 */
export class Exists extends TaggedError<Exists>()("Exists", {}) {
  override get message(): string {
    return "a session of this id exists already"
  }
}

/**
 * Another writer has the session open.
 *
 * **Details**
 *
 * A session has one writer at a time.
 *
 * @category errors
 * @since 0.2.0
 */
export class Locked extends TaggedError<Locked>()("Locked", {
  /** The process of the writer, such as its id. Default: not known. */
  owner: Schema.optionalKey(Schema.String),
  /** The time since which the writer has it open, in milliseconds since the epoch. Default: not known. */
  since: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    const since = this.since === undefined ? "" : ` since ${new Date(this.since).toISOString()}`
    return `another writer has it open: ${this.owner ?? "an unknown process"}${since}. End that one, or fork the session`
  }
}

/**
 * The store could not read or write.
 *
 * @category errors
 * @since 0.2.0
 */
export class StorageFailed extends TaggedError<StorageFailed>()("StorageFailed", {
  /** The work that failed, such as `"append"`. */
  operation: Schema.String,
  /** The failure in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return `the store failed at ${this.operation}: ${this.detail}`
  }
}

/**
 * The session holds data that this version cannot read, or was given data that it cannot hold.
 *
 * @category errors
 * @since 0.2.0
 */
export class Unreadable extends TaggedError<Unreadable>()("Unreadable", {
  /** The fault in words. */
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The reason of a `SessionError`.
 *
 * @category errors
 * @since 0.2.0
 */
export const SessionReason = Schema.Union([Missing, Exists, Locked, StorageFailed, Unreadable])
export type SessionReason = typeof SessionReason.Type

/**
 * A session could not be opened, read or written.
 *
 * @category errors
 * @since 0.2.0
 */
export class SessionError extends TaggedError<SessionError>()("SessionError", {
  /** The id of the session; empty if the error is about all sessions of a store. */
  sessionId: Schema.String,
  /** The reason. */
  reason: SessionReason
}) {
  override get message(): string {
    const what = this.sessionId === "" ? "Sessions" : `Session ${this.sessionId}`
    return `${what}: ${this.reason.message}`
  }
}
