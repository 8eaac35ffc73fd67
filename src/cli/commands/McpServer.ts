/** The command `mcp`: the tools of the program, and its agent, for MCP clients on stdin and stdout. All else goes to stderr. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as CoreApproval from "../../Approval.ts"
import * as AgentMcpServer from "../../mcp/AgentMcpServer.ts"
import * as ToolRegistry from "../../ToolRegistry.ts"
import * as Tools from "../../tools/Tools.ts"
import * as AgentSetup from "../agent/AgentSetup.ts"
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

/** Serves the client until it closes stdin, and returns the exit code. */
export const run = Effect.fnUntraced(function* (flags: Flags, env: Environment, version: string) {
  const { remarks, settings } = yield* Settings.read(flags, env)
  const [choice, { options: shell, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, env), AgentSetup.chooseSandbox(settings)],
    { concurrency: 2 }
  )
  yield* say([
    ...remarks,
    `Model: ${choice.model} (${choice.why})`,
    ...(remark === undefined ? [] : [remark])
  ])
  const project = yield* AgentSetup.loadProject(settings, env)
  const hooks = yield* AgentSetup.loadHooks(settings)
  const plan = { settings, prompt: undefined, choice, output: undefined, project, shell, hooks }
  const services = yield* Layer.build(
    Layer.mergeAll(choice.provider, ModelTable.prices, Network.telemetry(env))
  )
  yield* Effect.provideContext(serve(plan, version), services)
  return ExitCode.answered
}, Effect.scoped)

/** The time that calls get to end once the client has closed stdin. */
const patience = "5 seconds"

const serve = Effect.fnUntraced(function* (plan: AgentSetup.Plan, version: string) {
  const { settings } = plan
  const root = (yield* Path.Path).resolve(settings.cwd)
  // A client has no person who answers.
  const policy = {
    ...Requests.policyOf(settings, root, "deny"),
    asked: "deny",
    advises: true
  } as const
  const servers = yield* AgentSetup.serversOf(settings, plan.choice.model)
  const registry = yield* ToolRegistry.make(...toolsOf(plan, root))
  if (servers !== undefined) yield* servers.join(registry)
  const make = Effect.flatMap(sessionOf(plan), (session) =>
    AgentSetup.make({ ...plan, servers }, session, policy)
  )
  const stdin = yield* Deferred.make<void>()
  const served = AgentMcpServer.layerStdio({ name: "effect-agent", version, agent: { make } }).pipe(
    Layer.provide([
      Layer.succeed(ToolRegistry.ToolRegistry, registry),
      Layer.succeed(CoreApproval.Approval, Requests.approvalPolicy(policy)),
      Layer.effect(Stdio.Stdio, Effect.map(Stdio.Stdio, telling(Deferred.succeed(stdin, undefined))))
    ])
  )
  // The server ends itself when stdin has ended and each call has its result.
  const serving = yield* Effect.forkChild(Layer.launch(served))
  yield* Effect.raceFirst(Fiber.await(serving), Effect.andThen(Deferred.await(stdin), Effect.sleep(patience)))
})

/** Completes the effect at the end of stdin. */
const telling =
  (ended: Effect.Effect<unknown>) =>
  (stdio: Stdio.Stdio): Stdio.Stdio => ({
    ...stdio,
    stdin: Stream.concat(stdio.stdin, Stream.drain(Stream.fromEffect(ended)))
  })

const toolsOf = ({ project, settings, shell }: AgentSetup.Plan, root: string) => [
  ...Tools.make({ root, shell, hardLinks: "allow" }).filter(({ name }) => settings.tools.includes(name)),
  ...project.tools
]

/** The session of a prompt, which another command can continue; `undefined` with `--no-session`. */
const sessionOf = Effect.fnUntraced(function* ({ settings }: AgentSetup.Plan) {
  if (settings.noSession) return undefined
  const { artifacts, cwd, store } = yield* Sessions.at(settings)
  return { artifacts, session: yield* store.create({ cwd }) }
})
