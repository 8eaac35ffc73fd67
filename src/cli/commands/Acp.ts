/** The command `acp`: an agent for editors, by the Agent Client Protocol on stdin and stdout. All else goes to stderr. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { Writable } from "node:stream"
import * as AcpAgent from "../../acp/AcpAgent.ts"
import * as Agents from "../../runs/Agents.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import * as RunLogStore from "../../runs/RunLogStore.ts"
import * as MemorySessionStore from "../../sessions/MemorySessionStore.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"
import * as AgentSetup from "../agent/AgentSetup.ts"
import * as KeptFiles from "../agent/KeptFiles.ts"
import * as Requests from "../terminal/Requests.ts"
import * as ExitCode from "../ExitCode.ts"
import * as ModelTable from "../agent/ModelTable.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import { say } from "../terminal/Screen.ts"
import * as Sessions from "../agent/Sessions.ts"
import * as Settings from "../settings/Settings.ts"
import type { Flags } from "../settings/SettingTable.ts"
import * as Network from "../agent/Network.ts"
import type { Environment } from "../agent/Vendors.ts"

/** Serves the editor until it closes stdin, and returns the exit code. */
export const run = Effect.fnUntraced(function* (flags: Flags, env: Environment, version: string) {
  const { remarks, settings } = yield* Settings.read(flags, env)
  const choice = yield* ModelChoice.withFallbacks(settings, env)
  yield* say([...remarks, `Model: ${choice.model} (${choice.why})`])
  const sessions = new Map<string, AcpAgent.Given>()
  const options: AcpAgent.Options = {
    name: "effect-agent",
    version,
    accepts: { image: choice.model !== "local/rules" },
    mcp: { http: true },
    prepare: yield* preparing(sessions),
    scopeOf: (name, params) => {
      const { key, words } = Requests.scopeOf(name, params)
      return { key, words: words.replace(/^for /, "") }
    }
  }
  const runs = yield* runsOf(settings, env, choice, sessions)
  const input = yield* Stream.toReadableStreamEffect((yield* Stdio.Stdio).stdin)
  const streams = { input, output: Writable.toWeb(process.stdout) }
  yield* Effect.provide(AcpAgent.serve(options, streams), runs)
  return ExitCode.answered
}, Effect.scoped)

/** Keeps the folder and the servers of each session that the editor opens. */
const preparing = Effect.fnUntraced(function* (sessions: Map<string, AcpAgent.Given>) {
  const path = yield* Path.Path
  const files = yield* FileSystem.FileSystem
  return (given: AcpAgent.Given) =>
    Effect.gen(function* () {
      const { cwd, sessionId } = given
      const found = yield* Effect.option(files.stat(cwd))
      if (!path.isAbsolute(cwd) || !Option.exists(found, ({ type }) => type === "Directory"))
        return yield* new ExitCode.UsageError({ detail: `There is no folder ${cwd}.` })
      sessions.set(sessionId, given)
    })
})

const runsOf = Effect.fnUntraced(function* (
  settings: Settings.Settings,
  env: Environment,
  choice: ModelChoice.Choice,
  given: ReadonlyMap<string, AcpAgent.Given>
) {
  const { artifacts, kept, store } = yield* Sessions.at(settings)
  const agents = Agents.layer(({ session, sessionId }) =>
    Effect.gen(function* () {
      const { cwd = settings.cwd, mcpServers = [] } = given.get(sessionId) ?? {}
      const own = { ...settings, cwd, configuration: yield* Settings.configurationOf(env, cwd) }
      const { options: shell, remark } = yield* AgentSetup.chooseSandbox(own)
      if (remark !== undefined) yield* say([remark])
      const project = yield* AgentSetup.loadProject(own, env)
      const hooks = yield* AgentSetup.loadHooks(own)
      const plan = { settings: own, prompt: undefined, choice, output: undefined, project, shell, hooks }
      const opened = settings.noSession
        ? { session, artifacts }
        : { session, artifacts, keeper: yield* KeptFiles.keeperOf(kept, session) }
      const agent = yield* AgentSetup.make(plan, opened, Requests.policyOf(own, cwd))
      if (mcpServers.length > 0 && !settings.noMcp) {
        const { joinOfEditor } = yield* Effect.promise(() => import("../agent/McpServers.ts"))
        yield* joinOfEditor(agent.tools, mcpServers)
      }
      return agent
    })
  )
  const sessions = settings.noSession ? MemorySessionStore.layer() : Layer.succeed(SessionStore, store)
  // A log in memory can be written and read.
  return Layer.orDie(LiveRuns.layer()).pipe(
    Layer.provide(agents),
    Layer.provide([choice.provider, ModelTable.prices, Network.telemetry(env)]),
    Layer.provide([sessions, RunLogStore.layerMemory])
  )
})
