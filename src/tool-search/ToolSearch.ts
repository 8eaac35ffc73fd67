/**
 * Loads the schemas of tools when the model needs them: by a search of its vendor, or by the tool `tool_search`.
 *
 * @since 0.2.0
 */
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Message } from "../Message.ts"
import type { ToolDefinition } from "../Provider.ts"
import * as Tool from "../Tool.ts"
import { type Offer, type Selected, Selection } from "../ToolRegistry.ts"
import * as Ranking from "./internal/Ranking.ts"

/**
 * Options of `layer`.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** The number of tools whose schemas a request may have without a search. Default 40. */
  readonly threshold?: number
  /** The names of tools whose schemas each request has, beside `read_artifact`, which large results name. Default: none. */
  readonly always?: ReadonlyArray<string>
  /** The number of tools that one search loads at most. Default 5. */
  readonly limit?: number
  /** Whether the vendor searches where it can. Default `true`. */
  readonly vendor?: boolean
}

/** The name of the tool that searches. */
const toolName = "tool_search"

/** Characters of the names of tools in the description of the tool that searches. */
const maxNames = 4_000

/**
 * Lets the model search for tools, where it has more than `threshold`.
 *
 * **When to use**
 *
 * Use it for agents with the tools of many servers. Without this layer, requests have the schemas of all tools, so that an
 * application that adds a tool finds no other behaviour.
 *
 * **Details**
 *
 * With more tools than `threshold`, and a provider whose `toolSearch` is true for the model, a request has all tools, but defers them:
 * the vendor describes a tool to the model when the model searches for it. `Anthropic` and `OpenAi` do so at the addresses of these
 * vendors, with models since Claude 4.5 and GPT-5.4. An answer has each search as blocks `hostedTool`.
 *
 * With any other provider or model, a request has the tool `tool_search {query}`, the tools of `always`, the tool that `toolChoice` names,
 * and those that the conversation has loaded: tools that a search found, and tools that the model called. The transcript says which
 * these are, so that they stay loaded after a restart and after a compaction. They are described in the order in which they were loaded:
 * schemas come at the end of the list, and no search changes the order of those before. Runs of one conversation may have models of both
 * kinds.
 *
 * `tool_search` runs in this process. It ranks tools by the words of their names and descriptions. Its own description has the names of
 * all tools without a schema, up to 4,000 characters. The model may call a tool that is not loaded: the call runs if its arguments decode.
 *
 * The layer does nothing where a tool of the application is named `tool_search`.
 *
 * **Example** (Loading a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { ToolSearch } from "effect-agent/tool-search"
 *
 * const tools = ["rain forecast", "stock price", "train timetable"].map((purpose) =>
 *   Tool.make({ name: purpose.replace(" ", "_"), description: `Returns the ${purpose}.`, execute: () => Effect.succeed("12") })
 * )
 *
 * const program = Effect.gen(function* () {
 *   const script = yield* ScriptedProvider.make([
 *     ScriptedProvider.toolCall("tool_search", { query: "price of a stock" }),
 *     ScriptedProvider.toolCall("stock_price", {}),
 *     ScriptedProvider.text("It is 12.")
 *   ])
 *   const agent = yield* Agent.make({ model: "any", tools }).pipe(
 *     Effect.provide([script.layer, ToolSearch.layer({ threshold: 2 })])
 *   )
 *   yield* agent.prompt("How much is the stock?")
 *   for (const { tools } of yield* script.requests) console.log(tools.map(({ name }) => name))
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program)
 * // => [ 'tool_search' ]
 * // => [ 'tool_search', 'stock_price' ]
 * // => [ 'tool_search', 'stock_price' ]
 * ```
 *
 * @category layers
 * @since 0.2.0
 */
export const layer = (options: Options = {}): Layer.Layer<never> =>
  Layer.sync(Selection, () => {
    const { always = [], limit = 5, threshold = 40, vendor = true } = options
    const kept = new Set(["read_artifact", ...always])
    const isKept = ({ name }: ToolDefinition) => kept.has(name)
    // One tool for all turns: providers keep what they encode by definition.
    const toolFor = memoize((definitions: ReadonlyArray<ToolDefinition>) =>
      make(
        definitions.filter((definition) => !isKept(definition)),
        limit
      )
    )
    return (offer: Offer): Selected | undefined => {
      const { definitions } = offer
      if (definitions.length <= threshold || definitions.some(({ name }) => name === toolName))
        return undefined
      const known = new Map(definitions.map((definition) => [definition.name, definition]))
      const isByVendor = vendor && offer.toolSearch
      const found = offer.messages.flatMap(isByVendor ? foundBy : loadedBy)
      const names = new Set([...found, ...chosenOf(offer)].filter((name) => !kept.has(name)))
      const loaded = [...names].flatMap((name) => known.get(name) ?? [])
      const present = [...definitions.filter(isKept), ...loaded]
      if (!isByVendor) return { tools: [toolFor(definitions)], definitions: present }
      const others = definitions.filter(({ name }) => !kept.has(name) && !names.has(name))
      return { tools: [], definitions: [...present, ...others.map(deferred)] }
    }
  })

const deferred = memoize((definition: ToolDefinition): ToolDefinition => ({ ...definition, deferred: true }))

/** The tool that the model must call. */
const chosenOf = ({ options }: Offer): ReadonlyArray<string> => {
  const choice = options.modelOptions?.toolChoice
  return typeof choice === "object" ? [choice.name] : []
}

const Found = Schema.Struct({ tools: Schema.Array(Schema.String) })
const isFound = Schema.is(Found)

/** The tools that a message loads: those that a search found, or that the model called. */
const loadedBy = (message: Message): ReadonlyArray<string> => {
  if (message.role === "assistant") {
    return message.content.flatMap((block) => (block.type === "toolCall" ? [block.name.trim()] : []))
  }
  return foundBy(message)
}

/** The tools that a search in this process found. */
const foundBy = (message: Message): ReadonlyArray<string> =>
  message.role === "toolResult" && message.toolName === toolName && isFound(message.details)
    ? message.details.tools
    : []

const Params = Schema.Struct({
  query: Schema.String.annotate({ description: "Words of the name or the purpose of a tool" })
})

const make = (definitions: ReadonlyArray<ToolDefinition>, limit: number): Tool.Runnable => {
  const index = Ranking.index(definitions)
  return Tool.make({
    name: toolName,
    label: "Tool search",
    effect: "pure",
    description:
      "Loads tools, which you can call from then on. Search for a tool before you say that you have none. " +
      `Tools to load: ${namesOf(definitions)}`,
    params: Params,
    execute: ({ query }) =>
      Effect.sync(() => {
        const found = Ranking.search(index, query, limit)
        const details = { tools: found.map(({ name }) => name) }
        if (found.length === 0) {
          return Tool.output(
            `No tool matches. Search with other words, or by name: ${namesOf(definitions)}`,
            { details }
          )
        }
        const lines = found.map(({ description, name }) => `- ${name}: ${firstLine(description)}`)
        return Tool.output(["You can call these tools now:", ...lines].join("\n"), { details })
      })
  })
}

const firstLine = (text: string): string => {
  const [line = ""] = text.trim().split("\n")
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

/** The names of tools, as many as there is room for. */
const namesOf = (definitions: ReadonlyArray<ToolDefinition>): string => {
  let length = 0
  const names = definitions.map(({ name }) => name)
  const shown = names.filter((name) => (length += name.length + 2) <= maxNames)
  const more = names.length - shown.length
  return `${shown.join(", ")}${more > 0 ? `, and ${more} more` : ""}.`
}
