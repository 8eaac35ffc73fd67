/** Leaves out the options of blocks and tools that a server does not have, and reports them. */
import { memoize } from "effect/Function"
import type { ImageDetail } from "../../Message.ts"
import type { ModelRequest, ToolDefinition } from "../../Provider.ts"
import type { Changes } from "./changes.ts"
import type { Server } from "./server.ts"
import { titleOf } from "./support.ts"
import type { PartOption } from "../Protocol.ts"

/** The tools of a request as the server takes them. Reports the options of blocks and tools that it leaves out. */
export const adapt = (
  changes: Changes,
  { protocol, serves }: Server,
  { messages, model, tools }: ModelRequest
): ModelRequest["tools"] => {
  const parts = protocol.parts?.(model, serves)
  if (parts === undefined) return tools
  const takes = (option: PartOption) => parts.includes(option)
  const lacking = `${titleOf(protocol)} has no such option for this model.`
  const { cites, detail } = asked(messages)
  if (detail !== undefined && !takes("detail")) changes.report("image.detail", detail, null, lacking)
  if (cites && !takes("citations")) changes.report("file.citations", { enabled: true }, null, lacking)
  const called = tools.find(isForPrograms)
  if (called?.allowedCallers !== undefined && !takes("allowedCallers"))
    changes.report("tool.allowedCallers", [...called.allowedCallers], null, lacking)
  const isPlain = takes("allowedCallers") || called === undefined
  const hasExamples =
    takes("inputExamples") || !tools.some(({ inputExamples }) => inputExamples !== undefined)
  if (isPlain && hasExamples) return tools
  return tools.map((tool) => {
    const callable = isPlain || !isForPrograms(tool) ? tool : callerless(tool)
    return hasExamples || callable.inputExamples === undefined ? callable : described(callable)
  })
}

interface Asked {
  readonly detail: ImageDetail | undefined
  readonly cites: boolean
}

/** The options in the blocks of a conversation. */
const asked = (messages: ModelRequest["messages"]): Asked => {
  let all: Asked = nothing
  for (const message of messages) {
    const { cites, detail } = askedBy(message)
    if (cites || detail !== undefined) all = { cites: all.cites || cites, detail: all.detail ?? detail }
  }
  return all
}

const nothing: Asked = { cites: false, detail: undefined }

const askedBy = memoize(({ content }: ModelRequest["messages"][number]): Asked => {
  let all = nothing
  for (const block of content) {
    if (block.type === "image" && block.detail !== undefined && block.detail !== "auto")
      all = { ...all, detail: all.detail ?? block.detail }
    if (block.type === "file" && block.citations?.enabled === true) all = { ...all, cites: true }
  }
  return all
})

const isForPrograms = ({ allowedCallers }: ToolDefinition): boolean =>
  allowedCallers?.includes("programmatic") === true

// Memoized, since encoders keep the encoding of a tool by its object.
const callerless = memoize(({ allowedCallers: _none, ...tool }: ToolDefinition): ToolDefinition => tool)

/** A tool that has its examples in its description. */
const described = memoize(({ inputExamples = [], ...tool }: ToolDefinition): ToolDefinition => {
  const lines = inputExamples.map((example) => JSON.stringify(example)).join("\n")
  return lines === ""
    ? tool
    : { ...tool, description: `${tool.description}\n\nExamples of its arguments:\n${lines}`.trimStart() }
})
