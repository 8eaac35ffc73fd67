/** A client of the AI SDK without a framework. */
import { AbstractChat, type ChatInit, type ChatState, type ChatStatus, type UIMessage } from "ai"

class State implements ChatState<UIMessage> {
  messages: Array<UIMessage> = []
  status: ChatStatus = "ready"
  error: Error | undefined = undefined
  pushMessage = (message: UIMessage) => void (this.messages = [...this.messages, message])
  popMessage = () => void (this.messages = this.messages.slice(0, -1))
  replaceMessage = (index: number, message: UIMessage) =>
    void (this.messages = this.messages.map((other, at) => (at === index ? structuredClone(message) : other)))
  snapshot = <A>(value: A): A => structuredClone(value)
}

export class Chat extends AbstractChat<UIMessage> {
  constructor({ messages, ...init }: ChatInit<UIMessage>) {
    const state = new State()
    state.messages = messages ?? []
    super({ ...init, state })
  }
}
