/** Runs the command hooks at the points of an agent, and plugs them into its runs. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as MutableRef from "effect/MutableRef"
import * as Path from "effect/Path"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import type * as Agent from "../../Agent.ts"
import type { AgentEvent } from "../../AgentEvent.ts"
import type * as Hook from "../../Hook.ts"
import * as Message from "../../Message.ts"
import type { Session } from "../../Session.ts"
import type { Settings } from "../settings/Settings.ts"
import type * as Requests from "../terminal/Requests.ts"
import * as Screen from "../terminal/Screen.ts"
import * as HookFile from "./HookFile.ts"
import type { Found, Listed, Point } from "./HookFile.ts"
import * as HookProcess from "./HookProcess.ts"
import * as KarlHooks from "./KarlHooks.ts"
import * as Matcher from "./Matcher.ts"
import * as Verdict from "./Verdict.ts"

/** The session and the settings of an agent. */
export interface Given {
  /** `provider/id`. */
  readonly model: string
  readonly policy: Requests.Policy
  /** Default: the agent has no session. */
  readonly session: Session | undefined
  readonly settings: Settings
  /** The rules of approvals. */
  readonly rules: Pick<typeof Requests, "callKey" | "needsApproval">
  /** The path of the file of the session, `""` if it has none. */
  readonly transcript: Effect.Effect<string, never, FileSystem.FileSystem | Path.Path>
}

/** A command of a file, with its last run. */
export interface Status extends Listed {
  readonly last?: {
    readonly result: "passed" | "blocked" | "failed"
    readonly at: number
    readonly millis: number
  }
}

/** The start or the end of a run of a command. */
export interface Event {
  readonly type: "start" | "end"
  readonly point: Point
  readonly command: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** Of an end: the milliseconds that the command took. */
  readonly millis?: number
}

/** The hooks of an agent. */
export interface CommandHooks {
  /** The hooks that the agent takes. */
  readonly hooks: ReadonlyArray<Hook.Runnable>
  /** Runs the hooks of the start of the session now, and those of its end when the scope closes. */
  readonly attach: (agent: Pick<Agent.Agent, "subscribe">) => Effect.Effect<void, never, Scope.Scope>
  /** All commands of the files, also those that do not run. */
  readonly list: () => ReadonlyArray<Status>
  /** Calls a listener when a command starts and ends. Returns the function that removes it. */
  readonly listen: (listener: (event: Event) => void) => () => void
}

type Services = ChildProcessSpawner.ChildProcessSpawner | FileSystem.FileSystem | Path.Path | Screen.Screen

/** The state of one run. */
interface RunState {
  /** The reason for which the prompt is not sent. */
  refused: string | undefined
  isStopped: boolean
  /** How often in a row a hook kept the run from its end. */
  continued: number
  lastAnswer: string
}

/** How often in a row hooks may keep a run from its end. */
const maxContinued = 8

export const make = Effect.fnUntraced(function* (
  found: Found,
  given: Given
): Effect.fn.Return<CommandHooks, never, Services> {
  const services = yield* Effect.context<Services>()
  const runner = new Runner(found, given)
  const karl = yield* KarlHooks.load(found.modules, given.model)
  return {
    hooks: [...provided(runner, services), ...karl],
    attach: (agent) => Effect.provideContext(attached(runner, agent, services), services),
    list: () => runner.list(),
    listen: (listener) => runner.listen(listener)
  }
})

class Runner {
  readonly policy: Requests.Policy
  readonly rules: Given["rules"]
  /** Texts for the model that no request has had. */
  pending: ReadonlyArray<string> = []
  /** The ids of prompts that were refused. */
  readonly refusedPrompts = new Set<string>()
  private readonly states = new Map<string, RunState>()
  private readonly last = new Map<Listed, NonNullable<Status["last"]>>()
  private readonly listeners = new Set<(event: Event) => void>()
  private readonly found: Found
  private readonly given: Given

  constructor(found: Found, given: Given) {
    this.found = found
    this.given = given
    this.policy = given.policy
    this.rules = given.rules
  }

