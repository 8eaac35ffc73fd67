/** The runs of an interactive session: those of this process, or of the server of `--url`. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as Agent from "../../Agent.ts"
import type * as Payload from "../../api/Payload.ts"
import * as ArtifactStore from "../../artifacts/ArtifactStore.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import * as RunLogStore from "../../runs/RunLogStore.ts"
import type { Service as Runs } from "../../runs/Runs.ts"
import * as SessionProblem from "../../runs/SessionProblem.ts"
import * as MemorySessionStore from "../../sessions/MemorySessionStore.ts"
import { type OpenSession, type Service, SessionStore } from "../../sessions/SessionStore.ts"
import type * as Workspace from "../../skills/Workspace.ts"
import * as AgentSetup from "../agent/AgentSetup.ts"
import * as KeptFiles from "../agent/KeptFiles.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import * as Playing from "../agent/Playing.ts"
import * as Sessions from "../agent/Sessions.ts"
import * as TaskList from "../agent/TaskList.ts"
import * as PromptChanges from "../files/PromptChanges.ts"
import type { Direction } from "../files/Restoring.ts"
import type { FileKeeper } from "../files/FileKeeper.ts"
import type { Hooks } from "../hooks/HookSources.ts"
import type * as CommandHooks from "../hooks/CommandHooks.ts"
import * as SessionAgents from "../agent/SessionAgents.ts"
import type { Servers } from "../agent/McpServers.ts"
import type { Environment } from "../agent/Vendors.ts"
import type { Settings } from "../settings/Settings.ts"
import * as Requests from "../terminal/Requests.ts"

export interface Place {
  readonly runs: Runs
  /** The address of the server, `undefined` for runs in this process. */
  readonly url: string | undefined
  /** The model of a session that names none. */
  readonly model: string
  /** The folder of the tools. */
  readonly root: string
  /** The answers "always", which the policy of runs in this process reads. */
  readonly policy: Requests.Policy
  /** The instructions of the project. */
  readonly project: Workspace.Workspace | undefined
  /** Reads the newest run of a session, where runs are in this process without the logs of the others. */
  readonly newest: (sessionId: string) => Effect.Effect<Payload.Run | undefined, Playing.Problem>
  /** Opens a session, whose agent continues what has not ended, where runs are in this process. */
  readonly agent: ((sessionId: string) => Effect.Effect<Agent.Agent, Playing.Problem>) | undefined
  /** The MCP servers of runs in this process, if there are some. */
  readonly servers: Servers | undefined
  /** The command hook that runs, and the time of its start in milliseconds since the epoch. */
  readonly runningHook: () => { readonly command: string; readonly at: number } | undefined
  /** The command hooks, also those that do not run. */
  readonly hooks: () => ReadonlyArray<CommandHooks.Status>
  /** The versions of files that a session keeps, where runs are in this process. */
  readonly files: ((sessionId: string) => Effect.Effect<FileKeeper, Error>) | undefined
  /** Counts the runs since a prompt that changed files. */
  readonly changesSince: ((sessionId: string, messageId: string) => Effect.Effect<number, Error>) | undefined
  /** Counts the runs of the newest prompt that changed files, or whose changes were taken back. */
  readonly newestChanges:
    | ((sessionId: string, direction: Direction) => Effect.Effect<number, Error>)
    | undefined
  /** Empties the task list of a session, where runs are in this process. */
  readonly clearTasks: ((sessionId: string) => Effect.Effect<void, Error>) | undefined
  /** Checks a model that the session is to have, and succeeds with its name. */
  readonly choose: (model: string) => Effect.Effect<string, Error>
}

/** A session with a terminal stays open for as long as the program. */
const idle = "30 days"

