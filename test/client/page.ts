/** A page: it talks to the server by the client, and shows what it received. */
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { AgentEvent, Message } from "effect-agent"
import { AgentClient } from "effect-agent/client"

const session = (url: string, token: string) =>
  Effect.gen(function* () {
    const client = yield* AgentClient.make(url, { token: Redacted.make(token) })
    const agent = yield* client.open(yield* client.sessions.create())
    const { runId } = yield* agent.start("clean up")
    const seen: Array<AgentClient.Positioned> = []
    let visits = 0
    while (seen.at(-1)?.event._tag !== "RunEnd" || seen.at(-1)?.event.runId !== runId) {
      visits++
      const some = client.runs.events(runId, seen.at(-1)?.position ?? 0).pipe(Stream.take(5))
      yield* Stream.runForEach(some, (one) => {
        seen.push(one)
        const { event } = one
        return event._tag === "ApprovalRequested"
          ? agent.answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
          : event._tag === "QuestionAsked"
            ? agent.answer(event.questionId, { answer: "Yes" })
            : Effect.void
      })
    }
    yield* agent.waitForIdle
    const refused = yield* Effect.flip(client.runs.get("run_none"))
    const view = seen.map(({ event }) => event).reduce(AgentEvent.fold, AgentEvent.initial())
    return {
      runId,
      visits,
      refused: refused._tag,
      positions: seen.map(({ position }) => position),
      tags: seen.map(({ event }) => event._tag),
      texts: view.messages.map(Message.textOf),
      state: agent.state.getUnsafe().messages.map(Message.textOf)
    }
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

export type Shown = Effect.Success<ReturnType<typeof session>>

Object.assign(globalThis, { session: (url: string, token: string) => Effect.runPromise(session(url, token)) })