  /** Whether the agent continues a session. */
  get isResumed(): boolean {
    return (this.given.session?.restored.messages ?? []).length > 0
  }

  stateOf(runId: string): RunState {
    const known = this.states.get(runId)
    const state = known ?? { refused: undefined, isStopped: false, continued: 0, lastAnswer: "" }
    if (known === undefined) this.states.set(runId, state)
    return state
  }

  /** Forgets a run that has ended. */
  forget(runId: string): void {
    this.states.delete(runId)
    for (const key of this.policy.hooked.keys())
      if (key.startsWith(`${runId} `)) this.policy.hooked.delete(key)
  }

  list(): ReadonlyArray<Status> {
    return this.found.commands.map((hook) => {
      const last = this.last.get(hook)
      return last === undefined ? hook : { ...hook, last }
    })
  }

  listen(listener: (event: Event) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Runs the commands of a point that cover a subject, side by side, and shows their lines. */
  run(
    point: Point,
    subject: string,
    members: (naming: Matcher.Naming) => Matcher.Members,
    inputOf: (naming: Matcher.Naming, input: Matcher.Members) => Matcher.Members = (_, input) => input
  ): Effect.Effect<Verdict.Verdict, never, Services> {
    const covering = this.found.commands.flatMap((hook) => {
      const naming = hook.isTrusted && hook.point === point ? hook.covers(subject) : undefined
      return naming === undefined ? [] : [{ hook, naming }]
    })
    const once = covering.filter(
      ({ hook }, index) => covering.findIndex((other) => other.hook.command === hook.command) === index
    )
    const each = ({ hook, naming }: (typeof covering)[number]) =>
      Effect.map(
        this.runOne(hook, members(naming)),
        (verdict): Verdict.Verdict =>
          verdict.input === undefined ? verdict : { ...verdict, input: inputOf(naming, verdict.input) }
      )
    return Effect.gen({ self: this }, function* () {
      if (once.length === 0) return nothing
      const verdict = Verdict.together(yield* Effect.forEach(once, each, { concurrency: "unbounded" }))
      yield* Effect.forEach(verdict.lines, Screen.complain, { discard: true })
      if (verdict.stop !== undefined) yield* Screen.complain(verdict.stop)
      return verdict
    })
  }

  private runOne(hook: Listed, members: Matcher.Members) {
    return Effect.gen({ self: this }, function* () {
      const { configuration, cwd } = this.given.settings
      const { command, point } = hook
      const at = Date.now()
      this.tell({ type: "start", point, command, at })
      const input = {
        session_id: this.given.session?.id ?? "",
        transcript_path: yield* this.given.transcript,
        cwd: (yield* Path.Path).resolve(cwd),
        permission_mode: modes[MutableRef.get(this.policy.mode)],
        hook_event_name: point,
        ...members
      }
      const ended = yield* HookProcess.run(hook, configuration.paths.folder, input)
      const millis = Date.now() - at
      this.tell({ type: "end", point, command, at: at + millis, millis })
      const verdict = Verdict.of(hook, ended)
      const isFailed = ended._tag !== "Exit" || (ended.code !== 0 && ended.code !== 2)
      const result = isFailed ? "failed" : verdict.block === undefined ? "passed" : "blocked"
      this.last.set(hook, { result, at, millis })
      return verdict
    })
  }

  private tell(event: Event): void {
    for (const listener of this.listeners) listener(event)
  }
}

const nothing: Verdict.Verdict = { lines: [], contexts: [] }

const modes = { ask: "default", edits: "acceptEdits", plan: "plan", yes: "bypassPermissions" } as const

/** The hooks of the library that run the commands. */
const provided = (runner: Runner, services: Context.Context<Services>): ReadonlyArray<Hook.Runnable> => {
  const on = <A>(effect: Effect.Effect<A, never, Services>) => Effect.provideContext(effect, services)
  return [
    HookFile.at("beforeExecution", ({ prompts, runId }) => on(submitted(runner, runId, prompts))),
    HookFile.at("steering", () =>
      Effect.sync(() => {
        const texts = runner.pending
        runner.pending = []
        return texts.map((text) => Message.user(text))
      })
    ),
    HookFile.at("transformMessages", ({ messages, runId }) =>
      Effect.sync(() => {
        if (runner.refusedPrompts.size === 0 || runner.stateOf(runId).refused !== undefined) return
        return messages.filter(({ id }) => !runner.refusedPrompts.has(id))
      })
    ),
    HookFile.at("beforeModel", ({ runId }) =>
      Effect.sync(() => {
        const { refused } = runner.stateOf(runId)
        return refused === undefined ? undefined : { skip: true, reason: `refused by hook: ${refused}` }
      })
    ),
    HookFile.at("afterModel", ({ message, runId }) =>
      Effect.sync(() => {
        runner.stateOf(runId).lastAnswer = Message.textOf(message)
      })
    ),
    HookFile.at("beforeTool", (input) => on(beforeTool(runner, input))),
    HookFile.at("approveTool", (input) => on(permission(runner, input))),
    HookFile.at("afterTool", (input) => on(afterTool(runner, input))),
    HookFile.at("shouldStopAfterTurn", ({ runId }) => Effect.sync(() => runner.stateOf(runId).isStopped)),
    HookFile.at("followUp", ({ runId }) => on(stopping(runner, runId))),
    HookFile.at("beforeCompaction", ({ instructions = "", reason }) =>
      on(
        Effect.map(
          runner.run("PreCompact", triggerOf(reason), () => ({
            trigger: triggerOf(reason),
            custom_instructions: instructions
          })),
          ({ block }) => (block === undefined ? undefined : { skip: true, reason: block })
        )
      )
    ),
    HookFile.at("afterCompaction", () => on(started(runner, "compact"))),
    HookFile.at("afterExecution", ({ runId }) => Effect.sync(() => runner.forget(runId)))
  ]
}

const triggerOf = (reason: string): string => (reason === "manual" ? "manual" : "auto")

/** Keeps the texts of a verdict for the next request. */
const keep = (runner: Runner, { contexts }: Verdict.Verdict): void => {
  runner.pending = [...runner.pending, ...contexts]
}

const started = (runner: Runner, source: "startup" | "resume" | "compact") =>
  Effect.map(
    runner.run("SessionStart", source, () => ({ source })),
    (verdict) => keep(runner, verdict)
  )

/** Asks about the prompts of a run. A prompt that is refused stays out of all requests. */
const submitted = Effect.fnUntraced(function* (
  runner: Runner,
  runId: string,
  prompts: ReadonlyArray<Message.Message>
) {
  if (prompts.length === 0) return
  const prompt = prompts.map(Message.textOf).join("\n")
  const verdict = yield* runner.run("UserPromptSubmit", "", () => ({ prompt }))
  const refused = verdict.block ?? verdict.stop
  if (refused === undefined) return keep(runner, verdict)
  runner.stateOf(runId).refused = refused
  for (const { id } of prompts) runner.refusedPrompts.add(id)
})

/** The call of a tool for the commands. */
const callOf = ({ call: { id, name, params } }: Hook.ToolInput, input: Schema.Json = params ?? {}) => ({
  members: (naming: Matcher.Naming) => ({
    tool_name: Matcher.nameOf(name, naming),
    tool_input: Matcher.isMembers(input) ? Matcher.toHook(name, naming, input) : input,
    tool_use_id: id
  }),
  inputOf: (naming: Matcher.Naming, input: Matcher.Members) => Matcher.fromHook(name, naming, input)
})

const byHook = (reason: string): string => `refused by hook: ${reason}`

const beforeTool = Effect.fnUntraced(function* (runner: Runner, input: Hook.ToolInput) {
  const { call, runId } = input
  const { inputOf, members } = callOf(input)
  const verdict = yield* runner.run("PreToolUse", call.name, members, inputOf)
  const { block, decision, input: changed, reason = "a hook wants a person to decide", stop } = verdict
  if (stop !== undefined) {
    runner.stateOf(runId).isStopped = true
    return { block: true, reason: byHook(block ?? stop), terminate: true }
  }
  if (block !== undefined) return { block: true, reason: byHook(block) }
  if (decision !== undefined)
    runner.policy.hooked.set(runner.rules.callKey(runId, call.id), { decision, reason })
  return changed === undefined ? undefined : { params: changed }
})

/** Asks the hooks about a call that a person would decide about. */
const permission = Effect.fnUntraced(function* (runner: Runner, input: Hook.ToolInput) {
  const { call, params, runId, tool } = input
  const key = runner.rules.callKey(runId, call.id)
  const hooked = runner.policy.hooked.get(key)?.decision
  const isAsked = runner.rules.needsApproval(runner.policy, call.name, params, tool.effect === "pure")
  if (hooked === "allow" || (hooked === undefined && !isAsked)) return
  const { inputOf, members } = callOf(input, Matcher.isJson(params) ? params : undefined)
  const verdict = yield* runner.run("PermissionRequest", call.name, members, inputOf)
  if (verdict.stop !== undefined) runner.stateOf(runId).isStopped = true
  const refused = verdict.block ?? verdict.stop
  if (refused !== undefined) return { approved: false as const, reason: byHook(refused) }
  if (verdict.decision !== "allow") return
  runner.policy.hooked.set(key, { decision: "allow", reason: "a hook allows it" })
  return { approved: true as const, ...(verdict.input === undefined ? {} : { params: verdict.input }) }
})

const afterTool = Effect.fnUntraced(function* (runner: Runner, input: Hook.AfterToolInput) {
  const { call, isError, params, result, runId } = input
  const { members } = callOf(input, Matcher.isJson(params) ? params : undefined)
  const text = result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")
  const end = isError
    ? { error: text }
    : { tool_response: Matcher.isJson(result) ? result : { content: [{ type: "text", text }] } }
  const point = isError ? "PostToolUseFailure" : "PostToolUse"
  const verdict = yield* runner.run(point, call.name, (naming) => ({ ...members(naming), ...end }))
  if (verdict.stop !== undefined) runner.stateOf(runId).isStopped = true
  const texts = [...(verdict.block === undefined ? [] : [verdict.block]), ...verdict.contexts]
  if (texts.length === 0) return
  return { content: [...result.content, ...texts.map((text) => ({ type: "text" as const, text }))] }
})

/** Asks whether a run may end. */
const stopping = Effect.fnUntraced(function* (runner: Runner, runId: string) {
  const state = runner.stateOf(runId)
  const members = () => ({ stop_hook_active: state.continued > 0, last_assistant_message: state.lastAnswer })
  const { block, stop } = yield* runner.run("Stop", "", members)
  if (block === undefined || stop !== undefined) return
  if (state.continued >= maxContinued)
    return yield* Screen.complain(
      `The run ends, although a hook refused that ${maxContinued} times in a row.`
    )
  state.continued++
  return [Message.user(block)]
})

// ───────────────────────── The session

const attached = Effect.fnUntraced(function* (
  runner: Runner,
  agent: Pick<Agent.Agent, "subscribe">,
  services: Context.Context<Services>
) {
  yield* started(runner, runner.isResumed ? "resume" : "startup")
  const end = runner.run("SessionEnd", "other", () => ({ reason: "other" }))
  yield* Effect.addFinalizer(() => Effect.provideContext(Effect.ignoreCause(end), services))
  const scope = yield* Effect.scope
  yield* agent.subscribe((event) => {
    const notification = notificationOf(event)
    if (notification === undefined) return Effect.void
    const { message, type } = notification
    const notify = runner.run("Notification", type, () => ({ message, notification_type: type }))
    return Effect.asVoid(Effect.forkIn(Effect.provideContext(notify, services), scope))
  })
})

const notificationOf = (
  event: AgentEvent
): { readonly message: string; readonly type: string } | undefined => {
  switch (event._tag) {
    case "ApprovalRequested":
      return { message: `The tool ${event.toolName} needs an approval`, type: "permission_prompt" }
    case "QuestionAsked":
      return { message: event.question, type: "elicitation_dialog" }
    default:
      return undefined
  }
}
