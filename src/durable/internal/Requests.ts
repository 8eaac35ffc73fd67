/**
 * The bodies of the requests to a session.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Payload from "../../api/Payload.ts"
import * as Problem from "../../api/Problem.ts"
import * as Message from "../../Message.ts"
import { version } from "./SessionEntity.ts"

const run = { runId: Schema.String }
const Messages = Schema.Array(Message.Message)

export const Start = Schema.Struct({
  prompt: Messages,
  options: Schema.optionalKey(Payload.Options),
  when: Schema.optionalKey(Payload.When),
  replaces: Schema.optionalKey(Schema.String),
  trace: Schema.optionalKey(Schema.String),
  idempotency: Schema.Struct({ key: Schema.String, body: Schema.Json })
})

export const Send = Schema.Struct({
  ...run,
  messages: Messages,
  interrupt: Schema.optionalKey(Schema.Boolean)
})

export const Control = Schema.Struct({ ...run, reason: Schema.optionalKey(Schema.String) })

export const Approve = Schema.Struct({ ...run, approvalId: Schema.String, answer: Payload.AnswerApproval })

export const Answer = Schema.Struct({ ...run, questionId: Schema.String, answer: Payload.AnswerQuestion })

export const Create = Schema.Struct({
  ...Payload.CreateSession.fields,
  cwd: Schema.optionalKey(Schema.String)
})

export const Fork = Payload.ForkSession

export const Update = Payload.UpdateSession

/** A body as processes send it. */
export interface Sent {
  readonly v: number
  readonly body: Schema.Json
}

/** A schema without services. */
type Body<A> = Schema.Codec<A, unknown>

/** Encodes a body. Fails for one that the schema refuses. */
export const encode = <A>(schema: Body<A>, value: A): Effect.Effect<Sent, Problem.MalformedRequest> =>
  Effect.mapBoth(Schema.encodeEffect(Schema.toCodecJson(schema))(value), {
    onFailure: ({ message }) => new Problem.MalformedRequest({ detail: message }),
    onSuccess: (body) => ({ v: version, body })
  })

/** Encodes a body that the API has checked. */
export const encoded = <A>(schema: Body<A>, value: A): Effect.Effect<Sent> =>
  Effect.orDie(encode(schema, value))

/** Decodes a body. One of another version fails, and stays as it was stored. */
export const decode = <A>(
  schema: Body<A>,
  { body, v }: Sent
): Effect.Effect<A, Problem.StorageUnavailable> =>
  v === version
    ? Effect.mapError(Schema.decodeEffect(Schema.toCodecJson(schema))(body), ({ message }) =>
        unreadable(message)
      )
    : unreadable(`it has the version ${v}, and this worker reads version ${version}`)

const unreadable = (reason: string) =>
  new Problem.StorageUnavailable({ detail: `The worker cannot read the request: ${reason}.` })
