/** The routes for user interfaces over HTTP, on sessions that each have a script of their own. */
import { Context, Effect, Layer, Redacted, Stream } from "effect"
import { Agent, AgentEvent, type Approval } from "effect-agent"
import { Agents, LiveRuns, RunLogStore, Runs, Server, UiRoutes } from "effect-agent/server"
import { MemorySessionStore } from "effect-agent/sessions"
import type { ScriptedProvider } from "effect-agent/testing"
import { HttpRouter } from "effect/http"
import * as PlainFailures from "../../src/server/internal/PlainFailures.ts"
import { listen, serve } from "./http.ts"
import * as Scripted from "./scripted.ts"

export type Service = Runs.Service

export const token = "t0ken"

export interface Setup {
  readonly turns?: ScriptedProvider.Script
  readonly asked?: Approval.Asked
}

/** The address of the server and its runs. */
export const make = ({ asked = "wait", turns = Scripted.script }: Setup = {}) =>
  Effect.gen(function* () {
    const agents = Agents.layer(({ session }) =>
      Agent.make({ model: "scripted", tools: Scripted.tools, session }).pipe(
        Effect.provide(Scripted.policy(asked)),
        Effect.provide(Scripted.provider(turns))
      )
    )
    const context = yield* Layer.build(
      LiveRuns.layer({ flush: 0 }).pipe(
        Layer.provide([agents, MemorySessionStore.layer(), RunLogStore.layerMemory])
      )
    )
    const runs = Context.get(context, Runs.Runs)
    const routes = yield* Effect.provideService(UiRoutes.make, Runs.Runs, runs)
    const url = yield* serve(
      HttpRouter.addAll(routes.map(({ handler, method, path }) => HttpRouter.route(method, path, handler)))
    )
    const guarded = Server.layer({ tokens: [Redacted.make(token)], grace: 0 })
    const guardedUrl = yield* listen(Layer.provide(guarded, Layer.succeed(Runs.Runs, runs)))
    return { url, guardedUrl, runs }
  })

/** The events of all runs of a session, from its log, with their failures in the words for end users. */
export const eventsOf = (all: Runs.Service, sessionId: string) =>
  Effect.gen(function* () {
    const runs = PlainFailures.of(all, PlainFailures.plain)
    const listed = yield* runs.list(sessionId)
    const events: Array<AgentEvent.AgentEvent> = []
    for (const { runId } of listed) {
      const log = yield* Stream.runCollect(yield* runs.events(runId, 0))
      events.push(...log.map(({ event }) => event))
    }
    return events
  })
