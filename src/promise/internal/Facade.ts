/**
 * The methods of a promise agent, by those of the agent that it holds.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { textOnly } from "../../AgentEvent.ts"
import type { AgentState, StartedRun } from "../../Agent.ts"
import type * as Approval from "../../Approval.ts"
import type * as Hook from "../../Hook.ts"
import type { Registered } from "../../HookManager.ts"
import { InvalidInput } from "../../internal/invalidInput.ts"
import * as Inspection from "./Inspection.ts"
import * as ToolRegistry from "../../ToolRegistry.ts"
import type { Caller } from "./Caller.ts"
import type { HookFunction, HookName } from "../HookFunctions.ts"
import * as HookFunctions from "../HookFunctions.ts"
import * as Listeners from "../Listeners.ts"
import type { ListedHook, PromiseAgent, StartedPromiseRun } from "../PromiseAgent.ts"

/** The functions do not use `this`, so that an application may take an agent apart. */
export const make = (caller: Caller, listeners: Listeners.Listeners, initial: AgentState): PromiseAgent => {
  const close = () => caller.close()
  return {
    ...runs(caller),
    ...control(caller),
    ...queues(caller),
    ...requests(caller),
    ...watching(caller, listeners),
    state: state(caller, listeners, initial),
    tools: tools(caller),
    hooks: hooks(caller),
    disabledHooks: () => caller.ask((agent) => Effect.map(agent.disabledHooks, (all) => all.map(listed))),
    close,
    [Symbol.asyncDispose]: close
  }
}

const runs = (
  caller: Caller
): Pick<
  PromiseAgent,
  | "prompt"
  | "stream"
  | "streamText"
  | "streamEvents"
  | "continue"
  | "continueStream"
  | "start"
  | "startContinue"
> => ({
  prompt: (input, { signal, ...options } = {}) => caller.ask((agent) => agent.prompt(input, options), signal),
  stream: (input, { signal, ...options } = {}) =>
    caller.read((agent) => agent.stream(input, options), signal),
  streamText: (input, { signal, ...options } = {}) =>
    caller.read((agent) => textOnly(agent.stream(input, options)), signal),
  streamEvents: (input, { signal, ...options } = {}) =>
    caller.readEvents((agent) => agent.stream(input, options), signal),
  continue: ({ signal } = {}) => caller.ask((agent) => agent.continue, signal),
  continueStream: ({ signal } = {}) => caller.read((agent) => agent.continueStream, signal),
  start: async (input, options) => started(caller, await caller.ask((agent) => agent.start(input, options))),
  startContinue: async () => started(caller, await caller.ask((agent) => agent.startContinue))
})

const started = <O>(
  caller: Caller,
  { cancel, events, result, runId }: StartedRun<O>
): StartedPromiseRun<O> => ({
  runId,
  events: caller.follow(events),
  result: () => caller.settle(result),
  cancel: (reason) => caller.settle(cancel(reason))
})

const control = (
  caller: Caller
): Pick<
  PromiseAgent,
  "pause" | "resume" | "cancel" | "compact" | "reset" | "waitForIdle" | "update" | "setMessages"
> => ({
  pause: (reason) => caller.ask((agent) => agent.pause(reason)),
  resume: (reason) => caller.ask((agent) => agent.resume(reason)),
  cancel: (reason) => caller.ask((agent) => agent.cancel(reason)),
  compact: (instructions, { signal } = {}) => caller.ask((agent) => agent.compact(instructions), signal),
  reset: () => caller.ask((agent) => agent.reset),
  waitForIdle: () => caller.ask((agent) => agent.waitForIdle),
  update: (patch) => caller.ask((agent) => agent.update(patch)),
  setMessages: (messages) => caller.ask((agent) => agent.setMessages(messages))
})

const queues = (caller: Caller): Pick<PromiseAgent, "steer" | "followUp" | "queues"> => ({
  steer: (message, options) => caller.ask((agent) => agent.steer(message, options)),
  followUp: (message) => caller.ask((agent) => agent.followUp(message)),
  queues: {
    sizes: () => caller.ask((agent) => agent.queues.sizes),
    messages: () => caller.ask((agent) => agent.queues.messages),
    modes: () => caller.ask((agent) => agent.queues.modes),
    clear: (which) => caller.ask((agent) => agent.queues.clear(which)),
    setMode: (which, mode) => caller.ask((agent) => agent.queues.setMode(which, mode))
  }
})

