/** The large tool results of sessions, which go with their session. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import type { Service } from "../../sessions/SessionStore.ts"

/** A store whose sessions take their artifacts with them, but for those that another session names, such as a fork. */
export const removing = (store: Service, artifacts: ArtifactStore["Service"]): Service => {
  const remove = Effect.fnUntraced(function* (id: string) {
    const hit = yield* Stream.runHead(store.search(id))
    if (Option.isNone(hit)) yield* artifacts.remove(id)
  })
  return {
    ...store,
    delete: Effect.fnUntraced(function* (sessionId) {
      const owned = yield* artifactsOf(store, artifacts, sessionId)
      yield* store.delete(sessionId)
      // The session is gone. An artifact that stays behind harms no other one.
      yield* Effect.forEach(owned, (id) => Effect.ignore(remove(id), { log: "Warn" }), { discard: true })
    })
  }
}

/** The ids of the artifacts that the runs of a session have stored. */
const artifactsOf = Effect.fnUntraced(function* (
  store: Service,
  artifacts: ArtifactStore["Service"],
  sessionId: string
) {
  const { entries } = yield* store.read(sessionId)
  const text = JSON.stringify(entries.map(SessionEntry.toJson))
  const runs = new Set(Array.from(text.matchAll(/"runId":"([^"]+)"/g), ([, runId]) => runId))
  const ids = [...new Set(text.match(/\bartifact_[\w-]+/g))]
  return yield* Effect.filter(ids, (id) =>
    Effect.orElseSucceed(
      Effect.map(artifacts.get(id), ({ runId }) => runs.has(runId)),
      () => false
    )
  )
})
