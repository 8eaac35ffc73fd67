/** A page of React with `useChat`, in jsdom. */
import { useChat } from "@ai-sdk/react"
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIDataTypes,
  type UIMessage
} from "ai"
import type { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { JSDOM } from "jsdom"
import { createElement, useLayoutEffect } from "react"
import { createRoot } from "react-dom/client"
import { tick } from "./chats.ts"

type Page<Tools extends Record<string, { input: unknown; output: unknown }>> = UIMessage<
  AiSdkUi.Metadata,
  UIDataTypes,
  Tools
>

interface Setup<Message extends UIMessage> {
  readonly api: string
  readonly headers?: Record<string, string>
  readonly id: string
  readonly messages?: Array<Message>
  readonly resume?: boolean
  /** The words that the page shows for a part. */
  readonly shown: (part: Message["parts"][number]) => string
}

/** Opens a page, and returns what a person can do with it. */
export const open = async <Tools extends Record<string, { input: unknown; output: unknown }>>(
  setup: Setup<Page<Tools>>
) => {
  const dom = new JSDOM('<div id="root"></div>', { url: "http://localhost:3000", pretendToBeVisual: true })
  Object.assign(globalThis, { window: dom.window, document: dom.window.document })
  const { api, headers = {}, id, messages = [], resume = false, shown } = setup
  const transport = new DefaultChatTransport<Page<Tools>>({ api, headers })
  const holder: { chat?: ReturnType<typeof useChat<Page<Tools>>> } = {}
  const App = () => {
    const chat = useChat<Page<Tools>>({
      id,
      messages,
      resume,
      transport,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
    })
    useLayoutEffect(() => void (holder.chat = chat))
    return createElement(
      "ul",
      null,
      chat.messages.map((message) =>
        createElement("li", { key: message.id }, `${message.role}: ${message.parts.map(shown).join("")}`)
      )
    )
  }
  const element = dom.window.document.getElementById("root")
  if (element === null) throw new Error("The page has no root")
  const root = createRoot(element)
  root.render(createElement(App))
  while (holder.chat === undefined) await tick()
  return {
    /** The chat as the last rendering has it. */
    chat: () => {
      if (holder.chat === undefined) throw new Error("The page has no chat")
      return holder.chat
    },
    /** The lines that the page shows. */
    lines: () => Array.from(dom.window.document.querySelectorAll("li"), ({ textContent }) => textContent),
    /** Leaves no trace of a browser: other tests of this process would take it for one. */
    close: async () => {
      root.unmount()
      await tick()
      dom.window.close()
      for (const name of ["window", "document"]) Reflect.deleteProperty(globalThis, name)
    }
  }
}
