/**
 * Replaces tool names that providers refuse in a request, and restores them in the answer.
 */
import * as Stream from "effect/Stream"
import { acceptedName, isAcceptedName } from "../../internal/invalidTool.ts"
import type { ModelMessage } from "../../Message.ts"
import type { ModelEvent } from "../../ModelEvent.ts"
import type { ModelRequest } from "../../Provider.ts"

/**
 * Returns names that providers accept, in order and all different. A name that they accept stays. Of others that become the same
 * name, the second ends with `_2` and the third with `_3`.
 */
export const accepted = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taken = new Set(names.filter(isAcceptedName))
  return names.map((name) => {
    if (isAcceptedName(name)) return name
    const plain = acceptedName(name)
    let free = plain
    for (let count = 2; taken.has(free); count++) {
      const suffix = `_${count}`
      free = plain.slice(0, 64 - suffix.length) + suffix
    }
    taken.add(free)
    return free
  })
}

/** Calls a provider with names that it accepts. The answer has the names of the request. */
export const around =
  <E>(ask: (request: ModelRequest) => Stream.Stream<ModelEvent, E>) =>
  (request: ModelRequest): Stream.Stream<ModelEvent, E> => {
    const names = request.tools.map(({ name }) => name)
    const spelt = accepted(names)
    if (names.every((name, index) => name === spelt[index])) return ask(request)
    const there = new Map(names.map((name, index) => [name, spelt[index] ?? name]))
    const back = new Map(Array.from(there, ([name, spelt]) => [spelt, name]))
    return Stream.map(ask(spell(request, there)), (event) =>
      event._tag === "ToolCallStart" ? { ...event, name: back.get(event.name.trim()) ?? event.name } : event
    )
  }

type Names = ReadonlyMap<string, string>

const spell = (request: ModelRequest, names: Names): ModelRequest => {
  const of = (name: string) => names.get(name) ?? name
  const { options } = request
  const { toolChoice } = options
  return {
    ...request,
    messages: request.messages.map((message) => spellMessage(message, of)),
    tools: request.tools.map((tool) => ({ ...tool, name: of(tool.name) })),
    options:
      typeof toolChoice === "object" ? { ...options, toolChoice: { name: of(toolChoice.name) } } : options
  }
}

const spellMessage = (message: ModelMessage, of: (name: string) => string): ModelMessage => {
  switch (message.role) {
    case "assistant":
      return {
        ...message,
        content: message.content.map((block) =>
          block.type === "toolCall" ? { ...block, name: of(block.name) } : block
        )
      }
    case "toolResult":
      return { ...message, toolName: of(message.toolName) }
    default:
      return message
  }
}
