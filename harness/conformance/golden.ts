/**
 * Plays scenarios through the public API: the agent or the stateless loop, op by op.
 */
import { Effect, Layer, Option, Stream } from "effect"
import { Agent, HookManager, Loop, ToolRegistry } from "effect-agent"
import { errorKind, nameOf, project, reportOf } from "./goldenProjection.ts"
import { hooksOf, messagesOf, optionsOf, promptOf, servicesOf, toolsOf } from "./goldenScript.ts"
import { scenarios } from "./scenarios.ts"
import type { Session, Stage } from "./stage.ts"
import { defined } from "./words.ts"

const session = (stage: Stage) =>
  stage.input.api === "agent" ? Effect.provide(agentSession(stage), servicesOf(stage)) : loopSession(stage)

export const kind = scenarios({ nameOf, session, project })

const agentSession = Effect.fnUntraced(function* (stage: Stage) {
  const { config, initial } = stage.input
  const agent = yield* Agent.make({
    ...optionsOf(stage.input),
    ...defined({ steeringMode: config?.steeringMode, followUpMode: config?.followUpMode }),
    tools: toolsOf(stage),
    hooks: hooksOf(stage),
    messages: messagesOf(initial?.messages, stage)
  }).pipe(Effect.orDie)
  yield* stage.listen(agent.subscribe)
  const state = () => agent.state.getUnsafe()
  const messages = () => state().messages
  return { snapshot: () => snapshotOf(state()), messages, ops: opsOf(agent, stage) } satisfies Session
})

const opsOf = (agent: Agent.Agent, stage: Stage): Session["ops"] => ({
  prompt: (op) => settled(agent.prompt(promptOf(op, stage))),
  continue: () => settled(agent.continue),
  steer: (op) => agent.steer(promptOf(op, stage)),
  followUp: (op) => agent.followUp(promptOf(op, stage)),
  cancel: ({ reason }) => agent.cancel(reason),
  pause: ({ reason }) => agent.pause(reason),
  // The scripts resume without regard to whether the run is paused.
  resume: () => Effect.ignore(agent.resume()),
  reset: () => settled(agent.reset),
  waitForIdle: () => agent.waitForIdle,
  clearSteeringQueue: () => agent.queues.clear("steering"),
  clearFollowUpQueue: () => agent.queues.clear("followUp"),
  clearAllQueues: () => agent.queues.clear("all"),
  hasQueuedMessages: () => Effect.map(agent.queues.sizes, (sizes) => sizes.steering + sizes.followUp > 0),
  queueSizes: () => agent.queues.sizes,
  snapshot: () => Effect.map(agent.state.get, snapshotOf),
  report: () => Effect.map(agent.report, (report) => reportOf(Option.getOrThrow(report))),
  setSteeringMode: ({ mode }) => agent.queues.setMode("steering", mode),
  setFollowUpMode: ({ mode }) => agent.queues.setMode("followUp", mode),
  setTools: ({ tools }) => agent.update({ activeTools: tools }).pipe(Effect.orDie),
  setMessages: ({ messages }) => agent.setMessages(messagesOf(messages, stage)).pipe(Effect.orDie),
  setModel: ({ id }) => agent.update({ model: id }).pipe(Effect.orDie),
  setThinkingLevel: ({ level }) =>
    agent.update({ modelOptions: { thinkingLevel: level } }).pipe(Effect.orDie),
  setSystemPrompt: ({ text }) => agent.update({ system: text }).pipe(Effect.orDie)
})

const snapshotOf = (state: Agent.AgentState) => ({
  isStreaming: state.phase !== "idle",
  messages: state.messages.length,
  pendingToolCalls: [...state.pendingToolCalls],
  errorMessage: state.lastError
})

const settled = (run: Effect.Effect<unknown, object>): Effect.Effect<void, string> =>
  Effect.asVoid(Effect.mapError(run, errorKind))

const loopSession = (stage: Stage): Effect.Effect<Session> => {
  const context = { messages: messagesOf(stage.input.initial?.messages, stage) }
  const tools = ToolRegistry.layer(...toolsOf(stage))
  const services = Layer.mergeAll(servicesOf(stage), tools, HookManager.layer(...hooksOf(stage)))
  const follow = (events: ReturnType<typeof Loop.continue>) =>
    settled(Effect.provide(Stream.runForEach(events, stage.saw), services))
  const made = () => stage.events.flatMap((event) => (event._tag === "MessageEnd" ? [event.message] : []))
  return Effect.succeed({
    snapshot: () => ({}),
    messages: () => [...context.messages, ...made()],
    callerMessages: () => context.messages.length,
    ops: {
      prompt: (op) => follow(Loop.stream(promptOf(op, stage), context, optionsOf(stage.input))),
      continue: () => follow(Loop.continue(context, optionsOf(stage.input)))
    }
  })
}
