/**
 * The sessions of a server.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Payload from "../api/Payload.ts"
import * as Problem from "../api/Problem.ts"
import * as RunOptions from "../RunOptions.ts"
import * as SessionEntry from "../sessions/SessionEntry.ts"
import type * as SessionStore from "../sessions/SessionStore.ts"
import type { Conversation } from "./internal/Conversation.ts"
import type { Host } from "./internal/Host.ts"
import type { NewSession, Sessions } from "./Runs.ts"
import * as SessionProblem from "./SessionProblem.ts"

/** The functions of the service that are about sessions. */
export const make = (host: Host): Sessions => ({
  create: (options) => {
    const { sessionId = crypto.randomUUID() } = options
    // One at a time: the second of two requests finds the session of the first.
    const made = host.ask(sessionId, (conversation) => create(host, conversation, { ...options, sessionId }))
    return Effect.andThen(host.ready, made)
  },
  list: (page) => list(host.parts, page),
  get: (sessionId) => read(host.parts.sessions, sessionId),
  update: (sessionId, changes) => Effect.andThen(host.ready, update(host, sessionId, changes)),
  remove: (sessionId) => remove(host, sessionId),
  fork: (sessionId, options) => Effect.andThen(host.ready, fork(host, sessionId, options))
})

const create = Effect.fnUntraced(function* (
  { parts }: Host,
  conversation: Conversation,
  options: NewSession & { readonly sessionId: string }
) {
  const { cwd = parts.cwd, name, sessionId } = options
  const { agents, sessions } = parts
  const made = SessionProblem.making(
    sessions.create({
      sessionId,
      ...(name === undefined ? {} : { name }),
      ...(cwd === undefined ? {} : { cwd })
    })
  )
  const patch = patchOf(options)
  // The cluster decides that this process has the session: no other one waits for its lock.
  if (parts.adopts && Object.keys(patch).length === 0)
    return yield* Effect.as(conversation.openNew(made), sessionId)
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const session = yield* made
      if (Object.keys(patch).length === 0) return session.id
      yield* Effect.mapError(
        session.record([{ _tag: "OptionsChanged", options: patch }]),
        SessionProblem.unavailable
      )
      return yield* Effect.as(checked(agents, session, options), session.id)
    })
  ).pipe(
    Effect.tapError((error) =>
      error._tag === "MalformedRequest" ? Effect.ignore(sessions.delete(sessionId)) : Effect.void
    )
  )
})

const patchOf = ({ model, system, tools }: Payload.CreateSession): Partial<RunOptions.RunOptions> => ({
  ...(model === undefined ? {} : { model }),
  ...(system === undefined ? {} : { system }),
  ...(tools === undefined ? {} : { activeTools: tools })
})

/** Makes the agent once, so that a model or a tool that the server does not have refuses the session. */
const checked = Effect.fnUntraced(function* (
  agents: Host["parts"]["agents"],
  session: SessionStore.OpenSession,
  { model, tools = [] }: Payload.CreateSession
) {
  const options = { ...session.restored.options, ...(model === undefined ? {} : { model }) }
  const given = { ...session, restored: { ...session.restored, options } }
  const agent = yield* agents
    .make({ sessionId: session.id, session: given, ...(model === undefined ? {} : { model }) })
    .pipe(Effect.mapError(({ message }) => new Problem.MalformedRequest({ detail: message })))
  const known = new Set((yield* agent.tools.definitions).map(({ name }) => name))
  const unknown = tools.filter((name) => !known.has(name))
  if (unknown.length === 0) return
  return yield* new Problem.MalformedRequest({ detail: `The server has no tool ${unknown.join(", ")}` })
})

/** A page of the list of sessions. */
export const list = (
  { cwd, sessions }: Pick<Host["parts"], "cwd" | "sessions">,
  page: SessionStore.ListOptions
): Effect.Effect<Payload.Sessions, Problem.MalformedRequest | Problem.StorageUnavailable> =>
  Effect.mapBoth(sessions.list({ ...(cwd === undefined ? {} : { cwd }), ...page }), {
    onFailure: (error) =>
      error.reason._tag === "Unreadable"
        ? new Problem.MalformedRequest({ detail: error.message })
        : SessionProblem.unavailable(error),
    onSuccess: ({ items, ...rest }) => ({ ...rest, items: items.map(short) })
  })

/** A session whose name fits into a page: an application may give a longer one than a client. */
const short = ({ name, ...session }: SessionStore.Summary): Payload.Session => ({
  ...session,
  title: session.title.slice(0, maxName),
  ...(name === undefined ? {} : { name: name.slice(0, maxName) })
})

const maxName = 200

/** A session as the API shows it. */
export const read = (sessions: SessionStore.Service, sessionId: string) =>
  Effect.flatMap(SessionProblem.reading(sessions.read(sessionId)), shown)

const encodeOptions = Schema.encodeEffect(Schema.toCodecJson(RunOptions.Patch))

const shown = Effect.fnUntraced(function* ({ entries, session, view }: SessionStore.Contents) {
  const options = yield* Effect.orDie(encodeOptions(view.options))
  return { session, entries: entries.map(SessionEntry.toJson), view: plain({ ...view, options }) }
})

/** The members as JSON, each item of a list by itself: all messages together may be longer than a text can be. */
const plain = (view: object): Payload.SessionContents["view"] =>
  Object.fromEntries(
    Object.entries(view).flatMap(([key, value]: [string, unknown]) =>
      value === undefined ? [] : [[key, Array.isArray(value) ? value.map(json) : json(value)]]
    )
  )

const json = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value))

const update = (host: Host, sessionId: string, { model, name }: Payload.UpdateSession) => {
  const { agents, sessions } = host.parts
  const changed = Effect.fnUntraced(function* (conversation: Conversation) {
    const { first, opened } = conversation
    if (model !== undefined && first !== undefined)
      return yield* new Problem.RunGoesOn({ runId: first.runId })
    // Another agent continues with the model.
    if (model !== undefined) yield* conversation.close
    const session =
      model === undefined && opened !== undefined
        ? opened.session
        : yield* SessionProblem.opening(sessions.open(sessionId))
    if (model !== undefined) {
      yield* checked(agents, session, { model })
      const record = session.record([{ _tag: "OptionsChanged", options: { model } }])
      yield* Effect.mapError(record, SessionProblem.unavailable)
    }
    if (name !== undefined) yield* Effect.mapError(session.rename(name), SessionProblem.unavailable)
  })
  return host.ask(sessionId, (conversation) => Effect.scoped(changed(conversation)))
}

const remove = (host: Host, sessionId: string) => {
  const { logs, sessions } = host.parts
  const removed = Effect.fnUntraced(function* (conversation: Conversation) {
    const { first } = conversation
    if (first !== undefined) return yield* new Problem.RunGoesOn({ runId: first.runId })
    yield* conversation.close
    yield* SessionProblem.opening(sessions.delete(sessionId))
    yield* SessionProblem.logging(logs.remove(sessionId))
  })
  return host.ask(sessionId, removed)
}

const fork = ({ parts: { cwd, sessions } }: Host, sessionId: string, { entryId }: Payload.ForkSession) =>
  Effect.mapError(
    sessions.fork(sessionId, {
      ...(cwd === undefined ? {} : { cwd }),
      ...(entryId === undefined ? {} : { entryId })
    }),
    (error) => {
      if (error.reason._tag === "Missing") return new Problem.SessionNotFound({ sessionId })
      if (error.reason._tag === "Unreadable") return new Problem.MalformedRequest({ detail: error.message })
      return SessionProblem.unavailable(error)
    }
  )
