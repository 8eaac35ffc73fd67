/** Finds requests that a model cannot serve, by its rule, before they are sent. */
import type { ModelRequest } from "../../Provider.ts"
import type { Reason } from "../../ProviderError.ts"
import { ModelNotSupported, UnsupportedContent } from "../../ProviderError.ts"
import type { Endpoint, Rule } from "./models/rule.ts"

/** Why the model cannot serve the request, `undefined` if it can. */
export const missing = (
  endpoint: Endpoint,
  rule: Rule | undefined,
  { messages, model, tools }: ModelRequest
): Reason | undefined => {
  if (rule === undefined) return undefined
  const isAtEndpoint = rule.endpoints?.includes(endpoint) ?? true
  if (endpoint === "chat" && (!isAtEndpoint || (tools.length > 0 && rule.tools === "responses"))) {
    const verb = isAtEndpoint ? "takes tools" : "answers"
    return unsupported(
      model,
      `${model} ${verb} by the Responses API only: use OpenAi in place of OpenAiCompatible, openai/${model} in the program`
    )
  }
  if (tools.length > 0 && rule.tools === "none") return unsupported(model, `${model} takes no tools`)
  return rule.input === undefined ? undefined : unreadable(model, rule.input, messages)
}

const unsupported = (model: string, detail: string): Reason => new ModelNotSupported({ model, detail })

const unreadable = (
  model: string,
  input: NonNullable<Rule["input"]>,
  messages: ModelRequest["messages"]
): Reason | undefined => {
  if (input.includes("image") && input.includes("pdf")) return undefined
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === "image" && !input.includes("image"))
        return new UnsupportedContent({ detail: `${model} takes no images: it reads ${input.join(", ")}` })
      const isPdf =
        block.type === "file" && "data" in block.source && block.source.mediaType === "application/pdf"
      if (isPdf && !input.includes("pdf"))
        return new UnsupportedContent({ detail: `${model} takes no PDF: it reads ${input.join(", ")}` })
    }
  }
  return undefined
}
