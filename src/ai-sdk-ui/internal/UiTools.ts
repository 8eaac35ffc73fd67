/** The types of the tool parts of a page. */
import type { Any, Tool } from "../../Tool.ts"

/**
 * The inputs and outputs of tools by their names, for the type of the messages of a page.
 *
 * **Details**
 *
 * It is `InferUITools` of the AI SDK for the tools of this package: `useChat<UIMessage<AiSdkUi.Metadata, UIDataTypes, AiSdkUi.UiTools<typeof tools>>>`.
 * An output is what `execute` returns. A value that a `success` schema encodes reaches the page encoded.
 *
 * **Example** (Typing the parts of a tool)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool } from "effect-agent"
 * import type { AiSdkUi } from "effect-agent/ai-sdk-ui"
 *
 * const weather = Tool.make({
 *   name: "weather",
 *   description: "The weather in a city.",
 *   params: Schema.Struct({ city: Schema.String }),
 *   execute: ({ city }) => Effect.succeed({ city, celsius: 4 })
 * })
 *
 * type Tools = AiSdkUi.UiTools<[typeof weather]>
 * const output: Tools["weather"]["output"] = { city: "Oslo", celsius: 4 }
 * console.log(output.celsius) // => 4
 * ```
 *
 * @since 0.2.0
 * @category utility types
 */
export type UiTools<Tools extends ReadonlyArray<Any>> = {
  [Name in Tools[number]["name"]]: UiTool<Extract<Tools[number], { readonly name: Name }>>
}

type UiTool<One> =
  One extends Tool<infer _Name, infer Params, infer Success, infer _Failure, infer _R>
    ? { input: Params; output: Success }
    : never