const requests = (caller: Caller): Pick<PromiseAgent, "requests" | "answer"> => {
  function answer(id: string, reply: Approval.Reply): Promise<Approval.Answer>
  function answer(id: string, reply: Approval.QuestionReply): Promise<Approval.QuestionAnswer>
  function answer(id: string, reply: Approval.Reply | Approval.QuestionReply) {
    return caller.ask((agent) => agent.answer(id, reply))
  }
  return { requests: () => caller.ask((agent) => agent.requests), answer }
}

const watching = (
  caller: Caller,
  listeners: Listeners.Listeners
): Pick<
  PromiseAgent,
  "messages" | "partial" | "events" | "droppedEvents" | "subscribe" | "on" | "report"
> => ({
  messages: () => caller.ask((agent) => Effect.map(agent.state.get, ({ messages }) => messages)),
  partial: () => caller.ask((agent) => Effect.map(agent.partial, Option.getOrUndefined)),
  events: caller.read((agent) => agent.events),
  droppedEvents: () => caller.ask((agent) => agent.droppedEvents),
  report: () => caller.ask((agent) => Effect.map(agent.report, Option.getOrUndefined)),
  subscribe: (listener, options) => listeners.all(listener, options),
  on: (name, listener, options) => {
    const fault = Listeners.faultOf(name)
    if (fault !== undefined) throw invalidName(fault)
    return listeners.named(name, listener, options)
  }
})

const state = (
  caller: Caller,
  listeners: Listeners.Listeners,
  initial: AgentState
): PromiseAgent["state"] => ({
  get current() {
    return listeners.agent?.state.getUnsafe() ?? initial
  },
  get partial() {
    const { agent } = listeners
    return agent && Option.getOrUndefined(Effect.runSync(agent.partial))
  },
  get: () => caller.ask((agent) => agent.state.get),
  changes: caller.read((agent) => agent.state.changes)
})

const invalidName = (fault: string): InvalidInput => {
  const error = new InvalidInput({ subject: "options", faults: [`on: ${fault}`] })
  Inspection.calledFrom(error, Inspection.caller().slice(1))
  return error
}

const tools = (caller: Caller): PromiseAgent["tools"] => ({
  register: (tool) => caller.ask((agent) => agent.tools.register(tool)),
  unregister: (name) => caller.ask((agent) => agent.tools.unregister(name)),
  clear: () => caller.ask((agent) => agent.tools.clear),
  has: (name) => caller.ask((agent) => agent.tools.has(name)),
  get: (name) => caller.ask((agent) => agent.tools.get(name)),
  definitions: () => caller.ask((agent) => agent.tools.definitions),
  call: (name, params) =>
    caller.ask((agent) =>
      Effect.provideService(ToolRegistry.call(name, params), ToolRegistry.ToolRegistry, agent.tools)
    )
})

const hooks = (caller: Caller): PromiseAgent["hooks"] => ({
  list: () => caller.ask((agent) => Effect.sync(() => agent.hooks.list().map(listed))),
  register: (first: HookName | Hook.Runnable, run?: HookFunction<Hook.Point>) =>
    caller.ask((agent) => Effect.flatMap(hookOf(first, run), agent.hooks.register)),
  unregister: (id) => caller.ask((agent) => agent.hooks.unregister(id)),
  enable: (id) => caller.ask((agent) => agent.hooks.enable(id)),
  disable: (id) => caller.ask((agent) => agent.hooks.disable(id))
})

const listed = ({ id, isEnabled, name, point }: Registered): ListedHook => ({
  id,
  point,
  isEnabled,
  ...(name === undefined ? {} : { name })
})

const hookOf = (
  first: HookName | Hook.Runnable,
  run: HookFunction<Hook.Point> | undefined
): Effect.Effect<Hook.Runnable, InvalidInput> => {
  if (typeof first !== "string") return Effect.succeed(first)
  const faults = HookFunctions.faultsOf({ [first]: run ?? null })
  return run === undefined || faults.length > 0
    ? Effect.fail(new InvalidInput({ subject: "options", faults }))
    : Effect.succeed(HookFunctions.make(first, run))
}
