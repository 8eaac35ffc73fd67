/** What a database has of a run, read without any worker. */
import { Effect } from "effect"
import type { Message } from "effect-agent"
import { RunLogStore } from "effect-agent/server"
import { SessionStore } from "effect-agent/sessions"
import { unpacked } from "../../../src/runs/internal/LogLine.ts"
import * as Stores from "./stores.ts"

export interface Stored {
  readonly runs: ReadonlyArray<RunLogStore.StoredRun>
  readonly lines: ReadonlyArray<string>
  readonly messages: ReadonlyArray<Message.Message>
}

export const read = (url: string, sessionId: string, runId: string): Promise<Stored> =>
  Effect.gen(function* () {
    const logs = yield* RunLogStore.RunLogStore
    const sessions = yield* SessionStore.SessionStore
    const { entries } = yield* sessions.read(sessionId)
    return {
      runs: yield* logs.list(sessionId),
      lines: [
        ...(yield* logs.read({ runId, sessionId })),
        ...unpacked(yield* sessions.log(sessionId, runId)).map((line) => JSON.stringify(line))
      ],
      messages: entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : []))
    }
  }).pipe(Effect.provide(Stores.layer(url)), Effect.scoped, Effect.runPromise)
