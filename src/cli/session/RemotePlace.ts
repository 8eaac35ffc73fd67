/** The runs of an interactive session at the server of `--url`. Loaded for it: its client would add to each start. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as RemoteRuns from "../../client/RemoteRuns.ts"
import * as Network from "../agent/Network.ts"
import * as TokenFile from "../agent/TokenFile.ts"
import type { Environment } from "../agent/Vendors.ts"
import type { Settings } from "../settings/Settings.ts"
import * as Requests from "../terminal/Requests.ts"
import type { Place } from "./Place.ts"

/** Runs at a server. */
export const make = Effect.fnUntraced(function* (
  settings: Settings,
  env: Environment,
  { tokenFile, url }: { readonly url: string; readonly tokenFile: Option.Option<string> }
) {
  const token = yield* TokenFile.first(tokenFile, env)
  // The client lives as long as the session.
  const http = yield* Layer.build(Network.http)
  const runs = yield* Effect.provideContext(RemoteRuns.make(url, { token }), http)
  const root = (yield* Path.Path).resolve(settings.cwd)
  const place: Place = {
    runs,
    url,
    model: Option.getOrElse(settings.model, () => url),
    root,
    policy: Requests.policyOf(settings, root),
    project: undefined,
    newest: (sessionId) => Effect.map(runs.list(sessionId), (all) => all.at(-1)),
    agent: undefined,
    servers: undefined,
    runningHook: () => undefined,
    hooks: () => [],
    files: undefined,
    changesSince: undefined,
    newestChanges: undefined,
    clearTasks: undefined,
    choose: Effect.succeed
  }
  return place
})
