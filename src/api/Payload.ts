/**
 * The schemas of the bodies of requests and responses.
 *
 * @since 0.2.0
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { RunStatus } from "../AgentEvent.ts"
import * as Approval from "../Approval.ts"
import * as Message from "../Message.ts"
import { EventError } from "../Run.ts"
import * as RunOptions from "../RunOptions.ts"
import { Usage } from "../Usage.ts"

const text = Schema.NonEmptyString
const name = text.check(Schema.isMaxLength(200))
const names = Schema.Array(name).check(Schema.isMaxLength(1000))

/**
 * A prompt: a text, or 1 to 1,000 parts of a user message.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Prompt = Schema.Union([
  text,
  Schema.NonEmptyArray(Schema.Union([Message.Text, Message.Image, Message.File])).check(
    Schema.isMaxLength(1000)
  )
])
export type Prompt = typeof Prompt.Type

/**
 * The options of a run that a client may choose.
 *
 * **Details**
 *
 * They only narrow those of the server. The server takes the smaller of two limits, and of `activeTools` the tools that it has. Durations are in milliseconds.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Options = Schema.Struct({
  ...Struct.pick(RunOptions.Patch.fields, [
    "toolExecution",
    "toolConcurrency",
    "toolTimeout",
    "steeringPolicy",
    "emptyResponse",
    "partialValues"
  ]),
  /** The names of the tools that the model may call, at most 1,000. Default: those of the session. */
  activeTools: Schema.optionalKey(names),
  /** The options of each model call. Default: those of the session. */
  modelOptions: Schema.optionalKey(
    Schema.Struct(
      Struct.pick(RunOptions.ModelOptions.fields, [
        "maxTokens",
        "temperature",
        "topP",
        "stop",
        "thinkingLevel",
        "toolChoice",
        "output",
        "parallelToolCalls",
        "seed"
      ])
    )
  ),
  /** The bounds of the run. Default: those of the server. */
  limits: Schema.optionalKey(
    Schema.Struct(Struct.omit(RunOptions.Limits.fields, ["wrapUpInstruction", "prices"]))
  )
})
export interface Options extends Schema.Schema.Type<typeof Options> {}

/**
 * The treatment of a prompt while the session has a run: it joins the run after its turn (`"steer"`), when the run would end
 * (`"followUp"`), or it waits for a run of its own (`"queue"`).
 *
 * @category schemas
 * @since 0.2.0
 */
export const When = Schema.Literals(["steer", "followUp", "queue"])
export type When = typeof When.Type

/**
 * The body of a request for a run.
 *
 * @category schemas
 * @since 0.2.0
 */
export const StartRun = Schema.Struct({
  /** The prompt. */
  prompt: Prompt,
  /** The options of the run. Default: those of the session. */
  options: Schema.optionalKey(Options),
  /** The treatment of the prompt while the session has a run. Default: the request is refused. */
  when: Schema.optionalKey(When),
  /**
   * The id of a message that the prompt replaces: the conversation continues before it, and the session keeps that message and those
   * behind it on another branch. The request is refused while the session has a run. Default: none, the prompt is the next message.
   */
  replaces: Schema.optionalKey(text)
})
export interface StartRun extends Schema.Schema.Type<typeof StartRun> {}

/**
 * The run that a prompt started, or that waits for the one before it.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Started = Schema.Struct({
  /** The id of the run. */
  runId: Schema.String,
  /** Whether the run has begun or waits for the one before it. */
  status: Schema.Literals(["started", "queued"])
})
export interface Started extends Schema.Schema.Type<typeof Started> {}

/**
 * The run that a prompt joined.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Joined = Schema.Struct({
  /** The id of the run. */
  runId: Schema.String,
  /** The prompt is a message of that run. */
  status: Schema.Literal("joined")
})
export interface Joined extends Schema.Schema.Type<typeof Joined> {}

/**
 * The requests of a run to a person.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Pending = Schema.Struct({
  /** The approvals that wait for an answer, oldest first. */
  approvals: Schema.Array(Approval.Request),
  /** The questions that wait for an answer, oldest first. */
  questions: Schema.Array(Approval.Question)
})
export interface Pending extends Schema.Schema.Type<typeof Pending> {}

