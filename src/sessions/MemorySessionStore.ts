/**
 * A store of sessions in the memory of this process.
 *
 * @since 0.2.0
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Exists, Locked, Missing, SessionError } from "../Session.ts"
import type { Line, NewSession, SessionStorage, StoredSession, Writer } from "./SessionStorage.ts"
import * as SessionStore from "./SessionStore.ts"

interface Kept extends NewSession {
  readonly lines: Array<string>
  modified: number
  bytes: number
  /** The time since which a writer has it open. */
  openSince: number | undefined
}

/**
 * Makes a storage in memory.
 *
 * **Example** (A store that redacts)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
 *
 * const store = SessionStore.make(MemorySessionStore.storage(), { redact: (entry) => entry })
 * const program = Effect.scoped(Effect.map(store.create({ sessionId: "s1" }), ({ id }) => id))
 *
 * console.log(await Effect.runPromise(program)) // => s1
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const storage = (): SessionStorage => {
  const sessions = new Map<string, Kept>()
  const find = (sessionId: string) =>
    Effect.suspend(() => {
      const session = sessions.get(sessionId)
      return session === undefined ? notFound(sessionId) : Effect.succeed(session)
    })
  return {
    create: (session) =>
      Effect.gen(function* () {
        const { sessionId } = session
        if (sessions.has(sessionId)) return yield* new SessionError({ sessionId, reason: new Exists() })
        const modified = yield* Clock.currentTimeMillis
        const kept: Kept = { ...session, lines: [], modified, bytes: 0, openSince: undefined }
        sessions.set(sessionId, kept)
        return yield* opened(kept)
      }),
    open: (sessionId) => Effect.flatMap(find(sessionId), opened),
    lines: (sessionId) =>
      Stream.flatMap(Stream.fromEffect(find(sessionId)), ({ lines }) =>
        Arr.isArrayNonEmpty(lines) ? Stream.succeed(Arr.copy(lines)) : Stream.empty
      ),
    find: (sessionId) => Effect.map(find(sessionId), listed),
    list: ({ cwd } = {}) =>
      Effect.sync(() =>
        [...sessions.values()].filter((kept) => cwd === undefined || kept.cwd === cwd).map(listed)
      ),
    remove: (sessionId) =>
      Effect.flatMap(find(sessionId), (kept) =>
        kept.openSince === undefined ? Effect.sync(() => void sessions.delete(sessionId)) : locked(kept)
      )
  }
}

const listed = ({ bytes, created, modified, sessionId }: Kept): StoredSession => ({
  sessionId,
  created,
  modified,
  bytes
})

const notFound = (sessionId: string) => Effect.fail(new SessionError({ sessionId, reason: new Missing() }))

const locked = ({ openSince, sessionId }: Kept) =>
  Effect.fail(
    new SessionError({
      sessionId,
      reason: new Locked({ owner: "this process", ...(openSince === undefined ? {} : { since: openSince }) })
    })
  )

const opened = (kept: Kept) =>
  Effect.as(
    Effect.acquireRelease(
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (kept.openSince !== undefined) return locked(kept)
        kept.openSince = now
        return Effect.void
      }),
      () => Effect.sync(() => void (kept.openSince = undefined))
    ),
    writer(kept)
  )

const encoder = new TextEncoder()

const writer = (kept: Kept): Writer => ({
  append: (lines: Arr.NonEmptyReadonlyArray<Line>) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      for (const { text } of lines) {
        kept.lines.push(text)
        kept.bytes += encoder.encode(text).length + 1
      }
      kept.modified = now
    })
})

/**
 * Makes a layer of a store whose sessions live as long as the layer.
 *
 * **Example** (An agent that continues a conversation)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-agent"
 * import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const ask = Effect.fn(function* (prompt: string) {
 *   const store = yield* SessionStore.SessionStore
 *   const session = yield* store.openOrCreate("trip")
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini", session })
 *   yield* agent.prompt(prompt)
 *   console.log((yield* agent.state.get).messages.length)
 * }, Effect.scoped)
 *
 * const script = [ScriptedProvider.text("Yes."), ScriptedProvider.text("No.")]
 * const program = Effect.andThen(ask("Do I need a coat in Oslo?"), ask("And in Rome?")).pipe(
 *   Effect.provide([MemorySessionStore.layer(), ScriptedProvider.layer(script)])
 * )
 *
 * await Effect.runPromise(program)
 * // => 2
 * // => 4
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options?: SessionStore.Options): Layer.Layer<SessionStore.SessionStore> =>
  Layer.sync(SessionStore.SessionStore, () => SessionStore.make(storage(), options))
