/** An editor of the package of ACP, and an agent that it is connected to in this process. */
import {
  client,
  type ClientCapabilities,
  type ClientContext,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate
} from "@agentclientprotocol/sdk"
import { Effect, Fiber, Layer } from "effect"
import { Agent, Approval, type Tool } from "effect-agent"
import { AcpAgent } from "effect-agent/acp"
import { Agents, LiveRuns, RunLogStore } from "effect-agent/server"
import { MemorySessionStore, type SessionStore } from "effect-agent/sessions"
import type { Provider } from "effect-agent"
import type * as Scripted from "../ui/scripted.ts"

export interface Answers {
  readonly permission?: (
    request: RequestPermissionRequest
  ) => RequestPermissionResponse | Promise<RequestPermissionResponse>
  readonly form?: (request: CreateElicitationRequest) => CreateElicitationResponse
  readonly capabilities?: ClientCapabilities
}

export interface Seen {
  readonly updates: Array<SessionUpdate>
  readonly permissions: Array<RequestPermissionRequest>
  readonly forms: Array<CreateElicitationRequest>
}

export const select = (optionId: string): RequestPermissionResponse => ({
  outcome: { outcome: "selected", optionId }
})

/** An editor that answers, and keeps what it gets. */
export const editor = ({ form, permission = () => select("once") }: Answers = {}) => {
  const seen: Seen = { updates: [], permissions: [], forms: [] }
  const app = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }) => void seen.updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.permissions.push(params)
      return permission(params)
    })
  if (form !== undefined)
    app.onRequest(methods.client.elicitation.create, ({ params }) => {
      seen.forms.push(params)
      return form(params)
    })
  return { app, seen }
}

export interface Setup {
  readonly tools?: ReadonlyArray<Tool.Runnable | (typeof Scripted.tools)[number]>
  readonly ask?: ReadonlyArray<string>
  readonly asked?: Approval.Asked
  readonly options?: Partial<AcpAgent.Options>
  readonly places?: Layer.Layer<RunLogStore.RunLogStore | SessionStore.SessionStore>
}

/** The runs of the agent. */
export const runs = (
  provider: Layer.Layer<Provider.Provider>,
  { ask = [], asked = "wait", places, tools = [] }: Setup
) => {
  const rules = ask.map((name) => Approval.ask(name))
  const policy = Approval.layer({ rules, otherwise: "allow", asked })
  const agents = Agents.layer(({ session }) =>
    Effect.provide(Agent.make({ model: "any", tools, session }), policy)
  )
  return LiveRuns.layer({ flush: 0 }).pipe(
    Layer.provide(agents),
    Layer.provide(provider),
    Layer.provide(places ?? Layer.merge(MemorySessionStore.layer(), RunLogStore.layerMemory))
  )
}

/** Connects an editor to an agent, for as long as `work` takes. */
export const connected = <A>(
  answers: Answers,
  setup: Setup,
  work: (agent: ClientContext, seen: Seen) => Promise<A>
) =>
  Effect.gen(function* () {
    const [toAgent, toEditor] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()]
    const options = { name: "test", version: "1.0.0", ...setup.options }
    const streams = { input: toAgent.readable, output: toEditor.writable }
    const serving = yield* Effect.forkChild(AcpAgent.serve(options, streams))
    const { app, seen } = editor(answers)
    const result = yield* Effect.promise(() =>
      app.connectWith(ndJsonStream(toAgent.writable, toEditor.readable), async (agent) => {
        const { capabilities = {} } = answers
        await agent.request(methods.agent.initialize, {
          protocolVersion: 1,
          clientCapabilities: capabilities
        })
        return work(agent, seen)
      })
    )
    yield* Effect.promise(() => toAgent.writable.close().catch(() => undefined))
    yield* Fiber.join(serving)
    return { result, seen }
  })

export const begin = async (agent: ClientContext): Promise<string> => {
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: "/work", mcpServers: [] })
  return sessionId
}

export const ask = (agent: ClientContext, sessionId: string, text: string) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] })

/** The conversation as an editor shows it: messages by their ids, and calls with their last state. */
export const shown = (updates: ReadonlyArray<SessionUpdate>) => {
  const messages = new Map<string, string>()
  const calls = new Map<string, { title: string; status: string; text: string }>()
  for (const update of updates) {
    switch (update.sessionUpdate) {
      case "user_message_chunk":
      case "agent_message_chunk":
      case "agent_thought_chunk": {
        const key = `${update.sessionUpdate.split("_")[0]} ${update.sessionUpdate.split("_")[1]} ${update.messageId}`
        const text = update.content.type === "text" ? update.content.text : `[${update.content.type}]`
        messages.set(key, (messages.get(key) ?? "") + text)
        break
      }
      case "tool_call":
      case "tool_call_update": {
        const before = calls.get(update.toolCallId) ?? { title: "", status: "", text: "" }
        const text = update.content?.map((part) =>
          part.type === "content"
            ? part.content.type === "text"
              ? part.content.text
              : part.content.type
            : part.type
        )
        calls.set(update.toolCallId, {
          title: update.title ?? before.title,
          status: update.status ?? before.status,
          text: text?.join("\n") ?? before.text
        })
        break
      }
      default:
    }
  }
  return { messages, calls }
}

/** Waits until something is so, while others run. */
export const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}