/**
 * A run.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Run = Schema.Struct({
  /** The id of the run. */
  runId: Schema.String,
  /** The id of its session. */
  sessionId: Schema.String,
  /** The state of the run, or the way in which it ended. */
  status: Schema.Union([Schema.Literals(["queued", "running", "paused"]), RunStatus]),
  /** The time at which the server took the run, in milliseconds since the epoch. */
  created: Schema.Finite,
  /** The tokens of the turns that have ended. */
  usage: Usage,
  /** The number of turns that have begun. */
  turns: Schema.Int,
  /** The requests to a person that wait for an answer. */
  pending: Pending,
  /** The id of the run that continues this one, which was suspended. Default: none. */
  resumedBy: Schema.optionalKey(Schema.String),
  /** The error of a run that failed. Default: none. */
  error: Schema.optionalKey(EventError)
})
export interface Run extends Schema.Schema.Type<typeof Run> {}

/**
 * A status by which runs are listed: that of a run, or `"waiting"` for those with an approval or a question that has no answer, which
 * are `"running"` or `"suspended"`.
 *
 * @category schemas
 * @since 0.2.0
 */
export const ListedStatus = Schema.Union([Run.fields.status, Schema.Literal("waiting")])
export type ListedStatus = typeof ListedStatus.Type

/** @internal Whether a run has not ended. One that is suspended has. */
export const isGoing = ({ status }: { readonly status: ListedStatus }): boolean =>
  status === "queued" || status === "running" || status === "paused"

/**
 * A page of the list of runs.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Runs = Schema.Struct({
  /** The runs, the newest first. */
  items: Schema.Array(Run),
  /** The cursor of the next page, absent on the last one. */
  nextCursor: Schema.optionalKey(Schema.String)
})
export interface Runs extends Schema.Schema.Type<typeof Runs> {}

/**
 * The body of a request for a session.
 *
 * @category schemas
 * @since 0.2.0
 */
export const CreateSession = Schema.Struct({
  /** The id of the session. Default: a new one. */
  sessionId: Schema.optionalKey(text),
  /** The name of the session, of at most 200 characters. Default: none. */
  name: Schema.optionalKey(name),
  /** The model of the session. Default: that of the server. */
  model: Schema.optionalKey(name),
  /** The system prompt of the session, of at most a million characters. Default: that of the server. */
  system: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(1_000_000))),
  /** The names of the tools that the session has, of those of the server, at most 1,000. Default: all. */
  tools: Schema.optionalKey(names)
})
export interface CreateSession extends Schema.Schema.Type<typeof CreateSession> {}

/**
 * The body of a request that changes a session.
 *
 * @category schemas
 * @since 0.2.0
 */
export const UpdateSession = Schema.Struct({
  /** The name of the session, of at most 200 characters; `""` removes it. Default: no change. */
  name: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  /** The model of the session, from its next run on. Default: no change. */
  model: Schema.optionalKey(name)
})
export interface UpdateSession extends Schema.Schema.Type<typeof UpdateSession> {}

/**
 * The body of a request for a fork of a session.
 *
 * @category schemas
 * @since 0.2.0
 */
export const ForkSession = Schema.Struct({
  /** The last entry that the new session has. Default: the current one. */
  entryId: Schema.optionalKey(text)
})
export interface ForkSession extends Schema.Schema.Type<typeof ForkSession> {}

/**
 * The id of a session.
 *
 * @category schemas
 * @since 0.2.0
 */
export const SessionId = Schema.Struct({
  /** The id. */
  sessionId: Schema.String
})
export interface SessionId extends Schema.Schema.Type<typeof SessionId> {}

