/**
 * The service that keeps sessions: conversations that last longer than the process.
 *
 * **Details**
 *
 * A session is open in one place at a time, and anyone can read it meanwhile. A store writes an entry before the events that speak of
 * it reach the application, so that an agent that opens the session after a crash continues from what others have seen.
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
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type { Options, Service } from "./internal/Contract.ts"
import * as Forking from "./internal/Forking.ts"
import * as Listing from "./internal/Listing.ts"
import * as Opening from "./internal/Opening.ts"
import * as Reading from "./internal/Reading.ts"
import * as RunLines from "./internal/RunLines.ts"
import type { SessionStorage } from "./SessionStorage.ts"

export type {
  Contents,
  CreateOptions,
  Damage,
  ForkOptions,
  Hit,
  ListOptions,
  Logged,
  OpenSession,
  Options,
  Page,
  Retention,
  Service,
  Summary
} from "./internal/Contract.ts"

/**
 * The service that keeps sessions.
 *
 * **Example** (Listing sessions)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
 *
 * const program = Effect.gen(function* () {
 *   const store = yield* SessionStore.SessionStore
 *   yield* store.create({ name: "Trip to Oslo" })
 *   const { items } = yield* store.list({ query: "oslo" })
 *   return items.map(({ title }) => title)
 * }).pipe(Effect.scoped, Effect.provide(MemorySessionStore.layer()))
 *
 * console.log(await Effect.runPromise(program)) // => [ 'Trip to Oslo' ]
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export class SessionStore extends Context.Service<SessionStore, Service>()(
  "effect-agent/sessions/SessionStore"
) {}

/**
 * Makes a store of a storage.
 *
 * **When to use**
 *
 * Use it with a storage of one's own. The stores of this package have layers.
 *
 * **Example** (Removing secrets before they are stored)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { MemorySessionStore, SessionStore } from "effect-agent/sessions"
 *
 * const store = SessionStore.make(MemorySessionStore.storage(), {
 *   redact: (entry) => (entry.type === "custom" ? { ...entry, data: "[removed]" } : entry)
 * })
 *
 * const program = Effect.gen(function* () {
 *   const session = yield* store.create()
 *   yield* session.append([{ type: "custom", kind: "login", data: "hunter2" }])
 *   return yield* Stream.mkString(store.export(session.id, "jsonl"))
 * }).pipe(Effect.scoped)
 *
 * console.log((await Effect.runPromise(program)).includes("hunter2")) // => false
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (storage: SessionStorage, options: Options = {}): Service => ({
  create: (created) => Opening.create(storage, options, created),
  open: (sessionId) => Opening.open(storage, options, sessionId),
  openOrCreate: (sessionId, created) => Opening.openOrCreate(storage, options, sessionId, created),
  read: (sessionId) => Reading.contents(storage, sessionId),
  list: Listing.make(storage),
  log: (sessionId, runId, range) => RunLines.read(storage, sessionId, runId, range),
  search: (text, where) => Listing.search(storage, text, where),
  sessionOf: (runId) => Listing.sessionOf(storage, runId),
  fork: (sessionId, forked) => Forking.fork(storage, sessionId, forked),
  export: (sessionId, format) => Reading.exported(storage, sessionId, format),
  delete: (sessionId) => storage.remove(sessionId),
  retain: (retention) => Listing.retain(storage, retention)
})