/** Runs in this process. */
export const embedded = Effect.fnUntraced(function* (settings: Settings, env: Environment) {
  const [choice, { options: shell }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, env), AgentSetup.chooseSandbox(settings)],
    { concurrency: 2 }
  )
  const project = yield* AgentSetup.loadProject(settings, env)
  const root = (yield* Path.Path).resolve(settings.cwd)
  // A line of a pipe is a prompt, and no answer.
  const policy = Requests.policyOf(settings, root, process.stdin.isTTY ? "wait" : "deny")
  const {
    artifacts,
    cwd,
    kept,
    listed: within,
    logs,
    store
  } = yield* settings.noSession ? unkept(settings) : Sessions.at(settings)
  const hooks = watched(yield* AgentSetup.loadHooks(settings))
  const servers = yield* AgentSetup.serversOf(settings, choice.model)
  const plan = {
    settings,
    prompt: undefined,
    choice,
    output: undefined,
    project,
    shell,
    hooks: hooks.given,
    servers
  }
  const named = (model: string) => {
    const options = { ...settings, model: Option.some(model), modelFrom: "model" }
    return ModelChoice.choose(ModelChoice.besides(options, choice, model), env)
  }
  const keepers = kept && KeptFiles.shared(kept)
  const agents = SessionAgents.layer({
    plan,
    policy,
    artifacts,
    env,
    named,
    ...(keepers === undefined ? {} : { keeper: ({ id }) => Effect.succeed(keepers.keeper(id)) })
  })
  const services = yield* Layer.build(Layer.mergeAll(agents, logs, Layer.succeed(SessionStore, store)))
  const { host, runs } = yield* Effect.provideContext(
    LiveRuns.make({ ...within, cwd, idle, adopts: true }),
    services
  )
  const context = yield* Effect.context<Effect.Services<ReturnType<typeof named>>>()
  const place: Place = {
    runs,
    url: undefined,
    model: choice.model,
    root,
    policy,
    project,
    newest: (sessionId) =>
      Effect.flatMap(
        SessionProblem.logging(Context.get(services, RunLogStore.RunLogStore).list(sessionId)),
        (all) => {
          const last = all.at(-1)
          return last === undefined ? Effect.undefined : runs.get(last.runId)
        }
      ),
    agent: (sessionId) =>
      Effect.andThen(
        keepers?.settle(sessionId) ?? Effect.void,
        host.ask(sessionId, ({ open }) => open)
      ),
    servers,
    runningHook: hooks.running,
    hooks: hooks.list,
    files: keepers?.open,
    changesSince: keepers && changesSince(keepers.open, store),
    newestChanges: keepers && newestChanges(keepers.open, store),
    clearTasks: (sessionId) =>
      host.ask(sessionId, ({ opened }) => cleared(store, sessionId, opened?.session)),
    choose: (model) => Effect.map(Effect.provideContext(named(model), context), ({ model }) => model)
  }
  return place
})

const changesSince =
  (open: (sessionId: string) => Effect.Effect<FileKeeper, Error>, store: Service) =>
  (sessionId: string, messageId: string): Effect.Effect<number, Error> =>
    Effect.zipWith(open(sessionId), store.read(sessionId), ({ current }, contents) =>
      PromptChanges.since(contents, current.back, messageId)
    )

const newestChanges =
  (open: (sessionId: string) => Effect.Effect<FileKeeper, Error>, store: Service) =>
  (sessionId: string, direction: Direction): Effect.Effect<number, Error> =>
    Effect.zipWith(open(sessionId), store.read(sessionId), ({ current: { back, forth } }, contents) => {
      const prompts = PromptChanges.byPrompt(contents, direction === "back" ? back : forth)
      return prompts.at(-1)?.items.length ?? 0
    })

/** Empties the task list of a session, which is open if it has an agent. */
const cleared = (
  store: Service,
  sessionId: string,
  opened: OpenSession | undefined
): Effect.Effect<void, Error> =>
  opened === undefined
    ? Effect.scoped(Effect.flatMap(store.open(sessionId), TaskList.clear))
    : TaskList.clear(opened)

/** Hooks whose commands and runs the session can show. */
const watched = (found: Hooks | undefined) => {
  let list: () => ReadonlyArray<CommandHooks.Status> = () => found?.commands ?? []
  let running: { readonly command: string; readonly at: number } | undefined
  const take = (made: CommandHooks.CommandHooks) =>
    Effect.sync(() => {
      list = made.list
      made.listen((event) => void (running = event.type === "start" ? event : undefined))
    })
  const given = found && {
    ...found,
    make: (options: CommandHooks.Given) => Effect.tap(found.make(options), take)
  }
  return { given, list: () => list(), running: () => running }
}

/** A store in memory. */
const unkept = Effect.fnUntraced(function* ({ cwd }: Pick<Settings, "cwd">) {
  const services = yield* Layer.build(Layer.merge(MemorySessionStore.layer(), ArtifactStore.layerMemory()))
  return {
    store: Context.get(services, SessionStore),
    artifacts: Context.get(services, ArtifactStore.ArtifactStore),
    logs: RunLogStore.layerMemory,
    kept: undefined,
    listed: {},
    cwd: (yield* Path.Path).resolve(cwd)
  }
})