/**
 * A session as a list shows it.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Session = Schema.Struct({
  /** The id of the session. */
  sessionId: Schema.String,
  /** The working directory of the session, `""` if it has none. */
  cwd: Schema.String,
  /** The time at which the session began, in milliseconds since the epoch. */
  created: Schema.Finite,
  /** The time of the last entry, in milliseconds since the epoch. */
  modified: Schema.Finite,
  /** The size of the entries in bytes. */
  bytes: Schema.Finite,
  /** The name that the session was given. Default none. */
  name: Schema.optionalKey(Schema.String),
  /** The name, or the start of the first line of the first user message, `""` without both. */
  title: Schema.String
})
export interface Session extends Schema.Schema.Type<typeof Session> {}

/**
 * A page of the list of sessions.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Sessions = Schema.Struct({
  /** The sessions, those with the newest entries first. */
  items: Schema.Array(Session),
  /** The cursor of the next page, absent on the last one. */
  nextCursor: Schema.optionalKey(Schema.String)
})
export interface Sessions extends Schema.Schema.Type<typeof Sessions> {}

const JsonObject = Schema.Record(Schema.String, Schema.Json)

/**
 * A session with its entries.
 *
 * @category schemas
 * @since 0.2.0
 */
export const SessionContents = Schema.Struct({
  /** The session as a list shows it. */
  session: Session,
  /** The entries of all branches, in the order in which they were written: see `SessionEntry` of `effect-agent/sessions`. */
  entries: Schema.Array(JsonObject),
  /** The state of the current branch: `messages`, `options`, `queues`, and more where it applies. */
  view: JsonObject
})
export interface SessionContents extends Schema.Schema.Type<typeof SessionContents> {}

/**
 * The body of a message to a run.
 *
 * @category schemas
 * @since 0.2.0
 */
export const SendMessage = Schema.Struct({
  /** The message. */
  message: Prompt
})
export interface SendMessage extends Schema.Schema.Type<typeof SendMessage> {}

/**
 * The body of a steering message to a run.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Steer = Schema.Struct({
  ...SendMessage.fields,
  /** Whether the message ends the turn at work: its answer stops, and its tools are interrupted. Default: `false`. */
  interrupt: Schema.optionalKey(Schema.Boolean)
})
export interface Steer extends Schema.Schema.Type<typeof Steer> {}

/**
 * The body of a request that may have a reason.
 *
 * @category schemas
 * @since 0.2.0
 */
export const WithReason = Schema.Struct({
  /** The reason, which the events of the run have. Default: none. */
  reason: Schema.optionalKey(Schema.String)
})
export interface WithReason extends Schema.Schema.Type<typeof WithReason> {}

/**
 * The body of an answer to an approval.
 *
 * @category schemas
 * @since 0.2.0
 */
export const AnswerApproval = Schema.Struct(
  Struct.pick(Approval.Reply.fields, ["decision", "argumentsHash", "params", "reason"])
)
export interface AnswerApproval extends Schema.Schema.Type<typeof AnswerApproval> {}

/**
 * The decision about a tool call.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Decided = Schema.Struct({
  /** The decision. */
  decision: Schema.Literals(["approve", "reject"]),
  /** The id of the run that continues. */
  runId: Schema.String
})
export interface Decided extends Schema.Schema.Type<typeof Decided> {}

/**
 * The body of an answer to a question: the answer, or that the person declines.
 *
 * **Details**
 *
 * Where the person declines, the call of the question is rejected, and the model reads the reason.
 *
 * @category schemas
 * @since 0.2.0
 */
export const AnswerQuestion = Schema.Union([
  Schema.Struct({
    /** The answer, which matches the schema of the question. */
    answer: Schema.Json
  }),
  Schema.Struct(Struct.pick(Approval.Declined.fields, ["declined", "reason"]))
])
export type AnswerQuestion = typeof AnswerQuestion.Type

/**
 * The answer to a question: `null` with `declined` where the person declined.
 *
 * @category schemas
 * @since 0.2.0
 */
export const Answered = Schema.Struct({
  ...Struct.pick(Approval.QuestionAnswer.fields, ["answer", "declined", "reason"]),
  /** The id of the run that continues. */
  runId: Schema.String
})
export interface Answered extends Schema.Schema.Type<typeof Answered> {}
