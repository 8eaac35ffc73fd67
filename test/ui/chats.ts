/** Chats of the AI SDK with a server, whose connections may break. */
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type ToolUIPart,
  type UIMessage
} from "ai"
import { Effect, Stream } from "effect"
import type { AgentEvent } from "effect-agent"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { Chat } from "./aiSdk.ts"

/** A chat that answers by itself once all parts of its step have answers. */
export const chatOf = (
  url: string,
  id: string,
  fetch?: typeof globalThis.fetch,
  messages: Array<UIMessage> = []
) =>
  new Chat({
    id,
    messages,
    transport: new DefaultChatTransport({ api: `${url}/ui/chat`, ...(fetch === undefined ? {} : { fetch }) }),
    sendAutomaticallyWhen: (messages) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(messages) ||
      (messages.messages.at(-1)?.role === "assistant" &&
        toolsOf(messages.messages.at(-1)).at(-1)?.type === "tool-ask_user" &&
        lastAssistantMessageIsCompleteWithToolCalls(messages))
  })

export const partsOf = <const Type extends UIMessage["parts"][number]["type"]>(
  message: UIMessage | undefined,
  type: Type
): ReadonlyArray<Extract<UIMessage["parts"][number], { type: Type }>> =>
  (message?.parts ?? []).filter((part): part is Extract<typeof part, { type: Type }> => part.type === type)

export const toolsOf = (message: UIMessage | undefined): ReadonlyArray<DynamicToolUIPart | ToolUIPart> =>
  (message?.parts ?? []).filter(isToolUIPart)

export const tick = () => new Promise<void>((resolve) => setTimeout(resolve, 2))

/** Answers requests, and comes back after a lost connection, until the chat rests. */
export const answering = async (chat: Chat, approved = true, isDone = () => true): Promise<void> => {
  for (let rests = 0; rests < 5; await tick()) {
    const tool = toolsOf(chat.lastMessage).find(
      (part) =>
        part.state === "approval-requested" ||
        (getToolName(part) === "ask_user" && part.state === "input-available")
    )
    if (chat.status === "error" && chat.error?.message === "network error") await chat.resumeStream()
    else if (chat.status === "ready" && tool?.state === "approval-requested") {
      const reason = approved ? {} : { reason: "no way" }
      await chat.addToolApprovalResponse({ id: tool.approval.id, approved, ...reason })
    } else if (chat.status === "ready" && tool !== undefined) {
      await chat.addToolOutput({ tool: "ask_user", toolCallId: tool.toolCallId, output: "Yes" })
    } else if (chat.status === "ready" || chat.status === "error") rests += isDone() ? 1 : 0
    else rests = 0
  }
}

export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** The message that a client has that has seen the whole log in one response. */
export const whole = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  Effect.promise(async () => {
    const transport = new DefaultChatTransport({
      api: "http://localhost/",
      fetch: async () => AiSdkUi.webResponse(Stream.fromIterable(events))
    })
    const chat = new Chat({ transport })
    await chat.sendMessage({ text: "" })
    return chat.lastMessage
  })

/** A fetch whose responses break after a number of bytes, as a lost connection does. */
export const breaking =
  (bytes: () => number): typeof globalThis.fetch =>
  async (input, init) => {
    const controller = new AbortController()
    const signal = init?.signal ? AbortSignal.any([init.signal, controller.signal]) : controller.signal
    const response = await fetch(input, { ...init, signal })
    if (response.body === null) return response
    let left = bytes()
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, out) {
        out.enqueue(chunk.subarray(0, left))
        left -= chunk.length
        if (left > 0) return
        controller.abort()
        out.error(new TypeError("network error"))
      }
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
