/**
 * Whether Converse takes the messages of a body, by its rules for `Message` and `ToolUseBlock`:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
 * https://docs.aws.amazon.com/bedrock/latest/userguide/tool-use-inference-call.html
 */
import type { Words } from "../../conformance/words.ts"

/** The faults of the messages, in words. */
export const faults = ({ messages, toolConfig }: Words): ReadonlyArray<string> => {
  const hasTools = (toolConfig?.tools ?? []).length > 0
  return messages.flatMap((message: Words, index: number) => {
    const { content, role } = message
    const due = role === "user" ? idsOf(messages[index - 1], "toolUse") : []
    const found = [
      ...(role === (index % 2 === 0 ? "user" : "assistant") ? [] : [`has the role ${role}`]),
      ...(content.length === 0 ? ["is empty"] : []),
      ...content.flatMap((block: Words) => faultsOf(block, role, hasTools)),
      ...faultsOfResults(content, due)
    ]
    return found.map((fault) => `message ${index} ${fault}`)
  })
}

const idsOf = (message: Words | undefined, kind: "toolUse" | "toolResult"): ReadonlyArray<string> =>
  (message?.content ?? []).flatMap((block: Words) =>
    block[kind] === undefined ? [] : [block[kind].toolUseId]
  )

/** The results of a message are those of the calls before it, one for each, and stand before its other blocks. */
const faultsOfResults = (
  content: ReadonlyArray<Words>,
  due: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const given = idsOf({ content }, "toolResult")
  const isFirst = content.slice(0, given.length).every(({ toolResult }) => toolResult !== undefined)
  return [
    ...(isFirst ? [] : ["has other blocks before its results"]),
    ...due.filter((id) => !given.includes(id)).map((id) => `has no result of ${id}`),
    ...given.filter((id) => !due.includes(id)).map((id) => `has the result ${id} of no call before it`),
    ...given.filter((id, index) => given.indexOf(id) !== index).map((id) => `has two results of ${id}`)
  ]
}

/** The members of which a block has exactly one. */
const kinds = ["text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint"]

const faultsOf = (block: Words, role: string, hasTools: boolean): ReadonlyArray<string> => {
  const { text, toolResult, toolUse } = block
  const tool = toolUse ?? toolResult
  const isOne = kinds.filter((kind) => kind in block).length === 1 && Object.keys(block).length === 1
  return [
    ...(isOne ? [] : [`has a block of ${Object.keys(block).join(" and ")}`]),
    ...(text === undefined || text.trim() !== "" ? [] : ["has a blank text"]),
    ...(toolUse === undefined || role === "assistant" ? [] : ["has a call of the user"]),
    ...(toolResult === undefined || role === "user" ? [] : ["has a result of the assistant"]),
    ...(tool === undefined || hasTools ? [] : ["has a tool block in a request without tools"]),
    ...(tool === undefined || /^[a-zA-Z0-9_-]{1,64}$/.test(tool.toolUseId)
      ? []
      : ["has an id that is not valid"]),
    ...(toolUse === undefined || /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(toolUse.name)
      ? []
      : ["has a name that is not valid"]),
    ...(toolUse === undefined || isObject(toolUse.input) ? [] : ["has an input that is no object"]),
    ...(toolResult === undefined || toolResult.content.length > 0 ? [] : ["has a result without content"])
  ]
}

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value)
